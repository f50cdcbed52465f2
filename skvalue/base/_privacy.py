"""Parameters and checks of private fits."""

from dataclasses import dataclass, fields
from numbers import Integral, Real

from .._utils.sklearn import StrOptions
from .._utils.warned import warn
from ..exceptions import ParameterError, VoidGuaranteeWarning
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


@dataclass(frozen=True)
class PrivacyParameters:
    """The parameters of a valuer on privacy; None is a parameter that it lacks."""

    epsilon: float | None
    noise_multiplier: float | None
    delta: float | None
    reader: str | None
    ledger: Ledger | None

    @classmethod
    def of(cls, valuer):
        """The parameters of a valuer."""
        return cls(**{f.name: getattr(valuer, f.name, None) for f in fields(cls)})

    @property
    def is_private(self):
        """Whether a fit is private."""
        return self.epsilon is not None or self.noise_multiplier is not None


def check_privacy(parameters, X_val):
    """Check the parameters of a private fit, and that it has validation points."""
    if parameters.epsilon is not None:
        check_epsilon(parameters.epsilon)
    check_delta(parameters.delta)
    if X_val is None:
        raise ParameterError(
            "X_val",
            "must be passed with epsilon: a private fit needs public validation points "
            "to evaluate the rows. They are NOT protected, and must not be private "
            "rows. Got none.",
            alias="X_val and y_val",
        )


def warn_of_guarantee(valuer, n_units):
    """Warn of a ledger without epsilon, and of a large delta for n rows or parties.

    n_units : their number; None if it is private
    """
    parameters = PrivacyParameters.of(valuer)
    if parameters.is_private:
        warn_of_large_delta(parameters.delta, n_units)
    elif parameters.ledger is not None:
        warn(
            "ledger is not charged without epsilon: this fit is exact, and NOT "
            f"private. Got epsilon=None with {parameters.ledger!r}.",
            VoidGuaranteeWarning,
        )
