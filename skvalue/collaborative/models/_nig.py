"""Normal-inverse-gamma distribution: w | s2 ~ N(mean, s2 precision^-1), s2 ~ InverseGamma(a, b)."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln


class NIG(NamedTuple):
    """Parameters of one distribution, or stacked parameters of several."""

    mean: np.ndarray
    precision: np.ndarray
    a: float
    b: float


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
