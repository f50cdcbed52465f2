"""Conservative restatement of an event under another neighbouring relation."""

import math
from dataclasses import replace

from .._utils.checks import check_relation
from .events import (
    ComposedEvent,
    DiscreteGaussianEvent,
    OpaqueEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    require_event,
)


def convert(event, relation):
    """Restate an event under another neighbouring relation, conservatively.

    "add_remove" implies "null" (a row that contributes nothing is equivalent to an
    absent row), and both imply "replace" at twice the distance (the old row leaves, the
    new row joins). No other restatement is known.

    Parameters
    ----------
    event : event
        Any event of `skvalue.privacy`.
    relation : {"null", "add_remove", "replace"}
        The new relation.

    Returns
    -------
    event : event
        An event that costs at least as much.

    Raises
    ------
    ValueError
        If no safe restatement is known.
    TypeError
        If event is not an event.

    Examples
    --------
    >>> from skvalue.privacy import DiscreteGaussianEvent, GaussianEvent
    >>> convert(GaussianEvent(10.0, 1.0, "null"), "replace").sensitivity
    2.0
    >>> convert(DiscreteGaussianEvent(10.0, contributions=13), "replace").contributions
    26
    """
    require_event(event)
    check_relation(relation)
    if event.relation == relation:
        return event
    if relation == "add_remove" or event.relation == "replace":
        raise ValueError(
            f"relation must be one that {event.relation!r} implies: 'add_remove' "
            f"implies 'null', and both imply 'replace'. Got {relation!r}."
        )
    match event:
        case SelfComposedEvent():
            return SelfComposedEvent(convert(event.event, relation), event.count)
        case ComposedEvent():
            events = tuple(convert(component, relation) for component in event.events)
            return ComposedEvent(events)
        case PoissonSampledEvent():
            return replace(event, relation=relation)
        case OpaqueEvent() if relation != "replace":
            return replace(event, relation=relation)
        case OpaqueEvent():
            # Group privacy of two steps.
            delta = (1 + math.exp(min(event.epsilon, 700.0))) * event.delta
            return OpaqueEvent(2 * event.epsilon, min(delta, 1 - 1e-16), relation)

    n_steps = 2 if relation == "replace" else 1
    if isinstance(event, DiscreteGaussianEvent):
        # Contributions to counts are non-negative: a count to which both rows add
        # changes by at most `step`.
        contributions = n_steps * event.contributions
        return replace(event, contributions=contributions, relation=relation)
    return replace(event, sensitivity=n_steps * event.sensitivity, relation=relation)
