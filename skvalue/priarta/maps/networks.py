"""The networks that SimCLR trains. Importing this imports torch."""

import math

import torch
from torch import nn

BACKBONES = ("mlp", "resnet18", "small_cnn")
_SIDES = {"small_cnn": (8, 28), "resnet18": (29, 96)}  # shorter side of images, for "auto"


def _convolution(n_in, n_out, stride=1, kernel=3, around=1):
    """A convolution without bias, and the batch norm that follows it."""
    convolution = nn.Conv2d(n_in, n_out, kernel, stride, around, bias=False)
    return convolution, nn.BatchNorm2d(n_out)


class _Residual(nn.Module):
    """Residual block: two 3 x 3 convolutions and a skip connection."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        first, second = _convolution(n_in, n_out, stride), _convolution(n_out, n_out)
        self.body = nn.Sequential(*first, nn.ReLU(), *second)
        self.around = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.around = nn.Sequential(*_convolution(n_in, n_out, stride, 1, 0))

    def forward(self, x):
        return torch.relu(self.body(x) + self.around(x))


def resnet18(n_channels=3, side=32):
    """ResNet-18 for small images.

    The first convolution is 3 x 3 without pooling after it, as is usual for images of 32 pixels; it
    has stride 2 for images of at least 64 pixels.

    Parameters
    ----------
    n_channels : int
        Channels of an image.
    side : int
        Pixels of its shorter side.

    Returns
    -------
    network : torch.nn.Module
        Map from images of shape (n, n_channels, height, width) to arrays of shape (n, 512).

    References
    ----------
    .. [1] He, K., Zhang, X., Ren, S. and Sun, J. "Deep residual learning for image recognition".
       CVPR, 2016, Table 1.

    Examples
    --------
    >>> import torch
    >>> from skvalue.priarta import resnet18
    >>> resnet18()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    """
    stride = 2 if side >= 64 else 1
    layers, n_in = [*_convolution(n_channels, 64, stride), nn.ReLU()], 64
    for n_out in (64, 128, 256, 512):
        layers += [_Residual(n_in, n_out, 1 if n_out == 64 else 2), _Residual(n_out, n_out, 1)]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def small_cnn(n_channels=1, side=28, width=16):
    """Three convolutions and average pooling, for images of 8 to 28 pixels.

    Parameters
    ----------
    n_channels : int
        Channels of an image.
    side : int
        Pixels of its shorter side; below 16 the first convolution has stride 1.
    width : int
        Channels of the first convolution; the others have two and four times as many.

    Returns
    -------
    network : torch.nn.Module
        Map from images of shape (n, n_channels, height, width) to arrays of shape (n, 4 width).

    Examples
    --------
    >>> import torch
    >>> from skvalue.priarta import small_cnn
    >>> small_cnn(side=8)(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 64])
    """
    layers, n_in = [], n_channels
    for n_out, stride in ((width, 1 if side < 16 else 2), (2 * width, 2), (4 * width, 2)):
        layers += [*_convolution(n_in, n_out, stride), nn.ReLU()]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def mlp(n_features, width=128):
    """Multilayer perceptron of two hidden layers, for rows of a table.

    Parameters
    ----------
    n_features : int
        Columns of the table.
    width : int
        Units of each layer.

    Returns
    -------
    network : torch.nn.Module
        Map from arrays of shape (n, n_features) to arrays of shape (n, width).

    Examples
    --------
    >>> import torch
    >>> from skvalue.priarta import mlp
    >>> mlp(4, width=16)(torch.zeros(5, 4)).shape
    torch.Size([5, 16])
    """
    return nn.Sequential(
        nn.Linear(n_features, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
    )


def projection_head(n_in, n_out):
    """The projection head, on whose outputs the contrastive loss is computed."""
    return nn.Sequential(nn.Linear(n_in, n_in), nn.ReLU(), nn.Linear(n_in, n_out))


def choose_backbone(shape):
    """Name of the default network for a shape (n_features,) or (channels, height, width)."""
    if len(shape) == 1:
        return "mlp"
    side = min(shape[1:])
    for name, (least, most) in _SIDES.items():
        if least <= side <= most:
            return name
    raise ValueError(
        "backbone='auto' takes images whose shorter side has 8 to 96 pixels. Got "
        f"{shape[1]} x {shape[2]} pixels: pass a torch module as backbone, or resize them."
    )


def make_backbone(name, shape):
    """A network with initial weights for examples of a shape, and its number of outputs."""
    if name not in BACKBONES:
        raise ValueError(f"backbone must be one of {', '.join(BACKBONES)}. Got {name!r}.")
    if (name == "mlp") != (len(shape) == 1):
        what = "rows of a table" if name == "mlp" else "images"
        raise ValueError(
            f"backbone={name!r} takes {what}. Got examples of shape {shape}"
            + (": leave image_shape out." if name == "mlp" else ": pass image_shape.")
        )
    if name == "mlp":
        return mlp(shape[0]), 128
    if min(shape[1:]) < 8:
        raise ValueError(
            f"backbone={name!r} takes images of at least 8 x 8 pixels. Got {shape[1]} x {shape[2]}."
        )
    if name == "small_cnn":
        return small_cnn(shape[0], min(shape[1:])), 64
    return resnet18(shape[0], min(shape[1:])), 512


def with_head(backbone, n_outputs, projection_dim):
    """Backbone and head as one module; without a head if projection_dim is None."""
    network = nn.Module()
    network.backbone = backbone
    if projection_dim is not None:
        network.head = projection_head(n_outputs, projection_dim)
    return network


def outputs_of(backbone, shape):
    """Number of outputs of a module passed by the user."""
    mode = backbone.training
    try:
        with torch.no_grad():
            out = backbone.eval()(torch.zeros(2, *shape))
    finally:
        backbone.train(mode)
    if out.ndim < 2 or len(out) != 2:
        raise ValueError(
            "backbone must give a tensor of shape (n, n_outputs) for n examples. Got shape "
            f"{tuple(out.shape)} for 2."
        )
    return math.prod(out.shape[1:])
