"""How sure a value is, given that validation points are a sample."""

import warnings

import numpy as np
from scipy.stats import false_discovery_control, t
from sklearn.utils import Bunch

from ..exceptions import FewValidationPointsWarning

FEW_POINTS = 500  # below this the t approximation of a skewed mean is rough


def standard_error(values, first, second, weights):
    """Standard error of weighted means over independent validation points.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Means, ``sum_v w_v x_v`` with weights that sum to one.
    first, second : ndarrays of shape (n,)
        ``sum_v w_v^2 x_v`` and ``sum_v w_v^2 x_v^2``.
    weights : ndarray of shape (n_validation,)
        The weights.

    Returns
    -------
    error : ndarray of shape (n,)
        ``sqrt(m / (m - 1) sum_v w_v^2 (x_v - value)^2)`` with m = 1 / sum w^2 effective points;
        with equal weights the usual standard error of a mean. NaN for a single point.

    Examples
    --------
    >>> x, w = np.array([1.0, 3.0, 5.0]), np.full(3, 1 / 3)
    >>> round(float(standard_error(w @ x, w**2 @ x, w**2 @ x**2, w)), 4)  # 2 / sqrt(3)
    1.1547
    """
    squares = (weights**2).sum()
    if squares >= 1:
        return np.full(np.shape(values), np.nan)
    spread = second - 2 * values * first + values**2 * squares
    return np.sqrt(np.maximum(spread, 0) / (1 - squares))


def harmful_rows(values, error, weights, fdr):
    """Rows with an expected value below zero, at a false discovery rate.

    Parameters
    ----------
    values, error : ndarrays of shape (n,)
        Values and their standard errors.
    weights : ndarray of shape (n_validation,)
        Weights of the validation points, which sum to one.
    fdr : float
        False discovery rate (Benjamini and Hochberg 1995).

    Returns
    -------
    mask : ndarray of bool of shape (n,)
        The rows found.
    """
    points = 1 / (weights**2).sum()
    if points <= 1:
        return np.zeros(len(values), dtype=bool)
    # A row whose value is the same at every point has no error: only its sign counts.
    ratio = np.divide(values, error, out=np.where(values < 0, -np.inf, np.inf), where=error > 0)
    return false_discovery_control(t.cdf(ratio, points - 1)) <= fdr


def validation_error(fitted, point_moments):
    """Standard errors of the values over the draw of the validation points."""
    if "error" not in fitted.cache:
        first, second = point_moments(fitted)
        weights = fitted.problem.splits[0].points.weights
        fitted.cache["error"] = standard_error(fitted.result.values, first, second, weights)
    return fitted.cache["error"]


def harmful(fitted, point_moments, fdr):
    """Mask of the values that are significantly below zero."""
    if not 0 < fdr < 1:
        raise ValueError(f"fdr must be between 0 and 1. Got {fdr}.")
    points = fitted.problem.splits[0].points
    if len(points) < FEW_POINTS:
        warnings.warn(
            f"harmful is asymptotic in the number of validation points: {len(points)} are few, "
            f"{FEW_POINTS} or more are advised.",
            FewValidationPointsWarning,
            stacklevel=3,
        )
    error = validation_error(fitted, point_moments)
    return harmful_rows(fitted.result.values, error, points.weights, fdr)


def contributions(fitted, point_values, i):
    """What each validation point adds to the value of row, or group, i."""
    problem, n = fitted.problem, len(fitted.result.values)
    if not -n <= i < n:
        raise ValueError(f"i must be between 0 and {n - 1}. Got {i}.")
    members = (
        np.array([i % n]) if problem.groups is None else np.flatnonzero(problem.groups == i % n)
    )
    n_points = len(problem.splits[0].points) if problem.has_validation_set else len(problem.X)
    added = np.zeros(n_points)
    for number, split in enumerate(problem.splits):
        players = members
        if not isinstance(split.players, slice):
            players = np.flatnonzero(np.isin(split.players, members))
        if len(players):
            values = point_values(fitted, number, players)
            part = split.points.weights * values / len(problem.splits)
            np.add.at(added, split.points.index, part)
    order = np.argsort(added, kind="stable")
    return Bunch(
        contributions=added,
        supporters=order[added[order] > 0][::-1],
        opponents=order[added[order] < 0],
    )
