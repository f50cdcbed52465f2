"""Closed forms of the process against sums over all coalitions."""

from itertools import combinations

import numpy as np
import pytest

from skvalue.estimation.process import (
    Hyper,
    HyperPrior,
    covariance,
    negative_log_posterior,
    pair_covariances,
    prior_variances,
    utility_covariances,
)
from skvalue.semivalues import coalition_weights, size_weights

from .small_games import all_masks, small_half

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 16), small_half]
PLAYERS = pytest.mark.parametrize("n", [2, 3, 7])
ALL_SEMIVALUES = pytest.mark.parametrize("semivalue", SEMIVALUES)


def random_vector(n, seed=0):
    """Hyperparameters near their prior mean, with relevances that differ."""
    rng = np.random.default_rng(seed)
    prior = HyperPrior.of(n, relevance_sd=0.5)
    return prior.mean + 0.3 * rng.normal(size=len(prior.mean))


def nonempty(n):
    return all_masks(n)[1:]


def weights_of_coalitions(semivalue, n):
    """W_i(S) of all non-empty coalitions and players."""
    p = coalition_weights(semivalue, n)
    masks = nonempty(n)
    sizes = masks.sum(axis=1)[:, None]
    return np.where(masks, np.append(0, p)[sizes], -np.append(p, 0)[sizes])


def weights_of_pairs(semivalue, n):
    """The weights of all non-empty coalitions in the interactions of pairs."""
    p = coalition_weights(semivalue, n - 1)
    masks = nonempty(n)
    weights = []
    for i, j in combinations(range(n), 2):
        n_others = masks.sum(axis=1) - masks[:, i] - masks[:, j]
        signs = np.where(masks[:, i] == masks[:, j], 1, -1)
        weights.append(signs * p[n_others])
    return np.array(weights).T


@PLAYERS
@ALL_SEMIVALUES
def test_covariances_with_semivalues_are_sums_over_all_coalitions(n, semivalue):
    hyper = Hyper.from_vector(random_vector(n))
    expected = covariance(nonempty(n), hyper) @ weights_of_coalitions(semivalue, n)
    q = size_weights(semivalue, n)
    covariances = utility_covariances(nonempty(n), hyper, q)
    np.testing.assert_allclose(covariances, expected, rtol=0, atol=1e-12)


@PLAYERS
@ALL_SEMIVALUES
def test_prior_variances_are_sums_over_all_pairs_of_coalitions(n, semivalue):
    hyper = Hyper.from_vector(random_vector(n))
    weights = weights_of_coalitions(semivalue, n)
    expected = np.diag(weights.T @ covariance(nonempty(n), hyper) @ weights)
    variances = prior_variances(hyper, size_weights(semivalue, n))
    np.testing.assert_allclose(variances, expected, rtol=0, atol=1e-12)


@PLAYERS
@ALL_SEMIVALUES
def test_covariances_with_interactions_are_sums_over_all_coalitions(n, semivalue):
    if n == 2 and callable(semivalue):
        pytest.skip("a semivalue of half of the players has none of one player")
    hyper = Hyper.from_vector(random_vector(n))
    expected = covariance(nonempty(n), hyper) @ weights_of_pairs(semivalue, n)
    q = size_weights(semivalue, n - 1)
    covariances = pair_covariances(nonempty(n), hyper, q)
    np.testing.assert_allclose(covariances, expected, rtol=0, atol=1e-12)


def test_covariances_of_many_coalitions_are_those_of_each():
    # They are computed in tiles.
    n = 30
    rng = np.random.default_rng(0)
    masks = rng.random((300, n)) < 0.5
    hyper = Hyper.from_vector(random_vector(n))
    q = size_weights("shapley", n)
    covariances = utility_covariances(masks, hyper, q)
    for row in (0, 150, 299):
        alone = utility_covariances(masks[row : row + 1], hyper, q)
        np.testing.assert_allclose(covariances[row], alone[0], rtol=1e-12)


@pytest.mark.parametrize("relevance_sd", [0.3, 0.8])
def test_the_gradient_is_that_of_differences(relevance_sd):
    n = 7
    rng = np.random.default_rng(1)
    masks = nonempty(n)[rng.permutation(2**n - 1)[:30]]
    z = rng.normal(size=30)
    prior = HyperPrior.of(n, relevance_sd)
    vector = random_vector(n)
    _, gradient = negative_log_posterior(vector, masks, z, prior)

    step = 1e-5
    slopes = []
    for direction in step * np.eye(len(vector)):
        above, _ = negative_log_posterior(vector + direction, masks, z, prior)
        below, _ = negative_log_posterior(vector - direction, masks, z, prior)
        slopes.append((above - below) / (2 * step))
    scale = np.abs(slopes).max()
    np.testing.assert_allclose(gradient, slopes, rtol=0, atol=1e-5 * scale)
