"""What other kernels take from `dual_kernels`."""

cdef double loss(double z, bint positive) noexcept nogil
