"""Layered Shapley: Watson, Andreeva, Yang and Sarkar (2022), with what its claims need."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from ..._utils.sklearn import HasMethods, Interval, StrOptions
from ...base._old_in_sample import BaseInSampleValuer
from ...base._old_judges import Progress, check_judged_labels
from ...base._old_private import PRIVACY_CONSTRAINTS
from ...samplers import layer_counts
from ._core import CoreSet, GameSettings, suggest_bound
from ._designs import Utilities, class_counts, mean_over_games, n_steps, play
from ._plan import DESIGNS, make_plan, marginal_bounds
from ._private import NOISES, RELEASES, published_scale
from ._queries import CoreQueriesMixin
from ._release import PrivateQueriesMixin

__all__ = ["CoreSet", "LayeredShapleyValuer", "published_scale", "suggest_bound"]


class LayeredShapleyValuer(PrivateQueriesMixin, CoreQueriesMixin, BaseInSampleValuer):
    """Shapley values of training a model, from many small coalitions and few large ones.

    What a row adds to a coalition of k others falls as c / k where learning is stable. So layer k,
    the mean over coalitions of k others, needs about 1 / k^2 as many coalitions, and these are
    small. Values are unbiased for any estimator and any scorer. The utility of `l2` has proved
    bounds, with which values can be released under differential privacy.

    Parameters
    ----------
    estimator : estimator, default=None
        The model that coalitions train; None takes `LogisticRegression()` or `Ridge()`, or the
        utility of `l2`, if that is set.
    l2 : float, default=None
        Take the utility of `skvalue.games.StableLogisticGame` with this penalty: minus the mean
        logistic loss, of two classes. It alone can be private.
    max_norm : float, default=1.0
        For `l2`: norm to which rows and validation points are clipped. Public: it must not be
        chosen by looking at private rows.
    fit_intercept : bool, default=True
        For `l2`: whether there is an intercept, penalised like any coefficient.
    design : {"blocks", "iid", "paper"}, default="blocks"
        How coalitions are drawn. "blocks": shuffles of the others are cut into disjoint blocks;
        layers that need less than a coalition are played in some of `n_shuffles` independent parts.
        "iid": independent uniform coalitions, at least one of every size; the claim of `accuracy`
        and `failure` is proved for it. "paper": Algorithm 1, every coalition of a layer with the
        same chance. A layer of which all coalitions are wanted is enumerated.
    n_layers : int, default=None
        Largest number of others that a row joins; None: all of them. What is left out is at most
        `truncation_bias_`.
    accuracy : float, default=0.05
        Largest error of a value (the paper's alpha), for the number of coalitions.
    failure : float, default=0.05
        Chance of a larger error (the paper's beta).
    bound : float, default=None
        The constant c: a row adds at most c / k, in absolute value, to a coalition of k rows. None
        takes 1, or what is proved for `l2`. `suggest_bound` estimates it from public data.
    allocation : {"paper", "neyman"}, default="paper"
        Whether the number of coalitions falls as 1 / k^2 or as 1 / k; see
        `skvalue.samplers.layer_counts`.
    include_empty : bool, default=True
        Whether what a row adds to nobody counts. The paper leaves it out.
    max_evaluations : int, default=None
        Coalitions to evaluate, about, in place of those that `accuracy` asks for; shared between
        layers in the same proportions.
    n_shuffles : int, default=8
        Independent parts of the design "blocks", over which `values_error_` is taken.
    scoring : str or callable, default=None
        Scorer of the utility; None takes the estimator's own score (accuracy or R2).
    empty_utility : float, default=None
        Utility of nobody. None knows it for accuracy (1/C), ROC AUC, log-loss and R2; other scorers
        need a number.
    error_score : "empty", "raise" or float, default="empty"
        Utility of a coalition whose fit or score fails: that of nobody, an error, or a number.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of target; "auto" decides by `sklearn.utils.multiclass.type_of_target`.
    cv : int, "leave-one-out", splitter or iterable, default=5
        Which rows judge which when there is no validation set; every row must play equally often.
    batch : {"auto", "never"}, default="auto"
        Whether many coalitions are trained at once where the estimator allows it.
    memory : str or object with the interface of `joblib.Memory`, default=None
        Keeps utilities on disk.
    n_jobs : int, default=None
        Workers, of joblib or threads. They change no bit of the values.
    random_state : int, RandomState or None, default=None
        Seed of the coalitions.
    epsilon : float, default=None
        Privacy of the rows: the total of everything released. Needs `l2`, `n_layers`, a public
        validation set, and the design "blocks" or "iid".
    delta : float, default=1e-5
        Chance by which the bound of epsilon may fail, where the noise is Gaussian.
    release : {"query", "all", "publish"}, default="query"
        What epsilon is for. "query": `fit` releases nothing; `values_for` releases up to
        `max_queries` values, each to its owner. "all": every value, each to its owner. "publish":
        the vector of all values, to everybody.
    max_queries : int, default=1
        For "query": number of rows whose values can be asked for.
    noise : {"auto", "laplace", "gaussian", "paper"}, default="auto"
        Law of the noise; "auto" takes the one of smaller deviation. "paper" reproduces the
        published calibration, of which nothing is guaranteed.
    reader : {"curator"}, default=None
        Who reads the result of `fit_transform`, which is refused to others with epsilon, unless the
        vector is published.
    ledger : skvalue.privacy.Ledger, default=None
        Charged before noise is drawn, by every query or by the fit; refuses what would overrun its
        budget.
    noise_random_state : int, default=None
        For tests only: noise from this seed, which VOIDS the guarantee.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With epsilon, those
        released, else NaN; for the curator, unless published.
    layer_values_ : ndarray of shape (n_layers + 1, n_samples) or (n_layers + 1, n_groups)
        What each layer contributes: the sum over layers is `values_`.
    values_error_ : ndarray of shape (n_samples,) or (n_groups,)
        Standard error of every value over the draw of coalitions; infinite where one draw, or none,
        cannot tell.
    truncation_bias_ : float
        With `n_layers`: the most that the layers left out can add to a value, if `bound` holds.
    data_fraction_ : float
        Share of the other rows that are in the coalitions of one value, in the mean.
    counts_ : ndarray of shape (n_layers + 1,)
        Coalitions of each size that a row joins; a mean where less than one.
    privacy_ : PrivacyReport
        Who is protected from whom, and who is not. Only with epsilon.
    noise_scale_ : float
        Scale of the noise on a value. Only with epsilon.
    n_evaluations_ : int
        Coalitions asked for.
    n_failed_ : int
        Coalitions that could not be trained, or hold one class.
    utility_, empty_utility_ : float
        Utility of all rows and of none, means over splits. The values of all layers sum to their
        difference, up to their error. With epsilon, `utility_` is NaN.
    classes_ : ndarray of shape (n_classes,)
        The labels, in a classification.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had any.

    See Also
    --------
    DataShapleyValuer : The same values from coalitions of all sizes, with stopping rules.
    TKNNShapleyValuer : Private values of a game that is kinder to privacy.

    References
    ----------
    L. Watson, R. Andreeva, H.-T. Yang, R. Sarkar: "Differentially Private Shapley Values for Data
    Evaluation", 2022; Algorithms 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skvalue import LayeredShapleyValuer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, public = scale(X[:40]), dict(X_val=scale(X[40:140]), y_val=y[40:140])
    >>> valuer = LayeredShapleyValuer(max_evaluations=2000, random_state=0).fit(X, y[:40], **public)
    >>> valuer.values_.shape, valuer.layer_values_.shape
    ((40,), (40, 40))
    >>> private = LayeredShapleyValuer(l2=1.0, n_layers=3, epsilon=1.0).fit(X, y[:40], **public)
    >>> isinstance(private.values_for(7), float)  # a release: the noise is fresh
    True
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"]), None],
        "l2": [Interval(Real, 0, None, closed="neither"), None],
        "max_norm": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "design": [StrOptions(set(DESIGNS))],
        "n_layers": [Interval(Integral, 1, None, closed="left"), None],
        "accuracy": [Interval(Real, 0, None, closed="neither")],
        "failure": [Interval(Real, 0, 1, closed="neither")],
        "bound": [Interval(Real, 0, None, closed="neither"), None],
        "allocation": [StrOptions({"paper", "neyman"})],
        "include_empty": ["boolean"],
        "max_evaluations": [Interval(Integral, 2, None, closed="left"), None],
        "n_shuffles": [Interval(Integral, 2, None, closed="left")],
        "scoring": [str, callable, None],
        "empty_utility": [Real, None],
        "error_score": [StrOptions({"empty", "raise"}), Real],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "batch": [StrOptions({"auto", "never"})],
        "memory": [str, HasMethods(["cache"]), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "epsilon": PRIVACY_CONSTRAINTS["epsilon"],
        "delta": PRIVACY_CONSTRAINTS["delta"],
        "release": [StrOptions(set(RELEASES))],
        "max_queries": [Interval(Integral, 1, None, closed="left")],
        "noise": [StrOptions(set(NOISES))],
        "reader": PRIVACY_CONSTRAINTS["reader"],
        "ledger": PRIVACY_CONSTRAINTS["ledger"],
        "noise_random_state": PRIVACY_CONSTRAINTS["noise_random_state"],
    }
    _tasks = ("classification", "regression")
    _leave_one_out_at_once = False
    _done = "coalitions evaluated"

    def __init__(
        self,
        estimator=None,
        *,
        l2=None,
        max_norm=1.0,
        fit_intercept=True,
        design="blocks",
        n_layers=None,
        accuracy=0.05,
        failure=0.05,
        bound=None,
        allocation="paper",
        include_empty=True,
        max_evaluations=None,
        n_shuffles=8,
        scoring=None,
        empty_utility=None,
        error_score="empty",
        task="auto",
        cv=5,
        batch="auto",
        memory=None,
        n_jobs=None,
        random_state=None,
        epsilon=None,
        delta=1e-5,
        release="query",
        max_queries=1,
        noise="auto",
        reader=None,
        ledger=None,
        noise_random_state=None,
    ):
        self.estimator = estimator
        self.l2 = l2
        self.max_norm = max_norm
        self.fit_intercept = fit_intercept
        self.design = design
        self.n_layers = n_layers
        self.accuracy = accuracy
        self.failure = failure
        self.bound = bound
        self.allocation = allocation
        self.include_empty = include_empty
        self.max_evaluations = max_evaluations
        self.n_shuffles = n_shuffles
        self.scoring = scoring
        self.empty_utility = empty_utility
        self.error_score = error_score
        self.task = task
        self.cv = cv
        self.batch = batch
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.epsilon = epsilon
        self.delta = delta
        self.release = release
        self.max_queries = max_queries
        self.noise = noise
        self.reader = reader
        self.ledger = ledger
        self.noise_random_state = noise_random_state

    def _prepare(self, X_val, y_val):
        self._check_private_parameters()
        if self.l2 is None:
            return
        given = [
            n for n in ("estimator", "scoring", "empty_utility") if getattr(self, n) is not None
        ]
        if given:
            raise ValueError(
                f"{given[0]} must be None with l2, which has a utility of its own. Got "
                f"{getattr(self, given[0])!r}."
            )
        if self._n_classes != 2:
            kind = f"{self._n_classes} classes" if self._n_classes else "a continuous target"
            raise ValueError(f"l2 needs two classes. Got {kind}.")

    def _settings(self):
        names = (
            "estimator", "l2", "max_norm", "fit_intercept", "scoring", "empty_utility",
            "error_score", "batch", "memory", "n_jobs",
        )  # fmt: skip
        return GameSettings(**{name: getattr(self, name) for name in names})

    def _bounds(self, n):
        """Largest marginal contributions by size, and the mean of those of the layers left out."""
        game = (self.l2, self.max_norm, self.fit_intercept)
        return marginal_bounds(n, self.bound, self.n_layers, game)

    def _plan(self, n, n_games):
        counts = layer_counts(self._bounds(n)[0], self.accuracy, self.failure, self.allocation)
        limit = self.max_evaluations
        return make_plan(
            self.design, n, counts, n_shuffles=self.n_shuffles, include_empty=self.include_empty,
            max_evaluations=None if limit is None else limit // n_games,
        )  # fmt: skip

    def _seeds(self, number):
        entropy = self._entropy

        def generator(*key):
            key = (number, *(part + 1 for part in key))
            return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))

        return generator

    def _draw_entropy(self):
        if self.random_state is None:
            return np.random.SeedSequence().entropy
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _game(self, number, games=None, X=None, y=None, groups=None):
        if games is None:
            games, X, y, groups = self._games, self._X, self._y, self._groups
        rows, judges = games[number]
        rows = slice(None) if rows is None else rows
        classes = self.classes_ if self._n_classes else None
        return self._settings().game(
            X[rows], y[rows], judges, classes, None if groups is None else groups[rows]
        )

    def _play(self, games, X, y, groups):
        self._entropy = self._draw_entropy()
        for rows, judges in games if self._n_classes else ():
            check_judged_labels(judges.y, y if rows is None else y[rows], self.classes_, self.cv)
        played = [self._game(number, games, X, y, groups) for number in range(len(games))]
        self._plans = [self._plan(game.n_players, len(games)) for game in played]
        self._players, self._utilities = [], []
        for game, (rows, _) in zip(played, games):
            part = slice(None) if rows is None else rows
            own = None if groups is None else groups[part]
            counts = class_counts(y[part], self._n_classes, own) if self._n_classes else None
            self._utilities.append(Utilities(game, counts))
            self._players.append(np.arange(len(X))[part] if groups is None else np.unique(own))
        steps = sum(map(n_steps, self._plans))
        progress = Progress(self, steps)
        self._estimates = [None] * len(games)
        for number, estimate in progress.follow(self._steps(), steps, "coalitions"):
            self._estimates[number] = estimate
        done = [i for i, e in enumerate(self._estimates) if e is not None and self._is_value(i, e)]
        if not done:
            if progress.interrupted:
                raise KeyboardInterrupt
            raise RuntimeError(
                "The fit was stopped by a callback before there was a value to keep."
            )
        for kept in ("_estimates", "_plans", "_players"):
            setattr(self, kept, [getattr(self, kept)[i] for i in done])
        self._publish(len(X) if groups is None else int(groups.max()) + 1)
        # That small coalitions hold one class is in their nature.
        failed = [played[i] for i in done if played[i].n_failed > self._utilities[i].n_one_class]
        progress.warn = lambda: [game.warn_failed() for game in failed]
        self.n_failed_ = sum(game.n_failed for game in played)
        self.n_evaluations_ = sum(u.n_asked for u in self._utilities)
        utility = np.mean([self._utilities[i].full for i in done])
        empty = np.mean([played[i].empty_utility for i in done])
        del self._utilities
        return [games[i] for i in done], self.layer_values_.sum(axis=0), utility, empty, progress

    def _steps(self):
        for number, (plan, utilities) in enumerate(zip(self._plans, self._utilities)):
            for estimate in play(plan, utilities, self._seeds(number)):
                yield number, estimate

    def _is_value(self, number, estimate):
        return estimate.done > 0 or len(self._plans[number].sampled) == 0

    def _publish(self, n):
        """Attributes that say how the values have come about: means over games."""
        self.layer_values_, self.values_error_, self.counts_ = mean_over_games(
            self._plans, self._players, self._estimates, n
        )
        self.data_fraction_ = float(np.mean([plan.data_fraction for plan in self._plans]))
        self.truncation_bias_ = float(np.mean([self._bounds(plan.n)[1] for plan in self._plans]))

    def _set_values(self, values):
        self.values_ = values
        self._row_values = values
