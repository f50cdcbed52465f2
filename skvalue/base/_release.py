"""How statistics leave a fit: as they are, or with noise that has a known cost."""

from dataclasses import dataclass
from numbers import Integral, Real

from .._utils.sklearn import StrOptions
from ..privacy import Ledger

# Constraints of the parameters that every private valuer has.
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
    """What a private fit releases, and what that costs; without an event everything is exact.

    The method that uses it charges the ledger, once, before noise is drawn.
    """

    event: object = None
    ledger: Ledger | None = None
    label: str = ""
    noise_random_state: int | None = None  # for tests only, voids the guarantee
    report: object = None  # what is protected: `privacy_`
    values_are_public: bool = False  # whether the values are a function of what is published
    by_query: bool = False  # whether `values_for` releases the values, one by one

    @property
    def is_exact(self):
        """Whether statistics pass unchanged."""
        return self.event is None


EXACT = Release()
