"""Errors of values of private gradients: fits are simulated with other noise."""

from dataclasses import dataclass, replace

import numpy as np

from .._utils.parallel import ordered_map, tiles
from ..privacy import clip_rows
from ..samplers import marginal_masks
from ._players import GradientModel, gradients_at, steps_in_memory
from ._walk import marginals_along

# A warning is based on so many changes of values by noise, of some players, or of few
# players in several draws.
_N_CHANGES = 40
_MAX_DRAWS = 8

_ENTRIES = 2**22  # of coalitions in memory as numbers


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
    clip : float
        Bound of the norm of gradients.
    """

    means: np.ndarray
    noise_std: np.ndarray
    weights: np.ndarray
    skip: int
    step_weights: np.ndarray
    clip: float


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


def simulated_squares(
    model, weights, rate, released, point_weights, n_draws, n_jobs=None
):
    """Mean squared errors (n_players,) of values, from simulated fits.

    The error of a fit is its distance from a fit without noise along all permutations:
    it contains the bias of the noise, where utilities are not linear in steps. The
    ``model`` has public rows as its players, of the weights ``point_weights``.
    """
    centers = _expected_gradients(model, released, point_weights)
    fit = _Fit(model, weights, rate, released)
    n_pairs = max(2, n_draws // 5)
    noisy = HalvedMoments()
    changes = HalvedMoments()
    for number, (values, without_noise) in enumerate(
        _simulated_pairs(fit, centers, n_draws, n_pairs, n_jobs)
    ):
        noisy = noisy.plus(values)
        if number < n_pairs:
            changes = changes.plus(values - without_noise)

    # Parties of one size have noise of one size in their steps.
    variances = pooled_variances(noisy, released.noise_std * released.step_weights)
    squared_bias = changes.mean() ** 2 - changes.variances() / n_pairs
    return variances + np.maximum(squared_bias, 0.0)


def noise_squares(model, weights, rate, released, point_weights):
    """Mean squares (n_players,) of what noise changes in values, roughly.

    They cost little: a few marginal contributions of some players, without noise, with
    noise, and with its negative. Half the difference of the latter two averages out
    over permutations as the noise does; the distance of their mean from the former is
    the bias of the noise, which does not.
    """
    centers = _expected_gradients(model, released, point_weights)
    n, p = centers.shape
    rng = np.random.default_rng(0)
    n_draws = int(np.clip(_N_CHANGES // n, 1, _MAX_DRAWS))
    players = np.sort(rng.choice(n, min(n, _N_CHANGES), replace=False))
    thetas = np.array([model.start(rng) for _ in range(n_draws)])
    masks = marginal_masks(rng, weights / n, players, n_draws)
    n_together = steps_in_memory(p) // (2 * n_draws)
    n_together = max(1, min(n_together, _ENTRIES // (2 * n_draws * n)))

    of_step, of_mean = _noise_of_steps(released)
    noise = rng.standard_normal((n_draws, n, p))
    noise *= of_step * released.noise_std[:, None]

    def contributions(sign):
        """Marginal contributions (n_draws, n_players) with the noise times a sign."""
        steps = sign * noise
        steps += centers
        steps *= -rate * released.step_weights[:, None]
        changes = np.empty((n_draws, len(players)))
        for tile in tiles(len(players), n_together):
            ends = thetas[:, None] + masks[:, :, tile].astype(float) @ steps
            utilities = model.utilities(ends.reshape(-1, p)).reshape(ends.shape[:-1])
            changes[:, tile] = utilities[1] - utilities[0]
        return changes

    plus = contributions(1.0)
    minus = contributions(-1.0)
    without = contributions(0.0)
    odd = of_mean / of_step * (plus - minus) / 2
    bias = (plus + minus) / 2 - without
    squares = np.mean(odd**2 + bias**2, axis=0)

    # The errors of other players are as much larger as the noise in their steps is.
    kinds = released.noise_std * released.step_weights
    return squares.mean() * kinds**2 / np.mean(kinds[players] ** 2)


def _noise_of_steps(released):
    """Noise in the steps of the permutations that count, and in their mean step.

    The former is the root mean square; both are in units of the noise of one release.
    """
    newest = released.weights
    n_previous = released.skip + np.arange(len(newest))
    previous = (1 - newest) / np.maximum(n_previous, 1)
    of_steps = newest**2 + n_previous * previous**2

    # The mean step is a sum of all releases, with these weights.
    after = np.append(np.cumsum(previous[::-1])[::-1], 0.0)
    in_mean = np.append(newest + after[1:], np.repeat(after[0], released.skip))
    return np.sqrt(of_steps.mean()), np.linalg.norm(in_mean) / len(newest)


def _expected_gradients(model, released, point_weights):
    """Gradients (n_players, p) of the players, from the means of their releases."""
    theta = model.start(np.random.default_rng(0))
    start = point_weights @ gradients_at(model, theta)
    n_releases = released.skip + len(released.weights)
    variances = released.noise_std**2 / n_releases
    centers = denoised_means(released.means, variances, start)
    return clip_rows(centers, released.clip)


def _simulated_pairs(fit, centers, n_draws, n_pairs, n_jobs):
    """Yield values of simulated fits, and of the same ones without noise.

    The latter, along the same permutations, are None after the first ``n_pairs``.
    """
    no_noise = np.zeros_like(fit.released.noise_std)
    silent = replace(fit, released=replace(fit.released, noise_std=no_noise))
    fits = [fit] * n_draws + [silent] * n_pairs
    seeds = np.random.SeedSequence(0).spawn(n_draws)
    tasks = [
        (simulated, centers, np.random.default_rng(seed))
        for simulated, seed in zip(fits, seeds + seeds[:n_pairs])
    ]
    values = list(ordered_map(_redrawn_values, tasks, n_jobs, shared=True))
    without_noise = values[n_draws:] + [None] * (n_draws - n_pairs)
    yield from zip(values[:n_draws], without_noise)
