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

# Of one size: no fit evaluates more.
_MAX_COALITIONS = 10**12

# What owners may see of their own rows is not protected.
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
    """Probability that a given other row is in one of the coalitions of a query.

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

    # Number of rows.
    n: int
    # "query": values on request; "all": each to its owner; "publish": all to everyone.
    kind: str
    # "blocks" or "iid".
    design: str
    # Of everything that is released.
    epsilon: float
    # For "query": number of values released.
    max_queries: int
    # Of one value, or of the vector: a `LaplaceEvent` or `GaussianEvent`.
    noise: object
    # Event of one release: the noise, or less if coalitions are secret.
    charge: object
    # Event of all releases.
    total: object
    # Of the guarantee; 0 with Laplace noise.
    delta: float
    # Coalitions of each size that a value is based on, (K + 1,).
    counts: np.ndarray
    # For blocks, shuffles with (n - 1) // k blocks each, (K + 1,).
    n_shuffles: np.ndarray

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
        if isinstance(self.noise, LaplaceEvent):
            return self.noise.scale * math.sqrt(2)
        return self.noise.scale


def plan_release(
    n,
    n_layers,
    *,
    epsilon,
    delta,
    release="query",
    max_queries=1,
    design="blocks",
    l2=1.0,
    max_norm=1.0,
    fit_intercept=True,
    slope=None,
    curvature=None,
    tol=None,
    confidence=0.95,
):
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
    counts, n_shuffles = _coalition_counts(
        n,
        n_layers,
        game,
        release=release,
        design=design,
        tol=tol,
        confidence=confidence,
    )
    # How much the contributions of a row change if another row is replaced, and if the
    # row itself is.
    other_changes, own_changes = change_bounds(n_layers, *game, slope, curvature)
    sensitivity = value_sensitivity(n, other_changes, design)
    if release != "query":
        # The vector of the other values, and with "publish" that of the row itself.
        l2_norm = np.sqrt(n - 1) * sensitivity
        l1_norm = (n - 1) * sensitivity
        if release == "publish":
            own_change = float(own_changes.sum() / n)
            l2_norm = math.hypot(l2_norm, own_change)
            l1_norm = l1_norm + own_change
        noise, delta = _smaller_noise(epsilon, delta, l2_norm, l1_norm)
        charge = noise
    elif design == "iid":
        epsilon_of_query = epsilon / max_queries
        noise = _amplified_noise(epsilon_of_query, sensitivity, n, counts)
        delta = 0.0
        charge = OpaqueEvent(epsilon_of_query, event=noise)
    else:
        # The noise is for all queries together; the event is that of one of them.
        l2_norm = math.sqrt(max_queries) * sensitivity
        l1_norm = max_queries * sensitivity
        noise, delta = _smaller_noise(epsilon, delta, l2_norm, l1_norm)
        noise = replace(noise, sensitivity=sensitivity)
        charge = noise
    total = charge
    if max_queries > 1:
        total = SelfComposedEvent(charge, max_queries)
    return ReleasePlan(
        n=n,
        kind=release,
        design=design,
        epsilon=epsilon,
        max_queries=max_queries,
        noise=noise,
        charge=charge,
        total=total,
        delta=delta,
        counts=counts,
        n_shuffles=n_shuffles,
    )


def _coalition_counts(n, n_layers, game, *, release, design, tol, confidence):
    """Numbers of coalitions, and of shuffles, of each size 0, ..., n_layers.

    Both of shape (n_layers + 1,), and independent of the rows.
    """
    n_blocks = (n - 1) // np.arange(1, n_layers + 1)
    needed = n_blocks
    if release == "query":
        needed = n_blocks * N_SHUFFLES
    if tol is not None:
        bounds = contribution_bounds(n_layers, *game)
        needed = np.ceil(layer_counts(bounds, tol, confidence)[1:])
        if needed.max() > _MAX_COALITIONS:
            raise ValueError(
                f"tol must be larger: it needs {needed.max():.1g} coalitions of one "
                f"size. Got {tol!r}."
            )
        needed = needed.astype(np.int64)
    if design == "blocks":
        n_shuffles = np.maximum(1, -(-needed // n_blocks))
        counts = n_blocks * n_shuffles
    else:
        n_shuffles = 0 * n_blocks
        counts = np.maximum(needed, 1)
    return np.r_[1, counts], np.r_[0, n_shuffles]


def _amplified_noise(epsilon, sensitivity, n, counts):
    """Laplace noise of a query with secret coalitions, in which a row may not be."""
    # The scale is that of ln(1 + (exp(epsilon) - 1) / p), with the participation p.
    log_odds = (
        epsilon
        + math.log(-math.expm1(-epsilon))
        - math.log(participation(n, counts[1:]))
    )
    scale = sensitivity / float(np.logaddexp(log_odds, 0.0))
    return LaplaceEvent(scale * (1 + 1e-12), sensitivity)


def _smaller_noise(epsilon, delta, l2_norm, l1_norm):
    """The event of smaller standard deviation, and its delta."""
    laplace = calibrate_laplace(epsilon, l1_norm)
    gaussian = calibrate_gaussian(epsilon, delta, l2_norm)
    if gaussian.scale < math.sqrt(2) * laplace.scale:
        return gaussian, delta
    return laplace, 0.0


def secret_value(plan, utilities, i, seed=None):
    """Value of one player without noise, from new coalitions, which stay secret."""
    n = utilities.n
    generator = random.SystemRandom() if seed is None else random.Random(seed)
    others = [j for j in range(n) if j != i]
    total = (utilities.of(np.array([[i]])) - utilities.game.empty_utility)[0]
    for k in range(1, len(plan.counts)):
        sets = [generator.sample(others, k) for _ in range(plan.counts[k])]
        sets = np.array(sets)
        joined = np.column_stack([sets, np.full(len(sets), i)])
        total += (utilities.of(joined) - utilities.of(sets)).mean()
    return total / n


def layered_report(plan, noise_random_state=None):
    """The report of a private fit."""
    if plan.kind == "publish":
        notion = "central"
        protects = "what each row contains, in the vector of all values"
        against = "everyone"
        owners = ()
    else:
        notion = "joint"
        protects = "what a row contains, in the values of other rows"
        against = "the owners of all other rows together"
        owners = _OWN
    if plan.kind == "query":
        protects += f" that are queried (at most {plan.max_queries})"
    report = make_report(
        plan.total,
        plan.delta,
        notion=notion,
        unit="row",
        protects=protects,
        against=against,
        not_protected=(
            sentences.PUBLIC_POINTS,
            *owners,
            "the number of rows",
            sentences.RUNNING_TIMES,
        ),
        assumptions=(
            sentences.NOT_A_POINT,
            "l2, max_norm, n_layers and all other parameters were chosen without "
            "looking at rows",
            sentences.PREPARATION,
            sentences.OTHER_RELEASES,
        ),
        noise_random_state=noise_random_state,
    )
    return replace(report, detection_ceiling=None)
