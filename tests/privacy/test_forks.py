"""Private objects in forked children: nothing is released that no ledger counts."""

import inspect
import multiprocessing
import sys
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

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


class Private(NamedTuple):
    """How something private is made, as functions of a ledger.

    ``questions(ledger)`` makes an object, and returns by name what a forked child can
    ask of it; ``release(ledger)`` makes one and returns what it releases.
    """

    questions: Callable
    release: Callable


# What is private ----------------------------------------------------------------------


def release(ledger):
    """What a forked child can ask of an object that this process made, by name."""
    unopened = Release(GaussianEvent(20.0), ledger)
    opened = Release(GaussianEvent(20.0), ledger).source()
    draw = noise_source(GaussianEvent(1.0))
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
    """The entry of a valuer: questions to one that was fitted, and a fit."""

    def fit(ledger):
        return DATA.fit(cls(epsilon=EPSILON, ledger=ledger, **parameters))

    def questions(ledger):
        valuer = fit(ledger)
        by_name = {
            "values_for": lambda: valuer.values_for(0),
            "values_": lambda: valuer.values_,
        }
        if cls is TKNNShapleyValuer:  # of rows that were not in fit
            X = DATA.X[:3]
            by_name["transform"] = lambda: valuer.transform(X)
            by_name["score_samples"] = lambda: valuer.score_samples(X, DATA.y[:3])
        return by_name

    return Private(questions, lambda ledger: fit(ledger).values_)


def party_of(cls, *rows, **parameters):
    """The entry of a party."""

    def fit(ledger):
        return cls(epsilon=EPSILON, ledger=ledger, **parameters).fit(*rows)

    def questions(ledger):
        party = fit(ledger)
        return {"release_": lambda: party.release_.statistic}

    return Private(questions, lambda ledger: fit(ledger).release_.statistic)


def seller():
    """The entry of a seller."""
    maps = [Identity().fit(DATA.X) for _ in range(2)]
    model = BuyerModel(*maps, np.zeros(3), 1.0)

    def fit(ledger):
        return SellerRelease(model, EPSILON, ledger=ledger).fit(DATA.X)

    def questions(ledger):
        fitted = fit(ledger)
        return {"summary_": lambda: fitted.summary_.moment}

    return Private(questions, lambda ledger: fit(ledger).summary_.moment)


def charged(ledger):
    ledger.charge(GaussianEvent(20.0))
    return np.random.default_rng().random()  # another in each process


TABLE = {
    "Ledger": Private(lambda ledger: {}, charged),
    "Release": Private(
        release, lambda ledger: Release(GaussianEvent(20.0), ledger).of([0.0])
    ),
    "FederatedSemivalueValuer.start": Private(
        rounds, lambda ledger: rounds(ledger)["add_round"]()
    ),
    "LayeredShapleyValuer.queries": Private(
        queries, lambda ledger: queries(ledger)["values_for"]()
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
    public = []
    for name in skvalue.__all__:
        room = getattr(skvalue, name)
        public.append(room)
        public += [getattr(room, inner) for inner in getattr(room, "__all__", [])]
    charging = {
        value.__name__
        for value in public
        if inspect.isclass(value)
        and "ledger" in inspect.signature(value.__init__).parameters
    }
    assert charging | {"Ledger"} == {name.partition(".")[0] for name in TABLE}


# Forked children ----------------------------------------------------------------------


def attempt(ask, sender):
    try:
        sender.send(np.asarray(ask(), dtype=float).tobytes())
    except (RuntimeError, ValueError) as error:
        sender.send(error)


class Answers(NamedTuple):
    """What forked children answer: bytes, and the texts of errors."""

    given: list
    refused: list


def ask_in_children(ask, n_children):
    """The `Answers` of forked children, of which few run at a time."""
    fork = multiprocessing.get_context("fork")
    answers = Answers([], [])
    n_remaining = n_children
    while n_remaining:
        n_now = min(10, n_remaining)
        pipes = [fork.Pipe(duplex=False) for _ in range(n_now)]
        children = [
            fork.Process(target=attempt, args=(ask, sender)) for _, sender in pipes
        ]
        for child in children:
            child.start()
        for (receiver, _), child in zip(pipes, children):
            assert receiver.poll(120)
            answer = receiver.recv()
            if isinstance(answer, Exception):
                answers.refused.append(str(answer))
            else:
                answers.given.append(answer)
            child.join(300)
        n_remaining -= n_now
    return answers


def new_ledger(kind, tmp_path):
    if kind == "none":
        return None
    path = tmp_path / "ledger" if kind == "file" else None
    return Ledger(path, "rows", epsilon=3.0, delta=1e-3)


def fork_case(name, kind, n_children):
    """A case; all ways of a release are quick, and others with few forks and a file."""
    is_quick = n_children == 2 and (name == "Release" or kind == "file")
    marks = [] if is_quick else [pytest.mark.slow]
    return pytest.param(name, kind, n_children, marks=marks)


@pytest.mark.parametrize(
    ("name", "kind", "n_children"),
    [
        fork_case(name, kind, n_children)
        for name, kind, n_children in product(
            TABLE, ("none", "memory", "file"), (2, 300)
        )
    ],
)
def test_a_forked_child_has_no_release_of_its_own(name, kind, n_children, tmp_path):
    """It refuses, or gives the answer of its parent: one release for each question."""
    ledger = new_ledger(kind, tmp_path)
    for question, ask in TABLE[name].questions(ledger).items():
        n_charges = ledger and ledger.n_charges
        answers = ask_in_children(ask, n_children)
        assert n_charges == (ledger and ledger.n_charges), question
        for text in answers.refused:
            assert "works in the process that made it" in text, question
        # The parent goes on.
        parents_answer = np.asarray(ask(), dtype=float).tobytes()
        assert set(answers.given) <= {parents_answer}, question


@pytest.mark.parametrize("name", TABLE)
def test_forked_children_do_not_release_with_a_ledger_in_memory(name, tmp_path):
    ledger = new_ledger("memory", tmp_path)
    answers = ask_in_children(lambda: TABLE[name].release(ledger), 1)
    assert not answers.given
    assert "a Ledger in memory works only in" in answers.refused[0]


@pytest.mark.parametrize("n_children", [2, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TABLE)
def test_releases_of_forked_children_are_in_the_ledger(name, n_children, tmp_path):
    ledger = new_ledger("file", tmp_path)
    answers = ask_in_children(lambda: TABLE[name].release(ledger), n_children)
    n_releases = len(set(answers.given))
    assert n_releases == ledger.n_charges > 0
    assert ledger.spent <= 3.0
    for text in answers.refused:
        assert "must fit what is left of the budget" in text
    assert n_releases + len(answers.refused) == n_children
