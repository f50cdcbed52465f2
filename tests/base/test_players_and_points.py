"""Which rows play and which points evaluate them: splits, groups and classes."""

import warnings
from functools import partial

import numpy as np
import pytest
from exact_valuers import each_exact_and_engine, each_of_classes, problem
from oracles import enumerate_game, knn_utility, tknn_utility
from sklearn.base import clone
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

from skvalue import (
    InfluenceValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    TKNNShapleyValuer,
)
from skvalue.exceptions import QuadraticCostWarning

from ..watch import Impatient

X0 = np.arange(20.0).reshape(10, 2)
Y0 = np.array(["a", "b"] * 5)


@each_of_classes
def test_leave_one_out_is_the_mean_of_n_games(name, rng):
    # The regression, whose prior mean is that of all rows, is compared with
    # enumeration.
    n = 12
    valuer, (X, y, *_) = problem(name, rng, n=n)
    y[:8] = np.tile(np.arange(4), 2) % len(set(y))  # no class of a single row
    total = np.zeros(n)
    for i in range(n):
        players = np.delete(np.arange(n), i)
        game = clone(valuer)
        game.fit(X[players], y[players], X_val=X[[i]], y_val=y[[i]])
        total[players] += game.values_ / n
    np.testing.assert_allclose(valuer.fit(X, y).values_, total, atol=1e-13)
    by_splitter = valuer.set_params(cv=LeaveOneOut()).fit(X, y)
    np.testing.assert_allclose(by_splitter.values_, total, atol=1e-13)


@pytest.mark.parametrize(
    "cv", [4, KFold(5), RepeatedStratifiedKFold(n_splits=3, n_repeats=2)], ids=str
)
@pytest.mark.parametrize("name", ["knn", "tknn-euclidean"])
def test_cross_validation_is_the_mean_over_splits(name, cv, rng):
    valuer, (X, y, *_) = problem(name, rng)
    if isinstance(cv, RepeatedStratifiedKFold):
        cv.random_state = 0
    splitter = StratifiedKFold(4) if cv == 4 else cv
    splits = list(splitter.split(X, y))
    total = np.zeros(len(X))
    utilities = []
    for players, points in splits:
        game = clone(valuer)
        game.fit(X[players], y[players], X_val=X[points], y_val=y[points])
        total[players] += game.values_ / len(splits)
        utilities.append(game.utility_)
    valuer.set_params(cv=cv).fit(X, y)
    np.testing.assert_allclose(valuer.values_, total, atol=1e-13)
    assert valuer.utility_ == pytest.approx(np.mean(utilities))
    by_list = clone(valuer).set_params(cv=splits).fit(X, y)
    assert by_list.values_ == pytest.approx(total)


@each_exact_and_engine
def test_a_group_has_the_sum_of_the_values_of_its_rows(name, rng):
    valuer, (X, y, X_val, y_val) = problem(name, rng)
    groups = np.array(["north", "south", "east"])[rng.integers(0, 3, len(X))]
    rows = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_
    values = valuer.fit_transform(X, y, X_val=X_val, y_val=y_val, groups=groups)
    assert list(valuer.groups_) == ["east", "north", "south"]
    expected = {group: rows[groups == group].sum() for group in valuer.groups_}
    np.testing.assert_allclose(valuer.values_, list(expected.values()))
    np.testing.assert_allclose(values[:, 0], [expected[group] for group in groups])
    valuer.fit(X, y)
    assert not hasattr(valuer, "groups_")


def test_a_group_is_no_validation_point_of_itself(rng):
    X = rng.normal(size=(30, 2))
    y = rng.integers(0, 2, 30)
    groups = np.arange(30) // 3
    valuer = KNNShapleyValuer(1).fit(X, y, groups=groups)
    # A twin in another group would be the nearest row.
    X_twice = np.r_[X, X + 1e-9]
    y_twice = np.r_[y, y]
    twins = KNNShapleyValuer(1).fit(X_twice, y_twice, groups=np.r_[groups, groups])
    assert twins.utility_ == pytest.approx(valuer.utility_)
    assert KNNShapleyValuer(1).fit(X_twice, y_twice).utility_ == pytest.approx(1)


def fit_with_new_classes(valuer, rng):
    """Rows of the classes a and b, points of these and of z and q, and the fit."""
    X = rng.normal(size=(6, 2))
    X_val = rng.normal(size=(5, 2))
    y = np.array(list("ababab"))
    y_val = np.array(list("abzzq"))
    return X, y, X_val, y_val, valuer.fit(X, y, X_val=X_val, y_val=y_val)


NEW_CLASSES = {
    "knn": (
        KNNShapleyValuer(2),
        partial(knn_utility, k=2, utility="soft", n_classes=4, prior=0),
    ),
    "tknn": (
        TKNNShapleyValuer(1.0, metric="euclidean"),
        partial(tknn_utility, radius=1.0, n_classes=4),
    ),
}


@pytest.mark.parametrize("name", NEW_CLASSES)
def test_a_class_that_only_validation_points_have_counts_as_one(name, rng):
    valuer, utility = NEW_CLASSES[name]
    X, y, X_val, y_val, valuer = fit_with_new_classes(clone(valuer), rng)
    expected = enumerate_game(utility, X, y, X_val, y_val)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-13)
    assert valuer.classes_.tolist() == list("abqz")
    assert valuer.empty_utility_ == 1 / 4


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.RadiusWarning")  # few rows
@pytest.mark.parametrize("name", NEW_CLASSES)
def test_a_class_of_added_validation_points_counts_as_one(name, rng):
    valuer, utility = NEW_CLASSES[name]
    X, y, X_val, y_val, whole = fit_with_new_classes(clone(valuer), rng)
    later = clone(whole).fit(X, y, X_val=X_val[:2], y_val=y_val[:2])
    assert later.empty_utility_ == 1 / 2
    later.add_validation(X_val[2:], y_val[2:])
    expected = enumerate_game(utility, X, y, X_val, y_val)
    np.testing.assert_allclose(later.values_, expected, atol=1e-13)
    assert np.isfinite(later.score_samples(X_val[:2], ["z", "b"])).all()


def test_the_private_game_has_the_classes_of_the_validation_points_too(rng):
    valuer = TKNNShapleyValuer(1.0, metric="euclidean", epsilon=1.0)
    *_, private = fit_with_new_classes(valuer, rng)
    assert private.classes_.tolist() == list("abqz")
    assert private.empty_utility_ == 1 / 4


UNEVEN = {
    "random splits": (
        ShuffleSplit(3, random_state=0), None, "must let every row play equally often",
    ),
    "row on both sides": (
        [(np.arange(5), np.arange(5))], None,
        "must not put a row on both sides of a split",
    ),
    "group on both sides": (
        [(np.arange(5), np.arange(5, 10))] * 2, np.arange(10) % 3,
        "must keep every group on one",
    ),
    "no split": ([], None, "cv=a list of splits must give at least one split"),
    "no split of groups": ([], np.arange(10) % 3, "must give at least one split"),
    "a row twice": (
        [([0, 0, 1, 2, 3, 4], np.arange(5, 10))] * 2, None,
        "must give row numbers, each once on a side, or masks",
    ),
    "halves of rows": ([([0.5], [1.5])], None, "must give row numbers, each once"),
    "too short a mask": (
        [(np.ones(4, bool), np.zeros(4, bool))], None, "must give row numbers, each",
    ),
    "a row that is none": (
        [(np.arange(5), np.arange(5, 11))], None, "from 0 to 9. Got 5 to 10",
    ),
    "a negative row": ([(np.arange(5), [-1])], None, "from 0 to 9. Got -1 to -1"),
    "too many folds": (20, None, "n_splits=20"),
    "a word": ("leave-two-out", None, "'cv' parameter of KNNShapleyValuer must be"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNEVEN)
def test_uneven_splitters_are_refused(case):
    cv, groups, message = UNEVEN[case]
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(cv=cv).fit(X0, Y0, groups=groups)


def test_a_list_of_long_splits_is_not_shown():
    splits = [(np.arange(1000), np.arange(1000))]
    X, y = np.arange(2000.0).reshape(-1, 1), np.arange(2000) % 2
    with pytest.raises(ValueError, match="both sides") as error:
        KNNShapleyValuer(cv=splits).fit(X, y)
    assert str(error.value).startswith("cv=a list of splits must not")


def masks_of(splits, n):
    """The splits as masks of all rows."""
    return [tuple(np.isin(np.arange(n), side) for side in split) for split in splits]


@pytest.mark.parametrize(
    "given",
    [
        lambda splits: masks_of(splits, 10),
        lambda splits: [tuple(side.tolist() for side in split) for split in splits],
        lambda splits: [(side[::-1], other) for side, other in splits],
        lambda splits: iter(splits),
        tuple,
    ],
    ids=["masks", "lists", "in another order", "iterator", "tuple"],
)
@pytest.mark.parametrize("cls", [KNNShapleyValuer, InfluenceValuer])
def test_splits_may_be_given_in_any_container(cls, given):
    splits = list(KFold(5).split(X0))
    expected = cls(cv=splits).fit(X0, Y0).values_
    values = cls(cv=given(splits)).fit(X0, Y0).values_
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("cls", [KNNShapleyValuer, InRunShapleyValuer])
@pytest.mark.parametrize("n_groups", [3, 5])
def test_cv_none_makes_folds_of_groups(cls, n_groups):
    groups = np.arange(10) % n_groups
    by_default = cls(cv=None).fit(X0, Y0, groups=groups)
    expected = cls(cv=5).fit(X0, Y0, groups=groups)
    np.testing.assert_allclose(by_default.values_, expected.values_)


def test_leave_one_out_of_many_rows_warns():
    n = 50_001
    X = np.arange(n, dtype=float)[:, None]
    y = np.arange(n) % 2
    valuer = KNNShapleyValuer().set_callbacks(Impatient(interrupt_at=1))
    message = "compares 2,500,100,001 pairs of rows. Pass X_val=, or cv=5"
    with (
        pytest.warns(QuadraticCostWarning, match=message),
        pytest.raises(KeyboardInterrupt),
    ):
        valuer.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cv, n_rows in ((5, n), ("leave-one-out", n - 1)):
            with pytest.raises(KeyboardInterrupt):
                valuer.set_params(cv=cv).fit(X[:n_rows], y[:n_rows])
