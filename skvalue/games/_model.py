"""The game of training a model on a coalition of rows."""

import warnings
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_memory

from .._utils.hashing import fingerprint
from .._utils.parallel import one_thread
from .._utils.warned import add_counts, counted, ready_to_count, tell
from ..exceptions import UnbatchedFitWarning
from ._protocol import Game
from ._training import make_training
from .solvers import find_solver, fit_and_score, obstacles, score_number

_TASKS_PER_WORKER = 4  # a task takes every n-th coalition, so coalitions of all sizes


class ModelGame(Game):
    """The game of training a model: the utility of a coalition of rows is the model's score.

    Players are rows, or groups of rows. If there is a batched solver for the estimator, it trains
    many coalitions at once (see `solver`); any other estimator is cloned and fitted for every
    coalition through joblib, with the backend of `joblib.parallel_config`. A coalition of one
    class predicts that class, with probabilities (count + 1) / (n + C); the model of a coalition
    without some of the classes gives each of these the probability 1 / (n + C). The empty
    coalition has the score of the constant prediction.

    Parameters
    ----------
    estimator : estimator
        The scikit-learn estimator to train; it is not modified.
    X : array-like of shape (n_samples, n_features)
        The rows, in any form that the estimator accepts and that can be indexed by rows: data
        frames, texts, sparse rows. Batched solvers need dense, finite numbers.
    y : array-like of shape (n_samples,)
        Labels or targets of the rows.
    X_val : array-like of shape (n_validation, n_features)
        Validation points, on which models are scored.
    y_val : array-like of shape (n_validation,)
        Labels or targets of the validation points.
    scoring : str or callable, default=None
        A scorer of scikit-learn, or ``scorer(estimator, X, y)``. None means the score of the
        estimator.
    error_score : "empty", "raise" or float, default="empty"
        Utility of a coalition whose fit or score fails. "empty" uses that of the empty coalition,
        "raise" raises the error. It is an error in any case if all rows together fail.
    empty_utility : float, default=None
        Utility of the empty coalition. None is 1/C for accuracy and balanced accuracy; for any
        other scorer the score of the constant prediction: `DummyClassifier(strategy="prior")` or
        `DummyRegressor()` fitted on `y_val` with its weights.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in fits; a row of weight zero is left out of all coalitions.
    sample_weight_val : array-like of shape (n_validation,), default=None
        Weights of the validation points in scores.
    groups : array-like of shape (n_samples,), default=None
        Group of every row; the players then are the groups, in sorted order.
    batch : {"auto", "torch", "never"}, default="auto"
        Whether many coalitions are trained at once. "auto": if there is a batched solver for the
        estimator, which uses torch if device="cuda". "torch": by torch (extra `torch`), or an
        error. "never": one estimator at a time.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where batches are trained. "auto" is a GPU if batch="torch" and torch finds one, else the
        CPU.
    random_state : int, default=None
        Set as every `random_state` of the estimator that is None, so that the utility of a
        coalition is deterministic.
    memory : str or object with the interface of `joblib.Memory`, default=None
        Cache of utilities on disk, one entry per call: only a call with the same coalitions (those
        not in the cache in memory) finds its entry.
    n_jobs : int, default=None
        Number of workers: joblib workers without a batched solver, where None is 1 unless set by
        `joblib.parallel_config`; threads of a batched solver, where None means the number of
        threads of a matrix product.
    cache_size : int, default=100_000
        Number of utilities kept in memory, the latest ones; 0 for none. Batched solvers keep none.

    Attributes
    ----------
    n_players : int
        Number of rows or groups.
    empty_utility : float
        Utility of the empty coalition.
    estimator : estimator
        The unfitted estimator, with every `random_state` set.
    solver : str
        "loop", or the name of the batched solver.
    n_evaluations, n_failed, n_one_class : int
        Number of utilities computed, and how many of them are of coalitions whose fit or score
        failed, and of coalitions of one class.
    groups_ : ndarray of shape (n_players,)
        Group labels; None if the players are rows.

    Raises
    ------
    ValueError
        If lengths differ, a classifier gets continuous targets, y_val has a label that y lacks,
        weights are given to an estimator or a scorer that accepts none, `empty_utility` is needed
        and not given, parameters of an estimator with a batched solver are out of range, or torch
        is requested and cannot train the estimator or finds no GPU.
    ImportError
        If torch is requested and not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skvalue.games import ModelGame
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> game = ModelGame(LogisticRegression(), X, y, X_val=X, y_val=y)
    >>> game.utility([[True, True, True, True], [True, False, False, False], [False] * 4]).tolist()
    [1.0, 0.5, 0.5]
    >>> game.solver, game.n_evaluations, game.n_failed, game.n_one_class
    ('logistic', 2, 0, 1)
    """

    def __init__(
        self,
        estimator,
        X,
        y,
        X_val,
        y_val,
        *,
        scoring=None,
        error_score="empty",
        empty_utility=None,
        sample_weight=None,
        sample_weight_val=None,
        groups=None,
        batch="auto",
        device="auto",
        random_state=None,
        memory=None,
        n_jobs=None,
        cache_size=100_000,
    ):
        if batch not in ("auto", "torch", "never"):
            raise ValueError(f"batch must be 'auto', 'torch' or 'never'. Got {batch!r}.")
        self._training, empty_utility = make_training(
            estimator, X, y, X_val, y_val, scoring=scoring, error_score=error_score,
            empty_utility=empty_utility, sample_weight=sample_weight,
            sample_weight_val=sample_weight_val, random_state=random_state, device=device,
        )  # fmt: skip
        self.groups_, self._codes = None, None
        if groups is not None:
            check_consistent_length(X, groups)
            self.groups_, self._codes = np.unique(column_or_1d(groups), return_inverse=True)
        n_players = len(self._training.y) if groups is None else len(self.groups_)
        super().__init__(n_players, empty_utility, cache_size)
        self._failed_utility = self._training.error_score
        self.n_jobs, self._batch = n_jobs, batch
        self.estimator = self._training.estimator
        self._solver = find_solver(self._training, batch)
        self.solver = "loop" if self._solver is None else self._solver.name
        self._remember = self._solver is None
        self._store = check_memory(memory)
        self._fingerprint = None
        if self._store.location is not None:
            kept = {**vars(self._training), "scorer": None, "device": None}
            kind = type(estimator).__qualname__
            self._fingerprint = fingerprint(kind, kept, self.groups_, self._codes, self.solver)

    def _compute(self, masks, n_jobs=None):
        if self._codes is not None:
            masks = masks[:, self._codes]
        weights = self._training.sample_weight
        if weights is None:
            return self._look_up(masks, n_jobs)
        masks = masks & (weights > 0)  # a class must not be present with weight 0 only
        some = masks.any(axis=1)
        utilities = np.full(len(masks), self.empty_utility)
        failed, one_class = np.zeros((2, len(masks)), dtype=bool)
        if some.any():
            utilities[some], failed[some], one_class[some] = self._look_up(masks[some], n_jobs)
        return utilities, failed, one_class

    def _look_up(self, masks, n_jobs):
        """Utilities of coalitions of rows, from the cache on disk or computed."""
        if self._fingerprint is None or n_jobs is not None:
            return self._train(masks, n_jobs)
        recall = self._store.cache(_train, ignore=["game", "n_rows"])
        return recall(self._fingerprint, np.packbits(masks, axis=1), self, masks.shape[1])

    def _train(self, masks, n_jobs):
        """Utilities of coalitions of rows, a mask of those that failed, and one of one class."""
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        if self._solver is not None:
            return self._solver.utilities(masks, n_jobs)
        packed = np.packbits(masks, axis=1)
        workers = effective_n_jobs(n_jobs)
        n_tasks = 1 if workers == 1 else min(len(masks), _TASKS_PER_WORKER * workers)
        utilities, found = np.empty(len(masks)), {}
        failed, one_class = np.empty((2, len(masks)), dtype=bool)
        # For a backend of threads, to which the limits and the filters of warnings apply too.
        with one_thread(), ready_to_count():
            parts = Parallel(n_jobs=n_jobs)(
                delayed(counted)(fit_and_score, self._training, packed[task::n_tasks])
                for task in range(n_tasks)
            )
        for task, (part, warned) in enumerate(parts):
            own = slice(task, None, n_tasks)
            utilities[own], failed[own], one_class[own] = part
            add_counts(found, warned)
        tell(found)
        return utilities, failed, one_class

    def warn_unbatched(self, stacklevel=2):
        """Warn if a parameter or a step of a pipeline keeps models from being trained in batches.

        Parameters
        ----------
        stacklevel : int, default=2
            As in `warnings.warn`; 2 is the line that calls this method.

        Warns
        -----
        UnbatchedFitWarning
            If there is a batched solver for the estimator without them, and `batch` is "auto".
        """
        if self._batch != "auto" or self._solver is not None:
            return
        found = obstacles(self._training)
        if found:
            warnings.warn(
                "Models are trained one by one, about 100 times slower than in batches, because of "
                f"{' and '.join(found)}: {', and '.join(found.values())}. batch='never' turns this "
                "warning off.",
                UnbatchedFitWarning,
                stacklevel=stacklevel,
            )

    def score(self, model):
        """Utility of a fitted model: its score at the validation points.

        Parameters
        ----------
        model : estimator
            A fitted estimator.

        Returns
        -------
        utility : float
            The utility.
        """
        training = self._training
        weights = training.sample_weight_val
        given = {} if weights is None else {"sample_weight": weights}
        score = training.scorer(model, training.X_val, training.y_val, **given)
        return score_number(score, len(training.y))

    def require_trainable(self):
        """Train the model of all rows and score it.

        Raises
        ------
        ValueError
            If that fails; the estimator's error is its cause.
        """
        training = replace(self._training, error_score=0.0)
        rows = np.ones(len(training.y), dtype=bool)
        if training.sample_weight is not None:
            rows = training.sample_weight > 0
        fit_and_score(training, [np.packbits(rows)])


def _train(fingerprint, packed, game, n_rows):
    """The function cached on disk: utilities by the fingerprint of a game and the coalitions."""
    return game._train(np.unpackbits(packed, axis=1, count=n_rows).astype(bool), None)
