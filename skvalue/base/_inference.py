"""Standard errors and tests of values, over the sampling of the validation points."""

import numpy as np
from scipy.stats import false_discovery_control, t
from sklearn.utils import Bunch

from .._utils.warned import warn
from ..exceptions import FewValidationPointsWarning, ParameterError

FEW_POINTS = 500  # below this the t approximation of a skewed mean is rough


def standard_error(values, first, second, weights):
    """Standard error of means ``sum_v w_v x_v``, from two sums.

    These are ``first = sum_v w_v^2 x_v`` and ``second = sum_v w_v^2 x_v^2``. Returns
    ``sqrt(m / (m - 1) sum_v w_v^2 (x_v - value)^2)`` with m = 1 / sum w^2 effective
    points, where weights sum to one: the usual standard error if they are equal. NaN
    for a single point.

    >>> x, w = np.array([1.0, 3.0, 5.0]), np.full(3, 1 / 3)
    >>> round(float(standard_error(w @ x, w**2 @ x, w**2 @ x**2, w)), 4)  # 2 / sqrt(3)
    1.1547
    """
    squares = (weights**2).sum()
    if squares >= 1:
        return np.full(np.shape(values), np.nan)
    variance = second - 2 * values * first + values**2 * squares
    return np.sqrt(np.maximum(variance, 0) / (1 - squares))


def validation_error(fitted, point_moments):
    """Standard errors of the values over the sampling of the validation points."""
    if "error" not in fitted.cache:
        first, second = point_moments(fitted)
        weights = fitted.problem.splits[0].points.weights
        fitted.cache["error"] = standard_error(fitted.values, first, second, weights)
    return fitted.cache["error"]


def harmful(fitted, point_moments, fdr):
    """Mask of the values that are significantly below zero: one-sided t tests."""
    if not 0 < fdr < 1:
        raise ParameterError("fdr", f"must be between 0 and 1. Got {fdr}.")
    points = fitted.problem.splits[0].points
    if len(points) < FEW_POINTS:
        warn(
            "harmful is asymptotic in the number of validation points: "
            f"{len(points)} are few, {FEW_POINTS} or more are recommended.",
            FewValidationPointsWarning,
        )
    values = fitted.values
    errors = validation_error(fitted, point_moments)
    n_effective = 1 / (points.weights**2).sum()
    if n_effective <= 1:
        return np.zeros(len(values), dtype=bool)

    # A row with the same value at each point has the standard error 0: only its sign
    # counts.
    by_sign = np.where(values < 0, -np.inf, np.inf)
    ratios = np.divide(values, errors, out=by_sign, where=errors > 0)
    return false_discovery_control(t.cdf(ratios, n_effective - 1)) <= fdr


def contributions(fitted, point_values, i):
    """Contribution of each validation point to the value of a row, or of a group."""
    problem = fitted.problem
    i = problem.position(i, len(fitted.values))
    if problem.groups is None:
        members = np.array([i])
    else:
        members = np.flatnonzero(problem.groups == i)
    if problem.has_validation_set:
        n_points = len(problem.splits[0].points)
    else:
        n_points = len(problem.y)

    totals = np.zeros(n_points)
    for number, split in enumerate(problem.splits):
        # Their positions among the players of the split.
        players = members
        if not isinstance(split.players, slice):
            players = np.flatnonzero(np.isin(split.players, members))
        if len(players):
            values = point_values(fitted, number, players)
            weighted = split.points.weights * values / len(problem.splits)
            np.add.at(totals, split.points.index, weighted)

    order = np.argsort(totals, kind="stable")
    return Bunch(
        contributions=totals,
        supporters=order[totals[order] > 0][::-1],
        opponents=order[totals[order] < 0],
    )
