"""Bayesian logistic regression from exact or noisy statistics of degree 2."""

from numbers import Integral, Real

import numpy as np
from scipy.special import log_expit
from sklearn.base import clone

from ..._utils.sklearn import Interval, StrOptions, check_parameters
from ...privacy import svec_index
from ..party import split_logistic
from ._gaussian import covariance_of_products, gaussian_kl, log_normal
from ._models import PriorModel, common_facts, positive_definite, public_moments
from ._moments import plugin_second_moments, posterior_second_moments

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


def chebyshev_coefficients(radius):
    """Coefficients b0, b1, b2 of the quadratic approximation of log sigmoid(s), |s| <= radius.

    The projection on Chebyshev polynomials of degree at most 2, as in PASS-GLM; b1 is 1/2.
    """
    k = 400
    t = np.cos(np.pi * (np.arange(k) + 0.5) / k)
    f = log_expit(radius * t)
    a0, a1, a2 = f.mean(), 2 * np.mean(f * t), 2 * np.mean(f * (2 * t * t - 1))
    return a0 - a2, a1 / radius, 2 * a2 / radius**2


def statistic_moments(w, second, intercept=False):
    """Mean and covariance of the statistic (y u, svec u u') of one row, for each row of w.

    u = ([1,] x) is normal with second moments ``second``, and mean a: their first column, or 0.
    y = 1 with probability sigmoid(w'u), so that E[y | u] = f = tanh(w'u / 2). With w'u = mu +
    sqrt(v) d, d standard normal, u given d is normal with mean a + g d and covariance rest = C -
    g g', where C is the covariance of u and g = C w / sqrt(v). Hence E[y u_i u_j u_k] is the mean
    over d of f times third moments of a normal distribution, which needs e_n = E[f d^n], n <= 3.
    """
    size = second.shape[0]
    rows, columns, weights = (some[int(intercept) :] for some in svec_index(size))
    a = second[0] if intercept else np.zeros(size)
    covariance_u = second - np.outer(a, a)
    b = w @ covariance_u
    v = np.maximum(np.sum(b * w, axis=1), 1e-12)
    g = b / np.sqrt(v)[:, None]
    f = np.tanh(((w @ a)[:, None] + np.sqrt(v)[:, None] * _NODES) / 2)
    e0, e1, e2, e3 = (f @ (_NODE_WEIGHTS * _NODES**n)[:, None] for n in range(4))
    mean_yu = e0 * a + e1 * g
    rest = covariance_u - g[:, :, None] * g[:, None, :]
    # E[y u_k u_i u_j], k first.
    ai, aj, gi, gj = a[rows], a[columns], g[:, rows], g[:, columns]
    flat, mixed, steep = ai * aj, ai * gj + gi * aj, gi * gj
    moments = a[:, None] * (e0 * flat + e1 * mixed + e2 * steep)[:, None]
    moments += g[:, :, None] * (e1 * flat + e2 * mixed + e3 * steep)[:, None]
    moments += (
        mean_yu[:, :, None] * rest[:, rows, columns][:, None, :]
        + mean_yu[:, rows][:, None, :] * rest[:, :, columns]
        + mean_yu[:, columns][:, None, :] * rest[:, :, rows]
    )
    whole = size + len(rows)
    covariance = np.empty((len(w), whole, whole))
    covariance[:, :size, :size] = second - mean_yu[:, :, None] * mean_yu[:, None, :]
    cross = (moments - mean_yu[:, :, None] * second[rows, columns]) * weights
    covariance[:, :size, size:] = cross
    covariance[:, size:, :size] = np.swapaxes(cross, 1, 2)
    fourth = covariance_of_products(second, rows, columns, intercept)
    covariance[:, size:, size:] = fourth * weights[:, None] * weights
    mean = np.empty((len(w), whole))
    mean[:, :size], mean[:, size:] = mean_yu, second[rows, columns] * weights
    return mean, covariance


class BayesianLogistic(PriorModel):
    """Bayesian logistic regression with the prior w ~ N(mean, precision^-1).

    The mediator's model of `LogisticRelease`; phi = w, the intercept first if there is one. By
    default, a statistic given w is approximated by a normal distribution, with moments computed for
    normal x (centred, unless there is an intercept; 20-node quadrature along x'w) plus the variance
    of the noise. ``approximation="quadratic"`` replaces log sigmoid by a quadratic, as PASS-GLM
    does: its posterior is normal, but it does not model the noise.

    Parameters
    ----------
    precision : float or array-like of shape (n_weights, n_weights), default=1
        Prior precision; a number is multiplied by the identity.
    mean : float or array-like of shape (n_weights,), default=0
        Prior mean.
    classes : tuple of two labels, default=(0, 1)
        The negative and the positive class, the same as in the releases.
    x_covariance : array-like of shape (n_features, n_features), default=None
        Covariance of x at every party, if it is public; `moments` is then ignored.
    moments : {"plugin", "hierarchical"}, default="plugin"
        How unknown second moments of x are treated. "plugin" estimates them from each party's
        release, with shrinkage towards a multiple of the identity, and takes them as known.
        "hierarchical" integrates over them given that release, with an inverse Wishart prior, and
        is `moment_draws` times slower.
    moment_draws : int, default=32
        Number of draws for "hierarchical", at most 256.
    approximation : {"normal", "quadratic"}, default="normal"
        Approximation of the likelihood.
    radius : float, default=4
        For "quadratic": the quadratic is fitted for x'w in [-radius, radius].

    See Also
    --------
    LogisticRelease : Makes the release of a party.

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
        "moments": [StrOptions({"plugin", "hierarchical"})],
        "moment_draws": [Interval(Integral, 1, 256, closed="both")],
        "approximation": [StrOptions({"normal", "quadratic"})],
        "radius": [Interval(Real, 0, None, closed="neither")],
    }
    task = "classification"
    _prior_parameters = ("precision", "mean")

    def __init__(
        self,
        precision=1.0,
        *,
        mean=0.0,
        classes=(0, 1),
        x_covariance=None,
        moments="plugin",
        moment_draws=32,
        approximation="normal",
        radius=4.0,
    ):
        self.precision = precision
        self.mean = mean
        self.classes = classes
        self.x_covariance = x_covariance
        self.moments = moments
        self.moment_draws = moment_draws
        self.approximation = approximation
        self.radius = radius

    def bind(self, releases):
        """Check the releases, and return a copy of the model with their number of features.

        Parameters
        ----------
        releases : sequence of Release
            The parties' releases.

        Returns
        -------
        model : BayesianLogistic
            The bound copy; the other methods need it.

        Raises
        ------
        ValueError
            If the releases are of another kind, differ in number of features, intercept, bounds or
            classes, have other classes than the model, or a prior parameter has the wrong shape.
        """
        check_parameters(self)
        names = ["n_features", "intercept", "bounds", "classes"]
        facts = common_facts(releases, ("logistic",), names, "BayesianLogistic")
        if facts["classes"] and tuple(self.classes) != facts["classes"]:
            raise ValueError(
                f"classes must be those of the releases, {facts['classes']!r}. Got "
                f"{self.classes!r}."
            )
        bound = clone(self)
        bound.n_features_in_, bound.intercept_ = facts["n_features"], facts["intercept"]
        p = bound.n_features_in_ + bound.intercept_
        bound.classes_ = np.asarray(self.classes)
        bound.prior_mean_ = np.broadcast_to(np.asarray(self.mean, float), p).copy()
        bound.prior_precision_ = positive_definite(self.precision, p, "precision")
        bound._factor = np.linalg.cholesky(bound.prior_precision_)
        bound._second = public_moments(self.x_covariance, bound.n_features_in_, bound.intercept_)
        bound._seen = {}
        bound._coefficients = chebyshev_coefficients(self.radius)
        return bound

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
        phi : ndarray of shape (size, n_weights)
            Draws of the weights.
        """
        z = rng.standard_normal((len(self.prior_mean_), size))
        return self.prior_mean_ + np.linalg.solve(self._factor.T, z).T

    def log_prior(self, phi):
        """Log density of the prior.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_weights)
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
        phi : ndarray of shape (n_draws, n_weights)
            Weights.
        release : Release
            The release.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods, up to a constant that does not depend on phi.
        """
        if release.n_samples == 0:
            return np.zeros(len(phi))
        if self.approximation == "quadratic":
            sums, gram = self._quadratic(release)
            return phi @ sums + np.sum((phi @ gram) * phi, axis=1)
        if release not in self._seen:
            self._seen[release] = self._learn(release)
        second, marginals = self._seen[release]
        if marginals is None:
            return self._noisy_loglik(phi, release, second)
        # The likelihood given the sums of x, on which the draws are already conditioned.
        logs = [self._noisy_loglik(phi, release, draw) - m for draw, m in zip(second, marginals)]
        return np.logaddexp.reduce(logs)

    def _noisy_loglik(self, phi, release, second):
        count, variance = float(release.n_samples), release.noise_scale**2
        mean, covariance = statistic_moments(phi, second, release.intercept)
        covariance *= count
        diagonal = np.arange(covariance.shape[1])
        covariance[:, diagonal, diagonal] *= 1 + 1e-9
        covariance[:, diagonal, diagonal] += variance
        return log_normal(release.vector - count * mean, covariance)

    def _split(self, release):
        return split_logistic(
            release.vector, release.n_features, release.intercept, release.n_samples
        )

    def _learn(self, release):
        """Second moments of x, or draws of them and the log density of the sums of x under each."""
        if self._second is not None:
            return self._second, None
        _, gram = self._split(release)
        count, variance = float(release.n_samples), release.noise_scale**2
        facts = gram, count, variance, release.bounds[0], release.intercept
        if self.moments == "hierarchical":
            return posterior_second_moments(*facts, self.moment_draws)
        return plugin_second_moments(*facts), None

    def _quadratic(self, release):
        """Linear and quadratic coefficients of the approximate log-likelihood."""
        _, b1, b2 = self._coefficients
        sums, gram = self._split(release)
        values, vectors = np.linalg.eigh(gram)
        return b1 * sums, b2 * (vectors * np.maximum(values, 0.0)) @ vectors.T

    def exact_surprise(self, releases, weights):
        """Divergence of the posterior by the quadratic approximation from the prior.

        Parameters
        ----------
        releases : sequence of Release
            The releases; their noise is not modelled.
        weights : array-like of shape (n_parties,)
            Power of each party's likelihood: 1 for the parties of a coalition, else 0.

        Returns
        -------
        surprise : float
            Kullback-Leibler divergence, in nats.
        """
        precision = self.prior_precision_.copy()
        right = self.prior_precision_ @ self.prior_mean_
        for weight, release in zip(weights, releases):
            sums, gram = self._quadratic(release)
            precision -= 2 * weight * gram
            right = right + weight * sums
        mean = np.linalg.solve(precision, right)
        return gaussian_kl(mean, precision, self.prior_mean_, self.prior_precision_)

    def predict_logpdf(self, phi, X, y):
        """Log probability of labels at every draw.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_weights)
            Weights.
        X : ndarray of shape (n_rows, n_features)
            Rows.
        y : ndarray of shape (n_rows,)
            Labels of the rows, from `classes`.

        Returns
        -------
        log_probability : ndarray of shape (n_draws, n_rows)
            Log probabilities.
        """
        signs = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        w = phi[:, 1:] if self.intercept_ else phi
        return log_expit(signs * (w @ X.T + (phi[:, :1] if self.intercept_ else 0.0)))
