"""Events: frozen, checked, told apart, written and read again; and their
restatements."""

import dataclasses
import json
import pickle

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
    convert,
    event_from_dict,
    event_to_dict,
    get_delta,
    get_epsilon,
)

EVENTS = [
    GaussianEvent(2.0, 1.5, "null"),
    DiscreteGaussianEvent(3.0, contributions=4, step=2),
    LaplaceEvent(2.0, 1.0, "add_remove"),
    OpaqueEvent(0.5, event=LaplaceEvent(3.0)),
    OpaqueEvent(1.0, 1e-6, "null"),
    PoissonSampledEvent(GaussianEvent(2.0, 1.0, "add_remove"), 0.1),
    SelfComposedEvent(GaussianEvent(2.0, 1.0, "null"), 7),
    ComposedEvent((GaussianEvent(2.0, 1.0, "null"), LaplaceEvent(3.0, 1.0, "null"))),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_events_are_frozen_hashable_and_read_again(event):
    field = dataclasses.fields(event)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, field, 1.0)
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event
    assert pickle.loads(pickle.dumps(event)) == event
    assert hash(event) == hash(event_from_dict(event_to_dict(event)))


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("relation", ["null", "add_remove", "replace"])
def test_a_restatement_never_costs_less(event, relation):
    allowed = {
        "null": ("null", "replace"),
        "add_remove": ("add_remove", "null", "replace"),
        "replace": ("replace",),
    }[event.relation]
    if relation not in allowed:
        with pytest.raises(ValueError, match="relation must be one that"):
            convert(event, relation)
        return
    restated = convert(event, relation)
    assert restated.relation == relation
    assert get_delta(restated, 0.5) >= get_delta(event, 0.5)
    assert get_delta(event, 0.5, relation) == get_delta(restated, 0.5)


def test_events_under_replace_are_not_restated():
    for relation in ("null", "add_remove"):
        with pytest.raises(ValueError, match="'replace' implies"):
            convert(GaussianEvent(1.0, relation="replace"), relation)


def test_a_replacement_is_two_steps():
    assert convert(GaussianEvent(1.0, 3.0, "null"), "replace").sensitivity == 6.0
    assert convert(
        DiscreteGaussianEvent(1.0, 5, 2), "replace"
    ) == DiscreteGaussianEvent(1.0, 10, 2, "replace")
    group = convert(OpaqueEvent(1.0, 1e-6, "null"), "replace")
    assert group.epsilon == 2.0
    assert group.delta == pytest.approx((1 + 2.718281828) * 1e-6)


@pytest.mark.parametrize("cls", [GaussianEvent, DiscreteGaussianEvent, LaplaceEvent])
@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), "2", True])
def test_a_scale_that_is_no_positive_number_is_refused(cls, scale):
    with pytest.raises(ValueError, match="scale must be a finite number above 0"):
        cls(scale)


@pytest.mark.parametrize("cls", [GaussianEvent, DiscreteGaussianEvent, LaplaceEvent])
@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e308])
def test_noise_that_hides_nothing_or_all_is_refused(cls, scale):
    with pytest.raises(
        ValueError, match="scale must be between 1e-50 and 1e50 times the sens"
    ):
        cls(scale)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cls", [GaussianEvent, DiscreteGaussianEvent, LaplaceEvent])
@pytest.mark.parametrize(
    "scale", [1e-49, 1e-8, pytest.param(1e-4, marks=pytest.mark.slow), 1e12, 1e49]
)
def test_noise_of_any_size_has_a_cost_or_an_error_that_says_why(cls, scale):
    event = cls(scale, relation="null")
    assert 0 <= get_delta(event, 1.0) <= 1
    assert get_epsilon(event, 1e-5) >= 0
    ledger = Ledger(None, "rows", epsilon=3.0, delta=1e-5)
    ledger.charge(LaplaceEvent(3.0, relation="null"))
    if scale > 1:
        assert ledger.charge(event).number == 2
    else:
        message = (
            "the release must fit what is left|must have a privacy loss of at most 1e"
        )
        with pytest.raises(ValueError, match=message):
            ledger.charge(event)


GAUSSIAN = GaussianEvent(1.0, relation="null")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: DiscreteGaussianEvent(1.0, contributions=0),
            ValueError,
            "contributions must be",
        ),
        (lambda: OpaqueEvent(1.0, event="noise"), TypeError, "event must be"),
        (
            lambda: GaussianEvent(1.0, relation="zero_out"),
            ValueError,
            "relation must be",
        ),
        (lambda: OpaqueEvent(1.0, delta=1.0), ValueError, "delta must be"),
        (lambda: ComposedEvent(()), ValueError, "at least one event"),
        (
            lambda: ComposedEvent((GAUSSIAN, GaussianEvent(1.0))),
            ValueError,
            "same neighbouring",
        ),
        (lambda: SelfComposedEvent("GaussianEvent", 2), TypeError, "event must be"),
        (lambda: convert(object(), "replace"), TypeError, "event must be"),
        (
            lambda: event_from_dict({"type": "ExponentialEvent"}),
            ValueError,
            "event must be",
        ),
        (lambda: event_from_dict({"type": []}), ValueError, "event must be"),
        (lambda: event_from_dict([]), ValueError, "must be a dictionary"),
        (
            lambda: event_from_dict({"type": "LaplaceEvent", "scale": 1, "x": 2}),
            ValueError,
            r"Got unknown fields \['x'\], and lacks \[\]",
        ),
        (
            lambda: event_from_dict({"type": "LaplaceEvent"}),
            ValueError,
            r"lacks \['scale'\]",
        ),
        (
            lambda: event_from_dict(
                {"type": "SelfComposedEvent", "count": 2, "event": {"type": "No"}}
            ),
            ValueError,
            "event must be",
        ),
        (
            lambda: PoissonSampledEvent(convert(GAUSSIAN, "replace"), 0.1),
            ValueError,
            "presence",
        ),
        (
            lambda: PoissonSampledEvent(LaplaceEvent(1.0), 0.1),
            TypeError,
            "a GaussianEvent",
        ),
        (lambda: PoissonSampledEvent(GAUSSIAN, 1.5), ValueError, "probability must be"),
        (
            lambda: PoissonSampledEvent(GAUSSIAN, 0.5, "add_remove"),
            ValueError,
            "not be .add_rem",
        ),
    ],
)
def test_fields_out_of_range_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
