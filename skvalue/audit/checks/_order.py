"""Rows whose order says something: sorted, or from one source after another."""

import numpy as np
from scipy.stats import rankdata
from sklearn.neighbors import NearestNeighbors

from ._columns import scaled
from ._finding import Finding

_SHUFFLES, _NEIGHBORS = 200, 10
_DISTINCT = 3  # different numbers of a column that may be sorted
_LARGEST = 5000  # rows of which neighbours are searched


def find_label_order(codes, rng, words):
    """Rows with equal labels that stand together."""
    rates = np.bincount(codes) / len(codes)
    same, by_chance = np.mean(codes[1:] == codes[:-1]), np.sum(rates**2)
    shuffled = [rng.permutation(codes) for _ in range(_SHUFFLES)]
    shuffled = [np.mean(each[1:] == each[:-1]) for each in shuffled]
    z = (same - np.mean(shuffled)) / max(np.std(shuffled), 1e-9)
    above = (same - by_chance) / max(1 - by_chance, 1e-9)
    if z > 5 and above > 0.1:
        said = f"Rows of one {words.group} stand together: shuffle them before they are split."
        evidence = {"z": float(z), "above": float(above)}
        yield Finding("order of labels", "note", said, evidence=evidence)


def find_row_order(columns, rng):
    """Rows that are like those next to them."""
    numbers = [c for c in columns if c.kind != "category" and c.n_distinct >= _DISTINCT]
    strength, name = max(map(_trend, numbers), default=(0.0, None))
    n = len(columns[0].entries)
    z, z_near, distance = strength * np.sqrt(n), 0.0, 0.0
    by_column = z > 6 and strength > 0.3
    if not by_column and n <= _LARGEST:
        distance, z_near = _distance_of_neighbors(scaled(columns, squash=True), rng)
    if by_column or (z_near > 5 and distance > 0.1):
        which, where = (
            (f", most of all in {name!r}", (name,)) if by_column else ("", ())
        )
        said = (
            f"Rows that stand together are alike{which}: are they sorted, or of one source or time "
            "after another? If so, name the column of the source as groups."
        )
        evidence = {
            "z": float(max(z, z_near)),
            "strength": float(max(strength, distance)),
        }
        yield Finding("order of rows", "question", said, (), where, evidence=evidence)


def _trend(column):
    """Rank correlation of a column with the next row, or with the number of the row."""
    entries = np.where(column.missing, np.nanmedian(column.entries), column.entries)
    ranks = rankdata(entries)
    both = (
        np.corrcoef(ranks[1:], ranks[:-1])[0, 1],
        np.corrcoef(ranks, np.arange(len(ranks)))[0, 1],
    )
    return max(map(abs, both)), column.name


def _distance_of_neighbors(Z, rng):
    """How far the places of near rows are from those of any rows, and its z by 30
    shuffles."""
    n = len(Z)
    near = NearestNeighbors(n_neighbors=min(_NEIGHBORS, n - 1)).fit(Z)
    near = near.kneighbors(return_distance=False)
    grid = np.linspace(0, 1, 51)[1:-1]

    def distance(place):
        gaps = np.sort(np.abs(place[:, None] - place[near]).ravel() / n)
        found = np.searchsorted(gaps, grid, side="right") / len(gaps)
        return np.max(np.abs(found - (1 - (1 - grid) ** 2)))

    shuffled = np.array([distance(rng.permutation(n)) for _ in range(30)])
    found = distance(np.arange(n))
    return found, (found - shuffled.mean()) / max(shuffled.std(), 1e-9)
