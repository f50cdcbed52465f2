"""The learning rate of a training with noise, from rounds on public rows."""

import numpy as np

from ...derivatives import smallest_rate

_REPEATS = 3
_FRACTION = 0.9  # of the best gain that the rate has at least


def rate_with_noise(model, rates, newest_weights, noise_std, rng):
    """Smallest of some rates (n_rates,) with nine tenths of the best gain of utility.

    The one player of ``model`` trains alone. Noise of standard deviation ``noise_std``,
    that of the mean update of all parties, is added to its updates, which are averaged
    over rounds as those of the parties are. Gains are means over three trainings; if no
    rate gains, the result is the smallest.
    """
    gains = np.zeros(len(rates))
    for _ in range(_REPEATS):
        gains += _gains(model, rates, newest_weights, noise_std, rng)
    return smallest_rate(rates, gains, _FRACTION)


def _gains(model, rates, newest_weights, noise_std, rng):
    """Gains (n_rates,) of one training at each rate, all with the same noise."""
    player = np.zeros(len(rates), dtype=np.int64)
    start = model.start(rng)
    thetas = np.repeat(start[None], len(rates), axis=0)
    averages = np.zeros_like(thetas)
    with np.errstate(over="ignore", invalid="ignore"):
        for weight in newest_weights:
            noise = noise_std * rng.standard_normal(len(start))
            updates = noise - model.gradients(thetas, player)
            averages = averages + weight * (updates - averages)
            thetas = thetas + rates[:, None] * averages
        is_finite = np.isfinite(thetas).all(axis=1)
        usable = np.where(is_finite[:, None], thetas, 0.0)
        utilities = model.utilities(np.vstack([start, usable]))
    gains = utilities[1:] - utilities[0]
    return np.where(is_finite & np.isfinite(gains), gains, -np.inf)
