"""Control variates: every exact expectation against the enumeration of coalitions."""

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

SEMIVALUES = {"shapley": "shapley", "banzhaf": "banzhaf", "beta": (2, 3)}
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
    masks = masks[strata.stratum[masks.sum(axis=1)] >= 0]
    sizes = masks.sum(axis=1)
    labels = strata.stratum[sizes]
    return masks, labels, strata.probabilities[labels, sizes] / comb(n, sizes)


def enumerated_expectations(strata, v):
    """Averages of v (coalitions, n_fits) with the importance weights.

    Inside and outside, each by stratum and player.
    """
    masks, labels, probabilities = all_coalitions(strata)
    sizes = masks.sum(axis=1)
    sides = []
    for importance, counts in ((strata.inside, masks), (strata.outside, ~masks)):
        weights = (probabilities * importance[sizes])[:, None] * counts
        means = np.zeros((strata.n_strata, masks.shape[1], v.shape[1]))
        for k in range(strata.n_strata):
            total = weights[labels == k].sum(axis=0)[:, None]
            sums = weights[labels == k].T @ v[labels == k]
            np.divide(sums, total, out=means[k], where=total > 0)
        sides.append(means)
    return sides


def rows_of(task, n=N):
    """What features need of n rows with ties, by the name of a task."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, size=(n, 2)) * 1.0
    X_val = rng.normal(size=(6, 2))
    if task == "regression":
        y = X[:, 0] + rng.normal(size=n)
        points = ranked_rows(X, y, X_val, rng.normal(size=6), is_regression=True)
        return {"components": X, "points": points, "targets": y}
    n_classes = int(task[0])
    y = np.arange(n) % n_classes
    y_val = rng.integers(0, n_classes, 6)
    return {
        "components": X,
        "points": ranked_rows(X, y, X_val, y_val, is_regression=False),
        "codes": y,
        "class_weights": np.bincount(y_val, minlength=n_classes) / 6,
    }


def features_of(controls, masks, labels):
    """Features of coalitions: the columns of the stratum of each; all others are 0."""
    described = controls.describe(masks)
    features = np.zeros((len(masks), controls.n_features))
    for k in range(controls.n_strata):
        block = controls.block(described[labels == k], k)
        features[np.ix_(labels == k, controls.columns(k))] = block
    return features


def check_expectations(strata, rows):
    masks, labels, _ = all_coalitions(strata)
    for kind in KINDS:
        controls = make_controls(strata, **rows, kinds=[kind])
        has_data = kind != "counts" or "codes" in rows
        assert controls.kinds == ((kind,) if has_data else ())
        beta = np.random.default_rng(1).normal(size=(controls.n_features, 2))
        combinations = features_of(controls, masks, labels) @ beta
        inside, outside = controls.expected(beta)
        enumerated_inside, enumerated_outside = enumerated_expectations(
            strata, combinations
        )
        np.testing.assert_allclose(inside, enumerated_inside, atol=1e-12, err_msg=kind)
        np.testing.assert_allclose(
            outside, enumerated_outside, atol=1e-12, err_msg=kind
        )


@pytest.mark.parametrize("semivalue", [*SEMIVALUES, "custom"])
@pytest.mark.parametrize(
    "task", ["regression", "1 class", "2 classes", "3 classes", "5 classes"]
)
def test_expectations_agree_with_enumeration(semivalue, task):
    check_expectations(strata_of(semivalue), rows_of(task))


@pytest.fixture
def two_wide_strata():
    """Two strata of four and three sizes, with draws that are not those of weights."""
    strata = strata_of("beta")
    sizes = np.arange(N + 1)
    in_first = (sizes > 0) & (sizes < 5)
    in_second = (sizes > 4) & (sizes < N)
    probabilities = np.array([in_first / in_first.sum(), in_second / in_second.sum()])
    total = probabilities.sum(axis=0)
    weighted = strata.probabilities.sum(axis=0)
    scale = np.divide(weighted, total, out=np.zeros(N + 1), where=total > 0)
    return SizeStrata(
        np.where(in_first | in_second, in_second * 1, -1),
        probabilities,
        strata.inside * scale,
        strata.outside * scale,
        np.ones(2),
        np.ones(2),
    )


@pytest.mark.parametrize("task", ["regression", "2 classes", "3 classes"])
def test_expectations_by_size_agree_with_enumeration(two_wide_strata, task):
    check_expectations(two_wide_strata, rows_of(task))


@pytest.mark.parametrize("kind", ["counts", "neighbors"])
def test_the_first_stratum_has_features_for_each_of_four_sizes(two_wide_strata, kind):
    controls = make_controls(two_wide_strata, **rows_of("3 classes"), kinds=[kind])
    width = len(controls.columns(1))
    assert len(controls.columns(0)) == 5 * width
    assert controls.n_features == 6 * width


@pytest.mark.parametrize("n", [2, 3])
def test_expectations_of_few_players_agree_with_enumeration(n):
    check_expectations(strata_of("shapley", n), rows_of("regression", n))


@pytest.mark.parametrize("n", [2, 3])
def test_expectations_of_classes_without_rows_agree_with_enumeration(n):
    rows = rows_of("2 classes", n) | {"class_weights": np.full(4, 0.25)}
    check_expectations(strata_of("shapley", n), rows)


def grouped_rows():
    """20 rows of two classes, and their groups."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.arange(20) % 2
    return {
        "codes": y,
        "class_weights": np.ones(2),
        "components": X,
        "points": ranked_rows(X, y, X[:3], y[:3], is_regression=False),
        "groups": np.arange(20) % N,
    }


def test_expectations_of_groups_agree_with_enumeration():
    strata = strata_of("beta")
    masks, labels, _ = all_coalitions(strata)
    controls = make_controls(strata, **grouped_rows())
    assert controls.kinds == ("sizes", "quadratic", "additive")
    beta = np.random.default_rng(1).normal(size=(controls.n_features, 1))
    combinations = features_of(controls, masks, labels) @ beta
    inside, outside = controls.expected(beta)
    enumerated_inside, enumerated_outside = enumerated_expectations(
        strata, combinations
    )
    np.testing.assert_allclose(inside, enumerated_inside, atol=1e-12)
    np.testing.assert_allclose(outside, enumerated_outside, atol=1e-12)


def test_descriptions_of_groups_hold_means_of_sums_over_rows():
    # Of the indicators of classes, which are the first columns.
    strata = strata_of("beta")
    masks, _, _ = all_coalitions(strata)
    rows = grouped_rows()
    described = make_controls(strata, **rows).describe(masks)
    sums = masks[:, rows["groups"]] @ np.eye(2)[rows["codes"]]
    means = sums / masks.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(described[:, [1, 4]], means, rtol=1e-12)


def many_rows(n, n_points=5):
    """What features need of n rows of four classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = rng.integers(0, 4, size=n)
    X_val = rng.normal(size=(n_points, 3))
    y_val = np.arange(n_points) % 4
    return {
        "codes": y,
        "class_weights": np.full(4, 0.25),
        "components": X,
        "points": ranked_rows(X, y, X_val, y_val, is_regression=False),
    }


def test_descriptions_of_one_coalition_have_the_same_bits_as_those_of_many():
    n = 150
    strata = SizeStrata.of(np.full(n, 1 / n))
    controls = make_controls(strata, **many_rows(n))
    labels = np.arange(40) % strata.n_strata
    masks = draw_subsets(np.random.default_rng(0), strata, labels)
    together = controls.describe(masks)
    assert together.shape == (40, controls.n_described)
    for batches in (np.arange(40)[:, None], [np.arange(7), np.arange(7, 40)]):
        one_by_one = [controls.describe(masks[rows]) for rows in batches]
        np.testing.assert_array_equal(together, np.concatenate(one_by_one))
    np.testing.assert_array_equal(controls.describe(np.asfortranarray(masks)), together)


class TestDefinitions:
    """Features of coalitions of 150 players, by their definitions."""

    n = 150
    strata = SizeStrata.of(np.full(150, 1 / 150))
    rows = many_rows(150)
    sizes = np.r_[1:150, 1:40]
    masks = np.random.default_rng(1).permuted(
        np.arange(150) < np.r_[1:150, 1:40][:, None], axis=1
    )

    def features(self, kind, **rows):
        """Features in the stratum of each coalition."""
        controls = make_controls(self.strata, kinds=[kind], **rows)
        described = controls.describe(self.masks)
        labels = self.strata.stratum[self.sizes]
        features = [
            controls.block(described[[number]], label)[0]
            for number, label in enumerate(labels)
        ]
        width = min(map(len, features))
        self.check_features_by_size(features, width, kind in ("counts", "neighbors"))
        return np.array([of_coalition[:width] for of_coalition in features])

    def check_features_by_size(self, features, width, has_features_by_size):
        """Those of the first stratum are there once more, by size."""
        assert (max(map(len, features)) > width) == has_features_by_size
        for size, of_coalition in zip(self.sizes, features):
            if len(of_coalition) > width:
                by_size = np.zeros((len(of_coalition) // width - 1, width))
                by_size[size - 1] = of_coalition[:width]
                np.testing.assert_array_equal(of_coalition[width:], by_size.ravel())

    def test_sizes_are_logarithms_and_steps_of_the_size(self):
        features = self.features("sizes")
        np.testing.assert_allclose(features[:, 0], np.log(self.sizes))
        labels = self.strata.stratum[self.sizes]
        for k in range(self.strata.n_strata):
            n_distinct = len(np.unique(features[labels == k, 1:], axis=0))
            assert n_distinct == min(6, (self.strata.stratum == k).sum())

    def test_neighbors_are_soft_knn_utilities(self):
        order, matches = self.rows["points"]
        expected = np.empty((len(self.masks), 5))
        for number, mask in enumerate(self.masks):
            of_members = [match[mask[near]] for near, match in zip(order, matches)]
            for column, k in enumerate((1, 2, 4, 8, 16)):
                utilities = [match[:k].mean() for match in of_members]
                expected[number, column] = np.mean(utilities)
        features = self.features("neighbors", points=(order, matches))
        np.testing.assert_allclose(features, expected, rtol=1e-12)

    def test_counts_are_functions_of_class_counts(self):
        class_weights = np.array([0.1, 0.2, 0.3, 0.4])
        sizes = self.sizes[:, None]
        counts = self.masks @ np.eye(4)[self.rows["codes"]]
        functions = [
            counts == 0,
            counts <= 1,
            counts <= 3,
            (np.sign(2 * counts - sizes) + 1) / 2,
            np.log((counts + 1) / (sizes + 4)),
        ]
        weighted = [values @ class_weights for values in functions]
        summed = [values @ np.ones(4) for values in functions]
        features = self.features(
            "counts", codes=self.rows["codes"], class_weights=class_weights
        )
        np.testing.assert_allclose(
            features, np.transpose(weighted + summed), rtol=1e-12
        )

    def test_quadratic_features_are_products_of_means(self):
        X = np.random.default_rng(2).normal(size=(self.n, 3))
        columns = np.hstack([np.eye(4)[self.rows["codes"]], X])
        means = self.masks @ columns / self.sizes[:, None]
        products = means[:, :, None] * means[:, None, :]
        features = self.features("quadratic", codes=self.rows["codes"], components=X)
        np.testing.assert_allclose(
            features, products[:, *np.triu_indices(7)], rtol=1e-9, atol=1e-15
        )

    def test_additive_features_are_centered_members_over_sizes(self):
        sizes = self.sizes[:, None]
        centered = self.masks - sizes / self.n
        expected = [centered / sizes, centered / np.maximum(sizes, self.n / 8)]
        np.testing.assert_allclose(
            self.features("additive"), np.hstack(expected), rtol=1e-12
        )


def test_expected_utilities_agree_with_hypergeometric_sums():
    # More rows than neighbours, of all K.
    n = 40
    order, matches = many_rows(n, n_points=3)["points"]
    strata = SizeStrata.of(size_weights((2, 1), n))
    controls = make_controls(strata, points=(order, matches), kinds=["neighbors"])
    expected = controls.expected(np.eye(controls.n_features))
    sizes = np.arange(n + 1)[:, None]
    ranks = np.arange(1, n + 1)

    def cdf(x, population, nearer, drawn):
        good = np.clip(nearer, 0, population)
        return hypergeom.cdf(x, population, good, np.clip(drawn, 0, population))

    for side, (probabilities, means) in enumerate(
        zip(strata.side_probabilities, expected)
    ):
        others = sizes - 1 + side
        is_member = others / (n - 1)
        for column in range(controls.n_features):
            k, power = divmod(column, 5)
            K = 2**power
            weight = probabilities[k] / np.minimum(K, np.maximum(sizes[:, 0], 1))
            nearer = weight @ (is_member * cdf(K - 1, n - 2, ranks - 1, others - 1))
            farther = weight @ (
                is_member * cdf(K - 2 + side, n - 2, ranks - 2, others - 1)
            )
            own = weight @ cdf(K - 1, n - 1, ranks - 1, others) * (side == 0)
            utilities = np.zeros((3, n))
            for point, rank in enumerate(np.argsort(order, axis=1)):
                for player in range(n):
                    chances = np.where(ranks - 1 < rank[player], nearer, farther)
                    chances[rank[player]] = own[rank[player]]
                    utilities[point, player] = chances @ matches[point]
            np.testing.assert_allclose(
                means[k, :, column], utilities.mean(axis=0), atol=1e-12
            )


def strata_of_one_size(n, size):
    is_size = (np.arange(n + 1) == size) * 1.0
    return SizeStrata(
        np.where(is_size > 0, 0, -1),
        is_size[None],
        is_size,
        is_size,
        np.ones(1),
        np.ones(1),
    )


SIZES_OF_MANY = pytest.mark.parametrize("size", [1, 2, 7_000, 19_998])


@SIZES_OF_MANY
def test_expectations_of_many_players_agree_with_the_mean_over_players(size):
    # With one size, E[x(S)] is the mean over players of E[x(S) | i in S], and of i not
    # in S.
    n = 20_000
    rng = np.random.default_rng(0)
    controls = make_controls(
        strata_of_one_size(n, size),
        codes=rng.integers(0, 3, size=n),
        class_weights=np.full(3, 1 / 3),
        components=rng.normal(size=(n, 2)),
        points=(
            np.stack([rng.permutation(n), rng.permutation(n)]),
            rng.random((2, n)),
        ),
        kinds=KINDS,
    )
    beta = rng.normal(size=(controls.n_features, 1))
    inside, outside = controls.expected(beta)
    assert np.ptp(inside[0, :, 0]) > 0
    np.testing.assert_allclose(inside.mean(), outside.mean(), rtol=1e-9)


@SIZES_OF_MANY
def test_matches_of_one_everywhere_give_an_expectation_of_one(size):
    n = 20_000
    rng = np.random.default_rng(0)
    order = np.stack([rng.permutation(n), rng.permutation(n)])
    points = (order, np.ones((2, n)))
    strata = strata_of_one_size(n, size)
    controls = make_controls(strata, points=points, kinds=["neighbors"])
    for expected in controls.expected(np.eye(5)):
        np.testing.assert_allclose(expected, 1.0, rtol=1e-10)


def test_kinds_without_data_are_left_out():
    strata = strata_of("shapley")
    assert make_controls(strata).kinds == ("sizes", "additive")
    assert make_controls(strata, kinds=[]).n_features == 0


COMPONENTS = pytest.mark.parametrize("width", [5, 100])


def columns_of_other_scales(width):
    """200 rows; the first column is constant."""
    X = np.random.default_rng(0).normal(size=(200, width)) * np.arange(1, width + 1)
    X[:, 0] = 7.0
    return X


@COMPONENTS
def test_components_are_standardised_and_uncorrelated(width):
    Z = standard_components(columns_of_other_scales(width), 6, random_state=0)
    assert Z.shape == (200, min(6, width - 1))
    np.testing.assert_allclose(Z.T @ Z / 199, np.eye(Z.shape[1]), atol=1e-8)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-10)


@COMPONENTS
def test_components_are_those_of_the_correlation_matrix(width):
    X = columns_of_other_scales(width)
    Z = standard_components(X, 6, random_state=0)
    X = X[:, 1:]
    _, vectors = np.linalg.eigh(np.corrcoef(X.T))
    scores = (X - X.mean(axis=0)) / X.std(axis=0) @ vectors[:, :-7:-1]
    norms = np.linalg.norm(Z, axis=0) * np.linalg.norm(scores, axis=0)
    np.testing.assert_allclose(np.abs((Z * scores).sum(axis=0) / norms), 1, rtol=1e-6)
