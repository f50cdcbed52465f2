"""Walks: gradient steps of a model along random permutations of its parties."""

from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
from sklearn import get_config

from .._utils.parallel import background_map, one_blas_thread, ordered_map, tiles
from ..privacy import clip_and_noise
from ._noise import newest_weights

_SLACK = 1e-9  # relative rounding error allowed in a clipped norm
_BUNDLE = 2**16  # parameters of the walks of one task
_DRAWN = 2**16  # numbers of noise drawn at a time


def walk_steps(model, order, rate, noise, noise_std, past, weight, t, thetas, clip=None):
    """Take one step per player of ``order`` from ``thetas[0]``; writes all later ``thetas``.

    ``noise`` (len(order), p) or (0, p) has the standard deviations ``noise_std`` (n_players,);
    ``past`` (n_players, p) has the means of the t - 1 previous releases and is updated, or is empty
    if steps are along the releases themselves; ``weight`` is that of `newest_weights`. Returns a
    player whose gradient is not finite, at which the walk ends (-1: none).
    """
    for s, j in enumerate(order):
        release = np.array(model.gradient(thetas[s], j), dtype=np.float64)
        norm = np.sqrt(release @ release)
        if not np.isfinite(norm):
            return j
        _check_norms(norm[None], clip)
        if len(noise):
            release = clip_and_noise(release[None], clip, noise[s], noise_std[j])[0]
        if len(past):
            away = release - past[j]
            release = past[j] + weight * away
            past[j] += away / t
        thetas[s + 1] = thetas[s] - rate * release
    return -1


class Walk(NamedTuple):
    """What is known of one permutation; of those before `skip`, nothing."""

    marginals: np.ndarray | None = None  # weighted marginal utilities (n_players,)
    ends: np.ndarray | None = None  # utilities before the first and after the last step
    models: np.ndarray | None = None  # parameters at the positions asked for
    final: np.ndarray | None = None  # parameters after the last step
    past: np.ndarray | None = None  # means of the players' releases so far, if steps are along them


def walk_permutations(
    model, weights, n_permutations, rate, seed, *, noise=None, skip=0, record=None, names=None,
    n_jobs=None,
):  # fmt: skip
    """Yield a `Walk` along each of some random permutations.

    ``weights`` are n times `size_weights`; utilities are computed only where they have a weight,
    and at both ends. ``record`` has the positions 0..n of each permutation whose parameters are
    kept. Every permutation has its own child of ``seed``. Permutations are independent, and run in
    threads or in batches, unless ``noise`` averages releases over them: then one thread takes the
    steps, in order, while another computes the utilities of the permutations before. Raises
    ValueError, with the name of the player, if a gradient is not finite.
    """
    walks = _Walks(model, weights, n_permutations, rate, seed, noise, skip, record, names)
    if noise is not None and noise.averages:
        past = np.zeros((model.n_players, model.n_parameters))
        steps = (([walks.steps(t, past) for t in some],) for some in walks.bundles(0))
        walked = background_map(walks.walked, steps, n_jobs)
        with one_blas_thread():
            yield from chain.from_iterable(walked)
        return
    yield from [Walk()] * skip
    if model.walk_together is not None and model.batch_size(n_permutations - skip)[0] > 1:
        yield from walks.in_batches()
        return
    n_jobs = 1 if model.walk is None else n_jobs  # pure Python does not run in parallel threads
    tasks = [(some,) for some in walks.bundles(skip)]
    yield from chain.from_iterable(ordered_map(walks.apart, tasks, n_jobs))


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


@dataclass
class _Steps:
    """The steps along one permutation, in blocks; utilities are computed later."""

    t: int
    order: np.ndarray
    utilities: np.ndarray  # NaN where they are not needed
    blocks: list = field(default_factory=list)  # parts of the order, and parameters along them
    models: list = field(default_factory=list)
    final: np.ndarray | None = None
    past: np.ndarray | None = None


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
        self.newest = newest_weights("iid" if noise is None else noise.schedule, n_permutations)
        self.parts = _parts(n, _block_size(n, p))

    def bundles(self, first):
        """The permutations from ``first`` on, several short ones per task: else threads wait."""
        n, p = self.model.n_players, self.model.n_parameters
        size = 1 if self.model.walk is None else max(1, _BUNDLE // (n * p))
        numbers = range(first, self.n_permutations)
        return [numbers[start : start + size] for start in range(0, len(numbers), size)]

    def steps(self, t, past):
        """Take the steps along permutation t; ``past`` is that of `walk_steps`."""
        model, n = self.model, self.model.n_players
        rng = np.random.default_rng(self.children[t])
        steps = _Steps(t, rng.permutation(n), np.full(n + 1, np.nan), final=model.start(rng))
        for part in self.parts:
            thetas, order = np.empty((part.stop - part.start + 1, len(steps.final))), steps.order
            thetas[0] = steps.final
            noise = self.drawn(t, order, part)
            args = self.rate, noise, self.noise_std, past, self.newest[t], t + 1, thetas
            if model.walk is None:
                bad = walk_steps(model, order[part], *args, clip=self.clip)
            else:
                bad = model.walk(order[part], *args)
            if bad >= 0:
                _refuse(self.names[bad], part, t)
            steps.final = thetas[-1].copy()
            if t >= self.skip:
                steps.blocks.append((part, thetas))
            if len(self.parts) > 1:  # only one block fits into memory
                self.evaluate(steps)
        if t >= self.skip and len(past):
            steps.past = past.copy()
        return steps

    def evaluate(self, steps):
        """Compute the utilities of the blocks, and drop those."""
        for part, thetas in steps.blocks:
            first = part.start + (part.start > 0)  # the one before is that of the last block
            thetas, later = thetas[first - part.start :], slice(first, part.stop + 1)
            steps.utilities[later] = _needed_utilities(self.model, thetas, self.needed[later])
            kept = [r - first for r in self.record[steps.t] if first <= r <= part.stop]
            steps.models.append(thetas[kept])
        steps.blocks = []

    def walked(self, some):
        """The `Walk` of each of some permutations, from its steps."""
        found = []
        for steps in some:
            self.evaluate(steps)
            if steps.t < self.skip:
                found.append(Walk())
                continue
            marginals = _marginals(steps.utilities, self.weights, steps.order)
            ends, models = steps.utilities[[0, -1]], np.concatenate(steps.models)
            found.append(Walk(marginals, ends, models, steps.final, steps.past))
        return found

    def apart(self, numbers):
        """The `Walk` of each of some permutations that do not depend on others."""
        none = np.empty((0, self.model.n_parameters))
        return self.walked([self.steps(t, none) for t in numbers])

    def in_batches(self):
        """Yield the `Walk` of each permutation of a model with `walk_together`, many at once."""
        model, n, numbers = self.model, self.model.n_players, range(self.skip, self.n_permutations)
        n_walks, n_steps = model.batch_size(len(numbers))
        for batch in tiles(len(numbers), n_walks):
            generators = [np.random.default_rng(self.children[t]) for t in numbers[batch]]
            orders = np.array([rng.permutation(n) for rng in generators])
            thetas = np.array([model.start(rng) for rng in generators])
            utilities, norms = np.empty((len(orders), n + 1)), np.empty(orders.shape)
            utilities[:, 0] = model.utilities(thetas)
            pairs = [(walk, r) for walk, t in enumerate(numbers[batch]) for r in self.record[t]]
            wanted = np.array(pairs, dtype=int).reshape(-1, 2)
            models = thetas[wanted[:, 0]]  # of position 0; others are replaced
            for part in _parts(n, _whole_draws(n_steps, model.n_parameters)):
                noise = np.array([self.drawn(t, o, part) for t, o in zip(numbers[batch], orders)])
                later = slice(part.start + 1, part.stop + 1)
                here = (later.start <= wanted[:, 1]) & (wanted[:, 1] < later.stop)
                thetas, utilities[:, later], norms[:, part], models[here] = model.walk_together(
                    orders[:, part], self.rate, noise, self.noise_std, thetas, self.needed[later],
                    wanted[here] - [0, later.start],
                )  # fmt: skip
            for walk, (t, order, of_steps) in enumerate(zip(numbers[batch], orders, norms)):
                _check_norms(of_steps, self.clip)
                bad = np.flatnonzero(~np.isfinite(of_steps))
                if len(bad):
                    _refuse(self.names[order[bad[0]]], slice(bad[0], bad[0] + 1), t)
                yield Walk(
                    _marginals(utilities[walk], self.weights, order), utilities[walk][[0, -1]],
                    models[wanted[:, 0] == walk], thetas[walk],
                )  # fmt: skip

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
        found *= self.noise.factors[order[part], None]
        return found


def marginals_along(model, weights, order, theta, steps):
    """Weighted marginal utilities (n_players,) of one walk from ``theta`` by steps (n, p)."""
    needed, utilities = needed_positions(weights), np.empty(len(order) + 1)
    for part in _parts(len(order), _block_size(*steps.shape)):
        thetas = np.cumsum(np.vstack([theta, steps[order[part]]]), axis=0)
        theta, first = thetas[-1], part.start + (part.start > 0)
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
