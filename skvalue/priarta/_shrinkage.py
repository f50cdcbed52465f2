"""What a buyer makes of noisy moments: a Bayes estimate, by a prior from its own rows.

In units of the noise a release is ``u = (mean / a, svec(second moment) / b)`` plus standard normal
noise. A priori a seller's u is that of the buyer plus a normal vector of covariance
``t (C + floor)``, where C is the covariance of the same statistic over the buyer's rows: sellers
differ from the buyer as the buyer's rows differ from one another. The size t is not known; it is
summed out over a grid of its logarithm, with zero on it.
"""

import numpy as np
from sklearn.decomposition import PCA

from ._packing import pack, unpack

__all__ = ["Prior", "shrink_moments", "statistic_of_rows"]

_FLOOR = 0.02  # of the mean variance; no direction is ruled out
_MOST_DIRECTIONS = 128
_MOST_ROWS = 2000
_MOST_NUMBERS = 2**24  # in the statistics of the rows that the prior is made of
_SIZES = np.concatenate([[0.0], 10.0 ** np.arange(-2, 12.25, 0.25)])  # in variances of the noise


class Prior:
    """Directions in which sellers are likely to differ, and how much in each.

    Parameters
    ----------
    statistics : ndarray of shape (n_samples, p)
        One a row of the buyer, as `statistic_of_rows` makes them; None for a prior that is the same
        in all directions.
    """

    def __init__(self, statistics=None):
        self.vectors, self.values, self.rest = None, np.empty(0), 1.0
        if statistics is None or not np.ptp(statistics, axis=0).any():
            return
        found = PCA(min(_MOST_DIRECTIONS, *statistics.shape), random_state=0).fit(statistics)
        p, values = statistics.shape[1], found.explained_variance_
        mean = (values.sum() + found.noise_variance_ * (p - len(values))) / p
        self.vectors = found.components_.T
        self.values = values / mean + _FLOOR
        self.rest = found.noise_variance_ / mean + _FLOOR

    def estimate(self, gap):
        """Posterior means.

        Parameters
        ----------
        gap : ndarray of shape (k, p)
            Statistics less the buyer's, with standard normal noise.

        Returns
        -------
        estimate : ndarray of shape (k, p)
            What is left of them.
        """
        along = np.empty((len(gap), 0)) if self.vectors is None else gap @ self.vectors
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
        spread = 1 + _SIZES[:, None] * values
        fit = -0.5 * ((times * np.log(spread)).sum(axis=1)[:, None] + (1 / spread) @ squares.T)
        weight = np.exp(fit - fit.max(axis=0))
        kept = (weight / weight.sum(axis=0)).T @ (1 - 1 / spread)
        if not free:
            return (kept * along) @ self.vectors.T
        rest = kept[:, -1:]
        if self.vectors is None:
            return rest * gap
        return rest * gap + ((kept[:, :-1] - rest) * along) @ self.vectors.T


def statistic_of_rows(rows, mean_weight, seed):
    """The statistic of some of the buyer's rows, each alone.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, d)
        Centred rows of norm at most 1.
    mean_weight : float
        Weight of the mean in a release.
    seed : int
        Of the choice of rows where there are many.

    Returns
    -------
    statistics : ndarray of shape (n_chosen, p)
        ``(w x, svec(x x'))`` for each.
    """
    d = rows.shape[1]
    p = d + d * (d + 1) // 2
    most = max(2, min(_MOST_ROWS, _MOST_NUMBERS // p))
    if len(rows) > most:
        rows = rows[np.random.default_rng(seed).choice(len(rows), most, replace=False)]
    return pack(mean_weight * rows, rows[:, :, None] * rows[:, None, :])


def shrink_moments(target, means, moments, noise, prior):
    """Bayes estimates of moments of several sellers.

    Parameters
    ----------
    target : tuple of ndarray of shape (d,) and (d, d)
        The buyer's mean and second moment.
    means : ndarray of shape (k, d)
        Noisy means.
    moments : ndarray of shape (k, d, d)
        Noisy second moments.
    noise : ndarray of shape (k, 2)
        Standard deviations of the noise on an entry of the mean, and on the diagonal of the second
        moment, above zero.
    prior : Prior
        The prior, in units of the noise.

    Returns
    -------
    means, moments : ndarray of shape (k, d), (k, d, d)
        The estimates.
    """
    a, b = noise.T
    gap = pack((means - target[0]) / a[:, None], (moments - target[1]) / b[:, None, None])
    by_mean, by_moment = unpack(prior.estimate(gap), means.shape[1])
    return target[0] + a[:, None] * by_mean, target[1] + b[:, None, None] * by_moment
