"""Control variates in valuers that retrain: smaller errors, same bits, refusals."""

import copy
import pickle
from unittest.mock import Mock

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from skvalue import (
    BetaShapleyValuer,
    DataBanzhafValuer,
    DataShapleyValuer,
    LeaveOneOutValuer,
    SemivalueValuer,
)
from skvalue.estimation import subsets
from skvalue.exceptions import ImpreciseValuesWarning, IncompleteFitWarning

from ...watch import Watch
from .semivalue_fits import Centroids, data, fit, quick

SLOW = pytest.mark.slow
pytestmark = pytest.mark.filterwarnings(
    "ignore::skvalue.exceptions.ImpreciseValuesWarning"
)


def logistic(**options):
    options = {
        "max_evaluations": 2000,
        "random_state": 0,
        "scoring": "neg_log_loss",
        **options,
    }
    return DataShapleyValuer(LogisticRegression(), **options)


def check_same_bits(valuer, other):
    np.testing.assert_array_equal(valuer.values_, other.values_)
    np.testing.assert_array_equal(valuer.values_error_, other.values_error_)
    assert valuer.adjustment_.error_ratio == other.adjustment_.error_ratio


@pytest.fixture(scope="module")
def plain():
    return fit(logistic(adjust=False), 50)


@pytest.fixture(scope="module")
def adjusted():
    return fit(logistic(adjust=True), 50)


def test_adjusted_errors_are_smaller_at_the_same_number_of_coalitions(plain, adjusted):
    assert plain.n_evaluations_ == adjusted.n_evaluations_
    assert adjusted.values_error_.mean() < 0.7 * plain.values_error_.mean()
    changes = np.abs(adjusted.values_ - plain.values_)
    assert (changes < 4.5 * plain.values_error_).all()


def test_adjusted_shapley_values_sum_to_the_gain(adjusted):
    gain = adjusted.utility_ - adjusted.empty_utility_
    assert adjusted.values_.sum() == pytest.approx(gain, abs=1e-12)


def test_the_attribute_states_the_ratio_of_errors_and_the_fits_saved(plain, adjusted):
    ratio = np.sqrt(
        (adjusted.values_error_**2).mean() / (plain.values_error_**2).mean()
    )
    adjustment = adjusted.adjustment_
    assert adjustment.used
    assert adjustment.error_ratio == pytest.approx(ratio)
    n_saved = adjusted.n_evaluations_ * (1 / adjustment.error_ratio**2 - 1)
    assert adjustment.n_fits_saved == round(n_saved)
    assert plain.adjustment_ == {"used": False, "error_ratio": 1.0, "n_fits_saved": 0}


def test_auto_adjusts_where_fits_one_by_one_are_explained():
    valuer = quick(sampler="stratified", max_evaluations=1100)
    assert fit(valuer).adjustment_.used


@pytest.mark.parametrize(
    ("valuer", "is_fitted"),
    [
        (DataShapleyValuer(GaussianNB()), False),
        (DataBanzhafValuer(GaussianNB()), True),
        (DataShapleyValuer(KNeighborsClassifier(3)), True),
        (DataShapleyValuer(GaussianNB(), sampler="antithetic"), False),
        (quick(), False),
    ],
    ids=[
        "the fastest solvers",
        "Banzhaf values of the fastest solvers",
        "other batched solvers",
        "permutations",
        "too few coalitions",
    ],
)
def test_auto_fits_surrogates_where_they_may_help(valuer, is_fitted, monkeypatch):
    spy = Mock(wraps=subsets.adjusted_moments)
    monkeypatch.setattr(subsets, "adjusted_moments", spy)
    count = 1000 if valuer.batch == "never" else 1100
    fit(valuer.set_params(max_evaluations=count, random_state=0))
    assert spy.called == is_fitted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sampler": "antithetic"},
            "adjust=True needs random subsets.*Got sampler='antithetic'",
        ),
        (
            {"truncation": 0.1},
            "adjust=True needs random subsets.*Got sampler='antithetic'",
        ),
        ({"sampler": "exact"}, "adjust=True needs random subsets.*sampler='exact'"),
        (
            {"max_evaluations": 1024},  # one of which holds all rows
            "adjust=True needs at least 1024 coalitions.*Got 1023",
        ),
        (
            {"max_evaluations": 2000, "cv": 3},
            "in each split. Got 665: increase max_evaluations",
        ),
        ({"adjust": "never"}, "The 'adjust' parameter"),
    ],
    ids=str,
)
def test_what_cannot_be_adjusted_is_refused(options, message):
    problem = data()
    points = {} if "cv" in options else problem.points
    valuer = quick(**{"max_evaluations": 1100, "adjust": True, **options})
    with pytest.raises(ValueError, match=message):
        valuer.fit(*problem.rows, **points)


def test_leave_one_out_has_no_adjustment():
    assert not hasattr(fit(LeaveOneOutValuer(Centroids())), "adjustment_")


# The same bits ------------------------------------------------------------------------


def test_the_bits_are_the_same_for_any_number_of_jobs():
    options = {"max_evaluations": 1100, "adjust": True}
    with joblib.parallel_config("threading"):
        threaded = fit(quick(**options, n_jobs=3))
    check_same_bits(threaded, fit(quick(**options)))


SAMPLERS = pytest.mark.parametrize(
    "sampler", ["stratified", pytest.param("subsets", marks=SLOW)]
)


@SAMPLERS
def test_a_fit_resumed_after_a_callback_has_the_same_bits(sampler):
    options = {"sampler": sampler, "max_evaluations": 1200}
    stopped = quick(**options, adjust="auto", warm_start=True)
    with pytest.warns(IncompleteFitWarning):
        fit(stopped.set_callbacks(Watch(stop_at=8)))
    assert not stopped.adjustment_.used
    resumed = pickle.loads(pickle.dumps(stopped))
    fit(resumed.set_callbacks().set_params(adjust=True))
    check_same_bits(resumed, fit(quick(**options, adjust=True)))


@SAMPLERS
def test_a_fit_resumed_from_a_file_without_adjustment_has_the_same_bits(
    sampler, tmp_path
):
    file = tmp_path / "state"
    fit(quick(sampler=sampler, adjust=False, max_evaluations=1100, checkpoint=file))
    options = {"sampler": sampler, "max_evaluations": 1200, "adjust": True}
    resumed = fit(quick(**options, checkpoint=file))
    check_same_bits(resumed, fit(quick(**options)))


GOAL = {"max_evaluations": None, "tol": 0.0025}


@SLOW
def test_a_goal_is_reached_earlier_with_an_adjustment():
    adjusted = fit(quick(**GOAL, adjust=True))
    assert adjusted.stop_reason_ == "tol"
    assert adjusted.values_error_.max() <= 0.0025
    plain = fit(quick(**GOAL, adjust=False))
    assert adjusted.n_evaluations_ < plain.n_evaluations_


@SLOW
def test_a_goal_is_reached_where_an_undisturbed_fit_reaches_it(tmp_path):
    file = tmp_path / "state"
    for count in (600, 1500):
        fit(quick(max_evaluations=count, checkpoint=file))
    resumed = fit(quick(**GOAL, adjust=True, checkpoint=file))
    undisturbed = fit(quick(**GOAL, adjust=True))
    check_same_bits(resumed, undisturbed)
    assert resumed.n_evaluations_ == undisturbed.n_evaluations_


@pytest.fixture(scope="module")
def two_fits():
    return [fit(logistic(random_state=seed, adjust=True)) for seed in (1, 2)]


def test_merged_fits_are_adjusted_together(two_fits):
    first, second = copy.deepcopy(two_fits)
    mean = (first.values_ + second.values_) / 2
    n_evaluations = first.n_evaluations_ + second.n_evaluations_ - 1
    error = first.values_error_.mean()
    merged = first.merge(second)
    assert merged.adjustment_.used
    assert merged.n_evaluations_ == n_evaluations
    assert merged.values_error_.mean() < 0.8 * error
    assert (np.abs(merged.values_ - mean) < 2 * merged.values_error_).all()


def test_a_pickled_fit_is_merged_to_the_same_bits(two_fits):
    first, second = two_fits
    pickled = pickle.loads(pickle.dumps(first)).merge(second)
    check_same_bits(copy.deepcopy(first).merge(second), pickled)


def test_a_merge_of_a_copy_leaves_a_fit_as_it_was(two_fits):
    first, second = two_fits
    interval = first.confidence_interval()
    copy.deepcopy(first).merge(second)
    np.testing.assert_array_equal(first.confidence_interval(), interval)


def test_a_fit_that_ends_early_says_that_it_is_not_adjusted():
    valuer = quick(max_evaluations=2000, adjust=True).set_callbacks(Watch(stop_at=3))
    with (
        pytest.warns(IncompleteFitWarning),
        pytest.warns(
            ImpreciseValuesWarning, match="adjust=True needs 1024.*are not adjusted"
        ),
    ):
        fit(valuer)
    assert not valuer.adjustment_.used


# Rows of any kind ---------------------------------------------------------------------


class Majority(Centroids):
    """Takes rows of any kind, and does not look at them."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.most_frequent_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        return np.full(n_rows, self.most_frequent_)


def as_frame(X):
    frame = pd.DataFrame(X, columns=list("abc"))
    return frame.assign(colour=np.where(X[:, 0] > 0, "red", None))


def as_sparse(X):
    return sparse.csr_array(np.where(X > 0, X, 0))


def as_texts(X):
    return [f"the number {x:.1f}" for x in X[:, 0]]


def with_missing_values(X):
    return np.where(X > 1, np.nan, X)


@pytest.mark.parametrize(
    "convert",
    [
        as_frame,
        pytest.param(as_texts, marks=SLOW),
        pytest.param(as_sparse, marks=SLOW),
        pytest.param(with_missing_values, marks=SLOW),
    ],
)
def test_rows_of_any_kind_can_be_adjusted(convert):
    X, y, X_val, y_val = data(30)

    def fit(adjust):
        valuer = SemivalueValuer(
            Majority(), max_evaluations=1050, random_state=0, adjust=adjust
        )
        return valuer.fit(convert(X), y, X_val=convert(X_val), y_val=y_val)

    plain = fit(adjust=False)
    adjusted = fit(adjust=True)
    assert adjusted.adjustment_.error_ratio < 0.7  # by the class counts
    changes = np.abs(adjusted.values_ - plain.values_)
    assert (changes < 4.5 * plain.values_error_).all()


SPLITS = {"adjust": True, "cv": 2, "max_evaluations": 2400, "random_state": 0}


def test_values_of_groups_and_splits_can_be_adjusted():
    X, y, *_ = data(60)
    valuer = BetaShapleyValuer(Centroids(), alpha=2, **SPLITS)
    valuer.fit(X, y, groups=np.arange(60) // 2)
    assert valuer.adjustment_.used
    assert valuer.adjustment_.error_ratio < 1


def test_values_of_a_regression_can_be_adjusted():
    X, *_ = data(60)
    valuer = SemivalueValuer(Ridge(), **SPLITS).fit(X, X[:, 0] + X[:, 1] ** 2)
    assert valuer.adjustment_.error_ratio < 0.9
