"""What each row changes in a utility, to second order, from one fit of a coalition.

At the optimum theta of a coalition S, with Hessian H, let a row with columns a and
decisions z join (s = 1) or leave (s = -1). With everything but its own loss l to second
order, the step is ``d = -s H^-1 a rho`` for the solution of ``rho = w l'(z - s h
rho)``, with the leverage ``h = a' H^-1 a``; the first iteration of Newton's method for
rho is Newton's step. The third derivatives T of the losses of S add ``-H^-1 T[d, d] /
2``. So a utility with derivatives g and G changes by

    ``g' d + d' (G - T[H^-1 g]) d / 2``

to second order, at the cost of two quadratic forms a row. All is exact for squared
losses. Decisions may be several (K classes); arrays of them have a last axis of length
K.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .losses import SQUARED, Loss

_MAX_STEPS = 5  # of Newton's method for rho
_BLOCK = 2**20  # most entries of a block of leverages


class WeightedRows(NamedTuple):
    """Columns (n, p), targets or codes of classes, and weights (n,) of rows."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum of a coalition: theta (K, p), H (K p, K p), and the loss."""

    theta: np.ndarray
    hessian: np.ndarray
    loss: Loss

    @cached_property
    def inverse(self):
        """``H^-1``; raises `LinAlgError` if H is singular."""
        return np.linalg.inv(self.hessian)


class UtilityDerivatives(NamedTuple):
    """First derivatives g (K p,) of a utility, and ``G - T[H^-1 g]`` (K p, K p)."""

    gradient: np.ndarray
    curvature: np.ndarray


def gram(X, weights):
    """``sum_i weights_i (K x K) times x_i x_i'``, of K p rows, classes first."""
    k = weights.shape[1]
    p = X.shape[1]
    blocks = np.empty((k, p, k, p))
    for a in range(k):
        for b in range(a + 1):
            blocks[a, :, b] = (X * weights[:, a, b, None]).T @ X
            blocks[b, :, a] = blocks[a, :, b]
    return blocks.reshape(k * p, k * p)


def quadratic_forms(X, matrix):
    """``(I x x_i)' matrix (I x x_i)`` of every row, (n, K, K)."""
    p = X.shape[1]
    k = len(matrix) // p
    forms = np.empty((len(X), k, k))
    for a in range(k):
        for b in range(a + 1):
            block = matrix[a * p : (a + 1) * p, b * p : (b + 1) * p]
            form = np.einsum("ij,ij->i", X @ block, X)
            forms[:, a, b] = form
            forms[:, b, a] = form
    return forms


def step_factors(rows, z, leverages, signs, loss):
    """The solutions rho (n, K) at decisions z, by Newton's method from 0.

    Rows that leave take one step of it: there may be no solution.
    """
    rho = np.zeros(z.shape)
    after_one_step = None
    n_steps = 1 if loss is SQUARED else _MAX_STEPS
    weights = rows.weights
    for _ in range(n_steps):
        moved = z - signs[:, None] * np.einsum("nkl,nl->nk", leverages, rho)
        residuals = rho - weights[:, None] * loss.gradient(moved, rows.y)
        products = loss.curvature(moved, rows.y) @ leverages
        slopes = (signs * weights)[:, None, None] * products
        if z.shape[1] == 1:
            rho = rho - residuals / (1.0 + slopes[:, 0])
        else:
            system = np.eye(z.shape[1]) + slopes
            rho = rho - np.linalg.solve(system, residuals[:, :, None])[:, :, 0]
        if after_one_step is None:
            after_one_step = rho
    return np.where(signs[:, None] < 0, after_one_step, rho)


class _RowFactors(NamedTuple):
    """What multiplies rows in their steps, and the lengths of these."""

    rho: np.ndarray  # (n, K)
    first_order: np.ndarray  # rho, and what rows that leave take of their own T, (n, K)
    lengths: np.ndarray  # squared: d' H d, and for large leverages |a' d|^2 / 16, (n,)


def _row_factors(optimum, rows, signs):
    """The `_RowFactors` of n rows that join (sign 1) or leave (-1)."""
    loss = optimum.loss
    leverages = quadratic_forms(rows.X, optimum.inverse)
    z = rows.X @ optimum.theta.T
    rho = step_factors(rows, z, leverages, signs, loss)

    # T contains the third derivatives of a row that leaves, which it takes away.
    moved = np.einsum("nkl,nl->nk", leverages, rho)
    derivatives = loss.curvature_derivative(z, moved)
    own_third = np.einsum("nkl,nl->nk", derivatives, moved)
    taken_away = 0.5 * rows.weights[:, None] * own_third
    first_order = rho + np.where(signs[:, None] < 0, taken_away, 0.0)

    lengths = np.einsum("nk,nk->n", rho, moved) + (moved**2).sum(axis=1) / 16
    return _RowFactors(rho, first_order, lengths)


def utility_changes(optimum, rows, signs, utility):
    """Changes of the utility by rows that join or leave, and lengths of their steps.

    Parameters
    ----------
    optimum : Optimum
        The model of the coalition.
    rows : WeightedRows
        The n rows.
    signs : ndarray of shape (n,)
        1 for rows that join, -1 for rows that leave.
    utility : UtilityDerivatives
        Derivatives of the utility at the optimum.

    Returns
    -------
    changes, lengths : ndarrays of shape (n,)
        Changes of the utility, and ``d' H d`` plus, for large leverages, ``|a' d|^2 /
        16``.
    """
    k, p = optimum.theta.shape
    inverse = optimum.inverse
    along = (inverse @ utility.gradient).reshape(k, p)
    curvature = inverse @ utility.curvature @ inverse  # in the metric of steps

    n = len(rows.X)
    changes = np.empty(n)
    lengths = np.empty(n)
    size = max(1, _BLOCK // (k * k * 4))
    with np.errstate(all="ignore"):
        for first in range(0, n, size):
            block = slice(first, first + size)
            tile = WeightedRows(*(array[block] for array in rows))
            factors = _row_factors(optimum, tile, signs[block])
            rho = factors.rho
            second = quadratic_forms(tile.X, curvature)
            changes[block] = 0.5 * np.einsum("nk,nkl,nl->n", rho, second, rho)
            changes[block] -= signs[block] * np.einsum(
                "nk,nk->n", factors.first_order, tile.X @ along.T
            )
            lengths[block] = factors.lengths
    return changes, lengths


def row_steps(optimum, rows, signs):
    """Steps (n, K p) of rows, without and with T of their own, and lengths (n,).

    The first are ``d`` without third derivatives. The second add what rows that leave
    take away from T, but not ``-H^-1 T[d, d] / 2``, which all rows have.
    """
    factors = _row_factors(optimum, rows, signs)

    def steps_of(multipliers):
        directions = -signs[:, None, None] * multipliers[:, :, None] * rows.X[:, None]
        return directions.reshape(len(rows.X), -1) @ optimum.inverse

    return steps_of(factors.rho), steps_of(factors.first_order), factors.lengths


def third_derivatives(X, weights, z, loss):
    """Third derivatives of the losses of rows with decisions z, (K p, K p, K p).

    They do not depend on the labels.
    """
    k = z.shape[1]
    derivatives = []
    for unit in np.eye(k):
        for column in X.T:
            curvature = loss.curvature_derivative(z, column[:, None] * unit)
            derivatives.append(gram(X, weights[:, None, None] * curvature))
    return np.array(derivatives)


def group_changes(optimum, rows, codes, signs, utility):
    """As `utility_changes`, of groups that join or leave: one Newton step each."""
    steps, lengths = group_steps(optimum, rows, codes, signs)
    second = np.einsum("ij,ij->i", steps @ utility.curvature, steps)
    return steps @ utility.gradient + 0.5 * second, lengths


def group_steps(optimum, rows, codes, signs):
    """Newton's step (n, K p) of each group, and its squared length.

    Where there is no optimum without a group, they are 0 and infinite.

    ``codes`` (n_rows,) are the groups 0 to n - 1 of the rows.
    """
    X, y, weights = rows
    hessian = optimum.hessian
    z = X @ optimum.theta.T
    gradients = weights[:, None] * optimum.loss.gradient(z, y)
    curvatures = weights[:, None, None] * optimum.loss.curvature(z, y)

    n_groups = len(signs)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(n_groups + 1))
    steps = np.zeros((n_groups, len(hessian)))
    lengths = np.full(n_groups, np.inf)
    for g in range(n_groups):
        members = order[bounds[g] : bounds[g + 1]]
        changed_hessian = hessian + signs[g] * gram(X[members], curvatures[members])
        gradient = (gradients[members].T @ X[members]).ravel()
        try:
            steps[g] = -signs[g] * np.linalg.solve(changed_hessian, gradient)
        except np.linalg.LinAlgError:  # no optimum without the group
            continue
        lengths[g] = steps[g] @ hessian @ steps[g]
    return steps, lengths
