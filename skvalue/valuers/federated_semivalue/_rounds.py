"""Rounds of a federated training: averages of updates, and values of the parties."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from sklearn import get_config

from ..._utils.parallel import tiles
from ...estimation import choose_sampler, group_values, make_design
from ...games import FunctionGame
from ...semivalues import size_weights
from ._errors import ReleasedRounds
from ._release import RationedNoise

_MIN_PERMUTATIONS = 4  # two antithetic pairs, so that there are standard errors


def coalition_parameters(
    theta, updates, masks, rate, coalition_step="mean", weights=None
):
    """Parameters (m, p) after a round in which only a coalition takes part.

    From parameters ``theta`` (p,) before the round, updates (n_players, p), masks (m,
    n_players) and weights (n_players,), such as numbers of rows; equal ones if None.
    The step is a sum of weighted updates of the coalition, divided by the weights of

    - all players ("part"): the part of the coalition in the step of all;
    - the coalition ("mean"): what a server does with these players alone;
    - an average player ("sum"): the path of G-Shapley, a step of each player after the
      other, whose order does not matter since the updates are those at ``theta``.
    """
    if weights is None:
        weights = np.ones(len(updates))
    sums = masks @ (weights[:, None] * updates)
    if coalition_step == "sum":
        return theta + sums * (rate / weights.mean())
    if coalition_step == "part":
        return theta + sums * (rate / weights.sum())
    totals = (masks @ weights)[:, None]
    return theta + sums * (rate / np.where(totals > 0, totals, 1.0))


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
    weights=None,
):
    """The `RoundValues` of a round, from utilities along `n_permutations` permutations.

    Permutations come in antithetic pairs, of which there are at least two; the values
    of the sampler "subsets" use as many coalitions. If there are fewer coalitions, all
    are evaluated. With `codes`, players are rows, in random subsets, and values those
    of their groups. `coalition_step` and `weights` are those of `coalition_parameters`.
    """
    n_players = len(updates)
    utility = _coalition_utility(
        utilities, theta, updates, rate, coalition_step, weights
    )
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


def _coalition_utility(utilities, theta, updates, rate, coalition_step, weights):
    """The function from masks (m, n_players) to utilities (m,), in blocks of memory.

    With several updates (b, n_players, p), it returns utilities (b, m).
    """
    *shape, _, n_parameters = updates.shape
    n_bytes = 4 * 8 * n_parameters * math.prod(shape)
    block = max(1, get_config()["working_memory"] * 2**20 // n_bytes)

    def utility(masks):
        by_coalition = np.empty((*shape, len(masks)))
        for tile in tiles(len(masks), block):
            thetas = coalition_parameters(
                theta, updates, masks[tile], rate, coalition_step, weights
            )
            in_tile = utilities(thetas.reshape(-1, n_parameters))
            in_tile = np.asarray(in_tile, dtype=np.float64)
            n_thetas = math.prod(thetas.shape[:-1])
            if in_tile.shape != (n_thetas,):
                raise ValueError(
                    "utility must return one number for every row of parameters: shape "
                    f"({n_thetas},). Got shape {in_tile.shape}."
                )
            by_coalition[..., tile] = in_tile.reshape(thetas.shape[:-1])
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
    newest_weights : ndarray of shape (n_rounds,)
        Weight of the newest update in the average of a player, by the number of its
        updates before.
    options : dict
        Of `round_values`: semivalue, n_permutations, seed, codes and coalition_step.
    rate : float
        Length of the server's step.
    n_skipped : int
        Number of rounds of the burn-in.
    n_players : int
        Number of players that may send updates.
    n_values : int
        Number of players, or of the groups whose rows are players.
    names : tuple
        Names of the players of a training that runs elsewhere.
    asks : dict
        What the parties are told in every round: fields of a `FederatedRound`.
    n_samples : dict
        Numbers of rows that parties have stated, by their names.
    draw : RationedNoise or None
        The noise of a private training that runs elsewhere.
    released : ReleasedRounds or None
        What a private training made public so far.
    n_done : int
        Number of rounds so far.
    averages : ndarray of shape (n_players, p) or None
        Averages of the updates of each player, after the last round.
    n_updates : ndarray of int of shape (n_players,) or None
        Number of updates of each player so far.
    step : ndarray of shape (p,) or None
        The server's step after the last round.
    values, variances, ends : tuple of ndarray
        Of every round after the burn-in: values and variances (n_values,), and
        utilities before and after (2,).
    n_evaluations : int
        Number of utilities computed.
    """

    utilities: Callable
    newest_weights: np.ndarray
    options: dict
    rate: float
    n_skipped: int
    n_players: int
    n_values: int
    names: tuple = ()
    asks: dict = field(default_factory=dict)
    n_samples: dict = field(default_factory=dict)
    draw: RationedNoise | None = None
    released: ReleasedRounds | None = None
    n_done: int = 0
    averages: np.ndarray | None = None
    n_updates: np.ndarray | None = None
    step: np.ndarray | None = None
    values: tuple = ()
    variances: tuple = ()
    ends: tuple = ()
    n_evaluations: int = 0

    def coalition_utility(self, theta, updates, weights):
        """The function from masks (m, n) to utilities (b, m) of a round of n players.

        The updates have shape (b, n, p).
        """
        return _coalition_utility(
            self.utilities,
            theta,
            updates,
            self.rate,
            self.options["coalition_step"],
            weights,
        )

    def restarted(self):
        """The rounds before the first one, of a simulation."""
        return Rounds(
            self.utilities,
            self.newest_weights,
            self.options,
            self.rate,
            self.n_skipped,
            self.n_players,
            self.n_values,
        )

    @property
    def n_valued(self):
        """Number of rounds after the burn-in."""
        return len(self.values)

    def add(self, theta, released, weights, present=None):
        """The rounds with one more, in which players released these updates.

        ``released`` (n_present, p) and ``weights`` (n_present,) are of the players with
        the numbers ``present``, all of them if None. The game of the round is that of
        these players; the others have the value zero in it.
        """
        if present is None:
            present = np.arange(self.n_players)
        averages = self.averages
        n_updates = self.n_updates
        if averages is None:
            averages = np.zeros((self.n_players, len(theta)))
            n_updates = np.zeros(self.n_players, dtype=np.int64)
        averages = averages.copy()
        n_updates = n_updates.copy()

        # The averages of a player are W = X A of its releases A, for an X that does not
        # depend on data and has row sums one: row t is the weight of the newest, and
        # the rest times row t - 1.
        newest = self.newest_weights[n_updates[present]][:, None]
        previous = averages[present]
        updates = previous + newest * (np.asarray(released, np.float64) - previous)
        averages[present] = updates
        n_updates[present] += 1

        if self.released is not None:
            noted = self.released.plus(theta, released, weights, present)
        else:
            noted = None
        rounds = replace(
            self,
            released=noted,
            n_done=self.n_done + 1,
            averages=averages,
            n_updates=n_updates,
            step=self.rate * (weights @ updates) / weights.sum(),
        )
        if self.n_done < self.n_skipped:
            return rounds
        new = round_values(
            self.utilities,
            theta,
            updates,
            self.rate,
            weights=weights,
            number=self.n_done,
            **self.options,
        )
        values = new.values
        variances = new.variances
        if len(present) < self.n_players:
            values = np.zeros(self.n_values)
            variances = np.zeros(self.n_values)
            values[present] = new.values
            variances[present] = new.variances
        return replace(
            rounds,
            values=(*self.values, values),
            variances=(*self.variances, variances),
            ends=(*self.ends, new.ends),
            n_evaluations=self.n_evaluations + new.n_evaluations,
        )

    def result(self):
        """Means of values and ends over the rounds that count, and variances of values.

        There must be such a round.
        """
        values = np.mean(self.values, axis=0)
        variances = np.mean(self.variances, axis=0) / self.n_valued
        ends = np.mean(self.ends, axis=0)
        return values, variances, ends
