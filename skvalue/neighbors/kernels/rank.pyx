# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of the CPU engine: players in order of distance.

Rows are sorted by two counting passes over a 22-bit fixed-point code of their keys
(`sort`) and one insertion pass: linear in the number of rows, and several times faster
than a comparison sort. More than `MANY` rows, which do not fit in the processor's
cache, are first divided by distance.
"""

from typing import NamedTuple

from cython cimport floating
from libc.math cimport INFINITY, frexp, ldexp
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from ..._utils.loops cimport cloned
from .sort cimport (
    N_BINS, N_COUNTS, Codes, Scratch, Sorted, count_codes, sort_by_bits, sort_by_codes,
    sort_keys, sort_many,
)
from .ties cimport (
    GENERIC, Tolerances, real, resolve_head, slack, tolerances_of
)

MANY = 1 << 17  # number of rows above which they are sorted in buckets


cdef inline float ulp() noexcept nogil:
    """A bound of the relative rounding error of a float32."""
    return <float> 1.2e-7


# Memory -------------------------------------------------------------------------------


class Workspace(NamedTuple):
    """Memory for one point at a time, see `sort.Scratch`."""

    keys: np.ndarray
    rel: np.ndarray
    codes: np.ndarray
    work: np.ndarray
    low: np.ndarray
    high: np.ndarray
    records: np.ndarray
    other: np.ndarray
    spare: np.ndarray
    places: np.ndarray
    counts: np.ndarray
    buckets: np.ndarray
    run: np.ndarray
    place: np.ndarray
    merged: np.ndarray
    exact: np.ndarray


def workspace(n, dtype):
    """Allocate memory for ``n`` players; what is never written takes none."""
    few = 0 if n > MANY else n
    # Rows of a bucket that is sorted in the cache.
    n_spare = max(n // 8, min(n, 1 << 14))
    return Workspace(
        keys=np.empty(n, dtype),
        rel=np.empty(few + 1, np.float32),
        codes=np.empty(few + 1, np.uint32),
        work=np.empty(few + 1, np.uint32),
        low=np.empty(N_BINS, np.uint32),
        high=np.empty(N_BINS, np.uint32),
        records=np.empty(n, np.uint64),
        other=np.empty(n, np.uint64),
        spare=np.empty(n_spare + 1, np.uint64),
        places=np.empty(n_spare + 1, np.int32),
        counts=np.empty(N_COUNTS, np.uint32),
        buckets=np.empty((3, N_BINS + 1), np.int64),
        run=np.empty(n, np.int32),
        place=np.empty(n, np.int32),
        merged=np.empty(n, np.int32),
        exact=np.empty(n),
    )


cdef Scratch scratch_of(work):
    """Pointers to the memory of a `Workspace`."""
    cdef float[::1] rel = work.rel
    cdef uint32_t[::1] codes = work.codes
    cdef uint32_t[::1] words = work.work
    cdef uint32_t[::1] low = work.low
    cdef uint32_t[::1] high = work.high
    cdef uint64_t[::1] records = work.records
    cdef uint64_t[::1] other = work.other
    cdef uint64_t[::1] spare = work.spare
    cdef int32_t[::1] places = work.places
    cdef uint32_t[::1] counts = work.counts
    cdef int64_t[:, ::1] buckets = work.buckets
    cdef int32_t[::1] run = work.run
    cdef int32_t[::1] place = work.place
    cdef int32_t[::1] merged = work.merged
    cdef double[::1] exact = work.exact
    cdef Scratch scratch
    scratch.rel = &rel[0]
    scratch.codes = &codes[0]
    scratch.work = &words[0]
    scratch.low = &low[0]
    scratch.high = &high[0]
    scratch.records = &records[0]
    scratch.other = &other[0]
    scratch.spare = &spare[0]
    scratch.places = &places[0]
    scratch.n_spare = spare.shape[0] - 1
    scratch.counts = &counts[0]
    scratch.starts = &buckets[0, 0]
    scratch.edges = &buckets[1, 0]
    scratch.free = &buckets[2, 0]
    scratch.run = &run[0]
    scratch.place = &place[0]
    scratch.merged = &merged[0]
    scratch.exact = &exact[0]
    return scratch


# Keys ---------------------------------------------------------------------------------


cdef cloned find_keys(
    const floating *half, const floating *scale, const floating *line, Py_ssize_t n,
    floating *keys,
) noexcept nogil:
    """Keys of inner products."""
    cdef Py_ssize_t i
    for i in range(n):
        keys[i] = half[i] - scale[i] * line[i]


cdef cloned find_range(
    const floating *keys, Py_ssize_t n, floating *lowest, floating *highest
) noexcept nogil:
    """The smallest and the largest key, of 16 at a time."""
    cdef floating low[16]
    cdef floating high[16]
    cdef floating key
    cdef Py_ssize_t i, j, whole = n & ~15
    for j in range(16):
        low[j] = keys[0]
        high[j] = keys[0]
    for i in range(0, whole, 16):
        for j in range(16):
            key = keys[i + j]
            low[j] = key if key < low[j] else low[j]
            high[j] = key if key > high[j] else high[j]
    for i in range(whole, n):
        key = keys[i]
        low[0] = key if key < low[0] else low[0]
        high[0] = key if key > high[0] else high[0]
    for j in range(1, 16):
        low[0] = low[j] if low[j] < low[0] else low[0]
        high[0] = high[j] if high[j] > high[0] else high[0]
    lowest[0] = low[0]
    highest[0] = high[0]


cdef floating key_unit(const floating *keys, double span) noexcept nogil:
    """Factor of keys before they are rounded to float32: a power of 2, mostly 1."""
    cdef int exponent, largest = 900 if sizeof(floating) == 8 else 120
    if not (span > 1e30 or 0 < span < 1e-30):
        return 1.0
    frexp(span, &exponent)
    return <floating> ldexp(1.0, max(-largest, min(largest, -exponent)))


cdef void find_range_without(
    floating *keys, Py_ssize_t n, const int64_t *absent, Py_ssize_t n_absent,
    floating *lowest, floating *highest,
) noexcept nogil:
    """Range of the keys of the rows that play; those of the others become infinite."""
    cdef floating low = INFINITY, high = -INFINITY
    cdef Py_ssize_t i
    for i in range(n_absent):
        keys[absent[i]] = INFINITY
    for i in range(n):
        if keys[i] < INFINITY:
            low = min(low, keys[i])
            high = max(high, keys[i])
    lowest[0] = low
    highest[0] = high


cdef cloned find_distances(
    const floating *keys, Py_ssize_t n, floating lowest, floating unit, float *rel
) noexcept nogil:
    """Keys less the smallest one, in float32."""
    cdef Py_ssize_t i
    for i in range(n):
        rel[i] = <float> ((keys[i] - lowest) * unit)


# Ties of keys that are rounded --------------------------------------------------------


cdef inline int32_t tied_mask(bint tied) noexcept nogil:
    """A mask that turns i into ~i if a row is tied."""
    return -<int32_t> tied


cdef void place_late(
    const float *rel, int32_t *order, Py_ssize_t p, float allowed
) noexcept nogil:
    """Move the row at ``p``, whose key is too small there, forward; update the ties."""
    cdef int32_t i = order[p], before
    cdef float key = rel[i]
    cdef Py_ssize_t q = p, r
    while q > 0:
        before = order[q - 1]
        before ^= before >> 31
        if rel[before] <= key:
            break
        order[q] = before
        q -= 1
    order[q] = i
    for r in range(max(q, 1), p + 1):
        before = order[r - 1]
        before ^= before >> 31
        i = order[r]
        order[r] = i ^ tied_mask(rel[i] - rel[before] <= allowed + rel[i] * ulp())


cdef void insert(
    const float *rel, int32_t *order, Py_ssize_t n, float allowed
) noexcept nogil:
    """Finish the sort by insertion; keys that differ by at most ``allowed`` tie."""
    cdef float before, key
    cdef Py_ssize_t p
    cdef int32_t i
    if n == 0:
        return
    before = rel[order[0]]
    for p in range(1, n):
        i = order[p]
        key = rel[i]
        if key >= before:
            order[p] = i ^ tied_mask(key - before <= allowed + key * ulp())
            before = key
        else:  # the largest key so far stays last
            place_late(rel, order, p, allowed)


cdef inline real sorted_key(
    const real *rel, const int32_t *order, Py_ssize_t p
) noexcept nogil:
    """Key of the row of rank p: ``rel`` is by row in float32, by rank in float64."""
    cdef int32_t i = order[p]
    if real is double:
        return rel[p]
    else:
        return rel[i ^ (i >> 31)]


cdef bint run_may_continue(
    const real *rel, const int32_t *order, Py_ssize_t n_sorted, Py_ssize_t max_rank,
    float allowed, real edge,
) noexcept nogil:
    """Whether rows that are not sorted, at ``edge`` or farther, may be in the last run.

    Rounding may have put one of several tied rows beyond the last code that is sorted.
    """
    cdef Py_ssize_t p = n_sorted - 1
    cdef real key = sorted_key(rel, order, p), before
    if edge - key > allowed + edge * ulp():
        return False
    while p > max_rank:
        before = sorted_key(rel, order, p - 1)
        if key - before > allowed + key * ulp():
            return False
        key = before
        p -= 1
    return True


cdef Py_ssize_t count_ranked(
    const int32_t *order, Py_ssize_t n_sorted, Py_ssize_t max_rank
) noexcept nogil:
    """``max_rank``, plus the rows that are tied with the last of them."""
    cdef Py_ssize_t n_ranked = min(max_rank, n_sorted)
    while n_ranked < n_sorted and order[n_ranked] < 0:
        n_ranked += 1
    return n_ranked


cdef void order_records(
    const uint64_t *records, Py_ssize_t n, uint64_t row_bits, float allowed,
    int32_t *order
) noexcept nogil:
    """Rows of sorted records; distances that differ by at most ``allowed`` tie."""
    cdef const double *values = <const double *> records
    cdef Py_ssize_t p
    cdef float key
    order[0] = <int32_t> (records[0] & row_bits)
    for p in range(1, n):
        key = <float> values[p]  # without the row
        order[p] = <int32_t> (records[p] & row_bits) ^ tied_mask(
            key - <float> values[p - 1] <= allowed + key * ulp()
        )


cdef int bits_of_rows(Py_ssize_t n) noexcept nogil:
    """Number of bits that the number of a row takes."""
    cdef int row_bits = 1
    while n > <Py_ssize_t> 1 << row_bits:
        row_bits += 1
    return row_bits


# One point ----------------------------------------------------------------------------


cdef struct Point:  # and what is asked of it
    double query_half
    const int64_t *absent
    Py_ssize_t n_absent
    Py_ssize_t max_rank
    Py_ssize_t head


cdef Py_ssize_t rank_many(
    const Tolerances *params, const floating *half, const floating *rows,
    const floating *query, Py_ssize_t d, Py_ssize_t n, const Point *point,
    const Scratch *scratch, const floating *keys, floating lowest, double span,
    floating unit, float far, float near, int32_t *order,
) noexcept nogil:
    """Fill ``order`` for more than `MANY` rows; return the number of rows in it."""
    cdef int row_bits = bits_of_rows(n)
    cdef Py_ssize_t n_in = n - point.n_absent
    cdef uint64_t low
    cdef const double *rel = <const double *> scratch.records
    cdef double blur
    cdef Sorted found
    low = (<uint64_t> 1 << row_bits) - 1
    found = sort_many(scratch, keys, n, lowest, unit, span, point.max_rank, row_bits)
    order_records(scratch.records, found.n, low, far, order)
    if found.n < n_in and run_may_continue(
        rel, order, found.n, point.max_rank, near, found.edge
    ):
        found = sort_many(scratch, keys, n, lowest, unit, span, n, row_bits)
        order_records(scratch.records, found.n, low, far, order)
    found.n = min(found.n, n_in)  # absent rows are last
    blur = ulp() if sizeof(floating) == 4 else 1.0 / <double> (
        <int64_t> 1 << (50 - row_bits)
    )
    resolve_head(
        params, half, rows, query, d, point.query_half, keys, rel, blur, unit, order,
        found.n, point.head, scratch,
    )
    return found.n


cdef Py_ssize_t rank_few(
    const Tolerances *params, const floating *half, const floating *rows,
    const floating *query, Py_ssize_t d, Py_ssize_t n, const Point *point,
    const Scratch *scratch, const floating *keys, floating lowest, double span,
    floating unit, float far, float near, int32_t *order,
) noexcept nogil:
    """Fill ``order`` for at most `MANY` rows; return the number of rows in it."""
    cdef float factor = <float> (4194300.0 / span) if span > 1e-30 else 0.0
    cdef float edge
    cdef float *rel = scratch.rel
    cdef Py_ssize_t i, n_sorted = n, n_in = n - point.n_absent
    cdef Codes codes
    find_distances(keys, n, lowest, unit, rel)
    for i in range(point.n_absent):
        rel[point.absent[i]] = <float> 3e38
    codes = count_codes(scratch, n, factor, point.max_rank)
    if codes.crowded:
        sort_by_bits(scratch, n, order)
    else:
        n_sorted = sort_by_codes(scratch, n, codes.limit, order)
    insert(rel, order, n_sorted, far)
    if n_sorted < n_in:
        edge = <float> codes.limit / factor
        if run_may_continue(
            <const float *> rel, order, n_sorted, point.max_rank, near, edge
        ):
            codes = count_codes(scratch, n, factor, n)
            n_sorted = sort_by_codes(scratch, n, codes.limit, order)
            insert(rel, order, n_sorted, far)
    n_sorted = min(n_sorted, n_in)  # absent rows are last
    resolve_head(
        params, half, rows, query, d, point.query_half, keys, <const float *> rel,
        ulp(), unit, order, n_sorted, point.head, scratch,
    )
    return n_sorted


cdef Py_ssize_t rank_point(
    const Tolerances *params, const floating *half, const floating *scale,
    const floating *rows, const floating *query, Py_ssize_t d, const floating *line,
    Py_ssize_t n, const Point *point, const Scratch *scratch, floating *keys,
    int32_t *order,
) noexcept nogil:
    """Sort the players by distance from one point; return the number of ranked ones."""
    cdef floating lowest, highest, unit
    cdef double span, far, near
    cdef Py_ssize_t n_sorted
    if params.kind == GENERIC:
        memcpy(keys, line, n * sizeof(floating))
    else:
        find_keys(half, scale, line, n, keys)
    if point.n_absent:
        find_range_without(keys, n, point.absent, point.n_absent, &lowest, &highest)
    else:
        find_range(<const floating *> keys, n, &lowest, &highest)
    span = <double> highest - <double> lowest
    unit = key_unit(<const floating *> keys, span)
    span *= unit
    far = slack(params.kind, params.far, params.mean_half, point.query_half) * unit
    near = slack(params.kind, params.near, params.largest_half, point.query_half) * unit
    if n > 1 << 17:  # MANY
        n_sorted = rank_many(
            params, half, rows, query, d, n, point, scratch, <const floating *> keys,
            lowest, span, unit, <float> far, <float> near, order,
        )
    else:
        n_sorted = rank_few(
            params, half, rows, query, d, n, point, scratch, <const floating *> keys,
            lowest, span, unit, <float> far, <float> near, order,
        )
    return count_ranked(order, n_sorted, point.max_rank)


def rank_tile(
    params, const floating[:, ::1] product, const floating[:, ::1] queries,
    const double[::1] query_half, const int64_t[::1] absent_ptr,
    const int64_t[::1] absent, Py_ssize_t max_rank, Py_ssize_t head, work,
    int32_t[:, ::1] order, int64_t[::1] n_ranked,
):
    """Fill ``order`` and ``n_ranked`` for each point of a tile, as in
    `neighbors.Order`.

    ``product`` (points, players): inner products, or distances if the kind is GENERIC.
    Players ``absent[absent_ptr[v]:absent_ptr[v + 1]]`` do not play at point ``v``.
    Near-ties from rank ``head`` on become ties: swapping them would change a value by
    less than 1 / head**2.
    """
    cdef Py_ssize_t n = product.shape[1]
    if n == 0:
        n_ranked[:product.shape[0]] = 0
        return
    cdef const floating[::1] half = params.half
    cdef const floating[::1] scale = params.scale
    cdef const floating[:, ::1] rows = params.rows
    cdef floating[::1] keys = work.keys
    cdef Tolerances tolerances = tolerances_of(params)
    cdef Scratch scratch = scratch_of(work)
    cdef const floating *first_row = NULL
    cdef const floating *query = NULL
    cdef Py_ssize_t v, d = rows.shape[1]
    cdef Point point
    point.max_rank = max_rank
    point.head = head
    if rows.size:
        first_row = &rows[0, 0]
    with nogil:
        for v in range(product.shape[0]):
            point.query_half = query_half[v]
            point.absent = NULL
            point.n_absent = absent_ptr[v + 1] - absent_ptr[v]
            if point.n_absent:
                point.absent = &absent[absent_ptr[v]]
            if d:
                query = &queries[v, 0]
            n_ranked[v] = rank_point(
                &tolerances, &half[0], &scale[0], first_row, query, d, &product[v, 0],
                n, &point, &scratch, &keys[0], &order[v, 0],
            )


# Sorted keys --------------------------------------------------------------------------


cdef cloned find_finite_range(
    const floating *keys, Py_ssize_t n, double *lowest, double *highest
) noexcept nogil:
    """The smallest and the largest finite key, of 16 at a time."""
    cdef floating low[16]
    cdef floating high[16]
    cdef floating key, infinity = INFINITY
    cdef Py_ssize_t i, j, whole = n & ~15
    for j in range(16):
        low[j] = infinity
        high[j] = -infinity
    for i in range(0, whole, 16):
        for j in range(16):
            key = keys[i + j]
            low[j] = key if key < low[j] else low[j]
            key = key if key < infinity else -infinity
            high[j] = key if key > high[j] else high[j]
    for i in range(whole, n):
        key = keys[i]
        low[0] = key if key < low[0] else low[0]
        key = key if key < infinity else -infinity
        high[0] = key if key > high[0] else high[0]
    for j in range(1, 16):
        low[0] = low[j] if low[j] < low[0] else low[0]
        high[0] = high[j] if high[j] > high[0] else high[0]
    lowest[0] = low[0]
    highest[0] = high[0]


def sort_lines(
    const floating[:, ::1] keys, const int64_t[::1] lines, work,
    int32_t[:, ::1] order, floating[:, ::1] sorted_keys,
):
    """Sort the keys of some points; keys of rows that do not play are infinite.

    ``order`` and ``sorted_keys`` (n_lines, n_sorted) become the rows of the smallest
    keys, and these keys. Equal keys are in the order of the rows.
    """
    cdef Scratch scratch = scratch_of(work)
    cdef Py_ssize_t n = keys.shape[1], n_sorted = order.shape[1], p, v
    cdef int row_bits = bits_of_rows(n)
    cdef double lowest, highest
    if n_sorted == 0:
        return
    with nogil:
        for p in range(lines.shape[0]):
            v = lines[p]
            find_finite_range(&keys[v, 0], n, &lowest, &highest)
            sort_keys(
                &scratch, &keys[v, 0], n, lowest, highest, n_sorted, row_bits,
                &order[p, 0], &sorted_keys[p, 0],
            )
