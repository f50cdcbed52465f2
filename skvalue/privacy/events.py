"""Privacy events: immutable records of what was released, which say what it cost.

The docstring of an event defines it. There are three neighbouring relations, which are
never mixed silently:

- "null": a row is replaced by a row that contributes nothing; the number of rows is
  public;
- "add_remove": a row is added or removed; the number of rows is private;
- "replace": a row is replaced by any other row; the number of rows is public.

An event states its sensitivity under its own relation; `skvalue.privacy.convert`
restates it conservatively under another one, or refuses. The meaning of an event never
changes; a different mechanism is a different event.
"""

from dataclasses import MISSING, dataclass, fields

from .._utils.checks import (
    check_count,
    check_delta,
    check_epsilon,
    check_positive,
    check_relation,
)

_CHECKS = {float: check_positive, int: check_count, str: check_relation}


def _set(event, **values):
    """Set fields of a frozen event."""
    for name, value in values.items():
        object.__setattr__(event, name, value)


def _check_fields(event):
    """Check and convert every field of a noise event by its type."""
    for field in fields(event):
        check = _CHECKS[field.type]
        checked = check(getattr(event, field.name), field.name)
        object.__setattr__(event, field.name, checked)


def _check_scale(scale, size):
    """Refuse noise that hides nothing, or all, of changes of some size."""
    if not 1e-50 <= scale / size <= 1e50:
        raise ValueError(
            "scale must be between 1e-50 and 1e50 times the sensitivity, "
            f"{size:g}: other noise hides nothing, or all. Got {scale!r}."
        )


@dataclass(frozen=True)
class GaussianEvent:
    """The vector ``f(D) + z`` with z ~ N(0, scale^2 I), for real f.

    Neighbours D, D' under `relation` have ``||f(D) - f(D')||_2 <= sensitivity``. Under
    "null" and "add_remove", f is a sum over rows, and sensitivity bounds the norm of
    one row's term.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise, from 1e-50 to 1e50 times the sensitivity.
    sensitivity : float, default=1.0
        L2 sensitivity under `relation`.
    relation : {"null", "add_remove", "replace"}, default="replace"
        Neighbouring relation.

    Examples
    --------
    >>> GaussianEvent(scale=3.73, sensitivity=1.0, relation="null").relation
    'null'
    """

    scale: float
    sensitivity: float = 1.0
    relation: str = "replace"

    def __post_init__(self):
        _check_fields(self)
        _check_scale(self.scale, self.sensitivity)


@dataclass(frozen=True)
class DiscreteGaussianEvent:
    """The integer vector ``f(D) + z`` with discrete Gaussian noise z.

    Its entries are independent, Pr[z_j = x] proportional to exp(-x^2 / (2 scale^2)).
    f counts: under "null" and "add_remove" a row adds between 0 and `step` to each of
    at most `contributions` coordinates; under "replace", replacing a row changes at
    most `contributions` coordinates by at most `step` each.

    Parameters
    ----------
    scale : float
        Scale of the noise; its standard deviation is at most this. From 1e-50 to 1e50
        times `step`.
    contributions : int, default=1
        Number of coordinates that differ between neighbours (M).
    step : int, default=1
        Largest difference of a coordinate.
    relation : {"null", "add_remove", "replace"}, default="add_remove"
        Neighbouring relation.

    Examples
    --------
    >>> DiscreteGaussianEvent(scale=13.5, contributions=13).step
    1
    """

    scale: float
    contributions: int = 1
    step: int = 1
    relation: str = "add_remove"

    def __post_init__(self):
        _check_fields(self)
        _check_scale(self.scale, self.step)


@dataclass(frozen=True)
class LaplaceEvent:
    """The vector ``f(D) + z`` with Laplace noise z, for real f.

    The entries of z are independent, of density ``exp(-|x| / scale) / (2 scale)``.
    Neighbours under `relation` have ``||f(D) - f(D')||_1 <= sensitivity``. Under "null"
    and "add_remove", f is a sum over rows.

    Parameters
    ----------
    scale : float
        Scale of the noise; its standard deviation is sqrt(2) times this. From 1e-50 to
        1e50 times the sensitivity.
    sensitivity : float, default=1.0
        L1 sensitivity under `relation`.
    relation : {"null", "add_remove", "replace"}, default="replace"
        Neighbouring relation.

    Examples
    --------
    >>> LaplaceEvent(scale=2.0).sensitivity
    1.0
    """

    scale: float
    sensitivity: float = 1.0
    relation: str = "replace"

    def __post_init__(self):
        _check_fields(self)
        _check_scale(self.scale, self.sensitivity)


@dataclass(frozen=True)
class OpaqueEvent:
    """A release of which only its (epsilon, delta)-differential privacy is known.

    With delta = 0 it is pure epsilon-differential privacy. An example is noise on a
    statistic of a secret sample: the sample is why the release costs less than its
    noise alone.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float, default=0.0
        In [0, 1).
    relation : {"null", "add_remove", "replace"}, default="replace"
        Neighbouring relation.
    event : event, default=None
        The noise of the release, if it is known; it does not change what the release
        costs.

    Examples
    --------
    >>> OpaqueEvent(epsilon=0.5).delta
    0.0
    """

    epsilon: float
    delta: float = 0.0
    relation: str = "replace"
    event: object = None

    def __post_init__(self):
        if self.event is not None:
            require_event(self.event)
        _set(
            self,
            epsilon=check_epsilon(self.epsilon),
            delta=0.0 if self.delta == 0 else check_delta(self.delta),
            relation=check_relation(self.relation),
        )


@dataclass(frozen=True)
class PoissonSampledEvent:
    """Gaussian noise on a secret sample that is drawn only for it.

    Each row is in the sample with `probability`, independently of all other rows and of
    all other samples; then `event` is applied to the sample, which is not released.
    Several releases from one sample are ONE such event around all of them together (a
    `GaussianEvent` of the joint sensitivity), never several events.

    Parameters
    ----------
    event : GaussianEvent
        The release from the sample, with the sensitivity to the presence of one row:
        its relation is "null" or "add_remove".
    probability : float
        In (0, 1].
    relation : {"null", "add_remove", "replace"}, default=None
        Relation of the guarantee; None means that of the event.

    Examples
    --------
    >>> fresh = PoissonSampledEvent(GaussianEvent(1.0, relation="null"), 0.01)
    >>> thousand_samples = SelfComposedEvent(fresh, 1000)
    >>> together = GaussianEvent(1.0, 1000**0.5, relation="null")
    >>> one_sample = PoissonSampledEvent(together, 0.01)
    """

    event: object
    probability: float
    relation: str | None = None

    def __post_init__(self):
        if not isinstance(self.event, GaussianEvent):
            raise TypeError(f"event must be a GaussianEvent. Got {self.event!r}.")
        if self.event.relation == "replace":
            raise ValueError(
                "event must state the sensitivity to one row's presence in the sample, "
                "under 'null' or 'add_remove'. Got relation 'replace'."
            )
        probability = check_positive(self.probability, "probability")
        if probability > 1:
            raise ValueError(f"probability must be in (0, 1]. Got {probability}.")
        relation = self.event.relation
        if self.relation is not None:
            relation = check_relation(self.relation)
        if relation == "add_remove" and self.event.relation == "null":
            raise ValueError(
                "relation must not be 'add_remove' for an event stated under 'null', "
                "which says nothing of rows that join. Got 'add_remove'."
            )
        _set(self, probability=probability, relation=relation)


@dataclass(frozen=True)
class SelfComposedEvent:
    """The same mechanism run `count` times with fresh randomness, adaptively.

    Parameters
    ----------
    event : event
        The repeated event.
    count : int
        Number of runs, at least 1.

    Examples
    --------
    >>> SelfComposedEvent(GaussianEvent(10.0), 100).relation
    'replace'
    """

    event: object
    count: int

    def __post_init__(self):
        require_event(self.event)
        _set(self, count=check_count(self.count, "count"))

    @property
    def relation(self):
        """Relation of the repeated event."""
        return self.event.relation


@dataclass(frozen=True)
class ComposedEvent:
    """Several mechanisms run on the same data with independent randomness, adaptively.

    Parameters
    ----------
    events : tuple of events
        The events, which must have the same relation.

    Examples
    --------
    >>> both = ComposedEvent((GaussianEvent(10.0), LaplaceEvent(5.0)))
    >>> len(both.events)
    2
    """

    events: tuple

    def __post_init__(self):
        _set(self, events=tuple(self.events))
        if not self.events:
            raise ValueError("events must hold at least one event. Got none.")
        for event in self.events:
            require_event(event)
        relations = sorted({event.relation for event in self.events})
        if len(relations) > 1:
            raise ValueError(
                "events must have the same neighbouring relation; restate them with "
                f"convert(event, relation). Got {', '.join(relations)}."
            )

    @property
    def relation(self):
        """The common relation of the events."""
        return self.events[0].relation


_EVENTS = {
    cls.__name__: cls
    for cls in (
        GaussianEvent,
        DiscreteGaussianEvent,
        LaplaceEvent,
        OpaqueEvent,
        PoissonSampledEvent,
        SelfComposedEvent,
        ComposedEvent,
    )
}


def _is_event(value):
    return type(value) in _EVENTS.values()


def require_event(event):
    """Raise TypeError for what is not an event."""
    if not _is_event(event):
        raise TypeError(f"event must be one of {', '.join(_EVENTS)}. Got {event!r}.")


def event_to_dict(event):
    """Plain dictionary of an event that can be written as JSON.

    Parameters
    ----------
    event : event
        Any event of `skvalue.privacy`.

    Returns
    -------
    record : dict
        The class name under the key "type", and the fields.

    Raises
    ------
    TypeError
        If event is not an event.

    Examples
    --------
    >>> event_to_dict(LaplaceEvent(2.0))["type"]
    'LaplaceEvent'
    """

    require_event(event)
    record = {"type": type(event).__name__}
    for field in fields(event):
        record[field.name] = _to_plain(getattr(event, field.name))
    return record


def _to_plain(value):
    """The value of a field, with events as dictionaries."""
    if isinstance(value, tuple):
        return list(map(_to_plain, value))
    if _is_event(value):
        return event_to_dict(value)
    return value


def event_from_dict(record):
    """Event of a dictionary from `event_to_dict`.

    Parameters
    ----------
    record : dict
        Result of `event_to_dict`.

    Returns
    -------
    event : event
        The event.

    Raises
    ------
    ValueError
        If the record is no dictionary, its class name is unknown, or its fields are not
        those of the class.
    TypeError
        If a field has a value of another type.

    Examples
    --------
    >>> event = SelfComposedEvent(GaussianEvent(10.0), 3)
    >>> event_from_dict(event_to_dict(event)) == event
    True
    """

    if not isinstance(record, dict):
        raise ValueError(
            "record must be a dictionary, as event_to_dict returns it. Got "
            f"{type(record).__name__}."
        )
    values = dict(record)
    name = values.pop("type", None)
    cls = _EVENTS.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"event must be one of {', '.join(_EVENTS)}. Got {name!r}.")
    known = [field.name for field in fields(cls)]
    required = [field.name for field in fields(cls) if field.default is MISSING]
    unknown = [field for field in values if field not in known]
    missing = [field for field in required if field not in values]
    if unknown or missing:
        raise ValueError(
            f"record of a {name} must have the fields {', '.join(known)}: another "
            "field would change what the release cost. Got unknown fields "
            f"{unknown}, and lacks {missing}."
        )
    values = {field: _from_plain(value) for field, value in values.items()}
    return cls(**values)


def _from_plain(value):
    """The inverse of `_to_plain`."""
    if isinstance(value, list):
        return tuple(map(event_from_dict, value))
    if isinstance(value, dict):
        return event_from_dict(value)
    return value
