"""Walks of a model through its parties, permutation by permutation."""

from itertools import chain, islice

import numpy as np
from sklearn import get_config

from .._utils.parallel import background_map, may_overlap, one_blas_thread, ordered_map, tiles
from ..privacy import release
from ._noise import RunningReleases

_SLACK = 1e-9  # rounding allowed to a clipped norm
_BUNDLE = 2**16  # parameters on the way of walks that are handed to a thread together
_DRAWN = 2**16  # numbers of noise drawn at a time


def walk_steps(model, order, rate, noise, noise_std, past, fractions, t, thetas, clip=None):
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
        Noise of the players' releases.
    noise_std : ndarray of shape (n_players,)
        Its standard deviation, by player.
    past : ndarray of shape (n_players, p) or (0, p)
        Means of the t - 1 releases of every player before; changed to those of t. Without any,
        steps go along the releases themselves.
    fractions : ndarray of shape (n_players,)
        Weights of the own release in the step, see `own_fractions`.
    t : int
        Number of the permutation, from 1.
    thetas : ndarray of shape (len(order) + 1, p)
        Parameters; all but the first are written.
    clip : float, default=None
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
        _check_norms(norm[None], clip)
        if len(noise):
            found = release(found[None], clip, noise[s], noise_std[j])[0]
        if len(past):
            away = found - past[j]
            found = past[j] + fractions[j] * away
            past[j] += away / t
            spread += away @ away
        thetas[s + 1] = thetas[s] - rate * found
    return -1, spread


def walk_permutations(
    model, weights, n_permutations, rate, seed, *, noise=None, skip=0, names=None, n_jobs=None
):
    """Weighted marginal utilities along random permutations.

    Parameters
    ----------
    model : GradientModel
        The model. One with a ``walk`` takes many steps at once, in threads. One with
        ``walk_together`` walks many permutations at once, where none depends on those before:
        without averages of releases.
    weights : ndarray of shape (n_players,)
        Weight of a marginal utility at each position: n times `skvalue.semivalues.size_weights`.
    n_permutations : int
        Number of permutations.
    rate : float
        Learning rate.
    seed : numpy.random.SeedSequence
        Of orders and initial parameters; every permutation has its own child.
    noise : GradientNoise, default=None
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
    walks = _Walks(model, n_permutations, rate, seed, noise, skip, names)
    if walks.releases.averages:
        found = _one_by_one(walks, n_jobs)
    elif model.walk_together is not None and model.batch_size(n_permutations - skip)[0] > 1:
        found = _together(walks)
    else:
        found = _beside_each_other(walks, n_jobs)
    for blocks in found:
        yield _marginals(blocks, weights)


class _Walks:
    """The permutations of one call, each of which can be walked block by block."""

    def __init__(self, model, n_permutations, rate, seed, noise, skip, names):
        n, p = model.n_players, model.n_parameters
        self.model, self.rate, self.skip, self.noise = model, rate, skip, noise
        self.n_permutations, self.children = n_permutations, seed.spawn(n_permutations)
        self.names = range(n) if names is None else names
        self.clip = None if noise is None else noise.clip
        self.noise_std = np.ones(n) if noise is None else noise.factors * noise.noise_std
        self.is_scaled = noise is not None and bool((noise.factors != 1).any())
        self.releases = RunningReleases(noise, n, p, n_permutations)
        self.block = _block_size(n, p)
        # Short walks go together: threads would spend their time on waiting for each other.
        self.bundle = 1 if model.walk is None else max(1, _BUNDLE // (n * p))

    def blocks(self, t):
        """Walk through permutation t: its order, a part of it and the parameters there."""
        model, n = self.model, self.model.n_players
        if t < self.skip and not self.releases.averages:
            return  # nothing depends on it
        rng = np.random.default_rng(self.children[t])
        order, start, total = rng.permutation(n), model.initial(rng), 0.0
        fractions = self.releases.fractions(t)
        for part in _parts(n, self.block):
            thetas = np.empty((part.stop - part.start + 1, len(start)))
            thetas[0] = start
            noise = self.drawn(t, order, part)
            args = self.rate, noise, self.noise_std, self.releases.past, fractions, t + 1, thetas
            if model.walk is None:
                bad, spread = walk_steps(model, order[part], *args, clip=self.clip)
            else:
                bad, spread = model.walk(order[part], *args)
            if bad >= 0:
                _refuse(self.names[bad], part, t)
            total, start = total + spread, thetas[-1]
            if t >= self.skip:
                yield order, part, thetas
        self.releases.learn(t, total)
        if t < self.skip:
            yield order, slice(n, n), None

    def evaluated(self, *blocks):
        """The same blocks with utilities in place of parameters."""
        # The first parameters of a later block are the last of the one before.
        utilities = self.model.utilities
        return [
            (order, part, None if thetas is None else utilities(thetas[part.start > 0 :]))
            for order, part, thetas in blocks
        ]

    def drawn(self, t, order, part):
        """Noise of the steps ``part`` of permutation t, which begin a grain; none without noise."""
        n, p = self.model.n_players, self.model.n_parameters
        if self.noise is None:
            return np.empty((0, p))
        grain = _grain(p)
        found = [
            self.noise.draw((min(grain, n - start), p), (t, start))
            for start in range(part.start, part.stop, grain)
        ]
        found = found[0] if len(found) == 1 else np.concatenate(found)
        if self.is_scaled:
            found *= self.noise.factors[order[part], None]
        return found


def _one_by_one(walks, n_jobs):
    """Blocks of every permutation, with utilities; each goes on from the releases before it."""
    numbers, done = range(walks.n_permutations), []
    blocks = _bundles((block for t in numbers for block in walks.blocks(t)), walks.bundle)
    threaded = may_overlap(n_jobs)  # asked before BLAS is held to one thread
    with one_blas_thread():
        for block in chain.from_iterable(background_map(walks.evaluated, blocks, threaded)):
            done.append(block)
            if block[1].stop == walks.model.n_players:
                yield done
                done = []


def _beside_each_other(walks, n_jobs):
    """The same for permutations that do not depend on each other, some to a thread."""
    bundles = list(_bundles(range(walks.n_permutations), walks.bundle))
    if walks.model.walk is None:
        n_jobs = 1  # Python, which threads cannot share

    def evaluated(*numbers):
        return [walks.evaluated(*walks.blocks(t)) for t in numbers]

    return chain.from_iterable(ordered_map(evaluated, bundles, n_jobs))


def _together(walks):
    """The same for a model that walks many permutations at once."""
    model, n = walks.model, walks.model.n_players
    yield from [[]] * walks.skip
    numbers = range(walks.skip, walks.n_permutations)
    n_walks, n_steps = model.batch_size(len(numbers))
    for batch in tiles(len(numbers), n_walks):
        generators = [np.random.default_rng(walks.children[t]) for t in numbers[batch]]
        orders = np.array([rng.permutation(n) for rng in generators])
        thetas = np.array([model.initial(rng) for rng in generators])
        utilities, norms = np.empty((len(orders), n + 1)), np.empty(orders.shape)
        utilities[:, 0] = model.utilities(thetas)
        for part in _parts(n, _whole_grains(n_steps, model.n_parameters)):
            noise = np.array([walks.drawn(t, o, part) for t, o in zip(numbers[batch], orders)])
            thetas, utilities[:, part.start + 1 : part.stop + 1], norms[:, part] = (
                model.walk_together(orders[:, part], walks.rate, noise, walks.noise_std, thetas)
            )
        for t, order, found, of_steps in zip(numbers[batch], orders, utilities, norms):
            _check_norms(of_steps, walks.clip)
            bad = np.flatnonzero(~np.isfinite(of_steps))
            if len(bad):
                _refuse(walks.names[order[bad[0]]], slice(bad[0], bad[0] + 1), t)
            yield [(order, slice(0, n), found)]


def _bundles(items, size):
    """Tuples of as many items; the last may be shorter."""
    items = iter(items)
    return iter(lambda: tuple(islice(items, size)), ())


def _marginals(blocks, weights):
    """Weighted marginal utilities of one permutation, and those at its ends; None if skipped."""
    utilities = np.empty(len(weights) + 1)
    blocks = [block for block in blocks if block[2] is not None]
    if not blocks:
        return None, None
    for _, part, found in blocks:
        utilities[part.stop - len(found) + 1 : part.stop + 1] = found
    marginals = np.empty(len(weights))
    marginals[blocks[0][0]] = np.diff(utilities) * weights
    return marginals, utilities[[0, -1]]


def _check_norms(norms, clip):
    """Refuse norms of gradients that are larger than the noise relies on."""
    if clip is None:
        return
    above = norms[np.isfinite(norms) & (norms > clip * (1 + _SLACK))]
    if len(above):
        raise RuntimeError(
            f"the model must clip gradients to norm {clip:g}, or the noise is too small. Got a "
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
