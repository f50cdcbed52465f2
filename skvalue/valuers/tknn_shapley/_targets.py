"""The regression game of Threshold-KNN-Shapley: values from sums of the targets in a
ball."""

from typing import NamedTuple

import numpy as np

from ...semivalues import size_weights


def _size_means(sizes, semivalue):
    """P(j = 0), and means of four functions of the number j of other rows in a
    coalition.

    Columns for balls of ``sizes`` rows: ``1/(j+1)^2``, ``j/(j+1)^2``, ``g = j (1/j^2 -
    1/(j+1)^2)`` and ``(j - 1) g``, which count 0 for j = 0.
    """
    largest = int(sizes.max(initial=1))
    j = np.arange(largest, dtype=float)
    gain = (2 * j + 1) / (np.maximum(j, 1) * (j + 1) ** 2)
    terms = np.stack([1 / (j + 1) ** 2, j / (j + 1) ** 2, gain, (j - 1) * gain])
    terms[:, 0] = 0.0
    if semivalue == "shapley":  # all sizes are equally likely
        return 1.0 / sizes, np.cumsum(terms, axis=1)[:, sizes - 1] / sizes
    alone, means = np.empty(len(sizes)), np.empty((4, len(sizes)))
    for size in np.unique(sizes):
        weights, here = size_weights(semivalue, int(size)), sizes == size
        alone[here] = weights[0]
        means[:, here] = (terms[:, :size] @ weights)[:, None]
    return alone, means


def target_values(counts, sums, squares, targets, semivalue="shapley", joins=False):
    """Value of a neighbour of a validation point as a polynomial in its target.

    The utility of a coalition is minus the squared error of the mean target of its rows
    in the ball; without any, the prediction is 0 (targets are relative to a prior
    prediction). To a coalition with j of the c - 1 other neighbours, whose targets
    relative to the point's sum to A, a neighbour with relative target a adds

        ``e^2 - a^2`` for j = 0,   ``A^2 (1/j^2 - 1/(j+1)^2) - 2 a A/(j+1)^2 - a^2/(j+1)^2``

    for j >= 1, where e is the prior relative to the point's target. On average over the
    choice of these j, ``A = j s_1/(c-1)`` and ``A^2 = j s_2/(c-1) + j (j-1) (s_1^2 -
    s_2)/((c-1) (c-2))``, with the sums s_1 of the others' relative targets and s_2 of
    their squares. The value therefore depends on the ball by c and by two sums, and is
    quadratic in the target.

    Parameters
    ----------
    counts : array-like of int of shape (n_points,)
        Number c of neighbours of each point.
    sums, squares : array-likes of shape (n_points,)
        Sums of their targets, and of the squares of these.
    targets : array-like of shape (n_points,)
        Targets of the points.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or (alpha, beta), default="shapley"
        The semivalue, see `skvalue.semivalues.check_semivalue`.
    joins : bool, default=False
        Whether the neighbour is not among the c that are counted.

    Returns
    -------
    coefficients : ndarray of shape (3, n_points)
        The value of a neighbour with target y is ``c_0 + c_1 y + c_2 y**2``; 0 for an
        empty ball.

    Examples
    --------
    >>> c_0, c_1, c_2 = target_values([1], [3.0], [9.0], [2.0])  # a target of 3, for one of 2
    >>> float(c_0[0] + c_1[0] * 3 + c_2[0] * 9)  # the squared error falls from 4 to 1
    3.0
    """
    counts, t = np.asarray(counts, np.int64), np.asarray(targets, float)
    first = np.asarray(sums, float) - counts * t
    second = (
        np.asarray(squares, float) - 2 * t * np.asarray(sums, float) + counts * t**2
    )
    size = np.maximum(counts + joins, 1)
    alone, (of_square, of_product, of_squares, of_pairs) = _size_means(size, semivalue)
    others, pairs = np.maximum(size - 1, 1), np.maximum((size - 1) * (size - 2), 1)
    of_product, of_squares, of_pairs = (
        of_product / others,
        of_squares / others,
        of_pairs / pairs,
    )
    common = alone * t**2 + of_squares * second + of_pairs * (first**2 - second)
    linear = -2 * of_product * first
    square = -alone - of_square
    if not joins:  # the sums contain the neighbour itself
        linear -= 2 * of_pairs * first
        square += 2 * of_product - of_squares + 2 * of_pairs
    coefficients = np.stack(
        [common - linear * t + square * t**2, linear - 2 * square * t, square]
    )
    return np.where(size == counts + joins, coefficients, 0.0)


def target_utility(counts, sums, targets):
    """Minus the squared error of the mean target in each ball, of 0 if it is empty."""
    return -((sums / np.maximum(counts, 1) - targets) ** 2)


class TargetGame(NamedTuple):
    """The game of targets; its terms at a point are the coefficients of a neighbour's
    value.

    It has the methods of `LabelGame`.
    """

    prior: float  # predicted by an empty ball; all targets are relative to it
    semivalue: object

    n_classes = 0

    def count(self, found, y):
        """Numbers of rows in the balls, sums of their targets and of the squares."""
        y = y - self.prior
        return np.stack([found.counts.sum(axis=0), found.totals(y), found.totals(y**2)])

    def terms(self, sums, points, joins=False):
        """The coefficients (3, n_points) of `target_values`."""
        return target_values(*sums, points.y - self.prior, self.semivalue, joins)

    def squares(self, terms):
        """The square of a value has degree 4 in the target."""
        c0, c1, c2 = terms
        return np.stack([c0**2, 2 * c0 * c1, 2 * c0 * c2 + c1**2, 2 * c1 * c2, c2**2])

    def add(self, found, terms, y):
        """For each row, the sum over the balls that contain it of a polynomial in its
        target."""
        values = np.zeros(len(y))
        for line in terms[::-1]:
            values = values * (y - self.prior) + found.sum(line[None])
        return values

    def utility(self, sums, points):
        """Minus the squared error of the mean target in each ball."""
        return target_utility(*sums[:2], points.y - self.prior)

    def empty_utility(self, points):
        """Minus the mean squared error of the prior."""
        return -((points.y - self.prior) ** 2 @ points.weights)

    def predict(self, sums):
        """Moments of the target of a row without one, by those in its ball."""
        count = np.maximum(sums[0], 1)
        return np.stack([np.ones(len(count)), sums[1] / count, sums[2] / count])
