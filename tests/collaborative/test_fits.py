"""Progress, limits and forecasts of the fits of scorers and rewards, and Ctrl-C."""

import logging
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import (
    BayesianLinear,
    GaussianMean,
    GramRelease,
    RhoShapleyReward,
)

from ..watch import Watch
from .parties import noisy_sum, quietly, simulate, surprise_of

OPTIONS = {"n_particles": 80, "random_state": 0}
LINEAR = BayesianLinear()
MEAN = GaussianMean(0.1)


@pytest.fixture(scope="module")
def linear():
    """Releases of a linear model, and validation points."""
    _, parties = simulate(1, counts=(100, 200, 150, 120))
    *rows, (X_val, y_val) = parties
    releases = [
        quietly(GramRelease(4.0, noise_random_state=i).fit, X, y).release_
        for i, (X, y) in enumerate(rows)
    ]
    return releases, {"X_val": X_val, "y_val": y_val}


def mean_releases():
    return [noisy_sum(100, 30.0, 0.5), noisy_sum(80, 26.0, 0.2)]


CASES = ["surprise", "predictive", "surprise on a grid", "reward"]


@pytest.fixture(params=CASES)
def fit_of(request, linear):
    """An estimator, and the arguments of its fit."""
    releases, points = linear
    if request.param == "surprise":
        return BayesianSurpriseScorer(LINEAR, **OPTIONS), (releases,), {}
    if request.param == "predictive":
        return PredictiveValueScorer(LINEAR, **OPTIONS), (releases,), points
    if request.param == "surprise on a grid":
        return BayesianSurpriseScorer(MEAN), (mean_releases(),), {}
    scorer = surprise_of(mean_releases(), MEAN)
    return RhoShapleyReward(n_draws=20, random_state=0), (scorer,), {}


def values_of(estimator):
    if isinstance(estimator, RhoShapleyReward):
        return estimator.attained_rewards_
    return estimator.values_


class TestCallbacks:
    def test_see_every_step_and_change_nothing(self, fit_of):
        estimator, args, points = fit_of
        unwatched = clone(estimator).fit(*args, **points)
        watch = Watch()
        watched = clone(estimator).set_callbacks(watch).fit(*args, **points)
        assert watch.begun == watch.ended == watch.expected > 1
        assert watch.whole_ended
        assert watch.set_up == watch.torn_down == 1
        np.testing.assert_array_equal(values_of(watched), values_of(unwatched))

    def test_stop_the_fit_with_an_error(self, fit_of):
        estimator, args, points = fit_of
        estimator = clone(estimator).set_callbacks(Watch(stop_at=1))
        with pytest.raises(RuntimeError, match="stopped by a callback before all"):
            estimator.fit(*args, **points)
        with pytest.raises(NotFittedError):
            check_is_fitted(estimator)

    @pytest.mark.parametrize("step", [1, 2, -1])
    def test_ctrl_c_leaves_the_former_fit(self, fit_of, step):
        """Of the last step, too: values need all of them."""
        estimator, args, points = fit_of
        watch = Watch()
        fitted = clone(estimator).set_callbacks(watch).fit(*args, **points)
        before = dict(vars(fitted))
        interrupt_at = step if step > 0 else watch.ended
        fitted.set_callbacks(Watch(interrupt_at=interrupt_at))
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(*args, **points)
        for name, value in before.items():
            if "callback" not in name:
                assert vars(fitted)[name] is value


class TestMaxTime:
    def test_ends_the_sampling_of_coalitions(self, linear):
        releases, _ = linear
        scorer = BayesianSurpriseScorer(LINEAR, min_ess=400, **OPTIONS)
        all_ess = clone(scorer).fit(releases).ess_[1:]
        with pytest.warns(ConvergenceWarning, match="below min_ess=400"):
            limited = clone(scorer).set_params(max_time=1e-9).fit(releases)
        assert limited.ess_[1:].min() < all_ess.min()
        assert np.isfinite(limited.values_).all()

    def test_that_is_not_reached_changes_nothing(self, linear):
        releases, _ = linear
        scorer = BayesianSurpriseScorer(LINEAR, **OPTIONS)
        values = clone(scorer).fit(releases).values_
        limited = clone(scorer).set_params(max_time=1e6).fit(releases)
        np.testing.assert_array_equal(limited.values_, values)


class TestCost:
    def test_counts_coalitions_and_parties(self, linear):
        releases, points = linear
        cost = PredictiveValueScorer(LINEAR).estimate_cost(releases, **points)
        assert cost.n_evaluations == 8
        assert cost.n_players == 3
        assert 0 < cost.seconds < 60
        cost = BayesianSurpriseScorer(MEAN).estimate_cost(mean_releases())
        assert cost.n_evaluations == 4
        assert 0 < cost.seconds < 60

    def test_sets_nothing(self, linear):
        releases, _ = linear
        scorer = BayesianSurpriseScorer(LINEAR)
        scorer.estimate_cost(releases)
        with pytest.raises(NotFittedError):
            check_is_fitted(scorer)

    def test_refuses_what_fit_refuses(self, linear):
        releases, _ = linear
        with pytest.raises(TypeError, match="releases must hold NoisyStatistic"):
            BayesianSurpriseScorer(LINEAR).estimate_cost([np.ones(3)])
        with pytest.raises(ValueError, match="X_val and y_val must hold points"):
            PredictiveValueScorer(LINEAR).estimate_cost(releases)

    @pytest.mark.slow
    @pytest.mark.parametrize("n_parties", [5, 9])
    def test_is_within_a_factor_of_three(self, n_parties, monkeypatch):
        """By CPU time, so that other programs do not count."""
        monkeypatch.setattr(time, "perf_counter", time.process_time)
        _, parties = simulate(1, counts=(200,) * (n_parties + 1))
        *rows, (X_val, y_val) = parties
        releases = [
            quietly(GramRelease(4.0, noise_random_state=i).fit, X, y).release_
            for i, (X, y) in enumerate(rows)
        ]
        points = {"X_val": X_val, "y_val": y_val}
        scorer = PredictiveValueScorer(LINEAR, random_state=0)
        cost = scorer.estimate_cost(releases, **points)
        start = time.process_time()
        scorer.fit(releases, **points)
        seconds = time.process_time() - start
        assert seconds / 3 < cost.seconds < 3 * seconds


def test_a_short_fit_is_not_announced(linear, caplog):
    releases, points = linear
    with caplog.at_level(logging.WARNING, "skvalue"):
        PredictiveValueScorer(LINEAR, **OPTIONS).fit(releases, **points)
    assert not caplog.messages
