"""Bayesian logistic regression from exact or noisy statistics of degree 2."""

from numbers import Real

import numpy as np
from scipy.special import log_expit, logit

from ..._utils.sklearn import Interval, StrOptions
from ...privacy import smat, svec, svec_index
from ..party import unpack_gram, unpack_grams
from ._draws import nearest_positive, shrink_squares
from ._exact import NormalLogistics
from ._gaussian import covariance_of_products, scaled_log_normal
from ._models import PartyMoments, RegressionModel

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_N_CHEBYSHEV = 400  # nodes on which log sigmoid is projected


def quadratic_coefficients(radius):
    """Coefficients (b0, b1, b2) of a quadratic near log sigmoid(s), |s| <= radius.

    It is the projection on the Chebyshev polynomials of degree at most 2 (Huggins,
    Adams and Broderick, 2017); b1 is 1 / 2.
    """
    angles = np.pi * (np.arange(_N_CHEBYSHEV) + 0.5) / _N_CHEBYSHEV
    t = np.cos(angles)
    f = log_expit(radius * t)
    c0 = f.mean()
    c1 = 2 * np.mean(f * t)
    c2 = 2 * np.mean(f * (2 * t * t - 1))
    # In powers of t the second polynomial is 2 t^2 - 1, and t = s / radius.
    return c0 - c2, c1 / radius, 2 * c2 / radius**2


def statistic_moments(w, second_moments, intercept=False):
    """Mean and covariance of the statistic (y u, svec u u') of one row, by row of w.

    u = ([1,] x) is normal with these second moments (p, p), and mean a: their first
    column, or 0. y = 1 with probability sigmoid(w'u), so that E[y | u] = f = tanh(w'u /
    2). With w'u = mu + sqrt(v) d, d standard normal, u given d is normal with mean a +
    g d and covariance rest = C - g g', where C is the covariance of u and g = C w /
    sqrt(v). Hence E[y u_i u_j u_k] is the mean over d of f times third moments of a
    normal distribution, which needs e_n = E[f d^n], n <= 3.

    Returns arrays of shape (n_draws, size) and (n_draws, size, size).
    """
    p = second_moments.shape[0]
    rows, columns, weights = (indices[int(intercept) :] for indices in svec_index(p))
    a = second_moments[0] if intercept else np.zeros(p)
    covariance_u = second_moments - np.outer(a, a)

    # Means over d by quadrature.
    b = w @ covariance_u
    v = np.maximum(np.sum(b * w, axis=1), 1e-12)
    g = b / np.sqrt(v)[:, None]
    f = np.tanh(((w @ a)[:, None] + np.sqrt(v)[:, None] * _NODES) / 2)
    e0, e1, e2, e3 = (f @ (_NODE_WEIGHTS * _NODES**n)[:, None] for n in range(4))
    mean_yu = e0 * a + e1 * g
    mean_uu = second_moments[rows, columns]
    rest = covariance_u - g[:, :, None] * g[:, None, :]

    # E[y u_k u_i u_j], k first. Given d, the mean of a product of three is that of the
    # means, which is a polynomial of d, plus each mean times the covariance of the
    # other two.
    ai = a[rows]
    aj = a[columns]
    gi = g[:, rows]
    gj = g[:, columns]
    order0 = ai * aj
    order1 = ai * gj + gi * aj
    order2 = gi * gj
    moments = a[:, None] * (e0 * order0 + e1 * order1 + e2 * order2)[:, None]
    moments += g[:, :, None] * (e1 * order0 + e2 * order1 + e3 * order2)[:, None]
    moments += (
        mean_yu[:, :, None] * rest[:, rows, columns][:, None, :]
        + mean_yu[:, rows][:, None, :] * rest[:, :, columns]
        + mean_yu[:, columns][:, None, :] * rest[:, :, rows]
    )

    size = p + len(rows)
    covariance = np.empty((len(w), size, size))
    covariance_yu = second_moments - mean_yu[:, :, None] * mean_yu[:, None, :]
    covariance[:, :p, :p] = covariance_yu
    cross = (moments - mean_yu[:, :, None] * mean_uu) * weights
    covariance[:, :p, p:] = cross
    covariance[:, p:, :p] = np.swapaxes(cross, 1, 2)
    covariance_uu = covariance_of_products(second_moments, rows, columns, intercept)
    covariance[:, p:, p:] = covariance_uu * weights[:, None] * weights
    mean = np.empty((len(w), size))
    mean[:, :p] = mean_yu
    mean[:, p:] = mean_uu * weights
    return mean, covariance


class BayesianLogistic(RegressionModel):
    """Bayesian logistic regression with the prior w ~ N(mean, precision^-1).

    The mediator's model of `LogisticRelease`; phi = w, the intercept first if there is
    one. A statistic given w is approximated by a normal distribution, with moments
    computed for normal x (centred, unless there is an intercept; 20-node quadrature
    along x'w) plus the variance of the noise. ``approximation="quadratic"`` is PASS:
    log sigmoid is replaced by a quadratic, so that the posterior is normal.

    Parameters
    ----------
    precision : float or array-like of shape (n_weights, n_weights), default=1
        Prior precision; a number is multiplied by the identity.
    mean : float or array-like of shape (n_weights,), default=0
        Prior mean.
    base_rate : float, default=None
        Public probability of the positive class, in (0, 1); the releases must have an
        intercept. Its logit is the prior mean of the intercept, in place of that of
        `mean`. Without it the prior predicts 1/2, and parties whose features are
        irrelevant are paid for the frequencies of the classes.
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
    approximation : {"normal", "quadratic"}, default="normal"
        Approximation of the likelihood. "quadratic" needs no moments of x and has a
        posterior in closed form, but it does not model noise: noisy releases are
        refused. Take it for a check, or where clipped rows are long and far from
        normal.
    radius : float, default=4
        For "quadratic", the quadratic is fitted where x'w is in [-radius, radius].

    See Also
    --------
    LogisticRelease : Makes the release of a party.

    References
    ----------
    J. H. Huggins, R. P. Adams, T. Broderick, NeurIPS 2017; T. Kulkarni, J. Jälkö, A.
    Koskela, S. Kaski, A. Honkela: "Differentially Private Bayesian Inference for
    Generalized Linear Models", ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import BayesianLogistic, LogisticRelease
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) / 2
    >>> release = LogisticRelease(None).fit(X, X[:, 0] > 0).release_
    >>> model = BayesianLogistic().bind([release])
    >>> phi = model.sample_prior(5, np.random.default_rng(0))
    >>> model.party_loglik(phi, release).shape
    (5,)
    """

    _parameter_constraints: dict = {
        **RegressionModel._parameter_constraints,
        "base_rate": [Interval(Real, 0, 1, closed="neither"), None],
        "classes": [tuple, list],
        "approximation": [StrOptions({"normal", "quadratic"})],
        "radius": [Interval(Real, 0, None, closed="neither")],
    }
    _kind = "logistic"
    task = "classification"
    weaker_prior = "of BayesianLogistic, a smaller precision"
    # Those of exact statistics differ from the sampled ones, see `NormalLogistics`.
    has_approximate_posteriors = True
    _prior_parameters = ("precision", "mean", "base_rate")

    def __init__(
        self,
        precision: object = 1.0,
        *,
        mean: object = 0.0,
        base_rate: float | None = None,
        classes: object = (0, 1),
        x_covariance=None,
        moments="plugin",
        moment_draws=32,
        approximation="normal",
        radius=4.0,
    ):
        self.precision = precision
        self.mean = mean
        self.base_rate = base_rate
        self.classes = classes
        self.x_covariance = x_covariance
        self.moments = moments
        self.moment_draws = moment_draws
        self.approximation = approximation
        self.radius = radius

    def _bind_classes(self, classes):
        if classes and tuple(self.classes) != classes:
            raise ValueError(
                f"classes must be those of the releases, {classes!r}. Got "
                f"{self.classes!r}."
            )
        self.classes_ = np.asarray(self.classes)

        if self.base_rate is None:
            return
        if not self.intercept_:
            raise ValueError(
                "base_rate must be None for releases without an intercept, since it is "
                "the prior mean of the intercept: release with fit_intercept=True. Got "
                f"{self.base_rate!r}."
            )
        self.prior_mean_ = self.prior_mean_.copy()
        self.prior_mean_[0] = logit(self.base_rate)

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
        log_det = np.log(np.diag(factor)).sum()
        constant = log_det - 0.5 * phi.shape[1] * np.log(2 * np.pi)
        return constant - 0.5 * square

    def _learn(self, release):
        size = release.n_features + release.intercept
        gram = unpack_gram(release.vector[size:], size, release)
        if self.approximation == "quadratic":
            if release.renyi_epsilon is not None:
                raise ValueError(
                    "approximation must be 'normal' for releases with noise, which a "
                    f"quadratic does not model. Got {self.approximation!r}."
                )
            return PartyMoments(gram, [None], [0.0])
        return PartyMoments(gram, *self._second_moments(gram, release))

    def _loglik(self, phi, release, gram, second_moments, scale):
        if second_moments is None:
            _, b1, b2 = quadratic_coefficients(self.radius)
            linear = phi @ release.vector[: len(gram)]
            return scale * (b1 * linear + b2 * np.sum((phi @ gram) * phi, axis=1))
        count = float(release.n_samples)
        mean, covariance = statistic_moments(phi, second_moments, release.intercept)
        covariance *= count
        diagonal = np.arange(covariance.shape[1])
        covariance[:, diagonal, diagonal] *= 1 + 1e-9
        residuals = release.vector - count * mean
        noise_variance = release.noise_scale**2
        return scaled_log_normal(residuals, covariance, noise_variance, scale)

    def _row_moments(self, phi, second_moments, intercept):
        return statistic_moments(phi, second_moments, intercept)

    def _possible_statistics(self, statistics, release):
        size = release.n_features + release.intercept
        grams = nearest_positive(unpack_grams(statistics[:, size:], size, release))
        first_feature = int(release.intercept)
        features = slice(first_feature, size)
        shrink_squares(grams, features, release.n_samples * release.bounds[0] ** 2)
        return np.column_stack([statistics[:, :size], svec(grams)[:, first_feature:]])

    def exact_posteriors(self, counts, statistics):
        """Posteriors of exact statistics, approximated as normal.

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
        size = len(self.prior_mean_)
        products = statistics[:, size:]
        if self.intercept_:
            products = np.column_stack([counts, products])
        sums_uu = smat(products, size)
        return NormalLogistics(self, counts, statistics[:, :size], sums_uu)

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
        if self.intercept_:
            w = phi[:, 1:]
            logits = w @ X.T + phi[:, :1]
        else:
            logits = phi @ X.T
        return log_expit(signs * logits)
