"""Boosted trees over coalitions, whose semivalues have closed forms.

The utility that a tree predicts is a sum over its leaves: the value of a leaf, for the
coalitions that have all the players that its path requires, and none of those that it
excludes. The semivalue of a required player in this game is that value times the sum
of the weights of these coalitions, which are as many of each size as there are subsets
of the other players; that of an excluded player has the other sign, and all others
have none. Interactions of pairs follow in the same way.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from .closed_forms import pair_weights, semivalue_weights

N_FOLDS = 10
_N_TREES = 100
_N_LEAVES = 16
_FEWEST_IN_LEAF = 3

_ENTRIES = 2**22  # of the memberships of coalitions in leaves in memory at once


@dataclass(frozen=True)
class Leaves:
    """A game of n players that is a sum over k leaves of trees.

    Parameters
    ----------
    required, excluded : ndarrays of bool of shape (k, n)
        The players that a coalition of the leaf has, and those that it does not have.
    values : ndarray of shape (k,)
        What the leaf adds to the utility of its coalitions.
    """

    required: np.ndarray
    excluded: np.ndarray
    values: np.ndarray

    def utilities(self, masks):
        """Utilities, (m,), of coalitions, (m, n)."""
        # A coalition is in a leaf if it has all required and no excluded players.
        signs = self.required.astype(np.float32) - self.excluded
        n_required = self.required.sum(axis=1)
        utilities = np.zeros(len(masks))
        length = max(1, _ENTRIES // len(self.values))
        for first in range(0, len(masks), length):
            tile = slice(first, first + length)
            is_in_leaf = masks[tile].astype(np.float32) @ signs.T == n_required
            utilities[tile] = is_in_leaf @ self.values
        return utilities

    def semivalues(self, q):
        """Semivalues, (n,), for probabilities of sizes, (n,)."""
        joined, left = semivalue_weights(q)
        values = (self.values * self._totals(joined)) @ self.required
        return values - (self.values * self._totals(left)) @ self.excluded

    def interactions(self, q):
        """Interactions of pairs, in the order of ``combinations(range(n), 2)``.

        ``q``, (n - 1,), are the probabilities of the sizes that a pair joins.
        """
        both, one, none = pair_weights(q)
        required = self.required.astype(np.float64)
        excluded = self.excluded.astype(np.float64)
        of_required = self.values * self._totals(both)
        of_one = self.values * self._totals(one)
        of_excluded = self.values * self._totals(none)

        matrix = (required.T * of_required) @ required
        matrix += (excluded.T * of_excluded) @ excluded
        mixed = (required.T * of_one) @ excluded
        matrix -= mixed + mixed.T
        n = self.required.shape[1]
        first, second = np.array(list(combinations(range(n), 2))).T
        return matrix[first, second]

    def _totals(self, weights):
        """Sums over the coalitions of every leaf of a weight of their size, (k,)."""
        n = self.required.shape[1]
        n_required = self.required.sum(axis=1)
        n_free = n - n_required - self.excluded.sum(axis=1)
        table = np.zeros((n + 1, n + 1))
        for free in range(n + 1):
            counts = np.array([comb(free, k) for k in range(free + 1)], dtype=float)
            for fixed in range(n + 1 - free):
                table[fixed, free] = counts @ weights[fixed : fixed + free + 1]
        return table[n_required, n_free]


@dataclass(frozen=True)
class CrossFit:
    """Boosted trees, each fitted to all but a fold of the coalitions.

    Parameters
    ----------
    leaves : Leaves
        The mean of the trees of all folds.
    folds : ndarray of int of shape (m,)
        The fold of every coalition.
    left_out : ndarray of shape (m,)
        Predictions of the utilities by the trees that were not fitted to them.
    """

    leaves: Leaves
    folds: np.ndarray
    left_out: np.ndarray


def cross_fit(masks, utilities):
    """Boosted trees that predict utilities of coalitions, and of left-out ones.

    Parameters
    ----------
    masks : ndarray of bool of shape (m, n)
        Different coalitions.
    utilities : ndarray of shape (m,)
        Their utilities.

    Returns
    -------
    trees : CrossFit
        A function of these arrays and of nothing else.
    """
    folds = _folds(masks)
    members = masks.astype(np.float32)
    left_out = np.zeros(len(masks))
    parts = []
    for fold in range(N_FOLDS):
        is_left_out = folds == fold
        model = GradientBoostingRegressor(
            n_estimators=_N_TREES,
            max_depth=None,
            max_leaf_nodes=_N_LEAVES,
            min_samples_leaf=_FEWEST_IN_LEAF,
            random_state=0,
        )
        model.fit(members[~is_left_out], utilities[~is_left_out])
        left_out[is_left_out] = model.predict(members[is_left_out])
        parts.extend(_leaves_of(model, masks.shape[1]))
    required, excluded, values = (np.concatenate(arrays) for arrays in zip(*parts))
    return CrossFit(
        leaves=Leaves(required, excluded, values / N_FOLDS),
        folds=folds,
        left_out=left_out,
    )


def _folds(masks):
    """Folds of coalitions, at random, with about as many of a size in each."""
    m = len(masks)
    order = np.lexsort((np.random.default_rng(m).random(m), masks.sum(axis=1)))
    folds = np.empty(m, dtype=np.int64)
    folds[order] = np.arange(m) % N_FOLDS
    return folds


def _leaves_of(model, n):
    """Required and excluded players and values of the leaves of each boosted tree.

    The first is a leaf without players, of the utility that boosting starts from.
    """
    nobody = np.zeros((1, n), dtype=bool)
    yield nobody, nobody, model.init_.predict(nobody)
    for regressor in model.estimators_[:, 0]:
        tree = regressor.tree_
        required = np.zeros((tree.node_count, n), dtype=bool)
        excluded = np.zeros((tree.node_count, n), dtype=bool)
        # Nodes come before their children; a member is 1, and goes to the right.
        for node in range(tree.node_count):
            player = tree.feature[node]
            left = tree.children_left[node]
            right = tree.children_right[node]
            if left < 0:
                continue
            required[[left, right]] = required[node]
            excluded[[left, right]] = excluded[node]
            excluded[left, player] = True
            required[right, player] = True
        is_leaf = tree.children_left < 0
        values = model.learning_rate * tree.value[is_leaf, 0, 0]
        yield required[is_leaf], excluded[is_leaf], values
