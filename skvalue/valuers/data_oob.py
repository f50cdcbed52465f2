"""Data-OOB: how well models predict a row that they were not trained on.

Kwon and Zou (2023).
"""

from dataclasses import dataclass
from itertools import count as numbers_from
from numbers import Integral, Real
from time import perf_counter

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import is_regressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import column_or_1d

from .._utils.checks import refuse_pairwise, seed_of
from .._utils.parallel import one_thread
from .._utils.sklearn import HasMethods, Interval, StrOptions, safe_indexing, validated
from ..base import Result, make_problem
from ..games import check_takes_weights, on_all_rows, seeded, train
from ._retraining._base import (
    BaseRetrainingValuer,
    capabilities_of,
    default_budget_warning,
    expected_cost,
)
from ._retraining._runs import stop_reason

# Models per task, for any number of workers, so that sums have the same bits.
_CHUNK = 16

# Number of models by default: fewer than the first if they take long.
_DEFAULT_MODELS = 800
_MIN_MODELS = 50

_LONG_ENOUGH = 0.1  # seconds of the models that are timed
_RELIABLE = 10  # models per row from which on standard errors are compared with `tol`


@dataclass(frozen=True)
class OutOfBagSums:
    """Sums over the models that were not trained on a player.

    Parameters
    ----------
    total, squares : ndarrays of shape (n_players,)
        Sums of scores, and of their squares.
    count : ndarray of shape (n_players,)
        Numbers of models.
    """

    total: np.ndarray
    squares: np.ndarray
    count: np.ndarray

    @classmethod
    def zeros(cls, n_players):
        """The sums over no models."""
        return cls(np.zeros(n_players), np.zeros(n_players), np.zeros(n_players))

    def plus(self, other):
        """The sums over the models of both."""
        return OutOfBagSums(
            total=self.total + other.total,
            squares=self.squares + other.squares,
            count=self.count + other.count,
        )


def bootstrap(seed, number, n_players):
    """Draw `n_players` players with replacement, and the seed of the model of this bag.

    The players are sorted.

    >>> bootstrap(0, 1, 5)[0].shape
    (5,)
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    players = np.sort(rng.integers(n_players, size=n_players))
    return players, int(rng.integers(2**31 - 1))


def out_of_bag_mean(total, squares, count):
    """Data-OOB values (Kwon and Zou 2023, equation 3), and their standard errors.

    ``total``, ``squares``: sums of scores and of their squares over the ``count`` >= 2
    models of each player that were not trained on it. Errors are those over the draw of
    bags. The variance of all scores counts as one more model, so that the error of a
    player whose scores were all equal is not 0 (as in Agresti and Coull's interval).

    >>> values, error = out_of_bag_mean(np.array([3.0]), np.array([3.0]), np.array([4]))
    >>> values.tolist(), error.round(4).tolist()
    ([0.75], [0.2724])
    """
    values = total / count
    variance = np.maximum(squares / count - values**2, 0.0) * count / (count - 1)
    of_all = squares.sum() / count.sum() - (total.sum() / count.sum()) ** 2
    return values, np.sqrt((variance + max(of_all, 0.0) / count) / count)


def default_models(n_rows, n_features):
    """Default number of models: 800, or fewer that take a minute if they are trees.

    At least 50. Computed from the sizes, not measured, so that values do not depend on
    the machine.

    >>> default_models(569, 30), default_models(20_000, 54)
    (800, 77)
    """
    # Measured for decision trees.
    seconds = 5e-8 * n_rows * n_features * np.log2(n_rows)
    return int(np.clip(60 / seconds, _MIN_MODELS, _DEFAULT_MODELS))


def out_of_bag_scores(estimator, problem, seed, numbers):
    """Sums of the scores of the models of some bags, and the number of models.

    No model is trained on a bag whose rows all have weight 0.
    """
    n = problem.n_players
    y = problem.labels(problem.y)
    weights = problem.sample_weight
    codes = problem.groups
    if codes is not None:
        sizes = np.bincount(codes, minlength=n)
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])

    sums = OutOfBagSums.zeros(n)
    with one_thread():
        for number in numbers:
            drawn, model_seed = bootstrap(seed, number, n)
            is_out = np.ones(n, dtype=bool)
            is_out[drawn] = False
            rows = drawn
            tested = np.flatnonzero(is_out)
            if codes is not None:
                rows = np.concatenate([members[group] for group in drawn])
                tested = np.flatnonzero(is_out[codes])
            if weights is not None:
                rows = rows[weights[rows] > 0]
            if not len(tested) or not len(rows):
                continue

            # The parameters are the same in every bag: they are validated once.
            model = seeded(estimator, model_seed, every=True)
            with validated(number == numbers[0]):
                model, _ = train(model, problem.X, y, weights, problem.classes, rows)
            # Some estimators predict a column.
            predictions = column_or_1d(model.predict(safe_indexing(problem.X, tested)))

            if problem.n_classes:
                scores = (predictions == y[tested]).astype(np.float64)
            else:
                errors = np.asarray(predictions, dtype=np.float64) - y[tested]
                scores = -(errors**2)
            if codes is not None:
                # The score of a group is the mean over its rows.
                totals = np.bincount(codes[tested], scores, n)
                scores = totals[is_out] / sizes[is_out]
            sums.total[is_out] += scores
            sums.squares[is_out] += scores**2
            sums.count[is_out] += 1
    return sums, len(numbers)


class DataOOBValuer(BaseRetrainingValuer):
    """Data-OOB: how well models predict a row that they were not trained on.

    Models are trained on bootstrap samples of the rows. The value of a row is the mean
    score, on this row, of the models whose sample does not contain it: for
    classification, 1 if the prediction is right and 0 otherwise; for regression, minus
    the squared error. The method is cheap, needs no validation set and is good at
    finding wrong labels. It is not a semivalue, and values do not sum to a utility.

    Parameters
    ----------
    estimator : estimator, default=None
        The model. None is a decision tree, as in the paper. X may be of any kind that
        it takes: a data frame, texts, sparse rows, missing values.
    n_estimators : int, default=None
        Number of models. As many more are trained, again and again, until each row is
        out of bag at least twice. None means 800, or fewer for large data, at least 50,
        such that decision trees take about a minute; no limit if `max_time` or `tol` is
        set.
    max_time : float, default=None
        Seconds after which to stop, once each row was out of bag twice. Values then
        depend on the machine.
    tol : float, default=None
        Stop when no standard error is larger than `tol`, once each row was out of bag
        10 times.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is the task of the estimator or, without one, regression if y is
        continuous.
    n_jobs : int, default=None
        Number of joblib workers. None is 1 unless set by `joblib.parallel_config`.
    random_state : int, RandomState instance or None, default=None
        Seed of the bags, and of each `random_state` of the estimator, which differs by
        bag. With an int, results are the same bit for bit for any `n_jobs`.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With groups,
        bags consist of whole groups, and the score of a group is the mean over its
        rows.
    values_error_ : ndarray of the same shape
        Standard errors over the draw of the bags. The variance of all scores counts as
        one more model of each row: rows that were always predicted right may not always
        be.
    stop_reason_ : str
        "n_estimators", "max_time", "tol", "callback" or "interrupted".
    utility_ : float
        Mean of the values: the mean out-of-bag score of a model.
    empty_utility_ : float
        1/C with C classes, the score of guessing; for regression, minus the variance of
        y.
    n_evaluations_ : int
        Number of models trained.
    classes_ : ndarray of shape (n_classes,)
        The labels; not set for regression.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    DataShapleyValuer : What a row adds to a model, over all coalitions.

    References
    ----------
    Y. Kwon, J. Zou: "Data-OOB: Out-of-bag Estimate as a Simple and Efficient Data
    Value", ICML 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import DataOOBValuer
    >>> X = np.arange(20.0)[:, None]
    >>> y = (X[:, 0] > 9).astype(int)
    >>> y[3] = 1  # wrong
    >>> DataOOBValuer(n_estimators=50, random_state=0).fit(X, y).values_.argmin()
    np.int64(3)
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 2, None, closed="left"), None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator=None,
        n_estimators=None,
        *,
        max_time=None,
        tol=None,
        task="auto",
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_time = max_time
        self.tol = tol
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    _default_estimator = DecisionTreeClassifier()

    def estimate_cost(self, X, y, *, groups=None, sample_weight=None):
        """Estimate the cost of `fit` from the time of a few models.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`, like the other parameters.
        y : array-like of shape (n_samples,)
            Labels or targets.
        groups, sample_weight : array-likes, default=None
            Groups, and weights of the rows.

        Returns
        -------
        cost : Bunch
            ``seconds`` (approximate, at most `max_time`), ``n_evaluations``, the number
            of models (None if `tol` or `max_time` decides), ``seconds_per_evaluation``
            of one worker, ``n_players`` and ``solver``.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        problem = make_problem(self, X, y, groups=groups, sample_weight=sample_weight)
        model = self._model(problem)
        n_models = self._n_models(problem)

        # The first model is not timed: it takes imports, and the first use of memory.
        out_of_bag_scores(model, problem, 0, range(1))
        n_timed = 0
        start = perf_counter()
        while perf_counter() - start < _LONG_ENOUGH:
            n_timed += 1
            out_of_bag_scores(model, problem, 0, range(n_timed, n_timed + 1))
        seconds = perf_counter() - start

        n_tasks = -(-(n_models or _CHUNK) // _CHUNK)
        return expected_cost(
            problem,
            seconds=seconds / n_timed,
            count=n_models,
            solver="loop",
            workers=min(effective_n_jobs(self.n_jobs), n_tasks),
            max_time=self.max_time,
        )

    @property
    def _capabilities(self):
        return capabilities_of(self, points=False)

    def _value(self, problem, run):
        model = self._model(problem)
        seed = seed_of(self.random_state)
        n_models = self._n_models(problem)
        n_chunks = None if n_models is None else -(-n_models // _CHUNK)
        sums = OutOfBagSums.zeros(problem.n_players)
        n_trained = 0
        reason = None
        start = perf_counter()
        with run.steps(n_chunks, "models trained") as done, one_thread():
            # As many models again, until each row was out of bag twice. The last step
            # of the progress bar is done when no more of them are needed.
            while reason is None:
                chunks = _chunks(n_trained, n_models)
                tasks = ((model, problem, seed, numbers) for numbers in chunks)
                for of_chunk, n_new in run.fits(out_of_bag_scores, tasks, self.n_jobs):
                    sums = sums.plus(of_chunk)
                    n_trained += n_new
                    reason = self._goal(sums, start)
                    if reason is not None:
                        break
                    if n_models is None or n_trained < n_models:
                        done()
                if reason is None and sums.count.min() >= 2:
                    reason = "n_estimators"
            done()
        if sums.count.min() < 2:
            return None

        values, errors = out_of_bag_mean(sums.total, sums.squares, sums.count)
        reason = stop_reason(run, None, complete=reason)
        run.late = n_models is not None and reason == "max_time"
        is_default = n_trained < _DEFAULT_MODELS and self.n_estimators is None
        if is_default and reason == "n_estimators":
            message, category = default_budget_warning(
                n_trained,
                what="models",
                parameter="n_estimators",
                values=values,
                errors=errors,
            )
            run.warn(message, category)
        empty_utility = 1 / problem.n_classes if problem.n_classes else -problem.y.var()
        attributes = {
            "values_error_": errors,
            "n_evaluations_": n_trained,
            "stop_reason_": reason,
        }
        return Result(
            values=values,
            utility=float(values.mean()),
            empty_utility=float(empty_utility),
            problem=problem,
            attributes=attributes,
        )

    def _model(self, problem):
        """The model to train.

        Refuses an estimator, and weights, that do not fit the problem.
        """
        model = self.estimator
        if model is None and problem.n_classes:
            model = DecisionTreeClassifier()
        elif model is None:
            model = DecisionTreeRegressor()
        refuse_pairwise(model)
        if problem.n_classes and is_regressor(model):
            raise ValueError(
                "estimator must be a classifier for classes, since its predictions are "
                f"compared with labels. Got {model!r}."
            )

        weights = problem.sample_weight
        if weights is not None:
            check_takes_weights(model, weights)
            players = np.unique(problem.player_codes[weights > 0])
            if len(players) < 2:
                what = "rows" if problem.groups is None else "groups"
                raise ValueError(
                    f"sample_weight must be positive in at least 2 {what}, since each "
                    f"is predicted by models of others. Got {len(players)}."
                )

        if not problem.is_plain:
            rows = np.arange(len(problem.y))
            y = problem.labels(problem.y)
            with on_all_rows(model, problem.X, len(rows)):
                seeded_model = seeded(model, 0, every=True)
                train(seeded_model, problem.X, y, weights, problem.classes, rows)
        return model

    def _n_models(self, problem):
        """Number of models, if it is not a rule that ends the fit."""
        rules = (self.n_estimators, self.max_time, self.tol)
        if all(rule is None for rule in rules):
            return default_models(*problem.shape)
        return self.n_estimators

    def _goal(self, sums, start):
        """The rule by which training ends now, if any."""
        fewest = sums.count.min()
        if self.tol is not None and fewest >= _RELIABLE:
            _, errors = out_of_bag_mean(sums.total, sums.squares, sums.count)
            if errors.max() <= self.tol:
                return "tol"
        is_late = self.max_time is not None and perf_counter() - start > self.max_time
        if is_late and fewest >= 2:
            return "max_time"
        return None


def _chunks(first, n_models):
    """Numbers of the next models in chunks; without end if `n_models` is None."""
    stop = np.inf if n_models is None else first + n_models
    for start in numbers_from(first, _CHUNK):
        if start >= stop:
            return
        yield range(start, int(min(start + _CHUNK, stop)))
