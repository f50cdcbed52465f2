"""Compiled sorts of the CPU engine, by counting and by keys. Importing this imports numba.

`sort_by_codes` takes two counting passes over 22-bit codes, `sort_by_bits` three over all bits;
`sort_many` first divides many rows by distance into buckets that fit in the processor's cache;
`sort_run` sorts a few rows that are nearly in order.
"""

import numpy as np

from ..._utils.compiled import compiled

_TOP = np.uint32((1 << 22) - 1)
_LONG_RUN = 48  # rows of a run from which insertion is slow
_ONE, _ELEVEN, _LOW11 = np.uint32(1), np.uint32(11), np.uint32(2047)
_ROW_BITS, _ROW = np.uint32(21), np.uint32((1 << 21) - 1)
_CHUNK = 512  # rows at a time, for vectorization
_BUCKET = 1 << 13  # rows of a bucket, if no bin has more
_MOVES = 16  # of a row, on average, in the insertion that ends the sort of a bucket
_WORD_ONE, _SHIFT, _LOW32 = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


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
        scaled = rel[i] * factor
        codes[i] = np.int32(scaled if scaled < np.float32(_TOP) else np.float32(_TOP))
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
    """Sort at most 2**21 rows, those of codes up to ``limit``, by code; return their number."""
    _prefix(low)
    _prefix(high)
    kept = 0
    for i in range(len(codes)):  # a word holds the upper half of a code and its row
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


@compiled
def _sort_records(records, first_bit):
    """Sort by counting passes over the bits from ``first_bit`` on; return the sorted records."""
    n = len(records)
    in_order = True
    for i in range(1, n):
        in_order = in_order and records[i - 1] <= records[i]
    if in_order:
        return records
    work = np.empty(n, np.uint64)
    counts = np.empty(2048, np.int64)
    for step in range(first_bit, 64, 11):
        shift = np.uint64(step)
        counts[:] = 0
        for i in range(n):
            counts[(records[i] >> shift) & np.uint64(2047)] += 1
        if counts[(records[0] >> shift) & np.uint64(2047)] == n:
            continue
        _prefix(counts)
        for i in range(n):
            k = (records[i] >> shift) & np.uint64(2047)
            work[counts[k]] = records[i]
            counts[k] += 1
        records, work = work, records
    return records


@compiled
def sort_by_bits(bits, order):
    """Sort by three counting passes over all bits, for keys with far outliers."""
    n = len(bits)
    records = np.empty(n, np.uint64)
    for i in range(n):
        records[i] = (np.uint64(bits[i]) << _SHIFT) | np.uint64(i)
    records = _sort_records(records, np.int64(32))
    for i in range(n):
        order[i] = np.int32(records[i] & _LOW32)


@compiled
def _bins(keys, lowest, unit, factor, rel, bins):
    """Bins of some keys, 2047 for those of rows that do not play, and their distance."""
    for i in range(len(keys)):
        distance = (keys[i] - lowest) * unit
        rel[i] = distance
        scaled = np.float32(distance) * factor
        bins[i] = np.int32(scaled if scaled < np.float32(2047.0) else np.float32(2047.0))


@compiled
def _divide(keys, lowest, unit, factor, max_rank, row_bits, space, starts, edges):
    """Write a record for each row to buckets of successive bins; return the number of buckets.

    A record is the distance in float64, with the row in its last ``row_bits``. Bins that are beyond
    ``max_rank`` are left out.
    """
    n, counts, bucket = len(keys), space.low, space.high
    rest = ~((_WORD_ONE << np.uint64(row_bits)) - _WORD_ONE)
    bins, rel = np.empty(_CHUNK, np.int32), np.empty(_CHUNK, np.float64)
    bits = rel.view(np.uint64)
    counts[:] = 0
    for start in range(0, n, _CHUNK):
        m = min(_CHUNK, n - start)
        _bins(keys[start : start + m], lowest, unit, factor, rel, bins)
        for i in range(m):
            counts[bins[i]] += _ONE
    b, size, total, limit = 0, 0, 0, 2047
    starts[0] = edges[0] = 0
    for k in range(2048):
        count = np.int64(counts[k])
        if size > 0 and size + count > _BUCKET:
            b, size = b + 1, 0
            starts[b], edges[b] = total, k
        bucket[k] = b
        size += count
        total += count
        if total > max_rank:  # one more row, to detect a tie across the cut
            limit = k
            break
    b += 1
    starts[b], edges[b] = total, limit + 1
    free = starts[:b].copy()
    for start in range(0, n, _CHUNK):
        m = min(_CHUNK, n - start)
        _bins(keys[start : start + m], lowest, unit, factor, rel, bins)
        for i in range(m):
            bits[i] = (bits[i] & rest) | np.uint64(start + i)
        for i in range(m):
            if bins[i] <= limit:
                k = bucket[bins[i]]
                space.records[free[k]] = bits[i]
                free[k] += 1
    return b


@compiled
def _sort_bucket(records, nearest, scale, spare, counts):
    """Sort records by one counting pass over bins of equal width, and by insertion."""
    m, n_bins = len(records), min(2 * len(records), len(counts))
    values, top = records.view(np.float64), np.float64(n_bins - 1)
    places = np.empty(m, np.int32)
    scale *= n_bins
    counts[:n_bins] = 0
    for p in range(m):
        scaled = (values[p] - nearest) * scale
        scaled = scaled if scaled > 0.0 else 0.0
        places[p] = np.int32(scaled if scaled < top else top)
    for p in range(m):
        counts[places[p]] += _ONE
    _prefix(counts[:n_bins])
    for p in range(m):
        k = places[p]
        spare[counts[k]] = records[p]
        counts[k] += _ONE
    moves = 0
    for p in range(m):
        record = spare[p]
        q = p
        while q > 0 and records[q - 1] > record:
            records[q] = records[q - 1]
            q -= 1
        records[q] = record
        moves += p - q
        if moves > _MOVES * m:  # most keys are in a few bins
            records[p + 1 :] = spare[p + 1 : m]
            records[:] = _sort_records(records, np.int64(0))
            return


@compiled
def sort_many(keys, lowest, unit, span, max_rank, row_bits, space):
    """Sort the rows by distance in buckets; return how many were, and a bound of the others.

    Records are as in `_divide`. A bucket has some 8,000 rows, which stay in the cache.
    """
    starts, edges = np.empty(2049, np.int64), np.empty(2049, np.int64)
    factor = np.float32(2047.5 / span) if span > 1e-30 else np.float32(0.0)
    width = 1.0 / np.float64(factor) if span > 1e-30 else 0.0
    n_buckets = _divide(keys, lowest, unit, factor, max_rank, row_bits, space, starts, edges)
    for b in range(n_buckets):
        some = space.records[starts[b] : starts[b + 1]]
        if len(some) > len(space.spare):
            some[:] = _sort_records(some, row_bits)
        elif len(some):
            scale = 1.0 / ((edges[b + 1] - edges[b]) * width) if width > 0 else 0.0
            _sort_bucket(some, edges[b] * width, scale, space.spare, space.counts)
    return starts[n_buckets], edges[n_buckets] * width


@compiled
def sort_run(order, keys, start, stop):
    """Sort ``order[start:stop]`` by ``keys`` in place."""
    in_order = True
    for p in range(start + 1, stop):
        in_order = in_order and keys[order[p - 1]] <= keys[order[p]]
    if in_order:
        return
    if stop - start > _LONG_RUN:
        run = order[start:stop]
        run[:] = run[np.argsort(keys[run])]
        return
    for p in range(start + 1, stop):
        i = order[p]
        q = p - 1
        while q >= start and keys[order[q]] > keys[i]:
            order[q + 1] = order[q]
            q -= 1
        order[q + 1] = i
