"""Simulation of a whole collaboration on one machine, for research."""

from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_array

from .._utils.checks import check_groups
from .._utils.fits import swap_in
from .._utils.sklearn import HasMethods, fit_context
from .mediator import BayesianSurpriseScorer, RhoShapleyReward
from .models import BayesianLinear
from .party import GramRelease


class PrivateCollaboration(BaseEstimator):
    """Simulate a collaboration: parties make releases, the mediator computes values and rewards.

    For research, where the rows of all parties are on one machine. In production, each party runs
    `GramRelease` (or another release) on its own machine, and the mediator runs
    `BayesianSurpriseScorer` and `RhoShapleyReward`.

    Parameters
    ----------
    release : estimator, default=None
        Release estimator of every party; None is ``GramRelease()``.
    model : model, default=None
        The mediator's model; None is ``BayesianLinear()``.
    scorer : BayesianSurpriseScorer, default=None
        Scorer of the mediator, used with `model`; None is the default scorer with `random_state`.
    scheme : RhoShapleyReward, default=None
        Reward scheme of the mediator; None is the default one with `random_state`.
    epsilon : float, "auto", dict or None, default="auto"
        `epsilon` of the releases: one for all parties, or by party.
    renyi_epsilon : float, dict or None, default=None
        `renyi_epsilon` of the releases: one for all parties, or by party.
    random_state : int, RandomState instance or None, default=None
        Controls the mediator's sampling. The noise of the releases never depends on it.

    Attributes
    ----------
    values_ : ndarray of shape (n_groups,)
        Shapley values of the parties, in the order of `groups_`.
    values_error_ : ndarray of shape (n_groups,)
        Their standard errors.
    row_values_ : ndarray of shape (n_samples,)
        Value of the row's party, divided by the party's number of rows.
    groups_ : ndarray of shape (n_groups,)
        Names of the parties.
    releases_ : dict
        Releases by party.
    privacy_ : dict
        Privacy reports by party.
    scorer_, scheme_ : estimators
        The fitted scorer and reward scheme of the mediator.
    rewards_ : dict
        Rewards by party.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : Computes the parties' values.

    References
    ----------
    R. H. L. Sim, Y. Zhang, T. N. Hoang, X. Xu, B. K. H. Low, P. Jaillet: "Incentives in Private
    Collaborative Machine Learning", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import PrivateCollaboration
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) / 3
    >>> y = X @ [0.5, -0.5] + 0.1 * rng.normal(size=300)
    >>> party = np.repeat(["a", "b", "c"], 100)
    >>> collaboration = PrivateCollaboration(epsilon={"a": 1, "b": 0.1, "c": 1}, random_state=0)
    >>> collaboration.fit_transform(X, y, groups=party).shape
    (300, 1)
    >>> bool(np.isclose(collaboration.row_values_.sum(), collaboration.scorer_.grand_value_))
    True
    """

    _parameter_constraints: dict = {
        "release": [HasMethods(["fit", "set_params"]), None],
        "model": [*BayesianSurpriseScorer._parameter_constraints["model"], None],
        "scorer": [BayesianSurpriseScorer, None],
        "scheme": [RhoShapleyReward, None],
        "epsilon": "no_validation",
        "renyi_epsilon": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        release=None,
        model=None,
        *,
        scorer=None,
        scheme=None,
        epsilon="auto",
        renyi_epsilon=None,
        random_state=None,
    ):
        self.release = release
        self.model = model
        self.scorer = scorer
        self.scheme = scheme
        self.epsilon = epsilon
        self.renyi_epsilon = renyi_epsilon
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, groups=None):
        """Run the collaboration.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all parties.
        y : array-like of shape (n_samples,)
            Targets or classes of the rows.
        groups : array-like of shape (n_samples,)
            Party of every row.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If `groups` is missing, has the wrong length or names only one party, or if `epsilon` or
            `renyi_epsilon` is a dictionary that lacks a party.
        """
        if groups is None:
            raise ValueError("groups must name the party of every row. Got None.")
        X = check_array(X, dtype=None, ensure_2d=False)
        names, codes = check_groups(groups, len(X))
        parties = names.tolist()
        budgets = {}
        for name in ("epsilon", "renyi_epsilon"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                given = dict.fromkeys(parties, given)
            missing = [party for party in parties if party not in given]
            if missing:
                raise ValueError(
                    f"{name} must have an entry for every party. Got none for {missing}."
                )
            budgets[name] = given
        template = GramRelease() if self.release is None else self.release
        y = None if y is None else np.asarray(y)
        sides = {}
        for code, party in enumerate(parties):
            rows = codes == code
            side = clone(template)
            side.set_params(**{name: given[party] for name, given in budgets.items()})
            sides[party] = side.fit(X[rows], None if y is None else y[rows])
        releases = {party: side.release_ for party, side in sides.items()}
        model = BayesianLinear() if self.model is None else self.model
        if self.scorer is None:
            scorer = BayesianSurpriseScorer(model, random_state=self.random_state)
        else:
            scorer = clone(self.scorer).set_params(model=model)
        scorer.fit(releases)
        scheme = RhoShapleyReward(random_state=self.random_state)
        scheme = clone(scheme if self.scheme is None else self.scheme).fit(scorer)
        swap_in(
            self,
            groups_=names,
            releases_=releases,
            privacy_={party: side.privacy_ for party, side in sides.items()},
            scorer_=scorer,
            scheme_=scheme,
            rewards_=scheme.rewards_,
            values_=scorer.values_,
            values_error_=scorer.values_error_,
            row_values_=(scorer.values_ / np.bincount(codes))[codes],
        )
        return self

    def fit_transform(self, X, y=None, *, groups=None):
        """Run the collaboration and return one value per row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all parties.
        y : array-like of shape (n_samples,)
            Targets or classes of the rows.
        groups : array-like of shape (n_samples,)
            Party of every row.

        Returns
        -------
        values : ndarray of shape (n_samples, 1)
            `row_values_`.
        """
        return self.fit(X, y, groups=groups).row_values_[:, None].copy()
