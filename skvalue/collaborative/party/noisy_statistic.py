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
from ._statistics import KINDS

_FORMAT, _VERSION = "skvalue.collaborative.NoisyStatistic", 1
_MOST_CHARACTERS = 50_000_000
_MOST_FEATURES = 1000
_MOST_SAMPLES = 10**12
_MOST_WORDS = 2000
_LARGEST = sys.float_info.max


def _is_label(label):
    """Whether JSON can hold a label."""
    if isinstance(label, str):
        return len(label) <= _MOST_WORDS
    if isinstance(label, float):
        return math.isfinite(label)
    return isinstance(label, Integral) and abs(label) < 2**63


def _checked_labels(labels, kind):
    """Two labels of "logistic", or none, as a tuple."""
    good = isinstance(labels, list | tuple) and all(map(_is_label, labels))
    if good and labels:
        good = kind == "logistic" and len(labels) == 2 and labels[0] != labels[1]
    if not good:
        refuse(
            "classes",
            "two different strings or numbers for kind='logistic', or none",
            labels,
        )
    return tuple(labels)


@dataclass(frozen=True)
class NoisyStatistic:
    """A party's noisy sufficient statistic and its public parameters.

    The estimators `GramRelease`, `LogisticRelease` and `MeanRelease` make it on the
    party's machine; `to_json` and `from_json` transfer it to the mediator. All fields
    are public: the privacy guarantee is about exactly these fields. They are checked on
    construction.

    Parameters
    ----------
    kind : {"linear", "logistic", "gaussian"}
        Kind of the statistic.
    n_samples : int
        Number of rows of the party, which is public.
    statistic : sequence of float
        The noisy statistic: for "linear" the lower triangle of the Gram matrix of (1 if
        `intercept`, x, y) without the count, with entries off the diagonal times sqrt
        2; for "logistic" the sum of y u, u = (1 if `intercept`, x), and such a lower
        triangle of the sum of u u' without the count; for "gaussian" a sum.
    renyi_epsilon : float or None
        Bound on the Renyi divergence of order `renyi_order`. None: no noise and no
        privacy.
    renyi_order : float
        Order of the Renyi divergence, above 1.
    bounds : tuple of float
        Bounds to which the rows were clipped: (x_bound, y_bound), (x_bound,) or (lower,
        upper).
    n_features : int, default=0
        Number of features; 0 for "gaussian".
    intercept : bool, default=False
        Whether there is a constant feature ("linear" and "logistic" only).
    classes : tuple of two labels, default=()
        Labels encoded as -1 and 1 for "logistic". If empty, the mediator does not
        compare them.
    prior : str or None, default=None
        The prior that the party agreed to, as a model's `prior_statement` returns it.
        If None, the mediator does not compare it.

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

    def __post_init__(self):
        fix = object.__setattr__
        choice(self.kind, "kind", KINDS)
        fix(self, "n_samples", integer(self.n_samples, "n_samples", 0, _MOST_SAMPLES))
        if self.renyi_epsilon is not None:
            fix(
                self,
                "renyi_epsilon",
                number(self.renyi_epsilon, "renyi_epsilon", 0, _LARGEST),
            )
        fix(self, "renyi_order", number(self.renyi_order, "renyi_order", 1, _LARGEST))
        lowest, highest = (0, 0) if self.kind == "gaussian" else (1, _MOST_FEATURES)
        fix(self, "n_features", integer(self.n_features, "n_features", lowest, highest))
        if flag(self.intercept, "intercept") and self.kind == "gaussian":
            refuse(
                "intercept",
                "True for kind='linear' or kind='logistic' only",
                self.intercept,
            )
        fix(self, "classes", _checked_labels(self.classes, self.kind))
        if self.prior is not None and (
            not isinstance(self.prior, str) or not 0 < len(self.prior) <= _MOST_WORDS
        ):
            refuse(
                "prior",
                f"None or a text of at most {_MOST_WORDS} characters",
                self.prior,
            )
        fix(self, "bounds", self._checked_bounds())
        if not self.noise_scale < 1e100:
            refuse(
                "renyi_epsilon",
                "large enough for a noise scale below 1e100",
                self.renyi_epsilon,
            )
        fix(self, "statistic", self._checked_statistic())

    def _checked_bounds(self):
        size, bounds = KINDS[self.kind].n_bounds, self.bounds
        if not isinstance(bounds, list | tuple) or len(bounds) != size:
            refuse(
                "bounds", f"a sequence of {size} numbers for kind={self.kind!r}", bounds
            )
        # Squares of bounds neither overflow nor underflow.
        lowest = -1e50 if self.kind == "gaussian" else 1e-50
        bounds = tuple(number(bound, "bounds", lowest, 1e50) for bound in bounds)
        if self.kind == "gaussian" and not bounds[0] < bounds[1]:
            refuse("bounds", "in increasing order", bounds)
        return bounds

    def _checked_statistic(self):
        kind, given = KINDS[self.kind], self.statistic
        size = kind.size(self.n_features, self.intercept)
        if not isinstance(given, list | tuple | np.ndarray) or len(given) != size:
            length = (
                len(given) if isinstance(given, list | tuple | np.ndarray) else given
            )
            refuse("statistic", f"a sequence of {size} numbers", length)
        most = self.n_samples * kind.largest(self.bounds, self.intercept)
        reach = most * (1 + 1e-9) + 40 * self.noise_scale
        for entry in given:
            if (
                not isinstance(entry, Real)
                or isinstance(entry, bool)
                or not abs(entry) <= reach
            ):
                rule = f"of numbers within {reach:g}, what {self.n_samples} rows, their bounds and"
                refuse("statistic", f"{rule} the noise allow", entry)
        return tuple(map(float, given))

    @property
    def sensitivity(self):
        """L2 sensitivity of the exact statistic when one row is replaced."""
        return KINDS[self.kind].sensitivity(self.bounds, self.intercept)

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

    def with_noise(self, tau, unit):
        """Copy with more noise and the smaller Renyi epsilon 1 / (1 / renyi_epsilon +
        tau).

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
        before = self.renyi_epsilon
        after = 1 / tau if before is None else before / (1 + tau * before)
        scale = math.sqrt(0.5 * self.renyi_order * tau) * self.sensitivity
        return replace(
            self, statistic=tuple(self.vector + scale * unit), renyi_epsilon=after
        )

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
        return cls(**read_record(text, _FORMAT, _VERSION, names, _MOST_CHARACTERS))
