"""Likelihood of a noisy linear statistic: the normal law of a sum, and the noise on top.

For rows u = ([1,] x, y) that are jointly normal with second moments M (mean: the column of the
constant, where there is one, else 0), entries of the Gram matrix of c of them have the mean c M and
the covariance c (M_ik M_jl + M_il M_jk - 2 m_i m_j m_k m_l).
"""

import numpy as np

from ._statistics import gram_weights

__all__ = ["joint_moments", "log_normal", "noisy_gram_loglik", "plugin_second_moments"]

_HUGE = 1e280


def joint_moments(w, s2, second):
    """Second moments of (x, y), y = x'w + noise of variance s2, for second moments of x."""
    cross = w @ second
    top = np.broadcast_to(second, (len(w), *second.shape))
    right = np.concatenate([cross, (np.sum(w * cross, axis=1) + s2)[:, None]], axis=1)
    return np.concatenate(
        [np.concatenate([top, cross[:, :, None]], axis=2), right[:, None, :]], axis=1
    )


def log_normal(residual, covariance):
    """Log densities of normal vectors of mean 0, a covariance each.

    One Cholesky factor of the covariance bordered by the residual has the whitened residual as its
    last row.
    """
    m = residual.shape[1]
    bordered = np.empty((len(residual), m + 1, m + 1))
    bordered[:, :m, :m] = covariance
    bordered[:, m, :m] = bordered[:, :m, m] = residual
    bordered[:, m, m] = _HUGE
    factor = np.linalg.cholesky(bordered)
    log_det = np.log(np.diagonal(factor[:, :m, :m], axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * np.sum(factor[:, m, :m] ** 2, axis=1) - log_det - 0.5 * m * np.log(2 * np.pi)


def _rotated(moments, gram, count, variance):
    """The same where the noise is the same in every direction: a rotation makes all independent."""
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 1e-300)
    residual = np.swapaxes(vectors, 1, 2) @ (gram - count * moments) @ vectors
    variances = 2 * count * values[:, :, None] * values[:, None, :] + variance
    logs = np.log(2 * np.pi * variances)
    # Entries i != j stand twice in the matrix and once, times sqrt 2, in the vector.
    squares = np.sum(residual**2 / variances, axis=(1, 2))
    return -0.5 * (squares + 0.5 * (logs.sum(axis=(1, 2)) + np.trace(logs, axis1=1, axis2=2)))


def noisy_gram_loglik(w, s2, second, release, gram):
    """Log density of a linear release at every (w, s2), rows of arrays."""
    count, variance = float(release.n_samples), release.noise_scale**2
    moments = joint_moments(w, s2, second)
    if release.layout == "svec" and not release.intercept:
        return _rotated(moments, gram, count, variance)
    rows, columns, weights = gram_weights(release.n_features, release.intercept, release.layout)
    mean = moments[:, rows, columns]
    covariance = (
        moments[:, rows[:, None], rows] * moments[:, columns[:, None], columns]
        + moments[:, rows[:, None], columns] * moments[:, columns[:, None], rows]
    )
    if release.intercept:
        first = moments[:, 0]
        product = first[:, rows] * first[:, columns]
        covariance -= 2 * product[:, :, None] * product[:, None, :]
    covariance *= count * weights[:, None] * weights
    diagonal = np.arange(len(rows))
    covariance[:, diagonal, diagonal] *= 1 + 1e-9
    covariance[:, diagonal, diagonal] += variance + 1e-12 * count**2
    return log_normal(release.vector - count * weights * mean, covariance)


def plugin_second_moments(sums, count, variance, bound, intercept=False):
    """Second moments of x from one party's noisy sums, shrunk towards a sphere and made positive.

    Each entry is a mean of what was released and of a sphere of the same trace, weighted by the
    variance of the noise and of sampling on one side, of the sphere's own size on the other.
    """
    released = sums / max(count, 1.0)
    released = 0.5 * (released + released.T)
    start = int(intercept)
    p = len(released) - start
    inner = released[start:, start:]
    guess = bound**2 / (p + 2)  # rows all over the ball
    noise = variance / max(count, 1.0) ** 2
    # The trace is p times the size: its noise is p times that of an entry, spread over p.
    trust = guess**2 / (guess**2 + noise / p + 2 * guess**2 / (p * max(count, 1.0)))
    size = float(np.clip(np.trace(inner) / p, 1e-3 * guess, bound**2))
    size = guess + trust * (size - guess)
    trust = size**2 / (size**2 + noise + 2 * size**2 / max(count, 1.0))
    shrunk = trust * inner + (1 - trust) * size * np.eye(p)
    values, vectors = np.linalg.eigh(shrunk)
    floor = (0.02 + 0.3 * (1 - trust)) * size
    if noise == 0:
        floor = 1e-9 * size
    shrunk = (vectors * np.clip(values, floor, bound**2)) @ vectors.T
    if not intercept:
        return shrunk
    mean = trust * released[0, 1:]
    mean *= min(1.0, bound / max(np.linalg.norm(mean), 1e-300))
    # What is known of the mean is part of the second moments.
    values, vectors = np.linalg.eigh(shrunk - np.outer(mean, mean))
    spread = (vectors * np.maximum(values, floor)) @ vectors.T
    full = np.empty((p + 1, p + 1))
    full[0, 0], full[0, 1:], full[1:, 0] = 1.0, mean, mean
    full[1:, 1:] = spread + np.outer(mean, mean)
    return full
