"""The picture of finding bad parties; matplotlib is imported to draw only."""

import numpy as np

from .._utils.plotting import BLUE, GREY, RED, open_axes

_COLORS = (BLUE, RED, "#edae49", GREY, "#00798c")


def _draw(ax, x, scores, label, color, line_kw):
    """Mean over repeats (last axis) as a line, their range as a band."""
    style = {"color": color, "marker": "o", "markersize": 4, "label": label, **(line_kw or {})}
    (line,) = ax.plot(x, scores.mean(axis=-1), **style)
    low, high = scores.min(axis=-1), scores.max(axis=-1)
    ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)
    return line


class DetectionDisplay:
    """AUROC of finding bad parties against the size of parties or epsilon, with the limit.

    No method whatever can find them better than the limit, if the guarantee holds.

    Parameters
    ----------
    curves : Bunch or dict of str to Bunch
        Of `detection_curve`; several, by name, must be of the same sizes and guarantees.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        Means over repeats, a line a curve.
    limit_line_ : matplotlib Line2D
        The limit.
    clean_line_ : matplotlib Line2D
        Without noise, of the first curve.

    See Also
    --------
    detection_curve : The numbers.

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
            Where to draw; None opens a figure.
        against : {"sizes", "epsilons"}, default=None
            The horizontal axis; of the other, the curves must have one. None takes the one that
            has several.
        line_kw : dict, default=None
            Keywords of every line of a curve.

        Returns
        -------
        display : DetectionDisplay
            The object itself, with its attributes set.

        Raises
        ------
        ValueError
            If both axes have several points, or `against` names neither.
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
