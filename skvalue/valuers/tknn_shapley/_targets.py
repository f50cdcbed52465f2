"""The regression game of Threshold-KNN-Shapley: values from sums of the targets."""

from typing import NamedTuple

import numpy as np

from ...semivalues import size_weights


class SizeMeans(NamedTuple):
    """Means of functions of the number j of other rows in a coalition.

    One entry for each ball, (n_points,). All but ``alone`` count 0 for j = 0; ``g = j
    (1/j^2 - 1/(j+1)^2)``.
    """

    # P(j = 0).
    alone: np.ndarray
    # 1/(j+1)^2, the factor of the square of the neighbour's target.
    square: np.ndarray
    # j/(j+1)^2, of its product with the others' targets.
    product: np.ndarray
    # g, of the squares of the others' targets.
    squares: np.ndarray
    # (j - 1) g, of the products of two of these.
    pairs: np.ndarray


def _size_means(sizes, semivalue):
    """The `SizeMeans` for balls of ``sizes`` rows, (n_points,)."""
    largest = int(sizes.max(initial=1))
    j = np.arange(largest, dtype=float)
    gain = (2 * j + 1) / (np.maximum(j, 1) * (j + 1) ** 2)
    terms = np.stack([1 / (j + 1) ** 2, j / (j + 1) ** 2, gain, (j - 1) * gain])
    terms[:, 0] = 0.0
    if semivalue == "shapley":
        # All sizes are equally likely.
        alone = 1.0 / sizes
        means = np.cumsum(terms, axis=1)[:, sizes - 1] / sizes
        return SizeMeans(alone, *means)

    alone = np.empty(len(sizes))
    means = np.empty((4, len(sizes)))
    for size in np.unique(sizes):
        weights = size_weights(semivalue, int(size))
        is_size = sizes == size
        alone[is_size] = weights[0]
        means[:, is_size] = (terms[:, :size] @ weights)[:, None]
    return SizeMeans(alone, *means)


def target_values(counts, sums, squares, targets, semivalue="shapley", joins=False):
    """Value of a neighbour of a validation point as a polynomial in its target.

    The utility of a coalition is minus the squared error of the mean target of its rows
    in the ball; without any, the prediction is 0 (targets are relative to a prior
    prediction). To a coalition with j of the c - 1 other neighbours, whose targets
    relative to the point's sum to A, a neighbour with relative target a adds

        ``e^2 - a^2`` for j = 0, and for j >= 1
        ``A^2 (1/j^2 - 1/(j+1)^2) - 2 a A/(j+1)^2 - a^2/(j+1)^2``,

    where e is the prior relative to the point's target. On average over the
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
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple, default="shapley"
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
    A neighbour with the target 3 of a point with the target 2: the squared error falls
    from 4 to 1.

    >>> c_0, c_1, c_2 = target_values([1], [3.0], [9.0], [2.0])
    >>> float(c_0[0] + c_1[0] * 3 + c_2[0] * 9)
    3.0
    """
    counts = np.asarray(counts, np.int64)
    sums = np.asarray(sums, float)
    squares = np.asarray(squares, float)
    t = np.asarray(targets, float)
    # s_1 and s_2 of the formula, with the neighbour itself unless it joins.
    first = sums - counts * t
    second = squares - 2 * t * sums + counts * t**2

    size = np.maximum(counts + joins, 1)
    means = _size_means(size, semivalue)
    product = means.product / np.maximum(size - 1, 1)
    of_squares = means.squares / np.maximum(size - 1, 1)
    of_pairs = means.pairs / np.maximum((size - 1) * (size - 2), 1)

    # The value as a polynomial in the target relative to that of the point.
    common = means.alone * t**2 + of_squares * second + of_pairs * (first**2 - second)
    linear = -2 * product * first
    square = -means.alone - means.square
    if not joins:
        # Leave out the neighbour itself.
        linear -= 2 * of_pairs * first
        square += 2 * product - of_squares + 2 * of_pairs
    coefficients = np.stack(
        [common - linear * t + square * t**2, linear - 2 * square * t, square]
    )
    return np.where(size == counts + joins, coefficients, 0.0)


def target_utility(counts, sums, targets):
    """Minus the squared error of the mean target in each ball, of 0 if it is empty."""
    return -((sums / np.maximum(counts, 1) - targets) ** 2)


class TargetGame(NamedTuple):
    """The game of targets, with the methods of `LabelGame`.

    Its terms at a point are the coefficients of a neighbour's value.
    """

    # Predicted by an empty ball; all targets are relative to it.
    prior: float
    semivalue: object

    n_classes = 0
    unit = 1.0

    def count(self, neighbours, y):
        """Numbers of rows, and sums of targets and squares, (3, n_points)."""
        y = y - self.prior
        n_rows = neighbours.counts.sum(axis=0)
        return np.stack([n_rows, neighbours.totals(y), neighbours.totals(y**2)])

    def terms(self, counts, points, joins=False):
        """The coefficients (3, n_points) of `target_values`."""
        n_rows, sums, squares = counts
        targets = points.y - self.prior
        return target_values(n_rows, sums, squares, targets, self.semivalue, joins)

    def squares(self, terms):
        """The square of a value has degree 4 in the target."""
        c0, c1, c2 = terms
        return np.stack([c0**2, 2 * c0 * c1, 2 * c0 * c2 + c1**2, 2 * c1 * c2, c2**2])

    def add(self, neighbours, terms, y):
        """For each row, the sum over its balls of polynomials in its target."""
        values = np.zeros(len(y))
        for line in terms[::-1]:
            values = values * (y - self.prior) + neighbours.sum(line[None])
        return values

    def sum_of_tile(self, neighbours, terms, y):
        """As `add`: targets have no bound, so that there is no common unit."""
        return self.add(neighbours, terms, y)

    def utility(self, counts, points):
        """Minus the squared error of the mean target in each ball."""
        n_rows, sums, _ = counts
        return target_utility(n_rows, sums, points.y - self.prior)

    def empty_utility(self, points):
        """Minus the mean squared error of the prior."""
        return -((points.y - self.prior) ** 2 @ points.weights)

    def predict(self, counts):
        """Moments of the target of a row without one, from those in its ball."""
        n_rows, sums, squares = counts
        n_rows = np.maximum(n_rows, 1)
        return np.stack([np.ones(len(n_rows)), sums / n_rows, squares / n_rows])
