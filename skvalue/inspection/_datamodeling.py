"""The linear datamodeling score: whether sums of values predict retraining."""

from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.base import is_classifier
from sklearn.utils import (
    Bunch,
    check_array,
    check_random_state,
    column_or_1d,
    indexable,
)

from .._utils.checks import (
    check_groups,
    exact_integers,
    redact_errors,
    refuse_pairwise,
)
from .._utils.plotting import BLUE, open_axes
from .._utils.sklearn import Interval, validate_params
from ..games import check_scorer
from ._refits import CONSTRAINTS, Refits, draw_seeds


def minus_loss(model, X, y):
    """Log-probability of each label, or minus the squared error of each target."""
    if not is_classifier(model):
        return -((column_or_1d(y) - column_or_1d(model.predict(X))) ** 2)
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            "estimator must have predict_proba, or scoring must be given, for the "
            f"score of a classifier. Got {model!r}."
        )
    probabilities = model.predict_proba(X)
    columns = np.searchsorted(model.classes_, y)
    of_label = probabilities[np.arange(len(y)), columns]
    return np.log(np.maximum(of_label, np.finfo(np.float64).tiny))


def rank_correlations(predicted, changes):
    """Spearman correlation of each row of two arrays; zero if either is constant."""
    predicted = _centered_ranks(predicted)
    changes = _centered_ranks(changes)
    norms = np.sqrt((predicted**2).sum(axis=-1) * (changes**2).sum(axis=-1))
    return (predicted * changes).sum(axis=-1) / np.where(norms > 0, norms, 1.0)


def _centered_ranks(values):
    ranks = rankdata(values, axis=-1)
    return ranks - ranks.mean(axis=-1, keepdims=True)


def jackknife_error(predicted, changes):
    """Standard error of the mean of the rank correlations over the draw of the subsets.

    The jackknife: ``sqrt((m - 1) / m sum_s (theta_s - mean theta)^2)``, where theta_s
    is the mean without subset s of m. Both arrays are of shape (n_scores, n_subsets).
    """
    n_subsets = predicted.shape[-1]
    means = np.empty(n_subsets)
    for s in range(n_subsets):
        correlations = rank_correlations(
            np.delete(predicted, s, axis=-1), np.delete(changes, s, axis=-1)
        )
        means[s] = correlations.mean()
    deviations = means - means.mean()
    return float(np.sqrt((n_subsets - 1) / n_subsets * (deviations**2).sum()))


# Not in the decorator: Sphinx reads no `**` there, and would link no source.
_CONSTRAINTS = CONSTRAINTS | {
    "X_val": CONSTRAINTS["X"],
    "y_val": CONSTRAINTS["y"],
    "n_subsets": [Interval(Integral, 3, None, closed="left")],
    "fraction": [Interval(Real, 0, 1, closed="neither")],
}


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def linear_datamodeling_score(
    values,
    estimator,
    X,
    y,
    X_val,
    y_val,
    *,
    n_subsets=50,
    fraction=0.5,
    scoring=None,
    groups=None,
    n_jobs=None,
    random_state=None,
):
    """Linear datamodeling score (LDS): whether sums of values predict retraining.

    A model is trained again without each of several random subsets of the rows. The
    score is the Spearman correlation, over these subsets, of the sum of the values of
    the removed rows with the decrease of the utility: 1 if values put all subsets into
    the right order, about 0 for values that predict nothing. With one value per
    validation point and row, it is the mean of the correlations at the validation
    points.

    Parameters
    ----------
    values : array-like of shape (n_samples,) or (n_validation, n_samples)
        Values of the training rows, higher is better, for the utility of the whole
        validation set, or for that of each validation point. With `groups`, values of
        the groups in sorted order.
    estimator : estimator
        Any classifier or regressor; it is trained without the rows as it is. A penalty
        that is added to a sum of losses, such as that of `LogisticRegression`, then is
        relatively larger.
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels or targets of the training rows.
    X_val : array-like of shape (n_validation, n_features)
        Validation points.
    y_val : array-like of shape (n_validation,)
        Labels or targets of the validation points.
    n_subsets : int, default=50
        Number of subsets, and of fits besides that on all rows.
    fraction : float, default=0.5
        Fraction of the rows, or of the groups, in each removed subset: at least one,
        and at most all but one.
    scoring : str or callable, default=None
        The utility. None is minus the loss: the mean log-probability of the labels, or
        minus the mean squared error. Else a scorer, or ``scoring(estimator, X_val,
        y_val)``, which for values of shape (n_validation, n_samples) returns one number
        per validation point.
    groups : array-like of shape (n_samples,), default=None
        Group of every row. Whole groups are then removed.
    n_jobs : int, default=None
        Number of joblib jobs for the fits.
    random_state : int, RandomState instance or None, default=None
        Controls the subsets, and the seeds of the estimator, the same ones for all
        fits.

    Returns
    -------
    result : Bunch
        ``score``, the linear datamodeling score; ``score_error``, its standard error
        over the draw of the subsets (jackknife); ``scores``, the correlation at each
        validation point, or that of the validation set, of shape (1,); ``predicted``
        and ``changes`` of shape (n_scores, n_subsets), the sums of the values of the
        removed rows and the decreases of the utility; ``removed``, a bool array of
        shape (n_subsets, n_samples) or (n_subsets, n_groups).

    Raises
    ------
    ValueError
        If lengths or shapes differ, values contain NaN or infinity, y_val has a label
        that y lacks, or the utility is not one number, or one per validation point, for
        each model.

    See Also
    --------
    LinearDatamodelingDisplay : Plot of the predicted and of the actual changes.
    value_removal_curve : Scores as the rows of the lowest or highest value are removed.

    Notes
    -----
    A correlation is taken as 0 where predictions or changes are the same for all
    subsets.

    References
    ----------
    S. M. Park, K. Georgiev, A. Ilyas, G. Leclerc, A. Madry: "TRAK: Attributing Model
    Behavior at Scale", ICML 2023, Definition 2.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.inspection import linear_datamodeling_score
    >>> X, y = load_iris(return_X_y=True)
    >>> valuer = KNNShapleyValuer().fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    >>> result = linear_datamodeling_score(
    ...     valuer.values_,
    ...     GaussianNB(),
    ...     X[::2],
    ...     y[::2],
    ...     X_val=X[1::2],
    ...     y_val=y[1::2],
    ...     n_subsets=20,
    ...     random_state=0,
    ... )
    >>> result.scores.shape, result.predicted.shape
    ((1,), (1, 20))
    >>> result.removed.sum(axis=1).tolist()[:3]
    [38, 38, 38]
    """
    X, y = indexable(X, y)
    X_val, y_val = indexable(X_val, y_val)
    y = column_or_1d(exact_integers(y))
    y_val = column_or_1d(exact_integers(y_val))
    group_names, players = check_groups(groups, len(y))
    if group_names is None:
        players = np.arange(len(y))
    n_players = int(players.max()) + 1
    unit = "row" if group_names is None else "group"
    values = _check_values(values, n_players, len(y_val), unit)
    refuse_pairwise(estimator)
    classes = _check_classes(estimator, y, y_val)

    # Each line of `removed` is a subset of the players.
    rng = check_random_state(random_state)
    n_removed = int(np.clip(round(fraction * n_players), 1, n_players - 1))
    removed = np.zeros((n_subsets, n_players), dtype=bool)
    for subset in removed:
        subset[rng.permutation(n_players)[:n_removed]] = True

    utilities = _utilities_of_fits(
        Refits(
            estimator=estimator,
            X=X,
            y=y,
            X_test=X_val,
            y_test=y_val,
            classes=classes,
            scorer=_make_scorer(estimator, scoring, classes),
        ),
        seeds=draw_seeds(estimator, rng),
        removed_rows=removed[:, players],
        is_mean=values.ndim == 1,
        n_jobs=n_jobs,
    )
    _check_utilities(utilities, values.shape, len(y_val))

    predicted = np.atleast_2d(values) @ removed.T.astype(np.float64)
    changes = (utilities[0] - utilities[1:]).T
    scores = rank_correlations(predicted, changes)
    return Bunch(
        score=float(scores.mean()),
        score_error=jackknife_error(predicted, changes),
        scores=scores,
        predicted=predicted,
        changes=changes,
        removed=removed,
    )


def _check_values(values, n_players, n_points, unit):
    """The values as float64, of shape (n_players,) or (n_points, n_players)."""
    with redact_errors("values"):
        values = check_array(
            values, ensure_2d=False, dtype=np.float64, input_name="values"
        )
    if values.shape not in ((n_players,), (n_points, n_players)):
        raise ValueError(
            f"values must have one entry per {unit}, {(n_players,)}, or one per "
            f"validation point and {unit}, {(n_points, n_players)}. Got shape "
            f"{values.shape}."
        )
    return values


def _check_classes(estimator, y, y_val):
    """Classes of y, which are all of those of y_val; None for a regression."""
    if not is_classifier(estimator):
        return None
    classes = np.unique(y)
    if not np.isin(y_val, classes).all():
        unseen = np.setdiff1d(y_val, classes).tolist()
        raise ValueError(f"y_val must hold only labels that y has. Got {unseen[:5]}.")
    return classes


def _make_scorer(estimator, scoring, classes):
    """Function (model, X, y) -> utility, one number or one per validation point."""
    if scoring is None:
        return minus_loss
    # A function is not wrapped in a scorer, which may return one number only.
    if callable(scoring):
        return scoring
    return check_scorer(estimator, scoring, None, classes)


def _utilities_of_fits(refits, seeds, removed_rows, is_mean, n_jobs):
    """Utilities (n_subsets + 1, n_scores) of fits to all rows, and without each subset.

    `removed_rows` (n_subsets, n_samples) has the rows of the subsets. If `is_mean`, the
    utility is the mean over validation points.
    """
    n_rows = removed_rows.shape[1]
    rows_by_fit = [np.arange(n_rows)]
    rows_by_fit += [np.flatnonzero(~is_removed) for is_removed in removed_rows]
    utilities = Parallel(n_jobs=n_jobs)(
        delayed(refits.score)(seeds, rows) for rows in rows_by_fit
    )
    if is_mean:
        utilities = [np.mean(utility) for utility in utilities]
    return np.array(utilities, dtype=np.float64).reshape(len(rows_by_fit), -1)


def _check_utilities(utilities, shape_of_values, n_points):
    n_scores = 1 if len(shape_of_values) == 1 else n_points
    if utilities.shape[1] != n_scores:
        raise ValueError(
            "scoring must return one number per validation point for values of shape "
            f"{shape_of_values}. Got {utilities.shape[1]} for {n_points} points."
        )
    if not np.isfinite(utilities).all():
        raise ValueError("scoring must return finite numbers. Got NaN or infinity.")


class LinearDatamodelingDisplay:
    """Predicted against actual changes of the utility, as rows are removed.

    For values of each validation point: histogram of the scores of the points.

    Parameters
    ----------
    result : Bunch
        Result of `linear_datamodeling_score`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    points_ : matplotlib PathCollection
        One point per subset; None for values of each validation point.
    bars_ : matplotlib BarContainer
        Histogram of the scores; None for values of the whole validation set.
    mean_line_ : matplotlib Line2D
        Vertical line at the mean of the scores; None like the bars.

    See Also
    --------
    linear_datamodeling_score : Compute the score.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from skvalue.inspection import LinearDatamodelingDisplay
    >>> result = Bunch(
    ...     score=1.0,
    ...     score_error=0.0,
    ...     scores=np.ones(1),
    ...     predicted=np.array([[0.1, 0.2, 0.3]]),
    ...     changes=np.array([[0.1, 0.4, 0.5]]),
    ... )
    >>> LinearDatamodelingDisplay(result).plot().ax_.get_title()
    'LDS = 1.00 ± 0.00'
    """

    def __init__(self, result):
        self.result = result

    def plot(self, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        display : LinearDatamodelingDisplay
            The display itself.
        """
        ax = open_axes(ax, type(self).__name__)
        result = self.result
        self.points_ = None
        self.bars_ = None
        self.mean_line_ = None
        if len(result.scores) == 1:
            self.points_ = ax.scatter(
                result.predicted[0], result.changes[0], s=16, color=BLUE
            )
            ax.set(xlabel="sum of the values of the removed rows")
            ax.set(ylabel="decrease of the utility")
        else:
            edges = np.linspace(min(0.0, result.scores.min()), 1.0, 21)
            _, _, self.bars_ = ax.hist(result.scores, edges, color=BLUE, alpha=0.7)
            self.mean_line_ = ax.axvline(result.score, color="0.2", linewidth=1.2)
            ax.set(xlabel="rank correlation at a validation point")
            ax.set(ylabel="validation points")
        ax.set_title(f"LDS = {result.score:.2f} ± {result.score_error:.2f}")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
