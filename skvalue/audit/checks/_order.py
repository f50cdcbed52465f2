"""Rows whose order says something: sorted, or from one source after another."""

import numpy as np
from scipy.stats import rankdata
from sklearn.neighbors import NearestNeighbors

from ._encoding import scaled
from ._finding import Finding

_LABEL_SHUFFLES = 200
_ROW_SHUFFLES = 30
_NEIGHBORS = 10
_DISTINCT = 3  # different numbers of a column that may be sorted
_LARGEST = 5000  # rows of which neighbours are searched


def find_label_order(codes, rng, wording):
    """Rows with equal labels that stand together."""
    rates = np.bincount(codes) / len(codes)
    by_chance = np.sum(rates**2)
    in_order = _fraction_like_next(codes)
    shuffles = [rng.permutation(codes) for _ in range(_LABEL_SHUFFLES)]
    shuffled = [_fraction_like_next(shuffle) for shuffle in shuffles]
    z = (in_order - np.mean(shuffled)) / max(np.std(shuffled), 1e-9)
    above = (in_order - by_chance) / max(1 - by_chance, 1e-9)
    if z > 5 and above > 0.1:
        yield Finding(
            "order of labels",
            "note",
            f"Rows of one {wording.group} stand together: shuffle them before they are "
            "split.",
            evidence={"z": float(z), "above": float(above)},
        )


def _fraction_like_next(codes):
    """Fraction of the rows that have the label of the next one."""
    return np.mean(codes[1:] == codes[:-1])


def find_row_order(columns, rng):
    """Rows that are like those next to them."""
    n_rows = len(columns[0].entries)
    numbers = [
        column
        for column in columns
        if column.kind != "category" and column.n_distinct >= _DISTINCT
    ]
    trend, name = max(map(_trend, numbers), default=(0.0, None))
    z_trend = trend * np.sqrt(n_rows)
    is_sorted = z_trend > 6 and trend > 0.3
    distance = 0.0
    z_distance = 0.0
    if not is_sorted and n_rows <= _LARGEST:
        points = scaled(columns, squash=True)
        distance, z_distance = _distance_of_neighbors(points, rng)
    if not is_sorted and not (z_distance > 5 and distance > 0.1):
        return

    alike = "Rows that stand together are alike"
    about = ()
    if is_sorted:
        alike += f", most of all in {name!r}"
        about = (name,)
    yield Finding(
        "order of rows",
        "question",
        f"{alike}: are they sorted, or of one source or time after another? If so, "
        "name the column of the source as groups.",
        columns=about,
        evidence={
            "z": float(max(z_trend, z_distance)),
            "strength": float(max(trend, distance)),
        },
    )


def _trend(column):
    """Rank correlation of a column with its next row or its row numbers; its name."""
    entries = np.where(column.missing, np.nanmedian(column.entries), column.entries)
    ranks = rankdata(entries)
    with_next = np.corrcoef(ranks[1:], ranks[:-1])[0, 1]
    with_number = np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]
    return max(abs(with_next), abs(with_number)), column.name


def _distance_of_neighbors(points, rng):
    """How near in the table similar rows are, and its z-score by shuffles.

    The measure is a Kolmogorov-Smirnov distance: that of the distribution of the gaps
    between the places of nearest neighbours from the one of random places, which is
    ``1 - (1 - gap)^2`` for gaps as fractions of the table.
    """
    n_rows = len(points)
    neighbors = NearestNeighbors(n_neighbors=min(_NEIGHBORS, n_rows - 1)).fit(points)
    nearest = neighbors.kneighbors(return_distance=False)
    grid = np.linspace(0, 1, 51)[1:-1]

    def distance(places):
        gaps = np.sort(np.abs(places[:, None] - places[nearest]).ravel() / n_rows)
        fractions = np.searchsorted(gaps, grid, side="right") / len(gaps)
        return np.max(np.abs(fractions - (1 - (1 - grid) ** 2)))

    shuffles = [rng.permutation(n_rows) for _ in range(_ROW_SHUFFLES)]
    shuffled = np.array([distance(places) for places in shuffles])
    in_order = distance(np.arange(n_rows))
    return in_order, (in_order - shuffled.mean()) / max(shuffled.std(), 1e-9)
