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
from tests.problems import Problem

SAMPLED = [
    getattr(skvalue, name)(GaussianNB(), max_evaluations=120, random_state=0)
    for name in (
        "SemivalueValuer",
        "DataShapleyValuer",
        "DataBanzhafValuer",
        "BetaShapleyValuer",
        "LayeredShapleyValuer",
    )
]
NEIGHBOURS = [KNNShapleyValuer(3), TKNNShapleyValuer(1.0, metric="euclidean")]
LEAVE_ONE_OUT = LeaveOneOutValuer(GaussianNB())
VALUERS = [*NEIGHBOURS, *SAMPLED, LEAVE_ONE_OUT]


def each(valuers):
    return pytest.mark.parametrize(
        "valuer", valuers, ids=lambda valuer: type(valuer).__name__
    )


@pytest.fixture(scope="module")
def problem():
    """Rows and validation points of three classes, of which one is rare."""
    rng = np.random.default_rng(0)
    labels = np.tile([*"aaaabbac"], 3)
    y = np.concatenate([labels, rng.choice([*"abc"], 60, p=[0.6, 0.3, 0.1])])
    X = rng.normal(size=(84, 3)) + np.searchsorted([*"abc"], y)[:, None]
    return Problem(X[:24], y[:24], X[24:], y[24:])


def balanced(y, weights=None):
    """The weight of a point: 1 / (number of classes * weight of its class)."""
    if weights is None:
        weights = np.ones(len(y))
    classes, codes = np.unique(y, return_inverse=True)
    of_class = np.bincount(codes, weights)
    return weights / of_class[codes] / len(classes)


def with_balance(valuer, **parameters):
    return clone(valuer).set_params(class_weight="balanced", **parameters)


def check_same(valuer, expected):
    np.testing.assert_allclose(valuer.values_, expected.values_, atol=1e-12)
    assert valuer.utility_ == pytest.approx(expected.utility_)
    assert valuer.empty_utility_ == pytest.approx(expected.empty_utility_)


# Weights of the points ----------------------------------------------------------------


@each(VALUERS)
@pytest.mark.parametrize("has_weights", [False, True])
def test_balance_is_a_weight_of_validation_points(valuer, has_weights, problem):
    weights = None
    if has_weights:
        weights = np.random.default_rng(0).random(len(problem.y_val))
    found = problem.fit(with_balance(valuer), sample_weight_val=weights)
    by_hand = balanced(problem.y_val, weights)
    expected = problem.fit(clone(valuer), sample_weight_val=by_hand)
    check_same(found, expected)


@each(VALUERS)
def test_balance_changes_values(valuer, problem):
    plain = problem.fit(clone(valuer)).values_
    assert not np.allclose(problem.fit(with_balance(valuer)).values_, plain)


def three_splits(problem):
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    return list(splitter.split(*problem.rows))


# Classes whose values of these fits are efficient.
@each([*NEIGHBOURS, *(v for v in SAMPLED if isinstance(v, skvalue.DataShapleyValuer))])
def test_values_with_weights_of_each_split_are_efficient(valuer, problem):
    valuer = with_balance(valuer, cv=three_splits(problem)).fit(*problem.rows)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-9)


@each([*NEIGHBOURS, LEAVE_ONE_OUT])
def test_weights_are_those_of_each_split(valuer, problem):
    X, y = problem.rows
    splits = three_splits(problem)
    found = with_balance(valuer, cv=splits).fit(X, y)
    values = np.zeros(len(y))
    utility = 0.0
    for players, points in splits:
        of_split = Problem(X[players], y[players], X[points], y[points])
        one = of_split.fit(clone(valuer), sample_weight_val=balanced(y[points]))
        values[players] += one.values_ / 3
        utility += one.utility_ / 3
    np.testing.assert_allclose(found.values_, values, atol=1e-12)
    assert found.utility_ == pytest.approx(utility)


@each([*SAMPLED, LEAVE_ONE_OUT])
def test_retrained_values_with_weights_of_each_split_are_finite(valuer, problem):
    valuer = with_balance(valuer, cv=three_splits(problem)).fit(*problem.rows)
    assert np.isfinite(valuer.values_).all()


@each(NEIGHBOURS)
def test_held_out_rows_are_weighted_as_one_split(valuer, problem):
    X, y = problem.rows
    n = len(y)
    plain = clone(valuer).fit(X, y)
    found = with_balance(valuer).fit(X, y)
    weights = balanced(y) * n
    expected = [plain.contributions(i).contributions @ weights for i in range(n)]
    np.testing.assert_allclose(found.values_, expected, atol=1e-12)
    gain = found.utility_ - found.empty_utility_
    assert found.values_.sum() == pytest.approx(gain)


@each(NEIGHBOURS)
def test_added_points_change_the_weights(valuer, problem):
    X_val = problem.X_val
    y_val = problem.y_val
    expected = problem.fit(with_balance(valuer))
    first = problem._replace(X_val=X_val[:40], y_val=y_val[:40])
    found = first.fit(with_balance(valuer))
    check_same(found.add_validation(X_val[40:], y_val[40:]), expected)


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.VoidGuaranteeWarning")
def test_private_fits_take_balanced_weights(problem):
    options = {"metric": "euclidean", "epsilon": 5.0, "noise_random_state": 0}
    valuer = TKNNShapleyValuer(1.0, **options)
    found = problem.fit(with_balance(valuer))
    plain = problem.fit(clone(valuer), sample_weight_val=balanced(problem.y_val))
    check_same(found, plain)
    assert str(found.privacy_) == str(plain.privacy_)


@each([LayeredShapleyValuer(GaussianNB(), max_evaluations=120), LEAVE_ONE_OUT])
def test_the_constant_prediction_is_fitted_with_the_weights(valuer, problem):
    y_val = problem.y_val
    weights = balanced(y_val) * np.linspace(1, 2, len(y_val))
    valuer = clone(valuer).set_params(scoring="f1_macro")
    problem.fit(valuer, sample_weight_val=weights)
    heaviest = max("abc", key=lambda label: weights[y_val == label].sum())
    prediction = np.full(len(y_val), heaviest)
    expected = f1_score(y_val, prediction, average="macro", sample_weight=weights)
    assert valuer.empty_utility_ == pytest.approx(expected)


# What it is good for ------------------------------------------------------------------


def fraction_of_negative_minority(class_weight):
    X, y = make_classification(
        1500,
        10,
        n_informative=5,
        weights=[0.95],
        flip_y=0,
        class_sep=0.8,
        random_state=0,
    )
    values = KNNShapleyValuer(class_weight=class_weight).fit(X, y).values_
    return (values[y == 1] < 0).mean()


def test_without_balance_minority_rows_are_the_lowest():
    assert fraction_of_negative_minority(None) > 0.9


def test_with_balance_minority_rows_are_not_the_lowest():
    assert fraction_of_negative_minority("balanced") < 0.2


# What is refused ----------------------------------------------------------------------

TWO_CLASSES = (
    "class_weight='balanced' needs validation points of at least two classes, in X_val"
)


def test_balanced_targets_are_refused(problem):
    X = problem.X
    message = "class_weight must be None for a regression.*'balanced'"
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(class_weight="balanced").fit(X, X[:, 0])


def test_points_of_one_class_are_refused(problem):
    is_first = problem.y_val == "a"
    one = problem._replace(X_val=problem.X_val[is_first], y_val=problem.y_val[is_first])
    with pytest.raises(ValueError, match=TWO_CLASSES):
        one.fit(KNNShapleyValuer(class_weight="balanced"))


def test_single_points_of_splits_are_refused(problem):
    valuer = LeaveOneOutValuer(
        LogisticRegression(), cv=LeaveOneOut(), class_weight="balanced"
    )
    with pytest.raises(ValueError, match=TWO_CLASSES):
        valuer.fit(*problem.rows)


def test_splits_with_points_of_one_class_are_refused(problem):
    X, y = problem.rows
    order = np.argsort(y)
    valuer = KNNShapleyValuer(cv=KFold(12), class_weight="balanced")
    with pytest.raises(ValueError, match=TWO_CLASSES):
        valuer.fit(X[order], y[order])


@pytest.mark.parametrize("cls", [LeaveOneOutValuer, LayeredShapleyValuer])
def test_a_scorer_without_weights_is_refused(cls, problem):
    valuer = cls(
        scoring=lambda model, X, y: 1.0, empty_utility=0.0, class_weight="balanced"
    )
    message = "class_weight='balanced', need a scorer that takes"
    with pytest.raises(ValueError, match=message):
        problem.fit(valuer)


def test_weights_by_class_are_refused(problem):
    message = "The 'class_weight' parameter of KNNShapleyValuer must"
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(class_weight={"a": 2}).fit(*problem.rows)
