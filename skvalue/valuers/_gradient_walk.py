"""Walks of a model through its parties, permutation by permutation."""

from dataclasses import dataclass

import numpy as np
from sklearn import get_config

from .._parallel import ordered_map, tiles
from ._gradient_noise import optimal_share, own_shares

_SLACK = 1e-9  # rounding allowed to a clipped norm


@dataclass(frozen=True)
class Perturbed:
    """How releases are made and averaged.

    Attributes
    ----------
    draw : callable
        ``draw(shape, stream)`` gives noise of deviation one release's, of a stream's own.
    scales : ndarray of shape (n_players,)
        What a player's noise is multiplied by: one over the number of its examples that are
        averaged.
    deviation : float
        Standard deviation of what `draw` gives.
    clip : float
        Bound of the norm of a gradient.
    noise : str, callable or array
        Of `own_shares`.
    gradient_variance : float or None
        For "optimal"; None estimates it, from releases alone.
    """

    draw: object
    scales: np.ndarray
    deviation: float
    clip: float
    noise: object = "correlated"
    gradient_variance: float | None = None

    @property
    def averages(self):
        return not (isinstance(self.noise, str) and self.noise == "iid")


def walk_steps(model, order, rate, noise, scales, past, shares, t, thetas, limit=np.inf):
    """Walk through the players of ``order`` from ``thetas[0]``, one gradient step each.

    Parameters
    ----------
    model : GradientModel
        The model.
    order : ndarray of int
        Players.
    rate : float
        Learning rate.
    noise : ndarray of shape (len(order), p) or (0, p)
        Noise of the players' releases, times ``scales``.
    scales : ndarray of shape (n_players,)
        See `Perturbed`.
    past : ndarray of shape (n_players, p) or (0, p)
        Means of the t - 1 releases of every player before; changed to those of t. Without any,
        steps go along the releases themselves.
    shares : ndarray of shape (n_players,)
        Shares of the own release in the step, see `own_shares`.
    t : int
        Number of the permutation, from 1.
    thetas : ndarray of shape (len(order) + 1, p)
        Parameters; all but the first are written.
    limit : float
        Bound of the norm of a gradient, which the noise relies on.

    Returns
    -------
    bad : int
        Player whose gradient is not finite, where the walk has ended; -1 if there is none.
    spread : float
        Sum of squared distances of the releases from ``past``.
    """
    spread = 0.0
    for s, j in enumerate(order):
        release = np.array(model.gradient(thetas[s], j), dtype=np.float64)
        norm = np.sqrt(release @ release)
        if not np.isfinite(norm):
            return j, spread
        if norm > limit * (1 + _SLACK):
            raise RuntimeError(
                f"the model must clip gradients to norm {limit:g}, or the noise is too small. Got "
                f"a norm of {norm:g}."
            )
        if len(noise):
            release += scales[j] * noise[s]
        if len(past):
            away = release - past[j]
            release = past[j] + shares[j] * away
            past[j] += away / t
            spread += away @ away
        thetas[s + 1] = thetas[s] - rate * release
    return -1, spread


def walk_permutations(
    model, weights, n_permutations, rate, seed, *, perturbed=None, skip=0, names=None, n_jobs=None
):
    """Weighted marginal utilities along random permutations.

    Parameters
    ----------
    model : GradientModel
        The model. One with a method ``walk`` (see `walk_steps`) takes many steps at once, in
        threads.
    weights : ndarray of shape (n_players,)
        Weight of a marginal utility at each position: n times `skvalue.semivalues.size_weights`.
    n_permutations : int
        Number of permutations.
    rate : float
        Learning rate.
    seed : numpy.random.SeedSequence
        Of orders and initial parameters; every permutation has its own child.
    perturbed : Perturbed, default=None
        How gradients are released; None takes them as they are.
    skip : int, default=0
        First permutations whose utilities are not computed.
    names : sequence, default=None
        What messages call the players.
    n_jobs : int, default=None
        Threads, where permutations do not depend on each other.

    Yields
    ------
    marginals : ndarray of shape (n_players,) or None
        One permutation's; None for those skipped.
    utilities : ndarray of shape (2,) or None
        Utility before the first and after the last step.

    Raises
    ------
    ValueError
        If a gradient is not finite.
    """
    n, p = model.n_players, model.n_parameters
    block = _block_size(n, p)
    steps, fused = getattr(model, "walk", None), hasattr(model, "walk")
    if not fused:
        limit = np.inf if perturbed is None else perturbed.clip

        def steps(*args):
            return walk_steps(model, *args, limit=limit)

    schedule = _Schedule(perturbed, n, p, n_permutations)
    scales = np.ones(n) if perturbed is None else perturbed.scales
    children = seed.spawn(n_permutations)

    def one(t):
        rng = np.random.default_rng(children[t])
        order = rng.permutation(n)
        shares = schedule.at(t)
        thetas = np.empty((min(block, n) + 1, p))
        thetas[0] = model.initial(rng)
        utilities, spread = np.empty(n + 1), 0.0
        counted = t >= skip
        for part in tiles(n, block):
            players = order[part]
            noise = np.empty((0, p))
            if perturbed is not None:
                noise = perturbed.draw((len(players), p), (t, part.start))
            some = thetas[: len(players) + 1]
            bad, away = steps(players, rate, noise, scales, schedule.past, shares, t + 1, some)
            if bad >= 0:
                name = bad if names is None else names[bad]
                raise ValueError(
                    "Every party's gradient must be finite. Got one that is not, of the party "
                    f"{name!r} at step {part.start + 1} to {part.stop} of permutation {t + 1}: its "
                    "rows are too large, or the learning rate is."
                )
            spread += away
            if counted:
                first = part.start > 0  # the last of the block before
                utilities[part.start + first : part.stop + 1] = model.utilities(some[first:])
            thetas[0] = some[-1]
        schedule.learn(t, spread)
        if not counted:
            return None, None
        marginals = np.empty(n)
        marginals[order] = np.diff(utilities) * weights
        return marginals, utilities[[0, -1]]

    serial = schedule.averages or not fused
    yield from ordered_map(one, [(t,) for t in range(n_permutations)], 1 if serial else n_jobs)


class _Schedule:
    """Shares of own releases by permutation, and the means of the releases so far."""

    def __init__(self, perturbed, n, p, n_permutations):
        self._perturbed = perturbed
        self.averages = perturbed is not None and perturbed.averages
        self.past = np.zeros((n if self.averages else 0, p))
        self._n, self._p, self._squares, self._count = n, p, 0.0, 0
        self._shares = None
        if not self.averages:
            self._shares = np.ones((n_permutations, 1))
            return
        self._variance = (perturbed.deviation * perturbed.scales) ** 2
        self._estimates = (
            isinstance(perturbed.noise, str)
            and perturbed.noise == "optimal"
            and perturbed.gradient_variance is None
        )
        if not self._estimates:
            # Settled before a gradient is seen, so that W = X A is a post-processing of releases.
            self._shares = own_shares(
                perturbed.noise, n_permutations, self._variance, perturbed.gradient_variance
            ).reshape(n_permutations, -1)
            self._shares.flags.writeable = False

    def at(self, t):
        """Shares of all players in permutation t, from 0."""
        if self._shares is not None:
            return np.full(self._n, self._shares[t])
        if t == 0:
            return np.ones(self._n)
        # Of earlier releases alone, which are public.
        total = self._squares / max(self._count, 1)
        own = max(total - self._variance.mean(), 0.0)
        return optimal_share(t + 1, self._variance, own)

    def learn(self, t, spread):
        if t and self.averages:
            self._squares += spread * t / (t + 1)
            self._count += self._n * self._p


def _block_size(n, p):
    """Steps whose parameters, noise and copies fit into the working memory."""
    budget = get_config()["working_memory"] * 2**20
    return int(min(n, max(1, budget // (4 * 8 * p))))
