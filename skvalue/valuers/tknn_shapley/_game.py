"""The game of Threshold-KNN-Shapley: values of the neighbours that a validation point has."""

import numpy as np

from ...semivalues import absence_moments


def neighbour_values(same, other, n_classes, semivalue="shapley"):
    """Values of the two kinds of neighbours that a validation point has.

    With c neighbours of which a have the validation point's label, a random coalition that holds j
    of the c - 1 others gains by a neighbour with label match m, in the mean over which j they are,

        ``m - 1/C`` for j = 0,   ``(m - a'/(c - 1)) / (j + 1)`` for j >= 1,

    where a' = a - m counts the others with that label. With the moments r_i of `absence_moments`,
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
    agree, differ : ndarrays
        Value of one neighbour with the label, and of one without; 0 where there is none.

    References
    ----------
    The paper, Theorem 13 (Shapley) and Appendix C.2 (semivalues).

    Examples
    --------
    >>> agree, differ = neighbour_values([1, 2], [0, 1], n_classes=2)
    >>> agree.round(3).tolist(), differ.round(3).tolist()
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
    agree = (1 - 1 / n_classes) * alone + (1 - (same - 1) / others) * joined
    differ = -alone / n_classes - same / others * joined
    return np.where(same > 0, agree, 0.0), np.where(other > 0, differ, 0.0)


def threshold_utility(same, other, n_classes):
    """Chance that the soft-label threshold classifier gives the right label (paper, eq. 3)."""
    c = same + other
    return np.where(c > 0, same / np.maximum(c, 1), 1 / n_classes)


def spread(y, judge_weights, n_classes, agree, differ):
    """Weights of a player of each class in each ball, (n_classes, n_judges)."""
    weights = np.tile(differ * judge_weights, (n_classes, 1))
    weights[y, np.arange(len(y))] = agree * judge_weights
    return weights


def weigh(y, judge_weights, n_classes, semivalue, counts):
    """Weights of the players that are counted."""
    same = counts[y, np.arange(len(y))]
    agree, differ = neighbour_values(same, counts.sum(axis=0) - same, n_classes, semivalue)
    return spread(y, judge_weights, n_classes, agree, differ)


def weigh_joining(y, judge_weights, n_classes, semivalue, counts, part, _new_counts):
    """Weights of a player that comes on top of ``counts``."""
    y, judge_weights, counts = y[part], judge_weights[part], counts[:, part]
    same = counts[y, np.arange(len(y))]
    other = counts.sum(axis=0) - same
    agree, _ = neighbour_values(same + 1, other, n_classes, semivalue)
    _, differ = neighbour_values(same, other + 1, n_classes, semivalue)
    return spread(y, judge_weights, n_classes, agree, differ)


def take_part(weights, part, _counts):
    return weights[:, part]


def group_moments(engine, space, y, groups, judges, parts, radius, agree, differ, n_classes):
    """Sums over judges of squared weight times value, and times squared value, of every group.

    Rows of a group and a class count alike: their numbers in every ball say it all.
    """
    n_groups = groups.max() + 1
    strips = engine.Strips(groups * n_classes + y, n_groups * n_classes)
    sums = np.zeros((2, n_groups))
    for part in parts:
        _, counts = engine.ball_values(space, strips, judges.X[part], radius, None, np.zeros_like)
        counts = counts.reshape(n_groups, n_classes, -1)
        same = counts[:, judges.y[part], np.arange(counts.shape[2])]
        values = same * agree[part] + (counts.sum(axis=1) - same) * differ[part]
        squares = judges.weights[part] ** 2
        sums += (values @ squares, values**2 @ squares)
    return sums


def call(function, *arguments):
    """Call a function: a task whose function differs from tile to tile."""
    return function(*arguments)
