"""Base of the scorers of parties: coalitions evaluated from releases, and their
semivalues."""

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import set_fitted_state
from ..._utils.sklearn import HasMethods, Interval
from ..._utils.warned import warn
from ...semivalues import check_semivalue
from ..models import bind, check_prior, check_releases, warn_of_few_rows
from ..party import NoisyStatistic
from ._designs import AllCoalitions, PrefixCoalitions
from ._grid import grid_particles
from ._particles import Particles, likelihoods, sample_particles
from ._utilities import Surprise, evaluated

EXACT_PARTIES = 12


@dataclass(frozen=True)
class PartyGame:
    """A model bound to the releases, and the particles that posteriors are computed
    from.

    Parties are in a canonical order, which depends neither on their names nor on the
    user's order.
    """

    model: object
    releases: list
    order: np.ndarray  # the user's index of each party in the canonical order
    utility: object  # `Surprise` or `PredictiveGain`
    particles: Particles


class PartyScorer(BaseEstimator, metaclass=ABCMeta):
    """Base class of scorers of parties by the posteriors of their coalitions."""

    _parameter_constraints: dict = {
        "model": [
            HasMethods(["sample_prior", "log_prior", "party_loglik", "predict_logpdf"])
        ],
        "semivalue": [str, tuple, list, callable],
        "n_particles": [Interval(Integral, 40, None, closed="left"), None],
        "n_permutations": [Interval(Integral, 2, None, closed="left")],
        "min_ess": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        model,
        *,
        semivalue: object = "shapley",
        n_particles=None,
        n_permutations=400,
        min_ess: float = 100,
        random_state=None,
    ):
        self.model = model
        self.semivalue = semivalue
        self.n_particles = n_particles
        self.n_permutations = n_permutations
        self.min_ess = min_ess
        self.random_state = random_state

    @abstractmethod
    def fit(self, releases, y=None):
        """Value the parties."""

    def _bind(self, releases):
        """Checked releases by party, their order by text, releases in it, and the model
        bound."""
        releases = check_releases(releases)
        check_prior(self.model, releases)
        given = list(releases.values())
        texts = list(map(NoisyStatistic.to_json, given))
        order = np.array(sorted(range(len(given)), key=texts.__getitem__))
        ordered = list(map(given.__getitem__, order))
        model = bind(self.model, ordered)
        warn_of_few_rows(releases)
        return releases, order, ordered, model

    def _value(self, releases, order, ordered, model, utility):
        """Evaluate the coalitions by a utility, and set the fitted attributes."""
        semivalue, n = check_semivalue(self.semivalue, custom=True), len(releases)
        seeds = check_random_state(self.random_state).randint(
            2**32, size=4, dtype=np.uint32
        )
        rng, enumerated = np.random.default_rng(seeds), n <= EXACT_PARTIES
        if enumerated:
            design = AllCoalitions(n)
        else:
            design = PrefixCoalitions(n, self.n_permutations, rng.spawn(1)[0])
        # One matrix: the log-likelihood of every party at every particle.
        logliks = likelihoods(model, ordered)
        if hasattr(model, "prior_quantile"):
            particles, found, warning = grid_particles(model, logliks, design)
        else:
            size = self.n_particles or max(
                160, min(600, 600 * (EXACT_PARTIES + 1) // (n + 1))
            )
            particles, found, warning = sample_particles(
                model, logliks, design, size, self.min_ess, rng
            )
        # Its columns, added up for coalitions, give their utilities; surprises are
        # known already.
        values, replicates, ess = found
        points = None
        if not isinstance(utility, Surprise):
            values, replicates, points = evaluated(
                utility.on(particles), particles, design.masks
            )
        empty = ~design.masks.any(axis=1)
        values[empty], replicates[empty] = 0.0, 0.0
        # Utilities of coalitions give semivalues, also within replicates, for standard
        # errors.
        back = np.argsort(order)
        found, errors = design.semivalues(values, semivalue)
        by_replicate = np.array(
            [design.semivalues(x, semivalue)[0] for x in replicates.T]
        )
        learnt = dict(
            releases_=releases,
            parties_=list(releases),
            model_=model,
            values_=found[back],
            values_error_=np.hypot(errors, _error(by_replicate.T))[back],
            standalone_values_=values[design.singles][back],
            grand_value_=float(values[design.grand]),
            grand_value_error_=float(_error(replicates[design.grand])),
            ess_=ess,
            n_evaluations_=len(design.masks),
        )
        if enumerated:
            numbers = design.masks[:, order] @ (
                1 << np.arange(n)
            )  # in the canonical order
            learnt |= dict(
                ess_=ess[numbers],
                coalition_values_=values[numbers],
                coalition_values_error_=_error(replicates)[numbers],
            )
        if points is not None:
            by_point = np.array([design.semivalues(x, semivalue)[0] for x in points.T])
            learnt |= dict(validation_error_=_error(by_point.T)[back])
        game = PartyGame(model, ordered, order, utility, particles)
        set_fitted_state(self, **learnt, _game=game)
        if (
            warning is not None
        ):  # last, since a filter may turn the warning into an error
            warn(warning, ConvergenceWarning)

    # Posteriors -----------------------------------------------------------------------

    def _powers(self, coalition, temper):
        """Powers of the parties' likelihoods, in the canonical order."""
        check_is_fitted(self, "values_")
        if isinstance(coalition, str):
            if coalition != "all":  # a string is not a sequence of one-letter names
                raise ValueError(
                    f"coalition must be 'all' or a sequence of parties, such as [{coalition!r}]. "
                    f"Got {coalition!r}."
                )
            coalition = self.parties_
        unknown = [party for party in coalition if party not in self.releases_]
        if unknown:
            raise ValueError(
                f"coalition must name parties of parties_. Got {unknown!r}."
            )
        if not isinstance(temper, Real) or not 0 <= temper <= 1:
            raise ValueError(f"temper must be in [0, 1]. Got {temper!r}.")
        powers = np.zeros(len(self.parties_))
        powers[[self.parties_.index(party) for party in coalition]] = temper
        return powers[self._game.order]

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
        powers, game = self._powers(coalition, temper), self._game
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        logliks, row = (
            likelihoods(game.model, game.releases),
            game.particles.loglik @ powers,
        )
        return game.particles.draw(game.model, logliks, powers, row, n_draws, rng)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _error(replicates):
    """Standard error of the mean over replicates, the last axis."""
    n = replicates.shape[-1]
    if n == 1:
        return np.zeros(replicates.shape[:-1])
    return replicates.std(axis=-1, ddof=1) / np.sqrt(n)
