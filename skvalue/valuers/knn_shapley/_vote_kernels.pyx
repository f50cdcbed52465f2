# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of KNN-Shapley for a (weighted) majority vote.

All sums are of signed integer weights: positive for rows of the right class. A table
entry ``below[l, x]`` is the probability that a random set of l of the first p rows has
a sum less than ``x - middle``. Rows differ for each other by their signed weights
alone, of which there are few: the table without one row follows from the table with it,
so that a point takes time linear in the number of rows.
"""

from libc.math cimport rint
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

import numpy as np

ctypedef fused label:
    uint8_t
    uint16_t
    uint32_t
    int64_t


cdef struct Game:  # the numbers of `VoteTables`, and memory
    Py_ssize_t k  # neighbours that vote
    Py_ssize_t reach  # the largest weight
    double empty
    const double *steps
    Py_ssize_t width  # of a line of the tables
    Py_ssize_t middle
    Py_ssize_t n_levels
    double *below  # (n_levels, width)
    double *mixed  # (n_levels, width)
    Py_ssize_t n_tied  # at most: of the rows that are tied with each other
    double *sums  # (n_levels, n_tied, width)
    double *gains  # by signed weight, from -reach on
    uint8_t *present


cdef struct Rows:  # of two classes, in order of distance from a point
    Py_ssize_t n
    const int64_t *signed_weights
    const uint8_t *first  # False for rows that are tied with the one before them


cdef inline Py_ssize_t row_of(int32_t i) noexcept nogil:
    return i ^ (i >> 31)  # i, or ~i if it is negative


cdef inline int64_t size_of(int64_t weight) noexcept nogil:
    return -weight if weight < 0 else weight


cdef double hypergeometric_pmf(
    Py_ssize_t total, Py_ssize_t marked, Py_ssize_t draws, Py_ssize_t hits
) noexcept nogil:
    """Probability of that many marked ones in draws without replacement."""
    cdef double p = 1.0
    cdef Py_ssize_t i
    if hits > marked or draws - hits > total - marked:
        return 0.0
    for i in range(hits):
        p *= <double> (draws - i) / <double> (hits - i) * (
            <double> (marked - i) / <double> (total - i)
        )
    for i in range(draws - hits):
        p *= <double> (total - marked - i) / <double> (total - hits - i)
    return p


cdef double without(
    const Game *game, const double *below, Py_ssize_t p, Py_ssize_t weight,
    Py_ssize_t level, Py_ssize_t x,
) noexcept nogil:
    """Probability that a sum is less than x, for ``level`` of p rows but one.

    The row that is left out has the signed weight ``weight``.
    """
    cdef Py_ssize_t middle = game.middle, width = game.width, s
    cdef double value, entry
    if 2 * level <= p:
        # From smaller sets: no factor exceeds 1, so that errors do not grow.
        value = 1.0 if x - level * weight > 0 else 0.0
        for s in range(1, level + 1):
            entry = below[s * width + middle + x - (level - s) * weight]
            value = (p * entry - s * value) / (p - s)
        return value

    value = 0.0  # from larger sets
    for s in range(p, level, -1):
        entry = below[s * width + middle + x + (s - level) * weight]
        value = (p * entry - (p - s) * value) / s
    return value


cdef void add_row(
    const Game *game, Py_ssize_t p, Py_ssize_t weight, Py_ssize_t largest_set
) noexcept nogil:
    """Update the table for one more row, the p-th."""
    cdef Py_ssize_t s, x, first, last
    cdef double stay, join
    cdef double *line
    cdef const double *smaller
    for s in range(largest_set, 0, -1):
        stay = <double> (p - s) / <double> p
        join = <double> s / <double> p
        line = game.below + s * game.width
        smaller = line - game.width - weight
        first = game.middle - s * game.reach + 1
        last = game.middle + s * game.reach
        for x in range(first, last + 1):
            line[x] = stay * line[x] + join * smaller[x]


cdef void sums_with_tied(
    const Game *game, Py_ssize_t largest_set, Py_ssize_t weight, Py_ssize_t total,
    Py_ssize_t right,
) noexcept nogil:
    """``sums[s, a]``: as ``below[s]``, with a of the s rows drawn from tied ones."""
    cdef Py_ssize_t s, a, g, x, shift, last = game.width - 1
    cdef double p
    cdef double *sums
    cdef const double *below
    for s in range(largest_set + 1):
        for a in range(min(s, total) + 1):
            sums = game.sums + (s * game.n_tied + a) * game.width
            below = game.below + (s - a) * game.width
            memset(sums, 0, game.width * sizeof(double))
            for g in range(a + 1):
                p = hypergeometric_pmf(total, right, a, g)
                if p > 0.0:
                    shift = weight * (2 * g - a)
                    for x in range(last + 1):
                        sums[x] += p * below[min(max(x - shift, 0), last)]


cdef void average_over_orders(
    const Game *game, Py_ssize_t before, Py_ssize_t ahead, Py_ssize_t largest_set
) noexcept nogil:
    """The table for the rows before a tie and ``ahead`` of the tied ones, at random."""
    cdef Py_ssize_t s, a, x
    cdef double p
    cdef double *line
    cdef const double *sums
    for s in range(largest_set + 1):
        line = game.mixed + s * game.width
        memset(line, 0, game.width * sizeof(double))
        for a in range(min(s, ahead) + 1):
            p = hypergeometric_pmf(before + ahead, ahead, s, a)
            if p > 0.0:
                sums = game.sums + (s * game.n_tied + a) * game.width
                for x in range(game.width):
                    line[x] += p * sums[x]


cdef inline Py_ssize_t largest_set_size(Py_ssize_t p, Py_ssize_t k) noexcept nogil:
    """Size of the largest sets of p rows that `without` needs."""
    return p if p < 2 * (k - 1) else k - 1


cdef void replace(
    const Game *game, const double *below, Py_ssize_t p, Py_ssize_t weight,
    double factor
) noexcept nogil:
    """Add what rows of each weight gain where they replace the next of the nearest
    rows."""
    cdef Py_ssize_t u, reach = game.reach
    cdef double change
    for u in range(-reach, reach + 1):
        if u != weight and game.present[u + reach]:
            change = without(game, below, p, u, game.k - 1, -weight)
            change -= without(game, below, p, u, game.k - 1, -u)
            game.gains[u + reach] += factor * change


cdef double replace_by_tied(
    const Game *game, Py_ssize_t p, Py_ssize_t weight, Py_ssize_t size, Py_ssize_t right
) noexcept nogil:
    """As `replace`, by rows that are tied.

    Returns what a tied row gains by one of another class. The mean over all orders of
    the tied rows: the one replaced is any of them, and those ahead of it are a random
    set of the others.
    """
    cdef Py_ssize_t k = game.k, sign, number, ahead, a
    cdef Py_ssize_t largest_set = min(p + size - 1, max(k - 1, 2 * k - 3))
    cdef double factor, probability, gain = 0.0
    cdef const double *line
    for sign in range(-1, 2, 2):
        number = right if sign > 0 else size - right
        if not number:
            continue
        sums_with_tied(game, largest_set, weight, size - 1, right - (sign > 0))
        for ahead in range(size):
            if p + ahead >= k:
                average_over_orders(game, p, ahead, largest_set_size(p + ahead, k))
                factor = game.steps[p + ahead] * number / size
                replace(game, game.mixed, p + ahead, sign * weight, factor)

    if weight and 0 < right < size:
        sums_with_tied(game, k - 1, weight, size - 2, right - 1)
        for ahead in range(max(1, k - p), size):  # of which one is the row that gains
            factor = game.steps[p + ahead] * ahead / (size - 1.0) / size
            for a in range(min(k - 1, ahead - 1) + 1):
                probability = hypergeometric_pmf(p + ahead - 1, ahead - 1, k - 1, a)
                if probability > 0.0:
                    line = game.sums + ((k - 1) * game.n_tied + a) * game.width
                    gain += factor * probability * (
                        line[game.middle + weight] - line[game.middle - weight]
                    )
    return gain


cdef double majority(const Rows *rows, Py_ssize_t k, double empty) noexcept nogil:
    """Utility of all rows: the probability that the k nearest have no negative sum."""
    cdef Py_ssize_t n = rows.n, start = 0, stop = 0, r, g, draws, size, right = 0
    cdef int64_t total = 0, weight
    cdef double utility = 0.0
    if n == 0:
        return empty
    while start < n:
        stop = start + 1
        while stop < n and not rows.first[stop]:
            stop += 1
        if stop >= k or stop == n:
            break
        for r in range(start, stop):
            total += rows.signed_weights[r]
        start = stop

    size = stop - start
    weight = size_of(rows.signed_weights[start])
    for r in range(start, stop):
        right += rows.signed_weights[r] > 0
    draws = min(k, stop) - start
    for g in range(draws + 1):
        if total + weight * (2 * g - draws) >= 0:
            utility += hypergeometric_pmf(size, right, draws, g)
    return utility


cdef void binary_values(
    const Game *game, const Rows *rows, const double *sizes, double *values
) noexcept nogil:
    """Values of rows of two classes at a point."""
    cdef Py_ssize_t n = rows.n, k = game.k, reach = game.reach, middle = game.middle
    cdef Py_ssize_t start = 0, stop, size, right, weight, r, u, s, x
    cdef double gain, change
    cdef double *line
    for s in range(game.n_levels):
        line = game.below + s * game.width
        for x in range(game.width):
            line[x] = 0.0 if x <= middle else 1.0
    for u in range(2 * reach + 1):
        game.gains[u] = 0.0
        game.present[u] = False

    while start < n:
        stop = start + 1
        while stop < n and not rows.first[stop]:
            stop += 1
        weight = size_of(rows.signed_weights[start])
        size = stop - start
        right = 0
        for r in range(start, stop):
            right += rows.signed_weights[r] > 0
        gain = 0.0
        if size == 1:
            if start >= k:
                replace(
                    game, game.below, start, rows.signed_weights[start],
                    game.steps[start]
                )
        elif stop > k:
            gain = replace_by_tied(game, start, weight, size, right)
        for r in range(start, stop):
            values[r] = -right * gain
            if rows.signed_weights[r] > 0:
                values[r] = (size - right) * gain
            values[r] -= game.gains[rows.signed_weights[r] + reach]
        for r in range(start, stop):
            game.present[rows.signed_weights[r] + reach] = True
            add_row(game, r + 1, rows.signed_weights[r], largest_set_size(r + 1, k))
        start = stop

    # What a row gains where it joins a coalition of fewer than k rows.
    for u in range(-reach, reach + 1):
        if game.present[u + reach]:
            gain = sizes[0] * ((1.0 if u >= 0 else 0.0) - game.empty)
            for s in range(1, min(k, n)):
                change = without(game, game.below, n, u, s, 0)
                change = change - without(game, game.below, n, u, s, -u)
                gain += sizes[s] * change
            game.gains[u + reach] += gain
    for r in range(n):
        values[r] += game.gains[rows.signed_weights[r] + reach]


cdef Py_ssize_t select_rows(
    const int32_t *order, Py_ssize_t n_ranked, const double *distances,
    const label *labels, Py_ssize_t code, Py_ssize_t other, Py_ssize_t reach,
    int64_t *players, int64_t *signed_weights, uint8_t *first,
) noexcept nogil:
    """The rows of two classes, their signed weights and ties; returns their number."""
    cdef Py_ssize_t n = 0, p, i
    cdef double distance, before = -1.0, nearest = distances[row_of(order[0])]
    cdef int64_t weight = reach
    for p in range(n_ranked):
        i = row_of(order[p])
        if labels[i] != code and labels[i] != other:
            continue
        distance = distances[i]
        # Distances that differ by less, relative to their size, are equal.
        first[n] = distance - before > 1e-14 * distance
        if first[n] and reach > 1 and distance > nearest:
            weight = <int64_t> rint(reach * nearest / distance)
        before = distance
        players[n] = i
        signed_weights[n] = weight if labels[i] == code else -weight
        n += 1
    return n


cdef Py_ssize_t largest_tie(
    const int32_t *order, Py_ssize_t n_ranked, const double *distances
) noexcept nogil:
    """The largest number of rows of all classes that are tied, see `select_rows`."""
    cdef Py_ssize_t p, size = 0, largest = 1
    cdef double distance, before = -1.0
    for p in range(n_ranked):
        distance = distances[row_of(order[p])]
        size += 1
        if distance - before > 1e-14 * distance:
            size = 1
        before = distance
        largest = max(largest, size)
    return largest


def add_vote_values(
    tables, const int32_t[:, ::1] order, const int64_t[::1] n_ranked,
    distances, const label[::1] labels, codes, const double[::1] weights,
    double[::1] values, double[::1] utility,
):
    """Add up values over the points of a tile, and compute the utility at each point.

    ``distances`` are those of the players from each point, in the order of the rows.
    """
    cdef Py_ssize_t n_players = tables.n, k = tables.n_neighbors, reach = tables.scale
    cdef const double[::1] steps = tables.steps
    cdef const double[:, :, ::1] sizes = tables.sizes
    cdef const double[:, ::1] lines = np.ascontiguousarray(distances)
    cdef const int64_t[::1] point_codes = np.asarray(codes, np.int64)
    cdef Py_ssize_t n_classes = sizes.shape[0], v, r, other, code
    cdef Py_ssize_t n_levels = max(k, min(n_players, 2 * k - 3) + 1)
    cdef Py_ssize_t width = 2 * (n_levels + 1) * reach + 1
    cdef double[:, ::1] below = np.empty((n_levels, width))
    cdef double[:, ::1] mixed = np.empty((n_levels, width))
    cdef Py_ssize_t n_tied = 1
    with nogil:
        for v in range(point_codes.shape[0]):
            n_tied = max(n_tied, largest_tie(&order[v, 0], n_ranked[v], &lines[v, 0]))
    n_tied = min(n_tied, n_levels)
    cdef double[:, :, ::1] sums = np.empty((n_levels, n_tied, width))
    cdef double[::1] gains = np.zeros(2 * reach + 1)
    cdef uint8_t[::1] present = np.zeros(2 * reach + 1, np.uint8)
    cdef int64_t[::1] players = np.empty(n_players, np.int64)
    cdef int64_t[::1] signed_weights = np.empty(n_players, np.int64)
    cdef uint8_t[::1] first = np.empty(n_players, np.uint8)
    cdef double[::1] row_values = np.empty(n_players)
    cdef double fraction
    cdef Rows rows
    cdef Game game = Game(
        k, reach, tables.empty, &steps[0], width, width // 2, n_levels, &below[0, 0],
        &mixed[0, 0], n_tied, &sums[0, 0, 0], &gains[0], &present[0],
    )
    with nogil:
        for v in range(point_codes.shape[0]):
            code = point_codes[v]
            utility[v] = 0.0
            for other in range(n_classes):
                if other == code:
                    continue
                rows.n = select_rows(
                    &order[v, 0], n_ranked[v], &lines[v, 0], &labels[0], code, other,
                    reach, &players[0], &signed_weights[0], &first[0],
                )
                rows.signed_weights = &signed_weights[0]
                rows.first = &first[0]
                binary_values(&game, &rows, &sizes[code, other, 0], &row_values[0])
                fraction = weights[v] / (n_classes - 1)
                for r in range(rows.n):
                    values[players[r]] += fraction * row_values[r]
                utility[v] += majority(&rows, k, game.empty) / (n_classes - 1)
