"""The mediator's values: how far the parties' releases move the belief about a model.

Sim, Zhang, Hoang, Xu, Low and Jaillet, "Incentives in Private Collaborative Machine Learning"
(NeurIPS 2023), Section 3.
"""

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import former_fit_kept
from ..._utils.sklearn import HasMethods, Interval, StrOptions, fit_context
from ...semivalues import tabulated_semivalue
from ..models._models import check_prior, check_releases, warn_of_few_rows
from ..models._smc import anneal
from ._designs import PrefixCoalitions
from ._gibbs import LEAST_ESS, gibbs_values
from ._pool import grid_pool, refined_pool, sampled_pool

__all__ = ["BayesianSurpriseScorer"]

_EXACT_PARTIES = 12
_ISLANDS = 8
_ROUNDS, _MORE_ANCHORS = 3, 8
_REFINEMENTS, _FEW_NODES = 8, 30  # of a grid, where a coalition has fewer nodes


class BayesianSurpriseScorer(BaseEstimator):
    """Values parties by the Bayesian surprise of what they released.

    The value of a coalition is the Kullback-Leibler divergence of its posterior from the prior; the
    posterior takes the noise of every release into account, so that on average a party loses value
    by asking for more privacy. The value of a party is its Shapley value. Nothing here sees a row.

    Parameters
    ----------
    model : model
        `BayesianLinear`, `BayesianLogistic`, `GaussianMean`, `BetaBernoulli`, `GammaPoisson`, or
        any object with the methods ``sample_prior(size, rng)``, ``log_prior(phi)``,
        ``party_loglik(phi, release)`` and ``predict_logpdf(phi, X, y)``, see the user guide.
    method : {"auto", "pool", "grid", "gibbs"}, default="auto"
        "pool" samples the prior, every party's posterior and that of all together once, and reads
        off all coalitions from these draws; "grid" integrates models of one parameter; "auto" takes
        the one that fits. "gibbs" samples every coalition's posterior on its own, as the paper
        does, and estimates divergences by distances of neighbours (linear models, few parties).
    divergence : {"one-sample", "two-sample"}, default="one-sample"
        For "gibbs": whether the known density of the prior is used, or, as in the paper, a sample.
    n_particles : int, default=None
        Particles of each posterior sampled; for "gibbs", draws of each coalition. None takes 600,
        and so many fewer above 12 parties that all together stay as many.
    n_moves : int, default=None
        Moves of a particle at each temperature; None takes 8, and 12 in more than 4 dimensions.
    n_permutations : int, default=400
        Orders of the parties, in pairs of opposite ones, where there are more than 12.
    min_ess : float, default=100
        Coalitions with a smaller effective sample size are sampled themselves.
    random_state : int, RandomState instance or None, default=None
        Of the sampling.

    Attributes
    ----------
    parties_ : list
        The parties' names.
    values_ : ndarray of shape (n_parties,)
        Shapley values in the order of `parties_`, in nats; they sum to `grand_value_`.
    values_error_ : ndarray of shape (n_parties,)
        Standard errors of the computation.
    coalition_values_ : ndarray of shape (2**n_parties,)
        Values of all coalitions, up to 12 parties: bit i of the index is party i of `parties_`.
    coalition_values_error_ : ndarray of shape (2**n_parties,)
        Their standard errors.
    standalone_values_ : ndarray of shape (n_parties,)
        Values of the parties alone.
    grand_value_, grand_value_error_ : float
        Value of all together.
    ess_ : ndarray of shape (n_coalitions,)
        Effective sample sizes of the coalitions that were evaluated, in the order of
        `coalition_values_` where there is one.
    acceptance_ : float
        Mean acceptance of moves.
    n_evaluations_ : int
        Number of coalitions evaluated.
    model_ : model
        The model, bound to the releases.
    releases_ : dict
        The releases by party.

    See Also
    --------
    RhoShapleyReward : From values to rewards.
    GramRelease : A party's side.

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
            What the parties sent. Parties of a sequence are called 0, 1, ...
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        self : object
            The fitted scorer.

        Raises
        ------
        TypeError
            If releases hold anything but Release objects: rows have no place here.
        ValueError
            If there are none, they do not suit the model, contradict one another, or state a prior
            that is not the model's.
        """
        with former_fit_kept(self):
            for name in ("_pool", "_orders", "coalition_values_", "coalition_values_error_"):
                self.__dict__.pop(name, None)
            method = self._fit(check_releases(releases))
        self._warn_of_few_draws(method)
        return self

    def _fit(self, releases):
        self.releases_ = releases
        self.parties_ = list(self.releases_)
        # A canonical order: the same numbers, whatever the parties are called and ordered.
        texts = [release.to_json() for release in self.releases_.values()]
        self._order = np.array(sorted(range(len(texts)), key=texts.__getitem__))
        self._sorted = [self.releases_[self.parties_[i]] for i in self._order]
        check_prior(self.model, self.releases_)
        bind = getattr(self.model, "bind", None)
        self.model_ = self.model if bind is None else bind(self._sorted)
        warn_of_few_rows(self.releases_)
        seeds = check_random_state(self.random_state).randint(2**32, size=4, dtype=np.uint32)
        self._rng = np.random.default_rng(seeds)
        method = self.method
        if method == "auto":
            method = "grid" if hasattr(self.model_, "prior_quantile") else "pool"
        if method == "gibbs":
            self._fit_gibbs()
        else:
            self._fit_pool(method)
        return method

    def _warn_of_few_draws(self, method):
        """Said once the fit is there: a warning may be made an error."""
        least = self._ess.min()
        message = None
        if method == "pool" and least < self.min_ess:
            message = (
                f"{np.sum(self._ess < self.min_ess)} of {len(self._ess)} coalitions have an "
                f"effective sample size below min_ess={self.min_ess:g} (the least is {least:.0f}): "
                "raise n_particles."
            )
        elif method == "grid" and least < _FEW_NODES:
            message = (
                f"{np.sum(self._ess < _FEW_NODES)} of {len(self._ess)} coalitions have fewer than "
                f"{_FEW_NODES} nodes of the grid: their values are rough."
            )
        elif method == "gibbs" and least < LEAST_ESS:
            message = (
                "Gibbs chains of some coalitions have mixed slowly (effective sample size "
                f"{least:.0f}): prefer method='pool', or raise n_particles."
            )
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    # Computation ----------------------------------------------------------------------------

    def _fit_pool(self, method):
        n = len(self._sorted)
        self.acceptance_ = 1.0
        if method == "grid":
            if not hasattr(self.model_, "prior_quantile"):
                raise ValueError(
                    "method='grid' needs a model of one parameter, such as GaussianMean. Got "
                    f"{self.model!r}."
                )
            self._pool = grid_pool(self.model_, self._sorted)
            self._evaluate()
            for _ in range(_REFINEMENTS):
                weak = self._ess < _FEW_NODES
                if not weak.any():
                    break
                some = self._members[weak]
                self._pool = refined_pool(self.model_, self._sorted, self._pool, some)
                self._evaluate()
            return
        anchors = np.unique(np.concatenate([np.eye(n), np.ones((1, n))]), axis=0)[::-1]
        size = self.n_particles or max(160, min(600, 600 * (_EXACT_PARTIES + 1) // (n + 1)))
        size = -(-size // _ISLANDS) * _ISLANDS
        prior = self.model_.sample_prior(2 * size, self._rng)
        n_moves = self.n_moves or (8 if prior.shape[1] <= 4 else 12)
        stages = []
        for _ in range(_ROUNDS):
            more, self.acceptance_ = anneal(
                self.model_, self._sorted, anchors, size, _ISLANDS, n_moves, self._rng
            )
            stages += more
            self._pool = sampled_pool(self.model_, self._sorted, stages, prior, _ISLANDS)
            self._evaluate()
            weak = np.flatnonzero(self._ess < self.min_ess)
            if len(weak) == 0:
                return
            weak = weak[np.argsort(self._ess[weak])][:_MORE_ANCHORS]
            anchors = self._members[weak].astype(float)

    def _evaluate(self):
        """All coalitions, or those that sampled orders pass, by the pool."""
        n = len(self._sorted)
        if n <= _EXACT_PARTIES:
            values, ess, islands = self._pool.coalitions()
            numbers = np.arange(2**n)
            self._members = (numbers[:, None] >> np.arange(n) & 1).astype(bool)
            self._set_table(values, islands)
            self._ess, self.ess_ = ess, ess[_renumber(self._order)]
            return
        if not hasattr(self, "_orders") or self._orders.masks.shape[1] != n:
            self._orders = PrefixCoalitions(n, self.n_permutations, self._rng.spawn(1)[0])
        design = self._orders
        values, self._ess, islands = self._pool.masks(design.masks)
        phi, errors = design.shapley(values)
        spread = np.array([design.shapley(column)[0] for column in islands.T])
        back = np.argsort(self._order)
        self._members = design.masks
        self.values_ = phi[back]
        self.values_error_ = np.hypot(errors, _error(spread.T))[back]
        self.standalone_values_ = values[design.singles][back]
        self.grand_value_ = float(values[design.grand])
        self.grand_value_error_ = float(_error(islands[design.grand]))
        self.ess_, self.n_evaluations_ = self._ess, len(design.masks)

    def _set_table(self, values, islands):
        """Attributes from the values of all coalitions, in the canonical order."""
        n = len(self._sorted)
        back = np.argsort(self._order)
        spread = np.array([tabulated_semivalue(column) for column in islands.T])
        self.values_ = tabulated_semivalue(values)[back]
        self.values_error_ = _error(spread.T)[back]
        numbers = _renumber(self._order)
        self.coalition_values_ = values[numbers]
        self.coalition_values_error_ = _error(islands)[numbers]
        self.standalone_values_ = self.coalition_values_[1 << np.arange(n)]
        self.grand_value_ = float(self.coalition_values_[-1])
        self.grand_value_error_ = float(self.coalition_values_error_[-1])
        self.n_evaluations_ = 2**n

    def _fit_gibbs(self):
        n = len(self._sorted)
        if n > _EXACT_PARTIES:
            raise ValueError(f"method='gibbs' is for at most {_EXACT_PARTIES} parties. Got {n}.")
        numbers = np.arange(2**n)
        self._members = (numbers[:, None] >> np.arange(n) & 1).astype(bool)
        islands, self._ess = gibbs_values(
            self.model_,
            self._sorted,
            self._members,
            self.n_particles or 1000,
            self.divergence,
            self._rng,
        )
        self._set_table(islands.mean(axis=1), islands)
        self.ess_, self.acceptance_ = self._ess[_renumber(self._order)], 1.0

    # Asking -----------------------------------------------------------------------------------

    def _powers(self, coalition, temper):
        """Powers of the likelihoods, in the canonical order."""
        if isinstance(coalition, str):
            if coalition != "all":  # no sequence of parties called by its letters
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
        members = np.zeros(len(self.parties_))
        members[[self.parties_.index(party) for party in coalition]] = temper
        return members[self._order]

    def _require_pool(self):
        check_is_fitted(self, "values_")
        if not hasattr(self, "_pool"):
            raise ValueError("method must be 'pool' or 'grid' for this. Got 'gibbs'.")

    def surprise(self, coalition="all", temper=1.0):
        """Value of a coalition whose likelihoods are raised to a power.

        Parameters
        ----------
        coalition : sequence of parties or "all", default="all"
            Its members.
        temper : float, default=1.0
            The power, in [0, 1].

        Returns
        -------
        value : float
            Divergence from the prior, in nats.

        Raises
        ------
        ValueError
            If a party is not known or temper outside [0, 1].
        """
        self._require_pool()
        return float(self._pool.masks(self._powers(coalition, temper)[None])[0][0])

    def sample(self, coalition="all", n_draws=1000, temper=1.0, random_state=None):
        """Draws from the posterior of a coalition.

        Parameters
        ----------
        coalition : sequence of parties or "all", default="all"
            Its members.
        n_draws : int, default=1000
            How many draws.
        temper : float, default=1.0
            Power of the likelihoods, in [0, 1].
        random_state : int, RandomState instance or None, default=None
            Of the draws.

        Returns
        -------
        phi : ndarray of shape (n_draws, n_parameters)
            Parameters of the model.

        Raises
        ------
        ValueError
            If a party is not known or temper outside [0, 1].
        """
        self._require_pool()
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        powers = self._powers(coalition, temper)
        return self._pool.sample(self.model_, self._sorted, powers, n_draws, rng)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _renumber(order):
    """Number of each coalition in the canonical order of parties."""
    numbers = np.arange(2 ** len(order))
    renumbered = np.zeros_like(numbers)
    for place, party in enumerate(order):
        renumbered |= (numbers >> int(party) & 1) << place
    return renumbered


def _error(islands):
    """Standard error of a mean of islands, on the last axis."""
    n = islands.shape[-1]
    return islands.std(axis=-1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(islands.shape[:-1])
