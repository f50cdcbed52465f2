"""Smoothing and shrinkage of noisy counts: against normal distributions, and in both
limits."""

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
    """Points on a line, and what the smoothing needs of them."""
    x = np.sort(np.random.default_rng(0).uniform(0, 4, n))
    return np.abs(x[:, None] - x), np.arange(n), 1.0


def posterior(noisy, noise, distances, landmarks, reach, labels=None, n_draws=64):
    """The posterior of counts at points of one label, or of ``labels``."""
    labels = np.zeros(len(distances)) if labels is None else labels
    model = CountModel(np.asarray(noisy), noise, labels, distances, landmarks, reach)
    return model.draws(noisy, np.random.default_rng(3), n_draws)


def covariance(basis):
    return (basis.vectors * basis.weights) @ basis.vectors.T


def test_draws_have_the_posterior_mean_and_standard_deviation():
    basis = smoothing_basis(*line(6))
    y = np.array([300.0, 280, 250, 200, 220, 260])
    posterior = posterior_draws(y, basis, 30.0, np.random.default_rng(0), 40_000)
    kernel = covariance(basis)
    logs, means, squares = [], [], []
    for s in (0.0, *SCALES):
        for tau in SCALES[s <= SCALES]:
            total = s**2 * kernel + tau**2 + 900 * np.eye(6)
            precision = np.linalg.inv(total)
            logs.append(-0.5 * (y @ precision @ y + np.linalg.slogdet(total)[1]))
            means.append(y - 900 * precision @ y)
            squares.append(900 - 900**2 * np.diag(precision) + means[-1] ** 2)
    weights = np.exp(np.array(logs) - max(logs))
    mean, square = weights @ means / weights.sum(), weights @ squares / weights.sum()
    np.testing.assert_allclose(posterior.mean(axis=0), mean, atol=0.6)
    np.testing.assert_allclose(
        posterior.std(axis=0), np.sqrt(square - mean**2), rtol=0.02
    )


def test_the_covariance_falls_with_the_distance():
    distances, landmarks, _ = line(12)
    for reach in (0.5, 2.0):
        found = covariance(smoothing_basis(distances, landmarks, reach))
        np.testing.assert_allclose(found, np.exp(-distances / reach), atol=1e-5)


def test_landmarks_approximate():
    distances, _, reach = line(300)
    landmarks = np.unique(np.linspace(0, 299, 120).astype(int))
    rng = np.random.default_rng(0)
    smooth = 400 * (2 + np.sin(np.linspace(0, 6, 300)))
    noisy = np.array([0.7, 0.3])[:, None] * smooth + rng.normal(0, 60, (2, 300))
    sizes = [
        sizes_of(posterior(noisy, 60.0, columns, points, reach), 3)
        for columns, points in (
            (distances, np.arange(300)),
            (distances[:, landmarks], landmarks),
        )
    ]
    np.testing.assert_allclose(sizes[0], sizes[1], rtol=0.2)
    basis = smoothing_basis(distances[:, landmarks], landmarks, reach)
    product = basis.vectors.T @ basis.vectors
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-6)


def test_draws_below_zero_are_drawn_from_distributions_cut_off_there():
    rng = np.random.default_rng(0)
    mean, deviation = np.array([-60.0, -20, 0, 10, 30, 60, 100, 600]), 30.0
    free = mean + deviation * rng.normal(size=(20_000, len(mean)))
    for cut, draws, at in zip(positive_draws(free).T, free.T, mean):
        expected = truncnorm(-at / deviation, np.inf, at, deviation)
        assert cut.min() >= 0
        assert cut.mean() == pytest.approx(expected.mean(), rel=0.05)
        assert cut.std() == pytest.approx(expected.std(), rel=0.05)
        if at > 4.1 * deviation:
            np.testing.assert_array_equal(cut, np.maximum(draws, 0))


@pytest.mark.parametrize("wrong", [0, 0.1, 0.3])
def test_the_fraction_of_other_labels_is_learned(wrong):
    """Of clean labels the other count is almost zero, and not half the noise."""
    rng, n, noise = np.random.default_rng(0), 200, 20.0
    total = 60 * (2 + np.sin(np.linspace(0, 6, n)))
    clean = np.stack([(1 - wrong) * total, wrong * total])
    means = [
        posterior(clean + noise * rng.normal(size=clean.shape), noise, *line(n))[
            1
        ].mean(axis=0)
        for _ in range(6)
    ]
    assert np.mean(means) == pytest.approx(clean[1].mean(), abs=2.0)


def test_labels_are_mixed_where_public_points_of_both_are_near():
    rng, n, noise = np.random.default_rng(0), 200, 15.0
    labels = np.arange(n) % 10 == 0  # one point in ten, among the others
    total = np.full(n, 100.0)
    clean = np.where(labels, [[10.0], [90.0]], [[90.0], [10.0]])
    assert (clean.sum(axis=0) == total).all()
    noisy = clean + noise * rng.normal(size=clean.shape)
    found = posterior(noisy, noise, *line(n), labels=labels)[1].mean(axis=0)
    assert found[labels].mean() == pytest.approx(90, abs=8)
    assert found[~labels].mean() == pytest.approx(10, abs=4)


def sizes_of(posterior, n_classes, semivalue="shapley"):
    return value_sizes(posterior, size_draws(posterior, n_classes, semivalue))


def real_values(same, other, n_classes, semivalue):
    """Values for counts that are known, and need not be integers."""
    return sizes_of(np.array([same, other], dtype=float)[:, None], n_classes, semivalue)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_real_values_are_those_of_integers_and_between_them(semivalue, n_classes):
    rng = np.random.default_rng(0)
    same, other = rng.integers(0, 300, (2, 2000))
    same[:50], other[50:100] = 0, 0
    agree, differ = neighbour_values(same, other, n_classes, semivalue)
    real = real_values(same, other, n_classes, semivalue)
    least = 1e-3 / np.maximum(same + other, 1)  # sizes have logarithms
    for found, values, count in zip(real, (agree, -differ), (same, other)):
        expected = np.maximum(values, least)[count > 0]
        np.testing.assert_allclose(
            np.abs(found)[count > 0], expected, rtol=1e-12, atol=1e-15
        )
    between = real_values(same + 1.5, other, n_classes, semivalue)[0]
    ends = [
        np.maximum(neighbour_values(same + k, other, n_classes, semivalue)[0], least)
        for k in (1, 2)
    ]
    inside = (other > 0) & (same > 3)
    assert (between <= np.maximum(*ends) + 1e-12)[inside].all()
    assert (between >= np.minimum(*ends) - 1e-12)[inside].all()
    if semivalue in ("shapley", (4, 1)):  # and nearly halfway
        many = inside & (same + other > 50)
        gap = np.abs(between - np.mean(ends, axis=0))
        assert (gap <= 0.1 * np.abs(ends[0] - ends[1]) + 1e-12)[many].all()


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_almost_no_noise(n_classes, semivalue):
    counts = np.random.default_rng(2).integers(1, 400, (2, 30))
    exact = np.array(neighbour_values(*counts, n_classes, semivalue))
    least = 1e-3 / counts.sum(axis=0)  # sizes have logarithms
    expected = np.maximum(np.abs(exact), least) * [[1], [-1]]
    found = sizes_of(posterior(counts, 1e-3, *line(30)), n_classes, semivalue)
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_the_total_of_the_sizes_is_that_of_the_draws():
    rng = np.random.default_rng(0)
    same, other = np.exp(rng.normal(3, 2, (2, 64, 20)))
    sizes = size_draws((same, other), 2)
    value_same, value_other = value_sizes(np.array([same, other]), sizes)
    drawn = (same * sizes[0] - other * sizes[1]).sum(axis=1)
    claimed = (same * value_same - other * value_other).sum(axis=1)
    assert np.log(claimed).mean() == pytest.approx(np.log(drawn).mean(), abs=1e-12)
    # Sizes that vary little are not made larger.
    same, other = 300 + rng.normal(size=(2, 64, 20))
    sizes = size_draws((same, other), 2)
    means = np.exp(np.log(np.abs(sizes)).mean(axis=1))
    assert (
        np.abs(value_sizes(np.array([same, other]), sizes)) <= means * (1 + 1e-12)
    ).all()


def test_smoothing_brings_counts_nearer_to_the_truth():
    n = 200
    distances, landmarks, reach = line(n)
    smooth = 100 * (3 + np.sin(np.linspace(0, 6, n)))
    rng = np.random.default_rng(0)
    clean = np.array([0.6, 0.4])[:, None] * smooth
    noisy = clean + rng.normal(0, 80, (2, n))
    draws = posterior(noisy, 80.0, distances, landmarks, reach)
    for found, truth, raw in zip(draws, clean, noisy):
        assert (
            np.abs(found.mean(axis=0) - truth).mean()
            < 0.35 * np.abs(raw - truth).mean()
        )
