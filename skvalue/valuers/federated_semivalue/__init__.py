"""Values of parties by their updates of a jointly trained model."""

from ._messages import FederatedRound, FederatedUpdate
from ._release import release_updates
from ._rounds import coalition_parameters, round_values
from ._valuer import FederatedSemivalueValuer

__all__ = ["FederatedRound", "FederatedSemivalueValuer", "FederatedUpdate"]
