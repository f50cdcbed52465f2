"""What models that have not seen a row say about its label or target."""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold

from .._utils.parallel import ordered_map
from ..base import rows_at

_TREES = 100
_LEAST = 1e-3  # probability below which the log loss grows no further
_WIDE_LEAF = 20  # rows, of the forest that predicts the spread


def default_models(classifier, seed):
    """The forest and the linear model, by name; columns are scaled."""
    if classifier:
        forest, linear = (
            RandomForestClassifier,
            {"logistic": LogisticRegression(max_iter=200)},
        )
    else:
        forest, linear = RandomForestRegressor, {"ridge": Ridge()}
    return {"forest": forest(_TREES, min_samples_leaf=5, random_state=seed), **linear}


def make_folds(cv, y, groups, classifier, seed):
    """Splits into rows to train on and rows to predict; each row is predicted once.

    ``groups``: numbers from 0 by first row; a group is on one side of each split.
    Groups are stratified by the label of their first row.
    """
    first = np.unique(groups, return_index=True)[1]
    most = (
        np.unique(y[first], return_counts=True)[1].max() if classifier else len(first)
    )
    n_splits = min(int(cv), most, len(first))
    if n_splits < 2:
        raise ValueError(
            f"cv={cv} needs two rows of a class that are no duplicates, and groups apart. Got "
            f"{len(first)} groups or different rows."
        )
    splitter = StratifiedKFold if classifier else KFold
    splitter = splitter(n_splits, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # small classes: see `known`
        tests = [test for _, test in splitter.split(first, y[first])]
    fold = in_row_order([np.full(len(test), k) for k, test in enumerate(tests)], tests)[
        groups
    ]
    return [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_splits)
    ]


def held_out(model, X, y, train, test, classes):
    """Scores of all labels (n_test, n_classes), or predictions (n_test,), by a model of
    a fold."""
    model = clone(model).fit(rows_at(X, train), y[train])
    X = rows_at(X, test)
    if classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(len(test))
    scores = np.zeros((len(test), len(classes)))
    if hasattr(model, "predict_proba"):
        scores[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
        return scores
    for code, label in enumerate(classes):
        if label in y[train]:
            scores[:, code] = model.score_samples(X, np.full(len(test), label))
    return scores


def in_row_order(parts, tests):
    """What was found of the test rows of each fold, as one array in the order of the
    rows."""
    return np.concatenate(parts)[np.argsort(np.concatenate(tests))]


def own(scores, codes):
    """The entry of each row at its label."""
    return scores[np.arange(len(codes)), codes]


def mix(by_model, loss):
    """The mixture a, 1 - a of two predictions, a in {0, 1/4, ..., 1}, of least loss,
    and a.

    The predictions of one model are returned as they are.

    >>> mix({"forest": np.array([0.0]), "ridge": np.array([1.0])}, lambda p: abs(p[0] - 0.7))
    (array([0.75]), {'mixture_': 0.25})
    """
    if len(by_model) == 1:
        return *by_model.values(), {}
    first, second = by_model.values()
    weights = (0.0, 0.25, 0.5, 0.75, 1.0)
    best = min(weights, key=lambda a: loss(a * first + (1 - a) * second))
    return best * first + (1 - best) * second, {"mixture_": best}


def log_loss(scores, codes):
    """Sum of minus the logs of the probabilities of the labels."""
    return -np.log(np.maximum(own(scores, codes), _LEAST)).sum()


def spread_of(X, residuals, folds, seed, n_jobs):
    """Typical size of the residual of each row by its X: the median of |r| / spread is
    one.

    A forest predicts the log of the size, on which a few wrong targets have little
    effect.
    """
    size = np.abs(residuals)
    logs = np.log(np.maximum(size, 1e-2 * np.median(size) + np.finfo(float).tiny))
    forest = RandomForestRegressor(
        _TREES, min_samples_leaf=_WIDE_LEAF, random_state=seed
    )
    tasks = [(forest, X, logs, *fold, None) for fold in folds]
    found = list(ordered_map(held_out, tasks, n_jobs))
    spread = np.exp(in_row_order(found, [test for _, test in folds]))
    ratio = np.median(size / spread)
    return spread * (ratio if ratio > 0 else 1.0)
