"""Neighbours that are kept: orders and balls of the judges, and how they follow the rows.

Everything works on one tile of judges, as in `_numba`. A *store* is what is kept of a tile; it is
changed in place where it can be, so an interrupted change leaves it useless.
"""

from dataclasses import dataclass, replace

import numpy as np

from ._numba import Strips, ball_values, rank_head, rank_values
from ._space import EUCLIDEAN, GENERIC, Space, _center, is_far
from .kernels import merge as _merge_kernels
from .kernels import rank as _rank_kernels

_SPARE = 16  # one row in so many may come before the lines of a tile are allocated anew


def room_for(n):
    """Entries that a line of ``n`` rows is given."""
    return n + n // _SPARE


def key_dtype(dtype, metric):
    """Precision of the keys of rows of some precision."""
    return np.dtype(dtype if metric in ("euclidean", "cosine") else np.float64)


# Orders ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """What the keys of all judges are made with; the rows' part of a `Space`."""

    metric: object
    kind: int
    center: np.ndarray | None
    half: np.ndarray
    scale: np.ndarray
    tolerance: float
    far_tolerance: float

    @classmethod
    def of(cls, space):
        """The frame of a space."""
        return cls(
            space.metric, space.kind, space.center, space.half, space.scale, space.rank_tolerance,
            space.far_tolerance,
        )  # fmt: skip

    def players(self, X):
        """The frame as compiled loops take it."""
        dtype = key_dtype(self.half.dtype, self.metric)
        return _rank_kernels.Players(
            self.kind, self.half.astype(dtype, copy=False), self.scale.astype(dtype, copy=False), X,
            self.tolerance, self.far_tolerance, float(self.half.max()),
            float(self.half.mean(dtype=np.float64)),
        )  # fmt: skip

    def is_off(self, X):
        """Whether the rows have moved so far that their keys want another center."""
        if self.kind != EUCLIDEAN:
            return False
        offset = _center(X[:: max(1, len(X) // 512)])  # a rough one will do
        if self.center is not None:
            offset = offset - self.center
        return is_far(offset, 2 * self.half.mean(dtype=np.float64))


@dataclass(frozen=True)
class Lines:
    """The rows and keys of a tile of judges, see `_merge_kernels`; ``size`` entries are used."""

    keys: np.ndarray
    rows: np.ndarray
    query_half: np.ndarray
    size: int

    @property
    def nbytes(self):
        return self.keys.nbytes + self.rows.nbytes + self.query_half.nbytes

    def __len__(self):
        return len(self.keys)


class FirstRanks:
    """Rank all players for judges of which nothing is known, and keep the ranks."""

    def __init__(self, space):
        self.space = space

    def rank(self, Q, own, max_rank, consume):
        """Do what `rank_values` does; return what is kept, a `Lines`."""
        n = len(self.space)
        dtype = key_dtype(self.space.work.dtype, self.space.metric)
        size = n - (own is not None)
        keys = np.empty((len(Q), room_for(size)), dtype)
        rows = np.empty(keys.shape, np.int32)

        def keep(part, players, product, order, n_ranked):
            _merge_kernels.keep_lines(players, product, order, n_ranked, keys[part], rows[part])

        def use(part, order, n_ranked):
            _merge_kernels.cut_ranks(order, n_ranked, max_rank)
            consume(part, order, n_ranked)

        rank_values(self.space, Q, own, n, use, keep)
        return Lines(keys, rows, self.space.queries(Q)[1], size)


class RankChange:
    """Rows that came or went, for all tiles.

    Parameters
    ----------
    frame : Frame
        The frame of the lines.
    stay : ndarray of bool
        Which of the rows before stay.
    X : ndarray of shape (n, d)
        All rows now: those that stay, then the new ones.
    """

    def __init__(self, frame, stay, X):
        n_stay = int(stay.sum())
        self.place = np.zeros(0, np.int32)
        half, scale = frame.half, frame.scale
        if n_stay < len(stay):
            self.place = np.where(stay, np.cumsum(stay) - 1, -1).astype(np.int32)
            half, scale = half[stay], scale[stay]
        self.n_stay, self.new, self.X = n_stay, None, X
        if n_stay < len(X):
            self.new = Space(X[n_stay:], frame.metric, frame.center)
            half = np.concatenate([half, self.new.half])
            scale = np.concatenate([scale, self.new.scale])
        self.frame = replace(frame, half=half, scale=scale)
        self.players = self.frame.players(X)

    def new_keys(self, Q):
        """Sorted keys of the new rows for every judge, and the rows."""
        dtype = self.players.half.dtype
        if self.new is None:
            return np.empty((len(Q), 0), dtype), np.empty((len(Q), 0), np.int32)
        if self.new.kind == GENERIC:
            keys = self.new.distances(Q).astype(dtype, copy=False)
        else:
            product = self.new.queries(Q)[0] @ self.new.work.T
            keys = self.new.half - self.new.scale * product
        rows = np.argsort(keys, axis=1)
        return np.take_along_axis(keys, rows, 1), (rows + self.n_stay).astype(np.int32)


class ChangedRanks:
    """Rank the players by what is kept of a tile, after a change.

    Parameters
    ----------
    store : Lines
        What is kept.
    alive : ndarray of int
        The judges of the tile that still judge.
    change : RankChange
        The change.
    """

    def __init__(self, store, alive, change):
        self.store, self.alive, self.change = store, alive, change

    def rank(self, Q, own, max_rank, consume):
        """Do what `rank_values` does; return what is kept, a `Lines`."""
        change, store = self.change, self.store
        n = size = len(change.X) - (own is not None)
        keys, rows = store.keys, store.rows
        if not n <= keys.shape[1] <= 2 * room_for(n):
            keys = np.empty((len(Q), room_for(n)), keys.dtype)
            rows = np.empty(keys.shape, np.int32)
        half = store.query_half[self.alive]
        spare = max(store.size, n)
        spare_keys, spare_rows = np.empty(spare, keys.dtype), np.empty(spare, np.int32)
        new_keys, new_rows = change.new_keys(Q)
        step = min(8, len(Q))
        order, n_ranked = np.empty((step, spare), np.int32), np.empty(step, np.int64)
        for start in range(0, len(Q), step):
            part = slice(start, min(start + step, len(Q)))
            some = part.stop - start
            size = _merge_kernels.change_lines(
                change.players, Q[part], half[part], store.keys, store.rows, store.size,
                self.alive[part], change.place, new_keys[part], new_rows[part], keys, rows, start,
                rank_head(n), spare_keys, spare_rows, order,
            )  # fmt: skip
            n_ranked[:] = size
            _merge_kernels.cut_ranks(order[:some], n_ranked[:some], max_rank)
            consume(part, order[:some], n_ranked[:some])
        if len(keys) > len(Q):  # a copy, so that the lines of judges that are gone are freed
            keys, rows = keys[: len(Q)].copy(), rows[: len(Q)].copy()
        return Lines(keys, rows, half, size)


# Balls ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Members:
    """Who is in the balls of a tile of judges.

    ``bits`` has a row of bytes a player, as `numpy.packbits` with ``bitorder="little"`` makes them;
    ``columns`` says which bit is whose, since those of judges that are gone are left.
    """

    bits: np.ndarray
    columns: np.ndarray

    @property
    def nbytes(self):
        return self.bits.nbytes + self.columns.nbytes

    def __len__(self):
        return len(self.columns)


class FirstBalls:
    """Measure all players for judges of which nothing is known, and keep who is in which ball."""

    def __init__(self, space, strips):
        self.space, self.strips = space, strips

    def values(self, Q, radius, own, weigh):
        """Do what `ball_values` does; return what is kept too, a `Members`."""
        members = np.empty((len(self.space), -(-len(Q) // 8)), np.uint8)

        def keep(bits):
            _merge_kernels.turn_strips(bits, self.strips.order, members)

        values, counts = ball_values(self.space, self.strips, Q, radius, own, weigh, keep)
        return values, counts, Members(members, np.arange(len(Q)))


class BallChange:
    """Rows that came or went, for all tiles.

    Parameters
    ----------
    metric : str or callable
        The metric.
    stay : ndarray of bool
        Which of the rows before stay.
    X : ndarray of shape (n, d)
        All rows now: those that stay, then the new ones.
    """

    def __init__(self, metric, stay, X):
        self.stay, self.new = stay, None
        n_stay = int(stay.sum())
        if n_stay < len(X):
            strips = Strips(np.zeros(len(X) - n_stay, np.int64), 1)
            self.new = FirstBalls(Space(X[n_stay:], metric), strips)


class ChangedBalls:
    """Values by what is kept of a tile, after a change.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class codes of the players.
    n_classes : int
        Number of classes.
    store : Members
        What is kept.
    alive : ndarray of int
        The judges of the tile that still judge.
    change : BallChange
        The change.
    """

    def __init__(self, labels, n_classes, store, alive, change):
        self.labels, self.n_classes = labels, n_classes
        self.store, self.alive, self.change = store, alive, change

    def values(self, Q, radius, own, weigh):
        """Do what `ball_values` does; return what is kept too, a `Members`."""
        change, columns = self.change, self.store.columns[self.alive]
        bits = self.store.bits
        if not change.stay.all():
            bits = bits[change.stay]
        if change.new is not None:
            new = change.new.values(Q, radius, None, np.zeros_like)[2].bits
            if columns[-1] >= len(columns) or new.shape[1] < bits.shape[1]:
                wide = np.zeros((len(new), 8 * bits.shape[1]), np.uint8)
                wide[:, columns] = np.unpackbits(new, axis=1, count=len(Q), bitorder="little")
                new = np.packbits(wide, axis=1, bitorder="little")
            bits = np.concatenate([bits, new])
        if 2 * len(columns) < 8 * bits.shape[1] - 7:  # most are gone
            wide = np.unpackbits(bits, axis=1, bitorder="little")[:, columns]
            bits, columns = np.packbits(wide, axis=1, bitorder="little"), np.arange(len(columns))
        counts = np.zeros((self.n_classes, 8 * bits.shape[1]), np.int64)
        _merge_kernels.count_members(bits, self.labels, _merge_kernels.LANES, counts)
        counts = counts[:, columns]
        weights = np.zeros((self.n_classes, 8 * bits.shape[1]))
        weights[:, columns] = weigh(counts)
        values = np.empty(len(bits))
        _merge_kernels.sum_members(bits, self.labels, weights, values)
        return values, counts, Members(bits, columns)
