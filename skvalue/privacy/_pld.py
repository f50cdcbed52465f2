"""Privacy loss distributions by dp-accounting, which is imported late because it is slow."""

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

_INTERVAL = 1e-4  # width of the grid for small losses; losses are rounded pessimistically
_MOST = 1e6  # largest loss of which dp-accounting makes a grid
_LARGE = 1e5  # scale of integer noise from which dp-accounting needs much memory
_LONGEST = 50.0  # largest loss on a grid of this width
_REACH = 9.5  # standard deviations on the grid; the mass beyond (1e-21) has infinite loss


def compose_plds(parts):
    """Privacy loss distribution of ``{event: count}``, without composed events."""
    return _composed(frozenset(parts.items()))


@lru_cache(maxsize=8)
def _composed(parts):
    longest = max(_largest_loss(event) for event, _ in parts)
    if longest > _MOST:
        raise ValueError(
            f"events that are composed must have a privacy loss of at most {_MOST:g}. Got one of "
            f"{longest:.3g}: its noise hides nothing."
        )
    interval = _INTERVAL * 10 ** max(0, math.ceil(math.log10(longest / _LONGEST)))
    plds = (_event_pld(event, interval).self_compose(count) for event, count in parts)
    return reduce(lambda left, right: left.compose(right), plds)


@lru_cache(maxsize=64)
def _event_pld(event, interval):
    if isinstance(event, PoissonSampledEvent):
        return _noise_pld(event.event, event.probability, event.relation == "replace", interval)
    return _noise_pld(event, 1.0, False, interval)


def _largest_loss(event):
    """Largest loss of an event on its grid."""
    noise = event.event if isinstance(event, PoissonSampledEvent) else event
    if isinstance(noise, OpaqueEvent):
        return noise.epsilon
    if isinstance(noise, LaplaceEvent):
        return noise.sensitivity / noise.scale
    if isinstance(noise, GaussianEvent):
        mu = noise.sensitivity / noise.scale
    else:
        mu = noise.step * math.sqrt(noise.contributions) / noise.scale
    return mu**2 / 2 + _REACH * mu


def _noise_pld(event, probability, replaced, interval):
    from dp_accounting.pld import privacy_loss_distribution as library
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.privacy_accountant import NeighboringRelation

    options = {
        "value_discretization_interval": interval,
        "sampling_prob": probability,
        "use_connect_dots": True,  # the default for discrete Gaussians wastes a third
    }
    match event:
        case GaussianEvent():
            one, special = NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SPECIAL
            options["neighboring_relation"] = one if replaced else special
            return library.from_gaussian_mechanism(event.scale / event.sensitivity, **options)
        case LaplaceEvent():  # the worst case: one coordinate changes by the whole L1 sensitivity
            return library.from_laplace_mechanism(event.scale / event.sensitivity, **options)
        case OpaqueEvent():
            bound = DifferentialPrivacyParameters(event.epsilon, event.delta)
            return library.from_privacy_parameters(bound, interval)
        case DiscreteGaussianEvent(contributions=1) if event.scale < _LARGE:
            return library.from_discrete_gaussian_mechanism(
                event.scale, sensitivity=event.step, **options
            )
    # The noise of several counts.
    end = math.ceil(_largest_loss(event) / interval) + 1
    losses = np.arange(-end, end + 1) * interval

    def profile(epsilons):
        return lattice_delta(epsilons, event.scale, event.contributions, event.step)

    if probability == 1:
        return library.PrivacyLossDistribution(_connect_dots(interval, end, profile(losses)))
    removed = _connect_dots(interval, end, _sampled_removal(losses, profile, probability))
    added = _connect_dots(interval, end, _sampled_addition(losses, profile, probability))
    return library.PrivacyLossDistribution(removed, added)


def _connect_dots(interval, end, deltas):
    from dp_accounting.pld import pld_pmf

    deltas = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -end, end, deltas)


def _sampled_removal(losses, profile, q):
    """Profile of ((1 - q) Q + q P, Q), with `profile` that of (P, Q).

    Balle, Barthe and Gaboardi, "Privacy Amplification by Subsampling", NeurIPS 2018, Theorem 2.
    """
    inner = np.expm1(losses) / q
    deltas = -np.expm1(losses)  # where (1 - q) Q alone exceeds e^loss Q
    reached = inner > -1
    deltas[reached] = q * profile(np.log1p(inner[reached]))
    return deltas


def _sampled_addition(losses, profile, q):
    """Profile of (Q, (1 - q) Q + q P), with `profile` that of (Q, P)."""
    rest = 1 - np.exp(losses) * (1 - q)
    deltas = np.zeros_like(losses)
    reached = rest > 0
    rest = rest[reached]
    deltas[reached] = rest * profile(losses[reached] + np.log(q) - np.log(rest))
    return deltas
