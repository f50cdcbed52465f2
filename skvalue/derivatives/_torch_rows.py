"""A torch module as a `RowModel`. Importing this imports torch."""

import copy
from dataclasses import dataclass
from functools import partial
from threading import get_ident

import numpy as np
import torch
from torch.func import functional_call, grad, vjp, vmap
from torch.nn import functional

from .._utils.parallel import tiles
from .._utils.torch_device import block_bytes, default_settings, find_device
from ..linear import probabilities
from ._row_models import RowModel
from ._torch_modules import (
    as_targets,
    checked_copy,
    drawn_parameters,
    probe,
    starting_point,
)

_PROBED = 8  # rows on which a module is tested


@dataclass(frozen=True)
class TorchRows:
    """Rows and targets on the device; rows of no class are not counted."""

    X: torch.Tensor
    y: torch.Tensor
    counted: torch.Tensor

    def __len__(self):
        return len(self.X)

    def __getitem__(self, some):
        some = (
            some
            if isinstance(some, slice)
            else torch.as_tensor(some, device=self.X.device)
        )
        return TorchRows(self.X[some], self.y[some], self.counted[some])


class TorchRowModel(RowModel):
    """A torch module; parameters that require a gradient are trained, others are
    constants.

    The loss of a row is ``loss(module(x[None]), y[None])``; None is the cross-entropy
    for classes and the squared error for targets. Classes of a module with one output
    are the floats 0 and 1. The module is tested on some rows ``X``. ``start`` is
    "given" (the parameters of the module), "random" (`reset_parameters` of its layers)
    or "auto": "given" for a module that is partly frozen. Codes of ``n_classes`` (if
    any) or above are of no class.
    """

    numerics_context = staticmethod(default_settings)

    @default_settings()
    def __init__(self, module, loss, X, *, n_classes=0, start="auto", device="auto"):
        self.device, self.n_classes = find_device(device), n_classes
        self.module = checked_copy(module).to(self.device)
        trained = {k: p for k, p in self.module.named_parameters() if p.requires_grad}
        self._names, self._shapes = list(trained), [p.shape for p in trained.values()]
        self._sizes = [p.numel() for p in trained.values()]
        self.dtype, self.n_parameters = (
            next(iter(trained.values())).dtype,
            sum(self._sizes),
        )
        self.given = torch.cat([p.detach().reshape(-1) for p in trained.values()])
        self._frozen = {
            name: value.detach()
            for name, value in [
                *self.module.named_parameters(),
                *self.module.named_buffers(),
            ]
            if name not in trained
        }
        self._copies = {}
        self.start_kind = starting_point(self.module, start)
        self._fresh = (
            copy.deepcopy(self.module).cpu() if self.start_kind == "random" else None
        )
        self.probed, self.row_bytes = probe(self.module, self.tensor(X[:_PROBED]))
        self._loss = loss
        if isinstance(loss, torch.nn.Module):  # it may have parameters
            self._loss = copy.deepcopy(loss).to(self.device)

    @default_settings()
    def start(self, rng):
        """Initial parameters (p,), float64 on the CPU, from a generator."""
        if self.start_kind == "given":
            return self.given.double().cpu().numpy()
        drawn = drawn_parameters(self._fresh, int(rng.integers(2**63)))
        return (
            torch.cat([drawn[name].reshape(-1) for name in self._names])
            .double()
            .numpy()
        )

    @default_settings()
    def rows(self, X, y, name="y"):
        """Rows on the device; codes of no class are kept as zero, and not counted."""
        y = np.asarray(y)
        counted = y < self.n_classes if self.n_classes else np.ones(len(y), dtype=bool)
        y = as_targets(np.where(counted, y, 0), self.probed, name, self.dtype)
        return TorchRows(
            self.tensor(X), y, torch.as_tensor(counted, device=self.device)
        )

    @default_settings()
    def losses(self, theta, rows):
        """Loss of each row."""
        theta = self.tensor(theta)
        with torch.no_grad():
            found = [
                self.row_losses(theta, rows.X[part], rows.y[part])
                for part in self._tiles(rows)
            ]
        return torch.cat(found).double().cpu().numpy()

    @default_settings()
    def gradient_sum(self, theta, rows, weights, step=None):
        """Gradient of the weighted sum of losses; with ``step``, plus half Hessian
        times it."""
        leaf = self.tensor(theta).detach().requires_grad_()
        step = None if step is None else self.tensor(step)
        weights, total = (
            self.tensor(weights),
            torch.zeros_like(leaf, dtype=torch.float64),
        )
        for part in self._tiles(rows):
            losses = self.row_losses(leaf, rows.X[part], rows.y[part])
            value = (weights[part] * torch.where(rows.counted[part], losses, 0.0)).sum()
            (slope,) = torch.autograd.grad(value, leaf, create_graph=step is not None)
            if step is not None and slope.requires_grad:
                slope = slope + 0.5 * torch.autograd.grad(slope @ step, leaf)[0]
            total += slope.detach().double()
        return total.to(theta.dtype) if torch.is_tensor(theta) else total.cpu().numpy()

    @default_settings()
    def row_gradients(self, theta, rows, step=None):
        """The same of each row."""
        theta, step = self.tensor(theta), None if step is None else self.tensor(step)

        def of_row(x, y):
            def slope(p):
                return grad(self.row_loss)(p, x, y)

            if step is None:
                return slope(theta)
            return slope(theta) + 0.5 * grad(lambda p: slope(p) @ step)(theta)

        return vmap(of_row)(rows.X, rows.y).double().cpu().numpy()

    @default_settings()
    def gradient_sum_and_products(self, theta, rows, directions, max_norm=None):
        """Sum of the clipped gradients, and their products with directions."""
        theta, directions = self.tensor(theta), self.tensor(directions)
        total = torch.zeros(self.n_parameters, dtype=torch.float64, device=self.device)
        products = torch.zeros((len(directions), len(rows)), dtype=torch.float64,
                               device=self.device)  # fmt: skip
        # Without a bound, sums and products need no gradient of a single row.
        at_once = max_norm is None and len(directions) <= 1
        n_bytes = self.row_bytes * 4 + (0 if at_once else 24 * self.n_parameters)
        for part in tiles(len(rows), max(1, self.memory() // n_bytes)):
            x, y, counted = rows.X[part], rows.y[part], rows.counted[part]
            if at_once:
                total += grad(self.sum_loss)(theta, x, y, counted).double()
                for k, direction in enumerate(directions):
                    change = _along(
                        partial(self.row_losses, x=x, y=y), theta, direction
                    )
                    products[k, part] = torch.where(counted, change, 0.0).double()
                continue
            each = vmap(grad(self.row_loss), in_dims=(None, 0, 0))(theta, x, y)
            norms = torch.linalg.vector_norm(each.double(), dim=1)
            scale = torch.ones_like(norms)
            if max_norm is not None:
                counted = counted & torch.isfinite(norms)
                scale = 1.0 / torch.clamp(norms / max_norm, min=1.0)
            each = torch.where(counted[:, None], each.double() * scale[:, None], 0.0)
            total += each.sum(0)
            products[:, part] = directions.double() @ each.T
        return total.cpu().numpy(), products.cpu().numpy()

    def linearized(self, theta, rows):
        """The mean gradient, and the derivatives of its product with a direction."""
        leaf = theta.detach().requires_grad_()
        weights = torch.ones(
            len(rows), dtype=self.dtype, device=self.device, requires_grad=True
        )
        mean = (weights * self.row_losses(leaf, rows.X, rows.y)).sum() / len(rows)
        (slope,) = torch.autograd.grad(mean, leaf, create_graph=True)

        def pullback(direction):
            by_theta, by_weights = torch.autograd.grad(
                slope, [leaf, weights], direction, materialize_grads=True
            )
            return by_theta, by_weights.double().cpu().numpy()

        return slope.detach(), pullback

    def steps_in_memory(self, n_rows):
        """Number of steps whose derivatives fit into half of `working_memory`, or of a
        GPU's."""
        n_bytes = (
            4 * self.row_bytes * n_rows + 4 * self.dtype.itemsize * self.n_parameters
        )
        return block_bytes(self.device, divisor=2) // n_bytes

    @default_settings()
    def probabilities(self, theta, X):
        """Probabilities of the classes, or predicted targets."""
        with torch.no_grad():
            outputs = (
                self.outputs(self.tensor(theta), self.tensor(X)).double().cpu().numpy()
            )
        outputs = outputs.reshape(len(outputs), -1)
        return probabilities(outputs) if self.n_classes else outputs[:, 0]

    @default_settings()
    def trained(self, theta):
        """The module with these parameters, on the CPU."""
        module = copy.deepcopy(self.module).cpu()
        named = dict(module.named_parameters())
        with torch.no_grad():
            for name, part in self._named(self.tensor(theta).cpu()).items():
                named[name].copy_(part)
        return module

    def parameters(self, theta):
        """Parameters as a tensor of the device."""
        return self.tensor(theta)

    def check_transforms(self, rows):
        """Test loss and gradient on two public rows."""
        x, y = rows.X[:2], rows.y[:2]
        if self._loss is not None:
            loss = self._loss(self.outputs(self.given, x)[:1], y[:1])
            if not torch.is_tensor(loss) or loss.numel() != 1:
                raise ValueError(
                    f"loss must return one number for a batch. Got {loss!r}."
                )
        try:
            vmap(grad(self.row_loss), in_dims=(None, 0, 0))(self.given, x, y)
            thetas = self.given.expand(len(x), -1)
            vmap(grad(self.sum_loss))(thetas, x[:, None], y[:, None])
            vmap(self.row_losses, in_dims=(0, None, None))(thetas, x, y)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise ValueError(
                "module and loss must consist of operations that torch.func.vmap and "
                f"torch.func.grad support. Got: {error}"
            ) from error

    # Losses, as functions that `torch.func` transforms --------------------------------------

    def _named(self, theta):
        """The trained parameters of the module from one vector."""
        parts = torch.split(theta, self._sizes)
        return {n: p.reshape(s) for n, p, s in zip(self._names, parts, self._shapes)}

    def outputs(self, theta, x):
        """Outputs of rows."""
        # `functional_call` changes its module while it runs: each thread has a copy,
        # which shares the tensors.
        if (module := self._copies.get(get_ident())) is None:
            tensors = [*self.module.parameters(), *self.module.buffers()]
            module = copy.deepcopy(
                self.module, {id(tensor): tensor for tensor in tensors}
            )
            self._copies[get_ident()] = module
        return functional_call(module, {**self._frozen, **self._named(theta)}, (x,))

    def row_losses(self, theta, x, y):
        """Loss of each row."""
        outputs = self.outputs(theta, x)
        if self._loss is not None:
            return vmap(lambda o, t: self._loss(o[None], t[None]).reshape(()))(
                outputs, y
            )
        if y.is_floating_point():
            squares = functional.mse_loss(outputs, y, reduction="none")
            return squares.reshape(len(y), -1).mean(1)
        return functional.cross_entropy(outputs, y, reduction="none")

    def row_loss(self, theta, x, y):
        """Loss of one row."""
        return self.row_losses(theta, x[None], y[None])[0]

    def sum_loss(self, theta, x, y, counts=None):
        """Sum of the losses of rows, or of those where ``counts`` is True."""
        losses = self.row_losses(theta, x, y)
        return (
            losses.sum() if counts is None else torch.where(counts, losses, 0.0).sum()
        )

    # Plumbing -------------------------------------------------------------------------

    def tensor(self, array):
        """An array as a tensor of the dtype and device of the parameters."""
        if torch.is_tensor(array):
            return array.to(device=self.device, dtype=self.dtype)
        return torch.tensor(np.asarray(array), dtype=self.dtype, device=self.device)

    def memory(self):
        """Most bytes per block."""
        return block_bytes(self.device, divisor=4)

    def _tiles(self, rows):
        """Blocks of rows that fit into memory."""
        return tiles(len(rows), max(1, self.memory() // (4 * self.row_bytes)))


def _along(losses, theta, direction):
    """Products of the gradients of losses (b,) with a direction, without a gradient of
    one row.

    The sum of the gradients with weights u is linear in u; its product with the
    direction has the products as derivatives. (Forward mode needs parts of torch that
    are deprecated.)
    """
    values, pull_back = vjp(losses, theta)
    return grad(lambda u: pull_back(u)[0] @ direction)(torch.ones_like(values))
