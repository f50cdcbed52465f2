"""``skvalue fix``: the table with its corrections, all other bytes as they were."""

import os

from .._utils.untrusted import read_text
from .._utils.writing import write_files
from ..review import AuditReport, corrections_of, corrections_to_csv, fix_table, read_corrections
from ._files import check_output, ending_of
from ._rows import add_reading, reading_of

_KINDS = (".csv", ".tsv", ".txt")
_SHOWN = 20  # changes that are printed
_LARGEST = 100_000_000  # bytes of a report


def add_command(commands):
    """Add ``skvalue fix``."""
    parser = commands.add_parser("fix", help="write the table with corrected entries")
    parser.set_defaults(run=_run)
    parser.add_argument("table", help="the .csv or .tsv file that was audited")
    parser.add_argument(
        "corrections",
        help="CSV file (row,column,old,new,why,accept; the header is row 1) of which those with "
        "accept = true are applied, and rows with accept = remove left out; or the JSON of a "
        "report with verdicts: labels that are wrong become the suggestions",
    )
    parser.add_argument("-o", "--output", required=True, help="file to write; never the table")
    parser.add_argument("--changes", help="list of what was changed (.csv); default: next to it")
    add_reading(parser, ("--sep", "--encoding", "--header", "--skip-lines"))


def read_report(path):
    """The report of a JSON file."""
    if not os.path.isfile(path):
        raise ValueError(f"report must be a file that exists. Got {path}.")
    return AuditReport.from_json(read_text(path, _LARGEST, "report"))


def _run(options):
    inputs = [options.table, options.corrections]
    changes_path = options.changes or os.path.splitext(options.output)[0] + ".changes.csv"
    if ending_of(options.table) not in _KINDS:
        raise ValueError(f"the table must end in one of {', '.join(_KINDS)}. Got {options.table}.")
    check_output(options.output, "-o", _KINDS, inputs)
    check_output(changes_path, "--changes", _KINDS[:1], [*inputs, options.output])
    if ending_of(options.corrections) == ".json":
        corrections = corrections_of(read_report(options.corrections))
        unknown = sum(not each.accept for each in corrections)
        if unknown:
            print(f"{unknown} wrong labels stay: no other one is suggested.")
    else:
        corrections = read_corrections(options.corrections)
    with open(options.table, "rb") as file:
        raw, changes = fix_table(file.read(), corrections, **reading_of(options))
    write_files({options.output: raw, changes_path: corrections_to_csv(changes)})
    print(*changes[:_SHOWN], sep="\n")
    print(f"{options.output}: {len(changes)} corrections, listed in {changes_path}.")
