"""Layered Shapley: Watson, Andreeva, Yang and Sarkar (2022), with what its claims need."""

from numbers import Integral, Real

from ..._utils.checks import seed_of
from ..._utils.sklearn import HasMethods, Interval, StrOptions
from ...base import EXACT, PRIVACY_CONSTRAINTS, BaseScoringValuer, Takes, refuse_unseen_labels
from ...samplers import ALLOCATIONS
from ._plan import DESIGNS
from ._private import NOISES, RELEASES
from ._queries import core_set, joining_values, value_of_group
from ._release import check_private_fit, planned_release, private_result
from ._settings import LayerSettings
from ._splits import mean_over_splits, play_splits, set_up_splits


class LayeredShapleyValuer(BaseScoringValuer):
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
    design : {"blocks", "iid", "poisson"}, default="blocks"
        How coalitions are drawn. "blocks": shuffles of the others are cut into disjoint blocks;
        layers that need less than a coalition are played in some of `n_shuffles` independent parts.
        "iid": independent uniform coalitions, at least one of every size; the claim of `accuracy`
        and `failure` is proved for it. "poisson": Poisson sampling, as in the paper's Algorithm 1:
        each coalition of a layer is drawn independently, with the same probability. A layer of
        which all coalitions are wanted is enumerated.
    n_layers : int, default=None
        Largest number of others that a row joins; None: all of them. What is left out is at most
        `truncation_bias_`.
    accuracy : float, default=0.05
        Largest error of a value (the paper's alpha), for the number of coalitions.
    failure : float, default=0.05
        Probability of a larger error (the paper's beta).
    bound : float, default=None
        The constant c: a row adds at most c / k, in absolute value, to a coalition of k rows. None
        takes 1, or what is proved for `l2`. `suggest_bound` estimates it from public data.
    allocation : {"bound", "neyman"}, default="bound"
        Whether the number of coalitions falls as 1 / k^2, as the square of the bound of what a row
        adds, or as 1 / k; see `skvalue.samplers.layer_counts`.
    include_empty : bool, default=True
        Whether what a row adds to the empty coalition counts. The paper leaves it out.
    max_evaluations : int, default=None
        Coalitions to evaluate, about, in place of those that `accuracy` asks for; divided among
        layers in the same proportions.
    n_shuffles : int, default=8
        Independent parts of the design "blocks", over which `values_error_` is taken.
    scoring : str or callable, default=None
        Scorer of the utility; None takes the estimator's own score (accuracy or R2).
    empty_utility : float, default=None
        Utility of the empty coalition. With None it is known for accuracy (1/C), ROC AUC, log-loss
        and R2; other scorers need a number.
    error_score : "empty", "raise" or float, default="empty"
        Utility of a coalition whose fit or score fails: that of the empty coalition, an error,
        or a number.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of target; "auto" decides by `sklearn.utils.multiclass.type_of_target`.
    cv : int, "leave-one-out", splitter or iterable, default=5
        Which rows evaluate which without a validation set; every row must play equally often.
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
        Probability that the bound of epsilon fails, where the noise is Gaussian.
    release : {"query", "all", "publish"}, default="query"
        What epsilon is for. "query": `fit` releases nothing; `values_for` releases up to
        `max_queries` values, each to its owner. "all": every value, each to its owner. "publish":
        the vector of all values, to everyone.
    max_queries : int, default=1
        For "query": number of rows whose values can be asked for.
    noise : {"auto", "laplace", "gaussian"}, default="auto"
        Distribution of the noise; "auto" takes the one of smaller standard deviation.
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
        Fraction of the other rows that are in the coalitions of one value, on average.
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

    Notes
    -----
    `transform` and `score_samples` let a row that was not in fit join the coalitions that fit has
    stored. Without a label, it joins with each label in turn, and the values are averaged by the
    probabilities of the estimator fitted on all rows (in a regression, its prediction is the
    target). A private fit stores no coalitions, so there they raise a ValueError.

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
        "allocation": [StrOptions(set(ALLOCATIONS))],
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
        "release": [StrOptions(set(RELEASES))],
        "max_queries": [Interval(Integral, 1, None, closed="left")],
        "noise": [StrOptions(set(NOISES))],
        **{name: rule for name, rule in PRIVACY_CONSTRAINTS.items() if name != "relation"},
    }

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
        allocation="bound",
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

    @property
    def _takes(self):
        refused = ""
        if self.release == "query":
            refused = (
                "release must be 'all' or 'publish' for fit_transform with epsilon: with 'query' "
                "fit releases nothing. Got release='query'."
            )
        return Takes(
            targets=("classification", "regression"), task=self.task, part="coalitions",
            done="coalitions evaluated", values_are_public=self.release == "publish",
            fit_transform_error=refused,
        )  # fmt: skip

    def _prepare(self, problem):
        if self.epsilon is not None:
            check_private_fit(self, problem)
        if self.l2 is not None:
            check_stable_game(self, problem)
        if self.epsilon is None:
            refuse_unseen_labels(problem, self.cv)
        return {}

    def _release(self, problem, attributes):
        return EXACT if self.epsilon is None else planned_release(self, len(problem.X))

    def _parts(self, problem, attributes, release):
        settings, seed = LayerSettings.of(self), seed_of(self.random_state)
        if release.is_exact:
            splits, n_parts = set_up_splits(problem, settings, seed)
            return play_splits(splits), n_parts
        return (private_result(problem, release, settings, seed) for _ in range(1)), 1

    def _combine(self, problem, attributes, parts):
        state = list(parts)[-1:]  # what is found grows in place, from part to part
        if not state or self.epsilon is not None:
            return state[0] if state else None
        return mean_over_splits(problem, LayerSettings.of(self), state[0])

    def _score_new(self, fitted, number, X, y):
        self._record("Valuing rows that were not in fit", needs_rows=True)
        return joining_values(fitted, LayerSettings.of(self), number, X, y)

    def value_of_group(self, indices, accuracy=None, failure=None):
        """Value of several rows of fit together: the sum of their values.

        With probability 1 - `failure`, all their values are within `accuracy`, and so is their
        mean: each value may fail with that probability divided by their number, so that the number
        of coalitions grows with its logarithm (Section 3.4 of the paper). What is stored is not
        evaluated again.

        Parameters
        ----------
        indices : array-like of int of shape (w,)
            Rows of fit, or places in `groups_`.
        accuracy, failure : float, default=None
            None takes the parameters of the valuer.

        Returns
        -------
        group : Bunch
            ``value``, ``mean``, ``row_values`` (w,), ``n_evaluations`` (coalitions added).

        Raises
        ------
        ValueError
            If there is no such row; or after a private fit.
        """
        fitted = self._record("value_of_group", needs_rows=True)
        return value_of_group(fitted, LayerSettings.of(self), indices, accuracy, failure)

    def core_sets(self):
        """Core sets of the fit, one for every split: what `transform` values unseen rows on.

        Returns
        -------
        core_sets : list of skvalue.valuers.CoreSet
            Without rows that are in no coalition. They can be saved, without pickle, and loaded.

        Raises
        ------
        ValueError
            After a private fit.
        """
        fitted, settings = self._record("core_sets", needs_rows=True), LayerSettings.of(self)
        return [core_set(fitted, settings, i).pruned() for i in range(len(fitted.statistic))]


def check_stable_game(valuer, problem):
    """Refuse what the utility of ``l2`` has no place for."""
    given = [n for n in ("estimator", "scoring", "empty_utility") if getattr(valuer, n) is not None]
    if given:
        raise ValueError(
            f"{given[0]} must be None with l2, which has a utility of its own. Got "
            f"{getattr(valuer, given[0])!r}."
        )
    if problem.n_classes != 2:
        n = problem.n_classes
        raise ValueError(
            f"l2 needs two classes. Got {f'{n} classes' if n else 'a continuous target'}."
        )
