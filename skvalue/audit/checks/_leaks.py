"""Columns that give the answer away, since they were filled in after it was known."""

import numpy as np
from scipy.stats import chi2_contingency
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from ._columns import encode
from ._finding import Finding

_SURE, _SUSPECT = 0.97, 0.90  # area under the curve of one column
_MOST = 5  # suspects that are compared with the other columns
_TREES, _LEAVES = 60, 32
_LEVEL, _GAP = (
    0.001,
    0.1,
)  # of the test, over the number of columns; difference of the rates
_FEWEST, _CLASS = (
    5,
    20,
)  # missing entries, and present ones; rows of a class that is compared


def find_leaks(columns, codes, seed, words):
    """Columns each of which tells the label nearly alone, or better than all others
    together."""
    n_splits = max(2, min(5, np.bincount(codes).min()))
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=seed)
    folds = list(folds.split(codes, codes))
    alone = {
        column.name: _area(codes, _by_one(column, codes, folds)) for column in columns
    }
    forest = RandomForestClassifier(_TREES, min_samples_leaf=2, random_state=seed)
    for column in sorted(columns, key=lambda column: -alone[column.name])[:_MOST]:
        one, others = alone[column.name], 0.5
        if one < _SUSPECT:
            break
        rest = [other for other in columns if other is not column]
        if rest:
            others = _area(codes, _held_out(forest, encode(rest), codes, folds))
        if one >= _SURE or one > others:
            said = (
                f"{column.name!r} alone tells the {words.label} almost without error ({one:.1%} of "
                f"pairs in order; all other columns together {others:.1%}): is it known before the "
                "outcome?"
            )
            evidence = {"alone": one, "others": others}
            yield Finding(
                "leak", "question", said, columns=(column.name,), evidence=evidence
            )


def _area(codes, scores):
    """Area under the curve; of several classes, each against the rest, weighted by
    size."""
    if scores.shape[1] == 2:
        return float(roc_auc_score(codes, scores[:, 1]))
    return float(
        roc_auc_score(np.eye(scores.shape[1])[codes], scores, average="weighted")
    )


def _by_one(column, codes, folds):
    """Held-out probabilities of the classes by one column."""
    if column.kind != "category":
        tree = DecisionTreeClassifier(
            max_leaf_nodes=_LEAVES, min_samples_leaf=5, random_state=0
        )
        return _held_out(tree, column.entries[:, None], codes, folds)
    levels = np.unique(column.entries, return_inverse=True)[1]
    one_hot = np.eye(codes.max() + 1)[codes]
    scores = np.zeros(one_hot.shape)
    for train, test in folds:
        sums = np.zeros((levels.max() + 1, one_hot.shape[1]))
        np.add.at(sums, levels[train], one_hot[train])
        counts = sums.sum(axis=1, keepdims=True)
        scores[test] = ((sums + 2 * one_hot[train].mean(axis=0)) / (counts + 2))[
            levels[test]
        ]
    return scores


def _held_out(model, values, codes, folds):
    return cross_val_predict(model, values, codes, cv=folds, method="predict_proba")


def find_missing_by_label(columns, codes, words):
    """Columns that may have been filled in after the outcome was known."""
    tested = [c for c in columns if _FEWEST <= c.missing.sum() <= len(codes) - _FEWEST]
    n_classes = codes.max() + 1
    for column in tested:
        lost = np.bincount(codes[column.missing], minlength=n_classes)
        sizes = np.bincount(codes, minlength=n_classes)
        p = chi2_contingency(np.stack([lost, sizes - lost]))[1]
        rates = (lost / sizes)[sizes >= _CLASS]
        gap = float(np.ptp(rates)) if len(rates) > 1 else 0.0
        if p < _LEVEL / len(tested) and gap >= _GAP:
            said = (
                f"{column.name!r} is missing in {100 * gap:.0f} of 100 rows more of one "
                f"{words.group} than of another: was it filled in after the outcome was known?"
            )
            evidence = {"gap": gap, "p": float(p)}
            where = (column.name,)
            yield Finding(
                "missing by label", "question", said, (), where, evidence=evidence
            )
