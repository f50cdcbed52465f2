"""Losses of rows under a torch module, with derivatives. Importing this imports torch."""

import copy

import numpy as np
import torch
from torch.func import functional_call, vmap
from torch.nn import functional

from .._utils.parallel import tiles
from .._utils.torch_device import block_bytes, default_settings, find_device
from .._utils.torch_modules import (
    drawn_parameters,
    prepared_module,
    starting_point,
    targets_of,
    tried_out,
)

_PROBE = 8  # rows on which a module is tested


class TorchLosses:
    """Losses of rows under a torch module; parameters that require a gradient are trained.

    The loss of a row is ``loss(module(x[None]), y[None])``; None is the cross-entropy for classes
    and the squared error for targets. ``start`` is "given" (the parameters of the module), "random"
    (`reset_parameters` of its layers) or "auto": "given" for a module that is partly frozen.
    """

    settings = staticmethod(default_settings)  # context of a training

    def __init__(self, module, loss, X, y, *, start="auto", device="auto", name="y"):
        self._device = find_device(device)
        self._module = prepared_module(module).to(self._device)
        trained = {k: p for k, p in self._module.named_parameters() if p.requires_grad}
        self._names, self._shapes = list(trained), [p.shape for p in trained.values()]
        self._sizes = [p.numel() for p in trained.values()]
        self._dtype = next(iter(trained.values())).dtype
        self._start = starting_point(self._module, start)
        self._X = torch.tensor(np.asarray(X), dtype=self._dtype, device=self._device)
        outputs, self._row_bytes = tried_out(self._module, self._X[:_PROBE])
        self._y = targets_of(np.asarray(y), outputs, name, self._dtype)
        self._loss = loss
        if isinstance(loss, torch.nn.Module):  # it may have parameters
            self._loss = copy.deepcopy(loss).to(self._device)

    def __len__(self):
        return len(self._y)

    def n_together(self, n_rows):
        """Number of steps whose derivatives fit into half of `working_memory`, or of a GPU's."""
        n_bytes = 4 * self._row_bytes * n_rows + 4 * self._dtype.itemsize * sum(self._sizes)
        return block_bytes(self._device, divisor=2) // n_bytes

    def start(self, seed):
        """Initial parameters, as one vector."""
        named = dict(self._module.named_parameters())
        if self._start == "random":
            named = drawn_parameters(copy.deepcopy(self._module).cpu(), seed)
        flat = torch.cat([named[name].detach().reshape(-1) for name in self._names])
        return flat.to(self._device)

    def values(self, theta):
        """Loss of each row."""
        with torch.no_grad():
            found = [self._losses(self._parts(theta), part) for part in self._tiles()]
        return torch.cat(found).double().cpu().numpy()

    def gradient(self, theta, rows, weights=None):
        """Gradient of the weighted sum of losses of some rows, divided by their number."""
        parts = self._parts(theta, leaves=True)
        losses = self._losses(parts, self._index(rows))
        if weights is not None:
            losses = self._weights(weights[rows]) * losses
        return _gradient(losses.sum() / len(rows), parts)

    def total_gradient(self, theta, weights):
        """Gradient of the weighted sum of all losses, in blocks of rows."""
        total = torch.zeros_like(theta)
        for rows in self._tiles():
            parts = self._parts(theta, leaves=True)
            losses = self._weights(weights[rows]) * self._losses(parts, rows)
            total += _gradient(losses.sum(), parts)
        return total

    def linearized(self, theta, rows):
        """`gradient` at weights one, and a function of a direction c of parameters.

        It returns the derivatives of the product of the gradient and c by the parameters, and by
        the weights of the rows, and may be called once.
        """
        parts = self._parts(theta, leaves=True)
        weights = torch.ones(len(rows), dtype=self._dtype, device=self._device, requires_grad=True)
        mean = (weights * self._losses(parts, self._index(rows))).sum() / len(rows)
        slopes = torch.autograd.grad(mean, parts, create_graph=True, materialize_grads=True)
        used = [i for i, slope in enumerate(slopes) if slope.requires_grad]

        def pullback(direction):
            directions = self._parts(direction)
            *by_parts, by_weights = torch.autograd.grad(
                [slopes[i] for i in used], [*parts, weights], [directions[i] for i in used],
                materialize_grads=True,
            )  # fmt: skip
            return _flat(by_parts), by_weights.double().cpu().numpy()

        return _flat(slopes).detach(), pullback

    # Plumbing -------------------------------------------------------------------------------

    def _parts(self, theta, leaves=False):
        """The parameters of the module from one vector; with ``leaves`` to be derived by."""
        parts = [p.reshape(s) for p, s in zip(torch.split(theta, self._sizes), self._shapes)]
        return [p.detach().requires_grad_() for p in parts] if leaves else parts

    def _losses(self, parts, rows):
        outputs = functional_call(self._module, dict(zip(self._names, parts)), (self._X[rows],))
        y = self._y[rows]
        if self._loss is not None:
            return vmap(lambda o, t: self._loss(o[None], t[None]).reshape(()))(outputs, y)
        if y.is_floating_point():
            squares = functional.mse_loss(outputs, y, reduction="none")
            return squares.reshape(len(y), -1).mean(1)
        return functional.cross_entropy(outputs, y, reduction="none")

    def _weights(self, weights):
        return torch.tensor(weights, dtype=self._dtype, device=self._device)

    def _index(self, rows):
        return torch.as_tensor(rows, device=self._device)

    def _tiles(self):
        """Blocks of all rows that fit into memory."""
        room = block_bytes(self._device, divisor=4)
        return tiles(len(self), max(1, int(room // (4 * self._row_bytes))))


def _gradient(value, parts):
    return _flat(torch.autograd.grad(value, parts, materialize_grads=True))


def _flat(parts):
    return torch.cat([part.reshape(-1) for part in parts])
