"""What a gradient method learns from public data: scales of columns, and a learning rate."""

import warnings

import numpy as np

from ..exceptions import ConstantColumnsWarning
from ._gradient_walk import walk_steps

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

_TINY = 1e-6


def column_scales(X_val):
    """Means and deviations of the columns of public data, deviations floored.

    A deviation below a millionth of the column's largest absolute value is rounding error, not
    scale: rows divided by it would be as large as one over it. Such columns keep their largest
    absolute value as scale (one, if they are zero), with a warning.

    Parameters
    ----------
    X_val : ndarray of shape (n_validation, n_features)
        Public rows.

    Returns
    -------
    mean, scale : ndarrays of shape (n_features,)
        What to subtract, and what to divide by.

    Examples
    --------
    >>> mean, scale = column_scales(np.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> mean.tolist(), scale.tolist()
    ([1.0, 2.0], [1.0, 1.0])
    """
    X_val = np.asarray(X_val, dtype=np.float64)
    mean, scale, largest = X_val.mean(axis=0), X_val.std(axis=0), np.abs(X_val).max(axis=0)
    tiny = scale <= _TINY * largest
    if tiny.any():
        shown = ", ".join(map(str, np.flatnonzero(tiny)[:5])) + (", ..." if tiny.sum() > 5 else "")
        warnings.warn(
            f"{tiny.sum()} of {len(tiny)} columns are (nearly) constant on the validation points: "
            f"{shown}. They are scaled by their largest value, not by their deviation.",
            ConstantColumnsWarning,
            stacklevel=2,
        )
        scale = np.where(tiny, np.where(largest > 0, largest, 1.0), scale)
    return mean, scale


def target_scale(y_val, weights):
    """Weighted standard deviation of public targets; one, if they are (nearly) constant."""
    mean = y_val @ weights
    scale = np.sqrt((y_val - mean) ** 2 @ weights)
    return float(scale) if scale > _TINY * np.abs(y_val).max() else 1.0


def public_learning_rate(make_model, n_judges, n_players, size, rng):
    """Learning rate at which one walk through public data predicts other public data best.

    Parameters
    ----------
    make_model : callable
        ``make_model(rows, players, judges)``: a model of parties that hold validation points,
        judged by others.
    n_judges : int
        Number of validation points.
    n_players : int
        Number of steps.
    size : int
        Rows of a party.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    rate : float
        One of `RATES`; the smallest of equally good ones.
    """
    order = rng.permutation(n_judges)
    train, test = order[: (n_judges + 1) // 2], order[n_judges // 2 :]
    rows = rng.choice(train, n_players * size)
    model = make_model(rows, np.repeat(np.arange(n_players), size), np.sort(test))
    n, p = n_players, model.n_parameters
    theta = model.initial(rng)
    steps = model.walk if hasattr(model, "walk") else lambda *args: walk_steps(model, *args)
    best, best_utility = RATES[0], -np.inf
    for rate in RATES:
        thetas = np.empty((2, p))
        thetas[0] = theta
        bad = _walk_through(steps, n, p, rate, thetas)
        utility = -np.inf if bad >= 0 else float(model.utilities(thetas[:1])[0])
        if utility > best_utility:
            best, best_utility = rate, utility
    return best


def _walk_through(steps, n, p, rate, thetas, block=64):
    """Walk through all players in order; the last parameters come to ``thetas[0]``."""
    some = np.empty((block + 1, p))
    some[0] = thetas[0]
    nothing, ones = np.empty((0, p)), np.ones(n)
    for start in range(0, n, block):
        players = np.arange(start, min(start + block, n))
        part = some[: len(players) + 1]
        bad, _ = steps(players, rate, nothing, ones, nothing, ones, 1, part)
        if bad >= 0:
            return bad
        some[0] = part[-1]
    thetas[0] = some[0]
    return -1
