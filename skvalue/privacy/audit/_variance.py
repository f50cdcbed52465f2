"""Test of the variance of drawn noise against its event."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from ..events import DiscreteGaussianEvent, GaussianEvent, LaplaceEvent


@dataclass(frozen=True)
class VarianceReport:
    """Result of `check_variance`.

    Parameters
    ----------
    ratio : float
        Ratio of the empirical variance to the stated one.
    lowest, highest : float
        Bounds of the ratio for correct noise, except with probability `fail`. Laplace
        noise is above the upper one more often, at the default `fail` with a
        probability of 1.5e-5 for 100 draws and of 1.9e-6 for 1000.
    n : int
        Number of draws.
    passed : bool
        Whether the noise is not too small.
    wasteful : bool
        Whether the noise is too large, which costs accuracy but no privacy.

    Examples
    --------
    >>> from skvalue.privacy import GaussianEvent
    >>> check_variance([0.1] * 100, GaussianEvent(1.0)).passed
    False
    """

    ratio: float
    lowest: float
    highest: float
    n: int
    passed: bool
    wasteful: bool


def check_variance(noise, event, *, fail=1e-6):
    """Compare the variance of noise with that of its event, by a chi-square test.

    The variance is taken around the mean of the draws, since a common offset hides
    nothing.

    At the default `fail`, about 65 draws detect noise that is too small by a factor of
    2, 230 draws one of sqrt 2, and 10650 draws one of 5 %.

    Parameters
    ----------
    noise : array-like
        Independent draws: the released values minus the exact statistic.
    event : noise event
        Event that states the noise.
    fail : float, default=1e-6
        Probability of failing correct noise.

    Returns
    -------
    report : VarianceReport
        The report; it passes if the noise is not too small.

    Raises
    ------
    ValueError
        If there are fewer than 20 draws, or fail is not in (0, 1).
    TypeError
        If event is not a noise event.

    References
    ----------
    G. E. P. Box: "Some Theorems on Quadratic Forms", Annals of Mathematical Statistics
    25 (1954): degrees of freedom of a sum of squares of a given kurtosis (for Gaussian
    noise, the number of draws minus one).

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.privacy import GaussianEvent, draw_noise
    >>> check_variance(draw_noise(GaussianEvent(2.0), 1000), GaussianEvent(2.0)).passed
    True
    """
    noise = np.ravel(np.asarray(noise, dtype=float))
    if len(noise) < 20:
        raise ValueError(f"noise must hold at least 20 draws. Got {len(noise)}.")
    if not 0 < fail < 1:
        raise ValueError(f"fail must be in (0, 1). Got {fail!r}.")
    variance, kurtosis = _moments(event)
    ratio = float(np.var(noise, ddof=1)) / variance

    freedom = 2 * (len(noise) - 1) / (kurtosis - 1)
    lowest = _chi_square_quantile(fail / 2, freedom) / freedom
    highest = _chi_square_quantile(1 - fail / 2, freedom) / freedom
    return VarianceReport(
        ratio=ratio,
        lowest=lowest,
        highest=highest,
        n=len(noise),
        passed=ratio >= lowest,
        wasteful=ratio > highest,
    )


def _chi_square_quantile(level, freedom):
    return 2 * float(gammaincinv(freedom / 2, level))


def _moments(event):
    """Variance and kurtosis of the noise of an event."""
    match event:
        case LaplaceEvent():
            return 2 * event.scale**2, 6.0
        case DiscreteGaussianEvent() if event.scale <= 100:
            radius = math.ceil(15 * event.scale) + 1
            x = np.arange(-radius, radius + 1)
            weights = np.exp(-0.5 * (x / event.scale) ** 2)
            total = weights.sum()
            variance = float(weights @ x**2 / total)
            fourth_moment = float(weights @ x.astype(float) ** 4 / total)
            return variance, fourth_moment / variance**2
        case GaussianEvent() | DiscreteGaussianEvent():
            return event.scale**2, 3.0
    raise TypeError(
        f"event must be one noise event, such as GaussianEvent. Got {event!r}."
    )
