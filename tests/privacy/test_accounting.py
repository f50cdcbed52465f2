"""Costs of events against enumeration, closed forms, and dp-accounting."""

import math
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from skvalue.privacy import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    OpaqueEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    epsilon_from_mu,
    get_delta,
    get_epsilon,
    mu_from_epsilon,
)


@pytest.fixture(scope="module")
def pld():
    return pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


def enumerated_delta(epsilon, scale, contributions, step):
    """Sum of (P - e^eps Q)+ over all vectors of a box, not over sums of coordinates."""
    x = np.arange(-math.ceil(9 * scale) - step, math.ceil(9 * scale) + 2 * step + 1)
    shifted_weights = np.exp(-0.5 * ((x - step) / scale) ** 2)
    weights = np.exp(-0.5 * (x / scale) ** 2)
    total = np.exp(-0.5 * (np.arange(-1000, 1001) / scale) ** 2).sum()
    p = q = np.ones(1)
    for _ in range(contributions):
        p = np.multiply.outer(p, shifted_weights / total).ravel()
        q = np.multiply.outer(q, weights / total).ravel()
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


@pytest.mark.parametrize("contributions", [1, 2, 4])
@pytest.mark.parametrize(("scale", "step"), [(0.6, 1), (1.3, 1), (1.1, 2)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_lattice_equals_enumeration(contributions, scale, step, epsilon):
    expected = enumerated_delta(epsilon, scale, contributions, step)
    event = DiscreteGaussianEvent(scale, contributions, step)
    assert get_delta(event, epsilon) == pytest.approx(expected, rel=2e-9, abs=1e-13)
    assert get_delta(event, epsilon) >= expected - 1e-15


@pytest.mark.parametrize(
    ("contributions", "epsilon", "expected"), [(1, 1.0, 1.035e-5), (2, 8.0, 1.686e-5)]
)
def test_noise_of_the_continuous_formula_is_short_on_the_lattice(
    contributions, epsilon, expected
):
    scale = math.sqrt(contributions) / mu_from_epsilon(epsilon, 1e-5)
    delta = get_delta(DiscreteGaussianEvent(scale, contributions), epsilon)
    assert delta == pytest.approx(expected, rel=1e-3)


def normal_pmf(scale, ends):
    """Probabilities of whole numbers between the ends, as those of a normal density."""
    pmf = np.exp(-0.5 * (np.arange(-ends, ends + 1) / scale) ** 2)
    return pmf / pmf.sum()


def check_sum(pmf, scale, contributions):
    """Check the delta of counts whose sum has these probabilities."""
    y = np.arange(len(pmf)) - len(pmf) // 2
    ratio = np.exp(
        contributions * (2 * y - contributions) / (2 * contributions * scale**2)
    )
    for epsilon in (0.1, 1.0, 3.0):
        delta = get_delta(DiscreteGaussianEvent(scale, contributions), epsilon)
        expected = (pmf * np.maximum(ratio - math.exp(epsilon), 0)).sum()
        assert delta == pytest.approx(expected, rel=2e-9, abs=0)


@pytest.mark.parametrize(("scale", "contributions"), [(2.49, 3), (2.51, 3), (2.5, 50)])
def test_the_formula_of_wide_noise_meets_the_convolution(scale, contributions):
    total = np.ones(1)
    for _ in range(contributions):
        total = np.convolve(total, normal_pmf(scale, 60))
    check_sum(total, scale, contributions)


# Just below and above the smooth formula.
@pytest.mark.parametrize("contributions", [99, 101])
def test_smooth_tail_meets_the_sum(contributions):
    check_sum(normal_pmf(20.0 * math.sqrt(contributions), 6000), 20.0, contributions)


@pytest.mark.parametrize(
    ("scale", "epsilon"), [(3.73, 1.0), (0.6, 8.0), (0.6, 1.0), (10, 0.05)]
)
def test_lattice_equals_dp_accounting(pld, scale, epsilon):
    theirs = pld.from_discrete_gaussian_mechanism(scale, use_connect_dots=True)
    delta = get_delta(DiscreteGaussianEvent(scale), epsilon)
    assert delta == pytest.approx(theirs.get_delta_for_epsilon(epsilon), abs=1e-9)


def test_more_contributions_cost_more_and_no_more_than_gaussian_noise_nearly():
    costs = [get_delta(DiscreteGaussianEvent(13.5, m), 1.0) for m in range(1, 30)]
    assert (np.diff(costs) > 0).all()
    # 13 counts on the lattice are within half a percent of the continuous formula.
    continuous = get_delta(GaussianEvent(13.5, math.sqrt(13)), 1.0)
    assert costs[12] == pytest.approx(continuous, rel=5e-3)


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("epsilon", [0.2, 0.7, 1.4])
def test_delta_of_laplace_noise_is_an_integral(shift, epsilon):
    scale = 2.0
    x = np.linspace(-60, 60, 1_200_001)
    p = np.exp(-np.abs(x - shift) / scale)
    q = np.exp(-np.abs(x) / scale)
    expected = np.maximum(p - math.exp(epsilon) * q, 0).sum() * 1e-4 / (2 * scale)
    assert get_delta(LaplaceEvent(scale, shift), epsilon) == pytest.approx(
        expected, abs=1e-7
    )


@pytest.mark.parametrize("epsilon", [1.0, 900.0, 1e5, 1e49])
def test_epsilon_of_laplace_noise_of_any_size(epsilon):
    event = LaplaceEvent(1.0, sensitivity=epsilon)
    assert get_epsilon(event, 1e-5) == pytest.approx(epsilon, rel=3e-5)
    assert get_delta(event, 2 * epsilon) == 0


def test_l1_sensitivity_is_dearest_in_one_coordinate():
    x = np.arange(-30, 30.1, 0.25)
    scale = 2.0
    epsilon = 0.4
    noise = {
        k: np.exp(-np.abs(x - k) / scale) / np.exp(-np.abs(x) / scale).sum()
        for k in range(5)
    }

    def delta(shifts):
        p = q = np.ones(1)
        for k in shifts:
            p = np.multiply.outer(p, noise[k]).ravel()
            q = np.multiply.outer(q, noise[0]).ravel()
        return np.maximum(p - math.exp(epsilon) * q, 0).sum()

    claimed = get_delta(LaplaceEvent(scale, 4), epsilon)
    for shifts in product(range(5), repeat=2):
        if sum(shifts) == 4:
            assert delta(shifts) <= claimed * 1.01  # of the sums that replace integrals


def test_gaussian_composition_is_exact():
    event = ComposedEvent(
        (SelfComposedEvent(GaussianEvent(10.0), 100), GaussianEvent(2.0, 3.0))
    )
    mu = math.sqrt(100 / 10**2 + (3 / 2) ** 2)
    assert get_epsilon(event, 1e-5) == pytest.approx(
        epsilon_from_mu(mu, 1e-5), rel=1e-12
    )


def test_lattice_composition_is_exact():
    four = SelfComposedEvent(DiscreteGaussianEvent(1.5, 1), 4)
    assert get_delta(four, 2.0) == get_delta(DiscreteGaussianEvent(1.5, 4), 2.0)


@pytest.mark.parametrize(
    ("scale", "relation", "expected"),
    [(1.0, "null", 1.828), (2.0, "replace", 1.21)],
)
def test_fresh_samples_cost_what_is_known(scale, relation, expected):
    fresh = PoissonSampledEvent(GaussianEvent(scale, relation="null"), 0.01)
    epsilon = get_epsilon(SelfComposedEvent(fresh, 1000), 1e-5, relation)
    assert epsilon == pytest.approx(expected, rel=5e-3)


def test_one_shared_sample_is_far_dearer_than_fresh_ones():
    fresh = PoissonSampledEvent(GaussianEvent(1.0, relation="null"), 0.01)
    together = GaussianEvent(1.0, math.sqrt(20), relation="null")
    shared = PoissonSampledEvent(together, 0.01)
    fresh_epsilon = get_epsilon(SelfComposedEvent(fresh, 20), 1e-5)
    assert fresh_epsilon == pytest.approx(0.455, abs=0.01)
    assert get_epsilon(shared, 1e-5) == pytest.approx(18.5, abs=0.1)


def test_a_sample_of_all_rows_is_no_sample():
    sure = PoissonSampledEvent(GaussianEvent(4.0, relation="null"), 1.0)
    assert get_delta(sure, 1.0) == get_delta(GaussianEvent(4.0, relation="null"), 1.0)
    assert get_delta(sure, 1.0, "replace") == get_delta(GaussianEvent(4.0, 2.0), 1.0)


def test_mixed_compositions_are_above_their_parts_and_below_the_sum():
    lattice = DiscreteGaussianEvent(7.0, 4, relation="replace")
    events = (GaussianEvent(5.0), lattice, LaplaceEvent(4.0), OpaqueEvent(0.2, 1e-7))
    composed = get_epsilon(ComposedEvent(events), 1e-5)
    largest = max(get_epsilon(event, 1e-5) for event in events)
    total = sum(get_epsilon(event, 9e-7) for event in events)
    assert largest < composed < total


def test_composition_of_gaussian_and_lattice_noise_against_enumeration():
    # The loss of the pair is a Gaussian plus a lattice variable: integrate one, sum the
    # other.
    gaussian = GaussianEvent(3.0)
    lattice = DiscreteGaussianEvent(4.0, 2, relation="replace")
    x = np.arange(-200, 201)
    pmf = normal_pmf(4.0 * math.sqrt(2), 200)
    losses = (2 * x + 2) / (2 * 4.0**2)
    mu = 1 / 3.0

    def gaussian_delta(epsilon):
        """Delta at an epsilon of any sign."""
        second = np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        return ndtr(mu / 2 - epsilon / mu) - second

    epsilon = 1.0
    expected = (pmf * gaussian_delta(epsilon - losses)).sum()
    delta = get_delta(ComposedEvent((gaussian, lattice)), epsilon)
    assert expected * (1 - 1e-9) <= delta <= expected * 1.01


def test_pure_events_add_up_at_most():
    three = SelfComposedEvent(OpaqueEvent(0.1), 3)
    assert get_epsilon(three, 1e-9) <= 0.1 + 0.1 + 0.1
    assert get_delta(three, 0.3) == 0.0


def test_guarantees_with_a_delta_add_up_at_most():
    two = ComposedEvent((OpaqueEvent(0.5, 1e-6), LaplaceEvent(2.0)))
    assert get_delta(two, 1.0) <= 1e-6


def test_no_epsilon_is_enough_below_the_delta_of_a_guarantee():
    assert get_epsilon(OpaqueEvent(1.0, 1e-4), 1e-5) == math.inf


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-3, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 3.0, 200.0])
def test_epsilon_of_a_guarantee_of_unknown_noise(epsilon, delta):
    event = OpaqueEvent(epsilon, delta)
    if delta:
        assert get_epsilon(event, delta) == pytest.approx(epsilon, rel=1e-9)
    larger_delta = delta + 0.01 * (1 - delta) * -math.expm1(-epsilon)
    smaller_epsilon = get_epsilon(event, larger_delta)
    assert 0 < smaller_epsilon < epsilon or epsilon == 200.0
    delta_again = get_delta(event, smaller_epsilon)
    assert larger_delta * (1 - 1e-9) <= delta_again <= larger_delta


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(3.0),
        DiscreteGaussianEvent(3.0, 2),
        LaplaceEvent(2.0),
        OpaqueEvent(1.0, 1e-6),
        ComposedEvent((GaussianEvent(3.0), LaplaceEvent(2.0))),
    ],
    ids=lambda event: type(event).__name__,
)
def test_epsilon_and_delta_are_inverse(event):
    for delta in (1e-5, 1e-2):
        epsilon = get_epsilon(event, delta)
        assert get_delta(event, epsilon) <= delta * (1 + 1e-9)
        assert get_delta(event, epsilon * 0.99) > delta * (1 - 1e-3)
    assert get_epsilon(event, 0.9999) == 0.0


def test_imperfect_integer_noise_is_accounted_for():
    error = 3 * 2.0**-100 * (1 + math.e)
    # Exact noise of this size has a delta of 1e-700.
    event = DiscreteGaussianEvent(100.0, 3)
    assert get_delta(event, 1.0) == pytest.approx(error, rel=1e-9, abs=0)
    assert get_epsilon(event, 1e-31) == math.inf
    assert get_delta(LaplaceEvent(3.0, 3.0), 1.0) == 0.0


@pytest.mark.parametrize("unknown", [object, "GaussianEvent", None, 3.0])
def test_what_is_no_event_is_refused(unknown):
    with pytest.raises(TypeError, match="event"):
        get_delta(unknown, 1.0)


def test_a_negative_epsilon_is_refused():
    with pytest.raises(ValueError, match="epsilon"):
        get_delta(GaussianEvent(1.0), -1.0)


def test_a_delta_of_one_is_refused():
    with pytest.raises(ValueError, match="delta"):
        get_epsilon(GaussianEvent(1.0), 1.0)


SEVERAL = (
    LaplaceEvent(3.0),
    LaplaceEvent(7.0),
    DiscreteGaussianEvent(4.0, relation="replace"),
    OpaqueEvent(0.1, 1e-7),
    PoissonSampledEvent(GaussianEvent(2.0, relation="null"), 0.1, "replace"),
)


def test_the_order_of_events_changes_no_bit():
    epsilons = {
        get_epsilon(ComposedEvent(SEVERAL[i:] + SEVERAL[:i]), 1e-5)
        for i in range(len(SEVERAL))
    }
    assert len(epsilons) == 1


def test_events_that_come_one_by_one_cost_what_they_cost_together():
    one_by_one = [get_epsilon(ComposedEvent(SEVERAL[:n]), 1e-5) for n in range(1, 6)]
    others = ComposedEvent(tuple(LaplaceEvent(float(scale)) for scale in range(20, 26)))
    get_epsilon(others, 1e-5)
    assert get_epsilon(ComposedEvent(SEVERAL), 1e-5) == one_by_one[-1]
    assert one_by_one == sorted(one_by_one)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))]
)
def test_the_seed_of_hashes_changes_no_bit(seed):
    events = repr(ComposedEvent(SEVERAL))
    code = (
        "from skvalue.privacy import *\n"
        f"print(repr(get_epsilon({events}, 1e-5)), end='')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert process.stdout == repr(get_epsilon(ComposedEvent(SEVERAL), 1e-5))
