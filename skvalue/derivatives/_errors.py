"""Errors of values of private gradients: fits are simulated with other noise."""

from dataclasses import dataclass

import numpy as np

from .._utils.parallel import ordered_map
from ._players import GradientModel, gradients_at
from ._walk import marginals_along


@dataclass(frozen=True, eq=False)
class AveragedReleases:
    """What a private fit with averaged releases made public: its errors follow.

    Parameters
    ----------
    means : ndarray of shape (n_players, p)
        Means of the releases of each player.
    noise_std : ndarray of shape (n_players,)
        Standard deviations of the noise of one release of each player.
    weights : ndarray of shape (n_counted,)
        Weights of the newest release in the permutations that count, as
        `newest_weights`.
    skip : int
        Number of permutations before those that count.
    step_weights : ndarray of shape (n_players,)
        Factors of the learning rate in the steps of each player.
    """

    means: np.ndarray
    noise_std: np.ndarray
    weights: np.ndarray
    skip: int
    step_weights: np.ndarray


def denoised_means(means, variances, start):
    """Gradients (n, p) of players, estimated from means with noise of known variances.

    ``variances`` (n,) are per coordinate. Empirical Bayes: the mean over players is
    shrunk towards ``start``, the mean gradient of public rows, by the positive part of
    James and Stein's factor; the players are then shrunk towards it.
    """
    n, p = means.shape
    tiny = np.finfo(float).tiny
    center = means.mean(axis=0)
    residuals = means - center
    shift = center - start
    shrinkage = max(p - 2, 0) * variances.sum() / n**2 / max(shift @ shift, tiny)
    shift_factor = max(0.0, 1 - shrinkage)

    # Variance between players, of which the noise is subtracted.
    between = (residuals**2).sum() / max((n - 1) * p, 1) - variances.mean()
    between = max(between, 0.0)
    factors = between / np.maximum(between + variances, tiny)
    return start + shift_factor * shift + factors[:, None] * residuals


@dataclass(frozen=True, eq=False)
class HalvedMoments:
    """Running means and variances of samples (n,), of the even and the odd ones.

    Of each half: the number of samples, their mean, and the sum of their squared
    distances from the mean. The next sample is one of the first half.
    """

    counts: tuple = (0, 0)
    means: tuple = (0.0, 0.0)
    squares: tuple = (0.0, 0.0)

    @property
    def count(self):
        """Number of samples."""
        return sum(self.counts)

    def plus(self, sample):
        """The moments with one more sample."""
        count, other_count = self.counts
        mean, other_mean = self.means
        squares, other_squares = self.squares
        residual = sample - mean
        mean = mean + residual / (count + 1)
        squares = squares + residual * (sample - mean)

        # The halves swap places, so that the next sample is one of the other.
        return HalvedMoments(
            counts=(other_count, count + 1),
            means=(other_mean, mean),
            squares=(other_squares, squares),
        )

    def mean(self):
        """Mean (n,) of all samples."""
        count, other_count = self.counts
        mean, other_mean = self.means
        return (count * mean + other_count * other_mean) / self.count

    def variances(self):
        """Variances (n,) of all samples; infinite for one."""
        if self.count < 2:
            return np.full(np.shape(self.means[-1]), np.inf)
        between = (self.means[0] - self.means[1]) ** 2
        squares = sum(self.squares) + between * np.prod(self.counts) / self.count
        return squares / (self.count - 1)

    def of_halves(self):
        """Variances (2, n) of the halves."""
        first, second = self.squares
        n_first, n_second = self.counts
        return np.array([first / (n_first - 1), second / (n_second - 1)])


def pooled_variances(moments, kinds):
    """Variances (n,) of samples (n,), shrunk to the mean over a kind of entries.

    The weight of an entry's own variance is the fraction of the variance between
    entries that two halves of the samples agree on (none of it: all entries of the kind
    have the same variance).
    """
    variances = moments.variances()
    if moments.count < 4:
        return variances
    halves = moments.of_halves()
    for kind in np.unique(kinds):
        places = np.flatnonzero(kinds == kind)
        if len(places) < 3:
            continue
        of_kind = variances[places]
        mean = of_kind.mean()
        between = of_kind.var(ddof=1)
        agreed = np.cov(halves[:, places])[0, 1]
        weight = np.clip(agreed / between, 0.0, 1.0) if between > 0 else 0.0
        variances[places] = mean + weight * (of_kind - mean)
    return variances


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit that is simulated: its model, weights (n_players,), rate and releases.

    The model has the validation points, and need not have the players.
    """

    model: GradientModel
    weights: np.ndarray
    rate: float
    released: AveragedReleases


def _redrawn_values(fit, centers, rng):
    """Values (n_players,) of a fit with other permutations and other noise.

    ``centers`` (n_players, p) are gradients that do not vary over permutations.
    """
    released = fit.released
    std = released.noise_std[:, None]

    # The sum of the noise of all permutations so far; that of the skipped ones is drawn
    # at once.
    total_noise = std * np.sqrt(released.skip) * rng.standard_normal(centers.shape)
    rates = fit.rate * released.step_weights[:, None]
    values = np.zeros(len(centers))
    for t, weight in enumerate(released.weights, released.skip):
        noise = std * rng.standard_normal(centers.shape)
        mean_noise = (1 - weight) * total_noise / max(t, 1)
        steps = centers + weight * noise + mean_noise
        total_noise += noise
        order = rng.permutation(len(centers))
        theta = fit.model.start(rng)
        values += marginals_along(fit.model, fit.weights, order, theta, -rates * steps)
    return values / len(released.weights)


def simulated_variances(
    model, weights, rate, released, point_weights, n_draws, n_jobs=None
):
    """Variances (n_players,) of values over permutations and noise, from simulations.

    ``model`` has public rows as its players, of the weights ``point_weights``.
    """
    theta = model.start(np.random.default_rng(0))
    start = point_weights @ gradients_at(model, theta)
    n_releases = released.skip + len(released.weights)
    variances = released.noise_std**2 / n_releases
    centers = denoised_means(released.means, variances, start)

    fit = _Fit(model, weights, rate, released)
    seeds = np.random.SeedSequence(0).spawn(n_draws)
    tasks = [(fit, centers, np.random.default_rng(seed)) for seed in seeds]
    moments = HalvedMoments()
    for values in ordered_map(_redrawn_values, tasks, n_jobs, shared=True):
        moments = moments.plus(values)
    return pooled_variances(moments, released.noise_std)
