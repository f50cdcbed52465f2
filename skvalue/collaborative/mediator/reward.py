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
from sklearn.utils.validation import check_is_fitted

from ..._utils.fits import former_fit_kept
from ..._utils.sklearn import Interval, StrOptions, fit_context
from ...rewards import largest_rho, rho_targets
from ..models._smc import loglik_table
from ._pool import Pool
from .posterior import make_posterior

__all__ = ["RhoShapleyReward"]

_TAUS = np.geomspace(1e-3, 1e5, 33)
_NOISE_POOL = 6000  # particles of the noise control's search


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
    BayesianSurpriseScorer : The values.
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
        if not hasattr(scorer, "surprise"):
            raise TypeError(
                "scorer must be a fitted BayesianSurpriseScorer. Got an object of type "
                f"{type(scorer).__name__}."
            )
        check_is_fitted(scorer, "values_")
        scorer._require_pool()
        with former_fit_kept(self):
            self._fit(scorer)
        return self

    def _fit(self, scorer):
        self.parties_ = list(scorer.parties_)
        self.values_ = scorer.values_.copy()
        self.standalone_values_ = scorer.standalone_values_.copy()
        self.grand_value_ = scorer.grand_value_
        self._set_targets()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        for name in ("temper_", "tau_"):
            if hasattr(self, name):
                delattr(self, name)
        make = {"temper": self._temper, "noise": self._noise, "scaled": self._scale}
        samples = make[self.control](scorer, rng)
        self.rewards_ = {
            party: make_posterior(scorer.model_, some)
            for party, some in zip(self.parties_, samples)
        }

    def _set_targets(self):
        if self.values_.max() <= 0:
            raise ValueError("scorer must have a party of a value above 0. Got none.")
        bound = largest_rho(self.values_, self.standalone_values_, self.grand_value_)
        self.rho_max_ = bound
        # Where no rho will do, a small one, so that nobody suffers much for one party's luck.
        self.rho_ = (min(1.0, bound) if bound > 0 else 0.2) if self.rho == "max" else self.rho
        if bound <= 0:
            warnings.warn(
                "No rho gives every party at least what it has alone, as one draw of the noise can "
                f"have it: rho={self.rho_:g} is used, see individually_rational_.",
                UserWarning,
                stacklevel=5,
            )
        elif self.rho_ > bound:
            warnings.warn(
                f"rho={self.rho_:g} is above rho_max_={bound:.4g}: some party receives less than "
                "what it has alone, see individually_rational_.",
                UserWarning,
                stacklevel=5,
            )
        self.target_rewards_ = rho_targets(self.values_, self.grand_value_, self.rho_)
        self.individually_rational_ = self.target_rewards_ >= self.standalone_values_ - 1e-9

    # Controls ---------------------------------------------------------------------------------

    def _temper(self, scorer, rng):
        pool = scorer._pool
        powers = scorer._powers("all", 1.0)
        whole = pool.loglik @ powers
        self.temper_, attained, similarity, samples = [], [], [], []
        for target in self.target_rewards_:
            kappa = 1.0
            if target < self.grand_value_:
                kappa = pool.temper(powers, target) if target > 0 else 0.0
            self.temper_.append(kappa)
            values = (
                self.grand_value_ if kappa == 1 else pool.divergences(kappa * whole[None])[0][0]
            )
            attained.append(values if kappa else 0.0)
            away = pool.divergence_between(whole, kappa * whole) if kappa < 1 else 0.0
            similarity.append(0.0 - away)
            samples.append(
                pool.sample(scorer.model_, scorer._sorted, kappa * powers, self.n_draws, rng)
            )
        self.temper_ = np.array(self.temper_)
        self.attained_rewards_ = np.array(attained, dtype=float)
        self.similarity_ = np.array(similarity)
        return samples

    def _noise(self, scorer, rng):
        pool, thin = scorer._pool, _thinned(scorer._pool, rng)
        whole = pool.loglik.sum(axis=1)
        self.tau_, attained, similarity, samples, weak = [], [], [], [], []
        for party, target in zip(self.parties_, self.target_rewards_):
            units = [rng.standard_normal(len(r.statistic)) for r in scorer._sorted]

            def noisy(tau, units=units):
                return [_with_noise(r, tau, u) for r, u in zip(scorer._sorted, units)]

            def value(tau, some, noisy=noisy):
                row = _loglik_of_all(scorer.model_, noisy(tau), some.phi)
                return float(some.divergences(row[None])[0][0])

            tau = 0.0
            if target <= 0:
                tau = np.inf
            elif target < self.grand_value_:
                tau = _first_crossing(lambda t: value(t, thin), target)
                tau = _bisect(lambda t: value(t, pool), target, tau / 1.5, tau * 1.5, 12)
            self.tau_.append(tau)
            if not np.isfinite(tau):
                attained.append(0.0)
                similarity.append(-pool.divergence_between(whole, 0 * whole))
                samples.append(scorer.model_.sample_prior(self.n_draws, rng))
                continue
            releases = noisy(tau)
            row = _loglik_of_all(scorer.model_, releases, pool.phi)
            values, ess, _ = pool.divergences(row[None])
            if ess[0] < scorer.min_ess and tau > 0:
                weak.append(party)
            attained.append(self.grand_value_ if tau == 0 else float(values[0]))
            # With no noise the same releases are summed in another order: rounding, no distance.
            similarity.append(0.0 - pool.divergence_between(whole, row) if tau > 0 else 0.0)
            there = Pool(pool.phi, row[:, None], pool.log_base)
            joint = _Joint(scorer.model_, releases)
            samples.append(there.sample(joint, [None], [1.0], self.n_draws, rng))
        if weak:
            warnings.warn(
                f"The rewards of {weak!r} stand on few effective draws: raise the scorer's "
                "n_particles.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.tau_ = np.array(self.tau_)
        self.attained_rewards_ = np.array(attained)
        self.similarity_ = np.array(similarity)
        return samples

    def _scale(self, scorer, rng):
        from ._gibbs import check_gibbs, divergences, gibbs_draws

        check_gibbs(scorer.model_, scorer._sorted)
        everybody = np.ones((1, len(self.parties_)))
        kappas = np.array([0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])
        rows = np.repeat(everybody, len(kappas), axis=0)
        draws = gibbs_draws(scorer.model_, scorer._sorted, rows, kappas, 1000, rng)
        curve = [divergences(scorer.model_, d, "one-sample", rng)[0].mean() for d in draws]
        curve = np.maximum.accumulate(np.maximum(curve, 0.0))
        # The top of the curve is v_N up to the samplers' errors: on this scale targets are reached.
        curve *= self.grand_value_ / curve[-1]
        logs = np.interp(self.target_rewards_, [0.0, *curve], np.log([1e-4, *kappas]))
        self.temper_ = np.where(self.target_rewards_ >= self.grand_value_, 1.0, np.exp(logs))
        self.temper_[self.target_rewards_ == 0] = 0.0
        sampled = np.flatnonzero(self.temper_)
        draws = gibbs_draws(
            scorer.model_, scorer._sorted, np.repeat(everybody, len(sampled), axis=0),
            self.temper_[sampled], max(self.n_draws, 200), rng,
        )  # fmt: skip
        samples = [scorer.model_.sample_prior(self.n_draws, rng) for _ in self.parties_]
        self.attained_rewards_ = np.zeros(len(self.parties_))
        for place, some in zip(sampled, draws):
            estimate = divergences(scorer.model_, some, "one-sample", rng)[0].mean()
            self.attained_rewards_[place] = max(estimate, 0.0)
            samples[place] = some.reshape(-1, some.shape[-1])[: self.n_draws]
        top = self.temper_ == 1
        self.attained_rewards_[top] = self.grand_value_
        self.similarity_ = np.where(top, 0.0, np.nan)
        return samples


class _Joint:
    """A model seen as one of a single party: all of some releases together."""

    def __init__(self, model, releases):
        self.model, self.releases = model, releases
        self.log_prior, self.sample_prior = model.log_prior, model.sample_prior

    def party_loglik(self, phi, release):
        return loglik_table(self.model, self.releases, phi).sum(axis=1)


def _with_noise(release, tau, unit):
    if tau == 0:
        return release
    scale = np.sqrt(0.5 * release.renyi_order * tau) * release.sensitivity
    return release.shifted(float(tau), scale * unit)


def _loglik_of_all(model, releases, phi):
    row = loglik_table(model, releases, phi).sum(axis=1)
    return row - row.max()


def _thinned(pool, rng):
    """A pool of fewer particles, for a search."""
    if len(pool.phi) <= _NOISE_POOL:
        return Pool(pool.phi, pool.loglik, pool.log_base)
    keep = np.sort(rng.choice(len(pool.phi), _NOISE_POOL, replace=False))
    return Pool(pool.phi[keep], pool.loglik[keep], pool.log_base[keep])


def _first_crossing(value, target):
    """Smallest tau of a grid's bracket at which the value falls to the target, by bisection."""
    low = 0.0
    for high in _TAUS:
        if value(high) <= target:
            break
        low = high
    else:
        return float(_TAUS[-1])
    return _bisect(value, target, low, high, 12)


def _bisect(value, target, low, high, steps):
    for _ in range(steps):
        middle = 0.5 * (low + high) if low == 0 else np.sqrt(low * high)
        low, high = (middle, high) if value(middle) > target else (low, middle)
    return float(0.5 * (low + high))
