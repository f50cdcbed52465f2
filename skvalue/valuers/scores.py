"""Scores of any attribution library as the values of a valuer."""

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .._utils.parallel import tiles
from .._utils.sklearn import StrOptions
from ..base import BaseInSampleValuer, BaseValuer, Capabilities, mean_over_points

_BLOCK = 2**22  # numbers that are converted to float64 at a time


def score_moments(scores, weights, groups=None, n_groups=0):
    """Sums over points of ``w x``, ``w^2 x`` and ``w^2 x^2``, x of a row or group.

    From scores (n_points, n_rows), weights w of the points, and the group of every row.

    >>> scores, weights = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 0.5])
    >>> score_moments(scores, weights, groups=[0, 0], n_groups=1).tolist()
    [[5.0], [2.5], [14.5]]
    """
    n = scores.shape[1]
    if groups is not None:
        cells = (np.arange(n), groups)
        members = sparse.csr_array((np.ones(n), cells), (n, n_groups))
    total = 0.0
    for tile in tiles(len(scores), max(1, _BLOCK // n)):
        x = scores[tile].astype(np.float64)
        if groups is not None:
            x = x @ members
        w = weights[tile]
        total = total + np.array([w @ x, w**2 @ x, w**2 @ x**2])
    return total


class ScoresValuer(BaseInSampleValuer):
    """Values from the scores of another library: their means over validation points.

    Attribution libraries (TRAK, influence functions, representations) return a matrix
    with the score of each training row at each validation point. With it, this valuer
    has what all valuers have: values, standard errors and tests over the validation
    points, contributions, groups, and use in filters.

    Parameters
    ----------
    scores : array-like of shape (n_validation, n_samples) or callable
        The scores: higher is better. (The score of a row is the estimated increase of
        the utility by the row; if a library returns that of the loss, pass minus its
        scores.) An array needs X_val and y_val in `fit`, in the order of its rows. A
        callable ``scores(X, y, X_val, y_val)`` returns such a matrix, of the players
        and the held-out rows of each split if rows are held out.
    task : {"auto", "classification", "regression"}, default="auto"
        What y holds; "auto" is regression if y is continuous.
    cv : int, splitter or "leave-one-out", default=5
        Which rows are held out in turn, if `scores` is a callable and there is no
        validation set.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`: means of the scores over the
        validation points; those of a group are summed over its rows.
    utility_ : float
        Sum of the values: the utility of all rows in the linear datamodel that the
        scores define.
    empty_utility_ : float
        0, the utility of no rows in that datamodel.
    validation_error_ : ndarray of the same shape as `values_`
        Standard errors over the sampling of the validation points; needs X_val in
        `fit`.
    classes_ : ndarray of shape (n_classes,)
        The labels; not set for regression.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    skvalue.inspection.linear_datamodeling_score : Whether the scores predict what
        retraining does.

    Notes
    -----
    X is passed to a callable as it is, and only its number of rows is checked for an
    array: rows of any kind are taken, also the numbers of the rows as a column.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import ScoresValuer
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), [0, 1, 1]
    >>> valuer = ScoresValuer([[0.5, -0.5, 0.0], [0.5, 0.5, -1.0]])
    >>> valuer.fit(X, y, X_val=[[0.1], [1.9]], y_val=[0, 1]).values_
    array([ 0.5,  0. , -0.5])
    >>> valuer.contributions(2).contributions
    array([ 0. , -0.5])
    """

    _parameter_constraints: dict = {
        "scores": ["array-like", callable],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
    }

    def __init__(self, scores, *, task="auto", cv: object = 5):
        self.scores = scores
        self.task = task
        self.cv = cv

    @property
    def _capabilities(self):
        return Capabilities(
            regression=True, task=self.task, any_rows=True, squares=False
        )

    def _value(self, problem, run):
        if not callable(self.scores) and not problem.has_validation_set:
            raise ValueError(
                "scores must be a callable if no X_val and y_val are passed: an array "
                f"has one row per validation point. Got {type(self.scores).__name__}."
            )
        of_splits = []
        with run.steps(len(problem.splits), "validation points evaluated") as done:
            for number, split in enumerate(problem.splits):
                scores = self._scores_at(problem, split)
                values, *_ = score_moments(scores, split.points.weights)
                totals = scores.sum(axis=1, dtype=np.float64)
                of_splits.append((number, values, totals, scores))
                done()
        return mean_over_points(problem, of_splits, empty_utility=0.0)

    def _scores_at(self, problem, split):
        """The scores of the players of a split at its points, checked."""
        X, y = problem.rows(split)
        points = split.points
        scores = self.scores
        if callable(scores):
            scores = scores(X, problem.labels(y), points.X, problem.labels(points.y))
        scores = check_array(
            scores, dtype=[np.float64, np.float32], input_name="scores"
        )
        shape = (len(points), len(y))
        if scores.shape != shape:
            raise ValueError(
                "scores must have one row per validation point and one column per row "
                f"of X, {shape}. Got shape {scores.shape}."
            )
        return scores

    # Other valuers with these methods value unseen rows too, which scores alone cannot.
    validation_error_ = BaseValuer.validation_error_
    harmful = BaseValuer.harmful
    contributions = BaseValuer.contributions

    def _point_values(self, fitted, number, players):
        (scores,) = fitted.statistic[number]
        return scores[:, players].sum(axis=1, dtype=np.float64)

    def _point_moments(self, fitted):
        problem = fitted.problem
        (scores,) = fitted.statistic[0]
        weights = problem.splits[0].points.weights
        moments = score_moments(scores, weights, problem.groups, problem.n_players)
        return moments[1:]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        for name in ("sparse", "allow_nan", "string", "categorical", "three_d_array"):
            setattr(tags.input_tags, name, True)
        return tags
