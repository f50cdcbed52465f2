"""Smoothing and shrinkage of noisy counts against normal distributions and limits."""

import numpy as np
import pytest
from scipy.stats import truncnorm

from skvalue.valuers.tknn_shapley import (
    CountModel,
    neighbour_values,
    positive_draws,
    posterior_draws,
    size_draws,
    smoothing_basis,
    value_sizes,
)

# Standard deviations that the smooth part and the common level may have.
SCALES = 10.0 ** np.arange(0, 6.01, 0.5)


def line(n):
    """Distances of points on a line, the landmarks (all points), and the radius."""
    x = np.sort(np.random.default_rng(0).uniform(0, 4, n))
    return np.abs(x[:, None] - x), np.arange(n), 1.0


def draw_posterior(noisy, noise, geometry, labels=None):
    """Draws of the counts at points of one label, or of ``labels``."""
    distances, landmarks, reach = geometry
    if labels is None:
        labels = np.zeros(len(distances))
    model = CountModel(np.asarray(noisy), noise, labels, distances, landmarks, reach)
    return model.draws(noisy, np.random.default_rng(3), n_draws=64)


def sizes_of(posterior, n_classes, semivalue="shapley"):
    """Values of neighbours with and without the label of each point."""
    return value_sizes(posterior, size_draws(posterior, n_classes, semivalue))


# Smoothing ----------------------------------------------------------------------------


def covariance(basis):
    return (basis.vectors * basis.weights) @ basis.vectors.T


def test_draws_have_the_posterior_mean_and_standard_deviation():
    basis = smoothing_basis(*line(6))
    y = np.array([300.0, 280, 250, 200, 220, 260])
    draws = posterior_draws(y, basis, 30.0, np.random.default_rng(0), 40_000)

    # The mixture over all scales s and levels tau >= s, by their likelihoods.
    kernel = covariance(basis)
    logs = []
    means = []
    squares = []
    for s in (0.0, *SCALES):
        for tau in SCALES[s <= SCALES]:
            total = s**2 * kernel + tau**2 + 900 * np.eye(6)
            precision = np.linalg.inv(total)
            _, log_det = np.linalg.slogdet(total)
            logs.append(-0.5 * (y @ precision @ y + log_det))
            means.append(y - 900 * precision @ y)
            squares.append(900 - 900**2 * np.diag(precision) + means[-1] ** 2)
    weights = np.exp(np.array(logs) - max(logs))
    mean = np.average(means, axis=0, weights=weights)
    square = np.average(squares, axis=0, weights=weights)
    std = np.sqrt(square - mean**2)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.6)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.02)


@pytest.mark.parametrize("reach", [0.5, 2.0])
def test_the_covariance_falls_with_the_distance(reach):
    distances, landmarks, _ = line(12)
    basis = smoothing_basis(distances, landmarks, reach)
    expected = np.exp(-distances / reach)
    np.testing.assert_allclose(covariance(basis), expected, atol=1e-5)


@pytest.fixture
def few_landmarks():
    """A line of 300 points, of which 120 are landmarks."""
    distances, _, reach = line(300)
    landmarks = np.unique(np.linspace(0, 299, 120).astype(int))
    return distances[:, landmarks], landmarks, reach


def test_values_of_few_landmarks_are_nearly_those_of_all_points(few_landmarks):
    rng = np.random.default_rng(0)
    smooth = 400 * (2 + np.sin(np.linspace(0, 6, 300)))
    clean = np.array([0.7, 0.3])[:, None] * smooth
    noisy = clean + rng.normal(0, 60, (2, 300))
    expected = sizes_of(draw_posterior(noisy, 60.0, line(300)), 3)
    sizes = sizes_of(draw_posterior(noisy, 60.0, few_landmarks), 3)
    np.testing.assert_allclose(expected, sizes, rtol=0.2)


def test_vectors_of_few_landmarks_are_orthonormal(few_landmarks):
    vectors = smoothing_basis(*few_landmarks).vectors
    products = vectors.T @ vectors
    np.testing.assert_allclose(products, np.eye(len(products)), atol=1e-6)


MEANS = np.array([-60.0, -20, 0, 10, 30, 60, 100, 600])


@pytest.mark.parametrize("column", range(len(MEANS)), ids=MEANS.tolist())
def test_draws_below_zero_are_drawn_from_distributions_cut_off_there(column):
    rng = np.random.default_rng(0)
    mean = MEANS[column]
    std = 30.0
    free = MEANS + std * rng.normal(size=(20_000, len(MEANS)))
    draws = positive_draws(free)[:, column]
    expected = truncnorm(-mean / std, np.inf, mean, std)
    assert draws.min() >= 0
    assert draws.mean() == pytest.approx(expected.mean(), rel=0.05)
    assert draws.std() == pytest.approx(expected.std(), rel=0.05)
    if mean > 4.1 * std:
        np.testing.assert_array_equal(draws, np.maximum(free[:, column], 0))


def test_smoothing_brings_counts_nearer_to_the_truth():
    n = 200
    rng = np.random.default_rng(0)
    smooth = 100 * (3 + np.sin(np.linspace(0, 6, n)))
    clean = np.array([0.6, 0.4])[:, None] * smooth
    noisy = clean + rng.normal(0, 80, (2, n))
    means = draw_posterior(noisy, 80.0, line(n)).mean(axis=1)
    errors = np.abs(means - clean).mean(axis=1)
    assert (errors < 0.35 * np.abs(noisy - clean).mean(axis=1)).all()


# The fraction of other labels ---------------------------------------------------------


@pytest.mark.parametrize("fraction", [0, 0.1, 0.3])
def test_the_fraction_of_other_labels_is_learned(fraction):
    """Of clean labels the other count is almost zero, and not half the noise."""
    rng = np.random.default_rng(0)
    n = 200
    noise = 20.0
    total = 60 * (2 + np.sin(np.linspace(0, 6, n)))
    clean = np.stack([(1 - fraction) * total, fraction * total])
    means = []
    for _ in range(6):
        noisy = clean + noise * rng.normal(size=clean.shape)
        _, other = draw_posterior(noisy, noise, line(n))
        means.append(other.mean(axis=0))
    assert np.mean(means) == pytest.approx(clean[1].mean(), abs=2.0)


def test_labels_are_mixed_where_public_points_of_both_are_near():
    rng = np.random.default_rng(0)
    n = 200
    noise = 15.0
    # One point in ten, among the others.
    is_rare = np.arange(n) % 10 == 0
    clean = np.where(is_rare, [[10.0], [90.0]], [[90.0], [10.0]])
    noisy = clean + noise * rng.normal(size=clean.shape)
    _, other = draw_posterior(noisy, noise, line(n), labels=is_rare)
    means = other.mean(axis=0)
    assert means[is_rare].mean() == pytest.approx(90, abs=8)
    assert means[~is_rare].mean() == pytest.approx(10, abs=4)


# Values -------------------------------------------------------------------------------


def real_values(same, other, n_classes, semivalue):
    """Values for counts that are exact, and need not be integers."""
    counts = np.array([same, other], dtype=float)
    return sizes_of(counts[:, None], n_classes, semivalue)


def smallest_size(same, other):
    """Sizes that are smaller are clipped: their logarithms are taken."""
    return 1e-3 / np.maximum(same + other, 1)


@pytest.fixture
def counts():
    """Counts of neighbours with and without the label; in some balls there is none."""
    same, other = np.random.default_rng(0).integers(0, 300, (2, 2000))
    same[:50] = 0
    other[50:100] = 0
    return same, other


EACH_CLASS_COUNT = pytest.mark.parametrize("n_classes", [2, 5])


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)])
@EACH_CLASS_COUNT
def test_values_of_whole_counts_are_the_exact_ones(counts, semivalue, n_classes):
    same, other = counts
    smallest = smallest_size(same, other)
    value_same, value_other = neighbour_values(same, other, n_classes, semivalue)
    real_same, real_other = real_values(same, other, n_classes, semivalue)
    np.testing.assert_allclose(
        np.abs(real_same)[same > 0],
        np.maximum(value_same, smallest)[same > 0],
        rtol=1e-12,
        atol=1e-15,
    )
    np.testing.assert_allclose(
        np.abs(real_other)[other > 0],
        np.maximum(-value_other, smallest)[other > 0],
        rtol=1e-12,
        atol=1e-15,
    )


def values_at_steps(counts, semivalue, n_classes):
    """Values for one more neighbour, one and a half, and two."""
    same, other = counts
    smallest = smallest_size(same, other)
    below, _ = neighbour_values(same + 1, other, n_classes, semivalue)
    above, _ = neighbour_values(same + 2, other, n_classes, semivalue)
    between, _ = real_values(same + 1.5, other, n_classes, semivalue)
    return np.maximum(below, smallest), between, np.maximum(above, smallest)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)])
@EACH_CLASS_COUNT
def test_values_of_other_counts_are_between_those_of_whole_ones(
    counts, semivalue, n_classes
):
    below, between, above = values_at_steps(counts, semivalue, n_classes)
    same, other = counts
    has_both = (other > 0) & (same > 3)
    assert (between <= np.maximum(below, above) + 1e-12)[has_both].all()
    assert (between >= np.minimum(below, above) - 1e-12)[has_both].all()


@pytest.mark.parametrize("semivalue", ["shapley", (4, 1)])
@EACH_CLASS_COUNT
def test_values_halfway_between_many_neighbours_are_nearly_the_mean(
    counts, semivalue, n_classes
):
    below, between, above = values_at_steps(counts, semivalue, n_classes)
    same, other = counts
    has_many = (other > 0) & (same > 3) & (same + other > 50)
    gaps = np.abs(between - (below + above) / 2)
    assert (gaps <= 0.1 * np.abs(below - above) + 1e-12)[has_many].all()


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_almost_no_noise_gives_the_exact_values(n_classes, semivalue):
    same, other = np.random.default_rng(2).integers(1, 400, (2, 30))
    exact = np.array(neighbour_values(same, other, n_classes, semivalue))
    smallest = smallest_size(same, other)
    expected = np.maximum(np.abs(exact), smallest) * [[1], [-1]]
    posterior = draw_posterior([same, other], 1e-3, line(30))
    sizes = sizes_of(posterior, n_classes, semivalue)
    np.testing.assert_allclose(sizes, expected, rtol=2e-3)


def test_the_total_of_the_sizes_is_that_of_the_draws():
    rng = np.random.default_rng(0)
    same, other = np.exp(rng.normal(3, 2, (2, 64, 20)))
    sizes = size_draws((same, other), 2)
    value_same, value_other = value_sizes(np.array([same, other]), sizes)
    drawn = (same * sizes[0] - other * sizes[1]).sum(axis=1)
    estimated = (same * value_same - other * value_other).sum(axis=1)
    mean = np.log(drawn).mean()
    assert np.log(estimated).mean() == pytest.approx(mean, abs=1e-12)


def test_sizes_that_vary_little_are_not_made_larger():
    posterior = 300 + np.random.default_rng(0).normal(size=(2, 64, 20))
    sizes = size_draws(posterior, 2)
    means = np.exp(np.log(np.abs(sizes)).mean(axis=1))
    assert (np.abs(value_sizes(posterior, sizes)) <= means * (1 + 1e-12)).all()
