"""The totals of ledgers and events, against numerical integration of privacy losses."""

import numpy as np
import pytest

from skvalue.privacy import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    OpaqueEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    get_epsilon,
)
from tests.privacy.own_accountant import own_epsilon

COARSE = GaussianEvent(8.0, relation="null")
SAMPLED = PoissonSampledEvent(GaussianEvent(0.9, 1.0, "null"), 0.1)
# Compositions by name.
COMPOSED = {
    "gaussian": [GaussianEvent(5.0), GaussianEvent(7.0, 2.0)],
    "gaussian, one of null rows": [GaussianEvent(5.0, relation="null")] * 2,
    "counts": [
        DiscreteGaussianEvent(0.9, 2, relation="null"),
        DiscreteGaussianEvent(3.7, 3, step=2, relation="null"),
    ],
    "counts of absent rows": [SelfComposedEvent(DiscreteGaussianEvent(11.0, 4), 20)],
    "laplace and gaussian": [LaplaceEvent(4.0), GaussianEvent(3.0)],
    "samples": [SelfComposedEvent(SAMPLED, 20)],
    "samples and counts": [SAMPLED, DiscreteGaussianEvent(2.0, 2, relation="null")],
    "others": [OpaqueEvent(0.3, 1e-7), OpaqueEvent(0.1), GaussianEvent(8.0)],
    "others of null rows": [OpaqueEvent(0.3, 1e-7, "null"), COARSE],
}
QUICK = ("gaussian, one of null rows",)


def check(event, delta, relation):
    """At least the exact epsilon up to the width of the grid, and little above it."""
    stated = get_epsilon(event, delta, relation)
    exact = own_epsilon(event, delta, relation)
    assert exact - 2e-4 - 1e-4 * exact <= stated <= 1.003 * exact + 1e-3


@pytest.mark.parametrize("relation", ["null", "replace"])
@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in COMPOSED
    ],
)
def test_epsilon_is_that_of_the_integral(name, relation):
    events = COMPOSED[name]
    if relation == "null" and any(event.relation == "replace" for event in events):
        relation = "replace"
    for delta in (1e-6, 1e-3):
        check(ComposedEvent(tuple(events)), delta, relation)


def random_event(rng):
    kind = rng.integers(4)
    if kind == 0:
        return GaussianEvent(rng.uniform(1.5, 15), rng.uniform(0.5, 2), "null")
    if kind == 1:
        contributions = int(rng.integers(1, 5))
        step = int(rng.integers(1, 3))
        scale = float(rng.choice([2.0, 3.7, 11.0]))
        return DiscreteGaussianEvent(scale, contributions, step, "null")
    if kind == 2:
        return LaplaceEvent(rng.uniform(2, 20), 1.0, "null")
    noise = GaussianEvent(rng.uniform(0.8, 4), 1.0, "null")
    return PoissonSampledEvent(noise, float(rng.choice([0.01, 0.1, 0.5])))


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["null", "replace"])
@pytest.mark.parametrize("seed", range(10))
def test_what_a_ledger_has_spent_is_that_of_the_integral(seed, relation):
    rng = np.random.default_rng(seed)
    ledger = Ledger(None, "rows", epsilon=1e3, delta=1e-5, relation=relation)
    for _ in range(rng.integers(1, 5)):
        event = random_event(rng)
        count = int(rng.choice([1, 2, 5]))
        ledger.charge(SelfComposedEvent(event, count) if count > 1 else event)
    events = tuple(charge.event for charge in ledger.charges)
    exact = own_epsilon(ComposedEvent(events), 1e-5, relation)
    assert exact - 2e-4 - 1e-4 * exact <= ledger.spent <= 1.003 * exact + 1e-3
