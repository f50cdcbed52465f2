"""Models of one parameter for sums of integers: Bernoulli and Poisson."""

from numbers import Real

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln, log_expit, logsumexp

from ..._utils.sklearn import Interval
from .families import Family

_STEPS = 60  # on each side of the largest term of a sum over counts
_BISECTIONS = 70


def _log_noisy_counts(log_mass, slope, bend, release, highest):
    """Log of the sum over counts k of mass(phi, k) times the density of the noise at z - k.

    ``log_mass(k)`` takes counts of shape (n_phi, m) or (1, m); `slope` is its derivative and `bend`
    minus its second derivative, at counts of shape (n_phi,); `highest` (n_phi,) bounds the counts.
    The sum has `_STEPS` terms on each side of the largest, in steps of a third of the width of the
    peak, at least 1: with longer steps the terms are smooth, and each is weighted by the step.
    """
    z, scale = release.statistic[0], release.noise_scale
    if scale == 0:
        return log_mass(np.array([[round(z)]]))[:, 0]
    low, high = np.zeros_like(highest), highest
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        rises = slope(middle) + (z - middle) / scale / scale > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    peak = np.round(low)
    step = np.maximum(np.floor(1 / np.sqrt(bend(peak) + scale**-2.0) / 3), 1.0)
    counts = peak[:, None] + step[:, None] * np.arange(-_STEPS, _STEPS + 1)
    inside = (counts >= 0) & (counts <= highest[:, None])
    counts = np.clip(counts, 0, highest[:, None])
    terms = log_mass(counts) - 0.5 * ((z - counts) / scale) ** 2
    return logsumexp(np.where(inside, terms, -np.inf), axis=1) + np.log(step)


def _beta_lower_logit(u, a, b):
    """Logit of lower quantiles of a Beta distribution; near 0 its CDF is a power of x."""
    log_x = (np.log(u) + np.log(a) + betaln(a, b)) / a
    x = stats.beta.ppf(np.where(log_x < -14, 0.5, u), a, b)
    return np.where(log_x < -14, log_x, np.log(x) - np.log1p(-x))


class _CountFamily(Family):
    """Base class of models with a conjugate prior of parameters a and b."""

    _parameter_constraints: dict = {
        "a": [Interval(Real, 0, None, closed="neither")],
        "b": [Interval(Real, 0, None, closed="neither")],
    }
    _prior_parameters = ("a", "b")

    def __init__(self, a=1.0, b=1.0):
        self.a = a
        self.b = b


class BetaBernoulli(_CountFamily):
    """Model of the probability of a 1 among zeros and ones, with a Beta prior.

    The mediator's model of ``MeanRelease(family="bernoulli")``; phi is the logit of the
    probability. The likelihood of a noisy count is a sum over the possible exact counts.

    Parameters
    ----------
    a, b : float, default=1
        Parameters of the Beta prior.

    See Also
    --------
    MeanRelease : Makes the release of a party.

    References
    ----------
    G. Bernstein, D. Sheldon, NeurIPS 2018.

    Examples
    --------
    >>> from skvalue.collaborative import BayesianSurpriseScorer, BetaBernoulli, Release
    >>> release = Release("bernoulli", 50, (20.0,), None, 2.0, (0.0, 1.0))
    >>> BayesianSurpriseScorer(BetaBernoulli()).fit({"a": release}).values_.round(4).tolist()
    [1.2795]
    """

    _kind = "bernoulli"

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
        # The upper tail is the lower tail of the other class, so that neither rounds to 1.
        low = _beta_lower_logit(np.minimum(u, 0.5), self.a, self.b)
        high = -_beta_lower_logit(np.minimum(1 - u, 0.5), self.b, self.a)
        return np.clip(np.where(u <= 0.5, low, high), -700, 700)

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

    def party_loglik(self, phi, release):
        """Log-likelihood of a release, up to a constant.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Logits.
        release : Release
            The release.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods.
        """
        n = release.n_samples
        if n == 0:
            return np.zeros(len(phi))
        yes, no = log_expit(phi), log_expit(-phi)

        def log_mass(k):
            return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * yes + (n - k) * no

        def slope(k):
            return phi[:, 0] + np.log((n - k + 0.5) / (k + 0.5))

        def bend(k):
            return 1 / (k + 0.5) + 1 / (n - k + 0.5)

        return _log_noisy_counts(log_mass, slope, bend, release, np.full(len(phi), float(n)))

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
        log_mass : ndarray of shape (n_draws, n_rows)
            Log probabilities.
        """
        return log_expit(np.where(np.asarray(y) == 1, 1.0, -1.0) * phi)


class GammaPoisson(_CountFamily):
    """Model of the rate of Poisson counts, with a Gamma prior.

    The mediator's model of ``MeanRelease(family="poisson")``; phi is the logarithm of the rate. The
    likelihood of a noisy sum is a sum over the possible exact sums. Clipping to the bounds is not
    modelled: choose an upper bound that few counts reach.

    Parameters
    ----------
    a, b : float, default=1
        Shape and rate of the Gamma prior.

    See Also
    --------
    MeanRelease : Makes the release of a party.

    References
    ----------
    G. Bernstein, D. Sheldon, NeurIPS 2018.

    Examples
    --------
    >>> from skvalue.collaborative import BayesianSurpriseScorer, GammaPoisson, Release
    >>> release = Release("poisson", 50, (80.0,), None, 2.0, (0.0, 9.0))
    >>> BayesianSurpriseScorer(GammaPoisson()).fit({"a": release}).values_.round(4).tolist()
    [1.908]
    """

    _kind = "poisson"

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
        rates = np.where(
            u <= 0.5, stats.gamma.ppf(u, self.a), stats.gamma.isf(np.minimum(1 - u, 0.5), self.a)
        )
        return np.log(np.maximum(rates, 1e-300)) - np.log(self.b)

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

    def party_loglik(self, phi, release):
        """Log-likelihood of a release, up to a constant.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, 1)
            Log rates.
        release : Release
            The release.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods.
        """
        n = release.n_samples
        if n == 0:
            return np.zeros(len(phi))
        log_mean = np.log(n) + phi

        def log_mass(k):
            return k * log_mean - np.exp(log_mean) - gammaln(k + 1)

        def slope(k):
            return log_mean[:, 0] - np.log(k + 0.5)

        def bend(k):
            return 1 / (k + 0.5)

        # Clipping is not modelled, so counts have no bound; far above the mean terms vanish.
        mean = np.exp(np.minimum(log_mean[:, 0], 600.0))
        highest = 100 + 20 * np.maximum(mean, release.statistic[0])
        return _log_noisy_counts(log_mass, slope, bend, release, highest)

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
        log_mass : ndarray of shape (n_draws, n_rows)
            Log probabilities.
        """
        y = np.asarray(y, float)
        return y * phi - np.exp(phi) - gammaln(y + 1)
