# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of the soft KNN utilities of coalitions."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

# The place of the only bit of a word: the top 6 bits of its product with a de Bruijn
# sequence.
cdef uint64_t de_bruijn = 0x03F79D71B4CB0A89
cdef Py_ssize_t place[64]
cdef Py_ssize_t _bit
for _bit in range(64):
    place[((<uint64_t> 1 << _bit) * de_bruijn) >> 58] = _bit


cdef void nearest_by_bits(
    const int32_t *rank, const int32_t *members, Py_ssize_t size, Py_ssize_t n_kept,
    uint64_t *words, Py_ssize_t n_words, Py_ssize_t *nearest,
) noexcept nogil:
    """The smallest ranks of few members: ranks are sorted as bits of words."""
    cdef Py_ssize_t t, n_found = 0, word = 0
    cdef uint64_t bits, low
    for t in range(size):
        words[rank[members[t]] >> 6] |= <uint64_t> 1 << (rank[members[t]] & 63)
    while n_found < n_kept:
        bits = words[word]
        while bits and n_found < n_kept:
            low = bits & (~bits + 1)
            nearest[n_found] = 64 * word + place[(low * de_bruijn) >> 58]
            bits ^= low
            n_found += 1
        word += 1
    for word in range(n_words):
        words[word] = 0


cdef void nearest_by_walk(
    const int32_t *order, const uint8_t *mask, Py_ssize_t n_kept, Py_ssize_t *nearest
) noexcept nogil:
    """The smallest ranks of many members: a walk from the nearest row on."""
    cdef Py_ssize_t n_found = 0, r = 0
    while n_found < n_kept:  # without a branch on the mask
        nearest[n_found] = r
        n_found += mask[order[r]]
        r += 1


def soft_knn(
    const int32_t[:, ::1] order, const int32_t[:, ::1] ranks,
    const double[:, ::1] matches, masks, const int64_t[::1] starts,
    const int32_t[::1] members, const int64_t[::1] ks, double[:, ::1] out,
):
    """Write the mean match of the min(K, s) nearest members, averaged over points."""
    cdef const uint8_t[:, ::1] is_in = np.ascontiguousarray(masks).view(np.uint8)
    cdef Py_ssize_t n_points = order.shape[0], n = order.shape[1], n_ks = ks.shape[0]
    cdef Py_ssize_t largest = ks[n_ks - 1], n_words = (n + 63) // 64
    cdef Py_ssize_t[::1] nearest = np.empty(largest + 1, np.intp)
    cdef uint64_t[::1] words = np.zeros(n_words, np.uint64)
    cdef Py_ssize_t m, v, c, at, size, n_kept
    cdef double total
    with nogil:
        for m in range(is_in.shape[0]):
            for c in range(n_ks):
                out[m, c] = 0.0
            size = starts[m + 1] - starts[m]
            n_kept = min(largest, size)
            for v in range(n_points):
                if size * size < largest * n:
                    nearest_by_bits(
                        &ranks[v, 0], &members[starts[m]], size, n_kept, &words[0],
                        n_words, &nearest[0],
                    )
                else:
                    nearest_by_walk(&order[v, 0], &is_in[m, 0], n_kept, &nearest[0])
                total = 0.0
                at = 0
                for c in range(n_ks):
                    while at < min(<Py_ssize_t> ks[c], n_kept):
                        total += matches[v, nearest[at]]
                        at += 1
                    out[m, c] += total / at
            for c in range(n_ks):
                out[m, c] /= n_points


cdef Py_ssize_t few_nearer(
    Py_ssize_t population, Py_ssize_t drawn, const int64_t[::1] ks, double[::1] p,
    double[:, ::1] less, double[:, ::1] fewer,
) noexcept nogil:
    """P(X <= K - 1) and P(X <= K - 2) for all K of ``ks`` and every t.

    X is the number of ``drawn`` ones of a population among its first t. By a recursion
    over t whose terms are all nonnegative: row t + 1 is drawn with probability
    (drawn - X) / (population - t). Returns the first t from which both are negligible.
    """
    cdef Py_ssize_t largest = p.shape[0], t, j, c
    cdef double total, before, inverse
    for j in range(largest):
        p[j] = 0.0
    p[0] = 1.0
    for t in range(population + 1):
        total = 0.0
        c = 0
        for j in range(largest):
            before = total
            total += p[j]
            if j + 1 == ks[c]:
                less[t, c] = total
                fewer[t, c] = before
                c += 1
        if total < 1e-18:
            return t
        inverse = 1.0 / max(population - t, 1)
        for j in range(largest - 1, 0, -1):
            p[j] = (
                p[j] * (population - t - drawn + j) + p[j - 1] * (drawn - j + 1)
            ) * inverse
        p[0] *= (population - t - drawn) * inverse
    return population + 1


def rank_weights(
    const int64_t[::1] stratum, const double[::1] p_inside, const double[::1] p_outside,
    const int64_t[::1] ks,
):
    """Expected weight of the row at every rank in the soft KNN prediction.

    Returns weights of shape (5, n, n_strata * n_ks), by rank of a player: of the rows
    nearer than a player in S, of those farther, of the player itself; nearer and
    farther than a player that is not in S.
    """
    cdef Py_ssize_t n = stratum.shape[0] - 1, n_ks = ks.shape[0]
    cdef Py_ssize_t drawn, last, inside, s, first, c, t, nearer, farther
    cdef double probability, p, factor
    array = np.zeros((5, n, (max(stratum) + 1) * n_ks))
    cdef double[:, :, ::1] weights = array
    cdef double[:, ::1] less = np.empty((n + 1, n_ks))
    cdef double[:, ::1] fewer = np.empty((n + 1, n_ks))
    cdef double[::1] chain = np.empty(ks[n_ks - 1])
    with nogil:
        for drawn in range(n - 1):
            if p_outside[drawn + 1] == 0.0 and (
                max(p_inside[drawn + 1], p_inside[drawn + 2]) == 0.0
            ):
                continue
            # Another row is a member, and `drawn` of the remaining n - 2 others are.
            last = few_nearer(n - 2, drawn, ks, chain, less, fewer)
            probability = <double> (drawn + 1) / <double> (n - 1)
            for inside in range(2):
                s = drawn + 1 + inside
                p = p_inside[s] if inside else p_outside[s]
                if p == 0.0:
                    continue
                first = stratum[s] * n_ks
                nearer = 0 if inside else 3
                farther = nearer + 1
                for c in range(n_ks):
                    factor = p * probability / min(<Py_ssize_t> ks[c], s)
                    for t in range(min(last, n)):
                        weights[nearer, t, first + c] += factor * less[t, c]
                    for t in range(min(last, n - 1)):
                        # The player, if in S, is one of the nearer ones.
                        weights[farther, t + 1, first + c] += factor * (
                            fewer[t, c] if inside else less[t, c]
                        )
            s = drawn + 1
            if p_inside[s] > 0.0:
                last = few_nearer(n - 1, drawn, ks, chain, less, fewer)
                first = stratum[s] * n_ks
                for c in range(n_ks):
                    factor = p_inside[s] / min(<Py_ssize_t> ks[c], s)
                    for t in range(min(last, n)):
                        weights[2, t, first + c] += factor * less[t, c]
    return array


def add_over_points(
    const int32_t[:, ::1] order, const double[:, ::1] matches,
    const double[:, ::1] nearer, const double[:, ::1] farther, const double[:, ::1] own,
    double[:, ::1] out,
):
    """Add every player's expected utility: sums over the ranks before and after it."""
    cdef Py_ssize_t n_points = order.shape[0], n = order.shape[1], width = out.shape[1]
    cdef Py_ssize_t v, r, q
    cdef double match
    cdef double *line
    cdef double[::1] sums = np.zeros(width)
    if width == 0:
        return
    with nogil:
        for v in range(n_points):
            for q in range(width):
                sums[q] = 0.0
            for r in range(n):
                line = &out[order[v, r], 0]
                match = matches[v, r]
                for q in range(width):
                    line[q] += sums[q] + match * own[r, q]
                    sums[q] += match * nearer[r, q]
            for q in range(width):
                sums[q] = 0.0
            for r in range(n - 1, -1, -1):
                line = &out[order[v, r], 0]
                match = matches[v, r]
                for q in range(width):
                    line[q] += sums[q]
                    sums[q] += match * farther[r, q]
        for r in range(out.shape[0]):
            for q in range(width):
                out[r, q] /= n_points
