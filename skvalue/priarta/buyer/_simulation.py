"""Simulated releases: errors of scores, noise floors, and the weight of the mean."""

from typing import NamedTuple

import numpy as np

from ...privacy import clip_rows
from ..seller import Noise, noise_of, release_event
from ._estimates import NoisyMoments, draw_estimates, estimate
from .metrics import factored_wasserstein, psd_factor

_WEIGHTS = (0.6, 0.3, 0.45, 0.85, 1.2)  # of equally good ones the first is taken
_FLOOR_QUANTILE = 0.95
_ERROR_DRAWS = 64
_POSTERIOR_DRAWS = 128
_WITHIN_TWO_ERRORS = 0.92  # of the posterior
_CLIPPED_ROWS = 2000  # by which the bias of clipping is simulated
_UNCLIPPING_STEPS = 3


class SimulatedSeller(NamedTuple):
    """A seller with normal rows, of this mean (d,) and factor of a covariance (d, d).

    Or one for each draw: means (n_draws, d) and factors (n_draws, d, d). ``noise`` is
    that of its release, or None. ``n_effective`` is the number of rows that determines
    the sampling error of the moments.
    """

    mean: np.ndarray
    factor: np.ndarray
    noise: Noise | None
    n_samples: float
    n_effective: float


def simulate_scores(buyer, own, seller, *, shrink, n_draws, rng):
    """Scores (n_draws,) of simulated releases of a seller, compared with moments `own`.

    The mean and factor of the seller are those of rows that are clipped already.
    """
    estimates = simulate_estimates(
        buyer, own, seller, shrink=shrink, n_draws=n_draws, rng=rng
    )
    return buyer.score(own, estimates.mean, estimates.factor)


def simulate_estimates(buyer, own, seller, *, shrink, n_draws, rng):
    """`Estimates` of n_draws sellers from simulated releases, as `simulate_scores`."""
    mean, factor, noise, n_samples, n_effective = seller
    d = mean.shape[-1]

    # Moments of samples of rows; Wishart matrices by their normal approximation.
    transposed = np.swapaxes(factor, -1, -2)
    gaps = rng.standard_normal((n_draws, d))
    if factor.ndim == 2:
        gaps = gaps @ transposed
    else:
        gaps = (gaps[:, None, :] @ transposed)[:, 0]
    means = mean + gaps / np.sqrt(n_effective)
    wishart = np.eye(d) + _random_symmetric(rng, n_draws, d) * np.sqrt(2 / n_effective)
    moments = (1 - 1 / n_samples) * (factor @ wishart @ transposed)
    moments += means[:, :, None] * means[:, None, :]

    deviations = np.zeros(3)
    if noise is not None:
        deviations = np.array([noise.mean, noise.moment, noise.trace])
        # A noisy number of rows divides the sums; then there is noise on the moments.
        if noise.count is not None:
            ratio = 1 + rng.standard_normal((n_draws, 1)) * noise.count / n_samples
            means = ratio * means
            moments = ratio[:, :, None] * moments
        means = means + noise.mean * rng.standard_normal((n_draws, d))
        moments += _moment_noise(noise, rng, n_draws, d)
    released = NoisyMoments(
        means,
        moments,
        n_samples=np.full(n_draws, n_samples),
        noise=np.tile(deviations, (n_draws, 1)),
    )
    return estimate(buyer, own, released, shrink)


def _moment_noise(noise, rng, n_draws, d):
    """Noise (n_draws, d, d) of second moments, whose trace has its own deviation."""
    matrices = noise.moment * _random_symmetric(rng, n_draws, d)
    excess = np.trace(matrices, axis1=1, axis2=2)
    excess *= 1 - noise.trace / (noise.moment * np.sqrt(d))
    matrices[:, range(d), range(d)] -= excess[:, None] / d
    return matrices


def score_error(buyer, mean, factor, summary, *, shrink, rng):
    """Standard error of the score of a summary, from simulated releases that are alike.

    The rows have this mean (d,) and factor of the covariance (d, d). Without noise it
    is the standard deviation of the scores. With noise it is the root mean squared
    difference from the score of these moments, unclipped, so that it includes the bias
    of clipping and shrinkage, too. Both are compared with the same moments of the
    buyer: what clipping does to the buyer's rows is done to a seller's like them.

    Where noise hides the moments, releases that are alike do not tell how far off they
    are: a small seller may have chosen a radius that is far too large, by noise. So
    the error is at least half of the difference which the score has with probability
    0.92 from that of the seller, by the posterior on which shrinkage is based.
    """
    n_samples = summary.n_samples
    own = buyer.moments_for(summary.max_norm)
    seller = SimulatedSeller(mean, factor, summary.noise, n_samples, n_samples - 1)
    scores = simulate_scores(
        buyer, own, seller, shrink=shrink, n_draws=_ERROR_DRAWS, rng=rng
    )
    if summary.noise is None:
        return scores.std(ddof=1)
    unclipped_mean, unclipped_factor = _unclipped_moments(
        mean, factor, summary.max_norm, rng
    )
    true = buyer.score(own, unclipped_mean[None], unclipped_factor[None])
    error = np.sqrt(np.mean((scores - true) ** 2))
    if not shrink:
        return error
    possible = _possible_scores(buyer, own, summary, rng)
    score = buyer.score(own, mean[None], factor[None])
    gap = np.quantile(np.abs(possible - score), _WITHIN_TWO_ERRORS)
    return max(error, 0.5 * gap)


def _possible_scores(buyer, own, summary, rng):
    """Scores of populations that could be behind a private summary."""
    n_draws = _POSTERIOR_DRAWS
    drawn = draw_estimates(buyer, own, summary, n_draws, rng)
    # From the moments of the rows to those of their population.
    exact = SimulatedSeller(
        drawn.mean, drawn.factor, None, summary.n_samples, summary.n_samples - 1
    )
    populations = simulate_estimates(
        buyer, buyer.exact, exact, shrink=False, n_draws=n_draws, rng=rng
    )
    return buyer.score(own, populations.mean, populations.factor)


def _unclipped_moments(mean, factor, max_norm, rng):
    """Moments of normal rows that have this mean and factor after they are clipped.

    They are approached by a few steps, since moments near the radius may be those of no
    normal rows.
    """
    draws = rng.standard_normal((_CLIPPED_ROWS, len(mean)))
    covariance = factor @ factor.T
    unclipped_mean = mean
    unclipped_factor = factor
    for _ in range(_UNCLIPPING_STEPS):
        rows = unclipped_mean + draws @ unclipped_factor.T
        clipped = clip_rows(rows, max_norm)
        if np.array_equal(rows, clipped):
            break
        # The change by clipping has less sampling error than the moments of the rows.
        change = np.atleast_2d(np.cov(clipped.T) - np.cov(rows.T))
        mean_change = (clipped - rows).mean(axis=0)
        unclipped_mean = mean - mean_change
        unclipped_factor = psd_factor(covariance - change)
    return unclipped_mean, unclipped_factor


def noise_floor(buyer, noise, n_samples, max_norm, shrink):
    """The 95 % quantile of scores of sellers with the buyer's distribution.

    Relevance is the smaller, the farther a seller is: of it, the 5 % quantile.
    """
    own = buyer.moments_for(max_norm)
    n_effective = 1 / (1 / n_samples + 1 / buyer.n_samples)
    n_draws = max(100, min(400, 500_000 // buyer.n_dimensions**2))
    rng = np.random.default_rng(buyer.seed)
    seller = SimulatedSeller(own.mean, own.factor, noise, n_samples, n_effective)
    scores = simulate_scores(
        buyer, own, seller, shrink=shrink, n_draws=n_draws, rng=rng
    )
    quantile = _FLOOR_QUANTILE
    if buyer.metric == "relevance":
        quantile = 1 - _FLOOR_QUANTILE
    return float(np.quantile(scores, quantile))


def pair_floor(buyer, estimates, summaries, *, shrink, levels):
    """Quantiles of the distance of two sellers, if both have one distribution.

    `estimates` and `summaries` are those of the two. It has their mean moments; where
    noise hides these, it is drawn for each release from the posterior of one seller or
    the other.
    """
    n_draws = max(100, min(400, 500_000 // buyer.n_dimensions**2))
    rng = np.random.default_rng(buyer.seed)
    mean = estimates.mean.mean(axis=0)
    factor = psd_factor(estimates.covariance.mean(axis=0))
    is_noisy = [summary.noise is not None for summary in summaries]
    if shrink and all(is_noisy):
        halves = [
            draw_estimates(
                buyer, buyer.moments_for(summary.max_norm), summary, n_half, rng
            )
            for summary, n_half in zip(summaries, (n_draws // 2, (n_draws + 1) // 2))
        ]
        mean = np.concatenate([half.mean for half in halves])
        factor = np.concatenate([half.factor for half in halves])

    simulated = []
    for summary in summaries:
        n_samples = summary.n_samples
        own = buyer.moments_for(summary.max_norm)
        seller = SimulatedSeller(mean, factor, summary.noise, n_samples, n_samples - 1)
        simulated.append(
            simulate_estimates(
                buyer, own, seller, shrink=shrink, n_draws=n_draws, rng=rng
            )
        )
    first, second = simulated
    distances = factored_wasserstein(
        first.mean, first.factor, second.mean, second.factor
    )
    return np.quantile(distances, levels)


def choose_weight(
    buyer, max_norm, n_radius_counts, *, epsilon, delta, relation, shrink
):
    """Weight of the mean in a release, tuned on the buyer's rows alone.

    It minimizes the mean squared error of the scores of simulated sellers with the
    radius `max_norm`, which have all rows or one of the halves along the first
    principal direction.
    """
    own = buyer.moments_for(max_norm)
    rows = clip_rows(buyer.rows, max_norm)
    n, d = rows.shape
    axis = np.linalg.eigh(own.covariance)[1][:, -1]
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
        event = release_event(epsilon, delta, weight, relation, n_radius_counts)
        noise = noise_of(relation, event.scale, weight, n, d, max_norm)
        rng = np.random.default_rng(buyer.seed)
        gaps = []
        for mean, factor in moments:
            # So many effective rows that there is no sampling error.
            seller = SimulatedSeller(mean, factor, noise, n, n_effective=1e12)
            scores = simulate_scores(
                buyer, own, seller, shrink=shrink, n_draws=n_draws, rng=rng
            )
            gaps.append(scores - buyer.score(own, mean[None], factor[None]))
        error = 0.0
        if gaps:
            error = np.mean(np.square(gaps))
        errors.append(error)
    return _WEIGHTS[int(np.argmin(errors))]


def _random_symmetric(rng, n_draws, d):
    """Random symmetric matrices of variance 1 on the diagonal and 1/2 off it."""
    square = rng.standard_normal((n_draws, d, d))
    return (square + np.swapaxes(square, 1, 2)) / 2
