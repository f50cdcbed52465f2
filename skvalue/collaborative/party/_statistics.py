"""Sufficient statistics as vectors, and their sensitivity to replacing one row.

A linear statistic is the lower triangle of the Gram matrix of u = ([1,] x, y), each entry times a
weight: 1 on the diagonal, sqrt 2 on products of two features, and, on products of a feature with
the target, sqrt 2 in the layout "svec" (then the vector has the Frobenius norm of the matrix, and
its noise is invariant under rotation) or 1 in the layout "cross".
"""

import math

import numpy as np

from ...privacy import smat, svec, svec_index

CROSS_WEIGHTS = {"svec": math.sqrt(2), "cross": 1.0}


def gram_weights(n_features, intercept, layout):
    """Rows, columns and weights of the entries of a linear statistic.

    The number of rows, an entry of the Gram matrix with an intercept, is public and left out.
    """
    size = n_features + intercept + 1
    rows, columns, weights = svec_index(size)
    cross = (rows == size - 1) & (columns < size - 1)
    weights = np.where(cross, CROSS_WEIGHTS[layout], weights)
    keep = slice(1 if intercept else 0, None)
    return rows[keep], columns[keep], weights[keep]


def _triangle(size):
    return size * (size + 1) // 2


def gram_size(n_features, intercept):
    return _triangle(n_features + intercept + 1) - intercept


def _unpacked(vector, index, size, first):
    """The symmetric matrix of a vector of weighted entries; `first` is the entry left out."""
    rows, columns, weights = index
    matrix = np.full((size, size), float(first))
    matrix[rows, columns] = matrix[columns, rows] = np.asarray(vector) / weights
    return matrix


def gram_vector(X, y, intercept, layout):
    """The linear statistic of clipped rows."""
    rows, columns, weights = gram_weights(X.shape[1], intercept, layout)
    U = np.column_stack([np.ones((len(X), int(intercept))), X, y])
    return (U.T @ U)[rows, columns] * weights


def to_gram(vector, n_samples, n_features, intercept, layout):
    """The Gram matrix of a linear statistic."""
    index = gram_weights(n_features, intercept, layout)
    return _unpacked(vector, index, n_features + intercept + 1, n_samples)


def linear_sensitivity(x_bound, y_bound, intercept=False, layout="svec"):
    """L2 sensitivity of a linear statistic to replacing one row, for rows of norm at most x_bound.

    With ``|x| <= R``, ``|y| <= B``, ``c`` 1 with an intercept else 0, ``K = R^2 + c`` and ``w`` the
    weight of x-y products, the squared distance of the terms of two rows is, for
    ``t = c + <x, x'>``, ``2 K^2 - 2 t^2 + w^2 (K y^2 + K y'^2 - 2 y y' t) + (y^2 - y'^2)^2``.
    It is attained with two or more features, without an intercept or with bounds of at least 1.
    """
    w2 = CROSS_WEIGHTS[layout] ** 2
    c, r2, b2 = float(intercept), float(x_bound) ** 2, float(y_bound) ** 2
    k, b = r2 + c, float(y_bound)
    if w2 * b2 / 2 < c - r2:
        # The best t, w^2 B^2 / 2, is below the smallest, c - R^2: x' = -x is farthest.
        return math.sqrt(8 * r2 + 4 * w2 * b2)
    if w2 * b2 / 2 <= k:
        largest = 2 * (k + w2 * b2 / 2) ** 2
    else:
        largest = 4 * w2 * k * b2
        z = 2 * k / (w2 * b)  # for |y'| >= z the maximum has x' parallel to x
        largest = max(largest, (b + z) ** 2 * (w2 * k + (b - z) ** 2))
    largest = max(largest, 2 * k**2 + w2 * k * b2 + b2**2)  # y' = 0
    if b2 >= 2 * w2 * k:
        z = (b - math.sqrt(b2 - 2 * w2 * k)) / 2
        largest = max(largest, (b + z) ** 2 * (w2 * k + (b - z) ** 2))
    return math.sqrt(largest)


# Fourth moments of x: the sums of v v', v the isometric vector of u u', u = ([1,] x) --------------


def moment_size(n_features, intercept):
    return _triangle(_triangle(n_features + intercept) - intercept)


def moment_vector(X, intercept):
    """Isometric lower triangle of the sum of v v' over clipped rows."""
    U = np.column_stack([np.ones((len(X), int(intercept))), X])
    rows, columns, weights = svec_index(U.shape[1])
    V = (U[:, rows] * U[:, columns] * weights)[:, int(intercept) :]
    return svec(V.T @ V)


def to_fourth(vector, n_features, intercept):
    """The matrix of a `moment_vector`."""
    return smat(np.asarray(vector), _triangle(n_features + intercept) - intercept)


def moment_sensitivity(x_bound, intercept=False):
    """L2 sensitivity of the fourth moments to replacing one row.

    The squared distance of two terms is ``|v|^4 + |v'|^4 - 2 <v, v'>^2``, and ``|v|^2`` is at most
    ``(R^2 + c)^2 - c``, c 1 with an intercept else 0. It is attained with two or more features.
    """
    c = float(intercept)
    return math.sqrt(2) * ((float(x_bound) ** 2 + c) ** 2 - c)


def moment_weight(sensitivity, x_bound, intercept, fraction):
    """Factor on fourth moments such that they use this fraction of the budget of the release."""
    ratio = math.sqrt(fraction / (1 - fraction))
    return sensitivity / moment_sensitivity(x_bound, intercept) * ratio


# Logistic: y u, then the isometric lower triangle of u u' without the count, u = ([1,] x) --------


def logistic_size(n_features, intercept=False):
    return n_features + _triangle(n_features + intercept)


def logistic_vector(X, signs, intercept=False):
    """The logistic statistic of clipped rows; signs are -1 and 1."""
    U = np.column_stack([np.ones((len(X), int(intercept))), X])
    return np.concatenate([signs @ U, svec(U.T @ U)[int(intercept) :]])


def split_logistic(vector, n_features, intercept=False, n_samples=0):
    """Sums of y u and of u u' of a logistic statistic."""
    size = n_features + intercept
    index = [some[int(intercept) :] for some in svec_index(size)]
    return np.asarray(vector)[:size], _unpacked(vector[size:], index, size, n_samples)


def logistic_sensitivity(x_bound, intercept=False):
    """L2 sensitivity of the logistic statistic to replacing one row.

    With c 1 with an intercept else 0 and ``K = R^2 + c``, the largest of
    ``2 K + 2 t + 2 K^2 - 2 t^2`` over ``t = c + <x, x'>`` of two rows that differ in label:
    sqrt 2 (K + 1/2) for R^2 >= 1/2, else 2 R, or ``sqrt(4 + 8 R^2)`` with an intercept. It is
    attained with two or more features.
    """
    c, r2 = float(intercept), float(x_bound) ** 2
    if r2 >= 0.5:
        return math.sqrt(2) * (r2 + c + 0.5)
    return math.sqrt(4 + 8 * r2) if intercept else 2 * math.sqrt(r2)
