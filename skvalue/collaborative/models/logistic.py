"""Bayesian logistic regression from exact or noisy statistics of degree 2."""

import numpy as np
from scipy.special import log_expit

from ...privacy import svec_index
from ..party import unpacked
from ._gaussian import covariance_of_products, log_normal
from ._models import RegressionModel

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


def statistic_moments(w, second, intercept=False):
    """Mean and covariance of the statistic (y u, svec u u') of one row, for each row of
    w.

    u = ([1,] x) is normal with second moments ``second``, and mean a: their first
    column, or 0. y = 1 with probability sigmoid(w'u), so that E[y | u] = f = tanh(w'u /
    2). With w'u = mu + sqrt(v) d, d standard normal, u given d is normal with mean a +
    g d and covariance rest = C - g g', where C is the covariance of u and g = C w /
    sqrt(v). Hence E[y u_i u_j u_k] is the mean over d of f times third moments of a
    normal distribution, which needs e_n = E[f d^n], n <= 3.
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


class BayesianLogistic(RegressionModel):
    """Bayesian logistic regression with the prior w ~ N(mean, precision^-1).

    The mediator's model of `LogisticRelease`; phi = w, the intercept first if there is
    one. A statistic given w is approximated by a normal distribution, with moments
    computed for normal x (centred, unless there is an intercept; 20-node quadrature
    along x'w) plus the variance of the noise.

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
        How unknown second moments of x are treated. "plugin" estimates them from each
        party's release, with shrinkage towards a multiple of the identity, and takes
        them as known. "hierarchical" integrates over them given that release, with an
        inverse Wishart prior, and is `moment_draws` times slower.
    moment_draws : int, default=32
        Number of draws for "hierarchical", at most 256.

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
    >>> model = BayesianLogistic().bind([release])
    >>> model.party_loglik(model.sample_prior(5, np.random.default_rng(0)), release).shape
    (5,)
    """

    _parameter_constraints: dict = {
        **RegressionModel._parameter_constraints,
        "classes": [tuple, list],
    }
    _kind = "logistic"
    task = "classification"
    _prior_parameters = ("precision", "mean")

    def __init__(
        self,
        precision: object = 1.0,
        *,
        mean: object = 0.0,
        classes: object = (0, 1),
        x_covariance=None,
        moments="plugin",
        moment_draws=32,
    ):
        self.precision = precision
        self.mean = mean
        self.classes = classes
        self.x_covariance = x_covariance
        self.moments = moments
        self.moment_draws = moment_draws

    def _bind_classes(self, classes):
        if classes and tuple(self.classes) != classes:
            raise ValueError(
                f"classes must be those of the releases, {classes!r}. Got {self.classes!r}."
            )
        self.classes_ = np.asarray(self.classes)

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
        factor = np.linalg.cholesky(self.prior_precision_)
        z = rng.standard_normal((len(factor), size))
        return self.prior_mean_ + np.linalg.solve(factor.T, z).T

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
        factor = np.linalg.cholesky(self.prior_precision_)
        square = np.sum(((phi - self.prior_mean_) @ factor) ** 2, axis=1)
        constant = np.log(np.diag(factor)).sum() - 0.5 * phi.shape[1] * np.log(
            2 * np.pi
        )
        return constant - 0.5 * square

    def _learn(self, release):
        size = release.n_features + release.intercept
        gram = unpacked(release.vector[size:], size, release)
        return gram, self._second_moments(gram, release)

    def _loglik(self, phi, release, gram, second):
        count = float(release.n_samples)
        mean, covariance = statistic_moments(phi, second, release.intercept)
        covariance *= count
        diagonal = np.arange(covariance.shape[1])
        covariance[:, diagonal, diagonal] *= 1 + 1e-9
        covariance[:, diagonal, diagonal] += release.noise_scale**2
        return log_normal(release.vector - count * mean, covariance)

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
