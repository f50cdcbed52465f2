"""The fields of a report from a file, whose entries may be anything.

A pattern says what an entry must be. It is a check, a function that takes an entry and
its name and returns the entry to use or raises ValueError; or it is made of patterns:
``[pattern]`` for all entries of a list, ``(pattern, ...)`` for each place of a list, or
``{field: pattern}``.

A library of schemas does not take their place: types are the smaller part of what is
checked. Rows must be rows of the report, different, and in groups apart from each
other, pictures must load nothing, and what one field must hold depends on others; a
field that is there twice is refused; and messages name the field, the rule and the
value, as all others do.
"""

import re
from functools import partial
from itertools import chain

import numpy as np

from ..._utils.untrusted import choice, flag, integer, number, refuse
from .._contents import plain_labels
from .._overview import KINDS
from ..checks import SEVERITIES, Finding

_LARGEST = 1e300  # of a number
_LETTERS = 100_000  # of a sentence, or a picture
_PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]*")
_OTHERS = 100  # rows for or against a label
_NUMBERS = (
    "probability",
    "forest",
    "boosting",
    "logistic",
    "ridge",
    "neighbors",
)


def _check(entry, pattern, name):
    """The entry to use, or a ValueError if it does not fit the pattern."""
    if isinstance(pattern, dict):
        return _check_fields(entry, pattern, name)
    if isinstance(pattern, list):
        if not isinstance(entry, list):
            refuse(name, "a list", entry)
        [of_all] = pattern
        return [_check(item, of_all, name) for item in entry]
    if isinstance(pattern, tuple):
        if not isinstance(entry, list) or len(entry) != len(pattern):
            refuse(name, f"a list of {len(pattern)} entries", entry)
        return tuple(
            _check(item, of_place, name) for item, of_place in zip(entry, pattern)
        )
    return pattern(entry, name)


def _check_fields(entry, patterns, name):
    """A dict of exactly these fields."""
    if not isinstance(entry, dict) or set(entry) != set(patterns):
        refuse(name, f"a dict of {', '.join(patterns)}", entry)
    return {
        field: _check(entry[field], patterns[field], f"{name}[{field!r}]")
        for field in entry
    }


# Checks -------------------------------------------------------------------------------

_number = partial(number, lowest=-_LARGEST, highest=_LARGEST)
_fraction = partial(number, lowest=0, highest=1, strict=False)
_count = partial(integer, lowest=0, highest=10**12)


def _string(entry, name):
    if not isinstance(entry, str) or len(entry) > _LETTERS:
        refuse(name, f"a string of at most {_LETTERS} letters", entry)
    return entry


def _picture(entry, name):
    """A picture that the page holds itself: nothing is to be loaded."""
    if not _PICTURE.fullmatch(_string(entry, name)):
        refuse(name, "a PNG or JPEG picture as a data URI", entry)
    return entry


def _plain(entry, name):
    """A string, a bool or a number, as it is."""
    if isinstance(entry, bool):
        return entry
    if isinstance(entry, str):
        return _string(entry, name)
    _number(entry, name)
    return entry


def _or_none(pattern):
    """A check of None, or an entry of a pattern."""

    def check(entry, name):
        return None if entry is None else _check(entry, pattern, name)

    return check


def _dict_of(pattern, of_key=_string):
    """A check of a dict of any fields."""

    def check(entries, name):
        if not isinstance(entries, dict):
            refuse(name, "a dict", entries)
        checked = {}
        for key, entry in entries.items():
            key = of_key(key, name)
            checked[key] = _check(entry, pattern, f"{name}[{key}]")
        return checked

    return check


def _labels(entries, name, n_samples):
    """Labels: all of them strings, or numbers."""
    labels = _check(entries, [_plain], name)
    n_texts = sum(isinstance(label, str) for label in labels)
    if len(labels) != n_samples or n_texts not in (0, n_samples):
        rule = f"{n_samples} labels, all of them strings or numbers"
        refuse(name, rule, entries)
    if n_texts:
        return plain_labels(np.array(labels, dtype=object))
    return plain_labels(np.array(labels))


def _entries(entries, name, n_samples):
    """Entries of the target in the file."""
    entries = _check(entries, [_string], name)
    if len(entries) != n_samples:
        refuse(name, f"{n_samples} entries", entries)
    return entries


def _rows(entries, name, row, most=None):
    """Different row numbers; ``row``: a check of one."""
    rows = np.array(_check(entries, [row], name), dtype=np.intp)
    are_too_many = most is not None and len(rows) > most
    if are_too_many or len(np.unique(rows)) < len(rows):
        rule = "different rows"
        if most is not None:
            rule = f"different rows, at most {most}"
        refuse(name, rule, entries)
    return rows


def _pair(entries, name, rows):
    """Two different rows."""
    pair = rows(entries, name)
    if len(pair) != 2:
        refuse(name, "pairs of different rows", entries)
    return pair


def _groups(entries, name, rows):
    """Groups of at least two rows, apart from each other."""
    groups = _check(entries, [rows], name)
    rows(list(chain.from_iterable(entries)), name)
    if any(len(group) < 2 for group in groups):
        refuse(name, "groups of at least two rows", entries)
    return groups


def _row_numbers(entries, name, n_samples):
    """The rows of a file, in its order; the first below the header is 2."""
    numbers = _check(entries, [partial(_count, lowest=2)], name)
    numbers = np.array(numbers, dtype=np.int64)
    if len(numbers) != n_samples or (np.diff(numbers) < 1).any():
        refuse(name, f"{n_samples} increasing numbers from 2", entries)
    return numbers


def _row_of_key(key, name, row):
    """The row that a field of JSON names."""
    if key.isdecimal() and len(key) < 20:
        return row(int(key), name)
    return row(key, name)


def _shown_rows(columns, name, rows):
    """Columns on the rows of the list, of equal lengths."""
    others = [partial(rows, most=_OTHERS)]
    patterns = {"row": rows, "supporters": others, "opponents": others}
    for field in _NUMBERS:
        patterns[field] = [_or_none(_number)]
    if not isinstance(columns, dict) or not set(columns) <= set(patterns):
        refuse(name, f"a dict of columns among {', '.join(patterns)}", columns)
    columns = {"row": [], **columns}
    checked = _check(columns, {field: patterns[field] for field in columns}, name)
    if len(set(map(len, checked.values()))) != 1:
        refuse(name, "a dict of columns of one length", columns)

    # A report holds these columns as lists, not as the arrays that the checks return.
    return columns


def _evidence(entry, name):
    """A plain entry or None, or a list of them."""
    plain_or_none = _or_none(_plain)
    if isinstance(entry, list):
        return _check(entry, [plain_or_none], name)
    return plain_or_none(entry, name)


def _finding(entry, name, row):
    """A finding; its rows are rows of the report, unless they are validation points."""
    patterns = {
        "kind": _string,
        "severity": partial(choice, among=SEVERITIES),
        "sentence": _string,
        "rows": [_count],
        "columns": [_string],
        "cells": [(row, _string)],
        "evidence": _dict_of(_evidence),
        "fix": [(row, _string, _string)],
    }
    fields = _check(entry, patterns, name)
    for field in ("rows", "columns", "cells", "fix"):
        fields[field] = tuple(fields[field])
    finding = Finding(**fields)
    if not finding.of_validation:
        _check(list(finding.rows), [row], f"{name}['rows']")
    return finding


# Fields of a report -------------------------------------------------------------------

_WORTH = {
    "accuracy": _fraction,
    "low": _fraction,
    "high": _fraction,
    "commonest_rate": _fraction,
    "commonest": _string,
    "z": _number,
    "kappa": _number,
    "weak": flag,
    "classes": [{"label": _string, "n": _count, "accuracy": _fraction}],
}
_OVERVIEW = {
    "column": _string,
    "said": _string,
    "kind": partial(choice, among=KINDS),
    "missing": _count,
    "distinct": _count,
    "bars": [_count],
}
_CONTENTS = {"table": _dict_of(_string), "text": _string, "image": _picture}


def _about(n_samples):
    """The pattern of the field `about`."""
    return {
        "title": _string,
        "target": _or_none(_string),
        "n_samples": partial(integer, lowest=n_samples, highest=n_samples),
        "seconds": partial(number, lowest=0, highest=1e9, strict=False),
        "task": partial(choice, among=("classification", "regression")),
        "kind": partial(choice, among=("table", "text", "image")),
        "n_features": _count,
        "score": _string,
        "fdr": partial(number, lowest=0, highest=1),
        "confidence": _or_none(partial(number, lowest=0.499999, highest=1)),
        "n_verdicts": partial(integer, lowest=1, highest=10**9),
        "id": _or_none(_string),
        "rows": partial(choice, among=("file", "python")),
        "duplicates": partial(choice, among=("none", "copies", "perhaps coincidence")),
    }


def check_record(record):
    """The arguments of a report from the record of its file, or a ValueError."""
    # The number of rows and the kind of contents decide what other fields must hold.
    values = np.array(_check(record["values"], [_number], "values"))
    n_samples = len(values)
    about = _check(record["about"], _about(n_samples), "about")

    row = partial(integer, lowest=0, highest=n_samples - 1)
    rows = partial(_rows, row=row)
    labels = partial(_labels, n_samples=n_samples)
    groups = partial(_groups, rows=rows)
    of_row = partial(_row_of_key, row=row)
    patterns = {
        "labels": labels,
        "suggestions": labels,
        "listed": rows,
        "to_review": rows,
        "conflicts": groups,
        "duplicates": groups,
        "notes": [_string],
        "rows": partial(_shown_rows, rows=rows),
        "contents": _dict_of(_CONTENTS[about["kind"]], of_row),
        "numbers": partial(_row_numbers, n_samples=n_samples),
        "verdicts": _dict_of(flag, of_row),
        "similar": [partial(_pair, rows=rows)],
        "worth": _or_none(_WORTH),
        "said": _dict_of([_string], partial(choice, among=("read", "unchecked"))),
        "findings": [partial(_finding, row=row)],
        "overview": [_OVERVIEW],
        "entries": _or_none(partial(_entries, n_samples=n_samples)),
    }
    fields = {
        field: _check(record[field], pattern, field)
        for field, pattern in patterns.items()
    }
    return {"about": about, "values": values, **fields}
