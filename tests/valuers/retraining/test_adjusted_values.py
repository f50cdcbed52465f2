"""Control variates in the valuers that retrain: smaller errors, the same bits, clear
refusals."""

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


def same(one, other):
    np.testing.assert_array_equal(one.values_, other.values_)
    np.testing.assert_array_equal(one.values_error_, other.values_error_)
    assert one.adjustment_.error_ratio == other.adjustment_.error_ratio


def test_adjusted_errors_are_smaller_at_the_same_number_of_coalitions():
    plain, adjusted = (fit(logistic(adjust=adjust), 50) for adjust in (False, True))
    assert plain.n_evaluations_ == adjusted.n_evaluations_
    assert adjusted.values_error_.mean() < 0.7 * plain.values_error_.mean()
    apart = np.abs(adjusted.values_ - plain.values_)
    assert (apart < 4.5 * plain.values_error_).all()
    gain = adjusted.utility_ - adjusted.empty_utility_
    assert adjusted.values_.sum() == pytest.approx(gain, abs=1e-12)
    found = adjusted.adjustment_
    assert found.used
    assert found.error_ratio == pytest.approx(
        np.sqrt((adjusted.values_error_**2).mean() / (plain.values_error_**2).mean())
    )
    saved = adjusted.n_evaluations_ * (1 / found.error_ratio**2 - 1)
    assert found.n_fits_saved == round(saved)
    assert plain.adjustment_ == {"used": False, "error_ratio": 1.0, "n_fits_saved": 0}


FEW = 1024  # coalitions, one of which holds all rows


def test_what_auto_does(monkeypatch):
    tried = Mock(wraps=subsets.adjusted_moments)
    monkeypatch.setattr(subsets, "adjusted_moments", tried)
    # Fits one by one: where the surrogate explains enough. The fastest solvers: never.
    assert fit(quick(max_evaluations=1100)).adjustment_.used
    for valuer, wanted in [
        (DataShapleyValuer(GaussianNB()), False),
        (DataBanzhafValuer(GaussianNB()), True),
        (DataShapleyValuer(KNeighborsClassifier(3)), True),
        (DataShapleyValuer(GaussianNB(), sampler="antithetic"), False),
        (quick(), False),  # of too few coalitions
    ]:
        tried.reset_mock()
        count = 1000 if valuer.batch == "never" else 1100
        fit(valuer.set_params(max_evaluations=count, random_state=0))
        assert tried.called == wanted


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
            {"max_evaluations": FEW},
            "adjust=True needs at least 1024 coalitions.*Got 1023",
        ),
        (
            {"max_evaluations": 2000, "cv": 3},
            "in each split. Got 665: increase max_evaluations",
        ),
        ({"adjust": "never"}, "The 'adjust' parameter"),
    ],
)
def test_what_cannot_be_adjusted_is_refused(options, message):
    X, y, X_val, y_val = data()
    points = {} if "cv" in options else {"X_val": X_val, "y_val": y_val}
    with pytest.raises(ValueError, match=message):
        quick(**{"max_evaluations": 1100, "adjust": True, **options}).fit(
            X, y, **points
        )


def test_leave_one_out_has_no_adjustment():
    assert not hasattr(fit(LeaveOneOutValuer(Centroids())), "adjustment_")


# The same bits ------------------------------------------------------------------------


def test_the_same_bits_for_any_number_of_jobs():
    one = fit(quick(max_evaluations=1100, adjust=True))
    with joblib.parallel_config("threading"):
        same(fit(quick(max_evaluations=1100, adjust=True, n_jobs=3)), one)


@pytest.mark.parametrize("sampler", ["stratified", pytest.param("subsets", marks=SLOW)])
def test_resumed_fits_have_the_same_bits(sampler, tmp_path):
    options = {"sampler": sampler, "adjust": True, "max_evaluations": 1200}
    whole = fit(quick(**options))
    # From a fit stopped by a callback, and from the file of one with another parameter.
    valuer = quick(**{**options, "adjust": "auto"}, warm_start=True)
    with pytest.warns(IncompleteFitWarning):
        fit(valuer.set_callbacks(Watch(stop_at=8)))
    assert not valuer.adjustment_.used
    same(
        fit(pickle.loads(pickle.dumps(valuer)).set_callbacks().set_params(adjust=True)),
        whole,
    )
    state = tmp_path / "state"
    fit(quick(sampler=sampler, adjust=False, max_evaluations=1100, checkpoint=state))
    same(fit(quick(**options, checkpoint=state)), whole)


@SLOW
def test_goals_are_reached_where_an_undisturbed_fit_reaches_them(tmp_path):
    options = {"max_evaluations": None, "tol": 0.0025, "adjust": True}
    whole = fit(quick(**options))
    assert whole.stop_reason_ == "tol"
    assert whole.values_error_.max() <= 0.0025
    assert (
        whole.n_evaluations_ < fit(quick(**{**options, "adjust": False})).n_evaluations_
    )
    state = tmp_path / "state"
    for count in (600, 1500):
        fit(quick(max_evaluations=count, checkpoint=state))
    resumed = fit(quick(**options, checkpoint=state))
    same(resumed, whole)
    assert resumed.n_evaluations_ == whole.n_evaluations_


def test_merged_fits_are_adjusted_together():
    one, two = (fit(logistic(random_state=s, adjust=True)) for s in (1, 2))
    interval = one.confidence_interval()
    both = pickle.loads(pickle.dumps(one)).merge(two)
    same(copy.deepcopy(one).merge(two), both)
    assert both.adjustment_.used
    assert both.n_evaluations_ == one.n_evaluations_ + two.n_evaluations_ - 1
    assert both.values_error_.mean() < 0.8 * one.values_error_.mean()
    mean = (one.values_ + two.values_) / 2
    assert (np.abs(both.values_ - mean) < 2 * both.values_error_).all()
    np.testing.assert_array_equal(one.confidence_interval(), interval)


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
        self.most_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(X.shape[0] if hasattr(X, "shape") else len(X), self.most_)


@pytest.mark.parametrize(
    "kind",
    [
        "frame",
        "texts",
        *(pytest.param(kind, marks=SLOW) for kind in ("sparse", "missing")),
    ],
)
def test_rows_of_any_kind(kind):
    X, y, X_val, y_val = data(30)
    make = {
        "frame": lambda X: pd.DataFrame(X, columns=list("abc")).assign(
            colour=np.where(X[:, 0] > 0, "red", None)
        ),
        "sparse": lambda X: sparse.csr_array(np.where(X > 0, X, 0)),
        "texts": lambda X: [f"the number {x:.1f}" for x in X[:, 0]],
        "missing": lambda X: np.where(X > 1, np.nan, X),
    }[kind]
    fits = [
        SemivalueValuer(
            Majority(), max_evaluations=1050, random_state=0, adjust=adjust
        ).fit(make(X), y, X_val=make(X_val), y_val=y_val)
        for adjust in (False, True)
    ]
    assert fits[1].adjustment_.error_ratio < 0.7  # by the class counts
    assert (
        np.abs(fits[1].values_ - fits[0].values_) < 4.5 * fits[0].values_error_
    ).all()


def test_groups_and_splits():
    X, y, *_ = data(60)
    groups = np.arange(60) // 2
    valuer = BetaShapleyValuer(
        Centroids(), alpha=2, adjust=True, cv=2, max_evaluations=2400, random_state=0
    ).fit(X, y, groups=groups)
    assert valuer.adjustment_.used
    assert valuer.adjustment_.error_ratio < 1
    regression = SemivalueValuer(
        Ridge(), adjust=True, cv=2, max_evaluations=2400, random_state=0
    )
    assert regression.fit(X, X[:, 0] + X[:, 1] ** 2).adjustment_.error_ratio < 0.9
