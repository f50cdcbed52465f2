"""Compiled loops of the batched ridge regression. Importing this imports numba."""

import numpy as np

from .._utils.compiled import compiled
from .logistic_kernels import invert, rank_joins

_SAFE = 1e-7  # smallest pivot of a matrix with a unit diagonal that is inverted
_FRESH = 100  # rank-one updates after which an inverse is recomputed


@compiled
def gram(X, y, w, mask, matrix, right):
    """``X' w X`` and ``X' w y`` of a coalition."""
    rows = np.flatnonzero(mask)
    part = X[rows]
    weighted = part * w[rows].reshape(len(rows), 1)
    np.dot(weighted.T, part, matrix)
    right[:] = np.dot(y[rows], weighted)


@compiled
def penalised_inverse(inverse, penalty, column):
    """Replace a matrix by the inverse of it plus diag(penalty); False if nearly singular."""
    p = len(penalty)
    for a in range(p):
        inverse[a, a] += penalty[a]
        column[a] = inverse[a, a]
    scale = np.empty(p)
    for a in range(p):
        if not column[a] > 0:
            return False
        scale[a] = 1.0 / np.sqrt(column[a])
    for a in range(p):  # scaled to a unit diagonal: columns may have any unit
        for b in range(p):
            inverse[a, b] *= scale[a] * scale[b]
    invert(inverse, column)
    worst = 0.0
    for a in range(p):
        worst = max(worst, abs(inverse[a, a]))
    if not worst < 1.0 / _SAFE:
        return False
    for a in range(p):
        for b in range(p):
            inverse[a, b] *= scale[a] * scale[b]
    return True


@compiled
def ridge_tile(X, y, w, penalty, masks, nearby, widest, grams, rights, numbers, coefs):
    """Coefficients of every coalition of a tile; returns a mask of those that were computed.

    A coalition that differs from the one before in at most ``nearby`` rows is computed from it;
    others may have matrices in ``grams`` and ``rights`` at ``numbers`` (-1: none). Matrices that
    may have a condition number above ``widest`` are skipped.
    """
    n, p = X.shape
    inverse, right = np.empty((p, p)), np.empty(p)
    work = np.empty(p)
    solved = np.zeros(len(masks), np.bool_)
    old = np.zeros(n, np.bool_)
    warm, changes = False, 0
    for c in range(len(masks)):
        mask = masks[c]
        differ = 0
        for i in range(n):
            differ += mask[i] != old[i]
        warm = warm and differ <= nearby and changes < _FRESH
        if warm:
            for i in range(n):
                if mask[i] != old[i]:
                    weight = w[i] if mask[i] else -w[i]
                    warm = warm and rank_joins(inverse, X[i], weight, work)
                    for a in range(p):
                        right[a] += weight * y[i] * X[i, a]
                    changes += 1
        if not warm:
            at = numbers[c]
            if at < 0:
                gram(X, y, w, mask, inverse, right)
            else:
                k = 0
                for a in range(p):
                    for b in range(a + 1):
                        inverse[a, b] = inverse[b, a] = grams[at, k]
                        k += 1
                right[:] = rights[at]
            warm = penalised_inverse(inverse, penalty, work)
            changes = 0
        old[:] = mask
        solved[c] = warm
        if warm and widest < np.inf:
            trace = inverse_trace = 0.0  # their product bounds the condition number
            for a in range(p):
                trace += penalty[a]
                inverse_trace += inverse[a, a]
            for i in range(n):
                if mask[i]:
                    trace += w[i] * np.dot(X[i], X[i])
            solved[c] = trace * inverse_trace < widest
        if solved[c]:
            np.dot(inverse, right, coefs[c])
        else:
            coefs[c] = 0.0
    return solved
