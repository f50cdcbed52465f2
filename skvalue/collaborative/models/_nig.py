"""Normal-inverse-gamma laws: w | s2 ~ N(mean, s2 precision^-1), s2 ~ InverseGamma(a, b)."""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln


class NIG(NamedTuple):
    """Parameters, of one law or of a stack of them."""

    mean: np.ndarray
    precision: np.ndarray
    a: float
    b: float


def nig_update(prior, gram, count):
    """Posterior given Gram matrices of (x, y), stacked in front, and counts."""
    sxx, sxy, syy = gram[..., :-1, :-1], gram[..., :-1, -1], gram[..., -1, -1]
    precision = prior.precision + sxx
    right = prior.precision @ prior.mean + sxy
    mean = np.linalg.solve(precision, right[..., None])[..., 0]
    # b_n = b + (y'y + m0'L m0 - m'(L + Sxx) m) / 2, and (L + Sxx) m is `right`.
    fit = syy + prior.mean @ prior.precision @ prior.mean - np.sum(mean * right, axis=-1)
    return NIG(mean, precision, prior.a + 0.5 * np.asarray(count), prior.b + 0.5 * fit)


def nig_kl(posterior, prior):
    """Kullback-Leibler divergence of one law from another."""
    shift = posterior.mean - prior.mean
    weights = 0.5 * (
        np.trace(np.linalg.solve(posterior.precision, prior.precision))
        - len(prior.mean)
        + np.linalg.slogdet(posterior.precision)[1]
        - np.linalg.slogdet(prior.precision)[1]
        + posterior.a / posterior.b * shift @ prior.precision @ shift
    )
    a1, b1, a0, b0 = posterior.a, posterior.b, prior.a, prior.b
    variance = (
        (a1 - a0) * digamma(a1)
        - gammaln(a1)
        + gammaln(a0)
        + a0 * np.log(b1 / b0)
        + a1 * (b0 - b1) / b1
    )
    return float(weights + variance)


def nig_log_density(phi, law):
    """Log density of phi = (w, log s2), one a row."""
    w, log_s2 = phi[:, :-1], np.clip(phi[:, -1], -40.0, 40.0)
    p = w.shape[1]
    factor = np.linalg.cholesky(law.precision)
    square = np.sum(((w - law.mean) @ factor) ** 2, axis=1)
    return (
        np.log(np.diag(factor)).sum()
        - 0.5 * p * (np.log(2 * np.pi) + log_s2)
        + law.a * np.log(law.b)
        - gammaln(law.a)
        - law.a * log_s2
        - (law.b + 0.5 * square) * np.exp(-log_s2)
    )


def nig_sample(law, size, rng):
    """Draws of (w, log s2), one a row."""
    s2 = law.b / rng.gamma(law.a, size=size)
    factor = np.linalg.cholesky(law.precision)
    z = np.linalg.solve(factor.T, rng.standard_normal((len(law.mean), size))).T
    return np.column_stack([law.mean + np.sqrt(s2)[:, None] * z, np.log(s2)])
