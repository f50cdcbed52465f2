"""Readers of untrusted files, JSON and arrays, with checks of every field.

Sizes are checked first, and only JSON and plain numbers are read. Invalid input raises
a ValueError that names the field, the rule and the value (`refuse`).
"""

import base64
import binascii
import json
import os
import re
from numbers import Integral, Real

import numpy as np

from ..exceptions import ParameterError

_MAX_NAME = 64  # characters of the name of a party


def refuse(name, rule, value):
    """Raise the ParameterError for a field with an invalid value."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    if len(text) >= 80:
        text = text[:77]
    raise ParameterError(name, f"must be {rule}. Got {text}")


def integer(value, name, lowest, highest):
    """An integer within bounds (inclusive), as an int."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or not lowest <= value <= highest:
        refuse(name, f"an integer from {lowest} to {highest}", value)
    return int(value)


def number(value, name, lowest, highest, strict=True):
    """A number between bounds, as a float; `strict` excludes the bounds."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    is_inside = is_number and lowest <= value <= highest
    is_bound = is_inside and value in (lowest, highest)
    if not is_inside or (strict and is_bound):
        between = "strictly between" if strict else "between"
        refuse(name, f"a number {between} {lowest:g} and {highest:g}", value)
    return float(value)


def choice(value, name, among):
    """One of the given strings."""
    if not isinstance(value, str) or value not in among:
        refuse(name, f"one of {', '.join(among)}", value)
    return value


def party_name(value, name):
    """The name of a party or a training, of which the name of a file can be made."""
    is_text = isinstance(value, str) and 0 < len(value) <= _MAX_NAME
    if not is_text or not re.fullmatch(r"[\w\-][\w\-. ]*", value):
        refuse(
            name,
            f"a name of 1 to {_MAX_NAME} letters, digits, spaces, '.', '-' and '_'",
            value,
        )
    return value


def fingerprint(value, name):
    """A hash of 64 hexadecimal digits."""
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
        refuse(name, "a fingerprint of 64 hexadecimal digits", value)
    return value


def flag(value, name):
    """True or False."""
    if not isinstance(value, bool):
        refuse(name, "a bool", value)
    return value


def refuse_no_file(path, name):
    """Refuse folders, pipes and devices: reading them could wait for ever.

    Missing files pass.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise ParameterError(name, "must be a file. Got a folder, a pipe or a device.")


def read_text(path, limit, name):
    """The text of an ASCII file of at most `limit` bytes."""
    refuse_no_file(path, name)
    with open(path, "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ParameterError(name, f"must have at most {limit} bytes. Got more.")
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        raise ParameterError(name, "must be ASCII text. Got other bytes.") from None


def read_record(text, label, version, names, limit, name="text"):
    """The dict of exactly these fields from JSON text of a format and a version.

    Refuses texts longer than `limit`, repeated fields and non-finite numbers. In
    messages `name` stands for the text, and the part of `label` after the last dot for
    the class of the record.
    """
    if not isinstance(text, str) or len(text) > limit:
        refuse(name, f"a string of at most {limit} characters", type(text))

    def unique(pairs):
        record = dict(pairs)
        if len(record) < len(pairs):
            raise ParameterError(name, "must name every field once. Got a field twice.")
        return record

    def no_constant(constant):
        raise ParameterError(name, f"must hold finite numbers. Got {constant}.")

    try:
        record = json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ParameterError(
            name, f"must be JSON, as skvalue wrote it. Got {error}."
        ) from None
    if not isinstance(record, dict):
        refuse(name, "a JSON object, as skvalue wrote it", record)
    stated = record.pop("format", None), record.pop("version", None)
    # 1.0 and True equal 1.
    if stated != (label, version) or isinstance(stated[1], bool | float):
        refuse(name, f"of format {label!r}, version {version}", stated)
    if set(record) != set(names):
        wrong = sorted(set(record) ^ set(names))
        class_name = label.rpartition(".")[2]
        raise ParameterError(
            name, f"must have exactly the fields of a {class_name}. Got {wrong} wrong."
        )
    return record


def named_fields(record, name, /, **checks):
    """Checked values of a dict of exactly the fields in `checks`, in their order.

    A check takes a value and its name, and returns the value to use or refuses it.
    """
    rule = f"a record of the fields {', '.join(sorted(checks))}"
    if not isinstance(record, dict):
        refuse(name, rule, type(record).__name__)
    if set(record) != set(checks):
        refuse(name, rule, sorted(record))
    return [
        check(record[field], f"{name}[{field!r}]") for field, check in checks.items()
    ]


def checked_array(array, name, shape, dtype=np.float64):
    """A finite array of a dtype and shape (None: any length above 0)."""
    array = np.asarray(array)
    if not _has_shape(array, shape) or array.dtype != dtype:
        sides = ", ".join("n" if side is None else str(side) for side in shape)
        raise ParameterError(
            name,
            f"must be a {np.dtype(dtype)} array of shape ({sides}). Got "
            f"{array.dtype} of shape {array.shape}.",
        )
    if not np.isfinite(array).all():
        raise ParameterError(name, "must hold finite numbers. Got NaN or infinity.")
    return array


def _has_shape(array, shape):
    """Whether an array has a shape, in which None is any length above 0."""
    if array.ndim != len(shape):
        return False
    for side, expected in zip(array.shape, shape):
        if side == 0 and expected is None:
            return False
        if expected is not None and side != expected:
            return False
    return True


def named_arrays(arrays, shapes, dtype=np.float64):
    """Arrays of exactly these names and shapes; see `checked_array`."""
    wrong = sorted(set(arrays) ^ set(shapes))
    if wrong:
        problem = "missing" if wrong[0] in shapes else "not among them"
        raise ValueError(
            f"arrays must hold exactly {len(shapes)} names. Got {len(arrays)}; "
            f"{wrong[0]!r} is {problem}."
        )
    return {
        name: checked_array(arrays[name], name, shape, dtype)
        for name, shape in shapes.items()
    }


def to_base64(array):
    """An array as base64 text of little-endian float64."""
    return base64.b64encode(np.asarray(array).astype("<f8").tobytes()).decode()


def from_base64(text, name):
    """The numbers of a text written by `to_base64`."""
    if not isinstance(text, str):
        refuse(name, "base64 text", text)
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        refuse(name, "base64 text", text)
    if len(content) % 8:
        refuse(name, "base64 of 8 bytes per number", f"{len(content)} bytes")
    return np.frombuffer(content, dtype="<f8").astype(np.float64)
