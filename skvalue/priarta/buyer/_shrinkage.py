"""What a buyer makes of noisy moments: Bayes estimates, by a prior from its own rows.

In units of its noise a seller's mean is the buyer's plus a gap plus standard normal noise, and so
is its covariance. A priori a gap is normal with covariance ``t (C + floor)``, where C is that of
the buyer's rows, or of their outer products: sellers differ from the buyer as the buyer's rows
differ from one another. The size t is not known; it is summed out over a grid of its logarithm,
with zero on it, up to gaps as long as the radius: where noise is longer, nothing is left of it.
"""

import numpy as np
from sklearn.decomposition import PCA

from ...privacy import smat, svec, svec_index

_FLOOR = 0.02  # of the mean variance; no direction is ruled out
_MOST_DIRECTIONS = 128
_MOST_ROWS = 2000
_MOST_NUMBERS = 2**22  # in the outer products of the rows that the prior is made of
_SIZES = np.concatenate([[0.0], 10.0 ** np.arange(-2, 12.25, 0.25)])  # in variances of the noise


class Prior:
    """Directions in which sellers are likely to differ, and how much in each.

    Made from vectors (n_samples, p), one a row of the buyer; None is the same in all directions.
    """

    def __init__(self, vectors=None):
        self.directions, self.values, self.rest = None, np.empty(0), 1.0
        if vectors is None or not np.ptp(vectors, axis=0).any():
            return
        found = PCA(min(_MOST_DIRECTIONS, *vectors.shape), random_state=0).fit(vectors)
        p, values = vectors.shape[1], found.explained_variance_
        mean = (values.sum() + found.noise_variance_ * (p - len(values))) / p
        self.directions = found.components_.T
        self.values = values / mean + _FLOOR
        self.rest = found.noise_variance_ / mean + _FLOOR

    def estimate(self, gap, longest):
        """Posterior means of gaps (k, p) to the buyer, which have standard normal noise.

        ``longest`` (k,) is the root mean square length of a gap that the prior allows at most.
        """
        along = np.empty((len(gap), 0)) if self.directions is None else gap @ self.directions
        squares = along**2
        free = gap.shape[1] - along.shape[1]
        if free:
            left = np.maximum((gap**2).sum(axis=1) - squares.sum(axis=1), 0.0)[:, None]
            squares, values = np.hstack([squares, left]), np.append(self.values, self.rest)
        else:
            values = self.values
        times = np.ones(len(values))
        times[-1:] = max(free, 1)
        # (sizes, directions) and (sizes, k): log likelihoods, up to what all sizes share.
        variance = 1 + _SIZES[:, None] * values
        fit = -0.5 * ((times * np.log(variance)).sum(axis=1)[:, None] + (1 / variance) @ squares.T)
        fit = np.where(_SIZES[:, None] * gap.shape[1] > longest**2, -np.inf, fit)
        weight = np.exp(fit - fit.max(axis=0))
        kept = (weight / weight.sum(axis=0)).T @ (1 - 1 / variance)
        if not free:
            return (kept * along) @ self.directions.T
        rest = kept[:, -1:]
        if self.directions is None:
            return rest * gap
        return rest * gap + ((kept[:, :-1] - rest) * along) @ self.directions.T


def priors_of(rows, seed):
    """Priors of sellers' means and, as `svec` has them, covariances, from the buyer's rows."""
    n, d = rows.shape
    most = max(2, min(_MOST_ROWS, 2 * _MOST_NUMBERS // (d * (d + 1))))
    some = rows - rows.mean(axis=0)
    if n > most:
        some = some[np.random.default_rng(seed).choice(n, most, replace=False)]
    i, j, weights = svec_index(d)
    products = some[:, i] * some[:, j] * weights
    return Prior(rows), Prior(products)


def shrink_moments(target, means, moments, noise, priors, radius):
    """Bayes estimates of moments of k sellers, around the target (mean, covariance) of the buyer.

    ``noise`` (k, 2) are standard deviations on an entry of the mean and on the diagonal of the
    second moment, above zero; the radius is the norm of rows at most.
    """
    (mean, covariance), d = target, means.shape[1]
    a, b = noise.T
    means = mean + a[:, None] * priors[0].estimate((means - mean) / a[:, None], radius / a)
    # The second moment's noise, and that of the square of the mean, which is taken off.
    b = np.sqrt(b**2 + 2 * a**4 + 4 * a**2 * (means**2).sum(axis=1) / d)
    gap = svec(moments - means[:, :, None] * means[:, None, :] - covariance)
    gap = priors[1].estimate(gap / b[:, None], radius**2 / b)
    return means, covariance + smat(b[:, None] * gap, d)
