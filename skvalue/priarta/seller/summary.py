"""Summary that a seller sends to the buyer: noisy moments and the parameters of their guarantee."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from ..._utils.records import refuse
from ._checks import check_exact, checked_moments
from ._summary_file import decode, encode
from .plan import ReleasePlan


@dataclass(frozen=True, eq=False)
class Summary(ReleasePlan):
    """A seller's mean and second moment around the buyer's centre, and how they were released.

    `SellerRelease` makes it on the seller's machine; `to_json` and `from_json` transfer it to the
    buyer. All fields are public: the privacy guarantee is about exactly these fields. They are
    checked on construction.

    Parameters
    ----------
    model, n_samples, n_rows, max_norm, centre, mechanism, relation, epsilon, delta, mean_weight : \
object
        As in `ReleasePlan`.
    noise_scale, secret_subset, seeded : object
        As in `ReleasePlan`.
    mean : array-like of shape (d,)
        Mean of the rows around the centre.
    moment : array-like of shape (d * (d + 1) // 2,)
        Lower triangle of the second moment around the centre, in row-major order.

    Raises
    ------
    ValueError
        If a field has the wrong type or is out of range, the moments exceed what the radius and the
        noise allow, or the noise is too small for the claimed guarantee.

    See Also
    --------
    SellerRelease : Makes a summary.

    Examples
    --------
    >>> from skvalue.priarta import PriArTaScorer, Summary
    >>> scorer = PriArTaScorer().fit([[0.0], [1.0], [2.0]])
    >>> summary = scorer.summarize([[[1.0], [1.5]]])[0]
    >>> Summary.from_json(summary.to_json()) == summary
    True
    """

    mean: np.ndarray
    moment: np.ndarray

    def __post_init__(self):
        super().__post_init__()
        for name, value in checked_moments(self).items():
            object.__setattr__(self, name, value)
        if self.mechanism == "none":
            check_exact(self.mean, self.second_moment)

    @cached_property
    def second_moment(self):
        """The released second moment around the centre, as a (d, d) array."""
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
            The covariance, without the expected contribution of the noise. It may have negative
            eigenvalues.
        """
        n = self.n_samples
        covariance = self.second_moment - np.outer(self.mean, self.mean)
        covariance += (self.mean_noise**2 - self.row_variance) * np.eye(self.n_dimensions)
        return self.mean.copy(), covariance * (n / (n - 1))

    def to_json(self):
        """The summary as text, of at most ``8 d^2 + 4096`` bytes.

        Returns
        -------
        text : str
            JSON; arrays are base64 of little-endian float64.
        """
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        return encode(record, self.guarantee)

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
        """Read a summary from text, which is not trusted.

        Parameters
        ----------
        text : str
            Text returned by `to_json`.

        Returns
        -------
        summary : Summary
            The summary.

        Raises
        ------
        ValueError
            If the text is not JSON, is too long, has missing, unknown or repeated fields, or a
            field has an invalid value.
        """
        record, claimed = decode(text, {field.name for field in fields(cls)})
        summary = cls(**record)
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
        """Copy of the summary with some fields replaced, and checked again.

        Parameters
        ----------
        **changes : object
            Fields to replace, by name.

        Returns
        -------
        summary : Summary
            The copy.
        """
        return replace(self, **changes)
