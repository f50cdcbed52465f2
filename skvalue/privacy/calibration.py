"""Noise scales that give a requested privacy guarantee; they are rounded up."""

import math
from numbers import Real

from scipy.optimize import brentq

from .._utils.checks import (
    check_count,
    check_delta,
    check_epsilon,
    check_positive,
    check_relation,
)
from ..exceptions import ParameterError
from .accounting import delta_of, get_delta, simplify
from .events import DiscreteGaussianEvent, GaussianEvent, LaplaceEvent
from .gdp import delta_from_mu, mu_from_epsilon

_MEANINGFUL = 20.0  # an epsilon above it protects nothing


def calibrate_gaussian(epsilon, delta, sensitivity=1.0, relation="replace"):
    """Continuous Gaussian noise for a real statistic.

    For k releases of the same sensitivity within one (epsilon, delta), pass the
    sensitivity times sqrt(k).

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        In (0, 1).
    sensitivity : float, default=1.0
        L2 sensitivity under `relation`.
    relation : {"null", "add_remove", "replace"}, default="replace"
        Neighbouring relation under which the sensitivity holds.

    Returns
    -------
    event : GaussianEvent
        Its scale is the standard deviation of the noise.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    B. Balle, Y.-X. Wang: "Improving the Gaussian Mechanism for Differential Privacy",
    ICML 2018.

    Examples
    --------
    >>> round(calibrate_gaussian(1.0, 1e-5).scale, 4)
    3.7306
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    sensitivity = check_positive(sensitivity, "sensitivity")
    check_relation(relation)
    scale = sensitivity / mu_from_epsilon(epsilon, delta)
    while delta_from_mu(epsilon, sensitivity / scale) > delta:
        scale = math.nextafter(scale, math.inf)
    return GaussianEvent(scale, sensitivity, relation)


def calibrate_counts(
    epsilon, delta, max_contributions=1, relation="add_remove", step=1
):
    """Discrete Gaussian noise for counts, calibrated on the lattice of integers.

    If few counts change, the noise of the continuous formula is slightly too small (at
    `max_contributions` = 1 and epsilon = 1, delta would be 1.035e-5 instead of 1e-5).

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        In (0, 1).
    max_contributions : int, default=1
        Largest number of counts to which one row adds; the bound must not depend on the
        data.
    relation : {"null", "add_remove", "replace"}, default="add_remove"
        Neighbouring relation. Under "replace" both the old row and the new row change
        up to `max_contributions` counts, so twice that number may change.
    step : int, default=1
        Largest amount that one row adds to a count.

    Returns
    -------
    event : DiscreteGaussianEvent
        Its scale is that of the noise on every count.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke: "The Discrete Gaussian for Differential Privacy",
    NeurIPS 2020, Theorem 7, here for M coordinates.

    Examples
    --------
    >>> round(calibrate_counts(1.0, 1e-5, max_contributions=1).scale, 2)
    3.74
    >>> round(calibrate_counts(1.0, 1e-5, max_contributions=200).scale, 2)
    52.76
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    contributions = check_count(max_contributions, "max_contributions")
    if check_relation(relation) == "replace":
        contributions *= 2
    step = check_count(step, "step")
    target = math.log(delta) - 1e-11

    def event(scale):
        return DiscreteGaussianEvent(scale, contributions, step, relation)

    def excess(scale):
        return math.log(max(get_delta(event(scale), epsilon), 1e-300)) - target

    continuous = step * math.sqrt(contributions) / mu_from_epsilon(epsilon, delta)
    if get_delta(event(1e3 * continuous), epsilon) > delta:
        if epsilon <= _MEANINGFUL:
            raise ParameterError(
                "delta",
                "must be larger: samplers of integer noise are exact to 2^-100, and "
                f"exp(epsilon) times that is {math.exp(epsilon) * 2**-100:.2g}, below "
                f"which no delta can be promised. Got {delta:g}.",
            )
        raise ValueError(
            "epsilon must be smaller: samplers of integer noise are exact to 2^-100, "
            f"and exp(epsilon) times that exceeds delta={delta:g}. (Such an epsilon "
            f"protects nothing.) Got {epsilon:g}."
        )

    # The scale is near that of continuous noise: a bracket, and its root.
    low = continuous * 0.999
    high = continuous * 1.001
    while excess(low) < 0:
        high = low
        low = low / 1.05
    while excess(high) > 0:
        low = high
        high = high * 1.05
    scale = brentq(excess, low, high, xtol=1e-13 * continuous, rtol=1e-13)

    # Rounded up, until its delta is small enough.
    nudge = 1e-13
    while get_delta(event(scale), epsilon) > delta:
        scale = scale * (1 + nudge)
        nudge = 2 * nudge
    return event(float(scale))


def calibrate_laplace(epsilon, sensitivity=1.0, relation="replace"):
    """Continuous Laplace noise for a real statistic; delta is 0.

    Parameters
    ----------
    epsilon : float
        Above 0.
    sensitivity : float, default=1.0
        L1 sensitivity under `relation`.
    relation : {"null", "add_remove", "replace"}, default="replace"
        Neighbouring relation under which the sensitivity holds.

    Returns
    -------
    event : LaplaceEvent
        Its scale is that of the noise.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim, A. Smith: "Calibrating Noise to Sensitivity in
    Private Data Analysis", TCC 2006, Proposition 1.

    Examples
    --------
    >>> calibrate_laplace(0.5, sensitivity=2.0).scale
    4.0
    """
    epsilon = check_epsilon(epsilon)
    sensitivity = check_positive(sensitivity, "sensitivity")
    scale = sensitivity / epsilon
    while sensitivity / scale > epsilon:
        scale = math.nextafter(scale, math.inf)
    return LaplaceEvent(scale, sensitivity, relation)


def calibrate(make_event, epsilon, delta, tol=1e-3):
    """Smallest noise scale at which an event meets a guarantee, by bisection.

    For events without a closed-form calibration, such as sampled or composed ones. Each
    step of the bisection computes the cost, which with sampling takes a while.

    Parameters
    ----------
    make_event : callable
        Function from a noise scale to an event, such as ``lambda s:
        SelfComposedEvent(..., count)``. A larger scale must not cost more.
    epsilon : float
        Above 0.
    delta : float
        In (0, 1).
    tol : float, default=1e-3
        Relative tolerance of the scale, which is rounded up.

    Returns
    -------
    event : event
        ``make_event(scale)`` at a scale at which `get_delta` is at most delta.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or no scale up to 2^60 meets the guarantee.

    References
    ----------
    See `get_delta`.

    Examples
    --------
    >>> from skvalue.privacy import DiscreteGaussianEvent, SelfComposedEvent
    >>> def ten_counts(scale):
    ...     return SelfComposedEvent(DiscreteGaussianEvent(scale), 10)
    >>> event = calibrate(ten_counts, epsilon=1.0, delta=1e-5)
    >>> round(event.event.scale, 1)
    11.8
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise ValueError(f"tol must be in (0, 1). Got {tol!r}.")

    def is_enough(scale, **grid):
        return delta_of(simplify(make_event(scale)), epsilon, **grid) <= delta

    # The cost is computed faster on a coarser grid of losses, which moves the scale by
    # less than its tolerance.
    coarse = {"interval": epsilon * min(3e-4, 0.3 * tol)}

    # A bracket: the noise is too small at `low`, and enough at `high`. For events
    # that hardly need noise, the search for `low` ends at 2^-60.
    low = high = 1.0
    while is_enough(low, **coarse) and low > 2.0**-60:
        high = low
        low = low / 2
    while not is_enough(high, **coarse):
        low = high
        high = high * 2
        if high > 2.0**60:
            raise ValueError(
                "make_event must give events whose cost falls with the scale of the "
                f"noise. Got one that still costs more than epsilon={epsilon} at scale "
                f"{low:g}."
            )
    while high > low * (1 + tol):
        middle = math.sqrt(low * high)
        if is_enough(middle, **coarse):
            high = middle
        else:
            low = middle

    # The fine grid decides: what is enough on it may differ by a few steps either way.
    while high > 2.0**-60 and is_enough(high / (1 + tol)):
        high /= 1 + tol
    while not is_enough(high):
        high *= 1 + tol
    return make_event(high)
