"""Values of parties: how far their releases move a posterior from its prior.

Sim, Zhang, Hoang, Xu, Low and Jaillet, "Incentives in Private Collaborative Machine
Learning" (NeurIPS 2023), Section 3.
"""

from ..._utils.sklearn import check_parameters, fit_context
from ..._utils.warned import warn
from ...exceptions import PriorOutweighsWarning
from ._scorer import PartyScorer
from ._utilities import Surprise

# A posterior whose mean log density is below this quantile of the prior contradicts it.
_TAIL = 1e-3


class BayesianSurpriseScorer(PartyScorer):
    """Value of parties by the Bayesian surprise of their releases.

    The value of a coalition is the Kullback-Leibler divergence of its posterior from
    the prior. The posterior takes the noise of every release into account, so that on
    average a party with stronger privacy has a smaller value. The value of a party is
    its `semivalue`. No rows are needed, only the releases.

    Do not pay parties by these values: a release that contradicts the prior has a large
    surprise, whether its rows are informative or not. In experiments, parties with
    wrong labels or meaningless rows kept about three quarters of the share of an honest
    party, and rows that were sent several times were paid each time
    (:doc:`/user_guide/payments`). Where rows are not trusted, use
    `PredictiveValueScorer`.

    Parameters
    ----------
    model : model
        `BayesianLinear`, `BayesianLogistic`, `GaussianMean`, or any object with the
        methods ``sample_prior(size, rng)``, ``log_prior(phi)``, ``party_loglik(phi,
        release)`` and ``predict_logpdf(phi, X, y)``, see the user guide.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, tuple or callable, \
            default="shapley"
        The semivalue of the parties, see `skvalue.semivalues.size_weights`; a tuple
        (alpha, beta) is that of Beta(alpha, beta). With "banzhaf" a party cannot gain
        by splitting up under two names: in any game their values sum to that of the
        party. Pay such values with `skvalue.rewards.payments`.
    n_particles : int, default=None
        Number of particles of each sampled posterior. None takes 2,000, and fewer above
        4 parties, such that their total number does not grow: 800 of 12. A model of one
        parameter with a method ``prior_quantile(u)``, such as `GaussianMean`, is
        integrated on a grid.
    n_permutations : int, default=400
        Number of permutations of the parties, in pairs of reversed ones, above 12
        parties. Up to 12, all coalitions are evaluated.
    min_ess : float, default=100
        Posteriors of coalitions with a smaller effective sample size are sampled as
        well.
    max_time : float, default=None
        Seconds after which posteriors of coalitions with a small effective sample size
        are no longer sampled; values then depend on the machine. Those of each party
        and of all parties are, and the coalitions are evaluated, in any case.
    random_state : int, RandomState instance or None, default=None
        Controls the sampling.

    Attributes
    ----------
    parties_ : list
        Names of the parties.
    values_ : ndarray of shape (n_parties,)
        Values in the order of `parties_`, in nats; Shapley values sum to
        `grand_value_`.
    values_error_ : ndarray of shape (n_parties,)
        Errors of the values: the square root of the sum of squares of
        `computation_error_` and `release_error_`. Not set where the latter is not.
    computation_error_ : ndarray of shape (n_parties,)
        Standard errors of the computation: of the sampling of posteriors and, above 12
        parties, of permutations.
    release_error_ : ndarray of shape (n_parties,)
        Errors that the noise of the releases causes. The values without noise, of the
        same clipped rows, are within two of them in 95 % of draws of what is behind the
        releases, see Notes; 0 if no release has noise. Not set for releases with noise
        and a model without `exact_posteriors`, such as a user's, or that ignores noise:
        nothing is then known of it.
    coalition_values_ : ndarray of shape (2**n_parties,)
        Values of all coalitions: bit i of the index is party i of `parties_`. Only up
        to 12 parties.
    coalition_values_error_, coalition_computation_error_ : ndarray of shape \
            (2**n_parties,)
        Errors of `coalition_values_`, as those of `values_`.
    standalone_values_ : ndarray of shape (n_parties,)
        Values of the coalitions of one party.
    grand_value_, grand_value_error_ : float
        Value of the coalition of all parties, and its error.
    ess_ : ndarray of shape (n_coalitions,)
        Effective sample sizes of the evaluated coalitions, in the order of
        `coalition_values_` if it exists.
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

    Notes
    -----
    For `release_error_` the mediator draws statistics that may be behind the releases:
    a party's parameters from the posterior of its own release or, at the odds that its
    release agrees with the others, from their common posterior, and the
    statistic given these and the release. Coalitions are valued by each draw without
    noise, in closed form or, for `BayesianLogistic`, by a normal approximation that is
    corrected by one sampled game. The error is half the distance from `values_` within
    which 95 % of these values are: the standard deviation where they are normal around
    `values_`. It contains what noise takes from a value on average, and nothing of
    clipping, of which a mediator does not learn. The errors hold on average over what
    may be behind the releases: for one set of parties they can be too small
    (:ref:`release_errors`).

    References
    ----------
    R. H. L. Sim, Y. Zhang, T. N. Hoang, X. Xu, B. K. H. Low, P. Jaillet: "Incentives in
    Private Collaborative Machine Learning", NeurIPS 2023, Definition 3.1.

    Examples
    --------
    >>> from skvalue.collaborative import (
    ...     BayesianSurpriseScorer, GaussianMean, NoisyStatistic
    ... )
    >>> releases = {
    ...     name: NoisyStatistic("gaussian", n, (0.4 * n,), epsilon, 2.0, (-1.0, 1.0))
    ...     for name, n, epsilon in [("a", 100, 0.5), ("b", 100, 0.01), ("c", 0, 1.0)]
    ... }
    >>> scorer = BayesianSurpriseScorer(GaussianMean(variance=0.1)).fit(releases)
    >>> dict(zip(scorer.parties_, scorer.values_.round(3).tolist()))
    {'a': 2.147, 'b': 0.616, 'c': 0.0}
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, releases, y=None):
        """Value the parties.

        Parameters
        ----------
        releases : mapping of party to NoisyStatistic, or sequence of NoisyStatistic
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
            If `releases` holds anything else than NoisyStatistic objects, such as rows.
        ValueError
            If there are no releases, they do not suit the model, are inconsistent, or
            state another prior than that of the model.

        Warns
        -----
        PriorOutweighsWarning
            If the prior outweighs the releases of some parties.
        """
        self._value(self._bind(releases), Surprise())
        self._warn_of_the_prior()
        if self._exact_draws is not None:
            # That noise makes values smaller is meant; what it leaves open is not.
            self._warn_of_noise(self._exact_draws.semivalues.std(axis=0))
        return self

    def estimate_cost(self, releases):
        """Estimate the cost of `fit` from the time of some likelihoods and coalitions.

        Parties that contradict each other take up to twice as long.

        Parameters
        ----------
        releases : mapping of party to NoisyStatistic, or sequence of NoisyStatistic
            Releases of the parties.

        Returns
        -------
        cost : Bunch
            ``seconds`` (approximate), ``n_evaluations``, the number of coalitions,
            ``seconds_per_evaluation``, and ``n_players``, the number of parties.

        Raises
        ------
        TypeError, ValueError
            As in `fit`.
        """
        check_parameters(self)
        return self._cost(self._bind(releases), Surprise())

    def _warn_of_the_prior(self):
        """Warn of parties whose releases contradict the prior or weigh less than it."""
        game = self._game
        particles = game.particles
        prior_rows = getattr(game.model, "prior_rows_", 0)
        log_prior = game.model.log_prior(particles.phi)
        prior_weights = particles.weights(0.0)

        outweighed = []
        for i, release, loglik in zip(game.order, game.releases, particles.loglik.T):
            mean_log_prior = particles.weights(loglik) @ log_prior
            tail = prior_weights[log_prior < mean_log_prior].sum()
            if tail < _TAIL or 0 < release.n_samples < prior_rows:
                outweighed.append(self.parties_[i])
        outweighed.sort(key=self.parties_.index)
        if outweighed:
            weaker_prior = getattr(game.model, "weaker_prior", None)
            advice = "" if weaker_prior is None else f" ({weaker_prior})"
            warn(
                f"The prior outweighs the releases of {outweighed!r}: their values are "
                "large because they contradict it, or small because it is worth more "
                f"rows, whatever they contribute. Use a weaker prior{advice}, or "
                "PredictiveValueScorer.",
                PriorOutweighsWarning,
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
        powers = self._powers(coalition, temper)
        particles = self._game.particles
        row = powers @ particles.loglik.T
        value_of = self._game.utility.bind(particles)
        return float(value_of(row[None]).values[0])
