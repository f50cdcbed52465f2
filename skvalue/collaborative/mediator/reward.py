"""The mediator's rewards: a posterior for every party, worth what its Shapley value asks for.

Sim, Zhang, Hoang, Xu, Low and Jaillet, "Incentives in Private Collaborative Machine Learning"
(NeurIPS 2023), Sections 4 and 5.
"""

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..._utils.fits import swap_in
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...rewards import largest_rho, rho_targets
from ._controls import CONTROLS
from .posterior import make_posterior
from .surprise import BayesianSurpriseScorer


class RhoShapleyReward(BaseEstimator):
    """Rewards every party with draws of its own posterior, whose value is fair.

    Party i is to receive a posterior of value ``v_N (phi_i / max phi)^rho``: the most valuable
    party that of all parties together, the others one that is closer to the prior.

    Parameters
    ----------
    rho : float or "max", default="max"
        Exponent. "max" takes the largest, up to 1, at which every party receives at least what it
        has alone; a smaller one gives more to all and makes rewards more alike.
    control : {"temper", "noise", "scaled"}, default="temper"
        How posteriors of less value are made. "temper" raises the likelihood to a power in [0, 1],
        with which the value provably rises. "noise" adds noise to all releases, where value may
        rise and fall: the first crossing of the target on a grid is taken. "scaled" scales counts,
        sums and sensitivity and samples by Gibbs, as the paper does (linear models); slow.
    n_draws : int, default=1000
        Draws in each reward.
    random_state : int, RandomState instance or None, default=None
        Of the draws, and of added noise.

    Attributes
    ----------
    parties_ : list
        The parties.
    values_, standalone_values_ : ndarray of shape (n_parties,)
        Shapley values and values alone, in the order of `parties_`.
    grand_value_ : float
        Value of all together.
    rho_, rho_max_ : float
        The exponent used, and the bound up to which every party gains.
    target_rewards_, attained_rewards_ : ndarray of shape (n_parties,)
        Values asked for, and values of the posteriors made.
    individually_rational_ : ndarray of bool of shape (n_parties,)
        Whether a party's target is at least what it has alone.
    temper_ : ndarray of shape (n_parties,)
        Powers (for "scaled", factors); where control is not "noise".
    tau_ : ndarray of shape (n_parties,)
        Noise added, in the paper's units; where control is "noise".
    similarity_ : ndarray of shape (n_parties,)
        Minus the divergence of the posterior of all parties from the reward; 0 is the same. NaN for
        "scaled".
    rewards_ : dict
        By party a `PosteriorRegressor`, `PosteriorClassifier` or `PosteriorDraws`.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : The values.
    skvalue.rewards.shares : Money in place of models.

    References
    ----------
    R. H. L. Sim, Y. Zhang, T. N. Hoang, X. Xu, B. K. H. Low, P. Jaillet: "Incentives in Private
    Collaborative Machine Learning", NeurIPS 2023, Sections 4 and 5.

    Examples
    --------
    >>> from skvalue.collaborative import (
    ...     BayesianSurpriseScorer, GaussianMean, Release, RhoShapleyReward
    ... )
    >>> releases = {
    ...     name: Release("gaussian", 100, (40.0,), epsilon, 2.0, (-1.0, 1.0))
    ...     for name, epsilon in [("a", 0.5), ("b", 0.01)]
    ... }
    >>> scorer = BayesianSurpriseScorer(GaussianMean(variance=0.1)).fit(releases)
    >>> scheme = RhoShapleyReward(rho=0.5, random_state=0).fit(scorer)
    >>> scheme.attained_rewards_.round(2).tolist(), scheme.temper_.round(2).tolist()
    ([2.76, 1.48], [1.0, 0.07])
    """

    _parameter_constraints: dict = {
        "rho": [Interval(Real, 0, None, closed="neither"), StrOptions({"max"})],
        "control": [StrOptions({"temper", "noise", "scaled"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, rho="max", *, control="temper", n_draws=1000, random_state=None):
        self.rho = rho
        self.control = control
        self.n_draws = n_draws
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, scorer, y=None):
        """Set targets and make the rewards.

        Parameters
        ----------
        scorer : BayesianSurpriseScorer
            Fitted on the parties' releases, with method "pool" or "grid".
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        self : object
            With the `rewards_`.

        Raises
        ------
        TypeError
            If scorer is no scorer.
        ValueError
            If no party has a value above 0, or the releases do not suit the control.
        """
        if not isinstance(scorer, BayesianSurpriseScorer):
            raise TypeError(
                "scorer must be a fitted BayesianSurpriseScorer. Got an object of type "
                f"{type(scorer).__name__}."
            )
        evidence = scorer._pooled()
        values, alone = scorer.values_.copy(), scorer.standalone_values_.copy()
        grand_value = scorer.grand_value_
        if values.max() <= 0:
            raise ValueError("scorer must have a party of a value above 0. Got none.")
        bound = largest_rho(values, alone, grand_value)
        # Where no rho will do, a small one, so that nobody suffers much for one party's luck.
        rho = (min(1.0, bound) if bound > 0 else 0.2) if self.rho == "max" else self.rho
        targets = rho_targets(values, grand_value, rho)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        control = CONTROLS[self.control]
        made = control(evidence, targets, grand_value, self.n_draws, scorer.min_ess, rng)
        parties = list(scorer.parties_)
        swap_in(
            self,
            parties_=parties,
            values_=values,
            standalone_values_=alone,
            grand_value_=grand_value,
            rho_=rho,
            rho_max_=bound,
            target_rewards_=targets,
            individually_rational_=targets >= alone - 1e-9,
            attained_rewards_=made.attained,
            similarity_=made.similarity,
            rewards_={p: make_posterior(evidence.model, x) for p, x in zip(parties, made.samples)},
            **made.setting,
        )
        self._warn([parties[place] for place in made.weak])
        return self

    def _warn(self, weak):
        """What is to be said of the rewards, once they are there."""
        if self.rho_max_ <= 0:
            warnings.warn(
                "No rho gives every party at least what it has alone, as one draw of the noise can "
                f"have it: rho={self.rho_:g} is used, see individually_rational_.",
                UserWarning,
                stacklevel=4,
            )
        elif self.rho_ > self.rho_max_:
            warnings.warn(
                f"rho={self.rho_:g} is above rho_max_={self.rho_max_:.4g}: some party receives "
                "less than what it has alone, see individually_rational_.",
                UserWarning,
                stacklevel=4,
            )
        if weak:
            warnings.warn(
                f"The rewards of {weak!r} stand on few effective draws: raise the scorer's "
                "n_particles.",
                ConvergenceWarning,
                stacklevel=4,
            )
