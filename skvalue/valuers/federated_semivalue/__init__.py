"""Values of parties by their updates of a jointly trained model."""

from ._rounds import coalition_parameters, release_updates, round_values
from ._valuer import FederatedSemivalueValuer

__all__ = ["FederatedSemivalueValuer"]
