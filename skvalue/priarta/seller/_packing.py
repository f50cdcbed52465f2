"""Symmetric matrices as vectors, so that lengths are kept."""

import math

import numpy as np

__all__ = ["smat", "svec"]


def svec(matrices):
    """Lower triangles with off-diagonal entries times sqrt 2.

    Parameters
    ----------
    matrices : ndarray of shape (..., d, d)
        Symmetric matrices.

    Returns
    -------
    vectors : ndarray of shape (..., d * (d + 1) // 2)
        Of the matrices' Frobenius norms.
    """
    i, j = np.tril_indices(matrices.shape[-1])
    return matrices[..., i, j] * np.where(i == j, 1.0, math.sqrt(2))


def smat(vectors, d):
    """Matrices of `svec`.

    Parameters
    ----------
    vectors : ndarray of shape (..., d * (d + 1) // 2)
        What `svec` gave.
    d : int
        Number of dimensions.

    Returns
    -------
    matrices : ndarray of shape (..., d, d)
        What it was given.
    """
    i, j = np.tril_indices(d)
    matrices = np.empty((*vectors.shape[:-1], d, d))
    matrices[..., i, j] = vectors / np.where(i == j, 1.0, math.sqrt(2))
    matrices[..., j, i] = matrices[..., i, j]
    return matrices
