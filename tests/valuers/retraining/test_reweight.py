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


def quick(**options):
    options = {"max_evaluations": 1000, "random_state": 0, **options}
    return SemivalueValuer(GaussianNB(), **options)


def exact(semivalue, n=8, **options):
    return fit(
        quick(semivalue=semivalue, sampler="exact", max_evaluations=None), n, **options
    )


@pytest.mark.parametrize(
    "semivalue", ["banzhaf", "leave-one-out", [4, 1], lambda n: np.eye(n)[1]]
)
def test_an_exact_fit_has_the_exact_values_of_all(semivalue):
    found = exact("shapley").reweight(semivalue)
    if semivalue == "leave-one-out":
        own = fit(LeaveOneOutValuer(GaussianNB()), 8)
    else:
        own = exact(semivalue)
    np.testing.assert_allclose(found.values_, own.values_, atol=1e-12)
    assert list(found) == ["values_", "values_error_"]
    assert (found.values_error_ == 0).all()


@pytest.mark.parametrize(
    "options", [{}, {"groups": np.arange(24) % 12}, {"sample_weight": True}]
)
def test_the_own_semivalue_and_another_from_splits(options):
    X, y, *_ = data()
    if "sample_weight" in options:
        options = {"sample_weight": 1.0 - (np.arange(24) == 5)}
    valuer = quick(cv=3, max_evaluations=1500, sampler="stratified")
    valuer.fit(X, y, **options)
    again = valuer.reweight("shapley")
    np.testing.assert_allclose(again.values_, valuer.values_, atol=1e-12)
    np.testing.assert_allclose(again.values_error_, valuer.values_error_, rtol=1e-9)
    beta = valuer.reweight((2, 1))
    own = valuer.set_params(semivalue=(2, 1), random_state=1).fit(X, y, **options)
    error = np.hypot(own.values_error_, beta.values_error_)
    assert (np.abs(own.values_ - beta.values_) <= 4.5 * error).all()


def test_fits_that_resume_or_are_merged_have_all_coalitions(tmp_path):
    whole = fit(quick(max_evaluations=900)).reweight((2, 1))
    resumed = quick(max_evaluations=500, warm_start=True, checkpoint=tmp_path / "fit")
    fit(resumed)
    np.testing.assert_array_equal(
        fit(resumed.set_params(max_evaluations=900)).reweight((2, 1)).values_,
        whole.values_,
    )
    with pytest.raises(KeyboardInterrupt):
        fit(quick(checkpoint=tmp_path / "new").set_callbacks(Watch(interrupt_at=4)))
    again = fit(quick(checkpoint=tmp_path / "new")).reweight((2, 1))
    np.testing.assert_array_equal(again.values_, fit(quick()).reweight((2, 1)).values_)
    merged = fit(quick()).merge(fit(quick(random_state=1)))
    own = merged.reweight("shapley")
    np.testing.assert_allclose(own.values_, merged.values_, atol=1e-12)
    assert (
        merged.reweight((2, 1)).values_error_.mean() < 0.85 * again.values_error_.mean()
    )


@pytest.mark.parametrize(
    "semivalue",
    [
        "shapley",
        *(pytest.param(s, marks=pytest.mark.slow) for s in [(3, 1), "banzhaf"]),
    ],
)
def test_adjusted_values_of_another_semivalue(semivalue):
    options = dict(sampler="stratified", max_evaluations=3000)
    fits = [fit(quick(adjust=adjust, **options), n=12) for adjust in (True, False)]
    true = fit(
        quick(semivalue=semivalue, sampler="exact", max_evaluations=None), n=12
    ).values_
    adjusted, plain = (valuer.reweight(semivalue) for valuer in fits)
    assert (np.abs(adjusted.values_ - true) <= 4.5 * adjusted.values_error_).all()
    assert adjusted.values_error_.mean() < 0.9 * plain.values_error_.mean()
    if semivalue == "shapley":
        np.testing.assert_allclose(adjusted.values_, fits[0].values_, atol=1e-9)
        np.testing.assert_allclose(
            adjusted.values_error_, fits[0].values_error_, rtol=1e-6
        )


def test_warns_where_another_fit_is_better():
    valuer = fit(DataShapleyValuer(GaussianNB(), max_evaluations=1500), n=60)
    with pytest.warns(
        ImpreciseValuesWarning, match=r"about [2-4]\S* times.* a fit with \d+ would"
    ):
        valuer.reweight("banzhaf")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        valuer.reweight((2, 1))
        valuer.reweight("shapley")


def test_refuses_what_the_coalitions_do_not_say():
    with pytest.raises(ValueError, match="semivalue must be 'shapley'.*Got 'owen'"):
        exact("shapley").reweight("owen")
    valuer = fit(quick(sampler="antithetic"))
    with pytest.raises(ValueError, match="reweight needs sampler=.*Got 'antithetic'"):
        valuer.reweight("banzhaf")
    banzhaf = DataBanzhafValuer(GaussianNB(), max_evaluations=200, random_state=0)
    with pytest.raises(ValueError, match="players are drawn too rarely"):
        fit(banzhaf, n=200).reweight("shapley")
