"""Runs of gradient descent of a torch module. Importing this imports torch."""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch.func import grad, vjp, vmap

from .._utils.parallel import tiles
from .._utils.torch_device import default_settings
from .._utils.torch_modules import targets_of
from ._runs import RunModel
from ._torch import TorchGradientModel


@dataclass(frozen=True)
class TorchRows:
    """Rows and targets on the device; rows of no class are not counted."""

    X: torch.Tensor
    y: torch.Tensor
    counted: torch.Tensor

    def __getitem__(self, some):
        some = torch.as_tensor(some, device=self.X.device)
        return TorchRows(self.X[some], self.y[some], self.counted[some])


class TorchRunModel(TorchGradientModel, RunModel):
    """A torch module whose validation points and start are those of `TorchGradientModel`."""

    def __init__(self, module, loss, X_val, y_val, weights, *, n_classes, device="auto"):
        one = slice(0, 1)
        super().__init__(
            module, loss, X_val[one], y_val[one], np.zeros(1, dtype=int), X_val, y_val, clip=None,
            weights_val=weights, device=device,
        )  # fmt: skip
        self._n_classes = n_classes

    @default_settings()
    def rows(self, X, y):
        """Rows on the device; codes above the last class are kept as zero, and not counted."""
        y = np.asarray(y)
        counted = np.ones(len(y), dtype=bool)
        if self._n_classes:
            counted, y = y < self._n_classes, np.where(y < self._n_classes, y, 0)
        X = self._torch(X)
        targets = targets_of(y, self._outputs(self._given, X[:2]), "y", self.dtype)
        return TorchRows(X, targets, torch.as_tensor(counted, device=self.device))

    @default_settings()
    def pass_over(self, theta, rows, directions, max_norm=None):
        """Sum of the clipped gradients, and their products with directions."""
        theta, directions = self._torch(theta), self._torch(directions)
        total = torch.zeros(self.n_parameters, dtype=torch.float64, device=self.device)
        products = torch.zeros(
            (len(directions), len(rows.X)), dtype=torch.float64, device=self.device
        )
        # Without a bound, sums and products need no gradient of a single row.
        at_once = max_norm is None and len(directions) <= 1
        n_bytes = self._row_bytes * 4 + (0 if at_once else 24 * self.n_parameters)
        for part in tiles(len(rows.X), max(1, self._memory() // n_bytes)):
            x, y, counted = rows.X[part], rows.y[part], rows.counted[part]
            if at_once:
                total += grad(self._sum_loss)(theta, x, y, counted).double()
                for k, direction in enumerate(directions):
                    change = _along(partial(self._losses, x=x, y=y), theta, direction)
                    products[k, part] = torch.where(counted, change, 0.0).double()
                continue
            each = vmap(grad(self._row_loss), in_dims=(None, 0, 0))(theta, x, y)
            norms = torch.linalg.vector_norm(each.double(), dim=1)
            scale = torch.ones_like(norms)
            if max_norm is not None:
                counted = counted & torch.isfinite(norms)
                scale = 1.0 / torch.clamp(norms / max_norm, min=1.0)
            each = torch.where(counted[:, None], each.double() * scale[:, None], 0.0)
            total += each.sum(0)
            products[:, part] = directions.double() @ each.T
        return total.cpu().numpy(), products.cpu().numpy()

    def utility_of(self, theta):
        """Minus the weighted mean loss of the validation points."""
        return float(self.utilities(np.asarray(theta)[None])[0])

    @default_settings()
    def utility_gradient(self, theta, step=None):
        """Gradient of the utility; with ``step``, plus half the Hessian times the step."""
        theta, total = self._torch(theta), 0.0
        step = None if step is None else self._torch(step)
        for part in tiles(len(self._X_val), max(1, self._memory() // (4 * self._row_bytes))):
            points = self._X_val[part], self._y_val[part], self._weights[part].to(self.dtype)
            mean_loss = partial(self._weighted_loss, points=points)
            total = total - _with_curvature(mean_loss, theta, step).double()
        return total.cpu().numpy()

    @default_settings()
    def point_gradients(self, theta, part, step=None):
        """The same of the utility at each of a slice of the points."""
        theta = self._torch(theta)
        step = None if step is None else self._torch(step)

        def one(x, y):
            return _with_curvature(lambda p: self._row_loss(p, x, y), theta, step)

        return -vmap(one)(self._X_val[part], self._y_val[part]).double().cpu().numpy()

    @default_settings()
    def probabilities(self, theta, X):
        """Probabilities of the classes, or predicted targets."""
        with torch.no_grad():
            outputs = self._outputs(self._torch(theta), self._torch(X)).double()
        outputs = outputs.reshape(len(outputs), -1)
        if not self._n_classes:
            return outputs[:, 0].cpu().numpy()
        if outputs.shape[1] == 1:
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=1)
        return torch.softmax(outputs, dim=1).cpu().numpy()

    @default_settings()
    def trained(self, theta):
        """The module with these parameters, on the CPU."""
        module = deepcopy(self.module).cpu()
        parts = torch.split(self._torch(theta).cpu(), self._sizes)
        named = dict(module.named_parameters())
        with torch.no_grad():
            for name, part, shape in zip(self._names, parts, self._shapes):
                named[name].copy_(part.reshape(shape))
        return module

    def _losses(self, theta, x, y):
        return vmap(self._loss_of)(self._outputs(theta, x), y)

    def _weighted_loss(self, theta, points):
        x, y, weights = points
        return (weights * self._losses(theta, x, y)).sum()


def _with_curvature(loss, theta, step):
    """Gradient of a loss; with ``step``, plus half its Hessian times the step."""
    if step is None:
        return grad(loss)(theta)
    change = grad(lambda p: grad(loss)(p) @ step)(theta)
    return grad(loss)(theta) + 0.5 * change


def _along(losses, theta, direction):
    """Products of the gradients of losses (b,) with a direction, without a gradient of one row.

    The sum of the gradients with weights u is linear in u; its product with the direction has the
    products as derivatives. (Forward mode needs parts of torch that are deprecated.)
    """
    values, pull_back = vjp(losses, theta)
    return grad(lambda u: pull_back(u)[0] @ direction)(torch.ones_like(values))
