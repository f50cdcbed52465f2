"""Degrees of freedom, and confidence intervals, of estimated values."""

import numpy as np
from scipy.stats import t as student


def sum_variances(variances, freedom):
    """Sum of independent variances over the first axis, and its degrees of freedom.

    Satterthwaite's; infinite for a sum of 0, and 1 for an infinite one.
    """
    total = variances.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Squares of ratios cannot overflow.
        ratios = np.where(variances > 0, variances / total, 0.0)
        freedom = 1 / (ratios**2 / freedom).sum(axis=0)
    freedom = np.where(np.isfinite(freedom), np.maximum(freedom, 1.0), 1.0)
    return total, np.where(total == 0, np.inf, freedom)


def t_halfwidth(errors, freedom, level):
    """Half the width of Student's t interval of one value, at a level.

    From standard errors and their degrees of freedom; 0 for errors of 0, infinite for
    infinite ones.
    """
    quantile = student.ppf(0.5 + level / 2, freedom)
    with np.errstate(invalid="ignore"):
        return np.where(errors > 0, errors * quantile, 0.0)


def bernstein_halfwidth(errors, count, span, level):
    """Half the width of the two-sided empirical Bernstein interval.

    Maurer and Pontil (2009), Theorem 4: ``sqrt(2 s^2 L / m) + 7 span L / (3 (m - 1))``
    with L = ln(4 / (1 - level)), errors s / sqrt(m), m = count replicates within a
    range of `span`. Infinite for count < 2.
    """
    if count < 2:
        return np.full(np.shape(errors), np.inf)
    log = np.log(4 / (1 - level))
    return np.sqrt(2 * log) * errors + 7 * span * log / (3 * (count - 1))
