"""Values of sellers' data sets for a buyer, from private summaries (PriArTa)."""

from typing import TYPE_CHECKING

from . import maps
from .attacks import MembershipAttack, membership_attack
from .buyer import PriArTaScorer, principal_contributions, symmetric_kl, wasserstein
from .displays import DirectionsDisplay, PairwiseDistancesDisplay, SellerScoresDisplay
from .maps import BuyerModel, Identity, PrincipalComponents
from .seller import SellerRelease, Summary

# Names of the networks are imported on first use, since they need torch.
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
    "image_augmentations",
    "membership_attack",
    "mlp",
    "negative_elbo",
    "nt_xent_loss",
    "principal_contributions",
    "resnet18",
    "small_cnn",
    "symmetric_kl",
    "wasserstein",
]


if TYPE_CHECKING:  # what editors and type checkers read in place of `__getattr__`
    from .maps.augmentations import corrupt_features, image_augmentations
    from .maps.networks import mlp, resnet18, small_cnn
    from .maps.simclr import SimCLR, nt_xent_loss
    from .maps.vae import GaussianVAE, negative_elbo
else:

    def __getattr__(name):
        if name in __all__:  # these need torch
            return getattr(maps, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted(set(globals()) | set(__all__))
