"""Simulated releases: errors of scores, noise floors, and the weight of the mean."""

from typing import NamedTuple

import numpy as np

from ..seller import Noise, noise_of, release_event
from ._estimates import NoisyMoments, estimate
from .metrics import psd_factor

_WEIGHTS = (0.6, 0.3, 0.45, 0.85, 1.2)  # of equally good ones the first is taken
_FLOOR_QUANTILE = 0.95
_ERROR_DRAWS = 64


class SimulatedSeller(NamedTuple):
    """A seller with normal rows, of this mean (d,) and factor of a covariance (d, d).

    ``n_effective`` is the number of rows that determines the sampling error of the
    moments.
    """

    mean: np.ndarray
    factor: np.ndarray
    noise: Noise
    n_samples: float
    n_effective: float


def simulate_scores(buyer, seller, *, shrink, n_draws, rng):
    """Scores (n_draws,) of simulated releases of a seller."""
    mean, factor, noise, n_samples, n_effective = seller
    d = len(mean)

    # Moments of samples of rows; Wishart matrices by their normal approximation.
    means = mean + rng.standard_normal((n_draws, d)) @ factor.T / np.sqrt(n_effective)
    wishart = np.eye(d) + _random_symmetric(rng, n_draws, d) * np.sqrt(2 / n_effective)
    moments = (1 - 1 / n_samples) * (factor @ wishart @ factor.T)
    moments += means[:, :, None] * means[:, None, :]

    # A noisy number of rows divides the sums; then there is noise on the moments.
    if noise.count is not None:
        ratio = 1 + rng.standard_normal((n_draws, 1)) * noise.count / n_samples
        means = ratio * means
        moments = ratio[:, :, None] * moments
    means = means + noise.mean * rng.standard_normal((n_draws, d))
    moments += noise.moment * _random_symmetric(rng, n_draws, d)
    released = NoisyMoments(
        means,
        moments,
        n_samples=np.full(n_draws, n_samples),
        noise=np.tile([noise.mean, noise.moment], (n_draws, 1)),
    )
    estimates = estimate(buyer, released, shrink)
    return buyer.score(estimates.mean, estimates.factor)


def score_error(buyer, mean, factor, summary, *, shrink, rng):
    """Standard deviation of scores of simulated releases that are like a summary.

    The rows have this mean (d,) and factor of the covariance (d, d).
    """
    n_samples = summary.n_samples
    seller = SimulatedSeller(mean, factor, summary.noise, n_samples, n_samples - 1)
    scores = simulate_scores(
        buyer, seller, shrink=shrink, n_draws=_ERROR_DRAWS, rng=rng
    )
    return scores.std(ddof=1)


def noise_floor(buyer, noise, n_samples, shrink):
    """The 95 % quantile of scores of sellers with the buyer's distribution."""
    n_effective = 1 / (1 / n_samples + 1 / buyer.n_samples)
    n_draws = max(100, min(400, 500_000 // len(buyer.mean) ** 2))
    rng = np.random.default_rng(buyer.seed)
    seller = SimulatedSeller(buyer.mean, buyer.factor, noise, n_samples, n_effective)
    scores = simulate_scores(buyer, seller, shrink=shrink, n_draws=n_draws, rng=rng)
    return float(np.quantile(scores, _FLOOR_QUANTILE))


def choose_weight(buyer, rows, *, epsilon, delta, relation, shrink):
    """Weight of the mean in a release, tuned on the buyer's rows (n, d) alone.

    It minimizes the mean squared error of the scores of simulated sellers, which have
    all rows or one of the halves along the first principal direction. The rows are
    centred and clipped.
    """
    n, d = rows.shape
    axis = np.linalg.eigh(buyer.covariance)[1][:, -1]
    projections = rows @ axis
    is_upper = projections > np.median(projections)
    samples = [rows, rows[is_upper], rows[~is_upper]]
    moments = [
        (sample.mean(axis=0), psd_factor(np.atleast_2d(np.cov(sample.T))))
        for sample in samples
        if len(sample) > d
    ]
    n_draws = max(8, min(64, 100_000 // d**2))
    errors = []
    for weight in _WEIGHTS:
        event = release_event(epsilon, delta, weight, relation)
        noise = noise_of(relation, event.scale, weight, n, buyer.max_norm)
        rng = np.random.default_rng(buyer.seed)
        gaps = []
        for mean, factor in moments:
            # So many effective rows that there is no sampling error.
            seller = SimulatedSeller(mean, factor, noise, n, n_effective=1e12)
            scores = simulate_scores(
                buyer, seller, shrink=shrink, n_draws=n_draws, rng=rng
            )
            gaps.append(scores - buyer.score(mean[None], factor[None]))
        errors.append(np.mean(np.square(gaps)) if gaps else 0.0)
    return _WEIGHTS[int(np.argmin(errors))]


def _random_symmetric(rng, n_draws, d):
    """Random symmetric matrices of variance 1 on the diagonal and 1/2 off it."""
    square = rng.standard_normal((n_draws, d, d))
    return (square + np.swapaxes(square, 1, 2)) / 2
