"""Transformers of columns of any kind to numbers, with a note on what they do."""

import datetime
from collections import Counter
from decimal import Decimal

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from ..exceptions import ParameterError
from .text import count_gaps, enumeration, lacks_spaces

MAX_CATEGORIES = 50  # columns of a categorical column; rarer categories share one
_MAX_WORDS = 100  # columns of a column of texts
# Fraction of distinct strings above which a column says nothing on other rows.
_MAX_DISTINCT = 0.9
_MIN_GAPS = 2  # between words of a text, on average
_MAX_LETTERS = 3  # in a row that are a column, of texts without spaces between words
_MISSING = "(missing)"

# Kind of a column -> what is done to it, in words.
_TREATMENTS = {
    "number": "scaled to unit variance, missing entries replaced by the median and "
    "marked",
    "date": "as seconds, then as numbers",
    "category": f"one column per category, at most {MAX_CATEGORIES}; missing is a "
    "category",
    "text": f"TF-IDF of the {_MAX_WORDS} commonest words",
    "identifier": "left out: every row has another value",
    "names": "left out: more than 90 % of the entries are different",
    "constant": "left out: all rows have the same value",
}


def column_encoder(frame, most_entries=500_000_000, texts=()):
    """An unfitted transformer of a pandas frame to a dense array, and what it does.

    The latter are sentences. Columns that `texts` names are texts whatever they hold,
    unless all rows have the same. Raises ValueError if no column is left, one holds
    lists or other objects, or the array would have more than `most_entries`.
    """
    refuse_repeated_names(frame.columns)
    kinds = [
        _kind(frame.iloc[:, i], name, name in texts)
        for i, name in enumerate(frame.columns)
    ]
    width = sum(_width(frame.iloc[:, i], kind) for i, kind in enumerate(kinds))
    if len(frame) * width > most_entries:
        raise ValueError(
            f"the table must have at most {most_entries} entries after encoding. Got "
            f"{len(frame)} rows and up to {width} columns, made of {frame.shape[1]}."
        )
    positions = {kind: [] for kind in _TREATMENTS}
    for i, kind in enumerate(kinds):
        positions[kind].append(i)
    transformers = _transformers(frame, positions)
    if not transformers:
        raise ValueError(
            "the table must have a column that neither identifies the rows nor is "
            f"constant. Got {frame.shape[1]} columns, none of them such."
        )
    notes = [
        f"{kind} {enumeration(frame.columns[columns])}: {_TREATMENTS[kind]}."
        for kind, columns in positions.items()
        if columns
    ]
    return ColumnTransformer(transformers, sparse_threshold=0), notes


def refuse_repeated_names(names):
    """Refuse a name that two columns have."""
    for name, times in Counter(map(str, names)).items():
        if times > 1:
            raise ParameterError(
                "X",
                "must name every column once, since what is reported names columns. "
                f"Got {name!r} twice.",
            )


def _transformers(frame, positions):
    """Triples of name, transformer and columns, from the positions of each kind."""
    of_numbers = [
        _function(_floats),
        SimpleImputer(strategy="median", add_indicator=True),
        StandardScaler(),
    ]
    of_categories = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        max_categories=MAX_CATEGORIES,
        sparse_output=False,
    )
    by_kind = {
        "number": make_pipeline(*of_numbers),
        "date": make_pipeline(_function(_seconds), *of_numbers),
        "category": make_pipeline(_function(_strings), of_categories),
    }
    transformers = [
        (kind, transformer, positions[kind])
        for kind, transformer in by_kind.items()
        if positions[kind]
    ]
    for i in positions["text"]:
        of_words = text_vectorizer(
            _strings(frame.iloc[:, i]), max_features=_MAX_WORDS, token_pattern=r"\S+"
        )
        transformer = make_pipeline(_function(_strings), of_words)
        transformers.append((f"text{i}", transformer, i))
    return transformers


def text_vectorizer(texts, **options):
    """An unfitted TF-IDF of words, or of one to three letters in a row.

    Letters take the place of words where these are not separated by spaces.
    """
    if lacks_spaces(texts):
        options.pop("token_pattern", None)
        options |= {"analyzer": "char", "ngram_range": (1, _MAX_LETTERS)}
    return TfidfVectorizer(**options)


def split_texts(frame, texts=()):
    """Names of the columns of texts, and of the other columns that are used.

    Columns that `texts` names are texts whatever they hold.
    """
    refuse_repeated_names(frame.columns)
    kinds = {name: _kind(frame[name], name, name in texts) for name in frame.columns}
    texts = [name for name, kind in kinds.items() if kind == "text"]
    not_others = ("text", "identifier", "constant")
    return texts, [name for name, kind in kinds.items() if kind not in not_others]


def _kind(column, name, is_text=False):
    """Kind of a column, a key of `_TREATMENTS`; a text if that is known."""
    dtype_kind = getattr(column.dtype, "kind", "O")
    present = column.dropna()
    if dtype_kind == "O" and len(present):
        dtype_kind = _kind_of_objects(present.iloc[0], name)
    elif dtype_kind == "c":
        _kind_of_objects(0j, name)  # is refused
    if len(present) == 0 or (present == present.iloc[0]).all():
        has_both = 0 < len(present) < len(column)
        return "category" if has_both else "constant"
    if is_text:
        return "text"
    if dtype_kind in "iuf":
        values = present.to_numpy().astype(np.float64)
        is_identifier = present.is_unique and are_counted(values, len(column))
        return "identifier" if is_identifier else "number"
    if dtype_kind == "b":
        return "category"
    if dtype_kind in "mM":
        return "date"
    return _kind_of_strings(present)


def _kind_of_objects(entry, name):
    """The kind of dtype that suits objects such as the entry; refuses other ones."""
    if isinstance(entry, Decimal):
        return "f"
    if isinstance(entry, datetime.date):
        return "M"
    if isinstance(entry, str | bool | int | float):
        return "O"
    raise ValueError(
        f"columns must hold numbers, strings or dates. Got {type(entry).__name__} in "
        f"the column {name!r}."
    )


def _kind_of_strings(present):
    """Kind of a column of strings, without its missing entries."""
    n_distinct = present.nunique()
    if n_distinct <= MAX_CATEGORIES:
        return "category"
    if _are_dates(present):
        return "date"
    if np.mean([count_gaps(entry) for entry in present.astype(str)]) >= _MIN_GAPS:
        return "text"
    if n_distinct == len(present):
        return "identifier"
    return "names" if n_distinct > _MAX_DISTINCT * len(present) else "category"


def are_counted(values, n):
    """Whether different numbers count or name n rows.

    They do if they are whole and, besides, fill half of their range, increase (or
    decrease) from every row to the next, or all have the same number of digits, at
    least 5, with first digits that are about equally frequent.
    """
    if len(values) < n / 2 or not np.isfinite(values).all() or (values % 1).any():
        return False
    steps = np.diff(values)
    if len(values) == n and (steps == 1).all():
        return True
    if len(values) < 30:
        return False
    fill_their_range = np.ptp(values) < 2 * len(values)
    if fill_their_range or (steps > 0).all() or (steps < 0).all():
        return True
    if len(values) < 100:
        return False

    # Amounts have more small first digits than large ones; keys do not.
    sizes = np.abs(values)
    exponents = np.floor(np.log10(np.maximum(sizes, 1)))
    first_digits = (sizes // 10**exponents).astype(int)
    counts = np.bincount(first_digits, minlength=10)
    is_even = counts.max() < 2 / 9 * len(values)
    is_long = exponents.min() == exponents.max() and exponents.max() >= 4
    return bool(is_even and is_long)


def _width(column, kind):
    """The largest number of columns that a column becomes."""
    if kind in ("number", "date"):
        return 2
    if kind == "category":
        return min(column.nunique() + 1, MAX_CATEGORIES)
    return _MAX_WORDS if kind == "text" else 0


def _function(function):
    """The step that applies a function of frames, whose output stays as it is."""
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
    """Whether all strings are dates, such as 2026-01-31 or 2026-01-31T12:00."""
    import pandas as pd

    if not column.astype(str).str.match(r"\d{4}-\d\d").all():
        return False
    return pd.to_datetime(column, format="ISO8601", errors="coerce").notna().all()


def _seconds(frame):
    """Dates and durations as seconds, NaN where there is none."""
    return frame.apply(_seconds_of)


def _seconds_of(column):
    """Seconds of the entries of a column, of any year that numpy has."""
    import pandas as pd

    kind = getattr(column.dtype, "kind", "O")
    if kind == "m":
        return column.dt.total_seconds()
    if kind == "M":
        if getattr(column.dt, "tz", None) is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        unit = "datetime64[us]"
        entries = column.to_numpy(dtype=unit, na_value=np.datetime64("NaT", "us"))
    else:
        dates = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
        entries = dates.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")

        # What nanoseconds have no number for: years before 1678 and after 2261.
        entries = entries.copy()
        for i in np.flatnonzero(np.isnat(entries)):
            entries[i] = _far_date(column.iloc[i])
    seconds = entries.astype(np.int64) / 1e6
    return pd.Series(np.where(np.isnat(entries), np.nan, seconds), column.index)


def _far_date(entry):
    """A date, or the text of one, as numpy has it; NaT if it is none."""
    if isinstance(entry, str):
        try:
            entry = datetime.datetime.fromisoformat(entry)
        except ValueError:
            return np.datetime64("NaT", "us")
    if not isinstance(entry, datetime.date) or entry != entry:
        return np.datetime64("NaT", "us")
    if getattr(entry, "tzinfo", None) is not None:
        entry = entry.replace(tzinfo=None) - entry.utcoffset()
    return np.datetime64(entry, "us")
