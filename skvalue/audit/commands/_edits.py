"""Corrections of files whose entries have types: which rows and entries change."""

from ...exceptions import ParameterError
from ..reading import FIRST_ROW


def accepted_edits(corrections, names, n_rows, text_of):
    """The accepted corrections by row, those of entries and those of whole rows.

    Returns pairs of the row, from 0, and its correction, and what was changed, by row.
    Refuses a correction of which the table has no field, or another entry in it.

    names : list of str, of the columns
    text_of : function of a row and a column, the text of the entry
    """
    changes = sorted(
        (correction for correction in corrections if correction.accept),
        key=lambda correction: correction.row,
    )
    edits = []
    removed = set()
    changed = set()
    touched = set()
    for correction in changes:
        row = correction.row - FIRST_ROW
        _check(correction, names, n_rows, text_of)
        is_removal = correction.new is None
        is_second = (row, correction.column) in changed or row in removed
        if is_second or (is_removal and row in touched):
            raise ParameterError(
                "corrections", f"must change a field once. Got {correction} as well."
            )
        if is_removal:
            removed.add(row)
        else:
            changed.add((row, correction.column))
            touched.add(row)
        edits.append((row, correction))
    return edits, changes


def _check(correction, names, n_rows, text_of):
    row = correction.row - FIRST_ROW
    if not 0 <= row < n_rows:
        raise ParameterError(
            "row",
            f"must be a row from {FIRST_ROW} to {n_rows + 1}, the names being row 1. "
            f"Got {correction.row}.",
        )
    if correction.column not in names:
        raise ParameterError(
            "column",
            f"must be one of {', '.join(names[:20])}. Got {correction.column!r}.",
        )
    text = text_of(row, correction.column)
    if text.strip() != correction.old.strip():
        raise ParameterError(
            "old",
            "must be what the table holds, or it has changed since. Got row "
            f"{correction.row}, column {correction.column!r}: expected "
            f"{correction.old!r}, found {text!r}.",
        )
