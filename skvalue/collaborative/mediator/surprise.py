"""Values of parties: how far their releases move the posterior of a model from its prior.

Sim, Zhang, Hoang, Xu, Low and Jaillet, "Incentives in Private Collaborative Machine Learning"
(NeurIPS 2023), Section 3.
"""

import warnings

from ..._utils.sklearn import StrOptions, fit_context
from ...exceptions import PriorOutweighsWarning
from ._measures import Surprise
from ._scorer import PartyScorer

_TAIL = 1e-3  # of the prior: a posterior mean of log densities below this quantile contradicts it


class BayesianSurpriseScorer(PartyScorer):
    """Value of parties by the Bayesian surprise of their releases.

    The value of a coalition is the Kullback-Leibler divergence of its posterior from the prior. The
    posterior takes the noise of every release into account, so that on average a party with
    stronger privacy has a smaller value. The value of a party is its Shapley value. No rows are
    needed, only the releases. A release that contradicts the prior surprises, whether its rows are
    informative or not: see `PredictiveValueScorer` where rows are not trusted.

    Parameters
    ----------
    model : model
        `BayesianLinear`, `BayesianLogistic`, `GaussianMean`, `BetaBernoulli`, `GammaPoisson`, or
        any object with the methods ``sample_prior(size, rng)``, ``log_prior(phi)``,
        ``party_loglik(phi, release)`` and ``predict_logpdf(phi, X, y)``, see the user guide.
    method : {"auto", "pool", "grid", "gibbs"}, default="auto"
        "pool" samples the prior, every party's posterior and the posterior of all parties once, and
        computes the values of all coalitions from these draws; "grid" integrates models of one
        parameter; "auto" chooses between the two. "gibbs" samples every coalition's posterior
        separately, as the paper does, and estimates divergences by nearest-neighbor distances
        (linear models, few parties).
    divergence : {"one-sample", "two-sample"}, default=None
        For "gibbs" only: use the known density of the prior ("one-sample", which None means), or a
        sample from it, as in the paper.
    n_particles : int, default=None
        Number of particles of each sampled posterior; for "gibbs", number of draws of each
        coalition. None takes 600 (1000 for "gibbs"), and fewer above 12 parties, such that their
        total number does not grow.
    n_moves : int, default=None
        Number of Metropolis moves of a particle at each temperature. None takes 8, or 12 in more
        than 4 dimensions.
    n_permutations : int, default=400
        Number of permutations of the parties, in pairs of reversed ones, above 12 parties. Up to
        12, all coalitions are evaluated.
    min_ess : float, default=100
        Posteriors of coalitions with a smaller effective sample size are sampled as well.
    random_state : int, RandomState instance or None, default=None
        Controls the sampling.

    Attributes
    ----------
    parties_ : list
        Names of the parties.
    values_ : ndarray of shape (n_parties,)
        Shapley values in the order of `parties_`, in nats; they sum to `grand_value_`.
    values_error_ : ndarray of shape (n_parties,)
        Standard errors of the computation.
    coalition_values_ : ndarray of shape (2**n_parties,)
        Values of all coalitions: bit i of the index is party i of `parties_`. Only up to 12
        parties.
    coalition_values_error_ : ndarray of shape (2**n_parties,)
        Standard errors of `coalition_values_`.
    standalone_values_ : ndarray of shape (n_parties,)
        Values of the coalitions of one party.
    grand_value_, grand_value_error_ : float
        Value of the coalition of all parties, and its standard error.
    ess_ : ndarray of shape (n_coalitions,)
        Effective sample sizes of the evaluated coalitions, in the order of `coalition_values_` if
        it exists.
    acceptance_ : float
        Mean acceptance rate of the Metropolis moves.
    n_evaluations_ : int
        Number of coalitions evaluated.
    model_ : model
        The model, bound to the releases.
    releases_ : dict
        The releases by party.

    See Also
    --------
    skvalue.PredictiveValueScorer : Values parties by what they add to predictions.
    skvalue.collaborative.RhoShapleyReward : Computes rewards from the values.
    skvalue.collaborative.GramRelease : Makes the release of a party.

    References
    ----------
    R. H. L. Sim, Y. Zhang, T. N. Hoang, X. Xu, B. K. H. Low, P. Jaillet: "Incentives in Private
    Collaborative Machine Learning", NeurIPS 2023, Definition 3.1.

    Examples
    --------
    >>> from skvalue.collaborative import BayesianSurpriseScorer, GaussianMean, Release
    >>> releases = {
    ...     name: Release("gaussian", n, (0.4 * n,), epsilon, 2.0, (-1.0, 1.0))
    ...     for name, n, epsilon in [("a", 100, 0.5), ("b", 100, 0.01), ("c", 0, 1.0)]
    ... }
    >>> scorer = BayesianSurpriseScorer(GaussianMean(variance=0.1)).fit(releases)
    >>> dict(zip(scorer.parties_, scorer.values_.round(3).tolist()))
    {'a': 2.147, 'b': 0.616, 'c': 0.0}
    """

    _parameter_constraints: dict = {
        **PartyScorer._parameter_constraints,
        "method": [StrOptions({"auto", "pool", "grid", "gibbs"})],
        "divergence": [StrOptions({"one-sample", "two-sample"}), None],
    }

    def __init__(
        self,
        model,
        *,
        method="auto",
        divergence=None,
        n_particles=None,
        n_moves=None,
        n_permutations=400,
        min_ess=100,
        random_state=None,
    ):
        super().__init__(model, method, n_particles, n_moves, n_permutations, min_ess, random_state)
        self.divergence = divergence

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, releases, y=None):
        """Value the parties.

        Parameters
        ----------
        releases : mapping of party to Release, or sequence of Release
            Releases of the parties. The parties of a sequence are named 0, 1, ...
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        TypeError
            If `releases` holds anything else than Release objects, such as rows.
        ValueError
            If there are no releases, they do not suit the model, are inconsistent, or state another
            prior than that of the model, or `divergence` is set and `method` is not "gibbs".

        Warns
        -----
        PriorOutweighsWarning
            If the prior outweighs the releases of some parties.
        """
        if self.divergence is not None and self.method != "gibbs":
            raise ValueError(
                f"divergence must be None for method={self.method!r}. Got {self.divergence!r}."
            )
        self._value_parties(releases, lambda model: Surprise())
        self._warn_of_the_prior()
        return self

    def _warn_of_the_prior(self):
        """Warn of parties whose posterior is in the prior's tail, or with fewer rows than it."""
        evidence, found = self._evidence, []
        least, pool = getattr(evidence.model, "prior_rows_", 0), evidence.pool
        if pool is not None:
            density, prior = evidence.model.log_prior(pool.phi), pool.weights(0.0)
        for place, release in enumerate(evidence.releases):
            outweighed = 0 < release.n_samples < least
            if pool is not None:
                mean = pool.weights(pool.loglik[:, place]) @ density
                outweighed |= prior[density < mean].sum() < _TAIL
            if outweighed:
                found.append(self.parties_[evidence.order[place]])
        found.sort(key=self.parties_.index)
        if found:
            warnings.warn(
                f"The prior outweighs the releases of {found!r}: their values are large because "
                "they contradict it, or small because it is worth more rows, whatever they "
                "contribute. Use a weaker prior, such as a0=1 of BayesianLinear, or "
                "PredictiveValueScorer.",
                PriorOutweighsWarning,
                stacklevel=4,
            )

    def surprise(self, coalition="all", temper=1.0):
        """Value of a coalition, with its likelihood raised to a power.

        Parameters
        ----------
        coalition : sequence of parties or "all", default="all"
            Parties of the coalition.
        temper : float, default=1.0
            Power of the likelihood, in [0, 1].

        Returns
        -------
        value : float
            Divergence of the posterior from the prior, in nats.

        Raises
        ------
        ValueError
            If a party is unknown or `temper` is outside [0, 1].
        """
        pool = self._pooled().pool
        return float(pool.masks(self._powers(coalition, temper)[None])[0][0])
