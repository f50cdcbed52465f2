"""Noise on gradients along permutations: its variance, its averages, and what it relies
on."""

import numpy as np
import pytest

from skvalue.derivatives import (
    GradientNoise,
    gradient_event,
    newest_weights,
    optimal_weights,
    step_noise_std,
    walk_permutations,
)
from skvalue.privacy import get_epsilon

from .plain import PlainModel

CLIP = 2.0
MULTIPLIER = 0.3


class Still(PlainModel):
    """No gradient at all: what moves is noise."""

    def __init__(self, n, p):
        self.n_players = n
        self.n_parameters = p

    def start(self, rng):
        return np.zeros(self.n_parameters)

    def gradients(self, thetas, players):
        return np.zeros(thetas.shape)

    def utilities(self, thetas):
        self.thetas = np.array(thetas)
        return np.zeros(len(thetas))


def released_steps(schedule, model, k):
    """What k permutations step along, in the order of the players, (k, n, p)."""
    event = gradient_event(k, CLIP, noise_multiplier=MULTIPLIER)
    noise_rng = np.random.default_rng(0)

    def draw(shape, stream):
        return noise_rng.normal(scale=event.event.scale, size=shape)

    draw.scale = event.event.scale
    n = model.n_players
    noise = GradientNoise(draw, np.ones(n), schedule)
    walks = walk_permutations(
        model, np.ones(n), k, 1.0, np.random.SeedSequence(0), noise=noise, n_jobs=1
    )
    steps = np.empty((k, n, model.n_parameters))
    for t, seed in enumerate(np.random.SeedSequence(0).spawn(k)):
        next(walks)
        order = np.random.default_rng(seed).permutation(n)
        steps[t, order] = -np.diff(model.thetas, axis=0)
    return steps


# Privacy ------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [np.int8(11), 11])
@pytest.mark.parametrize("name", ["epsilon", "noise_multiplier"])
def test_numbers_of_numpy_do_not_round_the_noise(name, k):
    short = np.float32(0.7)
    event = gradient_event(k, short, **{name: short}, delta=1e-5)
    assert event == gradient_event(11, float(short), **{name: float(short)}, delta=1e-5)
    if name == "epsilon":
        assert get_epsilon(event, 1e-5) <= float(short)


# Variances ----------------------------------------------------------------------------

# 1e5 draws: five standard deviations of a variance are 2.2 %.
VARIANCE = (CLIP * MULTIPLIER) ** 2


def test_the_variance_of_a_mean_of_releases_falls_with_their_number():
    steps = released_steps("correlated", Still(100, 1000), 20)
    for t in (1, 2, 5, 20):
        assert steps[t - 1].var() == pytest.approx(20 * VARIANCE / t, rel=0.022)


def test_means_have_the_releases_in_common_until_the_earlier_one():
    steps = released_steps("correlated", Still(100, 1000), 20)
    covariance = np.mean(steps[4] * steps[19])
    assert covariance == pytest.approx(20 * VARIANCE / 20, rel=0.1)


def test_independent_releases_have_the_variance_of_one():
    steps = released_steps("iid", Still(100, 1000), 3)
    assert steps.var(axis=(1, 2)) == pytest.approx(3 * VARIANCE, rel=0.022)
    assert abs(np.mean(steps[0] * steps[1])) < 0.05


# Averages -----------------------------------------------------------------------------


def release_matrix(weights):
    """X, by which releases A become what is stepped along: W = X A."""
    k = len(weights)
    n_previous = np.arange(k)
    past = np.divide(1 - weights, n_previous, out=np.zeros(k), where=n_previous > 0)
    return np.tril(np.repeat(past[:, None], k, axis=1), -1) + np.diag(weights)


@pytest.mark.parametrize(
    "schedule",
    ["iid", "correlated", lambda t, k: 1 / t**0.5],
    ids=["iid", "correlated", "root"],
)
def test_the_noise_of_steps_is_that_of_their_weights(schedule):
    X = release_matrix(newest_weights(schedule, 30))
    for skip in (0, 20, 29):
        expected = 3 * np.sqrt((X[skip:] ** 2).sum(axis=1).mean())
        assert step_noise_std(schedule, 3.0, 30, skip) == pytest.approx(expected)
    # A million permutations need no matrix of 8 TB.
    assert 0 < step_noise_std(schedule, 3.0, 1_000_000, 900_000) <= 3


@pytest.mark.parametrize(
    "schedule",
    ["correlated", lambda t, k: 1.0 if t == 1 else 0.75 - 0.7 * t / k],
    ids=["correlated", "federated"],
)
def test_steps_are_a_matrix_times_releases(schedule):
    releases = released_steps("iid", Still(6, 4), 9)
    steps = released_steps(schedule, Still(6, 4), 9)
    X = release_matrix(newest_weights(schedule, 9))
    np.testing.assert_allclose(X.sum(axis=1), 1)
    np.testing.assert_allclose(steps, np.einsum("ts,sjp->tjp", X, releases), atol=1e-12)


WEIGHTS = np.array([1.0, 0.5, 0.4])


def test_a_schedule_is_called_before_a_gradient_is_computed():
    calls = []

    def schedule(t, k):
        calls.append("weight")
        return WEIGHTS[t - 1]

    class Recorded(Still):
        def gradients(self, thetas, players):
            calls.append("gradient")
            return super().gradients(thetas, players)

    steps = released_steps(schedule, Recorded(4, 2), 3)
    assert calls == 3 * ["weight"] + 12 * ["gradient"]
    np.testing.assert_array_equal(steps, released_steps(WEIGHTS, Still(4, 2), 3))


def test_an_array_of_weights_is_copied_before_a_gradient_is_computed():
    weights = WEIGHTS.copy()

    class Changes(Still):
        def gradients(self, thetas, players):
            weights[:] = 0.0  # comes too late
            return super().gradients(thetas, players)

    steps = released_steps(weights, Changes(4, 2), 3)
    assert not weights.any()
    np.testing.assert_array_equal(steps, released_steps(WEIGHTS, Still(4, 2), 3))


@pytest.mark.parametrize(
    ("noise_variance", "gradient_variance"), [(3.0, 2.0), (1.0, 0.0), (0.1, 5.0)]
)
def test_optimal_weights_have_the_least_squared_error(
    noise_variance, gradient_variance
):
    """Proposition C.10, by a search over the weight of the newest of t releases."""
    weights = optimal_weights(8, noise_variance, gradient_variance)
    for t in range(2, 9):

        def error(weight, t=t):
            past = np.full(t - 1, (1 - weight) / (t - 1))
            of_noise = noise_variance * (past @ past + weight**2)
            of_gradients = gradient_variance * (past @ past + (1 - weight) ** 2)
            return of_noise + of_gradients

        candidates = np.linspace(0, 1, 10_001)
        best = candidates[np.argmin([error(weight) for weight in candidates])]
        assert weights[t - 1] == pytest.approx(best, abs=1e-4)


def test_optimal_weights_of_equal_gradients_are_those_of_the_mean():
    weights = optimal_weights(9, 2.0, 0.0)
    np.testing.assert_allclose(weights, newest_weights("correlated", 9))


def test_optimal_steps_are_nearest_to_gradients_that_vary(rng):
    """Over 4,000 coordinates, nearer than independent noise and than the mean."""
    k = 20
    gradients = rng.normal(scale=0.5**0.5, size=(k, 4000))  # variance .5 over t
    releases = gradients + rng.normal(scale=2.0**0.5, size=gradients.shape)
    distances = {}
    for name, weights in {
        "iid": newest_weights("iid", k),
        "correlated": newest_weights("correlated", k),
        "optimal": optimal_weights(k, 2.0, 0.5),
    }.items():
        past = np.zeros(4000)
        total = 0.0
        for t in range(k):
            step = weights[t] * releases[t] + (1 - weights[t]) * past
            past = past + (releases[t] - past) / (t + 1)
            total += ((step - gradients[t]) ** 2).mean()
        distances[name] = total / k
    assert distances["optimal"] < 0.97 * min(distances["iid"], distances["correlated"])
