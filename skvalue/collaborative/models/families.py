"""Models of one parameter, with posteriors integrated on a grid: base class and normal mean."""

from numbers import Real

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from ..._utils.sklearn import Interval, check_parameters
from ._models import PriorModel, common_facts


class Family(PriorModel):
    """Base class of models of one parameter."""

    task = "density"
    _names = ("bounds",)

    def bind(self, releases):
        """Copy of the model, after a check of the releases.

        Parameters
        ----------
        releases : sequence of Release
            The parties' releases.

        Returns
        -------
        model : model
            The bound copy.

        Raises
        ------
        ValueError
            If the releases are of another family or have different bounds.
        """
        check_parameters(self)
        common_facts(releases, (self._kind,), self._names, type(self).__name__)
        return clone(self)

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


class GaussianMean(Family):
    """Model of the mean of normal numbers with known variance, with a normal prior.

    The mediator's model of ``MeanRelease(family="gaussian")``; phi is the mean. The posterior has a
    closed form, also with noise (`noisy_posterior`). Clipping to the bounds is not modelled: choose
    bounds that few numbers reach.

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
    >>> from skvalue.collaborative import GaussianMean, Release
    >>> release = Release("gaussian", 100, (40.0,), None, 2.0, (-1.0, 1.0))
    >>> mean, variance = GaussianMean(variance=0.1).noisy_posterior([release])
    >>> round(mean, 4), round(variance, 6)
    (0.3996, 0.000999)
    """

    _parameter_constraints: dict = {
        "variance": [Interval(Real, 0, None, closed="neither")],
        "prior_mean": [Real],
        "prior_variance": [Interval(Real, 0, None, closed="neither")],
    }
    _kind = "gaussian"
    _prior_parameters = ("variance", "prior_mean", "prior_variance")

    def __init__(self, variance=1.0, *, prior_mean=0.0, prior_variance=1.0):
        self.variance = variance
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance

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

    def party_loglik(self, phi, release):
        """Log-likelihood of a release, up to a constant: that of N(c mean, c variance + noise).

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Means.
        release : Release
            The release.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods.
        """
        count = release.n_samples
        if count == 0:
            return np.zeros(len(phi))
        variance = count * self.variance + release.noise_scale**2
        return -0.5 * (release.statistic[0] - count * phi[:, 0]) ** 2 / variance

    def noisy_posterior(self, releases, weights=None):
        """Mean and variance of the posterior given noisy releases.

        Parameters
        ----------
        releases : sequence of Release
            The releases.
        weights : array-like of shape (n_parties,), default=None
            Powers of the likelihoods; None is 1 for all.

        Returns
        -------
        mean, variance : float
            Mean and variance of the normal posterior.
        """
        weights = np.ones(len(releases)) if weights is None else np.asarray(weights, float)
        counts = np.array([r.n_samples for r in releases], float)
        noise = np.array([r.noise_scale**2 for r in releases])
        sums = np.array([r.statistic[0] for r in releases])
        per_sum = weights * counts / np.maximum(counts * self.variance + noise, 1e-300)
        precision = 1 / self.prior_variance + per_sum @ counts
        mean = (self.prior_mean / self.prior_variance + per_sum @ sums) / precision
        return float(mean), float(1 / precision)

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
