"""Errors of values of private gradients: fits are simulated with other noise."""

from dataclasses import dataclass

import numpy as np

from .._utils.parallel import ordered_map
from ._players import gradients_at
from ._walk import marginals_along


@dataclass(frozen=True, eq=False)
class AveragedReleases:
    """What a private fit that averages releases made public, from which its errors
    follow."""

    means: np.ndarray  # of the releases of each player, (n_players, p)
    noise_std: np.ndarray  # of one release of each player
    weights: (
        np.ndarray
    )  # of the newest release in the counted permutations, as `newest_weights`
    skip: int  # permutations before those that count


def denoised_means(means, variances, start):
    """Gradients of players, estimated from means with noise of known variances per
    coordinate.

    Empirical Bayes: the mean over players is shrunk towards ``start``, the mean
    gradient of public rows, by the positive part of James and Stein's factor; the
    players are then shrunk towards it.
    """
    n, p = means.shape
    center = means.mean(axis=0)
    away, moved = means - center, center - start
    fraction = 1 - max(p - 2, 0) * variances.sum() / n**2 / max(
        moved @ moved, np.finfo(float).tiny
    )
    spread = (away**2).sum() / max((n - 1) * p, 1) - variances.mean()
    kept = max(spread, 0.0) / np.maximum(
        max(spread, 0.0) + variances, np.finfo(float).tiny
    )
    return start + max(0.0, fraction) * moved + kept[:, None] * away


@dataclass(frozen=True, eq=False)
class HalvedMoments:
    """Running means and variances of samples (n,), of the even and of the odd ones
    apart."""

    counts: tuple = (0, 0)
    means: tuple = (0.0, 0.0)
    squares: tuple = (0.0, 0.0)  # sums of squared distances from the means

    @property
    def count(self):
        """Number of samples."""
        return sum(self.counts)

    def plus(self, sample):
        """The moments with one more sample."""
        (count, *counts), (mean, *means), (squares, *rest) = (
            self.counts,
            self.means,
            self.squares,
        )
        away = sample - mean
        mean = mean + away / (count + 1)
        squares = squares + away * (sample - mean)
        # The halves swap places, so that the next sample is one of the other.
        return HalvedMoments((*counts, count + 1), (*means, mean), (*rest, squares))

    def mean(self):
        """Mean (n,) of all samples."""
        (one, other), (mean, of_other) = self.counts, self.means
        return (one * mean + other * of_other) / self.count

    def variances(self):
        """Variances (n,) of all samples; infinite for one."""
        if self.count < 2:
            return np.full(np.shape(self.means[-1]), np.inf)
        between = (self.means[0] - self.means[1]) ** 2
        squares = sum(self.squares) + between * np.prod(self.counts) / self.count
        return squares / (self.count - 1)

    def of_halves(self):
        """Variances (2, n) of the halves."""
        return np.array(
            [s / (count - 1) for s, count in zip(self.squares, self.counts)]
        )


def pooled_variances(moments, kinds):
    """Variances (n,) of samples (n,), shrunk to the mean over a kind of entries.

    The weight of an entry's own variance is the fraction of the variance between
    entries that two halves of the samples agree on (none of it: all entries of the kind
    have the same variance).
    """
    found = moments.variances()
    if moments.count < 4:
        return found
    halves = moments.of_halves()
    for kind in np.unique(kinds):
        same = np.flatnonzero(kinds == kind)
        if len(same) < 3:
            continue
        mean, between = found[same].mean(), found[same].var(ddof=1)
        agreed = np.cov(halves[:, same])[0, 1]
        weight = np.clip(agreed / between, 0.0, 1.0) if between > 0 else 0.0
        found[same] = mean + weight * (found[same] - mean)
    return found


def redrawn_values(model, weights, rate, released, centers, rng):
    """Values of one fit with other permutations and other noise, (n_players,).

    ``centers`` (n_players, p) are gradients that do not vary over permutations;
    ``model`` has the validation points and need not have the players.
    """
    std = released.noise_std[:, None]
    total = std * np.sqrt(released.skip) * rng.standard_normal(centers.shape)
    values = np.zeros(len(centers))
    for t, weight in enumerate(released.weights, released.skip):
        newest = std * rng.standard_normal(centers.shape)
        steps = centers + weight * newest + (1 - weight) * total / max(t, 1)
        total += newest
        order, theta = rng.permutation(len(centers)), model.start(rng)
        values += marginals_along(model, weights, order, theta, -rate * steps)
    return values / len(released.weights)


def simulated_variances(
    model, weights, rate, released, point_weights, n_draws, n_jobs=None
):
    """Variances of values over permutations and noise, from `redrawn_values`.

    ``model`` has public rows as its players, of the weights ``point_weights``.
    """
    start = point_weights @ gradients_at(model, model.start(np.random.default_rng(0)))
    n_releases = released.skip + len(released.weights)
    centers = denoised_means(released.means, released.noise_std**2 / n_releases, start)
    tasks = [
        (np.random.default_rng(seed),)
        for seed in np.random.SeedSequence(0).spawn(n_draws)
    ]
    draws = ordered_map(
        lambda rng: redrawn_values(model, weights, rate, released, centers, rng),
        tasks,
        n_jobs,
        shared=True,
    )
    moments = HalvedMoments()
    for values in draws:
        moments = moments.plus(values)
    return pooled_variances(moments, released.noise_std)
