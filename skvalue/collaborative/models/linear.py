"""Bayesian linear regression with unknown variance from exact or noisy Gram matrices."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import clone

from ..._utils.sklearn import Interval, StrOptions, check_parameters
from ..party import gram_size, to_fourth, to_gram
from ._gaussian import noisy_gram_loglik
from ._models import PriorModel, common_facts, positive_definite, public_moments
from ._moments import NEEDS, fourth_moments, plugin_second_moments, posterior_second_moments
from ._nig import NIG, nig_kl, nig_log_density, nig_sample, nig_update


class BayesianLinear(PriorModel):
    """Bayesian linear regression: w | s2 ~ N(mean, s2 precision^-1), s2 ~ InverseGamma(a0, b0).

    The mediator's model of `GramRelease`. phi = (w, log s2), the intercept first if there is one.
    Given phi, a noisy statistic, a sum over the party's rows, is approximated by a normal
    distribution with moments computed for normal x (centred, unless there is an intercept). For a
    release without noise the exact likelihood is used.

    Parameters
    ----------
    precision : float or array-like of shape (n_weights, n_weights), default=0.1
        Prior precision of the weights, in units of 1 / s2; a number is multiplied by the identity.
    a0, b0 : float, default=1, 0.03
        Shape and scale of the inverse gamma prior of the variance s2, which is worth 2 a0 rows. The
        default is weak: surprise pays a party for contradicting a strong prior. It suits targets in
        [-1, 1]; for others, multiply b0 by the square of their bound.
    mean : float or array-like of shape (n_weights,), default=0
        Prior mean of the weights.
    x_covariance : array-like of shape (n_features, n_features), default=None
        Covariance of x at every party, if it is public; `moments` is then ignored.
    moments : {"plugin", "noisy", "hierarchical"}, default="plugin"
        How unknown moments of x are treated. "plugin" estimates second moments from each party's
        release, with shrinkage towards a multiple of the identity, and takes them as known. "noisy"
        also estimates fourth moments, which the releases must hold
        (``GramRelease(moments_fraction=...)``), instead of those of a normal distribution.
        "hierarchical" integrates over each party's second moments given its release, with an
        inverse Wishart prior: more accurate where noise is large, and `moment_draws` times slower.
    moment_draws : int, default=32
        Number of draws for "hierarchical", at most 256.
    noise_aware : bool, default=True
        False treats noisy statistics as exact, to show the effect: noise then increases a party's
        value.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : Computes the value of releases by a model.

    References
    ----------
    G. Bernstein, D. Sheldon: "Differentially Private Bayesian Linear Regression", NeurIPS 2019;
    Sim et al., NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import BayesianLinear, GramRelease
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) / 3
    >>> release = GramRelease(renyi_epsilon=1).fit(X, X[:, 0]).release_
    >>> model = BayesianLinear().bind([release])
    >>> model.party_loglik(model.sample_prior(5, np.random.default_rng(0)), release).shape
    (5,)
    """

    _parameter_constraints: dict = {
        "precision": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "a0": [Interval(Real, 0, None, closed="neither")],
        "b0": [Interval(Real, 0, None, closed="neither")],
        "mean": [Real, "array-like"],
        "x_covariance": ["array-like", None],
        "moments": [StrOptions(set(NEEDS))],
        "moment_draws": [Interval(Integral, 1, 256, closed="both")],
        "noise_aware": [bool],
    }
    task = "regression"
    _prior_parameters = ("precision", "a0", "b0", "mean")

    def __init__(
        self,
        precision=0.1,
        *,
        a0=1.0,
        b0=0.03,
        mean=0.0,
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

    def bind(self, releases):
        """Check the releases, and return a copy of the model with their number of weights.

        Parameters
        ----------
        releases : sequence of Release
            The parties' releases.

        Returns
        -------
        model : BayesianLinear
            The bound copy; the other methods need it.

        Raises
        ------
        ValueError
            If the releases are of another kind, differ in number of features, intercept, layout or
            bounds, lack fourth moments for ``moments="noisy"``, or a prior parameter has the wrong
            shape.
        """
        check_parameters(self)
        facts = common_facts(
            releases, ("linear",), ["n_features", "intercept", "layout", "bounds"], "BayesianLinear"
        )
        bound = clone(self)
        bound.n_features_in_, bound.intercept_ = facts["n_features"], facts["intercept"]
        known = self.x_covariance is not None or not self.noise_aware
        if self.moments == "noisy" and not known:
            lacking = sum(r.renyi_epsilon is not None and not r.moments_fraction for r in releases)
            if lacking:
                raise ValueError(
                    "releases must hold fourth moments (GramRelease(moments_fraction=...)) for "
                    f"moments='noisy'. Got {lacking} of {len(releases)} without."
                )
        size = bound.n_features_in_ + bound.intercept_
        mean = np.broadcast_to(np.asarray(self.mean, float), size)
        precision = positive_definite(self.precision, size, "precision")
        bound.prior_ = NIG(mean, precision, float(self.a0), float(self.b0))
        bound.prior_rows_ = 2 * self.a0
        bound._second = public_moments(self.x_covariance, bound.n_features_in_, bound.intercept_)
        bound._seen = {}
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
        phi : ndarray of shape (size, n_weights + 1)
            Draws of the weights and the log variance.
        """
        return nig_sample(self.prior_, size, rng)

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
        return nig_log_density(phi, self.prior_)

    def party_loglik(self, phi, release):
        """Log-likelihood of one party's release.

        Parameters
        ----------
        phi : ndarray of shape (n_draws, n_weights + 1)
            Weights and log variances.
        release : Release
            The release.

        Returns
        -------
        log_likelihood : ndarray of shape (n_draws,)
            Log-likelihoods, up to a constant that does not depend on phi.
        """
        if release.n_samples == 0:
            return np.zeros(len(phi))
        w, log_s2 = phi[:, :-1], np.clip(phi[:, -1], -40.0, 40.0)
        gram, second, more = self.release_facts(release)
        if second is None:
            u = np.column_stack([-w, np.ones(len(w))])
            squares = np.sum((u @ gram) * u, axis=1)
            return -0.5 * (release.n_samples * log_s2 + np.exp(-log_s2) * squares)
        s2 = np.exp(log_s2)
        if second.ndim == 2:
            return noisy_gram_loglik(w, s2, second, release, gram, more)
        # The likelihood given the sums of x, on which the draws are already conditioned.
        draws = zip(second, more)
        logs = [noisy_gram_loglik(w, s2, draw, release, gram) - m for draw, m in draws]
        return np.logaddexp.reduce(logs)

    def release_facts(self, release):
        """Quantities that the likelihood of a release needs, computed once per release.

        Parameters
        ----------
        release : Release
            A linear release.

        Returns
        -------
        gram : ndarray of shape (n_weights + 1, n_weights + 1)
            Gram matrix of (x, y).
        second : ndarray or None
            Second moments of x, or draws of them; None where the matrix is exact.
        more : ndarray or None
            Covariance of products of x from fourth moments, or, for draws of second moments, the
            log density of the sums of x under each.
        """
        if release not in self._seen:
            self._seen[release] = self._learn(release)
        return self._seen[release]

    def _learn(self, release):
        gram = self.gram(release)
        if release.renyi_epsilon is None or not self.noise_aware:
            return gram, None, None
        if self._second is not None:
            return gram, self._second, None
        facts = gram[:-1, :-1], release.n_samples, release.noise_scale**2
        bound, intercept = release.bounds[0], release.intercept
        if self.moments == "hierarchical":
            draws = posterior_second_moments(*facts, bound, intercept, self.moment_draws)
            return gram, *draws
        second = plugin_second_moments(*facts, bound, intercept)
        if self.moments == "plugin":
            return gram, second, None
        sums = release.vector[gram_size(release.n_features, intercept) :] / release.moments_weight
        variance = (release.noise_scale / release.moments_weight) ** 2
        sums = to_fourth(sums, release.n_features, intercept)
        return gram, second, fourth_moments(sums, facts[1], variance, second, intercept)

    def gram(self, release):
        """Gram matrix of (x, y) in a release, made positive definite if its noise is not modelled.

        Parameters
        ----------
        release : Release
            A linear release.

        Returns
        -------
        gram : ndarray of shape (n_weights + 1, n_weights + 1)
            The Gram matrix.
        """
        size = gram_size(release.n_features, release.intercept)
        facts = release.n_samples, release.n_features, release.intercept, release.layout
        gram = to_gram(release.vector[:size], *facts)
        if release.renyi_epsilon is not None and not self.noise_aware:
            values, vectors = np.linalg.eigh(gram)
            gram = (vectors * np.maximum(values, 1e-3)) @ vectors.T
        return gram

    def exact_surprise(self, releases, weights):
        """Divergence of the posterior from the prior, for statistics without noise.

        Parameters
        ----------
        releases : sequence of Release
            Releases without noise, or any releases with ``noise_aware=False``.
        weights : array-like of shape (n_parties,)
            Power of each party's likelihood: 1 for the parties of a coalition, else 0.

        Returns
        -------
        surprise : float
            Kullback-Leibler divergence, in nats.
        """
        weights = np.asarray(weights, float)
        gram = np.tensordot(weights, np.array([self.gram(r) for r in releases]), 1)
        count = weights @ [r.n_samples for r in releases]
        return nig_kl(nig_update(self.prior_, gram, count), self.prior_)

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
        return w @ X.T if not self.intercept_ else w[:, :1] + w[:, 1:] @ X.T
