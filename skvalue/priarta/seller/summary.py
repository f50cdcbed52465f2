"""Summary that a seller sends to the buyer: noisy moments and their guarantee."""

import json
from dataclasses import asdict, dataclass, fields

import numpy as np

from ..._utils.untrusted import from_base64, read_record, refuse, to_base64
from ...privacy import GaussianEvent
from ._checks import MAX_DIMENSIONS, checked_moments, checked_parameters
from .mechanism import noise_of, release_sensitivity

_FORMAT = "skvalue.priarta.Summary"
_VERSION = 2
_VECTORS = ("centre", "mean", "moment")


@dataclass(frozen=True, eq=False)
class Summary:
    """A seller's mean and second moment, as they were released to a buyer.

    `SellerRelease` makes it on the seller's machine; `to_json` and `from_json` transfer
    it to the buyer. All fields are public: the privacy guarantee is about exactly these
    fields. They are checked on construction.

    Parameters
    ----------
    model : str
        Fingerprint of the buyer's model that transforms the rows.
    n_samples : int
        Number of rows in the sums; noisy with ``relation="add_remove"``.
    max_norm : float or None
        Radius R around the centre to which rows are clipped: the seller's own, which is
        released, or that of the model. None without noise, where no row is clipped.
    n_radius_counts : int
        Number of noisy counts by which the radius was chosen; 0 for that of the model.
    centre : array-like of shape (d,)
        The buyer's mean, around which moments are taken.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation of the guarantee.
    epsilon, delta : float or None
        Parameters of the guarantee; None without noise.
    mean_weight : float
        Weight of the mean in the release, see `BuyerModel`.
    noise_scale : float
        Standard deviation of the noise on the counts, and on the sums of the statistic
        in units of `max_norm`.
    seeded : bool
        Whether the noise has a seed, which voids the guarantee.
    mean : array-like of shape (d,)
        Mean of the rows around the centre.
    moment : array-like of shape (d * (d + 1) // 2,)
        Lower triangle of the second moment around the centre, in row-major order.

    Raises
    ------
    ValueError
        If a field has the wrong type or is out of range, the moments exceed what the
        radius and the noise allow, or the noise is too small for the claimed guarantee.

    See Also
    --------
    SellerRelease : Makes a summary.

    Examples
    --------
    >>> from skvalue.priarta import PriArTaScorer, Summary
    >>> scorer = PriArTaScorer().fit([[0.0], [1.0], [2.0]])
    >>> summary = scorer.summarize([[[1.0], [1.5]]])[0]
    >>> Summary.from_json(summary.to_json()).n_samples
    2
    """

    model: str
    n_samples: int
    max_norm: float | None
    n_radius_counts: int
    centre: np.ndarray
    relation: str
    epsilon: float | None
    delta: float | None
    mean_weight: float
    noise_scale: float
    seeded: bool
    mean: np.ndarray
    moment: np.ndarray

    def __post_init__(self):
        # The limits of the moments depend on the other fields.
        self._set(checked_parameters(self))
        self._set(checked_moments(self))

    def _set(self, fields):
        """Replace fields of this frozen class by their checked values."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def event(self):
        """Privacy event of the release, for accounting; None without noise."""
        if self.epsilon is None:
            return None
        sensitivity = release_sensitivity(
            self.mean_weight, self.relation, self.n_radius_counts
        )
        return GaussianEvent(self.noise_scale, sensitivity, self.relation)

    @property
    def guarantee(self):
        """The guarantee as a sentence; None if there is none."""
        if self.epsilon is None or self.seeded:
            return None
        return (
            f"({self.epsilon:.6g}, {self.delta:.6g})-differential privacy of a row, "
            f"relation {self.relation}"
        )

    @property
    def n_dimensions(self):
        """Number of latent dimensions d."""
        return len(self.centre)

    @property
    def noise(self):
        """Standard deviations of the noise on the moments and the number of rows.

        None without noise.
        """
        if self.epsilon is None:
            return None
        return noise_of(
            self.relation,
            self.noise_scale,
            self.mean_weight,
            self.n_samples,
            self.n_dimensions,
            self.max_norm,
        )

    def to_json(self):
        """The summary as text, of at most ``8 d^2 + 4096`` bytes.

        Returns
        -------
        text : str
            JSON; arrays are base64 of little-endian float64.
        """
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "guarantee": self.guarantee,
            **asdict(self),
        }
        for name in _VECTORS:
            record[name] = to_base64(getattr(self, name))
        return json.dumps(record, allow_nan=False, indent=0)

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
            If the text is not JSON, is too long, has missing, unknown or repeated
            fields, or a field has an invalid value.
        """
        names = {field.name for field in fields(cls)} | {"guarantee"}
        limit = max_file_size(MAX_DIMENSIONS)
        record = read_record(text, _FORMAT, _VERSION, names, limit)
        claimed = record.pop("guarantee")
        for name in _VECTORS:
            record[name] = from_base64(record[name], name)
        summary = cls(**record)
        if claimed != summary.guarantee:
            refuse("guarantee", f"{summary.guarantee!r}, as the fields say", claimed)
        return summary


def max_file_size(n_dimensions):
    """Largest number of bytes of a summary file.

    >>> max_file_size(64)
    36864
    """
    return 8 * n_dimensions**2 + 4096
