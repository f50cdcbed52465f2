"""Private objects in forked children: nothing is released that no ledger counts."""

import inspect
import multiprocessing
import sys

import numpy as np
import pytest
from problems import two_classes

import skvalue
from skvalue import (
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InRunShapleyValuer,
    LayeredShapleyValuer,
    TKNNShapleyValuer,
)
from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.priarta import BuyerModel, Identity, SellerRelease
from skvalue.privacy import GaussianEvent, Ledger, Release, noise_source

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of few rows
]
DATA = two_classes(0, names=None)
EPSILON = 0.5


def release(ledger):
    """What a forked child can ask of an object that this process made, by name."""
    unopened = Release(GaussianEvent(20.0), ledger)
    opened, draw = (
        Release(GaussianEvent(20.0), ledger).source(),
        noise_source(GaussianEvent(1.0)),
    )
    return {
        "of": lambda: unopened.of([0.0]),
        "source": lambda: opened(3, (0,)),
        "noise_source": lambda: draw(3, (0,)),
    }


def rounds(ledger):
    valuer = FederatedSemivalueValuer(
        epsilon=EPSILON,
        trust="server",
        clip=1.0,
        n_rounds=50,
        learning_rate=1.0,
        ledger=ledger,
    )
    valuer.start(lambda thetas: -np.sum(thetas**2, axis=-1), 3)
    return {"add_round": lambda: valuer.add_round(np.zeros(2), np.ones((3, 2)))}


def queries(ledger):
    valuer = LayeredShapleyValuer(
        l2=1.0,
        n_layers=2,
        epsilon=EPSILON,
        release="query",
        max_queries=2,
        ledger=ledger,
    )
    DATA.fit(valuer)
    return {"values_for": lambda: valuer.values_for(0)}


def valuer_of(cls, **parameters):
    """A table row of a valuer: a function that fits it, and what it tells
    afterwards."""

    def fit(ledger):
        return DATA.fit(cls(epsilon=EPSILON, ledger=ledger, **parameters))

    def asked(ledger):
        valuer = fit(ledger)
        asks = {
            "values_for": lambda: valuer.values_for(0),
            "values_": lambda: valuer.values_,
        }
        if cls is TKNNShapleyValuer:  # of rows that were not in fit
            asks["transform"] = lambda: valuer.transform(DATA.X[:3])
            asks["score_samples"] = lambda: valuer.score_samples(DATA.X[:3], DATA.y[:3])
        return asks

    return asked, lambda ledger: fit(ledger).values_


def party_of(cls, *rows, **parameters):
    def fit(ledger):
        return cls(epsilon=EPSILON, ledger=ledger, **parameters).fit(*rows)

    def asked(ledger):
        party = fit(ledger)
        return {"release_": lambda: party.release_.statistic}

    return asked, lambda ledger: fit(ledger).release_.statistic


def seller():
    maps = [Identity().fit(DATA.X) for _ in range(2)]
    model = BuyerModel(*maps, np.zeros(3), 1.0)

    def fit(ledger):
        return SellerRelease(model, EPSILON, ledger=ledger).fit(DATA.X)

    def asked(ledger):
        fitted = fit(ledger)
        return {"summary_": lambda: fitted.summary_.moment}

    return asked, lambda ledger: fit(ledger).summary_.moment


def charged(ledger):
    ledger.charge(GaussianEvent(20.0))
    return np.random.default_rng().random()  # another in each process


# Class -> what objects that were made before the fork are asked, and a release after
# it.
TABLE = {
    "Ledger": (lambda ledger: {}, charged),
    "Release": (release, lambda ledger: Release(GaussianEvent(20.0), ledger).of([0.0])),
    "FederatedSemivalueValuer.start": (
        rounds,
        lambda ledger: rounds(ledger)["add_round"](),
    ),
    "LayeredShapleyValuer.queries": (
        queries,
        lambda ledger: queries(ledger)["values_for"](),
    ),
    "FederatedSemivalueValuer": valuer_of(FederatedSemivalueValuer, n_rounds=2),
    "GradientSemivalueValuer": valuer_of(GradientSemivalueValuer, n_permutations=3),
    "InRunShapleyValuer": valuer_of(InRunShapleyValuer, n_steps=3),
    "LayeredShapleyValuer": valuer_of(
        LayeredShapleyValuer, l2=1.0, n_layers=2, release="publish"
    ),
    "TKNNShapleyValuer": valuer_of(TKNNShapleyValuer, radius=0.3),
    "GramRelease": party_of(GramRelease, DATA.X, DATA.y.astype(float)),
    "LogisticRelease": party_of(LogisticRelease, DATA.X, DATA.y),
    "MeanRelease": party_of(MeanRelease, DATA.X[:, 0]),
    "SellerRelease": seller(),
}


def test_the_table_has_all_private_classes():
    rooms = [getattr(skvalue, name) for name in skvalue.__all__]
    names = [(room, name) for room in rooms for name in getattr(room, "__all__", [])]
    public = [getattr(*pair) for pair in names] + rooms
    charge = {
        value.__name__
        for value in public
        if inspect.isclass(value)
        and "ledger" in inspect.signature(value.__init__).parameters
    }
    assert charge | {"Ledger"} == {name.partition(".")[0] for name in TABLE}


def attempt(ask, sender):
    try:
        sender.send(np.asarray(ask(), dtype=float).tobytes())
    except (RuntimeError, ValueError) as error:
        sender.send(error)


def in_children(ask, n_children):
    """What is returned or raised in forked children."""
    fork, found = multiprocessing.get_context("fork"), []
    while len(found) < n_children:
        pipes = [
            fork.Pipe(duplex=False) for _ in range(min(10, n_children - len(found)))
        ]
        children = [fork.Process(target=attempt, args=(ask, pipe[1])) for pipe in pipes]
        for child in children:
            child.start()
        for (receiver, _), child in zip(pipes, children):
            assert receiver.poll(120)
            found.append(receiver.recv())
            child.join(30)
    return found


def new_ledger(kind, tmp_path):
    path = {"none": ..., "memory": None, "file": tmp_path / "ledger"}[kind]
    return None if kind == "none" else Ledger(path, "rows", epsilon=3.0, delta=1e-3)


# All ways of a release, in quick tests; of others, those with a ledger that other
# processes use.
KINDS = [
    pytest.param(
        name,
        kind,
        n,
        marks=[pytest.mark.slow] * (n > 2 or (name != "Release" and kind != "file")),
    )
    for name in TABLE
    for kind in ("none", "memory", "file")
    for n in (2, 300)
]


@pytest.mark.parametrize(("name", "kind", "n_children"), KINDS)
def test_a_forked_child_has_no_release_of_its_own(name, kind, n_children, tmp_path):
    """It refuses, or gives the answer that its parent gives: one release for each
    path."""
    ledger = new_ledger(kind, tmp_path)
    for path, ask in TABLE[name][0](ledger).items():
        before = ledger and ledger.n_charges
        found = in_children(ask, n_children)
        assert before == (ledger and ledger.n_charges), path
        refused = [str(error) for error in found if isinstance(error, Exception)]
        assert all("works in the process that made it" in text for text in refused), (
            path
        )
        answer = np.asarray(ask(), dtype=float).tobytes()  # the parent goes on
        assert {told for told in found if isinstance(told, bytes)} <= {answer}, path


@pytest.mark.parametrize("n_children", [2, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TABLE)
def test_releases_of_forked_children_are_in_the_ledger(name, n_children, tmp_path):
    draw = TABLE[name][1]
    ledger = new_ledger("memory", tmp_path)
    (refused,) = in_children(lambda: draw(ledger), 1)
    assert "a Ledger in memory works only in" in str(refused)
    ledger = new_ledger("file", tmp_path)
    found = in_children(lambda: draw(ledger), n_children)
    answers = {answer for answer in found if isinstance(answer, bytes)}
    assert len(answers) == ledger.n_charges > 0
    assert ledger.spent <= 3.0
    refused = [str(error) for error in found if isinstance(error, Exception)]
    assert all("must fit what is left of the budget" in text for text in refused)
    assert len(answers) + len(refused) == n_children
