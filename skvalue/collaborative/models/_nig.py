"""Normal-inverse-gamma distribution: w | s2 ~ N(mean, s2 precision^-1), s2 ~ InverseGamma(a, b)."""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from ._gaussian import gaussian_kl


class NIG(NamedTuple):
    """Parameters of one distribution, or stacked parameters of several."""

    mean: np.ndarray
    precision: np.ndarray
    a: float
    b: float


def nig_update(prior, gram, count):
    """Posterior given Gram matrices of (x, y), (..., p + 1, p + 1), and numbers of rows."""
    sxx, sxy, syy = gram[..., :-1, :-1], gram[..., :-1, -1], gram[..., -1, -1]
    precision = prior.precision + sxx
    right = prior.precision @ prior.mean + sxy
    mean = np.linalg.solve(precision, right[..., None])[..., 0]
    # b_n = b + (y'y + m0'L m0 - m'(L + Sxx) m) / 2, and (L + Sxx) m is `right`.
    fit = syy + prior.mean @ prior.precision @ prior.mean - np.sum(mean * right, axis=-1)
    return NIG(mean, precision, prior.a + 0.5 * np.asarray(count), prior.b + 0.5 * fit)


def nig_kl(posterior, prior):
    """Kullback-Leibler divergence of `posterior` from `prior`."""
    scale = posterior.a / posterior.b
    weights = gaussian_kl(posterior.mean, posterior.precision, prior.mean, prior.precision, scale)
    return weights + float(gamma_kl(posterior.a, posterior.b, prior.a, prior.b))


def gamma_kl(a, b, prior_a, prior_b):
    """Kullback-Leibler divergence of Gamma(a, b) from Gamma(prior_a, prior_b)."""
    return (
        (a - prior_a) * digamma(a)
        - gammaln(a)
        + gammaln(prior_a)
        + prior_a * np.log(b / prior_b)
        + a * (prior_b - b) / b
    )


def nig_log_density(phi, nig):
    """Log density at the rows phi = (w, log s2)."""
    w, log_s2 = phi[:, :-1], np.clip(phi[:, -1], -40.0, 40.0)
    p = w.shape[1]
    factor = np.linalg.cholesky(nig.precision)
    square = np.sum(((w - nig.mean) @ factor) ** 2, axis=1)
    return (
        np.log(np.diag(factor)).sum()
        - 0.5 * p * (np.log(2 * np.pi) + log_s2)
        + nig.a * np.log(nig.b)
        - gammaln(nig.a)
        - nig.a * log_s2
        - (nig.b + 0.5 * square) * np.exp(-log_s2)
    )


def nig_sample(nig, size, rng):
    """Draws of (w, log s2), one per row."""
    s2 = nig.b / rng.gamma(nig.a, size=size)
    factor = np.linalg.cholesky(nig.precision)
    z = np.linalg.solve(factor.T, rng.standard_normal((len(nig.mean), size))).T
    return np.column_stack([nig.mean + np.sqrt(s2)[:, None] * z, np.log(s2)])
