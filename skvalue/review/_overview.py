"""What each column of a table holds: one line, and a small histogram."""

import numpy as np

from ._columns import SPACES
from ._contents import number_text

KINDS = ("number", "date", "category", "text")  # of columns
_MOST = 200  # columns
_BARS, _HEIGHT, _WIDTH, _PITCH = 12, 24, 7, 8  # of a histogram, in pixels
_NAME, _ENTRY = 100, 40  # letters that are shown


def overview_of(columns):
    """A dict for each of the first 200 columns.

    ``column``, ``kind``, ``missing`` and ``distinct`` (numbers of entries), ``said`` (the range or
    the commonest entry) and ``bars`` (counts of a histogram).
    """
    return [{"column": column.name[:_NAME], **_line(column)} for column in columns[:_MOST]]


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
    tallest = max([1, *bars])
    heights = [round(_HEIGHT * n / tallest) for n in bars]
    return " ".join(
        f"M{_PITCH * i} {_HEIGHT}v-{h}h{_WIDTH}v{h}z" for i, h in enumerate(heights) if h
    )
