"""Audit by a distinguishing game: which of two neighbouring data sets was the input?"""

import math
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy.special import betaincinv

from ..._utils.checks import check_count, check_delta
from ..accounting import get_delta

_EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
_LOW_QUANTILES = np.geomspace(3e-4, 8e-3, 6)
_HIGH_QUANTILES = 1 - np.geomspace(8e-3, 3e-4, 6)
_QUANTILES = np.concatenate(
    [_LOW_QUANTILES, np.linspace(0.01, 0.99, 52), _HIGH_QUANTILES]
)
_MIN_RUNS = 100
_MIN_EPSILON = 1e-9  # of an event's profile, in place of 0


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
    M. Jagielski, J. Ullman, A. Oprea: "Auditing Differentially Private Machine
    Learning", NeurIPS 2020, here for the whole profile.

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
    scores = [float(score(release(data))) for _ in range(n_runs)]
    scores_neighbour = [float(score(release(neighbour))) for _ in range(n_runs)]
    return distinguish_scores(scores, scores_neighbour, event, fail=fail)


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
    M. Jagielski, J. Ullman, A. Oprea: "Auditing Differentially Private Machine
    Learning", NeurIPS 2020.

    C. Clopper, E. Pearson: "The Use of Confidence or Fiducial Limits Illustrated in the
    Case of the Binomial", Biometrika 1934.

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
    scores = np.asarray(scores, dtype=float)
    scores_neighbour = np.asarray(scores_neighbour, dtype=float)
    is_enough = scores.ndim == 1 and len(scores) >= _MIN_RUNS
    if not is_enough or scores.shape != scores_neighbour.shape:
        raise ValueError(
            "scores and scores_neighbour must be equally long, of at least 100 runs. "
            f"Got shapes {scores.shape} and {scores_neighbour.shape}."
        )
    if np.isnan(scores).any() or np.isnan(scores_neighbour).any():
        raise ValueError(
            "scores must be numbers or infinite. Got NaN: return inf or -inf for a "
            "release without a score, depending on the input that it suggests."
        )
    fail = check_delta(fail, "fail")
    profile = event if callable(event) else _profile(event)

    # Cuts are quantiles of the first half of the runs, the infinite ones among them.
    n_runs = len(scores)
    half = n_runs // 2
    pooled = np.sort(np.concatenate([scores[:half], scores_neighbour[:half]]))
    places = np.ceil(_QUANTILES * (len(pooled) - 1)).astype(np.int64)
    cuts = np.unique(pooled[places])
    first_rates = (_rates(scores[:half], cuts), _rates(scores_neighbour[:half], cuts))
    second_rates = (_rates(scores[half:], cuts), _rates(scores_neighbour[half:], cuts))

    # Every epsilon is tested with two bounds, in two directions.
    level = fail / (4 * len(_EPSILONS))
    violations = []
    for epsilon in _EPSILONS:
        claimed = profile(epsilon)
        factor = math.exp(epsilon)
        for is_flipped in (False, True):
            # The cut that violates the claim most in the first half is tested.
            right, wrong = _guesses(*first_rates, is_flipped)
            worst = np.argmax(right - factor * wrong)
            right, wrong = _guesses(*second_rates, is_flipped)
            least_right, most_wrong = _clopper_pearson(
                right[worst], wrong[worst], n_runs - half, level
            )
            violations.append((least_right - factor * most_wrong - claimed, epsilon))
    violation, epsilon_at = max(violations, key=itemgetter(0))
    return DistinguishReport(violation <= 0, violation, epsilon_at, n_runs, fail)


def _profile(event):
    """The function from epsilon to the delta of an event."""

    def profile(epsilon):
        return get_delta(event, max(epsilon, _MIN_EPSILON))

    return profile


def _rates(scores, cuts):
    """Fraction of scores at or above every cut."""
    return 1 - np.searchsorted(np.sort(scores), cuts, side="left") / len(scores)


def _guesses(rates, rates_neighbour, is_flipped):
    """Rates of right and wrong guesses at every cut.

    High scores are taken for those of the data; flipped, low ones for those of the
    neighbour.
    """
    if is_flipped:
        return 1 - rates_neighbour, 1 - rates
    return rates, rates_neighbour


def _clopper_pearson(right, wrong, n, level):
    """A lower bound of the rate of right guesses, and an upper one of wrong ones."""
    n_right = round(right * n)
    n_wrong = round(wrong * n)
    lower = 0.0
    if n_right:
        lower = betaincinv(n_right, n - n_right + 1, level)
    upper = 1.0
    if n_wrong < n:
        upper = betaincinv(n_wrong + 1, n - n_wrong, 1 - level)
    return float(lower), float(upper)
