"""What a report shows of rows: columns, texts or pictures."""

import base64
import io

import numpy as np
from scipy.sparse import issparse

from .._utils.optional import import_optional
from .._utils.table_columns import SPACES, entries_as_array, named_columns
from .._utils.text import number_text
from .._utils.untrusted import refuse

_SIDE = 64  # pixels of the longer side of a picture
_COLUMNS = 40  # columns of a row that are shown
_COMPARED = 500  # columns among which these are chosen
_LEVELS = 20  # of a category
_TEXT = 2000  # letters of a text, or of an entry of a column
_LABEL = 1000  # letters of a label


def kind_of(X):
    """Kind of rows by their type and shape: "table", "text" or "image"."""
    if X is None or issparse(X) or hasattr(X, "columns"):
        return "table"
    n_dimensions = np.ndim(X)
    if n_dimensions in (3, 4):
        return "image"
    if n_dimensions == 1 and len(X):
        first = np.asarray(X, dtype=object)[0]
        if isinstance(first, str):
            return "text"
    return "table"


def plain_labels(labels):
    """Labels as a report holds them: numbers, or an array of strings as objects."""
    if labels.dtype.kind == "M":
        labels = np.datetime_as_string(labels, unit="auto")
    elif labels.dtype.kind == "m":
        labels = labels.astype("timedelta64[us]")
    if labels.dtype.kind in "biuf":
        return labels
    texts = list(map(str, labels.tolist()))
    longest = max(map(len, texts), default=0)
    if longest > _LABEL:
        refuse("labels", f"of at most {_LABEL} letters", f"one of {longest} letters")
    return np.array(texts, dtype=object)


def contents_of(X, kind, rows, order):
    """Row -> its columns (dict), text or picture (data URI).

    kind : str, of `kind_of`
    rows : list of int
    order : dict, row -> the numbers of its columns, those first that matter for its
        label; empty for rows without columns
    """
    if kind == "image":
        return _pictures(np.asarray(X), rows)
    if kind == "text":
        texts = np.asarray(X, dtype=object)
        return {row: _cut(texts[row], _TEXT) for row in rows}
    if not order:
        return {}
    columns = [(name, entries_as_array(entries)) for name, entries in named_columns(X)]
    contents = {}
    for row, numbers in order.items():
        shown = [columns[number] for number in numbers[:_COLUMNS]]
        contents[row] = {name: _cell(entries[row]) for name, entries in shown}
    return contents


def telling_columns(columns, rows, given, suggested):
    """Row -> numbers of its columns: texts, then those that tell the labels apart most.

    The measure is the logarithm of how much more frequent an entry (a tenth of the
    numbers, a category) is under the suggestion than under the label of the row.

    columns : list of Column
    rows : list of int
    given, suggested : ndarray of int of shape (n_samples,), codes of labels
    """
    n_classes = max(given.max(), suggested.max()) + 1
    evidence = []
    for column in columns[:_COMPARED]:
        if column.n_spaces >= SPACES:
            evidence.append(np.full(len(rows), np.inf))
            continue
        bins = _bins(column)
        counts = np.ones((n_classes, bins.max() + 1))
        np.add.at(counts, (given, bins), 1)
        logs = np.log(counts / counts.sum(axis=1, keepdims=True))
        of_suggestion = logs[suggested[rows], bins[rows]]
        of_label = logs[given[rows], bins[rows]]
        evidence.append(np.abs(of_suggestion - of_label))
    order = np.argsort(-np.transpose(evidence), axis=1, kind="stable")
    return dict(zip(rows, order))


def _bins(column):
    """A number of each entry: the rank of its category, or the tenth of its number."""
    entries = column.entries
    if column.kind == "category":
        _, codes, counts = np.unique(entries, return_inverse=True, return_counts=True)
        ranks = np.argsort(np.argsort(-counts, kind="stable"))
        return np.minimum(ranks, _LEVELS)[codes]
    is_present = ~column.missing
    tenths = [0.0]
    if is_present.any():
        tenths = np.quantile(entries[is_present], np.arange(1, 10) / 10)
    return np.where(is_present, np.searchsorted(tenths, entries), 10)


def _cell(entry):
    """A short text of an entry."""
    # pd.NA, which has no truth value, is compared by its text.
    if entry is None or str(entry) in ("<NA>", "NaT", "nan"):
        return "–"
    if isinstance(entry, (float, np.floating)):
        return number_text(entry, grouped=False)
    if isinstance(entry, np.datetime64):
        return np.datetime_as_string(entry, unit="auto")
    return _cut(entry, _TEXT)


def _cut(text, length):
    text = str(text)
    return text if len(text) <= length else text[: length - 1] + "…"


def _pictures(images, rows):
    """Row -> a small picture; bytes are as they are, other numbers are stretched."""
    low = 0
    high = 255
    if images.dtype != np.uint8:
        low = images.min()
        high = images.max()
    return {row: _picture(images[row], low, high) for row in rows}


def _picture(image, low, high):
    """A small picture as a data URI: PNG of one channel, JPEG of three."""
    factor = 255 / max(high - low, 1e-300)
    pixels = (np.asarray(image, dtype=np.float64) - low) * factor
    pixels = np.squeeze(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))
    if pixels.ndim == 3 and pixels.shape[2] != 3:
        rule = "of shape (height, width) or (height, width, 3)"
        refuse("images", rule, np.shape(image))
    picture = import_optional("PIL.Image", "the picture of a row").fromarray(pixels)
    picture.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    if pixels.ndim == 2:
        kind = "png"
        picture.save(file, kind, optimize=True)
    else:
        kind = "jpeg"
        picture.save(file, kind, quality=85)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
