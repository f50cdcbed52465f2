"""The networks that SimCLR trains. Importing this imports torch."""

import torch
from torch import nn


def _convolution(n_in, n_out, stride=1, kernel=3, padding=1):
    """A convolution without bias, and the batch norm that follows it."""
    convolution = nn.Conv2d(n_in, n_out, kernel, stride, padding, bias=False)
    return convolution, nn.BatchNorm2d(n_out)


class _Residual(nn.Module):
    """Residual block: two 3 x 3 convolutions and a skip connection."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        first = _convolution(n_in, n_out, stride)
        second = _convolution(n_out, n_out)
        self.body = nn.Sequential(*first, nn.ReLU(), *second)
        self.around = nn.Identity()
        if stride != 1 or n_in != n_out:
            projection = _convolution(n_in, n_out, stride, kernel=1, padding=0)
            self.around = nn.Sequential(*projection)

    def forward(self, x):
        """The sum of the convolutions and the skip connection, rectified."""
        return torch.relu(self.body(x) + self.around(x))


def resnet18(n_channels, side):
    """ResNet-18 for small images, of 512 outputs.

    The first convolution is 3 x 3 without pooling after it, as is usual for images of
    32 pixels; it has stride 2 if their shorter side has at least 64 pixels. (He, Zhang,
    Ren and Sun: "Deep residual learning for image recognition", CVPR 2016, Table 1.)
    """
    stride = 2 if side >= 64 else 1
    layers = [*_convolution(n_channels, 64, stride), nn.ReLU()]
    n_in = 64
    for n_out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [_Residual(n_in, n_out, stride), _Residual(n_out, n_out, 1)]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def small_cnn(n_channels, side):
    """Three convolutions and average pooling, for images of 8 to 28 pixels; 64 outputs.

    Below 16 pixels of the shorter side the first convolution has stride 1.
    """
    first_stride = 1 if side < 16 else 2
    layers = []
    n_in = n_channels
    for n_out, stride in ((16, first_stride), (32, 2), (64, 2)):
        layers += [*_convolution(n_in, n_out, stride), nn.ReLU()]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def mlp(n_features):
    """Multilayer perceptron of two hidden layers, for rows of a table; 128 outputs."""
    layers = []
    n_in = n_features
    for n_out in (128, 128):
        layers += [nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.ReLU()]
        n_in = n_out
    return nn.Sequential(*layers)


def make_backbone(shape):
    """A new network for examples of a shape, and the number of its outputs.

    The shape is (n_features,) or (channels, height, width).
    """
    if len(shape) == 1:
        return mlp(shape[0]), 128
    channels, height, width = shape
    side = min(height, width)
    if not 8 <= side <= 96:
        raise ValueError(
            "X must hold images whose shorter side has 8 to 96 pixels. Got "
            f"{height} x {width} pixels: resize them."
        )
    if side <= 28:
        return small_cnn(channels, side), 64
    return resnet18(channels, side), 512


def make_network(shape, projection_dim):
    """`make_backbone`, and the head whose outputs the contrastive loss compares."""
    backbone, n_outputs = make_backbone(shape)
    head = nn.Sequential(
        nn.Linear(n_outputs, n_outputs),
        nn.ReLU(),
        nn.Linear(n_outputs, projection_dim),
    )
    return nn.ModuleDict({"backbone": backbone, "head": head})
