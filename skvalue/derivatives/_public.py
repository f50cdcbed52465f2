"""Scales, directions and learning rates of gradient methods, from public data."""

import numpy as np

from .._utils.parallel import tiles
from .._utils.warned import warn
from ..exceptions import ConstantColumnsWarning

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

_REPEATS = 3
_BLOCK = 64  # steps of a walk whose parameters are kept
_TINY = 1e-6  # relative size below which a number is rounding


def column_scales(X_val):
    """Means and scales of the columns of public data.

    The scale is the standard deviation. If that is below a millionth of the largest
    absolute value, it is rounding error: the scale is then the largest absolute value
    (or 1), with a warning.
    """
    X_val = np.asarray(X_val, dtype=np.float64)
    mean = X_val.mean(axis=0)
    scale = X_val.std(axis=0)
    largest = np.abs(X_val).max(axis=0)
    is_constant = scale <= _TINY * largest
    n_constant = is_constant.sum()
    if n_constant:
        columns = ", ".join(map(str, np.flatnonzero(is_constant)[:5]))
        if n_constant > 5:
            columns += ", ..."
        warn(
            f"{n_constant} of {len(scale)} columns are (nearly) constant on the "
            f"validation points: {columns}. Their scale is their largest absolute "
            "value, not their standard deviation.",
            ConstantColumnsWarning,
        )
        scale = np.where(is_constant, np.where(largest > 0, largest, 1.0), scale)
    return mean, scale


def target_scale(y_val, weights):
    """Weighted standard deviation of public targets; 1 if (nearly) constant."""
    mean = y_val @ weights
    scale = np.sqrt((y_val - mean) ** 2 @ weights)
    return float(scale) if scale > _TINY * np.abs(y_val).max() else 1.0


def public_directions(gradients, weights, n_components):
    """Orthonormal basis (p, n_components) of the gradients (n_rows, p) of public rows.

    The first direction is the weighted mean gradient, the others are the singular
    directions of the residuals. Raises ValueError if the gradients have fewer
    directions.
    """
    mean = weights @ gradients
    length = np.linalg.norm(mean)
    if length > _TINY * np.linalg.norm(gradients):
        first = mean[None] / length
    else:
        first = np.empty((0, len(mean)))  # the gradients have no mean direction
    residuals = gradients - (gradients @ first.T) @ first
    weighted = residuals * np.sqrt(weights)[:, None]
    _, sizes, directions = np.linalg.svd(weighted, full_matrices=False)
    is_direction = sizes > _TINY * max(sizes.max(), length)
    directions = np.vstack([first, directions[is_direction]])
    if len(directions) < n_components:
        raise ValueError(
            "n_components must be at most the number of directions in which gradients "
            f"of the validation points differ, {len(directions)}. Got {n_components}."
        )
    return np.ascontiguousarray(directions[:n_components].T)


def public_learning_rate(
    make_model, n_points, n_players, size, rng, noise_std=0.0, largest_weight=1.0
):
    """Learning rate of a walk, from walks on the n_points public validation points.

    ``make_model(rows, players, points)`` trains on one half, of `size` rows per party,
    and evaluates on the other. The result is the smallest of `RATES` with at least half
    of the best gain of utility: larger steps help the model, but leave no gain for late
    steps. Without any gain it is the smallest rate. Rates are divided by the largest
    weight of a step, so that no step is longer than the largest of `RATES`.
    """
    rates = np.array(RATES) / largest_weight
    gains = np.zeros(len(RATES))
    for _ in range(_REPEATS):
        order = rng.permutation(n_points)
        train = order[: (n_points + 1) // 2]
        test = order[n_points // 2 :]
        rows = rng.choice(train, n_players * size)
        players = np.repeat(np.arange(n_players), size)
        model = make_model(rows, players, np.sort(test))
        utilities = utilities_of_rates(
            model, np.arange(n_players), rng, noise_std, rates
        )
        gains += utilities[1:] - utilities[0]
    return smallest_rate(rates, gains, 0.5)


def smallest_rate(rates, gains, fraction):
    """Smallest rate with a fraction of the best gain; the smallest if none gains."""
    best = gains.max()
    if not best > 0:
        return rates[0]
    return rates[int((gains >= fraction * best).argmax())]


def utilities_of_rates(model, players, rng, noise_std=0.0, rates=RATES):
    """Utilities before, and after a step of each of a few players at each rate.

    They are -inf where parameters or utilities are not finite.
    """
    rates = np.asarray(rates)
    start = model.start(rng)
    p = model.n_parameters
    seed = rng.integers(2**63)
    n_walks, n_steps = model.batch_size(len(rates))
    stds = np.full(model.n_players, noise_std or 1.0)
    ends = []
    for walks in tiles(len(rates), n_walks):
        walk_rates = rates[walks]
        noise_rng = np.random.default_rng(seed)  # the same noise for all rates
        thetas = np.repeat(start[None], len(walk_rates), axis=0)
        for block in tiles(len(players), min(n_steps, _BLOCK)):
            orders = np.tile(players[block], (len(walk_rates), 1))
            n_noisy = orders.shape[1] if noise_std else 0
            noise = noise_rng.normal(scale=noise_std, size=(n_noisy, p))
            _, thetas, failed_steps = model.walk(
                orders, walk_rates, [noise] * len(walk_rates), stds, thetas
            )
            thetas[failed_steps >= 0] = np.inf
        ends.append(thetas)

    ends = np.concatenate(ends)
    is_finite = np.isfinite(ends).all(axis=1)
    usable_ends = np.where(is_finite[:, None], ends, 0.0)
    with np.errstate(over="ignore"):
        utilities = model.utilities(np.vstack([start, usable_ends]))
    usable = np.append(True, is_finite) & np.isfinite(utilities)
    return np.where(usable, utilities, -np.inf)
