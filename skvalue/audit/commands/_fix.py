"""``skvalue fix``: the table with its corrections, all other entries as they were."""

import os
from pathlib import Path

from ..._utils.output_files import check_outputs, ending_of
from ..._utils.untrusted import read_text, refuse
from ..._utils.writing import write_files
from .. import (
    AuditReport,
    corrections_of,
    corrections_to_csv,
    fix_table,
    read_corrections,
)
from ..reading import ARROW
from ._fix_arrow import fix_arrow, is_arrow, write_arrow
from ._options import new_command, reading_of

_KINDS = (".csv", ".tsv", ".txt")
_SHOWN = 20  # changes that are printed
_LARGEST = 100_000_000  # bytes of a report


def add_command(commands):
    """Add ``skvalue fix``."""
    parser = new_command(
        commands,
        "fix",
        "write the table with corrected entries",
        run=_run,
        options=("--output", "--sep", "--encoding", "--header", "--skip-lines"),
        required=("--output",),
        helps={"--output": "file to write; never the table"},
    )
    parser.add_argument(
        "table",
        help="the .csv, .tsv, .parquet, .arrow or .feather file that was audited",
    )
    parser.add_argument(
        "corrections",
        help="CSV file (row,column,old,new,why,accept; the header is row 1) of which "
        "those with accept = true are applied, and rows with accept = remove left out; "
        "or the JSON of a report with verdicts: labels that are wrong become the "
        "suggestions",
    )
    parser.add_argument(
        "--named",
        action="store_true",
        help="with a report: rows that its verdicts name become the suggestions as "
        "well, without a verdict on themselves",
    )
    parser.add_argument(
        "--changes", help="list of what was changed (.csv); default: next to it"
    )


def _run(options):
    if not options.changes:
        options.changes = os.path.splitext(options.output)[0] + ".changes.csv"
    if ending_of(options.table) not in (*_KINDS, *ARROW):
        kinds = ", ".join([*_KINDS, *ARROW])
        raise ValueError(f"the table must end in one of {kinds}. Got {options.table}.")
    kinds = ARROW if is_arrow(options.table) else _KINDS
    endings = {"output": kinds, "changes": (".csv",)}
    check_outputs(options, endings, [options.table, options.corrections])

    corrections = _read_corrections(options.corrections, options.named)
    if is_arrow(options.table):
        table, changes = fix_arrow(options.table, corrections)
        content = write_arrow(table, options.output)
    else:
        raw = Path(options.table).read_bytes()
        content, changes = fix_table(raw, corrections, **reading_of(options))
    write_files({options.output: content, options.changes: corrections_to_csv(changes)})
    print(*changes[:_SHOWN], sep="\n")
    print(f"{options.output}: {len(changes)} corrections, listed in {options.changes}.")


def _read_corrections(path, named):
    """The corrections of a CSV file, or of the verdicts of a report."""
    if ending_of(path) != ".json":
        if named:
            rule = "used with the .json of a report, whose verdicts name rows"
            refuse("--named", rule, path)
        return read_corrections(path)
    corrections = corrections_of(read_report(path), named)
    n_unknown = sum(not correction.accept for correction in corrections)
    if n_unknown:
        print(f"{n_unknown} wrong labels stay: no other one is suggested.")
    return corrections


def read_report(path, name="report"):
    """The report of a JSON file, which messages call by a name."""
    if not os.path.isfile(path):
        raise ValueError(f"{name} must be a file that exists. Got {path}.")
    return AuditReport.from_json(read_text(path, _LARGEST, "report"))
