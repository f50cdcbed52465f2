"""Many walks of one torch module at once, one step of all of them at a time. Imports torch."""

import numpy as np
import torch
from torch.func import grad, vmap

from .._utils.parallel import tiles
from ..privacy import grid_width


def gradients_of(model, thetas, players):
    """Clipped gradients (b, p), float64 on the device, of b players at their rows of ``thetas``."""
    examples = model.unit == "example"
    first, kept = model._bounds[players], np.diff(model._bounds)[players]
    total = torch.zeros(thetas.shape, dtype=torch.float64, device=model.device)
    thetas = model._full(thetas)
    longest = int(kept.max(initial=0))
    size = max(1, model._memory() // (len(players) * model._bytes_of_a_row()))
    for part in tiles(longest, size):
        at = np.arange(part.start, part.stop)
        # The rows of a player are padded with its first row, which is not counted.
        counts = at < kept[:, None]
        rows = first[:, None] + np.where(counts, at, 0)
        rows = np.where(kept[:, None] > 0, rows, 0)  # players without rows are left out below
        rows, counts = (torch.as_tensor(a, device=model.device) for a in (rows, counts))
        x, y = model._X[rows], model._y[rows]
        if examples:
            by_row = vmap(grad(model._row_loss), in_dims=(None, 0, 0))
            model._add_clipped(total, model._project(vmap(by_row)(thetas, x, y)), counts)
        else:
            total += model._project(vmap(grad(model._sum_loss))(thetas, x, y, counts)).double()
    has_rows = torch.as_tensor(kept > 0, device=model.device)[:, None]
    total = torch.where(has_rows, total, 0.0)
    total /= torch.as_tensor(model._counts[players], device=model.device)[:, None]
    return total if examples else model._clipped(total)


def with_noise(gradients, noise, grid):
    """Add noise to clipped gradients on their device, bitwise as `clip_and_noise`."""
    noise, grid = (torch.as_tensor(array, device=gradients.device) for array in (noise, grid))
    noisy = gradients + noise
    return torch.where(noisy.abs() < 2.0**52 * grid, torch.round(noisy / grid) * grid, noisy)


def walk_together(model, orders, rate, noise, noise_std, thetas, needed, kept):
    """Take the steps of b walks along ``orders`` (b, n_steps), one step of all walks at a time.

    ``noise`` (b, n_steps, p) or (b, 0, p) has standard deviations ``noise_std`` (n_players,).
    Returns the final parameters (b, p), the utilities (b, n_steps) after each step (NaN where the
    mask ``needed`` (n_steps,) is False), the norms (b, n_steps) of the clipped gradients, which
    show those that are not finite, and the parameters after some steps, ``kept`` (m, 2) of walk
    and step.
    """
    device, (b, n_steps) = model.device, orders.shape
    theta = torch.as_tensor(thetas, dtype=torch.float64, device=device)
    path = torch.empty((b, n_steps, theta.shape[1]), dtype=model.dtype, device=device)
    norms = torch.empty((b, n_steps), dtype=torch.float64, device=device)
    grids = grid_width(noise_std)[:, None]
    for s in range(n_steps):
        players = orders[:, s]
        release = gradients_of(model, theta.to(model.dtype), players)
        norms[:, s] = torch.linalg.vector_norm(release, dim=1)
        if noise.shape[1]:
            release = with_noise(release, noise[:, s], grids[players])
        theta = theta - rate * release
        path[:, s] = theta
    utilities = np.full((b, n_steps), np.nan)
    some = path if needed.all() else path[:, torch.as_tensor(needed, device=device)]
    utilities[:, needed] = model.utilities(some.flatten(0, 1)).reshape(b, -1)
    models = path[kept[:, 0], kept[:, 1]].double().cpu().numpy()
    return theta.cpu().numpy(), utilities, norms.cpu().numpy(), models
