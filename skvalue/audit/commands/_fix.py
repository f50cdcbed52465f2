"""``skvalue fix``: the table with its corrections, all other entries as they were."""

import os

from ..._utils.output_files import check_outputs, compressed, ending_of
from ..._utils.text import plural
from ..._utils.untrusted import read_text, refuse
from ..._utils.writing import write_files
from .. import (
    AuditReport,
    corrections_of,
    corrections_to_csv,
    fix_table,
    read_corrections,
)
from ..reading import (
    ARROW,
    EXCEL,
    JSON_LINES,
    MAX_ROWS,
    as_csv,
    decompressed,
    is_folder,
)
from ._fix_arrow import fix_arrow, write_arrow
from ._fix_excel import fix_excel
from ._fix_json_lines import fix_json_lines
from ._options import new_command, reading_of

_TEXT = (".csv", ".tsv", ".txt")
_COMPRESSED = (".csv.gz", ".tsv.gz", ".txt.gz")
_KINDS = (*_TEXT, *_COMPRESSED, EXCEL, *JSON_LINES, *ARROW)
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
        help="the file that was audited, or the folder of pictures, of which a .csv "
        "file of paths and labels is written",
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
    endings = {"output": _output_kinds(options.table), "changes": (".csv",)}
    check_outputs(options, endings, [options.table, options.corrections])

    corrections = _read_corrections(options.corrections, options.named)
    content, changes = _fixed(options, corrections)
    write_files({options.output: content, options.changes: corrections_to_csv(changes)})
    print(*changes[:_SHOWN], sep="\n")
    print(f"{options.output}: {len(changes)} corrections, listed in {options.changes}.")
    if not corrections:
        print("There is nothing to correct: the table is as it was.")
    n_other = sum(not correction.accept for correction in corrections)
    if n_other and ending_of(options.corrections) != ".json":
        print(
            f"{plural(n_other, 'correction')} not accepted, which change nothing: "
            "accept must be true or remove, and a wrong entry needs a new one."
        )


def _output_kinds(table):
    """What the name of the output may end in: the kind of the table."""
    if is_folder(table):
        return (".csv",)
    ending = ending_of(table)
    for kinds in (_TEXT, _COMPRESSED, (EXCEL,), JSON_LINES, ARROW):
        if ending in kinds:
            return kinds
    raise ValueError(f"the table must end in one of {', '.join(_KINDS)}. Got {table}.")


def _fixed(options, corrections):
    """The content of the new file, or the function that writes it, and the changes."""
    path = options.table
    ending = ending_of(path)
    if ending in ARROW:
        table, changes = fix_arrow(path, corrections)
        return write_arrow(table, options.output), changes
    if ending == EXCEL:
        book, changes = fix_excel(
            path, corrections, MAX_ROWS, options.skip_lines, options.header
        )
        return book.save, changes
    if ending in JSON_LINES:
        return fix_json_lines(path, corrections, MAX_ROWS)
    if is_folder(path):
        # A list of the pictures, with their labels: no file is moved.
        raw = as_csv(path, MAX_ROWS).content.encode()
    else:
        raw = decompressed(path)
    content, changes = fix_table(raw, corrections, **reading_of(options))
    return compressed(content) if ending in _COMPRESSED else content, changes


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
