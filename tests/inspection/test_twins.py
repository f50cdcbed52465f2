"""The twin test: honest, dense and regional parties, and copies that are moved."""

from itertools import combinations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from skvalue.inspection import twin_parties
from skvalue.inspection.manipulations import ATTACKS, Submission, stolen


def honest_rows(name, seed, n_rows=500):
    """Rows, labels and owners of five honest parties."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
        y = y >= 5
    else:
        X, y = load_breast_cancer(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    return X[rows], y[rows], np.arange(len(rows)) % 5


def honest(X, y, owners, rng):
    return X, y, owners


def dense(X, y, owners, rng):
    """The first party has few, similar cases: those nearest to one row."""
    distances = ((X - X[rng.integers(len(X))]) ** 2).sum(axis=1)
    nearest = np.argsort(distances)[: (owners == 0).sum()]
    # Its other rows are exchanged for those of others that are among the nearest.
    given_away = np.setdiff1d(np.flatnonzero(owners == 0), nearest)
    owners = owners.copy()
    owners[given_away] = owners[nearest[owners[nearest] != 0]]
    owners[nearest] = 0
    return X, y, owners


def regions(X, y, owners, rng):
    """Two parties share a region, the other three the rest."""
    direction = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    ranks = np.argsort(np.argsort(X @ direction))
    return X, y, np.where(ranks < 2 * len(y) // 5, ranks % 2, 2 + ranks % 3)


def theft(X, y, owners, rng):
    """The first party sends the rows of the second, moved, in place of its own."""
    honest = Submission(X, y, owners, X, None)
    submission = stolen(honest, rng, only=True, spacings=1.0)
    return submission.X, submission.y, submission.names


def largest_z(name, change, seed):
    """Largest statistic of the rows of honest parties after a change."""
    rng = np.random.default_rng(seed)
    return np.nanmax(twin_parties(*change(*honest_rows(name, seed), rng)).z)


@pytest.mark.parametrize("name", ["digits", "cancer"])
def test_stolen_rows_are_found(name):
    result = twin_parties(*theft(*honest_rows(name, 0), np.random.default_rng(0)))
    assert {pair[:2] for pair in result.pairs} == {(0, 1), (1, 0)}
    assert result.fractions[0, 1] > 0.7
    assert np.isnan(np.diag(result.z)).all()


@pytest.mark.parametrize("name", ["digits", "cancer"])
def test_honest_rows_are_below_the_threshold(name):
    assert largest_z(name, honest, 0) < 4.5


def test_exact_copies_are_found_between_all_names_of_a_party():
    X, y, owners = honest_rows("digits", 1, 300)
    honest = Submission(X, y, owners, X, None)
    attack = ATTACKS["rows under 4 names"]
    submission = attack(honest, np.random.default_rng(0))
    names = np.array([f"party {name}" for name in submission.names])
    pairs = twin_parties(submission.X, submission.y, names).pairs
    own_names = ["party 0", "party -1", "party -2", "party -3"]
    expected = {frozenset(pair) for pair in combinations(own_names, 2)}
    assert {frozenset(pair[:2]) for pair in pairs} == expected
    assert all(np.diff([z for *_, z in pairs]) <= 0)


def test_blocks_of_rows_give_the_same_bits():
    rows = theft(*honest_rows("digits", 0), np.random.default_rng(0))
    expected = twin_parties(*rows).z
    with config_context(working_memory=0.02):  # about ten rows in a block
        np.testing.assert_array_equal(twin_parties(*rows).z, expected)


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
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        twin_parties(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "cancer"])
@pytest.mark.parametrize("change", [honest, dense, regions])
def test_no_honest_parties_are_above_the_threshold(name, change):
    assert max(largest_z(name, change, seed) for seed in range(25)) < 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "cancer"])
def test_every_theft_is_above_the_threshold(name):
    assert min(largest_z(name, theft, seed) for seed in range(25)) > 5
