"""Draws of the exact statistic behind a noisy one."""

import numpy as np


def draw_behind_noise(released, noise_variance, means, covariances, rng):
    """Draws (n, m) of normal vectors, given noisy releases of them.

    The exact vector of draw k is normal with mean `means[k]` and covariance
    `covariances[k]`, (m, m); the release (m,) is it plus isotropic noise. In the
    eigenbasis of the covariance the entries are independent.
    """
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, 0.0)
    gains = values / (values + noise_variance)
    residuals = np.einsum("nij,ni->nj", vectors, released - means)
    normal = rng.standard_normal(residuals.shape)
    shifts = gains * residuals + np.sqrt(gains * noise_variance) * normal
    return means + np.einsum("nij,nj->ni", vectors, shifts)


def nearest_positive(grams, floor=1e-6):
    """Symmetric matrices (n, p, p) with eigenvalues raised to a positive floor."""
    values, vectors = np.linalg.eigh(grams)
    largest = np.maximum(values[:, -1:], 1e-300)
    values = np.maximum(values, floor * largest)
    return (vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def shrink_squares(grams, columns, limit):
    """Scale columns of Gram matrices (n, p, p), in place, by their sums of squares.

    The sum of squares of `columns`, a slice, becomes at most `limit`; matrices remain
    positive.
    """
    diagonals = np.diagonal(grams, axis1=1, axis2=2)[:, columns]
    factors = np.sqrt(np.minimum(1.0, limit / diagonals.sum(axis=1)))
    grams[:, columns, :] *= factors[:, None, None]
    grams[:, :, columns] *= factors[:, None, None]
