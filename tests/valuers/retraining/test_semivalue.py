"""Semivalues by retraining: games, errors, stopping rules, and the same bits again."""

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

from ...problems import split
from .semivalue_fits import Centroids, data, fit, quick

# Of few rows; tests that look for them find them all the same.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]


SLOW = pytest.mark.slow
TIGHT = LogisticRegression(tol=1e-10, solver="newton-cholesky")


def check_values_sum_to_the_gain(valuer):
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain)


def check_same_bits(valuer, other):
    np.testing.assert_array_equal(valuer.values_, other.values_)
    np.testing.assert_array_equal(valuer.values_error_, other.values_error_)


# What the values are ------------------------------------------------------------------


def uniform_weights(n):
    return np.full(n, 1 / n)


def only_all_others(n):
    """Weights of sizes of leave-one-out."""
    return np.eye(n)[-1]


SIX_ROWS = data(6)
SIX_TARGETS = split(*make_regression(30, 2, noise=5, random_state=0), 6)
ENUMERATED = [
    (DataShapleyValuer(TIGHT), "shapley", SIX_ROWS),
    (DataBanzhafValuer(TIGHT), "banzhaf", SIX_ROWS),
    (BetaShapleyValuer(TIGHT, alpha=4, beta=2), (4, 2), SIX_ROWS),
    (LeaveOneOutValuer(TIGHT), only_all_others, SIX_ROWS),
    (
        SemivalueValuer(TIGHT, uniform_weights, sampler="exact"),
        uniform_weights,
        SIX_ROWS,
    ),
    (SemivalueValuer(Ridge(), task="regression"), "shapley", SIX_TARGETS),
    (
        SemivalueValuer(TIGHT, (1, 4), scoring="roc_auc", batch="never"),
        (1, 4),
        SIX_ROWS,
    ),
]
ENUMERATED_NAMES = [
    "Shapley",
    "Banzhaf",
    "Beta",
    "leave-one-out",
    "custom",
    "regression",
    "scorer",
]


@pytest.mark.parametrize(
    ("valuer", "semivalue", "problem"), ENUMERATED, ids=ENUMERATED_NAMES
)
def test_few_rows_are_valued_by_enumeration(valuer, semivalue, problem):
    problem.fit(valuer)
    game = ModelGame(
        valuer.estimator,
        *problem.rows,
        **problem.points,
        scoring=valuer.scoring,
        batch="never",
    )

    def utility(players):
        return game.utility(np.isin(np.arange(6), players)[None])[0]

    exact = enumerate_semivalue(utility, 6, semivalue)
    np.testing.assert_allclose(valuer.values_, exact, atol=1e-6)
    assert valuer.sampler_ == valuer.stop_reason_ == "exact"
    assert (valuer.values_error_ == 0).all()
    assert valuer.utility_ == pytest.approx(utility(np.arange(6)))
    assert valuer.empty_utility_ == game.empty_utility


@pytest.mark.parametrize(
    ("valuer", "problem"),
    [
        (valuer, problem)
        for valuer, _, problem in ENUMERATED
        if not isinstance(valuer, LeaveOneOutValuer)
    ],
    ids=[name for name in ENUMERATED_NAMES if name != "leave-one-out"],
)
def test_intervals_of_exact_values_are_points(valuer, problem):
    problem.fit(valuer)
    assert (valuer.confidence_interval() == valuer.values_[:, None]).all()
    assert (valuer.sign_decided() == (valuer.values_ != 0)).all()


@pytest.mark.parametrize("sampler", ["stratified", "subsets", "antithetic"])
def test_estimates_are_near_exact_values_and_sum_to_the_gain(sampler):
    exact = fit(SemivalueValuer(Centroids(), sampler="exact"), 10)
    valuer = fit(quick(sampler=sampler, max_evaluations=600), 10)
    assert (np.abs(valuer.values_ - exact.values_) <= 4 * valuer.values_error_).all()
    check_values_sum_to_the_gain(valuer)
    assert valuer.sampler_ == sampler
    assert valuer.n_evaluations_ <= 600


@pytest.mark.parametrize(
    ("cls", "semivalue"),
    [
        (DataShapleyValuer, "shapley"),
        (DataBanzhafValuer, "banzhaf"),
        (BetaShapleyValuer, (16, 1)),
    ],
)
def test_named_valuers_are_the_semivalue_valuer(cls, semivalue):
    options = {"max_evaluations": 70, "random_state": 0}
    named = fit(cls(Centroids(), **options))
    general = fit(SemivalueValuer(Centroids(), semivalue, **options))
    np.testing.assert_array_equal(named.values_, general.values_)
    assert named.sampler_ == general.sampler_


@pytest.mark.parametrize("cv", [3, KFold(4), LeaveOneOut()], ids=str)
def test_cross_validation_is_the_mean_over_splits(cv):
    X, y, *_ = data(6)
    y[:4] = ["no", "yes", "no", "yes"]
    valuer = SemivalueValuer(Centroids(), cv=cv, max_evaluations=10_000)
    valuer.fit(X, y)
    total = np.zeros(6)
    utilities = []
    for players, points in check_cv(cv, y, classifier=True).split(X, y):
        of_split = clone(valuer)
        of_split.fit(X[players], y[players], X_val=X[points], y_val=y[points])
        total[players] += of_split.values_
        utilities.append(of_split.utility_)
    np.testing.assert_allclose(valuer.values_, total / len(utilities), atol=1e-14)
    assert valuer.utility_ == pytest.approx(np.mean(utilities))
    check_values_sum_to_the_gain(valuer)


def test_errors_of_cross_validation_are_those_of_a_mean():
    rows = data(30).rows
    options = {"sampler": "antithetic", "max_evaluations": 800}
    first = quick(**options, random_state=1).fit(*rows)
    second = quick(**options, random_state=2).fit(*rows)
    errors = np.hypot(first.values_error_, second.values_error_)
    differences = (first.values_ - second.values_) / errors
    assert 0.7 < np.sqrt(np.mean(differences**2)) < 1.3


NAMES = ["a", "b", "c", "d", "e"]
GROUPS = np.array(NAMES)[np.arange(40) % 5]


@pytest.mark.parametrize("points", [{}, data(40).points], ids=["splits", "points"])
def test_each_row_has_the_value_of_its_group(points):
    valuer = SemivalueValuer(Centroids(), cv=5)
    column = valuer.fit_transform(*data(40).rows, groups=GROUPS, **points)
    assert valuer.groups_.tolist() == NAMES
    np.testing.assert_array_equal(column[:, 0], valuer.values_[np.arange(40) % 5])
    check_values_sum_to_the_gain(valuer)


def test_groups_play_the_group_game():
    problem = data(40)
    valuer = problem.fit(SemivalueValuer(Centroids()), groups=GROUPS)
    game = ModelGame(Centroids(), *problem.rows, **problem.points, groups=GROUPS)

    def utility(groups):
        return game.utility(np.isin(np.arange(5), groups)[None])[0]

    exact = enumerate_semivalue(utility, 5, "shapley")
    np.testing.assert_allclose(valuer.values_, exact, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    ["transform", "score_samples", "contributions", "add_validation", "harmful"],
)
def test_what_would_need_another_fit_is_no_method(name):
    assert not hasattr(fit(LeaveOneOutValuer(Centroids())), name)


def test_mislabelled_rows_are_worth_less():
    problem = data(100, 200, d=5)
    wrong = np.arange(10)
    y = problem.y
    y[wrong] = np.where(y[wrong] == "yes", "no", "yes")
    valuer = DataShapleyValuer(max_evaluations=3000, random_state=0)
    values = problem.fit(valuer).values_
    right = values[10:]
    error = np.std(right) / np.sqrt(10)
    assert values[wrong].mean() < right.mean() - 3 * error


def test_equal_rows_have_equal_values():
    X, y, X_val, y_val = data(5)
    valuer = DataShapleyValuer(Centroids(), sampler="exact")
    valuer.fit(np.r_[X, X[:2]], np.r_[y, y[:2]], X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(valuer.values_[:2], valuer.values_[5:], atol=1e-14)


def test_values_at_halves_of_the_validation_points_have_the_values_as_their_mean():
    X, y, X_val, y_val = data(7)

    def values(points):
        valuer = DataShapleyValuer(Centroids(), sampler="exact")
        return valuer.fit(X, y, X_val=X_val[points], y_val=y_val[points]).values_

    halves = [values(slice(0, 20)), values(slice(20, 40))]
    np.testing.assert_allclose(
        values(slice(0, 40)), np.mean(halves, axis=0), atol=1e-14
    )


# Weights ------------------------------------------------------------------------------


def test_weights_of_validation_points_are_repetitions():
    X, y, X_val, y_val = data(8)
    counts = np.arange(40) % 3
    valuer = DataBanzhafValuer()
    valuer.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=counts)
    repeated = DataBanzhafValuer().fit(
        X, y, X_val=np.repeat(X_val, counts, axis=0), y_val=np.repeat(y_val, counts)
    )
    np.testing.assert_allclose(valuer.values_, repeated.values_, atol=1e-12)


@pytest.mark.parametrize(
    ("batch", "groups"),
    [("auto", None), ("auto", np.arange(10) % 5), ("never", None)],
    ids=["batched", "groups", "one by one"],
)
class TestWeightsOfRows:
    """Weights in the fits of five players."""

    def fit(self, batch, groups, **options):
        problem = data(5 if groups is None else 10)
        valuer = DataShapleyValuer(TIGHT, scoring="neg_log_loss", batch=batch)
        return problem.fit(valuer, groups=groups, **options)

    def weights(self, groups):
        n_rows = 5 if groups is None else 10
        return np.random.default_rng(0).random(n_rows) * 3

    def exact_values(self, groups):
        """Values of a loop that cuts weights with the rows of a coalition."""
        X, y, X_val, y_val = data(5 if groups is None else 10)
        weights = self.weights(groups)
        players = np.arange(5) if groups is None else groups
        game = ModelGame(
            TIGHT, X, y, X_val, y_val, scoring="neg_log_loss", groups=groups
        )

        def utility(members):
            rows = np.isin(players, members)
            if len(set(y[rows])) < 2:
                return game.utility(np.isin(np.arange(5), members)[None])[0]
            model = clone(TIGHT).fit(X[rows], y[rows], sample_weight=weights[rows])
            return -log_loss(y_val, model.predict_proba(X_val))

        return enumerate_semivalue(utility, 5)

    def test_they_are_cut_with_the_coalition(self, batch, groups):
        valuer = self.fit(batch, groups, sample_weight=self.weights(groups))
        np.testing.assert_allclose(valuer.values_, self.exact_values(groups), atol=1e-6)

    def test_they_are_those_of_fit_transform(self, batch, groups):
        weights = self.weights(groups)
        valuer = self.fit(batch, groups, sample_weight=weights)
        problem = data(5 if groups is None else 10)
        column = clone(valuer).fit_transform(
            *problem.rows, **problem.points, groups=groups, sample_weight=weights
        )
        players = np.arange(5) if groups is None else groups
        np.testing.assert_array_equal(column[:, 0], valuer.values_[players])

    def test_the_next_fit_has_none(self, batch, groups):
        valuer = self.fit(batch, groups, sample_weight=self.weights(groups))
        weighted = valuer.values_
        problem = data(5 if groups is None else 10)
        problem.fit(valuer, groups=groups)
        assert (np.abs(valuer.values_ - weighted) > 1e-3).any()


class TestWeightsInSplits:
    """Weights of 20 rows, one of which is zero."""

    weights = np.where(np.arange(20) == 3, 0.0, np.random.default_rng(1).random(20))
    options = {
        "max_evaluations": 3000,
        "cv": 2,
        "scoring": "neg_log_loss",
        "random_state": 0,
    }

    def test_values_are_the_mean_over_splits(self):
        X, y = data(20).rows
        valuer = DataShapleyValuer(**self.options)
        valuer.fit(X, y, sample_weight=self.weights)
        total = np.zeros(20)
        for players, points in check_cv(2, y, classifier=True).split(X, y):
            of_split = clone(valuer).set_params(max_evaluations=1400, random_state=1)
            of_split.fit(
                X[players],
                y[players],
                X_val=X[points],
                y_val=y[points],
                sample_weight=self.weights[players],
            )
            total[players] += of_split.values_
        errors = np.maximum(valuer.values_error_, 1e-9)
        assert (np.abs(valuer.values_ - total / 2) < 6 * errors).all()

    def test_a_row_of_weight_zero_is_worth_nothing(self):
        valuer = DataShapleyValuer(**self.options, sampler="exact")
        valuer.fit(*data(20).rows, sample_weight=self.weights)
        assert valuer.values_[3] == pytest.approx(0, abs=1e-8)

    def test_the_cost_is_estimated_with_them(self):
        valuer = DataShapleyValuer(**self.options)
        cost = valuer.estimate_cost(*data(20).rows, sample_weight=self.weights)
        assert cost.n_evaluations <= 3000


def test_weights_are_part_of_what_a_fit_resumes_with():
    valuer = DataShapleyValuer(max_evaluations=200, random_state=0, warm_start=True)
    fit(valuer)
    with pytest.raises(
        ValueError, match="warm_start .* Got another sample_weight: set"
    ):
        fit(valuer, sample_weight=np.arange(1.0, 25))


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
    ids=["too few", "negative", "zero", "NaN", "estimator without weights"],
)
def test_bad_weights_of_rows_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        fit(quick(), sample_weight=weights)


def test_weights_are_routed_through_a_pipeline():
    X, y = data(20).rows
    weights = np.random.default_rng(0).random(20)
    with config_context(enable_metadata_routing=True):
        valuer = LeaveOneOutValuer(scoring="neg_log_loss")
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            valuer.set_fit_request(sample_weight=True),
        )
        values = pipeline.fit_transform(X, y, sample_weight=weights)
    scaled = StandardScaler().fit_transform(X)
    direct = valuer.fit_transform(scaled, y, sample_weight=weights)
    np.testing.assert_allclose(values, direct, atol=1e-12)


# Errors and intervals -----------------------------------------------------------------


def test_errors_are_those_of_other_random_numbers():
    fits = [
        fit(quick(sampler="stratified", random_state=seed, max_evaluations=200), 20)
        for seed in range(10)
    ]
    errors = np.mean([valuer.values_error_ for valuer in fits], axis=0)
    deviations = np.std([valuer.values_ for valuer in fits], axis=0, ddof=1)
    assert 0.75 < np.median(errors / deviations) < 1.35


@pytest.fixture(scope="module")
def antithetic():
    return fit(quick(sampler="antithetic"))


def widths(intervals):
    return np.diff(intervals, axis=1)[:, 0]


def test_intervals_of_a_higher_level_are_wider(antithetic):
    narrow = widths(antithetic.confidence_interval(0.5))
    assert (narrow < widths(antithetic.confidence_interval(0.95))).all()


def test_bernstein_intervals_are_wider_than_those_of_student(antithetic):
    by_bernstein = widths(antithetic.confidence_interval(0.95, "bernstein"))
    assert (by_bernstein > widths(antithetic.confidence_interval(0.95))).all()


def test_bernstein_intervals_grow_with_the_range_of_utilities(antithetic):
    of_unit_range = widths(antithetic.confidence_interval(0.95, "bernstein"))
    of_two = antithetic.confidence_interval(0.95, "bernstein", utility_range=(0, 2))
    assert (widths(of_two) > of_unit_range).all()


def test_signs_are_decided_where_the_interval_excludes_zero(antithetic):
    is_decided = antithetic.sign_decided(0.5)
    halfwidths = widths(antithetic.confidence_interval(0.5)) / 2
    np.testing.assert_array_equal(is_decided, np.abs(antithetic.values_) > halfwidths)
    assert antithetic.sign_decided(0.999).sum() <= is_decided.sum()


@pytest.mark.parametrize(
    ("method", "args", "message"),
    [
        ("confidence_interval", (95,), "level must be between 0 and 1. Got 95"),
        (
            "sign_decided",
            (0.95, "normal"),
            "method must be 't' or 'bernstein'. Got 'normal'",
        ),
        (
            "confidence_interval",
            (0.95, "bernstein"),
            "needs independent replicates.*Got 'stratified'",
        ),
    ],
)
def test_bad_intervals_are_refused(method, args, message):
    valuer = fit(quick(sampler="stratified", max_evaluations=100))
    with pytest.raises(ValueError, match=message):
        getattr(valuer, method)(*args)


def test_bernstein_intervals_need_the_range_of_a_loss():
    valuer = quick(sampler="permutation", scoring="neg_log_loss", max_evaluations=50)
    fit(valuer.set_params(estimator=LogisticRegression()))
    with pytest.raises(ValueError, match="needs utility_range"):
        valuer.confidence_interval(method="bernstein")


# Stopping -----------------------------------------------------------------------------


def test_a_warning_says_that_the_number_of_coalitions_is_the_default():
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
    values = valuer.values_
    count = valuer.n_evaluations_
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
    assert 0.15 < time.perf_counter() - start < 60
    assert np.isfinite(valuer.values_error_).all()


class Sluggish(Centroids):
    """Takes three milliseconds to fit."""

    def fit(self, X, y):
        time.sleep(0.003)
        return super().fit(X, y)


class TestTimeForAnEnumeration:
    """2^8 coalitions of three milliseconds each, at least."""

    def valuer(self, max_time, **options):
        return SemivalueValuer(Sluggish(), max_time=max_time, random_state=0, **options)

    def test_without_it_auto_draws_coalitions(self):
        valuer = fit(self.valuer(0.4), 8)
        assert valuer.sampler_ == "stratified"
        assert valuer.stop_reason_ == "max_time"

    def test_without_it_an_enumeration_by_name_is_refused(self):
        with pytest.raises(ValueError, match=r"max_time must be enough for .* 256 co"):
            fit(self.valuer(0.4, sampler="exact"), 8)

    def test_with_it_auto_enumerates(self):
        assert fit(self.valuer(60), 8).sampler_ == "exact"


class TestEstimatedCost:
    problem = data(50)

    def estimate_cost(self, valuer):
        return valuer.estimate_cost(*self.problem.rows, **self.problem.points)

    def test_it_has_the_coalitions_of_the_fit(self):
        valuer = quick()
        cost = self.estimate_cost(valuer)
        self.problem.fit(valuer)
        assert cost.n_evaluations == valuer.n_evaluations_
        expected = cost.n_evaluations * cost.seconds_per_evaluation
        assert cost.seconds == pytest.approx(expected)

    @pytest.mark.slow  # looks at the clock
    def test_it_has_the_seconds_of_the_fit(self):
        valuer = quick()
        cost = self.estimate_cost(valuer)
        start = time.perf_counter()
        self.problem.fit(valuer)
        assert 0.2 < (time.perf_counter() - start) / cost.seconds < 5

    def test_it_names_sampler_and_solver(self):
        cost = self.estimate_cost(quick())
        assert cost.sampler == "stratified"
        assert cost.solver == "loop"
        assert cost.n_players == 50

    def test_it_is_the_time_limit_if_there_is_no_other(self):
        valuer = quick(max_evaluations=None, max_time=0.01)
        cost = valuer.estimate_cost(*self.problem.rows)
        assert cost.n_evaluations is None
        assert cost.seconds == 0.01

    def test_it_leaves_a_valuer_unfitted(self):
        valuer = quick()
        self.estimate_cost(valuer)
        assert not hasattr(valuer, "values_")


# The same bits ------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize(
    "sampler", ["stratified", pytest.param("antithetic", marks=SLOW)]
)
def test_the_bits_are_the_same_for_any_number_of_jobs(sampler, n_jobs):
    # Processes give the same bits in tests/games/test_model.py.
    options = {"sampler": sampler, "max_evaluations": 200}
    with joblib.parallel_config("threading"):
        threaded = fit(quick(**options, n_jobs=n_jobs))
    check_same_bits(threaded, fit(quick(**options)))


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_bits_are_the_same_for_any_number_of_threads_of_a_batched_solver(n_jobs):
    options = {"max_evaluations": 2000, "random_state": 0}
    single = fit(DataShapleyValuer(**options, n_jobs=1), 50)
    threaded = fit(DataShapleyValuer(**options, n_jobs=n_jobs), 50)
    np.testing.assert_array_equal(threaded.values_, single.values_)


def test_values_in_batches_agree_with_those_one_by_one():
    options = {"sampler": "stratified", "max_evaluations": 100, "random_state": 0}
    batched = fit(DataShapleyValuer(TIGHT, **options))
    single = fit(DataShapleyValuer(TIGHT, batch="never", **options))
    np.testing.assert_allclose(batched.values_, single.values_, atol=1e-6)


@pytest.mark.parametrize(
    "sampler",
    [
        "stratified",
        "antithetic",
        pytest.param("subsets", marks=SLOW),
        pytest.param("permutation", marks=SLOW),
    ],
)
def test_a_warm_start_resumes(sampler):
    valuer = quick(sampler=sampler, max_evaluations=200, warm_start=True)
    few = fit(valuer).values_
    assert valuer.n_evaluations_ <= 200
    fit(valuer.set_params(max_evaluations=500))
    assert (valuer.values_ != few).all()
    uninterrupted = fit(quick(sampler=sampler, max_evaluations=500))
    check_same_bits(valuer, uninterrupted)
    assert valuer.n_evaluations_ == uninterrupted.n_evaluations_


class TestRefusedWarmStarts:
    @pytest.fixture
    def valuer(self):
        return fit(quick(warm_start=True, max_evaluations=100))

    def test_other_data_are_named(self, valuer):
        with pytest.raises(
            ValueError,
            match="Got another X, y, X_val and y_val, or cv: set warm_start=False to s",
        ):
            fit(valuer, n=23)

    def test_another_semivalue_is_named(self, valuer):
        with pytest.raises(
            ValueError, match="Got another semivalue: set warm_start=False to start aga"
        ):
            fit(valuer.set_params(semivalue="banzhaf"))

    def test_other_random_numbers_are_named(self, valuer):
        with pytest.raises(
            ValueError, match="random numbers of random_state=0. Got random_state=5"
        ):
            fit(valuer.set_params(random_state=5))


def test_merged_fits_are_based_on_the_coalitions_of_both():
    options = {"sampler": "stratified", "max_evaluations": 600}
    first = fit(quick(**options, random_state=1))
    second = fit(quick(**options, random_state=2))
    mean = (first.values_ + second.values_) / 2
    error = first.values_error_.mean()
    count = first.n_evaluations_
    merged = first.merge(second)
    assert merged.n_evaluations_ == count + second.n_evaluations_ - 1
    assert merged.values_error_.mean() == pytest.approx(error / np.sqrt(2), rel=0.1)
    assert (np.abs(merged.values_ - mean) < merged.values_error_).all()


def test_a_fit_cannot_be_merged_twice():
    options = {"sampler": "stratified", "max_evaluations": 600}
    first = fit(quick(**options, random_state=1))
    second = fit(quick(**options, random_state=2))
    first.merge(second)
    with pytest.raises(ValueError, match="other random numbers.* same seed 2 in both"):
        first.merge(second)


@pytest.mark.parametrize(
    ("n", "options"),
    [(20, {}), (24, {"semivalue": "banzhaf"})],
    ids=["other rows", "another semivalue"],
)
def test_fits_of_other_games_cannot_be_merged(n, options):
    valuer = fit(quick(max_evaluations=600, random_state=1))
    other = fit(quick(random_state=3, max_evaluations=100, **options), n=n)
    with pytest.raises(ValueError, match="same class, fitted on the same data"):
        valuer.merge(other)


def test_merging_replicates_is_pooling_them():
    options = {"sampler": "permutation", "max_evaluations": 1 + 23 * 8}
    first = fit(quick(**options, random_state=1))
    second = fit(quick(**options, random_state=2))
    mean = (first.values_ + second.values_) / 2
    merged = first.merge(second)
    np.testing.assert_allclose(merged.values_, mean, atol=1e-14)
    assert merged.values_error_.mean() < fit(quick(**options)).values_error_.mean()


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
    ids=[
        "unknown semivalue",
        "leave-one-out",
        "weights that do not sum to one",
        "too many players to enumerate",
        "less than a replicate",
        "truncation of subsets",
        "scorer of no known empty utility",
        "unknown sampler",
        "tol",
        "max_time",
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fit(quick(**options))


class TestSmallestBudget:
    def test_less_than_a_block_of_subsets_is_refused(self):
        with pytest.raises(
            ValueError, match="max_evaluations must be at least 33 for .*100 players"
        ):
            fit(quick(max_evaluations=20), 100)

    @pytest.mark.parametrize(
        ("sampler", "named"),
        [
            ("auto", "sampler='auto', here 'permutation', and 8 players"),
            ("permutation", "sampler='permutation' and 8 players"),
        ],
    )
    def test_the_sampler_that_auto_takes_is_named_as_such(self, sampler, named):
        with pytest.raises(ValueError, match=f"at least 8 for {named}"):
            fit(quick(sampler=sampler, max_evaluations=5), 8)

    def test_a_block_of_subsets_is_enough(self):
        assert fit(quick(max_evaluations=33), 100).n_evaluations_ == 33

    def test_a_permutation_is_drawn_where_it_costs_less(self):
        assert fit(quick(max_evaluations=24)).sampler_ == "permutation"


def test_a_label_of_validation_points_alone_is_refused():
    X, y = data(20).rows
    y = np.where(np.arange(20) == 3, "rare", y)
    with pytest.raises(ValueError, match="label 'rare' are all among .* Got 5"):
        quick().fit(X, y, groups=np.arange(20) // 2)


@pytest.mark.parametrize(("sampler", "cost"), [("auto", 32), ("permutation", 14)])
def test_a_default_count_leaves_room_for_two_replicates(sampler, cost):
    X, y = data(16).rows
    y[:4] = ["no", "yes", "no", "yes"]
    valuer = quick(max_evaluations=None, sampler=sampler, cv=LeaveOneOut())
    with pytest.warns(ImpreciseValuesWarning):
        valuer.fit(X, y)
    assert valuer.n_evaluations_ == 16 * (1 + 2 * cost)
    assert np.isfinite(valuer.values_error_).all()


# Truncation, and random states --------------------------------------------------------


def test_truncation_that_saves_nothing_keeps_its_only_round():
    options = {
        "sampler": "permutation",
        "max_evaluations": 300,
        "random_state": 0,
        "scoring": "neg_log_loss",
    }
    truncated = fit(SemivalueValuer(truncation=1e-9, **options))
    plain = fit(SemivalueValuer(**options))
    np.testing.assert_allclose(truncated.values_, plain.values_, atol=1e-8)
    assert truncated.n_evaluations_ == plain.n_evaluations_


class TestTruncation:
    @pytest.fixture(scope="class")
    @staticmethod
    def truncated():
        return fit(quick(truncation=0.05, max_evaluations=800), 40)

    @pytest.fixture(scope="class")
    @staticmethod
    def plain():
        return fit(quick(sampler="antithetic", max_evaluations=800), 40)

    def test_auto_is_antithetic(self, truncated):
        assert truncated.sampler_ == "antithetic"

    def test_errors_are_smaller(self, truncated, plain):
        assert truncated.values_error_.mean() < plain.values_error_.mean()

    def test_values_keep_to_the_bound_of_the_bias(self, truncated, plain):
        bias = truncated.truncation_bias_
        assert (bias >= 0).all()
        assert 0 < bias.max() < 0.15
        differences = np.abs(truncated.values_ - plain.values_)
        errors = np.hypot(truncated.values_error_, plain.values_error_)
        assert (differences <= bias + 4 * errors).all()


def values_with(random_state):
    return fit(quick(random_state=random_state, max_evaluations=200)).values_


def test_fits_without_a_random_state_differ():
    assert (values_with(None) != values_with(None)).any()


def test_fits_with_equal_random_states_have_the_same_bits():
    np.testing.assert_array_equal(
        values_with(np.random.RandomState(3)), values_with(np.random.RandomState(3))
    )
