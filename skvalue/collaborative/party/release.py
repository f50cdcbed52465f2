"""Release of a party: a noisy statistic, sent to the mediator once, and its public parameters."""

import json
import math
import sys
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from numbers import Integral, Real

import numpy as np

from ..._utils.records import integer, read_record, refuse
from ...privacy import GaussianEvent, draw_noise, on_grid
from ._statistics import (
    CROSS_WEIGHTS,
    gram_size,
    linear_sensitivity,
    logistic_sensitivity,
    logistic_size,
    moment_sensitivity,
    moment_size,
    moment_weight,
)

_FORMAT, _VERSION = "skvalue.collaborative.Release", 1
_FAMILIES = ("gaussian", "bernoulli", "poisson")
_KINDS = ("linear", "logistic", *_FAMILIES)
_MOST_CHARACTERS = 50_000_000
_MOST_FEATURES = 1000
_MOST_SAMPLES = 10**12
_MOST_MOMENTS = 40  # features with fourth moments, of which there are then 336,610
_MOST_WORDS = 2000


def _labels(labels, kind):
    """Two labels that JSON can hold, or none, as a tuple."""
    good = isinstance(labels, list | tuple) and (
        len(labels) == 0
        or (
            kind == "logistic"
            and len(labels) == 2
            and all(
                (isinstance(label, str) and len(label) <= _MOST_WORDS)
                or (isinstance(label, Integral | bool) and abs(label) < 2**63)
                or (isinstance(label, float) and math.isfinite(label))
                for label in labels
            )
            and labels[0] != labels[1]
        )
    )
    if not good:
        refuse("classes", "two different strings or numbers for kind='logistic', or none", labels)
    return tuple(labels)


def _number(value, name, rule="a finite number above 0", lowest=0.0, strict=True):
    good = isinstance(value, Real) and not isinstance(value, bool)
    good = good and lowest <= value and abs(value) <= sys.float_info.max
    if not good or (strict and value == lowest):
        refuse(name, rule, value)
    return float(value)


@dataclass(frozen=True)
class Release:
    """A party's noisy sufficient statistic and its public parameters.

    The estimators `GramRelease`, `LogisticRelease` and `MeanRelease` make it on the party's
    machine; `to_json` and `from_json` transfer it to the mediator. All fields are public: the
    privacy guarantee is about exactly these fields. They are checked on construction.

    Parameters
    ----------
    kind : {"linear", "logistic", "gaussian", "bernoulli", "poisson"}
        Kind of the statistic.
    n_samples : int
        Number of rows of the party, which is public.
    statistic : sequence of float
        The noisy statistic: for "linear" the weighted lower triangle of the Gram matrix of
        (1 if `intercept`, x, y) without the count, and fourth moments of x if `moments_fraction` is
        not 0; for "logistic" the sum of y u, u = (1 if `intercept`, x), and the weighted lower
        triangle of the sum of u u' without the count; else one sum.
    renyi_epsilon : float or None
        Bound on the Renyi divergence of order `renyi_order`. None: no noise and no privacy.
    renyi_order : float
        Order of the Renyi divergence, above 1.
    bounds : tuple of float
        Bounds to which the rows were clipped: (x_bound, y_bound), (x_bound,) or (lower, upper).
    n_features : int, default=0
        Number of features; 0 for "gaussian", "bernoulli" and "poisson".
    intercept : bool, default=False
        Whether there is a constant feature ("linear" and "logistic" only).
    layout : {"svec", "cross"}, default="svec"
        Weights of the entries for "linear", see `GramRelease`.
    moments_fraction : float, default=0.0
        Fraction of the privacy loss spent on fourth moments of x for "linear", in [0, 1).
    classes : tuple of two labels, default=()
        Labels encoded as -1 and 1 for "logistic". If empty, the mediator does not compare them.
    prior : str or None, default=None
        The prior that the party agreed to, as a model's `prior_statement` returns it. If None, the
        mediator does not compare it.

    Raises
    ------
    ValueError
        If a field has the wrong type or is out of range, or the statistic exceeds what the bounds,
        the number of rows and 40 standard deviations of the noise allow.

    Examples
    --------
    >>> from skvalue.collaborative import Release
    >>> release = Release("bernoulli", 100, (41.3,), 0.5, 2.0, (0.0, 1.0))
    >>> round(release.noise_scale, 3)
    1.414
    >>> Release.from_json(release.to_json()) == release
    True
    """

    kind: str
    n_samples: int
    statistic: tuple
    renyi_epsilon: float | None
    renyi_order: float
    bounds: tuple
    n_features: int = 0
    intercept: bool = False
    layout: str = "svec"
    moments_fraction: float = 0.0
    classes: tuple = ()
    prior: str | None = None

    def __post_init__(self):
        fix = object.__setattr__
        if not isinstance(self.kind, str) or self.kind not in _KINDS:
            refuse("kind", f"one of {', '.join(_KINDS)}", self.kind)
        fix(self, "n_samples", integer(self.n_samples, "n_samples", 0, _MOST_SAMPLES))
        if self.renyi_epsilon is not None:
            epsilon = _number(self.renyi_epsilon, "renyi_epsilon", "None or a number above 0")
            fix(self, "renyi_epsilon", epsilon)
        order = _number(self.renyi_order, "renyi_order", "a finite number above 1", 1.0)
        fix(self, "renyi_order", order)
        lowest, highest = (0, 0) if self.kind in _FAMILIES else (1, _MOST_FEATURES)
        n_features = integer(self.n_features, "n_features", lowest, highest)
        fix(self, "n_features", n_features)
        if not isinstance(self.intercept, bool) or (self.intercept and self.kind in _FAMILIES):
            rule = "a bool, and True for kind='linear' or kind='logistic' only"
            refuse("intercept", rule, self.intercept)
        if not isinstance(self.layout, str) or self.layout not in CROSS_WEIGHTS:
            refuse("layout", f"one of {', '.join(CROSS_WEIGHTS)}", self.layout)
        rule = "0, or for kind='linear' of at most 40 features a number below 1"
        fraction = _number(self.moments_fraction, "moments_fraction", rule, 0.0, strict=False)
        if fraction >= 1 or (fraction and (self.kind != "linear" or n_features > _MOST_MOMENTS)):
            refuse("moments_fraction", rule, self.moments_fraction)
        fix(self, "moments_fraction", fraction)
        fix(self, "classes", _labels(self.classes, self.kind))
        if self.prior is not None and (
            not isinstance(self.prior, str) or not 0 < len(self.prior) <= _MOST_WORDS
        ):
            refuse("prior", f"None or a text of at most {_MOST_WORDS} characters", self.prior)
        self._check_bounds()
        self._check_statistic()

    def _check_bounds(self):
        size = 1 if self.kind == "logistic" else 2
        bounds = self.bounds
        if not isinstance(bounds, list | tuple) or len(bounds) != size:
            refuse("bounds", f"a sequence of {size} numbers for kind={self.kind!r}", bounds)
        if self.kind in ("linear", "logistic"):
            bounds = tuple(_number(bound, "bounds") for bound in bounds)
        else:
            bounds = tuple(_number(end, "bounds", "finite numbers", -math.inf) for end in bounds)
            if not bounds[0] < bounds[1]:
                refuse("bounds", "in increasing order", bounds)
            if self.kind == "bernoulli" and bounds != (0.0, 1.0):
                refuse("bounds", "(0, 1) for kind='bernoulli'", bounds)
            if self.kind == "poisson" and bounds[0] != 0:
                refuse("bounds", "(0, upper) for kind='poisson'", bounds)
        if max(map(abs, bounds)) > 1e50 or not self.sensitivity_of(bounds) > 0:
            refuse("bounds", "of sizes whose squares neither overflow nor underflow", bounds)
        object.__setattr__(self, "bounds", bounds)
        if not self.noise_scale < 1e100:
            refuse(
                "renyi_epsilon", "large enough for a noise scale below 1e100", self.renyi_epsilon
            )

    def _check_statistic(self):
        size = {
            "linear": gram_size(self.n_features, self.intercept),
            "logistic": logistic_size(self.n_features, self.intercept),
        }.get(self.kind, 1)
        if self.moments_fraction:
            size += moment_size(self.n_features, self.intercept)
        given = self.statistic
        if not isinstance(given, list | tuple | np.ndarray) or len(given) != size:
            length = len(given) if isinstance(given, list | tuple | np.ndarray) else given
            refuse("statistic", f"a sequence of {size} numbers", length)
        numbers = tuple(
            _number(entry, "statistic", "of finite numbers", -math.inf, strict=False)
            for entry in given
        )
        reach = self.n_samples * self._largest_term() * (1 + 1e-9) + 40 * self.noise_scale
        largest = max(map(abs, numbers))
        if largest > reach:
            allowed = f"what {self.n_samples} rows, their bounds and the noise allow"
            refuse("statistic", f"within {reach:g}, {allowed}", largest)
        object.__setattr__(self, "statistic", numbers)

    def _largest_term(self):
        """Largest absolute value that one row can add to an entry."""
        if self.kind == "linear":
            x_bound, y_bound = self.bounds
            largest = math.sqrt(2) * (float(self.intercept) + x_bound**2 + y_bound**2)
            if not self.moments_fraction:
                return largest
            return max(largest, self.moments_weight * moment_sensitivity(x_bound, self.intercept))
        if self.kind == "logistic":
            square = self.bounds[0] ** 2 + self.intercept
            return max(math.sqrt(square), math.sqrt(2) * square)
        return max(map(abs, self.bounds))

    def sensitivity_of(self, bounds):
        """L2 sensitivity of this kind of statistic for given bounds.

        Parameters
        ----------
        bounds : tuple of float
            Bounds in the form of `bounds`.

        Returns
        -------
        sensitivity : float
            Largest distance between the statistics of two data sets that differ in one row.
        """
        if self.kind == "linear":
            alone = linear_sensitivity(*bounds, self.intercept, self.layout)
            # Fourth moments are weighted to have this fraction of the squared distance.
            return alone / math.sqrt(1 - self.moments_fraction)
        if self.kind == "logistic":
            return logistic_sensitivity(*bounds, self.intercept)
        return bounds[1] - bounds[0]

    @property
    def moments_weight(self):
        """Factor by which fourth moments are multiplied in the statistic."""
        alone = linear_sensitivity(*self.bounds, self.intercept, self.layout)
        return moment_weight(alone, self.bounds[0], self.intercept, self.moments_fraction)

    @property
    def sensitivity(self):
        """L2 sensitivity of the exact statistic when one row is replaced."""
        return self.sensitivity_of(self.bounds)

    @cached_property
    def noise_scale(self):
        """Standard deviation of the noise on every entry of the statistic."""
        if self.renyi_epsilon is None:
            return 0.0
        sensitivity = self.sensitivity
        scale = math.sqrt(0.5 * self.renyi_order / self.renyi_epsilon) * sensitivity
        if not 0 < scale < math.inf:
            return math.inf
        while 0.5 * self.renyi_order * (sensitivity / scale) ** 2 > self.renyi_epsilon:
            scale = math.nextafter(scale, math.inf)
        return scale

    @property
    def event(self):
        """Privacy event of the release, for accounting; None without noise."""
        if self.renyi_epsilon is None:
            return None
        return GaussianEvent(self.noise_scale, self.sensitivity, "replace")

    def add_noise(self, tau, *, noise_random_state=None):
        """Release with added noise and the smaller Renyi epsilon 1 / (1 / renyi_epsilon + tau).

        No access to the rows is needed.

        Parameters
        ----------
        tau : float
            Noise of variance ``0.5 renyi_order sensitivity^2 tau`` is added. Must not be negative.
        noise_random_state : int, default=None
            Seed of the added noise, for experiments. Noise added before is not affected.

        Returns
        -------
        release : Release
            Release with `renyi_epsilon` set to ``renyi_epsilon / (1 + tau renyi_epsilon)``, or
            ``1 / tau`` if it was None.

        Raises
        ------
        ValueError
            If tau is negative or not finite.

        References
        ----------
        Sim et al., NeurIPS 2023, Section 5.1.

        Examples
        --------
        >>> from skvalue.collaborative import Release
        >>> Release("bernoulli", 100, (41.3,), 0.5, 2.0, (0.0, 1.0)).add_noise(2.0).renyi_epsilon
        0.25
        """
        tau = _number(tau, "tau", "a finite number, not negative", 0.0, strict=False)
        if tau == 0:
            return self
        scale = math.sqrt(0.5 * self.renyi_order * tau) * self.sensitivity
        event = GaussianEvent(scale, self.sensitivity)
        noise = draw_noise(event, len(self.statistic), noise_random_state=noise_random_state)
        release = self.shifted(tau, noise)
        noisy = on_grid(release.vector, release.noise_scale)
        return replace(release, statistic=tuple(noisy.tolist()))

    def shifted(self, tau, noise):
        """Release with given added noise, not rounded; see `add_noise`.

        Parameters
        ----------
        tau : float
            As in `add_noise`.
        noise : array-like of shape (n_entries,)
            Noise to add to the statistic.

        Returns
        -------
        release : Release
            The release with added noise.
        """
        before = self.renyi_epsilon
        after = 1 / tau if before is None else before / (1 + tau * before)
        statistic = tuple(self.vector + np.asarray(noise))
        return replace(self, statistic=statistic, renyi_epsilon=after)

    @property
    def vector(self):
        """The statistic as an array."""
        return np.array(self.statistic)

    def to_json(self):
        """The release as text.

        Returns
        -------
        text : str
            JSON, from which `from_json` reads an equal release.
        """
        fields = asdict(self)
        return json.dumps({"format": _FORMAT, "version": _VERSION, **fields}, allow_nan=False)

    @classmethod
    def from_json(cls, text):
        """Read a release from text, which is not trusted.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        release : Release
            The release.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, has missing, unknown or repeated fields, or a
            field has an invalid value.
        """
        names = set(cls.__dataclass_fields__)
        record = read_record(text, _FORMAT, _VERSION, names, _MOST_CHARACTERS)
        return cls(**record)
