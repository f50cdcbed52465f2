"""The options that several commands have, and what is checked of them together."""

import argparse
import os

from ...privacy import Ledger
from ..checks import SEVERITIES

# Options of how a table is read -> the argument of `read_table`.
READING = {
    "--sep": "separator", "--encoding": "encoding", "--header": "header",
    "--skip-lines": "skip_lines", "--decimal": "decimal", "--dates": "dates",
    "--missing": "missing", "--text": "text", "--strict": "strict",
    "--latest-year": "latest_year", "--max-rows": "max_rows",
}  # fmt: skip
TABLE = (
    "table",
    "--target",
    "--validation",
    "--task",
    "--ignore",
    "--groups",
    *READING,
)
PRIVACY = ("--epsilon", "--delta", "--equal-rows", "--ledger")
REPORT = ("--output", "--json", "--csv", "--tasks")
CHECKS = ("--checks", "--findings", "--corrections", "--fail-on-findings")
# Options of files -> what their names may end in.
OF_REPORT = {
    "output": (".html",),
    "json": (".json",),
    "csv": (".csv",),
    "tasks": (".json",),
}
OF_CHECKS = {"findings": (".json",), "corrections": (".csv",)}


def fraction(text):
    """A number from 0 to 1, of the words of a command."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1. Got {text!r}.")
    return number


def seed(text):
    """The seed of random numbers, of the words of a command."""
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 to 4294967295. Got {text!r}."
        )
    return int(text)


_OPTIONS = {
    "table": dict(
        help="a CSV or TSV file (also .gz), or a .xlsx, .jsonl, .parquet, .arrow or "
        ".feather file, or a folder of pictures in one folder for each label"
    ),
    "--target": dict(help="name of the column to predict"),
    "--validation": dict(help="a table of the same columns: the validation points"),
    "--task": dict(
        choices=("auto", "classification", "regression"),
        default="auto",
        help="what the target is; default: regression if it has numbers with decimals, "
        "or whole ones of which more than 1,000, or half as many as rows, differ",
    ),
    "--ignore": dict(action="append", metavar="COLUMN", help="a column to leave out"),
    "--groups": dict(metavar="COLUMN", help="column whose entries name groups of rows"),
    "--sep": dict(dest="separator", help="what separates fields, such as ';' or tab"),
    "--encoding": dict(help="such as utf-8 or latin-1"),
    "--header": dict(
        action=argparse.BooleanOptionalAction,
        help="whether the first line names the columns",
    ),
    "--skip-lines": dict(
        type=int, default=0, metavar="N", help="lines before the header"
    ),
    "--decimal": dict(choices=(".", ","), help="decimal mark"),
    "--dates": dict(
        choices=("dmy", "mdy"), help="order of day and month, such as of 03/04/2026"
    ),
    "--latest-year": dict(
        type=int,
        metavar="YEAR",
        help="years of two digits are of the hundred years that end with it",
    ),
    "--max-rows": dict(
        type=int,
        default=10_000_000,
        metavar="N",
        help="rows above which a file is refused before it is read; default: "
        "%(default)s",
    ),
    "--missing": dict(
        action="append",
        metavar="CODE[=COLUMN]",
        help="an entry that means missing; repeatable",
    ),
    "--text": dict(
        action="append",
        metavar="COLUMN",
        help="a column to read as texts, by their words; repeatable",
    ),
    "--strict": dict(action="store_true", help="refuse what can be read in two ways"),
    "--output": dict(help="page to write (.html)"),
    "--seed": dict(type=seed, default=0, help="random state; default: %(default)s"),
    "--json": dict(help="file for `skvalue review` (.json)"),
    "--csv": dict(help="the list, for verdicts in its column is_error (.csv)"),
    "--tasks": dict(help="the rows to review as tasks of Label Studio (.json)"),
    "--fail-on": dict(
        type=fraction,
        metavar="FRACTION",
        help="exit with 1 if a larger fraction of rows has another suggestion than its "
        "label",
    ),
    "--checks": dict(
        choices=("all", "fast"),
        default="all",
        help="fast: no search for single entries that do not fit their row, which is "
        "left out of tables of more than 5,000 rows or 50 columns; default: "
        "%(default)s",
    ),
    "--findings": dict(help="what was found, for programs (.json)"),
    "--corrections": dict(
        help="what can be corrected, for `skvalue fix` (.csv): spellings are accepted; "
        "typing errors, missing labels and rows that are entered twice wait for your "
        "accept"
    ),
    "--fail-on-findings": dict(
        choices=SEVERITIES[:3],
        help="exit with 1 if there is a finding of this severity, or a worse one",
    ),
    "--epsilon": dict(
        type=float,
        help="above 0: counts of improbable labels, in place of the list, are "
        "(epsilon, delta)-differentially private; needs --validation, whose rows are "
        "public",
    ),
    "--delta": dict(type=float, default=1e-5, help="default: %(default)s"),
    "--equal-rows": dict(
        action="store_true",
        help="with --epsilon: rows of the table that equal rows of --validation are "
        "other cases, and stay",
    ),
    "--ledger": dict(
        help="with --epsilon: file of `skvalue ledger new`, which is charged"
    ),
}


def new_command(commands, name, about, *, run, options=(), required=(), helps=None):
    """Add a command to a command line, and return its parser.

    run : function of the parsed options
    options : names of options that several commands have
    required : those of them that must be given
    helps : dict, option -> its help for this command
    """
    parser = commands.add_parser(name, help=about)
    parser.set_defaults(run=run)
    reading = parser.add_argument_group(
        "how the tables are read (what is assumed is printed)"
    )
    for option in options:
        arguments = dict(_OPTIONS[option])
        if option in required:
            arguments["required"] = True
        if helps is not None and option in helps:
            arguments["help"] = helps[option]
        flags = ["-o", option] if option == "--output" else [option]
        group = reading if option in READING else parser
        group.add_argument(*flags, **arguments)
    return parser


def reading_of(options):
    """The arguments of `read_table` that options hold."""
    arguments = {
        name: getattr(options, name)
        for name in READING.values()
        if hasattr(options, name)
    }
    if arguments["separator"] in ("tab", "\\t"):
        arguments["separator"] = "\t"
    return arguments


def refuse_privacy(options):
    """Refuse what is only used with --epsilon: a ledger that would not be charged."""
    if options.epsilon is not None:
        return
    for name in ("ledger", "equal_rows"):
        if getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} must be used with --epsilon. Got no epsilon.")


def ledger_of(options):
    """The ledger that is charged, or None."""
    if options.ledger is None:
        return None
    if not os.path.isfile(options.ledger):
        raise ValueError(
            "--ledger must be a file that `skvalue ledger new` made. Got "
            f"{options.ledger}."
        )
    return Ledger(options.ledger)
