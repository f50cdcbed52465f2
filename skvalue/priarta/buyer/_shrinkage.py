"""Bayes estimates of sellers' moments from noisy ones, with a prior from the buyer's
rows.

In units of the noise, a seller's released mean is the buyer's mean plus a gap plus
standard normal noise; likewise its covariance. The prior of a gap is normal with
covariance ``t (C + floor)``, where C is the covariance of the buyer's rows, or of their
outer products: the directions in which sellers differ from the buyer are those in which
the buyer's rows vary. The unknown scale t is integrated out over a grid of its
logarithm and zero, up to gaps of the length of the radius: if the noise is larger than
that, the estimate is the buyer's moment.
"""

import numpy as np
from sklearn.decomposition import PCA

from ...privacy import smat, svec, svec_index

_FLOOR = (
    0.02  # fraction of the mean variance, so that every direction has prior variance
)
_MOST_DIRECTIONS = 128
_MOST_ROWS = 2000
_MOST_NUMBERS = 2**22  # in the outer products of rows for a prior
_SIZES = np.concatenate(
    [[0.0], 10.0 ** np.arange(-2, 12.25, 0.25)]
)  # in variances of the noise


class Prior:
    """Normal prior of a gap: principal directions and relative variances.

    Fitted to vectors (n_samples, p), one per row of the buyer; equal ones give an
    isotropic prior.
    """

    def __init__(self, vectors):
        p = vectors.shape[1]
        self.directions, self.values, self.rest = np.empty((p, 0)), np.empty(0), 1.0
        if np.ptp(vectors, axis=0).any():
            found = PCA(min(_MOST_DIRECTIONS, *vectors.shape), random_state=0).fit(
                vectors
            )
            values, rest = found.explained_variance_, found.noise_variance_
            mean = (values.sum() + rest * (p - len(values))) / p
            self.directions = found.components_.T
            self.values, self.rest = values / mean + _FLOOR, rest / mean + _FLOOR

    def estimate(self, gap, longest):
        """Posterior means of gaps (k, p) to the buyer, observed with standard normal
        noise.

        ``longest`` (k,) bounds the root mean square length of a gap under the prior.
        """
        p, n = self.directions.shape
        along = gap @ self.directions
        left = (
            np.maximum((gap**2).sum(axis=1) - (along**2).sum(axis=1), 0.0)
            if n < p
            else 0.0
        )
        squares = np.column_stack([along**2, np.broadcast_to(left, len(gap))])
        times = np.append(np.ones(n), p - n)
        # (scales, directions) and (scales, k): log-likelihoods up to a constant.
        variance = 1 + _SIZES[:, None] * np.append(self.values, self.rest)
        fit = -0.5 * (
            (times * np.log(variance)).sum(axis=1)[:, None] + (1 / variance) @ squares.T
        )
        fit = np.where(_SIZES[:, None] * p > longest**2, -np.inf, fit)
        weight = np.exp(fit - fit.max(axis=0))
        kept = (weight / weight.sum(axis=0)).T @ (1 - 1 / variance)
        rest = kept[:, -1:] if n < p else 0.0
        return rest * gap + ((kept[:, :-1] - rest) * along) @ self.directions.T


def priors_of(rows, seed):
    """Priors of sellers' means and of their covariances, as `svec`, from the buyer's
    rows."""
    n, d = rows.shape
    most = max(2, min(_MOST_ROWS, 2 * _MOST_NUMBERS // (d * (d + 1))))
    some = rows - rows.mean(axis=0)
    if n > most:
        some = some[np.random.default_rng(seed).choice(n, most, replace=False)]
    i, j, weights = svec_index(d)
    products = some[:, i] * some[:, j] * weights
    return Prior(rows), Prior(products)


def shrink_moments(target, means, moments, noise, priors, radius):
    """Bayes estimates of moments of k sellers, shrunk towards `target`, the buyer's
    moments.

    ``noise`` (k, 2) are positive standard deviations on an entry of the mean and on the
    diagonal of the second moment; `radius` bounds the norm of rows.
    """
    (mean, covariance), d = target, means.shape[1]
    a, b = noise.T
    means = mean + a[:, None] * priors[0].estimate(
        (means - mean) / a[:, None], radius / a
    )
    # The noise of the second moment, and of the squared mean that is subtracted from
    # it.
    b = np.sqrt(b**2 + 2 * a**4 + 4 * a**2 * (means**2).sum(axis=1) / d)
    gap = svec(moments - means[:, :, None] * means[:, None, :] - covariance)
    gap = priors[1].estimate(gap / b[:, None], radius**2 / b)
    return means, covariance + smat(b[:, None] * gap, d)
