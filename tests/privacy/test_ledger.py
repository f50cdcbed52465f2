"""The ledger: composes, refuses, survives processes, kill -9, clones and pickles."""

import copy
import math
import multiprocessing
import os
import pickle
import random
import secrets
import shutil
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import NamedTuple

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from full_disk import full_disk
from joblib import parallel_config
from no_files import NO_FILES
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import GridSearchCV

from skvalue.privacy import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    OpaqueEvent,
    Release,
    SelfComposedEvent,
    calibrate_counts,
    calibrate_gaussian,
    convert,
    get_delta,
    get_epsilon,
)
from skvalue.privacy.accounting import delta_of

BUDGET = {"epsilon": 3.0, "delta": 1e-5}


@pytest.fixture(params=["memory", "file"])
def path(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "budget.sqlite"


@pytest.fixture
def ledger(path):
    return Ledger(path, "patients-2026", **BUDGET)


def fresh_processes():
    """Context of processes that have imported what is needed and inherit nothing."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["pytest", "skvalue.privacy", "sklearn.model_selection"]
    )
    return context


def at_once(function, n):
    """Sorted outcomes of a function in n threads: texts, or the types of errors."""
    barrier = threading.Barrier(n)

    def outcome(_):
        barrier.wait()
        try:
            return str(function())
        except Exception as error:
            return type(error).__name__

    with ThreadPoolExecutor(n) as pool:
        return sorted(pool.map(outcome, range(n)))


def execute(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchone()


# Composition --------------------------------------------------------------------------


def test_gaussian_fits_compose_exactly(ledger):
    # Five fits fill the budget.
    together = calibrate_gaussian(3.0, 1e-5, sensitivity=math.sqrt(5))
    event = GaussianEvent(together.scale)
    for number in range(1, 6):
        assert ledger.charge(event, label=f"fit {number}").number == number
    assert ledger.spent == pytest.approx(3.0, rel=1e-7)
    with pytest.raises(ValueError, match="must fit what is left of the budget"):
        ledger.charge(GaussianEvent(1000 * together.scale))
    assert ledger.n_charges == 5
    labels = [charge.label for charge in ledger.charges]
    assert labels == ["fit 1", "fit 2", "fit 3", "fit 4", "fit 5"]
    assert {charge.process for charge in ledger.charges} == {os.getpid()}


BUDGET_EVENTS = [
    calibrate_gaussian(3.0, 1e-5, 0.7),
    calibrate_counts(3.0, 1e-5, 13),
    OpaqueEvent(3.0, 1e-5),
    LaplaceEvent(1.0, 3.0),
]


@pytest.mark.parametrize("event", BUDGET_EVENTS, ids=lambda event: type(event).__name__)
def test_one_release_of_the_budget_fits_and_no_other(event):
    ledger = Ledger(None, "d", **BUDGET)
    ledger.charge(event)
    with pytest.raises(
        ValueError, match="must fit what is left.* at most 0 per release"
    ):
        ledger.charge(event)


def test_other_noise_composes_on_the_safe_side(ledger):
    events = [
        calibrate_gaussian(1.0, 1e-6),
        OpaqueEvent(0.3, 1e-7),
        LaplaceEvent(4.0),
        DiscreteGaussianEvent(20.0, 9, relation="replace"),
    ]
    for event in events:
        ledger.charge(event)
    assert ledger.spent == pytest.approx(
        get_epsilon(ComposedEvent(tuple(events)), 1e-5)
    )
    assert get_epsilon(events[0], 1e-5) < ledger.spent < 3.0


def test_unlike_noise_on_counts_composes_nearly_as_gaussian_noise(ledger):
    for m in (3, 5, 8):  # as the folds of a grid search give
        ledger.charge(calibrate_counts(1.0, 1e-5, m))
    # Nearly the closed form, which would hold for continuous noise.
    assert ledger.spent == pytest.approx(1.8275, rel=5e-3)


def test_the_relation_is_that_of_the_first_charge(ledger):
    assert ledger.relation is None
    ledger.charge(GaussianEvent(20.0, relation="null"))
    assert ledger.relation == "null"
    ledger.charge(GaussianEvent(20.0, relation="add_remove"))
    assert ledger.relation == "null"
    with pytest.raises(ValueError, match="use a ledger with relation='replace'"):
        ledger.charge(GaussianEvent(20.0, relation="replace"))
    assert ledger.n_charges == 2


def test_charges_are_restated_under_the_relation_of_the_ledger(path):
    ledger = Ledger(path, "d", **BUDGET, relation="replace")
    ledger.charge(GaussianEvent(10.0, relation="null"))
    assert ledger.spent == pytest.approx(get_epsilon(GaussianEvent(10.0, 2.0), 1e-5))


# Refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0),
        ("epsilon", -1.0),
        ("epsilon", math.nan),
        ("delta", 0),
        ("delta", 1),
        ("delta", 1.5),
    ],
)
def test_a_budget_out_of_range_is_refused(path, name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Ledger(path, "d", **BUDGET | {name: value})


def test_a_new_ledger_without_a_budget_is_refused(path):
    with pytest.raises(ValueError, match="epsilon must be given for a new ledger"):
        Ledger(path, "d", delta=1e-5)
    assert path is None or not path.exists()


def test_a_new_ledger_without_a_name_is_refused(path):
    with pytest.raises(TypeError, match="dataset_name must be a string"):
        Ledger(path, None, **BUDGET)


def test_an_unknown_relation_is_refused(path):
    with pytest.raises(ValueError, match="relation must be one of"):
        Ledger(path, "d", **BUDGET, relation="bounded")


def test_a_text_file_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(
        "this is not a database, and long enough to be told from an empty one" * 20
    )
    with pytest.raises(ValueError, match="path must be a ledger's SQLite file"):
        Ledger(path, "d", **BUDGET)


def test_a_file_keeps_its_data_set_and_budget(tmp_path):
    path = tmp_path / "budget.sqlite"
    Ledger(path, "patients-2026", **BUDGET).charge(GaussianEvent(10.0))
    with pytest.raises(
        ValueError, match=r"belongs; use another file for another data set\. Got 'x'"
    ):
        Ledger(path, "x", **BUDGET)
    with pytest.raises(
        ValueError, match=r"epsilon must be 3\.0.*a budget does not change"
    ):
        Ledger(path, "patients-2026", epsilon=30.0, delta=1e-5)
    again = Ledger(path, "patients-2026")
    assert (again.epsilon, again.delta, again.n_charges) == (3.0, 1e-5, 1)


def test_a_removed_file_is_no_new_budget(tmp_path):
    path = tmp_path / "budget.sqlite"
    ledger = Ledger(path, "d", **BUDGET)
    ledger.charge(GaussianEvent(10.0))
    path.unlink()
    message = "the ledger's file must be there"
    with pytest.raises(RuntimeError, match=message):
        ledger.charge(GaussianEvent(10.0))
    with pytest.raises(RuntimeError, match=message):
        _ = ledger.spent
    assert not path.exists()


def test_the_file_of_another_data_set_is_noticed(tmp_path):
    ledger = Ledger(tmp_path / "a", "a", **BUDGET)
    Ledger(tmp_path / "b", "b", **BUDGET)
    os.replace(tmp_path / "b", tmp_path / "a")
    with pytest.raises(ValueError, match="dataset_name must be 'b'"):
        ledger.charge(GaussianEvent(10.0))


def test_the_budget_is_that_in_the_file(tmp_path):
    path = tmp_path / "budget.sqlite"
    ledger = Ledger(path, "d", epsilon=10.0, delta=1e-5)
    loaded = pickle.loads(pickle.dumps(ledger))
    path.unlink()
    Ledger(path, "d", epsilon=0.1, delta=1e-5)
    message = r"what is left of the budget epsilon=0\.1"
    for opened in (ledger, loaded):
        with pytest.raises(ValueError, match=message):
            opened.charge(calibrate_gaussian(5, 1e-5))
        with pytest.raises(ValueError, match=message):
            opened.plan(1, 5.0)
        assert opened.plan(1) == opened.epsilon == 0.1
        assert opened.n_charges == 0


def test_the_budget_cannot_be_set(ledger):
    with pytest.raises(AttributeError):
        ledger.epsilon = 100.0


@pytest.mark.parametrize("replaced", ["by a backup", "by a new file"])
def test_a_replaced_file_is_no_new_budget(replaced, tmp_path):
    path = tmp_path / "budget.sqlite"
    backup = tmp_path / "backup"
    ledger = Ledger(path, "d", **BUDGET)
    other = Ledger(path, "d")
    ledger.charge(GaussianEvent(10.0))
    shutil.copy(path, backup)
    ledger.charge(GaussianEvent(10.0))
    assert other.n_charges == 2
    if replaced == "by a backup":
        shutil.copy(backup, path)
    else:
        path.unlink()
        Ledger(path, "d", **BUDGET).charge(GaussianEvent(10.0))
    message = "must hold the 2 charges that it held before"
    for opened in (ledger, other):
        with pytest.raises(RuntimeError, match=message):
            opened.charge(GaussianEvent(10.0))
        with pytest.raises(RuntimeError, match=message):
            _ = opened.spent
    again = Ledger(path, "d")  # which has seen no other file
    assert again.charge(GaussianEvent(10.0)).number == 2


def test_a_charge_that_is_deleted_by_hand_leaves_a_gap(tmp_path):
    path = tmp_path / "budget.sqlite"
    for _ in range(2):
        Ledger(path, "d", **BUDGET).charge(GaussianEvent(10.0))
    execute(path, "DELETE FROM charges WHERE number = 1")
    assert Ledger(path, "d").charge(GaussianEvent(10.0)).number == 3


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_charge_that_is_deleted_while_the_ledger_is_open_is_missed(number, tmp_path):
    path = tmp_path / "budget.sqlite"
    ledger = Ledger(path, "d", **BUDGET)
    for _ in range(3):
        ledger.charge(GaussianEvent(10.0))
    execute(path, f"DELETE FROM charges WHERE number = {number}")
    with pytest.raises(RuntimeError, match="must hold the 3 charges that it held"):
        ledger.charge(GaussianEvent(10.0))


# Many charges -------------------------------------------------------------------------


def mixed_events():
    """Events of several kinds, noises and relations, some of them again."""
    return [
        GaussianEvent(30.0, 1.0, "replace"),
        GaussianEvent(70.0, 1.0, "add_remove"),
        GaussianEvent(30.0, 1.0, "replace"),
        SelfComposedEvent(GaussianEvent(90.0, 2.0, "null"), 7),
        ComposedEvent((GaussianEvent(70.0), GaussianEvent(31.0))),
        GaussianEvent(70.0, 1.0, "add_remove"),
        GaussianEvent(30.0, 1.0, "replace"),
        DiscreteGaussianEvent(50.0),
        LaplaceEvent(40.0),
        DiscreteGaussianEvent(50.0),
    ]


def epsilon_of_all(events):
    composed = ComposedEvent(tuple(convert(event, "replace") for event in events))
    return get_epsilon(composed, BUDGET["delta"])


def test_the_digits_of_a_total_are_those_of_all_charges_together(path):
    ledger = Ledger(path, "d", **BUDGET, relation="replace")
    events = mixed_events()
    for number, event in enumerate(events, 1):
        ledger.charge(event)
        assert ledger.spent == epsilon_of_all(events[:number])


def test_a_ledger_adds_what_others_charge_to_its_file(tmp_path):
    path = tmp_path / "budget.sqlite"
    ledgers = [Ledger(path, "d", **BUDGET, relation="replace"), Ledger(path, "d")]
    events = mixed_events()[:7]
    for number, event in enumerate(events, 1):
        ledgers[number % 3 == 0].charge(event)
        totals = {ledger.spent for ledger in ledgers}
        assert totals == {epsilon_of_all(events[:number])}


def seconds_of_charges(ledger, event, n):
    """The median CPU time of some charges."""
    seconds = []
    for _ in range(n):
        start = time.thread_time()
        ledger.charge(event)
        seconds.append(time.thread_time() - start)
    return np.median(seconds)


def test_a_charge_costs_the_same_after_many(path):
    ledger = Ledger(path, "d", epsilon=100.0, delta=1e-5)
    event = SelfComposedEvent(GaussianEvent(1e4), 5)
    first = seconds_of_charges(ledger, event, 20)
    for _ in range(1000 if path is None else 300):
        ledger.charge(event)
    assert seconds_of_charges(ledger, event, 20) < 6 * first


@pytest.mark.parametrize("limit", [0, 5000])
def test_a_failed_creation_leaves_nothing(limit, tmp_path):
    path = tmp_path / "budget.sqlite"
    with (
        full_disk(limit),
        pytest.raises(ValueError, match="path must be a ledger's SQLite file"),
    ):
        Ledger(path, "d", **BUDGET)
    assert os.listdir(tmp_path) == []
    assert Ledger(path, "d", **BUDGET).charge(GaussianEvent(10.0)).number == 1


def test_a_charge_that_a_full_disk_refuses_is_none(tmp_path):
    ledger = Ledger(tmp_path / "budget.sqlite", "d", **BUDGET)
    with (
        full_disk(100),
        pytest.raises(ValueError, match="path must be a ledger's SQLite file"),
    ):
        ledger.charge(GaussianEvent(10.0))
    assert ledger.n_charges == 0
    assert ledger.charge(GaussianEvent(10.0)).number == 1


def test_a_large_budget_affords_discrete_noise(path):
    ledger = Ledger(path, "d", epsilon=200, delta=1e-5)
    ledger.charge(calibrate_counts(1.0, 1e-5))
    ledger.charge(calibrate_counts(40.0, 1e-5))
    assert 40 < ledger.spent < 42


@pytest.fixture
def waits_for_no_other_process(monkeypatch):
    monkeypatch.setattr(time, "monotonic", count(step=10.0).__next__)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: execute(path, "CREATE TABLE terms (dataset_name TEXT)"),
        lambda path: path.touch(),
        lambda path: path.write_bytes(b"SQLite format 3\0"),
        *NO_FILES,
        pytest.param(
            lambda path: path.symlink_to(path),
            id="link",
            marks=pytest.mark.skipif(
                sys.platform == "win32", reason="links are for administrators"
            ),
        ),
    ],
)
@pytest.mark.usefixtures("waits_for_no_other_process")
def test_what_is_no_ledger_is_refused_and_left_alone(make, tmp_path):
    path = tmp_path / "budget.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    for budget in ({}, BUDGET):
        with pytest.raises(ValueError, match="path must be a ledger's SQLite file"):
            Ledger(path, "d", **budget)
    assert before is None or path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


DAMAGED_EVENTS = [
    "{",
    "[]",
    '{"type": "GaussianEvent", "size": 1}',
    '{"type": []}',
    '{"type": "GaussianEvent", "scale": 1%s}' % ("0" * 400),
]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:4096],
        lambda content: content[:100] + bytes(8000),
        lambda content: b"",
        lambda content: b"something else altogether",
        "DROP TABLE charges",
        "DELETE FROM terms",
        "INSERT INTO terms SELECT * FROM terms",
        "UPDATE terms SET epsilon = 'much'",
        "UPDATE terms SET delta = -1",
        "CREATE TABLE copy AS SELECT * FROM terms; DROP TABLE terms; "
        "ALTER TABLE copy RENAME TO terms; UPDATE terms SET epsilon = NULL",
        "ALTER TABLE terms DROP COLUMN relation",
        "UPDATE terms SET relation = 'cousins'",
        *(f"UPDATE charges SET event = '{event}'" for event in DAMAGED_EVENTS),
        "UPDATE charges SET event = x'ff'",
        "UPDATE charges SET label = CAST(x'ff' AS TEXT)",
    ],
)
@pytest.mark.usefixtures("waits_for_no_other_process")
def test_a_damaged_file_is_a_value_error(damage, tmp_path):
    path = tmp_path / "budget.sqlite"
    ledger = Ledger(path, "d", **BUDGET)
    ledger.charge(GaussianEvent(10.0))
    if isinstance(damage, str):
        for statement in damage.split("; "):
            execute(path, statement)
    else:
        path.write_bytes(damage(path.read_bytes()))
    uses = [
        lambda: ledger.charge(GaussianEvent(10.0)),
        lambda: ledger.plan(2),
        lambda: ledger.spent,
        lambda: ledger.charges,
        lambda: Ledger(path, "d").spent,
    ]
    for use in uses:
        with pytest.raises(
            ValueError, match=r"ledger('s SQLite file| must hold charges)"
        ):
            use()


def try_to_charge(path):
    """What SQLite says of a writer: for a process of its own."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            return str(error)
    return "charged"


@pytest.mark.parametrize(
    "use", [lambda ledger: ledger.n_charges, lambda ledger: Ledger(ledger.path)]
)
def test_a_thread_that_reads_does_not_end_the_lock_of_one_that_charges(use, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db", "rows", epsilon=1.0, delta=1e-5)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as charging:
        charging.execute("BEGIN IMMEDIATE")

        use(ledger)

        with fresh_processes().Pool(1) as pool:
            said = pool.apply(try_to_charge, (ledger.path,))
    assert said == "database is locked"


def test_one_of_several_openers_creates_the_file(tmp_path):
    path = tmp_path / "budget.sqlite"

    def open_and_charge():
        return Ledger(path, "d", **BUDGET).charge(GaussianEvent(100.0)).number

    assert at_once(open_and_charge, 8) == [*"12345678"]
    assert Ledger(path, "d").n_charges == 8


def test_charge_comes_before_noise_and_refused_fits_draw_nothing(ledger, monkeypatch):
    n_charges_at_draws = []

    def token_bytes(n):
        n_charges_at_draws.append(ledger.n_charges)
        return bytes(n)

    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    with pytest.raises(ValueError, match="must fit what is left"):
        Release(GaussianEvent(0.1), ledger).of([1.0])
    assert not n_charges_at_draws
    assert ledger.n_charges == 0
    Release(GaussianEvent(10.0), ledger).of([1.0])
    assert set(n_charges_at_draws) == {1} == {ledger.n_charges}


def test_what_is_no_event_is_not_charged(ledger):
    with pytest.raises(TypeError, match="event must be one of"):
        ledger.charge({"type": "GaussianEvent"})
    assert ledger.n_charges == 0


# Planning -----------------------------------------------------------------------------


def test_a_plan_is_the_largest_epsilon_that_fits(ledger):
    epsilon = ledger.plan(30)
    assert 0.4 < epsilon < 0.5
    ledger.plan(30, epsilon=epsilon)
    with pytest.raises(
        ValueError, match=r"sum of 30 releases must fit.*at most 0\.4[0-9]+ per"
    ):
        ledger.plan(30, epsilon=1.05 * epsilon)
    assert ledger.n_charges == 0
    for _ in range(30):
        ledger.charge(calibrate_gaussian(epsilon, 1e-5))
    assert ledger.spent <= 3.0
    assert ledger.plan(1) < 0.2


def test_a_plan_beyond_the_budget_is_refused(ledger):
    message = (
        r"the release must fit.*: use an epsilon of at most 3 per .*"
        r"Got epsilon=3\.3[0-9]*\.$"
    )
    with pytest.raises(ValueError, match=message):
        ledger.plan(1, epsilon=3.3)
    assert ledger.n_charges == 0


def test_plans_beside_counts_are_rounded_down_by_little():
    """Counts and Gaussian noise compose by loss distributions, on a coarse grid."""
    ledger = Ledger(None, "rows", **BUDGET)
    ledger.charge(calibrate_counts(1.0, 1e-5, max_contributions=1))
    epsilon = ledger.plan(4)
    with pytest.raises(ValueError, match="sum of 4 releases must fit"):
        ledger.plan(4, epsilon=1.012 * epsilon)
    for _ in range(4):
        ledger.charge(calibrate_gaussian(epsilon, 1e-5, relation="add_remove"))


def test_a_plan_of_no_fits_is_refused(ledger):
    with pytest.raises(ValueError, match="n_fits must be an integer of at least 1"):
        ledger.plan(0)


# As a parameter -----------------------------------------------------------------------


class PrivateMean(RegressorMixin, BaseEstimator):
    """Predicts a private mean of the targets, clipped to [0, 1]."""

    def __init__(self, epsilon=1.0, shift=0.0, ledger=None):
        self.epsilon = epsilon
        self.shift = shift
        self.ledger = ledger

    def fit(self, X, y):
        event = calibrate_gaussian(self.epsilon, 1e-5, sensitivity=1 / len(y))
        self.mean_ = Release(event, self.ledger).of(np.clip(y, 0, 1).mean())
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_ + self.shift)


ROWS = np.zeros((30, 1)), np.linspace(0, 1, 30)


def test_copies_and_clones_are_the_ledger(ledger):
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy(ledger) is ledger
    assert clone(ledger) is ledger
    assert clone(PrivateMean(ledger=ledger)).ledger is ledger


def test_the_ledger_as_text(ledger):
    assert "patients-2026" in repr(ledger)
    assert str(ledger).startswith(
        "Privacy ledger of 'patients-2026': epsilon=0 of 3 spent"
    )


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_grid_search_charges_every_candidate(tmp_path):
    ledger = Ledger(tmp_path / "budget.sqlite", "rows", **BUDGET)
    grid = {"shift": [0.0, 0.1, 0.2, 0.3]}
    n_fits = 4 * 2 + 1
    model = PrivateMean(epsilon=ledger.plan(n_fits), ledger=ledger)
    with parallel_config("multiprocessing", n_jobs=2):
        GridSearchCV(model, grid, cv=2).fit(*ROWS)
    assert ledger.n_charges == n_fits
    # Nine fits, of three data sizes or one, compose to the budget.
    assert 2.85 < ledger.spent <= 3.0
    assert len({charge.process for charge in ledger.charges}) > 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_grid_search_with_a_ledger_in_memory_needs_one_process():
    ledger = Ledger(None, "rows", **BUDGET)
    model = PrivateMean(epsilon=0.5, ledger=ledger)
    search = GridSearchCV(model, {"shift": [0.0, 0.1]}, cv=2).fit(*ROWS)
    assert ledger.n_charges == 5
    # Not error_score="raise": pools of multiprocessing that end early may wait for
    # ever.
    with (
        parallel_config("multiprocessing", n_jobs=2),
        pytest.raises(ValueError, match=r"Pass a path, as in Ledger\('budget.sqlite'"),
    ):
        search.fit(*ROWS)
    assert ledger.n_charges == 5


def test_a_pickle_in_the_same_process_is_the_same_ledger(ledger):
    ledger.charge(GaussianEvent(10.0))
    again = pickle.loads(pickle.dumps(ledger))
    again.charge(GaussianEvent(10.0))
    assert ledger.n_charges == again.n_charges == 2


def charge_all(pickled, answers):
    """Charge ledgers in another process: answers are numbers, or errors' texts."""
    for ledger in pickle.loads(pickled.read_bytes()):
        try:
            answers.put(ledger.charge(GaussianEvent(10.0)).number)
        except Exception as error:
            answers.put(str(error))


def test_a_pickle_in_another_process_needs_a_file(tmp_path):
    ledgers = [
        Ledger(path, "d", **BUDGET) for path in (None, tmp_path / "budget.sqlite")
    ]
    for ledger in ledgers:
        ledger.charge(GaussianEvent(10.0))
    pickled = tmp_path / "ledgers.pickle"
    context = fresh_processes()
    pickled.write_bytes(pickle.dumps(ledgers))
    answers = context.SimpleQueue()
    other = context.Process(target=charge_all, args=(pickled, answers))
    other.start()
    other.join(300)
    assert other.exitcode == 0
    assert "only in the process that made it. Pass a path" in answers.get()
    assert answers.get() == 2
    assert [ledger.n_charges for ledger in ledgers] == [1, 2]


def test_a_pickle_loads_where_the_file_is_not(tmp_path):
    ledger = Ledger(tmp_path / "budget.sqlite", "d", **BUDGET)
    blob = pickle.dumps(PrivateMean(ledger=ledger))
    os.unlink(ledger.path)
    loaded = pickle.loads(blob)
    with pytest.raises(RuntimeError, match="the ledger's file must be there"):
        loaded.ledger.charge(GaussianEvent(10.0))


def test_a_relative_path_survives_another_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("budget.sqlite", "d", **BUDGET)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.charge(GaussianEvent(10.0))
    assert Ledger(tmp_path / "budget.sqlite", "d").n_charges == 1


# Threads and processes ----------------------------------------------------------------


# Six of these fit the budget.
SIXTH = GaussianEvent(calibrate_gaussian(3.0, 1e-5, math.sqrt(6.5)).scale)


def test_threads_never_overrun_the_budget(ledger):
    outcomes = at_once(lambda: ledger.charge(SIXTH).number, 12)
    assert outcomes == [*"123456", *["ValueError"] * 6]
    assert ledger.n_charges == 6


def test_charges_wait_for_each_other(tmp_path, monkeypatch):
    # Twelve openers of one file all find room before any of them charges: there is room
    # for 6.
    path = tmp_path / "budget.sqlite"
    n_openers = 12
    Ledger(path, "rows", **BUDGET)
    barrier = threading.Barrier(n_openers)
    thread = threading.local()

    def slow_delta(*args, **grid):
        delta = delta_of(*args, **grid)
        if getattr(thread, "has_asked", False):
            time.sleep(0.02)
        else:
            thread.has_asked = True
            barrier.wait()
        return delta

    monkeypatch.setattr("skvalue.privacy.ledger.delta_of", slow_delta)
    outcomes = at_once(lambda: Ledger(path, "rows").charge(SIXTH).number, n_openers)
    assert outcomes == [*"123456", *["ValueError"] * 6]


def fit_again_and_again(ledger, releases, n_fits, pause):
    """Charge, wait, then release: append the number of the charge to a file."""
    for _ in range(n_fits):
        try:
            charge = ledger.charge(SIXTH)
        except ValueError:
            return
        time.sleep(pause)
        with open(releases, "ab", buffering=0) as file:
            file.write(f"{charge.number}\n".encode())


class Outcome(NamedTuple):
    """Numbers of charges, of releases, and of killed processes."""

    charged: int
    released: int
    killed: int


def fit_in_processes(folder, rng, kill_within=None):
    """The `Outcome` of 10 fits in 4 processes against one ledger."""
    context = fresh_processes()
    ledger = Ledger(folder / "budget.sqlite", "rows", **BUDGET)
    releases = folder / "releases"
    releases.touch()
    workers = [
        context.Process(
            target=fit_again_and_again,
            args=(ledger, str(releases), n_fits, rng.uniform(0.02, 0.06)),
        )
        for n_fits in (3, 3, 2, 2)
    ]
    for worker in workers:
        worker.start()
    if kill_within is not None:
        kill_some(workers, rng, kill_within)
    for worker in workers:
        worker.join(300)
        assert worker.exitcode is not None

    assert execute(ledger.path, "PRAGMA integrity_check") == ("ok",)
    charged = [charge.number for charge in ledger.charges]
    released = [int(line) for line in releases.read_text().split()]
    assert charged == list(range(1, len(charged) + 1))
    assert len(set(released)) == len(released)
    assert set(released) <= set(charged)
    if charged:
        together = ComposedEvent(tuple(charge.event for charge in ledger.charges))
        assert get_delta(together, 3.0) <= 1e-5

    # The ledger still works: it takes what is left and no more.
    while ledger.n_charges < 6:
        ledger.charge(SIXTH)
    with pytest.raises(ValueError, match="must fit what is left"):
        ledger.charge(SIXTH)
    n_killed = sum(worker.exitcode == -9 for worker in workers)
    return Outcome(len(charged), len(released), n_killed)


def kill_some(workers, rng, kill_within):
    """Kill two to four of the processes, each within some seconds."""
    start = time.monotonic()
    victims = rng.sample(workers, rng.randint(2, 4))
    for delay in sorted(rng.uniform(0, kill_within) for _ in victims):
        time.sleep(max(0.0, start + delay - time.monotonic()))
        victims.pop().kill()


def test_processes_never_overrun_the_budget_of_a_file(tmp_path):
    assert fit_in_processes(tmp_path, random.Random(0)) == (6, 6, 0)


def test_killed_processes_release_nothing_uncharged(tmp_path):
    rng = random.Random(1)
    for i in range(3):
        (tmp_path / str(i)).mkdir()
        fit_in_processes(tmp_path / str(i), rng, kill_within=0.1)


@pytest.mark.slow
def test_many_killed_processes_release_nothing_uncharged(tmp_path):
    rng = random.Random(2)
    (tmp_path / "first").mkdir()
    fit_in_processes(tmp_path / "first", rng)  # starts the server of processes
    (tmp_path / "whole").mkdir()
    start = time.monotonic()
    fit_in_processes(tmp_path / "whole", rng)
    seconds = time.monotonic() - start

    # Kills fall at all stages, however fast the machine is: before all charges, between
    # charge and release, and after.
    outcomes = []
    for i in range(50):
        (tmp_path / str(i)).mkdir()
        outcome = fit_in_processes(tmp_path / str(i), rng, kill_within=seconds)
        outcomes.append(outcome)
    charged, released, killed = np.transpose(outcomes)
    assert killed.sum() > 50
    assert charged.min() < 6
    assert (charged > released).any()
    assert charged.max() == released.max() == 6


@pytest.mark.parametrize("make_event", [LaplaceEvent, DiscreteGaussianEvent])
def test_a_charge_composes_what_is_new_alone(make_event, monkeypatch):
    n_compositions = count()
    compose = PrivacyLossDistribution.compose

    def counted(self, *args, **options):
        next(n_compositions)
        return compose(self, *args, **options)

    monkeypatch.setattr(PrivacyLossDistribution, "compose", counted)
    ledger = Ledger(None, "rows", epsilon=50.0, delta=1e-5)
    for number in range(100):
        ledger.charge(make_event(scale=100.0 + number, relation="replace"))
    # All events again and again would be 4,950 compositions.
    assert 99 <= next(n_compositions) < 1500
