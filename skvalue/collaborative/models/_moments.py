"""Moments of a party's features, which its release does not state exactly.

They are nuisance parameters of the models: estimated from the release ("plugin") or
integrated over ("hierarchical").
"""

import numpy as np

from ._gaussian import noisy_gram_loglik
from ._smc import anneal

_N_PARTICLES = 256
_N_REPLICATES = 8
_N_MOVES = 10
# Degrees of freedom of the inverse Wishart prior minus the number of features.
_EXTRA_DEGREES = 3


def plugin_second_moments(gram, count, variance, bound, intercept=False):
    """Second moments of u from noisy sums, shrunk towards a multiple of the identity.

    Each entry is a weighted mean of the released matrix and a multiple of the identity
    of the same trace; the weights depend on the variance of the noise and of sampling,
    relative to the size of the multiple. Eigenvalues are clipped to be positive.

    `gram` (p, p) are the noisy sums of u u', u = ([1,] x), over `count` rows of norm at
    most `bound`; the result has the same shape.
    """
    count = max(count, 1.0)
    released = gram / count
    released = 0.5 * (released + released.T)
    start = int(intercept)
    p = len(released) - start
    released_x = released[start:, start:]
    noise = variance / count**2

    # The scale is the trace over p: its noise has 1 / p of the variance of an entry.
    expected_scale = bound**2 / (p + 2)  # of rows that are uniform in the ball
    released_scale = np.trace(released_x) / p
    released_scale = float(np.clip(released_scale, 1e-3 * expected_scale, bound**2))
    scale_weight = expected_scale**2 / (
        expected_scale**2 + noise / p + 2 * expected_scale**2 / (p * count)
    )
    scale = expected_scale + scale_weight * (released_scale - expected_scale)

    weight = scale**2 / (scale**2 + noise + 2 * scale**2 / count)
    shrunk = weight * released_x + (1 - weight) * scale * np.eye(p)
    relative_floor = 0.02 + 0.3 * (1 - weight) if noise else 1e-9
    floor = relative_floor * scale
    values, vectors = np.linalg.eigh(shrunk)
    shrunk = (vectors * np.clip(values, floor, bound**2)) @ vectors.T
    if not intercept:
        return shrunk

    # The second moments are the covariance plus the outer product of the mean.
    mean = weight * released[0, 1:]
    mean *= min(1.0, bound / max(np.linalg.norm(mean), 1e-300))
    values, vectors = np.linalg.eigh(shrunk - np.outer(mean, mean))
    covariance = (vectors * np.maximum(values, floor)) @ vectors.T
    second_moments = np.empty((p + 1, p + 1))
    second_moments[0, 0] = 1.0
    second_moments[0, 1:] = mean
    second_moments[1:, 0] = mean
    second_moments[1:, 1:] = covariance + np.outer(mean, mean)
    return second_moments


def inverse_wishart_prior(p, bound):
    """Degrees of freedom and scale (times identity) of the prior of a covariance.

    Its mean is that of rows uniform in the ball.
    """
    return p + _EXTRA_DEGREES, (_EXTRA_DEGREES - 1) * bound**2 / (p + 2)


class SecondMoments:
    """Prior and likelihood of one party's second moments, as a model for `anneal`.

    phi holds the logarithms of the diagonal of the Bartlett factor B of a Wishart
    matrix (chi variables), the entries of B below the diagonal (standard normal), and
    with an intercept the mean in units of a root of the covariance (standard normal).
    The covariance ``scale (B B')^-1`` is inverse Wishart.
    """

    def __init__(self, gram, count, variance, bound, intercept):
        self.gram = gram
        self.count = float(count)
        self.variance = variance
        self.intercept = intercept
        self.p = len(gram) - intercept
        degrees, self.scale = inverse_wishart_prior(self.p, bound)
        self.degrees = degrees - np.arange(self.p)
        self.below = np.tril_indices(self.p, -1)

    def sample_prior(self, size, rng):
        """Draws of phi, (size, n_parameters)."""
        logs = 0.5 * np.log(2 * rng.gamma(0.5 * self.degrees, size=(size, self.p)))
        n_normal = len(self.below[0]) + self.p * self.intercept
        return np.column_stack([logs, rng.standard_normal((size, n_normal))])

    def log_prior(self, phi):
        """Log densities of phi, (n_draws,), up to a constant."""
        logs = np.clip(phi[:, : self.p], -300, 300)
        normal = phi[:, self.p :]
        return logs @ self.degrees - 0.5 * (
            np.exp(2 * logs).sum(axis=1) + np.sum(normal**2, axis=1)
        )

    def second_moments(self, phi):
        """The second moments (n_draws, size, size); 1 and the mean come first."""
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
        second_moments = np.ones((len(phi), self.p + 1, self.p + 1))
        second_moments[:, 0, 1:] = second_moments[:, 1:, 0] = mean
        second_moments[:, 1:, 1:] = covariance + mean[:, :, None] * mean[:, None, :]
        return second_moments

    def loglik(self, phi):
        """Log densities (n_draws,) of the noisy sums."""
        return noisy_gram_loglik(
            self.second_moments(phi),
            self.gram,
            self.count,
            self.variance,
            self.intercept,
        )


def posterior_second_moments(
    gram, count, variance, bound, intercept, n_draws, n_particles=_N_PARTICLES
):
    """Draws of a party's second moments given its noisy sums of u u', u = ([1,] x).

    Returns the draws (n_draws, size, size) and the log density of the sums under each.
    The seed is fixed, so that equal releases have equal draws.
    """
    model = SecondMoments(gram, count, variance, bound, intercept)
    stages = anneal(
        model,
        [model.loglik],
        anchors=np.ones((1, 1)),
        n_particles=n_particles,
        n_replicates=_N_REPLICATES,
        n_moves=_N_MOVES,
        rng=np.random.default_rng(0),
    )
    phi = stages[-1].phi
    phi = phi[np.linspace(0, len(phi) - 1, n_draws).astype(int)]
    return model.second_moments(phi), model.loglik(phi)
