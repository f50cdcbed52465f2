"""The twin test: honest, dense and regional parties, and copies that are moved."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from skvalue.inspection import twin_parties
from skvalue.inspection.manipulations import ATTACKS, Sent, stolen


def rows(name, seed, n=500):
    """Rows and labels of five honest parties."""
    X, y = {"digits": load_digits, "cancer": load_breast_cancer}[name](return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))[:n]
    X = X / 16 if name == "digits" else (X - X.mean(axis=0)) / X.std(axis=0)
    return (
        X[order],
        (y[order] >= 5 if name == "digits" else y[order]),
        np.arange(len(order)) % 5,
    )


def honest(X, y, owner, rng):
    return X, y, owner


def dense(X, y, owner, rng):
    """A party of few, similar cases: those nearest to one row."""
    near = np.argsort(((X - X[rng.integers(len(X))]) ** 2).sum(axis=1))[
        : (owner == 0).sum()
    ]
    owner = owner.copy()
    owner[np.setdiff1d(np.flatnonzero(owner == 0), near)] = owner[
        near[owner[near] != 0]
    ]
    owner[near] = 0
    return X, y, owner


def regions(X, y, owner, rng):
    """Two parties share a region, the other three the rest."""
    direction = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    rank = np.argsort(np.argsort(X @ direction))
    return X, y, np.where(rank < 2 * len(y) // 5, rank % 2, 2 + rank % 3)


def theft(X, y, owner, rng):
    found = stolen(Sent(X, y, owner, X, None), rng, only=True, spacings=1.0)
    return found.X, found.y, found.names


KINDS = {"honest": honest, "dense": dense, "regions": regions}


def largest(name, kind, seed):
    return np.nanmax(
        twin_parties(*kind(*rows(name, seed), np.random.default_rng(seed))).z
    )


@pytest.mark.parametrize("name", ["digits", "cancer"])
def test_stolen_rows_are_found(name):
    result = twin_parties(*theft(*rows(name, 0), np.random.default_rng(0)))
    assert {pair[:2] for pair in result.pairs} == {(0, 1), (1, 0)}
    assert result.fractions[0, 1] > 0.7
    assert np.isnan(np.diag(result.z)).all()
    assert largest(name, honest, 0) < 4.5


def test_exact_copies_and_names_of_any_kind():
    X, y, owner = rows("digits", 1, 300)
    sent = Sent(X, y, owner, X, None)
    found = ATTACKS["rows under 4 names"](sent, np.random.default_rng(0))
    names = np.array([f"party {name}" for name in found.names])
    pairs = twin_parties(found.X, found.y, names).pairs
    own = {"party 0", "party -1", "party -2", "party -3"}
    assert {frozenset(pair[:2]) for pair in pairs} == {
        frozenset([a, b]) for a in own for b in own if a != b
    }
    assert all(np.diff([z for *_, z in pairs]) <= 0)


def test_few_rows_are_not_tested():
    X, y = load_wine(return_X_y=True)
    result = twin_parties(X[:20], y[:20], np.r_[np.zeros(17), np.ones(3)])
    assert np.isnan(result.z[1, 0])
    assert result.pairs == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((4, 2)), None, [0] * 4), "groups must name at least two parties"),
        ((np.ones((4, 2)), None, [0, 1]), "inconsistent"),
        ((np.full((4, 2), np.nan), None, [0, 0, 1, 1]), "NaN"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        twin_parties(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "cancer"])
def test_threshold(name):
    """No false alarm in 25 draws of each kind, and every theft is found."""
    for kind in KINDS.values():
        assert max(largest(name, kind, seed) for seed in range(25)) < 5
    assert min(largest(name, theft, seed) for seed in range(25)) > 5
