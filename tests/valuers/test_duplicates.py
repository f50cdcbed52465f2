"""`duplicates="quotient"`: copies within a radius are not paid; those moved by more
are."""

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.neighbors import copy_clusters, copy_radius
from tests.problems import noisy_line, split, two_classes

OWNER = np.arange(60) % 4
PROBLEMS = {
    "two classes": two_classes(0, 60, 40),
    "three classes": noisy_line(1, 60, 40, n_classes=3),
    "imbalanced": two_classes(2, 60, 40)._replace(
        y=np.array(["no"] * 50 + ["yes"] * 10)
    ),
    "regression": noisy_line(3, 60, 40),
    "shared rows": two_classes(4, 60, 40)._replace(
        X=np.round(two_classes(4, 60, 40).X) + 0.5
    ),
}
VALUERS = {
    "knn": KNNShapleyValuer(duplicates="quotient"),
    "knn, banzhaf": KNNShapleyValuer(
        duplicates="quotient", semivalue="banzhaf", metric="cosine"
    ),
    "knn, votes": KNNShapleyValuer(duplicates="quotient", utility="hard"),
    "tknn": TKNNShapleyValuer(duplicates="quotient", radius=0.3),
    "tknn, euclidean": TKNNShapleyValuer(
        duplicates="quotient", radius=1.0, metric="euclidean"
    ),
}
CASES = [
    pytest.param(valuer, problem, marks=() if problem == some else pytest.mark.slow)
    for valuer, some in zip(VALUERS, ["shared rows", "two classes", "three classes", "imbalanced",
                                      "regression"])
    for problem in PROBLEMS if (valuer, problem) != ("knn, votes", "regression")
]  # fmt: skip


def digits(seed, n=500):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))[: 2 * n]
    return split(X[order] / 16, (y[order] >= 5).astype(int), n)


def copied(problem, owner, times=4, step=0.0, seed=0):
    """Rows of the first party sent several times, moved by ``step`` in random
    directions."""
    own = np.tile(np.flatnonzero(owner == owner[0]), times - 1)
    moves = np.random.default_rng(seed).normal(size=(len(own), problem.X.shape[1]))
    moves *= step / np.linalg.norm(moves, axis=1, keepdims=True)
    X = np.vstack([problem.X, problem.X[own] + moves])
    return problem._replace(X=X, y=np.append(problem.y, problem.y[own])), np.append(
        owner, owner[own]
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("valuer", "problem"), CASES)
def test_copies_within_the_radius_change_no_value(valuer, problem):
    valuer, problem = VALUERS[valuer], PROBLEMS[problem]
    for owner in ("groups", "first"):
        radius = 1e-5 if valuer.metric == "cosine" else 0.01
        valuer.set_params(duplicate_owner=owner, duplicate_radius=radius)
        honest = problem.fit(valuer, groups=OWNER).values_
        pairs = np.unique(np.c_[valuer.clusters_, OWNER], axis=0)
        shared = len(pairs) > len(np.unique(valuer.clusters_))
        for step in (0.0, 0.002):
            more, groups = copied(problem, OWNER, step=step)
            values = more.fit(valuer, groups=groups).values_
            np.testing.assert_allclose(values, honest, rtol=1e-12, atol=1e-15)
        # Under other names, the party's values add up to what it had, where no row is
        # shared.
        names = np.r_[OWNER, np.repeat([10, 11, 12], 15)]
        found = more.fit(valuer, groups=names)
        if not shared:
            own = found.values_[(found.groups_ == 0) | (found.groups_ >= 10)].sum()
            assert own == pytest.approx(honest[0], rel=1e-12, abs=1e-15)
        assert found.values_.sum() == pytest.approx(honest.sum(), abs=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("valuer", VALUERS)
def test_one_row_of_each_cluster_plays(valuer):
    problem, valuer = PROBLEMS["shared rows"], VALUERS[valuer]
    plain = type(valuer)(**{**valuer.get_params(), "duplicates": None})
    valuer.set_params(duplicate_radius=0.0)
    clusters = problem.fit(valuer).clusters_
    if valuer.metric == "euclidean":  # with "cosine", rows of one direction are equal
        rows = np.c_[problem.X, problem.y == "yes"]
        same = (rows[:, None] == rows).all(axis=2)
        np.testing.assert_array_equal(same, clusters[:, None] == clusters)
    _, first = np.unique(clusters, return_index=True)
    assert valuer.merged_fraction_ == 1 - len(first) / 60
    alone = problem._replace(X=problem.X[first], y=problem.y[first]).fit(plain)
    for owner, expected in (
        ("rows", (alone.values_ / np.bincount(clusters))[clusters]),
        ("groups", (alone.values_ / np.bincount(clusters))[clusters]),
        ("first", np.bincount(first, alone.values_, 60)),
    ):
        valuer.set_params(duplicate_owner=owner)
        np.testing.assert_allclose(problem.fit(valuer).values_, expected, atol=1e-14)
    assert valuer.utility_ == pytest.approx(alone.utility_, abs=1e-12)
    new = problem.X_val[:3]
    np.testing.assert_allclose(valuer.transform(new), alone.transform(new), atol=1e-12)


def test_who_has_the_value_of_a_shared_cluster():
    problem = two_classes(0, 20, 20)
    X = np.vstack([problem.X, problem.X[:1], problem.X[:1]])
    more = problem._replace(X=X, y=np.append(problem.y, problem.y[[0, 0]]))
    groups = np.r_[0, np.full(19, 2), 1, 1]  # row 0, and twice with another party
    alone = problem.fit(KNNShapleyValuer()).values_[0]
    for owner, first in (("rows", 1 / 3), ("groups", 1 / 2), ("first", 1)):
        valuer = KNNShapleyValuer(
            duplicates="quotient", duplicate_radius=0, duplicate_owner=owner
        )
        values = more.fit(valuer, groups=groups).values_
        np.testing.assert_allclose(
            values[:2], [alone * first, alone * (1 - first)], atol=1e-15
        )


def test_the_radius_is_that_of_public_points():
    problem = digits(0)
    valuer = problem.fit(KNNShapleyValuer(duplicates="quotient"))
    assert valuer.duplicate_radius_ == copy_radius(problem.X_val, problem.y_val, 500)
    assert 0 < valuer.merged_fraction_ < 0.03
    rows = problem._replace(X=problem.X + 5.0)
    assert rows.fit(valuer).duplicate_radius_ == copy_radius(
        problem.X_val, problem.y_val, 500
    )
    assert copy_radius(np.zeros((9, 2)), np.zeros(9), 9) == 0.0
    chain = np.arange(4.0)[:, None]
    assert copy_clusters(chain, np.array([0, 0, 1, 1]), 1.0).tolist() == [0, 0, 1, 1]
    assert copy_clusters(chain, np.zeros(4), 0.9).tolist() == [0, 1, 2, 3]


def gain(problem, step, valuer):
    """What a party of five gains by sending its rows four times, in shares of a
    budget."""
    owner, found = np.arange(len(problem.y)) % 5, []
    for data, groups in ((problem, owner), copied(problem, owner, step=step)):
        paid = np.maximum(data.fit(valuer, groups=groups).values_, 0)
        found.append(paid[0] / paid.sum())
    return found[1] / found[0] - 1


def test_copies_beyond_the_radius_are_paid():
    """The failing side: moved by 1.5 radii, they gain more than half."""
    problem = digits(1)
    radius = copy_radius(problem.X_val, problem.y_val, 500)
    valuer = KNNShapleyValuer(duplicates="quotient", duplicate_radius=radius)
    assert abs(gain(problem, 0.4 * radius, valuer)) < 1e-12
    assert gain(problem, 1.5 * radius, valuer) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "breast cancer", "wine", "made"])
def test_few_honest_rows_are_merged(name):
    X, y = {
        "digits": lambda: load_digits(return_X_y=True),
        "breast cancer": lambda: load_breast_cancer(return_X_y=True),
        "wine": lambda: load_wine(return_X_y=True),
        "made": lambda: make_classification(1200, 8, n_informative=5, random_state=0),
    }[name]()
    X, merged = StandardScaler().fit_transform(X), []
    for seed in range(10):
        options = {
            "test_size": min(500, len(y) // 2),
            "random_state": seed,
            "stratify": y,
        }
        rows, X_val, labels, y_val = train_test_split(X, y, **options)
        valuer = KNNShapleyValuer(duplicates="quotient")
        valuer.fit(rows[:500], labels[:500], X_val=X_val, y_val=y_val)
        merged.append(valuer.merged_fraction_)
    assert 0.002 < np.mean(merged) < 0.02


PROBLEM = PROBLEMS["two classes"]


@pytest.mark.parametrize("valuer", [VALUERS["knn"], VALUERS["tknn"]])
def test_refuses(valuer):
    with pytest.raises(ValueError, match="duplicates needs X_val"):
        valuer.fit(*PROBLEM.rows)
    options = {"radius": 0.5} if hasattr(valuer, "radius") else {}
    known = type(valuer)(metric="precomputed", duplicates="quotient", **options)
    square, y = np.abs(PROBLEM.X @ PROBLEM.X.T), PROBLEM.y
    with pytest.raises(ValueError, match="metric must be one of rows.* 'precomputed'"):
        known.fit(square, y, X_val=square[:3], y_val=y[:3])
    PROBLEM.fit(valuer)
    with pytest.raises(ValueError, match="contributions needs duplicates=None"):
        valuer.contributions(0)
    with pytest.raises(ValueError, match="add_validation needs duplicates=None"):
        valuer.add_validation(PROBLEM.X_val, PROBLEM.y_val)
    assert not hasattr(valuer, "validation_error_")


def test_refuses_epsilon():
    with pytest.raises(ValueError, match="duplicates must be None with epsilon"):
        PROBLEM.fit(TKNNShapleyValuer(epsilon=1.0, duplicates="quotient"))
