"""Parameters and checks of private fits."""

from numbers import Integral, Real

from .._utils.sklearn import StrOptions
from .._utils.warned import warn
from ..exceptions import VoidGuaranteeWarning
from ..privacy import Ledger, check_delta, check_epsilon, warn_of_large_delta

# Constraints of the parameters common to all valuers with private fits.
PRIVACY_CONSTRAINTS = {
    "epsilon": [Real, None],
    "delta": [Real],
    "relation": [StrOptions({"null", "add_remove", "replace"})],
    "reader": [StrOptions({"curator"}), None],
    "ledger": [Ledger, None],
    "noise_random_state": [Integral, None],
}


def check_privacy(estimator, X_val):
    """Check the parameters of a private fit."""
    if estimator.epsilon is not None:
        check_epsilon(estimator.epsilon)
    check_delta(estimator.delta)
    if X_val is None:
        raise ValueError(
            "X_val and y_val must be passed with epsilon: a private fit needs public validation "
            "points to evaluate the rows. They are NOT protected, and must not be private rows. "
            "Got no X_val."
        )


def warn_of_guarantee(estimator, n_units):
    """Warn of a ledger without epsilon, and of a large delta for ``n_units`` rows or
    parties."""
    if estimator._is_private:
        warn_of_large_delta(estimator.delta, n_units)
    elif estimator.ledger is not None:
        warn(
            "ledger is not charged without epsilon: this fit is exact, and NOT private. Got "
            f"epsilon=None with {estimator.ledger!r}.",
            VoidGuaranteeWarning,
        )
