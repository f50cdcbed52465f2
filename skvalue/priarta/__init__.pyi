"""Public names of PriArTa; those of networks need torch."""

from .attacks import MembershipAttack as MembershipAttack
from .attacks import membership_attack as membership_attack
from .buyer import PriArTaScorer as PriArTaScorer
from .buyer import add_buyer_command as add_buyer_command
from .buyer import diversity_relevance as diversity_relevance
from .buyer import principal_contributions as principal_contributions
from .buyer import symmetric_kl as symmetric_kl
from .buyer import wasserstein as wasserstein
from .displays import DirectionsDisplay as DirectionsDisplay
from .displays import PairwiseDistancesDisplay as PairwiseDistancesDisplay
from .displays import SellerScoresDisplay as SellerScoresDisplay
from .maps import BuyerModel as BuyerModel
from .maps import Identity as Identity
from .maps import PrincipalComponents as PrincipalComponents
from .maps.augmentations import corrupt_features as corrupt_features
from .maps.augmentations import image_augmentations as image_augmentations
from .maps.simclr import SimCLR as SimCLR
from .maps.simclr import nt_xent_loss as nt_xent_loss
from .maps.vae import GaussianVAE as GaussianVAE
from .maps.vae import negative_elbo as negative_elbo
from .seller import SellerRelease as SellerRelease
from .seller import Summary as Summary
from .seller import add_seller_command as add_seller_command
