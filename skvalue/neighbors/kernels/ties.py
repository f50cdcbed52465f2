"""Compiled loops on near-ties: rows whose keys are within rounding are compared in float64.

Imports numba. `skvalue.neighbors._exact` does the same for arrays of pairs.
"""

from typing import NamedTuple

import numpy as np

from ..._utils.compiled import compiled
from .kinds import COSINE, EUCLIDEAN, GENERIC
from .sort import sort_run

EQUAL = 1e-14  # exact keys that differ by less, relative to their size, are tied


class KeyParameters(NamedTuple):
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
def dense_keys(kind, rows, i, points, v):
    keys = np.empty(len(i), np.float64)
    for p in range(len(i)):
        keys[p] = exact_key(kind, rows[i[p]], points[v[p]])
    return keys


@compiled
def sparse_keys(kind, x_ptr, x_col, x, i, q_ptr, q_col, q, v):
    """The sums of `exact_key` in the same order without zeros, which gives the same bits."""
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
def slack(kind, tolerance, half, query_half):
    """Largest difference of two keys that may be due to rounding, for rows of this size."""
    if kind == EUCLIDEAN:
        return tolerance * (half + query_half)
    return tolerance if kind == COSINE else 0.0


@compiled
def _pair_slack(params, i, key, query_half):
    """`slack` of one pair: the rounding error of any pair, plus one that grows with the product."""
    half = params.half[i]
    # More than at far ranks: rows on a grid far from the origin tie exactly, which matters here.
    tolerance = params.far_tolerance + params.tolerance / 2
    common = slack(params.kind, tolerance, half, query_half)
    largest = slack(params.kind, params.tolerance, half, query_half)
    return min(largest, common + params.tolerance * abs(half - key))


@compiled
def _order_exactly(params, query, order, a, b):
    """Sort ``order[a:b]`` by exact keys; keys that are equal up to rounding are tied."""
    m = b - a
    run = order[a:b].copy()
    exact = np.empty(m, np.float64)
    for p in range(m):
        exact[p] = exact_key(params.kind, params.rows[run[p]], query)
    place = np.arange(m).astype(np.int32)
    sort_run(place, exact, np.int64(0), m)
    for p in range(m):
        here = exact[place[p]]
        size = abs(here) if params.kind == EUCLIDEAN else 1.0
        tied = p > 0 and here - exact[place[p - 1]] <= EQUAL * size
        order[a + p] = ~run[place[p]] if tied else run[place[p]]


@compiled
def _finish_run(params, query, query_half, keys, order, start, stop, head):
    """Sort one run by full keys; near-ties are sorted exactly below rank ``head``, else tied."""
    sort_run(order, keys, start, stop)
    a = start
    while a < stop:
        b = a + 1
        while b < stop:
            i = order[b]
            if keys[i] - keys[order[b - 1]] > _pair_slack(params, i, keys[i], query_half):
                break
            b += 1
        if b - a > 1:
            if params.kind == GENERIC or a >= head:
                for p in range(a + 1, b):
                    order[p] = ~order[p]
            else:
                _order_exactly(params, query, order, a, b)
        a = b


@compiled
def resolve_head(params, query, query_half, keys, rel, by_rank, blur, unit, order, n, head):
    """Sort again the rows whose sorted keys, or products, are within rounding of each other.

    ``rel``, by row or by rank, has a relative error of ``blur``.
    """
    allowed = slack(params.kind, params.tolerance, params.largest_half, query_half)
    allowed = np.float32(allowed * unit)
    whole = keys.itemsize == 4  # the whole key was sorted
    start = np.int64(0)  # a literal 0 would compile `_finish_run` twice
    before = rel[0]
    for p in range(n):
        i = order[p]
        i ^= i >> 31
        order[p] = i
        here = rel[p if by_rank else i]
        if p and here - before > allowed + here * blur:
            if p - start > 1:
                _finish_run(params, query, query_half, keys, order, start, p, head)
            start = p
            if whole and p >= head:
                return
        before = here
    if n - start > 1:
        _finish_run(params, query, query_half, keys, order, start, n, head)


@compiled
def sort_runs(starts, keys):
    """Positions that sort ``keys`` within each run; runs begin at ``starts``."""
    place = np.arange(len(keys)).astype(np.int32)
    for r in range(len(starts) - 1):
        sort_run(place, keys, starts[r], starts[r + 1])
    return place
