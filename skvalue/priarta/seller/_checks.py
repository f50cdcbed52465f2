"""Checks of the fields of a summary, which may come from an untrusted file."""

import re

import numpy as np

from ..._utils.checks import RELATIONS
from ..._utils.untrusted import choice, flag, integer, number, refuse
from ...privacy import get_epsilon
from .mechanism import symmetric

MOST_DIMENSIONS = 4096
_MOST_SAMPLES = 10**12
_LEAST_NOISE = 1e-3  # with less, epsilon is too large to compute


def checked_facts(summary):
    """Check all fields of a summary but the moments; returns those that are
    converted."""
    if not isinstance(summary.model, str) or not re.fullmatch(
        "[0-9a-f]{64}", summary.model
    ):
        refuse("model", "a fingerprint of 64 hexadecimal digits", summary.model)
    choice(summary.relation, "relation", RELATIONS)
    flag(summary.seeded, "seeded")
    noisy, fixed = summary.epsilon is not None, {}
    fixed["n_samples"] = integer(summary.n_samples, "n_samples", 2, _MOST_SAMPLES)
    fixed["max_norm"] = number(summary.max_norm, "max_norm", 1e-50, 1e50, strict=False)
    fixed["mean_weight"] = number(
        summary.mean_weight, "mean_weight", 1e-3, 1e3, strict=False
    )
    lowest, highest = (_LEAST_NOISE, 1e50) if noisy else (0.0, 0.0)
    fixed["noise_scale"] = number(
        summary.noise_scale, "noise_scale", lowest, highest, strict=False
    )
    if noisy:
        fixed["epsilon"] = number(summary.epsilon, "epsilon", 0.0, 1e6)
        fixed["delta"] = number(summary.delta, "delta", 0, 1.0)
        if (
            get_epsilon(summary.event, fixed["delta"])
            > fixed["epsilon"] * (1 + 1e-9) + 1e-12
        ):
            refuse(
                "epsilon",
                "no smaller than the noise allows at this delta",
                summary.epsilon,
            )
    elif summary.delta is not None:
        refuse("delta", "None without epsilon", summary.delta)
    fixed["centre"] = _vector(summary, "centre", None)
    return fixed


def checked_moments(summary):
    """Mean and moment of a summary as checked arrays; its other fields must be checked
    before."""
    d, noise, radius = summary.n_dimensions, summary.noise, summary.max_norm
    checked = {}
    for name, size, reach in (
        ("mean", d, radius + 40 * noise.mean),
        ("moment", d * (d + 1) // 2, radius**2 + 40 * noise.moment),
    ):
        checked[name] = _vector(summary, name, size)
        largest = np.abs(checked[name]).max()
        if not largest <= reach * (1 + 1e-9):
            allowed = f"what the radius, {summary.n_samples} rows and the noise allow"
            refuse(name, f"within {reach:g}, {allowed}", float(largest))
    if summary.epsilon is None:
        _check_exact(checked["mean"], checked["moment"])
    return checked


def _check_exact(mean, moment):
    """Raise a ValueError for exact moments that no rows can have."""
    second = symmetric(moment, len(mean))
    least = np.linalg.eigvalsh(second - np.outer(mean, mean)).min()
    if least < -1e-9 * max(np.trace(second), 1e-300):
        refuse(
            "moment", "at least mean mean', where there is no noise", "a smaller one"
        )


def _vector(record, name, size):
    """A field as a read-only array of finite numbers; `size` None accepts any
    length."""
    given = getattr(record, name)
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        refuse(name, "a sequence of numbers", given)
    size = array.size if size is None else size
    most = (
        MOST_DIMENSIONS * (MOST_DIMENSIONS + 1) // 2
        if name == "moment"
        else MOST_DIMENSIONS
    )
    if array.ndim != 1 or not 1 <= size <= most or len(array) != size:
        refuse(
            name, f"a sequence of {size} numbers, for 1 to 4096 dimensions", array.shape
        )
    if not np.abs(array).max() <= 1e100:
        refuse(name, "of finite numbers up to 1e100", np.abs(array).max())
    array.setflags(write=False)
    return array
