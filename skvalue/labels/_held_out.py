"""What models that have not seen a row say about its label or target."""

import warnings

import numpy as np
from scipy.ndimage import median_filter
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold

from .._utils.parallel import ordered_map
from ..base import rows_at
from ..exceptions import ParameterError

_N_TREES = 100

# The log loss does not grow below this probability.
_MIN_PROBABILITY = 1e-3

# Rows of nearest predictions, of whose residuals the median is the spread.
_SPREAD_ROWS = 101

# Smallest spread, as a fraction of that of all rows.
_MIN_SPREAD = 0.05

# Weights of the first of two models that are mixed.
_MIXTURE_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)


def default_models(is_classifier, seed, X=None):
    """The trees and the linear model, by name; they need scaled columns.

    For regression trees are boosted on the absolute error, which a few wrong targets do
    not bend; boosting takes no sparse matrix `X`, for which they are a forest.
    """
    options = {"min_samples_leaf": 5, "random_state": seed}
    if is_classifier:
        return {
            "forest": RandomForestClassifier(_N_TREES, **options),
            "logistic": LogisticRegression(max_iter=200),
        }
    if issparse(X):
        return {"forest": RandomForestRegressor(_N_TREES, **options), "ridge": Ridge()}
    boosting = HistGradientBoostingRegressor(loss="absolute_error", random_state=seed)
    return {"boosting": boosting, "ridge": Ridge()}


def make_folds(cv, y, groups, is_classifier, seed):
    """Splits into rows to train on and rows to predict; each row is predicted once.

    `groups` are numbers from 0 in the order of the first rows; a group is on one side
    of each split. Groups are stratified by the label of their first row.
    """
    _, first_rows = np.unique(groups, return_index=True)
    n_groups = len(first_rows)
    n_splits = min(int(cv), n_groups)
    splitter = KFold
    if is_classifier:
        _refuse_lone_classes(y, groups)
        _, counts = np.unique(y[first_rows], return_counts=True)
        # The first rows may be of as many classes as there are groups.
        if counts.max() > 1:
            splitter = StratifiedKFold
            n_splits = min(n_splits, counts.max())
    if n_splits < 2:
        raise ParameterError(
            "y",
            "must have two rows that are no copies of each other. Got "
            f"{len(y)} rows, all alike.",
        )

    splitter = splitter(n_splits, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Of small classes: the detector does not list labels that a fold lacks.
        warnings.simplefilter("ignore", UserWarning)
        test_groups = [test for _, test in splitter.split(first_rows, y[first_rows])]
    fold_of_group = np.empty(n_groups, dtype=np.intp)
    for fold, test in enumerate(test_groups):
        fold_of_group[test] = fold
    fold_of_row = fold_of_group[groups]
    return [
        (np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold))
        for fold in range(n_splits)
    ]


def _refuse_lone_classes(y, groups):
    """Refuse labels none of which is in two groups: no model could learn of them."""
    classes, codes = np.unique(y, return_inverse=True)
    of_groups = np.unique(np.column_stack([groups, codes]), axis=0)
    n_groups_of_class = np.bincount(of_groups[:, 1])
    if n_groups_of_class.max() < 2:
        raise ParameterError(
            "y",
            "must have a class with two rows that are no copies of each other and, if "
            "there are groups, not of the same: each row is predicted by models that "
            f"have not seen its group. Got {len(classes)} classes of {len(y)} rows, "
            "none of them such.",
        )


def predict_fold(model, X, y, train, test, classes):
    """Predictions of the test rows by a model of the training rows.

    Scores of all classes (n_test, n_classes), or predicted targets (n_test,) if
    `classes` is None.
    """
    model = clone(model).fit(rows_at(X, train), y[train])
    X_test = rows_at(X, test)
    if classes is None:
        predictions = np.asarray(model.predict(X_test), dtype=np.float64)
        return predictions.reshape(len(test))

    # The training rows may lack some classes, whose scores are zero.
    scores = np.zeros((len(test), len(classes)))
    if hasattr(model, "predict_proba"):
        columns = np.searchsorted(classes, model.classes_)
        scores[:, columns] = model.predict_proba(X_test)
        return scores
    for code, label in enumerate(classes):
        if label in y[train]:
            scores[:, code] = model.score_samples(X_test, np.full(len(test), label))
    return scores


def join_folds(predictions_by_fold, folds):
    """The predictions of the test rows of all folds, in the order of the rows."""
    test_rows = np.concatenate([test for _, test in folds])
    return np.concatenate(predictions_by_fold)[np.argsort(test_rows)]


def label_scores(scores, codes):
    """The score of the label of each row, from those of all classes."""
    return scores[np.arange(len(codes)), codes]


def log_loss(scores, codes):
    """Sum of minus the logs of the probabilities of the labels."""
    probabilities = np.maximum(label_scores(scores, codes), _MIN_PROBABILITY)
    return -np.log(probabilities).sum()


def best_mixture(predictions_by_model, loss):
    """The mixture of the predictions of two models of least loss.

    Returns the mixture a, 1 - a of the predictions, with a in {0, 1/4, ..., 1}, and a;
    of one model its predictions and None.

    >>> predictions = {"forest": np.array([0.0]), "ridge": np.array([1.0])}
    >>> best_mixture(predictions, lambda mixture: abs(mixture[0] - 0.7))
    (array([0.75]), 0.25)
    """
    if len(predictions_by_model) == 1:
        (predictions,) = predictions_by_model.values()
        return predictions, None
    first, second = predictions_by_model.values()

    def loss_of_mixture(weight):
        return loss(weight * first + (1 - weight) * second)

    best = min(_MIXTURE_WEIGHTS, key=loss_of_mixture)
    return best * first + (1 - best) * second, best


def residual_spread(X, predictions, residuals, folds, seed, n_jobs):
    """Typical size of the residual of each row: the median of |r|/spread is 1.

    Two medians, on which a few wrong targets have little effect, are mixed in the
    logarithm as fits the sizes best: that of the rows of nearest predictions, and that
    by boosted trees of the dense rows `X`, or None.
    """
    sizes = np.abs(residuals)
    smallest = _MIN_SPREAD * np.median(sizes) + np.finfo(np.float64).tiny
    log_sizes = np.log(np.maximum(sizes, smallest))
    log_spreads = {"predictions": _moving_median(log_sizes, predictions)}
    if X is not None and not issparse(X):
        trees = HistGradientBoostingRegressor(loss="absolute_error", random_state=seed)
        tasks = [(trees, X, log_sizes, train, test, None) for train, test in folds]
        predictions_by_fold = list(ordered_map(predict_fold, tasks, n_jobs))
        log_spreads["rows"] = join_folds(predictions_by_fold, folds)

    log_spread, _ = best_mixture(
        log_spreads, lambda mixture: np.abs(mixture - log_sizes).sum()
    )
    spread = np.exp(log_spread)
    ratio = np.median(sizes / spread)
    return spread * ratio if ratio > 0 else spread


def _moving_median(entries, order_by):
    """Median of the entries of the nearest rows in an order; reflected at both ends."""
    order = np.argsort(order_by, kind="stable")
    n_rows = min(_SPREAD_ROWS, len(entries))
    medians = np.empty(len(entries))
    medians[order] = median_filter(entries[order], n_rows, mode="reflect")
    return medians
