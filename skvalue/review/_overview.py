"""What each column of a table holds: one line, and a small histogram."""

import numpy as np

from ._contents import number_text
from ._table import MISSING, entries_of

KINDS = ("number", "date", "category", "text")  # of columns
_MOST = 200  # columns
_BARS, _HEIGHT, _WIDTH, _PITCH = 12, 24, 7, 8  # of a histogram, in pixels
_SPACES = 2  # of a text on average
_NAME, _ENTRY = 100, 40  # letters that are shown


def overview_of(X):
    """A dict for each column of a frame or array of two dimensions, of at most 200 columns.

    ``column``, ``kind``, ``missing`` and ``distinct`` (numbers of entries), ``said`` (the range or
    the commonest entry) and ``bars`` (counts of a histogram).
    """
    if hasattr(X, "columns"):
        columns = [(str(name), X[name]) for name in X.columns[:_MOST]]
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        columns = [(f"x{j}", column) for j, column in enumerate(X.T[:_MOST])]
    else:
        return []
    return [{"column": name[:_NAME], **_line(*entries_of(column))} for name, column in columns]


def _line(kind, entries):
    missing = entries == MISSING if kind == "category" else np.isnan(entries)
    known, lost = entries[~missing], int(missing.sum())
    known = known if kind == "category" else known[np.isfinite(known)]
    levels, counts = np.unique(known, return_counts=True)
    line = {"kind": kind, "missing": lost, "distinct": len(levels), "said": "", "bars": []}
    if not len(known):
        return line
    if kind == "category":
        spaces = np.mean([entry.count(" ") for entry in known])
        often = np.argsort(-counts, kind="stable")[:_BARS]
        said = f"commonest: {levels[often[0]][:_ENTRY]} ({counts[often[0]]:,})"
        if spaces >= _SPACES:
            return {**line, "kind": "text", "said": f"{spaces + 1:.0f} words on average"}
        return {**line, "said": said, "bars": counts[often].tolist()}
    low, high = (_text(kind, entry) for entry in (levels[0], levels[-1]))
    if len(levels) > _BARS:
        counts = np.histogram(np.clip(known, *np.quantile(known, [0.01, 0.99])), _BARS)[0]
    return {**line, "said": low if low == high else f"{low} to {high}", "bars": counts.tolist()}


def _text(kind, entry):
    if kind == "number":
        return number_text(entry, grouped=False)
    return str(np.datetime64(int(entry), "s").astype("datetime64[D]"))


def bars_path(bars):
    """The outline of a histogram, as SVG draws it.

    >>> bars_path([1, 2])
    'M0 24v-12h7v12z M8 24v-24h7v24z'
    """
    tallest = max(bars, default=0)
    heights = [round(_HEIGHT * n / tallest) for n in bars] if tallest else []
    return " ".join(
        f"M{_PITCH * i} {_HEIGHT}v-{h}h{_WIDTH}v{h}z" for i, h in enumerate(heights) if h
    )
