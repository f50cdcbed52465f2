"""Noise of an event, drawn from the entropy of the operating system.

Integer noise (`DiscreteGaussianEvent`) has the distribution that is accounted for:
exactly if opendp is installed, which then draws it, and otherwise within 2^-100 in
total variation. Continuous noise consists of floating-point numbers, whose gaps reveal
the noiseless value if sums are released to the last bit (I. Mironov: "On Significance
of the Least Significant Bits for Differential Privacy", CCS 2012). Released numbers are
therefore rounded, always by `on_grid` (or a compiled copy of it) at the scale of their
noise. Each such number is drawn from 64 random bits: outcomes of probability below
2^-64 never occur, so a delta below 1e-18, or of zero, holds except with that
probability per number.
"""

import os
import secrets
import sys
import warnings
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from numbers import Integral

import numpy as np
from scipy.special import ndtri

from .._utils.checks import check_count, check_positive
from . import _tables
from .clipping import clip_rows
from .events import DiscreteGaussianEvent, GaussianEvent, LaplaceEvent

_MAX_LATTICE_SCALE = 2**40  # of integer noise
_MAX_INTEGER = 2**62  # of statistics to which integer noise is added


class SeededNoiseWarning(UserWarning):
    """Noise was drawn from a seed: who knows or guesses the seed can subtract it."""


# Single releases ----------------------------------------------------------------------


def draw_noise(event, size, *, noise_random_state=None):
    """Draw noise from the distribution that an event states.

    Sums with continuous noise must not be released to the last bit: use `add_noise`,
    which rounds them.

    Parameters
    ----------
    event : noise event
        GaussianEvent, DiscreteGaussianEvent or LaplaceEvent.
    size : int or tuple of int
        Shape of the noise.
    noise_random_state : int, default=None
        For tests only: seed of the noise, with a `SeededNoiseWarning`. It VOIDS the
        guarantee. None, the only setting for production, uses the entropy of the
        operating system.

    Returns
    -------
    noise : ndarray of shape `size`
        Integers (int64) for discrete events, float64 for continuous ones.

    Raises
    ------
    TypeError
        If event is not a noise event, or noise_random_state is neither None nor an int.
    ValueError
        If the scale of integer noise is above 2^40.

    Examples
    --------
    >>> from skvalue.privacy import DiscreteGaussianEvent, draw_noise
    >>> draw_noise(DiscreteGaussianEvent(scale=3.74), size=(2, 3)).shape
    (2, 3)
    """
    random_bytes = _byte_source(noise_random_state)
    _check_noise(event)
    n_numbers = int(np.prod(size, dtype=np.int64))
    return _noise(event, n_numbers, random_bytes).reshape(size)


def add_noise(values, event, *, noise_random_state=None):
    """Add the noise of an event to a statistic.

    It charges no ledger: see `Release`.

    Parameters
    ----------
    values : array-like
        The statistic, integers for discrete events. `event` must describe one release
        of it.
    event : noise event
        As in `draw_noise`.
    noise_random_state : int, default=None
        For tests only, see `draw_noise`; VOIDS the guarantee.

    Returns
    -------
    noisy : ndarray
        The released values, of the shape of `values`; with continuous noise they are
        rounded by `on_grid`.

    Raises
    ------
    TypeError
        If the event is discrete and the values are not integers, or as in `draw_noise`.
    ValueError
        If the values contain NaN, infinity or huge integers; no noise is drawn then.

    Examples
    --------
    >>> from skvalue.privacy import add_noise, calibrate_counts
    >>> event = calibrate_counts(epsilon=1.0, delta=1e-5, max_contributions=2)
    >>> add_noise([7, 3], event).dtype
    dtype('int64')
    """
    values = checked_statistic(values, event, noise_random_state)
    noise = draw_noise(event, values.shape, noise_random_state=noise_random_state)
    if isinstance(event, DiscreteGaussianEvent):
        return values + noise
    return on_grid(values + noise, event.scale)


def checked_statistic(values, event, noise_random_state=None):
    """A statistic as an array, if noise of an event can be added to it."""
    values = np.asarray(values)
    _byte_source(noise_random_state, warn=False)
    _check_noise(event)
    is_discrete = isinstance(event, DiscreteGaussianEvent)
    if is_discrete and not np.issubdtype(values.dtype, np.integer):
        raise TypeError(
            f"values must be integers for {type(event).__name__}: round them to a grid "
            f"first, or use the continuous event. Got dtype {values.dtype}."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "values must be finite: noise does not hide NaN or infinity. Got some."
        )
    if not is_discrete:
        return values
    if values.size and max(values.max(), -int(values.min())) > _MAX_INTEGER:
        raise ValueError(
            "values must be integers up to 2^62: use a coarser grid. Got larger ones."
        )
    return values.astype(np.int64)


def clip_and_noise(vectors, clip, noise=None, noise_std=1.0):
    """Release private vectors: clip them to a norm, add noise, and round to a grid.

    Gradients and updates are released by this function, or by a kernel that returns the
    same bits for clipped vectors.

    Parameters
    ----------
    vectors : array-like of shape (n, p)
        The vectors. With noise, a vector whose norm is not finite becomes zero, since
        an error would reveal it; without noise, non-finite vectors are passed on.
    clip : float or None
        Bound on the norm of a vector, see `clip_rows`; None does not clip.
    noise : ndarray of shape (n, p), default=None
        Noise to add, see `noise_source`; None adds no noise and does not round.
    noise_std : float or ndarray of shape (n, 1), default=1.0
        Standard deviation of the noise, which sets the grid of `on_grid`.

    Returns
    -------
    released : ndarray of shape (n, p)
        The released vectors.

    Examples
    --------
    >>> clip_and_noise([[3.0, 4.0], [0.3, 0.4]], clip=1.0).round(3).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    >>> noise = np.array([[0.1, 0.2]])
    >>> clip_and_noise([[3.0, 4.0]], 1.0, noise, noise_std=2.0**10).tolist()
    [[0.7001953125, 1.0]]
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    if noise is None:
        return clip_rows(vectors, clip)
    with np.errstate(over="ignore"):  # a warning would reveal one, too
        is_finite = np.isfinite(np.linalg.norm(vectors, axis=1, keepdims=True))
    clipped = clip_rows(np.where(is_finite, vectors, 0.0), clip)
    return on_grid(clipped + noise, noise_std)


def on_grid(noisy, scale):
    """Round values with continuous noise to a grid.

    Rounding hides the gaps of floating-point numbers. Some sums of a value and
    floating-point noise cannot result from another value, because the noise has gaps. A
    cell of the grid, of a width between 2^-21 and 2^-20 of the noise scale, contains
    millions of sums. Its probability differs from that under noise without gaps by a
    relative ``2^-28 (1 + |noisy| / scale)`` at most, and rounding noise without gaps is
    post-processing.

    Parameters
    ----------
    noisy : ndarray
        Values with noise.
    scale : float or ndarray
        Scale of the noise.

    Returns
    -------
    rounded : ndarray
        Multiples of a power of two.

    Examples
    --------
    >>> on_grid(np.array([0.3337, -1.0]), scale=1.0).tolist()
    [0.33370018005371094, -1.0]
    """
    width = grid_width(scale)
    with np.errstate(over="ignore"):
        # Larger numbers are on the grid already.
        is_between = np.abs(noisy) < 2.0**52 * width
        rounded = np.rint(noisy / width) * width
        return np.where(is_between, rounded, noisy)[()]


def grid_width(scale):
    """Width of the cells of `on_grid`.

    Parameters
    ----------
    scale : float or ndarray
        Scale of the noise.

    Returns
    -------
    width : float or ndarray
        A power of two, between 2^-21 and 2^-20 of the scale.

    Examples
    --------
    >>> float(grid_width(3.0)) * 2**19
    1.0
    """
    return np.maximum(np.exp2(np.floor(np.log2(scale)) - 20), 2.0**-1022)


# Sequences of releases ----------------------------------------------------------------


def noise_source(event, *, noise_random_state=None):
    """Function that draws noise of an event repeatedly.

    Parameters
    ----------
    event : noise event
        As in `draw_noise`.
    noise_random_state : int, default=None
        For tests only, see `draw_noise`; VOIDS the guarantee, with one warning.

    Returns
    -------
    draw : callable
        ``draw(size, stream)`` returns fresh noise of scale ``draw.scale``. From a seed,
        each tuple of ints ``stream`` has its own noise, which does not depend on the
        order of the calls.

    Raises
    ------
    TypeError
        If noise_random_state is neither None nor an int.
    ValueError
        As in `draw_noise`.
    RuntimeError
        From the function, in a forked child of the process that made it.

    Examples
    --------
    >>> from skvalue.privacy import GaussianEvent, noise_source
    >>> draw = noise_source(GaussianEvent(scale=2.0))
    >>> draw((3, 2), stream=(0,)).shape
    (3, 2)
    """
    _byte_source(noise_random_state)
    _check_noise(event)
    return _NoiseSource(event, noise_random_state)


@dataclass(frozen=True)
class _NoiseSource:
    """What `noise_source` returns.

    It is no closure, so that worker processes, to which it is sent, can draw noise.
    """

    event: object
    noise_random_state: int | None
    process: int = field(default_factory=os.getpid)

    @property
    def scale(self):
        return self.event.scale

    def __reduce__(self):
        # A copy that is sent belongs to the process that loads it; a forked one does
        # not.
        return type(self), (self.event, self.noise_random_state)

    def __call__(self, size, stream):
        check_process(self.process)
        random_bytes = secrets.token_bytes
        if self.noise_random_state is not None:
            seeds = [self.noise_random_state, *stream]
            random_bytes = np.random.default_rng(seeds).bytes
        n_numbers = int(np.prod(size, dtype=np.int64))
        return _noise(self.event, n_numbers, random_bytes).reshape(size)


def check_process(process):
    """Raise RuntimeError in another process than that of a release, as forks are."""
    if os.getpid() != process:
        raise RuntimeError(
            f"A release works in the process that made it, {process}, where it is "
            "counted and charged once: other processes would draw fresh noise. Got "
            f"{os.getpid()}."
        )


# Secret samples -----------------------------------------------------------------------


def poisson_sample(n_rows, probability, *, noise_random_state=None):
    """Draw a secret sample that contains each row with a probability.

    For a `PoissonSampledEvent`. Draw a new sample for every sampled event, and never
    release it.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    probability : float
        In (0, 1]; rounded down to a multiple of 2^-64.
    noise_random_state : int, default=None
        For tests only, see `draw_noise`; VOIDS the guarantee.

    Returns
    -------
    sample : ndarray of bool of shape (n_rows,)
        True for the rows in the sample.

    Raises
    ------
    ValueError
        If n_rows is not an integer of at least 1, or the probability is not in (0, 1].
    TypeError
        If noise_random_state is neither None nor an int.

    Examples
    --------
    >>> poisson_sample(5, probability=1.0).tolist()
    [True, True, True, True, True]
    """
    n_rows = check_count(n_rows, "n_rows")
    probability = check_positive(probability, "probability")
    if probability > 1:
        raise ValueError(f"probability must be in (0, 1]. Got {probability}.")
    random_bytes = _byte_source(noise_random_state)
    words = np.frombuffer(random_bytes(8 * n_rows), dtype="<u8")
    if probability == 1:
        return np.ones(n_rows, dtype=bool)
    return words < np.uint64(int(probability * 2**64))


# Samplers -----------------------------------------------------------------------------


def _byte_source(noise_random_state, warn=True):
    """The function that returns n random bytes."""
    if noise_random_state is None:
        return secrets.token_bytes
    is_integer = isinstance(noise_random_state, Integral)
    if not is_integer or isinstance(noise_random_state, bool):
        raise TypeError(
            f"noise_random_state must be None or an int. Got {noise_random_state!r}."
        )
    if warn:
        warnings.warn(
            "noise_random_state is set: the noise can be reproduced and subtracted, so "
            "NOTHING is guaranteed about privacy. Leave it None outside tests.",
            SeededNoiseWarning,
            stacklevel=3,
        )
    return np.random.default_rng(noise_random_state).bytes


def _check_noise(event):
    """Refuse events that state no noise of one release, or too much integer noise."""
    if type(event) not in (DiscreteGaussianEvent, GaussianEvent, LaplaceEvent):
        raise TypeError(
            f"event must be one noise event, such as GaussianEvent. Got {event!r}."
        )
    is_discrete = isinstance(event, DiscreteGaussianEvent)
    if is_discrete and event.scale > _MAX_LATTICE_SCALE:
        raise ValueError(
            "event must have a scale up to 2^40: use a coarser grid. Got scale "
            f"{event.scale:g}."
        )


def _noise(event, n_numbers, random_bytes):
    """Noise (n_numbers,) of a checked event."""
    if isinstance(event, DiscreteGaussianEvent):
        return _integer_noise(event.scale, n_numbers, random_bytes)

    # One bit of each word is the sign, and the others are a uniform number in (0, 1/2).
    words = np.frombuffer(random_bytes(8 * n_numbers), dtype="<u8")
    noise = (words >> np.uint64(1)).astype(np.float64)
    noise += 0.5
    noise *= 2.0**-64
    if isinstance(event, LaplaceEvent):
        signs = 1.0 - 2.0 * (words & np.uint64(1)).astype(float)
        return event.scale * signs * np.log(2 * noise)

    # Quantiles of a normal distribution, in place. They are negative: where the last
    # bit of a word is set, the sign bit of the number is flipped.
    ndtri(noise, out=noise)
    noise *= event.scale
    noise.view(np.uint64)[:] ^= words << np.uint64(63)
    return noise


def _integer_noise(scale, n_numbers, random_bytes):
    """Discrete Gaussian noise, by opendp where it is installed.

    opendp cannot be seeded, and draws from the operating system's entropy only.
    """
    if random_bytes is secrets.token_bytes and _has_opendp():
        return _opendp_noise(scale, n_numbers)
    return _tables.discrete_gaussian(scale, n_numbers, random_bytes)


_find_spec = cache(find_spec)  # a search of all folders takes longer than a draw


def _has_opendp():
    """Whether opendp is installed."""
    if "opendp" in sys.modules:
        # None is there for a module whose import is to fail.
        return sys.modules["opendp"] is not None
    return _find_spec("opendp") is not None


def _opendp_noise(scale, n_numbers):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    draw = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale)
    return np.asarray(draw(np.zeros(n_numbers, dtype=np.int64)), dtype=np.int64)
