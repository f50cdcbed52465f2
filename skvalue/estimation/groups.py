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
from .adjusting import assign_folds, other_folds, sum_by_fold
from .intervals import sum_variances
from .subsets import SUBSETS


def group_factors(q, sizes, counts, totals):
    """Factors of the utilities of coalitions in the values of groups.

    Parameters
    ----------
    q : ndarray of shape (n,)
        Probabilities of sizes.
    sizes : ndarray of int of shape (m,)
        Sizes of the coalitions.
    counts : ndarray of shape (m, n_groups)
        Their numbers of rows in each group.
    totals : ndarray of shape (n_groups,)
        Numbers of rows of the groups.

    Returns
    -------
    factors : ndarray of shape (m, n_groups)
        Their mean over all coalitions of size s is ``totals * (q[s-1] - q[s])``.
    """
    n = len(q)
    for_each_inside = n * q[sizes - 1] / sizes
    for_each_outside = n * q[sizes] / (n - sizes)
    # a / s inside less (m - a) / (n - s) outside: the terms with a are taken together.
    with_members = counts * (for_each_inside + for_each_outside)[:, None]
    return with_members - np.outer(for_each_outside, totals)


def group_values(design, codes):
    """Values of groups, and their covariance over the draw of coalitions.

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
    n_groups = len(totals)
    if design.exact:
        variances, _ = design.variances()  # equal for all players
        covariance = np.full((n_groups, n_groups), variances[0])
        values = np.bincount(codes, design.values())
        return values, covariance, np.full(n_groups, np.inf)

    n_strata = design.strata.n_strata
    all_labels, *_ = design.logged()
    n_drawn = np.bincount(all_labels, minlength=n_strata)

    # In every stratum the mean of the terms, and the means of squares and of products
    # from which its covariance follows. A stratum without coalitions adds nothing, one
    # with a single coalition an infinite variance.
    means = np.zeros((n_strata, n_groups))
    squares = np.zeros((n_strata, n_groups))
    covariance = np.zeros((n_groups, n_groups))
    degrees = np.where(n_drawn > 0, n_drawn - 1.0, 1.0)[:, None]
    with one_thread(), np.errstate(divide="ignore", invalid="ignore"):
        for labels, terms in _terms_of_coalitions(design, codes, totals):
            n_alike = n_drawn[labels, None]
            np.add.at(means, labels, terms / n_alike)
            np.add.at(squares, labels, terms**2 / n_alike)
            covariance += terms.T @ (terms / n_alike / degrees[labels])
        covariance -= means.T @ (means / degrees)
        variances = np.maximum(squares - means**2, 0.0) / degrees
        variances = np.where(degrees > 0, variances, np.inf)
        variances, freedom = sum_variances(variances, degrees)  # over the strata

    # The variances by themselves: no rounding makes them negative.
    covariance[~np.isfinite(covariance)] = np.inf
    np.fill_diagonal(covariance, variances)

    of_all_rows = totals * design.q[-1] * (design.full - design.empty_utility)
    return of_all_rows + means.sum(axis=0), covariance, freedom


def _terms_of_coalitions(design, codes, totals):
    """Terms of the sum over sizes, one for each coalition and group.

    Yields the strata (m,) and the terms (m, n_groups) of the coalitions, in tiles. The
    mean over the coalitions of a stratum estimates the sum over its sizes.
    """
    strata = design.strata
    members = codes[:, None] == np.arange(len(totals))
    labels, gains, *_ = design.logged()
    folds = assign_folds(len(gains), SUBSETS)
    residuals, control_values = _subtract_control(design, labels, gains, folds)
    control_values = control_values @ members

    start = 0
    for masks, tile_labels, _ in design.redraw():
        tile = slice(start, start + len(masks))
        start = tile.stop

        # A coalition stands for those of all sizes of its stratum: it counts by the
        # inverse of the probability of its own size.
        sizes = masks.sum(axis=1)
        counts = masks.astype(np.float64) @ members
        factors = group_factors(design.q, sizes, counts, totals)
        weighted = residuals[tile] / strata.probabilities[tile_labels, sizes]
        terms = factors * weighted[:, None]
        terms += control_values[folds[tile], tile_labels]
        yield tile_labels, terms


def _subtract_control(design, labels, gains, folds):
    """Gains less a prediction of them, and what the prediction adds to the values.

    The prediction of a gain is the mean of its stratum in the other folds, and the
    surrogate of an adjusted design. Given the other folds it is a known function of
    coalitions: what it adds is computed, so that the estimates stay unbiased.

    Parameters
    ----------
    design : SubsetDesign
        The design.
    labels, folds : ndarrays of int of shape (m,)
        Strata and folds of the coalitions.
    gains : ndarray of shape (m,)
        Their utilities less the empty one.

    Returns
    -------
    residuals : ndarray of shape (m,)
        What is left of the gains.
    control_values : ndarray of shape (n_folds, n_strata, n)
        What the prediction adds to the values of rows.
    """
    strata = design.strata
    n_drawn = sum_by_fold(folds, labels, strata.n_strata)
    sums = sum_by_fold(folds, labels, strata.n_strata, gains)
    centers = other_folds(sums) / np.maximum(other_folds(n_drawn), 1)

    residuals = gains - centers[folds, labels]
    inside = outside = centers[:, :, None]
    if design.is_adjusted:
        residuals = residuals - design.adjusted.predictions
        inside = inside + design.adjusted.inside_by_fold
        outside = outside + design.adjusted.outside_by_fold

    control_values = strata.inside_weight[:, None] * inside
    control_values = control_values - strata.outside_weight[:, None] * outside
    shape = (*centers.shape, len(design.q))
    return residuals, np.broadcast_to(control_values, shape)
