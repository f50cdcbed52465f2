"""Callbacks see the steps of a fit, and end it; so does Ctrl-C."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skvalue import (
    DataOOBValuer,
    InfluenceValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
)
from skvalue.exceptions import IncompleteFitWarning

from ..watch import Impatient, Watch

IN_THREADS = [KNNShapleyValuer(n_jobs=2), TKNNShapleyValuer(0.5, n_jobs=2)]


def two_classes_at_random(rng, n):
    return rng.normal(size=(n, 2)), rng.integers(0, 2, n)


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(), TKNNShapleyValuer()])
@pytest.mark.parametrize("cv", ["leave-one-out", 3])
def test_callbacks_see_every_task(valuer, cv, rng):
    X, y = two_classes_at_random(rng, 900)
    watch = Watch()
    valuer = clone(valuer).set_params(cv=cv)
    values = clone(valuer).fit(X, y).values_
    watched = valuer.set_callbacks(watch).fit(X, y)
    assert watch.begun == watch.ended == watch.expected > 1
    assert watch.set_up == watch.torn_down == 1
    np.testing.assert_array_equal(watched.values_, values)


@pytest.mark.parametrize("valuer", IN_THREADS)
def test_a_callback_stops_the_fit_and_values_are_of_the_points_done(valuer, rng):
    X, y = two_classes_at_random(rng, 50)
    X_val, y_val = two_classes_at_random(rng, 3000)
    valuer.set_callbacks(Watch(stop_at=2))
    message = "stopped by a callback: .* evaluated until then"
    with pytest.warns(IncompleteFitWarning, match=message):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
    n_done = len(valuer.contributions(0).contributions)
    assert 0 < n_done < 3000
    of_points_done = clone(valuer).set_callbacks()
    of_points_done.fit(X, y, X_val=X_val[:n_done], y_val=y_val[:n_done])
    np.testing.assert_allclose(valuer.values_, of_points_done.values_, atol=1e-13)
    assert valuer.utility_ == pytest.approx(of_points_done.utility_)
    X_new = X + 1
    np.testing.assert_allclose(valuer.transform(X_new), of_points_done.transform(X_new))


@pytest.mark.parametrize(
    "valuer",
    [
        KNNShapleyValuer(),
        TKNNShapleyValuer(0.5),
        InfluenceValuer(),
        InRunShapleyValuer(n_steps=3, random_state=0),
        LeaveOneOutValuer(),
        DataOOBValuer(n_estimators=40, random_state=0),
    ],
    ids=lambda valuer: type(valuer).__name__,
)
def test_a_callback_that_stops_after_the_last_step_stops_nothing(valuer, rng):
    X, y = two_classes_at_random(rng, 40)
    watch = Watch()
    values = clone(valuer).set_callbacks(watch).fit(X, y).values_
    stopped = clone(valuer).set_callbacks(Watch(stop_at=watch.ended))
    with warnings.catch_warnings():
        warnings.simplefilter("error", IncompleteFitWarning)
        stopped.fit(X, y)
    np.testing.assert_array_equal(stopped.values_, values)


@pytest.mark.parametrize("valuer", IN_THREADS)
def test_points_are_added_after_an_early_stop(valuer, rng):
    X, y = two_classes_at_random(rng, 50)
    X_val, y_val = two_classes_at_random(rng, 6000)
    weights = rng.random(6000)

    def points(rows):
        return {
            "X_val": X_val[rows],
            "y_val": y_val[rows],
            "sample_weight_val": weights[rows],
        }

    valuer.set_callbacks(Watch(stop_at=2))
    with pytest.warns(IncompleteFitWarning):
        valuer.fit(X, y, **points(slice(3000)))
    n_first = len(valuer.contributions(0).contributions)
    assert 0 < n_first < 3000
    valuer.set_callbacks(Watch(stop_at=1))
    with pytest.warns(IncompleteFitWarning):
        valuer.add_validation(**points(slice(3000, None)))
    n_added = len(valuer.contributions(0).contributions) - n_first
    assert 0 < n_added < 3000

    done = np.r_[:n_first, 3000 : 3000 + n_added]
    of_points_done = clone(valuer).set_callbacks().fit(X, y, **points(done))
    np.testing.assert_allclose(valuer.values_, of_points_done.values_, atol=1e-13)
    assert valuer.utility_ == pytest.approx(of_points_done.utility_)


def test_control_c_keeps_what_is_done(rng):
    X, y = two_classes_at_random(rng, 50)
    X_val, y_val = two_classes_at_random(rng, 3000)
    watch = Watch(interrupt_at=3)
    valuer = KNNShapleyValuer().set_callbacks(watch)
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert watch.torn_down == 1
    gap = valuer.values_.sum() - (valuer.utility_ - valuer.empty_utility_)
    assert abs(gap) < 1e-12
    assert np.count_nonzero(valuer.values_) == 50


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(), TKNNShapleyValuer(0.1)])
def test_control_c_before_any_point_is_done_sets_no_values(valuer, rng):
    X, y = two_classes_at_random(rng, 900)
    valuer = clone(valuer).set_callbacks(Impatient(interrupt_at=1))
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y, X_val=X, y_val=y)
    assert not hasattr(valuer, "values_")


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(), TKNNShapleyValuer(0.1)])
def test_a_split_that_is_not_begun_is_left_out_of_the_means(valuer, rng):
    X, y = two_classes_at_random(rng, 900)
    first = np.arange(450)
    last = np.arange(450, 900)
    watch = Watch()
    valuer = clone(valuer).set_params(cv=[(first, last), (last, first)])
    valuer.set_callbacks(watch).fit(X, y)
    assert watch.begun % 2 == 0
    valuer.set_callbacks(Impatient(interrupt_at=watch.begun // 2 + 1))
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y)

    of_first_split = clone(valuer).set_callbacks()
    of_first_split.fit(X[first], y[first], X_val=X[last], y_val=y[last])
    np.testing.assert_allclose(valuer.values_[first], of_first_split.values_)
    np.testing.assert_array_equal(valuer.values_[last], 0)
    assert valuer.utility_ == pytest.approx(of_first_split.utility_)
    assert len(valuer.contributions(3).contributions) == 900


def test_a_progress_bar_names_the_valuer(rng, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    X, y = two_classes_at_random(rng, 50)
    KNNShapleyValuer().set_callbacks(ProgressBar()).fit(X, y)
    assert "KNNShapleyValuer" in capsys.readouterr().out
