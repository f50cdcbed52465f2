"""Errors of values of private gradients: fits are simulated with other noise."""

from dataclasses import dataclass

import numpy as np

from .._utils.parallel import thread_map
from ._models import gradients_at
from ._walk import step_parts, weighted_marginals


@dataclass(frozen=True, eq=False)
class AveragedReleases:
    """What a private fit that averages releases made public, from which its errors follow."""

    means: np.ndarray  # of the releases of each player, (n_players, p)
    noise_std: np.ndarray  # of one release of each player
    fractions: np.ndarray  # of the counted permutations, as `own_fractions`
    skip: int  # permutations before those that count


def denoised_means(means, variances, start):
    """Gradients of players, estimated from means with noise of known variances per coordinate.

    Empirical Bayes: the mean over players is shrunk towards ``start``, the mean gradient of public
    rows, by the positive part of James and Stein's factor; the players are then shrunk towards it.
    """
    n, p = means.shape
    center = means.mean(axis=0)
    away, moved = means - center, center - start
    fraction = 1 - max(p - 2, 0) * variances.sum() / n**2 / max(moved @ moved, np.finfo(float).tiny)
    spread = (away**2).sum() / max((n - 1) * p, 1) - variances.mean()
    kept = max(spread, 0.0) / np.maximum(max(spread, 0.0) + variances, np.finfo(float).tiny)
    return start + max(0.0, fraction) * moved + kept[:, None] * away


class HalvedMoments:
    """Running means and variances of samples (n,), of the even and of the odd ones apart."""

    def __init__(self):
        self.counts = np.zeros(2, dtype=int)
        self._means, self._squares = [0.0, 0.0], [0.0, 0.0]

    def add(self, sample):
        """Add a sample."""
        half = self.counts.sum() % 2
        self.counts[half] += 1
        away = sample - self._means[half]
        self._means[half] = self._means[half] + away / self.counts[half]
        self._squares[half] = self._squares[half] + away * (sample - self._means[half])

    def variances(self):
        """Variances (n,) of all samples."""
        count, between = self.counts.sum(), (self._means[0] - self._means[1]) ** 2
        return (sum(self._squares) + between * self.counts.prod() / count) / (count - 1)

    def of_halves(self):
        """Variances (2, n) of the halves."""
        return np.array([s / (count - 1) for s, count in zip(self._squares, self.counts)])


def pooled_variances(moments, kinds):
    """Variances (n,) of samples (n,), shrunk to the mean over a kind of entries.

    The weight of an entry's own variance is the fraction of the variance between entries that two
    halves of the samples agree on (none of it: all entries of the kind have the same variance).
    """
    found = moments.variances()
    if moments.counts.sum() < 4:
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

    ``centers`` (n_players, p) are gradients that do not vary over permutations; ``model`` has the
    validation points and need not have the players.
    """
    std = released.noise_std[:, None]
    total = std * np.sqrt(released.skip) * rng.standard_normal(centers.shape)
    values = np.zeros(len(centers))
    for t, fraction in enumerate(released.fractions, released.skip):
        fraction, newest = fraction[:, None], std * rng.standard_normal(centers.shape)
        steps = centers + fraction * newest + (1 - fraction) * total / max(t, 1)
        total += newest
        order, theta = rng.permutation(len(centers)), model.initial(rng)
        values += weighted_marginals(model, weights, order, step_parts(theta, -rate * steps, order))
    return values / len(released.fractions)


def simulated_variances(model, weights, rate, released, point_weights, n_draws, n_jobs=None):
    """Variances of values over permutations and noise, from `redrawn_values`.

    ``model`` has public rows as its players, of the weights ``point_weights``.
    """
    start = point_weights @ gradients_at(model, model.initial(np.random.default_rng(0)))
    n_releases = released.skip + len(released.fractions)
    centers = denoised_means(released.means, released.noise_std**2 / n_releases, start)
    generators = map(np.random.default_rng, np.random.SeedSequence(0).spawn(n_draws))
    draws = thread_map(
        lambda rng: redrawn_values(model, weights, rate, released, centers, rng),
        [(rng,) for rng in generators],
        n_jobs,
    )
    moments = HalvedMoments()
    for values in draws:
        moments.add(values)
    return pooled_variances(moments, released.noise_std)
