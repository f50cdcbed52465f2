"""What a report shows of rows: columns, texts or pictures; and of each column."""

import base64
import io

import numpy as np
from scipy.sparse import issparse

from .._utils.optional import import_optional
from .._utils.table_columns import SPACES, named_columns
from .._utils.text import number_text
from .._utils.untrusted import refuse

_SIDE = 64  # pixels of the longer side of a picture
_COLUMNS = 40  # columns of a row that are shown
_COMPARED = 500  # columns among which these are chosen
_LEVELS = 20  # of a category
_LETTERS = 300  # of an entry of a column
_TEXT = 2000  # letters of a text
_LABEL = 1000  # letters of a label
KINDS = ("number", "date", "category", "text")  # of columns
_MOST = 200  # columns of an overview
_BARS, _HEIGHT, _WIDTH, _PITCH = 12, 24, 7, 8  # of a histogram, in pixels
_NAME, _ENTRY = 100, 40  # letters that are shown


def kind_of(X):
    """ "table", "text" or "image", by the type and shape of rows."""
    if X is None or issparse(X) or hasattr(X, "columns"):
        return "table"
    if np.ndim(X) in (3, 4):
        return "image"
    texts = (
        np.ndim(X) == 1 and len(X) and isinstance(np.asarray(X, dtype=object)[0], str)
    )
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


def contents_of(X, rows, order):
    """Row -> its columns (dict), text or picture (data URI).

    ``order``: row -> the numbers of its columns, those first that matter for its label.
    """
    kind = kind_of(X)
    if kind == "image":
        images = np.asarray(X)
        low, high = (
            (0, 255) if images.dtype == np.uint8 else (images.min(), images.max())
        )
        return {row: _picture(images[row], low, high) for row in rows}
    if kind == "text":
        texts = np.asarray(X, dtype=object)
        return {row: _cut(texts[row], _TEXT) for row in rows}
    columns = (
        [(name, np.asarray(entries)) for name, entries in named_columns(X)]
        if order
        else []
    )
    shown = {row: [columns[j] for j in order[row][:_COLUMNS]] for row in order}
    return {
        row: {name: _cell(entries[row]) for name, entries in shown[row]}
        for row in shown
    }


def telling_columns(columns, rows, given, suggested):
    """Row -> its columns: texts, then those whose entry tells the suggestion from the
    label most.

    ``given`` and ``suggested``: codes of the labels. The measure is the logarithm of
    how much more frequent an entry (a tenth of the numbers, a category) is under the
    one than under the other.
    """
    n_classes, evidence = max(given.max(), suggested.max()) + 1, []
    for column in columns[:_COMPARED]:
        entries = column.entries
        if column.n_spaces >= SPACES:
            evidence.append(np.full(len(rows), np.inf))
            continue
        if column.kind == "category":
            _, codes, counts = np.unique(
                entries, return_inverse=True, return_counts=True
            )
            place = np.argsort(np.argsort(-counts, kind="stable"))
            bins = np.minimum(place, _LEVELS)[codes]
        else:
            known = ~column.missing
            tenths = (
                np.quantile(entries[known], np.arange(1, 10) / 10)
                if known.any()
                else [0.0]
            )
            bins = np.where(known, np.searchsorted(tenths, entries), 10)
        counts = np.ones((n_classes, bins.max() + 1))
        np.add.at(counts, (given, bins), 1)
        logs = np.log(counts / counts.sum(axis=1, keepdims=True))
        told = logs[suggested[rows], bins[rows]] - logs[given[rows], bins[rows]]
        evidence.append(np.abs(told))
    return dict(zip(rows, np.argsort(-np.transpose(evidence), axis=1, kind="stable")))


def _cell(entry):
    """A short text of an entry."""
    if entry is None or entry != entry or str(entry) in ("<NA>", "NaT"):
        return "–"
    if isinstance(entry, (float, np.floating)):
        return number_text(entry, grouped=False)
    if isinstance(entry, np.datetime64):
        return np.datetime_as_string(entry, unit="auto")
    return _cut(entry, _LETTERS)


def _cut(text, length):
    text = str(text)
    return text if len(text) <= length else text[: length - 1] + "…"


def _picture(image, low, high):
    """A small picture as a data URI: PNG of one channel, JPEG of three."""
    scaled = (np.asarray(image, dtype=np.float64) - low) * (
        255 / max(high - low, 1e-300)
    )
    scaled = np.squeeze(np.clip(np.rint(scaled), 0, 255).astype(np.uint8))
    if scaled.ndim == 3 and scaled.shape[2] != 3:
        refuse(
            "images", "of shape (height, width) or (height, width, 3)", np.shape(image)
        )
    picture, file = (
        import_optional("PIL.Image", "the picture of a row").fromarray(scaled),
        io.BytesIO(),
    )
    picture.thumbnail((_SIDE, _SIDE))
    kind = "png" if scaled.ndim == 2 else "jpeg"
    picture.save(
        file, kind, **({"optimize": True} if kind == "png" else {"quality": 85})
    )
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def overview_of(columns):
    """A dict for each of the first 200 columns.

    ``column``, ``kind``, ``missing`` and ``distinct`` (numbers of entries), ``said``
    (the range or the commonest entry) and ``bars`` (counts of a histogram).
    """
    return [
        {"column": column.name[:_NAME], **_line(column)} for column in columns[:_MOST]
    ]


def _line(column):
    kind, missing = column.kind, column.missing
    known = column.entries[~missing]
    known = known if kind == "category" else known[np.isfinite(known)]
    levels, counts = np.unique(known, return_counts=True)
    line = {"kind": kind, "missing": int(missing.sum()), "distinct": len(levels)}
    if not len(known):
        return {**line, "said": "", "bars": []}
    if column.n_spaces >= SPACES:
        said = f"{column.n_spaces + 1:.0f} words on average"
        return {**line, "kind": "text", "said": said, "bars": []}
    if kind == "category":
        often = np.argsort(-counts, kind="stable")[:_BARS]
        said = f"commonest: {levels[often[0]][:_ENTRY]} ({counts[often[0]]:,})"
        return {**line, "said": said, "bars": counts[often].tolist()}
    low, high = (number_text(entry, grouped=False) for entry in (levels[0], levels[-1]))
    if kind == "date":
        low, high = (
            levels[[0, -1]].astype("datetime64[s]").astype("datetime64[D]").astype(str)
        )
    if len(levels) > _BARS:
        counts = np.histogram(np.clip(known, *np.quantile(known, [0.01, 0.99])), _BARS)[
            0
        ]
    return {
        **line,
        "said": low if low == high else f"{low} to {high}",
        "bars": counts.tolist(),
    }


def bars_path(bars):
    """The outline of a histogram, as SVG draws it.

    >>> bars_path([1, 2])
    'M0 24v-12h7v12z M8 24v-24h7v24z'
    """
    tallest = max([1, *bars])
    heights = [round(_HEIGHT * n / tallest) for n in bars]
    return " ".join(
        f"M{_PITCH * i} {_HEIGHT}v-{h}h{_WIDTH}v{h}z"
        for i, h in enumerate(heights)
        if h
    )
