"""The design of the process: which coalitions, and the values of the players.

Sizes are drawn in proportion to a power of the root mean square of the weights of their
coalitions in the semivalue. After 3n coalitions, and whenever their number has doubled,
a fit shows how far utilities of each size are from their predictions, and the next ones
are allocated by the weights times that. The coalitions that are planned do not depend
on any limit, so that a run that resumes with more of them is one that began with more.
"""

from copy import copy
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from ..._utils.parallel import one_thread
from ...samplers import draw_distinct
from ..design import Design, Moments, is_shapley
from .blend import (
    BlendHyper,
    blend_pair_posterior,
    blend_posterior,
    blend_seconds,
    condition_blend,
    fit_blend,
)
from .closed_forms import mean_squared_weights
from .fit import (
    STEPS,
    fit_process,
    is_constant,
    plan_seconds,
    unexplained_by_size,
)

MAX_PLAYERS = 32
MAX_COALITIONS = 4096  # whose covariance matrix is factorised
_FEWEST_FOR_ERRORS = 4  # coalitions for each player, before `tol` is checked
_FIRST_PLAN = 3  # coalitions for each player, before there is a fit
_ROUNDS = 3  # checks of `tol` while the number of coalitions doubles

# Powers of the weights of sizes, see `plan_masses`.
_FIRST_SHAPLEY_POWER = 4.0
_FIRST_POWER = 0.5
_POWER = 0.7


@dataclass(frozen=True)
class Count(Moments):
    """The number of coalitions evaluated; they are kept in the log of the design."""

    count: int

    def merge(self, other):
        return Count(self.count + other.count)


@dataclass(frozen=True)
class _Fitted:
    """What was fitted to a number of coalitions."""

    count: int
    hyper: BlendHyper


@dataclass(frozen=True)
class _Estimate:
    """Values and their errors, (n,), from a number of coalitions."""

    count: int
    values: np.ndarray
    errors: np.ndarray


def size_masses(q):
    """Weight of every size 0..n in the plan, if utilities of all sizes vary alike.

    A coalition of size s counts ``p[s-1]`` for its s members and ``-p[s]`` for the
    others: the number of coalitions times the root mean square of these. It is 0 for
    the empty coalition and that of all players, which are known. For the Shapley value
    it is in proportion to ``1 / sqrt(s (n - s))``.

    Parameters
    ----------
    q : ndarray of shape (n,)
        Probabilities of sizes.

    Returns
    -------
    masses : ndarray of shape (n + 1,)
        The weights.
    """
    n = len(q)
    n_coalitions = np.array([comb(n, s) for s in range(n + 1)], dtype=np.float64)
    masses = n_coalitions * np.sqrt(mean_squared_weights(q))
    masses[[0, n]] = 0.0
    return masses


def allocate(masses, count, capacity):
    """Split a number of draws over sizes in proportion to masses.

    Parameters
    ----------
    masses : ndarray of shape (n + 1,)
        Weights of the sizes.
    count : int
        Number of draws.
    capacity : ndarray of int of shape (n + 1,)
        Most draws of each size. What is more goes to the other sizes.

    Returns
    -------
    counts : ndarray of int of shape (n + 1,)
        Their sum is `count`, or that of the capacities of sizes with a mass, if that is
        less.
    """
    is_open = (masses > 0) & (capacity > 0)
    count = int(min(count, capacity[is_open].sum()))
    exact = np.zeros(len(masses))
    remaining = float(count)
    while remaining > 0:
        shares = np.where(is_open, masses, 0.0)
        shares *= remaining / shares.sum()
        is_full = is_open & (shares >= capacity)
        if not is_full.any():
            exact[is_open] = shares[is_open]
            break
        exact[is_full] = capacity[is_full]
        remaining -= capacity[is_full].sum()
        is_open &= ~is_full

    # Round down, and give the missing draws to the largest remainders.
    counts = np.floor(exact + 1e-9).astype(np.int64)
    for size in np.argsort(counts - exact, kind="stable"):
        has_room = masses[size] > 0 and counts[size] < capacity[size]
        if has_room and counts.sum() < count:
            counts[size] += 1
    return counts


def plan_masses(q, is_first):
    """Weights of the sizes 0..n in the first plan, or a later one: (n + 1,).

    Those of `size_masses` to a power. Shapley values have more of the smallest and the
    largest sizes first, in proportion to ``(s (n - s))^-2``, since one player more or
    less of a few, or of nearly all, changes utilities by more than of half of them.
    Other semivalues may weight a few sizes much more than all others: these are drawn
    too, so that errors allow for how much utilities vary there. The powers were chosen
    on games of data, with 30 and 100 evaluations.
    """
    if is_shapley(q):
        power = _FIRST_SHAPLEY_POWER if is_first else 1.0
    else:
        power = _FIRST_POWER if is_first else _POWER
    return size_masses(q) ** power


class ProcessDesign(Design):
    """Different coalitions of at most 32 players, from which a process predicts all.

    Values are posterior means, and errors posterior standard deviations.
    """

    cost = 1
    log_names = ("codes", "utilities")

    def __init__(self, q, **options):
        n = len(q)
        self.q = q
        n_coalitions = [comb(n, size) for size in range(n + 1)]
        self._capacity = np.where(size_masses(q) > 0, n_coalitions, 0)
        # The coalition of all players is one more.
        self.n_blocks = int(min(self._capacity.sum(), MAX_COALITIONS - 1))
        self.fewest = min(n, self.n_blocks)
        self._fitted = None
        self._estimate = None
        super().__init__(n, **options)

    def _no_moments(self):
        return Count(0)

    # Drawing --------------------------------------------------------------------------

    def _plan_of(self, block):
        """The first coalition of the plan of one, and the first of the next plan."""
        first = 0
        last = _FIRST_PLAN * self.n
        while block >= last:
            first = last
            last = 2 * last
        return first, last

    def round_of(self, block):
        first, last = self._plan_of(block)
        if first == 0:
            return first, last
        edges = first * 2 ** (np.arange(_ROUNDS + 1) / _ROUNDS)
        edges = np.round(edges).astype(int)
        number = np.searchsorted(edges, block, side="right")
        return int(edges[number - 1]), int(edges[number])

    def _ask(self, blocks):
        first, last = self._plan_of(self.block)
        if self.plan_first != first:
            self.plan = self._draw_plan(first, last)
            self.plan_first = first
        n_coalitions = min(len(blocks), self.size)
        codes = self.plan[self.block - first :][:n_coalitions]
        if not len(codes):  # all coalitions are known, some by a merge
            return None
        self._pending = codes
        return self._masks_of(codes)

    def _draw_plan(self, first, last):
        """Codes of the coalitions from a number to another, in the order of a mixture.

        Any first part of them has all sizes in about the same proportions.
        """
        rng = self.random(first)
        masks, utilities = self._known()
        is_drawn = ~masks.all(axis=1)
        n_drawn = np.bincount(masks[is_drawn].sum(axis=1), minlength=self.n + 1)
        masses = plan_masses(self.q, is_first=first == 0)
        if first > 0 and not is_constant(utilities):
            with one_thread():
                process = fit_process(masks, utilities, steps=STEPS // 2)
                masses = masses * unexplained_by_size(process)

        n_new = last - first
        wanted = allocate(masses, n_drawn.sum() + n_new, self._capacity)
        lacking = np.maximum(wanted - n_drawn, 0)
        counts = allocate(lacking, n_new, np.maximum(self._capacity - n_drawn, 0))
        new = draw_distinct(rng, counts, masks)
        codes = self._codes_of(new)

        # Coalitions come by size: those of each are spread evenly over the plan.
        positions = [np.zeros(0)]
        for count in counts[counts > 0]:
            positions.append((np.arange(count) + rng.random()) / count)
        order = np.argsort(np.concatenate(positions), kind="stable")
        return codes[order]

    def _codes_of(self, masks):
        """A number for each coalition: bit i is set if player i is a member."""
        return masks @ (1 << np.arange(self.n, dtype=np.int64))

    def _masks_of(self, codes):
        return (codes[:, None] >> np.arange(self.n)) % 2 == 1

    def _tell(self, utilities):
        codes = self._pending
        self._pending = None
        n_new = len(codes)
        self._advance(
            Count(self.moments.count + n_new),
            n_blocks=n_new,
            n_coalitions=n_new,
            log=(*self.log, (codes, utilities)),
        )

    def _known(self):
        """The coalitions evaluated, each once and in order, and their utilities."""
        codes = np.array([2**self.n - 1])
        utilities = np.array([self.full])
        if self.log:
            drawn_codes, drawn_utilities = self.logged()
            codes = np.append(codes, drawn_codes)
            utilities = np.append(utilities, drawn_utilities)
        codes, first = np.unique(codes, return_index=True)
        return self._masks_of(codes), utilities[first]

    # Time of fits ---------------------------------------------------------------------

    def expected_seconds(self, n_coalitions):
        seconds = blend_seconds(n_coalitions, self.n)
        _, start_of_plan = self._plan_of(0)
        while start_of_plan < n_coalitions:
            seconds += plan_seconds(start_of_plan, self.n)
            start_of_plan = 2 * start_of_plan
        return seconds

    @property
    def closing_seconds(self):
        count = self.moments.count
        is_estimated = self._estimate is not None and self._estimate.count == count
        seconds = 0.0
        if count > 0 and not is_estimated:
            seconds = blend_seconds(count, self.n)
        # A fit precedes the next coalition if that is the first of a plan.
        start_of_plan, _ = self._plan_of(self.block)
        if self.block == start_of_plan and self.block > 0 and self.blocks_left:
            seconds += plan_seconds(count, self.n)
        return seconds

    # Values and their errors ----------------------------------------------------------

    @property
    def has_reliable_errors(self):
        n_needed = min(_FEWEST_FOR_ERRORS * self.n, self.n_blocks)
        return self.moments.count >= n_needed

    def _blend(self):
        """The blend given all coalitions so far; None if utilities are equal."""
        count = self.moments.count
        masks, utilities = self._known()
        if is_constant(utilities):
            return None
        with one_thread():
            if self._fitted is not None and self._fitted.count == count:
                return condition_blend(self._fitted.hyper, masks, utilities)
            hyper, blend = fit_blend(masks, utilities)
        self._fitted = _Fitted(count, hyper)
        return blend

    def _estimated(self):
        """Values and errors from all coalitions so far."""
        count = self.moments.count
        if self._estimate is not None and self._estimate.count == count:
            return self._estimate
        blend = self._blend()
        if blend is None:
            value = self.q[0] * (self.full - self.empty_utility)
            values = np.full(self.n, value)
            errors = np.zeros(self.n)
        else:
            with one_thread():
                values, errors = blend_posterior(blend, self.q, self.empty_utility)
        self._estimate = _Estimate(count, values, errors)
        return self._estimate

    def values(self):
        values = self._estimated().values
        if is_shapley(self.q):
            # Their sum is known, and that of the posterior means up to rounding.
            gain = self.full - self.empty_utility
            values = values + (gain - values.sum()) / self.n
        return values

    def variances(self):
        freedom = np.full(self.n, float(self.moments.count))
        return self._estimated().errors ** 2, freedom

    def reweighted(self, q):
        # The process is that of the utilities, whatever the weights of sizes are.
        design = copy(self)
        design.q = q
        design._estimate = None
        return design, 0.0, 0.0

    def interactions(self, q):
        """Interactions of pairs of players, (n, n), with zeros on the diagonal.

        ``q``, (n - 1,), are the probabilities of the sizes that a pair joins.
        """
        first, second = np.array(list(combinations(range(self.n), 2))).T
        blend = self._blend()
        if blend is None:
            of_pairs = q[0] * (self.empty_utility - self.full)
        else:
            with one_thread():
                of_pairs = blend_pair_posterior(blend, q, self.empty_utility)
        interactions = np.zeros((self.n, self.n))
        interactions[first, second] = of_pairs
        interactions[second, first] = of_pairs
        return interactions
