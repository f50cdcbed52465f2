"""Displays of values as in scikit-learn; matplotlib is imported only to draw."""

from itertools import cycle

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import check_names, check_numbers
from .._utils.plotting import BLUE, GREY, RED, draw_band, open_axes
from ._curves import value_removal_curve

# More colours cannot be distinguished in one plot.
_MAX_KINDS = 20


def _colors(n_colors):
    """At least two colours, one for each curve or kind of row if there are enough."""
    if n_colors < 3:
        return BLUE, RED
    from matplotlib import colormaps

    return colormaps["tab10" if n_colors <= 10 else "tab20"].colors


class ValueRemovalDisplay:
    """Test score against the fraction of rows removed in the order of their values.

    Use `from_estimator` to refit an estimator.

    Parameters
    ----------
    curves : Bunch or dict of str to Bunch
        Results of `value_removal_curve`, or of `value_addition_curve`, by the name in
        the legend, such as the method whose values they are for. The random baseline is
        that of the first curve that has one.
    score_name : str, default="score"
        Label of the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        Means over repeats, one line per curve and the baseline last.
    bands_ : list of matplotlib PolyCollection
        Bands from the lowest to the highest repeat, in the order of the lines.

    See Also
    --------
    value_removal_curve : Compute the curves.
    value_addition_curve : Compute the curves of rows that are added.
    ValueDistributionDisplay : Histogram of values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.inspection import ValueRemovalDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> valuer = KNNShapleyValuer()
    >>> values = valuer.fit(X[::2], y[::2], X_val=X[1::4], y_val=y[1::4]).values_
    >>> display = ValueRemovalDisplay.from_estimator(
    ...     GaussianNB(),
    ...     X[::2],
    ...     y[::2],
    ...     values,
    ...     X_test=X[3::4],
    ...     y_test=y[3::4],
    ...     fractions=[0, 0.2, 0.4],
    ...     n_repeats=2,
    ...     random_state=0,
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
        score_name=None,
        ax=None,
        **options,
    ):
        """Refit the estimator as rows are removed in both orders, and draw the scores.

        Parameters
        ----------
        estimator : estimator
            Any classifier or regressor.
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels or targets of the training rows.
        values : array-like of shape (n_samples,) or (n_groups,)
            Values of the training rows, or of the groups if `groups` is passed.
        X_test, y_test : array-likes
            Test rows, which must not have been used to compute the values.
        score_name : str, default=None
            Label of the vertical axis; None means `scoring` if it is a string, else
            "score".
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.
        **options : dict
            Further arguments of `value_removal_curve`, such as `fractions` and
            `scoring`, but not `first`, since both orders are drawn.

        Returns
        -------
        display : ValueRemovalDisplay
            The drawn display.
        """
        data = (estimator, X, y, values, X_test, y_test)
        lowest_first = value_removal_curve(*data, **options, first="lowest")
        # One random baseline is enough.
        options_of_highest = {**options, "first": "highest", "baseline": False}
        highest_first = value_removal_curve(*data, **options_of_highest)
        curves = {
            "lowest value first": lowest_first,
            "highest value first": highest_first,
        }
        if score_name is None:
            scoring = options.get("scoring")
            score_name = scoring if isinstance(scoring, str) else "score"
        return cls(curves, score_name=score_name).plot(ax)

    def plot(self, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        display : ValueRemovalDisplay
            The display itself.
        """
        ax = open_axes(ax, type(self).__name__)
        curves = self.curves
        if hasattr(curves, "scores"):
            curves = {f"{curves.first} value first": curves}
        self.lines_ = []
        self.bands_ = []
        for (name, curve), color in zip(curves.items(), cycle(_colors(len(curves)))):
            self._draw(ax, curve.fractions, curve.scores, name, marker="o", color=color)

        curves = list(curves.values())
        baselines = [curve for curve in curves if curve.random_scores is not None]
        if baselines:
            fractions = baselines[0].fractions
            scores = baselines[0].random_scores
            self._draw(ax, fractions, scores, "at random", color=GREY, linestyle="--")

        unit = "rows" if curves[0].n_groups is None else "groups"
        action = "added" if curves[0].kind == "addition" else "removed"
        xlabel = f"fraction of {unit} {action}"
        if len({curve.first for curve in curves}) == 1:
            xlabel += f", {curves[0].first} value first"
        ax.set(xlabel=xlabel, ylabel=self.score_name)
        ax.legend(frameon=False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _draw(self, ax, fractions, scores, label, **style):
        line, band = draw_band(ax, fractions, scores.T, label=label, **style)
        self.lines_.append(line)
        self.bands_.append(band)


class ValueDistributionDisplay:
    """Histogram of values, optionally one of area 1 for each kind of row.

    Use `from_values`, or `from_estimator` for a fitted valuer or filter.

    Parameters
    ----------
    values : ndarray of shape (n_samples,) or (n_groups,)
        Values of the rows, or of groups.
    by : ndarray of the same shape, default=None
        Kind of every row or group; each kind has its own histogram.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bars_ : dict
        Bars of each kind; without `by` the only key is None.
    zero_line_ : matplotlib Line2D
        Vertical line at zero, between harmful and helpful rows.

    See Also
    --------
    ValueRemovalDisplay : Effect of removing the rows on a model.
    noisy_label_auc : Measure how well low values detect noisy rows.

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
            Fitted estimator with `values_`, or a pipeline or search that ends in one.
            For a filter, dropped and kept rows are the default kinds.
        by : array-like of shape (n_samples,) or (n_groups,), default=None
            Kind of every entry of `values_`, such as a mask of mislabelled rows. A
            valuer that was fitted with groups has one value per group, a filter one per
            row.
        bins : int, default=50
            Number of bins.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        display : ValueDistributionDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the estimator is no valuer or filter, and does not end in one.
        """
        check_is_fitted(estimator)
        estimator = _with_values(estimator)
        if by is None and hasattr(estimator, "dropped_indices_"):
            by = np.full(len(estimator.values_), "kept", dtype=object)
            by[estimator.dropped_indices_] = "dropped"
        return cls.from_values(estimator.values_, by=by, bins=bins, ax=ax)

    @classmethod
    def from_values(cls, values, *, by=None, bins=50, ax=None):
        """Draw values that are already computed.

        Parameters
        ----------
        values : array-like of shape (n_samples,) or (n_groups,)
            Values of the rows, or of groups.
        by : array-like of the same shape, default=None
            Kind of every row or group, such as a mask of mislabelled rows.
        bins : int, default=50
            Number of bins.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        display : ValueDistributionDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If values contain NaN or infinity, or `by` has another length, missing
            entries or more than 20 kinds.
        """
        values = check_numbers(values, "values")
        if by is not None:
            by = column_or_1d(by)
            if len(by) != len(values):
                raise ValueError(
                    f"by must have an entry per value ({len(values)}). Got {len(by)}."
                )
        return cls(values, by=by).plot(ax, bins=bins)

    def plot(self, ax=None, *, bins=50):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.
        bins : int, default=50
            Number of bins, the same for all kinds.

        Returns
        -------
        display : ValueDistributionDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `by` has missing entries or more than 20 kinds.
        """
        has_kinds = self.by is not None
        if has_kinds:
            kinds, codes = check_names(self.by, "by")
            kinds = kinds.tolist()
        else:
            kinds = [None]
            codes = np.zeros(len(self.values), dtype=np.intp)
        if len(kinds) > _MAX_KINDS:
            raise ValueError(
                f"by must name at most {_MAX_KINDS} kinds of rows: more look alike. "
                f"Got {len(kinds)}."
            )

        ax = open_axes(ax, type(self).__name__)
        edges = np.histogram_bin_edges(self.values, bins, _bin_range(self.values))
        self.bars_ = {}
        for code, (kind, color) in enumerate(zip(kinds, _colors(len(kinds)))):
            _, _, self.bars_[kind] = ax.hist(
                self.values[codes == code],
                edges,
                density=has_kinds,
                color=color,
                alpha=0.7,
                label=str(kind) if has_kinds else None,
            )
        self.zero_line_ = ax.axvline(0, color="0.2", linewidth=0.8)
        ax.set(xlabel="value", ylabel="density" if has_kinds else "count")
        if has_kinds:
            ax.legend(frameon=False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _bin_range(values):
    """Lowest and highest edge of the bins.

    Values that differ only by rounding errors fall into one bin.
    """
    low = values.min()
    high = values.max()
    if high - low > 1e-9 * max(-low, high):
        return low, high
    return low - 0.5, high + 0.5


def _with_values(estimator):
    """The fitted valuer or filter at the end of a pipeline, or of a search."""
    last = estimator
    while isinstance(last, Pipeline) or hasattr(last, "best_estimator_"):
        last = last[-1] if isinstance(last, Pipeline) else last.best_estimator_
    # A property of the class says itself why it has no values.
    if not hasattr(last, "values_") and not hasattr(type(last), "values_"):
        raise ValueError(
            "estimator must have values_, as fitted valuers and filters that drop rows "
            f"have, or end in one. Got {type(last).__name__}."
        )
    return last
