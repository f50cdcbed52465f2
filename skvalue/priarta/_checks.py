"""Checks of fields that come from somebody else; each names the field, the rule and the value."""

from numbers import Integral, Real

__all__ = ["choice", "integer", "number", "refuse"]


def refuse(name, rule, value):
    """Raise the ValueError of a field that is not as it must be."""
    shown = repr(value)
    raise ValueError(f"{name} must be {rule}. Got {shown if len(shown) < 80 else shown[:77]}")


def integer(value, name, lowest, highest):
    """A whole number within bounds, as an int."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not lowest <= value <= highest:
        refuse(name, f"an integer from {lowest} to {highest}", value)
    return int(value)


def number(value, name, lowest, highest, strict=True):
    """A number between bounds, as a float; `strict` leaves the bounds out."""
    good = isinstance(value, Real) and not isinstance(value, bool) and lowest <= value <= highest
    if not good or (strict and value in (lowest, highest)):
        refuse(name, f"a number between {lowest:g} and {highest:g}", value)
    return float(value)


def choice(value, name, among):
    """Refuse what is none of some words."""
    if not isinstance(value, str) or value not in among:
        refuse(name, f"one of {', '.join(among)}", value)
