"""Compiled loops of the CPU engine: players in order of distance. Importing this imports numba.

Rows are sorted by two counting passes over a 22-bit fixed-point code of their keys (`sort`) and one
insertion pass: linear in the number of rows, and several times faster than a comparison sort. More
than `MANY` rows, which do not fit in the processor's cache, are first divided by distance.
"""

import math
from typing import NamedTuple

import numpy as np

from ..._utils.compiled import compiled
from .kinds import GENERIC
from .sort import count_codes, sort_by_bits, sort_by_codes, sort_many
from .ties import resolve_head, slack

MANY = 1 << 17  # number of rows above which they are sorted in buckets

_ABSENT = np.float32(3e38)  # key of a row that does not play at this point
_ULP = np.float32(1.2e-7)


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


@compiled(fastmath={"nnan", "nsz", "reassoc"})
def _fill_keys(params, line, keys):
    """Fill ``keys``; return the smallest and the largest (eight at a time, for vectorization)."""
    n = len(keys)
    if params.kind == GENERIC:
        for i in range(n):
            keys[i] = line[i]
    else:
        half, scale = params.half, params.scale
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
    params, query, query_half, n_in, max_rank, head, work, lowest, span, unit, far, near, order
):
    """Fill ``order`` for more than `MANY` rows; return the number of rows that are in it."""
    keys, n = work.keys, len(work.keys)
    row_bits = 1
    while n > 1 << row_bits:
        row_bits += 1
    low = np.uint64((1 << row_bits) - 1)
    n_sorted, edge = sort_many(keys, lowest, unit, span, max_rank, row_bits, work)
    _order_records(work.records[:n_sorted], low, far, order)
    rel = work.records.view(np.float64)
    if n_sorted < n_in and _run_may_continue(rel, True, order, n_sorted, max_rank, near, edge):
        n_sorted, edge = sort_many(keys, lowest, unit, span, n, row_bits, work)
        _order_records(work.records[:n_sorted], low, far, order)
    n_sorted = min(n_sorted, n_in)  # absent rows are last
    blur = np.float64(_ULP) if keys.itemsize == 4 else 1.0 / (1 << (50 - row_bits))
    resolve_head(
        params, query, query_half, keys, rel, True, blur, unit, order, n_sorted, head
    )  # fmt: skip
    return n_sorted


@compiled
def rank_row(params, line, query, query_half, absent, max_rank, head, work, order):
    """Sort the players by distance from one point; return the number of ranked players."""
    n = len(line)
    keys, rel, codes = work.keys, work.rel, work.codes
    lowest, highest = _fill_keys(params, line, keys)
    n_in = n - len(absent)
    if len(absent):
        lowest, highest = _range_without(keys, absent)
    span = np.float64(highest) - np.float64(lowest)
    unit = key_unit(keys, span)
    span *= unit
    far = slack(params.kind, params.far_tolerance, params.mean_half, query_half)
    near = slack(params.kind, params.tolerance, params.largest_half, query_half)
    far, near = np.float32(far * unit), np.float32(near * unit)
    if n > MANY:
        n_sorted = _rank_many(
            params, query, query_half, n_in, max_rank, head, work, lowest, span, unit, far, near,
            order,
        )  # fmt: skip
        return _count_ranked(order, n_sorted, max_rank)
    factor = np.float32(4194300.0 / span) if span > 1e-30 else np.float32(0.0)
    for i in range(n):
        rel[i] = np.float32((keys[i] - lowest) * unit)
    for i in absent:
        rel[i] = _ABSENT
    limit, crowded = count_codes(rel, factor, codes, work.low, work.high, max_rank)
    n_sorted = n
    if crowded:
        sort_by_bits(rel.view(np.uint32), order)
    else:
        n_sorted = sort_by_codes(codes, work.low, work.high, limit, work.work, order)
    _insert(rel, order, n_sorted, far)
    if n_sorted < n_in:
        edge = np.float32(limit) / factor
        if _run_may_continue(rel, False, order, n_sorted, max_rank, near, edge):
            limit, _ = count_codes(rel, factor, codes, work.low, work.high, n)
            n_sorted = sort_by_codes(codes, work.low, work.high, limit, work.work, order)
            _insert(rel, order, n_sorted, far)
    n_sorted = min(n_sorted, n_in)  # absent rows are last
    resolve_head(
        params, query, query_half, keys, rel, False, _ULP, unit, order, n_sorted, head
    )  # fmt: skip
    return _count_ranked(order, n_sorted, max_rank)


@compiled
def rank_tile(params, product, queries, query_half, absent_ptr, absent, max_rank, head, work, order,
              n_ranked):  # fmt: skip
    """Fill ``order`` and ``n_ranked`` for each point of a tile, as in `neighbors.Order`.

    ``product`` (points, players): inner products, or distances if the kind is GENERIC. Players
    ``absent[absent_ptr[v]:absent_ptr[v + 1]]`` do not play at point ``v``. Near-ties from rank
    ``head`` on become ties: swapping them would change a value by less than 1 / head**2.
    """
    for v in range(product.shape[0]):
        n_ranked[v] = rank_row(
            params, product[v], queries[v], query_half[v],
            absent[absent_ptr[v] : absent_ptr[v + 1]], max_rank, head, work, order[v],
        )  # fmt: skip
