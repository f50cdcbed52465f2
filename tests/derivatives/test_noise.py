"""Noise on gradients along permutations: its variance, its averages, and what it relies
on."""

import numpy as np
import pytest

from skvalue.derivatives import (
    GradientNoise,
    gradient_event,
    newest_weights,
    step_noise_std,
    walk_permutations,
)
from skvalue.privacy import get_epsilon

from .plain import PlainModel


class Still(PlainModel):
    """No gradient at all: what moves is noise."""

    def __init__(self, n, p):
        self.n_players, self.n_parameters = n, p
        self.steps = []

    def start(self, rng):
        return np.zeros(self.n_parameters)

    def gradients(self, thetas, players):
        return np.zeros(thetas.shape)

    def utilities(self, thetas):
        self.thetas = np.array(thetas)
        return np.zeros(len(thetas))


def released_steps(noise, n, p, k, clip=2.0, multiplier=0.3, model=None):
    """What k permutations step along, in the order of the players, (k, n, p)."""
    event, z = (
        gradient_event(k, clip, noise_multiplier=multiplier),
        np.random.default_rng(0),
    )

    def draw(shape, stream):
        return z.normal(scale=event.event.scale, size=shape)

    draw.scale = event.event.scale
    noise = GradientNoise(draw, np.ones(n), noise)
    model, steps = model or Still(n, p), []
    seed = np.random.SeedSequence(0)
    for t, _ in enumerate(
        walk_permutations(model, np.ones(n), k, 1.0, seed, noise=noise, n_jobs=1)
    ):
        moved = -np.diff(model.thetas, axis=0)
        order = np.random.default_rng(_child(t)).permutation(n)
        found = np.empty((n, p))
        found[order] = moved
        steps.append(found)
    return np.array(steps)


def _child(t):
    return np.random.SeedSequence(0).spawn(t + 1)[t]


@pytest.mark.parametrize("k", [np.int8(11), 11])
@pytest.mark.parametrize("name", ["epsilon", "noise_multiplier"])
def test_numbers_of_numpy_do_not_round_the_noise(name, k):
    short = np.float32(0.7)
    event = gradient_event(k, short, **{name: short}, delta=1e-5)
    assert event == gradient_event(11, float(short), **{name: float(short)}, delta=1e-5)
    if name == "epsilon":
        assert get_epsilon(event, 1e-5) <= float(short)


def test_variance_of_correlated_noise():
    k, clip, multiplier = 20, 2.0, 0.3
    steps = released_steps("correlated", 100, 1000, k, clip, multiplier)
    for t in (
        1,
        2,
        5,
        20,
    ):  # 1e5 draws each; five standard deviations of a variance are 2.2 %
        expected = k * (clip * multiplier) ** 2 / t
        assert steps[t - 1].var() == pytest.approx(expected, rel=0.022)
    # W_t and W_s have the releases in common until the earlier one.
    assert np.mean(steps[4] * steps[19]) == pytest.approx(
        k * (clip * multiplier) ** 2 / 20, rel=0.1
    )
    iid = released_steps("iid", 100, 1000, 3, clip, multiplier)
    assert iid.var(axis=(1, 2)) == pytest.approx(
        3 * (clip * multiplier) ** 2, rel=0.022
    )
    assert abs(np.mean(iid[0] * iid[1])) < 0.05


def release_matrix(fractions):
    """X, by which releases A become what is stepped along: W = X A."""
    k = len(fractions)
    past = np.divide(
        1 - fractions, np.arange(k), out=np.zeros(k), where=np.arange(k) > 0
    )
    return np.tril(np.repeat(past[:, None], k, axis=1), -1) + np.diag(fractions)


@pytest.mark.parametrize("noise", ["iid", "correlated", lambda t, k: 1 / t**0.5])
def test_deviation_of_steps(noise):
    X = release_matrix(newest_weights(noise, 30))
    for skip in (0, 20, 29):
        expected = 3 * np.sqrt((X[skip:] ** 2).sum(axis=1).mean())
        assert step_noise_std(noise, 3.0, 30, skip) == pytest.approx(expected)
    assert 0 < step_noise_std(noise, 3.0, 1_000_000, 900_000) <= 3  # no matrix of 8 TB


@pytest.mark.parametrize(
    "noise",
    ["correlated", lambda t, k: 1.0 if t == 1 else 0.75 - 0.7 * t / k],
    ids=["correlated", "federated"],
)
def test_steps_are_a_matrix_times_releases(noise):
    releases = released_steps("iid", 6, 4, 9)
    steps = released_steps(noise, 6, 4, 9)
    X = release_matrix(newest_weights(noise, 9))
    np.testing.assert_allclose(X.sum(axis=1), 1)
    np.testing.assert_allclose(steps, np.einsum("ts,sjp->tjp", X, releases), atol=1e-12)


@pytest.mark.parametrize("given", ["function", "array"])
def test_fractions_are_fixed_before_a_gradient_is_seen(given):
    calls, fractions = [], np.array([1.0, 0.5, 0.4])

    def schedule(t, k):
        calls.append("fraction")
        return fractions[t - 1]

    class Seen(Still):
        def gradients(self, thetas, players):
            calls.append("gradient")
            return super().gradients(thetas, players)

    changed = fractions.copy()

    class Changes(Still):
        def gradients(self, thetas, players):
            changed[:] = 0.0  # comes too late
            return super().gradients(thetas, players)

    if given == "function":
        found = released_steps(schedule, 4, 2, 3, model=Seen(4, 2))
        assert calls == 3 * ["fraction"] + 12 * ["gradient"]
    else:
        found = released_steps(changed, 4, 2, 3, model=Changes(4, 2))
        assert not changed.any()
    np.testing.assert_array_equal(found, released_steps(fractions, 4, 2, 3))
