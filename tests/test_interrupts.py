"""Ctrl-C: a fit keeps what it has, or leaves the former one, in every class."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from public_estimators import VALUERS, build_quick
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted
from watch import Watch

import skvalue
from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    LabelErrorDetector,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
    ValueFilter,
)
from skvalue.privacy import Ledger

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
]

N_ROWS = 24


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] > 0).astype(int)


class Masked(Watch):
    """An interruption that a library turns into an error of its own.

    joblib does, with "cannot join thread before it is started", and C extensions do,
    with a SystemError.
    """

    error = RuntimeError

    def on_fit_task_end(self, estimator, context):
        try:
            return super().on_fit_task_end(estimator, context)
        except KeyboardInterrupt:
            raise self.error("cannot join thread before it is started")  # noqa: B904


class MaskedBySystem(Masked):
    error = SystemError


def fit_args(valuer):
    X, y = draw(N_ROWS)
    X_val, y_val = draw(30, seed=1)
    points = {"X_val": X_val, "y_val": y_val} if valuer._capabilities.points else {}
    return (X, y), points


def check_values(valuer):
    """Values of what was done: finite but where the error says that there is none."""
    assert valuer.values_.shape == (N_ROWS,)
    is_finite = np.isfinite(valuer.values_)
    if not is_finite.all():
        assert np.isinf(valuer.values_error_[~is_finite]).all()
        assert is_finite.any()
    assert np.isfinite(valuer.utility_)
    repr(valuer)


def n_steps(valuer, data, points):
    watch = Watch()
    clone(valuer).set_callbacks(watch).fit(*data, **points)
    return watch.ended


def check_interrupted(valuer, callback, data, points):
    """Interrupt a first fit, and one after a fit to other rows."""
    X, y = data
    former = clone(valuer).fit(X[: N_ROWS - 2], y[: N_ROWS - 2], **points)
    for fitted in (clone(valuer), former):
        before = dict(vars(fitted))
        watch = callback()
        fitted.set_callbacks(watch)
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(X, y, **points)
        assert not watch.whole_ended
        if vars(fitted).get("_fitted") is not before.get("_fitted"):
            check_values(fitted)
        elif "_fitted" in before:
            check_same(fitted, before)
        else:
            with pytest.raises(NotFittedError):
                check_is_fitted(fitted)


def check_same(estimator, before):
    """Nothing has changed but the callbacks."""
    names = vars(estimator).keys() & before.keys()
    assert {name for name in before if name.endswith("_")} <= names
    for name in names:
        if "callback" not in name:
            assert vars(estimator)[name] is before[name]


# How an interrupt is raised, and the number of workers.
ENDS = [
    (Watch, 1),
    pytest.param(Masked, 2, marks=pytest.mark.slow),
    pytest.param(Watch, 2, marks=pytest.mark.slow),
    pytest.param(Masked, 1, marks=pytest.mark.slow),
    pytest.param(MaskedBySystem, 1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("watch", "n_jobs"), ENDS)
@pytest.mark.parametrize("cls", VALUERS, ids=lambda cls: cls.__name__)
def test_an_interrupted_fit_has_values_or_those_of_the_former_one(cls, watch, n_jobs):
    valuer = build_quick(cls)
    if "n_jobs" in valuer.get_params():
        valuer.set_params(n_jobs=n_jobs)
    data, points = fit_args(valuer)
    n = n_steps(valuer, data, points)
    for step in sorted({1, (n + 1) // 2, n}):
        check_interrupted(valuer, lambda s=step: watch(interrupt_at=s), data, points)


@pytest.mark.parametrize("watch", [Masked, MaskedBySystem])
@pytest.mark.parametrize("cls", [DataOOBValuer, KNNShapleyValuer, InRunShapleyValuer])
def test_an_error_that_follows_an_interrupt_is_one(cls, watch):
    valuer = build_quick(cls)
    data, points = fit_args(valuer)
    check_interrupted(valuer, lambda: watch(interrupt_at=1), data, points)


# Private fits, whose ledgers are charged before noise is drawn.
PRIVATE = {
    "tknn": TKNNShapleyValuer(0.4, epsilon=1.0),
    "layered": LayeredShapleyValuer(epsilon=1.0, l2=1.0, n_layers=2, release="all"),
    "in-run": InRunShapleyValuer(epsilon=1.0, learning_rate=0.1),
    "gradient": GradientSemivalueValuer(
        epsilon=1.0, n_permutations=4, learning_rate=0.1
    ),
    "federated": FederatedSemivalueValuer(epsilon=1.0, n_rounds=4, learning_rate=0.1),
}


@pytest.mark.parametrize("watch", [Watch, MaskedBySystem])
@pytest.mark.parametrize("name", PRIVATE)
def test_an_interrupted_private_fit_has_no_values_without_a_charge(name, watch):
    valuer = clone(PRIVATE[name])
    (X, y), points = fit_args(valuer)
    n = n_steps(valuer, (X, y), points)
    for step in sorted({1, (n + 1) // 2, n}):
        ledger = Ledger(None, "rows", epsilon=10.0, delta=1e-4)
        fitted = clone(valuer).set_params(ledger=ledger)
        fitted.set_callbacks(watch(interrupt_at=step))
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(X, y, **points)
        if hasattr(fitted, "values_"):
            assert ledger.n_charges == 1
            assert fitted.values_.shape == (N_ROWS,)
            assert np.isfinite(fitted.values_).all()


# Estimators whose parts are interrupted -----------------------------------------------


class InterruptedFit(GaussianNB):
    """A classifier that is interrupted in its fit of a number."""

    n_before = np.inf  # of the class: fits of all clones

    def fit(self, X, y, sample_weight=None):
        if type(self).n_before == 0:
            type(self).n_before = np.inf
            raise KeyboardInterrupt
        type(self).n_before -= 1
        return super().fit(X, y, sample_weight)


OTHERS = {
    "detector": (LabelErrorDetector(InterruptedFit(), random_state=0), "fit"),
    "filter": (
        ValueFilter(KNNShapleyValuer(), "auto", estimator=InterruptedFit()),
        "fit_resample",
    ),
    "classifier": (
        skvalue.ValueFilteredClassifier(InterruptedFit(), KNNShapleyValuer()),
        "fit",
    ),
    "classifier, auto": (
        skvalue.ValueFilteredClassifier(
            InterruptedFit(), KNNShapleyValuer(), drop="auto"
        ),
        "fit",
    ),
    "retraining": (
        DataShapleyValuer(InterruptedFit(), max_evaluations=400, random_state=0),
        "fit",
    ),
    "leave-one-out": (LeaveOneOutValuer(InterruptedFit()), "fit"),
    "layered": (
        LayeredShapleyValuer(InterruptedFit(), max_evaluations=40, random_state=0),
        "fit",
    ),
}


@pytest.mark.parametrize("n_before", [0, 2])
@pytest.mark.parametrize("name", OTHERS)
def test_an_interrupted_part_leaves_the_former_fit_or_values(
    name, n_before, monkeypatch
):
    estimator, method = OTHERS[name]
    estimator = clone(estimator)
    X, y = draw(40)
    getattr(estimator, method)(X, y)
    before = dict(vars(estimator))
    if name == "classifier":
        n_before = 0  # it has one fit
    monkeypatch.setattr(InterruptedFit, "n_before", n_before)
    with pytest.raises(KeyboardInterrupt):
        getattr(estimator, method)(X + 1, y)
    if vars(estimator).get("_fitted") is before.get("_fitted"):
        check_same(estimator, before)
    else:
        assert len(estimator.values_) == 40
        assert np.isfinite(estimator.values_).any()
    getattr(estimator, method)(X, y)


# Real signals -------------------------------------------------------------------------


def signalled(n, parameters=None):
    X, y = draw(n)
    X_val, y_val = draw(100, seed=1)
    return (X, y), {"X_val": X_val, "y_val": y_val} | (parameters or {})


SIGNALLED = {
    "knn": lambda: (KNNShapleyValuer(n_jobs=2), signalled(4000)),
    "tknn": lambda: (TKNNShapleyValuer(0.4, n_jobs=2), signalled(8000)),
    "tknn, private": lambda: (TKNNShapleyValuer(0.4, epsilon=1.0), signalled(4000)),
    "shapley": lambda: (
        DataShapleyValuer(max_evaluations=6000, random_state=0),
        signalled(60),
    ),
    "shapley, trees": lambda: (
        DataShapleyValuer(
            DecisionTreeClassifier(max_depth=3),
            max_evaluations=200,
            random_state=0,
            n_jobs=2,
        ),
        signalled(40),
    ),
    "leave-one-out": lambda: (
        LeaveOneOutValuer(GaussianNB(), n_jobs=2),
        signalled(200),
    ),
    "out-of-bag": lambda: (
        DataOOBValuer(DecisionTreeClassifier(), n_estimators=100, n_jobs=2),
        ((draw(200)), {}),
    ),
    "layered, private": lambda: (
        LayeredShapleyValuer(epsilon=1.0, l2=0.1, n_layers=3, release="publish"),
        signalled(80),
    ),
    "in-run, private": lambda: (
        InRunShapleyValuer(n_steps=500, epsilon=1.0, learning_rate=0.1),
        signalled(500),
    ),
    "gradient, private": lambda: (
        GradientSemivalueValuer(n_permutations=600, epsilon=1.0, learning_rate=0.1),
        signalled(100),
    ),
    "federated": lambda: (
        FederatedSemivalueValuer(n_rounds=100, learning_rate=0.1, random_state=0),
        signalled(60, {"groups": np.arange(60) % 6}),
    ),
    "detector": lambda: (
        LabelErrorDetector(LogisticRegression(), random_state=0),
        (draw(400), {}),
    ),
    "filter": lambda: (
        ValueFilter(KNNShapleyValuer(), "auto", estimator=LogisticRegression()),
        (draw(400), {}),
    ),
}
N_SIGNALS = 6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a signal ends the process")
@pytest.mark.parametrize("name", SIGNALLED)
def test_signals_at_random_moments_raise_nothing_else(name):
    estimator, (data, points) = SIGNALLED[name]()
    start = time.perf_counter()
    clone(estimator).fit(*data, **points)
    seconds = time.perf_counter() - start
    rng = np.random.default_rng(0)
    for _ in range(N_SIGNALS):
        fitted = clone(estimator)
        timer = threading.Timer(
            seconds * rng.random(), os.kill, (os.getpid(), signal.SIGINT)
        )
        timer.start()
        try:
            fitted.fit(*data, **points)
            timer.join()  # a signal that comes late is not the fit's
            time.sleep(0.05)
        except KeyboardInterrupt:
            pass
        timer.cancel()
        values = vars(fitted).get("values_")
        if values is not None:
            is_finite = np.isfinite(values)
            assert is_finite.all() or np.isinf(fitted.values_error_[~is_finite]).all()
        repr(fitted)
