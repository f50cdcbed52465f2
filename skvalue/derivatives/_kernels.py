"""Compiled walks of generalised linear models, and their utilities. Importing imports numba.

A walk takes one gradient step per player along a permutation. Parameters are the coefficients of
all outputs, concatenated: one output for two classes and for regression, else one per class. If
they are coordinates in a subspace, X has three dimensions: a vector per row and output, whose
product with the coordinates is the output.
"""

import numpy as np

from .._utils.compiled import compiled, exp_parts

LOGISTIC, SOFTMAX, LINEAR = 0, 1, 2

_FAST = {"contract", "reassoc"}


# Functions take arrays and indices instead of slices, which take longer than a short gradient.


@compiled(fastmath=_FAST)
def add_gradient(kind, X, i, target, thetas, s, limit, logits, out):
    """Add the gradient of row i's loss at ``thetas[s]``, clipped to the norm ``limit``, to ``out``.

    A target that is not a class has a zero gradient with one output; with several it equals no
    class. With a finite limit, a gradient of non-finite norm adds nothing, and False is returned.
    """
    d, n_outputs = X.shape[-1], len(logits)
    top = -np.inf
    for c in range(n_outputs):
        z = 0.0
        if X.ndim == 2:
            for a in range(d):
                z += thetas[s, c * d + a] * X[i, a]
        else:
            for a in range(d):
                z += thetas[s, a] * X[i, c, a]
        logits[c] = z
        top = max(top, z)
    if kind == LINEAR:
        logits[0] = 2.0 * (logits[0] - target)
    elif kind == LOGISTIC:
        known = target == 0.0 or target == 1.0
        logits[0] = 1.0 / (1.0 + np.exp(-logits[0])) - target if known else 0.0
    else:
        total = 0.0
        for c in range(n_outputs):
            logits[c] = np.exp(logits[c] - top)
            total += logits[c]
        for c in range(n_outputs):
            logits[c] = logits[c] / total - (1.0 if c == target else 0.0)
    factor = 1.0
    if limit < np.inf:
        squared, length = 0.0, 1.0
        if X.ndim == 2:
            length = 0.0
            for c in range(n_outputs):
                squared += logits[c] * logits[c]
            for a in range(d):
                length += X[i, a] * X[i, a]
        else:
            for a in range(d):
                g = 0.0
                for c in range(n_outputs):
                    g += logits[c] * X[i, c, a]
                squared += g * g
        norm = np.sqrt(squared) * np.sqrt(length)
        if not np.isfinite(norm):
            return False
        if norm > limit:
            factor = limit / norm
    for c in range(n_outputs):
        r = factor * logits[c]
        if X.ndim == 2:
            for a in range(d):
                out[c * d + a] += r * X[i, a]
        else:
            for a in range(d):
                out[a] += r * X[i, c, a]
    return True


@compiled(fastmath=_FAST)
def player_gradient(kind, X, y, first, last, thetas, s, clip, per_example, logits, out):
    """Clipped gradient of the rows of a player; returns whether all their gradients are finite."""
    p, finite = len(out), True
    for a in range(p):
        out[a] = 0.0
    limit = clip if per_example else np.inf
    for i in range(first, last):
        finite &= add_gradient(kind, X, i, y[i], thetas, s, limit, logits, out)
    factor = 1.0 / (last - first)
    if not per_example:
        squared = 0.0
        for a in range(p):
            squared += out[a] * out[a]
        squared *= factor * factor
        if squared > clip * clip:
            factor *= clip / np.sqrt(squared)
    total = 0.0
    for a in range(p):
        out[a] *= factor
        total += abs(out[a])
    if not np.isfinite(total):
        finite = False
        for a in range(p):
            out[a] = 0.0
    return finite


@compiled
def add_noise(gradient, noise, s, grid):
    """Add noise to a clipped gradient, bitwise as `clip_and_noise` (so no fastmath)."""
    inverse, largest = 1.0 / grid, 2.0**52 * grid  # both exact: the grid is a power of two
    for a in range(len(gradient)):
        noisy = gradient[a] + noise[s, a]
        gradient[a] = np.rint(noisy * inverse) * grid if abs(noisy) < largest else noisy


@compiled(fastmath=_FAST)
def step(thetas, s, release, rate, past, j, weight, t):
    """``thetas[s + 1] = thetas[s] - rate * W``, with W as in `newest_weights`.

    ``past[j]`` is the mean of the t - 1 previous releases, and is updated to the mean of t.
    """
    p = len(release)
    if len(past) == 0:
        for a in range(p):
            thetas[s + 1, a] = thetas[s, a] - rate * release[a]
        return
    one = 1.0 / t
    for a in range(p):
        away = release[a] - past[j, a]
        thetas[s + 1, a] = thetas[s, a] - rate * (past[j, a] + weight * away)
        past[j, a] += away * one


@compiled
def walk(kind, X, y, bounds, clip, per_example, order, rate, noise, grids, past, weight, t, thetas):
    """Take one step per player of ``order``, starting from ``thetas[0]``.

    Returns the step at which a gradient is not finite (-1: none; with noise it is zero).
    """
    gradient = np.empty(thetas.shape[1])
    logits = np.empty(X.shape[1] if X.ndim == 3 else thetas.shape[1] // X.shape[1])
    for s in range(len(order)):
        j = order[s]
        finite = player_gradient(
            kind, X, y, bounds[j], bounds[j + 1], thetas, s, clip, per_example, logits, gradient
        )
        if len(noise):
            add_noise(gradient, noise, s, grids[j])
        elif not finite:  # with noise, an error would depend on private rows
            return s
        step(thetas, s, gradient, rate, past, j, weight, t)
    return -1


@compiled(fastmath=_FAST)
def add_exp(x, bits, powers, poly, out):
    """``out += exp(x)`` for x <= 0, in vectorised loops (libm's exp is not)."""
    for i in range(len(x)):
        z = max(x[i], -700.0)
        poly[i], bits[i] = exp_parts(z)
    for i in range(len(x)):
        out[i] += poly[i] * powers[i]


@compiled(fastmath=_FAST)
def sum_logs(factors, weights, equal, most):
    """Weighted sum of logarithms of factors between 1 and ``most``."""
    total, m = 0.0, len(factors)
    if not equal:
        for i in range(m):
            total += weights[i] * np.log(factors[i])
        return total
    size = max(1, int(1000.0 / np.log2(most + 1.0)))  # factors whose product does not overflow
    for start in range(0, m, size):
        product = 1.0
        for i in range(start, min(start + size, m)):
            product *= factors[i]
        total += np.log(product)
    return weights[0] * total


@compiled(fastmath=_FAST)
def loss_utilities(kind, Z, y, weights, equal, out):
    """Negated mean losses, from outputs of shape (n_thetas, n_outputs, n_points).

    With one output for two classes, Z is negative where the prediction is wrong.
    """
    n_outputs, m = Z.shape[1:]
    bits = np.empty(m, np.int64)
    powers, poly, below, total = bits.view(np.float64), np.empty(m), np.empty(m), np.empty(m)
    for t in range(len(Z)):
        loss = 0.0
        if kind == LINEAR:
            for i in range(m):
                away = Z[t, 0, i] - y[i]
                loss += weights[i] * away * away
        elif kind == LOGISTIC:
            for i in range(m):
                below[i] = -abs(Z[t, 0, i])
                loss += weights[i] * max(-Z[t, 0, i], 0.0)
                total[i] = 1.0
            add_exp(below, bits, powers, poly, total)
            loss += sum_logs(total, weights, equal, 2.0)
        else:
            top = poly  # shares its memory, until `add_exp` uses that
            peak = np.empty(m)
            for i in range(m):
                top[i] = Z[t, 0, i]
            for c in range(1, n_outputs):
                for i in range(m):
                    top[i] = max(top[i], Z[t, c, i])
            for i in range(m):
                peak[i] = top[i]
                total[i] = 0.0
                loss += weights[i] * (peak[i] - Z[t, int(y[i]), i])
            for c in range(n_outputs):
                for i in range(m):
                    below[i] = Z[t, c, i] - peak[i]
                add_exp(below, bits, powers, poly, total)
            loss += sum_logs(total, weights, equal, n_outputs)
        out[t] = -loss


@compiled
def accuracy_utilities(kind, Z, y, weights, out):
    """Accuracies, from outputs as in `loss_utilities`; k tied classes count 1 / k each."""
    for t in range(len(Z)):
        right = 0.0
        for i in range(len(y)):
            if kind == LOGISTIC:
                z = Z[t, 0, i]
                right += weights[i] * (1.0 if z > 0 else 0.5 if z == 0 else 0.0)
                continue
            correct, ties = Z[t, int(y[i]), i], 0
            for c in range(Z.shape[1]):
                if Z[t, c, i] > correct:
                    ties = 0
                    break
                ties += Z[t, c, i] == correct
            if ties:
                right += weights[i] / ties
        out[t] = right
