"""Rounds of federated training: releases of parties, their averages, and values."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn import get_config

from ..._utils.parallel import tiles
from ...estimation import choose_sampler, group_values, make_design
from ...games import FunctionGame
from ...privacy import clip_and_noise
from ...semivalues import size_weights


def release_updates(updates, clip, draw=None, factors=1.0, stream=(0,)):
    """Clip updates (n_players, p) and add noise ``factors * draw(shape, stream)``, if
    any.

    Without noise, raises ValueError for updates that are not finite; with noise they
    are zero, since an error would depend on private rows.
    """
    updates = np.asarray(updates, dtype=np.float64)
    if draw is None:
        lost = np.flatnonzero(~np.isfinite(np.linalg.norm(updates, axis=1)))
        if len(lost):
            raise ValueError(
                f"updates must be finite. Got one that is not, of party {lost[0]}: its rows are "
                "too large, or the learning rate is."
            )
        return clip_and_noise(updates, clip)
    factors = np.reshape(factors, (-1, 1))
    noise = factors * draw(updates.shape, stream)
    return clip_and_noise(updates, clip, noise, factors * draw.scale)


class RationedNoise:
    """Noise that may be drawn `n_rounds` times in total, by all copies of a valuer
    together.

    Rounds that fail count too.
    """

    def __init__(self, release, n_rounds):
        self._draw, self._n_rounds, self._left = (
            release.source(),
            n_rounds,
            iter(range(n_rounds)),
        )
        self.scale = self._draw.scale

    def __call__(self, shape, stream):
        if next(self._left, None) is None:
            raise ValueError(
                "n_rounds must be at least the number of releases of a party, failed rounds "
                "included, since noise is made for it: call start again with a larger n_rounds. "
                f"Got release {self._n_rounds + 1} with n_rounds={self._n_rounds}."
            )
        return self._draw(shape, stream)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(
            "A private training belongs to the process that started it, where its releases are "
            "counted: its valuer cannot be pickled."
        )


def coalition_parameters(theta, updates, masks, rate):
    """Parameters (m, p) after a round in which only the players of a coalition take
    part.

    From parameters ``theta`` (p,) before the round, updates (n_players, p) and masks
    (m, n_players). The step is along the mean of the updates of the coalition.
    """
    sizes = masks.sum(axis=1, keepdims=True)
    return theta + (masks @ updates) * (rate / np.maximum(sizes, 1))


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
):
    """Values of the players in one round, from the utilities along `n_permutations`
    permutations.

    Permutations come in antithetic pairs, of which there are at least two; the values
    of the sampler "subsets" use as many coalitions. If there are fewer coalitions, all
    are evaluated. With `codes`, players are rows, in random subsets, and values those
    of their groups.

    Returns the values, their squared standard errors (zero if all coalitions were
    evaluated), the utilities before and after the round, and the number of utilities
    computed.
    """
    n, p = updates.shape
    block = max(1, get_config()["working_memory"] * 2**20 // (4 * 8 * p))

    def utility(masks):
        found = np.empty(len(masks))
        for part in tiles(len(masks), block):
            thetas = coalition_parameters(theta, updates, masks[part], rate)
            some = np.asarray(utilities(thetas), dtype=np.float64)
            if some.shape != (len(thetas),):
                raise ValueError(
                    "utility must return one number for every row of parameters: shape "
                    f"({len(thetas)},). Got shape {some.shape}."
                )
            found[part] = some
        return found

    game = FunctionGame(utility, n, cache_size=0)
    if size_weights(semivalue, n)[-1] == 1.0:  # leave-one-out
        full = game.utility(np.ones((1, n), dtype=bool))[0]
        values = full - game.utility(~np.eye(n, dtype=bool))
        values = values if codes is None else np.bincount(codes, values)
        return (
            values,
            np.zeros(len(values)),
            (game.empty_utility, full),
            game.n_evaluations + 1,
        )
    limit = 1 + max(n_permutations, 4) * (n - 1)  # with the coalition of all players
    sampler = choose_sampler(semivalue, n, limit)
    if sampler in ("stratified", "permutation"):
        sampler = "antithetic" if codes is None else "stratified"
    design = make_design(
        sampler,
        semivalue,
        n,
        empty_utility=game.empty_utility,
        seed=seed,
        number=number,
    )
    if sampler == "antithetic":
        limit = 1 + max(n_permutations, 4) * (design.cost // design.n_orders)
    design.limit = None if sampler == "exact" else max(limit, 2 * design.cost + 1)
    design.least = design.limit or 0
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))
    ends = game.empty_utility, design.full
    if codes is not None:
        values, covariance, _ = group_values(design, codes)
        return values, np.diagonal(covariance), ends, game.n_evaluations + 1
    variances = np.zeros(n) if design.exact else design.variances()[0]
    return design.values(), variances, ends, game.n_evaluations + 1


@dataclass(frozen=True, eq=False)
class Rounds:
    """The rounds of a training so far; `add` returns a new object with one more
    round."""

    utilities: object  # callable, utilities (m,) of parameters (m, p)
    weights: np.ndarray  # of the newest update in the averages, by round
    options: dict  # of `round_values`: semivalue, n_permutations, seed and codes
    rate: float  # length of the server's step
    skip: int  # rounds of the burn-in
    n_values: int  # of players, or of the groups whose rows are players
    draw: RationedNoise | None = None  # of a private training that runs elsewhere
    used: np.ndarray = None  # averages of the updates in the last round, (n_players, p)
    values: tuple = ()  # of every round, as are variances and ends
    variances: tuple = ()
    ends: tuple = ()
    n_evaluations: int = 0

    @property
    def done(self):
        """Number of rounds so far."""
        return len(self.values)

    @property
    def counted(self):
        """Number of rounds after the burn-in."""
        return max(self.done - self.skip, 0)

    @property
    def step(self):
        """The server's step after the last round."""
        return self.rate * self.used.mean(axis=0)

    def add(self, theta, released):
        """The rounds with one more, in which the parties released these updates."""
        # The averages are W = X A of the releases A, for an X that does not depend on
        # data and has row sums one: row t is the weight of the newest, and the rest
        # times row t - 1.
        t, used = self.done, np.array(released, dtype=np.float64)
        if t:
            used = self.used + self.weights[t] * (used - self.used)
        values = variances = np.full(self.n_values, np.nan)
        ends, n_evaluations = (np.nan, np.nan), 0
        if t >= self.skip:
            values, variances, ends, n_evaluations = round_values(
                self.utilities, theta, used, self.rate, number=t, **self.options
            )
        return replace(
            self, used=used, values=(*self.values, values), variances=(*self.variances, variances),
            ends=(*self.ends, ends), n_evaluations=self.n_evaluations + n_evaluations,
        )  # fmt: skip

    def result(self):
        """Values, their variances, and mean utilities before and after; NaN in the
        burn-in."""
        if not self.counted:
            unknown = np.full(self.n_values, np.nan)
            return unknown, unknown, np.full(2, np.nan)
        values, variances, ends = (
            np.mean(part[self.skip :], axis=0)
            for part in (self.values, self.variances, self.ends)
        )
        return values, variances / self.counted, ends
