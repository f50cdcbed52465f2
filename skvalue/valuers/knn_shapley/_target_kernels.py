"""Compiled loops of KNN-Shapley for regression: values from ranked players. Imports numba.

An order is a row of `skvalue.neighbors.Order`: players from the nearest to the farthest, ``~i`` for
a row ``i`` that is tied with the one before it. The value of tied players is the mean over their
orders, in closed form.
"""

import numpy as np

from ..._utils.compiled import compiled


@compiled
def _block_tables(game, p, e):
    """Means of the tables over the orders of a block of tied ranks p + 1 .. e."""
    a, b, q = game.a, game.b, game.q
    t = e - p
    am = bm = qm = a_in = q_in = b_in = b_two = cross = 0.0
    for r in range(p + 1, e + 1):
        am += a[r]
        bm += b[r]
        qm += q[r]
        cross += b[r] * (r - p - 1)
        if r < e:
            cross += b[r] * (r - p)
        if r > p + 1:
            a_in += (a[r - 1] - a[r]) * (r - 1 - p)
            q_in += (q[r - 1] - q[r]) * (r - 1 - p)
            b_in += (b[r - 1] - b[r]) * (r - 1 - p)
            b_two += (b[r - 1] - b[r]) * (r - 1 - p) * (r - p - 2)
    return am / t, bm / t, qm / t, a_in / t, q_in / t, b_in / t, b_two / t, cross / t


@compiled
def _sums(row, start, stop, n_players, targets, shift):
    """Number of players at some ranks, and the sums of their targets and of the squares."""
    count = 0
    s1 = s2 = 0.0
    for p in range(start, stop):
        i = row[p] if row[p] >= 0 else ~row[p]
        if i < n_players:
            z = targets[i] - shift
            count += 1
            s1 += z
            s2 += z * z
    return count, s1, s2


@compiled
def _pass_block(game, p, e, t, s1, s2, u, prefix, with_later, later):
    """The sums over later ranks, with a block of t tied players at ranks p + 1 .. e."""
    a, b, q = game.a, game.b, game.q
    steps = pairs = 0.0
    for r in range(p + 1, e + 1):
        steps += b[r - 1]
        pairs += (b[r - 1] - b[r]) * (r - p - 1)
    with_later += steps * s1 / t
    later += (a[p] - a[e]) * s2 / t - 2 * u * (q[p] - q[e]) * s1 / t
    later += 2 * (b[p] - b[e]) * prefix * s1 / t
    if t > 1:
        later += 2 * pairs * (s1 * s1 - s2) / (t * (t - 1.0))
    return with_later, later


@compiled
def _target_utility(game, row, n_ranked, targets, shift, u):
    """Minus the expected squared error of the mean target of the nearest players."""
    done = 0.0
    start = 0
    while start < game.votes:
        stop = start + 1
        while stop < n_ranked and row[stop] < 0:
            stop += 1
        size, s1, s2 = _sums(row, start, stop, len(targets), targets, shift)
        take = min(game.votes - start, size)
        if take == size:
            done += s1
            start = stop
            if start < game.votes:
                continue
            return -((game.weight * done - u) ** 2)
        first = take * s1 / size
        second = take * s2 / size
        second += take * (take - 1.0) * (s1 * s1 - s2) / (size * (size - 1.0))
        square = done * done + 2 * done * first + second
        return -(game.weight**2 * square - 2 * u * game.weight * (done + first) + u * u)
    return -((game.weight * done - u) ** 2)


@compiled
def add_target_values(game, order, n_ranked, targets, point_targets, weights, values, utility):
    """Add up values over the points of a tile, and compute the utility at each point."""
    n, a, b, q = game.n, game.a, game.b, game.q
    before = np.empty(n + 1)
    for v in range(len(point_targets)):
        row, w = order[v], weights[v]
        shift = point_targets[v] if game.soft else 0.0
        u = 0.0 if game.soft else point_targets[v]
        total = squares = 0.0
        for p in range(n):
            before[p] = total
            z = targets[row[p] if row[p] >= 0 else ~row[p]] - shift
            total += z
            squares += z * z
        empty = -(point_targets[v] ** 2)
        base = -game.alone * (u * u + empty) + 2 * u * game.d1 * total + game.e1 * squares
        base = (base + game.e2 * (total * total - squares)) / n
        with_later = later = 0.0  # sums over later ranks: of b z, and of the terms without z_r
        stop = n
        while stop > 0:
            p = stop - 1
            while row[p] < 0:
                p -= 1
            prefix = before[p]
            t = stop - p
            if t == 1:
                r = p + 1
                i = row[p]
                z = targets[i] - shift
                row_part = -a[r] * z * z - 2 * z * (b[r] * prefix + with_later) + 2 * u * q[r] * z
                values[i] += w * (base + row_part + later)
                if p:
                    with_later += b[p] * z
                    later += (a[p] - a[r]) * z * z + 2 * (b[p] - b[r]) * z * prefix
                    later -= 2 * u * (q[p] - q[r]) * z
                stop = p
                continue
            am, bm, qm, a_in, q_in, b_in, b_two, cross = _block_tables(game, p, stop)
            _, s1, s2 = _sums(row, p, stop, len(targets), targets, shift)
            for s in range(p, stop):
                i = row[s] if row[s] >= 0 else ~row[s]
                z = targets[i] - shift
                o1 = (s1 - z) / (t - 1)
                o2 = (s2 - z * z) / (t - 1)
                pair = 0.0
                if t > 2:
                    pair = ((s1 - z) ** 2 - (s2 - z * z)) / ((t - 1.0) * (t - 2.0))
                row_part = -am * z * z - 2 * z * (bm * prefix + cross * o1 + with_later)
                row_part += 2 * u * qm * z
                others = a_in * o2 - 2 * u * q_in * o1
                others += 2 * (b_in * (prefix + z) * o1 + b_two * pair)
                values[i] += w * (base + row_part + others + later)
            if p:
                with_later, later = _pass_block(
                    game, p, stop, t, s1, s2, u, prefix, with_later, later
                )
            stop = p
        utility[v] = _target_utility(game, row, n_ranked[v], targets, shift, u)


@compiled
def join_target_values(game, order, n_ranked, n_players, targets, point_targets, weights, out):
    """Values of rows that join one at a time, as polynomials in their targets.

    New rows are those from ``n_players`` on; ``game`` has one more player. The value of new row x
    with target y is ``out[x, 0] + out[x, 1] * y + out[x, 2] * y**2``.
    """
    for v in range(len(point_targets)):
        row, w = order[v], weights[v]
        shift = point_targets[v] if game.soft else 0.0
        u = 0.0 if game.soft else point_targets[v]
        before, total, squares = _sums(row, 0, n_ranked[v], n_players, targets, shift)
        empty = -(point_targets[v] ** 2)
        base0 = -game.alone * (u * u + empty) + 2 * u * game.d1 * total + game.e1 * squares
        base0 = (base0 + game.e2 * (total * total - squares)) / game.n
        base1 = 2 * (u * game.d1 + game.e2 * total) / game.n
        base2 = game.e1 / game.n
        prefix = total
        with_later = later = slope = 0.0
        stop = n_ranked[v]
        while stop > 0:
            start = stop - 1
            while row[start] < 0:
                start -= 1
            t, s1, s2 = _sums(row, start, stop, n_players, targets, shift)
            before -= t
            prefix -= s1
            if t < stop - start:
                am, bm, qm, a_in, q_in, b_in, b_two, cross = _block_tables(
                    game, before, before + t + 1
                )
                o1 = s1 / t if t else 0.0
                o2 = s2 / t if t else 0.0
                pair = (s1 * s1 - s2) / (t * (t - 1.0)) if t > 1 else 0.0
                c0 = base0 + later + a_in * o2 - 2 * u * q_in * o1
                c0 += 2 * (b_in * prefix * o1 + b_two * pair)
                c1 = base1 - 2 * (bm * prefix + cross * o1 + with_later) + 2 * u * qm
                c1 += 2 * (slope + b_in * o1)
                c2 = base2 - am
                for s in range(start, stop):
                    i = row[s] if row[s] >= 0 else ~row[s]
                    if i >= n_players:
                        x = i - n_players
                        out[x, 0] += w * (c0 - c1 * shift + c2 * shift * shift)
                        out[x, 1] += w * (c1 - 2 * c2 * shift)
                        out[x, 2] += w * c2
            if t:
                # After a new row these players are one rank farther, from before + 2 on.
                p, e = before + 1, before + t + 1
                slope += (game.b[p] - game.b[e]) * s1 / t
                with_later, later = _pass_block(
                    game, p, e, t, s1, s2, u, prefix, with_later, later
                )  # fmt: skip
            stop = start
