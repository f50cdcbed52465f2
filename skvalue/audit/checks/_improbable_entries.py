"""Entries that are improbable given the rest of their row."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import KFold

from ..._utils.text import number_text
from ._encoding import encode, robust
from ._finding import Finding

_TREES = 30
_SPLITS = 3
_DRAWN = 1000  # rows of the table, of which more make no larger trees

# Limit of the score of a number, in typical residuals; at twice as many robust scales
# from the median, a number has that score, too.
_TYPICAL = 6.0
_FROM_MEDIAN = 12.0
_CATEGORY = 3.7  # limit of sqrt(-2 log p) of a category: p < .001
_LEAST_PROBABLE = 1e-6
_SHOWN = 3


@dataclass(frozen=True)
class ColumnScores:
    """How improbable the entries of a column are, and what is expected in their place.

    scores : ndarray of shape (n_samples,)
    limit : float, above which an entry is improbable
    expected : function of a row number, which returns a phrase
    """

    scores: np.ndarray
    limit: float
    expected: Callable


def find_improbable_cells(columns, labels, seed):
    """Entries that a forest of the other columns, and the label, does not expect.

    A unit error of a number is found; an entry of another row can mostly not be.

    labels : ndarray of int of shape (n_samples,), codes
    """
    # (score, row, column, sentence) of each improbable entry.
    entries = []
    for column, scored in zip(columns, score_columns(columns, labels, seed)):
        is_improbable = (scored.scores > scored.limit) & ~column.missing
        rows = np.flatnonzero(is_improbable)
        # Of a skewed column, many entries are far from what is expected.
        if len(rows) > max(3, 0.01 * len(labels)):
            continue
        for row in rows.tolist():
            entry = _text(column.entries[row], column.kind)
            sentence = (
                f"{column.name} = {entry} where {scored.expected(row)} is expected"
            )
            entries.append((scored.scores[row], row, column.name, sentence))
    if not entries:
        return
    entries.sort(key=lambda entry: -entry[0])
    scores, rows, names, sentences = zip(*entries)
    summary = f"{len(entries)} entries do not fit the rest of their row"
    if len(entries) == 1:
        summary = "1 entry does not fit the rest of its row"
    yield Finding(
        "improbable entries",
        "question",
        f"{summary}: {'; '.join(sentences[:_SHOWN])}.",
        rows=tuple(sorted(set(rows))),
        cells=tuple(zip(rows, names)),
        evidence={"score": list(map(float, scores)), "said": list(sentences)},
    )


def score_columns(columns, labels, seed):
    """The scores of the entries of each column, one after the other."""
    for column in columns:
        others = [other for other in columns if other is not column]
        blocks = [labels]
        if others:
            blocks = [encode(others), labels]
        values = np.column_stack(blocks)
        if column.is_measure:
            yield _score_numbers(column, values, seed)
        else:
            yield _score_categories(column, values, seed)


def _text(entry, kind):
    """An entry of a column in words; dates are seconds."""
    if kind == "date":
        moment = np.datetime64(round(float(entry)), "s")
        day = moment.astype("datetime64[D]")
        if day == moment:
            return str(day)
        return str(moment)
    if kind == "category":
        return repr(entry)
    return number_text(float(entry), grouped=False)


def _forest(kind, n_rows, seed):
    """A forest whose trees do not grow with the table."""
    return kind(
        _TREES,
        min_samples_leaf=3,
        max_features=0.5,
        max_samples=min(1.0, _DRAWN / n_rows),
        random_state=seed,
    )


def _folds(values, seed):
    return KFold(_SPLITS, shuffle=True, random_state=seed).split(values)


def _score_numbers(column, values, seed):
    """Scores of numbers: residuals of the arcsinh of each, in typical ones.

    values : ndarray of shape (n_samples, n_encoded), the other columns and the label
    """
    is_present = ~column.missing
    middle, scale = robust(column.entries)
    z = (column.entries - middle) / scale
    target = np.arcsinh(z)

    predicted = np.zeros(len(z))
    forest = _forest(RandomForestRegressor, len(values), seed)
    for train, test in _folds(values, seed):
        train = train[is_present[train]]
        predicted[test] = forest.fit(values[train], target[train]).predict(values[test])

    # The typical residual is that of the median or, of a skewed column, of the 90 %
    # quantile, which is 1.645 standard deviations of a normal distribution.
    residuals = np.where(is_present, np.abs(target - predicted), 0.0)
    by_median = 1.4826 * np.median(residuals[is_present])
    by_quantile = np.quantile(residuals[is_present], 0.9) / 1.645
    typical = max(by_median, by_quantile, 1e-9)
    from_median = np.nan_to_num(np.abs(z)) * _TYPICAL / _FROM_MEDIAN
    expected = middle + scale * np.sinh(predicted)

    def phrase(row):
        if column.kind == "date":
            day = np.datetime64(round(expected[row]), "s").astype("datetime64[D]")
            return f"about {day}"
        return f"about {_text(float(f'{expected[row]:.2g}'), column.kind)}"

    return ColumnScores(np.maximum(residuals / typical, from_median), _TYPICAL, phrase)


def _score_categories(column, values, seed):
    """Scores of categories: sqrt(-2 log p) of the held-out probability p of each.

    values : ndarray of shape (n_samples, n_encoded), the other columns and the label
    """
    levels, codes = np.unique(column.entries.astype(str), return_inverse=True)
    probabilities = np.zeros((len(codes), len(levels)))
    forest = _forest(RandomForestClassifier, len(values), seed)
    for train, test in _folds(values, seed):
        forest.fit(values[train], codes[train])
        places = np.ix_(test, forest.classes_)
        probabilities[places] = forest.predict_proba(values[test])

    # One more tree, which predicts how often a level is, leaves no probability of zero.
    prior = np.bincount(codes) / len(codes)
    probabilities = (_TREES * probabilities + prior) / (_TREES + 1)
    of_entries = probabilities[np.arange(len(codes)), codes]
    scores = np.sqrt(-2 * np.log(np.maximum(of_entries, _LEAST_PROBABLE)))

    def phrase(row):
        return _text(str(levels[probabilities[row].argmax()]), column.kind)

    return ColumnScores(scores, _CATEGORY, phrase)
