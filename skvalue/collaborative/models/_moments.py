"""Moments of a party's features, estimated from its release; nuisance parameters of the
models."""

import numpy as np

from ._gaussian import noisy_gram_loglik
from ._smc import anneal

_PARTICLES, _REPLICATES, _MOVES = 256, 8, 10
_DEGREES = (
    3  # degrees of freedom of the inverse Wishart prior minus the number of features
)


def plugin_second_moments(sums, count, variance, bound, intercept=False):
    """Second moments of x from noisy sums, shrunk towards a multiple of the identity.

    Each entry is a weighted mean of the released matrix and a multiple of the identity
    of the same trace; the weights depend on the variance of the noise and of sampling,
    relative to the size of the multiple. Eigenvalues are clipped to be positive.
    """
    released = sums / max(count, 1.0)
    released = 0.5 * (released + released.T)
    start = int(intercept)
    p = len(released) - start
    inner = released[start:, start:]
    guess = bound**2 / (p + 2)  # rows uniform in the ball
    noise = variance / max(count, 1.0) ** 2
    # `size` is the trace over p: its noise has 1 / p of the variance of an entry.
    trust = guess**2 / (guess**2 + noise / p + 2 * guess**2 / (p * max(count, 1.0)))
    size = float(np.clip(np.trace(inner) / p, 1e-3 * guess, bound**2))
    size = guess + trust * (size - guess)
    trust = size**2 / (size**2 + noise + 2 * size**2 / max(count, 1.0))
    shrunk = trust * inner + (1 - trust) * size * np.eye(p)
    values, vectors = np.linalg.eigh(shrunk)
    floor = ((0.02 + 0.3 * (1 - trust)) if noise else 1e-9) * size
    shrunk = (vectors * np.clip(values, floor, bound**2)) @ vectors.T
    if not intercept:
        return shrunk
    mean = trust * released[0, 1:]
    mean *= min(1.0, bound / max(np.linalg.norm(mean), 1e-300))
    # The second moments are the covariance plus the outer product of the mean.
    values, vectors = np.linalg.eigh(shrunk - np.outer(mean, mean))
    covariance = (vectors * np.maximum(values, floor)) @ vectors.T
    full = np.empty((p + 1, p + 1))
    full[0, 0], full[0, 1:], full[1:, 0] = 1.0, mean, mean
    full[1:, 1:] = covariance + np.outer(mean, mean)
    return full


def inverse_wishart_prior(p, bound):
    """Degrees of freedom and scale (times identity), for the mean of rows uniform in
    the ball."""
    return p + _DEGREES, (_DEGREES - 1) * bound**2 / (p + 2)


class SecondMoments:
    """Prior and likelihood of one party's second moments, as a model for `anneal`.

    phi holds the logarithms of the diagonal of the Bartlett factor B of a Wishart
    matrix (chi variables), the entries of B below the diagonal (standard normal), and
    with an intercept the mean in units of a root of the covariance (standard normal).
    The covariance ``scale (B B')^-1`` is inverse Wishart.
    """

    def __init__(self, gram, count, variance, bound, intercept):
        self.facts = gram, float(count), variance, intercept
        self.intercept = intercept
        p = self.p = len(gram) - intercept
        degrees, self.scale = inverse_wishart_prior(p, bound)
        self.degrees = degrees - np.arange(p)
        self.below = np.tril_indices(p, -1)

    def sample_prior(self, size, rng):
        logs = 0.5 * np.log(2 * rng.gamma(0.5 * self.degrees, size=(size, self.p)))
        rest = len(self.below[0]) + self.p * self.intercept
        return np.column_stack([logs, rng.standard_normal((size, rest))])

    def log_prior(self, phi):
        logs, rest = phi[:, : self.p], phi[:, self.p :]
        logs = np.clip(logs, -300, 300)
        return logs @ self.degrees - 0.5 * (
            np.exp(2 * logs).sum(axis=1) + np.sum(rest**2, axis=1)
        )

    def second(self, phi):
        """The matrices, (n_draws, size, size); with an intercept, 1 and the mean come
        first."""
        n_below = len(self.below[0])
        factor = np.zeros((len(phi), self.p, self.p))
        diagonal = np.arange(self.p)
        factor[:, diagonal, diagonal] = np.exp(np.clip(phi[:, : self.p], -20, 20))
        factor[:, self.below[0], self.below[1]] = phi[:, self.p : self.p + n_below]
        root = np.sqrt(self.scale) * np.swapaxes(np.linalg.inv(factor), 1, 2)
        covariance = root @ np.swapaxes(root, 1, 2)
        if not self.intercept:
            return covariance
        mean = (root @ phi[:, self.p + n_below :, None])[:, :, 0]
        full = np.ones((len(phi), self.p + 1, self.p + 1))
        full[:, 0, 1:] = full[:, 1:, 0] = mean
        full[:, 1:, 1:] = covariance + mean[:, :, None] * mean[:, None, :]
        return full

    def loglik(self, phi):
        gram, count, variance, intercept = self.facts
        return noisy_gram_loglik(self.second(phi), gram, count, variance, intercept)


def posterior_second_moments(gram, count, variance, bound, intercept, n_draws):
    """Draws of a party's second moments given its noisy sums of u u', u = ([1,] x).

    Also returns the log density of the sums under each draw. The seed is fixed, so that
    equal releases have equal draws.
    """
    model = SecondMoments(gram, count, variance, bound, intercept)
    rng, anchors = np.random.default_rng(0), np.ones((1, 1))
    stages = anneal(
        model, [model.loglik], anchors, _PARTICLES, _REPLICATES, _MOVES, rng
    )
    phi = stages[-1][0]
    phi = phi[np.linspace(0, len(phi) - 1, n_draws).astype(int)]
    return model.second(phi), model.loglik(phi)
