"""Data-OOB: how well models predict a row that they were not trained on. Kwon and Zou (2023)."""

from collections import deque
from numbers import Integral

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from .._utils.checks import seed_of
from .._utils.parallel import one_thread
from .._utils.sklearn import HasMethods, Interval, StrOptions, safe_indexing, validated
from .._utils.warned import counted_map, summaries
from ..base import Result
from ..games import check_takes_weights, on_all_rows, train
from ._retraining._base import BaseRetrainingValuer, takes_of

_CHUNK = 16  # models per task, for any number of workers, so that sums have the same bits


def bootstrap(seed, number, n_players):
    """Draw `n_players` players with replacement, sorted, and the seed of the model of this bag.

    >>> bootstrap(0, 1, 5)[0].shape
    (5,)
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    return np.sort(rng.integers(n_players, size=n_players)), int(rng.integers(2**31 - 1))


def out_of_bag_mean(total, squares, count):
    """Data-OOB values (Kwon and Zou 2023, equation 3), and standard errors over the draw of bags.

    ``total``, ``squares``: sums of scores and of their squares over the ``count`` >= 2 models of
    each player that were not trained on it.

    >>> values, error = out_of_bag_mean(np.array([3.0]), np.array([3.0]), np.array([4]))
    >>> values.tolist(), error.tolist()
    ([0.75], [0.25])
    """
    values = total / count
    variance = np.maximum(squares / count - values**2, 0.0)
    return values, np.sqrt(variance / (count - 1))


def _bag_chunk(estimator, X, y, weights, classes, codes, n_players, seed, numbers):
    """Sums of out-of-bag scores and of their squares, and counts, over some models.

    No model is trained on a bag whose rows all have weight 0.
    """
    total, squares = np.zeros(n_players), np.zeros(n_players)
    count = np.zeros(n_players, dtype=np.int64)
    members = None if codes is None else np.split(
        np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]
    )  # fmt: skip
    with one_thread():
        for number in numbers:
            drawn, model_seed = bootstrap(seed, number, n_players)
            out = np.ones(n_players, dtype=bool)
            out[drawn] = False
            rows = drawn if codes is None else np.concatenate([members[g] for g in drawn])
            rows = rows if weights is None else rows[weights[rows] > 0]
            tested = np.flatnonzero(out if codes is None else out[codes])
            if not len(tested) or not len(rows):
                continue
            with validated(number == numbers[0]):  # its parameters are the same in every bag
                model, _ = train(_seeded(estimator, model_seed), X, y, weights, classes, rows)
            answers = model.predict(safe_indexing(X, tested))
            if classes is None:
                scores = -((np.asarray(answers, dtype=np.float64) - y[tested]) ** 2)
            else:
                scores = (answers == y[tested]).astype(np.float64)
            if codes is not None:  # the score of a group is the mean over its rows
                scores = np.bincount(codes[tested], scores, n_players)[out]
                scores /= np.bincount(codes, minlength=n_players)[out]
            total[out] += scores
            squares[out] += scores**2
            count += out
    return total, squares, count


def _seeded(estimator, seed):
    free = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    return clone(estimator).set_params(**dict.fromkeys(free, seed))


class DataOOBValuer(BaseRetrainingValuer):
    """Data-OOB: how well models predict a row that they were not trained on.

    Models are trained on bootstrap samples of the rows. The value of a row is the mean score, on
    this row, of the models whose sample does not contain it: for classification, 1 if the
    prediction is right and 0 otherwise; for regression, minus the squared error. The method is
    cheap, needs no validation set and is good at finding wrong labels. It is not a semivalue, and
    values do not sum to a utility.

    Parameters
    ----------
    estimator : estimator, default=None
        The model. None is a decision tree, as in the paper. X may be of any kind that it takes: a
        data frame, texts, sparse rows, missing values.
    n_estimators : int, default=800
        Number of models. As many more are trained, again and again, until each row is out of bag
        at least twice.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is the task of the estimator or, without one, regression if y is continuous.
    n_jobs : int, default=None
        Number of joblib workers. None is 1 unless set by `joblib.parallel_config`.
    random_state : int, RandomState instance or None, default=None
        Seed of the bags, and of each `random_state` of the estimator, which differs by bag. With
        an int, results are the same bit for bit for any `n_jobs`.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With groups, bags
        consist of whole groups, and the score of a group is the mean over its rows.
    values_error_ : ndarray of the same shape
        Standard errors over the draw of the bags.
    utility_ : float
        Mean of the values: the mean out-of-bag score of a model.
    empty_utility_ : float
        1/C with C classes, the score of guessing; for regression, minus the variance of y.
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
    Y. Kwon, J. Zou: "Data-OOB: Out-of-bag Estimate as a Simple and Efficient Data Value",
    ICML 2023.

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
        "n_estimators": [Interval(Integral, 2, None, closed="left")],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self, estimator=None, n_estimators=800, *, task="auto", n_jobs=None, random_state=None
    ):
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    _default_estimator = DecisionTreeClassifier()

    @property
    def _takes(self):
        return takes_of(self, "models", points=False, done="models trained")

    def _prepare(self, problem):
        weights, model = problem.sample_weight, self._model(problem)
        if problem.n_classes and is_regressor(model):
            raise ValueError(f"estimator must be a classifier for classes. Got {model!r}.")
        if weights is not None:
            check_takes_weights(model, weights)
            weighty = np.unique(problem.player_codes[weights > 0])
            if len(weighty) < 2:  # a row is predicted by models trained on others
                what = "rows" if problem.groups is None else "groups"
                raise ValueError(
                    f"sample_weight must be positive in at least 2 {what}. Got {len(weighty)}."
                )
        if not problem.is_plain:
            y, rows = problem.labels(problem.y), np.arange(len(problem.y))
            with on_all_rows(model):
                train(_seeded(model, 0), problem.X, y, weights, problem.classes, rows)
        return {}

    def _model(self, problem):
        if self.estimator is not None:
            return self.estimator
        return DecisionTreeClassifier() if problem.n_classes else DecisionTreeRegressor()

    def _parts(self, problem, attributes, release):
        chunks = -(-self.n_estimators // _CHUNK)
        return self._sums(problem, chunks), chunks

    def _sums(self, problem, n_chunks):
        """Yield the sums over models so far, after each chunk of the first `n_estimators`.

        The last sums come when each player was out of bag at least twice.
        """
        shared = (
            self._model(problem), problem.X, problem.labels(problem.y), problem.sample_weight,
            problem.classes, problem.groups, problem.n_players, seed_of(self.random_state),
        )  # fmt: skip
        n, trained, warned = problem.n_players, 0, {}
        total, squares, count = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
        with one_thread():
            while trained == 0 or count.min() < 2:
                bags = range(trained, trained + self.n_estimators)
                chunks = [bags[start : start + _CHUNK] for start in range(0, len(bags), _CHUNK)]
                tasks = [(*shared, chunk) for chunk in chunks]
                for part, chunk in zip(counted_map(_bag_chunk, tasks, self.n_jobs, warned), chunks):
                    total, squares, count = total + part[0], squares + part[1], count + part[2]
                    trained += len(chunk)
                    if trained < self.n_estimators:
                        yield total, squares, count, trained, warned
        yield total, squares, count, trained, warned

    def _combine(self, problem, attributes, parts):
        last = deque(parts, maxlen=1)
        if not last or last[0][2].min() < 2:
            return None
        *sums, trained, warned = last.pop()
        values, error = out_of_bag_mean(*sums)
        empty = 1 / problem.n_classes if problem.n_classes else -problem.y.var()
        attributes = {"values_error_": error, "n_evaluations_": trained}
        return Result(
            values, float(values.mean()), float(empty), problem, attributes=attributes,
            warnings=tuple(summaries(warned)),
        )  # fmt: skip
