"""Walks of gradient models, one step after another."""

import numpy as np

from skvalue.derivatives import GradientModel
from skvalue.privacy import clip_and_noise


def plain_walk(
    model, orders, rates, noise, noise_std, thetas, past=None, weight=1.0, t=1
):
    """As `GradientModel.walk`, with a call of `gradient` for each step."""
    path, lost = np.array([[theta] * (orders.shape[1] + 1) for theta in thetas]), []
    for order, rate, drawn, steps in zip(orders, rates, noise, path):
        lost.append(-1)
        for s, j in enumerate(order):
            release = np.array(model.gradient(steps[s], j))
            if not np.isfinite(release).all():
                lost[-1] = s
                break
            if len(drawn):
                release = clip_and_noise(release[None], None, drawn[s], noise_std[j])[0]
            if past is not None:
                before = past[j].copy()
                past[j] += (release - before) / t
                release = before + weight * (release - before)
            steps[s + 1] = steps[s] - rate * release
    return path, path[:, -1].copy(), np.array(lost)


class PlainModel(GradientModel):
    """A model whose walks are plain ones."""

    in_threads = False
    walk = plain_walk

    def batch_size(self, n_walks):
        return 1, 10**6

    def as_array(self, thetas):
        return thetas
