"""Walks: gradient steps of a model along random permutations of its parties."""

from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .._utils.parallel import background_map, one_blas_thread, ordered_map
from ._noise import newest_weights
from ._players import steps_in_memory

_DRAWN = 2**16  # numbers of noise drawn at a time


class Walk(NamedTuple):
    """What is known of one permutation; of those before `skip`, nothing."""

    marginals: np.ndarray | None = None  # weighted marginal utilities (n_players,)
    ends: np.ndarray | None = None  # utilities before the first and after the last step
    models: np.ndarray | None = None  # parameters at the positions asked for
    final: np.ndarray | None = None  # parameters after the last step
    past: np.ndarray | None = (
        None  # means of the players' releases so far, if steps are along them
    )


def walk_permutations(
    model, weights, n_permutations, rate, seed, *, noise=None, skip=0, record=None, names=None,
    n_jobs=None,
):  # fmt: skip
    """Yield a `Walk` along each of some random permutations.

    ``weights`` are n times `size_weights`; utilities are computed only where they have
    a weight, and at both ends. ``record`` has the positions 0..n of each permutation
    whose parameters are kept. Every permutation has its own child of ``seed``.
    Permutations are independent, and run in threads or in batches, unless ``noise``
    averages releases over them: then one thread takes the steps, in order, while
    another computes the utilities of the permutations before. Raises ValueError, with
    the name of the player, if a gradient is not finite.
    """
    walks = _Walks(
        model, weights, n_permutations, rate, seed, noise, skip, record, names
    )
    if noise is not None and noise.averages:
        past = np.zeros((model.n_players, model.n_parameters))
        steps = (([walks.steps([t], past) for t in some],) for some in walks.bundles(0))
        walked = background_map(walks.walked, steps, n_jobs)
        with one_blas_thread():
            yield from chain.from_iterable(walked)
        return
    yield from [Walk()] * skip
    tasks = [(some,) for some in walks.bundles(skip)]
    n_jobs = n_jobs if model.in_threads else 1
    yield from chain.from_iterable(ordered_map(walks.apart, tasks, n_jobs))


def without_tails(q, tail=1e-6):
    """Probabilities q of the sizes of a coalition, zero for the rarest: `tail` of them
    in total.

    A walk computes no utilities where there is no weight: Beta(a, 1)-Shapley has none
    at the end.
    """
    order = np.argsort(q)
    rare = order[np.cumsum(q[order]) <= tail]
    if not q[rare].any():
        return q
    kept = q.copy()
    kept[rare] = 0.0
    return kept / kept.sum()


def needed_positions(weights):
    """Mask (n + 1,) of the positions whose utilities are needed: those next to a
    weight, and ends.

    >>> needed_positions(np.array([0.0, 0.0, 3.0, 0.0])).astype(int).tolist()
    [1, 0, 1, 1, 1]
    """
    has_weight = np.asarray(weights) != 0
    return np.append(has_weight, True) | np.append(True, has_weight)


@dataclass
class _Steps:
    """The steps along permutations that are walked together; utilities are computed
    later."""

    numbers: Any  # of the permutations
    orders: np.ndarray
    utilities: np.ndarray  # (n_walks, n_players + 1), NaN where they are not needed
    blocks: list = field(
        default_factory=list
    )  # parts of the orders, and parameters along them
    models: list = field(
        default_factory=list
    )  # of each block: walks, and parameters asked for
    finals: np.ndarray | None = None
    past: np.ndarray | None = None


class _Walks:
    """The permutations of one call, each walked in blocks of steps."""

    def __init__(
        self, model, weights, n_permutations, rate, seed, noise, skip, record, names
    ):
        n, p = model.n_players, model.n_parameters
        self.model, self.rate, self.skip, self.noise = model, rate, skip, noise
        self.weights, self.needed = weights, needed_positions(weights)
        self.record = [()] * n_permutations if record is None else record
        self.n_permutations, self.children = n_permutations, seed.spawn(n_permutations)
        self.names = range(n) if names is None else names
        self.noise_std = np.ones(n) if noise is None else noise.noise_std
        self.newest = newest_weights(
            "iid" if noise is None else noise.schedule, n_permutations
        )
        # Steps along averages are those of one walk at a time, for which others have to
        # wait.
        one = noise is not None and noise.averages and not model.in_threads
        self.n_walks, n_steps = model.batch_size(1 if one else n_permutations - skip)
        # Numbers that are drawn in one call have one seed, so this size must not depend
        # on memory.
        self.n_drawn = max(1, _DRAWN // p)
        self.parts = _parts(n, max(1, n_steps // self.n_drawn) * self.n_drawn)

    def bundles(self, first):
        """The permutations from ``first`` on, as many in a bundle as are walked in one
        task."""
        numbers = range(first, self.n_permutations)
        return [numbers[part] for part in _parts(len(numbers), self.n_walks)]

    def steps(self, numbers, past=None):
        """Take the steps along some permutations; ``past`` is that of
        `GradientModel.walk`."""
        model, n, t = self.model, self.model.n_players, numbers[0]
        generators = [np.random.default_rng(self.children[t]) for t in numbers]
        orders = np.array([rng.permutation(n) for rng in generators])
        thetas = np.array([model.start(rng) for rng in generators])
        steps = _Steps(numbers, orders, np.full((len(orders), n + 1), np.nan))
        rates = [self.rate] * len(orders)
        for part in self.parts:
            noise = [self.drawn(t, order, part) for t, order in zip(numbers, orders)]
            path, thetas, lost = model.walk(
                orders[:, part],
                rates,
                noise,
                self.noise_std,
                thetas,
                past,
                self.newest[t],
                t + 1,
            )
            for walk in np.flatnonzero(lost >= 0):
                step = part.start + lost[walk]
                name = np.asarray(self.names).tolist()[orders[walk, step]]
                raise ValueError(
                    "Every party's gradient must be finite. Got one that is not, of the party "
                    f"{name!r} at step {step + 1} of permutation {numbers[walk] + 1}: its rows are "
                    "too large, or the learning rate is."
                )
            if t >= self.skip:
                steps.blocks.append((part, path))
            if len(self.parts) > 1:  # only one block fits into memory
                self.evaluate(steps)
        steps.finals = thetas
        if t >= self.skip and past is not None:
            steps.past = past.copy()
        return steps

    def evaluate(self, steps):
        """Compute the utilities of the blocks, and drop those."""
        for part, path in steps.blocks:
            first = part.start + (
                part.start > 0
            )  # the one before is that of the last block
            path = path[:, first - part.start :]
            later = slice(first, part.stop + 1)
            steps.utilities[:, later] = _needed_utilities(
                self.model, path, self.needed[later]
            )
            kept = [
                (walk, r - first)
                for walk, t in enumerate(steps.numbers)
                for r in self.record[t]
                if first <= r <= part.stop
            ]
            kept = np.array(kept, dtype=int).reshape(-1, 2)
            steps.models.append(
                (kept[:, 0], self.model.as_array(path[kept[:, 0], kept[:, 1]]))
            )
        steps.blocks = []

    def walked(self, some):
        """The `Walk` of each of some permutations, from their steps."""
        found = []
        for steps in some:
            self.evaluate(steps)
            if steps.numbers[0] < self.skip:
                found.append(Walk())
                continue
            of, models = map(np.concatenate, zip(*steps.models))
            for walk, (utilities, order) in enumerate(
                zip(steps.utilities, steps.orders)
            ):
                marginals = _marginals(utilities, self.weights, order)
                ends, final = utilities[[0, -1]], steps.finals[walk]
                found.append(
                    Walk(marginals, ends, models[of == walk], final, steps.past)
                )
        return found

    def apart(self, numbers):
        """The `Walk` of each of some permutations that do not depend on others."""
        return self.walked([self.steps(numbers)])

    def drawn(self, t, order, part):
        """Noise of the steps ``part`` of permutation t, which starts at a multiple of a
        draw."""
        n, p = self.model.n_players, self.model.n_parameters
        if self.noise is None:
            return np.empty((0, p))
        found = [
            self.noise.draw((min(self.n_drawn, n - start), p), (t, start))
            for start in range(part.start, part.stop, self.n_drawn)
        ]
        found = found[0] if len(found) == 1 else np.concatenate(found)
        found *= self.noise.factors[order[part], None]
        return found


def marginals_along(model, weights, order, theta, steps):
    """Weighted marginal utilities (n_players,) of one walk from ``theta`` by steps (n,
    p)."""
    needed, utilities = needed_positions(weights), np.empty(len(order) + 1)
    for part in _parts(len(order), steps_in_memory(steps.shape[1])):
        thetas = np.cumsum(np.vstack([theta, steps[order[part]]]), axis=0)
        theta, first = thetas[-1], part.start + (part.start > 0)
        utilities[first : part.stop + 1] = _needed_utilities(
            model, thetas[None, first - part.start :], needed[first : part.stop + 1]
        )
    return _marginals(utilities, weights, order)


def _needed_utilities(model, path, needed):
    """Utilities (b, n) of parameters (b, n, p), NaN where they are not needed."""
    utilities = np.full(path.shape[:2], np.nan)
    if needed.any():
        path = path if needed.all() else path[:, np.flatnonzero(needed)]
        found = model.utilities(path.reshape(-1, path.shape[2]))
        utilities[:, needed] = found.reshape(path.shape[:2])
    return utilities


def _marginals(utilities, weights, order):
    marginals, has_weight = np.zeros(len(weights)), weights != 0
    marginals[order[has_weight]] = (np.diff(utilities) * weights)[has_weight]
    return marginals


def _parts(n, block):
    return [slice(start, min(start + block, n)) for start in range(0, n, block)]
