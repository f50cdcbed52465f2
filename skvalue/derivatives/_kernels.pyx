# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Walks of generalised linear models, and their utilities.

A walk takes one gradient step per player along a permutation. Parameters are the
coefficients of all outputs, concatenated: one output for two classes and for
regression, else one per class. If they are coordinates in a subspace, X has three
dimensions: a vector per row and output, whose product with the coordinates is the
output.
"""

from libc.math cimport INFINITY, exp, fabs, isfinite, log, log2, rint, sqrt
from libc.stdint cimport int64_t, uint8_t

import numpy as np

from .._utils.loops cimport cloned, dot, exponential, product

LOGISTIC = 0
SOFTMAX = 1
LINEAR = 2

cdef enum:
    IS_LOGISTIC = 0
    IS_LINEAR = 2

cdef double SMALLEST_FACTOR = 1e-290  # smaller ones lose digits, as denormal numbers do
cdef double LARGEST_NORM = 1e140  # of rows whose sum has a finite square


cdef struct Model:  # the rows of all players, and how a loss is clipped
    int kind
    const double *X  # (n, d), or (n, n_outputs, d) in a subspace
    const double *y
    Py_ssize_t d
    Py_ssize_t n_outputs
    Py_ssize_t p  # number of parameters
    bint projected  # whether parameters are coordinates in a subspace
    double clip
    bint per_example
    double *logits  # (n_outputs,)


cdef Model model_of(
    int kind, X, const double[::1] y, Py_ssize_t p, double clip, bint per_example,
    double[::1] logits,
):
    """Pointers to arrays that the caller keeps; X is in C order."""
    cdef const double[:, ::1] flat = X.reshape(X.shape[0], -1)
    cdef Model model
    model.kind = kind
    model.X = &flat[0, 0]
    model.y = &y[0]
    model.d = X.shape[X.ndim - 1]
    model.n_outputs = logits.shape[0]
    model.p = p
    model.projected = X.ndim == 3
    model.clip = clip
    model.per_example = per_example
    model.logits = &logits[0]
    return model


def _n_outputs(X, Py_ssize_t p):
    """Number of outputs of a model of p parameters."""
    return X.shape[1] if X.ndim == 3 else p // X.shape[1]


# Gradients ----------------------------------------------------------------------------


cdef void find_residuals(
    const Model *model, Py_ssize_t i, const double *theta
) noexcept nogil:
    """The derivatives of row i's loss by its outputs, at ``theta``, to ``logits``."""
    cdef Py_ssize_t d = model.d, c
    cdef const double *x = model.X + i * d
    cdef double *logits = model.logits
    cdef double target = model.y[i], top = -INFINITY, total = 0.0
    cdef bint is_class
    if model.projected:
        x = model.X + i * model.n_outputs * d
        for c in range(model.n_outputs):
            logits[c] = dot(theta, x + c * d, d)
            top = max(top, logits[c])
    else:
        for c in range(model.n_outputs):
            logits[c] = dot(theta + c * d, x, d)
            top = max(top, logits[c])
    if model.kind == IS_LINEAR:
        logits[0] = 2.0 * (logits[0] - target)
    elif model.kind == IS_LOGISTIC:
        is_class = target == 0.0 or target == 1.0
        logits[0] = 1.0 / (1.0 + exp(-logits[0])) - target if is_class else 0.0
    else:
        for c in range(model.n_outputs):
            logits[c] = exp(logits[c] - top)
            total += logits[c]
        for c in range(model.n_outputs):
            logits[c] = logits[c] / total - (1.0 if c == target else 0.0)


cdef double gradient_norm(const Model *model, Py_ssize_t i) noexcept nogil:
    """Norm of the gradient of row i's loss, from the derivatives by its outputs."""
    cdef Py_ssize_t d = model.d, k = model.n_outputs, a, c
    cdef const double *x
    cdef double g, squares = 0.0
    if not model.projected:
        x = model.X + i * d
        return sqrt(dot(model.logits, model.logits, k)) * sqrt(dot(x, x, d))
    x = model.X + i * k * d
    for a in range(d):
        g = 0.0
        for c in range(k):
            g += model.logits[c] * x[c * d + a]
        squares += g * g
    return sqrt(squares)


cdef bint add_gradient(
    const Model *model, Py_ssize_t i, const double *theta, double limit, double *out
) noexcept nogil:
    """Add the gradient of row i's loss, clipped to the norm ``limit``, to ``out``.

    A target that is not a class has a zero gradient with one output; with several it
    equals no class. With a finite limit, a gradient of non-finite norm, or too large to
    be scaled to the limit in double precision, adds nothing, and False is returned.
    """
    cdef Py_ssize_t d = model.d, a, c
    cdef const double *x
    cdef double factor = 1.0, norm, r
    find_residuals(model, i, theta)
    if limit < INFINITY:
        norm = gradient_norm(model, i)
        if not norm <= limit:
            factor = limit / norm
            if not factor > SMALLEST_FACTOR:  # also of NaN
                return False
    for c in range(model.n_outputs):
        r = factor * model.logits[c]
        if model.projected:
            x = model.X + (i * model.n_outputs + c) * d
            for a in range(d):
                out[a] += r * x[a]
        else:
            x = model.X + i * d
            for a in range(d):
                out[c * d + a] += r * x[a]
    return True


cdef bint add_rows(
    const Model *model, Py_ssize_t first, Py_ssize_t last, const double *theta,
    double limit, double *out,
) noexcept nogil:
    """Sum of the gradients of rows, each clipped, to ``out``; whether all are
    finite."""
    cdef bint finite = True
    cdef Py_ssize_t i, a
    for a in range(model.p):
        out[a] = 0.0
    for i in range(first, last):
        finite = add_gradient(model, i, theta, limit, out) and finite
    return finite


cdef bint clipped_gradient(
    const Model *model, Py_ssize_t first, Py_ssize_t last, const double *theta,
    double *out
) noexcept nogil:
    """Clipped gradient of the rows of a player; whether all their gradients are finite.

    With a finite clip, rows whose gradients are not finite count as zero.
    """
    cdef Py_ssize_t p = model.p, a
    cdef bint finite = True
    cdef double factor = 1.0 / (last - first), squares, total = 0.0
    if model.per_example:
        finite = add_rows(model, first, last, theta, model.clip, out)
    else:
        add_rows(model, first, last, theta, INFINITY, out)
        squares = dot(out, out, p) * (factor * factor)
        if model.clip < INFINITY and not isfinite(squares):
            finite = False
            add_rows(model, first, last, theta, LARGEST_NORM, out)
            squares = dot(out, out, p) * (factor * factor)
        if squares > model.clip * model.clip:
            factor *= model.clip / sqrt(squares)
    for a in range(p):
        out[a] *= factor
        total += fabs(out[a])
    if not isfinite(total):
        finite = False
        for a in range(p):
            out[a] = 0.0
    return finite


def player_gradients(
    int kind, X, const double[::1] y, const int64_t[::1] bounds, double clip,
    bint per_example, const int64_t[::1] players, const double[:, ::1] thetas,
    double[:, ::1] out,
):
    """Clipped gradients of the rows of players, each at its row of ``thetas``.

    Returns a mask of the players whose rows all have finite gradients.
    """
    X = np.ascontiguousarray(X)
    cdef Py_ssize_t p = out.shape[1], s, j
    cdef double[::1] logits = np.empty(_n_outputs(X, p))
    cdef Model model = model_of(kind, X, y, p, clip, per_example, logits)
    is_finite = np.empty(players.shape[0], dtype=bool)
    cdef uint8_t[::1] finite = is_finite.view(np.uint8)
    with nogil:
        for s in range(players.shape[0]):
            j = players[s]
            finite[s] = clipped_gradient(
                &model, bounds[j], bounds[j + 1], &thetas[s, 0], &out[s, 0]
            )
    return is_finite


# Walks --------------------------------------------------------------------------------


cdef void add_noise(
    double *gradient, const double *noise, double grid, Py_ssize_t p
) noexcept nogil:
    """Add noise to a clipped gradient, bitwise as `clip_and_noise`."""
    cdef double inverse = 1.0 / grid, largest = 4503599627370496.0 * grid  # both exact
    cdef double noisy
    cdef Py_ssize_t a
    for a in range(p):  # the grid is a power of two
        noisy = gradient[a] + noise[a]
        gradient[a] = rint(noisy * inverse) * grid if fabs(noisy) < largest else noisy


cdef void step(
    const double *theta, const double *release, double rate, double *past,
    double weight, double t, double *out, Py_ssize_t p,
) noexcept nogil:
    """``out = theta - rate * W``, with W as in `newest_weights`.

    ``past`` is the mean of the t - 1 previous releases of the player, which is updated
    to the mean of t; NULL if W is the release.
    """
    cdef double one = 1.0 / t, away
    cdef Py_ssize_t a
    if past == NULL:
        for a in range(p):
            out[a] = theta[a] - rate * release[a]
        return
    for a in range(p):
        away = release[a] - past[a]
        out[a] = theta[a] - rate * (past[a] + weight * away)
        past[a] += away * one


def walk(
    int kind, X, const double[::1] y, const int64_t[::1] bounds, double clip,
    bint per_example, const int64_t[::1] order, const double[::1] rates,
    const double[:, ::1] noise, const double[::1] grids, double[:, ::1] past,
    double weight, double t, double[:, ::1] thetas,
):
    """Take one step per player of ``order``, starting from ``thetas[0]``.

    ``rates`` are the lengths of the steps of all players. Returns the step at which a
    gradient is not finite (-1: none; with noise, rows whose gradients are not finite
    count as zero).
    """
    X = np.ascontiguousarray(X)
    cdef Py_ssize_t p = thetas.shape[1], s, j
    cdef double[::1] gradient = np.empty(p)
    cdef double[::1] logits = np.empty(_n_outputs(X, p))
    cdef Model model = model_of(kind, X, y, p, clip, per_example, logits)
    cdef Py_ssize_t lost = -1
    cdef double *mean
    cdef bint finite
    with nogil:
        for s in range(order.shape[0]):
            j = order[s]
            finite = clipped_gradient(
                &model, bounds[j], bounds[j + 1], &thetas[s, 0], &gradient[0]
            )
            if noise.shape[0]:
                add_noise(&gradient[0], &noise[s, 0], grids[j], p)
            elif not finite:  # with noise, an error would depend on private rows
                lost = s
                break
            mean = &past[j, 0] if past.shape[0] else NULL
            step(
                &thetas[s, 0], &gradient[0], rates[j], mean, weight, t,
                &thetas[s + 1, 0], p
            )
    return lost


# Utilities ----------------------------------------------------------------------------


cdef cloned add_exp(const double *x, double *out, Py_ssize_t n) noexcept nogil:
    """``out += exp(x)`` for x <= 0."""
    cdef Py_ssize_t i
    cdef double z
    for i in range(n):
        z = x[i] if x[i] > -700.0 else -700.0
        out[i] += exponential(z)


cdef cloned logistic_terms(
    const double *z, double *hinges, double *factors, Py_ssize_t n
) noexcept nogil:
    """The logistic losses of z: a hinge each, plus the logarithm of a factor.

    The hinge of NaN is NaN.
    """
    cdef Py_ssize_t i
    cdef double below
    for i in range(n):
        below = z[i] if z[i] < 0.0 else -z[i]
        hinges[i] = 0.0 if z[i] >= 0.0 else below
        below = below if below > -700.0 else -700.0
        factors[i] = 1.0 + exponential(below)


cdef cloned raise_to(const double *z, double *peak, Py_ssize_t n) noexcept nogil:
    """``peak = max(peak, z)``."""
    cdef Py_ssize_t i
    for i in range(n):
        peak[i] = z[i] if z[i] > peak[i] else peak[i]


cdef cloned subtract(
    const double *z, const double *peak, double *out, Py_ssize_t n
) noexcept nogil:
    """``out = z - peak``."""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = z[i] - peak[i]


cdef cloned multiply(const double *x, Py_ssize_t n, double *out) noexcept nogil:
    """The product of n numbers."""
    out[0] = product(x, n)


cdef cloned add_weighted(
    const double *weights, const double *x, Py_ssize_t n, double *sum
) noexcept nogil:
    """``sum += weights @ x``."""
    sum[0] += dot(weights, x, n)


cdef cloned add_weighted_squares(
    const double *weights, const double *x, const double *y, Py_ssize_t n, double *sum
) noexcept nogil:
    """``sum += weights @ (x - y) ** 2``, in 32 sums."""
    cdef double sums[32]
    cdef double away
    cdef Py_ssize_t i, j, whole = n & ~31
    for j in range(32):
        sums[j] = 0.0
    for i in range(0, whole, 32):
        for j in range(32):
            away = x[i + j] - y[i + j]
            sums[j] += weights[i + j] * away * away
    for i in range(whole, n):
        away = x[i] - y[i]
        sums[i - whole] += weights[i] * away * away
    for j in range(32):
        sum[0] += sums[j]


cdef double sum_logs(
    const double *factors, const double *weights, bint equal, double largest,
    Py_ssize_t m
) noexcept nogil:
    """Weighted sum of logarithms of factors between 1 and ``largest``."""
    cdef Py_ssize_t size, start, i
    cdef double total = 0.0, part
    if not equal:
        for i in range(m):
            total += weights[i] * log(factors[i])
        return total
    # The number of factors whose product does not overflow.
    size = max(1, <Py_ssize_t> (1000.0 / log2(largest + 1.0)))
    start = 0
    while start < m:
        multiply(factors + start, min(size, m - start), &part)
        total += log(part)
        start += size
    return weights[0] * total


cdef struct Points:  # the validation points, and memory of their number
    Py_ssize_t m
    Py_ssize_t n_outputs
    const double *y
    const double *weights
    bint equal
    double *below
    double *total
    double *peak


cdef double squared_loss(const Points *points, const double *Z) noexcept nogil:
    cdef double loss = 0.0
    add_weighted_squares(points.weights, Z, points.y, points.m, &loss)
    return loss


cdef double logistic_loss(const Points *points, const double *Z) noexcept nogil:
    cdef Py_ssize_t m = points.m
    cdef double *hinges = points.peak
    cdef double minus_hinges = 0.0
    logistic_terms(Z, hinges, points.total, m)
    add_weighted(points.weights, hinges, m, &minus_hinges)
    return sum_logs(
        points.total, points.weights, points.equal, 2.0, m
    ) - minus_hinges


cdef double softmax_loss(const Points *points, const double *Z) noexcept nogil:
    cdef double loss = 0.0
    cdef double *peak = points.peak
    cdef Py_ssize_t i, c, m = points.m
    for i in range(m):
        peak[i] = Z[i]
        points.total[i] = 0.0
    for c in range(1, points.n_outputs):
        raise_to(Z + c * m, peak, m)
    for i in range(m):
        points.below[i] = peak[i] - Z[<Py_ssize_t> points.y[i] * m + i]
    add_weighted(points.weights, points.below, m, &loss)
    for c in range(points.n_outputs):
        subtract(Z + c * m, peak, points.below, m)
        add_exp(points.below, points.total, m)
    return loss + sum_logs(
        points.total, points.weights, points.equal, points.n_outputs, m
    )


def loss_utilities(
    int kind, const double[:, :, ::1] Z, const double[::1] y, const double[::1] weights,
    bint equal, double[::1] out,
):
    """Negated mean losses, from outputs of shape (n_thetas, n_outputs, n_points).

    With one output for two classes, Z is negative where the prediction is wrong.
    """
    cdef Py_ssize_t m = Z.shape[2], t
    if m == 0:
        out[:] = 0.0
        return
    cdef double[:, ::1] memory = np.empty((3, m))
    cdef Points points = Points(
        m, Z.shape[1], &y[0], &weights[0], equal, &memory[0, 0], &memory[1, 0],
        &memory[2, 0],
    )
    with nogil:
        for t in range(Z.shape[0]):
            if kind == IS_LINEAR:
                out[t] = -squared_loss(&points, &Z[t, 0, 0])
            elif kind == IS_LOGISTIC:
                out[t] = -logistic_loss(&points, &Z[t, 0, 0])
            else:
                out[t] = -softmax_loss(&points, &Z[t, 0, 0])


cdef double credit(
    const double[:, :, ::1] Z, Py_ssize_t t, Py_ssize_t i, Py_ssize_t code
) noexcept nogil:
    """1 if the class of a point has the largest output, 1 / k if k classes have it."""
    cdef double correct = Z[t, code, i]
    cdef Py_ssize_t ties = 0, c
    for c in range(Z.shape[1]):
        if Z[t, c, i] > correct:
            return 0.0
        ties += Z[t, c, i] == correct
    return 1.0 / ties if ties else 0.0


def accuracy_utilities(
    int kind, const double[:, :, ::1] Z, const double[::1] y, const double[::1] weights,
    double[::1] out,
):
    """Accuracies, from outputs as in `loss_utilities`; k tied classes count 1 / k
    each."""
    cdef Py_ssize_t t, i
    cdef double right, z
    with nogil:
        for t in range(Z.shape[0]):
            right = 0.0
            for i in range(y.shape[0]):
                if kind == IS_LOGISTIC:
                    z = Z[t, 0, i]
                    right += weights[i] * (1.0 if z > 0 else 0.5 if z == 0 else 0.0)
                else:
                    right += weights[i] * credit(Z, t, i, <Py_ssize_t> y[i])
            out[t] = right
