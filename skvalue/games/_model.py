"""The game of training a model on a coalition of rows."""

from numbers import Real

import joblib
import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_memory, has_fit_parameter

from .._utils.parallel import one_thread
from ._protocol import Game
from .solvers import check_scorer, empty_utility_of, find_solver, fit_and_score

__all__ = ["ModelGame"]

_TASKS_A_WORKER = 4  # chunks of coalitions; sizes are spread over them


class ModelGame(Game):
    """Players are rows, or groups of rows; utility is the score of a model trained on them.

    An estimator of a kind that can be trained on many coalitions at once is (see `solver`); any
    other is cloned and fitted for every coalition through joblib, so that `joblib.parallel_config`
    decides where. A coalition of one class predicts that class, with probabilities
    (count + 1) / (n + C); one that lacks some classes gives each of them 1 / (n + C). Nobody scores
    what the best constant prediction does.

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
        Utility of a coalition on which the fit or the scorer fails: that of nobody, a number, or
        no utility but the error.
    empty_utility : float, default=None
        Utility of nobody. None knows it for accuracy and balanced accuracy (1/C), ROC AUC (0.5),
        log-loss (-ln C) and R2 (0).
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
        Utility of nobody.
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
        if device not in ("auto", "cpu", "cuda"):
            raise ValueError(f"device must be 'auto', 'cpu' or 'cuda'. Got {device!r}.")
        check_consistent_length(X, y)
        check_consistent_length(X_val, y_val)
        classifier = is_classifier(estimator)
        if not classifier and not is_regressor(estimator):
            raise ValueError(f"estimator must be a classifier or a regressor. Got {estimator!r}.")
        self.estimator = _seeded(estimator, random_state)
        self.X, self.X_val = X, X_val
        self.y, self.y_val, self.classes = _targets(y, y_val, classifier)
        self.sample_weight = _weights(sample_weight, len(self.y), "sample_weight")
        if self.sample_weight is not None:
            check_takes_weights(estimator, self.sample_weight)
        weights = _weights(sample_weight_val, len(self.y_val), "sample_weight_val")
        # Equal weights are none: not every scorer takes them.
        self.sample_weight_val = None if weights is None or np.ptp(weights) == 0 else weights
        self.scoring = scoring
        self.scorer = check_scorer(estimator, scoring, self.sample_weight_val, self.classes)
        if empty_utility is None:
            n_classes = 0 if self.classes is None else len(self.classes)
            empty_utility = empty_utility_of(scoring, n_classes)
        self.error_score = _error_score(error_score, empty_utility)
        self.groups_, self._codes = None, None
        if groups is not None:
            check_consistent_length(X, groups)
            self.groups_, self._codes = np.unique(column_or_1d(groups), return_inverse=True)
        n_players = len(self.y) if groups is None else len(self.groups_)
        super().__init__(n_players, empty_utility, cache_size)
        self.n_jobs = n_jobs
        self.batch, self.device = batch, device
        self._solver = find_solver(self)
        self.solver = "loop" if self._solver is None else self._solver.name
        self._remember = self._solver is None
        self._store = check_memory(memory)
        self._fingerprint = None
        if self._store.location is not None:
            self._fingerprint = joblib.hash(
                (
                    type(estimator).__qualname__, self.estimator, self.X, self.y, self.X_val,
                    self.y_val, self.sample_weight, self.sample_weight_val, scoring,
                    self.error_score, self.groups_, self._codes, self.solver,
                )
            )  # fmt: skip

    def _compute(self, masks, n_jobs=None):
        if self._codes is not None:
            masks = masks[:, self._codes]
        if self.sample_weight is not None:
            masks = masks & (self.sample_weight > 0)  # or a class might be there without weight
            somebody = masks.any(axis=1)
            if not somebody.all():
                utilities, failed = np.full(len(masks), self.empty_utility), ~somebody
                if somebody.any():
                    utilities[somebody], failed[somebody] = self._look_up(masks[somebody], n_jobs)
                return utilities, failed
        return self._look_up(masks, n_jobs)

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
                delayed(fit_and_score)(
                    self.estimator, self.X, self.y, self.sample_weight, self.X_val, self.y_val,
                    self.sample_weight_val, self.scorer, self.classes, self.error_score,
                    packed[task::n_tasks],
                )
                for task in range(n_tasks)
            )  # fmt: skip
        for task, part in enumerate(parts):
            utilities[task::n_tasks], failed[task::n_tasks] = part
        return utilities, failed

    def _failed_rule(self):
        rule = f"One class predicts itself; one that failed has utility {self.error_score}."
        weights = self.sample_weight
        rows = np.ones(len(self.y), dtype=bool) if weights is None else weights > 0
        if self.solver != "loop":
            return rule
        try:
            fit_and_score(
                self.estimator, self.X, self.y, weights, self.X_val, self.y_val,
                self.sample_weight_val, self.scorer, self.classes, "raise", [np.packbits(rows)],
            )  # fmt: skip
        except Exception as error:
            first_line = (str(error).splitlines() or [""])[0]
            rule += f" All rows together fail, too, by {type(error).__name__}: {first_line}"
        return rule


def _train(fingerprint, packed, game, n_rows):
    """What is kept on disk: utilities by the data and settings, and the coalitions."""
    return game._train(np.unpackbits(packed, axis=1, count=n_rows).astype(bool), None)


def _seeded(estimator, random_state):
    """A copy with every `random_state` that is None set."""
    estimator = clone(estimator)
    if random_state is not None:
        free = {
            name: random_state
            for name, value in estimator.get_params().items()
            if value is None and name.split("__")[-1] == "random_state"
        }
        estimator.set_params(**free)
    return estimator


def check_takes_weights(estimator, weights):
    """Refuse an estimator whose fit takes no weights. With routing a pipeline, too, may take them.

    A pipeline whose steps do not say whether they want them is refused by scikit-learn.
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return
    if get_config()["enable_metadata_routing"]:
        if isinstance(get_routing_for_object(estimator), MetadataRouter):
            process_routing(estimator, "fit", sample_weight=weights)
        if get_routing_for_object(estimator).consumes("fit", ["sample_weight"]):
            return
    raise ValueError(
        f"sample_weight needs an estimator whose fit takes it. Got {estimator!r}. A pipeline takes "
        "it with sklearn.set_config(enable_metadata_routing=True) and set_fit_request."
    )


def _targets(y, y_val, classifier):
    """Targets, and the sorted classes or None."""
    y, y_val = column_or_1d(y), column_or_1d(y_val)
    if not classifier:
        return y, y_val, None
    if type_of_target(y) == "continuous":
        raise ValueError(
            "estimator must be a regressor where y holds targets. Got a classifier, and y with "
            f"continuous values such as {y[0]}."
        )
    classes = np.unique(y)
    unseen = np.setdiff1d(y_val, classes)
    if len(unseen):
        raise ValueError(
            "y_val must hold only labels that y has. Got unseen labels: "
            f"{', '.join(map(repr, unseen.tolist()[:5]))}."
        )
    if y.dtype.kind in "ui":  # short codes of classes are not what every estimator takes
        y, y_val, classes = (part.astype(np.int64) for part in (y, y_val, classes))
    return y, y_val, classes


def _weights(weights, n, name):
    if weights is None:
        return None
    weights = column_or_1d(np.asarray(weights, dtype=np.float64))
    if len(weights) != n or not np.isfinite(weights).all() or weights.min(initial=0) < 0:
        raise ValueError(
            f"{name} must hold {n} numbers, none of them negative. Got {len(weights)} with a "
            f"minimum of {weights.min(initial=np.inf)}."
        )
    return weights


def _error_score(error_score, empty_utility):
    if isinstance(error_score, str) and error_score == "raise":
        return error_score
    if isinstance(error_score, str) and error_score == "empty":
        return float(empty_utility)
    if isinstance(error_score, Real) and np.isfinite(error_score):
        return float(error_score)
    raise ValueError(f"error_score must be 'empty', 'raise' or a number. Got {error_score!r}.")
