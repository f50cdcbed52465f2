"""Games whose values can be enumerated, and estimates of them."""

from typing import NamedTuple

import numpy as np

from skvalue.estimation import Adjustment, RunState, Stopping, make_design
from skvalue.games import FunctionGame
from skvalue.semivalues import tabulated_semivalue

KINDS = ("sizes", "counts", "quadratic", "neighbors", "additive")


def small_half(n):
    """A semivalue of one's own: all sizes below half of the players alike."""
    return (np.arange(n) < n // 2) / (n // 2)


def all_masks(n):
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def exact_values(game, semivalue):
    """Values from the utilities of all coalitions."""
    return tabulated_semivalue(game.utility(all_masks(game.n_players)), semivalue)


def noisy_game(n, noise=0.1, seed=3):
    """A saturating sum of the worth of the players, and noise of the coalition."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(1, 1, n)
    errors = rng.normal(size=2**n)
    powers = 2 ** np.arange(n)
    return FunctionGame(
        lambda masks: np.tanh(masks @ worth / n) + noise * errors[masks @ powers], n
    )


class Estimate(NamedTuple):
    """Values (n,), their errors and degrees of freedom, and the design."""

    values: np.ndarray
    errors: np.ndarray
    freedom: np.ndarray
    design: object


def play(game, sampler, semivalue, limit, seed=0, **options):
    """The design of a game after all its coalitions."""
    design = make_design(
        sampler,
        semivalue,
        game.n_players,
        seed=seed,
        empty_utility=game.empty_utility,
        **options,
    )
    design.limit = limit
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))
    return design


def estimate_of(design):
    """The estimate of a design."""
    run = RunState([design], [np.arange(design.n)], design.n, Stopping())
    return Estimate(*run.result(), design)


def estimate(game, sampler, semivalue, limit, seed=0, controls=None, **options):
    """The estimate of a game, adjusted by `control_variates` if they are passed."""
    adjustment = None
    rows = None
    if controls is not None:
        adjustment, rows = controls
    design = play(
        game, sampler, semivalue, limit, seed, adjustment=adjustment, **options
    )
    design.adjust(rows)
    return estimate_of(design)


def control_variates(n, kinds=KINDS, seed=0, **options):
    """An adjustment, and what it needs of n random rows of two classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.arange(n) % 2
    points = rng.normal(size=(5, 1, 2))
    order = np.argsort(((points - X) ** 2).sum(axis=2), axis=1)
    matches = (y[order] == rng.integers(0, 2, (5, 1))).astype(float)
    rows = {
        "codes": y,
        "class_weights": np.full(2, 0.5),
        "components": X,
        "points": (order, matches),
    }
    return Adjustment(kinds, **options), rows
