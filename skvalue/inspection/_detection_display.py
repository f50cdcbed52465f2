"""Display of the detection of bad parties; matplotlib is imported only to draw."""

import numpy as np

from .._utils.plotting import BLUE, GREY, RED, draw_band, open_axes

_COLORS = (BLUE, RED, "#edae49", GREY, "#00798c")


class DetectionDisplay:
    """AUROC of detecting bad parties, by size of the parties or epsilon, with its limit.

    It is drawn against epsilon if there is one size, and against the size otherwise.

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

    def plot(self, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        display : DetectionDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are several sizes and several epsilons.
        """
        curves = self.curves
        if hasattr(curves, "scores"):
            curves = {"with noise": curves}
        first = next(iter(curves.values()))
        by_size = len(first.sizes) > 1
        if by_size and len(first.epsilons) > 1:
            raise ValueError(
                f"curves must have one size or one epsilon. Got {len(first.sizes)} and "
                f"{len(first.epsilons)}."
            )
        ax = open_axes(ax, type(self).__name__)
        x, label = (first.sizes, "rows of a party") if by_size else (first.epsilons, "epsilon")
        one = (slice(None), 0) if by_size else 0
        self.lines_ = [
            draw_band(ax, x, curve.scores[one], color=color, marker="o", label=name)[0]
            for (name, curve), color in zip(curves.items(), _COLORS * 9)
        ]
        limits = first.limits[one]
        dark = {"color": "0.2", "linewidth": 1.2}
        (self.limit_line_,) = ax.plot(x, limits, "--", label="limit of any method", **dark)
        clean = np.broadcast_to(first.clean_scores.mean(axis=-1), len(x))
        (self.clean_line_,) = ax.plot(x, clean, label="no noise, no privacy", **dark)
        ax.set(xscale="log", xlabel=label, ylabel="AUROC of finding bad parties")
        ax.set_xticks(x, [f"{value:g}" for value in x])
        ax.minorticks_off()
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
