"""Privacy loss distributions, by dp-accounting.

It is imported where it is needed, because its import takes a second.
"""

import math
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from ._lattice import lattice_delta
from .events import (
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    OpaqueEvent,
    PoissonSampledEvent,
)

# Width of the grid of small losses, to which losses are rounded pessimistically.
_INTERVAL = 1e-4
_MAX_LOSS = 1e6  # of which dp-accounting makes a grid
_MAX_FINE_LOSS = 50.0  # largest loss on a grid of this width

# Standard deviations of a loss on the grid; the mass beyond (1e-21) has infinite loss.
_N_STDS = 9.5


@lru_cache(maxsize=8)
def compose_plds(events, interval=_INTERVAL):
    """Privacy loss distribution of a frozen set of (event, count).

    None of the events is a composed one.
    """
    largest = max(_largest_loss(event) for event, _ in events)
    if largest > _MAX_LOSS:
        raise ValueError(
            "events that are composed must have a privacy loss of at most "
            f"{_MAX_LOSS:g}. Got one of {largest:.3g}: its noise hides nothing."
        )
    coarsening = 10 ** max(0, math.ceil(math.log10(largest / _MAX_FINE_LOSS)))
    interval = max(interval, _INTERVAL * coarsening)
    parts = sorted((_digest(event, count), event, count) for event, count in events)
    remembered = {tree.key: tree for root in _recent for tree in root.walk()}
    root = _grow(parts, interval, remembered)
    _recent.appendleft(root)
    return root.pld


@dataclass(frozen=True, eq=False)
class _Tree:
    """The composition of some events, and those of the two halves of them."""

    key: tuple
    pld: object
    branches: tuple = ()

    def walk(self):
        """Yield the tree and all trees in it."""
        yield self
        for branch in self.branches:
            yield from branch.walk()


_recent = deque(maxlen=4)  # trees of the last compositions


def _digest(event, count):
    """Bits of an event and its count, the same in all processes."""
    text = f"{event!r} {count}".encode()
    return int.from_bytes(blake2b(text, digest_size=16).digest())


def _grow(parts, interval, remembered):
    """Compose sorted tuples (digest, event, count) along the tree of their first bits.

    The order of additions, and so each digit, depends on the set of events alone. One
    event more changes only the branches that lead to it; ``remembered`` has the others.
    """
    digests = [digest for digest, _, _ in parts]
    key = (interval, *digests)
    if key in remembered:
        return remembered[key]
    if len(parts) == 1:
        _, event, count = parts[0]
        return _Tree(key, _event_pld(event, interval).self_compose(count))
    bit = (digests[0] ^ digests[-1]).bit_length() - 1  # the first that differs
    middle = bisect_left(digests, digests[-1] >> bit << bit)
    left = _grow(parts[:middle], interval, remembered)
    right = _grow(parts[middle:], interval, remembered)
    return _Tree(key, left.pld.compose(right.pld), (left, right))


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
    return mu**2 / 2 + _N_STDS * mu


@lru_cache(maxsize=64)
def _event_pld(event, interval):
    """Privacy loss distribution of one event, by dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution as library
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    match event:
        case PoissonSampledEvent():
            return _sampled_pld(event, interval)
        case GaussianEvent():
            return library.from_gaussian_mechanism(
                event.scale / event.sensitivity,
                value_discretization_interval=interval,
            )
        case LaplaceEvent():
            # In the worst case one coordinate changes by the whole L1 sensitivity.
            return library.from_laplace_mechanism(
                event.scale / event.sensitivity, value_discretization_interval=interval
            )
        case OpaqueEvent():
            bound = DifferentialPrivacyParameters(event.epsilon, event.delta)
            return library.from_privacy_parameters(bound, interval)
    return _lattice_pld(event, interval)


def _sampled_pld(event, interval):
    """Privacy loss distribution of Gaussian noise on a secret sample."""
    from dp_accounting.pld import privacy_loss_distribution as library
    from dp_accounting.privacy_accountant import NeighboringRelation

    relation = NeighboringRelation.REPLACE_SPECIAL
    if event.relation == "replace":
        relation = NeighboringRelation.REPLACE_ONE
    noise = event.event
    return library.from_gaussian_mechanism(
        noise.scale / noise.sensitivity,
        value_discretization_interval=interval,
        sampling_prob=event.probability,
        neighboring_relation=relation,
    )


def _lattice_pld(event, interval):
    """Privacy loss distribution of discrete Gaussian noise, from its exact deltas."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as library

    end = math.ceil(_largest_loss(event) / interval) + 1
    losses = np.arange(-end, end + 1) * interval
    deltas = lattice_delta(losses, event.scale, event.contributions, event.step)
    deltas = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
        interval, -end, end, deltas
    )
    return library.PrivacyLossDistribution(pmf)
