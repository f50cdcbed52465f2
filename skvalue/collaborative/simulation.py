"""All roles on one machine, for research: rows with parties in, values and rewards out."""

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
    """Simulate a collaboration: every party releases, the mediator values and rewards.

    For research, where one person has all rows. In earnest each party runs its own `GramRelease`
    (or another release) and the mediator `BayesianSurpriseScorer` and `RhoShapleyReward`.

    Parameters
    ----------
    release : estimator, default=None
        What every party runs; None is ``GramRelease()``.
    model : model, default=None
        The mediator's model; None is ``BayesianLinear()``.
    scorer : BayesianSurpriseScorer, default=None
        How it values; its model is `model`. None is the default one with `random_state`.
    scheme : RhoShapleyReward, default=None
        How it rewards; None is the default one with `random_state`.
    epsilon : float, dict or None, default=0.1
        Renyi loss of every party, or by party. None adds no noise.
    random_state : int, RandomState instance or None, default=None
        Of the mediator's sampling. Noise of releases never depends on it.

    Attributes
    ----------
    values_ : ndarray of shape (n_groups,)
        Shapley values of the parties, in the order of `groups_`.
    values_error_ : ndarray of shape (n_groups,)
        Their standard errors.
    row_values_ : ndarray of shape (n_samples,)
        A party's value, divided by its number of rows, for each of them.
    groups_ : ndarray of shape (n_groups,)
        The parties.
    releases_ : dict
        Releases by party.
    privacy_ : dict
        Reports by party.
    scorer_, scheme_ : estimators
        The mediator, fitted.
    rewards_ : dict
        Rewards by party.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : The mediator's values.

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
    >>> wrapper = PrivateCollaboration(epsilon={"a": 1, "b": 0.1, "c": 1}, random_state=0)
    >>> wrapper.fit_transform(X, y, groups=party).shape
    (300, 1)
    >>> bool(np.isclose(wrapper.row_values_.sum(), wrapper.scorer_.grand_value_))
    True
    """

    _parameter_constraints: dict = {
        "release": [HasMethods(["fit", "set_params"]), None],
        "model": [*BayesianSurpriseScorer._parameter_constraints["model"], None],
        "scorer": [BayesianSurpriseScorer, None],
        "scheme": [RhoShapleyReward, None],
        "epsilon": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        release=None,
        model=None,
        *,
        scorer=None,
        scheme=None,
        epsilon=0.1,
        random_state=None,
    ):
        self.release = release
        self.model = model
        self.scorer = scorer
        self.scheme = scheme
        self.epsilon = epsilon
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, groups=None):
        """Run the collaboration.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all parties.
        y : array-like of shape (n_samples,)
            Their targets or classes.
        groups : array-like of shape (n_samples,)
            Party of every row.

        Returns
        -------
        self : object
            The fitted wrapper.

        Raises
        ------
        ValueError
            If groups are missing, of a wrong length or name one party only, or epsilon is a
            dictionary without one of them.
        """
        if groups is None:
            raise ValueError("groups must name the party of every row. Got None.")
        X = check_array(X, dtype=None, ensure_2d=False)
        names, codes = check_groups(groups, len(X))
        parties = names.tolist()
        epsilons = self.epsilon
        if not isinstance(epsilons, Mapping):
            epsilons = dict.fromkeys(parties, epsilons)
        missing = [party for party in parties if party not in epsilons]
        if missing:
            raise ValueError(f"epsilon must have an entry for every party. Got none for {missing}.")
        template = GramRelease() if self.release is None else self.release
        y = None if y is None else np.asarray(y)
        sides = {}
        for code, party in enumerate(parties):
            rows = codes == code
            side = clone(template).set_params(epsilon=epsilons[party])
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
        """Run the collaboration and return a value for every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all parties.
        y : array-like of shape (n_samples,)
            Their targets or classes.
        groups : array-like of shape (n_samples,)
            Party of every row.

        Returns
        -------
        values : ndarray of shape (n_samples, 1)
            `row_values_`.
        """
        return self.fit(X, y, groups=groups).row_values_[:, None].copy()
