"""
DP-KNN-Shapley, the baseline of the threshold-KNN-Shapley paper
===============================================================

Wang, Zhu, Wang, Jia and Mittal, "A Privacy-Friendly Approach to Data Valuation"
(NeurIPS 2023), Appendices B.3 and B.4: Gaussian noise on every value of the original
KNN-Shapley game, without samples, and with a fresh secret sample of the other rows for
every value. Values are of the order of one over the number of rows, so that little of
them survives: it is here to compare with.
"""

from functools import lru_cache

import numpy as np
from sklearn.metrics import pairwise_distances

from skvalue import KNNShapleyValuer
from skvalue.privacy import (
    GaussianEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    add_noise,
    calibrate,
    calibrate_gaussian,
    poisson_sample,
)


def value_sensitivity(n_neighbors):
    """Largest change of one row's value when another row comes or goes: 1 / (K (K +
    1)).

    Appendix B.3.1, where the bound is attained. (Appendix B.4 takes the bound for the
    noise's variance in one place, for its standard deviation in the other, and epsilon
    in neither.)
    """
    return 1.0 / (n_neighbors * (n_neighbors + 1))


def joint_sensitivity(n_neighbors):
    """Largest L2 change of the values of all other rows together when a row comes or
    goes.

    At rank r the value is ``m_r / max(r, K)`` less the sum of ``m_j / (j (j - 1))``
    over j > max(r, K). A row that comes in at rank p moves a value at a rank r < p by
    at most ``1 / (q (q - 1))`` with q = max(p, K + 1), and one at r >= p by at most ``1
    / (q (q + 1))`` with q = max(r, K). The squares add up to the most where p <= K + 1,
    to

        ``1 / (K (K + 1)^2) + sum_{r > K} 1 / (r (r + 1))^2``,

    however many rows there are. The paper protects each owner from each other one
    alone; this is for owners who pool what they see.
    """
    k = n_neighbors
    # sum_{r >= 1} 1 / (r (r + 1))^2 = pi^2 / 3 - 3
    rest = (
        np.pi**2 / 3
        - 3
        - sum(1 / (r * (r + 1)) ** 2 for r in range(1, min(k, 100) + 1))
    )
    if k > 100:  # the difference has few digits left: bound it by an integral
        rest = 1 / (3 * k**3)
    return float(np.sqrt(1 / (k * (k + 1) ** 2) + rest) * (1 + 1e-9))


@lru_cache(maxsize=32)
def value_noise(epsilon, delta, n_neighbors, sampling_rate=None):
    """Noise on one value, for readers who see no value but their own."""
    one = value_sensitivity(n_neighbors)
    if sampling_rate is None:
        return calibrate_gaussian(epsilon, delta, one, "add_remove")

    def event(scale):
        once = PoissonSampledEvent(
            GaussianEvent(scale * one, one, "add_remove"), sampling_rate
        )
        return SelfComposedEvent(once, 1)

    return calibrate(event, epsilon, delta, tol=0.01).event.event


def sampled_values(
    X, y, X_val, y_val, n_neighbors, rate, *, metric="cosine", random_state=None
):
    """Value of every row in a fresh secret sample of the others, by the original game.

    A row that ties with another stands behind it if it stands behind it in X.
    """
    n = len(X)
    n_val = len(X_val)
    ranks_in_all = np.empty((n_val, n), dtype=np.int32)
    for v in range(0, n_val, 64):
        distances = pairwise_distances(X_val[v : v + 64], X, metric=metric)
        order = np.argsort(distances, axis=1, kind="stable")
        everyone = np.arange(n, dtype=np.int32)[None]
        np.put_along_axis(ranks_in_all[v : v + 64], order, everyone, axis=1)
    ranks = np.arange(1, n + 2, dtype=float)
    steps = 1 / np.maximum(ranks * (ranks - 1), 1)
    weights = np.full(n_val, 1.0 / n_val)
    values = np.empty(n)
    for i in range(n):
        seed = None if random_state is None else random_state + 1 + i
        sample = poisson_sample(n, rate, noise_random_state=seed)
        sample[i] = True
        rows = np.flatnonzero(sample)
        near = np.argsort(ranks_in_all[:, rows], axis=1)
        match = y[rows][near] == y_val[:, None]
        rank = (near == np.searchsorted(rows, i)).argmax(axis=1) + 1
        behind = ranks[: len(rows)] > np.maximum(rank, n_neighbors)[:, None]
        mine = (y[i] == y_val) / np.maximum(rank, n_neighbors)
        values[i] = (mine - (match * behind) @ steps[: len(rows)]) @ weights
    return values


def noisy_knn_values(
    X,
    y,
    X_val,
    y_val,
    *,
    epsilon,
    delta,
    n_neighbors=5,
    metric="cosine",
    sampling_rate=None,
    random_state=None,
):
    """Values with noise on each, epsilon being what another owner's value costs a
    row."""
    noise = value_noise(epsilon, delta, n_neighbors, sampling_rate)
    if sampling_rate is None:
        valuer = KNNShapleyValuer(n_neighbors, metric=metric, utility="original")
        clean = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    else:
        clean = sampled_values(
            X,
            y,
            X_val,
            y_val,
            n_neighbors,
            sampling_rate,
            metric=metric,
            random_state=random_state,
        )
    return add_noise(clean, noise, noise_random_state=random_state)
