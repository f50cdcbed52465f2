"""Symmetric matrices as vectors of the same norm."""

import math

import numpy as np


def svec_index(size):
    """Indices of the packed entries of a symmetric matrix, and their weights.

    Parameters
    ----------
    size : int
        Number of rows of the matrix.

    Returns
    -------
    rows, columns : ndarrays of int of shape (size * (size + 1) // 2,)
        Indices of the lower triangle, row by row.
    weights : ndarray of shape (size * (size + 1) // 2,)
        1 on the diagonal and sqrt 2 off it, so that packing is an isometry.

    Examples
    --------
    >>> from skvalue.privacy import svec_index
    >>> rows, columns, weights = svec_index(2)
    >>> rows.tolist(), columns.tolist(), weights.round(3).tolist()
    ([0, 1, 1], [0, 0, 1], [1.0, 1.414, 1.0])
    """
    rows, columns = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


def svec(matrices):
    """Pack symmetric matrices as lower triangles.

    Off-diagonal entries are multiplied by sqrt 2.

    Parameters
    ----------
    matrices : ndarray of shape (..., d, d)
        Symmetric matrices.

    Returns
    -------
    vectors : ndarray of shape (..., d * (d + 1) // 2)
        The packed matrices; their Euclidean norms are the Frobenius norms of the
        matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.privacy import svec
    >>> svec(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3).tolist()
    [1.0, 2.828, 3.0]
    """
    rows, columns, weights = svec_index(matrices.shape[-1])
    return matrices[..., rows, columns] * weights


def smat(vectors, d):
    """Unpack symmetric matrices, the inverse of `svec`.

    Parameters
    ----------
    vectors : ndarray of shape (..., d * (d + 1) // 2)
        Packed matrices, from `svec`.
    d : int
        Number of rows of a matrix.

    Returns
    -------
    matrices : ndarray of shape (..., d, d)
        The symmetric matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.privacy import smat, svec
    >>> smat(svec(np.array([[1.0, 2.0], [2.0, 3.0]])), 2).round(9).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    rows, columns, weights = svec_index(d)
    matrices = np.empty((*vectors.shape[:-1], d, d))
    matrices[..., rows, columns] = vectors / weights
    matrices[..., columns, rows] = matrices[..., rows, columns]
    return matrices
