"""What a seller sends to the buyer: noisy moments, and the facts that their guarantee rests on."""

import math
import os
import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..._utils.records import choice, integer, number, refuse
from ...privacy import get_epsilon
from ._mechanism import claimed_event, noise_levels, row_sensitivity, statistic_sensitivity
from ._summary_file import MOST_DIMENSIONS, VECTORS, decode, encode, read_text

__all__ = ["Summary", "read_summary"]

_MOST_SAMPLES = 10**12
_MECHANISMS = ("central", "local", "paper", "none")
_RELATIONS = ("null", "add_remove", "replace")
_LEAST_NOISE = 1e-3  # less would guarantee nothing that can be computed with


@dataclass(frozen=True, eq=False)
class Summary:
    """A seller's mean and second moment around the buyer's centre, and how they were made.

    `SellerRelease` makes it at the seller; `to_json` and `from_json` carry it to the buyer.
    Everything in it is meant to be read by everybody: the guarantee is about exactly these fields.
    They are checked when it is made, and what cannot be is refused.

    Parameters
    ----------
    model : str
        Fingerprint of the buyer's model that the rows went through.
    n_samples : int
        Number of rows summed up; with ``relation="add_remove"`` a noisy number.
    n_rows : int or None
        Number of rows that they were drawn from, where they are a random subset.
    max_norm : float or None
        Radius R that rows were clipped to, around the centre. None: not clipped, not private.
    centre : array-like of shape (d,)
        The buyer's centre.
    mean : array-like of shape (d,)
        Mean of the rows around the centre.
    moment : array-like of shape (d * (d + 1) // 2,)
        Lower triangle, row by row, of the second moment around the centre.
    mechanism : {"central", "local", "paper", "none"}
        Noise on the moments; on every row; as published, without a guarantee; none.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation of the guarantee.
    epsilon, delta : float or None
        The guarantee; None where there is none.
    mean_weight : float
        Weight of the mean in the release, see `BuyerModel`.
    noise_scale : float
        Standard deviation of the noise, in units of `max_norm`: on the sums of the statistic
        ("central") or on every row.
    secret_subset : bool
        Whether the subset is secret, and so counts in the guarantee.
    seeded : bool
        Whether the noise came from a seed, which voids the guarantee.

    Raises
    ------
    ValueError
        If a field is of the wrong type or range, the statistic is farther out than the radius and
        the noise let it be, or the noise is too small for the guarantee that is claimed.

    Examples
    --------
    >>> from skvalue.priarta import PriArTaScorer, Summary
    >>> scorer = PriArTaScorer().fit([[0.0], [1.0], [2.0]])
    >>> summary = scorer.summarize([[[1.0], [1.5]]])[0]
    >>> Summary.from_json(summary.to_json()) == summary
    True
    """

    model: str
    n_samples: int
    n_rows: int | None
    max_norm: float | None
    centre: np.ndarray
    mean: np.ndarray
    moment: np.ndarray
    mechanism: str
    relation: str
    epsilon: float | None
    delta: float | None
    mean_weight: float
    noise_scale: float
    secret_subset: bool
    seeded: bool

    def __post_init__(self):
        def fix(name, value):
            object.__setattr__(self, name, value)

        if not isinstance(self.model, str) or not re.fullmatch("[0-9a-f]{64}", self.model):
            refuse("model", "a fingerprint of 64 hexadecimal digits", self.model)
        for name, among in (("mechanism", _MECHANISMS), ("relation", _RELATIONS)):
            choice(getattr(self, name), name, among)
        for name in ("secret_subset", "seeded"):
            if not isinstance(getattr(self, name), bool):
                refuse(name, "a bool", getattr(self, name))
        fix("n_samples", integer(self.n_samples, "n_samples", 2, _MOST_SAMPLES))
        if self.n_rows is not None:
            fix("n_rows", integer(self.n_rows, "n_rows", self.n_samples, _MOST_SAMPLES))
        if self.max_norm is not None:
            fix("max_norm", number(self.max_norm, "max_norm", 1e-50, 1e50))
        elif self.mechanism != "none":
            refuse("max_norm", "a number where there is noise", None)
        fix("mean_weight", number(self.mean_weight, "mean_weight", 1e-3, 1e3, strict=False))
        self._check_noise(fix)
        self._check_vectors(fix)

    def _check_noise(self, fix):
        noisy = self.mechanism != "none"
        lowest = {"none": 0.0, "paper": 1e-30}.get(self.mechanism, _LEAST_NOISE)
        scale = number(self.noise_scale, "noise_scale", lowest, 1e50 if noisy else 0.0, False)
        fix("noise_scale", scale)
        if self.mechanism in ("none", "paper"):
            for name in ("epsilon", "delta"):
                if getattr(self, name) is not None:
                    refuse(name, f"None for mechanism={self.mechanism!r}", getattr(self, name))
            if self.secret_subset:
                refuse("secret_subset", f"False for mechanism={self.mechanism!r}", True)
            return
        fix("epsilon", number(self.epsilon, "epsilon", 0.0, 1e6))
        fix("delta", number(self.delta, "delta", 0.0, 1.0))
        if self.secret_subset and (self.n_rows is None or self.relation != "replace"):
            refuse("secret_subset", "False unless n_rows is given and relation='replace'", True)
        if self.relation == "add_remove" and (self.mechanism, self.n_rows) != ("central", None):
            refuse(
                "relation", "null or replace for subsets and for mechanism='local'", "add_remove"
            )
        if get_epsilon(self.event, self.delta) > self.epsilon * (1 + 1e-9) + 1e-12:
            refuse("epsilon", "no smaller than the noise allows at this delta", self.epsilon)

    def _check_vectors(self, fix):
        for name in VECTORS:
            try:
                array = np.array(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError):
                refuse(name, "a sequence of numbers", getattr(self, name))
            d = array.size if name == "centre" else len(self.centre)
            size = d * (d + 1) // 2 if name == "moment" else d
            if array.ndim != 1 or not 1 <= d <= MOST_DIMENSIONS or len(array) != size:
                refuse(name, f"a sequence of {size} numbers, for 1 to 4096 dimensions", array.shape)
            if not np.abs(array).max() <= 1e100:
                refuse(name, "of finite numbers up to 1e100", np.abs(array).max())
            array.setflags(write=False)
            fix(name, array)
        mean_noise, moment_noise = self._noise_levels
        radius = math.inf if self.max_norm is None else self.max_norm
        bias = self.noise_scale**2 if self.mechanism in ("local", "paper") else 0.0
        for name, reach in (
            ("mean", radius * (1 + 40 * mean_noise)),
            ("moment", radius**2 * (1 + bias + 40 * moment_noise)),
        ):
            largest = np.abs(getattr(self, name)).max()
            if not largest <= reach * (1 + 1e-9):
                refuse(
                    name,
                    f"within {reach:g}, what the radius, {self.n_samples} rows and the noise allow",
                    float(largest),
                )
        if self.max_norm is None or self.mechanism == "none":
            gap = self.second_moment - np.outer(self.mean, self.mean)
            if np.linalg.eigvalsh(gap).min() < -1e-9 * max(np.trace(self.second_moment), 1e-300):
                refuse("moment", "at least mean mean', where there is no noise", "a smaller one")

    @property
    def _noise_levels(self):
        """Standard deviations of the noise on mean and moment, in units of the radius."""
        return noise_levels(
            self.mechanism, self.noise_scale, self.mean_weight, self.n_samples, len(self.centre)
        )

    @property
    def rate(self):
        """Share of the rows in a secret subset; None where no secret subset counts."""
        return self.n_samples / self.n_rows if self.secret_subset else None

    @property
    def event(self):
        """What was released, for accounting; None without a guarantee."""
        if self.mechanism in ("none", "paper"):
            return None
        sensitivity = (
            row_sensitivity(self.relation)
            if self.mechanism == "local"
            else statistic_sensitivity(self.mean_weight, self.relation)
        )
        return claimed_event(self.noise_scale, sensitivity, self.relation, self.rate, self.delta)

    @property
    def guarantee(self):
        """The guarantee in words; None where there is none."""
        if self.event is None or self.seeded:
            return None
        return (
            f"({self.epsilon:.6g}, {self.delta:.6g})-"
            f"{'local ' if self.mechanism == 'local' else ''}differential privacy of a row, "
            f"relation {self.relation}"
        )

    @property
    def n_dimensions(self):
        """Number of latent dimensions d."""
        return len(self.centre)

    @property
    def mean_noise(self):
        """Standard deviation of the noise on an entry of the mean."""
        return self._noise_levels[0] * (self.max_norm or 0.0)

    @property
    def moment_noise(self):
        """Standard deviation of the noise on the diagonal of the second moment."""
        return self._noise_levels[1] * (self.max_norm or 0.0) ** 2

    @property
    def row_variance(self):
        """What noise on every row adds to the diagonal of the second moment and is taken off."""
        return (self.noise_scale * self.max_norm) ** 2 if self.mechanism == "local" else 0.0

    @cached_property
    def second_moment(self):
        """The second moment around the centre as a (d, d) array, as it was released."""
        d = self.n_dimensions
        full = np.zeros((d, d))
        full[np.tril_indices(d)] = self.moment
        return full + np.tril(full, -1).T

    def moments(self):
        """Unbiased mean and covariance, around the centre.

        Returns
        -------
        mean : ndarray of shape (d,)
            The mean.
        covariance : ndarray of shape (d, d)
            The covariance, without what noise adds to it on average; noise may leave it negative
            eigenvalues.
        """
        n = self.n_samples
        covariance = self.second_moment - np.outer(self.mean, self.mean)
        if self.mechanism in ("central", "local"):  # the paper corrects nothing
            covariance += (self.mean_noise**2 - self.row_variance) * np.eye(self.n_dimensions)
        return self.mean.copy(), covariance * (n / (n - 1))

    def to_json(self):
        """The summary as text, of at most ``8 d^2 + 4096`` bytes.

        Returns
        -------
        text : str
            JSON; arrays are base64 of little-endian float64.
        """
        return encode(
            {name: getattr(self, name) for name in self.__dataclass_fields__}, self.guarantee
        )

    def save(self, path):
        """Write the summary to a file.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        with open(path, "w", encoding="ascii") as file:
            file.write(self.to_json())

    @classmethod
    def from_json(cls, text):
        """Read a summary that somebody sent; the text is not trusted.

        Parameters
        ----------
        text : str
            What `to_json` gave.

        Returns
        -------
        summary : Summary
            The summary.

        Raises
        ------
        ValueError
            If the text is no JSON, is too long, has missing, unknown or repeated fields, or a field
            is not as it must be.
        """
        fields, claimed = decode(text, set(cls.__dataclass_fields__))
        summary = cls(**fields)
        if claimed != summary.guarantee:
            refuse("guarantee", f"{summary.guarantee!r}, as the fields say", claimed)
        return summary

    def __eq__(self, other):
        if not isinstance(other, Summary):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self):
        return hash(self.to_json())

    def replaced(self, **changes):
        """Copy with other fields, checked again.

        Parameters
        ----------
        **changes : object
            Fields.

        Returns
        -------
        summary : Summary
            The copy.
        """
        return replace(self, **changes)


def read_summary(source, n_dimensions):
    """A summary from a file or object, read for a model of a known number of dimensions.

    Parameters
    ----------
    source : Summary, str or path-like
        The summary or where its file is.
    n_dimensions : int
        Number of latent dimensions; a longer file is refused before it is read.

    Returns
    -------
    summary : Summary
        The summary.

    Raises
    ------
    ValueError
        If the file is too long, no text, or not as a summary must be.
    TypeError
        If source is neither.
    """
    if isinstance(source, Summary):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"summaries must be paths or Summary objects. Got {type(source).__name__}.")
    text = read_text(source, n_dimensions)
    try:
        return Summary.from_json(text)
    except ValueError as error:
        raise ValueError(f"{source} is no summary that can be used: {error}") from None
