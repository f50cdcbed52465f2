"""Audit by a distinguishing game: which of two neighbouring data sets was the input?"""

import math
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy.special import betaincinv

from ..._utils.checks import check_count, check_delta
from ..accounting import get_delta

_EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
_QUANTILES = np.concatenate(
    [
        np.geomspace(3e-4, 8e-3, 6),
        np.linspace(0.01, 0.99, 52),
        1 - np.geomspace(8e-3, 3e-4, 6),
    ]
)


@dataclass(frozen=True)
class DistinguishReport:
    """Result of `distinguish`; all bounds hold jointly, except with probability `fail`.

    Parameters
    ----------
    passed : bool
        Whether the claim was not refuted.
    violation : float
        Largest difference between a lower bound on the true delta(epsilon) and the
        claimed one; the claim is refuted if it is above 0.
    epsilon_at : float
        The epsilon of this largest difference.
    n_runs : int
        Number of runs on each of the neighbours.
    fail : float
        Probability of refuting a correct mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.privacy import GaussianEvent
    >>> draws = np.random.default_rng(0).normal(size=(2, 4000))
    >>> distinguish_scores(draws[0] + 9, draws[1], GaussianEvent(1.0)).passed
    False
    """

    passed: bool
    violation: float
    epsilon_at: float
    n_runs: int
    fail: float


def distinguish(release, data, neighbour, score, event, *, n_runs=4000, fail=1e-6):
    """Run a mechanism on two neighbouring data sets and try to distinguish the results.

    With noise configured for epsilon = 8, 1000 runs detect noise that is too small by a
    factor of 2, 4000 runs one of sqrt 2, and 20000 runs one of sqrt 1.5.

    Parameters
    ----------
    release : callable
        The mechanism: a function from data to a release, with fresh noise at every
        call.
    data, neighbour : objects
        Two neighbouring data sets, preferably the worst case.
    score : callable
        Function from a release to a number that is larger if `data` is more likely the
        input; ideally the projection on the direction in which the neighbours differ.
    event : event or callable
        Event that the mechanism claims, or its profile: a function from epsilon >= 0 to
        delta.
    n_runs : int, default=4000
        Number of runs on each of the neighbours.
    fail : float, default=1e-6
        Probability of refuting a correct mechanism.

    Returns
    -------
    report : DistinguishReport
        The report; it passes if the claim is not refuted.

    Raises
    ------
    ValueError
        If n_runs is below 100, or as in `distinguish_scores`.

    References
    ----------
    M. Jagielski, J. Ullman, A. Oprea: "Auditing Differentially Private Machine Learning", NeurIPS
    2020, here for the whole profile.

    Examples
    --------
    >>> from skvalue.privacy import add_noise, calibrate_counts
    >>> event = calibrate_counts(8.0, 1e-5, max_contributions=4)
    >>> def release(counts):
    ...     return add_noise(counts, event)
    >>> distinguish(release, [8] * 4, [7] * 4, sum, event, n_runs=500).passed
    True
    """
    check_count(n_runs, "n_runs")
    scores = [
        [float(score(release(rows))) for _ in range(n_runs)]
        for rows in (data, neighbour)
    ]
    return distinguish_scores(*scores, event, fail=fail)


def distinguish_scores(scores, scores_neighbour, event, *, fail=1e-6):
    """As `distinguish`, from given scores, such as those of vectorised runs.

    Half of the runs choose thresholds. On the other half, Clopper-Pearson bounds on the
    rates of right and wrong guesses, corrected for the number of tests, must satisfy
    ``true rate <= exp(e) false rate + delta(e)`` at every e of a grid, in both
    directions.

    Parameters
    ----------
    scores, scores_neighbour : array-like of shape (n_runs,)
        Scores of independent runs on the data and on its neighbour.
    event : event or callable
        Event that the mechanism claims, or its profile: a function from epsilon >= 0 to
        delta.
    fail : float, default=1e-6
        Probability of refuting a correct mechanism.

    Returns
    -------
    report : DistinguishReport
        The report; it passes if the claim is not refuted.

    Raises
    ------
    ValueError
        If there are fewer than 100 runs, or different numbers of them, a score is NaN,
        or fail is not in (0, 1).

    References
    ----------
    M. Jagielski, J. Ullman, A. Oprea, NeurIPS 2020; C. Clopper, E. Pearson, Biometrika 1934.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.privacy import calibrate_gaussian
    >>> event = calibrate_gaussian(8.0, 1e-5)
    >>> short = event.scale / 2
    >>> draws = short * np.random.default_rng(0).normal(size=(2, 4000))
    >>> distinguish_scores(draws[0] + 1, draws[1], event).passed
    False
    """
    scores, others = (np.asarray(s, dtype=float) for s in (scores, scores_neighbour))
    if scores.ndim != 1 or scores.shape != others.shape or len(scores) < 100:
        raise ValueError(
            "scores and scores_neighbour must be equally long, of at least 100 runs. Got shapes "
            f"{scores.shape} and {others.shape}."
        )
    if np.isnan(scores).any() or np.isnan(others).any():
        raise ValueError(
            "scores must be numbers or infinite. Got NaN: return inf or -inf for a release without "
            "a score, depending on the input that it suggests."
        )
    fail = check_delta(fail, "fail")
    profile = event if callable(event) else lambda e: get_delta(event, max(e, 1e-9))

    half = len(scores) // 2
    pooled = np.sort(
        np.concatenate([scores[:half], others[:half]])
    )  # with infinite ones
    cuts = np.unique(pooled[np.ceil(_QUANTILES * (len(pooled) - 1)).astype(np.int64)])
    first, second = (
        [_rates(part[runs], cuts) for part in (scores, others)]
        for runs in (slice(half), slice(half, None))
    )
    level, found = fail / (4 * len(_EPSILONS)), []  # two bounds, in two directions
    for epsilon in _EPSILONS:
        claimed, factor = profile(epsilon), math.exp(epsilon)
        for flipped in (False, True):
            right, wrong = _guesses(*first, flipped)
            best = np.argmax(right - factor * wrong)
            right, wrong = (rates[best] for rates in _guesses(*second, flipped))
            right, wrong = _clopper_pearson(right, wrong, len(scores) - half, level)
            found.append((right - factor * wrong - claimed, epsilon))
    violation, epsilon_at = max(found, key=itemgetter(0))
    return DistinguishReport(violation <= 0, violation, epsilon_at, len(scores), fail)


def _rates(scores, cuts):
    """Fraction of scores at or above every cut."""
    return 1 - np.searchsorted(np.sort(scores), cuts, side="left") / len(scores)


def _guesses(rates, rates_neighbour, flipped):
    """Rates of right and wrong guesses of the data; flipped, of their neighbour, at low
    scores."""
    return (1 - rates_neighbour, 1 - rates) if flipped else (rates, rates_neighbour)


def _clopper_pearson(right, wrong, n, level):
    """Bounds on the rates of right guesses, from below, and of wrong ones, from
    above."""
    right, wrong = round(right * n), round(wrong * n)
    lower = betaincinv(right, n - right + 1, level) if right else 0.0
    upper = betaincinv(wrong + 1, n - wrong, 1 - level) if wrong < n else 1.0
    return float(lower), float(upper)
