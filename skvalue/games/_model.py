"""The game of training a model on a coalition of rows."""

from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_memory

from .._utils.hashing import fingerprint
from .._utils.parallel import one_thread
from ._protocol import Game
from ._training import make_training
from .solvers import find_solver, fit_and_score

_TASKS_A_WORKER = 4  # chunks of coalitions; sizes are spread over them


class ModelGame(Game):
    """Players are rows, or groups of rows; utility is the score of a model trained on them.

    An estimator of a kind that can be trained on many coalitions at once is (see `solver`); any
    other is cloned and fitted for every coalition through joblib, so that `joblib.parallel_config`
    decides where. A coalition of one class predicts that class, with probabilities
    (count + 1) / (n + C); one that lacks some classes gives each of them 1 / (n + C). The empty
    coalition has the score of the best constant prediction.

    Parameters
    ----------
    estimator : estimator
        The model; never changed. scikit-learn's contract is all that it needs.
    X : array-like of shape (n_samples, n_features)
        The rows. An estimator that is not batched decides what it takes.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    X_val : array-like of shape (n_validation, n_features)
        Validation points, on which models are scored.
    y_val : array-like of shape (n_validation,)
        Their labels or targets.
    scoring : str or callable, default=None
        A scorer of scikit-learn, or ``scorer(estimator, X, y)``. None is the estimator's own score.
    error_score : "empty", "raise" or float, default="empty"
        Utility of a coalition on which the fit or the scorer fails: that of the empty one, a
        number, or no utility but the error.
    empty_utility : float, default=None
        Utility of the empty coalition. None is 1/C for accuracy and balanced accuracy, 0.5 for ROC
        AUC, -ln C for the log-loss and 0 for R2.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in fits, cut with the coalition; a row of weight zero is not there.
    sample_weight_val : array-like of shape (n_validation,), default=None
        Weights of the validation points in scores.
    groups : array-like of shape (n_samples,), default=None
        Group of every row; groups then are the players, in sorted order.
    batch : {"auto", "torch", "never"}, default="auto"
        Whether coalitions are trained many at a time: where the estimator allows it, by torch
        where device="cuda"; by torch, which the extra `torch` brings, or not at all; or never.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where batches are trained. "auto" is a GPU where batch="torch" and torch sees one, else the
        CPU.
    random_state : int, default=None
        Given to every `random_state` of the estimator that is None, so that a coalition has one
        utility.
    memory : str or object with the interface of `joblib.Memory`, default=None
        Keeps utilities on disk, by call, be they batched or not: only a call for the same
        coalitions (that are not remembered) finds them.
    n_jobs : int, default=None
        Workers: of joblib for the loop, where None is 1 unless a `parallel_config` says otherwise;
        threads for a batched solver, where None takes as many as a matrix product would.
    cache_size : int, default=100_000
        Utilities from the loop that are remembered, the latest ones; 0 for none.

    Attributes
    ----------
    n_players : int
        Number of rows or groups.
    empty_utility : float
        Utility of the empty coalition.
    solver : str
        "loop", or the name of the batched solver.
    n_evaluations, n_failed : int
        Utilities computed, and those among them of coalitions that failed or hold one class.
    groups_ : ndarray of shape (n_players,)
        Names of the groups; None for rows.

    Raises
    ------
    ValueError
        If lengths differ, a classifier gets continuous targets, y_val has a label that y has not,
        weights are given to an estimator or a scorer that takes none, `empty_utility` is needed and
        not given, or torch cannot train the estimator or sees no GPU though it was asked for.
    ImportError
        If torch is asked for and not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skvalue.games import ModelGame
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> game = ModelGame(LogisticRegression(), X, y, X_val=X, y_val=y)
    >>> game.utility([[True, True, True, True], [True, False, False, False], [False] * 4]).tolist()
    [1.0, 0.5, 0.5]
    >>> game.solver, game.n_evaluations, game.n_failed
    ('logistic', 2, 1)
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
        self.n_jobs = n_jobs
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
        masks = masks & (weights > 0)  # or a class might be there without weight
        some = masks.any(axis=1)
        utilities, failed = np.full(len(masks), self.empty_utility), ~some
        if some.any():
            utilities[some], failed[some] = self._look_up(masks[some], n_jobs)
        return utilities, failed

    def _look_up(self, masks, n_jobs):
        """Utilities of coalitions of rows from the store, or computed."""
        if self._fingerprint is None or n_jobs is not None:
            return self._train(masks, n_jobs)
        recall = self._store.cache(_train, ignore=["game", "n_rows"])
        return recall(self._fingerprint, np.packbits(masks, axis=1), self, masks.shape[1])

    def _train(self, masks, n_jobs):
        """Utilities of coalitions of rows, and which of them failed."""
        n_jobs = self.n_jobs if n_jobs is None else n_jobs
        if self._solver is not None:
            return self._solver.utilities(masks, n_jobs)
        packed = np.packbits(masks, axis=1)
        workers = effective_n_jobs(n_jobs)
        n_tasks = 1 if workers == 1 else min(len(masks), _TASKS_A_WORKER * workers)
        utilities, failed = np.empty(len(masks)), np.empty(len(masks), dtype=bool)
        with one_thread():  # for tasks that are threads: they share these limits
            parts = Parallel(n_jobs=n_jobs)(
                delayed(fit_and_score)(self._training, packed[task::n_tasks])
                for task in range(n_tasks)
            )
        for task, part in enumerate(parts):
            utilities[task::n_tasks], failed[task::n_tasks] = part
        return utilities, failed

    def _failed_rule(self):
        training = replace(self._training, error_score="raise")
        rule = (
            f"One class predicts itself; one that failed has utility {self._training.error_score}."
        )
        if self.solver != "loop":
            return rule
        weights = training.sample_weight
        rows = np.ones(len(training.y), dtype=bool) if weights is None else weights > 0
        try:
            fit_and_score(training, [np.packbits(rows)])
        except Exception as error:
            first_line = (str(error).splitlines() or [""])[0]
            rule += f" All rows together fail, too, by {type(error).__name__}: {first_line}"
        return rule


def _train(fingerprint, packed, game, n_rows):
    """What is kept on disk: utilities by the data and settings, and the coalitions."""
    return game._train(np.unpackbits(packed, axis=1, count=n_rows).astype(bool), None)
