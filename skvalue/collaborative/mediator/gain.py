"""A party's check of its reward, against the posterior of its own rows without
noise."""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from ..._utils.sklearn import safe_indexing
from .posterior import make_posterior
from .predictive import PredictiveValueScorer


def reward_gain(reward, party, X, y, *, n_splits=5, n_draws=1000, random_state=0):
    """How much better a reward predicts than the party's own rows, without any noise.

    A reward is worth at least what a party has alone (`individually_rational_`) in
    terms of its noisy release. The party itself has more: its rows without noise. With
    this function it checks, on its own machine, whether the reward predicts better.
    Each of `n_splits` parts of the rows is predicted by the reward, and by the
    posterior of the exact statistic of the other parts.

    The comparison is slightly in favor of the reward, which all rows have contributed
    to.

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
        Number of parts of the rows.
    n_draws : int, default=1000
        Number of draws of the posterior of the party's own rows.
    random_state : int, default=0
        Seed of the parts and the draws.

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
    ...     BayesianLinear, BayesianSurpriseScorer, GramRelease, RhoShapleyReward, reward_gain
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) / 3
    >>> y = X @ [0.5, -0.3] + 0.15 * rng.normal(size=500)
    >>> party = GramRelease(epsilon=None)
    >>> parts = slice(0, 20), slice(20, 500)
    >>> releases = [party.fit(X[part], y[part]).release_ for part in parts]
    >>> scorer = BayesianSurpriseScorer(BayesianLinear(), random_state=0).fit(releases)
    >>> rewards = RhoShapleyReward(random_state=0).fit(scorer).rewards_
    >>> gain, error = reward_gain(rewards[0], party, X[:20], y[:20], n_splits=2)
    >>> round(gain, 1), round(error, 1)
    (-0.1, 0.1)
    """
    exact = clone(party).set_params(epsilon=None, renyi_epsilon=None, ledger=None)
    gains = np.empty(len(y))
    for rows, held_out in KFold(
        n_splits, shuffle=True, random_state=random_state
    ).split(gains):
        release = exact.fit(safe_indexing(X, rows), safe_indexing(y, rows)).release_
        points = safe_indexing(X, held_out), safe_indexing(y, held_out)
        scorer = PredictiveValueScorer(clone(reward.model), random_state=random_state)
        scorer.fit([release], X_val=points[0], y_val=points[1])
        draws = scorer.sample(n_draws=n_draws, random_state=random_state)
        own = make_posterior(scorer.model_, draws)
        gains[held_out] = reward.log_density(*points) - own.log_density(*points)
    return float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))
