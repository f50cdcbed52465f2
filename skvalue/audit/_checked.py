"""The fields of a report from elsewhere, whose entries may be anything."""

import re
from functools import partial

import numpy as np

from .._utils.untrusted import choice, flag, integer, number, refuse
from ._contents import KINDS, plain_labels
from .checks import SEVERITIES, Finding

_LARGEST = 1e300  # of a number
_LETTERS = 100_000  # of a sentence, or a picture
_PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]*")
_OTHERS = 100  # rows for or against a label
_NUMBERS = ("probability", "forest", "logistic", "ridge", "neighbors")


def _check(entry, pattern, name):
    """The entry to use, or a ValueError.

    A pattern is a check, which takes an entry and its name, or is made of patterns:
    [one for all entries of a list], (one, for each place, of a list), {field: one of
    it}.
    """
    if isinstance(pattern, dict):
        if not isinstance(entry, dict) or set(entry) != set(pattern):
            refuse(name, f"a dict of {', '.join(pattern)}", entry)
        return {
            key: _check(entry[key], pattern[key], f"{name}[{key!r}]") for key in entry
        }
    if not isinstance(pattern, (list, tuple)):
        return pattern(entry, name)
    if not isinstance(entry, list) or (
        isinstance(pattern, tuple) and len(entry) != len(pattern)
    ):
        refuse(
            name,
            f"a list of {len(pattern)} entries" if len(pattern) > 1 else "a list",
            entry,
        )
    patterns = pattern if isinstance(pattern, tuple) else pattern * len(entry)
    return type(pattern)(_check(each, p, name) for each, p in zip(entry, patterns))


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


def _or_none(pattern):
    return lambda entry, name: None if entry is None else _check(entry, pattern, name)


def _dict_of(pattern, of_key=_string):
    """A check of a dict of any fields."""

    def check(entries, name):
        if not isinstance(entries, dict):
            refuse(name, "a dict", entries)
        found = {}
        for key, entry in entries.items():
            key = of_key(key, name)
            found[key] = _check(entry, pattern, f"{name}[{key}]")
        return found

    return check


def _plain(entry, name):
    """A string, a bool or a number, as it is."""
    if not isinstance(entry, bool):
        (_string if isinstance(entry, str) else _number)(entry, name)
    return entry


def _labels(entries, name, n):
    """Labels: all of them strings, or numbers."""
    found = _check(entries, [_plain], name)
    is_text = {isinstance(entry, str) for entry in found}
    if len(found) != n or len(is_text) > 1:
        refuse(name, f"{n} labels, all of them strings or numbers", entries)
    return plain_labels(np.array(found, dtype=object if True in is_text else None))


def _rows(entries, name, row, most=None):
    """Different row numbers."""
    found = np.array(_check(entries, [row], name), dtype=np.intp)
    if len(np.unique(found)) < len(found) or (most is not None and len(found) > most):
        refuse(
            name,
            f"different rows, at most {most}" if most else "different rows",
            entries,
        )
    return found


def _pair(entries, name, rows):
    """Two rows."""
    found = rows(entries, name)
    return (
        found if len(found) == 2 else refuse(name, "pairs of different rows", entries)
    )


def _groups(entries, name, rows):
    """Groups of at least two rows, apart from each other."""
    found = _check(entries, [rows], name)
    rows([row for group in entries for row in group], name)
    if any(len(group) < 2 for group in found):
        refuse(name, "groups of at least two rows", entries)
    return found


def _numbers(entries, name, n):
    """Rows of a file, in its order."""
    found = np.array(_check(entries, [partial(_count, lowest=2)], name), dtype=np.int64)
    if len(found) != n or (np.diff(found) < 1).any():
        refuse(name, f"{n} increasing numbers from 2", entries)
    return found


def _row_of_key(key, name, row):
    return row(int(key) if key.isdecimal() and len(key) < 20 else key, name)


def _shown_rows(columns, name, rows):
    """Columns on the rows of the list, of equal lengths."""
    others = [partial(rows, most=_OTHERS)]
    patterns = {"row": rows, "supporters": others, "opponents": others}
    patterns |= {key: [_or_none(_number)] for key in _NUMBERS}
    if not isinstance(columns, dict) or not set(columns) <= set(patterns):
        refuse(name, f"a dict of columns among {', '.join(patterns)}", columns)
    columns = {"row": [], **columns}
    found = _check(columns, {key: patterns[key] for key in columns}, name)
    if len(set(map(len, found.values()))) != 1:
        refuse(name, "a dict of columns of one length", columns)
    return columns


def _evidence(entry, name):
    """A plain entry or None, or a list of them."""
    each = _or_none(_plain)
    return _check(entry, [each] if isinstance(entry, list) else each, name)


def _finding(finding, name, row):
    pattern = {
        "kind": _string,
        "severity": partial(choice, among=SEVERITIES),
        "sentence": _string,
        "rows": [_count],
        "columns": [_string],
        "cells": [(row, _string)],
        "evidence": _dict_of(_evidence),
        "fix": [(row, _string, _string)],
    }
    fields = _check(finding, pattern, name)
    found = Finding(
        **{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    )
    if not found.of_validation:
        _check(fields["rows"], [row], f"{name}['rows']")
    return found


# Fields of a report -------------------------------------------------------------------

_WORTH = dict.fromkeys(("accuracy", "low", "high", "commonest_rate"), _fraction)
_WORTH |= {"commonest": _string, "z": _number, "kappa": _number, "weak": flag}
_WORTH |= {"classes": [{"label": _string, "n": _count, "accuracy": _fraction}]}
_OVERVIEW = {"column": _string, "said": _string, "kind": partial(choice, among=KINDS)}
_OVERVIEW |= {"missing": _count, "distinct": _count, "bars": [_count]}


def checked(record):
    """The arguments of a report from the record of its file, or a ValueError."""
    values = np.array(_check(record["values"], [_number], "values"))
    n = len(values)
    row = partial(integer, lowest=0, highest=n - 1)
    rows, labels = partial(_rows, row=row), partial(_labels, n=n)
    groups, of_row = partial(_groups, rows=rows), partial(_row_of_key, row=row)
    about = {
        "title": _string,
        "target": _or_none(_string),
        "n_samples": partial(integer, lowest=n, highest=n),
        "seconds": partial(number, lowest=0, highest=1e9, strict=False),
        "task": partial(choice, among=("classification", "regression")),
        "kind": partial(choice, among=("table", "text", "image")),
        "n_features": _count,
        "score": _string,
        "fdr": partial(number, lowest=0, highest=1),
        "confidence": _or_none(partial(number, lowest=0.499999, highest=1)),
        "n_verdicts": partial(integer, lowest=1, highest=10**9),
        "id": _or_none(_string),
        "duplicates": partial(choice, among=("none", "copies", "perhaps coincidence")),
    }
    about = _check(record["about"], about, "about")
    content = {"table": _dict_of(_string), "text": _string, "image": _picture}[
        about["kind"]
    ]
    patterns = dict.fromkeys(("labels", "suggestions"), labels)
    patterns |= dict.fromkeys(("listed", "to_review"), rows)
    patterns |= dict.fromkeys(("conflicts", "duplicates"), groups)
    patterns |= {
        "notes": [_string],
        "rows": partial(_shown_rows, rows=rows),
        "contents": _dict_of(content, of_row),
        "numbers": partial(_numbers, n=n),
        "verdicts": _dict_of(flag, of_row),
        "similar": [partial(_pair, rows=rows)],
        "worth": _or_none(_WORTH),
        "said": _dict_of([_string], partial(choice, among=("read", "unchecked"))),
        "findings": [partial(_finding, row=row)],
        "overview": [_OVERVIEW],
    }
    found = {
        name: _check(record[name], pattern, name) for name, pattern in patterns.items()
    }
    return {"about": about, "values": values, **found}
