"""Compiled loops of KNN-Shapley for classification: values from ranked players. Imports numba.

An order is a row of `skvalue.neighbors.Order`: players from the nearest to the farthest, ``~i`` for
a row ``i`` that is tied with the one before it. The value of tied players is the mean over their
orders, in closed form.
"""

import numpy as np

from ..._utils.compiled import compiled


@compiled
def _vote(order, n_ranked, votes, labels, code):
    """Expected number of matches among the nearest ``votes`` players."""
    hits = 0.0
    start = 0
    while start < votes:
        stop = start + 1
        while stop < n_ranked and order[stop] < 0:
            stop += 1
        matches = 0
        for p in range(start, stop):
            i = order[p]
            matches += labels[i if i >= 0 else ~i] == code
        hits += matches * min(1.0, (votes - start) / (stop - start))
        start = stop
    return hits


@compiled
def add_class_values(game, order, n_ranked, labels, class_counts, codes, weights, left_out, values,
                     rest, utility):  # fmt: skip
    """Add up values over the points of a tile, and compute the utility at each point.

    Players beyond ``n_ranked`` have one value per class: ``rest[class] + rest[-1]``, which the
    caller adds.
    """
    n, inv, gain = game.n, game.inv, game.gain
    n_classes = len(class_counts)
    is_code = np.zeros(n_classes)
    for v in range(len(codes)):
        row, ranked, code, w = order[v], n_ranked[v], codes[v], weights[v]
        is_code[:] = 0.0
        is_code[code] = 1.0
        matches = class_counts[code]
        if left_out[v] >= 0 and labels[left_out[v]] == code:
            matches -= 1
        base = matches * game.base_match + game.base
        later = 0.0  # sum of drop_j over the matches beyond the current rank
        shift = bonus = 0.0
        if ranked < n:
            found = 0
            for p in range(ranked):
                i = row[p]
                found += labels[i if i >= 0 else ~i] == code
            size = n - ranked
            mean = (game.sums[n] - game.sums[ranked]) / size
            one = (mean - inv[n]) / (size - 1) if size > 1 else 0.0
            shift = w * (base - (matches - found) * one)
            bonus = w * (gain + mean + one)
            rest[n_classes] += shift
            rest[code] += bonus
            later = (matches - found) * (inv[ranked] - inv[n]) / size
            if left_out[v] >= 0:
                values[left_out[v]] -= shift + (bonus if labels[left_out[v]] == code else 0.0)
        match_gain = w * gain - bonus
        level = w * base - shift - w * later  # value of a row that is no match, at the current rank
        p = ranked - 1
        while p >= 0:
            i = row[p]
            if i >= 0:  # no branch on the match, which processors cannot predict
                match = is_code[labels[i]]
                values[i] += level + match * (match_gain + w * inv[p + 1])
                level -= match * (w * (inv[p] - inv[p + 1]))
                p -= 1
                continue
            stop = p + 1
            tied = 0
            total = 0.0
            while True:
                i = row[p]
                tied += labels[i if i >= 0 else ~i] == code
                total += inv[p + 1]
                if i >= 0:
                    break
                p -= 1
            size = stop - p
            mean = total / size
            one = (mean - inv[stop]) / (size - 1)
            for s in range(p, stop):
                i = row[s] if row[s] >= 0 else ~row[s]
                match = is_code[labels[i]]
                values[i] += level - w * (tied * one) + match * (match_gain + w * (mean + one))
            level -= w * (tied * (inv[p] - inv[stop]) / size)
            p -= 1
        utility[v] = _vote(row, ranked, game.votes, labels, code) * inv[0]


@compiled
def join_class_values(game, order, n_ranked, n_players, labels, class_counts, codes, weights,
                      left_out, rest, extra):  # fmt: skip
    """Values of rows that join the game one at a time; new rows are those from ``n_players`` on.

    ``game`` has one more player. The value of new row x is ``rest[x] + extra[x, c]`` for class c.
    """
    inv = game.inv
    for v in range(len(codes)):
        row, code, w = order[v], codes[v], weights[v]
        matches = class_counts[code]
        before = n_players
        if left_out[v] >= 0:
            before -= 1
            if labels[left_out[v]] == code:
                matches -= 1
        value_other = matches * game.base_match + game.base
        later = 0.0
        stop = n_ranked[v]
        while stop > 0:
            start = stop - 1
            while row[start] < 0:
                start -= 1
            size = tied = 0
            for s in range(start, stop):
                i = row[s] if row[s] >= 0 else ~row[s]
                if i < n_players:
                    size += 1
                    tied += labels[i] == code
            before -= size
            if size < stop - start:
                mean = 0.0
                for r in range(before + 1, before + size + 2):
                    mean += inv[r]
                mean /= size + 1
                one = (mean - inv[before + size + 1]) / size if size else 0.0
                for s in range(start, stop):
                    i = row[s] if row[s] >= 0 else ~row[s]
                    if i >= n_players:
                        rest[i - n_players] += w * (value_other - later - tied * one)
                        extra[i - n_players, code] += w * (game.base_match + game.gain + mean)
            if size:
                later += tied * (inv[before + 1] - inv[before + size + 1]) / size
            stop = start
