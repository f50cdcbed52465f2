"""Rounds of a federated training: averages of updates, and values of the parties."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn import get_config

from ..._utils.parallel import tiles
from ...estimation import choose_sampler, group_values, make_design
from ...games import FunctionGame
from ...semivalues import size_weights
from ._release import RationedNoise

_MIN_PERMUTATIONS = 4  # two antithetic pairs, so that there are standard errors


def coalition_parameters(theta, updates, masks, rate, coalition_step="mean"):
    """Parameters (m, p) after a round in which only a coalition takes part.

    From parameters ``theta`` (p,) before the round, updates (n_players, p) and masks
    (m, n_players). The step is along the mean of the updates of the coalition, or their
    sum: the path of G-Shapley, a step of each party after the other, whose order does
    not matter since the updates are those at ``theta``.
    """
    sums = masks @ updates
    if coalition_step == "sum":
        return theta + rate * sums
    sizes = masks.sum(axis=1, keepdims=True)
    return theta + sums * (rate / np.maximum(sizes, 1))


class RoundValues(NamedTuple):
    """Values of the players in one round.

    Parameters
    ----------
    values, variances : ndarray of shape (n_players,)
        Values, and their squared standard errors: zero if all coalitions were
        evaluated.
    ends : tuple of two floats
        Utilities before and after the round.
    n_evaluations : int
        Number of utilities computed.
    """

    values: np.ndarray
    variances: np.ndarray
    ends: tuple
    n_evaluations: int


def round_values(
    utilities,
    theta,
    updates,
    rate,
    *,
    semivalue,
    n_permutations,
    seed,
    number,
    codes=None,
    coalition_step="mean",
):
    """The `RoundValues` of a round, from utilities along `n_permutations` permutations.

    Permutations come in antithetic pairs, of which there are at least two; the values
    of the sampler "subsets" use as many coalitions. If there are fewer coalitions, all
    are evaluated. With `codes`, players are rows, in random subsets, and values those
    of their groups. `coalition_step` is that of `coalition_parameters`.
    """
    n_players = len(updates)
    utility = _coalition_utility(utilities, theta, updates, rate, coalition_step)
    game = FunctionGame(utility, n_players, cache_size=0)
    is_leave_one_out = size_weights(semivalue, n_players)[-1] == 1.0
    if is_leave_one_out:
        return _leave_one_out(game, codes)

    # The coalition of all players is one more.
    n_permutations = max(n_permutations, _MIN_PERMUTATIONS)
    limit = 1 + n_permutations * (n_players - 1)
    sampler = choose_sampler(semivalue, n_players, limit)
    if sampler in ("stratified", "permutation"):
        sampler = "antithetic" if codes is None else "stratified"
    design = make_design(
        sampler,
        semivalue,
        n_players,
        empty_utility=game.empty_utility,
        seed=seed,
        number=number,
    )
    if sampler == "antithetic":
        limit = 1 + n_permutations * (design.cost // design.n_orders)
    # Standard errors need at least two blocks.
    design.limit = None if sampler == "exact" else max(limit, 2 * design.cost + 1)
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))

    if codes is not None:
        values, covariance, _ = group_values(design, codes)
        variances = np.diagonal(covariance)
    else:
        values = design.values()
        variances = np.zeros(n_players)
        if not design.exact:
            variances, _ = design.variances()
    ends = (game.empty_utility, design.full)
    return RoundValues(values, variances, ends, game.n_evaluations + 1)


def _coalition_utility(utilities, theta, updates, rate, coalition_step):
    """The function from masks (m, n_players) to utilities (m,), in blocks of memory."""
    n_parameters = updates.shape[1]
    block = max(1, get_config()["working_memory"] * 2**20 // (4 * 8 * n_parameters))

    def utility(masks):
        by_coalition = np.empty(len(masks))
        for tile in tiles(len(masks), block):
            thetas = coalition_parameters(
                theta, updates, masks[tile], rate, coalition_step
            )
            in_tile = np.asarray(utilities(thetas), dtype=np.float64)
            if in_tile.shape != (len(thetas),):
                raise ValueError(
                    "utility must return one number for every row of parameters: shape "
                    f"({len(thetas)},). Got shape {in_tile.shape}."
                )
            by_coalition[tile] = in_tile
        return by_coalition

    return utility


def _leave_one_out(game, codes):
    """The `RoundValues` of leave-one-out, which needs no sampling."""
    n_players = game.n_players
    utility = game.utility(np.ones((1, n_players), dtype=bool))[0]
    values = utility - game.utility(~np.eye(n_players, dtype=bool))
    if codes is not None:
        values = np.bincount(codes, values)
    ends = (game.empty_utility, utility)
    return RoundValues(values, np.zeros(len(values)), ends, game.n_evaluations + 1)


@dataclass(frozen=True, eq=False)
class Rounds:
    """The rounds of a training so far; `add` returns a new object with one more.

    Parameters
    ----------
    utilities : callable
        Utilities (m,) of parameters (m, p).
    weights : ndarray of shape (n_rounds,)
        Weight of the newest update in the averages of each round.
    options : dict
        Of `round_values`: semivalue, n_permutations, seed, codes and coalition_step.
    rate : float
        Length of the server's step.
    n_skipped : int
        Number of rounds of the burn-in.
    n_values : int
        Number of players, or of the groups whose rows are players.
    draw : RationedNoise or None
        The noise of a private training that runs elsewhere.
    averages : ndarray of shape (n_players, p) or None
        Averages of the updates of each player, in the last round.
    values, variances, ends : tuple of ndarray
        Of every round: values and variances (n_values,), and utilities before and after
        (2,).
    n_evaluations : int
        Number of utilities computed.
    """

    utilities: Callable
    weights: np.ndarray
    options: dict
    rate: float
    n_skipped: int
    n_values: int
    draw: RationedNoise | None = None
    averages: np.ndarray | None = None
    values: tuple = ()
    variances: tuple = ()
    ends: tuple = ()
    n_evaluations: int = 0

    @property
    def n_done(self):
        """Number of rounds so far."""
        return len(self.values)

    @property
    def n_valued(self):
        """Number of rounds after the burn-in."""
        return max(self.n_done - self.n_skipped, 0)

    @property
    def step(self):
        """The server's step after the last round."""
        return self.rate * self.averages.mean(axis=0)

    def add(self, theta, released):
        """The rounds with one more, in which the parties released these updates."""
        # The averages are W = X A of the releases A, for an X that does not depend on
        # data and has row sums one: row t is the weight of the newest, and the rest
        # times row t - 1.
        t = self.n_done
        averages = np.array(released, dtype=np.float64)
        if t:
            averages = self.averages + self.weights[t] * (averages - self.averages)

        if t >= self.n_skipped:
            new = round_values(
                self.utilities, theta, averages, self.rate, number=t, **self.options
            )
        else:
            unknown = np.full(self.n_values, np.nan)
            new = RoundValues(unknown, unknown, (np.nan, np.nan), 0)
        return replace(
            self,
            averages=averages,
            values=(*self.values, new.values),
            variances=(*self.variances, new.variances),
            ends=(*self.ends, new.ends),
            n_evaluations=self.n_evaluations + new.n_evaluations,
        )

    def result(self):
        """Values, their variances, and mean utilities before and after.

        NaN in the burn-in.
        """
        if not self.n_valued:
            unknown = np.full(self.n_values, np.nan)
            return unknown, unknown, np.full(2, np.nan)
        values = np.mean(self.values[self.n_skipped :], axis=0)
        variances = np.mean(self.variances[self.n_skipped :], axis=0) / self.n_valued
        ends = np.mean(self.ends[self.n_skipped :], axis=0)
        return values, variances, ends
