"""The fields of a report from elsewhere, whose entries may be anything.

A check takes an entry and its name, and returns what to use, or refuses it with a ValueError.
"""

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
_NUMBERS = ("probability", "forest", "logistic", "ridge", "neighbors")


# Entries of any field -----------------------------------------------------------------------

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


def _or_none(check):
    return lambda entry, name: None if entry is None else check(entry, name)


def _each(check, most=None):
    """A check of the entries of a list, of at most so many."""

    def check_all(entries, name):
        if not isinstance(entries, list) or (most is not None and len(entries) > most):
            refuse(name, "a list" if most is None else f"a list of at most {most}", entries)
        return [check(entry, name) for entry in entries]

    return check_all


def _tuple(*checks):
    """A check of a list with an entry for each of the checks."""

    def check_all(entries, name):
        if not isinstance(entries, list) or len(entries) != len(checks):
            refuse(name, f"a list of {len(checks)} entries", entries)
        return tuple(check(entry, name) for check, entry in zip(checks, entries))

    return check_all


def _record(**checks):
    """A check of a dict of exactly these fields."""
    return lambda record, name: dict(zip(checks, named_fields(record, name, **checks)))


def _dict_of(check_key, check):
    """A check of a dict of any fields."""

    def check_all(entries, name):
        if not isinstance(entries, dict):
            refuse(name, "a dict", entries)
        return {check_key(k, name): check(entry, f"{name}[{k}]") for k, entry in entries.items()}

    return check_all


# Fields of a report -------------------------------------------------------------------------


def checked(record):
    """The arguments of a report from the record of its file, or a ValueError."""
    values = np.array(_each(_number)(record["values"], "values"))
    n = len(values)
    row = partial(integer, lowest=0, highest=n - 1)
    rows, labels = partial(_rows, row=row), partial(_labels, n=n)
    groups, of_row = partial(_groups, rows=rows), partial(_row_of_key, row=row)
    about = _about(n)(record["about"], "about")
    content = {"table": _dict_of(_string, _string), "text": _string, "image": _picture}
    checks = {
        "notes": _each(_string),
        "labels": labels,
        "suggestions": labels,
        "listed": rows,
        "to_review": rows,
        "conflicts": groups,
        "rows": partial(_shown_rows, rows=rows),
        "contents": _dict_of(of_row, content[about["kind"]]),
        "verdicts": _dict_of(of_row, flag),
        "numbers": _or_none(partial(_numbers, n=n)),
        "duplicates": groups,
        "similar": _each(partial(_pair, rows=rows)),
        "worth": _or_none(_WORTH),
        "said": _dict_of(partial(choice, among=("read", "unchecked")), _each(_string)),
        "findings": _each(partial(_finding, row=row)),
        "overview": _each(_OVERVIEW),
    }
    found = {name: check(record[name], name) for name, check in checks.items()}
    return {"about": about, "values": values, **found}


def _about(n):
    return _record(
        title=_string,
        target=_or_none(_string),
        n_samples=partial(integer, lowest=n, highest=n),
        seconds=partial(number, lowest=0, highest=1e9, strict=False),
        task=partial(choice, among=("classification", "regression")),
        kind=partial(choice, among=("table", "text", "image")),
        n_features=_count,
        score=_string,
        fdr=partial(number, lowest=0, highest=1),
        confidence=_or_none(partial(number, lowest=0.499999, highest=1)),
        n_verdicts=partial(integer, lowest=1, highest=10**9),
        id=_or_none(_string),
        duplicates=partial(choice, among=("none", "copies", "perhaps coincidence")),
    )


_WORTH = _record(
    accuracy=_fraction,
    low=_fraction,
    high=_fraction,
    commonest=_string,
    commonest_rate=_fraction,
    z=_number,
    kappa=_number,
    weak=flag,
    classes=_each(_record(label=_string, n=_count, accuracy=_fraction)),
)

_OVERVIEW = _record(
    column=_string,
    kind=partial(choice, among=KINDS),
    missing=_count,
    distinct=_count,
    said=_string,
    bars=_each(_count),
)


def _finding(finding, name, row):
    fields = _record(
        kind=_string,
        severity=partial(choice, among=SEVERITIES),
        sentence=_string,
        rows=_each(_count),
        columns=_each(_string),
        cells=_each(_tuple(row, _string)),
        evidence=_dict_of(_string, _evidence),
        fix=_each(_tuple(row, _string, _string)),
    )(finding, name)
    found = Finding(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
    if not found.of_validation:
        _each(row)(fields["rows"], f"{name}['rows']")
    return found


def _evidence(entry, name):
    """A number, a string or nothing, or a list of them."""
    for each in entry if isinstance(entry, list) else [entry]:
        (_string if isinstance(each, str) else _or_none(_number))(each, name)
    return entry


def _labels(entries, name, n):
    """Labels: all of them strings, or numbers."""
    if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
        labels = plain_labels(np.array(entries, dtype=object))
    else:
        _each(lambda entry, name: isinstance(entry, bool) or _number(entry, name))(entries, name)
        labels = np.asarray(entries)
        labels = labels if labels.dtype.kind in "biu" else labels.astype(np.float64)
    return labels if len(labels) == n else refuse(name, f"a list of {n} entries", entries)


def _rows(entries, name, row, most=None):
    """Different row numbers."""
    found = np.array(_each(row, most)(entries, name), dtype=np.intp)
    return found if len(np.unique(found)) == len(found) else refuse(name, "different rows", entries)


def _groups(entries, name, rows):
    """Groups of at least two rows, apart from each other."""
    found = _each(rows)(entries, name)
    rows([row for group in entries for row in group], name)
    if any(len(group) < 2 for group in found):
        refuse(name, "groups of at least two rows", entries)
    return found


def _pair(entries, name, rows):
    found = rows(entries, name)
    return found if len(found) == 2 else refuse(name, "pairs of rows", entries)


def _numbers(entries, name, n):
    """Rows of a file, in its order."""
    found = np.array(_each(partial(integer, lowest=2, highest=10**12))(entries, name), np.int64)
    if len(found) != n or (np.diff(found) < 1).any():
        refuse(name, f"{n} increasing numbers", entries)
    return found


def _row_of_key(key, name, row):
    return row(int(key) if key.isdecimal() and len(key) < 20 else key, name)


def _shown_rows(columns, name, rows):
    """Columns on the rows of the list, of equal lengths."""
    checks = dict.fromkeys(_NUMBERS, _each(_or_none(_number))) | {"row": rows}
    checks |= dict.fromkeys(("supporters", "opponents"), _each(partial(rows, most=_OTHERS)))
    if not isinstance(columns, dict) or not set(columns) <= set(checks):
        refuse(name, f"a dict of columns among {', '.join(checks)}", columns)
    columns = {"row": [], **columns}
    lengths = {len(checks[key](column, f"rows[{key!r}]")) for key, column in columns.items()}
    if len(lengths) != 1:
        refuse(name, "columns of one length", sorted(lengths))
    return columns
