"""Compiled loops of KNN-Shapley for a (weighted) majority vote. Imports numba.

All sums are of signed integer weights: positive for rows of the right class. A table entry
``below[l, x]`` is the probability that a random set of l of the first p rows has a sum less than
``x - middle``.
Rows differ for each other by their signed weights alone, of which there are few: the table without
one row follows from the table with it, so that a point takes time linear in the number of rows.
"""

import numpy as np

from ..._utils.compiled import compiled

_TIED = 1e-14  # distances that differ by less, relative to their size, are equal


@compiled
def _hits(total, marked, draws, hits):
    """Probability of that many marked ones in some draws without replacement."""
    if hits > marked or draws - hits > total - marked:
        return 0.0
    p = 1.0
    for i in range(hits):
        p *= (draws - i) / (hits - i) * ((marked - i) / (total - i))
    for i in range(draws - hits):
        p *= (total - marked - i) / (total - hits - i)
    return p


@compiled
def _without(below, p, weight, level, x, middle):
    """Probability that a sum is less than x, for ``level`` of p rows without one of that weight."""
    if 2 * level <= p:  # from smaller sets: no factor below exceeds 1, so that errors do not grow
        value = 1.0 if x - level * weight > 0 else 0.0
        for s in range(1, level + 1):
            entry = below[s, middle + x - (level - s) * weight]
            value = (p * entry - s * value) / (p - s)
        return value
    value = 0.0  # from larger sets
    for s in range(p, level, -1):
        value = (p * below[s, middle + x + (s - level) * weight] - (p - s) * value) / s
    return value


@compiled
def _add_row(below, p, weight, top, reach, middle):
    """Update the table for one more row, the p-th."""
    for s in range(top, 0, -1):
        stay, join = (p - s) / p, s / p
        line, smaller = below[s], below[s - 1]
        for x in range(middle - s * reach + 1, middle + s * reach + 1):
            line[x] = stay * line[x] + join * smaller[x - weight]


@compiled
def _sums_with_tied(below, top, weight, total, right, sums):
    """``sums[s, a]``: as ``below[s]``, with a of the s rows drawn from tied ones."""
    last = below.shape[1] - 1
    for s in range(top + 1):
        for a in range(min(s, total) + 1):
            sums[s, a] = 0.0
            for g in range(a + 1):
                p = _hits(total, right, a, g)
                if p > 0.0:
                    shift = weight * (2 * g - a)
                    for x in range(last + 1):
                        sums[s, a, x] += p * below[s - a, min(max(x - shift, 0), last)]


@compiled
def _mix(sums, before, ahead, top, out):
    """The table for the rows before a tie and ``ahead`` of the tied ones, in random order."""
    for s in range(top + 1):
        out[s] = 0.0
        for a in range(min(s, ahead) + 1):
            p = _hits(before + ahead, ahead, s, a)
            if p > 0.0:
                out[s] += p * sums[s, a]


@compiled
def _top(p, k):
    """Size of the largest sets of p rows that `_without` needs."""
    return p if p < 2 * (k - 1) else k - 1


@compiled
def _replace(k, p, weight, factor, below, present, reach, middle, gains):
    """Add what rows of each weight gain where they replace the next row as one of the nearest."""
    for u in range(-reach, reach + 1):
        if u != weight and present[u + reach]:
            change = _without(below, p, u, k - 1, -weight, middle)
            change -= _without(below, p, u, k - 1, -u, middle)
            gains[u + reach] += factor * change


@compiled
def _replace_by_tied(game, p, weight, size, right, work, present, reach, middle, gains):
    """As `_replace`, by rows that are tied; return what a tied row gains by one of another class.

    The mean over all orders of the tied rows: the one replaced is any of them, and those ahead of
    it are a random set of the others.
    """
    below, mixed, sums = work
    k = game.n_neighbors
    top = min(p + size - 1, max(k - 1, 2 * k - 3))
    for sign in (-1, 1):
        number = right if sign > 0 else size - right
        if not number:
            continue
        _sums_with_tied(below, top, weight, size - 1, right - (sign > 0), sums)
        for ahead in range(size):
            if p + ahead >= k:
                _mix(sums, p, ahead, _top(p + ahead, k), mixed)
                factor = game.steps[p + ahead] * number / size
                _replace(k, p + ahead, sign * weight, factor, mixed, present, reach, middle, gains)
    gain = 0.0
    if weight and 0 < right < size:
        _sums_with_tied(below, k - 1, weight, size - 2, right - 1, sums)
        for ahead in range(max(1, k - p), size):  # of which one is the row that gains
            factor = game.steps[p + ahead] * ahead / (size - 1.0) / size
            for a in range(min(k - 1, ahead - 1) + 1):
                some = _hits(p + ahead - 1, ahead - 1, k - 1, a)
                if some > 0.0:
                    line = sums[k - 1, a]
                    gain += factor * some * (line[middle + weight] - line[middle - weight])
    return gain


@compiled
def _majority(signed, first, k, empty):
    """Utility of all rows: the probability that the k nearest have no negative sum."""
    n = len(signed)
    total = start = 0
    if n == 0:
        return empty
    while start < n:
        stop = start + 1
        while stop < n and not first[stop]:
            stop += 1
        if stop >= k or stop == n:
            break
        for r in range(start, stop):
            total += signed[r]
        start = stop
    size, right = stop - start, 0
    for r in range(start, stop):
        right += signed[r] > 0
    draws, utility = min(k, stop) - start, 0.0
    for g in range(draws + 1):
        if total + abs(signed[start]) * (2 * g - draws) >= 0:
            utility += _hits(size, right, draws, g)
    return utility


@compiled
def _binary_values(game, signed, first, sizes, reach, work, values):
    """Values of rows of two classes at a point, from their signed weights in order of distance.

    ``first`` is False for rows that are tied with the one before them.
    """
    n, k = len(signed), game.n_neighbors
    below = work[0]
    middle = below.shape[1] // 2
    below[:, : middle + 1] = 0.0
    below[:, middle + 1 :] = 1.0
    gains, present = np.zeros(2 * reach + 1), np.zeros(2 * reach + 1, np.bool_)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and not first[stop]:
            stop += 1
        weight, size, right = abs(signed[start]), stop - start, 0
        for r in range(start, stop):
            right += signed[r] > 0
        gain = 0.0
        if size == 1:
            if start >= k:
                _replace(
                    k, start, signed[start], game.steps[start], below, present, reach, middle, gains
                )
        elif stop > k:
            gain = _replace_by_tied(
                game, start, weight, size, right, work, present, reach, middle, gains
            )
        for r in range(start, stop):
            in_tie = (size - right) * gain if signed[r] > 0 else -right * gain
            values[r] = in_tie - gains[signed[r] + reach]
        for r in range(start, stop):
            present[signed[r] + reach] = True
            _add_row(below, r + 1, signed[r], _top(r + 1, k), reach, middle)
        start = stop
    for u in range(-reach, reach + 1):
        if present[u + reach]:
            gain = sizes[0] * ((1.0 if u >= 0 else 0.0) - game.empty)
            for s in range(1, min(k, n)):
                change = _without(below, n, u, s, 0, middle) - _without(below, n, u, s, -u, middle)
                gain += sizes[s] * change
            gains[u + reach] += gain
    for r in range(n):
        values[r] += gains[signed[r] + reach]


@compiled
def add_vote_values(game, order, n_ranked, distances, labels, codes, weights, values, utility):
    """Add up values over the points of a tile, and compute the utility at each point.

    ``distances`` are those of the players from each point, in the order of the rows.
    """
    k, reach, n_classes = game.n_neighbors, game.scale, len(game.sizes)
    n_levels = max(k, min(game.n, 2 * k - 3) + 1)
    width = 2 * (n_levels + 1) * reach + 1
    work = (
        np.empty((n_levels, width)), np.empty((n_levels, width)),
        np.empty((n_levels, n_levels, width)),
    )  # fmt: skip
    players, signed = np.empty(game.n, np.int64), np.empty(game.n, np.int64)
    first, found = np.empty(game.n, np.bool_), np.empty(game.n)
    for v in range(len(codes)):
        row, code = order[v], codes[v]
        nearest = distances[v, row[0]]
        utility[v] = 0.0
        for other in range(n_classes):
            if other == code:
                continue
            n = 0
            before, weight = -1.0, reach
            for p in range(n_ranked[v]):
                i = row[p] if row[p] >= 0 else ~row[p]
                if labels[i] != code and labels[i] != other:
                    continue
                d = distances[v, i]
                first[n] = d - before > _TIED * d
                if first[n] and reach > 1 and d > nearest:
                    weight = round(reach * nearest / d)
                before = d
                players[n], signed[n] = i, weight if labels[i] == code else -weight
                n += 1
            _binary_values(game, signed[:n], first[:n], game.sizes[code, other], reach, work, found)
            share = weights[v] / (n_classes - 1)
            for r in range(n):
                values[players[r]] += share * found[r]
            utility[v] += _majority(signed[:n], first[:n], k, game.empty) / (n_classes - 1)
