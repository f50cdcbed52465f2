"""What a report shows of each column: its kind, its range and a histogram."""

import numpy as np

from .._utils.table_columns import SPACES
from .._utils.text import number_text

KINDS = ("number", "date", "category", "text")
_MOST = 200  # columns of an overview
_NAME = 100  # letters of a name
_ENTRY = 40  # letters of an entry

# Of a histogram, in pixels: bars of a width, at a pitch.
_BARS = 12
_HEIGHT = 24
_WIDTH = 7
_PITCH = 8


def overview_of(columns):
    """A dict for each of the first 200 columns.

    ``column``, ``kind``, ``missing`` and ``distinct`` (numbers of entries), ``said``
    (the range or the commonest entry) and ``bars`` (counts of a histogram).
    """
    return [_line(column) for column in columns[:_MOST]]


def _line(column):
    """The overview of a column."""
    is_missing = column.missing
    entries = column.entries[~is_missing]
    if column.kind != "category":
        entries = entries[np.isfinite(entries)]
    levels, counts = np.unique(entries, return_counts=True)
    line = {
        "column": column.name[:_NAME],
        "kind": column.kind,
        "missing": int(is_missing.sum()),
        "distinct": len(levels),
        "said": "",
        "bars": [],
    }
    if not len(entries):
        return line
    if column.n_spaces >= SPACES:
        line["kind"] = "text"
        line["said"] = f"{column.n_spaces + 1:.0f} words on average"
    elif column.kind == "category":
        commonest = np.argsort(-counts, kind="stable")[:_BARS]
        first = commonest[0]
        line["said"] = f"commonest: {levels[first][:_ENTRY]} ({counts[first]:,})"
        line["bars"] = counts[commonest].tolist()
    else:
        line["said"] = _range_text(column.kind, levels[0], levels[-1])
        line["bars"] = _histogram(entries, levels, counts)
    return line


def _range_text(kind, lowest, highest):
    """The range of numbers, or of dates in seconds, in words."""
    if kind == "date":
        seconds = np.array([lowest, highest])
        low, high = seconds.astype("datetime64[s]").astype("datetime64[D]").astype(str)
    else:
        low = number_text(lowest, grouped=False)
        high = number_text(highest, grouped=False)
    return low if low == high else f"{low} to {high}"


def _histogram(entries, levels, counts):
    """Counts of the levels, or of equal bins if there are more than bars."""
    if len(levels) > _BARS:
        low, high = np.quantile(entries, [0.01, 0.99])
        counts = np.histogram(np.clip(entries, low, high), _BARS)[0]
    return counts.tolist()


def bars_path(bars):
    """The outline of a histogram, as SVG draws it.

    >>> bars_path([1, 2])
    'M0 24v-12h7v12z M8 24v-24h7v24z'
    """
    tallest = max([1, *bars])
    heights = [round(_HEIGHT * n / tallest) for n in bars]
    return " ".join(
        f"M{_PITCH * i} {_HEIGHT}v-{height}h{_WIDTH}v{height}z"
        for i, height in enumerate(heights)
        if height
    )
