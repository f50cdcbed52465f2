"""Checks of the fields of a summary, which may come from an untrusted file."""

import re

import numpy as np

from ..._utils.checks import RELATIONS
from ..._utils.untrusted import choice, flag, integer, number, refuse
from ...privacy import get_epsilon
from .mechanism import MAX_EPSILON, MIN_NOISE, N_RADIUS_COUNTS, symmetric

MAX_DIMENSIONS = 4096
_MAX_SAMPLES = 10**12


def checked_parameters(summary):
    """All fields of a summary that are converted, but for its moments, by name."""
    is_fingerprint = isinstance(summary.model, str) and re.fullmatch(
        "[0-9a-f]{64}", summary.model
    )
    if not is_fingerprint:
        refuse("model", "a fingerprint of 64 hexadecimal digits", summary.model)
    choice(summary.relation, "relation", RELATIONS)
    flag(summary.seeded, "seeded")
    return {
        "n_samples": integer(summary.n_samples, "n_samples", 2, _MAX_SAMPLES),
        **_checked_radius(summary),
        "mean_weight": _number_within(summary, "mean_weight", 1e-3, 1e3),
        **_checked_guarantee(summary),
        "centre": _checked_vector(summary, "centre"),
    }


def _checked_radius(summary):
    """The radius and how it was chosen, which must agree with whether there is noise.

    A radius of a seller is up to 100 times farther off than those of buyers, from 1e-50
    to 1e50.
    """
    n_counts = integer(summary.n_radius_counts, "n_radius_counts", 0, N_RADIUS_COUNTS)
    if n_counts and (summary.epsilon is None or n_counts != N_RADIUS_COUNTS):
        refuse(
            "n_radius_counts",
            f"0, or {N_RADIUS_COUNTS} where there is noise",
            summary.n_radius_counts,
        )
    if summary.epsilon is not None:
        radius = _number_within(summary, "max_norm", 1e-52, 1e52)
        return {"max_norm": radius, "n_radius_counts": n_counts}
    if summary.max_norm is not None:
        refuse("max_norm", "None without epsilon", summary.max_norm)
    return {"n_radius_counts": n_counts}


def _checked_guarantee(summary):
    """The noise and the parameters of the guarantee, which must agree."""
    if summary.epsilon is None:
        noise_scale = _number_within(summary, "noise_scale", 0.0, 0.0)
        if summary.delta is not None:
            refuse("delta", "None without epsilon", summary.delta)
        return {"noise_scale": noise_scale}

    noise_scale = _number_within(summary, "noise_scale", MIN_NOISE, 1e50)
    epsilon = number(summary.epsilon, "epsilon", 0.0, MAX_EPSILON)
    delta = number(summary.delta, "delta", 0, 1.0)
    if get_epsilon(summary.event, delta) > epsilon * (1 + 1e-9) + 1e-12:
        refuse(
            "epsilon",
            "no smaller than the noise allows at this delta",
            summary.epsilon,
        )
    return {"noise_scale": noise_scale, "epsilon": epsilon, "delta": delta}


def _number_within(summary, name, lowest, highest):
    return number(getattr(summary, name), name, lowest, highest, strict=False)


def checked_moments(summary):
    """Mean and moment of a summary as checked arrays, by name.

    The other fields must be checked before, since they limit the moments.
    """
    d = summary.n_dimensions
    noise = summary.noise
    radius = summary.max_norm
    mean = _checked_vector(summary, "mean", size=d)
    moment = _checked_vector(summary, "moment", size=d * (d + 1) // 2)
    if summary.epsilon is None:
        _check_exact_moments(mean, moment)
    else:
        _check_limit(summary, "mean", mean, radius + 40 * noise.mean)
        _check_limit(summary, "moment", moment, radius**2 + 40 * noise.moment)
    return {"mean": mean, "moment": moment}


def _check_limit(summary, name, array, limit):
    """Refuse entries that no rows within the radius, and noise, could give."""
    largest = np.abs(array).max()
    if not largest <= limit * (1 + 1e-9):
        refuse(
            name,
            f"within {limit:g}, what the radius, {summary.n_samples} rows and the "
            "noise allow",
            float(largest),
        )


def _check_exact_moments(mean, moment):
    """Refuse exact moments that no rows can have."""
    second = symmetric(moment, len(mean))
    smallest = np.linalg.eigvalsh(second - np.outer(mean, mean)).min()
    if smallest < -1e-9 * max(np.trace(second), 1e-300):
        refuse(
            "moment", "at least mean mean', where there is no noise", "a smaller one"
        )


def _checked_vector(summary, name, size=None):
    """A field as a read-only array of finite numbers, of any length for size None."""
    entries = getattr(summary, name)
    try:
        array = np.array(entries, dtype=np.float64)
    except (TypeError, ValueError):
        refuse(name, "a sequence of numbers", entries)
    if size is None:
        size = array.size
    max_size = MAX_DIMENSIONS
    if name == "moment":
        max_size = MAX_DIMENSIONS * (MAX_DIMENSIONS + 1) // 2
    if array.ndim != 1 or not 1 <= size <= max_size or len(array) != size:
        refuse(
            name,
            f"a sequence of {size} numbers, for 1 to {MAX_DIMENSIONS} dimensions",
            array.shape,
        )
    largest = np.abs(array).max()
    if not largest <= 1e110:
        refuse(name, "of finite numbers up to 1e110", largest)
    array.setflags(write=False)
    return array
