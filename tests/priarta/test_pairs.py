"""Distances of pairs of sellers, and the quantiles that tell what they say."""

import numpy as np
import pytest

from skvalue.priarta import PriArTaScorer

from .markets import quietly


@pytest.fixture(scope="module")
def scorer():
    return PriArTaScorer().fit(np.random.default_rng(0).normal(size=(600, 4)))


def two_sellers(scorer, rng, epsilon, n=400):
    """Summaries of two sellers of one population that is not the buyer's."""
    seed = None if epsilon is None else int(rng.integers(2**31))
    scorer.set_params(epsilon=epsilon, noise_random_state=seed)
    rows = rng.normal(size=(2, n, 4)) * [1.5, 1, 1, 1] + [1, 0, 0, 0]
    summaries = quietly(scorer.summarize, list(rows))
    scorer.set_params(noise_random_state=None)
    return summaries


@pytest.mark.parametrize(
    ("epsilon", "n_pairs"),
    [
        (None, 60),
        (4.0, 60),
        pytest.param(None, 300, marks=pytest.mark.slow),
        pytest.param(1.0, 300, marks=pytest.mark.slow),
        pytest.param(4.0, 300, marks=pytest.mark.slow),
    ],
)
def test_the_floor_covers_pairs_of_one_population(scorer, epsilon, n_pairs):
    rng = np.random.default_rng(1)
    below = np.zeros((n_pairs, 2))
    for i in range(n_pairs):
        pair = two_sellers(scorer, rng, epsilon)
        distance = scorer.pairwise_distances(pair)[0, 1]
        below[i] = distance < scorer.pairwise_floor(pair, (0.05, 0.95))[:, 0, 1]
    fraction = below.mean(axis=0)
    error = 3 * np.sqrt(0.05 * 0.95 / n_pairs)
    assert fraction[0] < 0.05 + error + 0.02
    assert fraction[1] > 0.95 - error - 0.02
    if n_pairs > 100:
        print(f"epsilon {epsilon}: {fraction}")


def test_a_pair_of_other_populations_is_above_the_floor(scorer):
    rng = np.random.default_rng(2)
    scorer.set_params(epsilon=4.0)
    X = rng.normal(size=(1000, 4))
    pair = scorer.summarize([X, X + [1.5, 0, 0, 0]])
    distance = scorer.pairwise_distances(pair)[0, 1]
    assert distance > 2 * scorer.pairwise_floor(pair)[0, 1]


def test_a_copy_is_below_the_least_distance_of_other_rows(scorer):
    scorer.set_params(epsilon=None)
    X = np.random.default_rng(3).normal(size=(1000, 4))
    pair = scorer.summarize([X, X[:900]])
    distance = scorer.pairwise_distances(pair)[0, 1]
    assert distance < scorer.pairwise_floor(pair, 0.01)[0, 1]


def test_floors_are_symmetric_and_rise_with_the_level(scorer):
    scorer.set_params(epsilon=2.0)
    rows = np.random.default_rng(4).normal(size=(3, 200, 4))
    floors = scorer.pairwise_floor(scorer.summarize(list(rows)), (0.1, 0.5, 0.9))
    assert floors.shape == (3, 3, 3)
    np.testing.assert_array_equal(floors, np.swapaxes(floors, 1, 2))
    assert np.all(np.diff(floors, axis=0)[:, ~np.eye(3, dtype=bool)] > 0)
    assert not floors[:, range(3), range(3)].any()


@pytest.mark.parametrize("level", [0, 1, -0.1, (0.5, 1.5)])
def test_a_level_that_is_no_probability_is_refused(scorer, level):
    with pytest.raises(ValueError, match="level must be in"):
        scorer.pairwise_floor([], level)
