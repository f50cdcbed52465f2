"""Entries that are improbable given the rest of their row."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import KFold

from ..._utils.text import number_text
from ._columns import encode, robust
from ._finding import Finding

_TREES, _SPLITS = 30, 3
_DRAWN = 1000  # rows of the table, of which more make no larger trees
_TYPICAL, _ALONE = (
    6.0,
    12.0,
)  # typical residuals, and robust scales from the median, of a number
_CATEGORY = 3.7  # sqrt(-2 log p) of a category: p < .001
_SHOWN = 3


def find_improbable_cells(columns, labels, seed):
    """Entries that a forest of the other columns, and the label, does not expect.

    A unit error of a number is found; an entry of another row can mostly not be.
    """
    n, found = len(labels), []
    for column, (scores, limit, expected) in zip(
        columns, score_columns(columns, labels, seed)
    ):
        rows = np.flatnonzero((scores > limit) & ~column.missing)
        if len(rows) <= max(3, 0.01 * n):  # else the column is skewed
            found += [
                (scores[row], row, column, expected(row)) for row in rows.tolist()
            ]
    if not found:
        return
    found.sort(key=lambda each: -each[0])
    said = [
        f"{column.name} = {_text(column.entries[row])} where {expected} is expected"
        for _, row, column, expected in found
    ]
    yield Finding(
        "improbable entries",
        "question",
        f"{len(found)} entries do not fit the rest of their row: {'; '.join(said[:_SHOWN])}.",
        rows=tuple(sorted({row for _, row, _, _ in found})),
        cells=tuple((row, column.name) for _, row, column, _ in found),
        evidence={"score": [float(score) for score, *_ in found], "said": said},
    )


def score_columns(columns, labels, seed):
    """Of each column: scores of its entries, their limit, and what is expected in a
    row."""
    for column in columns:
        others = [other for other in columns if other is not column]
        values = np.column_stack([*([encode(others)] if others else []), labels])
        score = _numbers if column.is_measure else _categories
        yield score(column, values, seed)


def _text(entry):
    return repr(entry) if isinstance(entry, str) else number_text(entry, grouped=False)


def _forest(kind, n, seed):
    """A forest whose trees do not grow with the table."""
    drawn = min(1.0, _DRAWN / n)
    return kind(
        _TREES,
        min_samples_leaf=3,
        max_features=0.5,
        max_samples=drawn,
        random_state=seed,
    )


def _numbers(column, values, seed):
    """Size of the residual of arcsinh of each scaled number, in typical ones, or of the
    number."""
    known = ~column.missing
    middle, scale = robust(column.entries)
    z = (column.entries - middle) / scale
    target, guess = np.arcsinh(z), np.zeros(len(z))
    forest = _forest(RandomForestRegressor, len(values), seed)
    for train, test in KFold(_SPLITS, shuffle=True, random_state=seed).split(values):
        train = train[known[train]]
        guess[test] = forest.fit(values[train], target[train]).predict(values[test])
    size = np.where(known, np.abs(target - guess), 0.0)
    typical = max(
        1.4826 * np.median(size[known]), np.quantile(size[known], 0.9) / 1.645, 1e-9
    )
    scores = np.maximum(size / typical, np.nan_to_num(np.abs(z)) * _TYPICAL / _ALONE)
    expected = middle + scale * np.sinh(guess)
    return scores, _TYPICAL, lambda row: f"about {_text(float(f'{expected[row]:.2g}'))}"


def _categories(column, values, seed):
    """sqrt(-2 log p) of each entry by its held-out probability p."""
    levels, codes = np.unique(column.entries.astype(str), return_inverse=True)
    p = np.zeros((len(codes), len(levels)))
    forest = _forest(RandomForestClassifier, len(values), seed)
    for train, test in KFold(_SPLITS, shuffle=True, random_state=seed).split(values):
        forest.fit(values[train], codes[train])
        p[np.ix_(test, forest.classes_)] = forest.predict_proba(values[test])
    prior = np.bincount(codes) / len(codes)
    p = (_TREES * p + prior) / (_TREES + 1)  # no probability of zero
    scores = np.sqrt(-2 * np.log(np.maximum(p[np.arange(len(codes)), codes], 1e-6)))
    return scores, _CATEGORY, lambda row: repr(str(levels[p[row].argmax()]))
