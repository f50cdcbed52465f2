"""Simulated releases: standard errors of scores, noise floors, and the weight of the
mean."""

import numpy as np

from ..seller import noise_of, release_event
from ._estimates import estimate
from .metrics import psd_factor

_WEIGHTS = (0.6, 0.3, 0.45, 0.85, 1.2)  # of equally good ones the first is taken
_FLOOR_QUANTILE, _ERROR_DRAWS = 0.95, 64


def simulate_scores(
    buyer, mean, factor, noise, n_samples, n_effective, shrink, n_draws, rng
):
    """Scores of simulated releases with a `Noise`, of normal rows with (mean, factor).

    ``n_effective`` is the number of rows that determines the sampling error of the
    moments.
    """
    d = len(mean)
    means = mean + rng.standard_normal((n_draws, d)) @ factor.T / np.sqrt(n_effective)
    # Wishart matrices, by their normal approximation.
    wishart = np.eye(d) + _symmetric(rng, n_draws, d) * np.sqrt(2 / n_effective)
    moments = (1 - 1 / n_samples) * (factor @ wishart @ factor.T)
    moments += means[:, :, None] * means[:, None, :]
    if noise.count is not None:  # sums over a noisy number of rows
        by = 1 + rng.standard_normal((n_draws, 1)) * noise.count / n_samples
        means, moments = by * means, by[:, :, None] * moments
    means = means + noise.mean * rng.standard_normal((n_draws, d))
    moments += noise.moment * _symmetric(rng, n_draws, d)
    levels = np.tile(noise[:2], (n_draws, 1))
    drawn = estimate(buyer, means, moments, np.full(n_draws, n_samples), levels, shrink)
    return buyer.score(drawn.mean, drawn.factor)


def score_error(buyer, mean, factor, summary, shrink, rng):
    """Standard deviation of the scores of simulated releases like a summary, with these
    moments."""
    n = summary.n_samples
    args = buyer, mean, factor, summary.noise, n, n - 1, shrink, _ERROR_DRAWS, rng
    return simulate_scores(*args).std(ddof=1)


def noise_floor(buyer, noise, n_samples, shrink):
    """The 95 % quantile of scores of sellers with the distribution of the buyer's
    rows."""
    n = 1 / (1 / n_samples + 1 / buyer.n_samples)
    n_draws = max(100, min(400, 500_000 // len(buyer.mean) ** 2))
    rng = np.random.default_rng(buyer.seed)
    moments = buyer.mean, buyer.factor
    scores = simulate_scores(buyer, *moments, noise, n_samples, n, shrink, n_draws, rng)
    return float(np.quantile(scores, _FLOOR_QUANTILE))


def choose_weight(buyer, rows, epsilon, delta, relation, shrink):
    """Weight of the mean in a release, tuned on the buyer's centred and clipped rows
    alone.

    It minimizes the mean squared error of the scores of simulated sellers, which have
    all rows or one of the halves along the first principal direction.
    """
    n, d = rows.shape
    axis = np.linalg.eigh(buyer.covariance)[1][:, -1]
    upper = rows @ axis > np.median(rows @ axis)
    parts = [part for part in (rows, rows[upper], rows[~upper]) if len(part) > d]
    moments = [
        (part.mean(axis=0), psd_factor(np.atleast_2d(np.cov(part.T)))) for part in parts
    ]
    n_draws = max(8, min(64, 100_000 // d**2))
    errors = []
    for weight in _WEIGHTS:
        scale = release_event(epsilon, delta, weight, relation).scale
        noise = noise_of(relation, scale, weight, n, buyer.max_norm)
        rng = np.random.default_rng(buyer.seed)
        gaps = [
            simulate_scores(buyer, mean, factor, noise, n, 1e12, shrink, n_draws, rng)
            - buyer.score(mean[None], factor[None])
            for mean, factor in moments
        ]
        errors.append(np.mean(np.square(gaps)) if gaps else 0.0)
    return _WEIGHTS[int(np.argmin(errors))]


def _symmetric(rng, n_draws, d):
    """Random symmetric matrices of variance 1 on the diagonal and 1/2 off it."""
    square = rng.standard_normal((n_draws, d, d))
    return (square + np.swapaxes(square, 1, 2)) / 2
