"""The number of coalitions of each size that Layered Shapley draws, and their cost."""

from dataclasses import dataclass
from math import comb

import numpy as np
from scipy.special import binom

LAYER_DESIGNS = ("blocks", "iid", "poisson")
N_SHUFFLES = 8  # independent parts of the design "blocks"
_ENUMERATED = (
    2**20
)  # largest number of coalitions of a layer that is enumerated to save time


def n_subsets(n, k):
    """Number of subsets of size k; infinite above the largest float."""
    return float(np.rint(binom(n, k)))


@dataclass(frozen=True)
class LayerPlan:
    """The number of coalitions of each size 0, ..., K that a player joins."""

    design: str  # one of LAYER_DESIGNS
    n: int  # number of players
    counts: (
        np.ndarray
    )  # (K + 1,): these numbers, or their means; 0: the layer is left out
    enumerated: np.ndarray  # (K + 1,): layers of which all coalitions are evaluated
    n_shuffles: int = (
        N_SHUFFLES  # parts of the design "blocks", from which errors are estimated
    )

    @property
    def sampled(self):
        """Sizes of the layers that are sampled."""
        return np.flatnonzero(~self.enumerated & (self.counts > 0))

    @property
    def cost(self):
        """Approximate number of coalitions evaluated."""
        return self._enumerated_cost() + sum(map(self._cost, self.sampled))

    @property
    def typical_sizes(self):
        """Sizes of coalitions: quantiles over all that are evaluated."""
        layers = np.flatnonzero(self.enumerated)
        sizes = np.r_[layers + 1, self.sampled + 1]
        costs = [n_subsets(self.n, size) for size in layers + 1]
        costs = np.cumsum([*costs, *map(self._cost, self.sampled)])
        return [
            int(sizes[np.searchsorted(costs, q * costs[-1])])
            for q in (1 / 6, 1 / 2, 5 / 6)
        ]

    def _enumerated_cost(self):
        layers = set(np.flatnonzero(self.enumerated).tolist())
        sizes = layers | {k + 1 for k in layers}
        return sum(comb(self.n, size) for size in sizes if 0 < size < self.n) + 1

    def in_circles(self, k):
        """Whether layer k uses blocks of k others on a circle; else, blocks of k + 1
        players."""
        return self.counts[k] / self.n_shuffles >= k + 1

    def _cost(self, k):
        n, count, sets = self.n, float(self.counts[k]), -(-self.n // (int(k) + 1))
        known = k > 0 and bool(self.enumerated[k - 1])
        if self.design == "poisson":
            return n * count / (k + 1) * (1 if known else k + 2)
        if self.design == "blocks" and self.in_circles(k):
            rounds = self.n_shuffles * -(-count // (self.n_shuffles * ((n - 1) // k)))
            return n * count + (0 if known else n * rounds)
        return count * (sets if known else n + sets)


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

    def scaled(factor):
        return _round(design, n, np.asarray(counts) * factor, n_shuffles)

    if max_evaluations is None:
        return scaled(1.0)
    low, high = -60.0, 60.0  # powers of two
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if scaled(2.0**middle).cost <= max_evaluations
            else (low, middle)
        )
    return scaled(2.0**low)


def _round(design, n, wanted, n_shuffles):
    largest = np.array([n_subsets(n - 1, k) for k in range(len(wanted))])
    counts = np.minimum(wanted, largest)
    if design == "iid":
        counts = np.maximum(np.ceil(counts), 1.0)
    elif design == "blocks":
        per = counts / n_shuffles
        counts = np.where(per < 1, per, np.ceil(per)) * n_shuffles
    enumerated = (wanted >= largest) | ((counts >= largest) & (design == "iid"))
    plan = LayerPlan(design, n, counts, enumerated, n_shuffles)
    for k in plan.sampled:  # enumerate layers for which this is cheaper than a sample
        all_of_them = n_subsets(n, k + 1) + (
            0 if enumerated[k - 1] else n_subsets(n, k)
        )
        if all_of_them <= min(plan._cost(k), _ENUMERATED):
            enumerated[k] = True
    return plan
