"""Rewards of the parties: posteriors whose values follow the parties' Shapley values.

Sim, Zhang, Hoang, Xu, Low and Jaillet, "Incentives in Private Collaborative Machine
Learning" (NeurIPS 2023), Sections 4 and 5.
"""

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
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ..._utils.warned import warn
from ...base import Run
from ...rewards import largest_rho, rho_targets
from ._controls import NoiseControl, ScaledControl, TemperingControl
from ._release_errors import covering_error
from ._scorer import PartyScorer
from .posterior import make_posterior

# The attribute that has the numbers by which posteriors are made.
_SETTINGS = {"temper": "temper_", "scaled": "scale_", "noise": "tau_"}


class Reward(NamedTuple):
    """The reward of one party.

    Parameters
    ----------
    setting : float
        Power, scale or noise that makes the posterior.
    value : float
        Value of the posterior.
    divergence : float
        Divergence of the posterior of all parties from it.
    is_weak : bool
        Whether it is based on few effective draws.
    posterior : PosteriorRegressor, PosteriorClassifier or PosteriorDraws
        What the party receives.
    """

    setting: float
    value: float
    divergence: float
    is_weak: bool
    posterior: object


class RhoShapleyReward(CallbackSupportMixin, BaseEstimator):
    """Reward of each party: draws from a posterior, by its Shapley value.

    Party i receives a posterior of value ``v_N (phi_i / max phi)^rho``: the party with
    the largest Shapley value receives the posterior of all parties, and the others
    receive posteriors that are closer to the prior.

    Parameters
    ----------
    rho : float or "max", default="max"
        Exponent. "max" takes the largest value up to 1 with which every party receives
        at least its value alone; smaller exponents give larger and more similar
        rewards.
    control : {"temper", "scaled", "noise"}, default="temper"
        How posteriors of smaller value are made. "temper" raises the likelihood of the
        releases to a power in [0, 1], as equation (1) of the paper; surprise provably
        increases with it. "scaled" multiplies the statistics, the numbers of rows and
        the sensitivities by a number in [0, 1], as the paper's experiments do: the
        likelihood of the exact statistics is raised to that power. Without noise both
        are the same; with it "scaled" takes a smaller number for the same value, and
        gives noisy parties more weight. "noise" adds noise to all releases. With
        "scaled" and "noise" the value may not be monotone, and the first crossing of
        the target on a grid is taken.
    n_draws : int, default=1000
        Number of draws in each reward.
    random_state : int, RandomState instance or None, default=None
        Controls the random draws and the added noise.

    Attributes
    ----------
    parties_ : list
        Names of the parties.
    values_, standalone_values_ : ndarray of shape (n_parties,)
        Shapley values, and values of the parties alone, in the order of `parties_`.
    grand_value_ : float
        Value of the coalition of all parties.
    rho_, rho_max_ : float
        Exponent used, and the largest with which every party receives at least its
        value alone.
    target_rewards_, attained_rewards_ : ndarray of shape (n_parties,)
        Target values of the rewards, and values of the posteriors made.
    target_rewards_error_ : ndarray of shape (n_parties,)
        Errors of the targets that the noise of the releases causes, at the exponent
        `rho_`: 95 % of the targets that the statistics without noise may have are
        within two of them. Not set if the scorer has no `release_error_`.
    individually_rational_ : ndarray of bool of shape (n_parties,)
        Whether the party's target is at least the value of its release alone. Its rows
        without noise may be worth more: see `reward_gain`.
    temper_ : ndarray of shape (n_parties,)
        Powers of the likelihood. Only set for ``control="temper"``.
    scale_ : ndarray of shape (n_parties,)
        Factors of the statistics. Only set for ``control="scaled"``.
    tau_ : ndarray of shape (n_parties,)
        Added noise, in the units of the paper. Only set for ``control="noise"``.
    similarity_ : ndarray of shape (n_parties,)
        Minus the divergence of the posterior of all parties from the reward; 0 if they
        are equal.
    rewards_ : dict
        `PosteriorRegressor`, `PosteriorClassifier` or `PosteriorDraws` of each party.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : Computes the values.
    skvalue.rewards.shares : Shares of a payment, by the values.

    References
    ----------
    R. H. L. Sim, Y. Zhang, T. N. Hoang, X. Xu, B. K. H. Low, P. Jaillet: "Incentives in
    Private Collaborative Machine Learning", NeurIPS 2023, Sections 4 and 5.

    Examples
    --------
    >>> from skvalue.collaborative import (
    ...     BayesianSurpriseScorer, GaussianMean, NoisyStatistic, RhoShapleyReward
    ... )
    >>> releases = {
    ...     name: NoisyStatistic("gaussian", 100, (40.0,), epsilon, 2.0, (-1.0, 1.0))
    ...     for name, epsilon in [("a", 0.5), ("b", 0.01)]
    ... }
    >>> scorer = BayesianSurpriseScorer(GaussianMean(variance=0.1)).fit(releases)
    >>> scheme = RhoShapleyReward(rho=0.5, random_state=0).fit(scorer)
    >>> scheme.attained_rewards_.round(2).tolist(), scheme.temper_.round(2).tolist()
    ([2.76, 1.48], [1.0, 0.07])
    """

    _parameter_constraints: dict = {
        "rho": [Interval(Real, 0, None, closed="neither"), StrOptions({"max"})],
        "control": [StrOptions({"temper", "scaled", "noise"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        rho: float | str = "max",
        *,
        control="temper",
        n_draws=1000,
        random_state=None,
    ):
        self.rho = rho
        self.control = control
        self.n_draws = n_draws
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, scorer, y=None):
        """Compute targets and make the rewards.

        Parameters
        ----------
        scorer : BayesianSurpriseScorer or PredictiveValueScorer
            Scorer fitted on the parties' releases.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted reward scheme.

        Raises
        ------
        TypeError
            If `scorer` is not such a scorer.
        ValueError
            If no party, or all parties together, have a value above 0, or values are
            another semivalue.
        """
        self._check_scorer(scorer)
        values = scorer.values_.copy()
        alone = scorer.standalone_values_.copy()
        grand_value = scorer.grand_value_
        rho_max = largest_rho(values, np.maximum(alone, 0.0), grand_value)
        rho = self._choose_rho(rho_max)
        targets = rho_targets(values, grand_value, rho)

        # An interrupted fit leaves the former one: each party needs its reward.
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(2**31)
        )
        game = scorer._game
        control = self._make_control(game, grand_value, rng)
        value_of = game.utility.bind(game.particles)
        rewards = []
        run = Run(self)
        with one_blas_thread(), run.steps(len(targets), "rewards made") as done:
            for target in targets:
                reward = self._make_reward(scorer, control, value_of, target, rng)
                rewards.append(reward)
                done()
        if run.interrupted:
            raise KeyboardInterrupt
        if len(rewards) < len(targets):
            raise RuntimeError(
                "The fit was stopped by a callback before all rewards were made."
            )

        attributes = {
            _SETTINGS[self.control]: np.array([reward.setting for reward in rewards])
        }
        if scorer._exact_draws is not None:
            target_draws = _targets_of(scorer._exact_draws, rho)
            attributes["target_rewards_error_"] = covering_error(targets, target_draws)
        elif hasattr(scorer, "release_error_"):
            attributes["target_rewards_error_"] = np.zeros(len(targets))
        parties = list(scorer.parties_)
        divergences = np.array([reward.divergence for reward in rewards])
        set_fitted_state(
            self,
            parties_=parties,
            values_=values,
            standalone_values_=alone,
            grand_value_=grand_value,
            rho_=rho,
            rho_max_=rho_max,
            target_rewards_=targets,
            individually_rational_=targets >= alone - 1e-9,
            attained_rewards_=np.array([reward.value for reward in rewards]),
            similarity_=0.0 - divergences,
            rewards_={
                party: reward.posterior for party, reward in zip(parties, rewards)
            },
            **attributes,
        )
        run.close()
        weak_parties = [
            party for party, reward in zip(parties, rewards) if reward.is_weak
        ]
        self._warn(weak_parties)
        return self

    def _make_control(self, game, grand_value, rng):
        """What makes posteriors of smaller value."""
        if self.control == "temper":
            return TemperingControl(game, grand_value)
        if self.control == "scaled":
            return ScaledControl(game, grand_value)
        return NoiseControl(game, grand_value, rng)

    def _make_reward(self, scorer, control, value_of, target, rng):
        """The `Reward` of a target value; ``value_of`` gives values of posteriors."""
        game = scorer._game
        particles = game.particles
        setting, posterior = control.control(target)

        # Posteriors of a smaller value than that of all parties together.
        value = scorer.grand_value_
        divergence = 0.0
        is_weak = False
        if target < value:
            row = posterior.row
            value = 0.0
            grand_row = particles.loglik.sum(axis=1)
            divergence = particles.divergence_between(grand_row, row)
            if target > 0:
                value = value_of(row[None]).values[0]
                weights = particles.weights(row)
                has_draws = particles.n_replicates > 1  # a grid has none
                is_weak = has_draws and 1 / (weights @ weights) < scorer.min_ess

        draws = particles.draw(game.model, posterior, self.n_draws, rng)
        return Reward(
            setting=setting,
            value=value,
            divergence=divergence,
            is_weak=bool(is_weak),
            posterior=make_posterior(game.model, draws),
        )

    def _check_scorer(self, scorer):
        """Refuse anything that is not a scorer fitted to Shapley values above 0."""
        if not isinstance(scorer, PartyScorer):
            raise TypeError(
                "scorer must be a fitted BayesianSurpriseScorer or "
                "PredictiveValueScorer. Got an object of type "
                f"{type(scorer).__name__}."
            )
        check_is_fitted(scorer, "values_")
        if scorer.semivalue != "shapley":
            raise ValueError(
                "scorer must have semivalue='shapley', to which rewards are "
                f"proportional. Got {scorer.semivalue!r}."
            )
        largest = scorer.values_.max()
        grand_value = scorer.grand_value_
        if largest <= 0 or grand_value <= 0:
            raise ValueError(
                "scorer must have a party of a value above 0, and so must all parties "
                f"together. Got at most {largest:g}, and {grand_value:g} together."
            )

    def _choose_rho(self, rho_max):
        """The exponent; 0.2 if none is rational, so that rewards are nearly equal."""
        if self.rho != "max":
            return self.rho
        if rho_max <= 0:
            return 0.2
        return min(1.0, rho_max)

    def _warn(self, weak_parties):
        """Warn of targets below values alone, and of rewards with few draws."""
        if self.rho_max_ <= 0:
            warn(
                "No rho gives every party at least what it has alone, which noise can "
                f"cause: rho={self.rho_:g} is used, see individually_rational_.",
                UserWarning,
            )
        elif self.rho_ > self.rho_max_:
            warn(
                f"rho={self.rho_:g} is above rho_max_={self.rho_max_:.4g}: some party "
                "receives less than what it has alone, see individually_rational_.",
                UserWarning,
            )
        if weak_parties:
            warn(
                f"The rewards of {weak_parties!r} are based on few effective draws: "
                "increase the scorer's n_particles.",
                ConvergenceWarning,
            )


def _targets_of(exact_draws, rho):
    """Targets (n_draws, n_parties) of `ExactDraws`; 0 where no value is above 0."""
    values = np.maximum(exact_draws.semivalues, 0.0)
    largest = values.max(axis=1, keepdims=True)
    fractions = np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)
    grand_values = np.maximum(exact_draws.grand_values, 0.0)
    return grand_values[:, None] * fractions**rho
