"""Axes and colours of all displays."""

from .optional import needed

BLUE, RED, GREEN, GREY = "#30638e", "#d1495b", "#3d8361", "#8d8d8d"


def open_axes(ax, name, n_rows=0, n_columns=0):
    """The axes, or new ones with room for row and column labels, without top and right
    spines.

    Raises ImportError, which names the display, if matplotlib is not installed.
    """
    plt = needed("matplotlib.pyplot", name, "plot")
    if ax is None:
        width, height = plt.rcParams["figure.figsize"]
        size = max(width, 0.2 * n_columns + 2), max(height, 0.2 * n_rows + 1)
        _, ax = plt.subplots(layout="constrained", figsize=size)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_band(ax, x, scores, **style):
    """Draw means over repeats (last axis) as a line, and the range as a band; returns
    both."""
    (line,) = ax.plot(x, scores.mean(axis=-1), markersize=4, **style)
    low, high = scores.min(axis=-1), scores.max(axis=-1)
    return line, ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)
