"""The command ``buyer``: a buyer's side of PriArTa."""

import os

from ..._utils.output_files import KINDS, check_outputs, pandas, write_frame
from ..._utils.writing import write_files
from ..maps import BuyerModel
from ..seller import read_rows
from .scorer import PriArTaScorer

_REPRESENTATIONS = ("identity", "pca", "simclr")


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
        help="an .npz, .npy or .csv (no header) file of your rows, which are not "
        "protected",
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


def _export(options):
    if os.path.exists(options.output) and not os.path.isdir(options.output):
        raise ValueError(
            f"--output must be a folder. Got {options.output}, which is none."
        )
    scorer = PriArTaScorer(
        options.representation, epsilon=options.epsilon, random_state=options.seed
    )
    scorer.fit(read_rows(options.rows)).export(options.output)
    print(
        f"{options.output}: a model of {scorer.model_.n_dimensions} dimensions for "
        "sellers."
    )
    print(
        "It is fitted without noise on your rows, about which it tells whoever has it."
    )


def _score(options):
    summaries = options.summaries
    check_outputs(options, {"output": KINDS}, [options.rows, *summaries])
    model = BuyerModel.load(options.model)
    scorer = PriArTaScorer().fit(read_rows(options.rows), model=model)
    scores = {
        "summary": summaries,
        "score": scorer.score_summaries(summaries)[:, 0],
        "error": scorer.score_errors(summaries),
        "noise_floor": scorer.noise_floor(summaries),
    }
    frame = pandas().DataFrame(scores).sort_values("score", ascending=False)
    print(frame.to_string(index=False, float_format="{:.4g}".format))
    print("A score below the noise floor does not differ significantly from your rows.")
    if options.output is not None:
        write_files({options.output: write_frame(frame, options.output)})
