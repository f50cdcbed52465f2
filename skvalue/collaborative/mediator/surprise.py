"""Values of parties: how far their releases move the posterior of a model from its prior.

Sim, Zhang, Hoang, Xu, Low and Jaillet, "Incentives in Private Collaborative Machine Learning"
(NeurIPS 2023), Section 3.
"""

import warnings
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import swap_in
from ..._utils.sklearn import HasMethods, Interval, StrOptions, fit_context
from ..models import check_prior, check_releases, warn_of_few_rows
from ._designs import AllCoalitions, PrefixCoalitions
from ._evaluation import by_chains, by_grid, by_particles
from ._pool import Pool

_EXACT_PARTIES = 12


@dataclass(frozen=True)
class Evidence:
    """A model bound to the releases, and the pool that posteriors are computed from.

    Parties are in a canonical order, which depends neither on their names nor on the user's order.
    """

    model: object
    releases: list
    order: np.ndarray  # the user's index of each party in the canonical order
    pool: Pool | None  # None for method "gibbs"


class BayesianSurpriseScorer(BaseEstimator):
    """Value of parties by the Bayesian surprise of their releases.

    The value of a coalition is the Kullback-Leibler divergence of its posterior from the prior. The
    posterior takes the noise of every release into account, so that on average a party with
    stronger privacy has a smaller value. The value of a party is its Shapley value. No rows are
    needed, only the releases.

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
    divergence : {"one-sample", "two-sample"}, default="one-sample"
        For "gibbs": use the known density of the prior, or a sample from it, as in the paper.
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
        "model": [HasMethods(["sample_prior", "log_prior", "party_loglik", "predict_logpdf"])],
        "method": [StrOptions({"auto", "pool", "grid", "gibbs"})],
        "divergence": [StrOptions({"one-sample", "two-sample"})],
        "n_particles": [Interval(Integral, 40, None, closed="left"), None],
        "n_moves": [Interval(Integral, 1, None, closed="left"), None],
        "n_permutations": [Interval(Integral, 2, None, closed="left")],
        "min_ess": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        model,
        *,
        method="auto",
        divergence="one-sample",
        n_particles=None,
        n_moves=None,
        n_permutations=400,
        min_ess=100,
        random_state=None,
    ):
        self.model = model
        self.method = method
        self.divergence = divergence
        self.n_particles = n_particles
        self.n_moves = n_moves
        self.n_permutations = n_permutations
        self.min_ess = min_ess
        self.random_state = random_state

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
            prior than that of the model.
        """
        releases = check_releases(releases)
        texts = [release.to_json() for release in releases.values()]
        order = np.array(sorted(range(len(texts)), key=texts.__getitem__))
        ordered = [list(releases.values())[i] for i in order]
        check_prior(self.model, releases)
        bind = getattr(self.model, "bind", None)
        model = self.model if bind is None else bind(ordered)
        warn_of_few_rows(releases)
        seeds = check_random_state(self.random_state).randint(2**32, size=4, dtype=np.uint32)
        rng, n = np.random.default_rng(seeds), len(ordered)
        enumerated = n <= _EXACT_PARTIES
        if enumerated:
            design = AllCoalitions(n)
        else:
            design = PrefixCoalitions(n, self.n_permutations, rng.spawn(1)[0])
        found = self._evaluate(model, ordered, design, rng)
        back = np.argsort(order)
        values, errors = design.shapley(found.values)
        by_island = np.array([design.shapley(column)[0] for column in found.islands.T])
        learnt = dict(
            releases_=releases,
            parties_=list(releases),
            model_=model,
            values_=values[back],
            values_error_=np.hypot(errors, _error(by_island.T))[back],
            standalone_values_=found.values[design.singles][back],
            grand_value_=float(found.values[design.grand]),
            grand_value_error_=float(_error(found.islands[design.grand])),
            ess_=found.ess,
            acceptance_=found.acceptance,
            n_evaluations_=len(design.masks),
        )
        if enumerated:
            numbers = _renumber(order)
            learnt |= dict(
                ess_=found.ess[numbers],
                coalition_values_=found.values[numbers],
                coalition_values_error_=_error(found.islands)[numbers],
            )
        swap_in(self, **learnt, _evidence=Evidence(model, ordered, order, found.pool))
        if found.warning is not None:  # last, since a filter may turn the warning into an error
            warnings.warn(found.warning, ConvergenceWarning, stacklevel=3)
        return self

    def _evaluate(self, model, releases, design, rng):
        """Values of the design's coalitions, by `method`."""
        n, method = len(releases), self.method
        if method == "gibbs":
            if n > _EXACT_PARTIES:
                raise ValueError(
                    f"method='gibbs' is for at most {_EXACT_PARTIES} parties. Got {n}."
                )
            n_draws = self.n_particles or 1000
            return by_chains(model, releases, design, n_draws, self.divergence, rng)
        if method == "grid" or (method == "auto" and hasattr(model, "prior_quantile")):
            return by_grid(model, releases, design)
        size = self.n_particles or max(160, min(600, 600 * (_EXACT_PARTIES + 1) // (n + 1)))
        return by_particles(model, releases, design, size, self.n_moves, self.min_ess, rng)

    # Posteriors -------------------------------------------------------------------------------

    def _powers(self, coalition, temper):
        """Powers of the parties' likelihoods, in the canonical order."""
        if isinstance(coalition, str):
            if coalition != "all":  # a string is not a sequence of one-letter names
                raise ValueError(
                    f"coalition must be 'all' or a sequence of parties, such as [{coalition!r}]. "
                    f"Got {coalition!r}."
                )
            coalition = self.parties_
        unknown = [party for party in coalition if party not in self.releases_]
        if unknown:
            raise ValueError(f"coalition must name parties of parties_. Got {unknown!r}.")
        if not isinstance(temper, Real) or not 0 <= temper <= 1:
            raise ValueError(f"temper must be in [0, 1]. Got {temper!r}.")
        powers = np.zeros(len(self.parties_))
        powers[[self.parties_.index(party) for party in coalition]] = temper
        return powers[self._evidence.order]

    def _pooled(self):
        """The evidence, which must have a pool."""
        check_is_fitted(self, "values_")
        if self._evidence.pool is None:
            raise ValueError("method must be 'pool' or 'grid' for this. Got 'gibbs'.")
        return self._evidence

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

    def sample(self, coalition="all", n_draws=1000, temper=1.0, random_state=None):
        """Draws from the posterior of a coalition.

        Parameters
        ----------
        coalition : sequence of parties or "all", default="all"
            Parties of the coalition.
        n_draws : int, default=1000
            Number of draws.
        temper : float, default=1.0
            Power of the likelihood, in [0, 1].
        random_state : int, RandomState instance or None, default=None
            Controls the random draws.

        Returns
        -------
        phi : ndarray of shape (n_draws, n_parameters)
            Parameters of the model.

        Raises
        ------
        ValueError
            If a party is unknown or `temper` is outside [0, 1].
        """
        evidence = self._pooled()
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        powers = self._powers(coalition, temper)
        return evidence.pool.sample(evidence.model, evidence.releases, powers, n_draws, rng)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _renumber(order):
    """Number of each coalition when parties are in the canonical order."""
    numbers = np.arange(2 ** len(order))
    renumbered = np.zeros_like(numbers)
    for place, party in enumerate(order):
        renumbered |= (numbers >> int(party) & 1) << place
    return renumbered


def _error(islands):
    """Standard error of the mean over islands, the last axis."""
    n = islands.shape[-1]
    return islands.std(axis=-1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(islands.shape[:-1])
