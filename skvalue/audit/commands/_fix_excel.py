"""Corrections of Excel files: other cells, and how they look, stay."""

import datetime

from ..._utils.optional import import_optional
from .._spreadsheets import WORDS
from ..reading import excel_rows, text_of
from ._edits import accepted_edits


def fix_excel(path, corrections, max_rows, skip_lines=0, header=None):
    """The book of a file with corrections of its first sheet, and what was changed.

    The book has a method `save`, of a path or a file.
    """
    excel_rows(path, max_rows)  # checks its size
    openpyxl = import_optional("openpyxl", "an Excel file")
    book = openpyxl.load_workbook(path)
    sheet = book.worksheets[0]
    n_above = skip_lines + (header is not False)
    names = [f"column {i + 1}" for i in range(sheet.max_column)]
    if header is not False:
        titles = [text_of(cell.value).strip() for cell in sheet[n_above]]
        names = [title or name for title, name in zip(titles, names)]

    def cell_of(row, column):
        return sheet.cell(n_above + row + 1, names.index(column) + 1)

    edits, changes = accepted_edits(
        corrections,
        names,
        sheet.max_row - n_above,
        lambda row, column: text_of(cell_of(row, column).value),
    )
    for row, correction in edits:
        if correction.new is not None:
            cell = cell_of(row, correction.column)
            cell.value = entry_like(cell.value, correction.new)
            if isinstance(cell.value, str):
                cell.data_type = "s"  # no formula

    # From the last row on, so that the others keep their numbers.
    removed = [row for row, correction in edits if correction.new is None]
    for row in sorted(removed, reverse=True):
        sheet.delete_rows(n_above + row + 1)
    return book, changes


def entry_like(old, text):
    """The entry that a text is, of the type of another entry if it is one of such."""
    if text == "":
        return None
    try:
        if isinstance(old, bool):
            return WORDS.get(text.strip().lower(), text)
        if isinstance(old, int | float):
            number = float(text)
            return int(number) if number.is_integer() else number
        if isinstance(old, datetime.datetime):
            return datetime.datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return text
    return text
