"""
Games of few players with exact values: every coalition is evaluated once
=========================================================================

    python small_games_made.py FOLDER [NAME ...] [--data DATA]

writes FOLDER/NAME.npz for each game: `v`, of length 2**n, where bit i of the index says
whether player i is a member; `n`; and `kind`: "parties", "rows", "features" or "known".
GAMES are those on which the process of skvalue was tuned, and nine that were only
looked at in tables; NEW_GAMES were written after it, but boosted trees were added with
their tables in sight. FRESH_GAMES were written after that, and nothing was changed for
them: they need DATA, a folder of phoneme.npz, pima.npz, california_housing.npz,
wind.npz, mnist.npz, agnews_minilm.npz, cpu.npz and covertype.npz with arrays X and y,
and are not made without it.
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_friedman1,
)
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

LOADERS = {
    "cancer": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}


# Data ---------------------------------------------------------------------------------


def all_masks(n, first=0, last=None):
    """Coalitions as a bool array; bit i of the number of a row is player i."""
    last = 2**n if last is None else last
    return (np.arange(first, last)[:, None] >> np.arange(n)) & 1 == 1


def split_rows(X, y, seed, n_train, n_val):
    """Rows and labels for training, then those for validation."""
    order = np.random.default_rng(seed).permutation(len(y))
    train = order[:n_train]
    val = order[n_train : n_train + n_val]
    return X[train], y[train], X[val], y[val]


def classification(name, seed, n_train, n_val, d=None):
    """Standardised columns (d principal components, if given) and labels 0, 1, ..."""
    loaded = LOADERS[name]()
    X = StandardScaler().fit_transform(loaded.data)
    if d is not None:
        centered = X - X.mean(axis=0)
        axes = np.linalg.svd(centered, full_matrices=False)[2]
        X = StandardScaler().fit_transform(centered @ axes[:d].T)
    return split_rows(X, loaded.target, seed, n_train, n_val)


def principal_components(X, d):
    """The first d principal components of standardised columns, standardised."""
    X = StandardScaler().fit_transform(X)
    axes = np.linalg.svd(X, full_matrices=False)[2]
    return StandardScaler().fit_transform(X @ axes[:d].T)


def from_folder(folder, name, seed, n_train, n_val):
    """Columns of a file, standardised, and its labels as they are."""
    with np.load(Path(folder) / f"{name}.npz") as file:
        X = file["X"].astype(float)
        y = file["y"]
    return split_rows(StandardScaler().fit_transform(X), y, seed, n_train, n_val)


def regression(seed, n_train, n_val):
    """Diabetes, or the function of Friedman for seeds from 100 on."""
    if seed < 100:
        loaded = load_diabetes()
        X = loaded.data
        y = loaded.target
    else:
        X, y = make_friedman1(500, n_features=8, noise=1.0, random_state=seed)
    X = StandardScaler().fit_transform(X)
    y = (y - y.mean()) / y.std()
    return split_rows(X, y, seed, n_train, n_val)


def noisy(data, fraction, seed):
    """The labels of a fraction of the training rows changed."""
    X, y, X_val, y_val = data
    rng = np.random.default_rng(seed)
    rows = rng.random(len(y)) < fraction
    n_classes = y.max() + 1
    other = (y + rng.integers(1, n_classes, len(y))) % n_classes
    return X, np.where(rows, other, y), X_val, y_val


def uneven_parties(n_rows, n, seed, concentration=2.0):
    """Party of every row: sizes from a Dirichlet distribution, at least two rows."""
    rng = np.random.default_rng(seed)
    fractions = rng.dirichlet(np.full(n, concentration))
    others = rng.choice(n, n_rows - 2 * n, p=fractions)
    return rng.permutation(np.concatenate([np.repeat(np.arange(n), 2), others]))


def skewed_parties(y, n, seed):
    """Parties that hold different mixtures of labels (Dirichlet, 0.5)."""
    rng = np.random.default_rng(seed)
    party = np.zeros(len(y), dtype=int)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        party[rows] = rng.choice(n, len(rows), p=rng.dirichlet(np.full(n, 0.5)))
    for i in range(n):
        if not np.any(party == i):
            party[rng.integers(len(y))] = i
    return party


# Models -------------------------------------------------------------------------------


def in_batches(n, utility, size=1024):
    """Utilities of all coalitions, from a function of a bool array of some."""
    utilities = []
    for first in range(0, 2**n, size):
        utilities.append(utility(all_masks(n, first, min(first + size, 2**n))))
    return np.concatenate(utilities)


def scores(probabilities, y_val, metric):
    """Of probabilities of shape (coalitions, validation rows, classes)."""
    if metric == "accuracy":
        return (probabilities.argmax(axis=2) == y_val).mean(axis=1)
    of_labels = probabilities[:, np.arange(len(y_val)), y_val]
    return np.log(np.clip(of_labels, 1e-6, 1)).mean(axis=1)


def logistic_game(data, party, n, metric, n_steps=12):
    """Binary logistic regressions of a batch of coalitions at once, by Newton steps."""
    X, y, X_val, y_val = data
    Z = np.column_stack([X, np.ones(len(X))])
    Z_val = np.column_stack([X_val, np.ones(len(X_val))])
    d = Z.shape[1]
    outer = (Z[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)
    penalty = np.eye(d)
    penalty[-1, -1] = 1e-2

    def utility(masks):
        weights = masks[:, party].astype(float)
        beta = np.zeros((len(masks), d))
        for _ in range(n_steps):
            p = 1 / (1 + np.exp(-np.clip(beta @ Z.T, -30, 30)))
            gradient = (weights * (p - y)) @ Z + beta @ penalty
            hessian = ((weights * p * (1 - p)) @ outer).reshape(-1, d, d) + penalty
            step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
            norm = np.linalg.norm(step, axis=1, keepdims=True)
            beta = beta - step * np.minimum(1, 5 / np.maximum(norm, 1e-12))
        p = 1 / (1 + np.exp(-np.clip(beta @ Z_val.T, -30, 30)))
        return scores(np.stack([1 - p, p], axis=2), y_val, metric)

    return in_batches(n, utility, 512)


def bayes_game(data, party, n, metric):
    """Gaussian naive Bayes from sums; classes that are absent have probability 0."""
    X, y, X_val, y_val = data
    n_classes = int(max(y.max(), y_val.max())) + 1
    d = X.shape[1]
    counts = np.zeros((n, n_classes))
    sums = np.zeros((n, n_classes, d))
    squares = np.zeros((n, n_classes, d))
    for row, i, label in zip(X, party, y):
        counts[i, label] += 1
        sums[i, label] += row
        squares[i, label] += row**2

    def utility(masks):
        members = masks.astype(float)
        n_rows = members @ counts
        totals = np.tensordot(members, sums, 1)
        mean = totals / np.maximum(n_rows, 1)[:, :, None]
        # One pseudo row of variance 1 for each class and column.
        of_squares = np.tensordot(members, squares, 1)
        within = of_squares - n_rows[:, :, None] * mean**2
        variance = (within + 1) / (n_rows + 1)[:, :, None]
        log_p = -0.5 * ((X_val**2) @ (1 / variance).transpose(0, 2, 1))
        log_p += X_val @ (mean / variance).transpose(0, 2, 1)
        constants = -0.5 * (mean**2 / variance + np.log(variance)).sum(axis=2)
        log_p += (constants + np.log(n_rows + 1e-9))[:, None, :]
        log_p = np.where(n_rows[:, None, :] > 0, log_p, -1e9)
        log_p[n_rows.sum(axis=1) == 0] = 0.0
        log_p -= log_p.max(axis=2, keepdims=True)
        p = np.exp(log_p)
        return scores(p / p.sum(axis=2, keepdims=True), y_val, metric)

    return in_batches(n, utility, 256)


def centroid_game(data, party, n, metric):
    """Nearest centroids; a softmax of minus their distances for the log-loss."""
    X, y, X_val, y_val = data
    n_classes = int(max(y.max(), y_val.max())) + 1
    counts = np.zeros((n, n_classes))
    sums = np.zeros((n, n_classes, X.shape[1]))
    np.add.at(counts, (party, y), 1.0)
    np.add.at(sums, (party, y), X)

    def utility(masks):
        members = masks.astype(float)
        n_rows = members @ counts
        centers = np.tensordot(members, sums, 1) / np.maximum(n_rows, 1)[:, :, None]
        gaps = X_val[None, :, None, :] - centers[:, None, :, :]
        log_p = np.where(n_rows[:, None, :] > 0, -(gaps**2).mean(axis=3), -1e9)
        log_p[n_rows.sum(axis=1) == 0] = 0.0
        log_p -= log_p.max(axis=2, keepdims=True)
        p = np.exp(log_p)
        return scores(p / p.sum(axis=2, keepdims=True), y_val, metric)

    return in_batches(n, utility, 256)


def ridge_game(data, party, n, metric):
    """Ridge regressions from sums."""
    X, y, X_val, y_val = data
    Z = np.column_stack([X, np.ones(len(X))])
    Z_val = np.column_stack([X_val, np.ones(len(X_val))])
    d = Z.shape[1]
    grams = np.zeros((n, d, d))
    products = np.zeros((n, d))
    for row, i, target in zip(Z, party, y):
        grams[i] += np.outer(row, row)
        products[i] += row * target

    def utility(masks):
        members = masks.astype(float)
        gram = np.tensordot(members, grams, 1) + np.eye(d)
        beta = np.linalg.solve(gram, (members @ products)[:, :, None])[:, :, 0]
        error = ((beta @ Z_val.T - y_val) ** 2).mean(axis=1)
        return -error if metric == "mse" else 1 - error / y_val.var()

    return in_batches(n, utility, 4096)


def neighbors_game(data, n, k, metric="vote", party=None):
    """Of k nearest rows, the fraction of votes for the label, accuracy, or minus the
    squared error of their mean target. Players are rows, unless `party` is given."""
    X, y, X_val, y_val = data
    party = np.arange(n) if party is None else party
    distances = ((X[None] - X_val[:, None]) ** 2).sum(axis=2)
    orders = np.argsort(distances, axis=1)

    def utility(masks):
        total = np.zeros(len(masks))
        for order, label in zip(orders, y_val):
            member = masks[:, party[order]]
            nearest = member & (np.cumsum(member, axis=1) <= k)
            n_nearest = np.maximum(nearest.sum(axis=1), 1)
            if metric == "mse":
                total -= (nearest @ y[order] / n_nearest - label) ** 2
                continue
            n_right = nearest @ (y[order] == label).astype(float)
            if metric == "vote":
                total += n_right / k
            else:
                total += n_right * 2 > n_nearest
        return total / len(y_val)

    return in_batches(n, utility, 2**15)


def estimator_game(data, party, n, metric, model):
    """Any classifier, one fit a coalition; the empty one gives classes equal
    probabilities."""
    X, y, X_val, y_val = data
    n_classes = int(max(y.max(), y_val.max())) + 1
    uniform = np.full((1, len(y_val), n_classes), 1 / n_classes)
    utilities = np.zeros(2**n)
    utilities[0] = 1 / n_classes
    if metric != "accuracy":
        utilities[0] = scores(uniform, y_val, metric)[0]
    masks = all_masks(n)
    for code in range(1, 2**n):
        rows = masks[code][party]
        labels = y[rows]
        p = np.zeros((1, len(y_val), n_classes))
        if labels.min() == labels.max():
            p[0, :, labels[0]] = 1
        else:
            fitted = model().fit(X[rows], labels)
            p[0][:, fitted.classes_] = fitted.predict_proba(X_val)
        if metric == "logloss":
            p = np.clip(p, 0.02, 1)
        utilities[code] = scores(p, y_val, metric)[0]
    return utilities


def features_game(model, x, background, n):
    """Mean prediction with the columns of a coalition from x, others from rows."""

    def utility(masks):
        rows = np.where(masks[:, None, :], x, background[None]).reshape(-1, n)
        if hasattr(model, "predict_proba"):
            predicted = model.predict_proba(rows)[:, 1]
        else:
            predicted = model.predict(rows)
        return predicted.reshape(len(masks), -1).mean(axis=1)

    return in_batches(n, utility, 1024)


# Games --------------------------------------------------------------------------------


def logistic_parties(metric, seed, noise=0.0):
    data = noisy(classification("cancer", seed, 200, 150, d=8), noise, seed)
    party = uneven_parties(200, 14, seed)
    return "parties", 14, logistic_game(data, party, 14, metric)


def bayes_parties(metric, seed):
    data = classification("digits", seed, 300, 200, d=10)
    party = skewed_parties(data[1], 14, seed)
    return "parties", 14, bayes_game(data, party, 14, metric)


def ridge_parties(metric, seed, n=14):
    data = regression(seed, 150, 200)
    party = uneven_parties(150, n, seed)
    return "parties", n, ridge_game(data, party, n, metric)


def ridge_rows(metric, seed, n):
    data = regression(seed, n, 200)
    return "rows", n, ridge_game(data, np.arange(n), n, metric)


def logistic_rows(seed, n, n_val, d, n_steps=12):
    data = classification("cancer", seed, n, n_val, d=d)
    return "rows", n, logistic_game(data, np.arange(n), n, "accuracy", n_steps)


def neighbor_rows(data, n, k, metric="vote"):
    return "rows", n, neighbors_game(data, n, k, metric)


def tree_rows(name, seed, n, d):
    data = classification(name, seed, n, 200, d=d)
    model = partial(DecisionTreeClassifier, random_state=0)
    return "rows", n, estimator_game(data, np.arange(n), n, "accuracy", model)


def tree_parties():
    data = noisy(classification("cancer", 4, 120, 150, d=6), 0.1, 4)
    model = partial(DecisionTreeClassifier, max_depth=4, random_state=0)
    party = uneven_parties(120, 14, 4)
    return "parties", 14, estimator_game(data, party, 14, "accuracy", model)


def forest_parties():
    X, y, X_val, y_val = classification("digits", 5, 140, 200, d=6)
    data = (X[y < 4], y[y < 4], X_val[y_val < 4], y_val[y_val < 4])
    party = uneven_parties(len(data[1]), 14, 5)
    model = partial(RandomForestClassifier, 6, max_depth=4, random_state=0)
    return "parties", 14, estimator_game(data, party, 14, "accuracy", model)


def boosting_parties():
    data = classification("cancer", 6, 100, 120, d=4)
    party = uneven_parties(100, 14, 6)
    model = partial(
        GradientBoostingClassifier, n_estimators=8, max_depth=2, random_state=0
    )
    return "parties", 14, estimator_game(data, party, 14, "logloss", model)


def known_vote():
    """A weighted vote with a soft quota, plus interactions of three players."""
    rng = np.random.default_rng(14)
    n = 14
    masks = all_masks(n).astype(float)
    votes = rng.pareto(1.5, n) + 0.2
    fraction = masks @ votes / votes.sum()
    v = 1 / (1 + np.exp(-12 * (fraction - 0.5)))
    for _ in range(12):
        members = rng.choice(n, 3, replace=False)
        v = v + 0.1 * rng.standard_normal() * masks[:, members].prod(axis=1)
    return "known", n, v


def known_coverage():
    """Towns that suppliers cover, weighted by their inhabitants."""
    rng = np.random.default_rng(40)
    n = 14
    covers = rng.random((n, 60)) < rng.uniform(0.05, 0.35, (n, 1))
    inhabitants = rng.pareto(1.5, 60) + 0.2
    is_covered = all_masks(n).astype(float) @ covers > 0
    return "known", n, is_covered @ inhabitants / inhabitants.sum()


def explained(kind, seed):
    """A row explained by the columns of a model of trees."""
    n = 14
    if kind == "forest":
        loaded = load_breast_cancer()
        y = loaded.target
        model = RandomForestClassifier(20, max_depth=6, random_state=seed)
    elif kind == "boosting":
        loaded = load_wine()
        y = (loaded.target == 1).astype(int)
        model = GradientBoostingClassifier(
            n_estimators=40, max_depth=3, random_state=seed
        )
    else:
        loaded = load_digits()
        y = loaded.target.astype(float)
        model = GradientBoostingRegressor(
            n_estimators=60, max_depth=4, random_state=seed
        )
    X = loaded.data
    if X.shape[1] > n:
        X = X[:, np.argsort(-X.std(axis=0))][:, :n]
    n = X.shape[1]
    rows = np.random.default_rng(seed).permutation(len(X))
    model.fit(X[rows[50:]], y[rows[50:]])
    return "features", n, features_game(model, X[rows[0]], X[rows[1:13]], n)


def wine_parties():
    data = noisy(classification("wine", 41, 100, 70), 0.1, 41)
    party = uneven_parties(100, 13, 41)
    return "parties", 13, bayes_game(data, party, 13, "logloss")


def digit_centroids(metric, seed):
    data = noisy(classification("digits", seed, 200, 150, d=8), 0.1, seed)
    party = skewed_parties(data[1], 14, seed)
    return "parties", 14, centroid_game(data, party, 14, metric)


def iris_rows():
    data = noisy(classification("iris", 44, 14, 100), 0.15, 44)
    return "rows", 14, bayes_game(data, np.arange(14), 14, "logloss")


def phoneme_parties(folder):
    """Accuracy of five neighbours; a tenth of the labels is wrong."""
    data = noisy(from_folder(folder, "phoneme", 61, 140, 100), 0.1, 61)
    party = uneven_parties(140, 14, 61)
    return "parties", 14, neighbors_game(data, 14, 5, "accuracy", party)


def pima_rows(folder):
    """Log-loss of naive Bayes on 14 rows."""
    data = from_folder(folder, "pima", 62, 14, 150)
    return "rows", 14, bayes_game(data, np.arange(14), 14, "logloss")


def california_parties(folder):
    """Ridge regression of house prices, without the codes of the last column."""
    with np.load(Path(folder) / "california_housing.npz") as file:
        X = file["X"][:, :8].astype(float)
        y = file["y"].astype(float)
    X = StandardScaler().fit_transform(X)
    y = (y - y.mean()) / y.std()
    data = split_rows(X, y, 63, 150, 200)
    return "parties", 14, ridge_game(data, uneven_parties(150, 14, 63), 14, "r2")


def wind_parties(folder):
    """Log-loss of logistic regression; parties with different mixtures of labels."""
    data = from_folder(folder, "wind", 64, 200, 150)
    party = skewed_parties(data[1], 13, 64)
    return "parties", 13, logistic_game(data, party, 13, "logloss")


def mnist_rows(folder):
    """Accuracy of logistic regression on 14 images of fours and nines."""
    with np.load(Path(folder) / "mnist.npz") as file:
        y = file["y"]
        is_kept = (y == 4) | (y == 9)
        images = file["X"][is_kept].astype(float)
    X = principal_components(images.reshape(len(images), -1), 5)
    data = split_rows(X, (y[is_kept] == 9).astype(int), 65, 14, 200)
    return "rows", 14, logistic_game(data, np.arange(14), 14, "accuracy")


def agnews_parties(folder):
    """Log-loss of naive Bayes on embeddings of news; a tenth of the labels is wrong."""
    with np.load(Path(folder) / "agnews_minilm.npz") as file:
        X = principal_components(file["X"].astype(float), 10)
        y = file["y"]
    data = noisy(split_rows(X, y, 66, 300, 200), 0.1, 66)
    party = skewed_parties(data[1], 14, 66)
    return "parties", 14, bayes_game(data, party, 14, "logloss")


def cpu_tree_parties(folder):
    """Accuracy of a decision tree of any depth."""
    data = from_folder(folder, "cpu", 67, 130, 150)
    party = uneven_parties(130, 13, 67)
    model = partial(DecisionTreeClassifier, random_state=0)
    return "parties", 13, estimator_game(data, party, 13, "accuracy", model)


def covertype_boosting_parties(folder):
    """Log-loss of five boosted trees: the commonest kind of forest, or another."""
    X, y, X_val, y_val = from_folder(folder, "covertype", 68, 130, 120)
    data = (X, (y == 2).astype(int), X_val, (y_val == 2).astype(int))
    party = uneven_parties(130, 13, 68)
    model = partial(
        GradientBoostingClassifier, n_estimators=5, max_depth=2, random_state=0
    )
    return "parties", 13, estimator_game(data, party, 13, "logloss", model)


GAMES = {
    "logistic_parties_accuracy": partial(logistic_parties, "accuracy", 0),
    "logistic_parties_logloss": partial(logistic_parties, "logloss", 1),
    "logistic_noisy_accuracy": partial(logistic_parties, "accuracy", 2, 0.25),
    "logistic_rows_accuracy": partial(logistic_rows, 7, 14, 200, 6),
    "bayes_parties_accuracy": partial(bayes_parties, "accuracy", 8),
    "bayes_parties_logloss": partial(bayes_parties, "logloss", 9),
    "ridge_parties_r2": partial(ridge_parties, "r2", 10),
    "ridge_rows_mse": partial(ridge_rows, "mse", 11, 14),
    "knn_rows_vote": lambda: neighbor_rows(classification("wine", 12, 14, 100), 14, 3),
    "knn_rows_accuracy": lambda: neighbor_rows(
        noisy(classification("wine", 13, 14, 100), 0.2, 13), 14, 3, "accuracy"
    ),
    "known_vote": known_vote,
    "explained_boosting": partial(explained, "boosting", 15),
    "explained_digits": partial(explained, "digits", 16),
    "explained_forest": partial(explained, "forest", 17),
    "tree_rows_accuracy": partial(tree_rows, "cancer", 3, 14, 6),
    "tree_parties_accuracy": tree_parties,
    "boosting_parties_logloss": boosting_parties,
    "forest_parties_accuracy": forest_parties,
    "ridge_parties_20": partial(ridge_parties, "r2", 18, 20),
    "ridge_rows_20": partial(ridge_rows, "r2", 19, 20),
    "knn_rows_20": lambda: neighbor_rows(classification("wine", 20, 20, 60), 20, 3),
    "knn_accuracy_20": lambda: neighbor_rows(
        noisy(classification("cancer", 21, 20, 60, d=5), 0.15, 21), 20, 5, "accuracy"
    ),
    "logistic_rows_20": partial(logistic_rows, 22, 20, 100, 4, 6),
}

NEW_GAMES = {
    "new_known_coverage": known_coverage,
    "new_bayes_wine_logloss": wine_parties,
    "new_centroid_parties_accuracy": partial(digit_centroids, "accuracy", 42),
    "new_centroid_parties_logloss": partial(digit_centroids, "logloss", 43),
    "new_bayes_iris_rows": iris_rows,
    "new_ridge_friedman_parties": partial(ridge_parties, "r2", 145),
    "new_ridge_friedman_rows": partial(ridge_rows, "mse", 146, 13),
    "new_knn_diabetes_rows": lambda: neighbor_rows(
        regression(47, 14, 100), 14, 3, "mse"
    ),
    "new_knn_digits_accuracy": lambda: neighbor_rows(
        noisy(classification("digits", 48, 14, 100, d=6), 0.1, 48), 14, 1, "accuracy"
    ),
    "new_tree_wine_rows": partial(tree_rows, "wine", 49, 13, None),
}


# Functions of the folder of the data.
FRESH_GAMES = {
    "fresh_knn_phoneme_parties": phoneme_parties,
    "fresh_bayes_pima_rows": pima_rows,
    "fresh_ridge_california_parties": california_parties,
    "fresh_logistic_wind_parties": wind_parties,
    "fresh_logistic_mnist_rows": mnist_rows,
    "fresh_bayes_agnews_parties": agnews_parties,
    "fresh_tree_cpu_parties": cpu_tree_parties,
    "fresh_boosting_covertype_parties": covertype_boosting_parties,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", type=Path, help="folder of the data of FRESH_GAMES")
    options = parser.parse_intermixed_args()
    warnings.filterwarnings("ignore")
    options.folder.mkdir(exist_ok=True)
    all_games = GAMES | NEW_GAMES
    if options.data is not None:
        for name, make in FRESH_GAMES.items():
            all_games[name] = partial(make, options.data)
    for name in options.names or all_games:
        if name not in all_games:
            parser.error(f"{name} is no game, or one that needs --data.")
        start = time.process_time()
        kind, n, v = all_games[name]()
        np.savez_compressed(options.folder / f"{name}.npz", v=v, n=n, kind=kind)
        seconds = time.process_time() - start
        print(
            f"{name:34s} n={n} empty {v[0]:.3f} full {v[-1]:.3f} sd {v.std():.4f} "
            f"{seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
