"""Private counts in balls: how many one row can be in, the noise, and values after the noise."""

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
from ._denoising import count_posterior, value_sizes
from ._game import by_label, neighbour_values, threshold_utility

# "l2" is "euclidean" as scikit-learn rounds it: far from the origin no triangle inequality holds.
TRUE_METRICS = {"cityblock", "cosine", "euclidean", "l1", "manhattan"}
_MAX_SAMPLE = 2**21  # rows sampled at a time, unless a ball alone holds more
_MAX_LANDMARKS = 800  # of the smoothing; more validation points than that are approximated


@dataclass(frozen=True, eq=False)
class NoisyCounts(Release):
    """Noisy counts in balls, and the mean of the game's values under what they say."""

    radius: float = 0.0
    metric: object = "cosine"
    denoise: bool = True
    cap: int | None = None  # in how many balls a row counts; None: in all that it is in

    def __call__(self, counts):
        """Charge the ledger, and add noise."""
        return release_counts(
            counts, self.event, ledger=self.ledger, label=self.label,
            noise_random_state=self.noise_random_state,
        )  # fmt: skip

    def game(self, counts, points, n_classes, semivalue, joins=False):
        """`game_at_points` of noisy counts: smoothed and shrunk, or rounded and cut off at zero."""
        if self.denoise:
            geometry = public_geometry(points.X, self.radius, self.metric)
            noise = count_noise(counts, self.event)
            posterior = count_posterior(counts, noise, *geometry, points.y, n_classes)
            agree, differ = value_sizes(posterior, n_classes, semivalue, joins)
            utility = threshold_utility(posterior.same, posterior.other, n_classes).mean(axis=0)
            return agree, differ, utility
        same, other = np.maximum(np.rint(counts), 0).astype(np.int64)
        extra = 1 if joins else 0
        agree, _ = neighbour_values(np.maximum(same + extra, 1), other, n_classes, semivalue)
        _, differ = neighbour_values(same, np.maximum(other + extra, 1), n_classes, semivalue)
        return agree, differ, threshold_utility(same, other, n_classes)


def noisy_counts(
    problem, radius, metric, *, epsilon, delta, relation, max_contributions, sampling_rate, denoise,
    ledger, noise_random_state,
):  # fmt: skip
    """Noise for as many balls as any row can be in: a bound from the validation points alone."""
    with one_blas_thread():  # idle ones would spin, and take cores from the tiles
        bound = overlap_bound(problem.splits[0].points.X, radius, metric)
    cap = None
    if max_contributions is not None and max_contributions < bound:
        cap = max_contributions
    event = ball_event(epsilon, delta, cap or bound, relation, sampling_rate)
    report = ball_report(
        event, delta, groups=problem.groups is not None, noise_random_state=noise_random_state
    )
    return NoisyCounts(
        event, ledger, "TKNNShapleyValuer: counts in balls", noise_random_state, report,
        radius=radius, metric=metric, denoise=denoise, cap=cap,
    )  # fmt: skip


# How many balls a row is in ---------------------------------------------------------------------


def public_geometry(X_val, radius, metric, max_landmarks=_MAX_LANDMARKS):
    """Distances between validation points in a geometry where ``exp(-d)`` is a covariance.

    Parameters
    ----------
    X_val : ndarray of shape (n_validation, n_features)
        Validation points.
    radius : float
        Radius of the balls, in units of the metric.
    metric : str or callable
        The metric; for "cosine" distances are angles.
    max_landmarks : int, default=800
        Largest number of points to which distances are computed.

    Returns
    -------
    distances : ndarray of shape (n_validation, n_landmarks)
        The distances.
    landmarks : ndarray of shape (n_landmarks,)
        To which points.
    reach : float
        The radius, as such a distance.
    """
    n = len(X_val)
    landmarks = np.unique(np.linspace(0, n - 1, min(n, max_landmarks)).astype(np.int64))
    distances, reach = _distances(X_val, landmarks, radius, metric)
    return distances.T, landmarks, reach


def _distances(X_val, rows, radius, metric):
    """Distances of some points to all, and the radius; angles for cosines."""
    X_val = _centred(X_val) if metric == "euclidean" else X_val.astype(np.float64)
    distances = pairwise_distances(X_val[rows], X_val, metric=metric)
    if metric != "cosine":
        return distances, float(radius)
    return np.arccos(np.clip(1 - distances, -1, 1)), float(np.arccos(np.clip(1 - radius, -1, 1)))


def _centred(X_val):
    """Validation points around their mean, where a product rounds least."""
    return X_val - X_val.mean(axis=0, dtype=np.float64)


def overlap_bound(X_val, radius, metric):
    """Largest number of balls that any row whatever can be in.

    The centres of all balls that hold a row are within twice the radius of each other, by the
    triangle inequality, which cosine distances obey as angles. So no row is in more balls than the
    largest number of centres within twice the radius of one of them. It depends on the validation
    points alone.

    Parameters
    ----------
    X_val : ndarray of shape (n_validation, n_features)
        Centres of the balls.
    radius : float
        Their radius.
    metric : str or callable
        The metric; of a callable nothing is known, and the bound is the number of points.

    Returns
    -------
    bound : int
        At most the number of validation points.

    Examples
    --------
    >>> overlap_bound(np.array([[0.0], [1.0], [5.0]]), radius=0.5, metric="euclidean")
    2
    """
    n = len(X_val)
    # A row of zeros is at cosine distance 1 from everything, zeros too: in all balls or in none.
    if metric not in TRUE_METRICS or (metric == "cosine" and radius >= 1):
        return n
    most, step, relative = 1, max(1, 2**22 // n), (8 + X_val.shape[1]) * np.finfo(np.float64).eps
    squared, angle, reach = np.zeros(n), 0.0, float(radius)  # rounding of squares, of angles
    if metric == "euclidean":
        squared = relative * np.vecdot(_centred(X_val), _centred(X_val))
    elif metric == "cosine":
        closed = 1e-12 + 2 * relative  # balls are closed, and hold what rounds to their radius
        angle, reach = np.sqrt(2 * closed), np.arccos(max(1 - radius - closed, -1))
    for start in range(0, n, step):
        part = slice(start, start + step)
        distances = _distances(X_val, part, radius, metric)[0]
        within = 2 * reach * (1 + 1e-6) + angle
        near = distances**2 <= within**2 + squared[part, None] + squared
        most = max(most, int(near.sum(axis=1).max()))
    return most


def _pair_distances(X, X_val, metric):
    """Distances in float64, of which no row's depend on what other rows there are.

    A matrix product may round a row by its place among the others, and rounding decides ties.
    """
    X = X.astype(np.float64)
    metric = "euclidean" if metric == "l2" else metric
    if issparse(X) or metric not in ("cosine", "euclidean"):
        return pairwise_distances(X, X_val, metric=metric)
    return np.nan_to_num(cdist(X, X_val, metric), nan=1.0)  # cosines with a row of zeros


def capped_balls(X, X_val, radius, metric, cap):
    """Yield slices of rows and the balls each counts in: those of its nearest points, at most cap.

    A row chooses by its own distances to public points, the earlier of two at the same.
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
    """As `skvalue.neighbors.balls`, of which a row is in at most ``cap``: those nearest to it."""

    def __init__(self, space, points, radius, cap):
        self._space, self._balls = space, (space.X, points, radius, space.metric, cap)

    @cached_property
    def counts(self):
        counts = np.zeros((self._space.n_classes, len(self._balls[1])), dtype=np.int64)
        for part, inside in capped_balls(*self._balls):
            for code in range(len(counts)):
                counts[code] += inside[self._space.codes[part] == code].sum(axis=0)
        return counts

    def sum(self, weights):
        values = np.empty(len(self._space))
        for part, inside in capped_balls(*self._balls):
            values[part] = np.einsum("iv,iv->i", inside, weights[self._space.codes[part]])
        return values


# Noise ------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def ball_event(epsilon, delta, contributions, relation="add_remove", sampling_rate=None):
    """What a release of counts in balls is, with the noise that makes it private enough.

    A row adds one to one of the two counts of every ball that it is in.

    Parameters
    ----------
    epsilon, delta : float
        The privacy asked.
    contributions : int
        Largest number of balls that a row counts in.
    relation : {"null", "add_remove", "replace"}, default="add_remove"
        Neighbouring relation.
    sampling_rate : float, default=None
        Rate of a fresh secret sample of the rows for every ball; None counts all rows.

    Returns
    -------
    event : event
        A `DiscreteGaussianEvent`, or with samples as many of them composed as a row counts in.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or samples come with relation="replace".
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
    """How many of those counted are in a sample; every count has a fresh and secret one.

    Parameters
    ----------
    counts : ndarray of int
        Numbers of rows.
    rate : float
        Chance of every one of them to be in the sample.
    noise_random_state : int, default=None
        For tests only; voids the guarantee.

    Returns
    -------
    kept : ndarray of int
        Numbers of sampled rows, in the shape of counts.
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
            owner = np.repeat(np.arange(len(some)), some)
            kept[start:stop] = np.bincount(owner[sample], minlength=len(some))
        start = stop
    return kept.reshape(counts.shape)


def release_counts(clean, event, *, ledger=None, label="", noise_random_state=None):
    """Charge the ledger and release noisy counts.

    Parameters
    ----------
    clean : ndarray of shape (2, n_validation)
        Numbers of rows in every ball with and without the point's label.
    event : event
        Of `ball_event`.
    ledger : Ledger, default=None
        Charged before anything is drawn.
    label : str, default=""
        What the ledger shall say.
    noise_random_state : int, default=None
        For tests only; voids the guarantee.

    Returns
    -------
    noisy : ndarray of shape (2, n_validation)
        The counts with noise: integers, or with samples divided by their rate.
    """
    if not isinstance(event, SelfComposedEvent):
        return add_noise(
            clean, event, ledger=ledger, label=label, noise_random_state=noise_random_state
        )
    if ledger is not None:
        ledger.charge(event, label=label)
    sampled, rate = event.event, event.event.probability
    kept = sampled_counts(clean, rate, noise_random_state)
    return add_noise(kept, sampled.event, noise_random_state=noise_random_state) / rate


def count_noise(noisy, event):
    """Standard deviation of what `release_counts` added."""
    if not isinstance(event, SelfComposedEvent):
        return event.scale
    sampled, rate = event.event, event.event.probability
    # A count of n rows also strays by its sample, n (1 - rate) / rate; n is known as noisily.
    sampling = max(noisy.mean(), 0.0) * (1 - rate) / rate
    return float(np.sqrt((sampled.event.scale / rate) ** 2 + sampling))


def ball_report(event, delta, *, groups=False, noise_random_state=None):
    """The report of a private fit."""
    protects = (
        "whether a row is in the data and what it holds, in counts_, in the values of all other "
        "rows, and in the values of rows scored later"
    )
    not_protected = [
        "the validation points X_val and y_val, which are public",
        "a row from its own value, which is for its owner (values_for)",
        "rows from a reader of the whole of values_, which is for the curator",
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
            "radius, metric and all other parameters were chosen without looking at the rows",
            "so was whatever prepared the columns (scaling, selection, embeddings)",
            "other releases on the same rows are accounted for together with this one (Ledger)",
        ),
        noise_random_state=noise_random_state,
    )
    # The ceiling is about what is protected; a row's own value is not.
    return replace(report, detection_ceiling=None)


def public_baseline(
    X, y, X_val, y_val, radius=0.5, metric="cosine", *, sample_weight_val=None, n_jobs=None
):
    """Values that use no private statistic: what a private value has to be better than.

    In the mean over validation points, a row has 1/2 for every ball that it is in and whose point
    has its label, and -1/2 for every other ball that it is in. Private values of
    `TKNNShapleyValuer` tend to it as epsilon goes to 0. Nothing is released: a row's value depends
    on no other row.

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
