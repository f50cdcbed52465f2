"""Corrections of files of JSON lines: the lines of other records stay."""

import json

from ..reading import json_records, names_of, text_of
from ._edits import accepted_edits
from ._fix_excel import entry_like


def fix_json_lines(path, corrections, max_rows):
    """The bytes of a file with its corrections, and what was changed, by row."""
    lines, records = json_records(path, max_rows)
    names = names_of(records)
    edits, changes = accepted_edits(
        corrections,
        names,
        len(records),
        lambda row, column: text_of(records[row].get(column)),
    )
    for row, correction in edits:
        if correction.new is None:
            lines[row] = None
            continue
        record = records[row]
        old = record.get(correction.column)
        record[correction.column] = entry_like(old, correction.new)
        lines[row] = json.dumps(record, ensure_ascii=False).encode()
    return b"".join(line + b"\n" for line in lines if line is not None), changes
