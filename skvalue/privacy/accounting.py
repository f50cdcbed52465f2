"""Privacy cost of an event: delta at an epsilon, and epsilon at a delta.

The cost is exact for continuous Gaussian noise (by mu), discrete Gaussian noise on
counts (on the lattice), Laplace noise and an (epsilon, delta) guarantee, alone or if
they compose in closed form. For other events, and whenever rows were sampled, privacy
loss distributions are composed by dp-accounting, which rounds pessimistically. Unknown
events are refused.
"""

import math
from collections import Counter
from functools import partial

from .._utils.checks import check_delta, check_epsilon
from ._lattice import lattice_delta
from ._pld import compose_plds
from .events import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    OpaqueEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
)
from .gdp import delta_from_mu, smallest_epsilon
from .relations import convert

# Upper bound of the total variation distance between a drawn integer and the
# distribution that its event states, see `mechanisms`. Only the coordinates that differ
# between neighbours matter.
_SAMPLER_ERROR = 2.0**-100
_BEFORE_SLACK = (30.0, 40.0, 50.0)  # epsilons at which this error is still below 1e-8
_LATTICE_MARGIN = (
    1e-9  # relative; larger than the rounding error of sums over the lattice
)
_SUM_TOLERANCE = (
    1e-12  # relative; for sums of decimal fractions such as 0.1 + 0.1 + 0.1
)


def get_delta(event, epsilon, relation=None):
    """Smallest known delta at which a release is (epsilon, delta)-differentially
    private.

    Parameters
    ----------
    event : event
        The release, an event of `skvalue.privacy`.
    epsilon : float
        Above 0.
    relation : {"null", "add_remove", "replace"}, default=None
        Neighbouring relation; None means that of the event. The event is restated under
        another one by `convert`.

    Returns
    -------
    delta : float
        In [0, 1]; never below the true delta (up to a relative rounding error of
        1e-12).

    Raises
    ------
    ValueError
        If epsilon is not positive, or the relation of the event does not imply
        `relation`.
    TypeError
        If event is not an event.

    References
    ----------
    J. Dong, A. Roth, W. Su, JRSS-B 2022 (Gaussian noise); C. Canonne, G. Kamath, T. Steinke: "The
    Discrete Gaussian for Differential Privacy", NeurIPS 2020, Theorem 7, here for M coordinates;
    V. Doroshenko et al.: "Connect the Dots", PETS 2022 (other events, by dp-accounting).

    Examples
    --------
    >>> from skvalue.privacy import DiscreteGaussianEvent, GaussianEvent
    >>> f"{get_delta(GaussianEvent(scale=3.73063), 1.0):.3e}"
    '1.000e-05'
    >>> f"{get_delta(DiscreteGaussianEvent(scale=3.73063), 1.0):.3e}"
    '1.035e-05'
    """
    return delta_of(simplify(event, relation), check_epsilon(epsilon))


def delta_of(parts, epsilon, **grid):
    """`get_delta` of simplified parts; `grid` is passed to `compose_plds`."""
    profile = _profile(parts, **grid)
    # delta is also valid at a larger epsilon, where the bound of the sampler's error
    # explodes.
    smaller = [
        e for e in _BEFORE_SLACK if e < epsilon and _sampler_slack(parts, epsilon)
    ]
    return min(
        1.0, *(profile(e) + _sampler_slack(parts, e) for e in [epsilon, *smaller])
    )


def get_epsilon(event, delta, relation=None):
    """Smallest known epsilon at which a release is (epsilon, delta)-differentially
    private.

    Parameters
    ----------
    event : event
        The release, an event of `skvalue.privacy`.
    delta : float
        In (0, 1).
    relation : {"null", "add_remove", "replace"}, default=None
        Neighbouring relation; None means that of the event. The event is restated under
        another one by `convert`.

    Returns
    -------
    epsilon : float
        At least 0, possibly infinite; never below the true epsilon.

    Raises
    ------
    ValueError
        If delta is outside (0, 1), or the relation of the event does not imply
        `relation`.
    TypeError
        If event is not an event.

    References
    ----------
    See `get_delta`, of which this is the inverse.

    Examples
    --------
    >>> from skvalue.privacy import GaussianEvent, PoissonSampledEvent, SelfComposedEvent
    >>> round(get_epsilon(SelfComposedEvent(GaussianEvent(10.0), 100), delta=1e-5), 3)
    4.377
    >>> once = PoissonSampledEvent(GaussianEvent(1.0, relation="null"), probability=0.01)
    >>> round(get_epsilon(SelfComposedEvent(once, 1000), delta=1e-5), 2)
    1.83
    """
    delta = check_delta(delta)
    parts = simplify(event, relation)
    epsilon = _raw_epsilon(parts, delta)
    slack = 2 * _sampler_slack(parts, epsilon)
    if slack == 0 or math.isinf(epsilon):
        return epsilon
    if slack >= delta:
        return math.inf
    epsilon = _raw_epsilon(parts, delta - slack)
    return epsilon if _sampler_slack(parts, epsilon) <= slack else math.inf


def _profile(parts, **grid):
    """The function from epsilon to delta, without the error of the sampler."""
    single = _single(parts)
    if single is not None:
        return partial(_delta, single)
    composed, total = compose_plds(frozenset(parts.items()), **grid), _summed(parts)

    def delta(epsilon):
        found = float(composed.get_delta_for_epsilon(epsilon))
        if total is not None and total[0] <= epsilon * (1 + _SUM_TOLERANCE):
            found = min(found, total[1])
        return found

    return delta


def _raw_epsilon(parts, delta):
    single = _single(parts)
    if single is not None:
        return _epsilon(single, delta)
    epsilon = float(compose_plds(frozenset(parts.items())).get_epsilon_for_delta(delta))
    total = _summed(parts)
    if total is not None and total[1] <= delta:
        epsilon = min(epsilon, total[0])
    return epsilon


# Simplification of events -------------------------------------------------------------


def simplify(event, relation=None):
    """Equivalent ``{event: count}`` in which events are composed where a closed form
    exists."""
    event = convert(event, relation or getattr(event, "relation", None) or "replace")
    counts = Counter()
    _flatten(event, 1, counts)
    parts = Counter()
    squared_mu = 0.0
    lattices = Counter()
    for leaf, count in counts.items():
        if isinstance(leaf, GaussianEvent):
            squared_mu += count * (leaf.sensitivity / leaf.scale) ** 2
        elif isinstance(leaf, DiscreteGaussianEvent):
            lattices[leaf.scale, leaf.step] += count * leaf.contributions
        else:
            parts[leaf] += count
    if squared_mu:
        parts[GaussianEvent(1.0, math.sqrt(squared_mu), event.relation)] = 1
    for (scale, step), contributions in lattices.items():
        parts[DiscreteGaussianEvent(scale, contributions, step, event.relation)] = 1
    return parts


def _flatten(event, count, counts):
    if isinstance(event, SelfComposedEvent):
        _flatten(event.event, count * event.count, counts)
    elif isinstance(event, ComposedEvent):
        for part in event.events:
            _flatten(part, count, counts)
    elif isinstance(event, PoissonSampledEvent) and event.probability == 1:
        _flatten(convert(event.event, event.relation), count, counts)
    else:
        counts[event] += count


def _single(parts):
    """The event, if there is only one and its profile has a closed form; else None."""
    (event, count), *others = parts.items()
    known = not isinstance(event, PoissonSampledEvent)
    return event if not others and count == 1 and known else None


def _summed(parts):
    """Sums of epsilons and deltas, if every part has a known (epsilon, delta); else
    None."""
    epsilons, deltas = [], []
    for event, count in parts.items():
        if isinstance(event, OpaqueEvent):
            bound = event.epsilon, event.delta
        elif isinstance(event, LaplaceEvent):
            bound = event.sensitivity / event.scale, 0.0
        else:
            return None
        epsilons += [count * bound[0]]
        deltas += [count * bound[1]]
    return math.fsum(epsilons), math.fsum(deltas)


def pure_epsilon(event):
    """The epsilon of an event whose delta is 0."""
    total = _summed(simplify(event))
    if total is None or total[1]:
        raise ValueError(f"delta must be in (0, 1) for {event}. Got 0.")
    return total[0]


def _sampler_slack(parts, epsilon):
    """Upper bound of what inexact sampling of integer noise adds to delta at an
    epsilon."""
    touched = 0
    for event, count in parts.items():
        if isinstance(event, DiscreteGaussianEvent):
            touched += count * event.contributions
    return (
        touched * _SAMPLER_ERROR * (1 + math.exp(min(epsilon, 700.0)))
        if touched
        else 0.0
    )


# Single events ------------------------------------------------------------------------


def _delta(event, epsilon):
    match event:
        case GaussianEvent():
            return delta_from_mu(epsilon, event.sensitivity / event.scale)
        case DiscreteGaussianEvent():
            exact = lattice_delta(epsilon, event.scale, event.contributions, event.step)
            return float(exact) * (1 + _LATTICE_MARGIN)
        case LaplaceEvent():
            # The worst case is that one coordinate changes by the whole L1 sensitivity:
            # thresholds on it are optimal tests of every pair of shifts, so steps along
            # several coordinates compose to it.
            return -math.expm1(
                min(0.0, (epsilon - event.sensitivity / event.scale) / 2)
            )
        case OpaqueEvent():
            # Randomised response dominates: Kairouz, Oh and Viswanath, ICML 2015,
            # Theorem 3.
            if epsilon >= event.epsilon:
                return event.delta
            rest = -math.expm1(epsilon - event.epsilon) / (1 + math.exp(-event.epsilon))
            return event.delta + (1 - event.delta) * rest
    raise TypeError(f"event must be one whose privacy loss is known. Got {event!r}.")


def _epsilon(event, delta):
    """Smallest epsilon at which `_delta` is at most delta."""
    profile = partial(_delta, event)
    if isinstance(event, OpaqueEvent):
        return (
            smallest_epsilon(profile, delta, event.epsilon)
            if event.delta <= delta
            else math.inf
        )
    return smallest_epsilon(profile, delta)
