"""Model of the mean of normal numbers, whose posteriors are integrated on a grid."""

from numbers import Real

import numpy as np
from scipy.special import ndtri

from ..._utils.sklearn import Interval
from ._draws import draw_behind_noise
from ._exact import NormalMeans
from ._models import PriorModel


class GaussianMean(PriorModel):
    """Model of the mean of normal numbers with known variance, with a normal prior.

    The mediator's model of `MeanRelease`; phi is the mean. Clipping to the bounds is
    not modelled: choose bounds that few numbers reach.

    Parameters
    ----------
    variance : float, default=1
        Variance of the numbers.
    prior_mean, prior_variance : float, default=0, 1
        Mean and variance of the prior.

    See Also
    --------
    MeanRelease : Makes the release of a party.

    References
    ----------
    G. Bernstein, D. Sheldon, NeurIPS 2018.

    Examples
    --------
    >>> from skvalue.collaborative import (
    ...     BayesianSurpriseScorer, GaussianMean, NoisyStatistic
    ... )
    >>> release = NoisyStatistic("gaussian", 100, (40.0,), None, 2.0, (-1.0, 1.0))
    >>> scorer = BayesianSurpriseScorer(GaussianMean(variance=0.1)).fit({"a": release})
    >>> scorer.values_.round(4).tolist()
    [3.0347]
    """

    _parameter_constraints: dict = {
        "variance": [Interval(Real, 0, None, closed="neither")],
        "prior_mean": [Real],
        "prior_variance": [Interval(Real, 0, None, closed="neither")],
    }
    _kind = "gaussian"
    _common_fields = ("bounds",)
    task = "density"
    weaker_prior = "of GaussianMean, a larger prior_variance"
    _prior_parameters = ("variance", "prior_mean", "prior_variance")

    def __init__(self, variance=1.0, *, prior_mean=0.0, prior_variance=1.0):
        self.variance = variance
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance

    def sample_prior(self, size, rng):
        """Draws from the prior.

        Parameters
        ----------
        size : int
            Number of draws.
        rng : numpy Generator
            Random number generator.

        Returns
        -------
        phi : ndarray of shape (size, 1)
            The draws.
        """
        return self.prior_quantile(rng.random(size))[:, None]

    def prior_quantile(self, u):
        """Quantiles of the prior.

        Parameters
        ----------
        u : ndarray
            Probabilities in (0, 1).

        Returns
        -------
        phi : ndarray
            Quantiles.
        """
        return self.prior_mean + np.sqrt(self.prior_variance) * ndtri(u)

    def log_prior(self, phi):
        """Log density of the prior, up to a constant.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Means.

        Returns
        -------
        log_density : ndarray of shape (n_draws,)
            Log densities.
        """
        return -0.5 * (phi[:, 0] - self.prior_mean) ** 2 / self.prior_variance

    def scaled_loglik(self, phi, release, scale):
        """Log-likelihood of a release whose statistic is scaled, up to a constant.

        The sum of c numbers is distributed as N(c mean, c variance + noise). To a power
        k, the density of the exact sum is that of N(c mean, c variance / k).

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Means.
        release : NoisyStatistic
            The release.
        scale : float
            Power of the likelihood of the exact sum, above 0 and at most 1.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods.
        """
        count = release.n_samples
        if count == 0:
            return np.zeros(len(phi))
        variance = count * self.variance / scale + release.noise_scale**2
        return -0.5 * (release.statistic[0] - count * phi[:, 0]) ** 2 / variance

    def _exact_statistics(self, phi, release, rng):
        count = release.n_samples
        sums = draw_behind_noise(
            release.vector,
            release.noise_scale**2,
            count * phi,
            np.full((len(phi), 1, 1), count * self.variance),
            rng,
        )
        return np.clip(sums, count * release.bounds[0], count * release.bounds[1])

    def exact_posteriors(self, counts, statistics):
        """Posteriors of exact sums, which are normal.

        Parameters
        ----------
        counts : ndarray of shape (n_posteriors,)
            Numbers of rows.
        statistics : ndarray of shape (n_posteriors, 1)
            Sums of these rows, without noise.

        Returns
        -------
        posteriors : object
            Its methods ``divergences()`` and ``log_densities(X, y)`` return the
            divergences (n_posteriors,) from the prior, and the log predictive densities
            (n_posteriors, n_points) of points.
        """
        return NormalMeans(self, counts, statistics[:, 0])

    def predict_logpdf(self, phi, X, y):
        """Log density of numbers at every draw.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Means.
        X : ignored
            There are no features.
        y : ndarray of shape (n_rows,)
            The numbers.

        Returns
        -------
        log_density : ndarray of shape (n_draws, n_rows)
            Log densities.
        """
        squares = (np.asarray(y) - phi) ** 2 / self.variance
        return -0.5 * (squares + np.log(2 * np.pi * self.variance))
