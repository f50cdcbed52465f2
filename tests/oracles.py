"""The slow, obvious forms that everything fast is compared with."""

from itertools import combinations

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone

from skvalue.semivalues import enumerate_semivalue


def nearest_sets(distances, k):
    """All sets of k nearest players, one for every way to break ties at the k-th
    distance."""
    cut = np.sort(distances)[k - 1]
    inside = [i for i, d in enumerate(distances) if d < cut]
    tied = [i for i, d in enumerate(distances) if d == cut]
    return [inside + list(rest) for rest in combinations(tied, k - len(inside))]


def knn_utility(players, distances, y, y_point, k, utility, n_classes, prior):
    """Utility of one coalition at one validation point, averaged over the orders of
    ties."""
    players = list(players)
    if not players:
        if n_classes:
            return 1 / n_classes if utility == "soft" else 0.0
        return -((prior - y_point) ** 2)
    votes = min(k, len(players))
    divisor = votes if utility == "soft" else k
    scores = []
    for chosen in nearest_sets(distances[players], votes):
        targets = y[[players[i] for i in chosen]]
        if n_classes:
            scores.append((targets == y_point).sum() / divisor)
        elif utility == "soft":
            scores.append(-((targets.mean() - y_point) ** 2))
        else:
            scores.append(-(((targets - prior).sum() / k + prior - y_point) ** 2))
    return np.mean(scores)


def tknn_utility(players, distances, y, y_point, radius, n_classes):
    """Utility of one coalition at one validation point: fraction of its label in the
    ball."""
    inside = [i for i in players if distances[i] <= radius * (1 + 1e-12)]
    return np.mean(y[inside] == y_point) if inside else 1 / n_classes


def enumerate_game(
    utility, X, y, X_val, y_val, weights=None, metric="euclidean", semivalue="shapley"
):
    """Values of all rows by 2^n coalitions; ``utility(players, distances, y,
    y_point)``."""
    distances = cdist(X_val, X, metric)
    weights = np.full(len(y_val), 1 / len(y_val)) if weights is None else weights
    return enumerate_semivalue(
        lambda players: sum(
            w * utility(players, d, y, target)
            for w, d, target in zip(weights, distances, y_val)
        ),
        len(y),
        semivalue,
    )


def grid_game(rng, n, n_points, n_classes, side=3):
    """A small game on a grid, so that ties, duplicates and empty balls abound."""
    X = rng.integers(0, side, (n, 2)).astype(float)
    X_val = rng.integers(0, side, (n_points, 2)).astype(float)
    if n_classes == 0:
        return X, 5 + rng.normal(size=n), X_val, 5 + rng.normal(size=n_points)
    n_classes = min(n, n_classes)
    y = rng.permutation(
        np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    )
    return X, y, X_val, rng.integers(0, n_classes, n_points)


def check_after_the_fit(valuer, X, y, X_val, y_val, new, labels):
    """What a fitted valuer says of new rows, later points and each point equals other
    fits."""
    game, m = dict(X_val=X_val, y_val=y_val), len(y_val)

    def fit(X=X, y=y, **keywords):
        return clone(valuer).fit(X, y, **{**game, **keywords})

    def close(found, expected):
        np.testing.assert_allclose(found, expected, atol=1e-13)

    whole, later = fit(), fit(X_val=X_val[:4], y_val=y_val[:4])
    joined = [fit(np.r_[X, [x]], np.r_[y, c]).values_[-1] for x, c in zip(new, labels)]
    close(whole.score_samples(new, labels), joined)
    close(later.add_validation(X_val[4:], y_val[4:]).values_, whole.values_)
    groups = np.arange(len(y)) % 4
    by_group = fit(groups=groups)
    close(by_group.values_, np.bincount(groups, whole.values_))
    for fitted in (by_group, whole):
        players = range(len(fitted.values_))
        at_points = m * np.array(
            [fitted.contributions(i).contributions for i in players]
        )
        close(at_points.mean(axis=1), fitted.values_)
        error = np.std(at_points, axis=1, ddof=1) / np.sqrt(m)
        np.testing.assert_allclose(fitted.validation_error_, error, atol=1e-12)
    assert error.any()
    if hasattr(
        whole, "classes_"
    ):  # the prior of a regression is the mean of all targets
        points = [fit(X_val=X_val[[v]], y_val=y_val[[v]]).values_ for v in range(m)]
        close(at_points.T, points)


def check_leave_one_out(valuer, X, y):
    """Without a validation set, each row is a point of the game of all others."""
    values, n = np.zeros(len(y)), len(y)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        game = clone(valuer).fit(X[rest], y[rest], X_val=X[[i]], y_val=y[[i]])
        values[rest] += game.values_ / n
    np.testing.assert_allclose(clone(valuer).fit(X, y).values_, values, atol=1e-13)


def check_same(valuer, expected, new, labels, dense=None, **tolerance):
    """All that two fitted valuers say is the same, also of new rows."""
    dense = new if dense is None else dense  # for the second valuer
    for one, other in [
        (valuer.values_, expected.values_),
        (valuer.validation_error_, expected.validation_error_),
        (
            valuer.contributions(3).contributions,
            expected.contributions(3).contributions,
        ),
        (valuer.transform(new), expected.transform(dense)),
        (valuer.score_samples(new, labels), expected.score_samples(dense, labels)),
    ]:
        np.testing.assert_allclose(one, other, **tolerance)
