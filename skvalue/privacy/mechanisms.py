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


class SeededNoiseWarning(UserWarning):
    """Noise was drawn from a seed: anyone who knows or guesses the seed can subtract
    the noise."""


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
    return _noise(event, int(np.prod(size, dtype=np.int64)), random_bytes).reshape(size)


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
    is_integer = isinstance(event, DiscreteGaussianEvent)
    return values + noise if is_integer else on_grid(values + noise, event.scale)


def checked_statistic(values, event, noise_random_state=None):
    """A statistic as an array, if noise of an event can be added to it."""
    values = np.asarray(values)
    _byte_source(noise_random_state, warn=False)
    _check_noise(event)
    is_integer = isinstance(event, DiscreteGaussianEvent)
    if is_integer and not np.issubdtype(values.dtype, np.integer):
        raise TypeError(
            f"values must be integers for {type(event).__name__}: round them to a grid first, or "
            f"use the continuous event. Got dtype {values.dtype}."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "values must be finite: noise does not hide NaN or infinity. Got some."
        )
    if is_integer and values.size and max(values.max(), -int(values.min())) > 2**62:
        raise ValueError(
            "values must be integers up to 2^62: use a coarser grid. Got larger ones."
        )
    return values.astype(np.int64) if is_integer else values


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
    >>> clip_and_noise([[3.0, 4.0]], 1.0, noise=np.array([[0.1, 0.2]]), noise_std=2.0**10).tolist()
    [[0.7001953125, 1.0]]
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    if noise is None:
        return clip_rows(vectors, clip)
    finite = np.isfinite(np.linalg.norm(vectors, axis=1, keepdims=True))
    return on_grid(clip_rows(np.where(finite, vectors, 0.0), clip) + noise, noise_std)


def on_grid(noisy, scale):
    """Round values with continuous noise to a grid, which hides the gaps of
    floating-point numbers.

    Some sums of a value and floating-point noise cannot result from another value,
    because the noise has gaps. A cell of the grid, of a width between 2^-21 and 2^-20
    of the noise scale, contains millions of sums. Its probability differs from that
    under noise without gaps by a relative ``2^-28 (1 + |noisy| / scale)`` at most, and
    rounding noise without gaps is post-processing.

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
    grid = grid_width(scale)
    with np.errstate(over="ignore"):  # numbers this large are on the grid already
        return np.where(
            np.abs(noisy) < 2.0**52 * grid, np.rint(noisy / grid) * grid, noisy
        )[()]


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
    """What `noise_source` returns; no closure, so that worker processes can draw
    noise."""

    event: object
    noise_random_state: int | None
    process: int = field(default_factory=os.getpid)

    @property
    def scale(self):
        return self.event.scale

    def __reduce__(
        self,
    ):  # what is sent to a worker process may draw there, a forked copy may not
        return type(self), (self.event, self.noise_random_state)

    def __call__(self, size, stream):
        check_process(self.process)
        random_bytes = secrets.token_bytes
        if self.noise_random_state is not None:
            random_bytes = np.random.default_rng(
                [self.noise_random_state, *stream]
            ).bytes
        count = int(np.prod(size, dtype=np.int64))
        return _noise(self.event, count, random_bytes).reshape(size)


def check_process(process):
    """Raise RuntimeError in another process than that of a release, such as a forked
    child."""
    if os.getpid() != process:
        raise RuntimeError(
            f"A release works in the process that made it, {process}, where it is counted and "
            f"charged once: other processes would draw fresh noise. Got {os.getpid()}."
        )


def poisson_sample(n_rows, probability, *, noise_random_state=None):
    """Draw a secret sample that contains each row with a probability, for
    `PoissonSampledEvent`.

    Draw a new sample for every sampled event, and never release it.

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
    words = np.frombuffer(_byte_source(noise_random_state)(8 * n_rows), dtype="<u8")
    if probability == 1:
        return np.ones(n_rows, dtype=bool)
    return words < np.uint64(int(probability * 2**64))


# Samplers -----------------------------------------------------------------------------


def _byte_source(noise_random_state, warn=True):
    if noise_random_state is None:
        return secrets.token_bytes
    if not isinstance(noise_random_state, Integral) or isinstance(
        noise_random_state, bool
    ):
        raise TypeError(
            f"noise_random_state must be None or an int. Got {noise_random_state!r}."
        )
    if warn:
        warnings.warn(
            "noise_random_state is set: the noise can be reproduced and subtracted, so NOTHING is "
            "guaranteed about privacy. Leave it None outside tests.",
            SeededNoiseWarning,
            stacklevel=3,
        )
    return np.random.default_rng(noise_random_state).bytes


def _check_noise(event):
    if type(event) not in (DiscreteGaussianEvent, GaussianEvent, LaplaceEvent):
        raise TypeError(
            f"event must be one noise event, such as GaussianEvent. Got {event!r}."
        )
    if isinstance(event, DiscreteGaussianEvent) and event.scale > 2**40:
        raise ValueError(
            f"event must have a scale up to 2^40: use a coarser grid. Got scale {event.scale:g}."
        )


def _noise(event, count, random_bytes):
    """Noise of a checked event."""
    if isinstance(event, DiscreteGaussianEvent):
        if _takes_opendp(random_bytes):
            return _opendp(event.scale, count)
        return _tables.discrete_gaussian(event.scale, count, random_bytes)
    # One bit of each word is the sign, and the others are a uniform number in (0, 1/2).
    words = np.frombuffer(random_bytes(8 * count), dtype="<u8")
    noise = (words >> np.uint64(1)).astype(np.float64)
    noise += 0.5
    noise *= 2.0**-64
    if isinstance(event, LaplaceEvent):
        signs = 1.0 - 2.0 * (words & np.uint64(1)).astype(float)
        return event.scale * signs * np.log(2 * noise)
    ndtri(noise, out=noise)  # in place; the quantiles are negative
    noise *= event.scale
    noise.view(np.uint64)[:] ^= words << np.uint64(63)
    return noise


def _takes_opendp(random_bytes):
    """Whether the sampler of opendp is installed; it cannot be seeded."""
    loaded = "opendp" in sys.modules  # as None, where an import is to fail
    installed = (sys.modules["opendp"] if loaded else _spec("opendp")) is not None
    return installed and random_bytes is secrets.token_bytes


_spec = cache(find_spec)  # to search all folders of sys.path takes longer than a draw


def _opendp(scale, count):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64))
    draw = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale)
    return np.asarray(draw(np.zeros(count, dtype=np.int64)), dtype=np.int64)
