"""Display of the detection of bad parties; matplotlib is imported only to draw."""

import numpy as np

from .._utils.plotting import BLUE, GREY, RED, open_axes

_COLORS = (BLUE, RED, "#edae49", GREY, "#00798c")


def _draw(ax, x, scores, label, color, line_kw):
    """Draw the mean over repeats (last axis) as a line and their range as a band."""
    style = {"color": color, "marker": "o", "markersize": 4, "label": label, **(line_kw or {})}
    (line,) = ax.plot(x, scores.mean(axis=-1), **style)
    low, high = scores.min(axis=-1), scores.max(axis=-1)
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)
    return line


class DetectionDisplay:
    """AUROC of detecting bad parties, by size of the parties or epsilon, with its limit.

    If the privacy guarantee holds, no method can detect them better than the limit.

    Parameters
    ----------
    curves : Bunch or dict of str to Bunch
        Results of `detection_curve`. Several, by name, must have the same sizes and epsilons.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        Means over repeats, one line per curve.
    limit_line_ : matplotlib Line2D
        Line of the limit.
    clean_line_ : matplotlib Line2D
        Line of the AUROC without noise, of the first curve.

    See Also
    --------
    detection_curve : Compute the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from skvalue.inspection import DetectionDisplay
    >>> curves = Bunch(
    ...     sizes=np.array([8, 32]), epsilons=np.array([1.0]), scores=np.full((2, 1, 3), 0.7),
    ...     limits=np.array([[0.9], [1.0]]), clean_scores=np.ones((2, 3)),
    ... )
    >>> display = DetectionDisplay(curves).plot()
    >>> display.limit_line_.get_ydata().tolist()
    [0.9, 1.0]
    """

    def __init__(self, curves):
        self.curves = curves

    def plot(self, ax=None, *, against=None, line_kw=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.
        against : {"sizes", "epsilons"}, default=None
            Quantity on the horizontal axis; the curves must have a single value of the other one.
            None chooses "epsilons" if there is one size, and "sizes" otherwise.
        line_kw : dict, default=None
            Keyword arguments for the lines of the curves.

        Returns
        -------
        display : DetectionDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are several sizes and several epsilons, or `against` is neither of them.
        """
        curves = self.curves
        if hasattr(curves, "scores"):
            curves = {"with noise": curves}
        first = next(iter(curves.values()))
        if against is None:
            against = "epsilons" if len(first.sizes) == 1 else "sizes"
        if against not in ("sizes", "epsilons"):
            raise ValueError(f"against must be 'sizes' or 'epsilons'. Got {against!r}.")
        over, other = (0, "epsilons") if against == "sizes" else (1, "sizes")
        if len(first[other]) != 1:
            raise ValueError(
                f"curves must have one of {other} to be drawn against {against}. Got "
                f"{len(first[other])}."
            )
        ax = open_axes(ax, type(self).__name__)
        x = first[against]
        self.lines_ = [
            _draw(ax, x, np.take(curve.scores, 0, axis=1 - over), name, color, line_kw)
            for (name, curve), color in zip(curves.items(), _COLORS * 9)
        ]
        limits = np.take(first.limits, 0, axis=1 - over)
        dark = {"color": "0.2", "linewidth": 1.2}
        (self.limit_line_,) = ax.plot(x, limits, "--", label="limit of any method", **dark)
        clean = np.broadcast_to(first.clean_scores.mean(axis=-1), len(x))
        (self.clean_line_,) = ax.plot(x, clean, label="no noise, no privacy", **dark)
        words = {"sizes": "rows of a party", "epsilons": "epsilon"}
        ax.set(xscale="log", xlabel=words[against], ylabel="AUROC of finding bad parties")
        ax.set_xticks(x, [f"{value:g}" for value in x])
        ax.minorticks_off()
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
