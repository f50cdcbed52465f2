"""Records that come from somebody else: text that is read, and checks of its fields.

No byte of them is trusted: JSON alone, sizes first. Messages name field, rule and value.
"""

import json
from numbers import Integral, Real

__all__ = ["choice", "integer", "number", "read_record", "refuse"]


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


def read_record(text, label, version, names, limit):
    """Read a record that was written as JSON.

    Parameters
    ----------
    text : str
        The text, a JSON object.
    label : str
        Its field "format": what the record is, with the class it is made into behind the last dot.
    version : int
        Its field "version".
    names : set of str
        All other fields.
    limit : int
        Characters at most.

    Returns
    -------
    record : dict
        The fields named.

    Raises
    ------
    ValueError
        If the text is no JSON, too long, of another format, or has missing, unknown or repeated
        fields or numbers that are not finite.
    """
    if not isinstance(text, str) or len(text) > limit:
        refuse("text", f"a string of at most {limit} characters", type(text))
    try:
        record = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"text must be JSON, as to_json wrote it. Got {error}.") from None
    if not isinstance(record, dict):
        refuse("text", "a JSON object, as to_json wrote it", record)
    if (record.pop("format", None), record.pop("version", None)) != (label, version):
        refuse("text", f"of format {label!r}, version {version}", text)
    if set(record) != set(names):
        wrong = sorted(set(record) ^ set(names))
        made = label.rpartition(".")[2]
        raise ValueError(f"text must have exactly the fields of a {made}. Got {wrong} wrong.")
    return record


def _unique(pairs):
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("text must name every field once. Got a field twice.")
    return record


def _no_constant(name):
    raise ValueError(f"text must hold finite numbers. Got {name}.")
