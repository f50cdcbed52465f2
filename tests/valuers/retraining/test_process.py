"""sampler="process" of the semivalue valuers: values of few rows from few fits."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skvalue import (
    BetaShapleyValuer,
    DataBanzhafValuer,
    DataShapleyValuer,
    SemivalueValuer,
)

from ...watch import Watch
from .semivalue_fits import Centroids, data, fit

N = 12
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]


def process(cls=SemivalueValuer, **options):
    options = {
        "sampler": "process",
        "max_evaluations": 100,
        "batch": "never",
        "random_state": 0,
        **options,
    }
    return cls(Centroids(), **options)


def exact(cls=SemivalueValuer, **options):
    options = {"sampler": "exact", "max_evaluations": None, **options}
    return fit(process(cls, **options), n=N)


def assert_same(valuer, other):
    np.testing.assert_array_equal(valuer.values_, other.values_)
    np.testing.assert_array_equal(valuer.values_error_, other.values_error_)
    assert valuer.n_evaluations_ == other.n_evaluations_


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (DataShapleyValuer, {}),
        (DataBanzhafValuer, {}),
        (BetaShapleyValuer, {"alpha": 4, "beta": 1}),
        (SemivalueValuer, {"semivalue": lambda n: np.full(n, 1 / n)}),
    ],
    ids=["shapley", "banzhaf", "beta", "custom"],
)
def test_values_are_within_their_errors(cls, options):
    valuer = fit(process(cls, max_evaluations=150, **options), n=N)
    assert valuer.sampler_ == "process"
    assert valuer.n_evaluations_ == 150
    assert not valuer.adjustment_.used
    misses = np.abs(valuer.values_ - exact(cls, **options).values_)
    assert (misses <= 4 * valuer.values_error_).all()


# Equal bits ---------------------------------------------------------------------------


def test_values_do_not_depend_on_the_number_of_workers():
    assert_same(fit(process(n_jobs=2), n=N), fit(process(), n=N))


@pytest.mark.parametrize("first", [15, 40, 70])
def test_a_warm_start_continues_the_fit(first):
    valuer = fit(process(max_evaluations=first, warm_start=True), n=N)
    assert valuer.n_evaluations_ == first
    fit(valuer.set_params(max_evaluations=100), n=N)
    assert_same(valuer, fit(process(), n=N))


def test_an_interrupted_fit_resumes_from_its_checkpoint(tmp_path):
    options = {"max_evaluations": 300}
    valuer = process(checkpoint=tmp_path / "state.npz", **options)
    with pytest.raises(KeyboardInterrupt):
        fit(valuer.set_callbacks(Watch(interrupt_at=2)), n=N)
    assert valuer.stop_reason_ == "interrupted"
    assert valuer.n_evaluations_ < 300
    resumed = fit(process(checkpoint=tmp_path / "state.npz", **options), n=N)
    assert_same(resumed, fit(process(**options), n=N))


def test_a_merge_is_the_same_in_either_order():
    one = fit(process(), n=N)
    other = fit(process(random_state=1), n=N)
    merged = fit(process(), n=N).merge(other)
    other.merge(one)
    assert_same(merged, other)
    assert merged.n_evaluations_ == 199
    misses = np.abs(merged.values_ - exact().values_)
    assert misses.mean() < np.abs(one.values_ - exact().values_).mean()


# Ends ---------------------------------------------------------------------------------


def test_a_goal_ends_the_fit_early():
    valuer = fit(process(max_evaluations=4000, tol=0.015), n=N)
    assert valuer.stop_reason_ == "tol"
    assert valuer.values_error_.max() <= 0.015
    assert 4 * N < valuer.n_evaluations_ < 600


def test_a_callback_stops_the_fit():
    valuer = process(max_evaluations=300).set_callbacks(Watch(stop_at=3))
    with pytest.warns(UserWarning, match="coalitions evaluated until then"):
        fit(valuer, n=N)
    assert valuer.stop_reason_ == "callback"
    assert np.isfinite(valuer.values_).all()


def test_a_time_limit_ends_the_fit():
    valuer = fit(process(max_evaluations=4000, max_time=1e-9), n=N)
    assert valuer.stop_reason_ == "max_time"
    assert N <= valuer.n_evaluations_ < 1000


def test_an_estimate_of_the_cost_counts_the_fits_of_the_process():
    rows = data(N)
    cost = process().estimate_cost(rows.X, rows.y, **rows.points)
    assert cost.n_evaluations == 100
    assert cost.seconds > 100 * cost.seconds_per_evaluation
    stratified = process(sampler="stratified")
    cost = stratified.estimate_cost(rows.X, rows.y, **rows.points)
    seconds = cost.n_evaluations * cost.seconds_per_evaluation
    assert cost.seconds == pytest.approx(seconds)


# The choice of the sampler ------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "n", "sampler"),
    [
        ({}, 14, "process"),
        ({"max_evaluations": 256}, 8, "exact"),
        ({"max_evaluations": None}, 14, "process"),  # the default number
        ({"max_evaluations": 4096}, 13, "process"),
        ({"max_evaluations": 4097}, 13, "stratified"),
        ({"max_evaluations": 15}, 14, "permutation"),
        ({"max_evaluations": 16}, 14, "process"),
        ({"max_evaluations": 100}, 32, "process"),
        ({"max_evaluations": 100}, 33, "stratified"),
        ({"max_evaluations": 5000, "adjust": True}, 14, "stratified"),
        ({"max_evaluations": 2000, "adjust": True}, 14, "stratified"),
        ({"adjust": False}, 14, "process"),
        ({"truncation": 0.01}, 14, "antithetic"),
        ({"tol": 0.1, "max_evaluations": None}, 14, "stratified"),
        ({"semivalue": "banzhaf"}, 14, "process"),
        ({"semivalue": "banzhaf", "max_evaluations": 5000}, 14, "subsets"),
    ],
)
def test_auto_is_the_process_for_few_slow_fits(options, n, sampler):
    valuer = process(**{"sampler": "auto", **options})
    problem = data(n)
    cost = valuer.estimate_cost(
        problem.X, problem.y, X_val=problem.X_val, y_val=problem.y_val
    )
    assert cost.sampler == sampler


def test_models_trained_in_batches_need_no_process():
    valuer = DataShapleyValuer(LogisticRegression(), max_evaluations=200)
    assert fit(valuer, n=N).sampler_ == "stratified"


def test_each_split_has_a_process():
    valuer = DataShapleyValuer(
        DecisionTreeClassifier(), cv=3, max_evaluations=150, random_state=0
    )
    problem = data(N)
    valuer.fit(problem.X, problem.y)
    assert valuer.sampler_ == "process"
    assert valuer.n_evaluations_ == 150
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-12)


def test_groups_are_players():
    problem = data(40)
    groups = np.arange(40) % 13
    valuer = problem.fit(process(sampler="auto"), groups=groups)
    assert valuer.sampler_ == "process"
    assert valuer.values_.shape == (13,)


# What else follows from the process ---------------------------------------------------


@pytest.mark.parametrize("semivalue", ["banzhaf", "leave-one-out", (4, 1)])
def test_other_semivalues_follow_without_a_warning(semivalue, recwarn):
    valuer = fit(process(max_evaluations=200), n=N)
    recwarn.clear()
    other = valuer.reweight(semivalue)
    assert not recwarn.list
    expected = exact().reweight(semivalue).values_
    misses = np.abs(other.values_ - expected)
    assert (misses <= 5 * other.values_error_ + 1e-6).all()


def test_interactions_are_near_those_of_an_enumeration():
    valuer = fit(process(max_evaluations=300), n=N)
    expected = exact().interactions_
    assert valuer.interactions_.shape == (N, N)
    assert np.corrcoef(valuer.interactions_.ravel(), expected.ravel())[0, 1] > 0.8
    assert valuer.interactions_ is valuer.interactions_  # computed once


def test_interactions_of_an_enumeration_are_symmetric():
    n = 5
    valuer = fit(process(DataBanzhafValuer, sampler="auto", max_evaluations=None), n=n)
    interactions = valuer.interactions_
    assert valuer.sampler_ == "exact"
    np.testing.assert_allclose(interactions, interactions.T, atol=1e-12)
    assert (np.diag(interactions) == 0).all()


def test_other_samplers_have_no_interactions():
    valuer = fit(process(sampler="stratified"), n=N)
    with pytest.raises(AttributeError, match=r"sampler='process' or 'exact'.*Got"):
        _ = valuer.interactions_
    with pytest.raises(AttributeError, match="not fitted"):
        _ = process().interactions_


# Refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "n", "message"),
    [
        ({"max_evaluations": 14}, 14, "at least 15 for sampler='process'.*Got 14"),
        ({"max_evaluations": 5000}, 14, "at most 4,096.*Got 5,000"),
        ({}, 33, "at most 32 players.*Got 33"),
        ({"adjust": True}, 14, "adjust=True needs random subsets"),
        ({"truncation": 0.1}, 14, "truncation needs a sampler of permutations"),
    ],
)
def test_what_the_process_cannot_do_is_refused(options, n, message):
    with pytest.raises(ValueError, match=message):
        fit(process(**options), n=n)


def test_sums_over_the_rows_of_groups_are_refused():
    problem = data(N)
    valuer = process(group_values="faithful")
    with pytest.raises(ValueError, match="group_values='faithful' needs sampler="):
        problem.fit(valuer, groups=np.arange(N) % 5)
