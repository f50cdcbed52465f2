"""Runs of a seller's release for the table of audits: whole fits, on worst rows."""

import math
from functools import lru_cache

import numpy as np

from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.priarta.seller import (
    COUNT_WEIGHT,
    Moments,
    exact_moments,
    isotropic_statistic,
    moment_statistic,
    own_radii,
    radius_log_probabilities,
)
from skvalue.privacy import clip_rows
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
    """The sums that a summary was made of, with noise of equal scale, for radius 1."""
    radius = summary.max_norm
    moments = Moments(summary.mean, summary.moment, summary.n_samples)
    sums = [isotropic_statistic(moments, WEIGHT, radius)]
    if summary.relation == "add_remove":
        sums.append([COUNT_WEIGHT * summary.n_samples])
    return np.concatenate(sums)


def clean_statistic(rows, relation):
    """The same without noise."""
    sums = [isotropic_statistic(exact_moments(rows), WEIGHT, 1.0)]
    if relation == "add_remove":
        sums.append([COUNT_WEIGHT * len(rows)])
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
    clean = [clean_statistic(rows_with(row), relation) for row in NEIGHBOURS[relation]]
    direction = clean[0] - clean[1]
    return [
        (exact + short * (released - exact)) @ direction
        for exact, released in zip(clean, runs(n, relation, **setting))
    ]


def noise(n, relation="replace", short=1.0):
    clean = clean_statistic(rows_with(NEIGHBOURS[relation][0]), relation)
    return short * (runs(n, relation)[0] - clean)


def search(event):
    """Every row of a few, clipped by the model, against every other."""
    records = [FAR[0], FAR[1], (0.0, 0.0), (30.0, 40.0)]

    def clean(rows):
        rows = clip_rows(MODEL.transform(np.array(rows)), 1.0)
        return moment_statistic(rows, WEIGHT, event.relation)

    claim = dict(claimed=event.sensitivity, relation=event.relation)
    return search_sensitivity(clean, records, 3, **claim, blank=(0.0, 0.0))


# A radius of the seller's own --------------------------------------------------------

# Half of the other rows are near, half far: one row moves the median past all of them.
OWN_MODEL = PriArTaScorer(mean_weight=WEIGHT).fit([[1.0, 0.0], [-1.0, 0.0]]).model_
OTHER_ROWS = [(0.0, 0.0)] * 15 + [(9.0, 0.0)] * 15
BEYOND = 100.0, 0.0
INSIDE = {"replace": (0.0, 0.0), "null": (np.nan, 0.0), "add_remove": None}


def own_rows(row):
    """Rows of a seller with one more; None adds none."""
    if row is None:
        return np.array(OTHER_ROWS)
    return np.array([*OTHER_ROWS, row])


def own_release(relation, row, epsilon=EPSILON):
    seller = SellerRelease(OWN_MODEL, epsilon, delta=DELTA, relation=relation)
    return seller.fit(own_rows(row)).summary_


def own_claim(relation):
    return own_release(relation, BEYOND).event


@lru_cache
def own_ratios(n, relation, epsilon=EPSILON):
    """Log-likelihood ratios of n releases with a far row, and of n with another.

    They are the strongest test of all that is released: radius and moments.
    """
    neighbours = BEYOND, INSIDE[relation]
    return [
        np.array(
            [
                log_likelihood(summary, BEYOND) - log_likelihood(summary, neighbours[1])
                for summary in (own_release(relation, row, epsilon) for _ in range(n))
            ]
        )
        for row in neighbours
    ]


def log_likelihood(summary, row):
    """That of a summary, up to a constant, if the rows had this one more."""
    rows, _ = OWN_MODEL.private_rows(own_rows(row))
    scale = summary.noise_scale
    cell = np.argmin(np.abs(own_radii(OWN_MODEL) - summary.max_norm))
    of_radius = radius_probabilities(row, summary.relation, scale)[cell]
    clipped = clip_rows(rows, summary.max_norm) / summary.max_norm
    residual = statistic(summary) - clean_statistic(clipped, summary.relation)
    return of_radius - residual @ residual / scale**2 / 2


@lru_cache
def radius_probabilities(row, relation, scale):
    rows, is_null = OWN_MODEL.private_rows(own_rows(row))
    norms = np.where(is_null, np.nan, np.linalg.norm(rows, axis=1))
    return radius_log_probabilities(norms, OWN_MODEL, relation, scale)
