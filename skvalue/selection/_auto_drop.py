"""drop="auto": the fraction to drop by cross-validation, with rows valued per fold."""

from dataclasses import replace
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, check_cv

from .._utils.sklearn import safe_indexing
from ..exceptions import ParameterError
from ._caps import find_evidence
from ._choice import fit_on_choice, select_rows
from ._valuer import fit_valuer

_DEFAULT_FOLDS = 5

# Fractions evaluated by drop="auto".
DROP_CANDIDATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)


def careful_choice(scores):
    """Index of the fraction to drop, from scores (n_candidates, n_splits).

    The candidates are fractions in ascending order. The first, 0, is chosen unless the
    best one beats it by more than two standard errors of the paired difference; then
    the smallest one within one such error of the best is.

    >>> import numpy as np
    >>> careful_choice(np.array([[0.8, 0.9, 0.7], [0.9, 0.8, 0.8], [0.7, 0.7, 0.7]]))
    0
    >>> careful_choice(np.array([[0.5, 0.6, 0.5], [0.9, 0.9, 0.8], [0.9, 0.9, 0.9]]))
    1
    """
    # Of tied fractions argmax takes the first, which is the smallest.
    best = int(np.argmax(scores.mean(axis=1)))
    gaps = scores[best] - scores
    n_candidates, n_splits = scores.shape
    errors = np.zeros(n_candidates)  # standard errors of the mean gaps
    if n_splits > 1:
        errors = gaps.std(axis=1, ddof=1) / np.sqrt(n_splits)
    mean_gaps = gaps.mean(axis=1)
    if mean_gaps[0] <= 2 * errors[0]:
        return 0
    return int(np.argmax(mean_gaps <= errors))


def choose_drop(row_filter, valuer, data, rule):
    """Choose the fraction to drop by cross-validation on the rows.

    In each split the training rows are valued, and the model is fitted without the
    fraction of lowest values and scored on all test rows. Returns the fraction that
    `careful_choice` picks, and the scores (n_candidates, n_splits).
    """
    groups = data.valuer_params.get("groups")
    cv = _DEFAULT_FOLDS if row_filter.cv is None else row_filter.cv
    if groups is not None and isinstance(cv, Integral):
        cv = GroupKFold(cv)
    splitter = check_cv(cv, data.y, classifier=rule.has_classes)
    splits = list(splitter.split(data.X, data.y, groups))
    if not splits:
        raise ParameterError(
            "cv",
            "must give at least one split. Got none (a generator gives its splits to "
            "one fit only).",
        )
    scorer = check_scoring(row_filter.estimator, scoring=row_filter.scoring)
    scores = Parallel(n_jobs=row_filter.n_jobs)(
        delayed(_score_split)(row_filter, valuer, data, split, rule, scorer)
        for split in splits
    )
    scores = np.array(scores, dtype=np.float64).T
    return DROP_CANDIDATES[careful_choice(scores)], scores


def _score_split(row_filter, valuer, data, split, rule, scorer):
    """Scores of all candidate fractions on one split, whose rows are valued once."""
    train_rows, test_rows = split
    train = data.take(train_rows)
    X_test = safe_indexing(data.X, test_rows)
    y_test = safe_indexing(data.y, test_rows)

    valuer = fit_valuer(clone(valuer), train, row_filter.memory)
    groups = train.valuer_params.get("groups")
    evidence = None
    if rule.stratify:
        evidence = find_evidence(valuer, row_filter.estimator, train, row_filter.cv)
    scores = []
    for drop in DROP_CANDIDATES:
        rule_of_drop = replace(rule, drop=drop)
        choice = select_rows(valuer, train.y, groups, rule_of_drop, evidence)
        model = clone(row_filter.estimator)
        model = fit_on_choice(model, train, choice, row_filter.mode)
        scores.append(scorer(model, X_test, y_test))
    return scores
