"""Compiled loops of the control variates. Importing this imports numba."""

import numpy as np

from ..._utils.compiled import compiled


@compiled
def members_of(masks):
    """Players of all coalitions, in order, and where those of each coalition start."""
    n_masks, n = masks.shape
    starts = np.zeros(n_masks + 1, np.int64)
    for m in range(n_masks):
        size = 0
        for j in range(n):
            size += masks[m, j]
        starts[m + 1] = starts[m] + size
    members = np.empty(starts[n_masks] + 1, np.int32)
    for m in range(n_masks):
        at = starts[m]
        for j in range(n):  # without a branch: the next player overwrites one that is no member
            members[at] = j
            at += masks[m, j]
    return starts, members


@compiled
def column_means(starts, members, phi, out):
    """Means of the rows of ``phi`` over the members of every coalition."""
    for m in range(len(out)):
        total = out[m]
        total[:] = 0.0
        for t in range(starts[m], starts[m + 1]):
            row = phi[members[t]]
            for c in range(phi.shape[1]):
                total[c] += row[c]
        size = starts[m + 1] - starts[m]
        for c in range(phi.shape[1]):
            total[c] /= size


@compiled
def _add_functions(factor, count, size, log, out):
    """Add functions of the number of members of a class; log[x] is log(x + 1)."""
    out[0] += factor * (count == 0)
    out[1] += factor * (count <= 1)
    out[2] += factor * (count <= 3)
    out[3] += factor * (0.5 * (2 * count >= size) + 0.5 * (2 * count > size))
    out[4] += factor * log[count]


@compiled
def count_functions(starts, members, codes, weights, log, out):
    """Weighted sums over classes of functions of their counts, of shape (m, n_sums, 5)."""
    n_sums, n_classes = weights.shape
    counts = np.empty(n_classes, np.int64)
    for m in range(len(out)):
        counts[:] = 0
        out[m] = 0.0
        size = starts[m + 1] - starts[m]
        for t in range(starts[m], starts[m + 1]):
            counts[codes[members[t]]] += 1
        for w in range(n_sums):
            for c in range(n_classes):
                _add_functions(weights[w, c], counts[c], size, log, out[m, w])
                out[m, w, 4] -= weights[w, c] * log[size + n_classes - 1]


@compiled
def _add_hypergeometric(factor, population, good, drawn, more, size, log, out):
    """Add E f(X + more, size) for the functions f of counts, X good ones among those drawn.

    From the mode outwards by the ratio of consecutive probabilities: nothing overflows.
    """
    low, high = max(0, drawn - (population - good)), min(drawn, good)
    mode = min(max((drawn + 1) * (good + 1) // (population + 2), low), high)
    total, sums = 1.0, np.zeros(len(out))
    _add_functions(1.0, mode + more, size, log, sums)
    for step in (1, -1):
        x, p = mode, 1.0
        while low <= x + step <= high:
            if step == 1:
                p *= (good - x) * (drawn - x) / ((x + 1.0) * (population - good - drawn + x + 1))
            else:
                p *= x * (population - good - drawn + x) / ((good - x + 1.0) * (drawn - x + 1))
            x += step
            total += p
            _add_functions(p, x + more, size, log, sums)
            if p < 1e-20:
                break
    for f in range(len(out)):
        out[f] += factor * sums[f] / total


@compiled
def count_expectations(stratum, probabilities, totals, inside, log, out):
    """Add expectations over sizes of functions of the count of a class.

    ``out[k, t, same]``, of shape (5,): in stratum k, for a class of ``totals[t]`` players that the
    given player belongs to or not.
    """
    n = len(stratum) - 1
    for s in range(1, n):
        p = probabilities[s]
        if p == 0.0:
            continue
        for t in range(len(totals)):
            for same in range(min(2, totals[t] + 1)):
                good, sums = totals[t] - same, out[stratum[s], t, same]
                _add_hypergeometric(p, n - 1, good, s - inside, same * inside, s, log, sums)
