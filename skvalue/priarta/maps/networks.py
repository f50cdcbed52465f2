"""The networks that SimCLR trains. Importing this imports torch."""

import torch
from torch import nn


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


def resnet18(n_channels, side):
    """ResNet-18 for small images, of 512 outputs.

    The first convolution is 3 x 3 without pooling after it, as is usual for images of
    32 pixels; it has stride 2 if their shorter side has at least 64 pixels. (He, Zhang,
    Ren and Sun: "Deep residual learning for image recognition", CVPR 2016, Table 1.)
    """
    stride = 2 if side >= 64 else 1
    layers, n_in = [*_convolution(n_channels, 64, stride), nn.ReLU()], 64
    for n_out in (64, 128, 256, 512):
        layers += [
            _Residual(n_in, n_out, 1 if n_out == 64 else 2),
            _Residual(n_out, n_out, 1),
        ]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def small_cnn(n_channels, side):
    """Three convolutions and average pooling, for images of 8 to 28 pixels; 64 outputs.

    Below 16 pixels of the shorter side the first convolution has stride 1.
    """
    layers, n_in = [], n_channels
    for n_out, stride in ((16, 1 if side < 16 else 2), (32, 2), (64, 2)):
        layers += [*_convolution(n_in, n_out, stride), nn.ReLU()]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def mlp(n_features):
    """Multilayer perceptron of two hidden layers, for rows of a table; 128 outputs."""
    layers, n_in = [], n_features
    for n_out in (128, 128):
        layers += [nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.ReLU()]
        n_in = n_out
    return nn.Sequential(*layers)


def make_backbone(shape):
    """The network for a shape (n_features,) or (channels, height, width), and its
    outputs' number.

    Its weights are initial ones.
    """
    if len(shape) == 1:
        return mlp(shape[0]), 128
    channels, *sides = shape
    if not 8 <= min(sides) <= 96:
        raise ValueError(
            "X must hold images whose shorter side has 8 to 96 pixels. Got "
            f"{sides[0]} x {sides[1]} pixels: resize them."
        )
    if min(sides) <= 28:
        return small_cnn(channels, min(sides)), 64
    return resnet18(channels, min(sides)), 512


def make_network(shape, projection_dim):
    """`make_backbone`, and the head on whose outputs the contrastive loss is
    computed."""
    backbone, n = make_backbone(shape)
    head = nn.Sequential(nn.Linear(n, n), nn.ReLU(), nn.Linear(n, projection_dim))
    return nn.ModuleDict({"backbone": backbone, "head": head})
