"""What a report shows of rows: columns, texts or pictures."""

import base64
import io

import numpy as np
from scipy.sparse import issparse

from .._utils.optional import needed
from .._utils.untrusted import refuse

_SIDE = 64  # pixels of the longer side of a picture
_COLUMNS = 40  # columns of a row that are shown
_LETTERS = 300  # of an entry of a column
_TEXT = 2000  # letters of a text
_LABEL = 1000  # letters of a label


def kind_of(X):
    """ "table", "text" or "image", by the type and shape of rows."""
    if X is None or issparse(X) or hasattr(X, "columns"):
        return "table"
    if np.ndim(X) in (3, 4):
        return "image"
    texts = np.ndim(X) == 1 and len(X) and isinstance(np.asarray(X, dtype=object)[0], str)
    return "text" if texts else "table"


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


def contents_of(X, rows):
    """Row -> its columns (dict), text or picture (data URI)."""
    kind = kind_of(X)
    if kind == "image":
        images = np.asarray(X)
        low, high = (0, 255) if images.dtype == np.uint8 else (images.min(), images.max())
        return {row: _picture(images[row], low, high) for row in rows}
    if kind == "text":
        texts = np.asarray(X, dtype=object)
        return {row: _cut(texts[row], _TEXT) for row in rows}
    if issparse(X) or (not hasattr(X, "columns") and np.ndim(X) != 2):
        return {}
    names, columns = _columns(X)
    return {row: {n: _cell(c[row]) for n, c in zip(names, columns)} for row in rows}


def _columns(X):
    """Names and entries of the first columns."""
    if hasattr(X, "columns"):
        names = list(X.columns)[:_COLUMNS]
        return list(map(str, names)), [np.asarray(X[name]) for name in names]
    X = np.asarray(X)
    return [f"x{j}" for j in range(min(X.shape[1], _COLUMNS))], list(X.T[:_COLUMNS])


def _cell(entry):
    """A short text of an entry."""
    if entry is None or entry != entry or str(entry) in ("<NA>", "NaT"):
        return "–"
    if isinstance(entry, (float, np.floating)):
        return f"{entry:.6g}"
    return _cut(entry, _LETTERS)


def _cut(text, length):
    text = str(text)
    return text if len(text) <= length else text[: length - 1] + "…"


def _picture(image, low, high):
    """A small picture as a data URI: PNG of one channel, JPEG of three."""
    scaled = (np.asarray(image, dtype=np.float64) - low) * (255 / max(high - low, 1e-300))
    scaled = np.squeeze(np.clip(np.rint(scaled), 0, 255).astype(np.uint8))
    if scaled.ndim == 3 and scaled.shape[2] != 3:
        raise ValueError(
            f"images must have shape (height, width) or (height, width, 3). Got {np.shape(image)}."
        )
    picture, file = needed("PIL.Image", "the picture of a row").fromarray(scaled), io.BytesIO()
    picture.thumbnail((_SIDE, _SIDE))
    kind = "png" if scaled.ndim == 2 else "jpeg"
    picture.save(file, kind, **({"optimize": True} if kind == "png" else {"quality": 85}))
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
