"""A buyer values sellers' data sets from summaries that keep their rows private."""

from .maps import Identity, PrincipalComponents
from .metrics import (
    diversity_relevance,
    min_max,
    principal_contributions,
    symmetric_kl,
    wasserstein,
)
from .model import BuyerModel
from .release import SellerRelease
from .scorer import PriArTaScorer
from .summary import Summary

__all__ = [
    "BuyerModel",
    "Identity",
    "PriArTaScorer",
    "PrincipalComponents",
    "SellerRelease",
    "Summary",
    "diversity_relevance",
    "min_max",
    "principal_contributions",
    "symmetric_kl",
    "wasserstein",
]
