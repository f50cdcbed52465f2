"""What rounding leaves open, decided from the rows themselves. Importing this imports numba."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from scipy import sparse

from .._utils.compiled import compiled
from .._utils.parallel import tiles
from ._rows import Rows, read_rows
from ._space import COSINE, GENERIC, Space
from .kernels.rank import EQUAL, EUCLIDEAN, exact_key, minus_cosine

HEAD = 4096  # ranks up to here are settled exactly; further out a swap moves a value by < 1/HEAD^2
_ROOM = 2**24  # numbers of rows read at a time
_PAIRS = 4096  # that are worth a thread


@compiled
def _dense_keys(kind, rows, i, queries, v):
    keys = np.empty(len(i), np.float64)
    for p in range(len(i)):
        keys[p] = exact_key(kind, rows[i[p]], queries[v[p]])
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


@compiled
def _all_keys(kind, rows, queries, keys):
    for v in range(len(queries)):
        for i in range(len(rows)):
            keys[v, i] = exact_key(kind, rows[i], queries[v])


class PairSpace(Space):
    """Players whose distances are taken pair by pair: no player moves another's, by any rounding.

    What a product rounds hangs on the point that products are taken around, and what is tied on who
    stands between, so on all players together. Here players are tied at equal distances alone. As
    slow as other metrics; those that scikit-learn takes pair by pair are as they are.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The players.
    metric : str or callable
        As for `Space`.
    """

    def __init__(self, X, metric):
        super().__init__(X, "euclidean" if metric == "l2" else metric, center=None)
        self.pairs, self.kind = self.kind, GENERIC
        self.half, self.scale = np.zeros_like(self.half), np.ones_like(self.scale)

    def distances(self, Q, rows=slice(None)):
        """What grows with the distance, (n_judges, n_rows)."""
        if self.pairs == GENERIC:
            return super().distances(Q, rows)
        players = self.X[rows]
        keys = np.empty((len(Q), len(players)))
        _all_keys(self.pairs, players, Q, keys)
        return keys


def block_keys(kind, rows, i, queries, v):
    """Exact keys of pairs: row ``i[p]`` of a block and query ``v[p]``, both dense or both CSR."""
    if sparse.issparse(rows):
        queries = sparse.csr_array(queries)
        return _sparse_keys(
            kind, rows.indptr, rows.indices, rows.data, i,
            queries.indptr, queries.indices, queries.data, v,
        )  # fmt: skip
    return _dense_keys(kind, rows, i, queries, v)


def pair_keys(space, i, queries, v, workers=1):
    """Exact keys of pairs: player ``i[p]`` and query ``v[p]``; rows not in memory are read once.

    Those in memory are shared by so many threads.
    """
    if not isinstance(space.X, Rows):
        parts = tiles(len(i), max(_PAIRS, -(-len(i) // workers)))

        def keys_of(part):
            return _dense_keys(space.kind, space.X, i[part], queries, v[part])

        if len(parts) <= 1:
            return keys_of(slice(None))
        with ThreadPoolExecutor(len(parts)) as pool:
            return np.concatenate(list(pool.map(keys_of, parts)))
    if space.X.is_sparse:  # in memory: no block to cut out
        index = space.X.index
        i = i + index.start if isinstance(index, slice) else index[i]
        return block_keys(space.kind, space.X.source, i, queries, v)
    keys = np.empty(len(i), np.float64)
    rows, place = np.unique(i, return_inverse=True)
    step = max(1, _ROOM // space.X.shape[1])
    for start in range(0, len(rows), step):
        asked = np.flatnonzero((place >= start) & (place < start + step))
        block = read_rows(space.X[rows[start : start + step]])
        keys[asked] = block_keys(space.kind, block, place[asked] - start, queries, v[asked])
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


def settle_pairs(space, queries, v, i, near, workers=1):
    """Order runs of players that a product cannot tell apart.

    Parameters
    ----------
    space : Space
        The players.
    queries : ndarray or csr_array of shape (n_judges, d)
        The judges' rows.
    v, i : ndarrays of int
        Judge and player, sorted by judge and rank.
    near : ndarray of bool
        Whether the player is within rounding of the one before it.
    workers : int, default=1
        Threads.

    Returns
    -------
    i : ndarray of int
        The players in order of exact distance within every run.
    tied : ndarray of bool
        Whether a player is as far as the one before it.
    """
    exact = pair_keys(space, i, queries, v, workers)
    place = _sort_runs(np.append(np.flatnonzero(~near), len(near)), exact)
    exact = exact[place]
    tied = near.copy()
    sizes = np.abs(exact[1:]) if space.kind == EUCLIDEAN else 1.0
    tied[1:] &= exact[1:] - exact[:-1] <= EQUAL * sizes
    return i[place], tied


def run_members(front, tail, head=HEAD):
    """Positions (judge, rank) of all players of the runs that begin among the first ranks.

    Parameters
    ----------
    front : ndarray of bool of shape (n_judges, head + 1)
        ``near[:, :head + 1]`` where ``near[v, p]`` says that the players at ranks p and p - 1 are
        within rounding of each other; all of ``near`` where there are fewer ranks.
    tail : callable
        ``tail(lines)`` returns ``near[lines, head:]`` for the judges whose run goes on at rank
        head.
    head : int
        Runs that begin at a lower rank are asked for.

    Returns
    -------
    v, p : ndarrays of int
        Judges and ranks, sorted.
    """
    head = min(head, front.shape[1])
    member = front[:, :head].copy()
    member[:, : front.shape[1] - 1] |= front[:, 1 : head + 1]
    v, p = np.nonzero(member)
    if front.shape[1] > head and front[:, head].any():
        lines = np.flatnonzero(front[:, head])
        near = tail(lines)
        lengths = np.where(near.all(axis=1), near.shape[1], np.argmin(near, axis=1))
        v = np.concatenate([v, np.repeat(lines, lengths)])
        p = np.concatenate([p, *(np.arange(head, head + length) for length in lengths)])
        place = np.lexsort((p, v))
        v, p = v[place], p[place]
    return v, p


def settle(space, queries, query_half, keys, order, tolerance=None, head=HEAD):
    """Settle an order by rounded keys, in place; runs that begin behind rank ``head`` are tied.

    Parameters
    ----------
    space : Space
        The players.
    queries : ndarray or csr_array of shape (n_judges, d)
        The judges' rows.
    query_half : ndarray of shape (n_judges,)
        Half their squared norms.
    keys : ndarray of shape (n_judges, n_sorted)
        Sorted keys.
    order : ndarray of int of shape (n_judges, n_sorted)
        The players in that order; corrected where an exact key says so.
    tolerance : float, default=None
        How far keys are rounded, relative to the sizes of both rows; None is that of the space.
    head : int
        The rank.

    Returns
    -------
    tied : ndarray of bool of shape (n_judges, n_sorted)
        Whether a player is tied with the one before it.
    """
    near = np.zeros(keys.shape, dtype=bool)
    if space.kind == GENERIC:
        near[:, 1:] = keys[:, 1:] == keys[:, :-1]
        return near
    allowed = space.rank_tolerance if tolerance is None else tolerance
    if space.kind != COSINE:
        allowed = allowed * (space.half[order[:, 1:]] + query_half[:, None])
    near[:, 1:] = keys[:, 1:] - keys[:, :-1] <= allowed
    apart = _strangers(space, keys, near)
    near[apart] = False
    v, p = run_members(near[:, : head + 1], lambda lines: near[lines, head:], head)
    if len(v):
        order[v, p], near[v, p] = settle_pairs(space, queries, v, order[v, p], near[v, p])
    near[apart] = True
    return near


def _strangers(space, keys, near):
    """Ties of sparse players that share no column with the judge: their cosine is 0, exactly.

    There may be thousands. Where another player is within rounding of them, they are left open.
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


def hand_on(consume, lines, order, n_ranked):
    """Call ``consume`` with every run of neighbours among some judges, whose numbers are sorted."""
    for start, stop in pairwise([*np.flatnonzero(np.diff(lines, prepend=-2) != 1), len(lines)]):
        part = slice(int(lines[start]), int(lines[start]) + int(stop - start))
        consume(part, order[start:stop], n_ranked[start:stop])
