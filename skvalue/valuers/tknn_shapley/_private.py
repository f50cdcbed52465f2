"""Private counts in balls: the largest number of balls of a row, the noise, and noisy values."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn import get_config
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_X_y
from sklearn.utils.validation import column_or_1d

from ..._utils.checks import check_validation_weights
from ..._utils.parallel import one_blas_thread
from ...base import Release, codes_or_other
from ...neighbors import balls, get_engine, make_space
from ...privacy import (
    DiscreteGaussianEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    add_noise,
    calibrate,
    calibrate_counts,
    make_report,
    poisson_sample,
)
from ._denoising import count_posterior, size_draws, value_sizes
from ._game import by_label, neighbour_values, threshold_utility

# Not "l2": far from the origin, scikit-learn's rounding violates the triangle inequality.
TRUE_METRICS = {"cityblock", "cosine", "euclidean", "l1", "manhattan"}
_MAX_SAMPLE = 2**21  # rows sampled at a time, unless one ball contains more
_N_ERROR_DRAWS = 32  # for standard errors: each costs a sum over the rows
_MAX_LANDMARKS = 800  # for smoothing; with more validation points it is approximate


@dataclass(frozen=True, eq=False)
class NoisyCounts(Release):
    """Noisy counts in balls, and the values of the game that are estimated from them."""

    radius: float = 0.0
    metric: object = "cosine"
    denoise: bool = True
    cap: int | None = None  # largest number of balls in which a row is counted; None: all

    def __call__(self, counts):
        """Charge the ledger and add noise."""
        return release_counts(
            counts, self.event, ledger=self.ledger, label=self.label,
            noise_random_state=self.noise_random_state,
        )  # fmt: skip

    def game(self, counts, points, n_classes, semivalue, joins=False):
        """`game_at_points` of noisy counts: smoothed, or rounded and clipped at zero."""
        noise = count_noise(counts, self.event)
        if self.denoise:
            geometry = public_geometry(points.X, self.radius, self.metric)
            posterior = count_posterior(counts, noise, *geometry)
            draws = size_draws(posterior, n_classes, semivalue, joins)
            utility = threshold_utility(*posterior, n_classes).mean(axis=0)
            return *value_sizes(posterior, draws), utility, draws
        # The noise is drawn again, from a seed that is fixed and not secret.
        again = np.random.default_rng(0).standard_normal((_N_ERROR_DRAWS, *counts.shape))
        redrawn = np.moveaxis(counts + noise * again, 1, 0)
        extra = 1 if joins else 0

        def sizes(counts):
            same, other = np.maximum(np.rint(counts), 0).astype(np.int64)
            value_same = neighbour_values(np.maximum(same + extra, 1), other, n_classes, semivalue)
            value_other = neighbour_values(same, np.maximum(other + extra, 1), n_classes, semivalue)
            return value_same[0], value_other[1], threshold_utility(same, other, n_classes)

        return *sizes(counts), np.stack(sizes(redrawn)[:2])

    def for_curator(self, found, y, values, weights, draws, n_labels, by_player):
        """`baseline_` and `values_error_`: of each player, like its value."""
        half, draws = np.full(len(y), 0.5), draws[:, :: draws.shape[1] // _N_ERROR_DRAWS]
        baseline = by_player(found.sum(by_label(y, half, -half, n_labels) * weights))
        squares = [
            by_player(found.sum(by_label(y, *sizes, n_labels) * weights) - values) ** 2
            for sizes in np.moveaxis(draws, 1, 0)
        ]
        return {"baseline_": baseline, "values_error_": np.sqrt(np.mean(squares, axis=0))}


def noisy_counts(
    problem, radius, metric, *, auto_radius, epsilon, delta, relation, max_contributions,
    sampling_rate, denoise, ledger, noise_random_state,
):  # fmt: skip
    """The release, with noise for the largest number of balls that can contain a row."""
    points = problem.splits[0].points.X
    with one_blas_thread():  # idle BLAS threads would spin, and take cores from the tiles
        bound = overlap_bound(points, radius, metric)
        if max_contributions == "auto":
            max_contributions = most_balls(points, radius, metric)
    cap = None
    if max_contributions is not None and max_contributions < bound:
        cap = max_contributions
    event = ball_event(epsilon, delta, cap or bound, relation, sampling_rate)
    report = ball_report(
        event, delta, auto_radius=auto_radius, groups=problem.groups is not None,
        noise_random_state=noise_random_state,
    )  # fmt: skip
    return NoisyCounts(
        event, ledger, "TKNNShapleyValuer: counts in balls", noise_random_state, report,
        radius=radius, metric=metric, denoise=denoise, cap=cap,
    )  # fmt: skip


# Number of balls that contain a row -------------------------------------------------------------


def public_geometry(X_val, radius, metric, max_landmarks=_MAX_LANDMARKS):
    """Distances (n_validation, n_landmarks) for which ``exp(-d)`` is a covariance.

    Returns them (angles for "cosine"), the positions of the landmarks among the validation points,
    and the radius in the same unit.
    """
    n = len(X_val)
    landmarks = np.unique(np.linspace(0, n - 1, min(n, max_landmarks)).astype(np.int64))
    distances, reach = _distances(X_val, landmarks, radius, metric)
    return distances.T, landmarks, reach


def _distances(X_val, rows, radius, metric):
    """Distances of some points to all, and the radius; both are angles for "cosine"."""
    X_val = _centred(X_val) if metric == "euclidean" else X_val.astype(np.float64)
    distances = pairwise_distances(X_val[rows], X_val, metric=metric)
    if metric != "cosine":
        return distances, float(radius)
    return np.arccos(np.clip(1 - distances, -1, 1)), float(np.arccos(np.clip(1 - radius, -1, 1)))


def _centred(X_val):
    """Validation points minus their mean, for products with less rounding."""
    return X_val - X_val.mean(axis=0, dtype=np.float64)


def overlap_bound(X_val, radius, metric):
    """Bound of the number of balls that can contain one row, whatever the row.

    By the triangle inequality, which angles satisfy too, it is the largest number of centres within
    twice the radius of one of them. For a callable metric it is the number of points.

    >>> overlap_bound(np.array([[0.0], [1.0], [5.0]]), radius=0.5, metric="euclidean")
    2
    """
    n = len(X_val)
    # A row of zeros has cosine distance 1 from all rows, also from zeros: in all balls or in none.
    if metric not in TRUE_METRICS or (metric == "cosine" and radius >= 1):
        return n
    most, step, relative = 1, max(1, 2**22 // n), (8 + X_val.shape[1]) * np.finfo(np.float64).eps
    squared, angle, reach = np.zeros(n), 0.0, float(radius)  # rounding of squares, of angles
    if metric == "euclidean":
        squared = relative * np.vecdot(_centred(X_val), _centred(X_val))
    elif metric == "cosine":
        closed = (
            1e-12 + 2 * relative
        )  # balls are closed, and contain distances that round to the radius
        angle, reach = np.sqrt(2 * closed), np.arccos(max(1 - radius - closed, -1))
    for start in range(0, n, step):
        part = slice(start, start + step)
        distances = _distances(X_val, part, radius, metric)[0]
        within = 2 * reach * (1 + 1e-6) + angle
        near = distances**2 <= within**2 + squared[part, None] + squared
        most = max(most, int(near.sum(axis=1).max()))
    return most


def most_balls(X_val, radius, metric):
    """Largest number of balls that contain one of their centres.

    >>> most_balls(np.array([[0.0], [1.0], [1.5], [2.0]]), radius=0.6, metric="euclidean")
    3
    """
    space = make_space(X_val, metric, np.zeros(len(X_val), dtype=np.int64), 1)
    return max(1, int(balls(get_engine("auto"), space, X_val, radius).counts.max()))


def _pair_distances(X, X_val, metric):
    """Distances in float64, such that those of a row do not depend on the other rows.

    In a matrix product the rounding of a row may depend on its position, and rounding breaks ties.
    """
    X = X.astype(np.float64)
    metric = "euclidean" if metric == "l2" else metric
    if issparse(X) or metric not in ("cosine", "euclidean"):
        return pairwise_distances(X, X_val, metric=metric)
    return np.nan_to_num(cdist(X, X_val, metric), nan=1.0)  # cosine distances of rows of zeros


def capped_balls(X, X_val, radius, metric, cap):
    """Yield slices of rows, and masks of the balls of at most ``cap`` nearest points of each row.

    They depend on the distances of the row to public points; of tied points the first is nearer.
    """
    X_val = X_val.astype(np.float64)
    closed = radius + 1e-12 if metric == "cosine" else radius * (1 + 1e-12)
    step = max(1, int(get_config()["working_memory"] * 2**20 // (64 * len(X_val))))
    for start in range(0, len(X), step):
        part = slice(start, min(start + step, len(X)))
        distances = _pair_distances(X[part], X_val, metric)
        inside = distances <= closed
        distances[~inside] = np.inf
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :cap]
        chosen = np.zeros_like(inside)
        np.put_along_axis(chosen, nearest, True, axis=1)
        yield part, chosen & inside


class CappedBalls:
    """As `skvalue.neighbors.balls`, where a row is in at most ``cap`` balls, the nearest ones.

    The engine finds all balls; distances are sorted only for rows that are in more than ``cap``.
    """

    def __init__(self, engine, space, points, radius, cap, n_jobs=1):
        self._found = balls(engine, space, points, radius, n_jobs=n_jobs)
        n_balls = self._found.sum(np.ones((space.n_classes, len(points))))
        self._rows = np.flatnonzero(n_balls > cap + 0.5)
        self._engine, self._codes = engine, space.codes[self._rows]
        self._nearest = space.X[self._rows], points, radius, space.metric, cap

    @cached_property
    def counts(self):
        counts = self._found.counts.copy()
        if len(self._rows):
            X, points, radius, metric, _ = self._nearest
            space = make_space(X, metric, self._codes, len(counts))
            counts -= balls(self._engine, space, points, radius).counts
            for part, inside in capped_balls(*self._nearest):
                for code in range(len(counts)):
                    counts[code] += inside[self._codes[part] == code].sum(axis=0)
        return counts

    def sum(self, weights):
        values = self._found.sum(weights)
        for part, inside in capped_balls(*self._nearest):
            capped = np.einsum("iv,iv->i", inside, weights[self._codes[part]])
            values[self._rows[part]] = capped
        return values


# Noise ------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def ball_event(epsilon, delta, contributions, relation="add_remove", sampling_rate=None):
    """The event of a release of counts, with noise calibrated to epsilon and delta.

    A row adds one to one of two counts of at most ``contributions`` balls. With ``sampling_rate``,
    each ball has a fresh secret sample of the rows, and as many sampled events are composed.
    """
    if sampling_rate is None:
        return calibrate_counts(epsilon, delta, contributions, relation)
    if relation == "replace":
        raise ValueError(
            "relation must be 'add_remove' or 'null' with sampling_rate: what a secret sample "
            "gives under 'replace' is not known for discrete noise. Got 'replace'."
        )

    def event(scale):
        counts = DiscreteGaussianEvent(scale, relation=relation)
        return SelfComposedEvent(PoissonSampledEvent(counts, sampling_rate), contributions)

    return calibrate(event, epsilon, delta, tol=0.01)


def sampled_counts(counts, rate, noise_random_state=None):
    """Number of the rows counted that are in a sample, which is fresh and secret for each count.

    Each row is in a sample with probability ``rate``. ``noise_random_state`` voids the guarantee.
    """
    places = counts.ravel()
    kept, ends = np.zeros(len(places), dtype=np.int64), np.cumsum(places)
    start = 0
    while start < len(places):
        done = ends[start] - places[start]
        stop = max(int(np.searchsorted(ends, done + _MAX_SAMPLE, side="right")), start + 1)
        some = places[start:stop]
        if some.any():
            seed = None if noise_random_state is None else noise_random_state + 1 + start
            sample = poisson_sample(int(some.sum()), rate, noise_random_state=seed)
            place = np.repeat(np.arange(len(some)), some)
            kept[start:stop] = np.bincount(place[sample], minlength=len(some))
        start = stop
    return kept.reshape(counts.shape)


def release_counts(counts, event, *, ledger=None, label="", noise_random_state=None):
    """Charge the ledger, then return the counts (2, n_validation) with the noise of `ball_event`.

    Noisy counts are integers; those of samples are divided by the rate. ``noise_random_state``
    voids the guarantee.
    """
    if not isinstance(event, SelfComposedEvent):
        return add_noise(
            counts, event, ledger=ledger, label=label, noise_random_state=noise_random_state
        )
    if ledger is not None:
        ledger.charge(event, label=label)
    sampled, rate = event.event, event.event.probability
    kept = sampled_counts(counts, rate, noise_random_state)
    return add_noise(kept, sampled.event, noise_random_state=noise_random_state) / rate


def count_noise(noisy, event):
    """Standard deviation of the noise added by `release_counts`."""
    if not isinstance(event, SelfComposedEvent):
        return event.scale
    sampled, rate = event.event, event.event.probability
    # The sample adds variance n (1 - rate) / rate to a count of n rows; n is the mean noisy count.
    sampling = max(noisy.mean(), 0.0) * (1 - rate) / rate
    return float(np.sqrt((sampled.event.scale / rate) ** 2 + sampling))


def ball_report(event, delta, *, auto_radius=False, groups=False, noise_random_state=None):
    """The report of a private fit; with ``auto_radius``, `fit` chose it by the public points."""
    protects = (
        "whether a row is in the data and what it contains, in counts_, in the values of all other "
        "rows, and in the values of rows scored later"
    )
    not_protected = [
        "the validation points X_val and y_val, which are public",
        "a row from its own value, which is for its owner (values_for)",
        "rows from a reader of all of values_, which is for the curator",
        "running times and error messages",
    ]
    if event.relation != "add_remove":
        not_protected.insert(1, "the number of rows")
    if groups:
        not_protected.append("groups as wholes: the unit is one row of a group")
    report = make_report(
        event,
        delta,
        notion="joint",
        unit="row",
        protects=protects,
        against="all other owners together, and every reader of what is released",
        not_protected=not_protected,
        assumptions=(
            "no row to value is also a validation point",
            f"{'' if auto_radius else 'radius, '}metric and all other parameters were chosen "
            "without looking at the rows",
            "so was the preparation of the columns (scaling, selection, embeddings)",
            "other releases on the same rows are accounted for together with this one (Ledger)",
        ),
        noise_random_state=noise_random_state,
    )
    # The ceiling holds for what is protected; the value of a row does not protect that row.
    return replace(report, detection_ceiling=None)


def public_baseline(
    X, y, X_val, y_val, radius=0.5, metric="cosine", *, sample_weight_val=None, n_jobs=None
):
    """Values that use no private statistic: the baseline that private values must improve on.

    The value of a row is a mean over validation points: 1/2 for a point that has its label, -1/2
    for any other point, and 0 if the row is not in the ball of the point. The private values of
    `TKNNShapleyValuer` tend to these as epsilon tends to 0. They release nothing: the value of a
    row does not depend on the other rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        Their labels.
    X_val : array-like of shape (n_validation, n_features)
        Public validation points.
    y_val : array-like of shape (n_validation,)
        Their labels.
    radius : float, default=0.5
        Radius of the balls.
    metric : str or callable, default="cosine"
        The metric, as in `TKNNShapleyValuer`.
    sample_weight_val : array-like of shape (n_validation,), default=None
        Weights of the validation points.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    values : ndarray of shape (n_samples,)
        The values.

    Raises
    ------
    ValueError
        If the arrays do not fit together.

    Examples
    --------
    >>> public_baseline([[1.0], [1.2], [5.0]], [0, 1, 0], [[1.1]], [0], 0.5, "euclidean").tolist()
    [0.5, -0.5, 0.0]
    """
    X, _ = check_X_y(X, np.zeros(len(X)), order="C", dtype=[np.float64, np.float32])
    X_val, _ = check_X_y(X_val, np.zeros(len(X_val)), order="C", dtype=X.dtype)
    if X_val.shape[1] != X.shape[1]:
        raise ValueError(f"X_val must have {X.shape[1]} columns, as X. Got {X_val.shape[1]}.")
    classes, codes_val = np.unique(column_or_1d(y_val), return_inverse=True)
    codes = codes_or_other(y, classes)
    for name, labels, rows in (("y", codes, X), ("y_val", codes_val, X_val)):
        if len(labels) != len(rows):
            raise ValueError(f"{name} must have {len(rows)} entries. Got {len(labels)}.")
    weights = check_validation_weights(sample_weight_val, len(X_val))
    space = make_space(X, metric, codes, len(classes) + 1)
    signs = by_label(
        codes_val, np.full(len(X_val), 0.5), np.full(len(X_val), -0.5), len(classes) + 1
    )
    return balls(get_engine("auto"), space, X_val, radius, n_jobs=n_jobs).sum(signs * weights)
