"""Maps of rows, fitted by the buyer."""

from importlib import import_module

from ._modules import (
    LATENTS,
    REPRESENTATIONS,
    as_rows,
    class_named,
    count_rows,
    name_of,
    unit_of,
)
from .linear import FittedMap, Identity, PrincipalComponents
from .model import BuyerModel, as_model, map_rows

# File -> names that it defines, imported on first use, since the networks need torch.
_LAZY = {
    "_examples": ["Examples", "example_shape"],
    "_training": ["Training", "learning_rate_factor"],
    "augmentations": ["corrupt_features", "image_augmentations", "make_augmentations"],
    "networks": [
        "choose_backbone",
        "make_backbone",
        "mlp",
        "projection_head",
        "resnet18",
        "small_cnn",
    ],
    "simclr": ["SimCLR", "nt_xent_loss"],
    "vae": ["GaussianVAE", "negative_elbo"],
}


def __getattr__(name):
    for module, names in _LAZY.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
