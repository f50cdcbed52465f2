"""Intervals around estimated values."""

import numpy as np
from scipy.stats import t as student


def t_halfwidth(errors, freedom, level):
    """Half the width of the interval by Student's t.

    Parameters
    ----------
    errors, freedom : ndarrays of shape (n,)
        Standard errors and their degrees of freedom.
    level : float
        Chance that the interval holds the value, for one value.

    Returns
    -------
    halfwidth : ndarray of shape (n,)
        0 where the error is 0, infinite where it is.

    Examples
    --------
    >>> t_halfwidth(np.array([1.0, 0.0]), np.array([10.0, np.inf]), 0.95).round(3).tolist()
    [2.228, 0.0]
    """
    quantile = student.ppf(0.5 + level / 2, freedom)
    with np.errstate(invalid="ignore"):
        return np.where(errors > 0, errors * quantile, 0.0)


def bernstein_halfwidth(errors, count, span, level):
    """Half the width of the interval by the empirical Bernstein bound.

    Maurer and Pontil (2009), Theorem 4, for both sides: with m replicates that lie in an interval
    of length ``span`` and have the sample variance s^2,

        ``sqrt(2 s^2 L / m) + 7 span L / (3 (m - 1))``,  L = ln(4 / (1 - level)).

    It holds for any distribution and any m, and is wide unless m is large.

    Parameters
    ----------
    errors : ndarray of shape (n,)
        Standard errors, ``s / sqrt(m)``.
    count : int
        Number m of independent replicates.
    span : float or ndarray of shape (n,)
        Length of the interval in which replicates lie.
    level : float
        Chance, at least, that the interval holds the value, for one value.

    Returns
    -------
    halfwidth : ndarray of shape (n,)
        Infinite for fewer than two replicates.

    Examples
    --------
    >>> bernstein_halfwidth(np.array([0.01]), 1001, 1.0, 0.95).round(4).tolist()
    [0.0398]
    """
    if count < 2:
        return np.full(np.shape(errors), np.inf)
    log = np.log(4 / (1 - level))
    return np.sqrt(2 * log) * errors + 7 * span * log / (3 * (count - 1))


def decided(values, halfwidths):
    """Whether the interval leaves no doubt about the sign of the value."""
    return np.abs(values) > halfwidths
