"""A small market for the tests: a buyer, and sellers near and far."""

import warnings

import numpy as np

from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.privacy import SeededNoiseWarning


def gaussian_rows(rng, n, d, shift=0.0, spread=0.15):
    """Rows of norm at most 1, whose mean is at `shift` along the first axis."""
    rows = rng.normal(size=(n, d)) * spread * np.linspace(1.5, 0.5, d)
    rows[:, 0] += shift
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))


def quietly(function, *arguments, **options):
    """Call a function without warnings of seeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return function(*arguments, **options)


def fitted(rng, n=500, d=3, **parameters):
    """A scorer that is fitted to a buyer's rows."""
    parameters = {"max_norm": 1.0, "mean_weight": 0.6, **parameters}
    return PriArTaScorer(**parameters).fit(gaussian_rows(rng, n, d))


def released(scorer, X, seed=1, **parameters):
    """A seller of the scorer's model that is fitted to X."""
    seller = SellerRelease(scorer.model_, noise_random_state=seed, **parameters)
    return quietly(seller.fit, X)


def ten_sellers(rng, n, d):
    """Rows of ten sellers: shifts from 0 to 20, spreads from 1.5 to 5, two modes."""
    first = np.eye(d)[0]
    shifted = [rng.normal(size=(n, d)) + k * first for k in (0, 1, 2, 4, 8, 20)]
    spread = [k * rng.normal(size=(n, d)) for k in (1.5, 3, 5)]
    modes = 6 * first * rng.choice([-1, 1], (n, 1))
    return [*shifted, *spread, rng.normal(size=(n, d)) + modes]


def ten_distributions(d):
    """Means and covariances of the rows of `ten_sellers`."""
    first = np.eye(d)[0]
    shifted = [(k * first, np.eye(d)) for k in (0, 1, 2, 4, 8, 20)]
    spread = [(0 * first, k**2 * np.eye(d)) for k in (1.5, 3, 5)]
    return [*shifted, *spread, (0 * first, np.eye(d) + 36 * np.outer(first, first))]
