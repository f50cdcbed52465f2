"""Compiled loops of the CPU engine: players in order of distance. Importing this imports numba.

Rows are sorted by two counting passes over a 22-bit fixed-point code of their keys (`sort`) and one
insertion pass: linear in the number of rows, and several times faster than a comparison sort. More
than `MANY` rows, which do not fit in the processor's cache, are first divided by distance.
"""

import math
from typing import NamedTuple

import numpy as np

from ..._utils.compiled import compiled
from .kinds import COSINE, EUCLIDEAN, GENERIC
from .sort import count_codes, sort_by_bits, sort_by_codes, sort_many, sort_run

EQUAL = 1e-14  # exact keys that differ by less, relative to their size, are tied

MANY = 1 << 17  # number of rows above which they are sorted in buckets

_ABSENT = np.float32(3e38)  # key of a row that does not play at this point
_ULP = np.float32(1.2e-7)


class Players(NamedTuple):
    """What turns an inner product into a key: ``key = half[i] - scale[i] * product``.

    Keys closer than ``tolerance`` (at far ranks, ``far_tolerance``), relative to the sizes of both
    rows, are computed again from ``rows`` in float64, since rounding may have swapped them.
    """

    kind: int
    half: np.ndarray
    scale: np.ndarray
    rows: np.ndarray
    tolerance: float
    far_tolerance: float
    largest_half: float
    mean_half: float


class Workspace(NamedTuple):
    """Scratch memory for one point at a time."""

    keys: np.ndarray
    rel: np.ndarray
    codes: np.ndarray
    work: np.ndarray
    low: np.ndarray
    high: np.ndarray
    records: np.ndarray
    spare: np.ndarray
    counts: np.ndarray


def workspace(n, dtype):
    """Allocate scratch memory for ``n`` players."""
    few, many = (0, n) if n > MANY else (n, 0)
    return Workspace(
        np.empty(n, dtype),
        np.empty(few, np.float32),
        np.empty(few, np.uint32),
        np.empty(few, np.uint32),
        np.empty(2048, np.uint32),
        np.empty(2048, np.uint32),
        np.empty(many, np.uint64),
        np.empty(many // 8, np.uint64),
        np.empty(1 << 15, np.uint32),
    )


@compiled
def minus_cosine(product, xx, qq):
    """Minus the cosine of two rows, from their inner products; 0 if one is a row of zeros."""
    squares = xx * qq
    if 1e-300 < squares < 1e300:
        return -product / np.sqrt(squares)
    return -(product / np.sqrt(xx)) / np.sqrt(qq) if xx > 0 and qq > 0 else 0.0


@compiled(fastmath={"reassoc", "contract"})
def exact_key(kind, x, q):
    """Squared distance, or minus the cosine, of one pair in float64; equal rows have equal keys."""
    acc = 0.0
    if kind == EUCLIDEAN:
        for c in range(len(x)):
            diff = np.float64(x[c]) - np.float64(q[c])
            acc += diff * diff
        return acc
    xx = qq = 0.0
    for c in range(len(x)):
        a, b = np.float64(x[c]), np.float64(q[c])
        acc += a * b
        xx += a * a
        qq += b * b
    return minus_cosine(acc, xx, qq)


@compiled
def slack(kind, tolerance, half, query_half):
    """Largest difference of two keys that may be due to rounding, for rows of this size."""
    if kind == EUCLIDEAN:
        return tolerance * (half + query_half)
    return tolerance if kind == COSINE else 0.0


@compiled
def _pair_slack(players, i, key, query_half):
    """`slack` of one pair: the rounding error of any pair, plus one that grows with the product."""
    half = players.half[i]
    # More than at far ranks: rows on a grid far from the origin tie exactly, which matters here.
    tolerance = players.far_tolerance + players.tolerance / 2
    common = slack(players.kind, tolerance, half, query_half)
    largest = slack(players.kind, players.tolerance, half, query_half)
    return min(largest, common + players.tolerance * abs(half - key))


@compiled(fastmath={"nnan", "nsz", "reassoc"})
def _fill_keys(players, line, keys):
    """Fill ``keys``; return the smallest and the largest (eight at a time, for vectorization)."""
    n = len(keys)
    if players.kind == GENERIC:
        for i in range(n):
            keys[i] = line[i]
    else:
        half, scale = players.half, players.scale
        for i in range(n):
            keys[i] = half[i] - scale[i] * line[i]
    l0 = l1 = l2 = l3 = l4 = l5 = l6 = l7 = keys[0]
    h0 = h1 = h2 = h3 = h4 = h5 = h6 = h7 = keys[0]
    whole = n // 8 * 8
    for i in range(0, whole, 8):
        l0, h0 = min(l0, keys[i]), max(h0, keys[i])
        l1, h1 = min(l1, keys[i + 1]), max(h1, keys[i + 1])
        l2, h2 = min(l2, keys[i + 2]), max(h2, keys[i + 2])
        l3, h3 = min(l3, keys[i + 3]), max(h3, keys[i + 3])
        l4, h4 = min(l4, keys[i + 4]), max(h4, keys[i + 4])
        l5, h5 = min(l5, keys[i + 5]), max(h5, keys[i + 5])
        l6, h6 = min(l6, keys[i + 6]), max(h6, keys[i + 6])
        l7, h7 = min(l7, keys[i + 7]), max(h7, keys[i + 7])
    for i in range(whole, n):
        l0, h0 = min(l0, keys[i]), max(h0, keys[i])
    low = min(min(min(l0, l1), min(l2, l3)), min(min(l4, l5), min(l6, l7)))
    high = max(max(max(h0, h1), max(h2, h3)), max(max(h4, h5), max(h6, h7)))
    return low, high


@compiled
def key_unit(keys, span):
    """Factor of keys before they are rounded to float32: a power of 2, mostly 1."""
    unit = 1.0
    if span > 1e30 or 0 < span < 1e-30:
        largest = 900 if keys.itemsize == 8 else 120
        unit = math.ldexp(1.0, max(-largest, min(largest, -math.frexp(span)[1])))
    return keys.dtype.type(unit)


@compiled
def _range_without(keys, absent):
    """Range of the keys of the rows that play."""
    for i in absent:
        keys[i] = np.inf
    low, high = np.inf, -np.inf
    for i in range(len(keys)):
        if keys[i] < np.inf:
            low = min(low, keys[i])
            high = max(high, keys[i])
    return keys.dtype.type(low), keys.dtype.type(high)


@compiled
def _place_late(rel, order, p, allowed):
    """Move the row at ``p``, whose key is too small for ``p``, forward; update the ties there."""
    i = order[p]
    here = rel[i]
    q = p
    while q > 0:
        before = order[q - 1]
        before ^= before >> 31
        if rel[before] <= here:
            break
        order[q] = before
        q -= 1
    order[q] = i
    for r in range(max(q, 1), p + 1):
        before, i = order[r - 1], order[r]
        before ^= before >> 31
        order[r] = i ^ -np.int32(rel[i] - rel[before] <= allowed + rel[i] * _ULP)


@compiled
def _insert(rel, order, n, allowed):
    """Finish the sort by insertion; consecutive keys that differ by at most ``allowed`` tie."""
    before = rel[order[0]] if n else np.float32(0.0)
    for p in range(1, n):
        i = order[p]
        here = rel[i]
        if here >= before:
            order[p] = i ^ -np.int32(here - before <= allowed + here * _ULP)
            before = here
        else:  # the largest key so far stays last
            _place_late(rel, order, p, allowed)


@compiled
def _order_exactly(players, query, order, a, b):
    """Sort ``order[a:b]`` by exact keys; keys that are equal up to rounding are tied."""
    m = b - a
    run = order[a:b].copy()
    exact = np.empty(m, np.float64)
    for p in range(m):
        exact[p] = exact_key(players.kind, players.rows[run[p]], query)
    place = np.arange(m).astype(np.int32)
    sort_run(place, exact, 0, m)
    for p in range(m):
        here = exact[place[p]]
        size = abs(here) if players.kind == EUCLIDEAN else 1.0
        tied = p > 0 and here - exact[place[p - 1]] <= EQUAL * size
        order[a + p] = ~run[place[p]] if tied else run[place[p]]


@compiled
def _finish_run(players, query, query_half, keys, order, start, stop, head):
    """Sort one run by full keys; near-ties are sorted exactly below rank ``head``, else tied."""
    sort_run(order, keys, start, stop)
    a = start
    while a < stop:
        b = a + 1
        while b < stop:
            i = order[b]
            if keys[i] - keys[order[b - 1]] > _pair_slack(players, i, keys[i], query_half):
                break
            b += 1
        if b - a > 1:
            if players.kind == GENERIC or a >= head:
                for p in range(a + 1, b):
                    order[p] = ~order[p]
            else:
                _order_exactly(players, query, order, a, b)
        a = b


@compiled
def _resolve_head(players, query, query_half, keys, rel, by_rank, blur, unit, order, n, head):
    """Sort again the rows whose sorted keys, or products, are within rounding of each other.

    ``rel``, by row or by rank, has a relative error of ``blur``.
    """
    allowed = slack(players.kind, players.tolerance, players.largest_half, query_half)
    allowed = np.float32(allowed * unit)
    whole = keys.itemsize == 4  # the whole key was sorted
    start = 0
    before = rel[0]
    for p in range(n):
        i = order[p]
        i ^= i >> 31
        order[p] = i
        here = rel[p if by_rank else i]
        if p and here - before > allowed + here * blur:
            if p - start > 1:
                _finish_run(players, query, query_half, keys, order, start, p, head)
            start = p
            if whole and p >= head:
                return
        before = here
    if n - start > 1:
        _finish_run(players, query, query_half, keys, order, start, n, head)


@compiled
def _run_may_continue(rel, by_rank, order, n_sorted, max_rank, allowed, edge):
    """Whether rows that are not sorted, at ``edge`` or farther, may be in the run at the cut.

    Rounding may have put one of several tied rows beyond the last code that is sorted.
    """
    p = n_sorted - 1
    i = order[p]
    here = rel[p if by_rank else i ^ (i >> 31)]
    if edge - here > allowed + edge * _ULP:
        return False
    while p > max_rank:
        i = order[p - 1]
        before = rel[p - 1 if by_rank else i ^ (i >> 31)]
        if here - before > allowed + here * _ULP:
            return False
        here = before
        p -= 1
    return True


@compiled
def _count_ranked(order, n_sorted, max_rank):
    """``max_rank``, plus the rows that are tied with the last of them."""
    n_ranked = min(max_rank, n_sorted)
    while n_ranked < n_sorted and order[n_ranked] < 0:
        n_ranked += 1
    return n_ranked


@compiled
def _order_records(records, low, allowed, order):
    """Rows of sorted records; consecutive distances that differ by at most ``allowed`` tie."""
    values = records.view(np.float64)
    order[0] = np.int32(records[0] & low)
    for p in range(1, len(records)):
        here = np.float32(values[p])  # without the row
        tied = here - np.float32(values[p - 1]) <= allowed + here * _ULP
        order[p] = np.int32(records[p] & low) ^ -np.int32(tied)


@compiled
def _rank_many(
    players, query, query_half, n_in, max_rank, head, space, lowest, span, unit, far, near, order
):
    """Fill ``order`` for more than `MANY` rows; return the number of rows that are in it."""
    keys, n = space.keys, len(space.keys)
    row_bits = 1
    while n > 1 << row_bits:
        row_bits += 1
    low = np.uint64((1 << row_bits) - 1)
    n_sorted, edge = sort_many(keys, lowest, unit, span, max_rank, row_bits, space)
    _order_records(space.records[:n_sorted], low, far, order)
    rel = space.records.view(np.float64)
    if n_sorted < n_in and _run_may_continue(rel, True, order, n_sorted, max_rank, near, edge):
        n_sorted, edge = sort_many(keys, lowest, unit, span, n, row_bits, space)
        _order_records(space.records[:n_sorted], low, far, order)
    n_sorted = min(n_sorted, n_in)  # absent rows are last
    blur = np.float64(_ULP) if keys.itemsize == 4 else 1.0 / (1 << (50 - row_bits))
    _resolve_head(
        players, query, query_half, keys, rel, True, blur, unit, order, n_sorted, head
    )  # fmt: skip
    return n_sorted


@compiled
def rank_row(players, line, query, query_half, absent, max_rank, head, space, order):
    """Sort the players by distance from one point; return the number of ranked players."""
    n = len(line)
    keys, rel, codes = space.keys, space.rel, space.codes
    lowest, highest = _fill_keys(players, line, keys)
    n_in = n - len(absent)
    if len(absent):
        lowest, highest = _range_without(keys, absent)
    span = np.float64(highest) - np.float64(lowest)
    unit = key_unit(keys, span)
    span *= unit
    far = slack(players.kind, players.far_tolerance, players.mean_half, query_half)
    near = slack(players.kind, players.tolerance, players.largest_half, query_half)
    far, near = np.float32(far * unit), np.float32(near * unit)
    if n > MANY:
        n_sorted = _rank_many(
            players, query, query_half, n_in, max_rank, head, space, lowest, span, unit, far, near,
            order,
        )  # fmt: skip
        return _count_ranked(order, n_sorted, max_rank)
    factor = np.float32(4194300.0 / span) if span > 1e-30 else np.float32(0.0)
    for i in range(n):
        rel[i] = np.float32((keys[i] - lowest) * unit)
    for i in absent:
        rel[i] = _ABSENT
    limit, crowded = count_codes(rel, factor, codes, space.low, space.high, max_rank)
    n_sorted = n
    if crowded:
        sort_by_bits(rel.view(np.uint32), order)
    else:
        n_sorted = sort_by_codes(codes, space.low, space.high, limit, space.work, order)
    _insert(rel, order, n_sorted, far)
    if n_sorted < n_in:
        edge = np.float32(limit) / factor
        if _run_may_continue(rel, False, order, n_sorted, max_rank, near, edge):
            limit, _ = count_codes(rel, factor, codes, space.low, space.high, n)
            n_sorted = sort_by_codes(codes, space.low, space.high, limit, space.work, order)
            _insert(rel, order, n_sorted, far)
    n_sorted = min(n_sorted, n_in)  # absent rows are last
    _resolve_head(
        players, query, query_half, keys, rel, False, _ULP, unit, order, n_sorted, head
    )  # fmt: skip
    return _count_ranked(order, n_sorted, max_rank)


@compiled
def rank_tile(
    players,
    product,
    queries,
    query_half,
    absent_ptr,
    absent,
    max_rank,
    head,
    space,
    order,
    n_ranked,
):
    """Fill ``order`` and ``n_ranked`` for each point of a tile, as in `neighbors.Order`.

    ``product`` (points, players): inner products, or distances if the kind is GENERIC. Players
    ``absent[absent_ptr[v]:absent_ptr[v + 1]]`` do not play at point ``v``. Near-ties from rank
    ``head`` on become ties: swapping them would change a value by less than 1 / head**2.
    """
    for v in range(product.shape[0]):
        n_ranked[v] = rank_row(
            players, product[v], queries[v], query_half[v],
            absent[absent_ptr[v] : absent_ptr[v + 1]], max_rank, head, space, order[v],
        )  # fmt: skip
