"""A torch module as a `RowModel`. Importing this imports torch."""

import copy
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from threading import get_ident

import numpy as np
import torch
from torch.func import functional_call, grad, vjp, vmap
from torch.nn import functional

from .._utils.parallel import tiles
from .._utils.torch_device import block_bytes, default_settings, find_device
from ..linear import probabilities
from ..privacy import clipping_margin, grid_width
from ._row_models import RowModel
from ._torch_modules import (
    as_targets,
    checked_copy,
    drawn_parameters,
    probe,
    starting_point,
)

_PROBED = 8  # rows on which a module is tested

# Rows of a secret sample whose gradients are computed together.
_TILE_ON_CPU = 64
_TILE_ON_GPU = 1024

# Steps of a run that are taken before the device is asked for the results.
_STEPS_ON_GPU = 64


@dataclass(frozen=True)
class TorchRows:
    """Rows and targets on the device; rows of no class are not counted.

    `numbers` (n_rows,) are those of the rows among all `n_all` rows. Those of a secret
    sample have `tiles`: places among the rows and slots of each, on the device.
    """

    X: torch.Tensor
    y: torch.Tensor
    counted: torch.Tensor
    numbers: np.ndarray
    n_all: int
    tiles: list | None = None

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        numbers = self.numbers[rows]
        if not isinstance(rows, slice):
            rows = torch.as_tensor(rows, device=self.X.device)
        return TorchRows(
            self.X[rows], self.y[rows], self.counted[rows], numbers, self.n_all
        )


class TorchRowModel(RowModel):
    """A torch module, of which the parameters that require a gradient are trained.

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
        self.device = find_device(device)
        self.n_classes = n_classes
        self.module = checked_copy(module).to(self.device)
        self._copies = {}  # of the module, by thread
        self._memory_of_steps = None

        # Parameters that are trained, as one vector, and the others.
        trained = {}
        self._frozen = {}
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad:
                trained[name] = parameter
            else:
                self._frozen[name] = parameter.detach()
        for name, buffer in self.module.named_buffers():
            self._frozen[name] = buffer.detach()
        self._names = list(trained)
        self._shapes = [p.shape for p in trained.values()]
        self._sizes = [p.numel() for p in trained.values()]
        self.n_parameters = sum(self._sizes)
        self.dtype = next(iter(trained.values())).dtype
        self.given = torch.cat([p.detach().reshape(-1) for p in trained.values()])

        self.start_kind = starting_point(self.module, start)
        self._fresh = None  # a copy whose layers are reset
        if self.start_kind == "random":
            self._fresh = copy.deepcopy(self.module).cpu()
        self.probed, self.row_bytes = probe(self.module, self.tensor(X[:_PROBED]))
        self._loss = loss
        if isinstance(loss, torch.nn.Module):  # it may have parameters
            self._loss = copy.deepcopy(loss).to(self.device)

    @default_settings()
    def start(self, rng):
        """Initial parameters (p,), float64 on the CPU, from a generator."""
        if self.start_kind == "given":
            return self.given.double().cpu().numpy()
        seed = int(rng.integers(2**63))
        parameters = drawn_parameters(self._fresh, seed)
        vectors = [parameters[name].reshape(-1) for name in self._names]
        return torch.cat(vectors).double().numpy()

    @default_settings()
    def rows(self, X, y, name="y"):
        """Rows on the device; codes of no class are kept as zero, and not counted."""
        y = np.asarray(y)
        counted = np.ones(len(y), dtype=bool)
        if self.n_classes:
            counted = y < self.n_classes
        y = as_targets(np.where(counted, y, 0), self.probed, name, self.dtype)
        counted = torch.as_tensor(counted, device=self.device)
        return TorchRows(self.tensor(X), y, counted, np.arange(len(y)), len(y))

    @default_settings()
    def losses(self, theta, rows):
        """Loss of each row."""
        theta = self.tensor(theta)
        with torch.no_grad():
            losses = [
                self.row_losses(theta, rows.X[tile], rows.y[tile])
                for tile in self._tiles(rows)
            ]
        return torch.cat(losses).double().cpu().numpy()

    @default_settings()
    def gradient_sum(self, theta, rows, weights, step=None):
        """Gradient of the weighted losses; with ``step``, plus half its change."""
        leaf = self.tensor(theta).detach().requires_grad_()
        if step is not None:
            step = self.tensor(step)
        weights = self.tensor(weights)
        total = torch.zeros_like(leaf, dtype=torch.float64)
        for tile in self._tiles(rows):
            losses = self.row_losses(leaf, rows.X[tile], rows.y[tile])
            losses = torch.where(rows.counted[tile], losses, 0.0)
            value = (weights[tile] * losses).sum()
            (gradient,) = torch.autograd.grad(
                value, leaf, create_graph=step is not None
            )
            if step is not None and gradient.requires_grad:
                (change,) = torch.autograd.grad(gradient @ step, leaf)
                gradient = gradient + 0.5 * change
            total += gradient.detach().double()
        if torch.is_tensor(theta):
            return total.to(theta.dtype)
        return total.cpu().numpy()

    @default_settings()
    def row_gradients(self, theta, rows, step=None):
        """The same of each row."""
        are_tensors = torch.is_tensor(theta)
        theta = self.tensor(theta)
        if step is not None:
            step = self.tensor(step)

        def of_row(x, y):
            def gradient_at(p):
                return grad(self.row_loss)(p, x, y)

            def along_step(p):
                return gradient_at(p) @ step

            if step is None:
                return gradient_at(theta)
            return gradient_at(theta) + 0.5 * grad(along_step)(theta)

        gradients = vmap(of_row)(rows.X, rows.y).double()
        return gradients if are_tensors else gradients.cpu().numpy()

    @default_settings()
    def gradient_sum_and_products(
        self, theta, rows, directions, max_norm=None, is_secret=False
    ):
        """Sum of the clipped gradients, and their products with directions."""
        are_tensors = torch.is_tensor(theta)
        theta = self.tensor(theta)
        directions = self.tensor(directions)
        float64 = {"dtype": torch.float64, "device": self.device}
        total = torch.zeros(self.n_parameters, **float64)
        products = torch.zeros((len(directions), len(rows)), **float64)
        if is_secret:
            for places, gradients in self._sampled_gradients(theta, rows):
                clipped = self._clipped(gradients, rows.counted[places], max_norm)
                total += clipped.sum(0)
                products[:, places] = directions.double() @ clipped.T
            if are_tensors:
                return total, products
            return total.cpu().numpy(), products.cpu().numpy()

        # Without a bound, sums and products need no gradient of a single row.
        is_summed = max_norm is None and len(directions) <= 1
        n_bytes = self.row_bytes * 4
        if not is_summed:
            n_bytes += self._gradient_bytes
        for tile in tiles(len(rows), max(1, self.memory() // n_bytes)):
            if is_summed:
                gradient, changes = self._summed(theta, rows[tile], directions)
            else:
                gradients = self._gradients(theta, rows.X[tile], rows.y[tile])
                clipped = self._clipped(gradients, rows.counted[tile], max_norm)
                gradient = clipped.sum(0)
                changes = directions.double() @ clipped.T
            total += gradient
            products[:, tile] = changes
        if are_tensors:
            return total, products
        return total.cpu().numpy(), products.cpu().numpy()

    def _summed(self, theta, rows, directions):
        """Sum (p,) of gradients, and products (k, b) with directions (k, p)."""
        gradient = grad(self.sum_loss)(theta, rows.X, rows.y, rows.counted)
        losses = partial(self.row_losses, x=rows.X, y=rows.y)
        products = torch.zeros(
            (len(directions), len(rows)), dtype=torch.float64, device=self.device
        )
        for k, direction in enumerate(directions):
            changes = _along(losses, theta, direction)
            products[k] = torch.where(rows.counted, changes, 0.0).double()
        return gradient.double(), products

    def _gradients(self, theta, X, y):
        """Gradients (b, p) of the losses of rows."""
        by_row = vmap(grad(self.row_loss), in_dims=(None, 0, 0))
        return by_row(theta, X, y).double()

    def _clipped(self, gradients, counted, max_norm):
        """Gradients (b, p), 0 if not counted, or if clipped and not finite."""
        norms = torch.linalg.vector_norm(gradients, dim=1)
        scale = torch.ones_like(norms)
        if max_norm is not None:
            counted = counted & torch.isfinite(norms)
            scale = 1.0 / torch.clamp(norms / max_norm, min=1.0)
        return torch.where(counted[:, None], gradients * scale[:, None], 0.0)

    def _sampled_gradients(self, theta, rows):
        """Yield places in a secret sample, and the gradients (b, p) of their rows.

        Tiles have one size, and a row has the same slot in whichever tile it is: the
        rounding of its gradient depends on both. Else the rounding of the others would
        tell whether a row is in the sample, and a module can amplify that.
        """
        size = min(self._tile_size, rows.n_all)
        tiles_of_rows = rows.tiles
        if tiles_of_rows is None:
            (tiles_of_rows,) = self._tiles_of_samples([rows.numbers], rows.n_all)
        X = torch.zeros((size, *rows.X.shape[1:]), dtype=self.dtype, device=self.device)
        y = torch.zeros(
            (size, *rows.y.shape[1:]), dtype=rows.y.dtype, device=self.device
        )
        for places, filled in tiles_of_rows:
            # Slots that no row has hold zeros.
            X.zero_()[filled] = rows.X[places]
            y.zero_()[filled] = rows.y[places]
            yield places, self._gradients(theta, X, y)[filled]

    def _tiles_of_samples(self, samples, n_all):
        """For each secret sample of row numbers, the places and slots of its tiles.

        A list of pairs of tensors for each; all go to the device together.
        """
        size = min(self._tile_size, n_all)
        arrays = []
        n_tiles = []
        for numbers in samples:
            slots = numbers % size
            of_sample = _tiles_of_slots(slots, size)
            n_tiles.append(len(of_sample))
            for places in of_sample:
                arrays += [places, slots[places]]
        tensors = iter(self._integers(arrays))
        return [
            [(next(tensors), next(tensors)) for _ in range(number)]
            for number in n_tiles
        ]

    def _integers(self, arrays):
        """Arrays of integers as tensors, which go to the device together."""
        if not arrays:
            return []
        together = torch.as_tensor(np.concatenate(arrays), device=self.device)
        return torch.split(together, list(map(len, arrays)))

    @cached_property
    def _tile_size(self):
        """Number of rows of each tile of a secret sample."""
        n_bytes = 4 * self.row_bytes + self._gradient_bytes
        largest = _TILE_ON_CPU if self.device == "cpu" else _TILE_ON_GPU
        return int(max(1, min(largest, self.memory() // n_bytes)))

    @property
    def _gradient_bytes(self):
        """Bytes of the gradient of one row, with copies."""
        return 24 * self.n_parameters

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
            return by_theta, by_weights.double()

        return slope.detach(), pullback

    def steps_in_memory(self, n_rows):
        """Number of steps whose derivatives fit into half of the memory.

        The memory is `working_memory`, or what is free on a GPU.
        """
        parameter_bytes = 4 * self.dtype.itemsize * self.n_parameters
        n_bytes = 4 * self.row_bytes * n_rows + parameter_bytes
        return block_bytes(self.device, divisor=2) // n_bytes

    @default_settings()
    def probabilities(self, theta, X):
        """Probabilities of the classes, or predicted targets."""
        with torch.no_grad():
            outputs = self.outputs(self.tensor(theta), self.tensor(X))
        outputs = outputs.double().cpu().numpy().reshape(len(outputs), -1)
        return probabilities(outputs) if self.n_classes else outputs[:, 0]

    @default_settings()
    def trained(self, theta):
        """The module with these parameters, on the CPU."""
        module = copy.deepcopy(self.module).cpu()
        named = dict(module.named_parameters())
        with torch.no_grad():
            for name, value in self._named(self.tensor(theta).cpu()).items():
                named[name].copy_(value)
        return module

    def parameters(self, theta):
        """Parameters as a tensor of the device."""
        return self.tensor(theta)

    def steps_at_a_time(self, n_rows):
        """Some on a GPU, as their parameters, noise and products fit in its memory."""
        if self.device == "cpu":
            return 1
        n_bytes = 32 * self.n_parameters + 8 * n_rows
        return int(max(1, min(_STEPS_ON_GPU, self.memory() // n_bytes)))

    def vectors(self, array):
        """As tensors of float64 on the device."""
        array = np.ascontiguousarray(array, dtype=np.float64)
        return torch.as_tensor(array, device=self.device)

    def vectors_of(self, arrays):
        """As tensors of float64, copied to the device at once."""
        together = self.vectors(np.concatenate(arrays))
        return torch.split(together, list(map(len, arrays)))

    def clipped(self, gradients, max_norm):
        """Gradients (b, p), clipped as by `clip_rows`, but for rounding."""
        if max_norm is None:
            return gradients
        margin = clipping_margin(gradients.shape[1])
        largest = gradients.abs().amax(dim=1, keepdim=True)
        scaled = gradients / torch.where(largest > 0, largest, 1.0)
        norms = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
        is_within = norms * largest <= max_norm * (1 - margin / 2)
        factors = max_norm / torch.where(norms > 0, norms, 1.0) * (1 - margin)
        return torch.where(is_within, gradients, scaled * factors)

    def arrays(self, vectors):
        """Tensors as arrays, copied from the device at once."""
        together = torch.cat([vector.reshape(-1) for vector in vectors]).cpu().numpy()
        ends = np.cumsum([vector.numel() for vector in vectors])[:-1]
        arrays = np.split(together, ends)
        return [
            array.reshape(vector.shape).copy() for array, vector in zip(arrays, vectors)
        ]

    def batches(self, rows, batches, is_secret=False):
        """Yield the rows of each batch; all indices go to the device together."""
        indices = [batch for batch in batches if batch is not None]
        on_device = iter(self._integers(indices))
        numbers = [rows.numbers[batch] for batch in indices]
        tiles_of_all = repeat(None)
        if is_secret:
            tiles_of_all = iter(self._tiles_of_samples(numbers, rows.n_all))
        of_batches = zip(on_device, numbers, tiles_of_all)
        for batch in batches:
            if batch is None:
                yield rows
                continue
            index, of_batch, tiles_of_batch = next(of_batches)
            yield TorchRows(
                rows.X[index],
                rows.y[index],
                rows.counted[index],
                of_batch,
                rows.n_all,
                tiles_of_batch,
            )

    def noisy(self, vector, noise, scale):
        """A vector with noise, bitwise as `clip_and_noise`."""
        norm = torch.linalg.vector_norm(vector)
        finite = torch.where(torch.isfinite(norm), vector, 0.0)
        return with_noise(finite, noise, float(grid_width(scale)))

    def check_transforms(self, rows):
        """Test loss and gradient on two public rows."""
        x = rows.X[:2]
        y = rows.y[:2]
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

    # Losses, as functions that `torch.func` transforms --------------------------------

    def _named(self, theta):
        """The trained parameters of the module from one vector."""
        named = {}
        vectors = torch.split(theta, self._sizes)
        for name, vector, shape in zip(self._names, vectors, self._shapes):
            named[name] = vector.reshape(shape)
        return named

    def outputs(self, theta, x):
        """Outputs of rows."""
        module = self._module_of_thread()
        return functional_call(module, {**self._frozen, **self._named(theta)}, (x,))

    def _module_of_thread(self):
        # `functional_call` changes its module while it runs: each thread has a copy,
        # which shares the tensors.
        module = self._copies.get(get_ident())
        if module is None:
            tensors = [*self.module.parameters(), *self.module.buffers()]
            shared = {id(tensor): tensor for tensor in tensors}
            module = copy.deepcopy(self.module, shared)
            self._copies[get_ident()] = module
        return module

    def row_losses(self, theta, x, y):
        """Loss of each row."""
        outputs = self.outputs(theta, x)
        if self._loss is not None:
            return vmap(self._loss_of_output)(outputs, y)
        if y.is_floating_point():
            squares = functional.mse_loss(outputs, y, reduction="none")
            return squares.reshape(len(y), -1).mean(1)
        return functional.cross_entropy(outputs, y, reduction="none")

    def _loss_of_output(self, output, target):
        return self._loss(output[None], target[None]).reshape(())

    def row_loss(self, theta, x, y):
        """Loss of one row."""
        return self.row_losses(theta, x[None], y[None])[0]

    def sum_loss(self, theta, x, y, counts=None):
        """Sum of the losses of rows, or of those where ``counts`` is True."""
        losses = self.row_losses(theta, x, y)
        if counts is not None:
            losses = torch.where(counts, losses, 0.0)
        return losses.sum()

    # Plumbing -------------------------------------------------------------------------

    def tensor(self, array):
        """An array as a tensor of the dtype and device of the parameters."""
        if torch.is_tensor(array):
            return array.to(device=self.device, dtype=self.dtype)
        return torch.tensor(np.asarray(array), dtype=self.dtype, device=self.device)

    def memory(self):
        """Most bytes per block."""
        if self._memory_of_steps is not None:
            return self._memory_of_steps
        return block_bytes(self.device, divisor=4)

    @contextmanager
    def taking_steps(self):
        """Context in which the free memory of a GPU is asked for once.

        The query may take as long as a step.
        """
        if self.device != "cpu":
            self._memory_of_steps = self.memory()
        try:
            yield
        finally:
            self._memory_of_steps = None

    def _tiles(self, rows):
        """Blocks of rows that fit into memory."""
        return tiles(len(rows), max(1, self.memory() // (4 * self.row_bytes)))


def _tiles_of_slots(slots, size):
    """Places of rows (n_rows,) of each tile, which has a row at most once in each slot.

    >>> [places.tolist() for places in _tiles_of_slots(np.array([0, 2, 0, 1]), size=3)]
    [[0, 1, 3], [2]]
    """
    if not len(slots):  # a secret sample may be empty
        return []
    # The tile of a row is the number of rows before it of the same slot.
    by_slot = np.argsort(slots, kind="stable")
    first_of_slot = np.searchsorted(slots[by_slot], np.arange(size))
    tile_of_row = np.empty(len(slots), dtype=np.int64)
    tile_of_row[by_slot] = np.arange(len(slots)) - first_of_slot[slots[by_slot]]
    by_tile = np.argsort(tile_of_row, kind="stable")
    ends = np.searchsorted(tile_of_row[by_tile], np.arange(1, tile_of_row.max() + 1))
    return np.split(by_tile, ends)


def with_noise(vectors, noise, grid):
    """Add noise to clipped gradients on their device, bitwise as `clip_and_noise`.

    ``grid`` is the width of the cells to which sums are rounded, see `grid_width`.
    """
    noisy = vectors + noise
    rounded = torch.round(noisy / grid) * grid
    return torch.where(noisy.abs() < 2.0**52 * grid, rounded, noisy)


def _along(losses, theta, direction):
    """Products (b,) of the gradients of losses (b,) with a direction (p,), at once.

    The sum of the gradients with weights u is linear in u; its product with the
    direction has the products as derivatives. (Forward mode needs parts of torch that
    are deprecated.)
    """
    values, pull_back = vjp(losses, theta)

    def product_with(u):
        return pull_back(u)[0] @ direction

    return grad(product_with)(torch.ones_like(values))
