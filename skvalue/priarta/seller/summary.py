"""Summary that a seller sends to the buyer: noisy moments and the parameters of their
guarantee."""

import json
from dataclasses import asdict, dataclass, fields

import numpy as np

from ..._utils.untrusted import from_base64, read_record, refuse, to_base64
from ...privacy import GaussianEvent
from ._checks import MOST_DIMENSIONS, checked_facts, checked_moments
from .mechanism import noise_of, statistic_sensitivity

_FORMAT, _VERSION = "skvalue.priarta.Summary", 1
_VECTORS = ("centre", "mean", "moment")


@dataclass(frozen=True, eq=False)
class Summary:
    """A seller's mean and second moment around the buyer's centre, and how they were
    released.

    `SellerRelease` makes it on the seller's machine; `to_json` and `from_json` transfer
    it to the buyer. All fields are public: the privacy guarantee is about exactly these
    fields. They are checked on construction.

    Parameters
    ----------
    model : str
        Fingerprint of the buyer's model that transforms the rows.
    n_samples : int
        Number of rows in the sums; noisy with ``relation="add_remove"``.
    max_norm : float
        Radius R around the centre to which rows are clipped.
    centre : array-like of shape (d,)
        The buyer's mean, around which moments are taken.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation of the guarantee.
    epsilon, delta : float or None
        Parameters of the guarantee; None without noise.
    mean_weight : float
        Weight of the mean in the release, see `BuyerModel`.
    noise_scale : float
        Standard deviation of the noise on the sums of the statistic, in units of
        `max_norm`.
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
    max_norm: float
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
        for check in (checked_facts, checked_moments):
            for name, value in check(self).items():
                object.__setattr__(self, name, value)

    @property
    def event(self):
        """Privacy event of the release, for accounting; None without noise."""
        if self.epsilon is None:
            return None
        sensitivity = statistic_sensitivity(self.mean_weight, self.relation)
        return GaussianEvent(self.noise_scale, sensitivity, self.relation)

    @property
    def guarantee(self):
        """The guarantee as a sentence; None if there is none."""
        if self.epsilon is None or self.seeded:
            return None
        size = f"({self.epsilon:.6g}, {self.delta:.6g})"
        return f"{size}-differential privacy of a row, relation {self.relation}"

    @property
    def n_dimensions(self):
        """Number of latent dimensions d."""
        return len(self.centre)

    @property
    def noise(self):
        """Standard deviations of the noise on mean, second moment and number of
        rows."""
        return noise_of(
            self.relation,
            self.noise_scale,
            self.mean_weight,
            self.n_samples,
            self.max_norm,
        )

    def to_json(self):
        """The summary as text, of at most ``8 d^2 + 4096`` bytes.

        Returns
        -------
        text : str
            JSON; arrays are base64 of little-endian float64.
        """
        head = {"format": _FORMAT, "version": _VERSION, "guarantee": self.guarantee}
        vectors = {name: to_base64(getattr(self, name)) for name in _VECTORS}
        return json.dumps(
            {**head, **asdict(self), **vectors}, allow_nan=False, indent=0
        )

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
        record = read_record(
            text, _FORMAT, _VERSION, names, most_bytes(MOST_DIMENSIONS)
        )
        claimed = record.pop("guarantee")
        vectors = {name: from_base64(record[name], name) for name in _VECTORS}
        summary = cls(**record | vectors)
        if claimed != summary.guarantee:
            refuse("guarantee", f"{summary.guarantee!r}, as the fields say", claimed)
        return summary


def most_bytes(n_dimensions):
    """Largest number of bytes of a summary file.

    >>> most_bytes(64)
    36864
    """
    return 8 * n_dimensions**2 + 4096
