"""Means over validation points, for methods whose utility is such a mean."""

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from ._record import Result


@dataclass(frozen=True, eq=False)
class Part:
    """Result of one task: some of the validation points of one split, in their order."""

    split: int
    values: np.ndarray  # sum over the points of weight times value, one entry per player
    utility: np.ndarray  # utility of all players at each point
    statistic: object = None
    curator: dict | None = None  # see `Result`


def mean_over_splits(problem, parts, empty_utility):
    """Mean over splits of weighted means over points; None if there is no part.

    Splits and points without a part are left out. ``empty_utility``: a number, or a function of
    a split. ``statistic`` of the result has one list per split, one entry per part.
    """
    row_values = np.zeros(len(problem.y))
    splits, statistics, utility, empty = [], [], 0.0, 0.0
    for number, some in groupby(parts, key=lambda part: part.split):
        split, total, utilities, kept = problem.splits[number], 0.0, [], []
        for part in some:
            total += part.values
            utilities.append(part.utility)
            kept.append(part.statistic)
            del part  # its values are large, and those of the next part are being computed
        utilities = np.concatenate(utilities)
        points = split.points.first(len(utilities))
        # Weights sum to one, unless the fit was stopped.
        whole = len(points) == len(split.points)
        reached = 1.0 if whole else split.points.weights[: len(points)].sum() or 1.0
        row_values[split.players] += total / reached
        utility += utilities @ points.weights
        splits.append(replace(split, points=points))
        empty += empty_utility(splits[-1]) if callable(empty_utility) else empty_utility
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
