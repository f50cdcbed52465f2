"""Names of maps; those of networks need torch."""

from ._examples import Examples as Examples
from ._examples import example_shape as example_shape
from ._modules import LATENTS as LATENTS
from ._modules import REPRESENTATIONS as REPRESENTATIONS
from ._modules import as_rows as as_rows
from ._modules import class_named as class_named
from ._modules import name_of as name_of
from ._training import learning_rate_factor as learning_rate_factor
from ._training import train as train
from .augmentations import corrupt_features as corrupt_features
from .augmentations import image_augmentations as image_augmentations
from .augmentations import make_augmentations as make_augmentations
from .linear import FittedMap as FittedMap
from .linear import Identity as Identity
from .linear import PrincipalComponents as PrincipalComponents
from .model import BuyerModel as BuyerModel
from .model import as_model as as_model
from .model import map_rows as map_rows
from .networks import make_backbone as make_backbone
from .networks import mlp as mlp
from .networks import resnet18 as resnet18
from .networks import small_cnn as small_cnn
from .simclr import SimCLR as SimCLR
from .simclr import nt_xent_loss as nt_xent_loss
from .vae import GaussianVAE as GaussianVAE
from .vae import negative_elbo as negative_elbo
