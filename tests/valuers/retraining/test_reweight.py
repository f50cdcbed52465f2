"""`reweight` of the valuers that retrain: other semivalues without another fit."""

import warnings

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skvalue import (
    DataBanzhafValuer,
    DataShapleyValuer,
    LeaveOneOutValuer,
    SemivalueValuer,
)
from skvalue.exceptions import ImpreciseValuesWarning

from ...watch import Watch
from .semivalue_fits import data, fit

SLOW = pytest.mark.slow


def quick(**options):
    options = {"max_evaluations": 1000, "random_state": 0, **options}
    return SemivalueValuer(GaussianNB(), **options)


def enumerate_values(semivalue, n=8):
    return fit(quick(semivalue=semivalue, sampler="exact", max_evaluations=None), n)


def second_size(n):
    """A semivalue of coalitions of one other player."""
    return np.eye(n)[1]


@pytest.mark.parametrize("semivalue", ["banzhaf", [4, 1], second_size])
def test_an_enumeration_has_the_exact_values_of_all_semivalues(semivalue):
    reweighted = enumerate_values("shapley").reweight(semivalue)
    exact = enumerate_values(semivalue).values_
    np.testing.assert_allclose(reweighted.values_, exact, atol=1e-12)
    assert list(reweighted) == ["values_", "values_error_"]
    assert (reweighted.values_error_ == 0).all()


def test_an_enumeration_has_the_exact_values_of_leave_one_out():
    reweighted = enumerate_values("shapley").reweight("leave-one-out")
    exact = fit(LeaveOneOutValuer(GaussianNB()), 8).values_
    np.testing.assert_allclose(reweighted.values_, exact, atol=1e-12)
    assert (reweighted.values_error_ == 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"groups": np.arange(24) % 12},
        {"sample_weight": 1.0 - (np.arange(24) == 5)},
    ],
    ids=["rows", "groups", "weights"],
)
class TestSplits:
    def fit(self, options, **parameters):
        valuer = quick(cv=3, max_evaluations=1500, sampler="stratified", **parameters)
        return valuer.fit(*data().rows, **options)

    def test_the_own_semivalue_has_the_same_values(self, options):
        valuer = self.fit(options)
        again = valuer.reweight("shapley")
        np.testing.assert_allclose(again.values_, valuer.values_, atol=1e-12)
        np.testing.assert_allclose(again.values_error_, valuer.values_error_, rtol=1e-9)

    def test_another_semivalue_is_within_the_errors_of_an_own_fit(self, options):
        beta = self.fit(options).reweight((2, 1))
        own = self.fit(options, semivalue=(2, 1), random_state=1)
        errors = np.hypot(own.values_error_, beta.values_error_)
        assert (np.abs(own.values_ - beta.values_) <= 4.5 * errors).all()


def test_a_resumed_fit_has_all_coalitions(tmp_path):
    uninterrupted = fit(quick(max_evaluations=900))
    resumed = quick(max_evaluations=500, warm_start=True, checkpoint=tmp_path / "fit")
    fit(resumed)
    fit(resumed.set_params(max_evaluations=900))
    np.testing.assert_array_equal(
        resumed.reweight((2, 1)).values_, uninterrupted.reweight((2, 1)).values_
    )


def test_a_fit_resumed_after_ctrl_c_has_all_coalitions(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fit(quick(checkpoint=tmp_path / "fit").set_callbacks(Watch(interrupt_at=4)))
    resumed = fit(quick(checkpoint=tmp_path / "fit"))
    np.testing.assert_array_equal(
        resumed.reweight((2, 1)).values_, fit(quick()).reweight((2, 1)).values_
    )


def test_a_merged_fit_has_the_coalitions_of_both():
    errors = fit(quick()).reweight((2, 1)).values_error_
    merged = fit(quick()).merge(fit(quick(random_state=1)))
    own = merged.reweight("shapley")
    np.testing.assert_allclose(own.values_, merged.values_, atol=1e-12)
    assert merged.reweight((2, 1)).values_error_.mean() < 0.85 * errors.mean()


@pytest.fixture(scope="module")
def adjusted():
    return fit(quick(adjust=True, sampler="stratified", max_evaluations=3000), n=12)


@pytest.mark.parametrize(
    "semivalue",
    ["shapley", pytest.param((3, 1), marks=SLOW), pytest.param("banzhaf", marks=SLOW)],
)
def test_another_semivalue_is_adjusted_too(semivalue, adjusted):
    options = {"sampler": "stratified", "max_evaluations": 3000}
    plain = fit(quick(adjust=False, **options), n=12).reweight(semivalue)
    reweighted = adjusted.reweight(semivalue)
    deviations = np.abs(reweighted.values_ - enumerate_values(semivalue, 12).values_)
    assert (deviations <= 4.5 * reweighted.values_error_).all()
    assert reweighted.values_error_.mean() < 0.9 * plain.values_error_.mean()


def test_the_own_semivalue_has_the_same_adjusted_values(adjusted):
    own = adjusted.reweight("shapley")
    np.testing.assert_allclose(own.values_, adjusted.values_, atol=1e-9)
    np.testing.assert_allclose(own.values_error_, adjusted.values_error_, rtol=1e-6)


@pytest.fixture
def sixty_rows():
    return fit(DataShapleyValuer(GaussianNB(), max_evaluations=1500), n=60)


def test_a_warning_says_where_another_fit_is_better(sixty_rows):
    with pytest.warns(
        ImpreciseValuesWarning, match=r"about [2-4]\S* times.* a fit with \d+ would"
    ):
        sixty_rows.reweight("banzhaf")


@pytest.mark.parametrize("semivalue", [(2, 1), "shapley"])
def test_no_warning_is_issued_for_similar_semivalues(semivalue, sixty_rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sixty_rows.reweight(semivalue)


def test_unknown_semivalues_are_refused():
    with pytest.raises(ValueError, match="semivalue must be 'shapley'.*Got 'owen'"):
        enumerate_values("shapley").reweight("owen")


def test_coalitions_of_permutations_are_refused():
    valuer = fit(quick(sampler="antithetic"))
    with pytest.raises(ValueError, match="reweight needs sampler=.*Got 'antithetic'"):
        valuer.reweight("banzhaf")


def test_sizes_that_were_drawn_too_rarely_are_refused():
    banzhaf = DataBanzhafValuer(GaussianNB(), max_evaluations=200, random_state=0)
    with pytest.raises(ValueError, match="players are drawn too rarely"):
        fit(banzhaf, n=200).reweight("shapley")
