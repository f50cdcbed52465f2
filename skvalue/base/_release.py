"""Parameters and warnings of private fits."""

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
    warn_of_large_delta(estimator.delta, n_units)
