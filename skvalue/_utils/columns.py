"""Columns of any kind as numbers: the transformer of each column, and what it does, in
words."""

import datetime
from decimal import Decimal

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

MOST_CATEGORIES = 50  # columns of a categorical column; rarer categories share one
_WORDS = 100  # columns of a column of texts
_NAMES = (
    0.9  # fraction of distinct strings above which a column says nothing on other rows
)
_MISSING = "(missing)"

# Kind of a column -> what is done to it, in words.
_DONE = {
    "number": "scaled to unit variance, missing entries replaced by the median and marked",
    "date": "as seconds, then as numbers",
    "category": f"one column per category, at most {MOST_CATEGORIES}; missing is a category",
    "text": f"TF-IDF of the {_WORDS} commonest words",
    "identifier": "left out: every row has another value",
    "names": "left out: more than 90 % of the entries are different",
    "constant": "left out: all rows have the same value",
}


def column_encoder(frame, most_entries=500_000_000):
    """An unfitted transformer of a pandas frame to a dense array, and sentences on what
    it does.

    Raises ValueError if no column is left, one holds lists or other objects, or the
    array would have more than `most_entries`.
    """
    kinds = [_kind(frame.iloc[:, i], name) for i, name in enumerate(frame.columns)]
    width = sum(_width(frame.iloc[:, i], kind) for i, kind in enumerate(kinds))
    if len(frame) * width > most_entries:
        raise ValueError(
            f"the table must have at most {most_entries} entries after encoding. Got {len(frame)} "
            f"rows and up to {width} columns, made of {frame.shape[1]}."
        )
    of = {kind: [i for i, other in enumerate(kinds) if other == kind] for kind in _DONE}
    numbers = [
        _function(_floats),
        SimpleImputer(strategy="median", add_indicator=True),
        StandardScaler(),
    ]
    categories = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        max_categories=MOST_CATEGORIES,
        sparse_output=False,
    )
    words = TfidfVectorizer(max_features=_WORDS, token_pattern=r"\S+")
    steps = [
        ("number", make_pipeline(*numbers), of["number"]),
        ("date", make_pipeline(_function(_seconds), *numbers), of["date"]),
        ("category", make_pipeline(_function(_strings), categories), of["category"]),
        *(
            (f"text{i}", make_pipeline(_function(_strings), words), i)
            for i in of["text"]
        ),
    ]
    steps = [step for step in steps if step[2] != []]
    if not steps:
        raise ValueError(
            "the table must have a column that neither identifies the rows nor is constant. Got "
            f"{frame.shape[1]} columns, none of them such."
        )
    notes = [
        f"{kind} {_listed(frame.columns[places])}: {_DONE[kind]}."
        for kind, places in of.items()
        if places
    ]
    return ColumnTransformer(steps, sparse_threshold=0), notes


def split_texts(frame):
    """Names of the columns of texts, of three words on average, and of the others that
    are used."""
    kinds = {name: _kind(frame[name], name) for name in frame.columns}
    texts = [name for name, kind in kinds.items() if kind == "text"]
    unused = ("text", "identifier", "constant")
    return texts, [name for name, kind in kinds.items() if kind not in unused]


def _listed(names):
    shown = ", ".join(map(str, names[:5]))
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _kind(column, name):
    """Kind of a column, a key of `_DONE`."""
    kind = getattr(column.dtype, "kind", "O")
    present = column.dropna()
    first = present.iloc[0] if kind == "O" and len(present) else ""
    if isinstance(first, datetime.date | Decimal):
        kind = "f" if isinstance(first, Decimal) else "M"
    elif not isinstance(first, str | bool | int | float):
        raise ValueError(
            f"columns must hold numbers, strings or dates. Got {type(first).__name__} "
            f"in the column {name!r}."
        )
    if not len(present) or (present == present.iloc[0]).all():
        has_both = 0 < len(present) < len(column)
        return "category" if has_both else "constant"
    if kind in "iuf":
        values = present.to_numpy().astype(np.float64)
        is_id = present.is_unique and are_counted(values, len(column))
        return "identifier" if is_id else "number"
    if kind == "b":
        return "category"
    if kind in "mM":
        return "date"
    distinct = present.nunique()
    if distinct <= MOST_CATEGORIES:
        return "category"
    if _are_dates(present):
        return "date"
    if present.astype(str).str.count(r"\s+").mean() >= 2:  # three words on average
        return "text"
    if distinct == len(present):
        return "identifier"
    return "names" if distinct > _NAMES * len(present) else "category"


def are_counted(values, n):
    """Whether different numbers count or name n rows: they are whole, and one of three
    things.

    They fill half of their range, or rise (or fall) from every row to the next, or have
    one length of at least 5 digits, the first of which is any as often.
    """
    if len(values) < n / 2 or not np.isfinite(values).all() or (values % 1).any():
        return False
    steps = np.diff(values)
    if len(values) == n and (steps == 1).all():
        return True
    if len(values) < 30:
        return False
    if np.ptp(values) < 2 * len(values) or (steps > 0).all() or (steps < 0).all():
        return True
    digits = np.floor(np.log10(np.maximum(np.abs(values), 1)))
    first = np.bincount((np.abs(values) // 10**digits).astype(int), minlength=10)
    even = len(values) >= 100 and first.max() < 2 / 9 * len(values)
    return bool(even and digits.min() == digits.max() >= 4)


def _width(column, kind):
    """The largest number of columns that a column becomes."""
    categories = min(column.nunique() + 1, MOST_CATEGORIES) if kind == "category" else 0
    return {"number": 2, "date": 2, "category": categories, "text": _WORDS}.get(kind, 0)


def _function(function):
    """The step that applies a function of frames, whatever transformers are set to
    return."""
    return FunctionTransformer(function).set_output(transform="default")


def _floats(frame):
    """The frame with its decimal numbers as floats."""
    return frame.apply(
        lambda column: column.astype(float) if column.dtype == object else column
    )


def _strings(columns):
    """Entries as strings, of a frame or of one column of it."""
    return columns.astype(str).where(columns.notna(), _MISSING)


def _are_dates(column):
    """Whether all strings of a column are dates, such as 2026-01-31 or
    2026-01-31T12:00."""
    import pandas as pd

    if not column.astype(str).str.match(r"\d{4}-\d\d").all():
        return False
    return pd.to_datetime(column, format="ISO8601", errors="coerce").notna().all()


def _seconds(frame):
    """Dates and durations as seconds, NaN where there is none."""
    import pandas as pd

    def seconds_of(column):
        if getattr(column.dtype, "kind", "O") != "m":
            dates = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
            column = dates - pd.Timestamp(0, tz="UTC")
        return column.dt.total_seconds()

    return frame.apply(seconds_of)
