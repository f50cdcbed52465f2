"""What rounding leaves open, resolved from the rows themselves. Importing this imports numba."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse

from .._utils.compiled import compiled
from .._utils.parallel import tiles
from ._rows import Rows, read_rows
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC
from .kernels.rank import EQUAL, exact_key, minus_cosine

HEAD = 4096  # ranks up to here are resolved exactly; further out a swap moves a value by < 1/HEAD^2
_ROOM = 2**24  # entries of rows that are read at a time
_PAIRS = 4096  # pairs that are worth a thread


@compiled
def _dense_keys(kind, rows, i, points, v):
    keys = np.empty(len(i), np.float64)
    for p in range(len(i)):
        keys[p] = exact_key(kind, rows[i[p]], points[v[p]])
    return keys


@compiled
def _sparse_keys(kind, x_ptr, x_col, x, i, q_ptr, q_col, q, v):
    """The sums of `exact_key` in the same order, zeros left out: the same bits."""
    keys = np.empty(len(i), np.float64)
    for p in range(len(i)):
        a, a_stop = x_ptr[i[p]], x_ptr[i[p] + 1]
        b, b_stop = q_ptr[v[p]], q_ptr[v[p] + 1]
        acc = xx = qq = 0.0
        while a < a_stop or b < b_stop:
            left = x_col[a] if a < a_stop else np.iinfo(np.int64).max
            right = q_col[b] if b < b_stop else np.iinfo(np.int64).max
            first = second = 0.0
            if left <= right:
                first = np.float64(x[a])
                a += 1
            if right <= left:
                second = np.float64(q[b])
                b += 1
            if kind == EUCLIDEAN:
                diff = first - second
                acc += diff * diff
            else:
                acc += first * second
                xx += first * first
                qq += second * second
        if kind == EUCLIDEAN:
            keys[p] = acc
        else:
            keys[p] = minus_cosine(acc, xx, qq)
    return keys


def block_keys(kind, rows, i, points, v):
    """Exact keys of pairs: row ``i[p]`` of a block and point ``v[p]``, both dense or both CSR."""
    if sparse.issparse(rows):
        points = sparse.csr_array(points)
        return _sparse_keys(
            kind, rows.indptr, rows.indices, rows.data, i,
            points.indptr, points.indices, points.data, v,
        )  # fmt: skip
    return _dense_keys(kind, rows, i, points, v)


def pair_keys(space, i, points, v, workers=1):
    """Exact keys of pairs: row ``i[p]`` and point ``v[p]``; rows not in memory are read once.

    Those in memory are shared by that many threads.
    """
    if not isinstance(space.X, Rows):
        parts = tiles(len(i), max(_PAIRS, -(-len(i) // workers)))

        def keys_of(part):
            return _dense_keys(space.kind, space.X, i[part], points, v[part])

        if len(parts) <= 1:
            return keys_of(slice(None))
        with ThreadPoolExecutor(len(parts)) as pool:
            return np.concatenate(list(pool.map(keys_of, parts)))
    if space.X.is_sparse:  # in memory: no block to cut out
        index = space.X.index
        i = i + index.start if isinstance(index, slice) else index[i]
        return block_keys(space.kind, space.X.source, i, points, v)
    keys = np.empty(len(i), np.float64)
    rows, place = np.unique(i, return_inverse=True)
    step = max(1, _ROOM // space.X.shape[1])
    for start in range(0, len(rows), step):
        asked = np.flatnonzero((place >= start) & (place < start + step))
        block = read_rows(space.X[rows[start : start + step]])
        keys[asked] = block_keys(space.kind, block, place[asked] - start, points, v[asked])
    return keys


@compiled
def _sort_runs(starts, keys):
    """Positions that sort ``keys`` inside every run, from one start to the next."""
    place = np.arange(len(keys))
    for r in range(len(starts) - 1):
        a, b = starts[r], starts[r + 1]
        for p in range(a + 1, b):
            if keys[p] < keys[p - 1]:
                place[a:b] = a + np.argsort(keys[a:b])
                break
    return place


def resolve_pairs(space, points, v, i, near, workers=1):
    """Order runs of rows that a product cannot tell apart by their exact distances.

    Point ``v`` and row ``i`` of each pair are sorted by point and rank; ``near`` says whether the
    row is within rounding of the one before it. Returns the rows in order within each run, and
    whether a row is as far as the one before it.
    """
    exact = pair_keys(space, i, points, v, workers)
    place = _sort_runs(np.append(np.flatnonzero(~near), len(near)), exact)
    exact = exact[place]
    tied = near.copy()
    sizes = np.abs(exact[1:]) if space.kind == EUCLIDEAN else 1.0
    tied[1:] &= exact[1:] - exact[:-1] <= EQUAL * sizes
    return i[place], tied


def lines_behind(front, head=HEAD):
    """Points with a run of rows that goes on at rank ``head``, see `run_members`."""
    return np.flatnonzero(front[:, head]) if front.shape[1] > head else np.zeros(0, np.int64)


def run_members(front, lines, tail, head=HEAD):
    """Positions (point, rank) of all rows of the runs that begin at a rank below ``head``.

    With ``near[v, p]`` whether the rows at ranks p and p - 1 are within rounding of each other,
    ``front`` is ``near[:, :head + 1]`` and ``tail`` is ``near[lines, head:]`` for `lines_behind`.
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


def resolve(space, points, query_half, keys, order, tolerance=None, head=HEAD):
    """Correct an order by rounded keys, in place; runs that begin behind rank ``head`` are tied.

    Keys (n_points, n_sorted) are sorted and ``order`` holds their rows; ``tolerance`` is how far
    keys are rounded, relative to the sizes of both rows (None: that of the space). Returns whether
    a row is tied with the one before it.
    """
    near = np.zeros(keys.shape, dtype=bool)
    if space.kind == GENERIC:
        near[:, 1:] = keys[:, 1:] == keys[:, :-1]
        return near
    allowed = space.rank_tolerance if tolerance is None else tolerance
    if space.kind != COSINE:
        allowed = allowed * (space.half[order[:, 1:]] + query_half[:, None])
    near[:, 1:] = keys[:, 1:] - keys[:, :-1] <= allowed
    apart = _without_shared_columns(space, keys, near)
    near[apart] = False
    front = near[:, : head + 1]
    lines = lines_behind(front, head)
    v, p = run_members(front, lines, near[lines, head:], head)
    if len(v):
        order[v, p], near[v, p] = resolve_pairs(space, points, v, order[v, p], near[v, p])
    near[apart] = True
    return near


def _without_shared_columns(space, keys, near):
    """Ties of sparse rows that share no column with the point: their cosine is 0, exactly.

    There may be thousands. Where another row is within rounding of them, they are left open.
    """
    apart = np.zeros(near.shape, dtype=bool)
    if space.kind == COSINE and isinstance(space.X, Rows) and space.X.is_sparse:
        zero = keys == 0
        apart[:, 1:] = zero[:, 1:] & zero[:, :-1]
        first = np.argmax(zero, axis=1)
        behind = first + zero.sum(axis=1)
        lines = np.arange(len(keys))
        last = np.minimum(behind, keys.shape[1] - 1)
        apart[near[lines, first] | ((behind < keys.shape[1]) & near[lines, last])] = False
    return apart


def count_ranked(tied, max_rank):
    """Ranks kept of every line: ``max_rank``, and those tied with the last of them."""
    n = tied.shape[1]
    if max_rank >= n:
        return np.full(len(tied), n)
    behind = tied[:, max_rank:]
    return max_rank + np.where(behind.all(axis=1), n - max_rank, np.argmin(behind, axis=1))
