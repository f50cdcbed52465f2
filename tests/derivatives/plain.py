"""Walks of gradient models, one step after another."""

import numpy as np

from skvalue.derivatives import GradientModel
from skvalue.privacy import clip_and_noise


def plain_walk(
    model, orders, rates, noise, noise_std, thetas, past=None, weight=1.0, t=1
):
    """As `GradientModel.walk`, with a call of `gradient` for each step."""
    n_steps = orders.shape[1]
    path = np.array([[theta] * (n_steps + 1) for theta in thetas])
    lost = np.full(len(orders), -1)
    step_weights = getattr(model, "step_weights", np.ones(model.n_players))
    for walk, order in enumerate(orders):
        steps = path[walk]
        for s, j in enumerate(order):
            release = np.array(model.gradient(steps[s], j))
            if not np.isfinite(release).all():
                lost[walk] = s
                break
            if len(noise[walk]):
                of_step = noise[walk][s]
                release = clip_and_noise(release[None], None, of_step, noise_std[j])[0]
            if past is not None:
                mean = past[j].copy()
                past[j] += (release - mean) / t
                release = mean + weight * (release - mean)
            rate = rates[walk] * step_weights[j]
            steps[s + 1] = steps[s] - rate * release
    return path, path[:, -1].copy(), lost


class PlainModel(GradientModel):
    """A model whose walks are plain ones."""

    in_threads = False
    walk = plain_walk

    def batch_size(self, n_walks):
        return 1, 10**6

    def as_array(self, thetas):
        return thetas
