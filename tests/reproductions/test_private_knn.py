"""Noise on KNN-Shapley values, as published."""

from itertools import product

import numpy as np
import pytest

from skvalue import KNNShapleyValuer
from skvalue.privacy import get_epsilon

from .scripts import of


def values_by_rank(is_match, k):
    """Values of n rows at one point, in order of their distance from it."""
    n = len(is_match)
    values = []
    for rank in range(1, n + 1):
        first = max(rank, k)
        value = is_match[rank - 1] / first
        for j in range(first + 1, n + 1):
            value -= is_match[j - 1] / (j * (j - 1))
        values.append(value)
    return np.array(values)


@of("private_knn")
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_row_changes_others_by_more_than_the_sensitivities(k, script):
    largest_change = 0.0
    largest_norm = 0.0
    for n in range(1, 7):
        for is_match in product((0, 1), repeat=n):
            before = values_by_rank(is_match, k)
            for place, new in product(range(n + 1), (0, 1)):
                joined = (*is_match[:place], new, *is_match[place:])
                after = values_by_rank(joined, k)
                change = np.delete(after, place) - before
                largest_change = max(largest_change, np.abs(change).max())
                largest_norm = max(largest_norm, np.linalg.norm(change))
    assert largest_change == pytest.approx(script.value_sensitivity(k))
    bound = script.joint_sensitivity(k)
    assert 0.8 * bound < largest_norm <= bound


@of("private_knn")
@pytest.mark.parametrize("k", [1, 4, 50, 1000, 1001, 3000])
def test_joint_sensitivity_is_its_sum(script, k):
    r = np.arange(k + 1.0, 1e6)
    total = 1 / (k * (k + 1) ** 2) + (1 / (r * (r + 1)) ** 2).sum()
    assert total <= script.joint_sensitivity(k) ** 2 <= 1.01 * total


@of("private_knn", pytest.mark.slow)
def test_noise_is_on_the_values_of_the_original_game(script, rng):
    X = rng.normal(size=(40, 3))
    X_val = rng.normal(size=(12, 3))
    data = X, rng.integers(0, 3, 40), X_val, np.arange(12) % 3
    valuer = KNNShapleyValuer(4, metric="cosine", utility="original")
    exact = valuer.fit(*data[:2], X_val=data[2], y_val=data[3]).values_
    np.testing.assert_allclose(script.sampled_values(*data, 4, 1.0), exact, atol=1e-12)
    assert not np.allclose(script.sampled_values(*data, 4, 0.5), exact)

    def noisy_values(epsilon, **options):
        return script.noisy_knn_values(
            *data, epsilon=epsilon, n_neighbors=4, delta=1e-5, **options
        )

    np.testing.assert_allclose(noisy_values(1e4), exact, atol=0.01)
    noise = script.value_noise(1.0, 1e-5, 4)
    assert noise.sensitivity == 0.05
    assert get_epsilon(noise, 1e-5) == pytest.approx(1.0)
    draws = [noisy_values(1.0) - exact for _ in range(50)]
    assert np.std(draws) == pytest.approx(noise.scale, rel=0.1)  # four standard errors
    sampled = noisy_values(1.0, sampling_rate=0.1)
    assert np.abs(sampled).max() < 6 * noise.scale
