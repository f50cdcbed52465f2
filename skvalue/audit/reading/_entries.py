"""The entries of a column as numbers, dates or texts; what is doubtful is asked."""

import numpy as np

from ..._utils.checks import format_values
from ..._utils.untrusted import refuse
from ...exceptions import ParameterError
from ._types import MISSING, TextColumn

_LONGEST_LABEL = 1000  # characters
_MOST_CLASSES = 1000  # whole numbers, above which they are amounts
_MANY_LABELS = 20  # whole numbers, above which they may be amounts
_CODES = (-1, -9, -99, -999, -9999, 99, 999, 9999, 99999, 0)
_FEWEST = 30  # numbers of a column in which codes for missing are told


def target_column(name, column, task, conventions):
    """The column of the target: numbers for a regression, else texts."""
    is_number = column.kind == "number"
    if task == "regression":
        if not is_number:
            rule = f"'classification', since {name!r} holds other than numbers"
            refuse("task", rule, task)
        return column
    values = next(iter(column.readings.values()), ())
    is_whole = is_number and bool(np.all(np.floor(values) == values))
    if task == "auto" and is_number and not is_whole:
        return column

    longest = max(column.counts, key=len)
    if len(longest) > _LONGEST_LABEL:
        rule = f"a column of labels of at most {_LONGEST_LABEL} characters"
        refuse("target", rule, f"{longest[:40]}... of {len(longest)}")
    n_rows = len(column.cells)
    if task == "auto" and is_whole and _are_amounts(len(values), n_rows):
        note = (
            f"a regression, since {len(values):,} whole numbers differ (unless the "
            "task is said to be classification),"
        )
        conventions.notes[note].append(name)
        return column
    if task == "auto" and is_whole and _may_be_amounts(values, n_rows):
        conventions.ask(
            f"{name!r} has {len(values)} different whole numbers, read as classes.",
            "Pass {} if they are amounts, else {}.",
            [("task", "regression"), ("task", "classification")],
        )

    # "none" and the like may be a class; other words count as missing as before.
    classes = [cell for cell in column.counts if cell and cell.lower() in MISSING]
    note = f"{format_values(classes)} no missing label but a class" if classes else ""
    missing = tuple(set(column.missing) - set(classes)) or ("",)
    return TextColumn(column.cells, column.counts, missing=missing, note=note)


def _are_amounts(n_values, n_rows):
    """Whether distinct whole numbers are too many for classes."""
    if n_values <= _MANY_LABELS:
        return False
    return n_values > _MOST_CLASSES or n_values >= n_rows / 2


def _may_be_amounts(values, n_rows):
    """Whether distinct whole numbers are many for classes, or have gaps."""
    n_values = len(values)
    if n_values <= _MANY_LABELS:
        return False
    return n_rows < 4 * n_values or np.ptp(values) > n_values - 1


def typed_entries(name, column, conventions, asks_for_codes):
    """The entries of a column as an array of its type.

    Adds what was done to the notes of the conventions, and what is doubtful to their
    doubts; ``asks_for_codes``: whether numbers that may mean missing are doubtful.
    """
    if column.note:
        conventions.notes[column.note].append(name)
    if column.kind == "text":
        return _texts(name, column, conventions)

    counts = column.counts
    missing = {*column.missing, *column.odd_words}
    present = [cell for cell in counts if cell not in missing]
    values = np.zeros(0)
    if present:
        values = conventions.choose(name, column, present[0])
        if column.kind == "number" and np.isinf(values).any():
            cell = present[int(np.argmax(np.isinf(values)))]
            raise ParameterError(
                "text",
                f"the column {name!r} must be of numbers below 1.8e308. Got {cell!r}.",
                "Pass {} to read texts.",
                [("text", name)],
                subject="",
            )
    if column.odd_words:
        n_odd = sum(counts[word] for word in column.odd_words)
        conventions.ask(
            f"{name!r}: {format_values(column.odd_words)} ({n_odd} rows) read as "
            f"missing, since all others are {column.kind}s.",
            "Pass {} to accept that, or {}.",
            [("missing", f"{column.odd_words[0]}={name}"), ("text", name)],
        )
    words = [word for word in column.missing if word]
    if words:
        conventions.notes[f"{format_values(words)} missing"].append(name)

    # The last of the values, which -1 takes, is the missing one.
    codes = {cell: code for code, cell in enumerate(present)}
    codes = np.array([codes.get(cell, -1) for cell in column.cells])
    if column.kind == "date":
        return np.append(values, np.datetime64("NaT", "us"))[codes]
    if asks_for_codes:
        times = np.array([counts[cell] for cell in present], dtype=np.intp)
        for code, n_rows in find_codes(values, times):
            conventions.ask(
                f"{name!r}: {code} stands in {n_rows} rows, apart from all others: "
                "does it mean missing?",
                "Pass {} if so, else {}.",
                [("missing", f"{code}={name}"), ("missing", f"={name}")],
            )
    has_gaps = not len(values) or codes.min() < 0
    if has_gaps or np.any(np.floor(values) != values) or np.abs(values).max() >= 2**53:
        return np.append(values, np.nan)[codes]
    return values.astype(np.int64)[codes]


def _texts(name, column, conventions):
    """The entries of a column of texts, None where one is missing."""
    if column.looks_typed:
        conventions.ask(
            f"{name!r} stays text, though it looks like numbers or dates, such as "
            f"{format_values(list(column.counts)[:3])}.",
            "Pass {} to accept that.",
            [("text", name)],
        )
    missing = {*column.missing, *column.odd_words}
    texts = [None if cell in missing else cell for cell in column.cells]
    return np.array(texts, dtype=object)


def find_codes(values, times):
    """Numbers that may stand for missing, each with the number of its rows.

    They are repeated, and the only negative ones, or apart from all other numbers by
    more than a quarter of their range from 5 to 95 %.

    values : ndarray of shape (n_values,), distinct
    times : ndarray of int of shape (n_values,), the number of rows of each
    """
    n_rows = times.sum()
    if n_rows < _FEWEST:
        return []
    codes = []
    for code in _CODES:
        n_code = times[values == code].sum()
        if n_code < max(3, 0.002 * n_rows):
            continue
        is_other = values != code
        others = np.unique(values[is_other])
        if len(others) < 10:
            continue
        repeated = np.repeat(values[is_other], times[is_other])
        low, high = np.quantile(repeated, [0.05, 0.95])
        gap = others[0] - code
        if code > others[-1]:
            gap = code - others[-1]
        is_apart = gap > 0.25 * (high - low) and gap > 3 * np.median(np.diff(others))
        is_only_negative = code < 0 <= others[0]
        if is_apart or is_only_negative:
            codes.append((code, int(n_code)))
    return codes
