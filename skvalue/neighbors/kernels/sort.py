"""Compiled sorts of the CPU engine, by counting and by keys. Importing this imports numba.

`sort_by_codes` takes two counting passes over 22-bit codes, `sort_by_bits` three over all bits;
`sort_run` sorts a few rows that are nearly in order.
"""

import numpy as np

from ..._utils.compiled import compiled

_TOP = np.uint32((1 << 22) - 1)
_LONG_RUN = 48  # a longer run is heap-sorted, not insertion-sorted
_ONE, _ELEVEN, _LOW11 = np.uint32(1), np.uint32(11), np.uint32(2047)
_ROW_BITS, _ROW = np.uint32(21), np.uint32((1 << 21) - 1)
_SHIFT, _LOW32 = np.uint64(32), np.uint64(0xFFFFFFFF)


@compiled(inline="always")
def _code(rel, factor):
    scaled = rel * factor
    if scaled > np.float32(4194303.0):
        scaled = np.float32(4194303.0)
    return np.uint32(np.int32(scaled))


@compiled
def _prefix(counts):
    total = counts[0] - counts[0]
    for k in range(len(counts)):
        count = counts[k]
        counts[k] = total
        total += count


@compiled
def count_codes(rel, factor, codes, low, high, max_rank):
    """Histogram of the codes; return the largest code needed and whether a bin has many rows."""
    n = len(rel)
    for i in range(n):
        codes[i] = _code(rel[i], factor)
    low[:] = 0
    high[:] = 0
    for i in range(n):
        low[codes[i] & _LOW11] += _ONE
        high[codes[i] >> _ELEVEN] += _ONE
    limit = _TOP
    crowded = False
    seen = 0
    for k in range(2048):
        crowded = crowded or high[k] > 64 + n // 128
        if seen < max_rank + 1 <= seen + high[k]:
            # One more row than max_rank is kept, to detect a tie across the cut.
            limit = (np.uint32(k) << _ELEVEN) | _LOW11
        seen += high[k]
    if limit < _TOP and not crowded:
        low[:] = 0
        for i in range(n):
            if codes[i] <= limit:
                low[codes[i] & _LOW11] += _ONE
    return limit, crowded


@compiled
def sort_by_codes(codes, low, high, limit, work, order):
    """Sort the rows whose codes are at most ``limit`` by code; return their number."""
    _prefix(low)
    _prefix(high)
    n, kept = len(codes), 0
    if n <= _ROW:  # a word holds the upper half of a code and its row
        for i in range(n):
            q = codes[i]
            if q <= limit:
                k = q & _LOW11
                work[low[k]] = (q >> _ELEVEN) << _ROW_BITS | np.uint32(i)
                low[k] += _ONE
                kept += 1
        for p in range(kept):
            k = work[p] >> _ROW_BITS
            order[high[k]] = np.int32(work[p] & _ROW)
            high[k] += _ONE
        return kept
    for i in range(n):
        q = codes[i]
        if q <= limit:
            k = q & _LOW11
            work[low[k]] = np.uint32(i)
            low[k] += _ONE
            kept += 1
    for p in range(kept):
        k = codes[work[p]] >> _ELEVEN
        order[high[k]] = np.int32(work[p])
        high[k] += _ONE
    return kept


@compiled
def sort_by_bits(bits, order):
    """Sort by three counting passes over all bits, for keys with far outliers."""
    n = len(bits)
    records, work = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for i in range(n):
        records[i] = (np.uint64(bits[i]) << _SHIFT) | np.uint64(i)
    counts = np.empty(2048, np.int64)
    for step in range(3):
        shift = np.uint64(32 + 11 * step)
        counts[:] = 0
        for i in range(n):
            counts[(records[i] >> shift) & np.uint64(2047)] += 1
        _prefix(counts)
        for i in range(n):
            k = (records[i] >> shift) & np.uint64(2047)
            work[counts[k]] = records[i]
            counts[k] += 1
        records, work = work, records
    for i in range(n):
        order[i] = np.int32(records[i] & _LOW32)


@compiled
def _sift_down(order, keys, start, root, end):
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and keys[order[start + child]] < keys[order[start + child + 1]]:
            child += 1
        if keys[order[start + root]] >= keys[order[start + child]]:
            return
        order[start + root], order[start + child] = order[start + child], order[start + root]
        root = child


@compiled
def sort_run(order, keys, start, stop):
    """Sort ``order[start:stop]`` by ``keys`` in place."""
    n = stop - start
    in_order = True
    for p in range(start + 1, stop):
        in_order = in_order and keys[order[p - 1]] <= keys[order[p]]
    if in_order:
        return
    if n > _LONG_RUN:
        for root in range(n // 2 - 1, -1, -1):
            _sift_down(order, keys, start, root, n)
        for end in range(n - 1, 0, -1):
            order[start], order[start + end] = order[start + end], order[start]
            _sift_down(order, keys, start, 0, end)
        return
    for p in range(start + 1, stop):
        i = order[p]
        q = p - 1
        while q >= start and keys[order[q]] > keys[i]:
            order[q + 1] = order[q]
            q -= 1
        order[q + 1] = i
