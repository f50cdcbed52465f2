"""The coalitions of a design, as control variates need them."""

import numpy as np

from ..design import ENTRIES
from ._controls import make_controls


class Coalitions:
    """Masks of coalitions, a bit for each player, and what describes their features.

    Coalitions are added as they are drawn, and described once, however often a
    surrogate is fitted.

    Parameters
    ----------
    n_players : int
        Number of players.

    Attributes
    ----------
    controls : Controls or None
        The features of the last description.
    """

    def __init__(self, n_players):
        self.n_players = n_players
        self.controls = None
        self._packed = np.zeros((0, -(-n_players // 8)), dtype=np.uint8)
        self._new_packed = []
        self._kinds = None
        self._described = []

    def __len__(self):
        return len(self._packed) + sum(map(len, self._new_packed))

    def add(self, masks):
        """Add coalitions: masks (m, n_players)."""
        self._new_packed.append(np.packbits(masks, axis=1))

    def masks(self, rows):
        """Masks (len(rows), n_players) of coalitions, by numbers or a slice of them."""
        if self._new_packed:
            self._packed = np.concatenate([self._packed, *self._new_packed])
            self._new_packed = []
        packed = self._packed[rows]
        return np.unpackbits(packed, axis=1, count=self.n_players).view(bool)

    def describe(self, kinds, strata, rows):
        """Describe all coalitions by features of the given kinds.

        ``rows`` are what features need of the rows, keywords of `make_controls`.
        Returns an array of shape (len(self), n_described), see `Controls.describe`.
        """
        if self.controls is None or kinds != self._kinds:
            self.controls = make_controls(strata, kinds=kinds, **rows)
            self._kinds = kinds
            self._described = []

        tile_size = max(1, ENTRIES // self.n_players)
        n_described = sum(map(len, self._described))
        for start in range(n_described, len(self), tile_size):
            masks = self.masks(slice(start, start + tile_size))
            self._described.append(self.controls.describe(masks))
        return np.concatenate(self._described)
