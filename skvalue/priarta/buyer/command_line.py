"""The command ``buyer``: a buyer's side of PriArTa."""

import argparse
import os

import numpy as np

from ..._utils.output_files import KINDS, check_outputs, pandas, write_frame
from ..._utils.writing import write_results
from ...exceptions import ParameterError
from ..maps import BuyerModel, Identity, refuse_model_folder
from ..seller import read_names, read_rows
from .scorer import PriArTaScorer

_REPRESENTATIONS = ("identity", "pca", "simclr")
_MAX_PAIRS = 20  # that are printed, the nearest ones
_COPY_LEVEL = 0.01
_ALIKE_LEVEL = 0.95
_CAUTION = (
    "A large score says that rows differ from yours, not that they are of use: rows of "
    "random numbers have the largest scores of all. Test what is delivered before you "
    "pay for it."
)


def add_buyer_command(commands):
    """Add the command ``buyer`` to a command line.

    Its steps are ``export`` and ``score``.

    Parameters
    ----------
    commands : object
        What ``ArgumentParser.add_subparsers`` returned. Parsed options of
        the command have the attribute `run`, a function that takes them and runs it.

    Examples
    --------
    >>> import argparse
    >>> from skvalue.priarta import add_buyer_command
    >>> parser = argparse.ArgumentParser()
    >>> add_buyer_command(parser.add_subparsers())
    >>> options = parser.parse_args(["buyer", "export", "mine.csv", "-o", "model"])
    >>> callable(options.run)
    True
    """
    buyer = commands.add_parser(
        "buyer",
        help="a buyer's side of PriArTa: export a model for sellers, score their "
        "summaries",
    )
    steps = buyer.add_subparsers(required=True, metavar="STEP")

    export = steps.add_parser("export", help="write the folder that sellers need")
    export.set_defaults(run=_export)
    export.add_argument(
        "rows",
        help="a .csv file of your rows, with a header of the names that sellers' files "
        "must have, or without one; or an .npz or .npy file of an array. They are not "
        "protected",
    )
    export.add_argument(
        "--columns",
        help="names of the columns of a file without a header, in its order, such as "
        "age,dose",
    )
    export.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether columns are divided by their standard deviations among your "
        "rows, which the model tells, so that a column in a smaller unit does not "
        "decide all scores; not for simclr, which does its own. Default: yes",
    )
    export.add_argument(
        "--representation",
        choices=_REPRESENTATIONS,
        default=_REPRESENTATIONS[0],
        help="of a row",
    )
    export.add_argument(
        "--epsilon",
        type=float,
        help="that sellers will probably choose; default: 1",
    )
    export.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    export.add_argument("-o", "--output", required=True, help="new folder")

    score = steps.add_parser("score", help="score the summaries of sellers")
    score.set_defaults(run=_score)
    score.add_argument("model", help="folder that export wrote")
    score.add_argument("rows", help="the file of rows that export had")
    score.add_argument("summaries", nargs="+", help="files of the sellers")
    score.add_argument("-o", "--output", help="file to write the scores to")
    score.add_argument(
        "--pairs",
        help="file to write the distances of all pairs of sellers to, with the floor "
        "of each, which is simulated",
    )


def _export(options):
    _check_folder(options.output)
    names = _names_of(options)
    rows = read_rows(options.rows, None if options.columns else names)
    if names is not None:
        rows = _named(rows, names)
    representation = options.representation
    latent = "gaussian"
    if options.standardize and representation != "simclr":
        latent = {"identity": "gaussian", "pca": "pca"}[representation]
        representation = Identity(standardize=True)
    scorer = PriArTaScorer(
        representation,
        latent=latent,
        epsilon=options.epsilon,
        random_state=options.seed,
    )
    scorer.fit(rows).export(options.output)
    print(
        f"{options.output}: a model of {scorer.model_.n_dimensions} dimensions for "
        "sellers."
    )
    print(
        "It is fitted without noise on your rows, about which it tells whoever has it."
    )


def _check_folder(path):
    """Refuse, before any work, a folder to which no model could be written."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise ValueError(f"--output must be a folder. Got {path}, which is none.")
    refuse_model_folder(path)

    # The first folder above it that exists.
    folder = os.path.realpath(path)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise ParameterError(
            "--output", f"must be in a folder that can be written. Got {path}."
        )


def _names_of(options):
    """Names of the columns of the buyer's file, or None."""
    names = read_names(options.rows)
    if options.columns is None:
        return names
    if names is not None:
        raise ParameterError(
            "--columns",
            f"must be used with a file without a header. Got {options.rows}, which has "
            "one.",
        )
    return options.columns.split(",")


def _named(rows, names):
    """Rows as a frame with names of columns."""
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise ParameterError(
            "--columns",
            f"must have a name for each column. Got {len(names)} names for rows of "
            f"shape {rows.shape}.",
        )
    if len(set(names)) < len(names):
        raise ParameterError("rows", f"must have names that differ. Got {names}.")
    return pandas().DataFrame(rows, columns=names)


def _read_buyer(path, model):
    """The buyer's rows, with the columns of the model if the file has a header."""
    if model.columns is not None and read_names(path) is not None:
        return _named(read_rows(path, model.columns), model.columns)
    return read_rows(path)


def _score(options):
    summaries = options.summaries
    inputs = [options.rows, *summaries]
    check_outputs(options, {"output": KINDS, "pairs": KINDS}, inputs)
    model = BuyerModel.load(options.model)
    scorer = PriArTaScorer().fit(_read_buyer(options.rows, model), model=model)
    scores = {
        "summary": summaries,
        "score": scorer.score_summaries(summaries)[:, 0],
        "error": scorer.score_errors(summaries),
        "noise_floor": scorer.noise_floor(summaries),
    }
    frame = pandas().DataFrame(scores).sort_values("score", ascending=False)
    n_pairs = _MAX_PAIRS if options.pairs is None else None
    pairs = _pairs(scorer, summaries, n_pairs)
    print(_CAUTION)
    print()
    print(_as_text(frame))
    print("A score below the noise floor does not differ significantly from your rows.")
    print()
    for line in _explanations(scorer, summaries, model):
        print(line)
    if len(pairs):
        print()
        print(_as_text(pairs.head(_MAX_PAIRS)))
        n_all = len(summaries) * (len(summaries) - 1) // 2
        if n_all > _MAX_PAIRS:
            print(f"These are the {_MAX_PAIRS} nearest of {n_all} pairs.")
        print(
            "'copies?': nearer than other rows of one population are in 99 of 100 "
            "cases, so look whether one has the other's rows. 'alike': below the "
            "floor, which two sellers of one population exceed in 5 of 100 cases: "
            "copies and other rows cannot be told apart."
        )
    files = {}
    if options.output is not None:
        files[options.output] = write_frame(frame, options.output)
    if options.pairs is not None:
        files[options.pairs] = write_frame(pairs, options.pairs)
    if files:
        write_results(files)


def _as_text(frame):
    return frame.to_string(index=False, float_format="{:.4g}".format)


def _pairs(scorer, summaries, n_pairs):
    """The nearest pairs of sellers, at most a number of them, with what they say.

    None is all. A floor is simulated for each of them.
    """
    distances = scorer.pairwise_distances(summaries)
    first, second = np.triu_indices(len(summaries), 1)
    nearest = np.argsort(distances[first, second], kind="stable")[:n_pairs]
    lines = []
    for i, j in zip(first[nearest], second[nearest]):
        pair = [summaries[i], summaries[j]]
        lower, upper = scorer.pairwise_floor(pair, (_COPY_LEVEL, _ALIKE_LEVEL))
        distance = distances[i, j]
        verdict = "differ"
        if distance < lower[0, 1]:
            verdict = "copies?"
        elif distance < upper[0, 1]:
            verdict = "alike"
        lines.append(
            {
                "first": summaries[i],
                "second": summaries[j],
                "distance": distance,
                "floor": upper[0, 1],
                "below_are_copies": lower[0, 1],
                "says": verdict,
            }
        )
    return pandas().DataFrame(lines)


def _explanations(scorer, summaries, model):
    """For each seller, along which direction its rows differ most from the buyer's."""
    for summary, contributions in zip(summaries, scorer.explain(summaries)):
        total = contributions.sum()
        if total == 0:
            yield f"{summary}: no difference."
            continue
        by_mean = contributions[0].sum() / total
        direction = int(contributions.sum(axis=0).argmax())
        part = contributions[:, direction].sum() / total
        yield (
            f"{summary}: {by_mean:.0%} of the squared distance is by the mean, the "
            f"rest by the spread; {part:.0%} is along "
            f"{_direction(scorer.components_[direction], direction, model)}."
        )


def _direction(loadings, number, model):
    """A principal direction in words: its largest columns, or its number."""
    is_by_column = isinstance(model.representation, Identity)
    is_by_column &= isinstance(model.latent, Identity)
    if model.columns is None or not is_by_column:
        return f"your principal direction {number + 1}"
    largest = np.argsort(-np.abs(loadings), kind="stable")[:2]
    return " ".join(f"{loadings[i]:+.2f} {model.columns[i]}" for i in largest)
