# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Sorts of the CPU engine, by counting and by keys.

`sort_by_codes` takes two counting passes over 22-bit codes, `sort_by_bits` three over
all bits; `sort_many` first divides many rows by distance into buckets that fit in the
processor's cache, as does `sort_keys`, whose order is that of the keys, whatever their
rounding; `sort_run` sorts a few rows that are nearly in order.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ..._utils.loops cimport cloned

cdef uint64_t SIGN = <uint64_t> 1 << 63

cdef enum:
    TOP = (1 << 22) - 1
    LONG_RUN = 48  # rows of a run from which insertion is slow
    LOW11 = 2047
    ROW_BITS = 21
    ROW = (1 << 21) - 1
    CHUNK = 512  # rows at a time, for vectorization
    BUCKET = 1 << 13  # rows of a bucket, if no bin has more
    MOVES = 16  # of a row, on average, in the insertion that ends the sort of a bucket


cdef void add_up(uint32_t *counts, Py_ssize_t n) noexcept nogil:
    """Replace counts by the sums of those before them."""
    cdef uint32_t total = 0, count
    cdef Py_ssize_t k
    for k in range(n):
        count = counts[k]
        counts[k] = total
        total += count


# Codes --------------------------------------------------------------------------------


cdef cloned find_codes(
    const float *rel, float factor, Py_ssize_t n, uint32_t *codes
) noexcept nogil:
    """The codes of rows: their distance times a factor, as a whole number."""
    cdef Py_ssize_t i
    cdef float scaled, top = <float> TOP
    for i in range(n):
        scaled = rel[i] * factor
        codes[i] = <uint32_t> <int32_t> (scaled if scaled < top else top)


cdef Codes count_codes(
    const Scratch *scratch, Py_ssize_t n, float factor, Py_ssize_t max_rank
) noexcept nogil:
    """Histogram of the codes, and the largest code that is needed."""
    cdef uint32_t *codes = scratch.codes
    cdef uint32_t *low = scratch.low
    cdef uint32_t *high = scratch.high
    cdef Py_ssize_t i, k, seen = 0
    cdef Codes found
    find_codes(scratch.rel, factor, n, codes)
    memset(low, 0, N_BINS * sizeof(uint32_t))
    memset(high, 0, N_BINS * sizeof(uint32_t))
    for i in range(n):
        low[codes[i] & LOW11] += 1
        high[codes[i] >> 11] += 1

    found.limit = TOP
    found.crowded = False
    for k in range(N_BINS):
        found.crowded = found.crowded or high[k] > 64 + n // 128
        if seen < max_rank + 1 <= seen + high[k]:
            # One more row than max_rank is kept, to detect a tie across the cut.
            found.limit = (<uint32_t> k << 11) | LOW11
        seen += high[k]

    if found.limit < TOP and not found.crowded:
        memset(low, 0, N_BINS * sizeof(uint32_t))
        for i in range(n):
            if codes[i] <= found.limit:
                low[codes[i] & LOW11] += 1
    return found


cdef Py_ssize_t sort_by_codes(
    const Scratch *scratch, Py_ssize_t n, uint32_t limit, int32_t *order
) noexcept nogil:
    """Sort at most 2**21 rows, those of codes up to ``limit``; return their number."""
    cdef const uint32_t *codes = scratch.codes
    cdef uint32_t *work = scratch.work
    cdef uint32_t *low = scratch.low
    cdef uint32_t *high = scratch.high
    cdef uint32_t code, k
    cdef Py_ssize_t i, kept = 0
    add_up(low, N_BINS)
    add_up(high, N_BINS)

    # A word holds the upper half of a code and its row.
    for i in range(n):
        code = codes[i]
        if code <= limit:
            k = code & LOW11
            work[low[k]] = (code >> 11) << ROW_BITS | <uint32_t> i
            low[k] += 1
            kept += 1

    for i in range(kept):
        k = work[i] >> ROW_BITS
        order[high[k]] = <int32_t> (work[i] & ROW)
        high[k] += 1
    return kept


# Records ------------------------------------------------------------------------------


cdef uint64_t *sort_records(
    uint64_t *records, uint64_t *other, Py_ssize_t n, int first_bit
) noexcept nogil:
    """Sort by counting passes over the bits from ``first_bit`` on.

    Returns the array that has the sorted records: the first or the other one.
    """
    cdef int64_t counts[N_BINS]
    cdef int64_t total, count
    cdef uint64_t *swapped
    cdef Py_ssize_t i, k
    cdef int shift
    cdef bint in_order = True
    for i in range(1, n):
        in_order = in_order and records[i - 1] <= records[i]
    if in_order:
        return records

    for shift in range(first_bit, 64, 11):
        memset(counts, 0, sizeof(counts))
        for i in range(n):
            counts[(records[i] >> shift) & LOW11] += 1
        if counts[(records[0] >> shift) & LOW11] == n:
            continue
        total = 0
        for k in range(N_BINS):
            count = counts[k]
            counts[k] = total
            total += count
        for i in range(n):
            k = (records[i] >> shift) & LOW11
            other[counts[k]] = records[i]
            counts[k] += 1
        swapped = records
        records = other
        other = swapped
    return records


cdef void sort_by_bits(
    const Scratch *scratch, Py_ssize_t n, int32_t *order
) noexcept nogil:
    """Sort by three counting passes over all bits, for keys with far outliers."""
    cdef const uint32_t *bits = <const uint32_t *> scratch.rel
    cdef uint64_t *records = scratch.records
    cdef Py_ssize_t i
    for i in range(n):
        records[i] = (<uint64_t> bits[i] << 32) | <uint64_t> i
    records = sort_records(records, scratch.other, n, 32)
    for i in range(n):
        order[i] = <int32_t> <uint32_t> records[i]


cdef inline double key_of(uint64_t record, uint64_t row_mask) noexcept nogil:
    """The key that a record of `find_records` holds; the row is in its last bits."""
    cdef uint64_t is_positive = record >> 63, bits
    cdef double key
    bits = (record & ~row_mask) | (row_mask & (is_positive - 1))
    bits ^= (is_positive - 1) | SIGN
    memcpy(&key, &bits, sizeof(double))
    return key


cdef cloned find_records(
    const floating *keys, Py_ssize_t n, uint64_t first_row, uint64_t row_mask,
    uint64_t *records,
) noexcept nogil:
    """Records of whole keys: whole numbers that are in the order of keys and rows.

    These are the bits of the key in float64, all of them the other way round if it is
    negative and else the first one, with the row in the last bits. They are 0, or 1, in
    a float32, for up to 2**29 rows; of a float64 they are lost.
    """
    cdef Py_ssize_t i
    cdef double key
    cdef uint64_t bits
    for i in range(n):
        key = <double> keys[i] + 0.0  # -0.0 is equal to 0.0
        memcpy(&bits, &key, sizeof(double))
        bits ^= (0 - (bits >> 63)) | SIGN
        records[i] = (bits & ~row_mask) | (first_row + <uint64_t> i)


# Buckets ------------------------------------------------------------------------------


cdef cloned find_bins(
    const floating *keys, Py_ssize_t n, floating lowest, floating unit, float factor,
    double *rel, int32_t *bins,
) noexcept nogil:
    """Bins of keys, 2047 for those of rows that do not play, and their distance."""
    cdef Py_ssize_t i
    cdef double distance
    cdef float scaled, top = 2047.0
    for i in range(n):
        distance = (keys[i] - lowest) * unit
        rel[i] = distance
        scaled = <float> distance * factor
        bins[i] = <int32_t> (scaled if scaled < top else top)


cdef struct Buckets:
    Py_ssize_t n
    Py_ssize_t last_bin  # that is in one of them


cdef Buckets make_buckets(const Scratch *scratch, Py_ssize_t max_rank) noexcept nogil:
    """Join successive bins, whose rows are counted in ``scratch.low``, to buckets.

    Buckets begin at ``scratch.starts``, and their bins at ``scratch.edges``; bins that
    are beyond ``max_rank`` are left out. ``scratch.high`` becomes the bucket of each
    bin, and ``scratch.free`` the place of its next record.
    """
    cdef const uint32_t *counts = scratch.low
    cdef uint32_t *bucket = scratch.high
    cdef int64_t *starts = scratch.starts
    cdef Py_ssize_t k, b = 0, size = 0, total = 0
    cdef int64_t count
    cdef Buckets buckets
    buckets.last_bin = N_BINS - 1
    starts[0] = 0
    scratch.edges[0] = 0
    for k in range(N_BINS):
        count = counts[k]
        if size > 0 and size + count > BUCKET:
            b += 1
            size = 0
            starts[b] = total
            scratch.edges[b] = k
        bucket[k] = <uint32_t> b
        size += count
        total += count
        if total > max_rank:  # one more row, to detect a tie across the cut
            buckets.last_bin = k
            break
    buckets.n = b + 1
    starts[buckets.n] = total
    scratch.edges[buckets.n] = buckets.last_bin + 1
    memcpy(scratch.free, starts, buckets.n * sizeof(int64_t))
    return buckets


cdef void put_records(
    const Scratch *scratch, const Buckets *buckets, const int32_t *bins,
    const uint64_t *records, Py_ssize_t m,
) noexcept nogil:
    """Write records of rows to the buckets of their bins."""
    cdef int64_t *free = scratch.free
    cdef const uint32_t *bucket = scratch.high
    cdef Py_ssize_t i, b
    for i in range(m):
        if bins[i] <= buckets.last_bin:
            b = bucket[bins[i]]
            scratch.records[free[b]] = records[i]
            free[b] += 1


cdef Py_ssize_t divide(
    const Scratch *scratch, const floating *keys, Py_ssize_t n, floating lowest,
    floating unit, float factor, Py_ssize_t max_rank, int row_bits,
) noexcept nogil:
    """Write a record for each row to buckets of successive bins; return their number.

    A record is the distance in float64, with the row in its last ``row_bits``.
    """
    cdef uint32_t *counts = scratch.low
    cdef uint64_t distance_bits = ~((<uint64_t> 1 << row_bits) - 1)
    cdef double rel[CHUNK]
    cdef uint64_t bits[CHUNK]
    cdef int32_t bins[CHUNK]
    cdef Py_ssize_t start, m, i
    cdef Buckets buckets
    memset(counts, 0, N_BINS * sizeof(uint32_t))
    start = 0
    while start < n:
        m = min(<Py_ssize_t> CHUNK, n - start)
        find_bins(keys + start, m, lowest, unit, factor, rel, bins)
        for i in range(m):
            counts[bins[i]] += 1
        start += CHUNK

    buckets = make_buckets(scratch, max_rank)
    start = 0
    while start < n:
        m = min(<Py_ssize_t> CHUNK, n - start)
        find_bins(keys + start, m, lowest, unit, factor, rel, bins)
        memcpy(bits, rel, m * sizeof(double))
        for i in range(m):
            bits[i] = (bits[i] & distance_bits) | <uint64_t> (start + i)
        put_records(scratch, &buckets, bins, bits, m)
        start += CHUNK
    return buckets.n


cdef cloned find_places(
    const uint64_t *records, Py_ssize_t m, double nearest, double scale, double top,
    int32_t *places,
) noexcept nogil:
    """Bins of equal width within a bucket."""
    cdef const double *values = <const double *> records
    cdef Py_ssize_t p
    cdef double scaled
    for p in range(m):
        scaled = (values[p] - nearest) * scale
        scaled = scaled if scaled > 0.0 else 0.0
        places[p] = <int32_t> (scaled if scaled < top else top)


cdef cloned find_key_places(
    const uint64_t *records, Py_ssize_t m, int key_bits, double nearest, double scale,
    double top, int32_t *places,
) noexcept nogil:
    """As `find_places`, for records of whole keys."""
    cdef uint64_t row_mask = ((<uint64_t> 1) << key_bits) - 1
    cdef Py_ssize_t p
    cdef double scaled
    for p in range(m):
        scaled = (key_of(records[p], row_mask) - nearest) * scale
        scaled = scaled if scaled > 0.0 else 0.0
        places[p] = <int32_t> (scaled if scaled < top else top)


cdef void sort_bucket(
    const Scratch *scratch, uint64_t *records, Py_ssize_t m, double nearest,
    double scale, int key_bits,
) noexcept nogil:
    """Sort records by one counting pass over bins of equal width, and by insertion.

    They are those of whole keys, with rows of so many bits, or of distances if
    ``key_bits`` is 0.
    """
    cdef uint64_t *spare = scratch.spare
    cdef int32_t *places = scratch.places
    cdef uint32_t *counts = scratch.counts
    cdef uint64_t *in_order
    cdef uint64_t record
    cdef Py_ssize_t n_bins = min(2 * m, <Py_ssize_t> N_COUNTS), p, q, k, moves = 0
    if key_bits:
        find_key_places(
            records, m, key_bits, nearest, scale * n_bins, <double> (n_bins - 1), places
        )
    else:
        find_places(records, m, nearest, scale * n_bins, <double> (n_bins - 1), places)
    memset(counts, 0, n_bins * sizeof(uint32_t))
    for p in range(m):
        counts[places[p]] += 1
    add_up(counts, n_bins)
    for p in range(m):
        k = places[p]
        spare[counts[k]] = records[p]
        counts[k] += 1

    for p in range(m):
        record = spare[p]
        q = p
        while q > 0 and records[q - 1] > record:
            records[q] = records[q - 1]
            q -= 1
        records[q] = record
        moves += p - q
        if moves > MOVES * m:  # most keys are in a few bins
            memcpy(records + p + 1, spare + p + 1, (m - p - 1) * sizeof(uint64_t))
            in_order = sort_records(records, scratch.other, m, 0)
            if in_order != records:
                memcpy(records, in_order, m * sizeof(uint64_t))
            return


cdef Sorted sort_many(
    const Scratch *scratch, const floating *keys, Py_ssize_t n, floating lowest,
    floating unit, double span, Py_ssize_t max_rank, int row_bits,
) noexcept nogil:
    """Sort the rows by distance in buckets.

    Records are as in `divide`. A bucket has some 8,000 rows, which stay in the cache.
    """
    cdef float factor = <float> (2047.5 / span) if span > 1e-30 else 0.0
    cdef double width = 1.0 / <double> factor if span > 1e-30 else 0.0, scale
    cdef Py_ssize_t n_buckets, b, m
    cdef uint64_t *records
    cdef uint64_t *in_order
    cdef Sorted found
    n_buckets = divide(scratch, keys, n, lowest, unit, factor, max_rank, row_bits)
    for b in range(n_buckets):
        records = scratch.records + scratch.starts[b]
        m = scratch.starts[b + 1] - scratch.starts[b]
        if m > scratch.n_spare:
            in_order = sort_records(records, scratch.other, m, row_bits)
            if in_order != records:
                memcpy(records, in_order, m * sizeof(uint64_t))
        elif m:
            scale = 0.0
            if width > 0:
                scale = 1.0 / ((scratch.edges[b + 1] - scratch.edges[b]) * width)
            sort_bucket(scratch, records, m, scratch.edges[b] * width, scale, 0)
    found.n = scratch.starts[n_buckets]
    found.edge = scratch.edges[n_buckets] * width
    return found


# Whole keys ---------------------------------------------------------------------------


cdef cloned find_key_bins(
    const floating *keys, Py_ssize_t n, double lowest, double factor, int32_t *bins
) noexcept nogil:
    """Bins of whole keys; infinite ones are in the last."""
    cdef Py_ssize_t i
    cdef double scaled, top = 2047.0
    for i in range(n):
        scaled = (<double> keys[i] - lowest) * factor
        bins[i] = <int32_t> (scaled if scaled < top else top)


cdef Py_ssize_t divide_keys(
    const Scratch *scratch, const floating *keys, Py_ssize_t n, double lowest,
    double factor, Py_ssize_t max_rank, int row_bits,
) noexcept nogil:
    """As `divide`, with records of whole keys."""
    cdef uint32_t *counts = scratch.low
    cdef uint64_t row_mask = (<uint64_t> 1 << row_bits) - 1
    cdef uint64_t records[CHUNK]
    cdef int32_t bins[CHUNK]
    cdef Py_ssize_t start, m, i
    cdef Buckets buckets
    if n <= BUCKET and max_rank >= n // 2:  # all rows are one bucket
        find_records(keys, n, 0, row_mask, scratch.records)
        scratch.starts[0] = 0
        scratch.starts[1] = n
        scratch.edges[0] = 0
        scratch.edges[1] = N_BINS
        return 1

    memset(counts, 0, N_BINS * sizeof(uint32_t))
    start = 0
    while start < n:
        m = min(<Py_ssize_t> CHUNK, n - start)
        find_key_bins(keys + start, m, lowest, factor, bins)
        for i in range(m):
            counts[bins[i]] += 1
        start += CHUNK

    buckets = make_buckets(scratch, max_rank)
    start = 0
    while start < n:
        m = min(<Py_ssize_t> CHUNK, n - start)
        find_key_bins(keys + start, m, lowest, factor, bins)
        find_records(keys + start, m, start, row_mask, records)
        put_records(scratch, &buckets, bins, records, m)
        start += CHUNK
    return buckets.n


cdef void read_records(
    const uint64_t *records, Py_ssize_t n, uint64_t row_mask, int32_t *order,
    floating *sorted_keys
) noexcept nogil:
    """Rows and keys of records."""
    cdef Py_ssize_t p
    for p in range(n):
        order[p] = <int32_t> (records[p] & row_mask)
        sorted_keys[p] = <floating> key_of(records[p], row_mask)


cdef void sort_lost_bits(
    const Scratch *scratch, const uint64_t *records, Py_ssize_t n,
    const floating *keys, int row_bits,
) noexcept nogil:
    """Rows of records that hold the first bits of their keys, by all of their bits.

    They are written to ``scratch.run``.
    """
    cdef uint64_t row_mask = (<uint64_t> 1 << row_bits) - 1
    cdef int32_t *order = scratch.run
    cdef Py_ssize_t start = 0, stop, p
    for p in range(n):
        order[p] = <int32_t> (records[p] & row_mask)
    while start < n:
        stop = start + 1
        while stop < n and records[stop] >> row_bits == records[start] >> row_bits:
            stop += 1
        if stop - start > 1:
            sort_run(order, keys, start, stop, scratch.merged)
        start = stop


cdef void sort_keys(
    const Scratch *scratch, const floating *keys, Py_ssize_t n, double lowest,
    double highest, Py_ssize_t n_sorted, int row_bits, int32_t *order,
    floating *sorted_keys,
) noexcept nogil:
    """The nearest ``n_sorted`` rows in order of their keys, equal ones by their numbers.

    All finite keys are from ``lowest`` to ``highest``.
    """
    cdef double span = highest - lowest, factor = 0.0, width = 0.0, scale
    cdef uint64_t row_mask = (<uint64_t> 1 << row_bits) - 1
    cdef bint has_lost_bits = sizeof(floating) == 8 or row_bits > 29
    cdef Py_ssize_t n_buckets, b, m, start, p
    cdef uint64_t *records
    cdef uint64_t *in_order
    if 1e-300 < span < 1e300:
        factor = 2047.5 / span
        width = 1.0 / factor
    n_buckets = divide_keys(scratch, keys, n, lowest, factor, n_sorted - 1, row_bits)
    for b in range(n_buckets):
        start = scratch.starts[b]
        records = scratch.records + start
        m = scratch.starts[b + 1] - start
        if m > scratch.n_spare:
            in_order = sort_records(records, scratch.other, m, row_bits)
            if in_order != records:
                memcpy(records, in_order, m * sizeof(uint64_t))
        elif m:
            scale = 0.0
            if width > 0:
                scale = 1.0 / ((scratch.edges[b + 1] - scratch.edges[b]) * width)
            sort_bucket(
                scratch, records, m, lowest + scratch.edges[b] * width, scale, row_bits
            )
        if has_lost_bits:
            sort_lost_bits(scratch, records, m, keys, row_bits)
        # Ranks that are not needed have no place in the order.
        m = min(m, n_sorted - start)
        if has_lost_bits:
            memcpy(order + start, scratch.run, m * sizeof(int32_t))
            for p in range(start, start + m):
                sorted_keys[p] = keys[order[p]]
        else:
            read_records(records, m, row_mask, order + start, sorted_keys + start)


# Runs ---------------------------------------------------------------------------------


cdef void merge_sort(
    int32_t *order, const floating *keys, Py_ssize_t n, int32_t *merged
) noexcept nogil:
    """Sort ``order`` by keys, stably, with memory for as many rows."""
    cdef Py_ssize_t width = 1, start, middle, stop, a, b, p
    cdef int32_t *source = order
    cdef int32_t *target = merged
    cdef int32_t *swapped
    while width < n:
        start = 0
        while start < n:
            middle = min(start + width, n)
            stop = min(start + 2 * width, n)
            a = start
            b = middle
            for p in range(start, stop):
                if a < middle and (b >= stop or keys[source[a]] <= keys[source[b]]):
                    target[p] = source[a]
                    a += 1
                else:
                    target[p] = source[b]
                    b += 1
            start = stop
        swapped = source
        source = target
        target = swapped
        width *= 2
    if source != order:
        memcpy(order, source, n * sizeof(int32_t))


cdef void sort_run(
    int32_t *order, const floating *keys, Py_ssize_t start, Py_ssize_t stop,
    int32_t *merged
) noexcept nogil:
    """Sort ``order[start:stop]`` by ``keys`` in place."""
    cdef Py_ssize_t p, q
    cdef int32_t i
    cdef bint in_order = True
    for p in range(start + 1, stop):
        in_order = in_order and keys[order[p - 1]] <= keys[order[p]]
    if in_order:
        return
    if stop - start > LONG_RUN:
        merge_sort(order + start, keys, stop - start, merged)
        return
    for p in range(start + 1, stop):
        i = order[p]
        q = p - 1
        while q >= start and keys[order[q]] > keys[i]:
            order[q + 1] = order[q]
            q -= 1
        order[q + 1] = i
