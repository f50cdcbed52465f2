"""Faithful values of groups: the sums of the semivalues of their rows.

Lee, Liu, Tang, Zhang: "Faithful Group Shapley Value", NeurIPS 2025. With n rows,
probabilities q of sizes (`skvalue.semivalues.size_weights`), m rows in a group and a of
them in a coalition S, its value is

    ``m q[n-1] (v(N) - v(0))
    + sum_{0 < s < n} n E[v(S) (q[s-1] a / s - q[s] (m - a) / (n - s)) | |S| = s]``,

where the sum is ``sum_s n / (s (n - s)) Cov(v(S), a | |S| = s)`` for the Shapley value.
Estimates are linear in a, and coalitions are drawn without looking at groups: the
values of the parts of a group add up to its value, to rounding.
"""

import numpy as np

from .._utils.parallel import one_thread
from .adjusting import FOLDS
from .intervals import summed
from .subsets import SUBSETS


def group_factors(q, sizes, counts, totals):
    """Factors of the utilities of coalitions in the values of groups, of shape (m,
    n_groups).

    From the sizes (m,) of coalitions, their numbers of rows in each group (m,
    n_groups), and those of the groups (n_groups,). Their mean over all coalitions of
    size s is ``totals * (q[s-1] - q[s])``.
    """
    n = len(q)
    out = n * q[sizes] / (n - sizes)
    return counts * (n * q[sizes - 1] / sizes + out)[:, None] - np.outer(out, totals)


def group_values(design, codes):
    """Values of groups, their covariance over the draw of coalitions, and degrees of
    freedom.

    Parameters
    ----------
    design : ExactDesign or SubsetDesign
        A design whose players are rows, adjusted or not.
    codes : ndarray of int of shape (n,)
        Group of every row, 0 to n_groups - 1.

    Returns
    -------
    values : ndarray of shape (n_groups,)
        Sums of the semivalues of rows, unbiased given the numbers of draws in the
        strata.
    covariance : ndarray of shape (n_groups, n_groups)
        Their covariance; infinite if a stratum has one coalition.
    freedom : ndarray of shape (n_groups,)
        Degrees of freedom of the variances.
    """
    totals = np.bincount(codes).astype(np.float64)
    if design.exact:
        variance = design.variances()[0][0]  # equal for all players
        covariance = np.full((len(totals), len(totals)), variance)
        return (
            np.bincount(codes, design.values()),
            covariance,
            np.full(len(totals), np.inf),
        )
    strata, (labels, gains, *_) = design.strata, design.logged()
    folds = np.arange(len(gains)) // SUBSETS % FOLDS
    member = codes[:, None] == np.arange(len(totals))
    # Utilities less the mean of the other folds, which does not depend on the
    # coalition.
    table, places = (FOLDS, strata.n_strata), folds * strata.n_strata + labels
    n_drawn = np.bincount(places, minlength=np.prod(table)).reshape(table)
    sums = np.bincount(places, gains, np.prod(table)).reshape(table)
    others = np.maximum(n_drawn.sum(axis=0) - n_drawn, 1)
    centres = (sums.sum(axis=0) - sums) / others
    left, inside, outside = (
        gains - centres[folds, labels],
        centres[:, :, None],
        centres[:, :, None],
    )
    if design.is_adjusted:  # and less the surrogate, whose own values are known
        left = left - design.adjusted.predictions
        inside, outside = (
            side + known
            for side, known in zip((inside, outside), design.adjusted.sides)
        )
    known = (
        strata.inside_weight[:, None] * inside
        - strata.outside_weight[:, None] * outside
    )
    known = np.broadcast_to(known, (*table, len(codes))) @ member
    n_drawn, start = n_drawn.sum(axis=0), 0
    means, squares = np.zeros((2, strata.n_strata, len(totals)))
    covariance = np.zeros((len(totals), len(totals)))
    with one_thread(), np.errstate(divide="ignore", invalid="ignore"):
        within = np.where(n_drawn > 0, n_drawn - 1.0, 1.0)[:, None]
        for masks, of, _ in design.drawn():
            part, sizes = slice(start, start + len(masks)), masks.sum(axis=1)
            start = part.stop
            factors = group_factors(
                design.q, sizes, masks.astype(np.float64) @ member, totals
            )
            scores = factors * (left[part] / strata.probabilities[of, sizes])[:, None]
            scores += known[folds[part], of]
            np.add.at(means, of, scores / n_drawn[of, None])
            np.add.at(squares, of, scores**2 / n_drawn[of, None])
            covariance += scores.T @ (scores / n_drawn[of, None] / within[of])
        covariance -= means.T @ (means / within)
        variances = np.maximum(squares - means**2, 0.0) / within
        variances, freedom = summed(np.where(within > 0, variances, np.inf), within)
    covariance[~np.isfinite(covariance)] = np.inf
    np.fill_diagonal(covariance, variances)
    values = totals * design.q[-1] * (design.full - design.empty_utility) + means.sum(
        axis=0
    )
    return values, covariance, freedom
