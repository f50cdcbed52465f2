"""Privacy loss distributions by dp-accounting, which is imported late because it is
slow."""

import math
from functools import lru_cache, reduce

import numpy as np

from ._lattice import lattice_delta
from .events import (
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    OpaqueEvent,
    PoissonSampledEvent,
)

_INTERVAL = (
    1e-4  # width of the grid for small losses; losses are rounded pessimistically
)
_MOST = 1e6  # largest loss of which dp-accounting makes a grid
_LONGEST = 50.0  # largest loss on a grid of this width
_REACH = (
    9.5  # standard deviations on the grid; the mass beyond (1e-21) has infinite loss
)


@lru_cache(maxsize=8)
def compose_plds(parts, interval=_INTERVAL):
    """Privacy loss distribution of a frozen set of (event, count), without composed
    events."""
    longest = max(_largest_loss(event) for event, _ in parts)
    if longest > _MOST:
        raise ValueError(
            f"events that are composed must have a privacy loss of at most {_MOST:g}. Got one of "
            f"{longest:.3g}: its noise hides nothing."
        )
    interval = max(
        interval, _INTERVAL * 10 ** max(0, math.ceil(math.log10(longest / _LONGEST)))
    )
    plds = (_event_pld(event, interval).self_compose(count) for event, count in parts)
    return reduce(lambda left, right: left.compose(right), plds)


def _largest_loss(event):
    """Largest loss of an event on its grid."""
    match event:
        case OpaqueEvent():
            return event.epsilon
        case LaplaceEvent():
            return event.sensitivity / event.scale
        case PoissonSampledEvent():
            return _largest_loss(event.event)
        case GaussianEvent():
            mu = event.sensitivity / event.scale
        case DiscreteGaussianEvent():
            mu = event.step * math.sqrt(event.contributions) / event.scale
    return mu**2 / 2 + _REACH * mu


@lru_cache(maxsize=64)
def _event_pld(event, interval):
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as library
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.privacy_accountant import NeighboringRelation

    sampled, noise = {}, event
    if isinstance(event, PoissonSampledEvent):
        one, special = (
            NeighboringRelation.REPLACE_ONE,
            NeighboringRelation.REPLACE_SPECIAL,
        )
        relation, noise = one if event.relation == "replace" else special, event.event
        sampled = {"sampling_prob": event.probability, "neighboring_relation": relation}
    match noise:
        case GaussianEvent():
            return library.from_gaussian_mechanism(
                noise.scale / noise.sensitivity,
                value_discretization_interval=interval,
                **sampled,
            )
        case LaplaceEvent():  # the worst case: one coordinate changes by the whole L1 sensitivity
            return library.from_laplace_mechanism(
                noise.scale / noise.sensitivity, value_discretization_interval=interval
            )
        case OpaqueEvent():
            bound = DifferentialPrivacyParameters(noise.epsilon, noise.delta)
            return library.from_privacy_parameters(bound, interval)
    end = math.ceil(_largest_loss(event) / interval) + 1
    losses = np.arange(-end, end + 1) * interval
    deltas = lattice_delta(losses, event.scale, event.contributions, event.step)
    deltas = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        interval, -end, end, deltas
    )
    return library.PrivacyLossDistribution(pmf)
