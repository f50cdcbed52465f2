"""drop="auto": the fraction to drop by cross-validation, with rows valued in each
fold."""

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
    """Index of the fraction to drop, from scores (n_candidates, n_splits) of ascending
    fractions.

    0 unless the best fraction beats the first by more than two standard errors of the
    paired difference; else the smallest one within one such error of the best.

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


def _score_split(
    row_filter, valuer, X, y, split, valuer_params, params, classes, scorer
):
    """Scores of all candidate fractions on one split, whose training rows are valued
    once."""
    (X_train, X_test), (y_train, y_test) = (
        [safe_indexing(part, rows) for rows in split] for part in (X, y)
    )
    valuer_params, params = (
        take_rows(entries, split[0], len(y)) for entries in (valuer_params, params)
    )
    valuer = fit_valuer(
        clone(valuer), X_train, y_train, valuer_params, row_filter.memory
    )
    rule = {"classes": classes, "groups": valuer_params.get("groups")}
    scores = []
    for drop in DROP_CANDIDATES:
        choice = select_rows(
            valuer, drop, y_train, **rule, stratify=row_filter.stratify
        )
        model = clone(row_filter.estimator)
        fitted = fit_on_choice(model, X_train, y_train, params, choice, row_filter.mode)
        scores.append(scorer(fitted, X_test, y_test))
    return scores


def choose_drop(row_filter, valuer, X, y, *, valuer_params, params, classes):
    """Choose the fraction to drop by cross-validation on the rows.

    In each split the training rows are valued, and the model is fitted without the
    fraction of lowest values and scored on all test rows. Returns the fraction that
    `careful_choice` picks, and the scores (n_candidates, n_splits).
    """
    groups, cv = valuer_params.get("groups"), row_filter.cv
    if groups is not None and isinstance(cv, int):
        cv = GroupKFold(cv)
    scorer = check_scoring(row_filter.estimator, scoring=row_filter.scoring)
    scores = Parallel(n_jobs=row_filter.n_jobs)(
        delayed(_score_split)(
            row_filter, valuer, X, y, split, valuer_params, params, classes, scorer
        )
        for split in check_cv(cv, y, classifier=classes).split(X, y, groups)
    )
    scores = np.array(scores, dtype=np.float64).T
    return DROP_CANDIDATES[careful_choice(scores)], scores
