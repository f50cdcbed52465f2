# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of the batched logistic regression.

Coefficients are arrays (K, p), logits and residuals (K, n). Two classes have one row of
coefficients, those of the second class; three and more have one row each, and steps and
gradients sum to zero over the classes, so that no step is in the direction in which the
loss is constant.

One coalition at a time, with its rows only. The inverse Hessian is kept: adding or
removing a row updates it by rank one, or by as many ranks as there are classes (Sherman
and Morrison), a step by rank two (BFGS), so that a coalition that is similar to the one
before needs a few products with its rows and no factorisation.
"""

from libc.math cimport INFINITY, exp, fabs, log, log1p
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from .._utils.loops cimport cloned, dot, doubles_alone, exponential

import numpy as np

from .status import ONE_CLASS, SOLVED, UNSOLVED

FLAT = 1e-6  # largest final gradient, relative to the mean size of its terms
LONGEST = 0.1  # largest change of a logit by the last step, which is not checked
SATURATED = 1e-4  # mean curvature of rows below which inverse Hessians are not kept
TRIALS = 150  # of lengths of a step

cdef double flat = FLAT, longest = LONGEST, saturated = SATURATED
cdef Py_ssize_t max_trials = TRIALS
cdef int64_t one_class = ONE_CLASS, solved = SOLVED, unsolved = UNSOLVED

# Steps after which a slow solve recomputes its Hessian, of two classes and of more.
cdef enum:
    REFRESH = 6
    REFRESH_MANY = 4


# Products -----------------------------------------------------------------------------


cdef cloned times_vector(
    const double *A, const double *x, double *out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil:
    """``out = A x``, for A of shape (n, p)."""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = dot(A + i * p, x, p)


cdef cloned vector_times(
    const double *x, const double *A, doubles_alone out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil:
    """``out = x A``, for A of shape (n, p), four rows at a time."""
    cdef Py_ssize_t i, a, whole = n & ~3
    cdef const double *r0
    cdef const double *r1
    cdef const double *r2
    cdef const double *r3
    cdef double x0, x1, x2, x3
    for a in range(p):
        out[a] = 0.0
    for i in range(0, whole, 4):
        r0 = A + i * p
        r1 = r0 + p
        r2 = r0 + 2 * p
        r3 = r0 + 3 * p
        x0 = x[i]
        x1 = x[i + 1]
        x2 = x[i + 2]
        x3 = x[i + 3]
        for a in range(p):
            out[a] += (x0 * r0[a] + x1 * r1[a]) + (x2 * r2[a] + x3 * r3[a])
    for i in range(whole, n):
        r0 = A + i * p
        x0 = x[i]
        for a in range(p):
            out[a] += x0 * r0[a]


cdef cloned weighted_square(
    const double *X, const double *curvature, double *out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil:
    """``out = X' diag(curvature) X``, four rows at a time.

    The columns from the diagonal on, or from up to seven before it, so that registers
    are full; those before are copied.
    """
    cdef Py_ssize_t i, a, b, whole = n & ~3
    cdef const double *r0
    cdef const double *r1
    cdef const double *r2
    cdef const double *r3
    cdef double x0, x1, x2, x3
    cdef double *line
    for a in range(p * p):
        out[a] = 0.0
    for i in range(0, whole, 4):
        r0 = X + i * p
        r1 = r0 + p
        r2 = r0 + 2 * p
        r3 = r0 + 3 * p
        for a in range(p):
            x0 = curvature[i] * r0[a]
            x1 = curvature[i + 1] * r1[a]
            x2 = curvature[i + 2] * r2[a]
            x3 = curvature[i + 3] * r3[a]
            line = out + a * p
            for b in range(a & ~7, p):
                line[b] += (x0 * r0[b] + x1 * r1[b]) + (x2 * r2[b] + x3 * r3[b])
    for i in range(whole, n):
        r0 = X + i * p
        for a in range(p):
            x0 = curvature[i] * r0[a]
            line = out + a * p
            for b in range(a & ~7, p):
                line[b] += x0 * r0[b]
    for a in range(p):
        for b in range(a):
            out[a * p + b] = out[b * p + a]


cdef cloned add_rank(
    double *inverse, double a, const double *u, Py_ssize_t p
) noexcept nogil:
    """``inverse += a u u'``."""
    cdef Py_ssize_t i, j
    cdef double c
    cdef double *line
    for i in range(p):
        c = a * u[i]
        line = inverse + i * p
        for j in range(p):
            line[j] += c * u[j]


cdef cloned add_ranks(
    double *inverse, double a, const double *u, double b, const double *v, Py_ssize_t p
) noexcept nogil:
    """``inverse += a u u' + b (u v' + v u')``."""
    cdef Py_ssize_t i, j
    cdef double c, d
    cdef double *line
    for i in range(p):
        c = a * u[i] + b * v[i]
        d = b * u[i]
        line = inverse + i * p
        for j in range(p):
            line[j] += c * u[j] + d * v[j]


cdef cloned sweep(double *matrix, double *column, Py_ssize_t p) noexcept nogil:
    """`invert`, compiled for newer processors."""
    cdef Py_ssize_t i, j, k
    cdef double c, scale
    cdef double *line
    for k in range(p):
        for j in range(p):
            column[j] = matrix[k * p + j]
        scale = 1.0 / column[k]
        for i in range(p):
            c = column[i] * scale
            line = matrix + i * p
            for j in range(p):
                line[j] -= c * column[j]
        for i in range(p):
            matrix[i * p + k] = matrix[k * p + i] = column[i] * scale
        matrix[k * p + k] = -scale
    for i in range(p * p):
        matrix[i] = -matrix[i]


cdef void invert(double *matrix, double *column, Py_ssize_t p) noexcept nogil:
    """Replace a positive definite matrix by its inverse.

    By sweeps, which are faster than LAPACK for small matrices.
    """
    sweep(matrix, column, p)


cdef void matrix_vector(
    const double *A, const double *x, double *out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil:
    """``out = A x``, for A of shape (n, p)."""
    times_vector(A, x, out, n, p)


cdef void vector_matrix(
    const double *x, const double *A, double *out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil:
    """``out = x A``, for A of shape (n, p)."""
    vector_times(x, A, out, n, p)


cdef void weighted_gram(
    const double *X, const double *weights, double *out, Py_ssize_t n, Py_ssize_t p
) noexcept nogil:
    """``out = X' diag(weights) X``, for X of shape (n, p)."""
    weighted_square(X, weights, out, n, p)


# Residuals ----------------------------------------------------------------------------


cdef cloned residuals_of_two(
    const double *z, const double *y, const double *w, double *r, Py_ssize_t n
) noexcept nogil:
    cdef Py_ssize_t i
    cdef double x
    for i in range(n):
        x = -z[i]
        x = x if x > -700.0 else -700.0
        x = x if x < 700.0 else 700.0
        r[i] = w[i] * (1.0 / (1.0 + exponential(x)) - y[i])


cdef cloned residuals_of_many(
    const Model *model, const Rows *rows, const double *Z
) noexcept nogil:
    cdef Py_ssize_t n = rows.n, c, i
    cdef const double *z
    cdef const double *y = rows.y
    cdef const double *w = rows.w
    cdef double *r
    cdef double *top = model.top
    cdef double *total = model.total
    cdef double x
    for i in range(n):
        top[i] = -INFINITY
        total[i] = 0.0
    for c in range(model.k):
        z = Z + c * model.room
        for i in range(n):
            top[i] = z[i] if z[i] > top[i] else top[i]
    for c in range(model.k):
        z = Z + c * model.room
        r = model.R + c * model.room
        for i in range(n):
            x = z[i] - top[i]
            r[i] = exponential(x if x > -700.0 else -700.0)
            total[i] += r[i]
    for c in range(model.k):
        r = model.R + c * model.room
        for i in range(n):
            r[i] = w[i] * (r[i] / total[i] - (1.0 if y[i] == c else 0.0))


cdef void find_residuals(
    const Model *model, const Rows *rows, const double *Z
) noexcept nogil:
    """``R = w * (q - one-hot(y))`` for the probabilities q of classes at logits Z.

    y are the codes of the classes of the rows, as floats.
    """
    if model.k == 1:
        residuals_of_two(Z, rows.y, rows.w, model.R, rows.n)
    else:
        residuals_of_many(model, rows, Z)


cdef void find_residual(
    const Model *model, Py_ssize_t i, double y, double w
) noexcept nogil:
    """``R[:, i]``, the residuals of one row."""
    cdef Py_ssize_t c, room = model.room
    cdef double *z = model.Z + i
    cdef double *r = model.R + i
    cdef double top = z[0], total = 0.0
    if model.k == 1:
        r[0] = w * (1.0 / (1.0 + exp(-z[0])) - y)
        return
    for c in range(1, model.k):
        top = max(top, z[c * room])
    for c in range(model.k):
        r[c * room] = exp(z[c * room] - top)
        total += r[c * room]
    for c in range(model.k):
        r[c * room] = w * (r[c * room] / total - (y == c))


# The inverse Hessian ------------------------------------------------------------------


cdef bint rank_joins(
    double *inverse, const double *x, double weight, double *work, Py_ssize_t p
) noexcept nogil:
    """Sherman-Morrison: the inverse of H + weight x x'; False if that is not
    positive."""
    cdef double below
    vector_times(x, inverse, work, p, p)
    below = 1.0 + weight * dot(work, x, p)
    if below < 1e-3:
        return False
    add_rank(inverse, -weight / below, work, p)
    return True


cdef bint row_joins(
    const Model *model, const double *x, Py_ssize_t i, double y, double w, double sign
) noexcept nogil:
    """Add the Hessian of a row of residuals ``R[:, i]``, or subtract it if the sign is
    -1.

    It is w (diag(q) - q q') times x x', for the probabilities q of its classes, and
    diag(q) - q q' is the sum over classes c of q_c (e_c - q)(e_c - q)'.
    """
    cdef Py_ssize_t k = model.k, p = model.p, a, c, e
    cdef double *r = model.R + i
    cdef double q, pull
    if k == 1:
        q = r[0] / w + y
        return rank_joins(model.inverse, x, sign * w * q * (1.0 - q), model.work, p)
    for c in range(k):
        q = r[c * model.room] / w + (c == y)
        for e in range(k):
            pull = (e == c) - r[e * model.room] / w - (e == y)
            for a in range(p):
                model.vector[e * p + a] = pull * x[a]
        if not rank_joins(model.inverse, model.vector, sign * w * q, model.work, k * p):
            return False
    return True


cdef void step_done(const Model *model) noexcept nogil:
    """BFGS: the inverse Hessian after a step and the change of the gradient along
    it."""
    cdef Py_ssize_t size = model.k * model.p
    cdef double curve = dot(model.step, model.change, size), ratio
    if curve > 0.0:
        vector_times(model.change, model.inverse, model.work, size, size)
        ratio = (1.0 + dot(model.change, model.work, size) / curve) / curve
        add_ranks(model.inverse, ratio, model.step, -1.0 / curve, model.work, size)


cdef void inverse_of_few(
    const Model *model, const Rows *rows, const double *penalty
) noexcept nogil:
    """Few rows are added one by one to the penalty; the intercept starts at its
    curvature."""
    cdef Py_ssize_t p = model.p, i, a
    cdef double q, curvature = 0.0
    for i in range(rows.n):
        q = model.R[i] / rows.w[i] + rows.y[i]
        curvature += rows.w[i] * q * (1.0 - q)
    memset(model.inverse, 0, p * p * sizeof(double))
    for a in range(p):
        model.inverse[a * p + a] = 1.0 / (
            penalty[a] if penalty[a] > 0 else max(curvature, 1e-3)
        )
    for i in range(rows.n):
        row_joins(model, rows.X + i * p, i, rows.y[i], rows.w[i], 1.0)


cdef void hessian_inverse(
    const Model *model, const Rows *rows, const double *penalty
) noexcept nogil:
    """Inverse of the Hessian at the residuals R."""
    cdef Py_ssize_t n = rows.n, k = model.k, p = model.p, size = model.k * model.p
    cdef Py_ssize_t a, b, c, e, i
    # The code of the class of the first vector.
    cdef Py_ssize_t first = k == 1
    cdef double top = 0.0, scale, q, pull, smallest = INFINITY
    cdef double *rc
    cdef double *re
    cdef double *lower
    cdef double *upper
    cdef double *curvature = model.top
    for a in range(p - 1):
        smallest = min(smallest, penalty[a])
    if k == 1 and n < p // 2 and smallest > 0:
        inverse_of_few(model, rows, penalty)
        return
    for c in range(k):
        for e in range(c + 1):
            rc = model.R + c * model.room
            re = model.R + e * model.room
            for i in range(n):
                # A row of weight zero has no residual and no Hessian.
                scale = 1.0 / rows.w[i] if rows.w[i] > 0 else 0.0
                q = rc[i] * scale + (rows.y[i] == c + first)
                pull = (c == e) - (re[i] * scale + (rows.y[i] == e + first))
                curvature[i] = rows.w[i] * q * pull
            weighted_square(rows.X, curvature, model.block, n, p)
            if c == e:
                for a in range(p):
                    model.block[a * p + a] += penalty[a]
                    top = max(top, model.block[a * p + a])
            for a in range(p):
                lower = model.inverse + (c * p + a) * size + e * p
                upper = model.inverse + (e * p + a) * size + c * p
                for b in range(p):
                    lower[b] = model.block[a * p + b]
                    upper[b] = model.block[b * p + a]
    for a in range(p):
        for c in range(k):  # the curvature of a large intercept vanishes
            model.inverse[(c * p + a) * size + c * p + a] += 1e-12 * top + 1e-300
            if k > 1 and penalty[a] == 0:  # constant along shifts of all classes
                for e in range(k):
                    model.inverse[(c * p + a) * size + e * p + a] += top / k
    invert(model.inverse, model.work, size)


# The solver ---------------------------------------------------------------------------


cdef void gradient_at(
    const Model *model, const Rows *rows, const double *penalty, double t, double *out
) noexcept nogil:
    """``R X + penalty * (coef - t step)``, flattened."""
    cdef Py_ssize_t p = model.p, a, c
    for c in range(model.k):
        vector_times(model.R + c * model.room, rows.X, out + c * p, rows.n, p)
        for a in range(p):
            out[c * p + a] += penalty[a] * (
                model.coef[c * p + a] - t * model.step[c * p + a]
            )


cdef double objective(
    const Model *model, const Rows *rows, const double *penalty, const double *Z,
    double t
) noexcept nogil:
    """The penalised cross-entropy at logits Z and coefficients ``coef - t step``."""
    cdef Py_ssize_t p = model.p, room = model.room, a, c, i
    cdef double total = 0.0, x, top, powers
    for c in range(model.k):
        for a in range(p):
            x = model.coef[c * p + a] - t * model.step[c * p + a]
            total += 0.5 * penalty[a] * (x * x)
    for i in range(rows.n):
        if model.k == 1:
            x = Z[i]
            total += rows.w[i] * (max(x, 0.0) - rows.y[i] * x + log1p(exp(-fabs(x))))
            continue
        top = Z[i]
        powers = 0.0
        for c in range(1, model.k):
            top = max(top, Z[c * room + i])
        for c in range(model.k):
            powers += exp(Z[c * room + i] - top)
        total += rows.w[i] * (top + log(powers) - Z[<Py_ssize_t> rows.y[i] * room + i])
    return total


cdef bint is_flat(const Model *model, const double *scale, Py_ssize_t n) noexcept nogil:
    """Whether the gradient is small relative to its terms, without the inverse
    Hessian."""
    cdef Py_ssize_t a, c
    for c in range(model.k):
        for a in range(model.p):
            if fabs(model.gradient[c * model.p + a]) > flat * n * scale[a]:
                return False
    return True


cdef bint is_saturated(const Model *model, const Rows *rows) noexcept nogil:
    """Whether nearly all probabilities are 0 or 1, of right classes or of wrong ones.

    The inverse Hessian is then nearly that of the penalty, and changes by orders of
    magnitude along a step: what was kept of it may be far too small.
    """
    cdef Py_ssize_t i, c
    cdef double curvature = 0.0, total = 0.0, error
    for i in range(rows.n):
        if rows.w[i] > 0:
            c = 0 if model.k == 1 else <Py_ssize_t> rows.y[i]
            error = fabs(model.R[c * model.room + i])
            curvature += error * (1.0 - error / rows.w[i])
            total += rows.w[i]
    return curvature < saturated * total


cdef bint changes_little(const Model *model, const Rows *rows) noexcept nogil:
    """Whether the step changes no logit by more than ``longest``; writes dZ.

    Where all curvatures vanish, a long step has a small decrement, and is far from the
    minimum all the same.
    """
    cdef Py_ssize_t c, i, p = model.p, room = model.room
    cdef double change = 0.0
    for c in range(model.k):
        times_vector(rows.X, model.step + c * p, model.dZ + c * room, rows.n, p)
        for i in range(rows.n):
            change = max(change, fabs(model.dZ[c * room + i]))
    return change <= longest


cdef cloned subtract(
    const double *a, double t, const double *b, double *out, Py_ssize_t n
) noexcept nogil:
    """``out = a - t b``."""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = a[i] - t * b[i]


cdef double find_step(const Model *model) noexcept nogil:
    """The step from the gradient; returns the slope of the objective along it."""
    cdef Py_ssize_t size = model.k * model.p
    vector_times(model.gradient, model.inverse, model.step, size, size)
    return -dot(model.gradient, model.step, size)


cdef bint solve(
    const Model *model, const Rows *rows, const double *scale, const double *penalty,
    double tolerance, Py_ssize_t max_steps,
) noexcept nogil:
    """Minimise the sum of w times the cross-entropy + penalty coef^2 / 2, starting from
    `coef`.

    Updates Z, the logits at coef, R, the residuals there or before the last of several
    steps, and the inverse Hessian. Stops when the Newton decrement, the error in
    standard errors of the fit, is below the tolerance; returns whether it converged.
    """
    cdef Py_ssize_t k = model.k, p = model.p, n = rows.n, room = model.room
    cdef Py_ssize_t size = k * p
    cdef Py_ssize_t refresh = REFRESH if k == 1 else REFRESH_MANY, count, trials, a, c
    cdef double slope, after, t
    cdef bint done, is_fresh = False
    memset(model.step, 0, size * sizeof(double))
    gradient_at(model, rows, penalty, 0.0, model.gradient)
    for count in range(max_steps):
        slope = find_step(model)
        done = slope <= 0.0 and -slope <= tolerance * tolerance
        if done and is_saturated(model, rows):
            # The end is decided by the Hessian and the gradient here.
            memset(model.step, 0, size * sizeof(double))
            find_residuals(model, rows, model.Z)
            gradient_at(model, rows, penalty, 0.0, model.gradient)
            hessian_inverse(model, rows, penalty)
            is_fresh = True
            slope = find_step(model)
            done = slope <= 0.0 and -slope <= tolerance * tolerance
        if done and is_flat(model, scale, n) and changes_little(model, rows):
            # The last step; the logits are updated so that they do not drift.
            for c in range(k):
                subtract(
                    model.Z + c * room, 1.0, model.dZ + c * room, model.Z + c * room, n
                )
            subtract(model.coef, 1.0, model.step, model.coef, size)

            # Residuals are those before this step. Where it is the only one, they must
            # follow: the next solve would take the same step again, and so forth.
            if count == 0:
                find_residuals(model, rows, model.Z)
            return True
        if done or not slope < 0.0 or (count and count % refresh == 0):
            if not is_fresh:
                hessian_inverse(model, rows, penalty)
                slope = find_step(model)
            if not slope < 0.0:
                return False
        is_fresh = False
        for c in range(k):
            times_vector(rows.X, model.step + c * p, model.dZ + c * room, n, p)
        t = 1.0
        for trials in range(max_trials):
            for c in range(k):
                subtract(
                    model.Z + c * room, t, model.dZ + c * room, model.trial + c * room,
                    n,
                )
            find_residuals(model, rows, model.trial)
            gradient_at(model, rows, penalty, t, model.ahead)
            after = -dot(model.ahead, model.step, size)
            # Far beyond the minimum on the line, a smaller slope can have a larger
            # objective.
            if after <= -0.1 * slope or (
                after <= -0.9 * slope
                and objective(model, rows, penalty, model.trial, t)
                < objective(model, rows, penalty, model.Z, 0.0)
            ):
                break
            t *= max(0.1, slope / (slope - after))
        else:
            return False
        for c in range(k):
            memcpy(model.Z + c * room, model.trial + c * room, n * sizeof(double))
        for a in range(size):
            model.step[a] *= -t
            model.coef[a] += model.step[a]
            model.change[a] = model.ahead[a] - model.gradient[a]
            model.gradient[a] = model.ahead[a]
        step_done(model)
    return False


# Coalitions ---------------------------------------------------------------------------


cdef Py_ssize_t room_of(Py_ssize_t k, Py_ssize_t n, Py_ssize_t p) noexcept nogil:
    """Number of doubles that a `Model` takes."""
    cdef Py_ssize_t size = k * p
    return size * size + 7 * size + p * p + (4 * k + 2) * n


cdef Model model_of(
    double *memory, Py_ssize_t k, Py_ssize_t n, Py_ssize_t p
) noexcept nogil:
    """The arrays of a model of k vectors, one after the other."""
    cdef Model model
    cdef Py_ssize_t size = k * p
    model.k = k
    model.p = p
    model.room = n
    model.inverse = memory
    model.coef = model.inverse + size * size
    model.step = model.coef + size
    model.gradient = model.step + size
    model.ahead = model.gradient + size
    model.change = model.ahead + size
    model.work = model.change + size
    model.vector = model.work + size
    model.block = model.vector + size
    model.Z = model.block + p * p
    model.R = model.Z + k * n
    model.dZ = model.R + k * n
    model.trial = model.dZ + k * n
    model.top = model.trial + k * n
    model.total = model.top + n
    return model


def solve_tile(
    const double[:, ::1] X, const int64_t[::1] y, const double[::1] w,
    const double[::1] scale, const double[::1] penalty, masks, Py_ssize_t n_classes,
    const double[::1] start, Py_ssize_t nearby, double tolerance, Py_ssize_t max_steps,
    double[:, :, ::1] coefs, int64_t[::1] status,
):
    """Coefficients of every coalition of a tile, in the rows of ``coefs`` of the
    classes it has.

    Of two classes in all there is one row. A coalition starts from the one before it if
    it has the same classes and at most ``nearby`` rows differ, else from zero, or from
    ``start`` if it has many rows of two classes. ``scale`` is the mean of ``w |x|``.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1]
    cdef Py_ssize_t most = n_classes if n_classes > 2 else 1
    cdef const uint8_t[:, ::1] is_in = masks.view(np.uint8)  # no memoryview is of bool
    cdef int64_t[::1] rows = np.empty(n, np.int64)
    cdef int64_t[::1] place = np.full(n, -1, np.int64)
    cdef int64_t[::1] flips = np.empty(n, np.int64)
    cdef double[:, ::1] Xs = np.empty((n, p))
    cdef double[::1] ys = np.empty(n)
    cdef double[::1] ws = np.empty(n)
    cdef int64_t[::1] counts = np.zeros(n_classes, np.int64)
    cdef int64_t[::1] before = np.zeros(n_classes, np.int64)
    # Codes among a coalition's classes.
    cdef int64_t[::1] local = np.zeros(n_classes, np.int64)
    cdef double[::1] memory = np.empty(room_of(most, n, p))
    cdef Model model
    cdef Rows inside
    cdef Py_ssize_t size = 0, k = 0, m, i, j, a, c, e, f, at, differ, present, vector
    cdef double sign, code
    cdef bint warm = False, joins
    if n == 0 or p == 0 or n_classes == 0:
        return
    model = model_of(&memory[0], most, n, p)
    with nogil:
        for m in range(is_in.shape[0]):
            differ = 0
            for i in range(n):
                flips[differ] = i
                differ += (is_in[m, i] != 0) != (place[i] >= 0)
            before[:] = counts
            for f in range(differ):
                counts[y[flips[f]]] += 1 if is_in[m, flips[f]] else -1
            warm = warm and differ <= nearby
            present = 0
            for e in range(n_classes):
                warm = warm and (counts[e] > 0) == (before[e] > 0)
                local[e] = present
                present += counts[e] > 0
            k = present if present > 2 else 1
            for f in range(differ):
                i = flips[f]
                joins = is_in[m, i] != 0
                code = local[y[i]]
                at = size if joins else place[i]
                sign = 1.0 if joins else -1.0
                if warm:
                    for c in range(k):
                        model.Z[c * n + at] = dot(&X[i, 0], model.coef + c * p, p)
                    find_residual(&model, at, code, w[i])
                    warm = row_joins(&model, &X[i, 0], at, code, w[i], sign)
                if joins:
                    rows[size] = i
                    place[i] = size
                    Xs[size, :] = X[i, :]
                    ys[size] = code
                    ws[size] = w[i]
                    size += 1
                else:
                    size -= 1
                    rows[at] = rows[size]
                    ys[at] = ys[size]
                    ws[at] = ws[size]
                    if at != size:
                        Xs[at, :] = Xs[size, :]
                    if warm:
                        for c in range(k):
                            model.Z[c * n + at] = model.Z[c * n + size]
                            model.R[c * n + at] = model.R[c * n + size]
                    place[rows[at]] = at
                    place[i] = -1
            if present < 2:
                status[m] = one_class
                warm = False
                continue
            if not warm:
                model = model_of(&memory[0], k, n, p)
                for a in range(k * p):
                    model.coef[a] = start[a] if k == 1 and size >= p else 0.0
                for j in range(size):
                    ys[j] = local[y[rows[j]]]
                for c in range(k):
                    times_vector(
                        &Xs[0, 0], model.coef + c * p, model.Z + c * n, size, p
                    )
            inside = Rows(size, &Xs[0, 0], &ys[0], &ws[0])
            if k > 1 or not warm:
                find_residuals(&model, &inside, model.Z)
            if not warm:
                hessian_inverse(&model, &inside, &penalty[0])
            warm = solve(&model, &inside, &scale[0], &penalty[0], tolerance, max_steps)
            status[m] = solved if warm else unsolved
            for e in range(n_classes):
                vector = local[e] - (k == 1)
                if counts[e] > 0 and vector >= 0:
                    for a in range(p):
                        coefs[m, e - (n_classes == 2), a] = model.coef[vector * p + a]
