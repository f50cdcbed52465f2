"""What a valuer with ``store_neighbors=True`` keeps of a fit for the next change of its data."""

import os
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import is_leave_one_out


def _memory():
    """Bytes of memory that this machine has; infinity where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return np.inf


@dataclass(frozen=True)
class Stored:
    """What is kept of one game.

    Attributes
    ----------
    tiles : list
        `neighbors._stored.Lines` or `Members` of one tile of judges each.
    n_rows : int
        Number of rows.
    under : tuple
        Parameters under which the neighbours were found.
    frame : Frame or None
        What the keys of all tiles are made with.
    """

    tiles: list
    n_rows: int
    under: tuple
    frame: object = None


class StoresNeighborsMixin:
    """`store_neighbors`: updates that measure the distances of new rows and judges alone.

    A method writes `_store_under`, `_store_nbytes`, `_store_change` and `_tiles`, and takes
    its tasks from `_sources`. ``_stores`` has one entry a call of `_value`; while rows come or go,
    ``_pending`` is the entry of before, the mask of the rows that stay, and the change.
    """

    _pending = None

    @property
    def neighbors_nbytes_(self):
        """Bytes that `store_neighbors` keeps; 0 where nothing is kept."""
        check_is_fitted(self)
        return sum(tile.nbytes for store in self._stores for tile in store.tiles)

    def _prepare_stores(self, X_val):
        """Check `store_neighbors` before a fit, and forget what does not hold for it."""
        if self.store_neighbors and self._wants_privacy():
            raise ValueError(
                "store_neighbors must be False with epsilon: a private fit keeps nothing of its "
                "rows. Got store_neighbors=True."
            )
        if self.store_neighbors and X_val is None and not is_leave_one_out(self.cv):
            raise ValueError(
                "store_neighbors=True needs X_val and y_val, or cv='leave-one-out': the splits of "
                f"a splitter change with the rows. Got cv={self.cv!r}."
            )
        if self.store_neighbors and self.engine not in ("auto", "numba"):
            raise ValueError(
                f"store_neighbors=True needs engine='numba' or 'auto'. Got engine={self.engine!r}."
            )
        self._stores = []
        if self._pending is not None and self._pending[0].under != self._store_under():
            self._pending = None

    def _refit(self, X, y, groups, stay, **validation):
        before = self._stores[0] if len(self._stores) == 1 else None
        if self.store_neighbors and before is not None and before.n_rows == len(stay):
            change = self._store_change(before, stay, X)
            self._pending = None if change is None else (before, stay, change)
        try:
            return super()._refit(X, y, groups, stay, **validation)
        finally:
            self._pending = None

    def _merge_judges(self):
        super()._merge_judges()
        first, last = self._stores if len(self._stores) == 2 else (None, None)
        self._stores = []
        if first is not None and first.under == last.under:
            kept = first.tiles + last.tiles
            self._stores.append(Stored(kept, first.n_rows, first.under, first.frame))

    def _known_tiles(self):
        """Tiles of which the neighbours are known, and who of each still judges."""
        if self._pending is None:
            return []
        store, stay, _ = self._pending
        known, start = [], 0
        for kept in store.tiles:
            alive = np.arange(len(kept))
            if not self._explicit:  # the rows that went judge no more
                alive = np.flatnonzero(stay[start : start + len(kept)])
            start += len(kept)
            if len(alive):
                known.append((kept, alive))
        return known

    def _n_steps(self, n_players, n_judges, n_features):
        known = self._known_tiles()
        n_new = n_judges - sum(len(alive) for _, alive in known)
        return len(known) + len(self._tiles(n_players, n_new, n_features))

    def _sources(self, X, judges, changed, make_first):
        """Slices of the judges, and where their neighbours come from.

        ``changed(kept, alive, change)`` is the source of a known tile, ``make_first()`` that of all
        others.
        """
        n_judges = len(judges.y)
        needed = self._store_nbytes(len(X) - (judges.own is not None), n_judges, X.dtype)
        if needed > _memory():
            raise MemoryError(
                f"store_neighbors=True would keep {needed:,} bytes for {len(X):,} rows and "
                f"{n_judges:,} validation points. Set it to False."
            )
        sources, start = [], 0
        for kept, alive in self._known_tiles():
            part = slice(start, start + len(alive))
            sources.append((part, changed(kept, alive, self._pending[2])))
            start = part.stop
        if self._pending is not None:
            self._pending[0].tiles.clear()  # they are changed in place, to the end or not
        others = self._tiles(len(X), n_judges - start, X.shape[1])
        if others:
            first = make_first()
            sources += [(slice(start + p.start, start + p.stop), first) for p in others]
        return sources

    def _keep(self, tiles, n_tiles, n_rows, frame=None):
        """Keep the tiles of a game; those of a game that ended early serve nobody."""
        if len(tiles) == n_tiles:
            self._stores.append(Stored(tiles, n_rows, self._store_under(), frame))
