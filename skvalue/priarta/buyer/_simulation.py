"""Releases made up by the buyer: errors of scores, noise floors, and the weight of the mean."""

from types import SimpleNamespace

import numpy as np

from ..seller._mechanism import COUNT_WEIGHT, calibrated_scale, noise_levels, statistic_sensitivity
from ._estimates import estimate, noise_of, outer
from .metrics import psd_factor

__all__ = ["DEFAULT_WEIGHT", "choose_weight", "simulate_scores"]

DEFAULT_WEIGHT = 0.6
WEIGHTS = (0.3, 0.45, 0.6, 0.85, 1.2)


def simulate_scores(buyer, mean, factor, summary, n_effective, shrink, n_draws, rng):
    """Scores of releases like a summary, of rows from a Gaussian distribution.

    Parameters
    ----------
    buyer : Buyer
        The buyer.
    mean, factor : ndarray of shape (d,), (d, d)
        The distribution.
    summary : Summary
        Whose mechanism and noise are taken.
    n_effective : float
        Number of rows, for the sampling error of the moments.
    shrink : bool
        As in `estimate`.
    n_draws : int
        How many releases.
    rng : numpy.random.Generator
        Of the draws.

    Returns
    -------
    scores : ndarray of shape (n_draws,)
        Their scores.
    """
    d = len(mean)
    means = mean + rng.standard_normal((n_draws, d)) @ factor.T / np.sqrt(n_effective)
    # Wishart matrices, by their normal approximation.
    spread = np.eye(d) + _symmetric(rng, n_draws, d) * np.sqrt(2 / n_effective)
    n = summary.n_samples
    moments = (1 - 1 / n) * (factor @ spread @ factor.T) + outer(means)
    if summary.relation == "add_remove":  # sums over a noisy number of rows
        by = 1 + rng.standard_normal((n_draws, 1)) * summary.noise_scale / COUNT_WEIGHT / n
        means, moments = by * means, by[:, :, None] * moments
    means = means + summary.mean_noise * rng.standard_normal((n_draws, d))
    moments += summary.moment_noise * _symmetric(rng, n_draws, d)
    if summary.mechanism == "paper":
        moments += (summary.noise_scale * summary.max_norm) ** 2 * np.eye(d)
    noise = np.tile(noise_of(summary), (n_draws, 1))
    drawn = estimate(buyer, means, moments, np.full(n_draws, n), noise, shrink)
    return buyer.score(drawn.mean, drawn.factor)


def choose_weight(buyer, rows, epsilon, delta, relation, shrink, seed):
    """Weight of the mean in a release, chosen on the buyer's rows alone.

    Sellers are made up of them: all rows, and either half along their main direction. The weight is
    taken whose noise makes the least mean squared error of their scores.

    Parameters
    ----------
    buyer : Buyer
        The buyer.
    rows : ndarray of shape (n_samples, d)
        The buyer's centred and clipped rows.
    epsilon, delta : float
        The guarantee to plan for.
    relation : {"null", "add_remove", "replace"}
        Its relation.
    shrink : bool
        As in `estimate`.
    seed : int
        Of the simulation, the same for each weight.

    Returns
    -------
    weight : float
        One of `WEIGHTS`.
    """
    n, d = rows.shape
    axis = np.linalg.eigh(buyer.covariance)[1][:, -1]
    upper = rows @ axis > np.median(rows @ axis)
    parts = [part for part in (rows, rows[upper], rows[~upper]) if len(part) > d]
    moments = [(part.mean(axis=0), psd_factor(np.atleast_2d(np.cov(part.T)))) for part in parts]
    n_draws = max(8, min(64, 100_000 // d**2))
    errors = []
    for weight in WEIGHTS:
        sensitivity = statistic_sensitivity(weight, relation)
        scale = calibrated_scale(epsilon, delta, sensitivity, relation, None)
        levels = noise_levels("central", scale, weight, n, d)
        plan = SimpleNamespace(
            mechanism="central",
            relation=relation,
            n_samples=n,
            noise_scale=scale,
            mean_noise=levels[0] * buyer.max_norm,
            moment_noise=levels[1] * buyer.max_norm**2,
        )
        rng = np.random.default_rng(seed)
        squares = [
            (
                simulate_scores(buyer, mean, factor, plan, 1e12, shrink, n_draws, rng)
                - buyer.score(mean[None], factor[None])
            )
            ** 2
            for mean, factor in moments
        ]
        errors.append(np.mean(squares) if squares else 0.0)
    best = int(np.argmin(errors))
    return WEIGHTS[best] if errors[best] < errors[WEIGHTS.index(DEFAULT_WEIGHT)] else DEFAULT_WEIGHT


def _symmetric(rng, n_draws, d):
    """Random symmetric matrices of variance 1 on the diagonal and 1/2 off it."""
    square = rng.standard_normal((n_draws, d, d))
    return (square + np.swapaxes(square, 1, 2)) / 2
