"""Walks: gradient steps of a model along random permutations of its parties."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._utils.parallel import background_map, one_blas_thread, ordered_map
from ._noise import newest_weights
from ._players import steps_in_memory

_DRAWN = 2**16  # numbers of noise that are drawn at a time


class Walk(NamedTuple):
    """What is known of one permutation; of those before `skip`, nothing.

    Parameters
    ----------
    marginals : ndarray of shape (n_players,) or None
        Weighted marginal utilities.
    ends : ndarray of shape (2,) or None
        Utilities before the first and after the last step.
    models : ndarray of shape (n_recorded, p) or None
        Parameters at the positions asked for.
    final : ndarray of shape (p,) or None
        Parameters after the last step.
    past : ndarray of shape (n_players, p) or None
        Means of the releases of the players so far, if steps are along them.
    """

    marginals: np.ndarray | None = None
    ends: np.ndarray | None = None
    models: np.ndarray | None = None
    final: np.ndarray | None = None
    past: np.ndarray | None = None


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

    ``weights`` are n times `size_weights`; utilities are computed only where they have
    a weight, and at both ends. ``record`` has the positions 0..n of each permutation
    whose parameters are kept. Every permutation has its own child of ``seed``.
    Permutations are independent, and run in threads or in batches, unless ``noise``
    averages releases over them: then one thread takes the steps, in order, while
    another computes the utilities of the permutations before. Raises ValueError, with
    the name of the player, if a gradient is not finite.
    """
    walks = _Walks(
        model=model,
        weights=weights,
        n_permutations=n_permutations,
        rate=rate,
        seed=seed,
        noise=noise,
        skip=skip,
        record=record,
        names=names,
    )
    if noise is not None and noise.averages:
        # Each walk needs the releases of those before; utilities follow in a thread.
        past = np.zeros((model.n_players, model.n_parameters))
        tasks = (
            ([walks.steps([t], past) for t in numbers],) for numbers in walks.bundles(0)
        )
        bundles = background_map(walks.finish, tasks, n_jobs)
        with one_blas_thread():
            for bundle in bundles:
                yield from bundle
        return

    # Without averages, no other permutation needs the skipped ones.
    yield from [Walk()] * skip
    tasks = [(numbers,) for numbers in walks.bundles(skip)]
    n_jobs = n_jobs if model.in_threads else 1
    for bundle in ordered_map(walks.walk_independently, tasks, n_jobs):
        yield from bundle


def without_tails(q, tail=1e-6):
    """Probabilities q of sizes, zero for the rarest ones, of `tail` in total.

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
    """Mask (n + 1,) of the positions whose utilities are needed.

    They are those next to a weight, and the ends.

    >>> needed_positions(np.array([0.0, 0.0, 3.0, 0.0])).astype(int).tolist()
    [1, 0, 1, 1, 1]
    """
    has_weight = np.asarray(weights) != 0
    return np.append(has_weight, True) | np.append(True, has_weight)


@dataclass
class _Steps:
    """The steps along permutations walked together; utilities are computed later.

    Parameters
    ----------
    numbers : sequence of int
        Numbers of the permutations.
    orders : ndarray of shape (n_walks, n_players)
        The permutations.
    utilities : ndarray of shape (n_walks, n_players + 1)
        Utilities of all positions, NaN where they are not computed.
    blocks : list of (slice, path)
        Parts of the orders, and parameters along them, to be evaluated.
    models : list of (walks, parameters)
        What is recorded of each block that is evaluated.
    finals : ndarray of shape (n_walks, p) or None
        Parameters after the last steps.
    past : ndarray of shape (n_players, p) or None
        As that of `Walk`.
    """

    numbers: Any
    orders: np.ndarray
    utilities: np.ndarray
    blocks: list = field(default_factory=list)
    models: list = field(default_factory=list)
    finals: np.ndarray | None = None
    past: np.ndarray | None = None


class _Walks:
    """The permutations of one call, each walked in blocks of steps."""

    def __init__(
        self, *, model, weights, n_permutations, rate, seed, noise, skip, record, names
    ):
        n = model.n_players
        self.model = model
        self.weights = weights
        self.needed = needed_positions(weights)
        self.n_permutations = n_permutations
        self.rate = rate
        self.seeds = seed.spawn(n_permutations)
        self.skip = skip
        self.record = [()] * n_permutations if record is None else record
        self.names = range(n) if names is None else names

        self.noise = noise
        self.noise_std = np.ones(n) if noise is None else noise.noise_std
        schedule = "iid" if noise is None else noise.schedule
        self.newest = newest_weights(schedule, n_permutations)

        # Steps along averages are those of one walk at a time, for which others have to
        # wait.
        n_walks = n_permutations - skip
        if noise is not None and noise.averages and not model.in_threads:
            n_walks = 1
        self.n_walks, n_steps = model.batch_size(n_walks)

        # Numbers that are drawn in one call have one seed, so this size must not depend
        # on memory.
        self.n_drawn = max(1, _DRAWN // model.n_parameters)
        n_draws = max(1, n_steps // self.n_drawn)
        self.blocks = _blocks(n, n_draws * self.n_drawn)

    def bundles(self, first):
        """Bundles of the permutations from ``first`` on, each walked in one task."""
        numbers = range(first, self.n_permutations)
        return [numbers[block] for block in _blocks(len(numbers), self.n_walks)]

    def steps(self, numbers, past=None):
        """Take the steps along permutations; ``past`` as in `GradientModel.walk`."""
        model = self.model
        first = numbers[0]
        generators = [np.random.default_rng(self.seeds[t]) for t in numbers]
        orders = np.array([rng.permutation(model.n_players) for rng in generators])
        thetas = np.array([model.start(rng) for rng in generators])
        n_walks = len(orders)
        utilities = np.full((n_walks, model.n_players + 1), np.nan)
        steps = _Steps(numbers, orders, utilities)
        for block in self.blocks:
            noise = [
                self.draw_noise(t, order, block) for t, order in zip(numbers, orders)
            ]
            path, thetas, failed_steps = model.walk(
                orders[:, block],
                [self.rate] * n_walks,
                noise,
                self.noise_std,
                thetas,
                past=past,
                weight=self.newest[first],
                t=first + 1,
            )

            # The first steps without a finite gradient; -1 if all of them are finite.
            for walk in np.flatnonzero(failed_steps >= 0):
                self._refuse(steps, walk, block.start + failed_steps[walk])
            if first >= self.skip:
                steps.blocks.append((block, path))
            if len(self.blocks) > 1:  # only one block fits into memory
                self.evaluate(steps)
        steps.finals = thetas
        if first >= self.skip and past is not None:
            steps.past = past.copy()
        return steps

    def _refuse(self, steps, walk, step):
        """Raise the error of a gradient that is not finite."""
        name = np.asarray(self.names).tolist()[steps.orders[walk, step]]
        raise ValueError(
            "Every party's gradient must be finite. Got one that is not, of the party "
            f"{name!r} at step {step + 1} of permutation {steps.numbers[walk] + 1}: "
            "its rows are too large, or the learning rate is."
        )

    def evaluate(self, steps):
        """Compute the utilities of the blocks, and drop those."""
        for block, path in steps.blocks:
            # The first position is the last one of the block before.
            first = block.start + (block.start > 0)
            positions = slice(first, block.stop + 1)
            path = path[:, first - block.start :]
            steps.utilities[:, positions] = _needed_utilities(
                self.model, path, self.needed[positions]
            )

            walks = []
            places = []
            for walk, t in enumerate(steps.numbers):
                for position in self.record[t]:
                    if first <= position <= block.stop:
                        walks.append(walk)
                        places.append(position - first)
            walks = np.array(walks, dtype=int)
            places = np.array(places, dtype=int)
            models = self.model.as_array(path[walks, places])
            steps.models.append((walks, models))
        steps.blocks = []

    def finish(self, bundle):
        """The `Walk` of each permutation of a bundle, from their steps."""
        walks = []
        for steps in bundle:
            self.evaluate(steps)
            if steps.numbers[0] < self.skip:
                walks.append(Walk())
                continue
            walk_of_model = np.concatenate([of_block for of_block, _ in steps.models])
            models = np.concatenate([models for _, models in steps.models])
            for walk, order in enumerate(steps.orders):
                utilities = steps.utilities[walk]
                walks.append(
                    Walk(
                        marginals=_marginals(utilities, self.weights, order),
                        ends=utilities[[0, -1]],
                        models=models[walk_of_model == walk],
                        final=steps.finals[walk],
                        past=steps.past,
                    )
                )
        return walks

    def walk_independently(self, numbers):
        """The `Walk` of each of some permutations that do not depend on others."""
        return self.finish([self.steps(numbers)])

    def draw_noise(self, t, order, block):
        """Noise of a block of steps of permutation t; a draw starts with the block."""
        n = self.model.n_players
        p = self.model.n_parameters
        if self.noise is None:
            return np.empty((0, p))
        draws = [
            self.noise.draw((min(self.n_drawn, n - start), p), (t, start))
            for start in range(block.start, block.stop, self.n_drawn)
        ]
        noise = draws[0] if len(draws) == 1 else np.concatenate(draws)
        noise *= self.noise.factors[order[block], None]
        return noise


def marginals_along(model, weights, order, theta, steps):
    """Weighted marginal utilities (n_players,) of a walk with known steps (n, p)."""
    needed = needed_positions(weights)
    utilities = np.empty(len(order) + 1)
    for block in _blocks(len(order), steps_in_memory(steps.shape[1])):
        thetas = np.cumsum(np.vstack([theta, steps[order[block]]]), axis=0)
        theta = thetas[-1]
        first = block.start + (block.start > 0)
        positions = slice(first, block.stop + 1)
        utilities[positions] = _needed_utilities(
            model, thetas[None, first - block.start :], needed[positions]
        )
    return _marginals(utilities, weights, order)


def _needed_utilities(model, path, needed):
    """Utilities (b, n) of parameters (b, n, p), NaN where they are not needed."""
    n_walks, n_positions, p = path.shape
    utilities = np.full((n_walks, n_positions), np.nan)
    if needed.any():
        if not needed.all():
            path = path[:, np.flatnonzero(needed)]
        computed = model.utilities(path.reshape(-1, p))
        utilities[:, needed] = computed.reshape(path.shape[:2])
    return utilities


def _marginals(utilities, weights, order):
    """Weighted marginal utilities (n_players,), from those (n + 1,) along an order."""
    has_weight = weights != 0
    marginals = np.zeros(len(weights))
    marginals[order[has_weight]] = (np.diff(utilities) * weights)[has_weight]
    return marginals


def _blocks(n, size):
    """Slices of at most ``size`` that start at its multiples."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
