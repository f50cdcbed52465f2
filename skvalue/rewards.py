"""Rewards of parties from their values: targets, shares of money and payments.

All functions take and return arrays, for values of any origin.
"""

import numpy as np
from scipy.special import ndtri

from ._utils.checks import check_positive

__all__ = ["by_period", "largest_rho", "payments", "rho_targets", "shares"]


def _finite(values, name):
    """The values as a 1D array of finite floats."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"{name} must be a sequence of numbers. Got shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite. Got {values.tolist()}.")
    return values


def rho_targets(values, grand_value, rho):
    """Target values of rewards in the rho-Shapley fair scheme.

    Party i receives ``grand_value * (max(values[i], 0) / max(values)) ** rho``:
    `grand_value` for the party of largest value, 0 for a null party. A smaller rho
    makes rewards more equal and their sum larger.

    Parameters
    ----------
    values : array-like of shape (n_parties,)
        Shapley values; at least one is above 0.
    grand_value : float
        Value of all parties together, above 0.
    rho : float
        Exponent, above 0.

    Returns
    -------
    targets : ndarray of shape (n_parties,)
        Target values, in the unit of `grand_value`.

    Raises
    ------
    ValueError
        If a parameter is not finite or outside its range, or no value is above 0.

    References
    ----------
    R. H. L. Sim, Y. Zhang, T. N. Hoang, X. Xu, B. K. H. Low, P. Jaillet: "Incentives in
    Private Collaborative Machine Learning", NeurIPS 2023, Section 4.

    Examples
    --------
    >>> rho_targets([1.0, 4.0, 0.0], grand_value=5.0, rho=0.5).tolist()
    [2.5, 5.0, 0.0]
    """
    values = _finite(values, "values")
    grand_value = check_positive(grand_value, "grand_value")
    rho = check_positive(rho, "rho")
    if values.max() <= 0:
        raise ValueError(f"values must have one above 0. Got at most {values.max():g}.")
    return grand_value * (np.maximum(values, 0.0) / values.max()) ** rho


def largest_rho(values, standalone, grand_value):
    """Largest rho for which every party receives at least its standalone value.

    For a party of less than the largest Shapley value, ``rho_targets(...)[i] >=
    standalone[i]`` is equivalent to ``rho <= log(standalone[i] / grand_value) /
    log(values[i] / max(values))``.

    Parameters
    ----------
    values : array-like of shape (n_parties,)
        Shapley values; at least one is above 0.
    standalone : array-like of shape (n_parties,)
        Value of each party alone, nonnegative.
    grand_value : float
        Value of all parties together, above 0.

    Returns
    -------
    rho : float
        The bound: infinite if every rho satisfies the condition, 0.0 or negative if
        none does (a party has the value of all parties by itself, or a standalone value
        above 0 and a Shapley value of at most 0).

    Raises
    ------
    ValueError
        If a parameter is not finite or outside its range, lengths differ, or no value
        is above 0.

    References
    ----------
    Sim et al., NeurIPS 2023, Section 4, after Theorem 1 of R. H. L. Sim, Y. Zhang, M.
    C. Chan, B. K. H. Low: "Collaborative Machine Learning with Incentive-Aware Model
    Rewards", ICML 2020.

    Examples
    --------
    >>> largest_rho([1.0, 4.0], [1.25, 4.0], grand_value=5.0)
    1.0
    """
    values = _finite(values, "values")
    standalone = _finite(standalone, "standalone")
    grand_value = check_positive(grand_value, "grand_value")
    if len(values) != len(standalone):
        raise ValueError(
            "values and standalone must both have one entry per party. Got "
            f"{len(values)} and {len(standalone)}."
        )
    if standalone.min() < 0:
        raise ValueError(f"standalone must not be negative. Got {standalone.min():g}.")
    largest = values.max()
    if largest <= 0:
        raise ValueError(f"values must have one above 0. Got at most {largest:g}.")

    bounds = []
    for value, alone in zip(values, standalone):
        if value == largest:
            # Its target is the grand value for every rho.
            bounds.append(np.inf if alone <= grand_value else -np.inf)
        elif alone == 0:
            bounds.append(np.inf)
        elif value <= 0:
            bounds.append(0.0)  # its target is 0 for every rho
        else:
            bounds.append(np.log(alone / grand_value) / np.log(value / largest))
    return float(min(bounds))


def shares(values, budget, unit=None):
    """Divide a sum of money in proportion to values.

    Negative values count as 0, so that no party pays. This makes shares convex in the
    values: a party whose rows have positive and negative values gains by sending them
    under several names (the last example). Use it where names are verified, and
    `payments` where they are not.

    Parameters
    ----------
    values : array-like of shape (n_parties,)
        Values; at least one is above 0.
    budget : float
        Sum to divide, above 0.
    unit : float, default=None
        Smallest unit of money, such as 0.01; the budget must be a multiple of it.
        Shares are multiples of it that sum to the budget, by the method of largest
        remainders (ties: earlier parties first). None does not round.

    Returns
    -------
    shares : ndarray of shape (n_parties,)
        Amount that each party receives; the sum is the budget.

    Raises
    ------
    ValueError
        If a parameter is not finite or outside its range, no value is above 0, or the
        budget is not a multiple of the unit.

    Examples
    --------
    >>> shares([2.0, 1.0, -0.5], budget=90.0).tolist()
    [60.0, 30.0, 0.0]
    >>> shares([1.0, 1.0, 1.0], budget=1.0, unit=0.01).tolist()
    [0.34, 0.33, 0.33]

    The last party is worth 1 in total; as two names of the values 3 and -2 it is paid
    more:

    >>> shares([3.0, 1.0], budget=8.0).tolist()
    [6.0, 2.0]
    >>> shares([3.0, 3.0, -2.0], budget=8.0).tolist()
    [4.0, 4.0, 0.0]
    """
    values = _finite(values, "values")
    budget = check_positive(budget, "budget")
    weights = np.maximum(values, 0.0)
    if not weights.any():
        raise ValueError(f"values must have one above 0. Got at most {values.max():g}.")
    weights /= weights.max()  # sums of huge values do not overflow
    amounts = budget * (weights / weights.sum())
    if unit is None:
        return amounts
    return _round_to_unit(amounts, budget, check_positive(unit, "unit"))


def _round_to_unit(amounts, budget, unit):
    """Amounts as multiples of a unit, by the method of largest remainders."""
    n_units = budget / unit
    if abs(n_units - round(n_units)) > 1e-6 * max(1.0, n_units * 1e-6):
        raise ValueError(f"budget must be a multiple of unit={unit!r}. Got {budget!r}.")
    n_units = round(n_units)
    exact = amounts / budget * n_units
    rounded = np.floor(exact + 1e-9)
    n_remaining = n_units - int(rounded.sum())
    by_remainder = np.argsort(-(exact - rounded), kind="stable")
    rounded[by_remainder[:n_remaining]] += 1

    # Division by a whole number rounds only once: 34 units of 0.01 are 34 / 100 = 0.34.
    units_per_one = 1 / unit
    if abs(units_per_one - round(units_per_one)) < 1e-9:
        return rounded / round(units_per_one)
    return rounded * unit


def payments(values, price, *, errors=None, undecided="pay"):
    """Pay a price per unit of value; a negative payment is a charge.

    Payments are linear in the values: those of several names of a party add up to what
    it would be paid under one name whenever its values do, such as sums of values of
    rows. There is no fixed budget: the sum of the payments is `price` times that of the
    values.

    Parameters
    ----------
    values : array-like of shape (n_parties,)
        Values, for `errors` with the same unit.
    price : float
        Money per unit of value, above 0.
    errors : array-like of shape (n_parties,), default=None
        Standard errors of the values, such as `validation_error_`, with
        `values_error_` of private values; needed by "reserve" only.
    undecided : {"pay", "reserve"}, default="pay"
        "reserve" pays 0 to a party whose value is not distinguished from 0 by `errors`:
        the normal interval of 95 % around it contains 0. Its payment under "pay"
        belongs in a reserve until more validation points decide the sign. The rule is
        not linear: names with few rows are undecided more often.

    Returns
    -------
    payments : ndarray of shape (n_parties,)
        Amounts, in the unit of money of `price`.

    Raises
    ------
    ValueError
        If a parameter is not finite or outside its range, or "reserve" lacks `errors`,
        of one nonnegative entry per party.

    Examples
    --------
    >>> payments([0.2, 0.01, -0.1], price=1000.0).tolist()
    [200.0, 10.0, -100.0]
    >>> errors = [0.01, 0.02, 0.03]
    >>> payments([0.2, 0.01, -0.1], 1000.0, errors=errors, undecided="reserve").tolist()
    [200.0, 0.0, -100.0]
    """
    values = _finite(values, "values")
    price = check_positive(price, "price")
    if undecided not in ("pay", "reserve"):
        raise ValueError(f"undecided must be 'pay' or 'reserve'. Got {undecided!r}.")
    if undecided == "pay":
        return price * values
    if errors is None:
        raise ValueError(
            "errors must be given with undecided='reserve', since they decide who is "
            "paid. Got None."
        )
    errors = _finite(errors, "errors")
    if errors.shape != values.shape or errors.min() < 0:
        raise ValueError(
            f"errors must have one nonnegative entry per party, {len(values)} in "
            f"total. Got {errors.tolist()}."
        )
    is_decided = np.abs(values) > ndtri(0.975) * errors
    return np.where(is_decided, price * values, 0.0)


def by_period(values_of_periods, lengths=None):
    """Values of parties that join at different times: the sum over periods.

    In each period the parties present are valued in a game of their own, of the rows
    that exist then. What was earned in a period is not changed by who joins later, and
    a party whose values are above 0 does not gain by joining late.

    Parameters
    ----------
    values_of_periods : array-like of shape (n_periods, n_parties)
        Values of the parties in each period; NaN of a party that was not present.
    lengths : array-like of shape (n_periods,), default=None
        Lengths of the periods, above 0, which weight them. None is 1 for each.

    Returns
    -------
    values : ndarray of shape (n_parties,)
        Sums of the values times the lengths.

    Raises
    ------
    ValueError
        If the values are not a table or infinite, no party is present in some period,
        or lengths do not fit.

    Examples
    --------
    A third party joins in the second of two periods:

    >>> by_period([[0.2, 0.2, float("nan")], [0.15, 0.15, 0.15]]).round(2).tolist()
    [0.35, 0.35, 0.15]
    """
    values = np.asarray(values_of_periods, dtype=float)
    if values.ndim != 2 or not values.size or np.isinf(values).any():
        raise ValueError(
            "values_of_periods must be a table of finite numbers, or NaN, of shape "
            f"(n_periods, n_parties). Got shape {values.shape}."
        )
    is_absent = np.isnan(values)
    is_empty = is_absent.all(axis=1)
    if is_empty.any():
        raise ValueError(
            "values_of_periods must have a value in each period. Got only NaN in "
            f"period {int(np.argmax(is_empty))}."
        )
    if lengths is None:
        lengths = np.ones(len(values))
    lengths = _finite(lengths, "lengths")
    if len(lengths) != len(values) or lengths.min() <= 0:
        raise ValueError(
            f"lengths must have {len(values)} entries above 0, one per period. Got "
            f"{lengths.tolist()}."
        )
    return lengths @ np.where(is_absent, 0.0, values)
