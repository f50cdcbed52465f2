"""Columns that give the answer away, since they were filled in after it was known."""

import numpy as np
from scipy.stats import chi2_contingency
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from ._encoding import encode
from ._finding import Finding

# Area under the curve of one column, above which it is a leak, or may be one.
_SURE = 0.97
_SUSPECT = 0.90
_MOST = 5  # suspects that are compared with the other columns
_TREES = 60
_LEAVES = 32  # of the tree of one column
_LEVEL = 0.001  # of the test, over the number of columns
_GAP = 0.1  # difference of the rates of two classes
_FEWEST = 5  # missing entries of a column, and present ones
_CLASS = 20  # rows of a class that is compared


def find_leaks(columns, codes, seed, wording):
    """Columns that tell the label nearly alone, or better than all others together."""
    n_splits = max(2, min(5, np.bincount(codes).min()))
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=seed)
    folds = list(splitter.split(codes, codes))
    areas = {
        column.name: _area(codes, _predict_by(column, codes, folds))
        for column in columns
    }
    forest = RandomForestClassifier(_TREES, min_samples_leaf=2, random_state=seed)
    by_area = sorted(columns, key=lambda column: -areas[column.name])
    for column in by_area[:_MOST]:
        area = areas[column.name]
        if area < _SUSPECT:
            break
        area_of_others = 0.5
        other_columns = [other for other in columns if other is not column]
        if other_columns:
            scores = _held_out(forest, encode(other_columns), codes, folds)
            area_of_others = _area(codes, scores)
        if area >= _SURE or area > area_of_others:
            yield Finding(
                "leak",
                "question",
                f"{column.name!r} alone tells the {wording.label} almost without error "
                f"({area:.1%} of pairs in order; all other columns together "
                f"{area_of_others:.1%}): is it known before the outcome?",
                columns=(column.name,),
                evidence={"alone": area, "others": area_of_others},
            )


def _area(codes, scores):
    """Area under the curve; of several classes, each against the rest, by their size.

    codes : ndarray of int of shape (n_samples,)
    scores : ndarray of shape (n_samples, n_classes)
    """
    n_classes = scores.shape[1]
    if n_classes == 2:
        return float(roc_auc_score(codes, scores[:, 1]))
    one_hot = np.eye(n_classes)[codes]
    return float(roc_auc_score(one_hot, scores, average="weighted"))


def _predict_by(column, codes, folds):
    """Held-out probabilities (n_samples, n_classes) of the classes by one column."""
    if column.kind != "category":
        tree = DecisionTreeClassifier(
            max_leaf_nodes=_LEAVES, min_samples_leaf=5, random_state=0
        )
        return _held_out(tree, column.entries[:, None], codes, folds)

    # The rate of each class among the rows with an entry, shrunk to its overall rate.
    levels = np.unique(column.entries, return_inverse=True)[1]
    one_hot = np.eye(codes.max() + 1)[codes]
    scores = np.zeros(one_hot.shape)
    for train, test in folds:
        sums = np.zeros((levels.max() + 1, one_hot.shape[1]))
        np.add.at(sums, levels[train], one_hot[train])
        counts = sums.sum(axis=1, keepdims=True)
        rates = (sums + 2 * one_hot[train].mean(axis=0)) / (counts + 2)
        scores[test] = rates[levels[test]]
    return scores


def _held_out(model, values, codes, folds):
    return cross_val_predict(model, values, codes, cv=folds, method="predict_proba")


def find_missing_by_label(columns, codes, wording):
    """Columns whose entries are missing in one class more than in another."""
    n_rows = len(codes)
    tested = [
        column
        for column in columns
        if _FEWEST <= column.missing.sum() <= n_rows - _FEWEST
    ]
    n_classes = codes.max() + 1
    sizes = np.bincount(codes, minlength=n_classes)
    for column in tested:
        n_missing = np.bincount(codes[column.missing], minlength=n_classes)
        p_value = chi2_contingency(np.stack([n_missing, sizes - n_missing]))[1]
        rates = (n_missing / sizes)[sizes >= _CLASS]
        gap = float(np.ptp(rates)) if len(rates) > 1 else 0.0
        if p_value < _LEVEL / len(tested) and gap >= _GAP:
            yield Finding(
                "missing by label",
                "question",
                f"{column.name!r} is missing in {100 * gap:.0f} of 100 rows more of "
                f"one {wording.group} than of another: was it filled in after the "
                "outcome was known?",
                columns=(column.name,),
                evidence={"gap": gap, "p": float(p_value)},
            )
