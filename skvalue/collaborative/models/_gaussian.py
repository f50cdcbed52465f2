"""Likelihood of a noisy linear statistic: the normal approximation of a sum, plus
noise.

For rows u = ([1,] x, y) that are jointly normal with second moments M and mean m (the
column of the constant feature if there is one, else 0), the entries of the Gram matrix
of c rows have the mean c M and the covariance c (M_ik M_jl + M_il M_jk - 2 m_i m_j m_k
m_l).
"""

import numpy as np

from ...privacy import svec, svec_index

_HUGE = 1e280


def joint_moments(w, s2, second):
    """Second moments of (u, y), y = u'w + noise of variance s2, from those of u (p,
    p)."""
    cross, p = w @ second, len(second)
    moments = np.empty((len(w), p + 1, p + 1))
    moments[:, :p, :p] = second
    moments[:, :p, p] = moments[:, p, :p] = cross
    moments[:, p, p] = np.sum(w * cross, axis=1) + s2
    return moments


def log_normal(residual, covariance):
    """Log densities of normal vectors with mean 0, each with its own covariance.

    The last row of the Cholesky factor of the covariance bordered by the residual is
    the whitened residual.
    """
    m = residual.shape[1]
    bordered = np.empty((len(residual), m + 1, m + 1))
    bordered[:, :m, :m] = covariance
    bordered[:, m, :m] = bordered[:, :m, m] = residual
    bordered[:, m, m] = _HUGE
    factor = np.linalg.cholesky(bordered)
    log_det = np.log(np.diagonal(factor[:, :m, :m], axis1=1, axis2=2)).sum(axis=1)
    return (
        -0.5 * np.sum(factor[:, m, :m] ** 2, axis=1)
        - log_det
        - 0.5 * m * np.log(2 * np.pi)
    )


def covariance_of_products(second, rows, columns, intercept):
    """Covariance of the products u_i u_j of normal u with these second moments
    (Isserlis, 1918).

    The mean of u is zero, or, with an intercept, the first row of `second`.
    """
    i, j = rows[:, None], columns[:, None]
    covariance = second[..., i, rows] * second[..., j, columns]
    covariance += second[..., i, columns] * second[..., j, rows]
    if intercept:
        product = second[..., 0, rows] * second[..., 0, columns]
        covariance -= 2 * product[..., :, None] * product[..., None, :]
    return covariance


def noisy_gram_loglik(moments, gram, count, variance, intercept):
    """Log density of a noisy Gram matrix of rows u, for each of many second moments of
    u."""
    if intercept:
        rows, columns, weights = (some[1:] for some in svec_index(len(gram)))
        covariance = covariance_of_products(moments, rows, columns, intercept)
        covariance *= count * weights[:, None] * weights
        diagonal = np.arange(len(weights))
        covariance[:, diagonal, diagonal] *= 1 + 1e-9
        covariance[:, diagonal, diagonal] += variance + 1e-12 * count**2
        return log_normal(
            svec(gram)[1:] - count * weights * moments[:, rows, columns], covariance
        )
    # The noise is isotropic: in the eigenbasis all entries are independent.
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 1e-300)
    residual = np.swapaxes(vectors, 1, 2) @ (gram - count * moments) @ vectors
    variances = 2 * count * values[:, :, None] * values[:, None, :] + variance
    logs = np.log(2 * np.pi * variances)
    # Entries i != j are twice in the matrix, and once, times sqrt 2, in the vector.
    squares = np.sum(residual**2 / variances, axis=(1, 2))
    return -0.5 * (
        squares + 0.5 * (logs.sum(axis=(1, 2)) + np.trace(logs, axis1=1, axis2=2))
    )
