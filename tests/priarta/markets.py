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
