"""What other kernels take from `ties`."""

from cython cimport floating
from libc.stdint cimport int32_t

from .sort cimport Scratch

cdef enum:  # `kinds`
    EUCLIDEAN = 0
    COSINE = 1
    GENERIC = 2

ctypedef fused real:  # numbers by which rows were sorted
    float
    double

cdef struct Tolerances:  # what is the same for all rows, see `KeyParameters`
    int kind
    double near
    double far
    double largest_half
    double mean_half

cdef Tolerances tolerances_of(params)
cdef double exact_key(
    int kind, const floating *x, const floating *q, Py_ssize_t d
) noexcept nogil
cdef double slack(
    int kind, double tolerance, double half, double query_half
) noexcept nogil
cdef void resolve_head(
    const Tolerances *params, const floating *half, const floating *rows,
    const floating *query, Py_ssize_t d, double query_half, const floating *keys,
    const real *rel, real blur, floating unit, int32_t *order, Py_ssize_t n,
    Py_ssize_t head, const Scratch *scratch,
) noexcept nogil
