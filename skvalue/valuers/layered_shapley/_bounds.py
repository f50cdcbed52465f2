"""Bounds of marginal contributions by coalition size: proved, or assumed."""

import math

import numpy as np

from ...games import stability, weight_norm


def contribution_bounds(n_layers, l2, max_norm, fit_intercept=True):
    """Bounds of the marginal contributions to coalitions of 0, 1, ..., n_layers rows.

    A row that joins k others, which also changes the weights of the mean loss, changes
    the utility by no more than the replacement of a row among k + 1: see
    `skvalue.games.StableLogisticGame`.

    >>> bounds = contribution_bounds(2, l2=1.0, max_norm=1.0, fit_intercept=False)
    >>> bounds.round(3).tolist()
    [0.791, 0.396, 0.264]
    """
    kappa, slope, tolerance = stability(l2, max_norm, fit_intercept)
    steep = kappa * slope
    return (2 * steep**2 / np.arange(1, n_layers + 2) + 2 * steep * tolerance) / l2


def training_bound(l2, max_norm, fit_intercept=True):
    """Bound of k + 1 times what a row changes in the minimum objective of k others.

    It is the largest loss of a row under a model of the others: Observation 3.1 of the
    paper, whose loss is of 0 and 1.

    >>> round(training_bound(1.0, 1.0, fit_intercept=False), 3)
    0.991
    """
    kappa, _, tolerance = stability(l2, max_norm, fit_intercept)
    return float(np.logaddexp(0.0, kappa * (weight_norm(l2) + tolerance / l2)))


def change_bounds(
    n_layers, l2, max_norm, fit_intercept=True, slope=None, curvature=None
):
    """Bounds of what another row, and the row itself, change in each layer.

    The marginal contribution of a row to k others changes by no more than the first of
    these bounds if one of the k is replaced, and by no more than the second if the row
    itself is; the user guide has the proof. With ``p = l2 |w|`` and q = 2 kappa L / l2,
    a row that joins k others moves the coefficients by at most d / (k + 1), d = (kappa
    L + p) / l2; replacing one of k rows by at most q / k; and neither by more than the
    diameter of the ball of all attainable coefficients.

    Parameters
    ----------
    n_layers, l2, max_norm, fit_intercept : int, float, float, bool
        As in `LayeredShapleyValuer`.
    slope, curvature : float, default=None
        Of the utility, see `skvalue.games.validation_bounds`; None is that of any
        points.

    Returns
    -------
    other : ndarray of shape (n_layers,)
        For layers 1, ..., n_layers: the smaller of twice the contribution and of the
        bound of the second difference.
    own : ndarray of shape (n_layers + 1,)
        For layers 0, ..., n_layers.

    Examples
    --------
    >>> other, own = change_bounds(2, l2=1.0, max_norm=1.0, fit_intercept=False)
    >>> other.round(3).tolist(), own.round(3).tolist()
    ([0.727, 0.255], [0.664, 0.396, 0.264])
    """
    kappa, steepest, tolerance = stability(l2, max_norm, fit_intercept)
    steep = kappa * steepest
    if slope is None:
        slope = steep
    if curvature is None:
        curvature = kappa**2 / 4

    # How far the coefficients move if a row joins, d, and if one is replaced, q; and
    # the diameter of the ball.
    joins = (steep + min(steep, l2 * weight_norm(l2))) / l2
    replaced = 2 * steep / l2
    width = 2 * weight_norm(l2)

    # The second difference, by the Lipschitz constant of the Hessian of the loss.
    third = kappa**3 / (6 * math.sqrt(3))
    k = np.arange(1, n_layers + 1)
    moved = (kappa**2 / 4 + third * replaced) * joins / (k + 1)
    moved = (moved + (kappa**2 / 4 + l2) * replaced / k) / (l2 * (k + 1))
    second = slope * moved + curvature * replaced * joins / (k * (k + 1))

    # The error of the solver, in four utilities.
    error = 4 * slope * tolerance / l2
    other = np.minimum(2 * slope * np.minimum(joins / (k + 1), width), second) + error
    sizes = np.arange(1, n_layers + 2)
    own = slope * np.minimum(replaced / sizes, width) + error / 2
    return other, own


def marginal_bounds(valuer, n):
    """Bounds of marginal contributions by size, and of the sum of omitted layers.

    Parameters
    ----------
    valuer : object
        With the parameters of `LayeredShapleyValuer`.
    n : int
        Number of players.

    Returns
    -------
    bounds : ndarray of shape (K + 1,)
        Bounds for layers 0, ..., K: the proved ones of ``l2``, or ``bound / k``.
    left_out : float
        Sum of the bounds of layers K + 1, ..., n - 1, over n.
    """
    bounds = _bounds_of_all_layers(valuer, n)
    n_bounds = n if valuer.n_layers is None else valuer.n_layers + 1
    return bounds[:n_bounds], float(bounds[n_bounds:].sum() / n)


def _bounds_of_all_layers(valuer, n):
    """Bounds of marginal contributions for layers 0, ..., n - 1."""
    game = (valuer.l2, valuer.max_norm, valuer.fit_intercept)
    bound = valuer.bound
    if bound is None and valuer.l2 is not None:
        if valuer.scoring is None:
            return contribution_bounds(n - 1, *game)
        bound = training_bound(*game)
    if bound is None:
        bound = 1.0
    return bound / np.maximum(np.arange(n), 1)
