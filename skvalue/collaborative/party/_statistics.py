"""Sufficient statistics of clipped rows, and their sensitivity to replacing one row.

The sums of u u', u = ([1,] x) or ([1,] x, y), are released as lower triangles with sqrt
2 on the entries off the diagonal: such a vector has the Frobenius norm of the matrix,
and its noise is invariant under rotation. With an intercept, the first entry is the
number of rows, which is public and left out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...privacy import smat, svec

# Linear: the sums of u u', u = ([1,] x, y) -------------------------------------------------------


def gram_vector(X, y, intercept):
    """The linear statistic of clipped rows."""
    U = np.column_stack([np.ones((len(X), int(intercept))), X, y])
    return svec(U.T @ U)[int(intercept) :]


def unpacked(vector, size, release):
    """The sums of u u' from the part of a release's statistic that holds them."""
    return smat(
        np.insert(vector, 0, release.n_samples) if release.intercept else vector, size
    )


def linear_size(n_features, intercept):
    size = n_features + intercept + 1
    return size * (size + 1) // 2 - intercept


def linear_sensitivity(bounds, intercept=False):
    """L2 sensitivity of a linear statistic, for rows of norm at most R and targets of
    at most B.

    With ``c`` 1 with an intercept else 0 and ``K = R^2 + c``, the squared distance of
    the terms of two rows is, for ``t = c + <x, x'>``, ``2 K^2 - 2 t^2 + 2 (K y^2 + K
    y'^2 - 2 y y' t) + (y^2 - y'^2)^2``. It is attained with two or more features,
    without an intercept or with bounds of at least 1.
    """
    c, r2, b = float(intercept), bounds[0] ** 2, bounds[1]
    k, b2 = r2 + c, b**2
    if b2 < c - r2:
        # The best t, B^2, is below the smallest, c - R^2: x' = -x is farthest.
        return math.sqrt(8 * r2 + 8 * b2)
    if b2 <= k:  # u and u' can be orthogonal
        return math.sqrt(2 * (k + b2) ** 2)
    largest = 8 * k * b2  # y' = -y
    if b2 >= 4 * k:
        z = (b - math.sqrt(b2 - 4 * k)) / 2
        largest = max(largest, (b + z) ** 2 * (2 * k + (b - z) ** 2))
    return math.sqrt(largest)


def _largest_linear(bounds, intercept):
    return math.sqrt(2) * (float(intercept) + bounds[0] ** 2 + bounds[1] ** 2)


# Logistic: the sums of y u and of u u', u = ([1,] x) ---------------------------------------------


def logistic_vector(X, signs, intercept=False):
    """The logistic statistic of clipped rows; signs are -1 and 1."""
    U = np.column_stack([np.ones((len(X), int(intercept))), X])
    return np.concatenate([signs @ U, svec(U.T @ U)[int(intercept) :]])


def logistic_size(n_features, intercept):
    size = n_features + intercept
    return size * (size + 3) // 2 - intercept


def logistic_sensitivity(bounds, intercept=False):
    """L2 sensitivity of the logistic statistic, for rows of norm at most R.

    With c 1 with an intercept else 0 and ``K = R^2 + c``, the largest of ``2 K + 2 t +
    2 K^2 - 2 t^2`` over ``t = c + <x, x'>`` of two rows that differ in label: sqrt 2 (K
    + 1/2) for R^2 >= 1/2, else 2 R, or ``sqrt(4 + 8 R^2)`` with an intercept. It is
    attained with two or more features.
    """
    c, r2 = float(intercept), bounds[0] ** 2
    if r2 >= 0.5:
        return math.sqrt(2) * (r2 + c + 0.5)
    return math.sqrt(4 + 8 * r2) if intercept else 2 * math.sqrt(r2)


def _largest_logistic(bounds, intercept):
    square = bounds[0] ** 2 + intercept
    return max(math.sqrt(square), math.sqrt(2) * square)


@dataclass(frozen=True)
class Kind:
    """What distinguishes a kind of statistic."""

    n_bounds: int
    size: Callable  # of n_features and intercept: number of entries
    sensitivity: Callable  # of bounds and intercept: to replacing one row
    largest: (
        Callable  # of bounds and intercept: absolute value that a row adds to an entry
    )


KINDS = {
    "linear": Kind(2, linear_size, linear_sensitivity, _largest_linear),
    "logistic": Kind(1, logistic_size, logistic_sensitivity, _largest_logistic),
    "gaussian": Kind(
        2,
        lambda n_features, intercept: 1,
        lambda bounds, intercept: bounds[1] - bounds[0],
        lambda bounds, intercept: max(map(abs, bounds)),
    ),
}
