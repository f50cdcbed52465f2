"""class_weight="balanced": each class has the same weight in the utility."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold
from sklearn.naive_bayes import GaussianNB

import skvalue
from skvalue import (
    KNNShapleyValuer,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
)

RETRAINING = {"estimator": GaussianNB(), "max_evaluations": 120, "random_state": 0}
VALUERS = [
    KNNShapleyValuer(3),
    TKNNShapleyValuer(1.0, metric="euclidean"),
    *(
        getattr(skvalue, f"{name}Valuer")(**RETRAINING)
        for name in (
            "Semivalue",
            "DataShapley",
            "DataBanzhaf",
            "BetaShapley",
            "LayeredShapley",
        )
    ),
    LeaveOneOutValuer(GaussianNB()),
]
each = pytest.mark.parametrize(
    "valuer", VALUERS, ids=lambda valuer: type(valuer).__name__
)


@pytest.fixture(scope="module")
def data():
    """Rows and validation points of three classes, of which one is rare."""
    rng = np.random.default_rng(0)
    y = np.concatenate(
        [np.tile([*"aaaabbac"], 3), rng.choice([*"abc"], 60, p=[0.6, 0.3, 0.1])]
    )
    X = rng.normal(size=(84, 3)) + np.searchsorted([*"abc"], y)[:, None]
    return X[:24], y[:24], {"X_val": X[24:], "y_val": y[24:]}


def balanced(y, weights=None):
    """The weight of a point: 1 / (number of classes * weight of its class)."""
    weights = np.ones(len(y)) if weights is None else weights
    total = {label: weights[y == label].sum() for label in np.unique(y)}
    return weights / np.array([total[label] for label in y]) / len(total)


def refitted(valuer, X, y, **fit):
    return clone(valuer).fit(X, y, **fit)


def with_balance(valuer, **params):
    return clone(valuer).set_params(class_weight="balanced", **params)


def assert_same(one, other):
    np.testing.assert_allclose(one.values_, other.values_, atol=1e-12)
    assert one.utility_ == pytest.approx(other.utility_)
    assert one.empty_utility_ == pytest.approx(other.empty_utility_)


@each
def test_is_a_weight_of_validation_points(valuer, data):
    X, y, validation = data
    weights = np.random.default_rng(0).random(len(validation["y_val"]))
    for given in (None, weights):
        point_weights = balanced(validation["y_val"], given)
        by_hand = refitted(valuer, X, y, **validation, sample_weight_val=point_weights)
        assert_same(
            with_balance(valuer).fit(X, y, **validation, sample_weight_val=given),
            by_hand,
        )
    assert not np.allclose(
        by_hand.values_, refitted(valuer, X, y, **validation).values_
    )


@each
def test_weights_are_those_of_each_split(valuer, data):
    X, y, _ = data
    splits = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    valuer = with_balance(valuer, cv=splits).fit(X, y)
    if isinstance(
        valuer, (KNNShapleyValuer, TKNNShapleyValuer, skvalue.DataShapleyValuer)
    ):
        total = valuer.utility_ - valuer.empty_utility_
        assert valuer.values_.sum() == pytest.approx(total, abs=1e-9)
    if isinstance(valuer, (KNNShapleyValuer, TKNNShapleyValuer, LeaveOneOutValuer)):
        values, utility = np.zeros(len(y)), 0.0
        for players, points in splits:
            one = clone(valuer).set_params(class_weight=None)
            one.fit(
                X[players], y[players], X_val=X[points], y_val=y[points],
                sample_weight_val=balanced(y[points]),
            )  # fmt: skip
            values[players] += one.values_ / 3
            utility += one.utility_ / 3
        np.testing.assert_allclose(valuer.values_, values, atol=1e-12)
        assert valuer.utility_ == pytest.approx(utility)


@pytest.mark.parametrize("valuer", VALUERS[:2], ids=["knn", "tknn"])
def test_leave_one_out(valuer, data):
    X, y, _ = data
    plain = refitted(valuer, X, y)
    weighted = with_balance(valuer).fit(X, y)
    weights = balanced(y) * len(y)
    expected = [plain.contributions(i).contributions @ weights for i in range(len(y))]
    np.testing.assert_allclose(weighted.values_, expected, atol=1e-12)
    assert weighted.values_.sum() == pytest.approx(
        weighted.utility_ - weighted.empty_utility_
    )


@pytest.mark.parametrize("valuer", VALUERS[:2], ids=["knn", "tknn"])
def test_added_points_change_the_weights(valuer, data):
    X, y, validation = data
    X_val, y_val = validation.values()
    whole = with_balance(valuer).fit(X, y, **validation)
    grown = with_balance(valuer).fit(X, y, X_val=X_val[:40], y_val=y_val[:40])
    assert_same(grown.add_validation(X_val[40:], y_val[40:]), whole)


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.VoidGuaranteeWarning")
def test_private_fits(data):
    X, y, validation = data
    weights = balanced(validation["y_val"])
    options = {"metric": "euclidean", "epsilon": 5.0, "noise_random_state": 0}
    weighted = TKNNShapleyValuer(1.0, class_weight="balanced", **options).fit(
        X, y, **validation
    )
    plain = TKNNShapleyValuer(1.0, **options).fit(
        X, y, **validation, sample_weight_val=weights
    )
    assert_same(weighted, plain)
    assert str(weighted.privacy_) == str(plain.privacy_)


def test_refuses(data):
    X, y, validation = data
    with pytest.raises(
        ValueError, match="class_weight must be None for a regression.*'balanced'"
    ):
        KNNShapleyValuer(class_weight="balanced").fit(X, X[:, 0])
    one = {name: part[validation["y_val"] == "a"] for name, part in validation.items()}
    message = "class_weight='balanced' needs validation points of at least two classes, in X_val"
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(class_weight="balanced").fit(X, y, **one)
    with pytest.raises(ValueError, match=message):
        LeaveOneOutValuer(
            LogisticRegression(), cv=LeaveOneOut(), class_weight="balanced"
        ).fit(X, y)
    order = np.argsort(y)
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(cv=KFold(12), class_weight="balanced").fit(X[order], y[order])
    for valuer in (LeaveOneOutValuer, LayeredShapleyValuer):
        valuer = valuer(
            scoring=lambda model, X, y: 1.0, empty_utility=0.0, class_weight="balanced"
        )
        with pytest.raises(
            ValueError, match="class_weight='balanced', need a scorer that takes"
        ):
            valuer.fit(X, y, **validation)
    with pytest.raises(
        ValueError, match="The 'class_weight' parameter of KNNShapleyValuer must"
    ):
        KNNShapleyValuer(class_weight={"a": 2}).fit(X, y)


def test_minority_rows_are_not_the_lowest():
    X, y = make_classification(
        1500,
        10,
        n_informative=5,
        weights=[0.95],
        flip_y=0,
        class_sep=0.8,
        random_state=0,
    )
    negative = [
        (KNNShapleyValuer(class_weight=weight).fit(X, y).values_[y == 1] < 0).mean()
        for weight in (None, "balanced")
    ]
    assert negative[0] > 0.9
    assert negative[1] < 0.2


@pytest.mark.parametrize(
    "valuer", VALUERS[-2:], ids=lambda valuer: type(valuer).__name__
)
def test_empty_utility_of_any_scorer(valuer, data):
    """The constant prediction, too, is fitted with the weights of the validation
    points."""
    X, y, validation = data
    weights = balanced(validation["y_val"]) * np.linspace(
        1, 2, len(validation["y_val"])
    )
    fit = {**validation, "sample_weight_val": weights}
    valuer = clone(valuer).set_params(scoring="f1_macro").fit(X, y, **fit)
    largest = max("abc", key=lambda label: weights[validation["y_val"] == label].sum())
    predicted = np.full(len(weights), largest)
    expected = f1_score(
        validation["y_val"], predicted, average="macro", sample_weight=weights
    )
    assert valuer.empty_utility_ == pytest.approx(expected)
