"""Bounds of marginal contributions by coalition size: proved for a stable game, or estimated."""

import numpy as np

from ...games import ModelGame, stability
from ...samplers import prefix_masks


def replace_bounds(n_sizes, l2, max_norm, fit_intercept=True):
    """Bounds of the change of the utility of 1, ..., n_sizes rows when one of them is replaced.

    For `skvalue.games.StableLogisticGame`: ``2 (kappa L)^2 / (l2 k)``, plus the error of the
    solver.
    """
    kappa, slope, tolerance = stability(l2, max_norm, fit_intercept)
    steep = kappa * slope
    return (2 * steep**2 / np.arange(1, n_sizes + 1) + 2 * steep * tolerance) / l2


def contribution_bounds(n_layers, l2, max_norm, fit_intercept=True):
    """Bounds of the marginal contributions to coalitions of 0, 1, ..., n_layers rows.

    A row that joins k others, which also changes the weights of the mean loss, changes the
    utility by no more than the replacement of a row among k + 1.

    >>> contribution_bounds(2, l2=1.0, max_norm=1.0, fit_intercept=False).round(3).tolist()
    [0.791, 0.396, 0.264]
    """
    return replace_bounds(n_layers + 1, l2, max_norm, fit_intercept)


def marginal_bounds(n, bound=None, n_layers=None, game=(None, 1.0, True)):
    """Bounds of marginal contributions by size, and of the sum of the layers beyond `n_layers`.

    Parameters
    ----------
    n : int
        Number of players.
    bound : float, default=None
        The constant c of ``c / k``; None is 1, or the proved bound if `game` has a penalty.
    n_layers : int, default=None
        Largest size; None: all.
    game : tuple of (float or None, float, bool), default=(None, 1.0, True)
        ``l2``, ``max_norm`` and ``fit_intercept`` of `LayeredShapleyValuer`.

    Returns
    -------
    bounds : ndarray of shape (K + 1,)
        Bounds for layers 0, ..., K.
    left_out : float
        Sum of the bounds of layers K + 1, ..., n - 1, over n.

    Examples
    --------
    >>> bounds, left_out = marginal_bounds(5, n_layers=2)
    >>> bounds.tolist(), round(left_out, 4)
    ([1.0, 1.0, 0.5], 0.1167)
    """
    if game[0] is not None and bound is None:
        bounds = contribution_bounds(n - 1, *game)
    else:
        bounds = (1.0 if bound is None else bound) / np.maximum(np.arange(n), 1)
    layers = n if n_layers is None else n_layers + 1
    return bounds[:layers], float(bounds[layers:].sum() / n)


def suggest_bound(
    estimator, X, y, X_val, y_val, *, scoring=None, empty_utility=None, n_orders=20, random_state=0
):
    """Estimate the constant c of Layered Shapley from public data.

    The maximum of k times the absolute marginal contribution to k rows, over all prefixes of some
    random orders. It is an estimate and not a bound: only some coalitions are evaluated.

    Parameters
    ----------
    estimator : estimator
        The model.
    X, y : array-likes of shapes (n_samples, n_features) and (n_samples,)
        Public rows, similar to those that will be valued, and their labels or targets.
    X_val, y_val : array-likes
        Validation points.
    scoring : str or callable, default=None
        Scorer of the utility; None is the score method of the estimator.
    empty_utility : float, default=None
        Utility of the empty coalition, as in `LayeredShapleyValuer`.
    n_orders : int, default=20
        Number of orders.
    random_state : int, default=0
        Seed of the orders.

    Returns
    -------
    bound : float
        A value for the parameter `bound` of `LayeredShapleyValuer`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bound = suggest_bound(LogisticRegression(C=1e-4), X[:40], y[:40], X[40:90], y[40:90])
    >>> 0 < bound < 40
    True
    """
    game = ModelGame(
        estimator, X, y, X_val, y_val, scoring=scoring, empty_utility=empty_utility, random_state=0
    )
    n, rng = game.n_players, np.random.default_rng(random_state)
    positions = rng.permuted(np.tile(np.arange(n), (n_orders, 1)), axis=1)
    masks = prefix_masks(positions.repeat(n, axis=0), np.tile(np.arange(1, n + 1), n_orders))
    utilities = game.utility(masks).reshape(n_orders, n)
    return float((np.arange(1, n) * np.abs(np.diff(utilities, axis=1))).max(initial=0.0))
