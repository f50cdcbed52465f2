# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of KNN-Shapley for regression: values from ranked players.

An order is a row of `skvalue.neighbors.Order`: players from the nearest to the
farthest, ``~i`` for a row ``i`` that is tied with the one before it. The value of tied
players is the mean over their orders, in closed form.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from ..._utils.loops cimport fetch


cdef struct Tables:  # the numbers of `TargetTables`
    Py_ssize_t n
    Py_ssize_t votes
    double weight
    bint soft
    const double *a
    const double *b
    const double *q
    double d1
    double e1
    double e2
    double alone


cdef Tables tables_of(game):
    """Pointers to the tables of a game, which the caller keeps."""
    cdef const double[::1] a = game.a
    cdef const double[::1] b = game.b
    cdef const double[::1] q = game.q
    return Tables(
        game.n, game.votes, game.weight, game.soft, &a[0], &b[0], &q[0], game.d1,
        game.e1, game.e2, game.alone,
    )


cdef enum:
    AHEAD = 64  # ranks after which what is fetched is there


cdef inline Py_ssize_t row_of(int32_t i) noexcept nogil:
    return i ^ (i >> 31)  # i, or ~i if it is negative


cdef struct Block:  # means of the tables over the orders of tied players
    double a
    double b
    double q
    double a_in
    double q_in
    double b_in
    double b_two
    double cross


cdef Block block_tables(const Tables *game, Py_ssize_t p, Py_ssize_t e) noexcept nogil:
    """Means of the tables over the orders of a block of tied ranks p + 1 .. e."""
    cdef const double *a = game.a
    cdef const double *b = game.b
    cdef const double *q = game.q
    cdef Py_ssize_t r, t = e - p
    cdef Block block = Block(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for r in range(p + 1, e + 1):
        block.a += a[r]
        block.b += b[r]
        block.q += q[r]
        block.cross += b[r] * (r - p - 1)
        if r < e:
            block.cross += b[r] * (r - p)
        if r > p + 1:
            block.a_in += (a[r - 1] - a[r]) * (r - 1 - p)
            block.q_in += (q[r - 1] - q[r]) * (r - 1 - p)
            block.b_in += (b[r - 1] - b[r]) * (r - 1 - p)
            block.b_two += (b[r - 1] - b[r]) * (r - 1 - p) * (r - p - 2)
    block.a /= t
    block.b /= t
    block.q /= t
    block.a_in /= t
    block.q_in /= t
    block.b_in /= t
    block.b_two /= t
    block.cross /= t
    return block


cdef struct Sums:  # of the targets of players
    Py_ssize_t count
    double first
    double second  # of the squares


cdef Sums sums_of(
    const int32_t *row, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n_players,
    const double *targets, double shift,
) noexcept nogil:
    """Number of players at ranks, and the sums of their targets and of the squares."""
    cdef Sums sums = Sums(0, 0.0, 0.0)
    cdef Py_ssize_t p, i
    cdef double z
    for p in range(start, stop):
        if p + AHEAD < stop:
            i = row_of(row[p + AHEAD])
            if i < n_players:
                fetch(&targets[i])
        i = row_of(row[p])
        if i < n_players:
            z = targets[i] - shift
            sums.count += 1
            sums.first += z
            sums.second += z * z
    return sums


cdef struct Later:  # sums over later ranks
    double with_z  # of b z
    double terms  # of the terms without z_r


cdef Later pass_block(
    const Tables *game, Py_ssize_t p, Py_ssize_t e, Sums sums, double u, double prefix,
    Later later,
) noexcept nogil:
    """The sums over later ranks, with a block of tied players at ranks p + 1 .. e."""
    cdef const double *a = game.a
    cdef const double *b = game.b
    cdef const double *q = game.q
    cdef double t = sums.count, s1 = sums.first, s2 = sums.second
    cdef double steps = 0.0, pairs = 0.0
    cdef Py_ssize_t r
    for r in range(p + 1, e + 1):
        steps += b[r - 1]
        pairs += (b[r - 1] - b[r]) * (r - p - 1)
    later.with_z += steps * s1 / t
    later.terms += (a[p] - a[e]) * s2 / t - 2 * u * (q[p] - q[e]) * s1 / t
    later.terms += 2 * (b[p] - b[e]) * prefix * s1 / t
    if t > 1:
        later.terms += 2 * pairs * (s1 * s1 - s2) / (t * (t - 1.0))
    return later


cdef double utility_of(
    const Tables *game, const int32_t *row, Py_ssize_t n_ranked, Py_ssize_t n_players,
    const double *targets, double shift, double u,
) noexcept nogil:
    """Minus the expected squared error of the mean target of the nearest players."""
    cdef double done = 0.0, first, second, square, error, n_drawn
    cdef Py_ssize_t start = 0, stop
    cdef Sums sums
    while start < game.votes:
        stop = start + 1
        while stop < n_ranked and row[stop] < 0:
            stop += 1
        sums = sums_of(row, start, stop, n_players, targets, shift)
        if game.votes - start >= sums.count:
            done += sums.first
            start = stop
            continue

        # Some of the tied players are among the nearest: a random set of them.
        n_drawn = game.votes - start
        first = n_drawn * sums.first / sums.count
        second = n_drawn * sums.second / sums.count
        second += (
            n_drawn * (n_drawn - 1.0) * (sums.first * sums.first - sums.second)
            / (sums.count * (sums.count - 1.0))
        )
        square = done * done + 2 * done * first + second
        return -(
            game.weight * game.weight * square - 2 * u * game.weight * (done + first)
            + u * u
        )
    error = game.weight * done - u
    return -(error * error)


cdef struct Point:
    Py_ssize_t n_ranked
    double target
    double weight


cdef double add_point(
    const Tables *game, const int32_t *row, Py_ssize_t n_rows, const double *targets,
    const Point *point, double *before, double *values,
) noexcept nogil:
    """Add up values over one point, and return its utility."""
    cdef Py_ssize_t n = game.n, stop = n, p, r, s, i, t
    cdef double w = point.weight, shift = 0.0, u = point.target
    cdef double total = 0.0, squares = 0.0, z, empty, base, prefix, row_part, others
    cdef double o1, o2, pair
    cdef Later later = Later(0.0, 0.0)
    cdef Block block
    cdef Sums sums
    if game.soft:
        shift = point.target
        u = 0.0
    for p in range(n):
        if p + AHEAD < n:  # rows are anywhere in memory
            fetch(&targets[row_of(row[p + AHEAD])])
        before[p] = total
        z = targets[row_of(row[p])] - shift
        total += z
        squares += z * z
    empty = -(point.target * point.target)
    base = -game.alone * (u * u + empty) + 2 * u * game.d1 * total + game.e1 * squares
    base = (base + game.e2 * (total * total - squares)) / n

    while stop > 0:
        p = stop - 1
        while row[p] < 0:
            p -= 1
        prefix = before[p]
        t = stop - p
        if t == 1:
            if p >= AHEAD:
                i = row_of(row[p - AHEAD])
                fetch(&targets[i])
                fetch(&values[i])
            r = p + 1
            i = row[p]
            z = targets[i] - shift
            row_part = (
                -game.a[r] * z * z - 2 * z * (game.b[r] * prefix + later.with_z)
                + 2 * u * game.q[r] * z
            )
            values[i] += w * (base + row_part + later.terms)
            if p:
                later.with_z += game.b[p] * z
                later.terms += (
                    (game.a[p] - game.a[r]) * z * z
                    + 2 * (game.b[p] - game.b[r]) * z * prefix
                )
                later.terms -= 2 * u * (game.q[p] - game.q[r]) * z
            stop = p
            continue

        block = block_tables(game, p, stop)
        sums = sums_of(row, p, stop, n_rows, targets, shift)
        for s in range(p, stop):
            if s + AHEAD < stop:
                i = row_of(row[s + AHEAD])
                fetch(&targets[i])
                fetch(&values[i])
            i = row_of(row[s])
            z = targets[i] - shift
            o1 = (sums.first - z) / (t - 1)
            o2 = (sums.second - z * z) / (t - 1)
            pair = 0.0
            if t > 2:
                pair = (
                    (sums.first - z) * (sums.first - z) - (sums.second - z * z)
                ) / ((t - 1.0) * (t - 2.0))
            row_part = -block.a * z * z - 2 * z * (
                block.b * prefix + block.cross * o1 + later.with_z
            )
            row_part += 2 * u * block.q * z
            others = block.a_in * o2 - 2 * u * block.q_in * o1
            others += 2 * (block.b_in * (prefix + z) * o1 + block.b_two * pair)
            values[i] += w * (base + row_part + others + later.terms)
        if p:
            later = pass_block(game, p, stop, sums, u, prefix, later)
        stop = p
    return utility_of(game, row, point.n_ranked, n_rows, targets, shift, u)


def add_target_values(
    game, const int32_t[:, ::1] order, const int64_t[::1] n_ranked,
    const double[::1] targets, const double[::1] point_targets,
    const double[::1] weights, double[::1] values, double[::1] utility,
):
    """Add up values over the points of a tile, and compute the utility at each
    point."""
    cdef Tables tables = tables_of(game)
    cdef double[::1] before = np.empty(tables.n + 1)
    cdef Py_ssize_t v
    cdef Point point
    with nogil:
        for v in range(point_targets.shape[0]):
            point = Point(n_ranked[v], point_targets[v], weights[v])
            utility[v] = add_point(
                &tables, &order[v, 0], targets.shape[0], &targets[0], &point,
                &before[0], &values[0],
            )


cdef void join_point(
    const Tables *game, const int32_t *row, Py_ssize_t n_players, const double *targets,
    const Point *point, double[:, ::1] out,
) noexcept nogil:
    """Add up the polynomials of the values of new rows over one point."""
    cdef double w = point.weight, shift = 0.0, u = point.target
    cdef double empty, base0, base1, base2, prefix, slope = 0.0
    cdef double t, s1, s2, o1, o2, pair, c0, c1, c2
    cdef Py_ssize_t start, stop = point.n_ranked, before, s, x, p, e
    cdef Later later = Later(0.0, 0.0)
    cdef Block block
    cdef Sums sums
    if game.soft:
        shift = point.target
        u = 0.0
    sums = sums_of(row, 0, stop, n_players, targets, shift)
    before = sums.count
    prefix = sums.first
    empty = -(point.target * point.target)
    base0 = (
        -game.alone * (u * u + empty) + 2 * u * game.d1 * sums.first
        + game.e1 * sums.second
    )
    base0 = (base0 + game.e2 * (sums.first * sums.first - sums.second)) / game.n
    base1 = 2 * (u * game.d1 + game.e2 * sums.first) / game.n
    base2 = game.e1 / game.n

    while stop > 0:
        start = stop - 1
        while row[start] < 0:
            start -= 1
        sums = sums_of(row, start, stop, n_players, targets, shift)
        t = sums.count
        s1 = sums.first
        s2 = sums.second
        before -= sums.count
        prefix -= s1
        if sums.count < stop - start:
            block = block_tables(game, before, before + sums.count + 1)
            o1 = s1 / t if t else 0.0
            o2 = s2 / t if t else 0.0
            pair = (s1 * s1 - s2) / (t * (t - 1.0)) if t > 1 else 0.0
            c0 = base0 + later.terms + block.a_in * o2 - 2 * u * block.q_in * o1
            c0 += 2 * (block.b_in * prefix * o1 + block.b_two * pair)
            c1 = base1 - 2 * (block.b * prefix + block.cross * o1 + later.with_z)
            c1 = c1 + 2 * u * block.q
            c1 += 2 * (slope + block.b_in * o1)
            c2 = base2 - block.a
            for s in range(start, stop):
                x = row_of(row[s]) - n_players
                if x >= 0:
                    out[x, 0] += w * (c0 - c1 * shift + c2 * shift * shift)
                    out[x, 1] += w * (c1 - 2 * c2 * shift)
                    out[x, 2] += w * c2
        if sums.count:
            # After a new row these players are one rank farther, from before + 2 on.
            p = before + 1
            e = before + sums.count + 1
            slope += (game.b[p] - game.b[e]) * s1 / t
            later = pass_block(game, p, e, sums, u, prefix, later)
        stop = start


def join_target_values(
    game, const int32_t[:, ::1] order, const int64_t[::1] n_ranked,
    Py_ssize_t n_players, const double[::1] targets, const double[::1] point_targets,
    const double[::1] weights, double[:, ::1] out,
):
    """Values of rows that join one at a time, as polynomials in their targets.

    New rows are those from ``n_players`` on; ``game`` has one more player. The value of
    new row x with target y is ``out[x, 0] + out[x, 1] * y + out[x, 2] * y**2``.
    """
    cdef Tables tables = tables_of(game)
    cdef Py_ssize_t v
    cdef Point point
    with nogil:
        for v in range(point_targets.shape[0]):
            point = Point(n_ranked[v], point_targets[v], weights[v])
            join_point(&tables, &order[v, 0], n_players, &targets[0], &point, out)
