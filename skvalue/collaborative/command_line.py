"""The command ``party``: collaborative learning by files, on the machines of all.

The mediator writes a model (``model``), each party a release for it (``release``), and
the mediator scores and rewards the releases (``score``, ``reward``). Everything that is
sent is JSON, and is checked as a whole when it is read.
"""

import math
import os
from typing import NamedTuple

import numpy as np

from .._utils.checks import check_positive, format_values
from .._utils.csv_columns import (
    parse_number,
    private_numbers,
    public_numbers,
    read_columns,
    read_header,
    refuse_broken_lines,
)
from .._utils.csv_text import csv_text
from .._utils.output_files import check_outputs
from .._utils.untrusted import read_text
from .._utils.writing import write_files, write_release
from ..exceptions import ParameterError
from ..privacy import ledger_of
from ..rewards import shares
from .mediator import (
    MAX_REWARD_SIZE,
    MAX_SCORES_SIZE,
    BayesianSurpriseScorer,
    NamedReward,
    PartyScores,
    PredictiveValueScorer,
    RhoShapleyReward,
    check_n_draws,
    reward_gain,
)
from .models import MAX_MODEL_SIZE, SEPARATORS, MediatorModel
from .party import MAX_RELEASE_SIZE, NamedRelease, check_party

_SEPARATORS = {"tab": "\t", "\\t": "\t"}
_BYTES_PER_ENTRY = 26  # of a statistic as text
_BYTES_OF_NAMES = 300_000
_JSON = (".json",)
_FEWEST_ROWS = 20  # in the folds of a gain


def add_party_command(commands):
    """Add the command ``party`` to a command line.

    Its steps are ``model``, ``release``, ``score``, ``reward``, ``gain``, ``predict``
    and ``check``.

    Parameters
    ----------
    commands : object
        What ``ArgumentParser.add_subparsers`` returned. Parsed options of
        the command have the attribute `run`, a function that takes them and runs it.

    Examples
    --------
    >>> import argparse
    >>> from skvalue.collaborative import add_party_command
    >>> parser = argparse.ArgumentParser()
    >>> add_party_command(parser.add_subparsers())
    >>> options = parser.parse_args(["party", "check", "release.json"])
    >>> callable(options.run)
    True
    """
    party = commands.add_parser(
        "party",
        help="collaborative learning by files: model, release, score, reward, gain, "
        "predict, check",
    )
    steps = party.add_subparsers(required=True, metavar="STEP")
    _add_model_step(steps)
    _add_release_step(steps)
    _add_score_step(steps)
    _add_reward_step(steps)
    _add_gain_step(steps)
    _add_predict_step(steps)

    check = steps.add_parser("check", help="print what a file of these steps states")
    check.set_defaults(run=_check)
    check.add_argument("file", help="a model, release, file of scores, or reward")


def _add_model_step(steps):
    model = steps.add_parser(
        "model", help="of the mediator: write the public model for the parties"
    )
    model.set_defaults(run=_write_model)
    model.add_argument(
        "points",
        help="a .csv file with a header: public rows, which are no party's, for "
        "the scaling of columns and the frequencies of classes",
    )
    model.add_argument("--target", required=True, help="name of the column to predict")
    model.add_argument(
        "--ignore", action="append", metavar="COLUMN", help="a column to leave out"
    )
    model.add_argument(
        "--positive", metavar="LABEL", help="the positive class, if there are two"
    )
    model.add_argument(
        "--value",
        choices=("predictive", "surprise"),
        default="predictive",
        help="of a party; default: %(default)s",
    )
    model.add_argument(
        "--semivalue",
        choices=("shapley", "banzhaf", "leave-one-out"),
        default="shapley",
        help="default: %(default)s",
    )
    model.add_argument("--sep", default=",", help="what separates cells, or tab")
    model.add_argument(
        "--decimal", choices=(".", ","), default=".", help="decimal mark of all files"
    )
    model.add_argument("-o", "--output", required=True, help="new file (.json)")


def _add_release_step(steps):
    release = steps.add_parser(
        "release", help="of a party: write the private release of its rows"
    )
    release.set_defaults(run=_write_release)
    release.add_argument("model", help="the mediator's file")
    release.add_argument(
        "rows",
        help="a .csv file of your rows, with a header that has the model's columns in "
        "any order; others are not read",
    )
    release.add_argument("--party", required=True, help="your name")
    release.add_argument(
        "--epsilon",
        type=float,
        required=True,
        help="above 0; all that is released is epsilon-differentially private with "
        "--delta: smaller is more private and noisier, 1 is a common choice",
    )
    release.add_argument(
        "--delta", type=float, required=True, help="such as 1e-5, below 1/n"
    )
    release.add_argument("--ledger", help="file of the ledger of these rows")
    release.add_argument("--dataset-name", help="name of the rows in the ledger")
    release.add_argument("-o", "--output", required=True, help="new file (.json)")
    release.add_argument(
        "--notes",
        help="file for you alone: how many rows could not be read and count as rows of "
        "zeros, and how many were clipped. Nothing that is sent depends on it",
    )
    _add_reading(release)


def _add_score_step(steps):
    score = steps.add_parser(
        "score", help="of the mediator: values, errors and shares of the parties"
    )
    score.set_defaults(run=_score)
    _add_mediator_files(score)
    score.add_argument(
        "--budget", type=float, help="a sum of money to divide by the values"
    )
    score.add_argument(
        "--unit", type=float, help="smallest unit of the money, such as 0.01"
    )
    score.add_argument("-o", "--output", help="file to write the scores to (.json)")


def _add_reward_step(steps):
    reward = steps.add_parser(
        "reward", help="of the mediator: write a model for each party, by its value"
    )
    reward.set_defaults(run=_reward)
    _add_mediator_files(reward)
    reward.add_argument(
        "--n-draws", type=int, default=1000, help="of a reward; default: %(default)s"
    )
    reward.add_argument(
        "-o", "--output", required=True, help="folder for the files PARTY.json"
    )


def _add_mediator_files(parser):
    parser.add_argument("model", help="your public file")
    parser.add_argument(
        "releases", nargs="+", help="files of the parties, each of another one"
    )
    parser.add_argument(
        "--validation",
        help="a .csv file of points that no party knows, with the model's columns; "
        "needed for predictive values",
    )
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")


def _add_gain_step(steps):
    gain = steps.add_parser(
        "gain",
        help="of a party: how much better its reward predicts its rows than a model "
        "of its other rows",
    )
    gain.set_defaults(run=_gain)
    gain.add_argument("model", help="the mediator's file")
    gain.add_argument("reward", help="your reward")
    gain.add_argument("rows", help="the .csv file of your rows")
    _add_reading(gain)


def _add_predict_step(steps):
    predict = steps.add_parser(
        "predict", help="of a party: predictions of its reward for rows"
    )
    predict.set_defaults(run=_predict)
    predict.add_argument("model", help="the mediator's file")
    predict.add_argument("reward", help="your reward")
    predict.add_argument("rows", help="a .csv file with the model's features")
    predict.add_argument("-o", "--output", required=True, help="file to write (.csv)")
    _add_reading(predict)


def _add_reading(parser):
    parser.add_argument(
        "--sep", help="what separates cells of your rows; default: the model's"
    )
    parser.add_argument(
        "--decimal",
        choices=(".", ","),
        help="decimal mark of your rows; default: the model's",
    )


# Reading ------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Scaled features (n, d) and targets (n,) of a file, which have NaN or None."""

    X: np.ndarray
    y: np.ndarray


def _separator(text):
    """The separator of an option, of which models have a choice."""
    separator = _SEPARATORS.get(text, text)
    if separator not in SEPARATORS:
        allowed = ", ".join(map(repr, SEPARATORS))
        raise ParameterError("--sep", f"must be one of {allowed} or tab. Got {text!r}.")
    return separator


def _read(path, record_class, limit):
    """The object in a file, which is not trusted; errors name the file."""
    try:
        return record_class.from_json(read_text(path, limit, "text"))
    except ValueError as error:
        raise ValueError(
            f"{path} must be a file that `skvalue party` wrote, of the kind "
            f"{record_class.__name__}. Got a file in which {error}"
        ) from None


def _read_model(path):
    return _read(path, MediatorModel, MAX_MODEL_SIZE)


def _reading(options, model):
    """Separator and decimal mark, by options or the public model alone."""
    separator = model.separator if options.sep is None else _separator(options.sep)
    decimal = model.decimal if options.decimal is None else options.decimal
    return separator, decimal


class _Labels:
    """The classes of a model, by their texts and by their numbers.

    A class "1" is also 1.0, as programs write it in a column with missing entries.
    """

    def __init__(self, model, decimal):
        self._decimal = decimal
        self._by_text = {str(label): label for label in model.classes}
        self._by_number = {}
        numbers = [parse_number(text, model.decimal) for text in self._by_text]
        if len(set(numbers)) == len(numbers):
            self._by_number = dict(zip(numbers, model.classes))

    def of(self, cell):
        """The class that a cell holds; None if it has none."""
        text = cell.strip()
        if text in self._by_text:
            return self._by_text[text]
        number = parse_number(text, self._decimal)
        return None if math.isnan(number) else self._by_number.get(number)


def _read_private(path, model, separator, decimal):
    """`Rows` of a party: what cannot be read is NaN or None, and no error."""
    names = (*model.columns, model.target)
    columns = read_columns(path, names, separator)
    if not columns.cells:  # their number is public
        raise ParameterError(str(path), "must have rows. Got a header alone.")
    d = len(model.columns)
    if model.kind == "linear":
        numbers = private_numbers(columns, d + 1, decimal)
        return Rows(
            model.transform(numbers[:, :d]), model.transform_target(numbers[:, d])
        )
    labels = np.full(len(columns.cells), None, dtype=object)
    classes = _Labels(model, decimal)
    for i, cells in enumerate(columns.cells):
        if cells is not None:
            labels[i] = classes.of(cells[d])
    return Rows(model.transform(private_numbers(columns, d, decimal)), labels)


def _read_public(path, model):
    """`Rows` of the mediator, all of which can be read."""
    names = (*model.columns, model.target)
    columns = read_columns(path, names, model.separator)
    d = len(model.columns)
    if model.kind == "linear":
        numbers = public_numbers(columns, d + 1, model.decimal)
        return Rows(
            model.transform(numbers[:, :d]), model.transform_target(numbers[:, d])
        )
    X = public_numbers(columns, d, model.decimal)
    classes = _Labels(model, model.decimal)
    labels = [classes.of(cells[d]) for cells in columns.cells]
    if None in labels:
        line = columns.lines[labels.index(None)]
        raise ParameterError(
            str(path),
            f"must have a label of {list(model.classes)} in column {model.target!r} of "
            f"each line. Got another in line {line}.",
        )
    return Rows(model.transform(X), np.array(labels))


def _read_releases(paths, model):
    """Releases by the names of their parties, all of them for this model."""
    releases = {}
    for path in paths:
        named = _read(path, NamedRelease, MAX_RELEASE_SIZE)
        try:
            model.check_release(named)
        except ValueError as error:
            raise ValueError(
                f"{path} must be a release for the mediator's model. Got one in which "
                f"{error}"
            ) from None
        # Names that differ in case alone would be one file on some systems.
        if named.party.casefold() in map(str.casefold, releases):
            raise ValueError(
                f"{path} must be the release of another party than the other files. "
                f"Got a second one of {named.party!r}."
            )
        releases[named.party] = named.release
    return releases


# Steps --------------------------------------------------------------------------------


def _write_model(options):
    check_outputs(options, {"output": _JSON}, [options.points])
    _refuse_existing(options.output)
    separator = _separator(options.sep)
    header = read_header(options.points, separator)
    ignored = options.ignore or []
    for name in [options.target, *ignored]:
        if name not in header:
            option = "--target" if name == options.target else "--ignore"
            raise ParameterError(
                option,
                f"must be a column of {options.points}, {', '.join(header)}. Got "
                f"{name!r}.",
            )
    features = [name for name in header if name not in (options.target, *ignored)]
    if not features:
        raise ParameterError(
            str(options.points),
            f"must have a column besides --target {options.target} and those of "
            "--ignore. Got none.",
        )
    columns = read_columns(options.points, (*features, options.target), separator)
    X = public_numbers(columns, len(features), options.decimal)
    cells = [row[-1].strip() for row in columns.cells]
    _refuse_constant(options.points, features, X)
    y, classes = _targets_of(cells, columns.lines, options)
    fields = {"classes": classes} if classes else {"kind": "linear"}
    model = MediatorModel.from_points(
        X,
        y,
        columns=features,
        target=options.target,
        value=options.value,
        semivalue=options.semivalue,
        separator=separator,
        decimal=options.decimal,
        **fields,
    )
    write_files({options.output: model.to_json()})
    print(
        f"{options.output}: the model of {len(features)} columns for the parties, "
        f"{model.fingerprint[:12]}..."
    )
    if classes:
        print(f"{classes[0]!r} is the negative class, {classes[1]!r} the positive one.")
    print(f"It tells means and scales of {options.points} to whoever has it.")


def _refuse_constant(path, features, X):
    """Refuse a column of public rows that has no scale."""
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if len(constant):
        name = features[constant[0]]
        raise ParameterError(
            str(path),
            f"must not have a constant column: leave it out by --ignore {name}. Got "
            f"{name!r}.",
        )


def _targets_of(cells, lines, options):
    """Targets of public rows, and the two classes, or none of a regression."""
    if "" in cells:
        raise ParameterError(
            str(options.points),
            f"must have an entry in column {options.target!r} of each line. Got none "
            f"in line {lines[cells.index('')]}.",
        )
    numbers = np.array([parse_number(cell, options.decimal) for cell in cells])
    are_numbers = bool(np.isfinite(numbers).all())
    if are_numbers and len(set(numbers)) == 2:
        cells = _with_one_spelling(cells, numbers)
    labels = sorted(set(cells))
    if len(labels) == 2:
        if are_numbers:
            labels.sort(key=lambda label: parse_number(label, options.decimal))
        if options.positive is not None:
            if options.positive not in labels:
                raise ParameterError(
                    "--positive",
                    f"must be one of {', '.join(labels)}. Got {options.positive!r}.",
                )
            labels.sort(key=lambda label: label == options.positive)
        return np.array(cells), tuple(labels)
    if not are_numbers or len(labels) == 1:
        raise ParameterError(
            "--target",
            f"must be a column of numbers that differ, or of two labels. Got "
            f"{len(labels)} in {options.target!r}: {format_values(labels)}.",
        )
    if options.positive is not None:
        raise ParameterError(
            "--positive",
            f"must be used with a target of two labels. Got {len(labels)} numbers in "
            f"{options.target!r}.",
        )
    return numbers, ()


def _with_one_spelling(cells, numbers):
    """Cells of equal numbers, such as 1 and 1.0, with the first shortest of them."""
    spellings = {}
    for cell, number in zip(cells, numbers):
        spelling = spellings.setdefault(number, cell)
        if len(cell) < len(spelling):
            spellings[number] = cell
    return [spellings[number] for number in numbers]


def _refuse_existing(path):
    if os.path.exists(path) and os.path.getsize(path):
        raise ParameterError(
            "--output", f"must be a new file. Got {path}, which exists."
        )


def _write_release(options):
    check_outputs(
        options, {"output": _JSON, "notes": None}, [options.rows, options.model]
    )
    _refuse_existing(options.output)
    try:
        check_party(options.party)
    except ParameterError as error:
        raise ParameterError("--party", str(error).removeprefix("party ")) from None
    model = _read_model(options.model)
    separator, decimal = _reading(options, model)
    rows = _read_private(options.rows, model, separator, decimal)
    party = model.make_party(
        options.epsilon, delta=options.delta, ledger=ledger_of(options)
    )

    n_entries = (len(model.columns) + 2) ** 2
    sizes = {options.output: _BYTES_OF_NAMES + _BYTES_PER_ENTRY * n_entries}
    notes = []
    if options.notes is not None:
        notes.append(_notes(model, rows))
        sizes[options.notes] = len(notes[0])

    def make():
        party.fit(rows.X, rows.y)
        named = NamedRelease(
            party=options.party,
            model=model.fingerprint,
            columns=(*model.columns, model.target),
            release=party.release_,
        )
        text = named.to_json()
        return [text, *notes], text

    write_release(sizes, make)
    print(f"{options.output}: {os.path.getsize(options.output)} bytes.")
    print(party.privacy_)


def _are_usable(model, rows):
    """Which rows of a party could be read."""
    if model.kind == "linear":
        is_usable = np.isfinite(rows.y)
    else:
        is_usable = np.array([label is not None for label in rows.y], dtype=bool)
    return is_usable & np.isfinite(rows.X).all(axis=1)


def _notes(model, rows):
    """What the party alone is told of its rows."""
    is_usable = _are_usable(model, rows)
    X = rows.X[is_usable]
    with np.errstate(over="ignore"):
        n_clipped = np.count_nonzero(np.linalg.norm(X, axis=1) > model.x_bound)
    lines = [
        f"{np.count_nonzero(~is_usable)} of {len(rows.X)} rows could not be read; they "
        "count as rows of zeros.",
        f"{n_clipped} rows were clipped to the norm {model.x_bound:.4g}.",
    ]
    if model.kind == "linear":
        n_clipped = np.count_nonzero(np.abs(rows.y[is_usable]) > model.y_bound)
        lines.append(f"{n_clipped} targets were clipped to {model.y_bound:.4g}.")
    return "\n".join(lines) + "\n"


def _fit_scorer(options):
    """The model, and the scorer that is fitted to the releases, by the model."""
    model = _read_model(options.model)
    releases = _read_releases(options.releases, model)
    if model.value == "surprise":
        if options.validation is not None:
            raise ParameterError(
                "--validation",
                "must not be used with a model of surprise, which needs no points. Got "
                f"{options.validation}.",
            )
        scorer = BayesianSurpriseScorer(
            model.make_model(), semivalue=model.semivalue, random_state=options.seed
        )
        return model, scorer.fit(releases), 0
    if options.validation is None:
        raise ParameterError(
            "--validation", "must be a file of points for predictive values. Got none."
        )
    if not os.path.exists(options.validation):
        raise ParameterError(
            "--validation", f"must be a file. Got {options.validation}, which is none."
        )
    points = _read_public(options.validation, model)
    if len(points.y) < 2:
        raise ParameterError(
            "--validation",
            "must have at least 2 points, for the errors over them. Got "
            f"{options.validation} with one.",
        )
    scorer = PredictiveValueScorer(
        model.make_model(), semivalue=model.semivalue, random_state=options.seed
    )
    scorer.fit(releases, X_val=points.X, y_val=points.y)
    return model, scorer, len(points.y)


def _score(options):
    inputs = [options.model, options.validation, *options.releases]
    check_outputs(options, {"output": _JSON}, inputs)
    for option in ("budget", "unit"):
        if getattr(options, option) is not None:
            check_positive(getattr(options, option), f"--{option}")
    if options.unit is not None and options.budget is None:
        raise ParameterError(
            "--unit", f"must be used with --budget. Got {options.unit:g} alone."
        )
    model, scorer, n_validation = _fit_scorer(options)
    scores = PartyScores.from_scorer(scorer, model.fingerprint, n_validation)
    if options.output is not None:
        write_files({options.output: scores.to_json()})
    print(_table(scores, options))
    unit = "nats per validation point" if n_validation else "nats"
    print(
        f"All together: {scores.grand_value:.4g} {unit}. A share is that of the values "
        "above 0. An error is a standard error of the value, and a difference of less "
        "than two of them is none."
    )


def _table(scores, options):
    """The parties as lines of text, the largest value first."""
    order = sorted(scores.parties, key=lambda party: -party["value"])
    titles = ["party", "rows", "value", "error", "validation error", "share"]
    amounts = {}
    if options.budget is not None:
        titles.append("amount")
        values = [party["value"] for party in scores.parties]
        paid = shares(values, options.budget, options.unit)
        amounts = {
            party["party"]: amount for party, amount in zip(scores.parties, paid)
        }
    lines = [titles]
    for party in order:
        line = [party["party"], str(party["n_samples"])]
        line += [
            f"{party[name]:.4g}" for name in ("value", "error", "validation_error")
        ]
        line.append(f"{party['share']:.3f}")
        if amounts:
            line.append(f"{amounts[party['party']]:.2f}")
        lines.append(line)
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


def _refuse_harm(scorer):
    """Refuse to reward parties that together predict no better than the prior."""
    if scorer.grand_value_ > 0 and scorer.values_.max() > 0:
        return
    harmful = [
        str(party) for party, value in zip(scorer.parties_, scorer.values_) if value < 0
    ]
    cure = ""
    if 0 < len(harmful) < len(scorer.parties_):
        cure = f" Leave out the release of {' and of '.join(harmful)}."
    raise ValueError(
        "releases must have a value above 0 together, to be divided. Got "
        f"{scorer.grand_value_:.4g}.{cure}"
    )


def _reward(options):
    # Weights of the columns, an intercept, and the noise of targets.
    n_parameters = len(_read_model(options.model).columns) + 2
    check_n_draws(options.n_draws, "--n-draws", n_parameters)
    if os.path.exists(options.output) and not os.path.isdir(options.output):
        raise ParameterError(
            "--output", f"must be a folder. Got {options.output}, which is none."
        )
    model, scorer, _ = _fit_scorer(options)
    _refuse_harm(scorer)
    paths = {
        party: os.path.join(options.output, f"{party}.json")
        for party in scorer.parties_
    }
    for path in paths.values():
        _refuse_existing(path)
    scheme = RhoShapleyReward(n_draws=options.n_draws, random_state=options.seed)
    scheme.fit(scorer)
    texts = {}
    for party, path in paths.items():
        reward = NamedReward(party, model.fingerprint, scheme.rewards_[party])
        texts[path] = reward.to_json()
    os.makedirs(options.output, exist_ok=True)
    write_files(texts)
    for i, (party, path) in enumerate(paths.items()):
        target = scheme.target_rewards_[i]
        attained = scheme.attained_rewards_[i]
        print(f"{path}: a model of value {attained:.4g} (target {target:.4g}).")
        if not scheme.individually_rational_[i]:
            alone = scheme.standalone_values_[i]
            print(f"  {party} has {alone:.4g} by its release alone, which is more.")


def _read_reward(path, model):
    """The posterior of a reward, which must be of a model."""
    named = _read(path, NamedReward, MAX_REWARD_SIZE)
    try:
        model.check_fingerprint(named.model)
    except ValueError as error:
        raise ValueError(
            f"{path} must be a reward of the mediator's model. Got one in which {error}"
        ) from None
    return named.posterior


def _gain(options):
    model = _read_model(options.model)
    separator, decimal = _reading(options, model)
    posterior = _read_reward(options.reward, model)
    rows = _read_private(options.rows, model, separator, decimal)
    is_usable = _are_usable(model, rows)
    y = rows.y[is_usable]
    if model.kind == "logistic":
        y = np.array(y.tolist())
    if len(y) < _FEWEST_ROWS:
        raise ParameterError(
            options.rows,
            f"must have at least {_FEWEST_ROWS} rows that can be read. Got {len(y)}.",
        )
    party = model.make_party(None)
    gain, error = reward_gain(posterior, party, rows.X[is_usable], y)
    print(
        f"Your reward predicts your rows by {gain:.4g} nats per row better than a "
        f"model of your other rows without noise (error {error:.2g})."
    )


def _predict(options):
    check_outputs(
        options, {"output": (".csv",)}, [options.model, options.reward, options.rows]
    )
    model = _read_model(options.model)
    separator, decimal = _reading(options, model)
    posterior = _read_reward(options.reward, model)
    columns = read_columns(options.rows, model.columns, separator)
    refuse_broken_lines(columns)
    X = model.transform(public_numbers(columns, len(model.columns), decimal))
    if model.kind == "linear":
        predictions = posterior.predict(X)
        predictions = model.target_centre + model.target_scale * predictions
        title = model.target
    else:
        predictions = posterior.predict_proba(X)[:, 1]
        title = f"probability of {model.classes[1]}"
    # Names of columns may have quotes and commas.
    text = csv_text([[title], *([repr(number)] for number in predictions.tolist())])
    write_files({options.output: text})
    print(f"{options.output}: {len(X)} predictions.")


# What a file is -> its class and largest size.
_FILES = {
    "model": (MediatorModel, MAX_MODEL_SIZE),
    "release": (NamedRelease, MAX_RELEASE_SIZE),
    "scores": (PartyScores, MAX_SCORES_SIZE),
    "reward": (NamedReward, MAX_REWARD_SIZE),
}


def _check(options):
    # The first characters say the format; all of the file is read by its own class.
    with open(options.file, "rb") as file:
        start = file.read(200)
    for record_class, limit in _FILES.values():
        if f'.{record_class.__name__}"'.encode() in start:
            print(_summary(_read(options.file, record_class, limit)))
            return
    raise ValueError(
        f"{options.file} must be a file that `skvalue party` wrote: a "
        f"{', '.join(_FILES)}. Got another one."
    )


def _summary(record):
    """What a record states, in a sentence."""
    if isinstance(record, MediatorModel):
        names = ", ".join(record.columns)
        return (
            f"A model of {record.target} by {names}; rows are clipped to the norm "
            f"{record.x_bound:g}; {record.value} {record.semivalue} values; "
            f"{record.fingerprint[:12]}..."
        )
    if isinstance(record, NamedRelease):
        release = record.release
        noise = "WITHOUT NOISE"
        if release.renyi_epsilon is not None:
            mu = math.sqrt(2 * release.renyi_epsilon / release.renyi_order)
            noise = f"with the noise of {mu:.4g}-Gaussian differential privacy"
        return (
            f"The release of {record.party}: {release.n_samples} rows, {noise}, for "
            f"model {record.model[:12]}..."
        )
    if isinstance(record, PartyScores):
        names = ", ".join(party["party"] for party in record.parties)
        return f"Scores of {names}, for model {record.model[:12]}..."
    draws = len(record.posterior.samples_)
    return f"The reward of {record.party}: {draws} draws, of {record.model[:12]}..."
