"""Axes and colours of all displays."""

from .optional import import_optional

BLUE = "#30638e"
RED = "#d1495b"
GREEN = "#3d8361"
GREY = "#8d8d8d"


def open_axes(ax, name, n_rows=0, n_columns=0):
    """The axes without top and right spines; new ones if ``ax`` is None.

    New ones have room for row and column labels. Raises ImportError, which names the
    display, if matplotlib is not installed.
    """
    plt = import_optional("matplotlib.pyplot", name, "plot")
    if ax is None:
        width, height = plt.rcParams["figure.figsize"]
        width = max(width, 0.2 * n_columns + 2)
        height = max(height, 0.2 * n_rows + 1)
        _, ax = plt.subplots(layout="constrained", figsize=(width, height))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_band(ax, x, scores, **style):
    """Draw means over repeats (last axis) as a line, and the range as a band.

    Returns the line and the band.
    """
    (line,) = ax.plot(x, scores.mean(axis=-1), markersize=4, **style)
    lowest = scores.min(axis=-1)
    highest = scores.max(axis=-1)
    color = line.get_color()
    return line, ax.fill_between(x, lowest, highest, color=color, alpha=0.2, lw=0)
