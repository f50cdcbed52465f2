"""Players that train a module by clipped gradients. Importing this imports torch."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch.func import grad, vmap

from .._utils.parallel import tiles
from .._utils.torch_device import default_settings
from ..privacy import grid_width
from ._players import GradientModel, checked_step_weights, released_bound
from ._torch_rows import TorchRowModel, with_noise

# Rows of a large network per batch on a CPU: smaller batches are slower.
_MIN_ROWS = 16
_SLACK = 1e-9  # relative rounding error allowed in a clipped norm
_LARGEST_NORM = 1e140  # of rows whose sum has a finite norm

# Bytes of a CPU's cache for the steps of many walks, or for validation points.
_CACHE = 2**24


class Players(NamedTuple):
    """Numbers (b,) of players; those on the CPU decide the sizes of arrays."""

    numbers: np.ndarray
    on_device: torch.Tensor

    @classmethod
    def of(cls, numbers, device):
        """Those of an array."""
        numbers = np.asarray(numbers)
        return cls(numbers, torch.as_tensor(numbers, device=device))

    def at(self, places):
        """Those at a slice of places."""
        return Players(self.numbers[places], self.on_device[places])


class _Inputs(NamedTuple):
    """What the steps of b walks along m players need, on the device.

    Parameters
    ----------
    theta : tensor of shape (b, p)
        Parameters at the start.
    players, rates : tensors of shape (b, m)
        The players, and the lengths of their steps.
    noise, grids : tensors of shape (b, m, p) and (b, m, 1), or None
        Noise, and the widths of the grids to which sums with it are rounded.
    past : tensor of shape (b, m, p) or None
        Means of the releases before.
    """

    theta: torch.Tensor
    players: torch.Tensor
    rates: torch.Tensor
    noise: torch.Tensor | None
    grids: torch.Tensor | None
    past: torch.Tensor | None


class _Steps(NamedTuple):
    """Steps of b walks along m players, on the device.

    Parameters
    ----------
    path : tensor of shape (b, m + 1, p)
        Parameters.
    theta : tensor of shape (b, p)
        The last of them, in float64.
    norms : tensor of shape (b, m)
        Norms of gradients.
    past : tensor of shape (b, m, p) or None
        Means of the releases.
    are_finite : tensor of shape ()
        False if a mean was not finite, and was not computed again row by row.
    """

    path: torch.Tensor
    theta: torch.Tensor
    norms: torch.Tensor
    past: torch.Tensor | None
    are_finite: torch.Tensor


class TorchGradientModel(GradientModel):
    """A torch module that players train by steps along clipped gradients.

    The module, its loss and ``start`` are those of `TorchRowModel`; the loss of a
    player is the mean over its rows. With ``basis`` (p, n_components), parameters and
    gradients are coordinates along its orthonormal columns, from the given start. Rows
    of a code of ``n_classes`` (if any) or above have zero gradients. If ``private``, so
    have rows whose gradients are not finite, since an error would depend on the rows.
    ``step_weights`` (n_players,) are ones by default.
    """

    in_threads = False

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
        n_classes=0,
        private=False,
        step_weights=None,
        device="auto",
    ):
        rows = TorchRowModel(module, loss, X_val, start=start, device=device)
        self.rows = rows
        self.device = rows.device
        self.dtype = rows.dtype
        self.clip = clip
        self.unit = unit
        self.utility = utility
        self.private = private

        self._points = rows.rows(X_val, y_val, "y_val")
        if utility == "accuracy" and rows.probed[0].numel() == 1:
            raise ValueError(
                "utility='accuracy' needs a module with an output for every class. Got "
                "one output."
            )
        if weights_val is None:
            weights_val = np.full(len(X_val), 1.0 / len(X_val))
        self._weights = torch.as_tensor(
            weights_val, dtype=torch.float64, device=self.device
        )

        # Rows in the order of their players, those of player j from bound j on. Rows of
        # no class stay in their places, with another label, and are not added.
        y = np.asarray(y)
        players = np.asarray(players)
        has_class = np.ones(len(y), dtype=bool)
        if n_classes:
            has_class = y < n_classes
        order = np.argsort(players, kind="stable")
        of_players = rows.rows(np.asarray(X)[order], np.where(has_class, y, 0)[order])
        self._X = of_players.X
        self._y = of_players.y
        self._counted = torch.as_tensor(has_class[order], device=self.device)
        counts = np.bincount(players)
        self.n_players = len(counts)
        self.step_weights = checked_step_weights(step_weights, self.n_players)
        self._bounds = np.concatenate([[0], np.cumsum(counts)])
        self._n_rows = counts
        self._bounds_on_device = self._to_device(self._bounds)
        rows.check_transforms(self._points)

        self._basis = None
        self.n_parameters = rows.n_parameters
        if basis is not None:
            self._basis = rows.tensor(basis)
            self.n_parameters = basis.shape[1]
        if private and clip is not None:
            self.clip = released_bound(clip, unit, counts, self.n_parameters)

    def start(self, rng):
        """Initial parameters (p,) of a permutation, from its generator."""
        if self._basis is not None:
            return np.zeros(self.n_parameters)
        return self.rows.start(rng)

    @default_settings()
    def gradients(self, thetas, players):
        """Clipped gradients (b, p) of b players, each at its row of ``thetas`` (b, p).

        The number of players computed together changes the last digits.
        """
        size, _ = self.batch_size(len(players))
        gradients = []
        for tile in tiles(len(players), size):
            of_players = Players.of(players[tile], self.device)
            of_tile = self._gradients_together(
                self.rows.tensor(thetas[tile]), of_players
            )
            gradients.append(of_tile.cpu().numpy())
        return np.concatenate(gradients)

    def batch_size(self, n_walks):
        """Numbers of walks, and of their steps, that are computed together.

        On a CPU, as many walks as fit into its cache, since more are not faster; for
        large parties or networks that is one.
        """
        longest = int(self._n_rows.max(initial=1))
        n_bytes = (
            longest * self._bytes_of_a_row(self.unit == "example")
            + 40 * self.rows.n_parameters
        )
        room = self._memory() // 2
        room_of_walks = min(room, _CACHE) if self.device == "cpu" else room
        n_together = int(max(1, min(n_walks, room_of_walks // n_bytes)))
        n_steps = room // (n_together * 32 * self.n_parameters)
        return n_together, int(max(1, n_steps))

    @default_settings()
    def walk(self, orders, rates, noise, noise_std, thetas, past=None, weight=1.0, t=1):
        """One step of all walks at a time.

        What the steps need goes to the device before the first, and comes back after
        the last: a step does not wait for the device.
        """
        rates = np.reshape(rates, (len(orders), 1)) * self.step_weights[orders]
        inputs = _Inputs(
            theta=self._to_device(np.asarray(thetas, dtype=np.float64)),
            players=self._to_device(orders),
            rates=self._to_device(rates),
            noise=None,
            grids=None,
            past=None if past is None else self._to_device(past[orders]),
        )
        if len(noise[0]):
            grids = grid_width(noise_std)[orders]
            inputs = inputs._replace(
                noise=self._to_device(np.array(noise)),
                grids=self._to_device(grids[:, :, None]),
            )
        # Means that are not finite are rare. If there are some, the steps are taken
        # again, now row by row where a mean is not finite.
        looks = self.device == "cpu"
        steps = self._walk(orders, inputs, weight, t, looks)
        are_finite = steps.are_finite.cpu().numpy()
        if not are_finite.all():
            steps = self._walk(orders, inputs, weight, t, looks=True)

        if past is not None:
            past[orders] = steps.past.cpu().numpy()
        norms = steps.norms.cpu().numpy()
        is_finite = np.isfinite(norms)
        self._check_norms(norms[is_finite])
        first_failed = np.argmin(is_finite, axis=1)
        failed_steps = np.where(is_finite.all(axis=1), -1, first_failed)
        return steps.path, steps.theta.cpu().numpy(), failed_steps

    def _walk(self, orders, inputs, weight, t, looks):
        """The `_Steps` of `walk`; ``looks`` as in `_gradients_together`."""
        n_walks, n_steps = orders.shape
        theta = inputs.theta
        path = torch.empty(
            (n_walks, n_steps + 1, theta.shape[1]), dtype=self.dtype, device=self.device
        )
        path[:, 0] = theta
        norms = torch.empty((n_walks, n_steps), dtype=torch.float64, device=self.device)
        are_finite = torch.ones((), dtype=torch.bool, device=self.device)
        past = inputs.past
        if past is not None and not looks:
            # The steps may have to be taken again.
            past = past.clone()
        for s in range(n_steps):
            players = Players(orders[:, s], inputs.players[:, s])
            release = self._gradients_together(
                theta.to(self.dtype), players, looks, are_finite
            )
            norms[:, s] = torch.linalg.vector_norm(release, dim=1)
            if inputs.noise is not None:
                release = with_noise(release, inputs.noise[:, s], inputs.grids[:, s])

            # The step is along the release, or along its average with those before.
            step = release
            if past is not None:
                mean = past[:, s]
                residual = release - mean
                step = mean + weight * residual
                past[:, s] = mean + residual / t
            theta = theta - inputs.rates[:, s, None] * step
            path[:, s + 1] = theta
        return _Steps(path, theta, norms, past, are_finite)

    def _to_device(self, array):
        """An array as a tensor of its dtype on the device."""
        return torch.as_tensor(np.ascontiguousarray(array), device=self.device)

    def _check_norms(self, norms):
        """Raise RuntimeError if gradients are not clipped, on which privacy relies."""
        largest = norms.max(initial=0.0)
        if self.clip is not None and largest > self.clip * (1 + _SLACK):
            raise RuntimeError(
                f"the model must clip gradients to norm {self.clip:g}, or the noise is "
                f"too small. Got a norm of {largest:g}."
            )

    def as_array(self, thetas):
        """On the CPU."""
        return thetas.double().cpu().numpy()

    @default_settings()
    def utilities(self, thetas):
        """Utilities (T,) of parameters (T, p): weighted means over points."""
        X = self._points.X
        y = self._points.y
        row_bytes = self.rows.row_bytes
        room = self._memory()
        if self.device == "cpu":
            room = min(room, max(_CACHE, _MIN_ROWS * row_bytes))
        row_tile = int(max(1, min(len(X), room // row_bytes)))
        theta_bytes = row_tile * row_bytes + 16 * self.rows.n_parameters
        theta_tile = max(1, room // theta_bytes)

        utilities = np.zeros(len(thetas))
        scores_of = vmap(self._scores, in_dims=(0, None, None))
        with torch.no_grad():
            for tile in tiles(len(thetas), theta_tile):
                parameters = self._full(self.rows.tensor(thetas[tile]))
                for points in tiles(len(X), row_tile):
                    scores = scores_of(parameters, X[points], y[points])
                    weighted = scores.double() @ self._weights[points]
                    utilities[tile] += weighted.cpu().numpy()
        return utilities

    @default_settings()
    def outputs(self, thetas):
        """Outputs (T, n_rows, n_outputs) of parameters (T, p) for the players' rows."""
        outputs = []
        with torch.no_grad():
            for theta in self.rows.tensor(thetas):
                outputs.append(self.rows.outputs(self._full(theta), self._X))
        outputs = torch.stack(outputs).double().cpu().numpy()
        return outputs.reshape(len(thetas), len(self._X), -1)

    # Gradients ------------------------------------------------------------------------

    def _gradients_together(self, thetas, players, looks=True, are_finite=None):
        """Clipped gradients (b, p) of b players, float64 on the device.

        Player i has the parameters in row i of ``thetas`` (b, p). In a private fit,
        means that are not finite are computed once more, row by row. To find them is to
        wait for the device: unless the caller ``looks`` for them, ``are_finite``, one
        number on the device, becomes False if there are some.
        """
        if self.unit == "example":
            return self._means(thetas, players, self.clip)
        means = self._means(thetas, players)
        norms = torch.linalg.vector_norm(means, dim=1)
        if self.private and not looks:
            are_finite.logical_and_(torch.isfinite(norms).all())
        elif self.private:
            # Rows that are not finite count as zero.
            not_finite = np.flatnonzero(~np.isfinite(norms.cpu().numpy()))
            for player in not_finite:
                one = slice(player, player + 1)
                means[one] = self._means(thetas[one], players.at(one), _LARGEST_NORM)
            if len(not_finite):
                norms = torch.linalg.vector_norm(means, dim=1)
        divisors, is_added = self._divisors(norms, self.clip)
        return torch.where(is_added[:, None], means / divisors[:, None], 0.0)

    def _means(self, thetas, players, clip=None):
        """Mean gradients (b, p) of players' rows, each clipped if a bound is given."""
        by_example = clip is not None or self.unit == "example"
        first = self._bounds_on_device[players.on_device]
        n_rows = self._bounds_on_device[players.on_device + 1] - first
        most_rows = int(self._n_rows[players.numbers].max(initial=0))
        total = torch.zeros(thetas.shape, dtype=torch.float64, device=self.device)
        thetas = self._full(thetas)
        lift = vmap if len(players.numbers) > 1 else _alone

        room = self._memory()
        if self.device == "cpu" and by_example:
            room = min(room, _CACHE)
        n_players = len(players.numbers)
        size = max(1, room // (n_players * self._bytes_of_a_row(by_example)))
        for tile in tiles(most_rows, size):
            # The rows of a player are padded with its first row, which is not counted.
            places = torch.arange(tile.start, tile.stop, device=self.device)
            in_player = places < n_rows[:, None]
            rows = first[:, None] + torch.where(in_player, places, 0)
            counts = in_player & self._counted[rows]
            x = self._X[rows]
            y = self._y[rows]
            if by_example:
                by_row = vmap(grad(self.rows.row_loss), in_dims=(None, 0, 0))
                gradients = self._project(lift(by_row)(thetas, x, y))
                self._add_clipped(total, gradients, counts, clip)
            else:
                sums = lift(grad(self.rows.sum_loss))(thetas, x, y, counts)
                total += self._project(sums).double()
        return total / n_rows[:, None]

    def _scores(self, theta, x, y):
        """Utility at each validation point."""
        if self.utility == "accuracy":
            return (self.rows.outputs(theta, x).argmax(1) == y).to(self.dtype)
        return -self.rows.row_losses(theta, x, y)

    def _full(self, thetas):
        """All parameters from their coordinates."""
        if self._basis is None:
            return thetas
        return self.rows.given + thetas @ self._basis.T

    def _project(self, gradients):
        """Coordinates of gradients in the basis."""
        return gradients if self._basis is None else gradients @ self._basis

    def _divisors(self, norms, clip):
        """Divisors of gradients of these norms, and a mask of those to add.

        In a private fit, gradients that are not finite are not added. Else they become
        NaN where they are to be clipped, for an error.
        """
        if clip is None:
            return torch.ones_like(norms), torch.isfinite(norms) | (not self.private)
        divisors = torch.clamp(norms / clip, min=1.0)
        divisors = torch.where(torch.isfinite(divisors), divisors, torch.nan)
        return divisors, torch.isfinite(divisors) | (not self.private)

    def _add_clipped(self, total, gradients, counts, clip):
        """Add gradients (..., rows, p), clipped, to ``total`` (..., p) in float64.

        By blocks of columns, since all rows in float64 would take twice the memory, and
        most of the time on a CPU. Rows where `counts` is False are not added.
        """
        room = _CACHE // 16 if self.device == "cpu" else self._memory()
        n_rows = max(1, gradients[..., 0].numel())
        blocks = list(tiles(gradients.shape[-1], max(1, room // (8 * n_rows))))
        squares = sum(
            gradients[..., block].double().square().sum(-1) for block in blocks
        )
        divisors, is_usable = self._divisors(squares.sqrt(), clip)
        is_added = (counts & is_usable)[..., None]
        scale = (1.0 / divisors)[..., None]
        for block in blocks:
            scaled = scale * gradients[..., block]
            total[..., block] += torch.where(is_added, scaled, 0.0).sum(-2)

    def _bytes_of_a_row(self, by_example):
        """Bytes for the gradient of one row, with all intermediate arrays."""
        n_bytes = self.rows.row_bytes * 2
        if by_example:
            n_bytes += 24 * self.rows.n_parameters
        return n_bytes

    def _memory(self):
        """Most bytes per block."""
        return self.rows.memory() if self.device == "cpu" else self._memory_on_gpu

    @cached_property
    def _memory_on_gpu(self):
        # Once: a query of the device may take as long as a step.
        return self.rows.memory()


def _alone(function):
    """`vmap` of a batch of one, with the kernels of a batch that is no batch."""

    def call(*batch):
        return function(*(array[0] for array in batch))[None]

    return call
