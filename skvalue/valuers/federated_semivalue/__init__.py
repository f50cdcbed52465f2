"""Values of parties by their updates of a jointly trained model."""

from ._valuer import FederatedSemivalueValuer

__all__ = ["FederatedSemivalueValuer"]
