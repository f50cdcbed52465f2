"""Means over validation points, for methods whose utility is one."""

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from ._record import Result


@dataclass(frozen=True, eq=False)
class Part:
    """What one task found at some of the validation points of one split, in their order."""

    split: int
    values: np.ndarray  # sums over the points of weight times value, one entry a player
    utility: np.ndarray  # utility of all players at each point
    statistic: object = None


def mean_over_splits(problem, parts, empty_utility):
    """Mean over splits of the weighted mean over points, of as many as there are parts.

    ``empty_utility`` is a number, or a function of the points of a split. ``statistic`` of the
    result is a list of those of the parts of each split. Returns None if there is no part.
    """
    row_values = np.zeros(len(problem.X))
    splits, statistics, utility, empty = [], [], 0.0, 0.0
    for number, some in groupby(parts, key=lambda part: part.split):
        split, total, utilities, kept = problem.splits[number], 0.0, [], []
        for part in some:
            total += part.values
            utilities.append(part.utility)
            kept.append(part.statistic)
            del part  # its values are large, and the next are being made
        utilities = np.concatenate(utilities)
        points = split.points.first(len(utilities))
        # Weights sum to one, except over the points of a fit that was stopped.
        whole = len(points) == len(split.points)
        reached = 1.0 if whole else split.points.weights[: len(points)].sum() or 1.0
        row_values[split.players] += total / reached
        utility += utilities @ points.weights
        empty += empty_utility(points) if callable(empty_utility) else empty_utility
        splits.append(replace(split, points=points))
        statistics.append(kept)
    if not splits:
        return None
    weights = problem.sample_weight_val
    done = len(splits[0].points)
    return Result(
        values=problem.sum_by_group(row_values / len(splits)),
        utility=float(utility / len(splits)),
        empty_utility=float(empty / len(splits)),
        problem=replace(
            problem,
            splits=tuple(splits),
            sample_weight_val=None if weights is None else weights[:done],
        ),
        statistic=statistics,
    )
