"""KNN-Shapley values with noise on every value: the baselines that private methods must beat."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from sklearn.metrics import pairwise_distances

from ...privacy import (
    GaussianEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    add_noise,
    calibrate,
    calibrate_gaussian,
    make_report,
    poisson_sample,
)

__all__ = ["joint_sensitivity", "sampled_values", "value_event", "value_sensitivity"]


def value_sensitivity(n_neighbors):
    """Largest change of one row's value when another row comes or goes: 1 / (K (K + 1)).

    Of the original game, in the mean over any validation points.

    Parameters
    ----------
    n_neighbors : int
        Number K of neighbours.

    Returns
    -------
    sensitivity : float
        The change.

    References
    ----------
    The TKNN paper, Appendix B.3.1, where the bound is attained. (Its Appendix B.4 takes the bound
    for the noise's variance in one place, for its deviation in the other, and epsilon in neither.)

    Examples
    --------
    >>> value_sensitivity(4)
    0.05
    """
    return 1.0 / (n_neighbors * (n_neighbors + 1))


def joint_sensitivity(n_neighbors):
    """Largest L2 change of the values of all other rows together when a row comes or goes.

    At rank r the original game's value is ``m_r / max(r, K)`` less the sum of ``m_j / (j (j - 1))``
    over j > max(r, K). A row that comes in at rank p moves a value at a rank r < p by at most
    ``1 / (q (q - 1))`` with q = max(p, K + 1), and one at r >= p by at most ``1 / (q (q + 1))``
    with q = max(r, K): in either case two sums of one sign are subtracted, each at most that. The
    squares add up to the most where p <= K + 1, to

        ``1 / (K (K + 1)^2) + sum_{r > K} 1 / (r (r + 1))^2``,

    however many rows there are. Means over orders of ties and over validation points have no
    larger norm.

    Parameters
    ----------
    n_neighbors : int
        Number K of neighbours.

    Returns
    -------
    sensitivity : float
        The change.

    Examples
    --------
    >>> round(joint_sensitivity(5), 4)
    0.0842
    """
    k = n_neighbors
    # sum_{r >= 1} 1 / (r (r + 1))^2 = pi^2 / 3 - 3
    rest = np.pi**2 / 3 - 3 - sum(1 / (r * (r + 1)) ** 2 for r in range(1, min(k, 100) + 1))
    if k > 100:  # the difference has few digits left: bound it by an integral
        rest = 1 / (3 * k**3)
    return float(np.sqrt(1 / (k * (k + 1) ** 2) + rest) * (1 + 1e-9))


@lru_cache(maxsize=32)
def value_event(
    epsilon, delta, n_neighbors, n_values, relation="add_remove", readers="pooled",
    sampling_rate=None,
):  # fmt: skip
    """What releasing all values is, and what one reader sees of it.

    Parameters
    ----------
    epsilon, delta : float
        The privacy asked.
    n_neighbors, n_values : int
        Number K of neighbours, and of values released.
    relation : {"null", "add_remove", "replace"}, default="add_remove"
        Neighbouring relation.
    readers : {"pooled", "alone"}, default="pooled"
        Whether the privacy asked is against all owners together, or against every one alone.
    sampling_rate : float, default=None
        Rate of a fresh secret sample of the other rows for every value.

    Returns
    -------
    everything, seen : events
        The releases all together, and those against which the privacy was asked.

    Raises
    ------
    ValueError
        If a parameter is outside its range.
    """
    steps = 2 if relation == "replace" else 1
    one, total = steps * value_sensitivity(n_neighbors), steps * joint_sensitivity(n_neighbors)
    if sampling_rate is None:
        asked = total if readers == "pooled" else one
        scale = calibrate_gaussian(epsilon, delta, asked, relation).scale
        return GaussianEvent(scale, total, relation), GaussianEvent(scale, asked, relation)

    if relation == "replace":
        raise ValueError(
            "relation must be 'add_remove' or 'null' with sampling_rate. Got 'replace'."
        )

    def event(scale, count):
        once = PoissonSampledEvent(GaussianEvent(scale * one, one, relation), sampling_rate)
        return SelfComposedEvent(once, count)

    count = n_values if readers == "pooled" else 1
    seen = calibrate(lambda scale: event(scale, count), epsilon, delta, tol=0.01)
    return SelfComposedEvent(seen.event, n_values), seen


def sampled_values(X, y, X_val, y_val, weights, n_neighbors, metric, rate, noise_random_state=None):
    """Value of every row in a fresh secret sample of the others, by the original game.

    A row that ties with another stands behind it if it stands behind it in X.

    Parameters
    ----------
    X, y : ndarrays
        The rows and codes of their labels.
    X_val, y_val, weights : ndarrays
        The validation points, codes of their labels and weights.
    n_neighbors : int
        Number K of neighbours.
    metric : str or callable
        The metric.
    rate : float
        Chance of every other row to be in the sample.
    noise_random_state : int, default=None
        For tests only; voids the guarantee.

    Returns
    -------
    values : ndarray of shape (n,)
        The values.
    """
    n, n_val = len(X), len(X_val)
    order = np.empty((n_val, n), dtype=np.int32)
    for v in range(0, n_val, 64):
        distances = pairwise_distances(X_val[v : v + 64], X, metric=metric)
        np.put_along_axis(
            order[v : v + 64],
            np.argsort(distances, axis=1, kind="stable"),
            np.arange(n, dtype=np.int32)[None],
            axis=1,
        )  # the rank of every row
    ranks_of_all = np.arange(1, n + 2, dtype=float)
    steps = 1 / np.maximum(ranks_of_all * (ranks_of_all - 1), 1)
    values = np.empty(n)
    for i in range(n):
        seed = None if noise_random_state is None else noise_random_state + 1 + i
        sample = poisson_sample(n, rate, noise_random_state=seed)
        sample[i] = True
        rows = np.flatnonzero(sample)
        near = np.argsort(order[:, rows], axis=1)
        match = y[rows][near] == y_val[:, None]
        rank = (near == np.searchsorted(rows, i)).argmax(axis=1) + 1
        ranks = ranks_of_all[: len(rows)]
        behind = ranks > np.maximum(rank, n_neighbors)[:, None]
        mine = (y[i] == y_val) / np.maximum(rank, n_neighbors)
        values[i] = (mine - (match * behind) @ steps[: len(rows)]) @ weights
    return values


def release_values(clean, everything, *, ledger=None, label="", noise_random_state=None):
    """Charge the ledger with everything, and add noise to the values."""
    if isinstance(everything, SelfComposedEvent):
        if ledger is not None:
            ledger.charge(everything, label=label)
        return add_noise(clean, everything.event.event, noise_random_state=noise_random_state)
    return add_noise(
        clean, everything, ledger=ledger, label=label, noise_random_state=noise_random_state
    )


def value_report(seen, delta, *, readers, noise_random_state=None):
    """The report of a private fit."""
    alone = readers == "alone"
    report = make_report(
        seen,
        delta,
        notion="central" if alone else "joint",
        unit="row",
        protects="whether a row is in the data and what it holds, in the values of other rows",
        against=(
            "every other owner who sees no value but its own"
            if alone
            else "all other owners together"
        ),
        not_protected=(
            *(["a row from owners of other rows who pool their values"] if alone else []),
            "the validation points X_val and y_val, which are public",
            "the number of rows",
            "a row from its own value, which is for its owner (values_for)",
            "rows from a reader of the whole of values_, which is for the curator",
            "running times and error messages",
        ),
        assumptions=(
            "no row to value is also a validation point",
            "n_neighbors, metric and all other parameters were chosen without looking at the rows",
            "so was whatever prepared the columns (scaling, selection, embeddings)",
            "other releases on the same rows are accounted for together with this one (Ledger)",
        ),
        noise_random_state=noise_random_state,
    )
    # The ceiling is about what is protected; a row's own value is not.
    return replace(report, detection_ceiling=None)
