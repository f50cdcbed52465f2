"""Symmetric matrices as vectors of the same length."""

import math

import numpy as np


def svec_index(size):
    """Places of the packed entries of a symmetric matrix, and their weights.

    Parameters
    ----------
    size : int
        Number of rows of the matrix.

    Returns
    -------
    rows, columns : ndarrays of int of shape (size * (size + 1) // 2,)
        The lower triangle, row by row.
    weights : ndarray of shape (size * (size + 1) // 2,)
        1 on the diagonal, sqrt 2 off it: packing is an isometry.
    """
    rows, columns = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


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
    rows, columns, weights = svec_index(matrices.shape[-1])
    return matrices[..., rows, columns] * weights


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
    rows, columns, weights = svec_index(d)
    matrices = np.empty((*vectors.shape[:-1], d, d))
    matrices[..., rows, columns] = vectors / weights
    matrices[..., columns, rows] = matrices[..., rows, columns]
    return matrices
