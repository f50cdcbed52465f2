"""Players that train a torch module by clipped gradients. Importing this imports
torch."""

from functools import cached_property

import numpy as np
import torch
from torch.func import grad, vmap

from .._utils.parallel import tiles
from .._utils.torch_device import default_settings
from ..privacy import grid_width
from ._players import GradientModel
from ._torch_rows import TorchRowModel

_FEW = (
    16  # least rows of a large network per batch on a CPU: smaller batches are slower
)
_SLACK = 1e-9  # relative rounding error allowed in a clipped norm
_CACHE = (
    2**24
)  # bytes of a CPU's cache for the steps of many walks, or for validation points


class TorchGradientModel(GradientModel):
    """A torch module that players train by steps along clipped gradients.

    The module, its loss and ``start`` are those of `TorchRowModel`; the loss of a
    player is the mean over its rows. With ``basis`` (p, n_components), parameters and
    gradients are coordinates along its orthonormal columns, from the given start. Rows
    of a code of ``n_classes`` (if any) or above have zero gradients. If ``private``, so
    have rows whose gradients are not finite, since an error would depend on the rows.
    """

    in_threads = False

    @default_settings()
    def __init__(
        self, module, loss, X, y, players, X_val, y_val, *, clip, unit="party", utility="neg_loss",
        weights_val=None, start="auto", basis=None, n_classes=0, private=False, device="auto",
    ):  # fmt: skip
        self.rows = rows = TorchRowModel(
            module, loss, X_val, start=start, device=device
        )
        self.clip, self.unit, self.utility, self.private = clip, unit, utility, private
        self.device, self.dtype, self.n_parameters = (
            rows.device,
            rows.dtype,
            rows.n_parameters,
        )
        y, players = np.asarray(y), np.asarray(players)
        self._points = rows.rows(X_val, y_val, "y_val")
        known = y < n_classes if n_classes else np.ones(len(y), dtype=bool)
        if utility == "accuracy" and rows.probed[0].numel() == 1:
            raise ValueError(
                "utility='accuracy' needs a module with an output for every class. Got one output."
            )
        order = np.argsort(players[known], kind="stable")
        of_players = rows.rows(np.asarray(X)[known][order], y[known][order])
        self._X, self._y = of_players.X, of_players.y
        self.n_players = int(players.max()) + 1
        self._counts = np.bincount(players)
        kept = np.bincount(players[known], minlength=self.n_players)
        self._bounds = np.concatenate([[0], np.cumsum(kept)])
        if weights_val is None:
            weights_val = np.full(len(X_val), 1.0 / len(X_val))
        self._weights = torch.as_tensor(
            weights_val, dtype=torch.float64, device=self.device
        )
        rows.check_transforms(self._points)
        self._basis = None
        if basis is not None:
            self._basis, self.n_parameters = rows.tensor(basis), basis.shape[1]

    def start(self, rng):
        """Initial parameters (p,) of a permutation, from its generator."""
        return (
            self.rows.start(rng) if self._basis is None else np.zeros(self.n_parameters)
        )

    @default_settings()
    def gradients(self, thetas, players):
        """Clipped gradients (b, p) of b players, each at its row of ``thetas`` (b, p).

        The number of players computed together changes the last digits.
        """
        size, _ = self.batch_size(len(players))
        found = [
            self._gradients_together(self.rows.tensor(thetas[part]), players[part])
            .cpu()
            .numpy()
            for part in tiles(len(players), size)
        ]
        return np.concatenate(found)

    def batch_size(self, n_walks):
        """Numbers of walks, and of their steps, that are computed together.

        On a CPU, as many walks as fit into its cache, since more are not faster; for
        large parties or networks that is one.
        """
        longest = int(np.diff(self._bounds).max(initial=1))
        n_bytes = longest * self._bytes_of_a_row() + 40 * self.rows.n_parameters
        room = self._memory() // 2
        walks = (
            min(room, _CACHE) // n_bytes if self.device == "cpu" else room // n_bytes
        )
        walks = int(max(1, min(n_walks, walks)))
        return walks, int(max(1, room // (walks * 20 * self.n_parameters)))

    @default_settings()
    def walk(self, orders, rates, noise, noise_std, thetas, past=None, weight=1.0, t=1):
        """One step of all walks at a time."""
        device, (b, n_steps) = self.device, orders.shape
        theta = torch.as_tensor(thetas, dtype=torch.float64, device=device)
        rates = torch.as_tensor(np.reshape(rates, (b, 1)), device=device)
        path = torch.empty(
            (b, n_steps + 1, theta.shape[1]), dtype=self.dtype, device=device
        )
        norms = torch.empty((b, n_steps), dtype=torch.float64, device=device)
        grids = grid_width(noise_std)[:, None]
        path[:, 0] = theta
        for s in range(n_steps):
            players = orders[:, s]
            release = self._gradients_together(theta.to(self.dtype), players)
            norms[:, s] = torch.linalg.vector_norm(release, dim=1)
            if len(noise[0]):
                release = _with_noise(
                    release, np.array([z[s] for z in noise]), grids[players]
                )
            if past is not None:
                before = torch.as_tensor(past[players], device=device)
                away = release - before
                release = before + weight * away
                past[players] = (before + away / t).cpu().numpy()
            theta = theta - rates * release
            path[:, s + 1] = theta
        norms = norms.cpu().numpy()
        lost = ~np.isfinite(norms)
        largest = norms[~lost].max(initial=0.0)
        if self.clip is not None and largest > self.clip * (1 + _SLACK):
            raise RuntimeError(
                f"the model must clip gradients to norm {self.clip:g}, or the noise is too small. "
                f"Got a norm of {largest:g}."
            )
        return (
            path,
            theta.cpu().numpy(),
            np.where(lost.any(axis=1), lost.argmax(axis=1), -1),
        )

    def as_array(self, thetas):
        """On the CPU."""
        return thetas.double().cpu().numpy()

    @default_settings()
    def utilities(self, thetas):
        """Utilities (T,) of parameters (T, p): weighted means over the validation
        points."""
        X, y, row_bytes, room = (
            self._points.X,
            self._points.y,
            self.rows.row_bytes,
            self._memory(),
        )
        found, n_rows = np.zeros(len(thetas)), len(X)
        if self.device == "cpu":
            room = min(room, max(_CACHE, _FEW * row_bytes))
        row_tile = int(max(1, min(n_rows, room // row_bytes)))
        theta_tile = max(
            1, room // (row_tile * row_bytes + 16 * self.rows.n_parameters)
        )
        with torch.no_grad():
            for some in tiles(len(thetas), theta_tile):
                block = self._full(self.rows.tensor(thetas[some]))
                for part in tiles(n_rows, row_tile):
                    scores = vmap(self._scores, in_dims=(0, None, None))(
                        block, X[part], y[part]
                    )
                    found[some] += (scores.double() @ self._weights[part]).cpu().numpy()
        return found

    @default_settings()
    def outputs(self, thetas):
        """Outputs (T, n_rows, n_outputs) of parameters (T, p) for the rows of the
        players."""
        with torch.no_grad():
            found = torch.stack([
                self.rows.outputs(self._full(theta), self._X) for theta in self.rows.tensor(thetas)
            ])  # fmt: skip
        return found.double().cpu().numpy().reshape(len(thetas), len(self._X), -1)

    # Gradients ------------------------------------------------------------------------

    def _gradients_together(self, thetas, players):
        """Clipped gradients (b, p), float64 on the device, of b players at rows of
        ``thetas``."""
        examples, rows_of = self.unit == "example", self.rows
        first, kept = self._bounds[players], np.diff(self._bounds)[players]
        total = torch.zeros(thetas.shape, dtype=torch.float64, device=self.device)
        thetas = self._full(thetas)
        lift = vmap if len(players) > 1 else _alone
        room = (
            min(self._memory(), _CACHE)
            if self.device == "cpu" and examples
            else self._memory()
        )
        size = max(1, room // (len(players) * self._bytes_of_a_row()))
        for part in tiles(int(kept.max(initial=0)), size):
            at = np.arange(part.start, part.stop)
            # The rows of a player are padded with its first row, which is not counted.
            counts = at < kept[:, None]
            rows = first[:, None] + np.where(counts, at, 0)
            rows = np.where(
                kept[:, None] > 0, rows, 0
            )  # players without rows are left out below
            rows, counts = (
                torch.as_tensor(a, device=self.device) for a in (rows, counts)
            )
            x, y = self._X[rows], self._y[rows]
            if examples:
                by_row = vmap(grad(rows_of.row_loss), in_dims=(None, 0, 0))
                self._add_clipped(
                    total, self._project(lift(by_row)(thetas, x, y)), counts
                )
            else:
                total += self._project(
                    lift(grad(rows_of.sum_loss))(thetas, x, y, counts)
                ).double()
        has_rows = torch.as_tensor(kept > 0, device=self.device)[:, None]
        total = torch.where(has_rows, total, 0.0)
        total /= torch.as_tensor(self._counts[players], device=self.device)[:, None]
        return total if examples else self._clipped(total)

    def _scores(self, theta, x, y):
        """Utility at each validation point."""
        if self.utility == "accuracy":
            return (self.rows.outputs(theta, x).argmax(1) == y).to(self.dtype)
        return -self.rows.row_losses(theta, x, y)

    def _full(self, thetas):
        """All parameters from their coordinates."""
        return (
            thetas if self._basis is None else self.rows.given + thetas @ self._basis.T
        )

    def _project(self, gradients):
        """Coordinates of gradients in the basis."""
        return gradients if self._basis is None else gradients @ self._basis

    def _divisors(self, norms):
        """Divisors of gradients of these norms, and a mask of those to add.

        In a private fit, gradients that are not finite are not added.
        """
        counted = torch.isfinite(norms) | (not self.private)
        if self.clip is None:
            return torch.ones_like(norms), counted
        return torch.clamp(
            torch.where(counted, norms, 0.0) / self.clip, min=1.0
        ), counted

    def _clipped(self, gradients):
        """Rows of float64, clipped to the norm `clip`."""
        divisors, counted = self._divisors(torch.linalg.vector_norm(gradients, dim=1))
        return torch.where(counted[:, None], gradients, 0.0) / divisors[:, None]

    def _add_clipped(self, total, each, counts=None):
        """Add the rows of `each` (..., rows, p), clipped, to `total` (..., p) in
        float64.

        By blocks of columns, since all rows in float64 would take twice the memory, and
        most of the time on a CPU. Rows where `counts` is False are not added.
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

    def _bytes_of_a_row(self):
        """Bytes for the gradient of one row, with all intermediate arrays."""
        row_bytes, p = self.rows.row_bytes, self.rows.n_parameters
        return row_bytes * 2 + (self.unit == "example") * 24 * p

    def _memory(self):
        """Most bytes per block."""
        return self.rows.memory() if self.device == "cpu" else self._memory_on_gpu

    @cached_property
    def _memory_on_gpu(self):  # a query of the device may take as long as a step
        return self.rows.memory()


def _alone(function):
    """`vmap` of a batch of one, with the kernels of a batch that is no batch."""
    return lambda *batch: function(*(part[0] for part in batch))[None]


def _with_noise(gradients, noise, grid):
    """Add noise to clipped gradients on their device, bitwise as `clip_and_noise`."""
    noise, grid = (
        torch.as_tensor(array, device=gradients.device) for array in (noise, grid)
    )
    noisy = gradients + noise
    return torch.where(
        noisy.abs() < 2.0**52 * grid, torch.round(noisy / grid) * grid, noisy
    )
