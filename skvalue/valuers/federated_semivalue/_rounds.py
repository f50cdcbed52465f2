"""Rounds of federated training: what parties send, how it is averaged, what each adds."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn import get_config

from ..._utils.parallel import tiles
from ...estimation import choose_sampler, make_design
from ...games import FunctionGame
from ...gradients import gradients_at
from ...privacy import release


def recent_fractions(n_rounds):
    """Weight of the newest update in what is averaged, for every round.

    A global model moves, fast at first, so that the newest updates say more than older ones.

    Parameters
    ----------
    n_rounds : int
        Number of rounds, k.

    Returns
    -------
    fractions : ndarray of shape (n_rounds,)
        ``0.75 - 0.7 t / k`` in round t; 1 in the first.

    References
    ----------
    The paper of `FederatedSemivalueValuer`, Appendix D.2.

    Examples
    --------
    >>> recent_fractions(5).round(2).tolist()
    [1.0, 0.47, 0.33, 0.19, 0.05]
    """
    fractions = 0.75 - 0.7 * np.arange(1, n_rounds + 1) / n_rounds
    fractions[0] = 1.0
    return fractions


def release_updates(updates, clip, draw=None, factors=1.0, stream=(0,)):
    """What leaves the parties: their updates, clipped, with noise.

    Parameters
    ----------
    updates : array-like of shape (n_players, p)
        Updates. With noise, one that is not finite is zero, since an error would tell of the rows.
    clip : float or None
        Bound of the norm of an update.
    draw : callable, default=None
        ``draw(shape, stream)`` gives noise, see `skvalue.privacy.noise_source`; None adds none.
    factors : float or ndarray of shape (n_players,), default=1.0
        What a player's noise is multiplied by.
    stream : tuple of int, default=(0,)
        Tells noise from one seed apart.

    Returns
    -------
    released : ndarray of shape (n_players, p)
        What the server sees.

    Raises
    ------
    ValueError
        If an update is not finite, and there is no noise.

    Examples
    --------
    >>> release_updates([[3.0, 4.0], [0.3, 0.4]], clip=1.0).round(3).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    updates = np.asarray(updates, dtype=np.float64)
    if draw is None:
        lost = np.flatnonzero(~np.isfinite(np.linalg.norm(updates, axis=1)))
        if len(lost):
            raise ValueError(
                f"updates must be finite. Got one that is not, of party {lost[0]}: its rows are "
                "too large, or the learning rate is."
            )
        return release(updates, clip)
    factors = np.reshape(factors, (-1, 1))
    return release(updates, clip, factors * draw(updates.shape, stream), factors * draw.scale)


class RationedNoise:
    """Noise of so many rounds, however they end; copies of a valuer share what is left.

    Parameters
    ----------
    draw : callable
        As in `release_updates`.
    n_rounds : int
        How often it may be called.
    """

    def __init__(self, draw, n_rounds):
        self._draw, self._n_rounds, self._left = draw, n_rounds, iter(range(n_rounds))
        self.scale = draw.scale

    def __call__(self, shape, stream):
        if next(self._left, None) is None:
            raise ValueError(
                f"n_rounds={self._n_rounds} releases of every party were planned, and the noise "
                "was made for them (a round that failed has released, too): start again. Got one "
                "release more."
            )
        return self._draw(shape, stream)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(
            "A private training belongs to the process that started it, where its releases are "
            "counted: its valuer refuses to be pickled."
        )


def coalition_parameters(theta, updates, masks, rate, aggregate="mean"):
    """Parameters after a round in which only a coalition took part.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Parameters before the round.
    updates : ndarray of shape (n_players, p)
        What each player adds to them.
    masks : ndarray of bool of shape (m, n_players)
        The coalitions.
    rate : float
        Length of the server's step.
    aggregate : {"mean", "sum"}, default="mean"
        The step is along the mean of the coalition's updates, as in federated averaging, or along
        their sum over the number of all players, so that who is absent sends zero.

    Returns
    -------
    thetas : ndarray of shape (m, p)
        The parameters; those of the empty coalition are ``theta``.

    Examples
    --------
    >>> masks = np.array([[False, False], [True, False], [True, True]])
    >>> coalition_parameters(np.zeros(1), np.array([[1.0], [3.0]]), masks, 1.0).ravel().tolist()
    [0.0, 1.0, 2.0]
    """
    sizes = masks.sum(axis=1, keepdims=True) if aggregate == "mean" else masks.shape[1]
    return theta + (masks @ updates) * (rate / np.maximum(sizes, 1))


def round_values(utilities, theta, updates, rate, *, semivalue, aggregate, limit, seed, number):
    """Semivalue of one round.

    Parameters
    ----------
    utilities : callable
        Utilities of parameters, ``(m, p) -> (m,)``.
    theta : ndarray of shape (p,)
        Parameters before the round.
    updates : ndarray of shape (n_players, p)
        What each player adds.
    rate, aggregate : float, str
        As in `coalition_parameters`.
    semivalue : str, tuple or callable
        The semivalue.
    limit : int
        Coalitions to ask, at most; where all of them are fewer, values are exact.
    seed : int
        Of the coalitions.
    number : int
        Of the round; every round has random numbers of its own.

    Returns
    -------
    values : ndarray of shape (n_players,)
        The values. Shapley values add up to the utility that the round has added.
    variances : ndarray of shape (n_players,)
        Their squared standard errors, of computation; zero where exact.
    ends : tuple of float
        Utilities before and after the round.
    asked : int
        Coalitions asked.

    References
    ----------
    T. Wang, J. Rausch, C. Zhang, R. Jia, D. Song: "A Principled Approach to Data Valuation for
    Federated Learning", Federated Learning (Springer LNCS 12500), 2020.
    """
    n, p = updates.shape
    block = max(1, get_config()["working_memory"] * 2**20 // (4 * 8 * p))

    def utility(masks):
        found = np.empty(len(masks))
        for part in tiles(len(masks), block):
            thetas = coalition_parameters(theta, updates, masks[part], rate, aggregate)
            some = np.asarray(utilities(thetas), dtype=np.float64)
            if some.shape != (len(thetas),):
                raise ValueError(
                    "utility must give one number for every row of parameters: shape "
                    f"({len(thetas)},). Got shape {some.shape}."
                )
            found[part] = some
        return found

    game = FunctionGame(utility, n, cache_size=0)
    sampler = choose_sampler(semivalue, n, limit)
    if sampler in ("stratified", "permutation"):
        sampler = "antithetic"
    design = make_design(
        sampler, semivalue, n, empty_utility=game.empty_utility, seed=seed, number=number
    )
    design.limit = None if sampler == "exact" else max(limit, 2 * design.cost + 1)
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))
    variances = np.zeros(n) if design.exact else design.variances()[0]
    ends = game.empty_utility, design.full
    return design.values(), variances, ends, game.n_evaluations + 1


@dataclass(frozen=True, eq=False)
class Rounds:
    """The rounds of a training so far; `add` makes the next.

    Attributes
    ----------
    utilities : callable
        Utilities of parameters.
    fractions : ndarray of shape (n_rounds,)
        Weights of the newest update in what is used.
    options : dict
        Of `round_values`: semivalue, aggregate and seed.
    rate : float
        Length of the server's step.
    skip : int
        First rounds that do not count.
    n_permutations : int
        Coalitions asked in a round, over the number of players.
    used : ndarray of shape (n_players, p)
        What was used of the updates in the last round.
    values, variances, ends : tuples
        Of every round, as by `round_values`.
    n_asked : int
        Coalitions asked.
    """

    utilities: object
    fractions: np.ndarray
    options: dict
    rate: float
    skip: int
    n_permutations: int
    used: np.ndarray = None
    values: tuple = ()
    variances: tuple = ()
    ends: tuple = ()
    n_asked: int = 0

    def __post_init__(self):
        # What is used is W = X A of what was sent, A, for an X known before any data, whose rows
        # sum to one: in round t the fraction of the newest, and the rest times the row before.
        assert np.isfinite(self.fractions).all()
        assert self.fractions[0] == 1
        self.fractions.flags.writeable = False

    @property
    def done(self):
        """Rounds played."""
        return len(self.values)

    @property
    def counted(self):
        """Rounds played that count."""
        return max(self.done - self.skip, 0)

    @property
    def step(self):
        """What the server adds to the parameters after the last round."""
        return self.rate * self.used.mean(axis=0)

    def add(self, theta, released):
        """The rounds with one more, in which parties sent this."""
        t = self.done
        used = np.array(released, dtype=np.float64)
        if t:
            used = self.used + self.fractions[t] * (used - self.used)
        values = variances = np.full(len(used), np.nan)
        ends, n_asked = (np.nan, np.nan), 0
        if t >= self.skip:
            values, variances, ends, n_asked = round_values(
                self.utilities, theta, used, self.rate, number=t,
                limit=self.n_permutations * len(used), **self.options,
            )  # fmt: skip
        return replace(
            self, used=used, values=(*self.values, values), variances=(*self.variances, variances),
            ends=(*self.ends, ends), n_asked=self.n_asked + n_asked,
        )  # fmt: skip

    def result(self):
        """Values, their standard errors, and mean utilities before and after the rounds."""
        counted = slice(self.skip, None)
        values = np.mean(self.values[counted], axis=0)
        errors = np.sqrt(np.sum(self.variances[counted], axis=0)) / self.counted
        before, after = np.mean(self.ends[counted], axis=0)
        return values, errors, float(before), float(after)


def train_together(model, rounds, rng, n_rounds, draw=None, factors=1.0):
    """Train a model by rounds in which every player sends minus its gradient.

    Parameters
    ----------
    model : GradientModel
        The model.
    rounds : Rounds
        None played; what values the players.
    rng : numpy.random.Generator
        Of the initial parameters.
    n_rounds : int
        Number of rounds.
    draw, factors : callable, ndarray
        Of `release_updates`; None adds no noise.

    Yields
    ------
    rounds : Rounds
        The rounds so far, after each.
    """
    theta = model.initial(rng)
    for t in range(n_rounds):
        updates = release_updates(-gradients_at(model, theta), None, draw, factors, (t,))
        rounds = rounds.add(theta, updates)
        theta = theta + rounds.step
        yield rounds


def public_utility(model, rate, n_rounds, seed):
    """Utility after as many steps of one player alone; -inf where they do not stay finite."""
    theta = model.initial(np.random.default_rng(seed))
    for _ in range(n_rounds):
        theta = theta - rate * model.gradient(theta, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        utility = float(model.utilities(theta[None])[0]) if np.isfinite(theta).all() else -np.inf
    return utility if np.isfinite(utility) else -np.inf
