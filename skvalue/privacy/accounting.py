"""Privacy cost of an event: delta at an epsilon, and epsilon at a delta.

The cost is exact for continuous Gaussian noise (by mu), discrete Gaussian noise on
counts (on the lattice), Laplace noise and an (epsilon, delta) guarantee, alone or if
they compose in closed form. For other events, and whenever rows were sampled, privacy
loss distributions are composed by dp-accounting, which rounds pessimistically. Unknown
events are refused.
"""

import math
from collections import Counter
from functools import lru_cache, partial
from typing import NamedTuple

from .._utils.checks import check_delta, check_positive
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

_SMALL_SLACK_EPSILONS = (30.0, 40.0, 50.0)  # at which this error is still below 1e-8

# Relative margin, larger than the rounding error of sums over the lattice.
_LATTICE_MARGIN = 1e-9

# Relative tolerance for sums of decimal fractions, such as 0.1 + 0.1 + 0.1.
_SUM_TOLERANCE = 1e-12


def get_delta(event, epsilon, relation=None):
    """Smallest known delta at which a release is (epsilon, delta)-private.

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
    J. Dong, A. Roth, W. Su: "Gaussian Differential Privacy", JRSS-B 2022 (Gaussian
    noise).

    C. Canonne, G. Kamath, T. Steinke: "The Discrete Gaussian for Differential Privacy",
    NeurIPS 2020, Theorem 7, here for M coordinates.

    V. Doroshenko et al.: "Connect the Dots", PETS 2022 (other events, by
    dp-accounting).

    Examples
    --------
    >>> from skvalue.privacy import DiscreteGaussianEvent, GaussianEvent
    >>> f"{get_delta(GaussianEvent(scale=3.73063), 1.0):.3e}"
    '1.000e-05'
    >>> f"{get_delta(DiscreteGaussianEvent(scale=3.73063), 1.0):.3e}"
    '1.035e-05'
    """
    return delta_of(simplify(event, relation), check_positive(epsilon, "epsilon"))


def delta_of(events, epsilon, **grid):
    """`get_delta` of simplified events; `grid` is passed to `compose_plds`."""
    profile = _profile(events, **grid)

    # The delta of a smaller epsilon is also valid: it is taken where the bound of the
    # sampler's error explodes.
    epsilons = [epsilon]
    if _sampler_slack(events, epsilon):
        epsilons += [smaller for smaller in _SMALL_SLACK_EPSILONS if smaller < epsilon]
    deltas = [profile(value) + _sampler_slack(events, value) for value in epsilons]
    return min(1.0, *deltas)


def get_epsilon(event, delta, relation=None):
    """Smallest known epsilon at which a release is (epsilon, delta)-private.

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
    >>> from skvalue.privacy import GaussianEvent, PoissonSampledEvent
    >>> from skvalue.privacy import SelfComposedEvent
    >>> round(get_epsilon(SelfComposedEvent(GaussianEvent(10.0), 100), delta=1e-5), 3)
    4.377
    >>> once = PoissonSampledEvent(GaussianEvent(1.0, relation="null"), 0.01)
    >>> round(get_epsilon(SelfComposedEvent(once, 1000), delta=1e-5), 2)
    1.83
    """
    return epsilon_of(simplify(event, relation), check_delta(delta))


def epsilon_of(events, delta):
    """`get_epsilon` of simplified events."""
    epsilon = _raw_epsilon(events, delta)
    # Delta is reduced by a bound of the sampler's error. The error grows with epsilon,
    # and epsilon as delta is reduced: twice the error leaves room for that.
    slack = 2 * _sampler_slack(events, epsilon)
    if slack == 0 or math.isinf(epsilon):
        return epsilon
    if slack >= delta:
        return math.inf
    epsilon = _raw_epsilon(events, delta - slack)
    return epsilon if _sampler_slack(events, epsilon) <= slack else math.inf


def _profile(events, **grid):
    """The function from epsilon to delta, without the error of the sampler."""
    event = _closed_form_event(events)
    if event is not None:
        return partial(_delta, event)
    pld = compose_plds(frozenset(events.items()), **grid)
    bound = _summed_bound(events)

    def delta(epsilon):
        composed = float(pld.get_delta_for_epsilon(epsilon))
        if bound is not None and bound.epsilon <= epsilon * (1 + _SUM_TOLERANCE):
            return min(composed, bound.delta)
        return composed

    return delta


def _raw_epsilon(events, delta):
    """`get_epsilon` of simplified events, without the error of the sampler."""
    event = _closed_form_event(events)
    if event is not None:
        return _epsilon(event, delta)
    epsilon = _composed_epsilon(frozenset(events.items()), delta)
    bound = _summed_bound(events)
    if bound is not None and bound.delta <= delta:
        epsilon = min(epsilon, bound.epsilon)
    return epsilon


@lru_cache(maxsize=64)
def _composed_epsilon(events, delta):
    """Epsilon of a frozen set of (event, count), by their privacy loss distribution.

    Fits of one setting ask for it each time, for their report.
    """
    return float(compose_plds(events).get_epsilon_for_delta(delta))


# Simplification of events -------------------------------------------------------------


def simplify(event, relation=None):
    """An equivalent event as a Counter of events, as few as closed forms allow.

    Gaussian events are one, and so are discrete ones of equal noise.
    """
    event = convert(event, relation or getattr(event, "relation", None) or "replace")
    leaves = Counter()
    _flatten(event, 1, leaves)
    return _joined(leaves, event.relation)


class Composition:
    """Events that are composed one after the other, under one relation.

    What one more costs does not grow with their number, as long as many of them are
    equal. Its digits are those of `simplify` of all of them.
    """

    def __init__(self, relation):
        self._relation = relation
        self._leaves = Counter()

    def add(self, event):
        """Compose with one more event, restated under the relation."""
        _flatten(convert(event, self._relation), 1, self._leaves)

    def simplified(self, *more):
        """As `simplify`, of all events and of some more, which are not added."""
        # A copy: another thread may add an event meanwhile.
        leaves = self._leaves.copy()
        for event in more:
            _flatten(convert(event, self._relation), 1, leaves)
        return _joined(leaves, self._relation)


def _joined(leaves, relation):
    """A Counter of events that are no compositions, as few as closed forms allow."""
    events = Counter()
    squared_mu = 0.0
    contributions_by_noise = Counter()
    for leaf, count in leaves.items():
        if isinstance(leaf, GaussianEvent):
            squared_mu += count * (leaf.sensitivity / leaf.scale) ** 2
        elif isinstance(leaf, DiscreteGaussianEvent):
            noise = leaf.scale, leaf.step
            contributions_by_noise[noise] += count * leaf.contributions
        else:
            events[leaf] += count
    if squared_mu:
        events[GaussianEvent(1.0, math.sqrt(squared_mu), relation)] = 1
    for (scale, step), contributions in contributions_by_noise.items():
        events[DiscreteGaussianEvent(scale, contributions, step, relation)] = 1
    return events


def _flatten(event, count, events):
    """Add the events of which an event is composed to a Counter."""
    if isinstance(event, SelfComposedEvent):
        _flatten(event.event, count * event.count, events)
    elif isinstance(event, ComposedEvent):
        for component in event.events:
            _flatten(component, count, events)
    elif isinstance(event, PoissonSampledEvent) and event.probability == 1:
        _flatten(convert(event.event, event.relation), count, events)
    else:
        events[event] += count


def _closed_form_event(events):
    """The event, if there is only one and its profile has a closed form; else None."""
    if events.total() != 1:
        return None
    (event,) = events
    return None if isinstance(event, PoissonSampledEvent) else event


class _Bound(NamedTuple):
    """An (epsilon, delta) guarantee."""

    epsilon: float
    delta: float


def _summed_bound(events):
    """Sums of epsilons and deltas, if every part states them; else None."""
    epsilons = []
    deltas = []
    for event, count in events.items():
        if isinstance(event, OpaqueEvent):
            epsilons.append(count * event.epsilon)
            deltas.append(count * event.delta)
        elif isinstance(event, LaplaceEvent):
            epsilons.append(count * (event.sensitivity / event.scale))
            deltas.append(0.0)
        else:
            return None
    return _Bound(math.fsum(epsilons), math.fsum(deltas))


def pure_epsilon(event):
    """The epsilon of an event whose delta is 0."""
    bound = _summed_bound(simplify(event))
    if bound is None or bound.delta:
        raise ValueError(
            f"delta must be in (0, 1) for {event}: only Laplace noise and events whose "
            "delta is 0 have a guarantee without it. Got 0."
        )
    return bound.epsilon


def _sampler_slack(events, epsilon):
    """Bound of what inexact sampling of integer noise adds to delta at an epsilon."""
    n_coordinates = 0
    for event, count in events.items():
        if isinstance(event, DiscreteGaussianEvent):
            n_coordinates += count * event.contributions
    if not n_coordinates:
        return 0.0
    return n_coordinates * _SAMPLER_ERROR * (1 + math.exp(min(epsilon, 700.0)))


# Single events ------------------------------------------------------------------------


def _delta(event, epsilon):
    """Delta of an event whose profile has a closed form."""
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
            excess = epsilon - event.sensitivity / event.scale
            return -math.expm1(min(0.0, excess / 2))
        case OpaqueEvent():
            # Randomised response dominates: Kairouz, Oh and Viswanath, ICML 2015,
            # Theorem 3.
            if epsilon >= event.epsilon:
                return event.delta
            pure_delta = -math.expm1(epsilon - event.epsilon) / (
                1 + math.exp(-event.epsilon)
            )
            return event.delta + (1 - event.delta) * pure_delta
    raise TypeError(f"event must be one whose privacy loss is known. Got {event!r}.")


def _epsilon(event, delta):
    """Smallest epsilon at which `_delta` is at most delta."""
    profile = partial(_delta, event)
    if not isinstance(event, OpaqueEvent):
        return smallest_epsilon(profile, delta)
    if event.delta > delta:
        return math.inf
    return smallest_epsilon(profile, delta, event.epsilon)
