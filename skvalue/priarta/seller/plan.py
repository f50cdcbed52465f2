"""Plan of a release: its mechanism, noise and guarantee, which do not depend on the rows."""

from dataclasses import dataclass

import numpy as np

from ._checks import checked_plan
from .mechanism import claimed_event, noise_of, sensitivity_of


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """Parameters of a seller's release that determine its guarantee.

    It is returned by `SellerRelease.plan` and does not depend on the content of the rows. A
    `Summary` is a plan with the released moments. Fields are checked on construction.

    Parameters
    ----------
    model : str
        Fingerprint of the buyer's model that transforms the rows.
    n_samples : int
        Number of rows in the sums; noisy in a summary with ``relation="add_remove"``.
    n_rows : int or None
        Number of rows from which a random subset is drawn; None without a subset.
    max_norm : float or None
        Radius R around the centre to which rows are clipped. None: neither clipped nor private.
    centre : array-like of shape (d,)
        The buyer's mean, around which moments are taken.
    mechanism : {"central", "local", "none"}
        Noise on the moments ("central"), on every row ("local"), or no noise.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation of the guarantee.
    epsilon, delta : float or None
        Parameters of the guarantee; None without noise.
    mean_weight : float
        Weight of the mean in the release, see `BuyerModel`.
    noise_scale : float
        Standard deviation of the noise, in units of `max_norm`: on the sums of the statistic
        ("central") or on every row.
    secret_subset : bool
        Whether the subset is secret, so that the guarantee accounts for the sampling.
    seeded : bool
        Whether the noise has a seed, which voids the guarantee.

    Raises
    ------
    ValueError
        If a field has the wrong type or is out of range, or the noise is too small for the claimed
        guarantee.

    See Also
    --------
    Summary : A plan with the released moments.

    Examples
    --------
    >>> from skvalue.priarta import PriArTaScorer, SellerRelease
    >>> model = PriArTaScorer(max_norm=1.0).fit([[0.0, 1.0], [1.0, 0.0]]).model_
    >>> round(SellerRelease(model, epsilon=0.8).plan(1000).mean_noise, 4)
    0.0127
    """

    model: str
    n_samples: int
    n_rows: int | None
    max_norm: float | None
    centre: np.ndarray
    mechanism: str
    relation: str
    epsilon: float | None
    delta: float | None
    mean_weight: float
    noise_scale: float
    secret_subset: bool
    seeded: bool

    def __post_init__(self):
        for name, value in checked_plan(self).items():
            object.__setattr__(self, name, value)

    @property
    def rate(self):
        """Fraction of the rows in a secret subset; None without a secret subset."""
        return self.n_samples / self.n_rows if self.secret_subset else None

    @property
    def event(self):
        """Privacy event of the release, for accounting; None without noise."""
        if self.mechanism == "none":
            return None
        sensitivity = sensitivity_of(self.mechanism, self.mean_weight, self.relation)
        return claimed_event(self.noise_scale, sensitivity, self.relation, self.rate, self.delta)

    @property
    def guarantee(self):
        """The guarantee as a sentence; None if there is none."""
        if self.mechanism == "none" or self.seeded:
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
    def noise(self):
        """Standard deviations of the noise on mean, second moment and number of rows."""
        return noise_of(
            self.mechanism,
            self.relation,
            self.noise_scale,
            self.mean_weight,
            self.n_samples,
            self.n_dimensions,
            self.max_norm,
        )

    @property
    def mean_noise(self):
        """Standard deviation of the noise on an entry of the mean."""
        return self.noise.mean

    @property
    def moment_noise(self):
        """Standard deviation of the noise on the diagonal of the second moment."""
        return self.noise.moment

    @property
    def row_variance(self):
        """Variance that noise on every row adds to the diagonal of the second moment."""
        return (self.noise_scale * self.max_norm) ** 2 if self.mechanism == "local" else 0.0
