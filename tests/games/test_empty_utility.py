"""The utility of the empty coalition, and scorers of any kind."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    make_scorer,
    precision_score,
    roc_auc_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skvalue.games import ModelGame

from ..problems import two_classes


@pytest.fixture
def data(rng):
    return two_classes(rng, 40, 20)


@pytest.mark.parametrize(
    "scoring",
    [None, "accuracy", "balanced_accuracy", "roc_auc", make_scorer(accuracy_score)],
)
def test_accuracies_and_areas_of_no_model_are_a_half(data, scoring):
    game = ModelGame(GaussianNB(), *data, scoring=scoring)
    assert game.utility(np.zeros((1, 40), dtype=bool)) == [0.5]


def test_a_given_empty_utility_is_kept(data):
    assert ModelGame(GaussianNB(), *data, empty_utility=0.25).empty_utility == 0.25


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", ["f1_macro", "neg_log_loss"])
def test_other_scores_of_no_model_are_those_of_the_constant_prediction(
    rng, data, scoring, weighted
):
    X, y, X_val, y_val = data
    y_val = np.array(["yes"] * 14 + ["no"] * 6)
    y = np.append(y[:-1], "perhaps")  # a class that no validation point has
    weights = np.where(y_val == "no", 10.0, rng.random(20)) if weighted else None
    game = ModelGame(
        GaussianNB(), X, y, X_val, y_val, scoring=scoring, sample_weight_val=weights
    )

    labels = ["no", "perhaps", "yes"]
    w = np.ones(20) if weights is None else weights
    prior = np.array([w[y_val == label].sum() for label in labels]) / w.sum()
    if scoring == "neg_log_loss":
        expected = prior[prior > 0] @ np.log(prior[prior > 0])
    else:
        predicted = np.full(len(y_val), labels[prior.argmax()])
        expected = f1_score(y_val, predicted, average="macro", sample_weight=w)
    assert game.empty_utility == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("scoring", "expected"), [("accuracy", 0.75), ("balanced_accuracy", 0.5)]
)
def test_prior_is_the_score_of_the_most_frequent_class(data, scoring, expected):
    X, y, X_val, _ = data
    y_val = np.repeat(np.unique(y), [15, 5])
    game = ModelGame(
        GaussianNB(), X, y, X_val, y_val, scoring=scoring, empty_utility="prior"
    )
    assert game.empty_utility == pytest.approx(expected)
    assert game.utility([[False] * len(y)])[0] == game.empty_utility


def test_other_words_than_prior_are_refused(data):
    message = "empty_utility must be a number, 'prior' or None"
    with pytest.raises(ValueError, match=message):
        ModelGame(GaussianNB(), *data, empty_utility="mean")


@pytest.mark.parametrize("weights", [None, np.linspace(0, 1, 20)])
def test_errors_of_no_regression_are_those_of_the_mean(data, weights):
    X, _, X_val, _ = data
    y_val = X_val[:, 1]
    options = {"scoring": "neg_mean_squared_error", "sample_weight_val": weights}
    game = ModelGame(LinearRegression(), X, X[:, 1], X_val, y_val, **options)
    squares = (y_val - np.average(y_val, weights=weights)) ** 2
    expected = -np.average(squares, weights=weights)
    assert game.empty_utility == pytest.approx(expected)


@pytest.mark.parametrize("label", ["yes", "no"])
@pytest.mark.parametrize("metric", [f1_score, precision_score])
def test_scores_of_one_label_do_not_warn(data, metric, label, recwarn):
    y_val = data[3]
    scorer = make_scorer(metric, pos_label=label)
    game = ModelGame(GaussianNB(), *data, scoring=scorer)
    most_frequent = max(["no", "yes"], key=list(y_val).count)
    predicted = np.full(len(y_val), most_frequent)
    expected = metric(y_val, predicted, pos_label=label, zero_division=0)
    assert game.empty_utility == expected
    assert not recwarn.list


@pytest.mark.parametrize(
    ("scoring", "cause"),
    [
        (lambda model, X, y: model.coef_[0, 0], "no attribute 'coef_'"),
        (
            make_scorer(roc_auc_score, response_method="decision_function"),
            "decision_function",
        ),
        ("f1", "pos_label=1 is not a valid label"),
        (lambda model, X, y: np.nan, "scoring must return a finite number"),
    ],
    ids=["attribute", "method", "label", "nan"],
)
def test_empty_utility_must_be_given_where_no_constant_is_scored(data, scoring, cause):
    message = f"empty_utility must be given with this.*{cause}.* Got"
    with pytest.raises(ValueError, match=message):
        ModelGame(LogisticRegression(), *data, scoring=scoring)


def test_a_callable_scores_the_model(data, rng):
    def n_leaves(model, X, y):
        return model.get_n_leaves()

    X, y, _, _ = data
    masks = rng.random((15, 40)) < 0.4
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    game = ModelGame(tree, *data, scoring=n_leaves, empty_utility=0)
    expected = [clone(tree).fit(X[m], y[m]).get_n_leaves() for m in masks]
    assert game.utility(masks).tolist() == expected
