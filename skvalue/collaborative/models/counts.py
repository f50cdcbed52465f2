"""Models of one parameter for sums of integers: Bernoulli and Poisson."""

from abc import abstractmethod
from numbers import Real

import numpy as np
from scipy import stats
from scipy.special import betaln, expit, gammaln, log_expit, logsumexp

from ..._utils.sklearn import Interval
from ._draws import draw_behind_noise
from ._exact import BetaProbabilities, GammaRates
from ._models import PriorModel

_N_TERMS = 60  # on each side of the largest term of a sum over counts
_N_BISECTIONS = 70
_MAX_LOG_MEAN = 600.0  # larger exponents overflow
_LOG_TINY = -14.0  # of numbers below which distribution functions are powers
_MIN_LOG = -1e15  # so that differences are finite


class CountModel(PriorModel):
    """Base class of models of counts with a conjugate prior of parameters a and b.

    The likelihood of a noisy sum is a sum over the exact sums, whose log probabilities
    (n_draws, m) are `_log_mass`.
    """

    _parameter_constraints: dict = {
        "a": [Interval(Real, 0, None, closed="neither")],
        "b": [Interval(Real, 0, None, closed="neither")],
    }
    _common_fields = ("bounds",)
    task = "density"
    weaker_prior = "smaller a and b"
    _prior_parameters = ("a", "b")

    def __init__(self, a=1.0, b=1.0):
        self.a = a
        self.b = b

    @abstractmethod
    def prior_quantile(self, u):
        """Quantiles of the prior at probabilities u in (0, 1)."""

    @abstractmethod
    def _log_mass(self, phi, count, sums):
        """Log probabilities of sums of `count` rows, broadcast against phi (n, 1)."""

    @abstractmethod
    def _slope(self, phi, count, sums):
        """Derivative of `_log_mass` by the sum, for phi and sums of shape (n,)."""

    @abstractmethod
    def _curvature(self, count, sums):
        """Minus the second derivative of `_log_mass`, for sums of shape (n,)."""

    @abstractmethod
    def _largest_sums(self, phi, release):
        """Bounds (n,) of the sums that have terms, for phi of shape (n,)."""

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

    def scaled_loglik(self, phi, release, scale):
        """Log-likelihood of a release whose statistic is scaled, up to a constant.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Draws of the parameter.
        release : NoisyStatistic
            The release.
        scale : float
            Power of the likelihood of the exact sum, above 0 and at most 1.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods.
        """
        if release.n_samples == 0:
            return np.zeros(len(phi))
        if release.noise_scale == 0:
            exact_sum = np.array([[np.round(release.statistic[0])]])
            return scale * self._log_mass(phi, release.n_samples, exact_sum)[:, 0]
        return self._log_sum(phi, release, scale)

    def _log_sum(self, phi, release, scale):
        """Logarithm of the sum over exact sums of mass^scale times density of noise.

        The sum has `_N_TERMS` terms on each side of the largest one. They are a third
        of the width of the peak apart, at least 1: with a longer step the terms are
        smooth, and each stands for the sums in an interval around it.
        """
        count = release.n_samples
        released = release.statistic[0]
        noise_scale = release.noise_scale
        largest = self._largest_sums(phi[:, 0], release)

        # The logarithm of a term is concave in the sum: its slope is bisected.
        low = np.zeros_like(largest)
        high = largest
        for _ in range(_N_BISECTIONS):
            middle = 0.5 * (low + high)
            slope = scale * self._slope(phi[:, 0], count, middle)
            slope += (released - middle) / noise_scale / noise_scale
            low = np.where(slope > 0, middle, low)
            high = np.where(slope > 0, high, middle)
        peak = np.round(low)

        curvature = scale * self._curvature(count, peak) + noise_scale**-2.0
        step = np.maximum(np.floor(1 / np.sqrt(curvature) / 3), 1.0)
        sums = peak[:, None] + step[:, None] * np.arange(-_N_TERMS, _N_TERMS + 1)
        starts = np.maximum(sums - 0.5 * step[:, None], -0.5)
        ends = np.minimum(sums + 0.5 * step[:, None], largest[:, None] + 0.5)
        n_sums = np.maximum(ends - starts, 0.0)
        sums = np.clip(sums, 0, largest[:, None])
        terms = scale * self._log_mass(phi, count, sums)
        terms -= 0.5 * ((released - sums) / noise_scale) ** 2
        return logsumexp(terms, b=n_sums, axis=1)

    def _exact_statistics(self, phi, release, rng):
        # The distribution of the exact sum is approximated as normal.
        count = release.n_samples
        means, variances = self._row_mean_and_variance(phi[:, 0])
        sums = draw_behind_noise(
            release.vector,
            release.noise_scale**2,
            count * means[:, None],
            count * variances[:, None, None],
            rng,
        )
        return np.round(np.clip(sums, 0, count * release.bounds[1]))

    @abstractmethod
    def _row_mean_and_variance(self, phi):
        """Mean and variance of one number, for phi of shape (n,)."""


class BetaBernoulli(CountModel):
    """Model of the probability of ones among zeros and ones, with a Beta prior.

    The mediator's model of ``MeanRelease(family="bernoulli")``; phi is the logit of the
    probability. The likelihood of a noisy number of ones is a sum over the exact
    numbers. Without noise the posterior is a Beta distribution.

    Parameters
    ----------
    a, b : float, default=1
        Parameters of the Beta prior.

    See Also
    --------
    MeanRelease : Makes the release of a party.

    References
    ----------
    G. Bernstein, D. Sheldon: "Differentially Private Bayesian Inference for
    Exponential Families", NeurIPS 2018; Sim et al., NeurIPS 2023, Section 2.

    Examples
    --------
    >>> from skvalue.collaborative import (
    ...     BayesianSurpriseScorer, BetaBernoulli, NoisyStatistic
    ... )
    >>> release = NoisyStatistic("bernoulli", 50, (20.0,), None, 2.0, (0.0, 1.0))
    >>> scorer = BayesianSurpriseScorer(BetaBernoulli()).fit({"a": release})
    >>> scorer.values_.round(4).tolist()
    [1.2795]
    """

    _kind = "bernoulli"
    _targets = "zeros and ones"

    def prior_quantile(self, u):
        """Quantiles of the prior of the logit.

        Parameters
        ----------
        u : ndarray
            Probabilities in (0, 1).

        Returns
        -------
        phi : ndarray
            Quantiles.
        """
        u = np.asarray(u, dtype=float)
        a = self.a
        b = self.b
        # The upper half is the lower half of the zeros, so that neither rounds to 1.
        is_lower = u <= 0.5
        lower = _logit_quantiles(np.where(is_lower, u, 0.5), a, b)
        upper = -_logit_quantiles(np.where(is_lower, 0.5, 1 - u), b, a)
        phi = np.where(is_lower, lower, upper)

        # Where a or b is small, tails reach beyond the middle.
        log_ones = _log_tail_quantiles(u, a, np.log(a) + betaln(a, b))
        log_zeros = _log_tail_quantiles(1 - u, b, np.log(b) + betaln(a, b))
        phi = np.where(log_ones < _LOG_TINY, log_ones, phi)
        return np.where(log_zeros < _LOG_TINY, -log_zeros, phi)

    def log_prior(self, phi):
        """Log density of the logit under the prior, up to a constant.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Logits.

        Returns
        -------
        log_density : ndarray of shape (n_draws,)
            Log densities.
        """
        return self.a * log_expit(phi[:, 0]) + self.b * log_expit(-phi[:, 0])

    def _log_mass(self, phi, count, sums):
        log_binomial = gammaln(count + 1) - gammaln(sums + 1)
        log_binomial = log_binomial - gammaln(count - sums + 1)
        log_ones = sums * log_expit(phi)
        log_zeros = (count - sums) * log_expit(-phi)
        return log_binomial + log_ones + log_zeros

    def _slope(self, phi, count, sums):
        return phi + np.log((count - sums + 0.5) / (sums + 0.5))

    def _curvature(self, count, sums):
        return 1 / (sums + 0.5) + 1 / (count - sums + 0.5)

    def _largest_sums(self, phi, release):
        return np.full(len(phi), float(release.n_samples))

    def _row_mean_and_variance(self, phi):
        probability = expit(phi)
        return probability, probability * (1 - probability)

    def exact_posteriors(self, counts, statistics):
        """Posteriors of exact numbers of ones, which are Beta distributions.

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
        return BetaProbabilities(self, counts, statistics[:, 0])

    def predict_logpdf(self, phi, X, y):
        """Log probability of zeros and ones at every draw.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Logits.
        X : ignored
            There are no features.
        y : ndarray of shape (n_rows,)
            Zeros and ones.

        Returns
        -------
        log_probability : ndarray of shape (n_draws, n_rows)
            Log probabilities.
        """
        signs = np.where(np.asarray(y) == 1, 1.0, -1.0)
        return log_expit(signs * phi)


class GammaPoisson(CountModel):
    """Model of the rate of Poisson counts, with a Gamma prior.

    The mediator's model of ``MeanRelease(family="poisson")``; phi is the logarithm of
    the rate. The likelihood of a noisy sum is a sum over the exact sums. Without noise
    the posterior is a Gamma distribution. Clipping to the bounds is not modelled:
    choose an upper bound that few counts reach.

    Parameters
    ----------
    a, b : float, default=1
        Shape and rate of the Gamma prior.

    See Also
    --------
    MeanRelease : Makes the release of a party.

    References
    ----------
    G. Bernstein, D. Sheldon: "Differentially Private Bayesian Inference for
    Exponential Families", NeurIPS 2018; Sim et al., NeurIPS 2023, Section 2.

    Examples
    --------
    >>> from skvalue.collaborative import (
    ...     BayesianSurpriseScorer, GammaPoisson, NoisyStatistic
    ... )
    >>> release = NoisyStatistic("poisson", 50, (80.0,), None, 2.0, (0.0, 9.0))
    >>> scorer = BayesianSurpriseScorer(GammaPoisson()).fit({"a": release})
    >>> scorer.values_.round(4).tolist()
    [1.908]
    """

    _kind = "poisson"
    _targets = "counts"

    def prior_quantile(self, u):
        """Quantiles of the prior of the log rate.

        Parameters
        ----------
        u : ndarray
            Probabilities in (0, 1).

        Returns
        -------
        phi : ndarray
            Quantiles.
        """
        u = np.asarray(u, dtype=float)
        lower = stats.gamma.ppf(u, self.a)
        upper = stats.gamma.isf(np.minimum(1 - u, 0.5), self.a)
        rates = np.where(u <= 0.5, lower, upper)
        log_rates = _log_tail_quantiles(u, self.a, gammaln(self.a + 1))
        is_tiny = log_rates < _LOG_TINY
        log_rates = np.where(is_tiny, log_rates, np.log(np.where(is_tiny, 1.0, rates)))
        return log_rates - np.log(self.b)

    def log_prior(self, phi):
        """Log density of the log rate under the prior, up to a constant.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Log rates.

        Returns
        -------
        log_density : ndarray of shape (n_draws,)
            Log densities.
        """
        return self.a * phi[:, 0] - self.b * np.exp(phi[:, 0])

    def _log_mass(self, phi, count, sums):
        log_mean = np.log(count) + phi
        return sums * log_mean - np.exp(log_mean) - gammaln(sums + 1)

    def _slope(self, phi, count, sums):
        return np.log(count) + phi - np.log(sums + 0.5)

    def _curvature(self, count, sums):
        return 1 / (sums + 0.5)

    def _largest_sums(self, phi, release):
        # Clipping is not modelled, so that sums have no bound; far above the mean and
        # the released sum, terms vanish.
        log_mean = np.log(release.n_samples) + phi
        mean = np.exp(np.minimum(log_mean, _MAX_LOG_MEAN))
        far_sum = release.statistic[0] + 40 * release.noise_scale
        return 100 + 20 * np.maximum(mean, far_sum)

    def _row_mean_and_variance(self, phi):
        mean = np.exp(np.minimum(phi, _MAX_LOG_MEAN))
        return mean, mean

    def exact_posteriors(self, counts, statistics):
        """Posteriors of exact sums of counts, which are Gamma distributions.

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
        return GammaRates(self, counts, statistics[:, 0])

    def predict_logpdf(self, phi, X, y):
        """Log probability of counts at every draw.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Log rates.
        X : ignored
            There are no features.
        y : ndarray of shape (n_rows,)
            Counts.

        Returns
        -------
        log_probability : ndarray of shape (n_draws, n_rows)
            Log probabilities.
        """
        y = np.asarray(y, dtype=float)
        return y * phi - np.exp(phi) - gammaln(y + 1)


def _log_tail_quantiles(u, power, log_factor):
    """Logarithms of quantiles at u, where the distribution function is a power of x.

    Near 0 the distribution functions of Gamma and Beta are ``x^power / exp(
    log_factor)``: tiny quantiles, which need not be floats, have logarithms.
    """
    with np.errstate(divide="ignore"):
        return np.maximum((np.log(u) + log_factor) / power, _MIN_LOG)


def _logit_quantiles(u, a, b):
    """Logits of quantiles of Beta(a, b) at u of at most 1/2; infinite at 0 and 1."""
    x = stats.beta.ppf(u, a, b)
    with np.errstate(divide="ignore"):
        return np.log(x) - np.log1p(-x)
