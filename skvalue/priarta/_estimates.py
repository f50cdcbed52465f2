"""The buyer's side in arrays: from noisy moments to estimates, scores and their uncertainty."""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np

from ._mechanism import COUNT_WEIGHT, calibrated_scale, noise_levels, statistic_sensitivity
from .metrics import diversity_relevance, factored_wasserstein, psd_factor, symmetric_kl

__all__ = ["METRICS", "Buyer", "Estimates", "choose_weight", "estimate", "simulate_scores"]

DEFAULT_WEIGHT = 0.6
WEIGHTS = (0.3, 0.45, 0.6, 0.85, 1.2)
METRICS = ("wasserstein", "kl", "diversity", "relevance")
_RIDGE = 0.01  # of the buyer's mean variance, for the divergence of matrices without full rank


class Buyer:
    """The buyer's moments around its centre, and its metric.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, d)
        The buyer's centred and clipped rows.
    max_norm : float or None
        The radius that rows were clipped to.
    metric : {"wasserstein", "kl", "diversity", "relevance"}
        What is measured.
    """

    def __init__(self, rows, max_norm, metric):
        self.max_norm = max_norm
        self.n_samples = len(rows)
        self.mean = rows.mean(axis=0)
        self.covariance = np.atleast_2d(np.cov(rows.T))
        self.factor = psd_factor(self.covariance)
        self.metric = metric
        self.ridge = _RIDGE * np.trace(self.covariance) / len(self.mean)

    def score(self, mean, factor):
        """Scores of stacked moments.

        Parameters
        ----------
        mean : ndarray of shape (k, d)
            Means.
        factor : ndarray of shape (k, d, d)
            Factors of covariances.

        Returns
        -------
        scores : ndarray of shape (k,)
            By the metric.
        """
        if self.metric == "wasserstein":
            return factored_wasserstein(self.mean, self.factor, mean, factor)
        covariance = factor @ np.swapaxes(factor, -1, -2)
        if self.metric == "kl":
            return symmetric_kl(self.mean, self.covariance, mean, covariance, ridge=self.ridge)
        both = diversity_relevance(self.covariance, covariance)
        return both[self.metric == "relevance"]


class Estimates:
    """Moments of several sellers.

    Parameters
    ----------
    mean : ndarray of shape (k, d)
        Means around the centre.
    factor : ndarray of shape (k, d, d)
        Factors of covariances.
    """

    def __init__(self, mean, factor):
        self.mean, self.factor = mean, factor

    @property
    def covariance(self):
        """Covariances, (k, d, d)."""
        return self.factor @ np.swapaxes(self.factor, -1, -2)


def shrink_to(target, noisy, variance, n_free):
    """Positive-part James-Stein estimate of stacked vectors, toward a target.

    Where the distance from the target is no larger than noise makes it, nothing is left of it.

    Parameters
    ----------
    target : ndarray of shape (p,)
        Where to shrink to.
    noisy : ndarray of shape (k, p)
        Vectors with isotropic noise.
    variance : ndarray of shape (k,)
        Variance of the noise on an entry.
    n_free : int
        Number of free entries; below 3 nothing is shrunk.

    Returns
    -------
    estimate : ndarray of shape (k, p)
        The estimates.
    """
    gap = noisy - target
    size = (gap**2).sum(axis=1)
    noise = max(n_free - 2, 0) * variance
    kept = 1 - np.divide(noise, size, out=np.ones_like(size), where=size > noise)
    return np.where((noise > 0)[:, None], target + kept[:, None] * gap, noisy)


def estimate(buyer, means, covariances, mean_noise, moment_noise, shrink):
    """Moments of sellers, from unbiased but noisy ones.

    Parameters
    ----------
    buyer : Buyer
        Toward whose moments they are shrunk, and whose radius bounds them.
    means : ndarray of shape (k, d)
        Noisy means.
    covariances : ndarray of shape (k, d, d)
        Noisy covariances.
    mean_noise, moment_noise : ndarray of shape (k,)
        Standard deviations of the noise, as in a `Summary`.
    shrink : bool
        Whether to shrink.

    Returns
    -------
    estimates : Estimates
        With covariances projected to the cone of positive semidefinite ones, and moments that rows
        within the radius can have.
    """
    k, d = means.shape
    if shrink and k:
        means = shrink_to(buyer.mean, means, mean_noise**2, d)
        # Noise of the second moment, and of the square of the mean that is taken off.
        squares = (means**2).sum(axis=1)
        variance = moment_noise**2 + 2 * mean_noise**4 + 4 * mean_noise**2 * squares / d
        flat = shrink_to(
            buyer.covariance.ravel(), covariances.reshape(k, -1), variance, d * (d + 1) // 2
        )
        covariances = flat.reshape(k, d, d)
    factor = psd_factor(covariances)
    if buyer.max_norm is not None:
        # Two rows at opposite ends have twice the squared radius, by the unbiased formula.
        means = means * _shorten(means, buyer.max_norm, 1)[:, None]
        factor = factor * _shorten(factor, 2**0.5 * buyer.max_norm, (1, 2))[:, None, None]
    return Estimates(means, factor)


def _shorten(array, radius, axis):
    """Factors that bring Euclidean norms down to a radius."""
    return radius / np.maximum(np.sqrt((array**2).sum(axis=axis)), radius)


def estimate_summaries(buyer, summaries, shrink):
    """`estimate` of summaries.

    Parameters
    ----------
    buyer : Buyer
        The buyer.
    summaries : list of Summary
        The sellers'.
    shrink : bool
        Whether to shrink; the published mechanism is taken as it was published.

    Returns
    -------
    estimates : Estimates
        Their moments.
    """
    d = len(buyer.mean)
    means = np.array([summary.mean for summary in summaries]).reshape(-1, d)
    packed = np.array([summary.moment for summary in summaries]).reshape(-1, d * (d + 1) // 2)
    covariances = packed[:, _places(d)].reshape(-1, d, d)
    covariances -= _outer(means)
    rest = np.array([(summary.bias, summary.n_samples) for summary in summaries]).reshape(-1, 2)
    covariances[:, range(d), range(d)] += rest[:, :1]
    covariances *= (rest[:, 1] / (rest[:, 1] - 1))[:, None, None]
    noise = np.array([noise_of(summary) for summary in summaries]).reshape(-1, 2)
    return estimate(buyer, means, covariances, noise[:, 0], noise[:, 1], shrink)


@lru_cache(maxsize=4)
def _places(d):
    """Where the entries of a full matrix are in its packed lower triangle."""
    full = np.zeros((d, d), dtype=np.intp)
    full[np.tril_indices(d)] = np.arange(d * (d + 1) // 2)
    return np.maximum(full, full.T).ravel()


def noise_of(summary):
    """Noise levels by which a summary's moments are shrunk."""
    if summary.mechanism == "paper":
        return 0.0, 0.0
    return summary.mean_noise, summary.moment_noise


def simulate_scores(buyer, mean, factor, summary, n_effective, shrink, n_draws, rng):
    """Scores of releases like a summary, of rows from a Gaussian distribution.

    Parameters
    ----------
    buyer : Buyer
        The buyer.
    mean, factor : ndarray of shape (d,), (d, d)
        The distribution.
    summary : Summary
        Whose mechanism and noise are taken.
    n_effective : float
        Number of rows, for the sampling error of the moments.
    shrink : bool
        As in `estimate`.
    n_draws : int
        How many releases.
    rng : numpy.random.Generator
        Of the draws.

    Returns
    -------
    scores : ndarray of shape (n_draws,)
        Their scores.
    """
    d = len(mean)
    means = mean + rng.standard_normal((n_draws, d)) @ factor.T / np.sqrt(n_effective)
    # Wishart matrices, by their normal approximation.
    spread = np.eye(d) + _symmetric(rng, n_draws, d) * np.sqrt(2 / n_effective)
    covariances = factor @ spread @ factor.T
    if summary.relation == "add_remove":
        wrong = rng.standard_normal(n_draws) * summary.noise_scale / COUNT_WEIGHT
        by = 1 + wrong / summary.n_samples
        covariances = by[:, None, None] * covariances
        covariances += (by - by**2)[:, None, None] * _outer(means)
        means = by[:, None] * means
    noisy = means + summary.mean_noise * rng.standard_normal((n_draws, d))
    # The noise of the mean is in its square too, which is taken off the second moment.
    covariances = covariances + _outer(means) - _outer(noisy)
    covariances += summary.moment_noise * _symmetric(rng, n_draws, d)
    if summary.mechanism != "paper":
        covariances += summary.mean_noise**2 * np.eye(d)
    means = noisy
    if summary.mechanism == "paper":
        covariances += (summary.noise_scale * summary.max_norm) ** 2 * np.eye(d)
    noise = np.full((2, n_draws), np.array(noise_of(summary))[:, None])
    drawn = estimate(buyer, means, covariances, *noise, shrink)
    return buyer.score(drawn.mean, drawn.factor)


def choose_weight(buyer, rows, epsilon, delta, relation, shrink, seed):
    """Weight of the mean in a release, chosen on the buyer's rows alone.

    Sellers are made up of them: all rows, and either half along their main direction. The weight is
    taken whose noise makes the least mean squared error of their scores.

    Parameters
    ----------
    buyer : Buyer
        The buyer.
    rows : ndarray of shape (n_samples, d)
        The buyer's centred and clipped rows.
    epsilon, delta : float
        The guarantee to plan for.
    relation : {"null", "add_remove", "replace"}
        Its relation.
    shrink : bool
        As in `estimate`.
    seed : int
        Of the simulation, the same for each weight.

    Returns
    -------
    weight : float
        One of `WEIGHTS`.
    """
    n, d = rows.shape
    along = rows @ np.linalg.eigh(buyer.covariance)[1][:, -1]
    upper = along > np.median(along)
    parts = [part for part in (rows, rows[upper], rows[~upper]) if len(part) > d]
    moments = [(part.mean(axis=0), psd_factor(np.atleast_2d(np.cov(part.T)))) for part in parts]
    n_draws = max(8, min(64, 100_000 // d**2))
    errors = []
    for weight in WEIGHTS:
        sensitivity = statistic_sensitivity(weight, relation)
        scale = calibrated_scale(epsilon, delta, sensitivity, relation, None)
        levels = noise_levels("central", scale, weight, n, d)
        plan = SimpleNamespace(
            mechanism="central",
            relation=relation,
            n_samples=n,
            noise_scale=scale,
            mean_noise=levels[0] * buyer.max_norm,
            moment_noise=levels[1] * buyer.max_norm**2,
        )
        rng = np.random.default_rng(seed)
        squares = [
            (
                simulate_scores(buyer, mean, factor, plan, 1e12, shrink, n_draws, rng)
                - buyer.score(mean[None], factor[None])
            )
            ** 2
            for mean, factor in moments
        ]
        errors.append(np.mean(squares) if squares else 0.0)
    best = int(np.argmin(errors))
    return WEIGHTS[best] if errors[best] < errors[WEIGHTS.index(DEFAULT_WEIGHT)] else DEFAULT_WEIGHT


def _outer(rows):
    return rows[:, :, None] * rows[:, None, :]


def _symmetric(rng, n_draws, d):
    """Random symmetric matrices of variance 1 on the diagonal and 1/2 off it."""
    square = rng.standard_normal((n_draws, d, d))
    return (square + np.swapaxes(square, 1, 2)) / 2
