"""Walks: gradient steps of a model along random permutations of its parties."""

from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from sklearn import get_config

from .._utils.parallel import background_map, may_overlap, one_blas_thread, ordered_map, tiles
from ..privacy import clip_and_noise
from ._noise import RunningReleases

_SLACK = 1e-9  # relative rounding error allowed in a clipped norm
_BUNDLE = 2**16  # parameters of the walks of one task
_DRAWN = 2**16  # numbers of noise drawn at a time


def walk_steps(model, order, rate, noise, noise_std, past, fractions, t, thetas, clip=None):
    """Take one step per player of ``order`` from ``thetas[0]``; writes all later ``thetas``.

    ``noise`` (len(order), p) or (0, p) has the standard deviations ``noise_std`` (n_players,);
    ``past`` (n_players, p) has the means of the t - 1 previous releases and is updated, or is empty
    if steps are along the releases themselves; ``fractions`` are the weights of `own_fractions`.
    Returns a player whose gradient is not finite, at which the walk ends (-1: none), and the sum of
    squared distances of the releases from ``past``.
    """
    scatter = 0.0
    for s, j in enumerate(order):
        found = np.array(model.gradient(thetas[s], j), dtype=np.float64)
        norm = np.sqrt(found @ found)
        if not np.isfinite(norm):
            return j, scatter
        _check_norms(norm[None], clip)
        if len(noise):
            found = clip_and_noise(found[None], clip, noise[s], noise_std[j])[0]
        if len(past):
            away = found - past[j]
            found = past[j] + fractions[j] * away
            past[j] += away / t
            scatter += away @ away
        thetas[s + 1] = thetas[s] - rate * found
    return -1, scatter


class Walk(NamedTuple):
    """What is known of one permutation; of those before `skip`, only the releases."""

    marginals: np.ndarray | None = None  # weighted marginal utilities (n_players,)
    ends: np.ndarray | None = None  # utilities before the first and after the last step
    n_evaluations: int = 0
    models: np.ndarray | None = None  # parameters at the positions asked for
    final: np.ndarray | None = None  # parameters after the last step
    releases: RunningReleases | None = None


def walk_permutations(
    model,
    weights,
    n_permutations,
    rate,
    seed,
    *,
    noise=None,
    skip=0,
    record=None,
    names=None,
    n_jobs=None,
):
    """Yield a `Walk` along each of some random permutations.

    ``weights`` are n times `size_weights`; utilities are computed only where they have a weight,
    and at both ends. ``record`` has the positions 0..n of each permutation whose parameters are
    kept. Every permutation has its own child of ``seed``. Permutations are independent, and run in
    threads or in batches, unless ``noise`` averages releases over them. Raises ValueError, with the
    name of the player, if a gradient is not finite.
    """
    walks = _Walks(model, weights, n_permutations, rate, seed, noise, skip, record, names)
    if walks.releases.averages:
        found = _sequentially(walks, n_jobs)
    elif model.walk_together is not None and model.batch_size(n_permutations - skip)[0] > 1:
        found = _batched(walks)
    else:
        found = _independently(walks, n_jobs)
    for blocks in found:
        yield walks.joined(blocks)


def without_tails(q, tail=1e-6):
    """Probabilities q of the sizes of a coalition, zero for the rarest: `tail` of them in total.

    A walk computes no utilities where there is no weight: Beta(a, 1)-Shapley has none at the end.
    """
    order = np.argsort(q)
    rare = order[np.cumsum(q[order]) <= tail]
    if not q[rare].any():
        return q
    kept = q.copy()
    kept[rare] = 0.0
    return kept / kept.sum()


def needed_positions(weights):
    """Mask (n + 1,) of the positions whose utilities are needed: those next to a weight, and ends.

    >>> needed_positions(np.array([0.0, 0.0, 3.0, 0.0])).astype(int).tolist()
    [1, 0, 1, 1, 1]
    """
    has_weight = np.asarray(weights) != 0
    return np.append(has_weight, True) | np.append(True, has_weight)


class _Walks:
    """The permutations of one call, each walked in blocks of steps."""

    def __init__(self, model, weights, n_permutations, rate, seed, noise, skip, record, names):
        n, p = model.n_players, model.n_parameters
        self.model, self.rate, self.skip, self.noise = model, rate, skip, noise
        self.weights, self.needed = weights, needed_positions(weights)
        self.record = [()] * n_permutations if record is None else record
        self.n_permutations, self.children = n_permutations, seed.spawn(n_permutations)
        self.names = range(n) if names is None else names
        self.clip = None if noise is None else noise.clip
        self.noise_std = np.ones(n) if noise is None else noise.factors * noise.noise_std
        self.is_scaled = noise is not None and bool((noise.factors != 1).any())
        self.releases = RunningReleases(noise, n, p, n_permutations)
        self.block = _block_size(n, p)
        # A task has several short walks; otherwise threads would mostly wait.
        self.bundle = 1 if model.walk is None else max(1, _BUNDLE // (n * p))

    def blocks(self, t):
        """Walk along permutation t; yields t, the order, a part of it and the parameters there."""
        model, n = self.model, self.model.n_players
        if t < self.skip and not self.releases.averages:
            return  # no later permutation depends on it
        rng = np.random.default_rng(self.children[t])
        order, start, total = rng.permutation(n), model.initial(rng), 0.0
        fractions = self.releases.fractions(t)
        for part in _parts(n, self.block):
            thetas = np.empty((part.stop - part.start + 1, len(start)))
            thetas[0] = start
            noise = self.drawn(t, order, part)
            args = self.rate, noise, self.noise_std, self.releases.past, fractions, t + 1, thetas
            if model.walk is None:
                bad, scatter = walk_steps(model, order[part], *args, clip=self.clip)
            else:
                bad, scatter = model.walk(order[part], *args)
            if bad >= 0:
                _refuse(self.names[bad], part, t)
            total, start = total + scatter, thetas[-1]
            if t >= self.skip:
                yield t, order, part, thetas
        self.releases.learn(t, total)
        if t < self.skip:
            yield t, order, slice(n, n), None

    def evaluated(self, *blocks):
        """Order, part and `Evaluated` of every block; None in the burn-in."""
        return [
            (order, part, None if thetas is None else self._evaluated(t, part, thetas))
            for t, order, part, thetas in blocks
        ]

    def _evaluated(self, t, part, thetas):
        first = part.start + (part.start > 0)  # the parameters before are those of the last block
        thetas = thetas[first - part.start :]
        needed = self.needed[first : part.stop + 1]
        utilities = _needed_utilities(self.model, thetas, needed)
        kept = [r - first for r in self.record[t] if first <= r <= part.stop]
        return _Evaluated(utilities, thetas[kept], thetas[-1].copy())

    def joined(self, blocks):
        """The `Walk` of the blocks of one permutation."""
        blocks = [block for block in blocks if block[2] is not None]
        if not blocks:
            return Walk(releases=self.releases)
        utilities = np.empty(len(self.needed))
        for _, part, found in blocks:
            utilities[part.stop - len(found.utilities) + 1 : part.stop + 1] = found.utilities
        return Walk(
            _marginals(utilities, self.weights, blocks[0][0]), utilities[[0, -1]],
            int(self.needed.sum()),
            np.concatenate([found.models for *_, found in blocks]), blocks[-1][2].final,
            self.releases,
        )  # fmt: skip

    def walked(self, *numbers):
        """The evaluated blocks of some permutations."""
        return [self.evaluated(*self.blocks(t)) for t in numbers]

    def drawn(self, t, order, part):
        """Noise of the steps ``part`` of permutation t, which starts at a multiple of a draw."""
        n, p = self.model.n_players, self.model.n_parameters
        if self.noise is None:
            return np.empty((0, p))
        size = _draw_size(p)
        found = [
            self.noise.draw((min(size, n - start), p), (t, start))
            for start in range(part.start, part.stop, size)
        ]
        found = found[0] if len(found) == 1 else np.concatenate(found)
        if self.is_scaled:
            found *= self.noise.factors[order[part], None]
        return found


def step_parts(theta, steps, order):
    """Parameters from ``theta`` after each of the ``steps`` (n, p), by parts of the order."""
    for part in _parts(len(order), _block_size(*steps.shape)):
        thetas = np.cumsum(np.vstack([theta, steps[order[part]]]), axis=0)
        theta = thetas[-1]
        yield part, thetas


def weighted_marginals(model, weights, order, parts):
    """Weighted marginal utilities (n_players,) of one walk, see `step_parts`."""
    needed, utilities = needed_positions(weights), np.empty(len(order) + 1)
    for part, thetas in parts:
        first = part.start + (part.start > 0)
        utilities[first : part.stop + 1] = _needed_utilities(
            model, thetas[first - part.start :], needed[first : part.stop + 1]
        )
    return _marginals(utilities, weights, order)


def _needed_utilities(model, thetas, needed):
    """Utilities of the parameters, NaN where they are not needed."""
    utilities = np.full(len(thetas), np.nan)
    if needed.any():
        utilities[needed] = model.utilities(thetas if needed.all() else thetas[needed])
    return utilities


def _marginals(utilities, weights, order):
    marginals, has_weight = np.zeros(len(weights)), weights != 0
    marginals[order[has_weight]] = (np.diff(utilities) * weights)[has_weight]
    return marginals


class _Evaluated(NamedTuple):
    """Of one block of steps."""

    utilities: np.ndarray  # NaN where they are not needed
    models: np.ndarray
    final: np.ndarray


def _sequentially(walks, n_jobs):
    """Blocks of every permutation, with utilities; each depends on the previous releases."""
    numbers, done = range(walks.n_permutations), []
    blocks = _bundles((block for t in numbers for block in walks.blocks(t)), walks.bundle)
    threaded = may_overlap(n_jobs)  # before BLAS is limited to one thread
    with one_blas_thread():
        for block in chain.from_iterable(background_map(walks.evaluated, blocks, threaded)):
            done.append(block)
            if block[1].stop == walks.model.n_players:
                yield done
                done = []


def _independently(walks, n_jobs):
    """The same for independent permutations, several per task."""
    bundles = list(_bundles(range(walks.n_permutations), walks.bundle))
    if walks.model.walk is None:
        n_jobs = 1  # pure Python does not run in parallel threads
    return chain.from_iterable(ordered_map(walks.walked, bundles, n_jobs))


def _batched(walks):
    """The same for a model with `walk_together`: many permutations at once."""
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
        pairs = [(walk, r) for walk, t in enumerate(numbers[batch]) for r in walks.record[t]]
        wanted = np.array(pairs, dtype=int).reshape(-1, 2)
        models = thetas[wanted[:, 0]]  # of position 0; others are replaced
        for part in _parts(n, _whole_draws(n_steps, model.n_parameters)):
            noise = np.array([walks.drawn(t, o, part) for t, o in zip(numbers[batch], orders)])
            later = slice(part.start + 1, part.stop + 1)
            here = (later.start <= wanted[:, 1]) & (wanted[:, 1] < later.stop)
            thetas, utilities[:, later], norms[:, part], models[here] = model.walk_together(
                orders[:, part], walks.rate, noise, walks.noise_std, thetas, walks.needed[later],
                wanted[here] - [0, later.start],
            )  # fmt: skip
        for walk, (t, order, of_steps) in enumerate(zip(numbers[batch], orders, norms)):
            _check_norms(of_steps, walks.clip)
            bad = np.flatnonzero(~np.isfinite(of_steps))
            if len(bad):
                _refuse(walks.names[order[bad[0]]], slice(bad[0], bad[0] + 1), t)
            found = _Evaluated(utilities[walk], models[wanted[:, 0] == walk], thetas[walk])
            yield [(order, slice(0, n), found)]


def _bundles(items, size):
    """Tuples of `size` items; the last may be shorter."""
    items = iter(items)
    return iter(lambda: tuple(islice(items, size)), ())


def _check_norms(norms, clip):
    """Raise RuntimeError for gradients of norms above `clip`, for which the noise is too small."""
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
    """Number of steps whose parameters, noise and copies fit into the working memory."""
    budget = get_config()["working_memory"] * 2**20
    return min(n, _whole_draws(int(budget // (5 * 8 * p)), p))


def _draw_size(p):
    """Number of steps whose noise is drawn in one call; seeds depend on it, so memory must not."""
    return max(1, _DRAWN // p)


def _whole_draws(size, p):
    return max(1, size // _draw_size(p)) * _draw_size(p)


def _parts(n, block):
    return [slice(start, min(start + block, n)) for start in range(0, n, block)]
