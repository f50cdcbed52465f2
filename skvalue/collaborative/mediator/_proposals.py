"""Multivariate t distributions that are fitted to weighted particles.

Particles are drawn from them, and weighted by their densities.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.utils import gen_batches

_DEGREES = 6.0  # of freedom: tails heavier than those of a posterior
_JITTER = 1e-9  # of the mean variance, which makes covariances positive definite
_BLOCK_SIZE = 4_000_000  # whitened parameters in a block of proposals


class Proposal(NamedTuple):
    """A t distribution with a location (d,) and a lower factor (d, d) of its scale.

    `n_draws` particles are drawn from it.
    """

    location: np.ndarray
    factor: np.ndarray
    n_draws: int

    def draw(self, rng):
        """Draws (n_draws, d)."""
        shape = self.n_draws, len(self.location)
        normal = rng.standard_normal(shape)
        scales = np.sqrt(rng.chisquare(_DEGREES, size=self.n_draws) / _DEGREES)
        return self.location + (normal @ self.factor.T) / scales[:, None]


def fit_proposal(phi, weights, scale, n_draws):
    """The `Proposal` with the mean and a multiple of the covariance of particles.

    `weights` (m,) of phi (m, d) sum to 1. The covariance is multiplied by `scale`.
    """
    d = phi.shape[1]
    mean = weights @ phi
    centred = phi - mean
    covariance = scale * ((centred * weights[:, None]).T @ centred)
    jitter = _JITTER * np.trace(covariance) / d + 1e-300
    factor = np.linalg.cholesky(covariance + jitter * np.eye(d))
    return Proposal(mean, factor, n_draws)


def log_mixture(proposals, phi):
    """Log of the sum of the densities at phi (m, d), times their numbers of draws."""
    log_sum = np.full(len(phi), -np.inf)
    for batch in gen_batches(len(proposals), max(1, _BLOCK_SIZE // phi.size)):
        logs = _log_densities(proposals[batch], phi)
        log_sum = np.logaddexp(log_sum, logsumexp(logs, axis=1))
    return log_sum


def _log_densities(proposals, phi):
    """Log densities (m, K) of phi (m, d), plus the logarithm of the number of draws."""
    n_proposals = len(proposals)
    d = phi.shape[1]
    locations = np.array([proposal.location for proposal in proposals])
    inverses = np.linalg.inv([proposal.factor for proposal in proposals])
    n_draws = np.array([proposal.n_draws for proposal in proposals])

    # One product whitens phi for all of them. It is centred, so as not to lose digits.
    center = locations.mean(axis=0)
    whitened = (phi - center) @ inverses.reshape(-1, d).T
    shifts = np.einsum("kij,kj->ki", inverses, locations - center)
    whitened = whitened.reshape(-1, n_proposals, d) - shifts
    squares = np.einsum("mki,mki->mk", whitened, whitened)

    log_dets = np.log(np.diagonal(inverses, axis1=1, axis2=2)).sum(axis=1)
    constants = (
        gammaln(0.5 * (_DEGREES + d))
        - gammaln(0.5 * _DEGREES)
        - 0.5 * d * np.log(_DEGREES * np.pi)
        + log_dets
        + np.log(n_draws)
    )
    return constants - 0.5 * (_DEGREES + d) * np.log1p(squares / _DEGREES)
