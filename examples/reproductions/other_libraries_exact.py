"""
Exact values, three slow and obvious ways
=========================================

What other_libraries.py compares values with; none of it uses skvalue.

- All 2^n coalitions of a small nearest-neighbour game.
- The formula of threshold-KNN-Shapley as Theorem 13 of Wang et al. (2023) prints it, in
  whole numbers.
- The recursion of KNN-Shapley, Theorem 1 of Jia et al. (2019).
"""

from fractions import Fraction
from math import comb, lcm

import numpy as np
from scipy.spatial.distance import cdist


def shapley(worth):
    """Shapley values from the worth of all coalitions, in the order of their bit
    masks."""
    n = len(worth).bit_length() - 1
    masks = np.arange(len(worth))
    sizes = (masks[:, None] >> np.arange(n) & 1).sum(axis=1)
    weights = np.array([1 / (n * comb(n - 1, s)) for s in range(n)])
    values = []
    for i in range(n):
        without = masks[masks >> i & 1 == 0]
        gains = worth[without | 1 << i] - worth[without]
        values.append(weights[sizes[without]] @ gains)
    return np.array(values)


def enumerate_game(game, distances, y, label, n_classes, null=0.0):
    """Values at one point; `game` is ("original" | "soft" | "majority", K) or ("ball",
    radius)."""
    kind, parameter = game
    n = len(y)
    order = np.argsort(distances)
    members = (np.arange(2**n)[:, None] >> order & 1).astype(
        bool
    )  # columns by distance
    if kind == "ball":
        members &= distances[order] <= parameter
    else:
        members &= members.cumsum(axis=1) <= parameter
    votes = np.stack(
        [members[:, y[order] == c].sum(axis=1) for c in range(n_classes)], axis=1
    )
    hits = votes[:, label]
    size = votes.sum(axis=1)
    if kind == "original":
        worth = hits / parameter
    elif kind == "majority":  # of fewer than K rows no prediction is made
        worth = np.where(size < parameter, null, votes.argmax(axis=1) == label)
    else:
        worth = np.where(size > 0, hits / np.maximum(size, 1), 1 / n_classes)
    return shapley(worth)


def least_frequent(y, y_val):
    """datascope's empty coalition predicts the class of the rows with which it is least
    right."""
    return min(range(y.max() + 1), key=lambda label: (y_val == label).mean())


def game_values(game, X, y, X_val, y_val):
    n_classes = y.max() + 1
    worst = least_frequent(y, y_val)
    return np.mean(
        [
            enumerate_game(game, d, y, label, n_classes, null=float(label == worst))
            for d, label in zip(cdist(X_val, X), y_val)
        ],
        axis=0,
    )


def values_by_each_other(game, X, y):
    """Every row is the validation point of a game of all the others."""
    values = np.zeros(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        distances = cdist(X[i : i + 1], X[others])[0]
        values[others] += enumerate_game(
            game, distances, y[others], y[i], y.max() + 1
        ) / len(y)
    return values


def exact_a2(n, c):
    """The sum A2 of Theorem 13 of Wang et al. (2023), for c rows in the ball, as a
    fraction."""
    common = lcm(*range(1, n + 1))
    total = 0
    whole = comb(n, c)
    outside = comb(n - 1, c)
    for k in range(n):
        total += (whole - outside) * (common // (k + 1))
        if k < n - 1:
            outside = outside * (n - 1 - k - c) // (n - 1 - k)
    return Fraction(total, common * whole) - 1


def exact_ball_values(X, y, X_val, y_val, radius):
    """Theorem 13 at every point, in whole numbers up to the mean over the points."""
    n_classes = int(y.max()) + 1
    values = np.zeros(len(y))
    inside = cdist(X_val, X) <= radius
    for ball, label in zip(inside, y_val):
        c = int(ball.sum())
        if not c:
            continue
        match = y == label
        matches = int((ball & match).sum())
        for m in (0, 1):
            value = Fraction(1, c) * (m - Fraction(1, n_classes))
            if c > 1:
                a1 = Fraction(m, c) - Fraction(matches - m, c * (c - 1))
                value += a1 * exact_a2(len(y), c)
            values[ball & (match == m)] += float(value)
    return values / len(y_val), inside.sum(axis=1)


def exact_knn_values(X, y, X_val, y_val, k, itself=False):
    """Theorem 1 of Jia et al. (2019); `itself`: the points are the rows, each without
    itself."""
    n = len(y) - itself
    values = np.zeros(len(y))
    steps = 1 / np.maximum(k, np.arange(1, n))
    for start in range(0, len(y_val), 64):
        points = slice(start, start + 64)
        distances = cdist(X_val[points], X)
        if itself:
            here = np.arange(len(distances))
            distances[here, start + here] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")[:, :n]
        match = (y[order] == y_val[points, None]).astype(float)
        gains = np.append(-np.diff(match) * steps, match[:, -1:] / max(n, k), axis=1)
        np.add.at(values, order, gains[:, ::-1].cumsum(axis=1)[:, ::-1])
    return values / len(y_val)
