"""Private objects in forked children: they refuse, so that nothing is released uncharged."""

import multiprocessing
import sys

import numpy as np
import pytest
from problems import two_classes

from skvalue import FederatedSemivalueValuer, LayeredShapleyValuer
from skvalue.privacy import GaussianEvent, Ledger, Release

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def federated(ledger):
    valuer = FederatedSemivalueValuer(
        epsilon=1.0, trust="server", clip=1.0, n_rounds=50, learning_rate=1.0, ledger=ledger
    )
    valuer.start(lambda thetas: -np.sum(thetas**2, axis=-1), 3)
    return lambda: valuer.add_round(np.zeros(2), np.ones((3, 2)))


def queries(ledger):
    valuer = LayeredShapleyValuer(
        l2=1.0, n_layers=2, epsilon=1.0, release="query", max_queries=2, ledger=ledger
    )
    two_classes(0).fit(valuer)
    return lambda: valuer.values_for(0)


def release(ledger):
    found = Release(GaussianEvent(1.0), ledger)
    return lambda: found.of([0.0])


def attempt(draw, results):
    try:
        results.put(str(draw()))
    except RuntimeError as error:
        results.put(f"refused: {error}")


@pytest.mark.parametrize("with_ledger", [False, True])
@pytest.mark.parametrize("make", [federated, queries, release])
def test_a_forked_child_refuses(make, with_ledger, tmp_path):
    ledger = None
    if with_ledger:
        ledger = Ledger(tmp_path / "ledger", "rows", epsilon=100.0, delta=1e-3)
    draw, fork = make(ledger), multiprocessing.get_context("fork")
    charged = None if ledger is None else ledger.n_charges
    results = fork.SimpleQueue()
    children = [fork.Process(target=attempt, args=(draw, results)) for _ in range(10)]
    for child in children:
        child.start()
    found = [results.get() for _ in children]
    for child in children:
        child.join(30)
    assert all(text.startswith("refused: A release works in the process") for text in found)
    assert ledger is None or ledger.n_charges == charged
    draw()  # the process that made it goes on
