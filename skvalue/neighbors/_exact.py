"""Ranks from rounded keys: near-ties are resolved by float64 distances of the rows.

`skvalue.neighbors.kernels.ties` does the same for one point at a time.
"""

import numpy as np
from scipy import sparse

from .._utils.parallel import ordered_map, tiles
from ._ranks import Order
from ._rows import Rows, read_rows
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC
from .kernels.ties import EQUAL, dense_keys, near_ties, sort_runs, sparse_keys

# Ranks below this are resolved exactly; beyond, a swap changes a value by less than 1 /
# 4096^2.
EXACT_RANKS = 4096

# Entries of the rows that are read at a time.
_ROOM = 2**24

# Smallest number of pairs for one thread.
_PAIRS = 4096


# Exact keys of pairs ------------------------------------------------------------------


def block_keys(kind, rows, i, points, v):
    """Exact keys of pairs of row ``i[p]`` of a block and point ``v[p]``, (n_pairs,).

    Rows and points are both dense or both CSR.
    """
    i = np.ascontiguousarray(i, np.int64)
    v = np.ascontiguousarray(v, np.int64)
    if not sparse.issparse(rows):
        # Read-only views, as in `NativeEngine.ranks`.
        rows = np.broadcast_to(rows, rows.shape)
        points = np.broadcast_to(points, points.shape)
        return dense_keys(kind, rows, i, points, v)
    points = sparse.csr_array(points)
    # scipy takes 64-bit indices where 32 bits are too few, for any of these.
    x_ptr, x_col, q_ptr, q_col = _of_one_dtype(
        rows.indptr, rows.indices, points.indptr, points.indices
    )
    return sparse_keys(
        kind,
        x_ptr=x_ptr,
        x_col=x_col,
        x=rows.data,
        i=i,
        q_ptr=q_ptr,
        q_col=q_col,
        q=points.data,
        v=v,
        n_columns=rows.shape[1],
    )


def _of_one_dtype(*arrays):
    """Arrays of integers as arrays of the dtype that holds them all."""
    dtype = np.result_type(*arrays)
    return [np.ascontiguousarray(array, dtype) for array in arrays]


def pair_keys(space, i, points, v, workers=1):
    """Exact keys of pairs of row ``i[p]`` and point ``v[p]``, (n_pairs,).

    Pairs of rows in memory are divided among ``workers`` threads; other rows are read
    once.
    """
    X = space.X
    if not isinstance(X, Rows):
        return _dense_pair_keys(space, i, points, v, workers)
    if X.is_sparse:
        # The source is in memory, so that no block is read.
        i = i + X.index.start if isinstance(X.index, slice) else X.index[i]
        return block_keys(space.kind, X.source, i, points, v)

    keys = np.empty(len(i), np.float64)
    rows, place = np.unique(i, return_inverse=True)
    step = max(1, _ROOM // X.shape[1])
    for start in range(0, len(rows), step):
        pairs = np.flatnonzero((place >= start) & (place < start + step))
        block = read_rows(X[rows[start : start + step]])
        keys[pairs] = block_keys(
            space.kind, block, place[pairs] - start, points, v[pairs]
        )
    return keys


def _dense_pair_keys(space, i, points, v, workers):
    """`pair_keys` of rows in memory."""
    if workers == 1 or len(i) <= _PAIRS:
        return block_keys(space.kind, space.X, i, points, v)
    size = max(_PAIRS, -(-len(i) // workers))
    tasks = [
        (space.kind, space.X, i[pairs], points, v[pairs])
        for pairs in tiles(len(i), size)
    ]
    keys = ordered_map(block_keys, tasks, workers, shared=True)
    return np.concatenate(list(keys))


# Runs of near-ties --------------------------------------------------------------------


def resolve_pairs(space, points, v, i, near, workers=1):
    """Sort runs of near-tied rows by exact distance.

    Parameters
    ----------
    space : Space
        The rows.
    points : ndarray or csr_array of shape (n_points, d)
        The points.
    v, i : ndarrays of shape (n_pairs,)
        Pairs of point and row, sorted by point and rank.
    near : ndarray of bool of shape (n_pairs,)
        Whether the row is within rounding of the one before it.
    workers : int, default=1
        Number of threads.

    Returns
    -------
    rows : ndarray of shape (n_pairs,)
        The rows, sorted within each run.
    tied : ndarray of bool of shape (n_pairs,)
        Whether each is tied with the one before it.
    """
    exact = pair_keys(space, i, points, v, workers)
    starts = np.append(np.flatnonzero(~near), len(near))
    place = sort_runs(starts, exact)
    exact = exact[place]
    sizes = np.abs(exact[1:]) if space.kind == EUCLIDEAN else 1.0
    tied = near.copy()
    tied[1:] &= exact[1:] - exact[:-1] <= EQUAL * sizes
    return i[place], tied


def long_runs(front, head=EXACT_RANKS):
    """Points with a run that continues at rank ``head``, see `run_positions`."""
    if front.shape[1] <= head:
        return np.zeros(0, np.int64)
    return np.flatnonzero(front[:, head])


def run_positions(front, lines, tail, head=EXACT_RANKS):
    """Positions (point, rank) of all rows in runs that begin at a rank below ``head``.

    ``front`` is ``near[:, :head + 1]``, where ``near[v, p]`` says whether ranks p and p
    - 1 are within rounding of each other; ``tail`` is ``near[lines, head:]``, lines of
    `long_runs`.
    """
    head = min(head, front.shape[1])
    in_run = front[:, :head].copy()
    in_run[:, : front.shape[1] - 1] |= front[:, 1 : head + 1]
    v, p = np.nonzero(in_run)
    if len(lines):
        # The ranks from ``head`` on of long runs.
        lengths = np.where(tail.all(axis=1), tail.shape[1], np.argmin(tail, axis=1))
        later = [np.arange(head, head + length) for length in lengths]
        v = np.concatenate([v, np.repeat(lines, lengths)])
        p = np.concatenate([p, *later])
        place = np.lexsort((p, v))
        v = v[place]
        p = p[place]
    return v, p


# Ranks of a tile of points ------------------------------------------------------------


def ranked(
    space, points, query_half, search, absent, max_rank, tolerance, head=EXACT_RANKS
):
    """Yield positions of points, and their `Order`, from a search by rounded keys.

    Parameters
    ----------
    space : Space
        The rows.
    points : ndarray or csr_array of shape (n_points, d)
        The points.
    query_half : ndarray of shape (n_points,)
        Half their squared norms.
    search : object
        ``search.nearest(lines, k)`` returns sorted keys and rows of the k nearest rows
        of points, those that are absent last. Where rows beyond the k-th may be tied
        with it, more are searched. ``search.size(k)`` is the number of points at a
        time.
    absent : ndarray of bool of shape (n_points,)
        Whether a row is absent for the point.
    max_rank : int
        Number of ranks needed.
    tolerance : float
        Bound of the rounding of keys relative to the sizes of both rows.
    head : int, default=EXACT_RANKS
        Rank from which near-ties count as ties.
    """
    # Points that are not ranked yet, and how many rows to search for each: max_rank,
    # one for a row that is absent, and one beyond the last.
    n = len(space)
    waiting = [(np.arange(len(absent)), min(n, max_rank + 2))]
    while waiting:
        lines, k = waiting.pop()
        slices = tiles(len(lines), max(1, search.size(k)))
        if len(slices) > 1:
            waiting += [(lines[tile], k) for tile in reversed(slices)]
            continue

        keys, order = search.nearest(lines, k)
        order = order.astype(np.int32, copy=False)
        if k < n:
            # The last row only shows whether the run of near-ties before it ends. If it
            # does not, the point waits for a search of twice as many rows.
            rounding = _rounding(space, order[:, -2:-1], query_half[lines], tolerance)
            has_end = (keys[:, -1:] - keys[:, -2:-1] > rounding)[:, 0]
            if not has_end.all():
                waiting.append((lines[~has_end], min(n, 2 * k)))
            if not has_end.any():
                continue
            lines = lines[has_end]
            keys = keys[has_end, :-1]
            order = order[has_end, :-1]

        tied = _resolve(
            space,
            points[lines],
            query_half[lines],
            keys=keys,
            order=order,
            tolerance=tolerance,
            head=head,
        )
        n_ranked = count_ranked(tied, min(max_rank, tied.shape[1]))
        n_ranked = np.minimum(n_ranked, n - absent[lines])
        # ``i ^ -1`` is ``~i``.
        np.bitwise_xor(order, np.negative(tied.view(np.int8)), out=order)
        yield lines, Order(order, n_ranked)


def count_ranked(tied, max_rank):
    """Number of ranks kept for each point, (n_points,).

    These are ``max_rank``, plus those tied with the last of them.
    """
    n = tied.shape[1]
    if max_rank >= n:
        return np.full(len(tied), n)
    later = tied[:, max_rank:]
    n_tied = np.where(later.all(axis=1), n - max_rank, np.argmin(later, axis=1))
    return max_rank + n_tied


def _resolve(space, points, query_half, keys, order, tolerance, head):
    """Correct the order of rows by sorted, rounded keys in place, (n_points, n_sorted).

    Runs that begin at rank ``head`` or later become ties. Returns a mask of ties with
    the row before.
    """
    near = np.empty(keys.shape, dtype=bool)
    near_ties(
        space.kind,
        np.ascontiguousarray(keys),
        np.ascontiguousarray(order),
        half=space.half,
        query_half=query_half,
        tolerance=tolerance,
        smallest_half=space.smallest_half,
        largest_half=space.largest_half,
        near=near.view(np.uint8),
    )
    if space.kind == GENERIC:
        return near

    apart = _without_shared_columns(space, keys, near)
    if apart is not None:
        near[apart] = False
    front = near[:, : head + 1]
    lines = long_runs(front, head)
    v, p = run_positions(front, lines, near[lines, head:], head)
    if len(v):
        rows, tied = resolve_pairs(space, points, v, order[v, p], near[v, p])
        order[v, p] = rows
        near[v, p] = tied
    if apart is not None:
        near[apart] = True
    return near


def _rounding(space, order, query_half, tolerance):
    """Largest difference of two keys that may be due to rounding, (n_points, n_ranks).

    Of the rows ``order`` and any other.
    """
    if space.kind == GENERIC:
        return 0.0
    if space.kind == COSINE:
        return tolerance
    return tolerance * (space.half[order] + query_half[:, None])


def _without_shared_columns(space, keys, near):
    """Mask of ties of sparse rows that share no column with the point: cosine 0.

    There may be thousands. Where another row is within rounding of them, they are
    compared exactly. None for other rows and metrics.
    """
    is_sparse = isinstance(space.X, Rows) and space.X.is_sparse
    if space.kind != COSINE or not is_sparse:
        return None

    apart = np.zeros(near.shape, dtype=bool)
    is_zero = keys == 0
    apart[:, 1:] = is_zero[:, 1:] & is_zero[:, :-1]
    n = keys.shape[1]
    lines = np.arange(len(keys))
    first = np.argmax(is_zero, axis=1)
    after = first + is_zero.sum(axis=1)
    is_near_after = near[lines, np.minimum(after, n - 1)] & (after < n)
    apart[near[lines, first] | is_near_after] = False
    return apart
