"""Walks of a model through its parties, permutation by permutation."""

from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from sklearn import get_config

from .._utils.parallel import beside, may_overlap, one_blas_thread, ordered_map, tiles
from ..privacy import release
from ._noise import optimal_share, own_shares

_SLACK = 1e-9  # rounding allowed to a clipped norm
_BUNDLE = 2**16  # parameters on the way of walks that are handed to a thread together
_DRAWN = 2**16  # numbers of noise drawn at a time


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


def walk_steps(model, order, rate, noise, scales, noise_std, past, shares, t, thetas, limit=np.inf):
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
    noise_std : float
        Standard deviation of the noise without ``scales``.
    past : ndarray of shape (n_players, p) or (0, p)
        Means of the t - 1 releases of every player before; changed to those of t. Without any,
        steps go along the releases themselves.
    shares : ndarray of shape (n_players,)
        Shares of the own release in the step, see `own_shares`.
    t : int
        Number of the permutation, from 1.
    thetas : ndarray of shape (len(order) + 1, p)
        Parameters; all but the first are written.
    limit : float, default=None
        Bound of the norm of a gradient, which the noise relies on; None checks nothing.

    Returns
    -------
    bad : int
        Player whose gradient is not finite, where the walk has ended; -1 if there is none.
    spread : float
        Sum of squared distances of the releases from ``past``.
    """
    spread = 0.0
    for s, j in enumerate(order):
        found = np.array(model.gradient(thetas[s], j), dtype=np.float64)
        norm = np.sqrt(found @ found)
        if not np.isfinite(norm):
            return j, spread
        _check_norms(norm[None], limit)
        if len(noise):
            found = release(found[None], limit, scales[j] * noise[s], scales[j] * noise_std)[0]
        if len(past):
            away = found - past[j]
            found = past[j] + shares[j] * away
            past[j] += away / t
            spread += away @ away
        thetas[s + 1] = thetas[s] - rate * found
    return -1, spread


def walk_permutations(
    model, weights, n_permutations, rate, seed, *, perturbed=None, skip=0, names=None, n_jobs=None
):
    """Weighted marginal utilities along random permutations.

    Parameters
    ----------
    model : GradientModel
        The model. One with a method ``walk`` (see `walk_steps`) takes many steps at once, in
        threads. One with ``walk_together`` (see `skvalue.gradients._torch_walks`) walks many
        permutations at once, where none depends on those before: without averages of releases.
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
        Threads: of permutations where they do not depend on each other, else one to walk and one
        for utilities.

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
    schedule = _Schedule(perturbed, n, p, n_permutations)
    scales = np.ones(n) if perturbed is None else perturbed.scales
    limit = None if perturbed is None else perturbed.clip
    draw, noise_std = (None, 1.0) if perturbed is None else (perturbed.draw, perturbed.deviation)
    children = seed.spawn(n_permutations)
    numbers = range(skip, n_permutations)
    if hasattr(model, "walk_together") and not schedule.averages:
        fitting = model.batch_size(len(numbers))
        if fitting[0] > 1:
            names = range(n) if names is None else names
            yield from [(None, None)] * skip
            yield from _many_at_once(
                model, weights, rate, children, numbers, fitting, draw, scales, noise_std, limit,
                names,
            )  # fmt: skip
            return
    steps, fused = getattr(model, "walk", None), hasattr(model, "walk")
    if not fused:
        n_jobs = 1  # Python, which threads cannot share

        def steps(*args):
            return walk_steps(model, *args, limit=limit)

    size = _block_size(n, p)

    def blocks_of(t):
        """Walk through a permutation: order, part of it, and parameters, block by block."""
        if t < skip and not schedule.averages:
            return  # nothing depends on it
        rng = np.random.default_rng(children[t])
        order, start, total = rng.permutation(n), model.initial(rng), 0.0
        shares = schedule.at(t)
        for part in _parts(n, size):
            thetas = np.empty((part.stop - part.start + 1, p))
            thetas[0] = start
            noise = _noise(draw, t, part, n, p)
            bad, spread = steps(
                order[part], rate, noise, scales, noise_std, schedule.past, shares, t + 1, thetas
            )
            if bad >= 0:
                _refuse(bad if names is None else names[bad], part, t)
            total, start = total + spread, thetas[-1]
            if t >= skip:
                yield order, part, thetas
        schedule.learn(t, total)
        if t < skip:
            yield order, slice(n, n), None

    def judged(*blocks):
        """The same blocks with utilities in place of parameters."""
        # The first parameters of a later block are the last of the one before.
        return [
            (order, part, None if thetas is None else model.utilities(thetas[part.start > 0 :]))
            for order, part, thetas in blocks
        ]

    # Short walks go together: threads would spend their time on waiting for each other.
    together = max(1, _BUNDLE // (n * p)) if fused else 1
    numbers = range(n_permutations)
    if not schedule.averages:

        def some(*numbers):
            return [_marginals(judged(*blocks_of(t)), weights) for t in numbers]

        yield from chain.from_iterable(ordered_map(some, list(_bundles(numbers, together)), n_jobs))
        return
    blocks = _bundles((block for t in numbers for block in blocks_of(t)), together)
    threaded, done = may_overlap(n_jobs), []
    with one_blas_thread():
        for block in chain.from_iterable(beside(judged, blocks, threaded)):
            done.append(block)
            if block[1].stop == n:
                yield _marginals(done, weights)
                done = []


def _bundles(items, size):
    """Tuples of as many items; the last may be shorter."""
    items = iter(items)
    return iter(lambda: tuple(islice(items, size)), ())


def _marginals(blocks, weights):
    """Weighted marginal utilities of one permutation, and those at its ends; None if skipped."""
    utilities, judged = np.empty(len(weights) + 1), False
    for order, part, found in blocks:  # noqa: B007
        if found is not None:
            judged = True
            utilities[part.stop - len(found) + 1 : part.stop + 1] = found
    if not judged:
        return None, None
    marginals = np.empty(len(weights))
    marginals[order] = np.diff(utilities) * weights
    return marginals, utilities[[0, -1]]


def _many_at_once(
    model, weights, rate, children, numbers, size, draw, scales, noise_std, limit, names
):
    """`walk_permutations` where none depends on another, for a model that walks many together."""
    n, p = model.n_players, model.n_parameters
    walks, block = size
    for batch in tiles(len(numbers), walks):
        generators = [np.random.default_rng(children[t]) for t in numbers[batch]]
        orders = np.array([rng.permutation(n) for rng in generators])
        thetas = np.array([model.initial(rng) for rng in generators])
        utilities, norms = np.empty((len(orders), n + 1)), np.empty(orders.shape)
        utilities[:, 0] = model.utilities(thetas)
        for part in _parts(n, _whole_grains(block, p)):
            noise = np.array([_noise(draw, t, part, n, p) for t in numbers[batch]])
            thetas, utilities[:, part.start + 1 : part.stop + 1], norms[:, part] = (
                model.walk_together(orders[:, part], rate, noise, scales, noise_std, thetas)
            )
        for t, order, found, of_steps in zip(numbers[batch], orders, utilities, norms):
            _check_norms(of_steps, limit)
            bad = np.flatnonzero(~np.isfinite(of_steps))
            if len(bad):
                _refuse(names[order[bad[0]]], slice(bad[0], bad[0] + 1), t)
            yield _marginals([(order, slice(0, n), found)], weights)


def _check_norms(norms, limit):
    """Refuse norms of gradients that are larger than the noise relies on."""
    if limit is None:
        return
    above = norms[np.isfinite(norms) & (norms > limit * (1 + _SLACK))]
    if len(above):
        raise RuntimeError(
            f"the model must clip gradients to norm {limit:g}, or the noise is too small. Got a "
            f"norm of {above[0]:g}."
        )


def _refuse(name, part, t):
    name = getattr(name, "item", lambda: name)()
    steps = f"{part.start + 1}" + (f" to {part.stop}" if part.stop > part.start + 1 else "")
    raise ValueError(
        "Every party's gradient must be finite. Got one that is not, of the party "
        f"{name!r} at step {steps} of permutation {t + 1}: its rows are too large, or the "
        "learning rate is."
    )


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
            # Rows of X then sum to one: a share, and the rest in equal parts.
            assert np.isfinite(self._shares).all()
            assert (self._shares[0] == 1).all()
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
    return min(n, _whole_grains(int(budget // (5 * 8 * p)), p))


def _grain(p):
    """Steps whose noise is drawn in one call, whatever memory there is: seeds decide it."""
    return max(1, _DRAWN // p)


def _whole_grains(size, p):
    return max(1, size // _grain(p)) * _grain(p)


def _parts(n, block):
    return [slice(start, min(start + block, n)) for start in range(0, n, block)]


def _noise(draw, t, part, n, p):
    """Noise of the steps ``part`` of permutation t, which begin a grain; none without ``draw``."""
    if draw is None:
        return np.empty((0, p))
    grain = _grain(p)
    starts = range(part.start, part.stop, grain)
    drawn = [draw((min(grain, n - start), p), (t, start)) for start in starts]
    return drawn[0] if len(drawn) == 1 else np.concatenate(drawn)
