"""A buyer values sellers' data sets from summaries that keep their rows private."""

from importlib import import_module

from .attacks import MembershipAttack, membership_attack
from .buyer.metrics import (
    diversity_relevance,
    min_max,
    principal_contributions,
    symmetric_kl,
    wasserstein,
)
from .buyer.scorer import PriArTaScorer
from .displays import DirectionsDisplay, PairwiseDistancesDisplay, SellerScoresDisplay
from .maps.linear import Identity, PrincipalComponents
from .maps.model import BuyerModel
from .seller.release import SellerRelease
from .seller.summary import Summary

# Public name -> file that defines it, imported at first use: the networks need torch.
_LAZY = {
    "GaussianVAE": "maps.vae",
    "SimCLR": "maps.simclr",
    "corrupt_features": "maps.augmentations",
    "image_augmentations": "maps.augmentations",
    "mlp": "maps.networks",
    "negative_elbo": "maps.vae",
    "nt_xent_loss": "maps.simclr",
    "resnet18": "maps.networks",
    "small_cnn": "maps.networks",
}

__all__ = [
    "BuyerModel",
    "DirectionsDisplay",
    "GaussianVAE",
    "Identity",
    "MembershipAttack",
    "PairwiseDistancesDisplay",
    "PriArTaScorer",
    "PrincipalComponents",
    "SellerRelease",
    "SellerScoresDisplay",
    "SimCLR",
    "Summary",
    "corrupt_features",
    "diversity_relevance",
    "image_augmentations",
    "membership_attack",
    "min_max",
    "mlp",
    "negative_elbo",
    "nt_xent_loss",
    "principal_contributions",
    "resnet18",
    "small_cnn",
    "symmetric_kl",
    "wasserstein",
]


def __getattr__(name):
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(set(globals()) | set(__all__))
