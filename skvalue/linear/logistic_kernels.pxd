"""What other kernels take from `logistic_kernels`."""

cdef struct Model:
    # k vectors of p coefficients, and what is kept between steps. Arrays of rows have
    # `room` columns.
    Py_ssize_t k
    Py_ssize_t p
    Py_ssize_t room
    double *coef  # (k, p)
    double *Z  # logits, (k, room)
    double *R  # residuals, (k, room)
    double *inverse  # inverse Hessian, (k p, k p)
    double *dZ  # (k, room)
    double *trial  # (k, room)
    double *step  # (k, p), as the five below
    double *gradient
    double *ahead
    double *change
    double *work
    double *vector
    double *block  # (p, p)
    double *top  # (room,)
    double *total  # (room,)

cdef struct Rows:  # the rows of one coalition
    Py_ssize_t n
    const double *X  # (n, p)
    const double *y  # codes of classes
    const double *w

cdef Py_ssize_t room_of(Py_ssize_t k, Py_ssize_t n, Py_ssize_t p) noexcept nogil
cdef Model model_of(
    double *memory, Py_ssize_t k, Py_ssize_t n, Py_ssize_t p
) noexcept nogil
cdef void find_residuals(
    const Model *model, const Rows *rows, const double *Z
) noexcept nogil
cdef bint rank_joins(
    double *inverse, const double *x, double weight, double *work, Py_ssize_t p
) noexcept nogil
cdef bint row_joins(
    const Model *model, const double *x, Py_ssize_t i, double y, double w, double sign
) noexcept nogil
cdef void invert(double *matrix, double *column, Py_ssize_t p) noexcept nogil
cdef void matrix_vector(
    const double *A, const double *x, double *out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil
cdef void vector_matrix(
    const double *x, const double *A, double *out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil
cdef void weighted_gram(
    const double *X, const double *weights, double *out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil
cdef void hessian_inverse(
    const Model *model, const Rows *rows, const double *penalty
) noexcept nogil
cdef bint solve(
    const Model *model, const Rows *rows, const double *scale, const double *penalty,
    double tolerance, Py_ssize_t max_steps,
) noexcept nogil
