"""How a fit releases its statistics: exactly, or with noise of a known privacy cost."""

from dataclasses import dataclass
from numbers import Integral, Real

from .._utils.sklearn import StrOptions
from .._utils.warned import warn
from ..exceptions import VoidGuaranteeWarning
from ..privacy import Ledger, warn_of_large_delta

# Constraints of the parameters common to all valuers with private fits.
PRIVACY_CONSTRAINTS = {
    "epsilon": [Real, None],
    "delta": [Real],
    "relation": [StrOptions({"null", "add_remove", "replace"})],
    "reader": [StrOptions({"curator"}), None],
    "ledger": [Ledger, None],
    "noise_random_state": [Integral, None],
}


@dataclass(frozen=True, eq=False)
class Release:
    """What a private fit releases and at what cost; without an event, the fit is exact.

    The method charges the ledger, once, before noise is drawn.
    """

    event: object = None
    ledger: Ledger | None = None
    label: str = ""
    noise_random_state: int | None = None  # for tests only: voids the guarantee
    report: object = None  # what is protected: `privacy_`
    values_are_public: bool = False  # whether the values are a function of what is published
    by_query: bool = False  # whether `values_for` releases each value when it is called

    @property
    def is_exact(self):
        """Whether statistics are left unchanged."""
        return self.event is None


EXACT = Release()


def warn_of_guarantee(estimator, n_units):
    """Warn of a ledger without epsilon, and of a large delta for ``n_units`` rows or parties."""
    if not estimator._is_private:
        if getattr(estimator, "ledger", None) is not None:
            warn(
                "ledger is not charged without epsilon: this fit is exact, and NOT private. Got "
                f"epsilon=None with {estimator.ledger!r}.",
                VoidGuaranteeWarning,
            )
        return
    noise = getattr(estimator, "noise", None)
    if not (isinstance(noise, str) and noise == "laplace"):
        warn_of_large_delta(estimator.delta, n_units)
