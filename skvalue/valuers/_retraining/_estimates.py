"""Confidence intervals for sampled values, and merging two fits."""

import copy
from dataclasses import replace

import numpy as np

from ...estimation import OrderDesign, bernstein_halfwidth, combine, t_halfwidth
from ...semivalues import size_weights
from ._plan import COUNTS, different

_UNIT_SCORES = (None, "accuracy", "balanced_accuracy", "roc_auc", "f1", "precision", "recall")


def halfwidths(fitted, level, method, utility_range, scoring):
    """Half the widths of intervals around the values of a fit."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1. Got {level}.")
    sampled = fitted.statistic
    run = sampled.run
    if method == "t":
        _, errors, freedom = run.result()
        return t_halfwidth(errors, freedom, level)
    if method != "bernstein":
        raise ValueError(f"method must be 't' or 'bernstein'. Got {method!r}.")
    if sampled.sampler == "exact":
        return np.zeros(run.n)
    if not isinstance(run.designs[0], OrderDesign):
        raise ValueError(
            "method='bernstein' needs independent replicates: sampler='permutation', "
            f"'antithetic', 'latin' or 'orthogonal'. Got {sampled.sampler!r}."
        )
    if utility_range is None:
        if scoring not in _UNIT_SCORES or not fitted.problem.n_classes:
            raise ValueError(
                "method='bernstein' needs utility_range, the lowest and highest possible utility, "
                f"with scoring={scoring!r}."
            )
        utility_range = 0.0, 1.0
    span = 2 * (utility_range[1] - utility_range[0])
    half, weight = np.zeros(run.n), 1 / len(run.designs)
    for design, rows in zip(run.designs, run.players):
        # Union bound: the intervals of all splits hold simultaneously.
        half[rows] += weight * bernstein_halfwidth(
            np.sqrt(design.variances()[0]),
            design.moments.count,
            span * design.weights.max(),
            1 - weight * (1 - level),
        )
    return half


def reweighted(run, semivalue):
    """Values and standard errors of another semivalue from the coalitions of a run.

    With a third number, the expected ratio of the errors to those of a fit of that semivalue with
    as many coalitions.
    """
    designs, *variances = zip(
        *(run.designs[i].reweighted(size_weights(semivalue, run.designs[i].n)) for i in run.valued)
    )
    values, errors, _ = combine(designs, [run.players[i] for i in run.valued], run.n)
    drawn, own = map(sum, variances)
    return values, errors, np.sqrt(drawn / own) if own > 0 else 1.0


def merged(ours, theirs):
    """The joint estimate of two fits of the same problem."""
    if what := different(ours.header["fingerprint"], theirs.header["fingerprint"]):
        raise ValueError(
            "merge needs a valuer of the same class, fitted on the same data with the same "
            f"parameters (all but random_state and stopping rules). Got another {what}."
        )
    if ours.sampler != theirs.sampler or ours.sampler == "exact":
        raise ValueError(
            "merge needs two estimates by the same sampler, neither of them exact. Got "
            f"{ours.sampler!r} and {theirs.sampler!r}."
        )
    seeds = ours.header["seeds"], theirs.header["seeds"]
    same = set(seeds[0].tolist()) & set(seeds[1].tolist())
    if same:
        raise ValueError(
            "merge needs other random numbers: fit with another random_state. Got the same "
            f"seed {same.pop()} in both."
        )
    run = copy.deepcopy(ours.run)
    for design, more in zip(run.designs, theirs.run.designs):
        design.merge(more)
    counts = {name: ours.header[name] + theirs.header[name] for name in COUNTS}
    header = {**ours.header, "seeds": np.concatenate(seeds), **counts}
    return replace(ours, run=run, header=header)
