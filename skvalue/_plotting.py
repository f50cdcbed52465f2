"""What all displays share: axes, and colours."""

BLUE, RED, GREEN, GREY = "#30638e", "#d1495b", "#3d8361", "#8d8d8d"


def open_axes(ax, name):
    """The axes, or new ones, for the display of this name.

    Raises ImportError if matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{name} needs matplotlib to draw: pip install 'skvalue[plot]'."
        ) from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
