"""Torch modules that players train, and their data."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from skvalue.derivatives import TorchGradientModel

cross_entropy = torch.nn.functional.cross_entropy

N_PARAMETERS = 183  # of `Net`


class Net(torch.nn.Module):
    """Small network over images, with a layer that normalises row by row."""

    def __init__(self, frozen=False):
        super().__init__()
        self.body = torch.nn.Conv2d(1, 3, 3, dtype=torch.float64)
        self.norm = torch.nn.GroupNorm(1, 3, dtype=torch.float64)
        self.head = torch.nn.Linear(3 * 4 * 4, 3, dtype=torch.float64)
        if frozen:
            self.body.requires_grad_(False)
            self.norm.requires_grad_(False)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.body(x))).flatten(1))


def image_data(rng):
    """Images of three players, and validation points."""
    X = rng.normal(size=(12, 1, 6, 6))
    y = rng.integers(0, 3, 12)
    players = np.array([2, 0, 1, 0, 0, 2, 1, 1, 0, 2, 2, 0])
    return X, y, players, rng.normal(size=(7, 1, 6, 6)), rng.integers(0, 3, 7)


def table_data(rng):
    """Rows of four players, and validation points."""
    X = rng.normal(size=(10, 4))
    y = rng.integers(0, 3, 10)
    return X, y, np.arange(10) % 4, rng.normal(size=(6, 4)), rng.integers(0, 3, 6)


def layer(n_outputs=3, dtype=torch.float64):
    """A linear layer over the rows of a table."""
    return torch.nn.Linear(4, n_outputs, dtype=dtype)


def make(module, data, loss=None, **options):
    """The model of a module that players train."""
    return TorchGradientModel(
        module, loss, *data, **{"clip": 0.5, "device": "cpu", **options}
    )


def gradient_by_autograd(module, data, theta, player, clip, unit):
    """The clipped gradient of a player by loops and `backward`."""
    X = torch.tensor(data[0])
    y = torch.tensor(data[1])
    trained = [p for p in module.parameters() if p.requires_grad]
    torch.nn.utils.vector_to_parameters(torch.tensor(theta), trained)

    def clipped(gradient):
        if clip is None:
            return gradient
        return gradient / max(1.0, float(gradient.norm()) / clip)

    gradients = []
    for row in np.flatnonzero(data[2] == player):
        loss = cross_entropy(module(X[row][None]), y[row][None])
        of_row = torch.autograd.grad(loss, trained)
        gradients.append(torch.cat([gradient.reshape(-1) for gradient in of_row]))
    if unit == "example":
        return torch.stack([clipped(g) for g in gradients]).mean(0).numpy()
    return clipped(torch.stack(gradients).mean(0)).numpy()
