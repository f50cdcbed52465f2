"""Bayesian linear regression with unknown variance, from releases of Gram matrices."""

from numbers import Real

import numpy as np
from scipy.special import gammaln

from ..._utils.sklearn import Interval
from ...privacy import smat, svec
from ..party import unpack_gram, unpack_grams
from ._draws import nearest_positive, shrink_squares
from ._exact import NormalInverseGammas
from ._gaussian import joint_moments, noisy_gram_loglik, products_of_row
from ._models import PartyMoments, RegressionModel


class BayesianLinear(RegressionModel):
    """Bayesian linear regression with unknown variance, for releases of Gram matrices.

    The mediator's model of `GramRelease`, with the prior w | s2 ~ N(mean, s2
    precision^-1), s2 ~ InverseGamma(a0, b0). phi = (w, log s2), the intercept first if
    there is one. Given phi, a noisy statistic, a sum over the party's rows, is
    approximated by a normal distribution with moments computed for normal x (centred,
    unless there is an intercept). For a release without noise the exact likelihood is
    used.

    Parameters
    ----------
    precision : float or array-like of shape (n_weights, n_weights), default=0.1
        Prior precision of the weights, in units of 1 / s2; a number is multiplied by
        the identity.
    a0, b0 : float, default=1, 0.03
        Shape and scale of the inverse gamma prior of the variance s2, which is worth 2
        a0 rows. The default is weak: surprise pays a party for contradicting a strong
        prior. It suits targets in [-1, 1]; for others, multiply b0 by the square of
        their bound.
    mean : float or array-like of shape (n_weights,), default=0
        Prior mean of the weights.
    x_covariance : array-like of shape (n_features, n_features), default=None
        Covariance of x at every party, if it is public; `moments` is then ignored.
    moments : {"plugin", "hierarchical"}, default="plugin"
        How unknown second moments of x are treated. "plugin" estimates them from each
        party's release, with shrinkage towards a multiple of the identity, and takes
        them as known. "hierarchical" integrates over them given that release, with an
        inverse Wishart prior: more accurate where noise is large, and `moment_draws`
        times slower.
    moment_draws : int, default=32
        Number of draws for "hierarchical", at most 256.
    noise_aware : bool, default=True
        False treats noisy statistics as exact, to show the effect: noise then increases
        a party's value.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : Computes the value of releases by a model.

    References
    ----------
    G. Bernstein, D. Sheldon: "Differentially Private Bayesian Linear Regression",
    NeurIPS 2019; Sim et al., NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import BayesianLinear, GramRelease
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) / 3
    >>> release = GramRelease(renyi_epsilon=1).fit(X, X[:, 0]).release_
    >>> model = BayesianLinear().bind([release])
    >>> phi = model.sample_prior(5, np.random.default_rng(0))
    >>> model.party_loglik(phi, release).shape
    (5,)
    """

    _parameter_constraints: dict = {
        **RegressionModel._parameter_constraints,
        "a0": [Interval(Real, 0, None, closed="neither")],
        "b0": [Interval(Real, 0, None, closed="neither")],
        "noise_aware": [bool],
    }
    _kind = "linear"
    task = "regression"
    weaker_prior = "of BayesianLinear, a smaller a0, with b0 in proportion"
    _prior_parameters = ("precision", "a0", "b0", "mean")

    def __init__(
        self,
        precision: object = 0.1,
        *,
        a0=1.0,
        b0=0.03,
        mean: object = 0.0,
        x_covariance=None,
        moments="plugin",
        moment_draws=32,
        noise_aware=True,
    ):
        self.precision = precision
        self.a0 = a0
        self.b0 = b0
        self.mean = mean
        self.x_covariance = x_covariance
        self.moments = moments
        self.moment_draws = moment_draws
        self.noise_aware = noise_aware

    @property
    def prior_rows_(self):
        """Number of rows that the prior of the variance is worth."""
        return 2 * self.a0

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
        phi : ndarray of shape (size, n_weights + 1)
            Draws of the weights and the log variance.
        """
        mean = self.prior_mean_
        factor = np.linalg.cholesky(self.prior_precision_)
        s2 = self.b0 / rng.gamma(self.a0, size=size)
        z = np.linalg.solve(factor.T, rng.standard_normal((len(mean), size))).T
        return np.column_stack([mean + np.sqrt(s2)[:, None] * z, np.log(s2)])

    def log_prior(self, phi):
        """Log density of the prior.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_weights + 1)
            Weights and log variances.

        Returns
        -------
        log_density : ndarray of shape (n_draws,)
            Log densities of phi, which include the Jacobian of the logarithm.
        """
        a = self.a0
        b = self.b0
        factor = np.linalg.cholesky(self.prior_precision_)
        w, log_s2 = _split(phi)
        square = np.sum(((w - self.prior_mean_) @ factor) ** 2, axis=1)
        return (
            np.log(np.diag(factor)).sum()
            - 0.5 * w.shape[1] * (np.log(2 * np.pi) + log_s2)
            + a * np.log(b)
            - gammaln(a)
            - a * log_s2
            - (b + 0.5 * square) * np.exp(-log_s2)
        )

    def _learn(self, release):
        size = release.n_features + release.intercept + 1
        gram = unpack_gram(release.vector, size, release)
        is_exact = release.renyi_epsilon is None
        if not self.noise_aware and not is_exact:
            # The noisy matrix is treated as an exact one, which is positive definite.
            values, vectors = np.linalg.eigh(gram)
            gram = (vectors * np.maximum(values, 1e-3)) @ vectors.T
            is_exact = True
        if is_exact:
            return PartyMoments(gram, [None], [0.0])
        return PartyMoments(gram, *self._second_moments(gram[:-1, :-1], release))

    def _loglik(self, phi, release, gram, second_moments, scale):
        w, log_s2 = _split(phi)
        if second_moments is None:
            u = np.column_stack([-w, np.ones(len(w))])
            squares = np.sum((u @ gram) * u, axis=1)
            exact = -0.5 * (release.n_samples * log_s2 + np.exp(-log_s2) * squares)
            return scale * exact
        return noisy_gram_loglik(
            joint_moments(w, np.exp(log_s2), second_moments),
            gram,
            count=float(release.n_samples),
            variance=release.noise_scale**2,
            intercept=release.intercept,
            scale=scale,
        )

    def _row_moments(self, phi, second_moments, intercept):
        w, log_s2 = _split(phi)
        moments = joint_moments(w, np.exp(log_s2), second_moments)
        return products_of_row(moments, intercept)

    def _possible_statistics(self, statistics, release):
        x_bound, y_bound = release.bounds
        size = release.n_features + release.intercept + 1
        grams = nearest_positive(unpack_grams(statistics, size, release))
        first_feature = int(release.intercept)
        features = slice(first_feature, size - 1)
        targets = slice(size - 1, size)
        for columns, bound in ((features, x_bound), (targets, y_bound)):
            shrink_squares(grams, columns, release.n_samples * bound**2)
        return svec(grams)[:, first_feature:]

    def exact_posteriors(self, counts, statistics):
        """Posteriors of exact statistics, which are normal-inverse-gamma.

        Parameters
        ----------
        counts : ndarray of shape (n_posteriors,)
            Numbers of rows.
        statistics : ndarray of shape (n_posteriors, n_entries)
            Statistics of these rows, without noise.

        Returns
        -------
        posteriors : object
            Its methods ``divergences()`` and ``log_densities(X, y)`` return the
            divergences (n_posteriors,) from the prior, and the log predictive densities
            (n_posteriors, n_points) of points.
        """
        if self.intercept_:
            statistics = np.column_stack([counts, statistics])
        size = len(self.prior_mean_) + 1
        return NormalInverseGammas(self, counts, smat(statistics, size))

    def predict_logpdf(self, phi, X, y):
        """Log density of targets at every draw.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_weights + 1)
            Weights and log variances.
        X : ndarray of shape (n_rows, n_features)
            Rows.
        y : ndarray of shape (n_rows,)
            Targets of the rows.

        Returns
        -------
        log_density : ndarray of shape (n_draws, n_rows)
            Log densities.
        """
        log_s2 = phi[:, -1:]
        squares = (y - self.predict_mean(phi, X)) ** 2
        return -0.5 * (np.log(2 * np.pi) + log_s2 + squares * np.exp(-log_s2))

    def predict_mean(self, phi, X):
        """Mean of the target at every draw.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_weights + 1)
            Weights and log variances.
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        mean : ndarray of shape (n_draws, n_rows)
            Mean targets.
        """
        w = phi[:, :-1]
        if self.intercept_:
            return w[:, :1] + w[:, 1:] @ X.T
        return w @ X.T


def _split(phi):
    """Weights (n_draws, n_weights) and clipped log variances (n_draws,) of draws."""
    return phi[:, :-1], np.clip(phi[:, -1], -40.0, 40.0)
