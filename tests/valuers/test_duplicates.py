"""`duplicates="quotient"`: copies within a radius are not paid; others are."""

import tracemalloc

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
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

# The party of each row.
PARTIES = np.arange(60) % 4
RARE = np.array(["no"] * 50 + ["yes"] * 10)
GRID = np.round(two_classes(4, 60, 40).X) + 0.5
PROBLEMS = {
    "two classes": two_classes(0, 60, 40),
    "three classes": noisy_line(1, 60, 40, n_classes=3),
    "imbalanced": two_classes(2, 60, 40)._replace(y=RARE),
    "regression": noisy_line(3, 60, 40),
    "shared rows": two_classes(4, 60, 40)._replace(X=GRID),
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

# All pairs but for votes on targets; all problems and valuers are in the default tier.
FAST_PAIRS = {
    "knn": "shared rows",
    "knn, banzhaf": "two classes",
    "knn, votes": "three classes",
    "tknn": "imbalanced",
    "tknn, euclidean": "regression",
}
PAIRS = [
    pytest.param(
        VALUERS[valuer],
        PROBLEMS[problem],
        id=f"{valuer}-{problem}",
        marks=() if FAST_PAIRS[valuer] == problem else pytest.mark.slow,
    )
    for valuer in VALUERS
    for problem in PROBLEMS
    if (valuer, problem) != ("knn, votes", "regression")
]
EACH_PAIR = pytest.mark.parametrize(("valuer", "problem"), PAIRS)
EACH_VALUER = pytest.mark.parametrize("valuer", VALUERS.values(), ids=VALUERS)
OWNERS = pytest.mark.parametrize("owner", ["groups", "first"])
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def send_copies(problem, parties, times=4, step=0.0):
    """Rows of the first party sent several times, moved in random directions.

    Returns the problem and the party of each row.
    """
    rows = np.tile(np.flatnonzero(parties == parties[0]), times - 1)
    moves = np.random.default_rng(0).normal(size=(len(rows), problem.X.shape[1]))
    moves *= step / np.linalg.norm(moves, axis=1, keepdims=True)
    X = np.vstack([problem.X, problem.X[rows] + moves])
    y = np.append(problem.y, problem.y[rows])
    return problem._replace(X=X, y=y), np.append(parties, parties[rows])


# Copies within the radius -------------------------------------------------------------


def with_owner(valuer, owner):
    """A valuer whose radius finds rows that are moved by 0.002."""
    radius = 1e-5 if valuer.metric == "cosine" else 0.01
    return clone(valuer).set_params(duplicate_owner=owner, duplicate_radius=radius)


@EACH_PAIR
@OWNERS
@pytest.mark.parametrize("step", [0.0, 0.002])
def test_copies_within_the_radius_change_no_value(valuer, problem, owner, step):
    valuer = with_owner(valuer, owner)
    expected = problem.fit(valuer, groups=PARTIES).values_
    copied, parties = send_copies(problem, PARTIES, step=step)
    values = copied.fit(valuer, groups=parties).values_
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-15)


@EACH_PAIR
@OWNERS
def test_copies_under_other_names_change_no_total(valuer, problem, owner):
    valuer = with_owner(valuer, owner)
    honest = problem.fit(valuer, groups=PARTIES).values_
    pairs = np.unique(np.c_[valuer.clusters_, PARTIES], axis=0)
    shares_rows = len(pairs) > len(np.unique(valuer.clusters_))
    copied, _ = send_copies(problem, PARTIES, step=0.002)
    names = np.r_[PARTIES, np.repeat([10, 11, 12], 15)]
    copied.fit(valuer, groups=names)
    assert valuer.values_.sum() == pytest.approx(honest.sum(), abs=1e-12)
    # Where no row is shared with another party, the names have what the party had.
    if not shares_rows:
        is_first = (valuer.groups_ == 0) | (valuer.groups_ >= 10)
        total = valuer.values_[is_first].sum()
        assert total == pytest.approx(honest[0], rel=1e-12, abs=1e-15)


@pytest.fixture
def clustered(valuer):
    """A fit with equal rows, and one in which one row of each cluster plays alone."""
    problem = PROBLEMS["shared rows"]
    fitted = problem.fit(clone(valuer).set_params(duplicate_radius=0.0))
    _, first = np.unique(fitted.clusters_, return_index=True)
    one_of_each = problem._replace(X=problem.X[first], y=problem.y[first])
    alone = one_of_each.fit(clone(valuer).set_params(duplicates=None))
    return problem, fitted, alone


# With "cosine", rows of one direction are equal.
@pytest.mark.parametrize("valuer", [VALUERS["knn"], VALUERS["tknn, euclidean"]])
def test_equal_rows_of_one_label_are_a_cluster(clustered):
    problem, valuer, _ = clustered
    rows = np.c_[problem.X, problem.y == "yes"]
    is_equal = (rows[:, None] == rows).all(axis=2)
    clusters = valuer.clusters_
    np.testing.assert_array_equal(is_equal, clusters[:, None] == clusters)


@EACH_VALUER
def test_one_row_of_each_cluster_plays(clustered):
    _, valuer, alone = clustered
    assert valuer.merged_fraction_ == 1 - len(alone.values_) / 60
    assert valuer.utility_ == pytest.approx(alone.utility_, abs=1e-12)


@EACH_VALUER
@pytest.mark.parametrize("owner", ["rows", "groups"])
def test_the_rows_of_a_cluster_have_equal_parts_of_its_value(clustered, owner):
    problem, valuer, alone = clustered
    clusters = valuer.clusters_
    expected = (alone.values_ / np.bincount(clusters))[clusters]
    values = problem.fit(valuer.set_params(duplicate_owner=owner)).values_
    np.testing.assert_allclose(values, expected, atol=1e-14)


@EACH_VALUER
def test_the_first_row_of_a_cluster_has_its_value_if_it_is_the_owner(clustered):
    problem, valuer, alone = clustered
    _, first = np.unique(valuer.clusters_, return_index=True)
    expected = np.bincount(first, alone.values_, 60)
    values = problem.fit(valuer.set_params(duplicate_owner="first")).values_
    np.testing.assert_allclose(values, expected, atol=1e-14)


@EACH_VALUER
def test_new_rows_join_the_rows_that_play(clustered):
    problem, valuer, alone = clustered
    new = problem.X_val[:3]
    np.testing.assert_allclose(valuer.transform(new), alone.transform(new), atol=1e-12)


@pytest.mark.parametrize(
    ("owner", "fraction"), [("rows", 1 / 3), ("groups", 1 / 2), ("first", 1)]
)
def test_the_owner_of_a_shared_cluster_has_its_value(owner, fraction):
    problem = two_classes(0, 20, 20)
    X = np.vstack([problem.X, problem.X[:1], problem.X[:1]])
    copied = problem._replace(X=X, y=np.append(problem.y, problem.y[[0, 0]]))
    # Row 0 is with one party, and twice with another.
    groups = np.r_[0, np.full(19, 2), 1, 1]
    alone = problem.fit(KNNShapleyValuer()).values_[0]
    valuer = KNNShapleyValuer(
        duplicates="quotient", duplicate_radius=0, duplicate_owner=owner
    )
    values = copied.fit(valuer, groups=groups).values_[:2]
    expected = [alone * fraction, alone * (1 - fraction)]
    np.testing.assert_allclose(values, expected, atol=1e-15)


# The radius ---------------------------------------------------------------------------


def digits(seed, n=500):
    """Digits below five and above, in random order."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))[: 2 * n]
    return split(X[order] / 16, (y[order] >= 5).astype(int), n)


def test_the_radius_is_that_of_public_points():
    problem = digits(0)
    expected = copy_radius(problem.X_val, problem.y_val, 500)
    valuer = problem.fit(KNNShapleyValuer(duplicates="quotient"))
    assert valuer.duplicate_radius_ == expected
    assert 0 < valuer.merged_fraction_ < 0.03
    # Whatever the rows.
    problem._replace(X=problem.X + 5.0).fit(valuer)
    assert valuer.duplicate_radius_ == expected


def test_equal_points_give_the_radius_zero():
    assert copy_radius(np.zeros((9, 2)), np.zeros(9), 9) == 0.0


@pytest.mark.parametrize(
    ("y", "radius", "expected"),
    [([0, 0, 1, 1], 1.0, [0, 0, 1, 1]), ([0, 0, 0, 0], 0.9, [0, 1, 2, 3])],
)
def test_rows_of_one_label_within_the_radius_are_connected(y, radius, expected):
    chain = np.arange(4.0)[:, None]
    assert copy_clusters(chain, np.array(y), radius).tolist() == expected


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_clusters_are_the_same_in_little_memory(metric):
    X = np.round(two_classes(4, 300, 2).X) + 0.5
    y = np.arange(300) % 2
    expected = copy_clusters(X, y, 0.01, metric)
    assert 2 < len(np.unique(expected)) < 200
    with config_context(working_memory=0):
        np.testing.assert_array_equal(copy_clusters(X, y, 0.01, metric), expected)


def test_memory_for_equal_rows_is_bounded():
    """All pairs of 1,000 rows are a million, of at least 16 bytes."""
    X = np.ones((1000, 2))
    y = np.zeros(1000)
    tracemalloc.start()
    with config_context(working_memory=2):
        clusters = copy_clusters(X, y, 0.1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not clusters.any()
    assert peak < 4 * 2**20


def gain_of_copies(problem, step, valuer):
    """What a party of five gains of a budget by sending its rows four times."""
    parties = np.arange(len(problem.y)) % 5

    def fraction(data, groups):
        payments = np.maximum(data.fit(valuer, groups=groups).values_, 0)
        return payments[0] / payments.sum()

    honest = fraction(problem, parties)
    copied, groups = send_copies(problem, parties, step=step)
    return fraction(copied, groups) / honest - 1


@pytest.fixture(scope="module")
def digits_and_radius():
    problem = digits(1)
    return problem, copy_radius(problem.X_val, problem.y_val, 500)


def test_copies_within_the_radius_gain_nothing(digits_and_radius):
    problem, radius = digits_and_radius
    valuer = KNNShapleyValuer(duplicates="quotient", duplicate_radius=radius)
    assert abs(gain_of_copies(problem, 0.4 * radius, valuer)) < 1e-12


def test_copies_beyond_the_radius_are_paid(digits_and_radius):
    """The failing side: moved by 1.5 radii, they gain more than half."""
    problem, radius = digits_and_radius
    valuer = KNNShapleyValuer(duplicates="quotient", duplicate_radius=radius)
    assert gain_of_copies(problem, 1.5 * radius, valuer) > 0.5


def made():
    return make_classification(1200, 8, n_informative=5, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_digits, load_breast_cancer, load_wine, made])
def test_few_honest_rows_are_merged(load):
    X, y = made() if load is made else load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    fractions = []
    for seed in range(10):
        X_train, X_val, y_train, y_val = train_test_split(
            X, y, test_size=min(500, len(y) // 2), random_state=seed, stratify=y
        )
        valuer = KNNShapleyValuer(duplicates="quotient")
        valuer.fit(X_train[:500], y_train[:500], X_val=X_val, y_val=y_val)
        fractions.append(valuer.merged_fraction_)
    assert 0.002 < np.mean(fractions) < 0.02


# What is refused ----------------------------------------------------------------------

TWO_CLASSES = PROBLEMS["two classes"]
EITHER_VALUER = pytest.mark.parametrize("name", ["knn", "tknn"])


@EITHER_VALUER
def test_copies_of_held_out_rows_are_refused(name):
    with pytest.raises(ValueError, match="duplicates needs X_val"):
        clone(VALUERS[name]).fit(*TWO_CLASSES.rows)


@EITHER_VALUER
def test_copies_by_distances_are_refused(name):
    valuer = clone(VALUERS[name]).set_params(metric="precomputed")
    if name == "tknn":
        valuer.set_params(radius=0.5)
    distances = np.abs(TWO_CLASSES.X @ TWO_CLASSES.X.T)
    y = TWO_CLASSES.y
    with pytest.raises(ValueError, match="metric must be one of rows.* 'precomputed'"):
        valuer.fit(distances, y, X_val=distances[:3], y_val=y[:3])


@EITHER_VALUER
def test_contributions_and_more_points_are_refused_with_copies(name):
    valuer = TWO_CLASSES.fit(clone(VALUERS[name]))
    with pytest.raises(ValueError, match="contributions needs duplicates=None"):
        valuer.contributions(0)
    with pytest.raises(ValueError, match="add_validation needs duplicates=None"):
        valuer.add_validation(TWO_CLASSES.X_val, TWO_CLASSES.y_val)


@EITHER_VALUER
def test_there_is_no_validation_error_with_copies(name):
    valuer = TWO_CLASSES.fit(clone(VALUERS[name]))
    assert not hasattr(valuer, "validation_error_")


def test_copies_of_private_rows_are_refused():
    valuer = TKNNShapleyValuer(epsilon=1.0, duplicates="quotient")
    with pytest.raises(ValueError, match="duplicates must be None with epsilon"):
        TWO_CLASSES.fit(valuer)
