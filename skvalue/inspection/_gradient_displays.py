"""Pictures of what noise on gradients does; matplotlib is imported to draw only."""

import numpy as np

from .._utils.plotting import BLUE, GREY, RED, open_axes

__all__ = ["ClosenessDisplay", "DetectionDisplay", "UncertaintyDisplay"]

_COLORS = (BLUE, RED, "#edae49", GREY, "#00798c")


def _draw(ax, x, scores, label, color, line_kw, **style):
    """Mean over repeats (last axis) as a line, their range as a band."""
    style = {"color": color, "marker": "o", "markersize": 4, "label": label, **style}
    (line,) = ax.plot(x, scores.mean(axis=-1), **{**style, **(line_kw or {})})
    ax.fill_between(
        x, scores.min(axis=-1), scores.max(axis=-1), color=line.get_color(), alpha=0.2, lw=0
    )
    return line


class UncertaintyDisplay:
    """Uncertainty of values against the number of permutations, a line a kind of noise.

    Parameters
    ----------
    curves : Bunch
        Of `uncertainty_curve`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        Means over repeats, in the order of the curves.

    See Also
    --------
    uncertainty_curve : The numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from skvalue.inspection import UncertaintyDisplay
    >>> numbers = {"i.i.d.": np.array([[1.0, 2.0]]), "correlated": np.array([[1.0, 0.5]])}
    >>> curves = Bunch(n_permutations=[10, 20], uncertainty=numbers, mean_value=numbers)
    >>> [line.get_label() for line in UncertaintyDisplay(curves).plot().lines_]
    ['i.i.d.', 'correlated']
    """

    def __init__(self, curves):
        self.curves = curves

    def plot(self, ax=None, *, what="uncertainty", line_kw=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None opens a figure.
        what : {"uncertainty", "mean_value"}, default="uncertainty"
            What is on the vertical axis; uncertainty has a logarithmic one.
        line_kw : dict, default=None
            Keywords of every line.

        Returns
        -------
        display : UncertaintyDisplay
            The object itself, with its attributes set.
        """
        if what not in ("uncertainty", "mean_value"):
            raise ValueError(f"what must be 'uncertainty' or 'mean_value'. Got {what!r}.")
        ax = open_axes(ax, type(self).__name__)
        self.lines_ = [
            _draw(ax, self.curves.n_permutations, numbers.T, name, color, line_kw)
            for (name, numbers), color in zip(self.curves[what].items(), _COLORS * 9)
        ]
        if what == "uncertainty":
            ax.set(yscale="log", ylabel="variance of a value / its size")
        else:
            ax.axhline(0, color="0.2", linewidth=0.8)
            ax.set(ylabel="mean value")
        ax.set(xlabel="permutations, each with a release")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ClosenessDisplay:
    """Closeness of what is stepped along to clean gradients, permutation by permutation.

    Parameters
    ----------
    curves : dict of str to Bunch
        Of `release_closeness`, by name.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        The lines, in the order of the curves.

    See Also
    --------
    release_closeness : The numbers.

    Examples
    --------
    >>> from skvalue.inspection import ClosenessDisplay, release_closeness
    >>> curves = {name: release_closeness(20, noise=name) for name in ("iid", "correlated")}
    >>> [line.get_label() for line in ClosenessDisplay(curves).plot().lines_]
    ['iid', 'correlated']
    """

    def __init__(self, curves):
        self.curves = curves

    def plot(self, ax=None, *, what="cosine", line_kw=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None opens a figure.
        what : {"cosine", "distance"}, default="cosine"
            What is on the vertical axis; distances have a logarithmic one.
        line_kw : dict, default=None
            Keywords of every line.

        Returns
        -------
        display : ClosenessDisplay
            The object itself, with its attributes set.
        """
        if what not in ("cosine", "distance"):
            raise ValueError(f"what must be 'cosine' or 'distance'. Got {what!r}.")
        ax = open_axes(ax, type(self).__name__)
        self.lines_ = []
        for (name, curve), color in zip(self.curves.items(), _COLORS * 9):
            x = np.arange(1, len(curve[what]) + 1)
            (line,) = ax.plot(x, curve[what], **{"color": color, "label": name, **(line_kw or {})})
            self.lines_.append(line)
        if what == "distance":
            ax.set(yscale="log", ylabel="distance from the clean gradient")
        else:
            ax.set(ylabel="cosine with the clean gradient")
        ax.set(xlabel="permutation")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


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
        (self.limit_line_,) = ax.plot(
            x, limits, linestyle="--", label="limit of any method", **dark
        )
        clean = np.broadcast_to(first.clean_scores.mean(axis=-1), len(x))
        (self.clean_line_,) = ax.plot(x, clean, label="no noise, no privacy", **dark)
        words = {"sizes": "rows of a party", "epsilons": "epsilon"}
        ax.set(xscale="log", xlabel=words[against], ylabel="AUROC of finding bad parties")
        ax.set_xticks(x, [f"{value:g}" for value in x])
        ax.minorticks_off()
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
