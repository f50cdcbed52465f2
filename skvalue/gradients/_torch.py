"""Gradients and utilities of a torch module, by `torch.func`. Importing this imports torch."""

import copy
from functools import cached_property

import numpy as np
import torch
from torch.func import functional_call, grad, vmap
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
from ._models import GradientModel
from ._torch_walks import gradients_of, walk_together

_PROBE = 8  # public rows on which a module is tested
_FEW = 16  # least rows of a large network per batch on a CPU: smaller batches are slower
_CACHE = 2**24  # bytes of a CPU's cache for the steps of many walks, or for validation points


class TorchGradientModel(GradientModel):
    """A torch module that players train by steps along clipped gradients.

    The loss of one row is ``loss(module(x[None]), y[None])``, that of a player the mean over its
    rows. Parameters that require a gradient are trained; all others and buffers are constants.
    Classes of a module with one output are the floats 0 and 1. ``start`` is "given" (the parameters
    of the module), "random" (`reset_parameters` of its layers) or "auto": "given" for a module that
    is partly frozen. With ``basis`` (p, n_components), parameters and gradients are coordinates
    along its orthonormal columns, from the given start. Rows of the code ``other``, whose label no
    validation point has, have zero gradients. ``non_finite="zero"`` replaces gradients that are not
    finite in private fits, in which an error would depend on the rows.
    """

    @default_settings()
    def __init__(
        self,
        module,
        loss,
        X,
        y,
        players,
        X_val,
        y_val,
        *,
        clip,
        unit="party",
        utility="neg_loss",
        weights_val=None,
        start="auto",
        basis=None,
        other=None,
        non_finite="pass",
        device="auto",
    ):
        self.device = find_device(device)
        self.clip, self.unit, self.utility, self.non_finite = clip, unit, utility, non_finite
        self.module = prepared_module(module).to(self.device)
        trained = {k: p for k, p in self.module.named_parameters() if p.requires_grad}
        self._names, self._shapes = list(trained), [p.shape for p in trained.values()]
        self._sizes = [p.numel() for p in trained.values()]
        self._basis, self.n_parameters = None, sum(self._sizes)
        self.dtype = next(iter(trained.values())).dtype
        self._given = torch.cat([p.detach().reshape(-1) for p in trained.values()])
        self._frozen = {
            name: value.detach()
            for name, value in [*self.module.named_parameters(), *self.module.named_buffers()]
            if name not in trained
        }
        self.start = starting_point(self.module, start)
        self._fresh = copy.deepcopy(self.module).cpu() if self.start == "random" else None
        self._X_val = self._torch(X_val)
        outputs, self._row_bytes = tried_out(self.module, self._X_val[:_PROBE])
        y, y_val = np.asarray(y), np.asarray(y_val)
        known = np.ones(len(y), dtype=bool) if other is None else y != other
        self._y_val = targets_of(y_val, outputs, "y_val", self.dtype)
        targets = targets_of(y[known], outputs, "y", self.dtype)
        self._loss = loss or (
            functional.mse_loss if targets.is_floating_point() else functional.cross_entropy
        )
        if isinstance(loss, torch.nn.Module):  # it may have parameters
            self._loss = copy.deepcopy(loss).to(self.device)
        if utility == "accuracy" and outputs[0].numel() == 1:
            raise ValueError(
                "utility='accuracy' needs a module with an output for every class. Got one output."
            )
        players = np.asarray(players)
        self.n_players = int(players.max()) + 1
        self._counts = np.bincount(players)
        order = np.argsort(players[known], kind="stable")
        self._X, self._y = self._torch(np.asarray(X)[known][order]), targets[order]
        kept = np.bincount(players[known], minlength=self.n_players)
        self._bounds = np.concatenate([[0], np.cumsum(kept)])
        if weights_val is None:
            weights_val = np.full(len(y_val), 1.0 / len(y_val))
        self._weights = torch.as_tensor(weights_val, dtype=torch.float64, device=self.device)
        self._check_transforms()
        if basis is not None:
            self._basis, self.n_parameters = self._torch(basis), basis.shape[1]

    # What a valuer calls --------------------------------------------------------------------

    @default_settings()
    def initial(self, rng):
        """Initial parameters (p,) of a permutation, from its generator."""
        if self._basis is not None:
            return np.zeros(self.n_parameters)
        if self.start == "given":
            return self._given.double().cpu().numpy()
        drawn = drawn_parameters(self._fresh, int(rng.integers(2**63)))
        return torch.cat([drawn[n].detach().reshape(-1) for n in self._names]).double().numpy()

    @default_settings()
    def gradients(self, thetas, players):
        """Clipped gradients (b, p) of b players, each at its row of ``thetas`` (b, p).

        The number of players computed together changes the last digits.
        """
        size, _ = self.batch_size(len(players))
        if size == 1:
            return np.array([self._one_gradient(*one) for one in zip(thetas, players)])
        found = [
            gradients_of(self, self._torch(thetas[part]), players[part]).cpu().numpy()
            for part in tiles(len(players), size)
        ]
        return np.concatenate(found)

    def _one_gradient(self, theta, player):
        """The gradient of one player, in blocks of rows."""
        theta, examples = self._full(self._torch(theta)), self.unit == "example"
        first, last = self._bounds[player : player + 2]
        total = torch.zeros(self.n_parameters, dtype=torch.float64, device=self.device)
        room = min(self._memory(), _CACHE) if self.device == "cpu" and examples else self._memory()
        for part in tiles(last - first, max(1, room // self._bytes_of_a_row())):
            rows = slice(first + part.start, first + part.stop)
            x, y = self._X[rows], self._y[rows]
            if examples:
                each = vmap(grad(self._row_loss), in_dims=(None, 0, 0))(theta, x, y)
                self._add_clipped(total, self._project(each))
            else:
                total += self._project(grad(self._sum_loss)(theta, x, y)).double()
        total /= self._counts[player]
        if not examples:
            total = self._clipped(total[None])[0]
        return total.cpu().numpy()

    def batch_size(self, n_walks):
        """Numbers of walks, and of their steps, that are computed together.

        On a CPU, as many walks as fit into its cache, since more are not faster; for large parties
        or networks that is one.
        """
        longest = int(np.diff(self._bounds).max(initial=1))
        n_bytes = longest * self._bytes_of_a_row() + 40 * len(self._given)
        room = self._memory() // 2
        walks = min(room, _CACHE) // n_bytes if self.device == "cpu" else room // n_bytes
        walks = int(max(1, min(n_walks, walks)))
        return walks, int(min(max(1, room // (walks * 20 * self.n_parameters)), self.n_players))

    @default_settings()
    def walk_together(self, *args):
        """Many walks at once, see `skvalue.gradients._torch_walks.walk_together`."""
        return walk_together(self, *args)

    @default_settings()
    def utilities(self, thetas):
        """Utilities (T,) of parameters (T, p): weighted means over the validation points."""
        thetas = thetas if torch.is_tensor(thetas) else np.asarray(thetas)
        found, n_rows = np.zeros(len(thetas)), len(self._X_val)
        room = self._memory()
        if self.device == "cpu":
            room = min(room, max(_CACHE, _FEW * self._row_bytes))
        row_tile = int(max(1, min(n_rows, room // self._row_bytes)))
        theta_tile = max(1, room // (row_tile * self._row_bytes + 16 * len(self._given)))
        with torch.no_grad():
            for some in tiles(len(thetas), theta_tile):
                block = self._torch(thetas[some])
                for rows in tiles(n_rows, row_tile):
                    scores = vmap(self._evaluate, in_dims=(0, None, None))(
                        self._full(block), self._X_val[rows], self._y_val[rows]
                    )
                    found[some] += (scores.double() @ self._weights[rows]).cpu().numpy()
        return found

    @default_settings()
    def outputs(self, thetas):
        """Outputs (T, n_rows, n_outputs) of parameters (T, p) for the rows of the players."""
        with torch.no_grad():
            found = [self._outputs(self._full(theta), self._X) for theta in self._torch(thetas)]
        return (
            torch.stack(found)
            .double()
            .flatten(2)
            .cpu()
            .numpy()
            .reshape(len(thetas), len(self._X), -1)
        )

    # Losses ---------------------------------------------------------------------------------

    def _outputs(self, theta, x):
        parts = torch.split(theta, self._sizes)
        weights = {n: p.reshape(s) for n, p, s in zip(self._names, parts, self._shapes)}
        return functional_call(self.module, {**self._frozen, **weights}, (x,))

    def _loss_of(self, output, y):
        """Loss of the output of one row."""
        return self._loss(output[None], y[None]).reshape(())

    def _row_loss(self, theta, x, y):
        return self._loss_of(self._outputs(theta, x[None])[0], y)

    def _sum_loss(self, theta, x, y, counts=None):
        losses = vmap(self._loss_of)(self._outputs(theta, x), y)
        return losses.sum() if counts is None else torch.where(counts, losses, 0.0).sum()

    def _evaluate(self, theta, x, y):
        """Utility at each validation point."""
        outputs = self._outputs(theta, x)
        if self.utility == "accuracy":
            return (outputs.argmax(1) == y).to(self.dtype)
        return -vmap(self._loss_of)(outputs, y)

    # Plumbing -------------------------------------------------------------------------------

    def _torch(self, array):
        if torch.is_tensor(array):
            return array.to(device=self.device, dtype=self.dtype)
        return torch.tensor(np.asarray(array), dtype=self.dtype, device=self.device)

    def _full(self, thetas):
        """All parameters from their coordinates."""
        return thetas if self._basis is None else self._given + thetas @ self._basis.T

    def _project(self, gradients):
        """Coordinates of gradients in the basis."""
        return gradients if self._basis is None else gradients @ self._basis

    def _bytes_of_a_row(self):
        """Bytes for the gradient of one row, with all intermediate arrays."""
        return self._row_bytes * 2 + (self.unit == "example") * 24 * len(self._given)

    def _memory(self):
        """Most bytes per block."""
        return block_bytes("cpu", divisor=4) if self.device == "cpu" else self._memory_on_gpu

    @cached_property
    def _memory_on_gpu(self):  # a query of the device may take as long as a step
        return block_bytes(self.device)

    def _divisors(self, norms):
        """Divisors of gradients of these norms, as in `clip_rows`, and a mask of those to add.

        In a private fit, gradients that are not finite are not added.
        """
        counted = torch.isfinite(norms) | (self.non_finite == "pass")
        if self.clip is None:
            return torch.ones_like(norms), counted
        return torch.clamp(torch.where(counted, norms, 0.0) / self.clip, min=1.0), counted

    def _clipped(self, gradients):
        """Rows of float64, clipped to the norm `clip`."""
        divisors, counted = self._divisors(torch.linalg.vector_norm(gradients, dim=1))
        return torch.where(counted[:, None], gradients, 0.0) / divisors[:, None]

    def _add_clipped(self, total, each, counts=None):
        """Add the rows of `each` (..., rows, p), clipped, to `total` (..., p) in float64.

        By blocks of columns, since all rows in float64 would take twice the memory, and most of the
        time on a CPU. Rows where `counts` is False are not added.
        """
        room = _CACHE // 16 if self.device == "cpu" else self._memory()
        n_rows = max(1, each[..., 0].numel())
        parts = list(tiles(each.shape[-1], max(1, room // (8 * n_rows))))
        norms = sum(each[..., part].double().square().sum(-1) for part in parts).sqrt()
        divisors, counted = self._divisors(norms)
        added = (counted if counts is None else counts & counted)[..., None]
        scale = (1.0 / divisors)[..., None]
        for part in parts:
            total[..., part] += torch.where(added, scale * each[..., part], 0.0).sum(-2)

    def _check_transforms(self):
        """Test loss, gradient and utility on public rows."""
        x, y = self._X_val[:2], self._y_val[:2]
        loss = self._loss(self._outputs(self._given, x)[:1], y[:1])
        if not torch.is_tensor(loss) or loss.numel() != 1:
            raise ValueError(f"loss must return one number for a batch. Got {loss!r}.")
        try:
            vmap(grad(self._row_loss), in_dims=(None, 0, 0))(self._given, x, y)
            thetas = self._given.expand(len(x), -1)
            vmap(grad(self._sum_loss))(thetas, x[:, None], y[:, None])
            vmap(self._evaluate, in_dims=(0, None, None))(thetas, x, y)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise ValueError(
                "module and loss must consist of operations that torch.func.vmap and "
                f"torch.func.grad support. Got: {error}"
            ) from error
