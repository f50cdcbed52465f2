"""Control variates: every exact expectation against the enumeration of all
coalitions."""

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import hypergeom

from skvalue.estimation.adjusting import (
    KINDS,
    make_controls,
    ranked_rows,
    standard_components,
)
from skvalue.samplers import SizeStrata, draw_subsets
from skvalue.semivalues import size_weights

SEMIVALUES = {
    "shapley": "shapley",
    "banzhaf": "banzhaf",
    "beta": (2, 3),
    "custom": lambda n: None,
}
N = 8


def strata_of(semivalue, n=N):
    if semivalue == "custom":  # sizes of weight 0 among others
        q = np.array([0, 1, 0, 3, 2, 0, 1, 0.0])[:n]
        return SizeStrata.of(q / q.sum())
    return SizeStrata.of(size_weights(SEMIVALUES[semivalue], n), semivalue != "banzhaf")


def all_coalitions(strata):
    """Coalitions that are drawn, their strata, and probabilities within the stratum."""
    n = len(strata.stratum) - 1
    masks = (np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) % 2 == 1
    labels = strata.stratum[masks.sum(axis=1)]
    masks, labels = masks[labels >= 0], labels[labels >= 0]
    sizes = masks.sum(axis=1)
    return masks, labels, strata.probabilities[labels, sizes] / comb(n, sizes)


def enumerated(strata, v):
    """Averages of v (coalitions, n_fits) with the importance weights, by stratum and
    player."""
    masks, labels, probability = all_coalitions(strata)
    sizes = masks.sum(axis=1)
    sides = []
    for weight, member in ((strata.inside, masks), (strata.outside, ~masks)):
        a = (probability * weight[sizes])[:, None] * member
        mean = np.zeros((strata.n_strata, masks.shape[1], v.shape[1]))
        for k in range(strata.n_strata):
            total = a[labels == k].sum(axis=0)[:, None]
            sums = a[labels == k].T @ v[labels == k]
            mean[k] = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        sides.append(mean)
    return sides


def rows(task, n=N):
    rng = np.random.default_rng(5)
    X, X_val = (
        rng.integers(0, 4, size=(n, 2)) * 1.0,
        rng.normal(size=(6, 2)),
    )  # with ties
    if task == "regression":
        y, y_val = X[:, 0] + rng.normal(size=n), rng.normal(size=6)
        data = dict(targets=y)
    else:
        n_classes = int(task[0])
        y, y_val = np.arange(n) % n_classes, rng.integers(0, n_classes, 6)
        data = dict(codes=y, class_weights=np.bincount(y_val, minlength=n_classes) / 6)
    points = ranked_rows(X, y, X_val, y_val, task == "regression")
    return dict(components=X, points=points, **data)


def features_of(controls, masks, labels):
    """Features of coalitions: the columns of the stratum of each; all others are 0."""
    described = controls.describe(masks)
    features = np.zeros((len(masks), controls.n_features))
    for k in range(controls.n_strata):
        block = controls.block(described[labels == k], k)
        features[np.ix_(labels == k, controls.columns(k))] = block
    return features


def check_expectations(strata, data):
    masks, labels, _ = all_coalitions(strata)
    for kind in KINDS:
        controls = make_controls(strata, **data, kinds=[kind])
        assert controls.kinds == (
            (kind,) if kind != "counts" or "codes" in data else ()
        )
        beta = np.random.default_rng(1).normal(size=(controls.n_features, 2))
        x = features_of(controls, masks, labels)
        for found, expected in zip(
            controls.expected(beta), enumerated(strata, x @ beta)
        ):
            np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=kind)


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize(
    "task", ["regression", "1 class", "2 classes", "3 classes", "5 classes"]
)
def test_expectations_agree_with_enumeration(semivalue, task):
    check_expectations(strata_of(semivalue), rows(task))


def test_expectations_by_size_agree_with_enumeration():
    strata = strata_of("beta")
    member = np.array(
        [[0 < s < 5 for s in range(N + 1)], [4 < s < N for s in range(N + 1)]]
    )
    # As `SizeStrata.of`, with four sizes in the first of two strata.
    drawn = np.where(member, 1 / member.sum(axis=1, keepdims=True), 0.0)
    total, before = drawn.sum(axis=0), strata.probabilities.sum(axis=0)
    scale = np.divide(before, total, out=np.zeros(N + 1), where=total > 0)
    wide = SizeStrata(
        np.where(member.any(axis=0), member[1] * 1, -1), drawn, strata.inside * scale,
        strata.outside * scale, np.ones(2), np.ones(2),
    )  # fmt: skip
    for task in ("regression", "2 classes", "3 classes"):
        check_expectations(wide, rows(task))
    for kind in (
        "counts",
        "neighbors",
    ):  # once in each stratum, and once for each of four sizes
        controls = make_controls(wide, **rows("3 classes"), kinds=[kind])
        width = len(controls.columns(1))
        assert (len(controls.columns(0)), controls.n_features) == (5 * width, 6 * width)


@pytest.mark.parametrize("n", [2, 3])
def test_expectations_of_few_players_agree_with_enumeration(n):
    check_expectations(strata_of("shapley", n), rows("regression", n))
    data = rows("2 classes", n)
    check_expectations(
        strata_of("shapley", n), {**data, "class_weights": np.full(4, 0.25)}
    )


def test_expectations_of_groups_agree_with_enumeration():
    strata, rng = strata_of("beta"), np.random.default_rng(0)
    masks, labels, _ = all_coalitions(strata)
    groups, X, y = np.arange(20) % N, rng.normal(size=(20, 2)), np.arange(20) % 2
    points = ranked_rows(X, y, X[:3], y[:3], False)
    data = dict(codes=y, class_weights=np.ones(2), components=X, points=points)
    controls = make_controls(strata, **data, groups=groups)
    assert controls.kinds == ("sizes", "quadratic", "additive")
    beta = rng.normal(size=(controls.n_features, 1))
    described = controls.describe(masks)
    for found, expected in zip(
        controls.expected(beta),
        enumerated(strata, features_of(controls, masks, labels) @ beta),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    # Means per player of the sums over rows: of the indicators of classes, the first
    # columns.
    of_rows = masks[:, groups] @ np.eye(2)[y] / masks.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(described[:, [1, 4]], of_rows, rtol=1e-12)


def larger(n, n_points=5, seed=0, stratified=True):
    """Controls of n rows with all kinds, and what they are made of."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 4, size=n)
    points = ranked_rows(
        X, y, rng.normal(size=(n_points, 3)), np.arange(n_points) % 4, False
    )
    strata = SizeStrata.of(np.full(n, 1 / n), stratified)
    data = dict(codes=y, class_weights=np.full(4, 0.25), components=X, points=points)
    return make_controls(strata, **data), strata, y, points


def test_descriptions_of_one_coalition_have_the_same_bits_as_those_of_many():
    controls, strata, _, _ = larger(150)
    labels = np.arange(40) % strata.n_strata
    masks = draw_subsets(np.random.default_rng(0), strata, labels)
    together = controls.describe(masks)
    assert together.shape == (40, controls.n_described)
    for batch in (np.arange(40)[:, None], [np.arange(7), np.arange(7, 40)]):
        split = np.concatenate([controls.describe(masks[rows]) for rows in batch])
        np.testing.assert_array_equal(together, split)
    np.testing.assert_array_equal(controls.describe(np.asfortranarray(masks)), together)


def test_features_agree_with_their_definitions():
    n = 150
    _, strata, y, (order, matches) = larger(n)
    rng = np.random.default_rng(1)
    sizes = np.r_[1:n, 1:40]
    masks = rng.permuted(np.arange(n) < sizes[:, None], axis=1)
    labels = strata.stratum[sizes]

    def local(kind, **data):
        """Features in the stratum of each coalition."""
        controls = make_controls(strata, kinds=[kind], **data)
        described = controls.describe(masks)
        own = [controls.block(described[[m]], k)[0] for m, k in enumerate(labels)]
        width = min(map(len, own))
        for s, row in zip(sizes, own):  # of the first stratum, once more, by size
            if len(row) > width:
                by_size = np.zeros((len(row) // width - 1, width))
                by_size[s - 1] = row[:width]
                np.testing.assert_array_equal(row[width:], by_size.ravel())
        assert (max(map(len, own)) > width) == (kind in ("counts", "neighbors"))
        return np.array([row[:width] for row in own])

    found = local("sizes")
    np.testing.assert_allclose(found[:, 0], np.log(sizes))
    for k in range(strata.n_strata):
        assert len(np.unique(found[labels == k, 1:], axis=0)) == min(
            6, (strata.stratum == k).sum()
        )
    expected = np.empty((len(masks), 5))
    for m, mask in enumerate(masks):
        near = [match[mask[row]] for row, match in zip(order, matches)]
        expected[m] = [np.mean([x[:k].mean() for x in near]) for k in (1, 2, 4, 8, 16)]
    np.testing.assert_allclose(
        local("neighbors", points=(order, matches)), expected, rtol=1e-12
    )

    weights = np.array([0.1, 0.2, 0.3, 0.4])
    counts = masks @ np.eye(4)[y]
    functions = [counts == 0, counts <= 1, counts <= 3]
    functions += [(np.sign(2 * counts - sizes[:, None]) + 1) / 2]
    functions += [np.log((counts + 1) / (sizes[:, None] + 4))]
    expected = [f @ w for w in (weights, np.ones(4)) for f in functions]
    found = local("counts", codes=y, class_weights=weights)
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-12)

    X = rng.normal(size=(n, 3))
    means = masks @ np.c_[np.eye(4)[y], X] / sizes[:, None]
    expected = means[:, :, None] * means[:, None, :]
    expected = expected[:, *np.triu_indices(7)]
    np.testing.assert_allclose(
        local("quadratic", codes=y, components=X), expected, rtol=1e-9, atol=1e-15
    )
    centered = masks - sizes[:, None] / n
    by_size = centered / sizes[:, None], centered / np.maximum(sizes, n / 8)[:, None]
    np.testing.assert_allclose(local("additive"), np.hstack(by_size), rtol=1e-12)


def test_expected_utilities_agree_with_hypergeometric_sums():
    # More rows than neighbours, of all K.
    n, (order, matches) = 40, larger(40, n_points=3)[3]
    strata = SizeStrata.of(size_weights((2, 1), n))
    controls = make_controls(strata, points=(order, matches), kinds=["neighbors"])
    found = controls.expected(np.eye(controls.n_features))
    s, r = np.arange(n + 1)[:, None], np.arange(1, n + 1)
    for side, (p, mean) in enumerate(zip(strata.side_probabilities, found)):
        others = s - 1 + side
        for column in range(controls.n_features):
            k, at = divmod(column, 5)
            K = 2**at

            def cdf(x, population, nearer, drawn):
                good = np.clip(nearer, 0, population)
                return hypergeom.cdf(x, population, good, np.clip(drawn, 0, population))

            weight = p[k] / np.minimum(K, np.maximum(s[:, 0], 1))
            member = others / (n - 1)
            nearer = weight @ (member * cdf(K - 1, n - 2, r - 1, others - 1))
            farther = weight @ (member * cdf(K - 2 + side, n - 2, r - 2, others - 1))
            own = weight @ cdf(K - 1, n - 1, r - 1, others) * (side == 0)
            expected = np.zeros((3, n))
            for v, rank in enumerate(np.argsort(order, axis=1)):
                for i in range(n):
                    parts = np.where(r - 1 < rank[i], nearer, farther)
                    parts[rank[i]] = own[rank[i]]
                    expected[v, i] = parts @ matches[v]
            np.testing.assert_allclose(
                mean[k, :, column], expected.mean(axis=0), atol=1e-12
            )


@pytest.mark.parametrize("size", [1, 2, 7_000, 19_998])
def test_expectations_of_many_players_agree_with_the_mean_over_players(size):
    # With one size, E[x(S)] is the mean over players of E[x(S) | i in S], and of i not
    # in S.
    n = 20_000
    one = (np.arange(n + 1) == size) * 1.0
    strata = SizeStrata(
        np.where(one > 0, 0, -1), one[None], one, one, np.ones(1), np.ones(1)
    )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 3, size=n)
    points = (np.stack([rng.permutation(n) for _ in range(2)]), rng.random((2, n)))
    kinds = ("sizes", "counts", "quadratic", "neighbors", "additive")
    data = dict(codes=y, class_weights=np.full(3, 1 / 3), components=X, points=points)
    controls = make_controls(strata, **data, kinds=kinds)
    beta = rng.normal(size=(controls.n_features, 1))
    inside, outside = (side[0, :, 0] for side in controls.expected(beta))
    assert np.ptp(inside) > 0
    np.testing.assert_allclose(inside.mean(), outside.mean(), rtol=1e-9)
    # Matches of 1 everywhere give a prediction of 1.
    points = (points[0], np.ones((2, n)))
    ones = make_controls(strata, points=points, kinds=["neighbors"])
    for side in ones.expected(np.eye(5)):
        np.testing.assert_allclose(side, 1.0, rtol=1e-10)


def test_kinds_without_data_are_left_out():
    strata = strata_of("shapley")
    assert make_controls(strata).kinds == ("sizes", "additive")
    assert make_controls(strata, kinds=[]).n_features == 0


@pytest.mark.parametrize("width", [5, 100])
def test_standard_components(width):
    X = np.random.default_rng(0).normal(size=(200, width)) * np.arange(1, width + 1)
    X[:, 0] = 7.0
    Z = standard_components(X, 6, random_state=0)
    assert Z.shape == (200, min(6, width - 1))
    np.testing.assert_allclose(Z.T @ Z / 199, np.eye(Z.shape[1]), atol=1e-8)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-10)
    # Of the correlation matrix, not of the covariances.
    vectors = np.linalg.eigh(np.corrcoef(X[:, 1:].T))[1]
    scores = (X[:, 1:] - X[:, 1:].mean(0)) / X[:, 1:].std(0) @ vectors[:, :-7:-1]
    cosines = np.abs(
        (Z * scores).sum(0) / np.linalg.norm(Z, axis=0) / np.linalg.norm(scores, axis=0)
    )
    np.testing.assert_allclose(cosines, 1, rtol=1e-6)
