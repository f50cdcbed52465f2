"""Likelihood of a noisy linear statistic: the normal approximation of a sum, plus noise.

For rows u = ([1,] x, y) that are jointly normal with second moments M and mean m (the column of the
constant feature if there is one, else 0), the entries of the Gram matrix of c rows have the mean
c M and the covariance c (M_ik M_jl + M_il M_jk - 2 m_i m_j m_k m_l).
"""

import numpy as np

from ...privacy import svec_index
from ..party import gram_weights

_HUGE = 1e280


def joint_moments(w, s2, second):
    """Second moments of (x, y), y = x'w + noise of variance s2; `second` is (p, p) or (n, p, p)."""
    cross = w @ second if second.ndim == 2 else (w[:, None, :] @ second)[:, 0]
    top = np.broadcast_to(second, (len(w), *second.shape[-2:]))
    right = np.concatenate([cross, (np.sum(w * cross, axis=1) + s2)[:, None]], axis=1)
    return np.concatenate(
        [np.concatenate([top, cross[:, :, None]], axis=2), right[:, None, :]], axis=1
    )


def log_normal(residual, covariance):
    """Log densities of normal vectors with mean 0, each with its own covariance.

    The last row of the Cholesky factor of the covariance bordered by the residual is the whitened
    residual.
    """
    m = residual.shape[1]
    bordered = np.empty((len(residual), m + 1, m + 1))
    bordered[:, :m, :m] = covariance
    bordered[:, m, :m] = bordered[:, :m, m] = residual
    bordered[:, m, m] = _HUGE
    factor = np.linalg.cholesky(bordered)
    log_det = np.log(np.diagonal(factor[:, :m, :m], axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * np.sum(factor[:, m, :m] ** 2, axis=1) - log_det - 0.5 * m * np.log(2 * np.pi)


def gaussian_kl(mean, precision, prior_mean, prior_precision, scale=1.0):
    """Kullback-Leibler divergence of normal distributions, from their means and precisions.

    `scale` multiplies the squared distance of the means.
    """
    shift = mean - prior_mean
    return 0.5 * float(
        np.trace(np.linalg.solve(precision, prior_precision))
        - len(shift)
        + np.linalg.slogdet(precision)[1]
        - np.linalg.slogdet(prior_precision)[1]
        + scale * shift @ prior_precision @ shift
    )


def covariance_of_products(second, rows, columns, intercept):
    """Covariance of the products u_i u_j of normal u with these second moments (Isserlis, 1918).

    The mean of u is zero, or, with an intercept, the first row of `second`.
    """
    i, j = rows[:, None], columns[:, None]
    covariance = second[..., i, rows] * second[..., j, columns]
    covariance += second[..., i, columns] * second[..., j, rows]
    if intercept:
        product = second[..., 0, rows] * second[..., 0, columns]
        covariance -= 2 * product[..., :, None] * product[..., None, :]
    return covariance


def _rotated(moments, gram, count, variance):
    """Log densities for isotropic noise: in the eigenbasis all entries are independent."""
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 1e-300)
    residual = np.swapaxes(vectors, 1, 2) @ (gram - count * moments) @ vectors
    variances = 2 * count * values[:, :, None] * values[:, None, :] + variance
    logs = np.log(2 * np.pi * variances)
    # Entries i != j are twice in the matrix, and once, times sqrt 2, in the vector.
    squares = np.sum(residual**2 / variances, axis=(1, 2))
    return -0.5 * (squares + 0.5 * (logs.sum(axis=(1, 2)) + np.trace(logs, axis1=1, axis2=2)))


def _sums_loglik(moments, vector, index, count, variance, intercept):
    """Log densities of weighted sums of products of jointly normal columns."""
    rows, columns, weights = index
    covariance = covariance_of_products(moments, rows, columns, intercept)
    return _weighted_loglik(moments[:, rows, columns], covariance, vector, weights, count, variance)


def _weighted_loglik(mean, covariance, vector, weights, count, variance):
    covariance *= count * weights[:, None] * weights
    diagonal = np.arange(len(weights))
    covariance[:, diagonal, diagonal] *= 1 + 1e-9
    covariance[:, diagonal, diagonal] += variance + 1e-12 * count**2
    return log_normal(vector - count * weights * mean, covariance)


def second_moments_loglik(second, gram, count, variance, intercept):
    """Log density of the sums of u u', u = ([1,] x), for each of many second moments."""
    if not intercept:
        return _rotated(second, gram, count, variance)
    rows, columns, weights = (some[1:] for some in svec_index(len(gram)))
    vector = gram[rows, columns] * weights
    return _sums_loglik(second, vector, (rows, columns, weights), count, variance, intercept)


def noisy_gram_loglik(w, s2, second, release, gram, fourth=None):
    """Log density of a linear release at every row of (w, s2).

    ``fourth`` is the covariance of the isometric vector of u u'; None takes that of normal u.
    """
    count, variance = float(release.n_samples), release.noise_scale**2
    moments = joint_moments(w, s2, second)
    if fourth is None and release.layout == "svec" and not release.intercept:
        return _rotated(moments, gram, count, variance)
    index = gram_weights(release.n_features, release.intercept, release.layout)
    rows, columns, weights = index
    vector = release.vector[: len(rows)]
    if fourth is None:
        return _sums_loglik(moments, vector, index, count, variance, release.intercept)
    covariance = _covariance_from_fourth(w, s2, second, fourth, release.intercept)
    return _weighted_loglik(moments[:, rows, columns], covariance, vector, weights, count, variance)


def _covariance_from_fourth(w, s2, second, fourth, intercept):
    """Covariance of the entries of (u, y) (u, y)', y = w'u + noise, from that of u u'.

    u_j y is linear in the entries of u u' plus u_j times the noise; y^2 is linear in them plus
    2 w'u times the noise plus the squared noise (Bernstein and Sheldon, 2019, Section 4).
    """
    size = len(second)
    rows, columns, weights = (some[int(intercept) :] for some in svec_index(size))
    q = len(rows)
    entries = np.zeros((size, size, q))
    entries[rows, columns, np.arange(q)] = entries[columns, rows, np.arange(q)] = 1.0
    cross = np.einsum("jki,nk->nji", entries, w)
    square = np.einsum("nji,nj->ni", cross, w)
    linear = np.concatenate(
        [np.broadcast_to(np.eye(q), (len(w), q, q)), cross, square[:, None]], axis=1
    )
    covariance = linear @ (fourth / weights[:, None] / weights) @ np.swapaxes(linear, 1, 2)
    with_noise = s2[:, None] * (w @ second)
    covariance[:, q:-1, q:-1] += s2[:, None, None] * second
    covariance[:, q:-1, -1] += 2 * with_noise
    covariance[:, -1, q:-1] += 2 * with_noise
    covariance[:, -1, -1] += 4 * np.sum(with_noise * w, axis=1) + 2 * s2**2
    return covariance
