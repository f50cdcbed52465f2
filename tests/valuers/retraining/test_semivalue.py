"""Semivalues by retraining: games, errors, stopping rules, and the same bits again."""

import copy
import time
import warnings

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, LeaveOneOut, check_cv
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import (
    BetaShapleyValuer,
    DataBanzhafValuer,
    DataShapleyValuer,
    LeaveOneOutValuer,
    SemivalueValuer,
)
from skvalue.exceptions import ImpreciseValuesWarning
from skvalue.games import ModelGame
from skvalue.semivalues import enumerate_semivalue

from .semivalue_fits import Centroids, data, fit, quick

# Of few rows; tests that look for them find them all the same.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]


SLOW = pytest.mark.slow
TIGHT = LogisticRegression(tol=1e-10, solver="newton-cholesky")


# What the values are ------------------------------------------------------------------


@pytest.mark.parametrize(
    "valuer",
    [
        DataShapleyValuer(),
        DataBanzhafValuer(),
        BetaShapleyValuer(alpha=4, beta=2),
        LeaveOneOutValuer(),
        SemivalueValuer(semivalue=lambda n: np.full(n, 1 / n), sampler="exact"),
        SemivalueValuer(Ridge(), task="regression"),
        SemivalueValuer(scoring="roc_auc", semivalue=(1, 4), batch="never"),
    ],
    ids=lambda valuer: type(valuer).__name__,
)
def test_few_rows_are_valued_by_enumeration(valuer):
    if valuer.get_params().get("task") == "regression":
        X, y = make_regression(30, 2, noise=5, random_state=0)
        X, y, X_val, y_val, estimator = X[:6], y[:6], X[6:], y[6:], Ridge()
    else:
        X, y, X_val, y_val = data(6)
        estimator = TIGHT
    valuer.set_params(estimator=estimator).fit(X, y, X_val=X_val, y_val=y_val)
    game = ModelGame(
        estimator, X, y, X_val, y_val, scoring=valuer.scoring, batch="never"
    )

    def utility(players):
        return game.utility(np.isin(np.arange(6), players)[None])[0]

    of_loo = isinstance(valuer, LeaveOneOutValuer)
    weights = (lambda n: np.eye(n)[-1]) if of_loo else valuer._semivalue
    exact = enumerate_semivalue(utility, 6, weights)
    np.testing.assert_allclose(valuer.values_, exact, atol=1e-6)
    assert valuer.sampler_ == valuer.stop_reason_ == "exact"
    assert (valuer.values_error_ == 0).all()
    if not of_loo:
        assert (valuer.confidence_interval() == valuer.values_[:, None]).all()
        assert (valuer.sign_decided() == (valuer.values_ != 0)).all()
    assert valuer.utility_ == pytest.approx(
        game.utility(np.ones((1, 6), dtype=bool))[0]
    )
    assert valuer.empty_utility_ == game.empty_utility


@pytest.mark.parametrize("sampler", ["stratified", "subsets", "antithetic"])
def test_estimates_are_near_exact_values_and_sum_up(sampler):
    exact = fit(SemivalueValuer(Centroids(), sampler="exact"), 10)
    valuer = fit(quick(sampler=sampler, max_evaluations=600), 10)
    assert (np.abs(valuer.values_ - exact.values_) <= 4 * valuer.values_error_).all()
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )
    assert valuer.sampler_ == sampler
    assert valuer.n_evaluations_ <= 600


def test_named_valuers_are_the_semivalue_valuer():
    named = {
        DataShapleyValuer: "shapley",
        DataBanzhafValuer: "banzhaf",
        BetaShapleyValuer: (16, 1),
    }
    options = {"max_evaluations": 70, "random_state": 0}
    for cls, semivalue in named.items():
        by_name = fit(cls(Centroids(), **options))
        general = fit(SemivalueValuer(Centroids(), semivalue, **options))
        np.testing.assert_array_equal(by_name.values_, general.values_)
        assert by_name.sampler_ == general.sampler_


@pytest.mark.parametrize("cv", [3, KFold(4), LeaveOneOut()], ids=str)
def test_cross_validation_is_the_mean_over_splits(cv):
    X, y, *_ = data(6)
    y[:4] = ["no", "yes", "no", "yes"]
    valuer = SemivalueValuer(Centroids(), cv=cv, max_evaluations=10_000)
    valuer.fit(X, y)
    total, utilities = np.zeros(6), []
    for players, points in check_cv(cv, y, classifier=True).split(X, y):
        game = clone(valuer).fit(
            X[players], y[players], X_val=X[points], y_val=y[points]
        )
        total[players] += game.values_
        utilities.append(game.utility_)
    np.testing.assert_allclose(valuer.values_, total / len(utilities), atol=1e-14)
    assert valuer.utility_ == pytest.approx(np.mean(utilities))
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )


def test_errors_of_cross_validation_are_those_of_a_mean():
    X, y, *_ = data(30)
    one = [
        quick(sampler="antithetic", max_evaluations=800, random_state=s).fit(X, y)
        for s in (1, 2)
    ]
    scaled = (one[0].values_ - one[1].values_) / np.hypot(
        *(v.values_error_ for v in one)
    )
    assert 0.7 < np.sqrt(np.mean(scaled**2)) < 1.3


@pytest.mark.parametrize("points", ["validation", 4])
def test_groups_play_the_group_game(points):
    X, y, X_val, y_val = data(40)
    groups = np.array(["a", "b", "c", "d", "e"])[np.arange(40) % 5]
    extra = {"X_val": X_val, "y_val": y_val} if points == "validation" else {}
    valuer = SemivalueValuer(Centroids(), cv=5)
    column = valuer.fit_transform(X, y, groups=groups, **extra)
    assert valuer.groups_.tolist() == ["a", "b", "c", "d", "e"]
    np.testing.assert_array_equal(column[:, 0], valuer.values_[np.arange(40) % 5])
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )
    if points == "validation":
        game = ModelGame(Centroids(), X, y, X_val, y_val, groups=groups)
        exact = enumerate_semivalue(
            lambda g: game.utility(np.isin(np.arange(5), g)[None])[0], 5, "shapley"
        )
        np.testing.assert_allclose(valuer.values_, exact, atol=1e-12)


def test_no_transform_without_refitting():
    valuer = fit(LeaveOneOutValuer(Centroids()))
    for name in (
        "transform",
        "score_samples",
        "contributions",
        "add_validation",
        "harmful",
    ):
        assert not hasattr(valuer, name)


def test_mislabelled_rows_are_worth_less():
    X, y, X_val, y_val = data(100, 200, d=5)
    wrong = np.arange(10)
    y[wrong] = np.where(y[wrong] == "yes", "no", "yes")
    valuer = DataShapleyValuer(max_evaluations=3000, random_state=0)
    values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    assert values[wrong].mean() < values[10:].mean() - 3 * np.std(
        values[10:]
    ) / np.sqrt(10)


def test_equal_rows_have_equal_values_and_utilities_add_up():
    X, y, X_val, y_val = data(5)
    X, y = np.r_[X, X[:2]], np.r_[y, y[:2]]
    valuer = DataShapleyValuer(Centroids(), sampler="exact")
    values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    np.testing.assert_allclose(values[:2], values[5:], atol=1e-14)
    halves = [
        clone(valuer).fit(X, y, X_val=X_val[part], y_val=y_val[part]).values_
        for part in (slice(0, 20), slice(20, 40))
    ]
    np.testing.assert_allclose(values, np.mean(halves, axis=0), atol=1e-14)


def test_weights_of_validation_points():
    X, y, X_val, y_val = data(8)
    times = np.arange(40) % 3
    valuer = DataBanzhafValuer()
    weighted = valuer.fit(
        X, y, X_val=X_val, y_val=y_val, sample_weight_val=times
    ).values_
    X_val, y_val = np.repeat(X_val, times, axis=0), np.repeat(y_val, times)
    np.testing.assert_allclose(
        clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_, weighted, atol=1e-12
    )


@pytest.mark.parametrize(
    ("batch", "groups"), [("auto", None), ("auto", np.arange(10) % 5), ("never", None)]
)
def test_weights_of_rows_are_cut_with_the_coalition(batch, groups):
    X, y, X_val, y_val = data(10 if groups is not None else 5)
    weights = np.random.default_rng(0).random(len(X)) * 3
    model = TIGHT
    points = dict(X_val=X_val, y_val=y_val, groups=groups)
    valuer = DataShapleyValuer(model, scoring="neg_log_loss", batch=batch)
    valuer.fit(X, y, sample_weight=weights, **points)
    players = np.arange(5) if groups is None else groups

    def utility(members):
        rows = np.isin(players, members)
        if len(set(y[rows])) < 2:
            return game.utility(np.isin(np.arange(5), members)[None])[0]
        fitted = clone(model).fit(X[rows], y[rows], sample_weight=weights[rows])
        return -log_loss(y_val, fitted.predict_proba(X_val))

    game = ModelGame(model, X, y, X_val, y_val, scoring="neg_log_loss", groups=groups)
    exact = enumerate_semivalue(utility, 5)
    np.testing.assert_allclose(valuer.values_, exact, atol=1e-6)
    column = clone(valuer).fit_transform(X, y, sample_weight=weights, **points)
    np.testing.assert_array_equal(column[:, 0], valuer.values_[players])
    assert (
        np.abs(valuer.fit(X, y, **points).values_ - exact) > 1e-3
    ).any()  # weights are gone


def test_weights_of_rows_in_splits():
    X, y, *_ = data(20)
    weights = np.random.default_rng(1).random(20)
    weights[3] = 0
    valuer = DataShapleyValuer(
        max_evaluations=3000, cv=2, scoring="neg_log_loss", random_state=0
    )
    valuer.fit(X, y, sample_weight=weights)
    total = np.zeros(20)
    for players, points in check_cv(2, y, classifier=True).split(X, y):
        half = clone(valuer).set_params(max_evaluations=1400, random_state=1).fit(
            X[players], y[players], X_val=X[points], y_val=y[points],
            sample_weight=weights[players],
        )  # fmt: skip
        total[players] += half.values_
    error = np.maximum(valuer.values_error_, 1e-9)
    assert (np.abs(valuer.values_ - total / 2) < 6 * error).all()
    exact = clone(valuer).set_params(sampler="exact")
    assert exact.fit(X, y, sample_weight=weights).values_[3] == pytest.approx(
        0, abs=1e-8
    )
    cost = valuer.estimate_cost(X, y, sample_weight=weights)
    assert cost.n_evaluations <= 3000


def test_weights_are_part_of_what_a_fit_resumes_with():
    weights = np.arange(1.0, 25)
    valuer = fit(
        DataShapleyValuer(max_evaluations=200, random_state=0, warm_start=True)
    )
    with pytest.raises(
        ValueError, match="warm_start .* Got another sample_weight: set"
    ):
        fit(valuer, sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight must have one entry per row of X \(24\). Got 3"),
        (
            -np.ones(24),
            "sample_weight must be non-negative and not all zero. Got weights fr",
        ),
        (
            np.zeros(24),
            "sample_weight must be non-negative and not all zero. Got weights fr",
        ),
        (np.full(24, np.nan), "Input sample_weight contains NaN"),
        (
            np.ones(24),
            "sample_weight needs an estimator whose fit takes it. Got Centroids",
        ),
    ],
)
def test_bad_weights_of_rows(weights, message):
    with pytest.raises(ValueError, match=message):
        fit(quick(), sample_weight=weights)


def test_weights_through_a_pipeline_of_steps():
    X, y, *_ = data(20)
    weights = np.random.default_rng(0).random(20)
    with config_context(enable_metadata_routing=True):
        valuer = LeaveOneOutValuer(scoring="neg_log_loss").set_fit_request(
            sample_weight=True
        )
        through = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), valuer
        )
        through = through.fit_transform(X, y, sample_weight=weights)
    direct = valuer.fit_transform(
        StandardScaler().fit_transform(X), y, sample_weight=weights
    )
    np.testing.assert_allclose(through, direct, atol=1e-12)


# Errors and intervals -----------------------------------------------------------------


def test_errors_are_those_of_other_random_numbers():
    values, errors = [], []
    for seed in range(10):
        valuer = fit(quick(random_state=seed, max_evaluations=200), 20)
        values.append(valuer.values_)
        errors.append(valuer.values_error_)
    ratio = np.sqrt(np.mean(errors, axis=0) ** 2 / np.var(values, axis=0, ddof=1))
    assert 0.75 < np.median(ratio) < 1.35


def test_intervals_nest_and_bernstein_is_the_wider():
    valuer = fit(quick(sampler="antithetic"))
    by_t = [np.diff(valuer.confidence_interval(level), axis=1) for level in (0.5, 0.95)]
    assert (by_t[0] < by_t[1]).all()
    wide = np.diff(valuer.confidence_interval(0.95, "bernstein"), axis=1)
    assert (wide > by_t[1]).all()
    scaled = valuer.confidence_interval(0.95, "bernstein", utility_range=(0, 2))
    assert (np.diff(scaled, axis=1) > wide).all()
    sure = valuer.sign_decided(0.5)
    np.testing.assert_array_equal(sure, np.abs(valuer.values_) > by_t[0][:, 0] / 2)
    assert valuer.sign_decided(0.999).sum() <= sure.sum()


def test_bad_intervals():
    valuer = fit(quick(max_evaluations=100))
    with pytest.raises(ValueError, match="level must be between 0 and 1. Got 95"):
        valuer.confidence_interval(95)
    with pytest.raises(
        ValueError, match="method must be 't' or 'bernstein'. Got 'normal'"
    ):
        valuer.sign_decided(method="normal")
    with pytest.raises(
        ValueError, match="needs independent replicates.*Got 'stratified'"
    ):
        valuer.confidence_interval(method="bernstein")
    orders = quick(sampler="permutation", scoring="neg_log_loss", max_evaluations=50)
    fit(orders.set_params(estimator=LogisticRegression()))
    with pytest.raises(ValueError, match="needs utility_range"):
        orders.confidence_interval(method="bernstein")


# Stopping -----------------------------------------------------------------------------


def test_default_count_and_its_warning():
    with pytest.warns(
        ImpreciseValuesWarning, match="based on 9.. coalitions.* standard error"
    ):
        valuer = fit(quick(max_evaluations=None))
    assert valuer.stop_reason_ == "max_evaluations"
    assert 900 < valuer.n_evaluations_ <= 960  # 40 a row


def test_warnings_made_errors_lose_no_work():
    valuer = quick(max_evaluations=None, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ImpreciseValuesWarning)
        with pytest.raises(ImpreciseValuesWarning):
            fit(valuer)
    values, count = valuer.values_, valuer.n_evaluations_
    np.testing.assert_array_equal(fit(valuer).values_, values)
    assert valuer.n_evaluations_ == count > 900


def test_tol_stops_at_a_precision():
    valuer = fit(quick(max_evaluations=None, tol=0.01, adjust=False))
    assert valuer.stop_reason_ == "tol"
    assert valuer.values_error_.max() <= 0.01
    finer = fit(quick(max_evaluations=None, tol=0.003, adjust=False))
    assert finer.n_evaluations_ > valuer.n_evaluations_


def test_max_evaluations_ends_what_a_goal_does_not():
    assert fit(quick(max_evaluations=300, tol=1e-9)).stop_reason_ == "max_evaluations"


def test_max_time_stops_after_a_while():
    start = time.perf_counter()
    valuer = fit(quick(max_evaluations=None, max_time=0.2))
    assert valuer.stop_reason_ == "max_time"
    assert 0.15 < time.perf_counter() - start < 5
    assert np.isfinite(valuer.values_error_).all()


class Sluggish(Centroids):
    """Takes three milliseconds to fit."""

    def fit(self, X, y):
        time.sleep(0.003)
        return super().fit(X, y)


def test_max_time_is_too_short_for_an_enumeration():
    # 2^8 coalitions of three milliseconds each, at least.
    slow = SemivalueValuer(Sluggish(), max_time=0.4, random_state=0)
    valuer = fit(clone(slow), 8)
    assert (valuer.sampler_, valuer.stop_reason_) == ("stratified", "max_time")
    with pytest.raises(ValueError, match=r"max_time must be enough for .* 257 co"):
        fit(clone(slow).set_params(sampler="exact"), 8)
    assert fit(clone(slow).set_params(max_time=60), 8).sampler_ == "exact"


def test_estimated_cost():
    X, y = (problem := data(50)).rows
    valuer = quick()
    cost = valuer.estimate_cost(X, y, **problem.points)
    start = time.perf_counter()
    problem.fit(valuer)
    assert 0.2 < (time.perf_counter() - start) / cost.seconds < 5
    assert cost.n_evaluations == valuer.n_evaluations_
    assert (cost.sampler, cost.solver, cost.n_players) == ("stratified", "loop", 50)
    timed = valuer.set_params(max_evaluations=None, max_time=0.01)
    cost = timed.estimate_cost(X, y)
    assert cost.n_evaluations is None
    assert cost.seconds == 0.01
    fresh = quick()
    fresh.estimate_cost(X, y)
    assert not hasattr(fresh, "values_")


# The same bits ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler", ["stratified", pytest.param("antithetic", marks=SLOW)]
)
def test_the_same_bits_for_any_number_of_jobs(sampler):
    # Processes give the same bits in tests/games/test_model.py.
    one = fit(quick(sampler=sampler, max_evaluations=200))
    with joblib.parallel_config("threading"):
        for n_jobs in (2, 3):
            other = fit(quick(sampler=sampler, max_evaluations=200, n_jobs=n_jobs))
            np.testing.assert_array_equal(other.values_, one.values_)
            np.testing.assert_array_equal(other.values_error_, one.values_error_)


def test_the_same_bits_for_any_number_of_threads_of_a_batched_solver():
    one, *others = (
        fit(
            DataShapleyValuer(max_evaluations=2000, random_state=0, n_jobs=n_jobs), 50
        ).values_
        for n_jobs in (1, 2, 3)
    )
    np.testing.assert_array_equal(others, [one, one])


def test_batched_and_one_by_one_agree():
    options = {"max_evaluations": 100, "random_state": 0}
    batched = fit(DataShapleyValuer(TIGHT, **options))
    single = fit(DataShapleyValuer(TIGHT, batch="never", **options))
    np.testing.assert_allclose(batched.values_, single.values_, atol=1e-6)


@pytest.mark.parametrize(
    "sampler",
    [
        "stratified",
        "antithetic",
        *(pytest.param(s, marks=SLOW) for s in ("subsets", "permutation")),
    ],
)
def test_warm_start_resumes(sampler):
    whole = fit(quick(sampler=sampler, max_evaluations=500))
    valuer = quick(sampler=sampler, max_evaluations=200, warm_start=True)
    first = fit(valuer).values_
    assert valuer.n_evaluations_ <= 200
    fit(valuer.set_params(max_evaluations=500))
    assert (valuer.values_ != first).all()
    np.testing.assert_array_equal(valuer.values_, whole.values_)
    np.testing.assert_array_equal(valuer.values_error_, whole.values_error_)
    assert valuer.n_evaluations_ == whole.n_evaluations_


def test_warm_start_refuses_other_data_and_parameters():
    valuer = fit(quick(warm_start=True, max_evaluations=100))
    again = "set warm_start=False to start again."
    with pytest.raises(
        ValueError, match=f"Got another X, y, X_val and y_val, or cv: {again}"
    ):
        fit(valuer, n=23)
    with pytest.raises(ValueError, match=f"Got another semivalue: {again}"):
        fit(valuer.set_params(semivalue="banzhaf"))
    valuer.set_params(semivalue="shapley", random_state=5)
    with pytest.raises(
        ValueError, match="random numbers of random_state=0. Got random_state=5"
    ):
        fit(valuer)


def test_merging_two_fits():
    one, two = (fit(quick(max_evaluations=600, random_state=s)) for s in (1, 2))
    both = copy.deepcopy(one)
    both.merge(two)
    assert both.n_evaluations_ == one.n_evaluations_ + two.n_evaluations_ - 1
    # Twice the coalitions, and about the mean of the two.
    assert both.values_error_.mean() == pytest.approx(
        one.values_error_.mean() / np.sqrt(2), rel=0.1
    )
    mean = (one.values_ + two.values_) / 2
    assert (np.abs(both.values_ - mean) < both.values_error_).all()
    with pytest.raises(ValueError, match="other random numbers.* same seed 2 in both"):
        both.merge(two)
    for other in (
        fit(quick(random_state=3, max_evaluations=100), n=20),
        fit(quick(random_state=3, max_evaluations=100, semivalue="banzhaf")),
    ):
        with pytest.raises(ValueError, match="same class, fitted on the same data"):
            one.merge(other)


def test_merging_replicates_is_pooling_them():
    whole = fit(quick(sampler="permutation", max_evaluations=1 + 23 * 8))
    one, two = (fit(clone(whole).set_params(random_state=s)) for s in (1, 2))
    mean = (one.values_ + two.values_) / 2
    np.testing.assert_allclose(one.merge(two).values_, mean, atol=1e-14)
    assert one.values_error_.mean() < whole.values_error_.mean()


# What is refused before work starts ---------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"semivalue": "shapely"},
            "semivalue must be 'shapley'.*or a callable. Got 'shapely'",
        ),
        ({"semivalue": "leave-one-out"}, "semivalue .*use LeaveOneOutValuer"),
        (
            {"semivalue": lambda n: np.ones(n)},
            "callable semivalue must return 24 non-negative",
        ),
        (
            {"sampler": "exact"},
            "sampler='exact' enumerates.*at most 20 players. Got 24",
        ),
        (
            {"max_evaluations": 20, "sampler": "antithetic"},
            "max_evaluations must be at least 47",
        ),
        (
            {"truncation": 0.1, "sampler": "stratified"},
            "truncation needs a sampler of perm",
        ),
        (
            {"scoring": lambda model, X, y: model.coef_.sum()},
            "empty_utility must be given",
        ),
        ({"sampler": "random"}, "The 'sampler' parameter"),
        ({"tol": 0}, "The 'tol' parameter"),
        ({"max_time": -1}, "The 'max_time' parameter"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        fit(quick(**options))


def test_the_least_count_is_that_of_the_cheapest_sampler():
    with pytest.raises(
        ValueError, match="max_evaluations must be at least 33 for .*100 players"
    ):
        fit(quick(max_evaluations=20), 100)
    assert fit(quick(max_evaluations=33), 100).n_evaluations_ == 33
    assert fit(quick(max_evaluations=24)).sampler_ == "permutation"


def test_a_label_of_validation_points_alone():
    X, y, *_ = data(20)
    y = np.where(np.arange(20) == 3, "rare", y)
    with pytest.raises(ValueError, match="label 'rare' are all among .* Got cv=5"):
        quick().fit(X, y, groups=np.arange(20) // 2)


def test_a_default_count_leaves_room_for_two_replicates():
    X, y, *_ = data(16)
    y[:4] = ["no", "yes", "no", "yes"]
    with pytest.warns(ImpreciseValuesWarning):
        valuer = quick(max_evaluations=None).set_params(cv=LeaveOneOut()).fit(X, y)
    assert valuer.n_evaluations_ == 16 * (1 + 2 * 32)
    assert np.isfinite(valuer.values_error_).all()
    with pytest.warns(ImpreciseValuesWarning):  # whose replicates cost less
        valuer.set_params(sampler="permutation").fit(X, y)
    assert valuer.n_evaluations_ == 16 * (1 + 2 * 14)


def test_truncation_that_saves_nothing_keeps_its_only_round():
    options = dict(sampler="permutation", max_evaluations=300, random_state=0)
    options["scoring"] = "neg_log_loss"
    valuer = fit(SemivalueValuer(truncation=1e-9, **options))
    plain = fit(SemivalueValuer(**options))
    np.testing.assert_allclose(valuer.values_, plain.values_, atol=1e-8)
    assert valuer.n_evaluations_ == plain.n_evaluations_


def test_truncation_reports_its_bias():
    valuer = fit(quick(truncation=0.05, max_evaluations=800), 40)
    assert valuer.sampler_ == "antithetic"
    assert (valuer.truncation_bias_ >= 0).all()
    assert 0 < valuer.truncation_bias_.max() < 0.15
    plain = fit(quick(sampler="antithetic", max_evaluations=800), 40)
    assert valuer.values_error_.mean() < plain.values_error_.mean()
    off = np.abs(valuer.values_ - plain.values_)
    error = np.hypot(valuer.values_error_, plain.values_error_)
    assert (off <= valuer.truncation_bias_ + 4 * error).all()


def test_random_states():
    fresh = [
        fit(quick(random_state=None, max_evaluations=200)).values_ for _ in range(2)
    ]
    assert (fresh[0] != fresh[1]).any()
    seeds = [np.random.RandomState(3) for _ in range(2)]
    drawn = [
        fit(quick(random_state=seed, max_evaluations=200)).values_ for seed in seeds
    ]
    np.testing.assert_array_equal(*drawn)
