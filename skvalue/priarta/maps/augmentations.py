"""Random views of examples, as operations on tensors on the device of the network.

Importing this imports torch; kornia is imported only for images.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from ..._utils.optional import import_optional
from ._image_views import apply_step, numbers_of_step

_CORRUPTION_RATE = 0.3  # of the entries of a table
_TAKES = {
    "colour": "images of three channels",
    "digits": "images",
    "table": "rows of a table",
}
AUGMENTATIONS = tuple(_TAKES)


class Draw(NamedTuple):
    """The random numbers of the views of a batch, drawn before there is the batch."""

    # Tensors on the CPU, or on the device of the batch.
    numbers: list
    # The views of a batch, from these numbers on its device.
    view: Any

    def __call__(self, batch):
        return self.view(batch, *self.numbers)


class TableViews:
    """Views of rows of a table, in which entries are replaced, see `corrupt_features`.

    Parameters
    ----------
    pool : tensor of shape (n_pool, n_features)
        Rows on the CPU from which replacements are drawn.
    rate : float
        Probability that an entry is replaced.
    """

    def __init__(self, pool, rate):
        self.pool = pool
        self.rate = rate

    def __call__(self, X):
        return corrupt_features(X, self.pool, self.rate)

    def draw(self, shape):
        """The random numbers of the views of a batch of a shape."""
        return Draw(_draw_replacements(shape, self.pool, self.rate), _replace)


class ImageViews(nn.Module):
    """Views of images, by transformations of kornia.

    Parameters
    ----------
    augment : kornia.augmentation.AugmentationSequential
        The transformations of `image_augmentations`.
    """

    def __init__(self, augment):
        super().__init__()
        self.augment = augment

    def forward(self, images):
        return self.augment(images)

    def draw(self, shape):
        """The random numbers of the views of a batch of a shape.

        The transformations of such views are those of `_image_views`, whatever the
        device.
        """
        modules = dict(self.augment.named_children())
        steps = []
        numbers = []
        for name, drawn in self.augment.forward_parameters(torch.Size(shape)):
            of_step = numbers_of_step(modules[name], drawn, shape)
            steps.append((modules[name], drawn, len(of_step)))
            numbers += of_step
        return Draw(numbers, partial(_view, steps))


def _view(steps, images, *numbers):
    """Views of images by transformations, with some numbers of each on the device."""
    numbers = iter(numbers)
    for module, drawn, n_numbers in steps:
        of_step = [next(numbers) for _ in range(n_numbers)]
        images = apply_step(module, drawn, images, *of_step)
    return images


def image_augmentations(name, size):
    """Random transformations of images.

    Parameters
    ----------
    name : {"colour", "digits"}
        "digits" is for drawings and characters, which must not be flipped: shift, small
        rotation, shear and crop, blur, contrast. "colour" is for photographs: crop,
        flip, colour jitter, greyscale (SimCLR, Appendix A), and small rotations.
    size : tuple of int
        Height and width.

    Returns
    -------
    augment : torch.nn.Module
        Map from images of shape (n, channels, height, width), with numbers in [0, 1],
        to images of the same shape, each with its own random transformation.

    Raises
    ------
    ImportError
        If kornia is not installed.
    ValueError
        If the name is unknown.

    References
    ----------
    .. [1] Chen, T., Kornblith, S., Norouzi, M. and Hinton, G. "A simple framework for
       contrastive learning of visual representations". ICML, 2020, Appendix A.

    Examples
    --------
    >>> import torch
    >>> from skvalue.priarta import image_augmentations
    >>> image_augmentations("digits", (8, 8))(torch.rand(5, 1, 8, 8)).shape
    torch.Size([5, 1, 8, 8])
    """
    kornia = import_optional(
        "kornia.augmentation", "An augmentation of images", "torch"
    )
    if name == "digits":
        transforms = [
            kornia.RandomAffine(
                25.0, translate=(0.15, 0.15), scale=(0.75, 1.25), shear=10.0, p=1.0
            ),
            kornia.RandomGaussianBlur((5, 5), (0.3, 1.5), p=0.5),
            kornia.RandomContrast((0.4, 1.6), p=0.8),
        ]
    elif name == "colour":
        transforms = [
            kornia.RandomResizedCrop(tuple(size), scale=(0.25, 1.0), p=1.0),
            kornia.RandomHorizontalFlip(p=0.5),
            kornia.RandomRotation(20.0, p=0.5),
            kornia.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8),
            kornia.RandomGrayscale(p=0.2),
        ]
    else:
        raise ValueError(f"name must be 'colour' or 'digits'. Got {name!r}.")
    return kornia.AugmentationSequential(*transforms)


def corrupt_features(X, pool, rate):
    """Replace random entries by entries of the same column of other rows.

    Parameters
    ----------
    X : tensor of shape (n, n_features)
        Rows.
    pool : tensor of shape (n_pool, n_features)
        Rows from which replacements are drawn, independently for each entry.
    rate : float
        Probability that an entry is replaced.

    Returns
    -------
    corrupted : tensor of shape (n, n_features)
        Rows with some entries replaced.

    References
    ----------
    .. [1] Bahri, D., Jiang, H., Tay, Y. and Metzler, D. "SCARF: self-supervised
       contrastive learning using random feature corruption". ICLR, 2022, Algorithm 1.

    Examples
    --------
    >>> import torch
    >>> corrupt_features(torch.zeros(2, 3), torch.ones(5, 3), 1.0)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    is_replaced, replacements = _draw_replacements(X.shape, pool, rate)
    return _replace(X, is_replaced.to(X.device), replacements.to(X.device))


def _draw_replacements(shape, pool, rate):
    """Which entries of rows are replaced, and by what, both of the shape of the rows.

    They are drawn on the CPU, so that views are the same on every device.
    """
    is_replaced = torch.rand(shape) < rate
    rows = torch.randint(len(pool), shape)
    columns = torch.arange(shape[1]).expand_as(rows)
    replacements = pool[rows.to(pool.device), columns.to(pool.device)]
    return [is_replaced, replacements]


def _replace(X, is_replaced, replacements):
    """Rows with replaced entries."""
    return torch.where(is_replaced, replacements, X)


def make_augmentations(name, shape, pool):
    """Augmentations for examples of a shape, by name or "auto".

    "table" replaces entries with probability 0.3 by those of the pool (n, ...); the
    others need kornia.
    """
    is_table = len(shape) == 1
    if name == "auto":
        name = _default_augmentation(shape)
    if is_table != (name == "table") or (name == "colour" and shape[0] != 3):
        raise ValueError(
            f"augmentations={name!r} takes {_TAKES[name]}. Got examples of shape "
            f"{tuple(shape)}."
        )
    if is_table:
        return TableViews(pool, _CORRUPTION_RATE)
    return ImageViews(image_augmentations(name, shape[1:]))


def _default_augmentation(shape):
    if len(shape) == 1:
        return "table"
    if shape[0] == 1:
        return "digits"
    return "colour"
