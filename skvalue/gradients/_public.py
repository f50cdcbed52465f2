"""What a gradient method learns from public data: scales, directions, norms, a learning rate."""

import warnings

import numpy as np

from .._utils.parallel import tiles
from ..exceptions import ConstantColumnsWarning
from ..privacy import on_grid

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

_REPEATS = 3
_TINY = 1e-6


def column_scales(X_val):
    """Means and standard deviations of the columns of public data, floored.

    One below a millionth of the column's largest absolute value is rounding error, not scale: rows
    divided by it would be as large as one over it. Such columns keep their largest absolute value
    as scale (one, if they are zero), with a warning.

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


def public_directions(gradients, weights, n_components):
    """Directions in which public rows pull: their mean gradient, then those of most of the rest.

    Parameters
    ----------
    gradients : ndarray of shape (n_rows, p)
        Gradients of public rows.
    weights : ndarray of shape (n_rows,)
        Weights of the rows.
    n_components : int
        Number of directions, r.

    Returns
    -------
    basis : ndarray of shape (p, r)
        Orthonormal columns: the mean, then singular directions of what is left without it.

    Raises
    ------
    ValueError
        If the gradients have fewer directions.

    Examples
    --------
    >>> gradients = np.array([[1.0, 0.5], [1.0, -0.5]])
    >>> abs(public_directions(gradients, np.ones(2), 2)).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    mean = weights @ gradients
    length = np.linalg.norm(mean)
    first = mean[None] / length if length > _TINY * np.linalg.norm(gradients) else mean[:0, None].T
    rest = (gradients - (gradients @ first.T) @ first) * np.sqrt(weights)[:, None]
    _, sizes, directions = np.linalg.svd(rest, full_matrices=False)
    directions = np.vstack([first, directions[sizes > _TINY * max(sizes.max(), length)]])
    if len(directions) < n_components:
        raise ValueError(
            "n_components must be at most the number of directions in which gradients of the "
            f"validation points differ, {len(directions)}. Got {n_components}."
        )
    return np.ascontiguousarray(directions[:n_components].T)


def public_learning_rate(make_model, n_points, n_players, size, rng, noise_std=0.0):
    """Learning rate for one walk, chosen by walks through public data.

    The smallest of `RATES` at which walks through half of the validation points gain at least half
    of the utility, on the other half, that they gain at the best of the rates. Larger steps are
    better for the model, but not for values: late steps have nothing left to add then.

    Parameters
    ----------
    make_model : callable
        ``make_model(rows, players, points)``: a model of parties that hold validation points,
        evaluated on others.
    n_points : int
        Number of validation points.
    n_players : int
        Number of steps.
    size : int
        Rows of a party.
    rng : numpy.random.Generator
        Source of random numbers.
    noise_std : float, default=0.0
        Standard deviation of the noise in what steps go along.

    Returns
    -------
    rate : float
        One of `RATES`; the smallest, if nothing is gained at any.
    """
    gains = np.zeros(len(RATES))
    for _ in range(_REPEATS):
        order = rng.permutation(n_points)
        train, test = order[: (n_points + 1) // 2], order[n_points // 2 :]
        rows = rng.choice(train, n_players * size)
        model = make_model(rows, np.repeat(np.arange(n_players), size), np.sort(test))
        first = model.initial(rng)
        seed = rng.integers(2**63)  # the same noise for all rates
        if model.walk is None:
            ends = _walks_through(model, first, noise_std, np.random.default_rng(seed))
        else:
            ends = np.stack([
                _walk_through(model, first, rate, noise_std, np.random.default_rng(seed))
                for rate in RATES
            ])  # fmt: skip
        finite = np.isfinite(ends).all(axis=1)
        utilities = model.utilities(np.vstack([first, np.where(finite[:, None], ends, 0.0)]))
        gains += np.where(finite, utilities[1:] - utilities[0], -np.inf)
    return RATES[int((gains >= gains.max() / 2).argmax())] if gains.max() > 0 else RATES[0]


def _walk_through(model, theta, rate, noise_std, rng, block=64):
    """Parameters after a step along every player; infinite, if a gradient was."""
    n, p = model.n_players, model.n_parameters
    thetas, ones, none = np.empty((block + 1, p)), np.ones(n), np.empty((0, p))
    thetas[0] = theta
    for part in tiles(n, block):
        players = np.arange(part.start, part.stop)
        noise = rng.normal(scale=noise_std, size=(len(players), p)) if noise_std else none
        some, noise_stds = thetas[: len(players) + 1], ones * (noise_std or 1.0)
        bad, _ = model.walk(players, rate, noise, noise_stds, none, ones, 1, some)
        if bad >= 0:
            return np.full(p, np.inf)
        thetas[0] = some[-1]
    return thetas[0]


def _walks_through(model, theta, noise_std, rng):
    """`_walk_through` at all rates, for a model that takes its steps one by one."""
    rates = np.array(RATES)[:, None]
    thetas = np.repeat(theta[None], len(rates), axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        for player in range(model.n_players):
            found = model.gradients(thetas, np.full(len(rates), player))
            if noise_std:
                found = on_grid(found + rng.normal(scale=noise_std, size=len(theta)), noise_std)
            thetas = thetas - rates * found
    return thetas
