"""Rows and networks of the tables on data values from private gradients.

The paper's networks are one convolution of 16 filters, and ResNet-18 and 34 of which
the last residual block and the linear layer are trained. All before them is run once:
what the parties hold are its outputs.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml

IMAGES = {"mnist": (1, 28), "cifar10": (3, 32)}  # channels, and pixels of a side
BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}  # both on CIFAR-10
OPENML = {"covertype": "covertype", "mnist": "mnist_784", "cifar10": "CIFAR_10"}


@dataclass(frozen=True)
class Source:
    """Where rows come from, and what is trained on them.

    folder has NAME.npz with arrays X and y; None asks OpenML. networks is "linear"
    (softmax regression on means of 2 x 2 pixels, of rows of about norm one), "small" or
    "paper". weights is a file of torchvision's parameters for a ResNet; without it, all
    of the network is trained for that many epochs on half of the images, of which no
    party and no validation set has any.
    """

    folder: Path | None
    networks: str = "small"
    device: str = "cpu"
    weights: Path | None = None
    epochs: int = 20

    def load(self, name, target=False):
        """Rows, as images for the networks, and labels 0, 1, ...; or targets, all
        standardised."""
        if target:
            with np.load(self.folder / f"{name}.npz", allow_pickle=False) as arrays:
                X, y = (arrays[key].astype(np.float64) for key in "Xy")
            return (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
        if name in BLOCKS:
            features, y, _ = _pretrained(self, name)
            return features, y
        return _read(self.folder, name)

    def draw(self, name, n, n_val, seed):
        """n rows and n_val validation points, whose labels are among those of the rows.

        Images less the mean of the validation points: else all gradients are much
        alike.
        """
        X, y = self.load(name)
        rows = np.random.default_rng(seed).permutation(len(y))
        rows, others = rows[:n], rows[n:]
        others = others[np.isin(y[others], y[rows])][:n_val]
        mean = X[others].mean(axis=0) if name in IMAGES else 0.0
        if name in IMAGES and self.networks == "linear":
            X = _pooled(X)
            mean = _pooled(mean[None])[0]
        return X[rows] - mean, y[rows], X[others] - mean, y[others]

    def network(self, name):
        """What is trained: the name of a built-in model for Covertype, else a torch
        module."""
        if name == "covertype" or self.networks == "linear":
            return "softmax"
        if name in BLOCKS:
            return _pretrained(self, name)[2]
        channels, side = IMAGES[name]
        filters, kernel, stride = (4, 5, 2) if self.networks == "small" else (16, 3, 1)
        pooled = ((side - kernel) // stride + 1) // 2
        import torch

        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Conv2d(channels, filters, kernel, stride),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(filters * pooled**2, 10),
        )


def add_arguments(parser):
    """The options that make a source."""
    parser.add_argument(
        "--data", type=Path, help="folder of NAME.npz; without it, OpenML"
    )
    parser.add_argument(
        "--networks", choices=("linear", "small", "paper"), default="small"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--weights", type=Path, help="torchvision's parameters of the ResNet"
    )
    parser.add_argument(
        "--epochs", type=int, default=20, help="of a ResNet without --weights"
    )


def source(args):
    """The source that the options ask for."""
    return Source(args.data, args.networks, args.device, args.weights, args.epochs)


def _pooled(images):
    """Means of 2 x 2 pixels in one column each, a fifth of them."""
    n, channels, side, _ = images.shape
    blocks = images.reshape(n, channels, side // 2, 2, side // 2, 2)
    return blocks.mean(axis=(3, 5)).reshape(n, -1) / 5


@lru_cache(maxsize=1)
def _read(folder, name):
    if folder is None:
        bunch = fetch_openml(OPENML[name], as_frame=False)
        X = bunch.data
        y = bunch.target
        if name == "cifar10":  # a channel after the other
            X = X.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    else:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
            X = arrays["X"]
            y = arrays["y"]
    y = np.unique(y, return_inverse=True)[1]
    if name not in IMAGES:
        return X.astype(np.float64), y
    channels, side = IMAGES[name]
    X = X.reshape(-1, side, side, channels).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(X, dtype=np.float32) / 255, y


# ResNets ------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _pretrained(given, name):
    """What comes before the last block, for half of CIFAR-10; labels; what is trained
    after it."""
    import torch

    X, y = _read(given.folder, "cifar10")
    X = (X - 0.45) / 0.225  # about as torchvision's parameters want them
    torch.manual_seed(0)
    network = resnet(BLOCKS[name])
    public = np.random.default_rng(0).permutation(len(y)) < len(y) // 2
    if given.weights is None:
        _train(network, X[public], y[public], given.epochs, given.device)
    else:
        found = torch.load(given.weights, map_location="cpu", weights_only=True)
        network[:-1].load_state_dict(_renamed(found, BLOCKS[name]))
    body = network[:-4].eval().to(given.device)
    tail = network[-4:].eval().cpu()
    tail[-1].reset_parameters()  # as behind a body that was trained for other classes
    for part in tail.modules():
        if isinstance(
            part, torch.nn.BatchNorm2d
        ):  # its statistics are constants, so is its scale
            part.requires_grad_(False)
    with torch.no_grad():
        outputs = [
            body(torch.from_numpy(rows).to(given.device)).cpu()
            for rows in np.array_split(X[~public], len(y) // 512 + 1)
        ]
    return torch.cat(outputs).numpy(), y[~public], tail


def resnet(blocks):
    """ResNet with these numbers of blocks, for ten classes; `network[-4:]` is
    trained."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, n_in, n_out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(n_out)
            self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(n_out)
            self.downsample = None
            if stride != 1 or n_in != n_out:
                around = nn.Conv2d(n_in, n_out, 1, stride, bias=False)
                self.downsample = nn.Sequential(around, nn.BatchNorm2d(n_out))

        def forward(self, x):
            around = x if self.downsample is None else self.downsample(x)
            x = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.bn2(self.conv2(x)) + around)

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    n_in = 64
    for n_out, n_blocks in zip((64, 128, 256, 512), blocks):
        for i in range(n_blocks):
            layers.append(Block(n_in, n_out, 2 if i == 0 and n_out > 64 else 1))
            n_in = n_out
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
    )


def _renamed(parameters, blocks):
    """torchvision's parameters under the names they have here, less those of its 1,000
    classes."""
    names = ["conv1", "bn1", "relu", "maxpool"]
    names += [
        f"layer{stage + 1}.{i}" for stage, n in enumerate(blocks) for i in range(n)
    ]
    return {
        f"{place}.{key.removeprefix(name + '.')}": value
        for place, name in enumerate(names)
        for key, value in parameters.items()
        if key.startswith(name + ".")
    }


def _train(network, X, y, epochs, device):
    """Train all of a network, with mirrored images as well."""
    import torch

    network.train().to(device)
    rng = np.random.default_rng(0)
    X = torch.from_numpy(X).to(device)
    y = torch.from_numpy(y).to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.05)
    n_steps = epochs * (len(y) // 128)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=n_steps)
    for step in range(n_steps):
        rows = torch.from_numpy(rng.choice(len(y), 128, replace=False)).to(device)
        images = X[rows].flip(-1) if step % 2 else X[rows]
        loss = torch.nn.functional.cross_entropy(network(images), y[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
