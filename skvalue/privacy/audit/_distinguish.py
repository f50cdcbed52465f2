"""Audit by a distinguishing game: which of two neighbouring data sets was the input?"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri

from ..._utils.checks import check_count, check_delta
from ..accounting import get_delta

_EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
_QUANTILES = np.concatenate(
    [np.geomspace(3e-4, 8e-3, 6), np.linspace(0.01, 0.99, 52), 1 - np.geomspace(8e-3, 3e-4, 6)]
)


@dataclass(frozen=True)
class DistinguishReport:
    """Result of `distinguish`; all bounds hold jointly, except with probability `fail`.

    Parameters
    ----------
    passed : bool
        Whether the claim was not refuted.
    violation : float
        Largest difference between a lower bound on the true delta(epsilon) and the claimed one; the
        claim is refuted if it is above 0.
    epsilon_at : float
        The epsilon of this largest difference.
    epsilon_lower : float
        The mechanism is not (epsilon, `delta`)-private for any smaller epsilon.
    mu_lower : float
        The mechanism is not mu-GDP for any smaller mu.
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
    epsilon_lower: float
    mu_lower: float
    n_runs: int
    fail: float


def distinguish(release, data, neighbour, score, event, *, n_runs=4000, **options):
    """Run a mechanism on two neighbouring data sets and try to distinguish the results.

    With noise configured for epsilon = 8, 1000 runs detect noise that is too small by a factor of
    2, 4000 runs one of sqrt 2, and 20000 runs one of sqrt 1.5.

    Parameters
    ----------
    release : callable
        The mechanism: a function from data to a release, with fresh noise at every call.
    data, neighbour : objects
        Two neighbouring data sets, preferably the worst case.
    score : callable
        Function from a release to a number that is larger if `data` is more likely the input;
        ideally the projection on the direction in which the neighbours differ.
    event : event or callable
        Event that the mechanism claims, or its profile: a function from epsilon >= 0 to delta.
    n_runs : int, default=4000
        Number of runs on each of the neighbours.
    **options : dict
        Options of `distinguish_scores`.

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
    scores = [[float(score(release(rows))) for _ in range(n_runs)] for rows in (data, neighbour)]
    return distinguish_scores(*scores, event, **options)


def distinguish_scores(scores, scores_neighbour, event, *, delta=1e-5, fail=1e-6):
    """As `distinguish`, from given scores, such as those of vectorised runs.

    Half of the runs choose thresholds. On the other half, Clopper-Pearson bounds on the rates of
    right and wrong guesses, corrected for the number of tests, must satisfy
    ``true rate <= exp(e) false rate + delta(e)`` at every e of a grid, in both directions.

    Parameters
    ----------
    scores, scores_neighbour : array-like of shape (n_runs,)
        Scores of independent runs on the data and on its neighbour.
    event : event or callable
        Event that the mechanism claims, or its profile: a function from epsilon >= 0 to delta.
    delta : float, default=1e-5
        The delta at which `epsilon_lower` is stated.
    fail : float, default=1e-6
        Probability of refuting a correct mechanism.

    Returns
    -------
    report : DistinguishReport
        The report; it passes if the claim is not refuted.

    Raises
    ------
    ValueError
        If there are fewer than 100 runs, or different numbers of them, a score is NaN, or fail or
        delta is not in (0, 1).

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
    delta, fail = check_delta(delta), check_delta(fail, "fail")
    profile = event if callable(event) else lambda e: get_delta(event, max(e, 1e-9))

    half = len(scores) // 2
    pooled = np.sort(np.concatenate([scores[:half], others[:half]]))  # with infinite ones
    cuts = np.unique(pooled[np.ceil(_QUANTILES * (len(pooled) - 1)).astype(np.int64)])
    rates = [_rates(part[:half], cuts) for part in (scores, others)]
    tests = _choose(*rates, delta)
    level = fail / (2 * len(tests))
    bounds = _Bounds(scores[half:], others[half:], cuts, level)

    claimed = {epsilon: profile(epsilon) for epsilon in _EPSILONS}
    violation, epsilon_at, epsilon_lower, mu_lower = -math.inf, 0.0, 0.0, 0.0
    for kind, epsilon, flipped, cut in tests:
        right, wrong = bounds(cut, flipped)
        if kind == "profile":
            excess = right - math.exp(epsilon) * wrong - claimed[epsilon]
            if excess > violation:
                violation, epsilon_at = excess, epsilon
        elif kind == "epsilon" and right > delta:
            epsilon_lower = max(epsilon_lower, math.log((right - delta) / wrong))
        elif kind == "mu" and right > 0 and wrong < 1:
            mu_lower = max(mu_lower, float(ndtri(right) - ndtri(wrong)))
    return DistinguishReport(
        violation <= 0, float(violation), epsilon_at, epsilon_lower, mu_lower, len(scores), fail
    )


def _rates(scores, cuts):
    """Fraction of scores at or above every cut."""
    return 1 - np.searchsorted(np.sort(scores), cuts, side="left") / len(scores)


def _choose(right, wrong, delta):
    """Tests (kind, epsilon, flipped, cut), each with the best cut on the first half of the runs."""
    directions = ((False, right, wrong), (True, 1 - wrong, 1 - right))
    tests = []
    for epsilon in _EPSILONS:
        for flipped, true, false in directions:
            best = np.argmax(true - math.exp(epsilon) * false)
            tests.append(("profile", epsilon, flipped, int(best)))
    for flipped, true, false in directions:
        # A cut without wrong guesses here may have some in the second half.
        ratio = np.log(np.maximum(true - delta, 1e-12) / np.maximum(false, 1e-3))
        tests.append(("epsilon", 0.0, flipped, int(np.argmax(ratio))))
    inner = np.minimum.reduce([right, wrong, 1 - right, 1 - wrong]) > 0.02
    gap = ndtri(np.clip(right, 1e-3, 1 - 1e-3)) - ndtri(np.clip(wrong, 1e-3, 1 - 1e-3))
    tests.append(("mu", 0.0, False, int(np.argmax(np.where(inner, gap, -np.inf)))))
    return tests


class _Bounds:
    """Clopper-Pearson bounds on right (from below) and wrong (from above) guesses at a cut."""

    def __init__(self, scores, others, cuts, level):
        self.n = len(scores)
        self.counts = [
            np.rint(_rates(part, cuts) * self.n).astype(int) for part in (scores, others)
        ]
        self.level = level

    def __call__(self, cut, flipped):
        right, wrong = (int(counts[cut]) for counts in self.counts)
        if flipped:
            right, wrong = self.n - wrong, self.n - right
        lower = betaincinv(right, self.n - right + 1, self.level) if right else 0.0
        upper = betaincinv(wrong + 1, self.n - wrong, 1 - self.level) if wrong < self.n else 1.0
        return float(lower), float(upper)
