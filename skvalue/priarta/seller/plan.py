"""What a release says about itself before it looks at a row: its mechanism, noise and guarantee."""

from dataclasses import dataclass

import numpy as np

from ._checks import checked_plan
from .mechanism import claimed_event, noise_of, sensitivity_of


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """The facts that a seller's guarantee rests on; none of them depends on what its rows hold.

    `SellerRelease.plan` makes it. A `Summary` is a plan that was carried out: it has the moments,
    too. Fields are checked when it is made, and what cannot be is refused.

    Parameters
    ----------
    model : str
        Fingerprint of the buyer's model that the rows go through.
    n_samples : int
        Number of rows summed up; in a summary with ``relation="add_remove"`` a noisy number.
    n_rows : int or None
        Number of rows that they are drawn from, where they are a random subset.
    max_norm : float or None
        Radius R that rows are clipped to, around the centre. None: not clipped, not private.
    centre : array-like of shape (d,)
        The buyer's centre.
    mechanism : {"central", "local", "none"}
        Noise on the moments; on every row; none.
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
        Whether the noise comes from a seed, which voids the guarantee.

    Raises
    ------
    ValueError
        If a field is of the wrong type or range, or the noise is too small for the guarantee that
        is claimed.

    See Also
    --------
    Summary : What a seller sends.

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
        """Fraction of the rows in a secret subset; None where no secret subset counts."""
        return self.n_samples / self.n_rows if self.secret_subset else None

    @property
    def event(self):
        """What is released, for accounting; None without noise."""
        if self.mechanism == "none":
            return None
        sensitivity = sensitivity_of(self.mechanism, self.mean_weight, self.relation)
        return claimed_event(self.noise_scale, sensitivity, self.relation, self.rate, self.delta)

    @property
    def guarantee(self):
        """The guarantee in words; None where there is none."""
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
        """What noise on every row adds to the diagonal of the second moment and is taken off."""
        return (self.noise_scale * self.max_norm) ** 2 if self.mechanism == "local" else 0.0
