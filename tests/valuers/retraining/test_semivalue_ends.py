"""Fits by retraining that do not reach their end: stopped, interrupted, killed,
resumed."""

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from itertools import chain, count

import numpy as np
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn import metrics
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import make_pipeline

from skvalue import LeaveOneOutValuer
from skvalue.estimation import checkpoint as checkpoint_module
from skvalue.exceptions import FailedCoalitionsWarning, IncompleteFitWarning

from ...watch import Watch
from .semivalue_fits import Centroids, data, fit, quick

# Of few rows; tests that look for them find them all the same.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]


def test_callbacks_see_every_step():
    watch = Watch()
    fit(quick().set_callbacks(watch))
    assert watch.begun == watch.ended == watch.expected > 5


@pytest.mark.parametrize(
    ("watch", "options", "ended"),
    [
        (Watch(), {}, True),
        (Watch(), {"tol": 0.2}, True),
        (Watch(stop_at=3), {}, False),
        (Watch(interrupt_at=3), {}, False),
        (Watch(), {"max_evaluations": 200_000, "max_time": 0.05}, False),
    ],
)
def test_bars_of_fits_that_end_early_are_not_full(watch, options, ended):
    with suppress(KeyboardInterrupt), warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteFitWarning)
        fit(quick(**options).set_callbacks(watch))
    assert (
        watch.whole_ended is ended
    )  # of a fit that has ended, ProgressBar shows 100 %
    assert watch.torn_down == 1


def test_a_callback_stops_the_fit():
    valuer = quick(max_evaluations=1000).set_callbacks(Watch(stop_at=3))
    with pytest.warns(IncompleteFitWarning, match="coalitions evaluated until then"):
        fit(valuer)
    assert valuer.stop_reason_ == "callback"
    assert 50 < valuer.n_evaluations_ < 500
    assert np.isfinite(valuer.values_).all()


class Masking(Centroids):
    """Turns Ctrl-C, after some fits, into an error of its own."""

    fits = count()

    def fit(self, X, y):
        try:
            if next(self.fits) == 150:
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("training was aborted") from None
        return super().fit(X, y)


@pytest.mark.parametrize("error_score", ["empty", "raise"])
@pytest.mark.parametrize("name", ["leave-one-out", "semivalue"])
def test_an_interrupt_that_the_estimator_masks_is_one(name, error_score, monkeypatch):
    monkeypatch.setattr(Masking, "fits", count())
    options = {"error_score": error_score}
    valuer = quick(sampler="stratified", max_evaluations=400, **options)
    if name == "leave-one-out":
        valuer = LeaveOneOutValuer(**options)
    with pytest.raises(KeyboardInterrupt):
        fit(valuer.set_params(estimator=Masking()), n=300)
    assert valuer.stop_reason_ == "interrupted"


@pytest.mark.parametrize("sampler", ["stratified", "antithetic"])
def test_an_interrupted_fit_keeps_its_values_and_resumes(sampler):
    valuer = quick(sampler=sampler, warm_start=True).set_callbacks(
        Watch(interrupt_at=4)
    )
    with pytest.raises(KeyboardInterrupt):
        fit(valuer)
    assert valuer.stop_reason_ == "interrupted"
    assert 0 < valuer.n_evaluations_ < 500
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )
    fit(valuer.set_callbacks())
    np.testing.assert_array_equal(valuer.values_, fit(quick(sampler=sampler)).values_)


def test_an_interrupted_enumeration_keeps_the_splits_that_are_whole():
    X, y, *_ = data(12)
    valuer = quick(sampler="exact", max_evaluations=None).set_params(cv=3)
    with pytest.raises(KeyboardInterrupt):  # of 257 coalitions each, at most 64 at once
        clone(valuer).set_callbacks(Watch(interrupt_at=1)).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        valuer.set_callbacks(Watch(interrupt_at=8)).fit(X, y)
    assert valuer.n_evaluations_ > 256
    assert np.isfinite(valuer.values_).all()


def test_interrupted_before_the_first_replicate():
    # A replicate of orders is longer than the first step.
    valuer = quick(sampler="antithetic").set_callbacks(Watch(interrupt_at=1))
    with pytest.raises(KeyboardInterrupt):
        fit(valuer, n=100)
    assert not hasattr(valuer, "values_")


@pytest.mark.parametrize("groups", [None, np.arange(300) * 2 // 3])
def test_interrupted_leave_one_out_keeps_the_rows_left_out(groups):
    valuer = LeaveOneOutValuer(Centroids()).set_callbacks(Watch(interrupt_at=2))
    with pytest.raises(KeyboardInterrupt):
        fit(valuer, n=300, groups=groups)
    whole = fit(LeaveOneOutValuer(Centroids()), n=300, groups=groups)
    known = np.isfinite(valuer.values_)
    assert 0 < known.sum() == valuer.n_evaluations_ - 1 < len(known)
    np.testing.assert_array_equal(valuer.values_[known], whole.values_[known])
    np.testing.assert_array_equal(valuer.values_error_, np.where(known, 0, np.inf))
    assert valuer.stop_reason_ == "interrupted"
    assert valuer.utility_ == whole.utility_
    fit(valuer.set_callbacks(), n=300, groups=groups)
    np.testing.assert_array_equal(valuer.values_, whole.values_)


def test_interrupted_leave_one_out_has_the_splits_that_are_done():
    X, y, *_ = data(240)
    valuer = LeaveOneOutValuer(Centroids(), cv=3)
    watch = Watch()
    valuer.set_callbacks(watch).fit(X, y)
    valuer.set_callbacks(Watch(interrupt_at=watch.expected // 2))
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y)
    players, points = next(check_cv(3, y, classifier=True).split(X, y))
    first = LeaveOneOutValuer(Centroids())
    first.fit(X[players], y[players], X_val=X[points], y_val=y[points])
    np.testing.assert_array_equal(valuer.values_[players], first.values_)
    assert (valuer.values_[points] == 0).all()
    assert valuer.utility_ == first.utility_


@pytest.mark.parametrize("sampler", ["stratified", "antithetic"])
def test_goals_are_reached_where_an_undisturbed_fit_reaches_them(sampler):
    X, y, *_ = data(30)
    options = dict(sampler=sampler, max_evaluations=None, cv=2, tol=0.02, adjust=False)
    whole = quick(**options).fit(X, y)
    valuer = quick(**options, warm_start=True).set_callbacks(Watch(interrupt_at=6))
    with pytest.raises(KeyboardInterrupt):
        valuer.fit(X, y)
    valuer.set_callbacks().fit(X, y)
    assert valuer.n_evaluations_ == whole.n_evaluations_
    np.testing.assert_array_equal(valuer.values_, whole.values_)
    valuer.fit(X, y)  # no coalition is left
    assert valuer.n_evaluations_ == whole.n_evaluations_
    assert valuer.stop_reason_ == whole.stop_reason_ == "tol"


class DiesAfter(Centroids):
    """Kills its process, or raises, once a file is there."""

    def __init__(self, path=None, how="kill"):
        self.path, self.how = path, how

    def fit(self, X, y):
        with open(self.path, "a") as file:
            file.write("x")
        if os.path.getsize(self.path) > 400:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise MemoryError("no memory left")
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("kill", TerminatedWorkerError),
        pytest.param("raise", MemoryError, marks=pytest.mark.slow),
    ],
)
def test_a_dying_worker_leaves_what_was_computed(how, cause, tmp_path):
    valuer = quick(n_jobs=2, error_score="raise", warm_start=True, max_evaluations=1200)
    valuer.set_params(estimator=DiesAfter(str(tmp_path / "count"), how))
    match = rf"ended by an error: {cause.__name__}, the cause .*kept in values_"
    with pytest.raises(RuntimeError, match=match) as raised:
        fit(valuer)
    assert isinstance(raised.value.__cause__, cause)
    assert valuer.stop_reason_ == "error"
    assert 100 < valuer.n_evaluations_ < 1000
    healthy = fit(quick())
    (tmp_path / "count").unlink()
    valuer.estimator.path = os.devnull
    error = np.abs(valuer.values_ - healthy.values_)
    assert (error < 5 * np.hypot(valuer.values_error_, healthy.values_error_)).all()


def test_a_scorer_that_gives_nan():
    valuer = quick(scoring=lambda model, X, y: np.nan, empty_utility=0)
    with pytest.raises(
        ValueError, match="scoring must return a finite number. Got nan"
    ):
        fit(valuer)


class Fails(Centroids):
    def fit(self, X, y):
        if len(X) % 2:
            raise RuntimeError("odd")
        return super().fit(X, y)


def test_coalitions_that_fail_are_counted():
    valuer = quick(max_evaluations=100).set_params(estimator=Fails())
    with pytest.warns(
        FailedCoalitionsWarning, match="could not be trained or scored: each.* 0.5"
    ):
        fit(valuer)
    valuer.set_params(cv=2)
    X, y, *_ = data(24)
    with pytest.warns(FailedCoalitionsWarning) as found:
        valuer.fit(X, y)
    assert len(found) == 1  # not once a split
    failed, of, total = str(found[0].message).split()[:3]
    assert (int(failed), of) == (valuer.n_failed_, "of")
    assert 0.2 < int(failed) / int(total) < 0.8
    valuer.set_params(warm_start=True, max_evaluations=200).fit(
        X, y
    )  # counts those before, too
    assert int(failed) < valuer.n_failed_ < valuer.n_evaluations_


@pytest.mark.parametrize("due", [True, False])
def test_a_full_disk_under_the_checkpoint(due, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    clock = chain([0.0] * 4, count(9.0 * due, step=2 * due))
    monkeypatch.setattr(checkpoint_module, "perf_counter", clock.__next__)
    path = tmp_path / "state.npz"
    valuer = quick(checkpoint=path)
    with pytest.raises(
        RuntimeError, match="state.npz' could not be written.*No space left.*kept"
    ):
        fit(valuer)
    # At the first time that a write is due, or at the end of the fit.
    assert (valuer.n_evaluations_ < 400) == due
    assert np.isfinite(valuer.values_).all()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_cannot_be_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(np, "savez", lambda *a, **k: pytest.fail("work started"))
    with pytest.raises(
        ValueError, match="checkpoint must be in an existing folder.* Got '.*no/"
    ):
        fit(quick(checkpoint=tmp_path / "no" / "state.npz"))
    monkeypatch.undo()
    path = tmp_path / "state.npz"
    fit(quick(checkpoint=path))
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(
        ValueError, match="checkpoint must name a file written by a fit"
    ):
        fit(quick(checkpoint=path))


def test_a_damaged_checkpoint_is_a_value_error(tmp_path):
    path, bad = tmp_path / "state.npz", tmp_path / "bad.npz"
    expected = fit(quick(checkpoint=path)).values_
    with np.load(path) as file:
        arrays = dict(file)
    for name, array in arrays.items():
        for change in (None, array[..., None], np.zeros_like(array)):
            if change is not None and np.array_equal(change, array):
                continue
            changed = {**arrays, name: change}
            np.savez(bad, **{k: v for k, v in changed.items() if v is not None})
            with pytest.raises(ValueError, match="checkpoint must name a"):
                fit(quick(checkpoint=bad))
    whole = path.read_bytes()
    for place in range(
        0, len(whole), 499
    ):  # a flipped byte is found, or is in no array
        bad.write_bytes(whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :])
        with suppress(ValueError):
            np.testing.assert_array_equal(fit(quick(checkpoint=bad)).values_, expected)
    np.savez(bad, full=1.0)  # by another program
    with pytest.raises(ValueError, match="checkpoint must name a file of version"):
        fit(quick(checkpoint=bad))
    for make in (os.mkdir, os.mkfifo):
        bad.unlink() if bad.is_file() else bad.rmdir()
        make(bad)
        with pytest.raises(ValueError, match="bad.npz' is neither: it is not a file"):
            fit(quick(checkpoint=bad))


def frozen(seed):
    """A pipeline of components that were fitted on other data."""
    components = PCA(2).fit(data(seed=seed)[0])
    return make_pipeline(FrozenEstimator(components), Centroids())


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        (
            "scoring",
            lambda e, X, y: metrics.accuracy_score(y, e.predict(X)),
            lambda e, X, y: metrics.f1_score(y, e.predict(X), pos_label="yes"),
        ),
        ("estimator", frozen(1), frozen(2)),
    ],
    ids=["lambda", "frozen"],
)
def test_no_fit_resumes_one_of_another_scorer(name, one, other, tmp_path):
    options = {"max_evaluations": 100, "empty_utility": 0.0}
    path = tmp_path / "state.npz"
    fit(quick(**options, checkpoint=path).set_params(**{name: one}))
    with pytest.raises(
        ValueError, match="checkpoint resumes a fit .* with the same parameters"
    ):
        fit(quick(**options, checkpoint=path).set_params(**{name: other}))
    fit(quick(**options, checkpoint=path).set_params(**{name: one}))
    valuer = fit(quick(**options, warm_start=True).set_params(**{name: one}))
    with pytest.raises(
        ValueError, match="warm_start resumes a fit .* with the same parameters"
    ):
        fit(valuer.set_params(**{name: other}))


SCRIPT = """
import sys
from contextlib import suppress
from functools import partial
from itertools import chain, count
from skvalue.estimation import checkpoint
from tests.valuers.retraining.semivalue_fits import fit, quick
checkpoint.perf_counter = count(step=2).__next__
fit(quick(sampler=sys.argv[2], max_evaluations=1500, checkpoint=sys.argv[1]))
"""


@pytest.mark.parametrize(
    "sampler", ["stratified", pytest.param("antithetic", marks=pytest.mark.slow)]
)
def test_killed_and_resumed_bit_for_bit(sampler, tmp_path):
    state = tmp_path / "killed.npz"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(state), sampler],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    while not state.exists() and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.wait()
    with np.load(state) as file:
        evaluated = file["0/counts"][1]
    assert 0 < evaluated < 1400
    fits, code = [], Centroids.fit.__code__  # another `fit` would be another estimator
    sys.setprofile(
        lambda frame, event, _: (
            event == "call" and frame.f_code is code and fits.append(1)
        )
    )
    try:
        resumed = fit(quick(sampler=sampler, max_evaluations=1500, checkpoint=state))
    finally:
        sys.setprofile(None)
    assert 0 < len(fits) <= 1500 - evaluated
    whole = fit(quick(sampler=sampler, max_evaluations=1500))
    np.testing.assert_array_equal(resumed.values_, whole.values_)
    np.testing.assert_array_equal(resumed.values_error_, whole.values_error_)


@pytest.mark.parametrize("sampler", ["stratified", "antithetic", "exact"])
def test_a_checkpoint_waits_for_no_round(sampler, monkeypatch, tmp_path):
    counts = []
    monkeypatch.setattr(checkpoint_module, "perf_counter", count(step=2).__next__)
    monkeypatch.setattr(
        checkpoint_module,
        "write_arrays",
        lambda _, arrays: counts.append(arrays["0/counts"][1]),
    )
    fit(
        quick(sampler=sampler, max_evaluations=1100, checkpoint=tmp_path / "state"),
        n=10,
    )
    assert np.diff(counts).max() <= max(
        64, 10 * 9
    )  # a block of coalitions, or a replicate


def test_checkpoints_of_others_are_refused(tmp_path):
    path = tmp_path / "state.npz"
    fit(quick(checkpoint=path))
    again = fit(quick(checkpoint=str(path)))
    np.testing.assert_array_equal(again.values_, fit(quick()).values_)
    with pytest.raises(
        ValueError, match="Got another X, y, X_val .* delete '.*state.npz' or name"
    ):
        fit(quick(checkpoint=path), n=22)
    with pytest.raises(ValueError, match="random_state=0. Got random_state=1"):
        fit(quick(checkpoint=path, random_state=1))
    path.write_text("not ours")
    with pytest.raises(
        ValueError, match="checkpoint must name a file written by a fit"
    ):
        fit(quick(checkpoint=path))
