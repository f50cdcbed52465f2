"""Gaussian differential privacy: exact conversions between mu and (epsilon, delta).

Gaussian noise of standard deviation s on a statistic of L2 sensitivity D is exactly
mu-GDP with mu = D / s. Releases compose exactly, also adaptively: their mu^2 add up.
"""

import math

from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr, roots_legendre

from .._utils.checks import (
    MAX_EPSILON,
    check_delta,
    check_epsilon,
    check_positive,
    check_relation,
)
from ..exceptions import ParameterError

# Relative margin on delta, larger than the rounding errors of `_log_delta` and of D /
# (D / mu). It changes a noise scale by a relative 1e-11 at most.
_MARGIN = 1e-10

_MAX_MU = 1e150  # the epsilon of a larger one overflows

_MAX_START = 38  # from here on, no double holds the delta of small mu

# Gauss-Legendre nodes on [0, 1], with their weights.
_NODES = [
    (0.5 * (1 + node), 0.5 * weight)
    for node, weight in zip(*map(list, roots_legendre(6)))
]


def _log_delta(epsilon, mu):
    """Logarithm of `delta_from_mu`, without cancellation in tails or at small mu."""
    if mu < 0.01:
        return _log_delta_at_small_mu(epsilon, mu)
    log_first = log_ndtr(mu / 2 - epsilon / mu)
    if epsilon > MAX_EPSILON:
        # The second term, less than 1 / mu of the first, would be a difference of large
        # numbers. Without it delta is larger.
        return log_first
    log_second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    if log_second >= log_first:
        return -math.inf
    return log_first + math.log(-math.expm1(log_second - log_first))


def _log_delta_at_small_mu(epsilon, mu):
    """As `_log_delta`, where both terms of delta agree in most digits.

    With Mills' ratio m(t) and a = epsilon/mu - mu/2, delta is phi(a) times the integral
    of 1 - t m(t) over t from a to a + mu.
    """
    start = epsilon / mu - mu / 2
    if start > _MAX_START:
        # Above the true value, and below the logarithm of any double.
        return -start * start / 2
    mean = 0.0
    for node, weight in _NODES:
        t = start + mu * node
        t_times_ratio = t * math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))
        mean += weight * (1 - t_times_ratio)
    return -start * start / 2 + math.log(mu * mean / math.sqrt(2 * math.pi))


def delta_from_mu(epsilon, mu):
    """Smallest delta at which a mu-GDP mechanism is (epsilon, delta)-private.

    ``delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``.

    Parameters
    ----------
    epsilon : float
        Privacy loss bound, at least 0.
    mu : float
        Sensitivity over standard deviation, above 0.

    Returns
    -------
    delta : float
        The delta.

    Raises
    ------
    ValueError
        If epsilon is negative or mu is not positive.

    References
    ----------
    B. Balle, Y.-X. Wang: "Improving the Gaussian Mechanism for Differential Privacy",
    ICML 2018, Theorem 8.

    J. Dong, A. Roth, W. Su: "Gaussian Differential Privacy", JRSS-B 2022, Corollary 1.

    Examples
    --------
    >>> f"{delta_from_mu(1.0, 0.5):.6f}"
    '0.006830'
    """
    mu = check_positive(mu, "mu")
    if epsilon != 0:
        epsilon = check_positive(epsilon, "epsilon")
    return math.exp(_log_delta(epsilon, mu))


def epsilon_from_mu(mu, delta):
    """Smallest epsilon at which a mu-GDP mechanism is (epsilon, delta)-private.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation, above 0.
    delta : float
        In (0, 1).

    Returns
    -------
    epsilon : float
        Rounded up: its delta is at most `delta`.

    Raises
    ------
    ValueError
        If mu is not positive or above 1e150, or delta is outside (0, 1).

    References
    ----------
    See `delta_from_mu`, of which this is the inverse in epsilon.

    Examples
    --------
    >>> round(epsilon_from_mu(0.2681, 1e-5), 3)
    1.0
    """
    mu = check_positive(mu, "mu")
    if mu > _MAX_MU:
        raise ParameterError(
            "mu", f"must be at most {_MAX_MU:g}, for a finite epsilon. Got {mu!r}."
        )
    delta = check_delta(delta)
    return smallest_epsilon(lambda epsilon: math.exp(_log_delta(epsilon, mu)), delta)


def smallest_epsilon(profile, delta, high=1.0):
    """Smallest epsilon at which a falling profile is at most delta, rounded up."""
    if profile(0.0) <= delta:
        return 0.0
    while profile(high) > delta:
        high *= 2

    def excess(epsilon):
        return math.log(max(profile(epsilon), 5e-324)) - math.log(delta)

    epsilon = brentq(excess, 0.0, high, xtol=1e-14, maxiter=1000)
    step = 1e-14 * max(1.0, epsilon)
    while profile(epsilon) > delta:
        epsilon = epsilon + step
        step = 2 * step
    return float(epsilon)


def mu_from_epsilon(epsilon, delta):
    """Largest mu for which mu-GDP implies (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        In (0, 1).

    Returns
    -------
    mu : float
        Rounded down: its delta is below `delta` by a relative 1e-10.

    Raises
    ------
    ValueError
        If epsilon is not positive or above 1e12, or delta is outside (0, 1).

    References
    ----------
    B. Balle, Y.-X. Wang: "Improving the Gaussian Mechanism for Differential Privacy",
    ICML 2018, Algorithm 1 (here by root finding on the logarithm of delta).

    Examples
    --------
    >>> round(mu_from_epsilon(1.0, 1e-5), 4)
    0.2681
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    target = math.log(delta) + math.log1p(-_MARGIN)

    def excess(mu):
        # Where delta underflows, its logarithm is -inf: the root finder needs a number.
        return max(_log_delta(epsilon, mu), -1e6) - target

    # A bracket. sqrt(2 epsilon) is the mu at which the loss exceeds epsilon with
    # probability 1/2.
    low = high = math.sqrt(2 * epsilon)
    while _log_delta(epsilon, low) > target:
        low /= 2
    while _log_delta(epsilon, high) < target:
        high *= 2
    mu = low
    if low < high:
        mu = brentq(excess, low, high, xtol=1e-15, rtol=1e-14)

    # Rounded down, until its delta is small enough.
    step = 1e-14
    while _log_delta(epsilon, mu) > target:
        mu = mu * (1 - step)
        step = 2 * step
    return float(mu)


def detection_ceiling(epsilon, delta, relation="replace"):
    """Largest AUROC of detectors that use only releases with Gaussian noise.

    Detecting from a row's own releases that the row was replaced (for example, that its
    label was flipped) is a test between two neighbours. With a mu-GDP mechanism no such
    test has an area under the ROC curve above ``Phi(mu / sqrt 2)``. Replacing a row is
    one step of "replace" and two steps of the other relations, for which mu doubles. A
    larger area means that the guarantee is broken.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        In (0, 1).
    relation : {"null", "add_remove", "replace"}, default="replace"
        Neighbouring relation of (epsilon, delta).

    Returns
    -------
    auroc : float
        The upper bound, in (0.5, 1].

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    J. Dong, A. Roth, W. Su, JRSS-B 2022: the ROC curve of N(0, 1) against N(mu, 1).

    Examples
    --------
    >>> round(detection_ceiling(1.0, 5e-5, "replace"), 3)
    0.583
    >>> round(detection_ceiling(1.0, 5e-5, "null"), 3)
    0.663
    """
    steps = 1 if check_relation(relation) == "replace" else 2
    if check_positive(epsilon, "epsilon") > MAX_EPSILON:
        return 1.0
    return float(ndtr(steps * mu_from_epsilon(epsilon, delta) / math.sqrt(2)))
