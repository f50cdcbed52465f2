"""Base class of the scorers of parties: releases -> coalitions -> semivalues."""

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import set_fitted_state
from ..._utils.parallel import one_blas_thread
from ..._utils.sklearn import HasMethods, Interval
from ..._utils.warned import warn
from ...base import Run, warn_if_noise_exceeds
from ...semivalues import check_semivalue
from ..models import bind, check_prior, check_releases, warn_of_few_rows
from ._cost import expected_cost
from ._designs import AllCoalitions, PrefixCoalitions
from ._grid import grid_particles
from ._particles import (
    Particles,
    TemperedPosterior,
    likelihoods,
    sample_particles,
)
from ._progress import N_STEPS, FitProgress
from ._release_errors import (
    ExactDraws,
    covering_error,
    draw_exact_values,
    exact_coalition_values,
)
from ._utilities import Surprise, evaluate

EXACT_PARTIES = 12


@dataclass(frozen=True)
class BoundReleases:
    """Checked releases, and the model that is bound to them.

    Parties are in a canonical order, which depends neither on their names nor on the
    user's order: `order` (n_parties,) has the user's index of each party in it, and
    `ordered` the releases. `by_party` is in the user's order.
    """

    by_party: dict
    order: np.ndarray
    ordered: list
    model: object

    @property
    def has_noise(self):
        """Whether noise has been added to a release."""
        return any(release.noise_scale for release in self.ordered)


@dataclass(frozen=True)
class PartyGame:
    """The game of bound releases, and the particles that posteriors are computed from.

    Parties are in the canonical order of `BoundReleases`. `utility` is a `Surprise` or
    a `PredictiveGain`.
    """

    model: object
    releases: list
    order: np.ndarray
    utility: object
    particles: Particles


class CoalitionValues(NamedTuple):
    """Values of the m coalitions of a design.

    Parameters
    ----------
    game : PartyGame
        The game, with the particles.
    values : ndarray of shape (m,)
        The values.
    replicates : ndarray of shape (m, n_replicates)
        The same within the replicates of the particles.
    ess : ndarray of shape (m,)
        Effective sample sizes.
    points : ndarray of shape (m, n_validation) or None
        Values at the validation points, if the utility is a mean over them.
    draws : ndarray of shape (n_draws, m) or None
        Values if the releases had no noise, drawn many times; None if they have none,
        or the model cannot value exact statistics.
    warning : str or None
        What to warn of.
    """

    game: PartyGame
    values: np.ndarray
    replicates: np.ndarray
    ess: np.ndarray
    points: np.ndarray | None
    draws: np.ndarray | None
    warning: str | None


class PartyScorer(CallbackSupportMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of scorers of parties by the posteriors of their coalitions."""

    _parameter_constraints: dict = {
        "model": [
            HasMethods(["sample_prior", "log_prior", "party_loglik", "predict_logpdf"])
        ],
        "semivalue": [str, tuple, list, callable],
        "n_particles": [Interval(Integral, 40, None, closed="left"), None],
        "n_permutations": [Interval(Integral, 2, None, closed="left")],
        "min_ess": [Interval(Real, 0, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
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
        max_time=None,
        random_state=None,
    ):
        self.model = model
        self.semivalue = semivalue
        self.n_particles = n_particles
        self.n_permutations = n_permutations
        self.min_ess = min_ess
        self.max_time = max_time
        self.random_state = random_state

    @abstractmethod
    def fit(self, releases, y=None):
        """Value the parties."""

    def _bind(self, releases):
        """The `BoundReleases` of what the user has passed."""
        releases = check_releases(releases)
        check_prior(self.model, releases)
        listed = list(releases.values())
        texts = [release.to_json() for release in listed]
        order = np.array(sorted(range(len(listed)), key=texts.__getitem__))
        ordered = [listed[i] for i in order]
        model = bind(self.model, ordered)
        warn_of_few_rows(releases)
        return BoundReleases(releases, order, ordered, model)

    def _value(self, bound, utility):
        """Evaluate the coalitions by a utility, and set the fitted attributes."""
        semivalue = check_semivalue(self.semivalue, custom=True)
        n_parties = len(bound.ordered)
        random_state = check_random_state(self.random_state)
        seeds = random_state.randint(2**32, size=4, dtype=np.uint32)
        rng = np.random.default_rng(seeds)
        design = self._design(n_parties, rng)

        # Steps differ, so that no time is forecast from the first of them:
        # `estimate_cost` does it.
        run = Run(self)
        coalitions = None
        draws_rng = np.random.default_rng(np.append(seeds, 1))
        with run.steps(N_STEPS, "steps made", n_unequal=N_STEPS) as done:
            progress = FitProgress(done, self.max_time)
            coalitions = self._evaluate(
                bound, utility, design, (rng, draws_rng), progress
            )

        # An interrupted fit leaves the former one: values need all coalitions.
        if run.interrupted:
            raise KeyboardInterrupt
        if coalitions is None:
            raise RuntimeError(
                "The fit was stopped by a callback before all coalitions were valued: "
                "max_time ends the sampling alone."
            )
        attributes, exact_draws = _fitted_attributes(
            bound, design, coalitions, semivalue
        )
        set_fitted_state(
            self, **attributes, _game=coalitions.game, _exact_draws=exact_draws
        )
        run.close()

        # The warning is last, since a filter may turn it into an error.
        if coalitions.warning is not None:
            warn(coalitions.warning, ConvergenceWarning)

    def _evaluate(self, bound, utility, design, generators, progress):
        """The `CoalitionValues` of a design.

        One matrix has the log-likelihood of every party at every particle. Its columns,
        added up for coalitions, give their utilities. ``generators`` are those of the
        particles, and of the draws of exact statistics.
        """
        rng, draws_rng = generators
        particles, surprises, warning = self._make_particles(
            bound, design, rng, progress
        )
        values, replicates, ess = surprises
        points = None
        if not isinstance(utility, Surprise):
            values, replicates, points = evaluate(
                utility, particles, design.masks, progress.evaluated
            )
        progress.evaluated(1.0)
        is_empty = ~design.masks.any(axis=1)
        values[is_empty] = 0.0
        replicates[is_empty] = 0.0

        # Noise has an error of its own, for which what is behind it is drawn.
        game = PartyGame(bound.model, bound.ordered, bound.order, utility, particles)
        draws = None
        if bound.has_noise:
            draws = self._draw_values(bound, game, design, draws_rng, progress)
        progress.drawn(1.0)
        return CoalitionValues(
            game=game,
            values=values,
            replicates=replicates,
            ess=ess,
            points=points,
            draws=draws,
            warning=warning,
        )

    def _draw_values(self, bound, game, design, rng, progress):
        """Values of the coalitions if the releases had no noise, drawn many times.

        They are of shape (n_draws, n_coalitions), or None if the model cannot value
        exact statistics.
        """
        with one_blas_thread():
            drawn = draw_exact_values(game, design.masks, rng, progress.drawn)
        if drawn is None:
            return None
        draws, statistics = drawn
        draws += self._gaps_of_approximation(
            bound, game, design, statistics, rng, progress
        )
        return draws

    def _gaps_of_approximation(self, bound, game, design, statistics, rng, progress):
        """What the closed form of the draws misses, for each coalition.

        A model whose posteriors of exact statistics are approximations has other values
        than those that are sampled. The difference is measured once, for the mean
        (n_parties, m) of the statistics that may be behind the releases. It is 0 for
        all other models.
        """
        if not getattr(bound.model, "has_approximate_posteriors", False):
            return 0.0
        releases = [
            release.without_noise(statistic)
            for release, statistic in zip(bound.ordered, statistics)
        ]
        exact = BoundReleases(
            bound.by_party, bound.order, releases, bind(self.model, releases)
        )
        # `progress` ends this sampling, too, at the time that the fit was given.
        particles, surprises, _ = self._make_particles(exact, design, rng, progress)
        values = surprises[0]
        if not isinstance(game.utility, Surprise):
            values, _, _ = evaluate(game.utility, particles, design.masks)
        values[~design.masks.any(axis=1)] = 0.0
        statistics = np.stack([release.vector for release in releases])
        with one_blas_thread():
            return values - exact_coalition_values(game, design.masks, statistics)

    def _warn_of_noise(self, errors):
        """Warn if errors (n_parties,), which the noise causes, exceed the values."""
        warn_if_noise_exceeds(
            self.values_, errors, "take a larger epsilon, more rows or fewer features"
        )

    def _make_particles(self, bound, design, rng, progress):
        """Particles on a grid or sampled; returns as `sample_particles` does."""
        logliks = likelihoods(bound.model, bound.ordered)
        if hasattr(bound.model, "prior_quantile"):
            return grid_particles(bound.model, logliks, design)
        with one_blas_thread():
            return sample_particles(
                bound.model,
                logliks,
                design,
                n_particles=self._n_particles_of(len(logliks)),
                min_ess=self.min_ess,
                rng=rng,
                progress=progress,
            )

    def _n_particles_of(self, n_parties):
        """Number of particles of each sampled posterior."""
        if self.n_particles is not None:
            return self.n_particles
        # Fewer for more parties, so that their total number does not grow.
        n_particles = 800 * (EXACT_PARTIES + 1) // (n_parties + 1)
        return max(200, min(2000, n_particles))

    def _design(self, n_parties, rng):
        """The coalitions to evaluate."""
        if n_parties <= EXACT_PARTIES:
            return AllCoalitions(n_parties)
        return PrefixCoalitions(n_parties, self.n_permutations, rng.spawn(1)[0])

    def _cost(self, bound, utility):
        """What `estimate_cost` returns for a utility."""
        check_semivalue(self.semivalue, custom=True)
        n_parties = len(bound.ordered)
        return expected_cost(
            bound,
            self._design(n_parties, np.random.default_rng(0)),
            utility,
            n_particles=self._n_particles_of(n_parties),
            min_ess=self.min_ess,
        )

    # Posteriors -----------------------------------------------------------------------

    def _powers(self, coalition, temper):
        """Powers of the parties' likelihoods, in the canonical order."""
        check_is_fitted(self, "values_")
        if isinstance(coalition, str):
            # Another string is not a sequence of one-letter names.
            if coalition != "all":
                raise ValueError(
                    "coalition must be 'all' or a sequence of parties, such as "
                    f"[{coalition!r}]. Got {coalition!r}."
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
        powers = self._powers(coalition, temper)
        game = self._game
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        posterior = TemperedPosterior(
            row=game.particles.loglik @ powers,
            logliks=likelihoods(game.model, game.releases),
            powers=powers,
        )
        return game.particles.draw(game.model, posterior, n_draws, rng)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _fitted_attributes(bound, design, coalitions, semivalue):
    """The fitted attributes of a scorer, a dict, and the `ExactDraws` or None.

    They are computed in the canonical order of parties, which is that of the design.
    """
    to_user = np.argsort(bound.order)
    semivalues, design_errors = design.semivalues(coalitions.values, semivalue)
    by_replicate = _semivalues_of(coalitions.replicates, design, semivalue)
    errors = np.hypot(design_errors, _standard_error(by_replicate.T))
    coalition_errors = _standard_error(coalitions.replicates)
    attributes = {
        "releases_": bound.by_party,
        "parties_": list(bound.by_party),
        "model_": bound.model,
        "values_": semivalues[to_user],
        "computation_error_": errors[to_user],
        "standalone_values_": coalitions.values[design.singles][to_user],
        "grand_value_": float(coalitions.values[design.grand]),
        "ess_": coalitions.ess,
        "n_evaluations_": len(design.masks),
    }

    # Row k of the masks, read as the user's coalition k, has the canonical number
    # `numbers[k]`.
    n_parties = len(bound.ordered)
    is_enumerated = n_parties <= EXACT_PARTIES
    if is_enumerated:
        numbers = design.masks[:, bound.order] @ (1 << np.arange(n_parties))
        attributes["ess_"] = coalitions.ess[numbers]
        attributes["coalition_values_"] = coalitions.values[numbers]
        attributes["coalition_computation_error_"] = coalition_errors[numbers]

    if coalitions.points is not None:
        by_point = _semivalues_of(coalitions.points, design, semivalue)
        validation_errors = np.full(n_parties, np.nan)  # of a single point
        if len(by_point) > 1:
            validation_errors = _standard_error(by_point.T)
        attributes["validation_error_"] = validation_errors[to_user]

    # Errors that the noise causes are unknown if exact statistics cannot be valued.
    if bound.has_noise and coalitions.draws is None:
        return attributes, None
    exact_draws = None
    release_error = np.zeros(n_parties)
    if coalitions.draws is not None:
        draws = _semivalues_of(coalitions.draws.T, design, semivalue)
        exact_draws = ExactDraws(draws[:, to_user], coalitions.draws[:, design.grand])
        release_error = covering_error(semivalues, draws)
        coalition_errors = np.hypot(
            coalition_errors, covering_error(coalitions.values, coalitions.draws)
        )
    attributes["release_error_"] = release_error[to_user]
    attributes["values_error_"] = np.hypot(errors, release_error)[to_user]
    attributes["grand_value_error_"] = float(coalition_errors[design.grand])
    if is_enumerated:
        attributes["coalition_values_error_"] = coalition_errors[numbers]
    return attributes, exact_draws


def _semivalues_of(columns, design, semivalue):
    """Semivalues (k, n_parties) of k columns (m, k) of utilities of the coalitions."""
    return np.array([design.semivalues(column, semivalue)[0] for column in columns.T])


def _standard_error(replicates):
    """Standard error of the mean over replicates, the last axis."""
    n = replicates.shape[-1]
    if n == 1:
        return np.zeros(replicates.shape[:-1])
    return replicates.std(axis=-1, ddof=1) / np.sqrt(n)
