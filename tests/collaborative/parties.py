"""Simulated parties for the tests: data from the prior, and their releases."""

import warnings

import numpy as np
from scipy.special import betaln, digamma

from skvalue.collaborative import BayesianLinear, GramRelease
from skvalue.collaborative.mediator import gibbs_draws
from skvalue.exceptions import NestedReleasesWarning
from skvalue.privacy import SeededNoiseWarning

A0, B0 = 20.0, 0.5
PRECISION = B0 / (A0 - 1) / 0.25  # weights of variance 1/4
X_COVARIANCE = 0.15 * np.eye(2)


def linear_model(**parameters):
    return BayesianLinear(PRECISION, a0=A0, b0=B0, **parameters)


def simulate(seed, counts=(100, 200, 400), n_features=2):
    """Weights and log variance from the prior, and the rows of every party."""
    rng = np.random.default_rng(seed)
    s2 = B0 / rng.gamma(A0)
    w = np.sqrt(s2 / PRECISION) * rng.standard_normal(n_features)
    parties = []
    for count in counts:
        X = np.sqrt(0.15) * rng.standard_normal((count, n_features))
        X *= np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
        y = X @ w + np.sqrt(s2) * rng.standard_normal(count)
        parties.append((X, np.clip(y, -1, 1)))
    return np.append(w, np.log(s2)), parties


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.simplefilter("ignore", NestedReleasesWarning)
        return function(*arguments, **options)


def release_all(parties, epsilons, seed=7, **options):
    return [
        quietly(
            GramRelease(None, renyi_epsilon=e, noise_random_state=seed + i, **options).fit, *rows
        ).release_
        for i, (e, rows) in enumerate(zip(epsilons, parties))
    ]


def quick_gibbs(monkeypatch):
    """Fewer sweeps: enough where noise is not large, so that chains forget in some tens of them."""
    monkeypatch.setitem(gibbs_draws.__kwdefaults__, "burn_in", 200)
    monkeypatch.setitem(gibbs_draws.__kwdefaults__, "thin", 5)


def beta_kl(a, b, prior_a, prior_b):
    """Divergence of Beta(a, b) from Beta(prior_a, prior_b)."""
    return (
        betaln(prior_a, prior_b)
        - betaln(a, b)
        + (a - prior_a) * digamma(a)
        + (b - prior_b) * digamma(b)
        + (prior_a - a + prior_b - b) * digamma(a + b)
    )


def gaussian_kl(mean, variance, prior_mean, prior_variance):
    """Divergence of one normal distribution of one dimension from another."""
    ratio = variance / prior_variance
    return 0.5 * (ratio - 1 - np.log(ratio) + (mean - prior_mean) ** 2 / prior_variance)
