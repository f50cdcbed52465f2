"""Pictures of values, in scikit-learn's Display convention; matplotlib is imported to draw only."""

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import check_names, check_numbers
from .._utils.plotting import BLUE, GREY, RED, open_axes
from ._curves import value_removal_curve

_CURVE_COLORS = {"lowest": BLUE, "highest": RED}
_MANY_KINDS = 20  # more cannot be told apart in one picture


def _span(values):
    """From where to where bins go; values that differ by rounding share one of them."""
    low, high = values.min(), values.max()
    return (low, high) if high - low > 1e-9 * max(-low, high) else (low - 0.5, high + 0.5)


def _colors(n_kinds):
    """A colour a kind."""
    if n_kinds < 3:
        return BLUE, RED
    from matplotlib import colormaps

    return colormaps["tab10" if n_kinds <= 10 else "tab20"].colors


class ValueRemovalDisplay:
    """Test score against the fraction of rows removed, or added, in the order of their values.

    It is best made by `from_estimator`, or from curves at hand by `from_curves`.

    Parameters
    ----------
    curves : list of Bunch
        Of `value_removal_curve` or of `value_addition_curve`; the random baseline is that of the
        first one that has any.
    score_name : str, default="score"
        Name of the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        Mean over repeats, a line a curve and the baseline last.
    bands_ : list of matplotlib PolyCollection
        The lowest to the highest of the repeats, in the order of the lines.

    See Also
    --------
    value_removal_curve : The numbers.
    ValueDistributionDisplay : A histogram of values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.inspection import ValueRemovalDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> values = KNNShapleyValuer().fit(X[::2], y[::2], X_val=X[1::4], y_val=y[1::4]).values_
    >>> display = ValueRemovalDisplay.from_estimator(
    ...     GaussianNB(), X[::2], y[::2], values, X[3::4], y[3::4], fractions=[0, 0.2, 0.4],
    ...     n_repeats=2, random_state=0,
    ... )
    >>> [line.get_label() for line in display.lines_]
    ['lowest value first', 'highest value first', 'at random']
    """

    def __init__(self, curves, *, score_name="score"):
        self.curves = curves
        self.score_name = score_name

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        values,
        X_test,
        y_test,
        *,
        first=("lowest", "highest"),
        fractions=None,
        scoring=None,
        n_repeats=5,
        sample_weight=None,
        n_jobs=None,
        random_state=None,
        score_name=None,
        ax=None,
    ):
        """Refit the estimator as rows are removed, and draw the scores.

        Parameters
        ----------
        estimator : estimator
            Any classifier or regressor.
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        values : array-like of shape (n_samples,)
            Their values.
        X_test, y_test : array-likes
            Rows to score on, which had no part in the values.
        first : str or tuple of str, default=("lowest", "highest")
            The rows removed first; a curve for each.
        fractions, scoring, n_repeats, sample_weight, n_jobs, random_state : optional
            As in `value_removal_curve`.
        score_name : str, default=None
            Name of the vertical axis; None is `scoring`, or "score".
        ax : matplotlib Axes, default=None
            Where to draw; None opens a figure.

        Returns
        -------
        display : ValueRemovalDisplay
            The drawn display.
        """
        curves = [
            value_removal_curve(
                estimator, X, y, values, X_test, y_test, first=name, fractions=fractions,
                scoring=scoring, n_repeats=n_repeats, baseline=place == 0,
                sample_weight=sample_weight, n_jobs=n_jobs, random_state=random_state,
            )
            for place, name in enumerate([first] if isinstance(first, str) else first)
        ]  # fmt: skip
        if score_name is None:
            score_name = scoring if isinstance(scoring, str) else "score"
        return cls.from_curves(curves, score_name=score_name, ax=ax)

    @classmethod
    def from_curves(cls, curves, *, score_name="score", ax=None):
        """Draw curves at hand.

        Parameters
        ----------
        curves : Bunch or list of Bunch
            Of `value_removal_curve`, or of `value_addition_curve`.
        score_name : str, default="score"
            Name of the vertical axis.
        ax : matplotlib Axes, default=None
            Where to draw; None opens a figure.

        Returns
        -------
        display : ValueRemovalDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If curves of both kinds are mixed, two are of the same `first`, or there is none.
        """
        curves = [curves] if isinstance(curves, dict) else list(curves)
        kinds = sorted({curve.kind for curve in curves})
        if len(kinds) != 1:
            raise ValueError(
                "curves must be one or more of the same kind, removal or addition. Got "
                f"{' and '.join(kinds) or 'none'}."
            )
        firsts = [curve.first for curve in curves]
        if len(set(firsts)) < len(firsts):
            raise ValueError(
                "curves must differ in `first`, or they look the same. Got "
                f"{' and '.join(firsts)}. Draw each by ValueRemovalDisplay([curve]).plot(ax, "
                "line_kw={'color': ..., 'label': ...})."
            )
        return cls(curves, score_name=score_name).plot(ax)

    def plot(self, ax=None, *, line_kw=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None opens a figure.
        line_kw : dict, default=None
            Keywords of every line.

        Returns
        -------
        display : ValueRemovalDisplay
            The object itself, with its attributes set.
        """
        ax = open_axes(ax, type(self).__name__)
        self.lines_, self.bands_ = [], []
        for curve in self.curves:
            style = {"color": _CURVE_COLORS[curve.first], "marker": "o", "markersize": 4}
            self._draw(ax, curve, curve.scores, f"{curve.first} value first", style, line_kw)
        for curve in self.curves:
            if curve.random_scores is not None:
                style = {"color": GREY, "linestyle": "--"}
                self._draw(ax, curve, curve.random_scores, "at random", style, line_kw)
                break
        verb = "removed" if self.curves[0].kind == "removal" else "added"
        ax.set(xlabel=f"fraction of rows {verb}", ylabel=self.score_name)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax, curve, scores, label, style, line_kw):
        x = curve.fractions
        (line,) = ax.plot(x, scores.mean(axis=0), **{"label": label, **style, **(line_kw or {})})
        band = ax.fill_between(
            x, scores.min(axis=0), scores.max(axis=0), color=line.get_color(), alpha=0.2, lw=0
        )
        self.lines_.append(line)
        self.bands_.append(band)


class ValueDistributionDisplay:
    """Histogram of values, which may tell kinds of rows apart.

    It is best made by `from_values`, or from a fitted valuer or filter by `from_estimator`.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        The values.
    by : ndarray of shape (n_samples,), default=None
        Kind of every row; each kind has its own histogram.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Their figure.
    bars_ : dict
        The bars of every kind; of the kind None without `by`.
    zero_line_ : matplotlib Line2D
        The line between helpful and harmful rows.

    See Also
    --------
    ValueRemovalDisplay : What removing the rows does to a model.
    noisy_label_auc : How well low values find noisy rows.

    Examples
    --------
    >>> from skvalue.inspection import ValueDistributionDisplay
    >>> display = ValueDistributionDisplay.from_values(
    ...     [-0.2, 0.1, 0.1, 0.3], by=["flipped", "clean", "clean", "clean"]
    ... )
    >>> list(display.bars_)
    ['clean', 'flipped']
    """

    def __init__(self, values, *, by=None):
        self.values = values
        self.by = by

    @classmethod
    def from_estimator(cls, estimator, *, by=None, bins=50, ax=None):
        """Draw the values of a fitted valuer or filter.

        Parameters
        ----------
        estimator : estimator
            Fitted, with `values_`. A filter tells the rows it dropped from those it kept.
        by : array-like of shape (n_samples,), default=None
            Kind of every row, such as a mask of mislabelled ones.
        bins : int, default=50
            Number of bins.
        ax : matplotlib Axes, default=None
            Where to draw; None opens a figure.

        Returns
        -------
        display : ValueDistributionDisplay
            The drawn display.
        """
        check_is_fitted(estimator)
        if by is None and hasattr(estimator, "dropped_indices_"):
            by = np.full(len(estimator.values_), "kept", dtype=object)
            by[estimator.dropped_indices_] = "dropped"
        return cls.from_values(estimator.values_, by=by, bins=bins, ax=ax)

    @classmethod
    def from_values(cls, values, *, by=None, bins=50, ax=None):
        """Draw values at hand.

        Parameters
        ----------
        values : array-like of shape (n_samples,)
            The values.
        by : array-like of shape (n_samples,), default=None
            Kind of every row, such as a mask of mislabelled ones.
        bins : int, default=50
            Number of bins.
        ax : matplotlib Axes, default=None
            Where to draw; None opens a figure.

        Returns
        -------
        display : ValueDistributionDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If values hold NaN or infinity, or `by` has another length, lacks names, or has more
            than 20 of them.
        """
        values = check_numbers(values, "values")
        if by is not None:
            by = column_or_1d(by)
            if len(by) != len(values):
                raise ValueError(f"by must have an entry per value ({len(values)}). Got {len(by)}.")
        return cls(values, by=by).plot(ax, bins=bins)

    def plot(self, ax=None, *, bins=50, density=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None opens a figure.
        bins : int, default=50
            Number of bins, the same for all kinds.
        density : bool, default=None
            Whether every kind is scaled to the same area; None does so where there are kinds.

        Returns
        -------
        display : ValueDistributionDisplay
            The object itself, with its attributes set.

        Raises
        ------
        ValueError
            If `by` lacks names, or has more than 20 of them.
        """
        kinds, codes = [None], np.zeros(len(self.values), dtype=np.intp)
        if self.by is not None:
            kinds, codes = check_names(self.by, "by")
            kinds = kinds.tolist()
        if len(kinds) > _MANY_KINDS:
            raise ValueError(
                f"by must name at most {_MANY_KINDS} kinds of rows: no more can be told apart. Got "
                f"{len(kinds)}."
            )
        ax = open_axes(ax, type(self).__name__)
        density = self.by is not None if density is None else density
        edges = np.histogram_bin_edges(self.values, bins, _span(self.values))
        self.bars_ = {}
        for code, (kind, color) in enumerate(zip(kinds, _colors(len(kinds)))):
            *_, self.bars_[kind] = ax.hist(
                self.values[codes == code], edges, density=density, color=color, alpha=0.7,
                label=None if kind is None else str(kind),
            )  # fmt: skip
        self.zero_line_ = ax.axvline(0, color="0.2", linewidth=0.8)
        ax.set(xlabel="value", ylabel="density" if density else "rows")
        if self.by is not None:
            ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
