"""From values of parties to what they receive: target values of rewards, and shares of money.

Arrays in, arrays out: whoever computed the values, and whatever the parties are.
"""

import numpy as np

from ._utils.checks import check_positive

__all__ = ["largest_rho", "rho_targets", "shares"]


def _finite(values, name):
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{name} must be a sequence of numbers. Got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite. Got {values.tolist()}.")
    return values


def rho_targets(values, grand_value, rho):
    """Target values of rewards in the rho-Shapley fair scheme.

    Party i receives ``grand_value * (max(values[i], 0) / max(values)) ** rho``: the most valuable
    party everything, a null party nothing. A smaller rho makes rewards more equal and their sum
    larger.

    Parameters
    ----------
    values : array-like of shape (n_parties,)
        Shapley values; at least one is above 0.
    grand_value : float
        Value of what all parties have together, above 0.
    rho : float
        Exponent, above 0.

    Returns
    -------
    targets : ndarray of shape (n_parties,)
        In the unit of `grand_value`.

    Raises
    ------
    ValueError
        If a parameter is not finite or outside its range, or no value is above 0.

    References
    ----------
    R. H. L. Sim, Y. Zhang, T. N. Hoang, X. Xu, B. K. H. Low, P. Jaillet: "Incentives in Private
    Collaborative Machine Learning", NeurIPS 2023, Section 4.

    Examples
    --------
    >>> rho_targets([1.0, 4.0, 0.0], grand_value=5.0, rho=0.5).tolist()
    [2.5, 5.0, 0.0]
    """
    values = _finite(values, "values")
    grand_value, rho = check_positive(grand_value, "grand_value"), check_positive(rho, "rho")
    if values.max() <= 0:
        raise ValueError(f"values must have one above 0. Got at most {values.max():g}.")
    return grand_value * (np.maximum(values, 0.0) / values.max()) ** rho


def largest_rho(values, standalone, grand_value):
    """Largest rho at which every party receives at least what it has alone.

    The condition ``rho_targets(...)[i] >= standalone[i]`` is, for a party of less than the largest
    Shapley value, ``rho <= log(standalone[i] / grand_value) / log(values[i] / max(values))``.

    Parameters
    ----------
    values : array-like of shape (n_parties,)
        Shapley values; at least one is above 0.
    standalone : array-like of shape (n_parties,)
        Value of each party alone, not negative.
    grand_value : float
        Value of all together, above 0.

    Returns
    -------
    rho : float
        The bound: infinite where nothing binds, 0.0 or negative where no rho will do (a party that
        alone is worth as much as all together, or that has a value alone and none to the others).

    Raises
    ------
    ValueError
        If a parameter is not finite or outside its range, lengths differ, or no value is above 0.

    References
    ----------
    Sim et al., NeurIPS 2023, Section 4, after Theorem 1 of R. H. L. Sim, Y. Zhang, M. C. Chan,
    B. K. H. Low: "Collaborative Machine Learning with Incentive-Aware Model Rewards", ICML 2020.

    Examples
    --------
    >>> largest_rho([1.0, 4.0], [1.25, 4.0], grand_value=5.0)
    1.0
    """
    values, standalone = _finite(values, "values"), _finite(standalone, "standalone")
    grand_value = check_positive(grand_value, "grand_value")
    if len(values) != len(standalone):
        raise ValueError(
            "values and standalone must have one entry a party each. Got "
            f"{len(values)} and {len(standalone)}."
        )
    if standalone.min() < 0:
        raise ValueError(f"standalone must not be negative. Got {standalone.min():g}.")
    top = values.max()
    if top <= 0:
        raise ValueError(f"values must have one above 0. Got at most {top:g}.")
    bounds = []
    for value, alone in zip(values, standalone):
        if value == top:
            # Its target is the grand value, whatever rho.
            bounds.append(np.inf if alone <= grand_value else -np.inf)
        elif alone == 0:
            bounds.append(np.inf)
        elif value <= 0:
            bounds.append(0.0)  # its target is 0 for every rho
        else:
            bounds.append(np.log(alone / grand_value) / np.log(value / top))
    return float(min(bounds))


def shares(values, budget, unit=None):
    """Divide a sum of money in proportion to values.

    Negative values count as 0: nobody pays in.

    Parameters
    ----------
    values : array-like of shape (n_parties,)
        Values; at least one is above 0.
    budget : float
        What there is to divide, above 0.
    unit : float, default=None
        Smallest coin, such as 0.01, of which the budget is a multiple: shares are multiples of it
        that add up to the budget, by largest remainders (equal ones: earlier parties first). None
        does not round.

    Returns
    -------
    shares : ndarray of shape (n_parties,)
        What each receives; the sum is the budget.

    Raises
    ------
    ValueError
        If a parameter is not finite or outside its range, no value is above 0, or the budget is no
        multiple of the unit.

    Examples
    --------
    >>> shares([2.0, 1.0, -0.5], budget=90.0).tolist()
    [60.0, 30.0, 0.0]
    >>> shares([1.0, 1.0, 1.0], budget=1.0, unit=0.01).tolist()
    [0.34, 0.33, 0.33]
    """
    values, budget = _finite(values, "values"), check_positive(budget, "budget")
    parts = np.maximum(values, 0.0)
    if not parts.any():
        raise ValueError(f"values must have one above 0. Got at most {values.max():g}.")
    parts /= parts.max()  # sums of huge values do not overflow
    parts = budget * (parts / parts.sum())
    if unit is None:
        return parts
    coins = budget / check_positive(unit, "unit")
    if abs(coins - round(coins)) > 1e-6 * max(1.0, coins * 1e-6):
        raise ValueError(f"budget must be a multiple of unit={unit!r}. Got {budget!r}.")
    scaled = parts / budget * round(coins)
    whole = np.floor(scaled + 1e-9)
    left = round(coins) - int(whole.sum())
    whole[np.argsort(-(scaled - whole), kind="stable")[:left]] += 1
    # Division by a whole number of coins a unit rounds once: 34 coins of 0.01 are 0.34.
    per_one = 1 / unit
    return whole / round(per_one) if abs(per_one - round(per_one)) < 1e-9 else whole * unit
