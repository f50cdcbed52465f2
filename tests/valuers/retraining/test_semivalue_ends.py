"""Fits by retraining that do not reach their end.

Stopped, interrupted, killed, resumed.
"""

import os
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from itertools import chain, count

import numpy as np
import psutil
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from no_files import NO_FILES
from sklearn import metrics
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
SLOW = pytest.mark.slow


# Callbacks ----------------------------------------------------------------------------


def test_callbacks_see_every_step():
    watch = Watch()
    fit(quick().set_callbacks(watch))
    assert watch.begun == watch.ended == watch.expected > 5


@pytest.mark.parametrize(
    ("watch", "options", "is_complete"),
    [
        (Watch(), {}, True),
        (Watch(), {"tol": 0.2}, True),
        (Watch(stop_at=3), {}, False),
        (Watch(interrupt_at=3), {}, False),
        (Watch(), {"max_evaluations": 200_000, "max_time": 0.05}, False),
    ],
    ids=["all coalitions", "goal", "callback", "Ctrl-C", "time limit"],
)
def test_only_complete_fits_end_for_callbacks(watch, options, is_complete):
    # Of a fit that has ended, ProgressBar shows 100 %.
    with suppress(KeyboardInterrupt), warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteFitWarning)
        fit(quick(**options).set_callbacks(watch))
    assert watch.whole_ended is is_complete
    assert watch.torn_down == 1


def test_a_callback_stops_the_fit():
    valuer = quick(max_evaluations=1000).set_callbacks(Watch(stop_at=3))
    with pytest.warns(IncompleteFitWarning, match="coalitions evaluated until then"):
        fit(valuer)
    assert valuer.stop_reason_ == "callback"
    assert 50 < valuer.n_evaluations_ < 500
    assert np.isfinite(valuer.values_).all()


# Ctrl-C -------------------------------------------------------------------------------


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
@pytest.mark.parametrize(
    "valuer",
    [LeaveOneOutValuer(), quick(sampler="stratified", max_evaluations=400)],
    ids=["leave-one-out", "semivalue"],
)
def test_an_interrupt_that_the_estimator_masks_is_one(valuer, error_score, monkeypatch):
    monkeypatch.setattr(Masking, "fits", count())
    valuer.set_params(estimator=Masking(), error_score=error_score)
    with pytest.raises(KeyboardInterrupt):
        fit(valuer, n=300)
    assert valuer.stop_reason_ == "interrupted"


SAMPLERS = pytest.mark.parametrize("sampler", ["stratified", "antithetic"])


def interrupt(valuer, step, fit=fit, **options):
    """Fit a valuer up to a step, after which Ctrl-C is pressed."""
    with pytest.raises(KeyboardInterrupt):
        fit(valuer.set_callbacks(Watch(interrupt_at=step)), **options)
    return valuer.set_callbacks()


def fit_on_splits(valuer, n):
    """Fit a valuer without validation points."""
    return valuer.fit(*data(n).rows)


@SAMPLERS
def test_an_interrupted_fit_keeps_its_values(sampler):
    valuer = interrupt(quick(sampler=sampler), 4)
    assert valuer.stop_reason_ == "interrupted"
    assert 0 < valuer.n_evaluations_ < 500
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain)


@SAMPLERS
def test_an_interrupted_fit_resumes(sampler):
    valuer = interrupt(quick(sampler=sampler, warm_start=True), 4)
    fit(valuer)
    np.testing.assert_array_equal(valuer.values_, fit(quick(sampler=sampler)).values_)


def test_an_interrupted_enumeration_keeps_the_complete_splits():
    # Of 257 coalitions each, at most 64 at once.
    valuer = quick(sampler="exact", max_evaluations=None, cv=3)
    interrupt(valuer, 8, fit_on_splits, n=12)
    assert valuer.n_evaluations_ > 256
    assert np.isfinite(valuer.values_).all()


@pytest.mark.parametrize(
    ("valuer", "fit", "n"),
    [
        (quick(sampler="antithetic"), fit, 100),
        (quick(sampler="exact", max_evaluations=None, cv=3), fit_on_splits, 12),
    ],
    ids=["replicate of orders", "enumeration of a split"],
)
def test_a_fit_interrupted_before_its_first_values_has_none(valuer, fit, n):
    interrupt(valuer, 1, fit, n=n)
    assert not hasattr(valuer, "values_")


@pytest.mark.parametrize(
    "groups", [None, np.arange(300) * 2 // 3], ids=["rows", "groups"]
)
class TestInterruptedLeaveOneOut:
    def test_it_keeps_the_players_left_out(self, groups):
        valuer = interrupt(LeaveOneOutValuer(Centroids()), 2, n=300, groups=groups)
        complete = fit(LeaveOneOutValuer(Centroids()), n=300, groups=groups)
        is_known = np.isfinite(valuer.values_)
        assert 0 < is_known.sum() == valuer.n_evaluations_ - 1 < len(is_known)
        np.testing.assert_array_equal(
            valuer.values_[is_known], complete.values_[is_known]
        )
        errors = np.where(is_known, 0, np.inf)
        np.testing.assert_array_equal(valuer.values_error_, errors)
        assert valuer.stop_reason_ == "interrupted"
        assert valuer.utility_ == complete.utility_

    def test_the_next_fit_has_all_values(self, groups):
        valuer = interrupt(LeaveOneOutValuer(Centroids()), 2, n=300, groups=groups)
        complete = fit(LeaveOneOutValuer(Centroids()), n=300, groups=groups)
        fit(valuer, n=300, groups=groups)
        np.testing.assert_array_equal(valuer.values_, complete.values_)


def test_interrupted_leave_one_out_has_the_splits_that_are_done():
    X, y = data(240).rows
    watch = Watch()
    LeaveOneOutValuer(Centroids(), cv=3).set_callbacks(watch).fit(X, y)
    valuer = LeaveOneOutValuer(Centroids(), cv=3)
    interrupt(valuer, watch.expected // 2, fit_on_splits, n=240)
    players, points = next(check_cv(3, y, classifier=True).split(X, y))
    first = LeaveOneOutValuer(Centroids())
    first.fit(X[players], y[players], X_val=X[points], y_val=y[points])
    np.testing.assert_array_equal(valuer.values_[players], first.values_)
    assert (valuer.values_[points] == 0).all()
    assert valuer.utility_ == first.utility_


@SAMPLERS
def test_goals_are_reached_where_an_undisturbed_fit_reaches_them(sampler):
    options = {
        "sampler": sampler,
        "max_evaluations": None,
        "cv": 2,
        "tol": 0.02,
        "adjust": False,
    }
    undisturbed = fit_on_splits(quick(**options), 30)
    valuer = quick(**options, warm_start=True)
    interrupt(valuer, 6, fit_on_splits, n=30)
    fit_on_splits(valuer, 30)
    np.testing.assert_array_equal(valuer.values_, undisturbed.values_)
    assert valuer.n_evaluations_ == undisturbed.n_evaluations_

    # No coalition is left.
    fit_on_splits(valuer, 30)
    assert valuer.n_evaluations_ == undisturbed.n_evaluations_
    assert valuer.stop_reason_ == undisturbed.stop_reason_ == "tol"


# Errors -------------------------------------------------------------------------------


class DiesAfter(Centroids):
    """Kills its process, or raises, after 400 fits, which a file counts."""

    def __init__(self, path=None, how="kill"):
        self.path = path
        self.how = how

    def fit(self, X, y):
        with open(self.path, "a") as file:
            file.write("x")
        if os.path.getsize(self.path) > 400:
            if self.how == "kill":
                psutil.Process().kill()
            raise MemoryError("no memory left")
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("kill", TerminatedWorkerError),
        pytest.param("raise", MemoryError, marks=SLOW),
    ],
)
def test_a_dying_worker_leaves_what_was_computed(how, cause, tmp_path):
    valuer = quick(n_jobs=2, error_score="raise", max_evaluations=1200)
    valuer.set_params(estimator=DiesAfter(str(tmp_path / "count"), how))
    match = rf"ended by an error: {cause.__name__}, the cause .*kept in values_"
    with pytest.raises(RuntimeError, match=match) as raised:
        fit(valuer)
    assert isinstance(raised.value.__cause__, cause)
    assert valuer.stop_reason_ == "error"
    assert 100 < valuer.n_evaluations_ < 1000
    healthy = fit(quick())
    differences = np.abs(valuer.values_ - healthy.values_)
    errors = np.hypot(valuer.values_error_, healthy.values_error_)
    assert (differences < 5 * errors).all()


def test_a_scorer_that_returns_nan_is_refused():
    valuer = quick(scoring=lambda model, X, y: np.nan, empty_utility=0)
    with pytest.raises(
        ValueError, match="scoring must return a finite number. Got nan"
    ):
        fit(valuer)


class FailsOnOdd(Centroids):
    """Cannot be trained on an odd number of rows."""

    def fit(self, X, y):
        if len(X) % 2:
            raise RuntimeError("odd")
        return super().fit(X, y)


class TestFailedCoalitions:
    def valuer(self, **options):
        valuer = quick(max_evaluations=100, **options)
        return valuer.set_params(estimator=FailsOnOdd())

    def test_a_warning_says_what_their_utility_is(self):
        with pytest.warns(
            FailedCoalitionsWarning,
            match="could not be trained or scored: each.* 0.5",
        ):
            fit(self.valuer())

    def test_they_are_counted_over_all_splits(self):
        valuer = self.valuer(cv=2)
        with pytest.warns(FailedCoalitionsWarning) as caught:
            fit_on_splits(valuer, 24)
        caught = [one for one in caught if one.category is FailedCoalitionsWarning]
        (warning,) = caught  # not one for each split
        n_failed, of, n_evaluated, *_ = str(warning.message).split()
        assert of == "of"
        assert int(n_failed) == valuer.n_failed_
        assert 0.2 < int(n_failed) / int(n_evaluated) < 0.8

    def test_a_resumed_fit_counts_those_before_too(self):
        valuer = fit_on_splits(self.valuer(cv=2, warm_start=True), 24)
        n_failed = valuer.n_failed_
        fit_on_splits(valuer.set_params(max_evaluations=200), 24)
        assert n_failed < valuer.n_failed_ < valuer.n_evaluations_


# Checkpoints --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write_due", [True, False], ids=["during the fit", "at its end"]
)
def test_a_full_disk_under_the_checkpoint_loses_no_value(
    write_due, tmp_path, monkeypatch
):
    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", no_space)
    ticks = count(9.0, step=2) if write_due else count(0.0, step=0)
    clock = chain([0.0] * 4, ticks)
    monkeypatch.setattr(checkpoint_module, "perf_counter", clock.__next__)
    valuer = quick(checkpoint=tmp_path / "state.npz")
    with pytest.raises(
        RuntimeError, match="state.npz' could not be written.*No space left.*kept"
    ):
        fit(valuer)
    assert (valuer.n_evaluations_ < 400) == write_due
    assert np.isfinite(valuer.values_).all()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_in_no_folder_is_refused_before_work_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(np, "savez", lambda *a, **k: pytest.fail("work started"))
    with pytest.raises(
        ValueError, match="checkpoint must be in an existing folder.* Got '.*no/"
    ):
        fit(quick(checkpoint=tmp_path / "no" / "state.npz"))


@pytest.fixture
def state(tmp_path):
    """The checkpoint of a fit."""
    path = tmp_path / "state.npz"
    fit(quick(checkpoint=path))
    return path


def test_a_truncated_checkpoint_is_refused(state):
    state.write_bytes(state.read_bytes()[:900])
    with pytest.raises(
        ValueError, match="checkpoint must name a file written by a fit"
    ):
        fit(quick(checkpoint=state))


def test_a_checkpoint_with_a_changed_array_is_refused(state, tmp_path):
    changed_file = tmp_path / "changed.npz"
    with np.load(state) as file:
        arrays = dict(file)
    for name, array in arrays.items():
        without = {key: other for key, other in arrays.items() if key != name}
        changes = [without, {**arrays, name: array[..., None]}]
        zeros = np.zeros_like(array)
        if not np.array_equal(zeros, array):
            changes.append({**arrays, name: zeros})
        for changed in changes:
            np.savez(changed_file, **changed)
            with pytest.raises(ValueError, match="checkpoint must name a"):
                fit(quick(checkpoint=changed_file))


def test_a_flipped_byte_of_a_checkpoint_is_found_or_in_no_array(state, tmp_path):
    values = fit(quick(checkpoint=state)).values_
    changed_file = tmp_path / "changed.npz"
    content = state.read_bytes()
    for place in range(0, len(content), 499):
        flipped = bytes([content[place] ^ 8])
        changed_file.write_bytes(content[:place] + flipped + content[place + 1 :])
        with suppress(ValueError):
            valuer = fit(quick(checkpoint=changed_file))
            np.testing.assert_array_equal(valuer.values_, values)


def test_a_checkpoint_of_another_program_is_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, full=1.0)
    with pytest.raises(ValueError, match="checkpoint must name a file of version"):
        fit(quick(checkpoint=path))


@pytest.mark.parametrize("make", NO_FILES)
def test_a_checkpoint_that_is_no_file_is_refused(make, tmp_path):
    path = tmp_path / "bad.npz"
    make(path)
    with pytest.raises(ValueError, match="bad.npz' is neither: it is not a file"):
        fit(quick(checkpoint=path))


def test_a_checkpoint_of_text_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    path.write_text("not ours")
    with pytest.raises(
        ValueError, match="checkpoint must name a file written by a fit"
    ):
        fit(quick(checkpoint=path))


def test_a_checkpoint_of_the_same_fit_gives_the_same_bits(state):
    resumed = fit(quick(checkpoint=str(state)))
    np.testing.assert_array_equal(resumed.values_, fit(quick()).values_)


def test_a_checkpoint_of_other_rows_is_refused(state):
    with pytest.raises(
        ValueError, match="Got another X, y, X_val .* delete '.*state.npz' or name"
    ):
        fit(quick(checkpoint=state), n=22)


def test_a_checkpoint_of_another_random_state_is_refused(state):
    with pytest.raises(ValueError, match="random_state=0. Got random_state=1"):
        fit(quick(checkpoint=state, random_state=1))


def frozen(seed):
    """A pipeline of components that were fitted on other data."""
    components = PCA(2).fit(data(seed=seed).X)
    return make_pipeline(FrozenEstimator(components), Centroids())


OTHER_PARAMETERS = pytest.mark.parametrize(
    ("parameters", "others"),
    [
        (
            {"scoring": lambda e, X, y: metrics.accuracy_score(y, e.predict(X))},
            {
                "scoring": lambda e, X, y: metrics.f1_score(
                    y, e.predict(X), pos_label="yes"
                )
            },
        ),
        ({"estimator": frozen(1)}, {"estimator": frozen(2)}),
    ],
    ids=["lambda", "frozen"],
)
FEW = {"max_evaluations": 100, "empty_utility": 0.0}


@OTHER_PARAMETERS
def test_no_checkpoint_resumes_a_fit_of_other_parameters(parameters, others, tmp_path):
    valuer = quick(**FEW, checkpoint=tmp_path / "state.npz")
    fit(valuer.set_params(**parameters))
    with pytest.raises(
        ValueError, match="checkpoint resumes a fit .* with the same parameters"
    ):
        fit(valuer.set_params(**others))
    fit(valuer.set_params(**parameters))


@OTHER_PARAMETERS
def test_no_warm_start_resumes_a_fit_of_other_parameters(parameters, others):
    valuer = fit(quick(**FEW, warm_start=True).set_params(**parameters))
    with pytest.raises(
        ValueError, match="warm_start resumes a fit .* with the same parameters"
    ):
        fit(valuer.set_params(**others))


SCRIPT = """
import sys
from itertools import count
from skvalue.estimation import checkpoint
from tests.valuers.retraining.semivalue_fits import fit, quick
checkpoint.perf_counter = count(step=2).__next__
fit(quick(sampler=sys.argv[2], max_evaluations=1500, checkpoint=sys.argv[1]))
"""


def kill_after_a_checkpoint(path, sampler):
    """Start a fit in another process, and kill it; returns its number of coalitions."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), sampler],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    while not path.exists() and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.wait()
    with np.load(path) as file:
        _, n_evaluations = file["0/counts"]
    return n_evaluations


def count_fits(function):
    """What a function returns, and how many `Centroids` it fits.

    By a profiler: another `fit` would be another estimator.
    """
    code = Centroids.fit.__code__
    n_fits = 0

    def profile(frame, event, _):
        nonlocal n_fits
        if event == "call" and frame.f_code is code:
            n_fits += 1

    sys.setprofile(profile)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return result, n_fits


@pytest.mark.parametrize(
    "sampler", ["stratified", pytest.param("antithetic", marks=SLOW)]
)
def test_a_killed_fit_resumes_bit_for_bit(sampler, tmp_path):
    path = tmp_path / "killed.npz"
    n_evaluated = kill_after_a_checkpoint(path, sampler)
    assert 0 < n_evaluated < 1400
    options = {"sampler": sampler, "max_evaluations": 1500}
    resumed, n_fits = count_fits(lambda: fit(quick(**options, checkpoint=path)))
    assert 0 < n_fits <= 1500 - n_evaluated
    uninterrupted = fit(quick(**options))
    np.testing.assert_array_equal(resumed.values_, uninterrupted.values_)
    np.testing.assert_array_equal(resumed.values_error_, uninterrupted.values_error_)


@pytest.mark.parametrize("sampler", ["stratified", "antithetic", "exact"])
def test_a_checkpoint_waits_for_no_round(sampler, monkeypatch, tmp_path):
    counts = []
    monkeypatch.setattr(checkpoint_module, "perf_counter", count(step=2).__next__)
    monkeypatch.setattr(
        checkpoint_module,
        "write_arrays",
        lambda _, arrays: counts.append(arrays["0/counts"][1]),
    )
    valuer = quick(sampler=sampler, max_evaluations=1100, checkpoint=tmp_path / "state")
    fit(valuer, n=10)
    # A block of coalitions, or a replicate.
    assert np.diff(counts).max() <= max(64, 10 * 9)
