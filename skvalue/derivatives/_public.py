"""Scales, directions and learning rates of gradient methods, computed from public data."""

import warnings

import numpy as np

from .._utils.parallel import tiles
from ..exceptions import ConstantColumnsWarning
from ..privacy import on_grid

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

_REPEATS = 3
_TINY = 1e-6


def column_scales(X_val):
    """Means and scales of the columns of public data.

    The scale is the standard deviation. If that is below a millionth of the largest absolute value,
    it is rounding error: the scale is then the largest absolute value (or 1), with a warning.
    """
    X_val = np.asarray(X_val, dtype=np.float64)
    mean, scale, largest = X_val.mean(axis=0), X_val.std(axis=0), np.abs(X_val).max(axis=0)
    tiny = scale <= _TINY * largest
    if tiny.any():
        shown = ", ".join(map(str, np.flatnonzero(tiny)[:5])) + (", ..." if tiny.sum() > 5 else "")
        warnings.warn(
            f"{tiny.sum()} of {len(tiny)} columns are (nearly) constant on the validation points: "
            f"{shown}. Their scale is their largest absolute value, not their standard deviation.",
            ConstantColumnsWarning,
            stacklevel=2,
        )
        scale = np.where(tiny, np.where(largest > 0, largest, 1.0), scale)
    return mean, scale


def target_scale(y_val, weights):
    """Weighted standard deviation of public targets; 1 if they are (nearly) constant."""
    mean = y_val @ weights
    scale = np.sqrt((y_val - mean) ** 2 @ weights)
    return float(scale) if scale > _TINY * np.abs(y_val).max() else 1.0


def public_directions(gradients, weights, n_components):
    """Orthonormal basis (p, n_components) of the gradients (n_rows, p) of public rows.

    The first direction is the weighted mean gradient, the others are the singular directions of the
    residuals. Raises ValueError if the gradients have fewer directions.
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
    """Learning rate of a walk, from walks on the n_points validation points, which are public.

    ``make_model(rows, players, points)`` trains on one half, of `size` rows per party, and
    evaluates on the other. The result is the smallest of `RATES` with at least half of the best
    gain of utility: larger steps help the model, but leave no gain for late steps. Without any
    gain it is the smallest rate.
    """
    gains = np.zeros(len(RATES))
    for _ in range(_REPEATS):
        order = rng.permutation(n_points)
        train, test = order[: (n_points + 1) // 2], order[n_points // 2 :]
        rows = rng.choice(train, n_players * size)
        model = make_model(rows, np.repeat(np.arange(n_players), size), np.sort(test))
        first = model.start(rng)
        seed = rng.integers(2**63)  # the same noise for all rates
        if model.walk is None:
            ends = _final_parameters_of_rates(model, first, noise_std, np.random.default_rng(seed))
        else:
            ends = np.stack([
                _final_parameters(model, first, rate, noise_std, np.random.default_rng(seed))
                for rate in RATES
            ])  # fmt: skip
        finite = np.isfinite(ends).all(axis=1)
        utilities = model.utilities(np.vstack([first, np.where(finite[:, None], ends, 0.0)]))
        gains += np.where(finite, utilities[1:] - utilities[0], -np.inf)
    return smallest_rate(RATES, gains, 0.5)


def smallest_rate(rates, gains, fraction):
    """The smallest rate with a fraction of the best gain; the smallest of all if none gains."""
    best = gains.max()
    return rates[int((gains >= fraction * best).argmax())] if best > 0 else rates[0]


def _final_parameters(model, theta, rate, noise_std, rng, block=64):
    """Parameters after a step along every player; infinite if a gradient is not finite."""
    n, p = model.n_players, model.n_parameters
    thetas, ones, none = np.empty((block + 1, p)), np.ones(n), np.empty((0, p))
    thetas[0] = theta
    for part in tiles(n, block):
        players = np.arange(part.start, part.stop)
        noise = rng.normal(scale=noise_std, size=(len(players), p)) if noise_std else none
        some, noise_stds = thetas[: len(players) + 1], ones * (noise_std or 1.0)
        bad = model.walk(players, rate, noise, noise_stds, none, 1.0, 1, some)
        if bad >= 0:
            return np.full(p, np.inf)
        thetas[0] = some[-1]
    return thetas[0]


def _final_parameters_of_rates(model, theta, noise_std, rng):
    """`_final_parameters` at all rates, for a model without `walk`."""
    rates = np.array(RATES)[:, None]
    thetas = np.repeat(theta[None], len(rates), axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        for player in range(model.n_players):
            found = model.gradients(thetas, np.full(len(rates), player))
            if noise_std:
                found = on_grid(found + rng.normal(scale=noise_std, size=len(theta)), noise_std)
            thetas = thetas - rates * found
    return thetas
