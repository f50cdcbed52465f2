"""Coalitions that lack classes, and validation points that do."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC

from skvalue.games import ModelGame

from ..problems import two_classes

both_ways = pytest.mark.parametrize("batch", ["auto", "never"])


@pytest.fixture
def data():
    """Three classes; the players are sorted by class, eight each."""
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], 8)
    centers = np.repeat([[0, 0], [2, 0], [0, 2]], 8, axis=0)
    X = rng.normal(size=(24, 2)) + centers
    return X, y, X[::2] + 0.1, y[::2]


def coalition(*rows):
    mask = np.zeros((1, 24), dtype=bool)
    mask[0, list(rows)] = True
    return mask


TWO_OF_A = coalition(0, 1)


@both_ways
def test_a_coalition_of_one_class_predicts_it(data, batch):
    game = ModelGame(LogisticRegression(), *data, batch=batch)
    assert game.utility(TWO_OF_A) == [1 / 3]


@both_ways
def test_probabilities_of_one_class_count_its_rows(data, batch):
    game = ModelGame(LogisticRegression(), *data, scoring="neg_log_loss", batch=batch)
    # (count + 1) / (n + C), n = 2, C = 3
    expected = (np.log(3 / 5) + 2 * np.log(1 / 5)) / 3
    np.testing.assert_allclose(game.utility(TWO_OF_A), expected)
    assert (game.n_evaluations, game.n_failed, game.n_one_class) == (1, 0, 1)


@both_ways
def test_decisions_of_one_class_are_equal(data, batch):
    options = {"scoring": "top_k_accuracy", "empty_utility": 0}
    game = ModelGame(LinearSVC(), *data, **options, batch=batch)
    assert game.utility(TWO_OF_A) == [2 / 3]
    assert (game.n_failed, game.n_one_class) == (0, 1)


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression()], ids=str)
def test_a_coalition_of_one_class_has_an_auc_of_a_half(rng, model):
    X, y, X_val, y_val = two_classes(rng, 40, 20)
    game = ModelGame(model, X, y, X_val, y_val, scoring="roc_auc", batch="never")
    assert game.utility((y == "yes")[None]) == [0.5]
    assert (game.n_failed, game.n_one_class) == (0, 1)


@both_ways
def test_a_class_that_a_coalition_lacks_has_a_probability(data, batch):
    X, y, X_val, y_val = data
    model = LogisticRegression(tol=1e-10)
    game = ModelGame(model, *data, scoring="neg_log_loss", batch=batch)
    rows = [0, 1, 2, 8, 9]
    model.fit(X[rows], y[rows])
    probabilities = np.full((12, 3), 1 / (5 + 3))
    probabilities[:, :2] = model.predict_proba(X_val) * (5 + 2) / (5 + 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    expected = -log_loss(y_val, probabilities, labels=["a", "b", "c"])
    np.testing.assert_allclose(game.utility(coalition(*rows)), expected, rtol=1e-6)
    assert game.n_failed == 0


@both_ways
@pytest.mark.parametrize(
    "scoring", ["neg_log_loss", "neg_brier_score", "top_k_accuracy"]
)
def test_validation_points_may_lack_a_class(data, batch, scoring):
    X, y, X_val, y_val = data
    points = y_val != "c"
    X_val = X_val[points]
    y_val = y_val[points]
    model = LogisticRegression(tol=1e-9)
    game = ModelGame(
        model,
        X,
        y,
        X_val,
        y_val,
        scoring=scoring,
        empty_utility=-2.0,
        batch=batch,
        error_score="raise",
    )
    probabilities = model.fit(X, y).predict_proba(X_val)
    codes = np.searchsorted(["a", "b", "c"], y_val)
    of_label = np.eye(3)[codes]
    top_two = np.argsort(probabilities)[:, 1:]
    expected = {
        "neg_log_loss": np.log(probabilities[of_label == 1]).mean(),
        "neg_brier_score": -((probabilities - of_label) ** 2).sum(axis=1).mean(),
        "top_k_accuracy": (top_two == codes[:, None]).any(axis=1).mean(),
    }
    utility = game.utility(coalition(*range(24)))
    np.testing.assert_allclose(utility, expected[scoring], atol=1e-5)
