"""Fits of more than ten seconds say so after their first steps, by a fake clock."""

import logging
import re
import time
from contextlib import suppress

import numpy as np
import pytest
from problems import two_classes
from sklearn.naive_bayes import GaussianNB

import skvalue
from skvalue.labels import LabelErrorDetector

from ..watch import Watch


class Clock:
    """A clock that advances by ``step`` seconds when it is read."""

    def __init__(self):
        self.now = 0.0
        self.step = 0.0

    def __call__(self):
        self.now += self.step
        return self.now


clock = Clock()


class Slow(GaussianNB):
    """A model whose training takes two seconds of the fake clock.

    It is interrupted when the fit is announced.
    """

    def fit(self, X, y, sample_weight=None):
        clock.now += 2
        if clock.now > 160:
            raise KeyboardInterrupt
        return super().fit(X, y)


@pytest.fixture(autouse=True)
def fake_clock(monkeypatch):
    clock.now = 0.0
    clock.step = 0.0
    monkeypatch.setattr(time, "perf_counter", clock)


BUDGET = {"max_evaluations": 200, "random_state": 0}
RETRAINING = {
    "Data Shapley": ("DataShapleyValuer", BUDGET),
    "Banzhaf": ("DataBanzhafValuer", BUDGET),
    "Beta": ("BetaShapleyValuer", BUDGET),
    "Layered": ("LayeredShapleyValuer", {"max_evaluations": 500, "random_state": 0}),
    "leave-one-out": ("LeaveOneOutValuer", {}),
    "Data-OOB": ("DataOOBValuer", {"n_estimators": 160, "random_state": 0}),
}
OTHERS = {  # with five splits, tasks or steps
    "KNN": ("KNNShapleyValuer", {"cv": 5}),
    "TKNN": ("TKNNShapleyValuer", {"cv": 5, "radius": 0.5}),
    "influence": ("InfluenceValuer", {"cv": 5}),
    "in-run": ("InRunShapleyValuer", {"n_steps": 5}),
    "gradients": ("GradientSemivalueValuer", {"n_permutations": 5}),
    "federated": ("FederatedSemivalueValuer", {"n_rounds": 5}),
    "unrolled": ("UnrolledValuer", {"n_runs": 5, "n_epochs": 1}),
}
PRIVATE = {"epsilon": 1.0, "delta": 1e-5}


def messages_of_fit(caplog, name, options, *, with_points=True):
    """The messages of a fit of a class with these parameters."""
    data = two_classes(0)
    valuer = getattr(skvalue, name)(**options)
    points = data.points if with_points and name != "DataOOBValuer" else {}
    with caplog.at_level(logging.WARNING, "skvalue"), suppress(KeyboardInterrupt):
        valuer.fit(*data.rows, **points)
    return [line for line in caplog.messages if "compiles" not in line]


@pytest.mark.parametrize("case", RETRAINING)
def test_fits_of_a_slow_model_are_announced(case, caplog):
    name, options = RETRAINING[case]
    [line] = messages_of_fit(caplog, name, options | {"estimator": Slow()})
    assert line.startswith(f"{name}.fit takes about ")
    assert ("max_time limits it; " in line) == (case != "leave-one-out")
    # 41, 160 and 200 models at two seconds.
    expected = {
        "leave-one-out": "82 seconds",
        "Data-OOB": "5 minutes",
        "Layered": "minutes",
    }
    assert expected.get(case, "6 minutes") in line


@pytest.mark.parametrize("case", OTHERS)
def test_fits_of_slow_steps_are_announced(case, caplog):
    name, options = OTHERS[case]
    with_points = "cv" not in options
    clock.step = 15  # seconds of a step: 5 of them are 75
    [line] = messages_of_fit(caplog, name, options, with_points=with_points)
    assert line.startswith(f"{name}.fit takes about ")
    caplog.clear()
    clock.step = 0.1
    assert not messages_of_fit(caplog, name, options, with_points=with_points)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("DataShapleyValuer", {"max_evaluations": 80, "max_time": 1e9}),
        ("DataOOBValuer", {"n_estimators": 20, "max_time": 1e9}),
        ("DataShapleyValuer", {"tol": 10}),  # nobody knows the number
        ("InRunShapleyValuer", PRIVATE),
        ("GradientSemivalueValuer", PRIVATE),
    ],
)
def test_fits_with_a_limit_or_epsilon_are_silent(name, options, caplog):
    clock.step = 15
    assert not messages_of_fit(caplog, name, options)


@pytest.mark.parametrize(
    "estimator", [skvalue.LeaveOneOutValuer(), LabelErrorDetector(GaussianNB())]
)
def test_fits_that_callbacks_watch_are_silent(estimator, caplog):
    clock.step = 15
    data = two_classes(0)
    with caplog.at_level(logging.WARNING, "skvalue"):
        estimator.set_callbacks(Watch()).fit(*data.rows)
        assert len(caplog.messages) == 0
        estimator.set_callbacks().fit(*data.rows)
        assert len(caplog.messages) == 1


def test_the_message_comes_after_a_tenth_of_the_models(caplog):
    models = []  # the number of messages when each is trained

    class Counted(Slow):
        def fit(self, X, y, sample_weight=None):
            models.append(len(caplog.messages))
            return super().fit(X, y)

    messages_of_fit(caplog, "LeaveOneOutValuer", {"estimator": Counted()})
    # The model of all rows, and batches of four.
    assert models == [*np.zeros(5), *np.ones(36)]


class Growing(GaussianNB):
    """A model whose training takes longer with more rows; the first one imports."""

    n_trained = 0

    def fit(self, X, y, sample_weight=None):
        clock.now += 0.3 + 0.05 * len(X)
        clock.now += 20 if Growing.n_trained == 0 else 0
        Growing.n_trained += 1
        return super().fit(X, y)


def forecast_of(line):
    """The seconds that a message says."""
    number, unit = re.search(r"takes about ([\d.]+) (\w+)", line).groups()
    return float(number) * {"seconds": 1, "minutes": 60, "hours": 3600}[unit]


@pytest.mark.parametrize("case", RETRAINING)
def test_a_forecast_of_models_is_within_a_factor_of_two(case, caplog, monkeypatch):
    monkeypatch.setattr(Growing, "n_trained", 0)
    name, options = RETRAINING[case]
    [line] = messages_of_fit(caplog, name, options | {"estimator": Growing()})
    assert clock.now / 2 < forecast_of(line) < 2 * clock.now


@pytest.mark.parametrize("n_steps", [5, 12])
@pytest.mark.parametrize("case", OTHERS)
def test_a_forecast_of_steps_is_within_a_factor_of_two(case, n_steps, caplog):
    name, options = OTHERS[case]
    count = next(key for key, value in options.items() if value == 5)
    options = options | {count: n_steps}
    clock.step = 15
    with_points = "cv" not in options
    [line] = messages_of_fit(caplog, name, options, with_points=with_points)
    assert clock.now / 2 < forecast_of(line) < 2 * clock.now
