"""The number of coalitions of each size that Layered Shapley draws, and their cost."""

from dataclasses import dataclass
from math import comb

import numpy as np
from scipy.special import binom

LAYER_DESIGNS = ("blocks", "iid", "poisson")
N_SHUFFLES = 8  # independent parts of the design "blocks"
_MAX_ENUMERATED = 2**20  # coalitions of a layer that is enumerated to save time


def n_subsets(n, k):
    """Number of subsets of size k; infinite above the largest float."""
    return float(np.rint(binom(n, k)))


@dataclass(frozen=True)
class LayerPlan:
    """The number of coalitions of each size 0, ..., K that a player joins.

    Parameters
    ----------
    design : str
        One of `LAYER_DESIGNS`.
    n : int
        Number of players.
    counts : ndarray of shape (K + 1,)
        Numbers of coalitions, or their means; 0: the layer is left out.
    enumerated : ndarray of bool of shape (K + 1,)
        Layers of which all coalitions are evaluated.
    n_shuffles : int, default=8
        Parts of the design "blocks", from which errors are estimated.
    """

    design: str
    n: int
    counts: np.ndarray
    enumerated: np.ndarray
    n_shuffles: int = N_SHUFFLES

    @property
    def sampled(self):
        """Sizes of the layers that are sampled."""
        return np.flatnonzero(~self.enumerated & (self.counts > 0))

    @property
    def cost(self):
        """Approximate number of coalitions evaluated."""
        return self._enumerated_cost() + sum(map(self.layer_cost, self.sampled))

    @property
    def typical_sizes(self):
        """Sizes of coalitions: quantiles over all that are evaluated."""
        layers = np.flatnonzero(self.enumerated)
        sizes = np.r_[layers + 1, self.sampled + 1]
        costs = [n_subsets(self.n, size) for size in layers + 1]
        costs += [self.layer_cost(k) for k in self.sampled]
        cumulated = np.cumsum(costs)
        places = [
            np.searchsorted(cumulated, fraction * cumulated[-1])
            for fraction in (1 / 6, 1 / 2, 5 / 6)
        ]
        return [int(sizes[place]) for place in places]

    def _enumerated_cost(self):
        """Number of coalitions of the enumerated layers, and that of all players."""
        layers = set(np.flatnonzero(self.enumerated).tolist())
        sizes = layers | {k + 1 for k in layers}
        return sum(comb(self.n, size) for size in sizes if 0 < size < self.n) + 1

    def in_circles(self, k):
        """Whether layer k has blocks of k others on a circle, not of k + 1 players."""
        return self.counts[k] / self.n_shuffles >= k + 1

    def layer_cost(self, k):
        """Approximate number of coalitions evaluated for a sampled layer."""
        n = self.n
        count = float(self.counts[k])
        knows_smaller = k > 0 and bool(self.enumerated[k - 1])
        if self.design == "poisson":
            n_sets = n * count / (k + 1)
            if knows_smaller:
                return n_sets
            return n_sets * (k + 2)
        if self.design == "blocks" and self.in_circles(k):
            per_shuffle = self.n_shuffles * ((n - 1) // k)
            n_circles = self.n_shuffles * -(-count // per_shuffle)
            if knows_smaller:
                return n * count
            return n * count + n * n_circles
        n_sets = -(-n // (int(k) + 1))
        if knows_smaller:
            return count * n_sets
        return count * (n + n_sets)


def plan_layers(design, n, counts, *, n_shuffles=N_SHUFFLES, max_evaluations=None):
    """Make a plan for n players from the number of coalitions wanted for each layer.

    Parameters
    ----------
    design : {"blocks", "iid", "poisson"}
        How coalitions are drawn.
    n : int
        Number of players.
    counts : ndarray of shape (K + 1,)
        Coalitions wanted of each size.
    n_shuffles : int, default=8
        Independent parts of the design "blocks".
    max_evaluations : int, default=None
        If given, counts are scaled so that about this many coalitions are evaluated in
        total.

    Returns
    -------
    plan : LayerPlan
        The plan.
    """

    def scaled_plan(factor):
        return _round_counts(design, n, np.asarray(counts) * factor, n_shuffles)

    if max_evaluations is None:
        return scaled_plan(1.0)
    low = -60.0  # powers of two
    high = 60.0
    for _ in range(60):
        middle = (low + high) / 2
        if scaled_plan(2.0**middle).cost <= max_evaluations:
            low = middle
        else:
            high = middle
    return scaled_plan(2.0**low)


def _round_counts(design, n, wanted, n_shuffles):
    """The plan of numbers of coalitions, rounded up as the design needs it."""
    largest = np.array([n_subsets(n - 1, k) for k in range(len(wanted))])
    counts = np.minimum(wanted, largest)
    if design == "iid":
        counts = np.maximum(np.ceil(counts), 1.0)
    elif design == "blocks":
        per_shuffle = counts / n_shuffles
        per_shuffle = np.where(per_shuffle < 1, per_shuffle, np.ceil(per_shuffle))
        counts = per_shuffle * n_shuffles
    enumerated = (wanted >= largest) | ((counts >= largest) & (design == "iid"))
    plan = LayerPlan(design, n, counts, enumerated, n_shuffles)

    # Layers are enumerated if that is cheaper than a sample; the next one profits.
    for k in plan.sampled:
        n_needed = n_subsets(n, k + 1)
        if not enumerated[k - 1]:
            n_needed += n_subsets(n, k)
        if n_needed <= min(plan.layer_cost(k), _MAX_ENUMERATED):
            enumerated[k] = True
    return plan
