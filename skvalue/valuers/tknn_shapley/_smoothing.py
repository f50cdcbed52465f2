"""A Gaussian process over the validation points, given noisy numbers at these."""

import numpy as np
from scipy.special import ndtr, ndtri

# What the standard deviation of the process, and its level, may be.
_SCALES = 10.0 ** np.arange(0, 6.01, 0.5)

# Fraction of signal without smoothness, so that exact counts are reproduced.
NUGGET = 1e-6

N_DRAWS = 64


class Basis:
    """Eigenvectors and eigenvalues of a covariance, scaled to mean variance 1.

    ``kernel`` (n, n_landmarks) holds the columns of the covariance at positions
    ``landmarks``. With fewer landmarks than points it is a Nystrom approximation.
    """

    def __init__(self, kernel, landmarks):
        n = len(kernel)
        variances = kernel[landmarks, np.arange(len(landmarks))]
        kernel = kernel / max(np.mean(variances), 1e-300)
        weights, vectors = np.linalg.eigh(kernel[landmarks])
        if len(landmarks) < n:
            keep = weights > 1e-8 * weights[-1]
            features = kernel @ (vectors[:, keep] / np.sqrt(weights[keep]))
            weights, rotation = np.linalg.eigh(features.T @ features)
            keep = weights > 1e-8 * weights[-1]
            weights = weights[keep]
            vectors = features @ (rotation[:, keep] / np.sqrt(weights))
        self.weights = np.maximum(weights, 0) + NUGGET
        self.vectors = vectors


def smoothing_basis(distances, landmarks, reach):
    """Basis of the covariance ``exp(-distance / reach)``, see `public_geometry`."""
    return Basis(np.exp(-distances / max(reach, 1e-12)), landmarks)


def posterior_draws(y, basis, noise, rng, n_draws=N_DRAWS):
    """Draws of the process given ``y``, the process plus normal noise, (n_draws, n)."""
    s, tau = _draw_scales(_log_evidence(y, basis, noise), n_draws)
    weights = basis.weights
    z = basis.vectors.T @ y
    ones = basis.vectors.sum(axis=0)

    # Draws from the prior, each corrected by its residual from the data (Matheron's
    # rule).
    first, second, third = rng.standard_normal((3, n_draws, len(weights)))
    field = tau * third[:, :1] * ones + s * np.sqrt(weights) * first
    variances = s**2 * weights + noise**2
    residuals = (z - field - noise * second) / variances
    level_precision = 1 + tau**2 * (ones**2 / variances).sum(axis=1)[:, None]
    shift = tau**2 * (residuals @ ones)[:, None] / level_precision
    residuals = residuals - ones / variances * shift
    level = tau**2 * (residuals @ ones)[:, None] * ones
    field = field + s**2 * weights * residuals + level
    draws = field @ basis.vectors.T

    # What the basis leaves out.
    if len(z) < len(y):
        gain = s**2 * NUGGET / (s**2 * NUGGET + noise**2)
        draws += gain * (y - basis.vectors @ z)
    return draws


def _log_evidence(y, basis, noise):
    """Log marginal likelihood for each s (0 and the scales) and each tau.

    Of shape (n_scales + 1, n_scales); -inf where tau is less than s.
    """
    # The data and the constant 1 in the basis.
    z = basis.vectors.T @ y
    ones = basis.vectors.sum(axis=0)
    scales = np.concatenate([[0.0], _SCALES])
    variances = scales[:, None] ** 2 * basis.weights + noise**2

    # What the basis leaves out of them has the variance of the nugget and the noise.
    n_outside = len(y) - len(z)
    is_partial = n_outside > 0
    outside_variance = scales**2 * NUGGET + noise**2
    y_outside = max(y @ y - z @ z, 0) * is_partial
    ones_outside = max(len(y) - ones @ ones, 0) * is_partial
    cross_outside = (y.sum() - ones @ z) * is_partial

    quadratic = (z**2 / variances).sum(axis=1) + y_outside / outside_variance
    log_det = np.log(variances).sum(axis=1) + n_outside * np.log(outside_variance)
    level = (ones**2 / variances).sum(axis=1) + ones_outside / outside_variance
    level = level[:, None] * _SCALES**2
    cross = (ones * z / variances).sum(axis=1) + cross_outside / outside_variance
    explained = (cross[:, None] * _SCALES) ** 2 / (1 + level)
    logs = -0.5 * (quadratic[:, None] - explained + log_det[:, None] + np.log1p(level))
    return np.where(scales[:, None] <= _SCALES, logs, -np.inf)


def _draw_scales(logs, n_draws):
    """Draws of s and tau by their likelihoods, each (n_draws, 1), at even levels."""
    likelihoods = np.exp(logs - logs.max()).ravel()
    cumulative = np.cumsum(likelihoods / likelihoods.sum())
    levels = (np.arange(n_draws) + 0.5) / n_draws
    cells = np.searchsorted(cumulative, levels * cumulative[-1])
    line, column = np.unravel_index(cells, logs.shape)
    s = np.concatenate([[0.0], _SCALES])[line, None]
    return s, _SCALES[column, None]


def positive_draws(draws):
    """Map draws of normal distributions to these truncated at zero, by column."""
    mean = draws.mean(axis=0)
    std = draws.std(axis=0) + 1e-9
    below = ndtr(-mean / std)
    level = below + ndtr((draws - mean) / std) * (1 - below)
    truncated = mean + std * ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    # Far above zero truncation has no effect; far below, quantiles lose all their
    # digits.
    return np.maximum(np.where(mean > 4 * std, draws, truncated), 0.0)
