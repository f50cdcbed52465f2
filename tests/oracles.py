"""The slow, obvious forms that everything fast is compared with."""

from itertools import combinations

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone

from skvalue.semivalues import enumerate_semivalue


def nearest_sets(distances, k):
    """All sets of k nearest players, one for every way to break ties at the end."""
    limit = np.sort(distances)[k - 1]
    inside = [i for i, distance in enumerate(distances) if distance < limit]
    tied = [i for i, distance in enumerate(distances) if distance == limit]
    n_missing = k - len(inside)
    return [[*inside, *chosen] for chosen in combinations(tied, n_missing)]


def knn_utility(players, distances, y, y_point, k, utility, n_classes, prior):
    """Utility of one coalition at one validation point, a mean over orders of ties."""
    players = list(players)
    if not players:
        if n_classes:
            return 1 / n_classes if utility == "soft" else 0.0
        return -((prior - y_point) ** 2)
    n_votes = min(k, len(players))
    divisor = n_votes if utility == "soft" else k
    scores = []
    for chosen in nearest_sets(distances[players], n_votes):
        targets = y[[players[i] for i in chosen]]
        if n_classes:
            scores.append((targets == y_point).sum() / divisor)
        elif utility == "soft":
            scores.append(-((targets.mean() - y_point) ** 2))
        else:
            scores.append(-(((targets - prior).sum() / k + prior - y_point) ** 2))
    return np.mean(scores)


def tknn_utility(players, distances, y, y_point, radius, n_classes):
    """Utility of one coalition at one validation point: its label's part of a ball."""
    inside = [i for i in players if distances[i] <= radius * (1 + 1e-12)]
    return np.mean(y[inside] == y_point) if inside else 1 / n_classes


def enumerate_game(
    utility, X, y, X_val, y_val, weights=None, metric="euclidean", semivalue="shapley"
):
    """Values of all rows by 2^n coalitions.

    ``utility(players, distances, y, y_point)`` is that of a coalition at a point.
    """
    distances = cdist(X_val, X, metric)
    if weights is None:
        weights = np.full(len(y_val), 1 / len(y_val))

    def mean_utility(players):
        total = 0.0
        for weight, to_point, y_point in zip(weights, distances, y_val):
            total += weight * utility(players, to_point, y, y_point)
        return total

    return enumerate_semivalue(mean_utility, len(y), semivalue)


def grid_game(rng, n, n_points, n_classes, side=3):
    """A small game on a grid, so that ties, duplicates and empty balls abound."""
    X = rng.integers(0, side, (n, 2)).astype(float)
    X_val = rng.integers(0, side, (n_points, 2)).astype(float)
    if n_classes == 0:
        return X, 5 + rng.normal(size=n), X_val, 5 + rng.normal(size=n_points)
    n_classes = min(n, n_classes)
    labels = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    y = rng.permutation(labels)
    return X, y, X_val, rng.integers(0, n_classes, n_points)


def check_after_the_fit(valuer, X, y, X_val, y_val, X_new, y_new):
    """What a fitted valuer says later equals what other fits say.

    That is: of new rows, of added points, of groups, and at each point.
    """
    m = len(y_val)

    def fit(X=X, y=y, X_val=X_val, y_val=y_val, **keywords):
        return clone(valuer).fit(X, y, X_val=X_val, y_val=y_val, **keywords)

    def assert_close(values, expected, atol=1e-13):
        np.testing.assert_allclose(values, expected, atol=atol)

    whole = fit()
    joined = [
        fit(np.r_[X, [row]], np.r_[y, label]).values_[-1]
        for row, label in zip(X_new, y_new)
    ]
    assert_close(whole.score_samples(X_new, y_new), joined)

    grown = fit(X_val=X_val[:4], y_val=y_val[:4])
    assert_close(grown.add_validation(X_val[4:], y_val[4:]).values_, whole.values_)

    groups = np.arange(len(y)) % 4
    by_group = fit(groups=groups)
    assert_close(by_group.values_, np.bincount(groups, whole.values_))

    for fitted in (by_group, whole):
        n_players = len(fitted.values_)
        contributions = [
            fitted.contributions(i).contributions for i in range(n_players)
        ]
        at_points = m * np.array(contributions)
        assert_close(at_points.mean(axis=1), fitted.values_)
        errors = np.std(at_points, axis=1, ddof=1) / np.sqrt(m)
        assert_close(fitted.validation_error_, errors, atol=1e-12)
    assert errors.any()
    # The prior of a regression is the mean of all targets: a point alone has another.
    if hasattr(whole, "classes_"):
        alone = [fit(X_val=X_val[[v]], y_val=y_val[[v]]).values_ for v in range(m)]
        assert_close(at_points.T, alone)


def check_leave_one_out(valuer, X, y):
    """Without a validation set, each row is a point of the game of all others."""
    n = len(y)
    values = np.zeros(n)
    for i in range(n):
        others = np.delete(np.arange(n), i)
        game = clone(valuer)
        game.fit(X[others], y[others], X_val=X[[i]], y_val=y[[i]])
        values[others] += game.values_ / n
    np.testing.assert_allclose(clone(valuer).fit(X, y).values_, values, atol=1e-13)


def check_same(valuer, expected, X_new, y_new, X_expected=None, **tolerance):
    """Two fitted valuers say the same, also of new rows.

    `X_expected` are the new rows in a container for the second one.
    """
    if X_expected is None:
        X_expected = X_new

    def assert_same(values, expected_values):
        np.testing.assert_allclose(values, expected_values, **tolerance)

    assert_same(valuer.values_, expected.values_)
    assert_same(valuer.validation_error_, expected.validation_error_)
    assert_same(
        valuer.contributions(3).contributions, expected.contributions(3).contributions
    )
    assert_same(valuer.transform(X_new), expected.transform(X_expected))
    assert_same(
        valuer.score_samples(X_new, y_new), expected.score_samples(X_expected, y_new)
    )
