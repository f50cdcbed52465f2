# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops that train a coalition with each of many other rows.

Every model starts from that of the coalition and from its inverse Hessian, to which the
row is added, so that a few steps of the loops of the batched solvers remain.
"""

from libc.math cimport NAN, exp, fabs, log, sqrt
from libc.string cimport memcpy, memset

import numpy as np

from .._utils.loops cimport cloned, dot, exponential
from .logistic_kernels cimport (
    Model, Rows, find_residuals, hessian_inverse, matrix_vector, model_of, room_of,
    row_joins, solve, vector_matrix,
)

cdef enum:
    PRODUCT = 16  # factors of at most 1 / eps whose product is a float64
    FEW_COLUMNS = 16  # most columns for which every step computes the Hessian anew
    NEWTON = 12  # most of these steps


# Few columns --------------------------------------------------------------------------


cdef struct Few:  # memory of `newton`
    const double *squares  # (n, size): each row's columns times those up to them
    Py_ssize_t size
    double *hessian  # (size,)
    double *gradient  # (p,)
    double *step
    double *z  # (n,)
    double *dz
    double *r
    double *c


cdef cloned find_weights(
    const double *z, const double *y, const double *w, double *r, double *c,
    Py_ssize_t n
) noexcept nogil:
    """Residuals and curvatures of rows of logits z."""
    cdef Py_ssize_t i
    cdef double x, q
    for i in range(n):
        x = -z[i]
        x = x if x > -700.0 else -700.0
        x = x if x < 700.0 else 700.0
        q = 1.0 / (1.0 + exponential(x))
        r[i] = w[i] * (q - y[i])
        c[i] = w[i] * q * (1.0 - q)


cdef bint cholesky_solve(
    double *packed, const double *b, double *x, Py_ssize_t p
) noexcept nogil:
    """Solve for x, given the lower triangle of a matrix by rows, which is
    overwritten."""
    cdef Py_ssize_t i, j, k, row = 0, column
    cdef double largest, total, v = 0.0
    for i in range(p):
        largest = packed[row + i]
        column = 0
        total = b[i]
        for j in range(i + 1):
            v = packed[row + j]
            for k in range(j):
                v -= packed[row + k] * packed[column + k]
            packed[row + j] = v * packed[column + j] if j < i else v
            column += j + 1
        if not v > 1e-13 * largest:
            return False
        packed[row + i] = 1.0 / sqrt(v)
        for j in range(i):
            total -= packed[row + j] * x[j]
        x[i] = total * packed[row + i]
        row += i + 1
    for i in range(p - 1, -1, -1):
        row -= i + 1
        x[i] *= packed[row + i]
        for j in range(i):
            x[j] -= packed[row + j] * x[i]
    return True


cdef bint newton(
    const Rows *rows, Py_ssize_t p, const double *penalty, const Few *few,
    double tolerance, double *coef,
) noexcept nogil:
    """As `logistic_kernels.solve`, by full steps; False if one goes too far."""
    cdef Py_ssize_t n = rows.n, count, i, a
    cdef double before = 0.0, after, furthest
    matrix_vector(rows.X, coef, few.z, n, p)
    for count in range(NEWTON):
        find_weights(few.z, rows.y, rows.w, few.r, few.c, n)
        vector_matrix(few.r, rows.X, few.gradient, n, p)
        vector_matrix(few.c, few.squares, few.hessian, n, few.size)
        for a in range(p):
            few.gradient[a] += penalty[a] * coef[a]
            few.hessian[(a * (a + 3)) // 2] += penalty[a]

        after = 0.0
        if count:
            after = dot(few.gradient, few.step, p)
        if before > 0.0 and not after > -0.5 * before:
            return False
        if not cholesky_solve(few.hessian, few.gradient, few.step, p):
            return False
        before = dot(few.gradient, few.step, p)
        for a in range(p):
            coef[a] -= few.step[a]
        matrix_vector(rows.X, few.step, few.dz, n, p)
        furthest = 0.0
        for i in range(n):
            few.z[i] -= few.dz[i]
            furthest = max(furthest, fabs(few.dz[i]))

        # Curvatures change by at most that relative amount: so does the next step.
        if sqrt(before) * furthest <= tolerance:
            return True
    return False


cdef void square(const double *x, double *out, Py_ssize_t p) noexcept nogil:
    """The products of x's entries with those up to them."""
    cdef Py_ssize_t a, b, k = 0
    for a in range(p):
        for b in range(a + 1):
            out[k] = x[a] * x[b]
            k += 1


cdef void joined_start(
    const double *coef, const double *inverse, const double *x, double y, double w,
    double *out, Py_ssize_t p,
) noexcept nogil:
    """Coefficients of a coalition and a row, its losses to second order."""
    cdef double h, z, q, rho = 0.0
    cdef Py_ssize_t a, count
    matrix_vector(inverse, x, out, p, p)
    h = dot(out, x, p)
    z = dot(coef, x, p)
    for count in range(4):
        q = 1.0 / (1.0 + exp(h * rho - z))
        rho -= (rho - w * (q - y)) / (1.0 + w * h * q * (1.0 - q))
    for a in range(p):
        out[a] = coef[a] - rho * out[a]


# All rows -----------------------------------------------------------------------------


def join(
    own, const double[::1] own_y, const double[::1] own_w, const double[::1] scale,
    const double[::1] penalty, const double[:, ::1] coef, inverse, bint warm, X,
    const double[::1] y, const double[::1] w, double tolerance, Py_ssize_t max_steps,
    double[:, :, ::1] coefs,
):
    """Coefficients (n, K, p) of a coalition with each row of X; NaN if not converged.

    ``coef`` and ``inverse`` are those of the coalition ``own`` alone, if ``warm``.
    """
    cdef const double[:, ::1] members = np.ascontiguousarray(own, np.float64)
    cdef const double[:, ::1] joining = np.ascontiguousarray(X, np.float64)
    cdef const double[:, ::1] first_inverse = np.ascontiguousarray(inverse)
    cdef Py_ssize_t s = members.shape[0], p = joining.shape[1], n = s + 1
    cdef Py_ssize_t k = coef.shape[0], size = k * p, i, j, a, c
    cdef bint is_few = k == 1 and p <= FEW_COLUMNS, near
    cdef Py_ssize_t packed = (p * (p + 1)) // 2 if is_few else 0
    if joining.shape[0] == 0 or p == 0:
        return
    cdef double[:, ::1] Xs = np.empty((n, p))
    cdef double[::1] ys = np.empty(n)
    cdef double[::1] ws = np.empty(n)
    cdef double[:, ::1] start = np.empty((k, n))  # logits of the coalition
    cdef double[:, ::1] squares = np.empty((n, packed + 1 - is_few))
    cdef double[::1] vectors = np.empty(packed + 2 * p + 4 * n)
    cdef double[::1] memory = np.empty(room_of(k, n, p))
    cdef Model model = model_of(&memory[0], k, n, p)
    cdef Rows rows = Rows(n, &Xs[0, 0], &ys[0], &ws[0])
    cdef Few few
    few.squares = &squares[0, 0]
    few.size = packed
    few.gradient = &vectors[0]
    few.step = few.gradient + p
    few.z = few.step + p
    few.dz = few.z + n
    few.r = few.dz + n
    few.c = few.r + n
    few.hessian = few.c + n
    with nogil:
        for i in range(s):
            memcpy(&Xs[i, 0], &members[i, 0], p * sizeof(double))
            ys[i] = own_y[i]
            ws[i] = own_w[i]
            if is_few:
                square(&Xs[i, 0], &squares[i, 0], p)
        for c in range(k):
            matrix_vector(&Xs[0, 0], &coef[c, 0], &start[c, 0], s, p)

        for i in range(joining.shape[0]):
            memcpy(&Xs[s, 0], &joining[i, 0], p * sizeof(double))
            ys[s] = y[i]
            ws[s] = w[i]
            memcpy(model.coef, &coef[0, 0], size * sizeof(double))
            if is_few:
                if warm:
                    joined_start(
                        &coef[0, 0], &first_inverse[0, 0], &Xs[s, 0], y[i], w[i],
                        model.coef, p,
                    )
                square(&Xs[s, 0], &squares[s, 0], p)
                if newton(&rows, p, &penalty[0], &few, tolerance, model.coef):
                    memcpy(&coefs[i, 0, 0], model.coef, size * sizeof(double))
                    continue
                memcpy(model.coef, &coef[0, 0], size * sizeof(double))

            for c in range(k):
                memcpy(model.Z + c * n, &start[c, 0], s * sizeof(double))
                model.Z[c * n + s] = dot(&coef[c, 0], &Xs[s, 0], p)
            find_residuals(&model, &rows, model.Z)
            near = warm
            if near:
                memcpy(
                    model.inverse, &first_inverse[0, 0], size * size * sizeof(double)
                )
                near = row_joins(&model, &Xs[s, 0], s, y[i], w[i], 1.0)
            if not near:
                hessian_inverse(&model, &rows, &penalty[0])
            if solve(&model, &rows, &scale[0], &penalty[0], tolerance, max_steps):
                memcpy(&coefs[i, 0, 0], model.coef, size * sizeof(double))
            else:
                for a in range(size):
                    (&coefs[i, 0, 0])[a] = NAN


cdef cloned find_factors(
    const double *margins, const double *signs, double *factors, Py_ssize_t n
) noexcept nogil:
    """``1 + exp(-sign * margin)``, one over a probability in [eps, 1 - eps]."""
    cdef Py_ssize_t v
    cdef double x, factor
    cdef double eps = 2.220446049250313e-16
    cdef double low = 1.0 / (1.0 - eps), high = 1.0 / eps
    for v in range(n):
        x = -signs[v] * margins[v]
        x = x if x > -40.0 else -40.0
        x = x if x < 40.0 else 40.0
        factor = 1.0 + exponential(x)
        factor = factor if factor > low else low
        factors[v] = factor if factor < high else high


def mean_log_losses(
    const double[:, ::1] margins, const double[::1] signs, double[::1] out
):
    """Mean of ``log(1 + exp(-sign * margin))`` of every row.

    Probabilities are in [eps, 1 - eps]. Logarithms are those of products, of which
    there are fewer.
    """
    cdef Py_ssize_t n = margins.shape[1], i, v, first
    cdef double[::1] factors = np.empty(n)
    cdef double total, product
    if n == 0:
        return
    with nogil:
        for i in range(margins.shape[0]):
            find_factors(&margins[i, 0], &signs[0], &factors[0], n)
            total = 0.0
            first = 0
            while first < n:
                product = 1.0
                for v in range(first, min(first + PRODUCT, n)):
                    product *= factors[v]
                total += log(product)
                first += PRODUCT
            out[i] = total / n
