"""A buyer values sellers' data sets from summaries that keep their rows private."""

from .attacks import MembershipAttack, membership_attack
from .displays import DirectionsDisplay, PairwiseDistancesDisplay, SellerScoresDisplay
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
    "DirectionsDisplay",
    "Identity",
    "MembershipAttack",
    "PairwiseDistancesDisplay",
    "PriArTaScorer",
    "PrincipalComponents",
    "SellerRelease",
    "SellerScoresDisplay",
    "Summary",
    "diversity_relevance",
    "membership_attack",
    "min_max",
    "principal_contributions",
    "symmetric_kl",
    "wasserstein",
]
