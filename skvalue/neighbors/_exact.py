"""Ranks from rounded keys: near-ties are resolved by float64 distances of the rows.

Imports numba. `skvalue.neighbors.kernels.ties` does the same for one point at a time.
"""

import numpy as np
from scipy import sparse

from .._utils.parallel import ordered_map, tiles
from ._ranks import Order
from ._rows import Rows, read_rows
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC
from .kernels.ties import EQUAL, dense_keys, sort_runs, sparse_keys

# Ranks below this are resolved exactly; beyond, a swap changes a value by less than 1 /
# 4096^2.
EXACT_RANKS = 4096
_ROOM = 2**24  # entries of the rows that are read at a time
_PAIRS = 4096  # smallest number of pairs for one thread


def block_keys(kind, rows, i, points, v):
    """Exact keys of pairs of row ``i[p]`` of a block and point ``v[p]``, both dense or
    both CSR."""
    i, v = np.ascontiguousarray(i), np.ascontiguousarray(v)
    if sparse.issparse(rows):
        points = sparse.csr_array(points)
        return sparse_keys(
            kind, rows.indptr, rows.indices, rows.data, i,
            points.indptr, points.indices, points.data, v,
        )  # fmt: skip
    rows, points = (
        np.broadcast_to(rows, rows.shape),
        np.broadcast_to(points, points.shape),
    )
    return dense_keys(
        kind, rows, i, points, v
    )  # of read-only rows, as in `NumbaEngine.ranks`


def pair_keys(space, i, points, v, workers=1):
    """Exact keys of pairs of row ``i[p]`` and point ``v[p]``.

    Pairs of rows in memory are divided among ``workers`` threads; other rows are read
    once.
    """
    if not isinstance(space.X, Rows):
        if workers == 1 or len(i) <= _PAIRS:
            return block_keys(space.kind, space.X, i, points, v)
        parts = tiles(len(i), max(_PAIRS, -(-len(i) // workers)))
        tasks = [(space.kind, space.X, i[part], points, v[part]) for part in parts]
        return np.concatenate(
            list(ordered_map(block_keys, tasks, workers, shared=True))
        )
    if space.X.is_sparse:  # in memory, so that no block is read
        index = space.X.index
        i = i + index.start if isinstance(index, slice) else index[i]
        return block_keys(space.kind, space.X.source, i, points, v)
    keys = np.empty(len(i), np.float64)
    rows, place = np.unique(i, return_inverse=True)
    step = max(1, _ROOM // space.X.shape[1])
    for start in range(0, len(rows), step):
        in_block = np.flatnonzero((place >= start) & (place < start + step))
        block = read_rows(space.X[rows[start : start + step]])
        keys[in_block] = block_keys(
            space.kind, block, place[in_block] - start, points, v[in_block]
        )
    return keys


def resolve_pairs(space, points, v, i, near, workers=1):
    """Sort runs of near-tied rows by exact distance; pairs (v, i) are sorted by point
    and rank.

    ``near``: whether the row is within rounding of the one before it. Returns the rows,
    sorted within each run, and whether each is tied with the one before it.
    """
    exact = pair_keys(space, i, points, v, workers)
    place = sort_runs(np.append(np.flatnonzero(~near), len(near)), exact)
    exact = exact[place]
    tied = near.copy()
    sizes = np.abs(exact[1:]) if space.kind == EUCLIDEAN else 1.0
    tied[1:] &= exact[1:] - exact[:-1] <= EQUAL * sizes
    return i[place], tied


def long_runs(front, head=EXACT_RANKS):
    """Points with a run that continues at rank ``head``, see `run_positions`."""
    return (
        np.flatnonzero(front[:, head])
        if front.shape[1] > head
        else np.zeros(0, np.int64)
    )


def run_positions(front, lines, tail, head=EXACT_RANKS):
    """Positions (point, rank) of all rows in runs that begin at a rank below ``head``.

    ``front`` is ``near[:, :head + 1]``, where ``near[v, p]`` says whether ranks p and p
    - 1 are within rounding of each other; ``tail`` is ``near[lines, head:]``, lines of
    `long_runs`.
    """
    head = min(head, front.shape[1])
    member = front[:, :head].copy()
    member[:, : front.shape[1] - 1] |= front[:, 1 : head + 1]
    v, p = np.nonzero(member)
    if len(lines):
        lengths = np.where(tail.all(axis=1), tail.shape[1], np.argmin(tail, axis=1))
        v = np.concatenate([v, np.repeat(lines, lengths)])
        p = np.concatenate([p, *(np.arange(head, head + length) for length in lengths)])
        place = np.lexsort((p, v))
        v, p = v[place], p[place]
    return v, p


def _rounding(space, order, query_half, tolerance):
    """Largest difference of the keys of rows ``order`` and others that may be due to
    rounding."""
    if space.kind == GENERIC:
        return 0.0
    if space.kind == COSINE:
        return tolerance
    return tolerance * (space.half[order] + query_half[:, None])


def ranked(
    space, points, query_half, search, absent, max_rank, tolerance, head=EXACT_RANKS
):
    """Yield some of the points, by position, and their `Order`, from a search by
    rounded keys.

    ``search.nearest(lines, k)``: sorted keys and rows of the k nearest rows of some
    points, those that are ``absent`` (a mask of points: has it one?) last. Where rows
    beyond the k-th may be tied with it, more are searched. ``search.size(k)``: number
    of points at a time.
    """
    n = len(space)
    waiting = [(np.arange(len(absent)), min(n, max_rank + 2))]
    while waiting:
        lines, k = waiting.pop()
        parts = tiles(len(lines), max(1, search.size(k)))
        if len(parts) > 1:
            waiting += [(lines[part], k) for part in reversed(parts)]
            continue
        keys, order = search.nearest(lines, k)
        if k < n:
            allowed = _rounding(space, order[:, -2:-1], query_half[lines], tolerance)
            ended = (keys[:, -1:] - keys[:, -2:-1] > allowed)[:, 0]
            if not ended.all():
                waiting.append((lines[~ended], min(n, 2 * k)))
            if not ended.any():
                continue
            lines, keys, order = lines[ended], keys[ended, :-1], order[ended, :-1]
        tied = resolve(
            space, points[lines], query_half[lines], keys, order, tolerance, head
        )
        n_ranked = count_ranked(tied, min(max_rank, tied.shape[1]))
        order = np.where(tied, ~order, order).astype(np.int32)
        yield lines, Order(order, np.minimum(n_ranked, n - absent[lines]))


def resolve(space, points, query_half, keys, order, tolerance, head):
    """Correct in place the order of rows by sorted, rounded keys (n_points, n_sorted).

    ``tolerance`` bounds the rounding relative to the sizes of both rows. Runs that
    begin at rank ``head`` or later become ties. Returns a mask of ties with the row
    before.
    """
    near = np.zeros(keys.shape, dtype=bool)
    with np.errstate(invalid="ignore"):  # inf - inf, of rows that do not play
        gaps = keys[:, 1:] - keys[:, :-1]
    near[:, 1:] = gaps <= _rounding(space, order[:, 1:], query_half, tolerance)
    if space.kind == GENERIC:
        return near
    apart = _without_shared_columns(space, keys, near)
    near[apart] = False
    front = near[:, : head + 1]
    lines = long_runs(front, head)
    v, p = run_positions(front, lines, near[lines, head:], head)
    if len(v):
        order[v, p], near[v, p] = resolve_pairs(
            space, points, v, order[v, p], near[v, p]
        )
    near[apart] = True
    return near


def _without_shared_columns(space, keys, near):
    """Mask of ties of sparse rows with no column in common with the point: their cosine
    is 0.

    There may be thousands. Where another row is within rounding of them, they are
    compared exactly.
    """
    apart = np.zeros(near.shape, dtype=bool)
    if space.kind == COSINE and isinstance(space.X, Rows) and space.X.is_sparse:
        zero = keys == 0
        apart[:, 1:] = zero[:, 1:] & zero[:, :-1]
        first = np.argmax(zero, axis=1)
        after = first + zero.sum(axis=1)
        lines = np.arange(len(keys))
        last = np.minimum(after, keys.shape[1] - 1)
        apart[near[lines, first] | ((after < keys.shape[1]) & near[lines, last])] = (
            False
        )
    return apart


def count_ranked(tied, max_rank):
    """Number of ranks kept for each point: ``max_rank``, plus those tied with the last
    of them."""
    n = tied.shape[1]
    if max_rank >= n:
        return np.full(len(tied), n)
    after = tied[:, max_rank:]
    return max_rank + np.where(
        after.all(axis=1), n - max_rank, np.argmin(after, axis=1)
    )
