"""Epsilon of a composition by numerical integration, without any accountant.

The privacy losses of each mechanism are put on a grid, in both directions, and are
convolved by fast Fourier transforms. Nothing is rounded to the safe side.
"""

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import logsumexp
from scipy.stats import norm

from skvalue.privacy import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    OpaqueEvent,
    SelfComposedEvent,
)

_WIDTH = 2e-4
_LARGEST = 40.0
_SIZE = 2 * round(_LARGEST / _WIDTH) + 1
_LOSSES = np.linspace(-_LARGEST, _LARGEST, _SIZE)


def own_epsilon(event, delta, relation):
    """The smallest epsilon at a delta, of neighbours under a relation."""
    return max(_epsilon(event, delta, relation, is_swapped) for is_swapped in (0, 1))


def _epsilon(event, delta, relation, is_swapped):
    losses = None
    for leaf, count in _leaves(event, 1):
        of_leaf = _power(_losses_of(leaf, relation, is_swapped), count)
        losses = of_leaf if losses is None else _convolved(losses, of_leaf)
    if _delta(losses, 0.0) <= delta:
        return 0.0
    low = 0.0
    high = _LARGEST
    for _ in range(40):
        middle = (low + high) / 2
        if _delta(losses, middle) > delta:
            low = middle
        else:
            high = middle
    return high


def _leaves(event, count):
    """The events of which one is composed, and how often."""
    if isinstance(event, SelfComposedEvent):
        yield from _leaves(event.event, count * event.count)
    elif isinstance(event, ComposedEvent):
        for component in event.events:
            yield from _leaves(component, count)
    else:
        yield event, count


def _losses_of(event, relation, is_swapped):
    """Probabilities of the losses on the grid, and that of an infinite loss."""
    n_steps = 2 if relation == "replace" != event.relation else 1
    if isinstance(event, GaussianEvent):
        mu = n_steps * event.sensitivity / event.scale
        x = np.linspace(-12, 12 + mu, 100_001)
        return _of_densities(norm.logpdf(x, mu), norm.logpdf(x))
    if isinstance(event, LaplaceEvent):
        shift = n_steps * event.sensitivity / event.scale
        x = np.linspace(-40, 40 + shift, 200_001)
        return _of_densities(-np.abs(x - shift), -np.abs(x))
    if isinstance(event, DiscreteGaussianEvent):
        radius = int(12 * event.scale + event.step + 20)
        y = np.arange(-radius, radius + 1)
        logs = -(y**2) / (2 * event.scale**2)
        losses = (event.step**2 - 2 * event.step * y) / (2 * event.scale**2)
        one = _on_grid(losses, np.exp(logs - logsumexp(logs)), 0.0)
        return _power(one, n_steps * event.contributions)
    if isinstance(event, OpaqueEvent):
        epsilon = n_steps * event.epsilon
        delta = event.delta
        if n_steps == 2:
            delta *= 1 + np.exp(event.epsilon)
        losses = np.array([epsilon, -epsilon])
        weights = (1 - delta) * np.exp(losses / 2) / np.exp(losses / 2).sum()
        return _on_grid(losses, weights, delta)

    # A secret sample, in which a row is with a probability.
    scale = event.event.scale / event.event.sensitivity
    x = np.linspace(-12 * scale - 1, 12 * scale + 1, 100_001)
    absent = np.log1p(-event.probability) + norm.logpdf(x, 0.0, scale)
    present = np.log(event.probability) + norm.logpdf(x, 1.0, scale)
    with_row = np.logaddexp(absent, present)
    without_row = norm.logpdf(x, 0.0, scale)
    if relation == "replace":
        other = np.log(event.probability) + norm.logpdf(x, -1.0, scale)
        without_row = np.logaddexp(absent, other)
    if is_swapped:
        return _of_densities(without_row, with_row)
    return _of_densities(with_row, without_row)


def _of_densities(log_p, log_q):
    weights = np.exp(log_p)
    return _on_grid(log_p - log_q, weights / weights.sum(), 0.0)


def _on_grid(losses, weights, infinite):
    """Each loss is split between its two neighbours, which keeps the mean."""
    places = (losses + _LARGEST) / _WIDTH
    is_beyond = places > _SIZE - 2
    infinite = infinite + weights[is_beyond].sum()
    weights = np.where(is_beyond, 0.0, weights)
    places = np.clip(places, 0, _SIZE - 2)
    lower = places.astype(int)
    upper_share = places - lower
    grid = np.bincount(lower, weights * (1 - upper_share), minlength=_SIZE)
    grid += np.bincount(lower + 1, weights * upper_share, minlength=_SIZE)
    return grid, infinite


def _convolved(first, second):
    both = np.maximum(fftconvolve(first[0], second[0]), 0.0)
    center = _SIZE // 2
    infinite = 1 - (1 - first[1]) * (1 - second[1])
    infinite += both[center + _SIZE :].sum()
    return both[center : center + _SIZE], infinite


def _power(losses, count):
    """Losses composed with themselves."""
    if count == 1:
        return losses
    half = _power(losses, count // 2)
    composed = _convolved(half, half)
    return _convolved(composed, losses) if count % 2 else composed


def _delta(losses, epsilon):
    probabilities, infinite = losses
    is_above = epsilon < _LOSSES
    excess = -np.expm1(epsilon - _LOSSES[is_above])
    return infinite + (probabilities[is_above] * excess).sum()
