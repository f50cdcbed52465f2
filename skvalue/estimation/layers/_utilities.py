"""Utilities of coalitions given by their members; those of whole layers are stored."""

import numpy as np

from ..._utils.parallel import tiles
from ..._utils.warned import add_counts, counted_warnings
from ...samplers import all_subsets, subset_ranks
from ..design import ENTRIES


class Utilities:
    """Utilities of coalitions that are given by their members.

    Those of whole layers are stored.

    Parameters
    ----------
    game : Game
        The game.
    warned : dict, default=None
        Counts of the warnings of the estimator's fits, which are added to it.

    Attributes
    ----------
    n : int
        Number of players.
    n_evaluated : int
        Number of coalitions evaluated.
    tables : dict of int to ndarray
        Utilities of all coalitions of a size, in the order of `all_subsets`.
    """

    def __init__(self, game, warned=None):
        self.game = game
        self.n = game.n_players
        self.warned = {} if warned is None else warned
        self.tables = {0: np.array([game.empty_utility])}
        self.n_evaluated = 0

    @property
    def full(self):
        """Utility of the coalition of all players."""
        self.tabulate(self.n)
        return float(self.tables[self.n][0])

    def of_masks(self, masks):
        """Utilities of the coalitions in the rows of a bool array."""
        with counted_warnings() as counts:
            utilities = self.game.utility(masks)
        add_counts(self.warned, counts)
        self.n_evaluated += len(masks)
        return utilities

    def of(self, sets):
        """Utilities of the coalitions in the rows of an int array (m, size)."""
        size = sets.shape[1]
        if size in self.tables:
            ranks = subset_ranks(np.sort(sets, axis=1))
            return self.tables[size][ranks]
        utilities = np.empty(len(sets))
        for tile in tiles(len(sets), max(1, ENTRIES // self.n)):
            utilities[tile] = self.of_masks(coalition_masks(sets[tile], self.n))
        return utilities

    def tabulate(self, size):
        """Evaluate all coalitions of a size, once."""
        if size not in self.tables:
            self.tables[size] = self.of(all_subsets(self.n, size))

    def without_each(self, sets):
        """Utilities of sets (m,), and of each without each member (m, size)."""
        size = sets.shape[1]
        if size in self.tables or size - 1 in self.tables:
            without = [self.of(np.delete(sets, j, axis=1)) for j in range(size)]
            return self.of(sets), np.stack(without, axis=1)
        return self._after_a_change(sets, sets, joins=False)

    def joined_by_each(self, sets, players):
        """Utilities of sets (m,), and of each with each of its players (m, count)."""
        size = sets.shape[1]
        if size in self.tables or size + 1 in self.tables:
            joined = [self.of(np.column_stack([sets, column])) for column in players.T]
            return self.of(sets), np.stack(joined, axis=1)
        return self._after_a_change(sets, players, joins=True)

    def _after_a_change(self, sets, players, joins):
        """Utilities of sets (m,), and after each player joins or leaves (m, count)."""
        m, count = players.shape
        base = np.empty(m)
        changed = np.empty((m, count))
        for tile in tiles(m, max(1, ENTRIES // (self.n * (count + 1)))):
            # Each set is followed by those next to it: solvers start from the solution
            # before.
            masks = coalition_masks(sets[tile], self.n).repeat(count + 1, axis=0)
            masks = masks.reshape(-1, count + 1, self.n)
            row, place = np.indices((len(masks), count))
            masks[row, place + 1, players[tile]] = joins

            utilities = self.of_masks(masks.reshape(-1, self.n))
            utilities = utilities.reshape(-1, count + 1)
            base[tile] = utilities[:, 0]
            changed[tile] = utilities[:, 1:]
        return base, changed


def coalition_masks(sets, n):
    """Masks over n players, from the members in the rows of an int array."""
    masks = np.zeros((len(sets), n), dtype=bool)
    np.put_along_axis(masks, sets, True, axis=1)
    return masks
