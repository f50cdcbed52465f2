"""Likelihood of a noisy linear statistic: the normal approximation of a noisy sum.

For rows u = ([1,] x, y) that are jointly normal with second moments M and mean m (the
column of the constant feature if there is one, else 0), the entries of the Gram matrix
of c rows have the mean c M and the covariance c (M_ik M_jl + M_il M_jk - 2 m_i m_j m_k
m_l).
"""

import numpy as np

from ...privacy import svec, svec_index

_HUGE = 1e280


def joint_moments(w, s2, second_moments):
    """Second moments (n, p + 1, p + 1) of (u, y), y = u'w + noise of variance s2.

    `w` (n, p) and `s2` (n,) are draws; `second_moments` (p, p) are those of u.
    """
    p = len(second_moments)
    cross = w @ second_moments
    moments = np.empty((len(w), p + 1, p + 1))
    moments[:, :p, :p] = second_moments
    moments[:, :p, p] = moments[:, p, :p] = cross
    moments[:, p, p] = np.sum(w * cross, axis=1) + s2
    return moments


def log_normal(residuals, covariances):
    """Log densities (n,) of normal vectors (n, m) with mean 0 and their covariances.

    The last row of the Cholesky factor of the covariance bordered by the residual is
    the whitened residual.
    """
    m = residuals.shape[1]
    bordered = np.empty((len(residuals), m + 1, m + 1))
    bordered[:, :m, :m] = covariances
    bordered[:, m, :m] = bordered[:, :m, m] = residuals
    bordered[:, m, m] = _HUGE
    factor = np.linalg.cholesky(bordered)
    log_det = np.log(np.diagonal(factor[:, :m, :m], axis1=1, axis2=2)).sum(axis=1)
    return (
        -0.5 * np.sum(factor[:, m, :m] ** 2, axis=1)
        - log_det
        - 0.5 * m * np.log(2 * np.pi)
    )


def scaled_log_normal(residuals, covariances, noise_variance, scale):
    """Log densities (n,) of noisy normal vectors, the exact ones to the power `scale`.

    An exact vector (n, m) has mean 0 and a covariance of `covariances` (n, m, m); the
    noise is isotropic. The density of the exact vector is raised to the power, and
    integrated over exact vectors. Up to a constant that does not depend on the draw.
    """
    diagonal = np.arange(covariances.shape[1])
    total = covariances / scale
    total[:, diagonal, diagonal] += noise_variance
    logs = log_normal(residuals, total)
    if scale == 1.0:
        return logs
    # N(s; 0, C)^k is N(s; 0, C / k) times |C|^((1 - k) / 2), up to a constant.
    return logs + 0.5 * (1 - scale) * np.linalg.slogdet(covariances)[1]


def covariance_of_products(second_moments, rows, columns, intercept):
    """Covariance of the products u_i u_j of normal u (Isserlis, 1918).

    `rows` and `columns` (n,) are the i and j of the products. The mean of u is zero,
    or, with an intercept, the first row of `second_moments` (..., p, p).
    """
    i = rows[:, None]
    j = columns[:, None]
    covariance = second_moments[..., i, rows] * second_moments[..., j, columns]
    covariance += second_moments[..., i, columns] * second_moments[..., j, rows]
    if intercept:
        product = second_moments[..., 0, rows] * second_moments[..., 0, columns]
        covariance -= 2 * product[..., :, None] * product[..., None, :]
    return covariance


def products_of_row(moments, intercept):
    """Means (n, m) and covariances (n, m, m) of svec(u u') of one normal row u.

    `moments` (n, p, p) are the second moments of u. With an intercept the first
    product, which is 1, is left out.
    """
    first = int(intercept)
    rows, columns, weights = (i[first:] for i in svec_index(moments.shape[-1]))
    covariance = covariance_of_products(moments, rows, columns, intercept)
    covariance *= weights[:, None] * weights
    return weights * moments[:, rows, columns], covariance


def noisy_gram_loglik(moments, gram, count, variance, intercept, scale=1.0):
    """Log density (n,) of the noisy Gram matrix (p, p) of `count` rows u.

    `moments` (n, p, p) are the second moments of u in each of n draws; `variance` is
    that of the noise, and `scale` the power of the density of the exact matrix, as in
    `scaled_log_normal`.
    """
    if intercept:
        # The first entry, the number of rows, is public.
        rows, columns, weights = (indices[1:] for indices in svec_index(len(gram)))
        covariance = covariance_of_products(moments, rows, columns, intercept)
        covariance *= count * weights[:, None] * weights
        diagonal = np.arange(len(weights))
        covariance[:, diagonal, diagonal] *= 1 + 1e-9
        mean = count * weights * moments[:, rows, columns]
        residuals = svec(gram)[1:] - mean
        noise_variance = variance + 1e-12 * count**2
        return scaled_log_normal(residuals, covariance, noise_variance, scale)

    # The noise is isotropic: in the eigenbasis all entries are independent.
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 1e-300)
    residual = np.swapaxes(vectors, 1, 2) @ (gram - count * moments) @ vectors
    exact_variances = 2 * count * values[:, :, None] * values[:, None, :]
    variances = exact_variances / scale + variance
    logs = np.log(2 * np.pi * variances)
    if scale != 1.0:
        logs -= (1 - scale) * np.log(exact_variances)

    # Entries i != j are twice in the matrix, and once, times sqrt 2, in the vector.
    squares = np.sum(residual**2 / variances, axis=(1, 2))
    return -0.5 * (
        squares + 0.5 * (logs.sum(axis=(1, 2)) + np.trace(logs, axis1=1, axis2=2))
    )
