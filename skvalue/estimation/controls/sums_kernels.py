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
def count_functions(starts, members, codes, weights, log, out):
    """Sums over classes of ``1[n_c = 0]`` and ``log((n_c + 1) / (s + C))``; log[x] = log(x + 1)."""
    n_sums, n_classes = weights.shape
    counts = np.empty(n_classes, np.int64)
    for m in range(len(out)):
        counts[:] = 0
        for t in range(starts[m], starts[m + 1]):
            counts[codes[members[t]]] += 1
        log_total = log[starts[m + 1] - starts[m] + n_classes - 1]
        for w in range(n_sums):
            missing, logs = 0.0, 0.0
            for c in range(n_classes):
                missing += weights[w, c] * (counts[c] == 0)
                logs += weights[w, c] * (log[counts[c]] - log_total)
            out[m, w], out[m, n_sums + w] = missing, logs


@compiled
def _hypergeometric(population, good, drawn, more, log):
    """P(X + more = 0) and E log(X + more + 1), X good ones among those drawn.

    From the mode outwards by the ratio of consecutive probabilities: nothing overflows.
    """
    low, high = max(0, drawn - (population - good)), min(drawn, good)
    mode = min(max((drawn + 1) * (good + 1) // (population + 2), low), high)
    total, logs, zero = 1.0, log[mode + more], 1.0 * (mode + more == 0)
    for step in (1, -1):
        x, p = mode, 1.0
        while low <= x + step <= high:
            if step == 1:
                p *= (good - x) * (drawn - x) / ((x + 1.0) * (population - good - drawn + x + 1))
            else:
                p *= x * (population - good - drawn + x) / ((good - x + 1.0) * (drawn - x + 1))
            x += step
            total += p
            logs += p * log[x + more]
            if x + more == 0:
                zero = p
            if p < 1e-20:
                break
    return zero / total, logs / total


@compiled
def count_expectations(stratum, probabilities, totals, inside, log, out):
    """Add expectations over sizes of functions of the count of a class.

    ``out[k, t, same]``: of ``1[count = 0]`` and ``log(count + 1)`` in stratum k, for a class of
    ``totals[t]`` players that the given player belongs to or not.
    """
    n = len(stratum) - 1
    for s in range(1, n):
        p = probabilities[s]
        if p == 0.0:
            continue
        for t in range(len(totals)):
            for same in range(2):
                good = totals[t] - same
                if good < 0:
                    continue
                zero, logs = _hypergeometric(n - 1, good, s - inside, same * inside, log)
                out[stratum[s], t, same, 0] += p * zero
                out[stratum[s], t, same, 1] += p * logs
