"""Bayesian logistic regression from exact or noisy degree-2 statistics."""

from numbers import Real

import numpy as np
from scipy.special import log_expit
from sklearn.base import BaseEstimator, clone

from .._sklearn import Interval, StrOptions
from ._gaussian import log_normal, plugin_second_moments
from ._models import PriorChecks, common_facts, positive_definite
from ._statistics import split_logistic, svec_index

__all__ = ["BayesianLogistic", "chebyshev_coefficients", "gaussian_kl", "statistic_moments"]

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


def chebyshev_coefficients(radius):
    """Coefficients b0, b1, b2 of the quadratic that stands for log sigmoid(s), |s| <= radius.

    The projection on Chebyshev polynomials of degree up to 2, as in PASS-GLM; b1 is 1/2.
    """
    k = 400
    t = np.cos(np.pi * (np.arange(k) + 0.5) / k)
    f = log_expit(radius * t)
    a0, a1, a2 = f.mean(), 2 * np.mean(f * t), 2 * np.mean(f * (2 * t * t - 1))
    return a0 - a2, a1 / radius, 2 * a2 / radius**2


def gaussian_kl(mean, precision, prior_mean, prior_precision):
    """Divergence of one normal law from another, by their precisions."""
    shift = mean - prior_mean
    return 0.5 * float(
        np.trace(np.linalg.solve(precision, prior_precision))
        - len(shift)
        + np.linalg.slogdet(precision)[1]
        - np.linalg.slogdet(prior_precision)[1]
        + shift @ prior_precision @ shift
    )


def statistic_moments(w, second):
    """Mean and covariance of one row's statistic (y x, svec x x'), one a row of w.

    For x ~ N(0, second) and y = 1 with chance sigmoid(x'w). With u = x'w ~ N(0, v), b = second w
    and f = tanh(u / 2), which is E[y | x]: E[y x] = b E[f u] / v, and given u, x is normal with
    mean b u / v and the covariance second - b b' / v.
    """
    p = second.shape[0]
    rows, columns, weights = svec_index(p)
    b = w @ second
    v = np.maximum(np.sum(b * w, axis=1), 1e-12)
    u = np.sqrt(v)[:, None] * _NODES
    f = np.tanh(u / 2)
    first = (f * u) @ _NODE_WEIGHTS / v
    third = (f * u**3) @ _NODE_WEIGHTS / v**3
    mean_yx = first[:, None] * b
    rest = second - b[:, :, None] * b[:, None, :] / v[:, None, None]
    # E[y x_k x_i x_j], k first.
    bi, bj = b[:, rows], b[:, columns]
    moments = third[:, None, None] * b[:, :, None] * (bi * bj)[:, None, :]
    moments += first[:, None, None] * (
        b[:, :, None] * rest[:, rows, columns][:, None, :]
        + bi[:, None, :] * rest[:, :, columns]
        + bj[:, None, :] * rest[:, :, rows]
    )
    size = p + len(rows)
    covariance = np.empty((len(w), size, size))
    covariance[:, :p, :p] = second - mean_yx[:, :, None] * mean_yx[:, None, :]
    cross = (moments - mean_yx[:, :, None] * second[rows, columns]) * weights
    covariance[:, :p, p:] = cross
    covariance[:, p:, :p] = np.swapaxes(cross, 1, 2)
    fourth = (
        second[rows[:, None], rows] * second[columns[:, None], columns]
        + second[rows[:, None], columns] * second[columns[:, None], rows]
    )
    covariance[:, p:, p:] = fourth * weights[:, None] * weights
    mean = np.empty((len(w), size))
    mean[:, :p], mean[:, p:] = mean_yx, second[rows, columns] * weights
    return mean, covariance


class BayesianLogistic(PriorChecks, BaseEstimator):
    """Logistic regression without intercept: w ~ N(mean, precision^-1).

    The mediator's model of `LogisticRelease`; phi = w. By default, a statistic is normal given w,
    with moments computed for normal x of mean 0 (20-node quadrature along x'w) and the noise on
    top. `approximation="quadratic"` puts a quadratic in place of log sigmoid, as PASS-GLM does: its
    posterior is normal, but it takes noise for data.

    Parameters
    ----------
    precision : float or array-like of shape (n_features, n_features), default=1
        Prior precision; a number stands for that times the identity.
    mean : float or array-like of shape (n_features,), default=0
        Prior mean.
    classes : tuple of two labels, default=(0, 1)
        The negative and the positive class, as at the parties.
    x_covariance : array-like of shape (n_features, n_features), default=None
        Covariance of x at every party, if it is public. None estimates second moments from each
        party's own release.
    approximation : {"normal", "quadratic"}, default="normal"
        The likelihood.
    radius : float, default=4
        For "quadratic": the quadratic is fitted for x'w in [-radius, radius].

    See Also
    --------
    LogisticRelease : A party's side.

    References
    ----------
    J. H. Huggins, R. P. Adams, T. Broderick, NeurIPS 2017; T. Kulkarni, J. Jälkö, A. Koskela, S.
    Kaski, A. Honkela: "Differentially Private Bayesian Inference for Generalized Linear Models",
    ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import BayesianLogistic, LogisticRelease
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) / 2
    >>> release = LogisticRelease(None).fit(X, X[:, 0] > 0).release_
    >>> model = BayesianLogistic(approximation="quadratic").bind([release])
    >>> round(model.exact_surprise([release], [1.0]), 2)
    9.51
    """

    _parameter_constraints: dict = {
        "precision": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "mean": [Real, "array-like"],
        "classes": [tuple, list],
        "x_covariance": ["array-like", None],
        "approximation": [StrOptions({"normal", "quadratic"})],
        "radius": [Interval(Real, 0, None, closed="neither")],
    }
    task = "classification"

    def __init__(
        self,
        precision=1.0,
        *,
        mean=0.0,
        classes=(0, 1),
        x_covariance=None,
        approximation="normal",
        radius=4.0,
    ):
        self.precision = precision
        self.mean = mean
        self.classes = classes
        self.x_covariance = x_covariance
        self.approximation = approximation
        self.radius = radius

    def bind(self, releases):
        """Copy of the model that knows the number of features, after a check of the releases.

        Parameters
        ----------
        releases : sequence of Release
            The parties' releases.

        Returns
        -------
        model : BayesianLogistic
            The copy, whose other methods work.

        Raises
        ------
        ValueError
            If the releases are of another kind or disagree in number of features or bounds, or a
            prior parameter has the wrong shape.
        """
        self._validate_params()
        facts = common_facts(releases, ("logistic",), ["n_features", "bounds"], "BayesianLogistic")
        bound = clone(self)
        p = bound.n_features_in_ = facts["n_features"]
        bound.classes_ = np.asarray(self.classes)
        bound.prior_mean_ = np.broadcast_to(np.asarray(self.mean, float), p).copy()
        bound.prior_precision_ = positive_definite(self.precision, p, "precision")
        bound._factor = np.linalg.cholesky(bound.prior_precision_)
        bound._second = None
        if self.x_covariance is not None:
            bound._second = positive_definite(self.x_covariance, p, "x_covariance")
        bound._coefficients = chebyshev_coefficients(self.radius)
        return bound

    def sample_prior(self, size, rng):
        """Draws from the prior.

        Parameters
        ----------
        size : int
            How many.
        rng : numpy Generator
            Source of randomness.

        Returns
        -------
        phi : ndarray of shape (size, n_features)
            Weights.
        """
        z = rng.standard_normal((len(self.prior_mean_), size))
        return self.prior_mean_ + np.linalg.solve(self._factor.T, z).T

    def log_prior(self, phi):
        """Log density of the prior.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_features)
            Weights.

        Returns
        -------
        log_density : ndarray of shape (n_draws,)
            Log densities.
        """
        square = np.sum(((phi - self.prior_mean_) @ self._factor) ** 2, axis=1)
        constant = np.log(np.diag(self._factor)).sum() - 0.5 * phi.shape[1] * np.log(2 * np.pi)
        return constant - 0.5 * square

    def party_loglik(self, phi, release):
        """Log-likelihood of one party's release.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_features)
            Weights.
        release : Release
            The release.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Up to a number that does not depend on phi.
        """
        count = float(release.n_samples)
        if count == 0:
            return np.zeros(len(phi))
        sums, gram = split_logistic(release.vector, release.n_features)
        if self.approximation == "quadratic":
            _, b1, b2 = self._coefficients
            values, vectors = np.linalg.eigh(gram)
            gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
            return b1 * (phi @ sums) + b2 * np.sum((phi @ gram) * phi, axis=1)
        variance = release.noise_scale**2
        second = self._second
        if second is None:
            second = plugin_second_moments(gram, count, variance, release.bounds[0])
        mean, covariance = statistic_moments(phi, second)
        covariance *= count
        diagonal = np.arange(covariance.shape[1])
        covariance[:, diagonal, diagonal] *= 1 + 1e-9
        covariance[:, diagonal, diagonal] += variance
        return log_normal(release.vector - count * mean, covariance)

    def exact_surprise(self, releases, weights):
        """Kullback-Leibler divergence of the quadratic approximation's posterior from the prior.

        Parameters
        ----------
        releases : sequence of Release
            The releases; noise in them is taken for data.
        weights : array-like of shape (n_parties,)
            Power of each party's likelihood: 1 for members of a coalition, else 0.

        Returns
        -------
        surprise : float
            In nats.
        """
        _, b1, b2 = self._coefficients
        precision = self.prior_precision_.copy()
        right = self.prior_precision_ @ self.prior_mean_
        for weight, release in zip(weights, releases):
            sums, gram = split_logistic(release.vector, release.n_features)
            values, vectors = np.linalg.eigh(gram)
            gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
            precision -= 2 * b2 * weight * gram
            right = right + b1 * weight * sums
        mean = np.linalg.solve(precision, right)
        return gaussian_kl(mean, precision, self.prior_mean_, self.prior_precision_)

    def predict_logpdf(self, phi, X, y):
        """Log probability of labels at every draw.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_features)
            Weights.
        X : ndarray of shape (n_rows, n_features)
            Rows.
        y : ndarray of shape (n_rows,)
            Their labels, of `classes`.

        Returns
        -------
        log_probability : ndarray of shape (n_draws, n_rows)
            Logarithms.
        """
        signs = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        return log_expit(signs * (phi @ X.T))
