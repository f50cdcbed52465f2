"""What other kernels take from `sort`."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    N_BINS = 2048  # of one counting pass: 11 bits
    N_COUNTS = 1 << 15  # most bins in a bucket

cdef struct Scratch:
    # Memory in which one point is sorted. Up to `rank.MANY` rows: `rel`, `codes`,
    # `work`;
    # for more rows: `spare` and `places`, of an eighth of the rows.
    float *rel  # keys less the smallest one
    uint32_t *codes
    uint32_t *work
    uint32_t *low  # counts of the lower and the upper half of the codes
    uint32_t *high
    uint64_t *records
    uint64_t *other  # the second array of counting passes over records
    uint64_t *spare
    int32_t *places
    Py_ssize_t n_spare
    uint32_t *counts
    int64_t *starts  # of buckets
    int64_t *edges
    int64_t *free
    int32_t *run  # of near-ties
    int32_t *place
    int32_t *merged
    double *exact

cdef struct Codes:
    uint32_t limit  # the largest code that is needed
    bint crowded  # whether a bin has many rows

cdef struct Sorted:
    Py_ssize_t n  # rows that were sorted
    double edge  # the others are at least that far

cdef Codes count_codes(
    const Scratch *scratch, Py_ssize_t n, float factor, Py_ssize_t max_rank
) noexcept nogil
cdef Py_ssize_t sort_by_codes(
    const Scratch *scratch, Py_ssize_t n, uint32_t limit, int32_t *order
) noexcept nogil
cdef void sort_by_bits(
    const Scratch *scratch, Py_ssize_t n, int32_t *order
) noexcept nogil
cdef Sorted sort_many(
    const Scratch *scratch, const floating *keys, Py_ssize_t n, floating lowest,
    floating unit, double span, Py_ssize_t max_rank, int row_bits,
) noexcept nogil
cdef void sort_keys(
    const Scratch *scratch, const floating *keys, Py_ssize_t n, double lowest,
    double highest, Py_ssize_t n_sorted, int row_bits, int32_t *order,
    floating *sorted_keys,
) noexcept nogil
cdef void sort_run(
    int32_t *order, const floating *keys, Py_ssize_t start, Py_ssize_t stop,
    int32_t *merged
) noexcept nogil
