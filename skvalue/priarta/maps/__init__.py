"""The maps that every row goes through, fitted by the buyer."""

from importlib import import_module

from ._modules import (
    LATENTS,
    REPRESENTATIONS,
    ExportableMap,
    Representation,
    as_rows,
    class_named,
    count_rows,
    name_of,
    unit_of,
)
from .linear import FittedMap, Identity, PrincipalComponents
from .model import BuyerModel, as_model, map_rows

# Name -> file that defines it, imported at first use: the networks need torch.
_LAZY = {
    "AUGMENTATIONS": "augmentations",
    "BACKBONES": "networks",
    "Examples": "_examples",
    "GaussianVAE": "vae",
    "SimCLR": "simclr",
    "Training": "_training",
    "choose_backbone": "networks",
    "corrupt_features": "augmentations",
    "example_shape": "_examples",
    "image_augmentations": "augmentations",
    "learning_rate_factor": "_training",
    "make_augmentations": "augmentations",
    "make_backbone": "networks",
    "mlp": "networks",
    "negative_elbo": "vae",
    "nt_xent_loss": "simclr",
    "outputs_of": "networks",
    "projection_head": "networks",
    "resnet18": "networks",
    "small_cnn": "networks",
    "with_head": "networks",
}

__all__ = [
    *_LAZY,
    "LATENTS",
    "REPRESENTATIONS",
    "BuyerModel",
    "ExportableMap",
    "FittedMap",
    "Identity",
    "PrincipalComponents",
    "Representation",
    "as_model",
    "as_rows",
    "class_named",
    "count_rows",
    "map_rows",
    "name_of",
    "unit_of",
]


def __getattr__(name):
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
