"""Checks of the fields of plans and summaries, which may come from an untrusted file."""

import math
import re

import numpy as np

from ..._utils.records import choice, integer, number, refuse
from ...privacy import get_epsilon

MOST_DIMENSIONS = 4096
_MOST_SAMPLES = 10**12
_MECHANISMS = ("central", "local", "none")
_RELATIONS = ("null", "add_remove", "replace")
_LEAST_NOISE = 1e-3  # with less, epsilon is too large to compute


def checked_plan(plan):
    """Check all fields of a plan; returns those that are converted to another type."""
    if not isinstance(plan.model, str) or not re.fullmatch("[0-9a-f]{64}", plan.model):
        refuse("model", "a fingerprint of 64 hexadecimal digits", plan.model)
    for name, among in (("mechanism", _MECHANISMS), ("relation", _RELATIONS)):
        choice(getattr(plan, name), name, among)
    for name in ("secret_subset", "seeded"):
        if not isinstance(getattr(plan, name), bool):
            refuse(name, "a bool", getattr(plan, name))
    noisy, fixed = plan.mechanism != "none", {}
    fixed["n_samples"] = integer(plan.n_samples, "n_samples", 2, _MOST_SAMPLES)
    if plan.n_rows is not None:
        fixed["n_rows"] = integer(plan.n_rows, "n_rows", plan.n_samples, _MOST_SAMPLES)
    if plan.max_norm is not None:
        fixed["max_norm"] = number(plan.max_norm, "max_norm", 1e-50, 1e50)
    elif noisy:
        refuse("max_norm", "a number where there is noise", None)
    fixed["mean_weight"] = number(plan.mean_weight, "mean_weight", 1e-3, 1e3, strict=False)
    lowest, highest = (_LEAST_NOISE, 1e50) if noisy else (0.0, 0.0)
    fixed["noise_scale"] = number(plan.noise_scale, "noise_scale", lowest, highest, strict=False)
    fixed |= _checked_guarantee(plan) if noisy else _no_guarantee(plan)
    fixed["centre"] = _vector(plan, "centre", None)
    return fixed


def _no_guarantee(plan):
    for name in ("epsilon", "delta"):
        if getattr(plan, name) is not None:
            refuse(name, "None for mechanism='none'", getattr(plan, name))
    if plan.secret_subset:
        refuse("secret_subset", "False for mechanism='none'", True)
    return {}


def _checked_guarantee(plan):
    epsilon, delta = number(plan.epsilon, "epsilon", 0.0, 1e6), number(plan.delta, "delta", 0, 1.0)
    if plan.secret_subset and (plan.n_rows is None or plan.relation != "replace"):
        refuse("secret_subset", "False unless n_rows is given and relation='replace'", True)
    if plan.relation == "add_remove" and (plan.mechanism, plan.n_rows) != ("central", None):
        refuse("relation", "null or replace for subsets and for mechanism='local'", "add_remove")
    if get_epsilon(plan.event, delta) > epsilon * (1 + 1e-9) + 1e-12:
        refuse("epsilon", "no smaller than the noise allows at this delta", plan.epsilon)
    return {"epsilon": epsilon, "delta": delta}


def checked_moments(summary):
    """Mean and moment of a summary as checked arrays; its other fields must be checked before."""
    d = summary.n_dimensions
    mean = _vector(summary, "mean", d)
    moment = _vector(summary, "moment", d * (d + 1) // 2)
    radius = math.inf if summary.max_norm is None else summary.max_norm
    for name, array, reach in (
        ("mean", mean, radius + 40 * summary.noise.mean),
        ("moment", moment, radius**2 + summary.row_variance + 40 * summary.noise.moment),
    ):
        largest = np.abs(array).max()
        if not largest <= reach * (1 + 1e-9):
            allowed = f"what the radius, {summary.n_samples} rows and the noise allow"
            refuse(name, f"within {reach:g}, {allowed}", float(largest))
    return {"mean": mean, "moment": moment}


def check_exact(mean, second_moment):
    """Raise a ValueError for exact moments that no rows can have."""
    least = np.linalg.eigvalsh(second_moment - np.outer(mean, mean)).min()
    if least < -1e-9 * max(np.trace(second_moment), 1e-300):
        refuse("moment", "at least mean mean', where there is no noise", "a smaller one")


def _vector(record, name, size):
    """A field as a read-only array of finite numbers; `size` None accepts any length."""
    given = getattr(record, name)
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        refuse(name, "a sequence of numbers", given)
    size = array.size if size is None else size
    most = MOST_DIMENSIONS * (MOST_DIMENSIONS + 1) // 2 if name == "moment" else MOST_DIMENSIONS
    if array.ndim != 1 or not 1 <= size <= most or len(array) != size:
        refuse(name, f"a sequence of {size} numbers, for 1 to 4096 dimensions", array.shape)
    if not np.abs(array).max() <= 1e100:
        refuse(name, "of finite numbers up to 1e100", np.abs(array).max())
    array.setflags(write=False)
    return array
