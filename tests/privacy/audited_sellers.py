"""Runs of a seller's release for the table of audits: whole fits, on worst rows."""

import math
from functools import lru_cache

import numpy as np

from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.priarta.seller import COUNT_WEIGHT, moment_statistic
from skvalue.privacy.audit import search_sensitivity

EPSILON = 8.0
DELTA = 1e-5

# A buyer whose centre is the origin.
MODEL = (
    PriArTaScorer(max_norm=1.0)
    .fit([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    .model_
)
WEIGHT = MODEL.mean_weight
COSINE = -(WEIGHT**2) / 2  # of the two rows that are farthest apart
FAR = (1.0, 0.0), (COSINE, math.sqrt(1 - COSINE**2))
CENTRAL_ROWS = [(0.0, 0.0)] * 30

# A row, and what is in its place in the neighbour.
NEIGHBOURS = {
    "replace": (FAR[0], FAR[1]),
    "null": (FAR[0], (0.0, 0.0)),
    "add_remove": (FAR[0], None),
}


def rows_with(row):
    """The rows with one more; None adds none."""
    if row is None:
        return np.array(CENTRAL_ROWS)
    return np.array([*CENTRAL_ROWS, row])


def statistic(summary):
    """The noisy sums that a summary was made of."""
    n = summary.n_samples
    i, j = np.tril_indices(summary.n_dimensions)
    sums = [WEIGHT * n * summary.mean]
    sums.append(n * summary.moment * np.where(i == j, 1.0, math.sqrt(2)))
    if summary.relation == "add_remove":
        sums.append([COUNT_WEIGHT * n])
    return np.concatenate(sums)


def claim(relation="replace", **setting):
    """What `privacy_` is made from."""
    rows = rows_with(NEIGHBOURS[relation][0])
    seller = SellerRelease(MODEL, EPSILON, delta=DELTA, relation=relation, **setting)
    return seller.fit(rows).summary_.event


@lru_cache
def runs(n, relation="replace", **setting):
    """Statistics of n releases with a row, and of n with its neighbour."""
    seller = SellerRelease(MODEL, EPSILON, delta=DELTA, relation=relation, **setting)
    return [
        np.array([statistic(seller.fit(rows_with(row)).summary_) for _ in range(n)])
        for row in NEIGHBOURS[relation]
    ]


def scores(n, relation="replace", short=1.0, **setting):
    """Releases with less noise, along the direction in which the neighbours differ."""
    clean = [
        moment_statistic(rows_with(row), WEIGHT, relation)
        for row in NEIGHBOURS[relation]
    ]
    direction = clean[0] - clean[1]
    return [
        (exact + short * (released - exact)) @ direction
        for exact, released in zip(clean, runs(n, relation, **setting))
    ]


def noise(n, relation="replace", short=1.0):
    clean = moment_statistic(rows_with(NEIGHBOURS[relation][0]), WEIGHT, relation)
    return short * (runs(n, relation)[0] - clean)


def search(event):
    """Every row of a few, clipped by the model, against every other."""
    records = [FAR[0], FAR[1], (0.0, 0.0), (30.0, 40.0)]

    def clean(rows):
        rows = np.array(rows)
        return moment_statistic(MODEL.transform(rows), WEIGHT, event.relation)

    claim = dict(claimed=event.sensitivity, relation=event.relation)
    return search_sensitivity(clean, records, 3, **claim, blank=(0.0, 0.0))
