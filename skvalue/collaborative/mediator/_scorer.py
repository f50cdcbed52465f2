"""Base of the scorers of parties: coalitions evaluated from releases, and their Shapley values."""

import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import swap_in
from ..._utils.sklearn import HasMethods, Interval
from ..models import check_prior, check_releases, warn_of_few_rows
from ._designs import AllCoalitions, PrefixCoalitions
from ._evaluation import by_chains, by_grid, by_particles
from ._pool import Pool

EXACT_PARTIES = 12


@dataclass(frozen=True)
class Evidence:
    """A model bound to the releases, and the pool that posteriors are computed from.

    Parties are in a canonical order, which depends neither on their names nor on the user's order.
    """

    model: object
    releases: list
    order: np.ndarray  # the user's index of each party in the canonical order
    pool: Pool | None  # None for method "gibbs"
    measure: object  # `Surprise` or `PredictiveGain`


class PartyScorer(BaseEstimator, metaclass=ABCMeta):
    """Base class of scorers of parties by the posteriors of their coalitions."""

    _parameter_constraints: dict = {
        "model": [HasMethods(["sample_prior", "log_prior", "party_loglik", "predict_logpdf"])],
        "n_particles": [Interval(Integral, 40, None, closed="left"), None],
        "n_moves": [Interval(Integral, 1, None, closed="left"), None],
        "n_permutations": [Interval(Integral, 2, None, closed="left")],
        "min_ess": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, model, method, n_particles, n_moves, n_permutations, min_ess, random_state):
        self.model = model
        self.method = method
        self.n_particles = n_particles
        self.n_moves = n_moves
        self.n_permutations = n_permutations
        self.min_ess = min_ess
        self.random_state = random_state

    @abstractmethod
    def fit(self, releases, y=None):
        """Value the parties."""

    def _value_parties(self, releases, measure_of):
        """Set the fitted attributes; ``measure_of`` takes the bound model."""
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
        enumerated = n <= EXACT_PARTIES
        if enumerated:
            design = AllCoalitions(n)
        else:
            design = PrefixCoalitions(n, self.n_permutations, rng.spawn(1)[0])
        measure = measure_of(model)
        found = self._evaluate(model, ordered, design, rng)
        utilities, islands, points = measure.values(found, design.masks)
        back = np.argsort(order)
        values, errors = design.shapley(utilities)
        by_island = np.array([design.shapley(column)[0] for column in islands.T])
        learnt = dict(
            releases_=releases,
            parties_=list(releases),
            model_=model,
            values_=values[back],
            values_error_=np.hypot(errors, _error(by_island.T))[back],
            standalone_values_=utilities[design.singles][back],
            grand_value_=float(utilities[design.grand]),
            grand_value_error_=float(_error(islands[design.grand])),
            ess_=found.ess,
            acceptance_=found.acceptance,
            n_evaluations_=len(design.masks),
        )
        if enumerated:
            numbers = _renumber(order)
            learnt |= dict(
                ess_=found.ess[numbers],
                coalition_values_=utilities[numbers],
                coalition_values_error_=_error(islands)[numbers],
            )
        if points is not None:
            by_point = np.array([design.shapley(column)[0] for column in points.T])
            learnt |= dict(validation_error_=_error(by_point.T)[back])
        evidence = Evidence(model, ordered, order, found.pool, measure)
        swap_in(self, **learnt, _evidence=evidence)
        if found.warning is not None:  # last, since a filter may turn the warning into an error
            warnings.warn(found.warning, ConvergenceWarning, stacklevel=4)
        return self

    def _evaluate(self, model, releases, design, rng):
        """Values of the design's coalitions, by `method`."""
        n, method = len(releases), self.method
        if method == "gibbs":
            if n > EXACT_PARTIES:
                raise ValueError(f"method='gibbs' is for at most {EXACT_PARTIES} parties. Got {n}.")
            n_draws = self.n_particles or 1000
            kind = self.divergence or "one-sample"
            return by_chains(model, releases, design, n_draws, kind, rng)
        if method == "grid" or (method == "auto" and hasattr(model, "prior_quantile")):
            return by_grid(model, releases, design)
        size = self.n_particles or max(160, min(600, 600 * (EXACT_PARTIES + 1) // (n + 1)))
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
