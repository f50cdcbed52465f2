"""The fields of a report from elsewhere, whose entries may be anything."""

import re
from functools import partial

import numpy as np

from .._utils.untrusted import choice, flag, integer, named_fields, number, refuse
from ._contents import plain_labels
from ._overview import KINDS
from .checks import SEVERITIES, Finding

_LARGEST = 1e300  # of a number
_LETTERS = 100_000  # of a sentence, or a picture
_PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]*")
_OTHERS = 100  # rows for or against a label
_NUMBERS = ("probability", "forest", "logistic", "ridge", "neighbors", "influence")

_number = partial(number, lowest=-_LARGEST, highest=_LARGEST)


def checked(record):
    """The arguments of a report from the record of its file, or a ValueError."""
    values, n = _array(record["values"], "values"), len(record["values"])
    for name in ("rows", "contents", "verdicts"):
        if not isinstance(record[name], dict):
            refuse(name, "a dict", record[name])
    about = _about(record["about"], n)
    contents, verdicts = (
        {_row_number(row, name, n): entry for row, entry in record[name].items()}
        for name in ("contents", "verdicts")
    )
    for row, entry in contents.items():
        _check_content(entry, about["kind"], f"contents[{row}]")
    if not all(isinstance(wrong, bool) for wrong in verdicts.values()):
        refuse("verdicts", "a record of true and false", verdicts)
    return {
        "about": about,
        "notes": [_string(note, "notes") for note in _list(record["notes"], "notes")],
        "values": values,
        "labels": _labels(record["labels"], "labels", n),
        "suggestions": _labels(record["suggestions"], "suggestions", n),
        "listed": _rows(record["listed"], "listed", n),
        "to_review": _rows(record["to_review"], "to_review", n),
        "conflicts": _groups(record["conflicts"], "conflicts", n),
        "rows": _shown_rows(record["rows"], n),
        "contents": contents,
        "verdicts": verdicts,
        "numbers": _or_none(partial(_numbers, n=n))(record["numbers"], "numbers"),
        "duplicates": _groups(record["duplicates"], "duplicates", n),
        "similar": [_pair(pair, n) for pair in _list(record["similar"], "similar")],
        "worth": _or_none(_worth)(record["worth"], "worth"),
        "said": _said(record["said"]),
        "findings": [_finding(each, n) for each in _list(record["findings"], "findings")],
        "overview": [_column(each) for each in _list(record["overview"], "overview")],
    }


def _about(about, n):
    checks = {
        "title": _string,
        "target": _or_none(_string),
        "n_samples": partial(integer, lowest=n, highest=n),
        "seconds": partial(number, lowest=0, highest=1e9, strict=False),
        "task": partial(choice, among=("classification", "regression")),
        "kind": partial(choice, among=("table", "text", "image")),
        "n_features": partial(integer, lowest=0, highest=10**9),
        "score": _string,
        "fdr": partial(number, lowest=0, highest=1),
        "confidence": _or_none(partial(number, lowest=0.499999, highest=1)),
        "n_verdicts": partial(integer, lowest=1, highest=10**9),
        "id": _or_none(_string),
        "duplicates": partial(choice, among=("none", "copies", "perhaps coincidence")),
    }
    return dict(zip(checks, named_fields(about, "about", **checks)))


def _worth(worth, name):
    fraction = partial(number, lowest=0, highest=1, strict=False)
    checks = dict.fromkeys(("accuracy", "low", "high"), fraction)
    checks |= {"commonest": _string, "commonest_rate": fraction, "z": _number, "kappa": _number}
    checks |= {"weak": flag, "classes": _list}
    worth = dict(zip(checks, named_fields(worth, name, **checks)))
    checks = {
        "label": _string,
        "n": partial(integer, lowest=0, highest=10**9),
        "accuracy": fraction,
    }
    classes = [named_fields(each, name, **checks) for each in worth["classes"]]
    return {**worth, "classes": [dict(zip(checks, each)) for each in classes]}


def _said(said):
    if not isinstance(said, dict) or not set(said) <= {"read", "unchecked"}:
        refuse("said", "a dict of read and unchecked", said)
    return {name: [_string(each, name) for each in _list(said[name], name)] for name in said}


def _finding(finding, n):
    row = partial(integer, lowest=0, highest=n - 1)
    cell, fix = partial(_tuple, checks=(row, _string)), (row, _string, _string)
    checks = {
        "kind": _string,
        "severity": partial(choice, among=SEVERITIES),
        "sentence": _string,
        "rows": partial(_tuple, each=partial(integer, lowest=0, highest=10**12)),
        "columns": partial(_tuple, each=_string),
        "cells": partial(_tuple, each=cell),
        "evidence": _evidence,
        "fix": partial(_tuple, each=partial(_tuple, checks=fix)),
    }
    found = Finding(**dict(zip(checks, named_fields(finding, "findings", **checks))))
    if not found.of_validation:
        _tuple(list(found.rows), "findings['rows']", each=row)
    return found


def _tuple(entries, name, checks=None, each=None):
    """A tuple of entries with a check for each place, or one for all."""
    checks = [each] * len(_list(entries, name)) if checks is None else checks
    if len(_list(entries, name)) != len(checks):
        refuse(name, f"a list of {len(checks)} entries", entries)
    return tuple(check(entry, name) for check, entry in zip(checks, entries))


def _evidence(evidence, name):
    """Numbers, strings and lists of them."""
    for entry in evidence.values() if isinstance(evidence, dict) else [None]:
        for each in entry if isinstance(entry, list) else [entry]:
            (_string if isinstance(each, str) else _or_none(_number))(each, name)
    return evidence


def _column(column):
    count = partial(integer, lowest=0, highest=10**12)
    checks = {"column": _string, "kind": partial(choice, among=KINDS), "missing": count}
    checks |= {"distinct": count, "said": _string}
    checks |= {"bars": lambda bars, name: list(_tuple(bars, name, each=count))}
    return dict(zip(checks, named_fields(column, "overview", **checks)))


def _groups(groups, name, n):
    """Groups of at least two rows, apart from each other."""
    found = [_rows(group, name, n) for group in _list(groups, name)]
    _rows([row for group in found for row in group.tolist()], name, n)
    if any(len(group) < 2 for group in found):
        refuse(name, "groups of at least two rows", groups)
    return found


def _pair(rows, n):
    found = _rows(rows, "similar", n)
    return found if len(found) == 2 else refuse("similar", "pairs of rows", rows)


def _or_none(check):
    return lambda entry, name: None if entry is None else check(entry, name)


def _string(entry, name):
    if not isinstance(entry, str) or len(entry) > _LETTERS:
        refuse(name, f"a string of at most {_LETTERS} letters", entry)
    return entry


def _list(entries, name):
    if not isinstance(entries, list):
        refuse(name, "a list", entries)
    return entries


def _array(entries, name, n=None):
    """Numbers, or bools, as an array."""
    if not isinstance(entries, list) or (n is not None and len(entries) != n):
        refuse(name, f"a list of {'' if n is None else n} entries", entries)
    for entry in entries:
        if not isinstance(entry, bool):
            _number(entry, name)
    array = np.asarray(entries)
    return array if array.dtype.kind in "biu" and n is not None else array.astype(np.float64)


def _labels(entries, name, n):
    """Labels: all of them strings, or numbers."""
    texts = isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)
    if texts and len(entries) == n:
        return plain_labels(np.array(entries, dtype=object))
    return _array(entries, name, n)


def _rows(rows, name, n):
    """Different row numbers."""
    found = np.array([integer(row, name, 0, n - 1) for row in _list(rows, name)], dtype=np.intp)
    if len(np.unique(found)) < len(found):
        refuse(name, "different row numbers", rows)
    return found


def _numbers(numbers, name, n):
    """Rows of a file, in its order."""
    found = np.array(
        [integer(row, name, 2, 10**12) for row in _list(numbers, name)], dtype=np.int64
    )
    if len(found) != n or (np.diff(found) < 1).any():
        refuse(name, f"{n} increasing numbers", numbers)
    return found


def _row_number(text, name, n):
    return integer(int(text) if text.isdecimal() and len(text) < 20 else text, name, 0, n - 1)


def _check_content(entry, kind, name):
    """Columns, a text, or a picture that the page holds itself: nothing is to be loaded."""
    if kind == "table":
        for cell in entry.values() if isinstance(entry, dict) else [entry]:
            _string(cell if isinstance(entry, dict) else None, name)
    elif kind == "text":
        _string(entry, name)
    elif not _PICTURE.fullmatch(_string(entry, name)):
        refuse(name, "a PNG or JPEG picture as a data URI", entry)


def _shown_rows(rows, n):
    """The columns, of equal lengths, the row numbers among which are such."""
    columns = {"row": [], **rows}
    lengths = {len(column) if isinstance(column, list) else -1 for column in columns.values()}
    if len(lengths) != 1 or -1 in lengths:
        refuse("rows", "columns of one length", sorted(lengths))
    _rows(columns["row"], "rows['row']", n)
    for name, column in columns.items():
        if name in ("supporters", "opponents"):
            for others in column:
                _rows(_list(others, name)[: _OTHERS + 1], name, n)
                if len(others) > _OTHERS:
                    refuse(name, f"lists of at most {_OTHERS} rows", others)
        elif name in _NUMBERS:
            for entry in column:
                _or_none(_number)(entry, f"rows[{name!r}]")
        elif name != "row":
            refuse("rows", "the columns of a report", name)
    return columns
