"""The game of Threshold-KNN-Shapley: values of the neighbours of a validation point."""

import numpy as np

from ...semivalues import absence_moments


def neighbour_values(same, other, n_classes, semivalue="shapley"):
    """Values of the two kinds of neighbours of a validation point.

    Let c be the number of neighbours, and a the number of those with the label of the validation
    point. To a coalition with j of the c - 1 others, a neighbour with label match m adds, on
    average over the choice of these j,

        ``m - 1/C`` for j = 0,   ``(m - a'/(c - 1)) / (j + 1)`` for j >= 1,

    where a' = a - m is the number of others with that label. With r_i of `absence_moments`,
    P(j = 0) = r_{c-1} and E 1/(j + 1) = (r_0 + ... + r_{c-1}) / c, so the value is

        ``(m - 1/C) r_{c-1} + (m - a'/(c - 1)) ((r_0 + ... + r_{c-1}) / c - r_{c-1})``.

    For the Shapley value r_i = 1/(i + 1), which is Theorem 13 of the paper with its A2, a sum of
    ratios of binomials, equal to H_c - 1. Rows outside the ball have the value 0.

    Parameters
    ----------
    same, other : array-likes of int
        Numbers of neighbours with and without the validation point's label.
    n_classes : int
        Number of classes C; an empty ball predicts each with 1/C.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or (alpha, beta), default="shapley"
        The semivalue, see `skvalue.semivalues.check_semivalue`.

    Returns
    -------
    value_same, value_other : ndarrays
        Value of a neighbour with the label, and of one without; 0 if there is none.

    References
    ----------
    Wang et al. (2023), see `TKNNShapleyValuer`; Theorem 13 (Shapley), Appendix C.2 (semivalues).

    Examples
    --------
    >>> value_same, value_other = neighbour_values([1, 2], [0, 1], n_classes=2)
    >>> value_same.round(3).tolist(), value_other.round(3).tolist()
    ([0.5, 0.306], [0.0, -0.444])
    """
    same, other = np.broadcast_arrays(np.asarray(same, np.int64), np.asarray(other, np.int64))
    c = same + other
    moments = absence_moments(semivalue, int(c.max(initial=0)) + 1)
    sums = np.concatenate([[0.0], np.cumsum(moments)])
    size = np.maximum(c, 1)
    alone = moments[size - 1]
    joined = sums[size] / size - alone
    others = np.maximum(c - 1, 1)
    value_same = (1 - 1 / n_classes) * alone + (1 - (same - 1) / others) * joined
    value_other = -alone / n_classes - same / others * joined
    return np.where(same > 0, value_same, 0.0), np.where(other > 0, value_other, 0.0)


def threshold_utility(same, other, n_classes):
    """Probability that the soft-label threshold classifier is right (paper, equation 3)."""
    c = same + other
    return np.where(c > 0, same / np.maximum(c, 1), 1 / n_classes)


def same_and_other(counts, y):
    """Numbers of rows in each ball with and without the label of its point, (2, n_points)."""
    same = counts[y, np.arange(len(y))]
    return np.stack([same, counts.sum(axis=0) - same])


def game_at_points(counts, points, n_classes, semivalue, joins=False):
    """Values of a neighbour with the point's label and of one without, and utility at each point.

    The fourth result is None: a private fit returns draws of the values, (2, n_draws, n_points).
    ``counts`` as returned by `same_and_other`; with ``joins`` the neighbour is not among them.
    ``points`` is not used: it is there for private fits, which smooth noisy counts over the points.
    """
    same, other = counts
    value_same, value_other = neighbour_values(same, other, n_classes, semivalue)
    if joins:
        value_same, _ = neighbour_values(same + 1, other, n_classes, semivalue)
        _, value_other = neighbour_values(same, other + 1, n_classes, semivalue)
    return value_same, value_other, threshold_utility(same, other, n_classes), None


def by_label(y, value_same, value_other, n_labels):
    """Value of a neighbour of each label at each point, (n_labels, n_points)."""
    values = np.tile(value_other, (n_labels, 1))
    values[y, np.arange(len(y))] = value_same
    return values
