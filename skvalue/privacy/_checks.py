"""Checks of privacy parameters, and the sentence each refusal says."""

import math
from numbers import Integral, Real

__all__ = ["check_count", "check_delta", "check_epsilon", "check_positive", "check_relation"]

RELATIONS = ("null", "add_remove", "replace")


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def check_epsilon(epsilon, name="epsilon"):
    """Return epsilon as a float, or refuse it."""
    if not _is_number(epsilon) or epsilon <= 0:
        raise ValueError(
            f"{name} must be a finite number above 0 (smaller is more private, 1 is a usual "
            f"start). Got {epsilon!r}."
        )
    return float(epsilon)


def check_delta(delta, name="delta"):
    """Return delta as a float, or refuse it."""
    if not _is_number(delta) or not 0 < delta < 1:
        raise ValueError(
            f"{name} must be strictly between 0 and 1, and well below one over the number of rows "
            f"(1e-5 is a usual start). Got {delta!r}."
        )
    return float(delta)


def check_positive(value, name):
    """Return a finite positive number as a float, or refuse it."""
    if not _is_number(value) or value <= 0:
        raise ValueError(f"{name} must be a finite number above 0. Got {value!r}.")
    return float(value)


def check_count(value, name):
    """Return a positive integer as an int, or refuse it."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1. Got {value!r}.")
    return int(value)


def check_relation(relation, name="relation"):
    """Return the neighbouring relation, or refuse it."""
    if relation not in RELATIONS:
        raise ValueError(f"{name} must be one of {', '.join(RELATIONS)}. Got {relation!r}.")
    return relation
