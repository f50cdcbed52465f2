"""The CPU engine: single-threaded numpy products and compiled loops that release the GIL.

Every function here works on one tile of judges and is meant to run in its own thread; memory is
bounded by the tile, never by players times judges.
"""

import numpy as np
from sklearn import get_config

from .._utils.parallel import tiles
from . import _blocks
from ._block_space import BlockSpace
from ._rows import read_rows
from ._space import COSINE, GENERIC, ball_rule
from .kernels import ball as _ball_kernels
from .kernels import rank as _rank_kernels

_ROWS = 512  # players of one product of the ball engine: the tile stays in the cache


def _budget():
    """Bytes for one task: an eighth of scikit-learn's working memory."""
    return get_config()["working_memory"] * 2**20 / 8


def rank_head(n_players):
    """Ranks that are settled exactly, see `_rank_kernels.rank_tile`: in a small game, all."""
    return n_players if n_players <= 4096 else 1024


def rank_tile_size(n_players, n_judges, n_features, workers, max_rank):
    """Judges of one task of `rank_values`."""
    # A product with few judges spends its time packing the players, the more so the wider they are.
    wide = 512 if n_features > 128 else 128
    room = int(_budget() // (4 * n_players))
    return max(1, min(wide, room, -(-n_judges // workers)))


def ball_tile_size(n_players, n_judges, workers):
    """Judges of one task of `ball_values`."""
    room = int(8 * _budget() // n_players)
    return max(1, min(512, room, max(64, -(-n_judges // workers))))


def rank_values(space, Q, own, max_rank, consume, keep=None):
    """Rank the players for every judge of a tile and hand the order to ``consume``.

    Parameters
    ----------
    space : Space
        The players.
    Q : ndarray of shape (n_judges, d)
        The judges, in the precision of the players.
    own : ndarray of shape (n_judges,) or None
        A player that does not play for the judge; -1 for none.
    max_rank : int
        Ranks needed.
    consume : callable
        Called as ``consume(part, order, n_ranked)`` with a slice of the judges;
        ``order[v, :n_ranked[v]]`` holds the players from near to far, ``~i`` where row ``i`` is
        tied with the one before it. The arrays are reused.
    keep : callable, default=None
        Called before ``consume`` as ``keep(part, players, product, order, n_ranked)`` with what the
        keys are made of, see `_rank_kernels.Players`.
    """
    if isinstance(space, BlockSpace):
        return _blocks.rank_values(space, Q, own, max_rank, consume)
    Q = read_rows(Q)
    n, n_judges = len(space), len(Q)
    work_queries, query_half = space.queries(Q)
    dtype = np.dtype(np.float64) if space.kind == GENERIC else space.work.dtype
    step = min(8, n_judges)

    def make():
        return (
            np.empty(n_judges * n, dtype),
            _rank_kernels.workspace(n, dtype),
            np.empty((step, n), dtype=np.int32),
        )

    buffers = space.buffers.take("ranks", make)
    if buffers[0].size < n_judges * n or len(buffers[2]) < step:
        buffers = make()
    product, scratch, order = buffers
    product = product[: n_judges * n].reshape(n_judges, n)
    if space.kind == GENERIC:
        product[:] = space.distances(Q)
    else:
        np.matmul(work_queries, space.work.T, out=product)
    players = _rank_kernels.Players(
        space.kind, space.half.astype(dtype, copy=False), space.scale.astype(dtype, copy=False),
        space.X, space.rank_tolerance, space.far_tolerance, space.largest_half, space.mean_half,
    )  # fmt: skip
    own = np.full(n_judges, -1) if own is None else own
    absent_ptr = np.concatenate([[0], np.cumsum(own >= 0)])
    absent = own[own >= 0].astype(np.int64)
    n_ranked = np.empty(step, dtype=np.int64)
    for part in tiles(n_judges, step):
        size = part.stop - part.start
        _rank_kernels.rank_tile(
            players, product[part], Q[part], query_half[part], absent_ptr[part.start :], absent,
            max_rank, rank_head(n), scratch, order, n_ranked,
        )  # fmt: skip
        if keep is not None:
            keep(part, players, product[part], order[:size], n_ranked[:size])
        consume(part, order[:size], n_ranked[:size])
    space.buffers.give("ranks", buffers)


class Strips:
    """Players in strips of eight rows of one class, padded with -1.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class codes.
    n_classes : int
        Number of classes.
    """

    def __init__(self, labels, n_classes):
        sizes = np.bincount(labels, minlength=n_classes)
        padded = -(-sizes // 8) * 8
        starts = np.cumsum(padded) - padded
        by_class = np.argsort(labels, kind="stable")
        shift = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        self.order = np.full(padded.sum(), -1, dtype=np.int64)
        self.order[np.arange(len(labels)) + shift] = by_class
        self.position = np.empty(len(labels), dtype=np.int64)
        self.position[by_class] = np.arange(len(labels)) + shift
        self.classes = np.repeat(np.arange(n_classes), padded // 8)
        self.labels = labels
        self.n_classes = n_classes


def ball_values(space, strips, Q, radius, own, weigh, keep=None):
    """Sum over a tile of judges the weights of the balls that each player is in.

    Parameters
    ----------
    space : Space
        The players.
    strips : Strips
        The players' classes.
    Q : ndarray of shape (n_judges, d)
        The judges.
    radius : float
        Radius of the closed balls.
    own : ndarray of shape (n_judges,) or None
        A player that is not in the judge's ball whatever its distance; -1 for none.
    weigh : callable
        ``weigh(counts)`` turns the counts in the balls, (n_classes, n_judges), into the weights of
        a player of each class, of the same shape.
    keep : callable, default=None
        Called as ``keep(bits)`` with who is in which ball, (n_strips, n_judges), a byte a strip.

    Returns
    -------
    values : ndarray of shape (n,)
        Sums of weights.
    counts : ndarray of shape (n_classes, n_judges)
        Players of each class in each ball.
    """
    if isinstance(space, BlockSpace):
        return _blocks.ball_values(space, strips, Q, radius, own, weigh)
    Q = read_rows(Q)
    dtype = space.work.dtype
    work, threshold, judge_slack, limit = ball_rule(space, Q, radius)
    columns = np.ascontiguousarray(work.T)
    threshold, judge_slack = threshold.astype(dtype), judge_slack.astype(dtype)
    n_judges = len(Q)
    counts = np.zeros((strips.n_classes, n_judges), dtype=np.int64)
    n_strips = len(strips.classes)

    def make():
        return np.empty(n_strips * n_judges, np.uint8), np.empty(_ROWS * n_judges, dtype)

    buffers = space.buffers.take("balls", make)
    if buffers[0].size < n_strips * n_judges or buffers[1].size < _ROWS * n_judges:
        buffers = make()
    bits = buffers[0][: n_strips * n_judges].reshape(n_strips, n_judges)
    product = buffers[1][: _ROWS * n_judges].reshape(_ROWS, n_judges)
    for start in range(0, len(strips.order), _ROWS):
        order = strips.order[start : start + _ROWS]
        part = slice(start // 8, (start + len(order)) // 8)
        tile, padding = product[: len(order)], order < 0
        half = space.half[order]
        half[padding] = 0
        sizes = half.reshape(-1, 8).max(axis=1)
        half[padding] = np.inf  # never inside
        if space.kind == GENERIC:
            np.negative(space.distances(Q, order).T, out=tile)
        else:
            rows = space.work[order]
            if space.kind == COSINE:
                rows *= space.scale[order, None]
            np.matmul(rows, columns, out=tile)
        _ball_kernels.pack_strips(
            space.kind, tile, half, space.ball_tolerance * sizes, threshold, judge_slack, order,
            space.X, Q, limit, strips.classes[part], bits[part], counts,
        )  # fmt: skip
    if own is not None:
        _ball_kernels.remove_own(bits, counts, strips.position, strips.labels, own)
    if keep is not None:
        keep(bits)
    padded = np.zeros(len(strips.order))
    _ball_kernels.add_weights(bits, strips.classes, np.ascontiguousarray(weigh(counts)), padded)
    space.buffers.give("balls", buffers)
    return padded[strips.position], counts
