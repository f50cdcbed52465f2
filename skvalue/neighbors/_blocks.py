"""The CPU engine for rows that are read block by block: sparse, in a file, or a Dask array.

The same functions as in `_numba`, which calls these for a `BlockSpace`. One pass over the rows
serves a tile of judges; what is kept of it is a key, or a bit, a pair. Imports numba.
"""

import numpy as np

from .._utils.compiled import compiled
from .._utils.parallel import tiles
from ._exact import block_keys, count_ranked, settle
from ._space import COSINE, GENERIC, ball_rule


def rank_values(space, Q, own, max_rank, consume):
    """Rank the players for every judge of a tile, see `_numba.rank_values`."""
    queries, query_half = space.queries(Q)
    rows, n = space.read(Q), len(space)
    keys = np.empty((len(Q), n), dtype=np.float64 if space.kind == GENERIC else space.X.dtype)
    for part, block in space.blocks(len(Q)):
        np.subtract(space.half[part], space.products(queries, block, part).T, out=keys[:, part])
    n_out = np.zeros(len(Q), dtype=np.int64)
    if own is not None:
        judges = np.flatnonzero(own >= 0)
        keys[judges, own[judges]] = np.inf
        n_out[judges] = 1
    step = max(1, int(space.budget // (32 * n)))
    for part in tiles(len(Q), step):
        order, tied = _order(space, rows[part], query_half[part], keys[part], max_rank)
        n_ranked = np.minimum(count_ranked(tied, max_rank), n - n_out[part])
        consume(part, np.where(tied, ~order, order).astype(np.int32), n_ranked)


def _order(space, rows, query_half, keys, max_rank):
    """Players by distance, and ties; at least ``max_rank`` of them and all tied with the last."""
    n = keys.shape[1]
    n_sorted = min(n, max_rank + 1)
    while True:
        if n_sorted < n // 2:
            order = np.argpartition(keys, n_sorted - 1, axis=1)[:, :n_sorted]
            some = np.take_along_axis(keys, order, axis=1)
            place = np.argsort(some, axis=1)
            order = np.take_along_axis(order, place, axis=1)
            line = np.take_along_axis(some, place, axis=1)
        else:
            n_sorted = n
            order = np.argsort(keys, axis=1)
            line = np.take_along_axis(keys, order, axis=1)
        tied = settle(space, rows, query_half, line, order)
        # A run that reaches the last sorted rank may go on behind it.
        if n_sorted == n or not _open(space, query_half, line, order).any():
            return order, tied
        n_sorted *= 2


def _open(space, query_half, keys, order):
    """Whether the last two keys of a line are within rounding of each other."""
    if keys.shape[1] < 2:
        return np.ones(len(keys), dtype=bool)
    gap = keys[:, -1] - keys[:, -2]
    if space.kind == GENERIC:
        return gap == 0
    if space.kind == COSINE:
        return gap <= space.rank_tolerance
    return gap <= space.rank_tolerance * (space.half[order[:, -1]] + query_half)


@compiled
def _tally(inside, labels, counts):
    for r in range(inside.shape[0]):
        line = counts[labels[r]]
        for v in range(inside.shape[1]):
            line[v] += inside[r, v]


@compiled
def _add_weights(bits, labels, weights, out):
    for r in range(len(bits)):
        line, w = bits[r], weights[labels[r]]
        total = 0.0
        for v in range(len(w)):
            total += w[v] if (line[v >> 3] >> (7 - (v & 7))) & 1 else 0.0
        out[r] = total


def ball_values(space, strips, Q, radius, own, weigh):
    """Sum the weights of the balls that each player is in, see `_numba.ball_values`."""
    queries, threshold, judge_slack, limit = ball_rule(space, Q, radius)
    threshold, judge_slack = threshold.astype(space.X.dtype), judge_slack.astype(space.X.dtype)
    rows, n_judges = space.read(Q), len(Q)
    counts = np.zeros((strips.n_classes, n_judges), dtype=np.int64)
    bits = np.empty((len(space), -(-n_judges // 8)), dtype=np.uint8)
    for part, block in space.blocks(n_judges):
        x = space.products(queries, block, part) - space.half[part, None]
        near = judge_slack + space.X.dtype.type(space.ball_tolerance) * space.half[part, None]
        inside = x >= threshold + near
        if space.kind != GENERIC:
            r, v = np.nonzero((x >= threshold - near) & ~inside)
            if len(r):
                inside[r, v] = block_keys(space.kind, block, r, rows, v) <= limit
        if own is not None:
            mine = np.flatnonzero((own >= part.start) & (own < part.stop))
            inside[own[mine] - part.start, mine] = False
        _tally(inside, strips.labels[part], counts)
        bits[part] = np.packbits(inside, axis=1)
    values = np.empty(len(space))
    _add_weights(bits, strips.labels, np.ascontiguousarray(weigh(counts)), values)
    return values, counts
