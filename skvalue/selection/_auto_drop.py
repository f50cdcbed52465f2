"""drop="auto": the fraction to drop by cross-validation, with rows valued in each fold."""

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, check_cv

from .._utils.sklearn import safe_indexing
from ._choice import fit_on_choice, select_rows
from ._metadata import take_rows
from ._valuer import fit_valuer

# Fractions evaluated by drop="auto".
DROP_CANDIDATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)


def careful_choice(scores):
    """Index of the fraction to drop, from scores (n_candidates, n_splits) of ascending fractions.

    0 unless the best fraction beats the first by more than two standard errors of the paired
    difference; else the smallest one within one such error of the best.

    >>> import numpy as np
    >>> careful_choice(np.array([[0.8, 0.9, 0.7], [0.9, 0.8, 0.8], [0.7, 0.7, 0.7]]))
    0
    >>> careful_choice(np.array([[0.5, 0.6, 0.5], [0.9, 0.9, 0.8], [0.9, 0.9, 0.9]]))
    1
    """
    best = int(np.argmax(scores.mean(axis=1)))  # the smallest of tied fractions
    gaps = scores[best] - scores
    errors = np.zeros(len(scores))
    if scores.shape[1] > 1:
        errors = gaps.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    mean = gaps.mean(axis=1)
    if mean[0] <= 2 * errors[0]:
        return 0
    return int(np.argmax(mean <= errors))


def _score_split(valuer, estimator, X, y, split, valuer_params, params, options):
    """Scores of all candidate fractions on one split, whose training rows are valued once."""
    n_rows = len(y)
    train, test = split
    X_train, y_train = safe_indexing(X, train), safe_indexing(y, train)
    X_test, y_test = safe_indexing(X, test), safe_indexing(y, test)
    valuer_params = take_rows(valuer_params, train, n_rows)
    params = take_rows(params, train, n_rows)
    valuer = fit_valuer(clone(valuer), X_train, y_train, valuer_params, options["memory"])
    scores = []
    for drop in DROP_CANDIDATES:
        choice = select_rows(
            valuer, drop, y_train, classes=options["classes"],
            groups=valuer_params.get("groups"), stratify=options["stratify"],
        )  # fmt: skip
        fitted = fit_on_choice(clone(estimator), X_train, y_train, params, choice, options["mode"])
        scores.append(options["scorer"](fitted, X_test, y_test))
    return scores


def choose_drop(
    valuer, estimator, X, y, *, valuer_params, params, mode, classes, scoring, cv, memory, n_jobs,
    stratify,
):  # fmt: skip
    """Choose the fraction to drop by cross-validation on the rows.

    In each split the training rows are valued, and the model is fitted without the fraction of
    lowest values and scored on all test rows. Returns the fraction that `careful_choice` picks, and
    the scores (n_candidates, n_splits).
    """
    groups = valuer_params.get("groups")
    if groups is not None and isinstance(cv, int):
        cv = GroupKFold(cv)
    splits = list(check_cv(cv, y, classifier=classes).split(X, y, groups))
    scorer = check_scoring(estimator, scoring=scoring)
    options = {
        "mode": mode, "classes": classes, "scorer": scorer, "memory": memory, "stratify": stratify
    }  # fmt: skip
    scores = Parallel(n_jobs=n_jobs)(
        delayed(_score_split)(valuer, estimator, X, y, split, valuer_params, params, options)
        for split in splits
    )
    scores = np.array(scores, dtype=np.float64).T
    return DROP_CANDIDATES[careful_choice(scores)], scores
