"""What a party sends to the mediator: its noisy statistic and the public parameters."""

import json
import math
import sys
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from numbers import Integral, Real

import numpy as np

from ..._utils.untrusted import choice, flag, integer, number, read_record, refuse
from ...privacy import GaussianEvent
from ._statistics import KINDS, SUMS

_FORMAT = "skvalue.collaborative.NoisyStatistic"
_VERSION = 2
_MAX_JSON_LENGTH = 50_000_000
_MAX_TEXT_LENGTH = 2000
_MAX_FEATURES = 1000
_MAX_SAMPLES = 10**12
_MAX_NUMBER = sys.float_info.max


@dataclass(frozen=True)
class NoisyStatistic:
    """A party's noisy sufficient statistic and its public parameters.

    The estimators `GramRelease`, `LogisticRelease` and `MeanRelease` make it on the
    party's machine; `to_json` and `from_json` transfer it to the mediator. All fields
    are public: the privacy guarantee is about exactly these fields. They are checked on
    construction.

    Parameters
    ----------
    kind : {"linear", "logistic", "gaussian", "bernoulli", "poisson"}
        Kind of the statistic.
    n_samples : int
        Number of rows of the party, which is public.
    statistic : sequence of float
        The noisy statistic: for "linear" the lower triangle of the Gram matrix of (1 if
        `intercept`, x, y) without the count, with entries off the diagonal times sqrt
        2; for "logistic" the sum of y u, u = (1 if `intercept`, x), and such a lower
        triangle of the sum of u u' without the count; for the others a sum.
    renyi_epsilon : float or None
        Bound on the Renyi divergence of order `renyi_order`. None: no noise and no
        privacy.
    renyi_order : float
        Order of the Renyi divergence, above 1.
    bounds : tuple of float
        Bounds to which the rows were clipped: (x_bound, y_bound), (x_bound,) or (lower,
        upper). Those of "bernoulli" are (0, 1), and the lower one of "poisson" is 0.
    n_features : int, default=0
        Number of features; 0 for sums.
    intercept : bool, default=False
        Whether there is a constant feature ("linear" and "logistic" only).
    classes : tuple of two labels, default=()
        Labels encoded as -1 and 1 for "logistic". If empty, the mediator does not
        compare them.
    prior : str or None, default=None
        The prior that the party agreed to, as a model's `prior_statement` returns it.
        If None, the mediator does not compare it.
    x_centre, x_scale : tuple of float, default=()
        Public numbers, one for each feature, that were subtracted from the features and
        by which the differences were divided, before rows were clipped. Both are empty
        if features were not mapped.

    Raises
    ------
    ValueError
        If a field has the wrong type or is out of range, or the statistic exceeds what
        the bounds, the number of rows and 40 standard deviations of the noise allow.

    Examples
    --------
    >>> from skvalue.collaborative import NoisyStatistic
    >>> release = NoisyStatistic("gaussian", 100, (41.3,), 0.5, 2.0, (-1.0, 1.0))
    >>> round(release.noise_scale, 3)
    2.828
    >>> NoisyStatistic.from_json(release.to_json()) == release
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
    classes: tuple = ()
    prior: str | None = None
    x_centre: tuple = ()
    x_scale: tuple = ()

    def __post_init__(self):
        self._check("kind", choice, KINDS)
        is_sum = self.kind in SUMS
        self._check("n_samples", integer, 0, _MAX_SAMPLES)
        if self.renyi_epsilon is not None:
            self._check("renyi_epsilon", number, 0, _MAX_NUMBER)
        self._check("renyi_order", number, 1, _MAX_NUMBER)
        if is_sum:
            self._check("n_features", integer, 0, 0)
        else:
            self._check("n_features", integer, 1, _MAX_FEATURES)
        self._check("intercept", flag)
        if self.intercept and is_sum:
            refuse(
                "intercept",
                "True for kind='linear' or kind='logistic' only",
                self.intercept,
            )
        self._check("classes", _checked_labels, self.kind)
        self._check("prior", _checked_prior)
        self._check("bounds", _checked_bounds, self.kind)
        self._check("x_centre", check_scaling, self.n_features)
        self._check("x_scale", check_scaling, self.n_features)
        if bool(self.x_centre) != bool(self.x_scale):
            refuse(
                "x_scale",
                "given if and only if x_centre is",
                (self.x_centre, self.x_scale),
            )
        if not self.noise_scale < 1e100:
            refuse(
                "renyi_epsilon",
                "large enough for a noise scale below 1e100",
                self.renyi_epsilon,
            )
        self._check("statistic", _checked_entries, self)

    def _check(self, name, check, *arguments):
        """Replace a field of this frozen class by its checked value."""
        value = check(getattr(self, name), name, *arguments)
        object.__setattr__(self, name, value)

    @property
    def sensitivity(self):
        """L2 sensitivity of the computed statistic when one row is replaced.

        It has a margin for the rounding of sums: 5e-9 of it for 10,000 rows.
        """
        kind = KINDS[self.kind]
        rounding = kind.rounding(self.n_samples, self.bounds)
        return kind.sensitivity(self.bounds, self.intercept) * (1 + rounding)

    @cached_property
    def noise_scale(self):
        """Standard deviation of the noise on every entry of the statistic."""
        if self.renyi_epsilon is None:
            return 0.0
        sensitivity = self.sensitivity
        scale = math.sqrt(0.5 * self.renyi_order / self.renyi_epsilon) * sensitivity
        if not 0 < scale < math.inf:
            return math.inf

        # Rounding must not make the stated epsilon too small.
        while 0.5 * self.renyi_order * (sensitivity / scale) ** 2 > self.renyi_epsilon:
            scale = math.nextafter(scale, math.inf)
        return scale

    @property
    def event(self):
        """Privacy event of the release, for accounting; None without noise."""
        if self.renyi_epsilon is None:
            return None
        return GaussianEvent(self.noise_scale, self.sensitivity, "replace")

    def with_noise(self, tau, unit):
        """Copy with more noise, and so with a smaller Renyi epsilon.

        No access to the rows is needed.

        Parameters
        ----------
        tau : float
            Noise of variance ``0.5 renyi_order sensitivity^2 tau`` is added. Must be
            above 0.
        unit : ndarray of shape (n_entries,)
            Draws from the standard normal distribution, which are scaled.

        Returns
        -------
        release : NoisyStatistic
            A copy with `renyi_epsilon` set to ``renyi_epsilon / (1 + tau
            renyi_epsilon)``, or ``1 / tau`` if it was None. It is not rounded, and not
            for publication.

        References
        ----------
        Sim et al., NeurIPS 2023, Section 5.1.

        Examples
        --------
        >>> release = NoisyStatistic("gaussian", 100, (41.3,), 0.5, 2.0, (-1.0, 1.0))
        >>> release.with_noise(2.0, np.array([0.1])).renyi_epsilon
        0.25
        """
        if self.renyi_epsilon is None:
            renyi_epsilon = 1 / tau
        else:
            renyi_epsilon = self.renyi_epsilon / (1 + tau * self.renyi_epsilon)
        scale = math.sqrt(0.5 * self.renyi_order * tau) * self.sensitivity
        return replace(
            self,
            statistic=tuple(self.vector + scale * unit),
            renyi_epsilon=renyi_epsilon,
        )

    def without_noise(self, statistic):
        """A release of as many rows, with an exact statistic.

        Parameters
        ----------
        statistic : array-like of shape (n_entries,)
            The statistic; entries are clipped to what rows within the bounds can have.

        Returns
        -------
        release : NoisyStatistic
            The release, which has no guarantee.
        """
        bound = KINDS[self.kind].entry_bound(self.bounds, self.intercept)
        limit = self.n_samples * bound
        clipped = np.clip(statistic, -limit, limit)
        return replace(self, statistic=tuple(clipped), renyi_epsilon=None)

    @property
    def vector(self):
        """The statistic as an array."""
        return np.array(self.statistic)

    def to_json(self):
        """The statistic and its parameters as text.

        Returns
        -------
        text : str
            JSON, from which `from_json` reads an equal object.
        """
        return json.dumps(
            {"format": _FORMAT, "version": _VERSION, **asdict(self)}, allow_nan=False
        )

    @classmethod
    def from_json(cls, text):
        """Read from text, which is not trusted.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        release : NoisyStatistic
            The statistic and its parameters.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, has missing, unknown or repeated
            fields, or a field has an invalid value.
        """
        names = set(cls.__dataclass_fields__)
        return cls(**read_record(text, _FORMAT, _VERSION, names, _MAX_JSON_LENGTH))


# Checks: of a value, by the name of its field -----------------------------------------


def _checked_labels(labels, name, kind):
    """Two labels of "logistic", or none, as a tuple."""
    is_valid = isinstance(labels, list | tuple) and all(map(_is_label, labels))
    if is_valid and labels:
        is_valid = kind == "logistic" and len(labels) == 2 and labels[0] != labels[1]
    if not is_valid:
        refuse(
            name,
            "two different strings or numbers for kind='logistic', or none",
            labels,
        )
    return tuple(labels)


def _is_label(label):
    """Whether JSON can hold a label."""
    if isinstance(label, str):
        return len(label) <= _MAX_TEXT_LENGTH
    if isinstance(label, float):
        return math.isfinite(label)
    return isinstance(label, Integral) and abs(label) < 2**63


def _checked_prior(prior, name):
    """None, or the text of a prior."""
    if prior is None:
        return None
    if not isinstance(prior, str) or not 0 < len(prior) <= _MAX_TEXT_LENGTH:
        refuse(name, f"None or a text of at most {_MAX_TEXT_LENGTH} characters", prior)
    return prior


def _checked_bounds(bounds, name, kind):
    """As many bounds as a kind of statistic has, as a tuple of floats."""
    n_bounds = KINDS[kind].n_bounds
    if not isinstance(bounds, list | tuple) or len(bounds) != n_bounds:
        refuse(name, f"a sequence of {n_bounds} numbers for kind={kind!r}", bounds)

    # Squares of bounds neither overflow nor underflow.
    lowest = -1e50 if kind in SUMS else 1e-50
    bounds = tuple(number(bound, name, lowest, 1e50) for bound in bounds)
    if kind in SUMS and not bounds[0] < bounds[1]:
        refuse(name, "in increasing order", bounds)
    if kind == "bernoulli" and bounds != (0.0, 1.0):
        refuse(name, "(0, 1) for kind='bernoulli'", bounds)
    if kind == "poisson" and bounds[0] != 0:
        refuse(name, "(0, upper) for kind='poisson'", bounds)
    return bounds


def check_scaling(numbers, name, n_features):
    """The numbers of a public map of features as a tuple; none is allowed."""
    if not isinstance(numbers, list | tuple) or len(numbers) not in (0, n_features):
        refuse(name, f"a sequence of {n_features} numbers, or empty", numbers)
    lowest = 1e-50 if name == "x_scale" else -1e50
    return tuple(number(value, name, lowest, 1e50) for value in numbers)


def _checked_entries(entries, name, release):
    """The entries of a statistic as a tuple of floats, within what is possible."""
    spec = KINDS[release.kind]
    size = spec.size(release.n_features, release.intercept)
    if not isinstance(entries, list | tuple | np.ndarray):
        refuse(name, f"a sequence of {size} numbers", entries)
    if len(entries) != size:
        refuse(name, f"a sequence of {size} numbers", len(entries))

    exact_limit = release.n_samples * spec.entry_bound(
        release.bounds, release.intercept
    )
    limit = exact_limit * (1 + 1e-9) + 40 * release.noise_scale
    for entry in entries:
        is_number = isinstance(entry, Real) and not isinstance(entry, bool)
        if not is_number or not abs(entry) <= limit:
            refuse(
                name,
                f"of numbers within {limit:g}, what {release.n_samples} rows, their "
                "bounds and the noise allow",
                entry,
            )
    return tuple(map(float, entries))
