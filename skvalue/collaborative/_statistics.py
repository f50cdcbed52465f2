"""Sufficient statistics as vectors, and how far replacing one row can move them.

A linear statistic is the lower triangle of the Gram matrix of u = ([1,] x, y), each entry times a
weight: 1 on the diagonal, sqrt 2 on products of two features, and, on products of a feature with
the target, sqrt 2 in the layout "svec" (then the vector has the Frobenius norm of the matrix, and
its noise is invariant under rotation) or 1 in the layout "cross".
"""

import math

import numpy as np

__all__ = [
    "CROSS_WEIGHTS",
    "clip_rows",
    "gram_size",
    "gram_vector",
    "gram_weights",
    "linear_sensitivity",
    "logistic_sensitivity",
    "logistic_size",
    "logistic_vector",
    "split_logistic",
    "svec_index",
    "to_gram",
]

CROSS_WEIGHTS = {"svec": math.sqrt(2), "cross": 1.0}


def clip_rows(X, bound):
    """Shrink the rows whose Euclidean norm exceeds the bound to that norm."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X * np.minimum(1.0, bound / np.maximum(norms, np.finfo(float).tiny))


def svec_index(size):
    """Rows and columns of the lower triangle, and the isometric weights."""
    rows, columns = np.tril_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


def gram_weights(n_features, intercept, layout):
    """Rows, columns and weights of the entries of a linear statistic.

    The count of rows, which an intercept puts in the Gram matrix, is public and not among them.
    """
    size = n_features + intercept + 1
    rows, columns, weights = svec_index(size)
    cross = (rows == size - 1) & (columns < size - 1)
    weights = np.where(cross, CROSS_WEIGHTS[layout], weights)
    keep = slice(1 if intercept else 0, None)
    return rows[keep], columns[keep], weights[keep]


def gram_size(n_features, intercept):
    size = n_features + intercept + 1
    return size * (size + 1) // 2 - intercept


def gram_vector(X, y, intercept, layout):
    """Linear statistic of clipped rows."""
    rows, columns, weights = gram_weights(X.shape[1], intercept, layout)
    U = np.column_stack([np.ones((len(X), int(intercept))), X, y])
    return (U.T @ U)[rows, columns] * weights


def to_gram(vector, n_samples, n_features, intercept, layout):
    """The Gram matrix that a linear statistic stands for."""
    rows, columns, weights = gram_weights(n_features, intercept, layout)
    size = n_features + intercept + 1
    gram = np.zeros((size, size))
    gram[rows, columns] = gram[columns, rows] = np.asarray(vector) / weights
    if intercept:
        gram[0, 0] = n_samples
    return gram


def linear_sensitivity(x_bound, y_bound, intercept=False, layout="svec"):
    """L2 sensitivity of a linear statistic when one row is replaced.

    With ``|x| <= R``, ``|y| <= B``, ``c`` 1 with an intercept else 0, ``K = R^2 + c`` and ``w`` the
    weight of x-y products, the squared distance of the terms of two rows is, for
    ``t = c + <x, x'>``, ``2 K^2 - 2 t^2 + w^2 (K y^2 + K y'^2 - 2 y y' t) + (y^2 - y'^2)^2``.

    Parameters
    ----------
    x_bound, y_bound : float
        Bounds of the norm of x and of the size of y.
    intercept : bool, default=False
        Whether a constant 1 stands before x.
    layout : {"svec", "cross"}, default="svec"
        The layout.

    Returns
    -------
    sensitivity : float
        The bound; attained with two or more features, where without an intercept or with bounds of
        1 and more. sqrt 2 (R^2 + w^2 B^2 / 2) where B is not large.
    """
    w2 = CROSS_WEIGHTS[layout] ** 2
    c, r2, b2 = float(intercept), float(x_bound) ** 2, float(y_bound) ** 2
    k, b = r2 + c, float(y_bound)
    if w2 * b2 / 2 < c - r2:
        # Rows cannot be orthogonal: opposite ones are farthest apart.
        return math.sqrt(8 * r2 + 4 * w2 * b2)
    if w2 * b2 / 2 <= k:
        largest = 2 * (k + w2 * b2 / 2) ** 2
    else:
        largest = 4 * w2 * k * b2
        z = 2 * k / (w2 * b)  # from here on the best x' is -x
        largest = max(largest, (b + z) ** 2 * (w2 * k + (b - z) ** 2))
    largest = max(largest, 2 * k**2 + w2 * k * b2 + b2**2)  # y' = 0
    if b2 >= 2 * w2 * k:
        z = (b - math.sqrt(b2 - 2 * w2 * k)) / 2
        largest = max(largest, (b + z) ** 2 * (w2 * k + (b - z) ** 2))
    return math.sqrt(largest)


# Logistic: y x, then the isometric lower triangle of x x' -----------------------------------------


def logistic_size(n_features):
    return n_features + n_features * (n_features + 1) // 2


def logistic_vector(X, signs):
    """Degree-2 statistic of clipped rows; signs are -1 and 1."""
    rows, columns, weights = svec_index(X.shape[1])
    return np.concatenate([signs @ X, (X.T @ X)[rows, columns] * weights])


def split_logistic(vector, n_features):
    """Sums of y x and of x x' of a logistic statistic."""
    vector = np.asarray(vector)
    rows, columns, weights = svec_index(n_features)
    gram = np.zeros((n_features, n_features))
    gram[rows, columns] = gram[columns, rows] = vector[n_features:] / weights
    return vector[:n_features], gram


def logistic_sensitivity(x_bound):
    """L2 sensitivity of the degree-2 logistic statistic when one row is replaced.

    The largest of ``2 R^2 (1 + t) + 2 R^4 (1 - t^2)`` over the cosine t of the rows that differ in
    label: sqrt 2 (R^2 + 1/2) from R^2 = 1/2 on, 2 R below. Attained with two or more features.
    """
    r2 = float(x_bound) ** 2
    return math.sqrt(2) * (r2 + 0.5) if r2 >= 0.5 else 2 * math.sqrt(r2)
