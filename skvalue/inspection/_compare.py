"""Several valuers on the same rows: seconds, removal curves, wrong labels found."""

from time import perf_counter

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import Bunch, check_random_state, indexable

from .._utils.checks import check_groups
from .._utils.plotting import GREY, open_axes
from .._utils.sklearn import HasMethods, num_samples, safe_indexing, validate_params
from .._utils.targets import check_task
from ..base import takes_validation_set
from ._curves import value_removal_curve
from ._displays import ValueRemovalDisplay
from ._refits import CONSTRAINTS
from ._scores import check_mask, wrong_label_curve

# Not in the decorator: Sphinx reads no `**` there, and would link no source.
_CONSTRAINTS = CONSTRAINTS | {
    "valuers": [dict],
    "X_val": [*CONSTRAINTS["X"], None],
    "y_val": ["array-like", None],
    "wrong": ["array-like", None],
    "estimator": [HasMethods(["fit"]), None],
    "X_test": [*CONSTRAINTS["X_test"], None],
    "y_test": ["array-like", None],
}


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def compare(
    valuers,
    X,
    y,
    *,
    X_val=None,
    y_val=None,
    wrong=None,
    X_test=None,
    y_test=None,
    estimator=None,
    fractions=None,
    scoring=None,
    n_repeats=5,
    groups=None,
    n_jobs=None,
    random_state=None,
):
    """Fit several valuers on the same rows, and compare what their values are good for.

    Parameters
    ----------
    valuers : dict of str to estimator
        Names and valuers; they are cloned. `skvalue.LabelErrorDetector` is one too.
    X : array-like of shape (n_samples, n_features)
        Rows to value.
    y : array-like of shape (n_samples,)
        Labels or targets of the rows.
    X_val, y_val : array-likes, default=None
        Validation points, for the valuers that take them.
    wrong : array-like of bool of shape (n_samples,) or (n_groups,), default=None
        True for rows, or groups, that are known to be wrong.
    X_test, y_test : array-likes, default=None
        Test rows for the removal curves, which no valuer sees. None means that every
        other validation point is a test row in place of a validation point.
    estimator : estimator, default=None
        The model that is trained without the rows of lowest value; None means
        `LogisticRegression()` for classes and `Ridge()` for other targets.
    fractions, scoring, n_repeats : optional
        As in `value_removal_curve`.
    groups : array-like of shape (n_samples,), default=None
        Group of every row; groups are valued and removed.
    n_jobs : int, default=None
        Number of joblib jobs for the refits of the removal curves.
    random_state : int, RandomState instance or None, default=None
        Controls the order of equal values. The seeds of valuers are their own.

    Returns
    -------
    comparison : Bunch
        ``valuers``, fitted; ``seconds`` of the fits; ``removal``, results of
        `value_removal_curve`; ``detection``, results of `wrong_label_curve`, or None
        without `wrong`: each a dict by the names of the valuers, whose random baseline
        is in the first removal curve. ``correlations``, Spearman's, is of shape
        (n_valuers, n_valuers), with NaN for values that are all equal.

    Raises
    ------
    ValueError
        If there is no valuer, there are neither validation points nor test rows, or the
        lengths of arrays differ.

    See Also
    --------
    ComparisonDisplay : Plot of the curves.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import DataOOBValuer, KNNShapleyValuer
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.inspection import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> labels, flipped = flip_labels(y[::2], 0.1, random_state=0)
    >>> out_of_bag = DataOOBValuer(n_estimators=20, random_state=0)
    >>> comparison = compare(
    ...     {"KNN-Shapley": KNNShapleyValuer(), "Data-OOB": out_of_bag},
    ...     X[::2],
    ...     labels,
    ...     X_val=X[1::2],
    ...     y_val=y[1::2],
    ...     wrong=flipped,
    ...     estimator=GaussianNB(),
    ...     n_repeats=1,
    ...     random_state=0,
    ... )
    >>> {name: bool(curve.auc > 0.9) for name, curve in comparison.detection.items()}
    {'KNN-Shapley': True, 'Data-OOB': True}
    """
    if not valuers:
        raise ValueError(f"valuers must name at least one valuer. Got {valuers!r}.")
    X, y = indexable(X, y)
    if X_test is None:
        if X_val is None or y_val is None:
            raise ValueError(
                "compare needs X_val and y_val, or X_test and y_test. Got neither."
            )
        # Every other validation point becomes a test row.
        (X_val, X_test), (y_val, y_test) = map(_halves, indexable(X_val, y_val))
    if estimator is None:
        has_classes = check_task("auto", y) == "classification"
        estimator = LogisticRegression() if has_classes else Ridge()
    group_names, _ = check_groups(groups, len(y))
    if wrong is not None:
        # Refused before the valuers are fitted.
        n_values = len(y) if group_names is None else len(group_names)
        wrong = check_mask(wrong, "wrong", n_values)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))

    validation = {} if X_val is None else {"X_val": X_val, "y_val": y_val}
    fitted, seconds = _fit_all(valuers, X, y, groups, validation)
    values = {name: valuer.values_ for name, valuer in fitted.items()}

    removal = {}
    for name, values_of_one in values.items():
        removal[name] = value_removal_curve(
            estimator,
            X,
            y,
            values_of_one,
            X_test,
            y_test,
            fractions=fractions,
            scoring=scoring,
            n_repeats=n_repeats,
            # One random baseline is enough for all.
            baseline=not removal,
            groups=groups,
            n_jobs=n_jobs,
            random_state=seed,
        )
    detection = None
    if wrong is not None:
        detection = {
            name: wrong_label_curve(values_of_one, wrong)
            for name, values_of_one in values.items()
        }
    ranks = [rankdata(values_of_one) for values_of_one in values.values()]
    with np.errstate(invalid="ignore"):  # of constant values
        correlations = np.atleast_2d(np.corrcoef(ranks))
    return Bunch(
        valuers=fitted,
        seconds=seconds,
        correlations=correlations,
        removal=removal,
        detection=detection,
    )


def _halves(X):
    """Every other row, and the rest."""
    rows = np.arange(num_samples(X))
    return safe_indexing(X, rows[::2]), safe_indexing(X, rows[1::2])


def _fit_all(valuers, X, y, groups, validation):
    """Fitted clones of valuers and the seconds of their fits, by name."""
    fitted = {}
    seconds = {}
    for name, valuer in valuers.items():
        fit_params = {} if groups is None else {"groups": groups}
        if takes_validation_set(valuer):
            fit_params.update(validation)
        start = perf_counter()
        fitted[name] = clone(valuer).fit(X, y, **fit_params)
        seconds[name] = perf_counter() - start
    return fitted, seconds


class ComparisonDisplay:
    """Removal curves of several valuers, and the wrong labels that each finds.

    Parameters
    ----------
    comparison : Bunch
        Result of `compare`.
    score_name : str, default="score"
        Label of the vertical axis of the removal curves.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Axes of the removal curves, and of the wrong labels found if they are known.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : dict of str to list of matplotlib Line2D
        Lines of each valuer.

    See Also
    --------
    compare : Fit and compare.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import DataOOBValuer, KNNShapleyValuer
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.inspection import ComparisonDisplay, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> labels, flipped = flip_labels(y[::2], 0.1, random_state=0)
    >>> out_of_bag = DataOOBValuer(n_estimators=20, random_state=0)
    >>> comparison = compare(
    ...     {"KNN-Shapley": KNNShapleyValuer(), "Data-OOB": out_of_bag},
    ...     X[::2],
    ...     labels,
    ...     X_val=X[1::2],
    ...     y_val=y[1::2],
    ...     wrong=flipped,
    ...     estimator=GaussianNB(),
    ...     n_repeats=1,
    ...     random_state=0,
    ... )
    >>> display = ComparisonDisplay(comparison).plot()
    >>> list(display.lines_), len(display.axes_)
    (['KNN-Shapley', 'Data-OOB'], 2)
    """

    def __init__(self, comparison, *, score_name="score"):
        self.comparison = comparison
        self.score_name = score_name

    def plot(self, axes=None):
        """Draw the display.

        Parameters
        ----------
        axes : list of matplotlib Axes, default=None
            Axes to draw on, one without known wrong labels, else two; None creates a
            new figure.

        Returns
        -------
        display : ComparisonDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are too few axes.
        """
        removal = self.comparison.removal
        detection = self.comparison.detection
        n_axes = 1 if detection is None else 2
        if axes is None:
            figure = open_axes(None, type(self).__name__).figure
            figure.clear()
            figure.set_size_inches(5.5 * n_axes, 4.4)
            axes = [figure.add_subplot(1, n_axes, i + 1) for i in range(n_axes)]
        if len(axes) < n_axes:
            raise ValueError(f"axes must have {n_axes} entries. Got {len(axes)}.")

        display = ValueRemovalDisplay(removal, score_name=self.score_name).plot(axes[0])
        # The baseline, the last line of the display, is no valuer's.
        self.lines_ = {name: [line] for name, line in zip(removal, display.lines_)}
        if detection is not None:
            self._plot_detection(open_axes(axes[1], type(self).__name__))
        self.axes_ = list(axes[:n_axes])
        self.figure_ = axes[0].figure
        return self

    def _plot_detection(self, ax):
        for name, curve in self.comparison.detection.items():
            self.lines_[name] += ax.plot(
                curve.inspected,
                curve.found,
                label=f"{name} (AUROC {curve.auc:.2f})",
                color=self.lines_[name][0].get_color(),
            )
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", label="at random")
        ax.set(xlabel="fraction of rows inspected, lowest value first")
        ax.set(ylabel="fraction of wrong labels found")
        ax.legend(frameon=False)
