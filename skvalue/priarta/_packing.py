"""A mean and a symmetric matrix as one vector, so that lengths are kept."""

import math

import numpy as np

__all__ = ["pack", "unpack"]


def pack(means, moments):
    """Means and symmetric matrices as vectors, the latter isometrically.

    Parameters
    ----------
    means : ndarray of shape (k, d)
        Means.
    moments : ndarray of shape (k, d, d)
        Matrices.

    Returns
    -------
    packed : ndarray of shape (k, d + d * (d + 1) // 2)
        The vectors.
    """
    i, j = np.tril_indices(means.shape[1])
    return np.hstack([means, moments[:, i, j] * np.where(i == j, 1.0, math.sqrt(2))])


def unpack(packed, d):
    """Means and matrices again.

    Parameters
    ----------
    packed : ndarray of shape (k, d + d * (d + 1) // 2)
        What `pack` gave.
    d : int
        Number of dimensions.

    Returns
    -------
    means, moments : ndarray of shape (k, d), (k, d, d)
        What it was given.
    """
    i, j = np.tril_indices(d)
    moments = np.empty((len(packed), d, d))
    moments[:, i, j] = packed[:, d:] / np.where(i == j, 1.0, math.sqrt(2))
    moments[:, j, i] = moments[:, i, j]
    return packed[:, :d], moments
