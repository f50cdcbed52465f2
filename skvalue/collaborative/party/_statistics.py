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

from ..._utils.sums import rounding_of_one, rounding_of_sums, sum_of_blocks
from ...privacy import smat, svec

_BLOCK = 2048  # rows of a matrix product

# Rounding of sums ---------------------------------------------------------------------


def _rounding_of_products(n_rows, bounds):
    """Relative margin of the sensitivity of sums of products over n rows.

    The norm S of the terms of a row, 1 + R^2 + B^2 without the constant one, is at most
    the sensitivity for all bounds.
    """
    return rounding_of_sums(n_rows, _BLOCK)


def _rounding_of_numbers(n_rows, bounds):
    """Relative margin of the sensitivity of a sum of n numbers, rounded once."""
    lower, upper = bounds
    largest = max(abs(lower), abs(upper))
    return rounding_of_one(n_rows) * largest / (upper - lower)


def _rounding_of_integers(n_rows, bounds):
    """Sums of whole numbers are exact, up to 2^53."""
    return 0.0


# Linear: the sums of u u', u = ([1,] x, y) -------------------------------------------


def gram_vector(X, y, intercept):
    """The linear statistic of clipped rows (n, p) and targets (n,), as a vector."""
    n_constants = int(intercept)
    U = np.column_stack([np.ones((len(X), n_constants)), X, y])
    products = sum_of_blocks(len(U), lambda rows: U[rows].T @ U[rows], _BLOCK)
    return svec(products)[n_constants:]


def unpack_gram(vector, size, release):
    """The sums of u u', (size, size), from their part of a release's statistic."""
    if release.intercept:
        vector = np.insert(vector, 0, release.n_samples)
    return smat(vector, size)


def unpack_grams(vectors, size, release):
    """The sums of u u', (n, size, size), of n statistics of a release's rows."""
    if release.intercept:
        vectors = np.insert(vectors, 0, release.n_samples, axis=1)
    return smat(vectors, size)


def linear_size(n_features, intercept):
    """Number of entries of the linear statistic."""
    size = n_features + intercept + 1
    return size * (size + 1) // 2 - intercept


def linear_sensitivity(bounds, intercept=False):
    """L2 sensitivity of a linear statistic, for bounds (R, B) on rows and targets.

    With ``c`` 1 with an intercept else 0 and ``K = R^2 + c``, the squared distance of
    the terms of two rows is, for ``t = c + <x, x'>``, ``2 K^2 - 2 t^2 + 2 (K y^2 + K
    y'^2 - 2 y y' t) + (y^2 - y'^2)^2``. It is attained with two or more features,
    without an intercept or with bounds of at least 1.
    """
    x_bound, y_bound = bounds
    c = float(intercept)
    r2 = x_bound**2
    b2 = y_bound**2
    k = r2 + c
    if b2 < c - r2:
        # The best t, B^2, is below the smallest, c - R^2: x' = -x is farthest.
        return math.sqrt(8 * r2 + 8 * b2)
    if b2 <= k:
        # u and u' can be orthogonal.
        return math.sqrt(2 * (k + b2) ** 2)
    # y' = -y, or, for targets that are large beside the rows, y' = z.
    largest = 8 * k * b2
    if b2 >= 4 * k:
        z = (y_bound - math.sqrt(b2 - 4 * k)) / 2
        largest = max(largest, (y_bound + z) ** 2 * (2 * k + (y_bound - z) ** 2))
    return math.sqrt(largest)


def _linear_entry_bound(bounds, intercept):
    x_bound, y_bound = bounds
    return math.sqrt(2) * (float(intercept) + x_bound**2 + y_bound**2)


# Logistic: the sums of y u and of u u', u = ([1,] x) ---------------------------------


def logistic_vector(X, signs, intercept=False):
    """The logistic statistic of clipped rows (n, p) and signs (n,), which are -1, 1."""
    n_constants = int(intercept)
    U = np.column_stack([np.ones((len(X), n_constants)), X])
    sums = sum_of_blocks(len(U), lambda rows: signs[rows] @ U[rows], _BLOCK)
    products = sum_of_blocks(len(U), lambda rows: U[rows].T @ U[rows], _BLOCK)
    return np.concatenate([sums, svec(products)[n_constants:]])


def logistic_size(n_features, intercept):
    """Number of entries of the logistic statistic."""
    size = n_features + intercept
    return size * (size + 3) // 2 - intercept


def logistic_sensitivity(bounds, intercept=False):
    """L2 sensitivity of the logistic statistic, for a bound (R,) on rows.

    With c 1 with an intercept else 0 and ``K = R^2 + c``, the largest of ``2 K + 2 t +
    2 K^2 - 2 t^2`` over ``t = c + <x, x'>`` of two rows that differ in label: sqrt 2 (K
    + 1/2) for R^2 >= 1/2, else 2 R, or ``sqrt(4 + 8 R^2)`` with an intercept. It is
    attained with two or more features.
    """
    c = float(intercept)
    r2 = bounds[0] ** 2
    if r2 >= 0.5:
        return math.sqrt(2) * (r2 + c + 0.5)
    if intercept:
        return math.sqrt(4 + 8 * r2)
    return 2 * math.sqrt(r2)


def _logistic_entry_bound(bounds, intercept):
    square = bounds[0] ** 2 + intercept
    return max(math.sqrt(square), math.sqrt(2) * square)


# Gaussian, Bernoulli and Poisson: the sum of numbers ---------------------------------


def _sum_size(n_features, intercept):
    return 1


def _sum_sensitivity(bounds, intercept):
    lower, upper = bounds
    return upper - lower


def _sum_entry_bound(bounds, intercept):
    return max(map(abs, bounds))


# Kinds -------------------------------------------------------------------------------


@dataclass(frozen=True)
class StatisticSpec:
    """What distinguishes a kind of statistic.

    `size` takes the number of features and whether there is an intercept;
    `sensitivity` and `entry_bound` take the bounds and whether there is an intercept.
    `entry_bound` is the largest absolute value that one row adds to an entry.
    `rounding` takes the number of rows and the bounds, and returns by how much, as a
    fraction of the sensitivity, one row may change how the sums are rounded.
    """

    n_bounds: int
    size: Callable
    sensitivity: Callable
    entry_bound: Callable
    rounding: Callable


_NUMBERS = StatisticSpec(
    2, _sum_size, _sum_sensitivity, _sum_entry_bound, _rounding_of_numbers
)
_INTEGERS = StatisticSpec(
    2, _sum_size, _sum_sensitivity, _sum_entry_bound, _rounding_of_integers
)
KINDS = {
    "linear": StatisticSpec(
        2, linear_size, linear_sensitivity, _linear_entry_bound, _rounding_of_products
    ),
    "logistic": StatisticSpec(
        1,
        logistic_size,
        logistic_sensitivity,
        _logistic_entry_bound,
        _rounding_of_products,
    ),
    "gaussian": _NUMBERS,
    "bernoulli": _INTEGERS,
    "poisson": _INTEGERS,
}

# Kinds of sums of numbers: two bounds, no features and no intercept.
SUMS = ("gaussian", "bernoulli", "poisson")


def size_of_statistic(kind, n_features, intercept):
    """Number of entries of a statistic of a kind."""
    return KINDS[kind].size(n_features, intercept)
