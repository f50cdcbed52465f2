"""A party's check of its reward against its own rows, without noise."""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from ..._utils.sklearn import safe_indexing
from .posterior import make_posterior
from .predictive import PredictiveValueScorer


def reward_gain(reward, party, X, y, *, n_splits=5, n_draws=1000, random_state=0):
    """Log predictive density of a reward less that of the party's own rows.

    A reward is worth at least what a party has alone (`individually_rational_`) in
    terms of its noisy release. The party itself has more: its rows without noise. With
    this function it checks, on its own machine, whether the reward predicts better.
    Each of `n_splits` folds of the rows is predicted by the reward, and by the
    posterior of the exact statistic of the other folds.

    The comparison is slightly in favor of the reward, to which all rows have
    contributed.

    Parameters
    ----------
    reward : PosteriorRegressor or PosteriorClassifier
        The party's entry of `RhoShapleyReward.rewards_`.
    party : GramRelease or LogisticRelease
        The estimator that made the party's release, for its bounds and classes.
    X : array-like of shape (n_samples, n_features)
        The party's rows.
    y : array-like of shape (n_samples,)
        Targets or classes of the rows.
    n_splits : int, default=5
        Number of folds of the rows.
    n_draws : int, default=1000
        Number of draws of the posterior of the party's own rows.
    random_state : int, default=0
        Seed of the folds and the draws.

    Returns
    -------
    gain : float
        Mean log predictive density of the reward less that of the party's own
        posterior, in nats per row. The reward predicts better if it is above 0.
    error : float
        Standard error of the gain over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import (
    ...     BayesianLinear, BayesianSurpriseScorer, GramRelease, RhoShapleyReward,
    ...     reward_gain,
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) / 3
    >>> y = X @ [0.5, -0.3] + 0.15 * rng.normal(size=500)
    >>> party = GramRelease(epsilon=None)
    >>> releases = [
    ...     party.fit(X[rows], y[rows]).release_ for rows in (slice(20), slice(20, 500))
    ... ]
    >>> scorer = BayesianSurpriseScorer(BayesianLinear(), random_state=0).fit(releases)
    >>> rewards = RhoShapleyReward(random_state=0).fit(scorer).rewards_
    >>> gain, error = reward_gain(rewards[0], party, X[:20], y[:20], n_splits=2)
    >>> round(gain, 1), round(error, 1)
    (-0.1, 0.1)
    """
    exact_party = clone(party).set_params(epsilon=None, renyi_epsilon=None, ledger=None)
    folds = KFold(n_splits, shuffle=True, random_state=random_state)
    gains = np.empty(len(y))
    for train, test in folds.split(gains):
        exact_party.fit(safe_indexing(X, train), safe_indexing(y, train))
        X_test = safe_indexing(X, test)
        y_test = safe_indexing(y, test)

        # The posterior of the rows in training, of which draws are taken.
        scorer = PredictiveValueScorer(clone(reward.model), random_state=random_state)
        scorer.fit([exact_party.release_], X_val=X_test, y_val=y_test)
        draws = scorer.sample(n_draws=n_draws, random_state=random_state)
        posterior = make_posterior(scorer.model_, draws)
        gains[test] = reward.log_density(X_test, y_test) - posterior.log_density(
            X_test, y_test
        )
    return float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))
