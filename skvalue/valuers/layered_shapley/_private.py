"""Private Layered Shapley: the sensitivity of values, the noise, and the report."""

import math
import random
from dataclasses import dataclass, replace

import numpy as np

from ...estimation import N_SHUFFLES
from ...privacy import (
    LaplaceEvent,
    OpaqueEvent,
    SelfComposedEvent,
    calibrate_gaussian,
    calibrate_laplace,
    make_report,
    sentences,
)
from ...samplers import layer_counts
from ._bounds import change_bounds, contribution_bounds

RELEASES = ("query", "all", "publish")
_OWN = (
    sentences.OWN_VALUE,
    "rows from anyone who has the fitted object, which is for the curator",
)


def value_sensitivity(n, other, design="blocks"):
    """Bound of the change of the value of one row when another row is replaced.

    Parameters
    ----------
    n : int
        Number of rows.
    other : ndarray of shape (n_layers,)
        Bounds of the change of a marginal contribution, by layer, see `change_bounds`.
    design : {"blocks", "iid"}, default="blocks"
        With "blocks" a row is in at most one of the floor((n - 1) / k) blocks of layer
        k; with "iid" it may be in all coalitions of the layer.

    Returns
    -------
    sensitivity : float
        ``sum_k other_k / (m_k n)``; m_k is 1 for "iid".

    Examples
    --------
    >>> other, _ = change_bounds(3, l2=1.0, max_norm=1.0, fit_intercept=False)
    >>> round(value_sensitivity(1000, other), 9)
    1.629e-06
    """
    k = np.arange(1, len(other) + 1)
    blocks = (n - 1) // k if design == "blocks" else np.ones(len(other))
    return float((other / blocks).sum() / n)


def participation(n, counts):
    """Probability that a given other row is in one of the independent coalitions of a
    query.

    Parameters
    ----------
    n : int
        Number of rows.
    counts : array-like of int of shape (K,)
        Number of coalitions of 1, ..., K others.

    Returns
    -------
    probability : float
        ``1 - prod_k (1 - k / (n - 1))^m_k``.

    Examples
    --------
    >>> round(participation(101, [2, 1]), 4)
    0.0395
    """
    sizes = np.arange(1, len(counts) + 1)
    with np.errstate(divide="ignore"):
        return float(-np.expm1((np.asarray(counts) * np.log1p(-sizes / (n - 1))).sum()))


@dataclass(frozen=True)
class ReleasePlan:
    """What is released and with which noise, independent of the rows."""

    n: int  # number of rows
    kind: str  # "query": values on request; "all": each to its owner; "publish": all to everyone
    design: str  # "blocks" or "iid"
    epsilon: float  # of everything that is released
    max_queries: int  # for "query": number of values released
    noise: object  # of one value, or of the vector: a `LaplaceEvent` or `GaussianEvent`
    charge: object  # event of one release: the noise, or less if coalitions are secret
    total: object  # event of all releases
    delta: float  # of the guarantee; 0 with Laplace noise
    counts: np.ndarray  # (K + 1,): coalitions of each size that a value is based on
    n_shuffles: (
        np.ndarray
    )  # (K + 1,): for blocks, shuffles with (n - 1) // k blocks each

    @property
    def n_layers(self):
        """Largest size of a coalition that a row joins."""
        return len(self.counts) - 1

    @property
    def cost(self):
        """Number of coalitions of everything that is released."""
        if self.kind == "query":
            return 2 * self.max_queries * int(self.counts.sum())
        return self.n * (int(self.counts.sum()) + int(self.n_shuffles.sum()))

    @property
    def noise_std(self):
        """Standard deviation of the noise on a value."""
        return self.noise.scale * (
            math.sqrt(2) if isinstance(self.noise, LaplaceEvent) else 1.0
        )


def plan_release(
    n, n_layers, *, epsilon, delta, release="query", max_queries=1, design="blocks", l2=1.0,
    max_norm=1.0, fit_intercept=True, slope=None, curvature=None, tol=None, confidence=0.95,
):  # fmt: skip
    """Choose noise and coalitions of a private fit, independent of the rows.

    Parameters
    ----------
    n, n_layers : int
        Number of rows, and largest size of a coalition that a row joins.
    epsilon, delta : float
        The privacy budget of everything that is released.
    release : {"query", "all", "publish"}, default="query"
        What is released.
    max_queries : int, default=1
        For "query": number of values released.
    design : {"blocks", "iid"}, default="blocks"
        How coalitions are drawn.
    l2, max_norm, fit_intercept : float, float, bool
        Parameters of the game.
    slope, curvature : float, default=None
        Bounds of the utility by its validation points, see
        `skvalue.games.validation_bounds`.
    tol : float, default=None
        If set, `skvalue.samplers.layer_counts` gives the number of coalitions. With
        None there are 8 shuffles for a query, and one if all values are released, whose
        noise is far larger.
    confidence : float, default=0.95
        For `tol`.

    Returns
    -------
    plan : ReleasePlan
        The plan of the release.
    """
    game = (l2, max_norm, fit_intercept)
    blocks = (n - 1) // np.arange(1, n_layers + 1)
    wanted = blocks * (N_SHUFFLES if release == "query" else 1)
    if tol is not None:
        bounds = contribution_bounds(n_layers, *game)
        wanted = np.ceil(layer_counts(bounds, tol, confidence)[1:]).astype(np.int64)
    shuffles = np.maximum(1, -(-wanted // blocks)) if design == "blocks" else 0 * blocks
    counts = np.r_[
        1, blocks * shuffles if design == "blocks" else np.maximum(wanted, 1)
    ]
    shuffles = np.r_[0, shuffles]
    other, own = change_bounds(n_layers, *game, slope, curvature)
    one = value_sensitivity(n, other, design)
    if release != "query":
        norms = [np.sqrt(n - 1) * one, (n - 1) * one]  # L2, L1
        if release == "publish":
            itself = float(own.sum() / n)
            norms = [math.hypot(norms[0], itself), norms[1] + itself]
        event, delta = _smaller_noise(epsilon, delta, *norms)
        charge = event
    elif design == "iid":
        each = epsilon / max_queries
        odds = (
            each + math.log(-math.expm1(-each)) - math.log(participation(n, counts[1:]))
        )
        scale = one / float(np.logaddexp(odds, 0.0))  # ln(1 + (exp(epsilon) - 1) / p)
        event, delta = LaplaceEvent(scale * (1 + 1e-12), one), 0.0
        charge = OpaqueEvent(each, event=event)
    else:
        norms = math.sqrt(max_queries) * one, max_queries * one
        event, delta = _smaller_noise(epsilon, delta, *norms)
        charge = event = replace(event, sensitivity=one)
    total = charge if max_queries == 1 else SelfComposedEvent(charge, max_queries)
    return ReleasePlan(
        n,
        release,
        design,
        epsilon,
        max_queries,
        event,
        charge,
        total,
        delta,
        counts,
        shuffles,
    )


def _smaller_noise(epsilon, delta, l2_norm, l1_norm):
    """The event of smaller standard deviation, and its delta."""
    laplace = calibrate_laplace(epsilon, l1_norm)
    gaussian = calibrate_gaussian(epsilon, delta, l2_norm)
    return (
        (gaussian, delta)
        if gaussian.scale < math.sqrt(2) * laplace.scale
        else (laplace, 0.0)
    )


def secret_value(plan, utilities, i, seed=None):
    """Value of one player without noise, from new independent coalitions, which stay
    secret."""
    n, draw = (
        utilities.n,
        random.SystemRandom() if seed is None else random.Random(seed),
    )
    others = [j for j in range(n) if j != i]
    total = (utilities.of(np.array([[i]])) - utilities.game.empty_utility)[0]
    for k in range(1, len(plan.counts)):
        sets = np.array([draw.sample(others, k) for _ in range(plan.counts[k])])
        joined = np.column_stack([sets, np.full(len(sets), i)])
        total += (utilities.of(joined) - utilities.of(sets)).mean()
    return total / n


def layered_report(plan, noise_random_state=None):
    """The report of a private fit."""
    vector = plan.kind == "publish"
    protects = "what a row contains, in the values of other rows"
    if vector:
        protects = "what each row contains, in the vector of all values"
    elif plan.kind == "query":
        protects += f" that are queried (at most {plan.max_queries})"
    report = make_report(
        plan.total,
        plan.delta,
        notion="central" if vector else "joint",
        unit="row",
        protects=protects,
        against="everyone" if vector else "the owners of all other rows together",
        not_protected=(
            sentences.PUBLIC_POINTS,
            *(() if vector else _OWN),
            "the number of rows",
            sentences.RUNNING_TIMES,
        ),
        assumptions=(
            sentences.NOT_A_POINT,
            "l2, max_norm, n_layers and all other parameters were chosen without looking at rows",
            sentences.PREPARATION,
            sentences.OTHER_RELEASES,
        ),
        noise_random_state=noise_random_state,
    )
    return replace(report, detection_ceiling=None)
