"""Compiled loops of the soft KNN utilities of coalitions. Importing this imports numba."""

import numpy as np

from ..._utils.compiled import compiled

_NEGLIGIBLE = 1e-18
# The place of the only bit of a word: the top 6 bits of its product with a de Bruijn sequence.
_ONE, _DE_BRUIJN = np.uint64(1), np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.empty(64, np.int64)
_PLACE[(_ONE << np.arange(64, dtype=np.uint64)) * _DE_BRUIJN >> np.uint64(58)] = np.arange(64)


@compiled
def soft_knn(order, ranks, matches, masks, starts, members, ks, out):
    """Write the mean match of the min(K, s) nearest members, averaged over validation points."""
    n_points, n = order.shape
    top = ks[-1]
    nearest, words = np.empty(top, ranks.dtype), np.zeros((n + 63) // 64, np.uint64)
    for m in range(len(masks)):
        sums = out[m]
        sums[:] = 0.0
        mask, size = masks[m], starts[m + 1] - starts[m]
        kept = min(top, size)
        for v in range(n_points):
            if size * size < top * n:
                # Few members: sort their ranks as bits of words.
                rank, found, word = ranks[v], 0, 0
                for t in range(starts[m], starts[m + 1]):
                    r = rank[members[t]]
                    words[r >> 6] |= _ONE << np.uint64(r & 63)
                while found < kept:
                    bits = words[word]
                    while bits and found < kept:
                        low = bits & (~bits + _ONE)
                        nearest[found] = 64 * word + _PLACE[(low * _DE_BRUIJN) >> np.uint64(58)]
                        bits ^= low
                        found += 1
                    word += 1
                words[:] = 0
            else:
                # Many: walk through the rows from the nearest one on, without a branch.
                found, r, near = 0, 0, order[v]
                while found < kept:
                    nearest[found] = r
                    found += mask[near[r]]
                    r += 1
            total, at, match = 0.0, 0, matches[v]
            for c in range(len(ks)):
                while at < min(ks[c], kept):
                    total += match[nearest[at]]
                    at += 1
                sums[c] += total / at
        for c in range(len(ks)):
            sums[c] /= n_points


@compiled
def _few_nearer(population, drawn, ks, less, fewer):
    """P(X <= K - 1) and P(X <= K - 2), X of ``drawn`` ones of a population among its first t.

    By a recursion over t whose terms are all nonnegative: row t + 1 is drawn with probability
    (drawn - X) / (population - t). Returns the first t from which both are negligible.
    """
    top = ks[-1]
    p = np.zeros(top)
    p[0] = 1.0
    for t in range(population + 1):
        total, c = 0.0, 0
        for j in range(top):
            before = total
            total += p[j]
            if j + 1 == ks[c]:
                less[t, c], fewer[t, c] = total, before
                c += 1
        if total < _NEGLIGIBLE:
            return t
        inverse = 1.0 / max(population - t, 1)
        for j in range(top - 1, 0, -1):
            p[j] = (p[j] * (population - t - drawn + j) + p[j - 1] * (drawn - j + 1)) * inverse
        p[0] *= (population - t - drawn) * inverse
    return population + 1


@compiled
def rank_weights(stratum, p_inside, p_outside, ks):
    """Expected weight of the row at every rank in the soft KNN prediction, by rank of a player.

    Returns weights of shape (5, n, n_strata * n_ks): of the rows nearer than a player in S, of
    those farther, of the player itself; nearer and farther than a player that is not in S.
    """
    n, n_ks = len(stratum) - 1, len(ks)
    weights = np.zeros((5, n, (stratum.max() + 1) * n_ks))
    less, fewer = np.empty((n + 1, n_ks)), np.empty((n + 1, n_ks))
    for drawn in range(n - 1):
        if p_outside[drawn + 1] == 0.0 and max(p_inside[drawn + 1], p_inside[drawn + 2]) == 0.0:
            continue
        # Another row is a member, and `drawn` of the remaining n - 2 others are.
        last = _few_nearer(n - 2, drawn, ks, less, fewer)
        probability = (drawn + 1) / (n - 1)
        for inside in range(2):
            s = drawn + 1 + inside
            p = p_inside[s] if inside else p_outside[s]
            if p == 0.0:
                continue
            first = stratum[s] * n_ks
            nearer, farther = (weights[0], weights[1]) if inside else (weights[3], weights[4])
            for c in range(n_ks):
                factor = p * probability / min(ks[c], s)
                beyond = fewer if inside else less  # the player, in S, is one of the nearer ones
                for t in range(min(last, n)):
                    nearer[t, first + c] += factor * less[t, c]
                for t in range(min(last, n - 1)):
                    farther[t + 1, first + c] += factor * beyond[t, c]
        s = drawn + 1
        if p_inside[s] > 0.0:
            last, first = _few_nearer(n - 1, drawn, ks, less, fewer), stratum[s] * n_ks
            for c in range(n_ks):
                factor = p_inside[s] / min(ks[c], s)
                for t in range(min(last, n)):
                    weights[2, t, first + c] += factor * less[t, c]
    return weights


@compiled
def add_over_points(order, matches, nearer, farther, own, out):
    """Add every player's expected utility: prefix and suffix sums over the ranks of each point."""
    n_points, n = order.shape
    width = out.shape[1]
    for v in range(n_points):
        sums = np.zeros(width)
        for r in range(n):
            at, match = out[order[v, r]], matches[v, r]
            for q in range(width):
                at[q] += sums[q] + match * own[r, q]
                sums[q] += match * nearer[r, q]
        sums[:] = 0.0
        for r in range(n - 1, -1, -1):
            at, match = out[order[v, r]], matches[v, r]
            for q in range(width):
                at[q] += sums[q]
                sums[q] += match * farther[r, q]
    out /= n_points
