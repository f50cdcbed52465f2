"""The validation points of a game, and the progress of a fit through them."""

from dataclasses import dataclass, replace
from functools import wraps
from itertools import count

import numpy as np

from ..neighbors import concatenate_rows


@dataclass(frozen=True)
class Judges:
    """The validation points of one game.

    Attributes
    ----------
    X : ndarray of shape (n_judges, n_features)
    y : ndarray of shape (n_judges,)
        Codes of the classes, or targets.
    weights : ndarray of shape (n_judges,)
        Weights in the mean over judges; they sum to one.
    index : ndarray of shape (n_judges,)
        Row of each judge in X_val, or in X where rows judge each other.
    own : ndarray of shape (n_judges,) or None
        The judge's own row among the players, which does not play for it; None: no judge plays.
    prior : float
        Mean target of all validation points, which a coalition of nobody predicts in a regression.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    index: np.ndarray
    own: np.ndarray | None = None
    prior: float = 0.0

    def __getitem__(self, part):
        return replace(
            self,
            X=self.X[part],
            y=self.y[part],
            weights=self.weights[part],
            index=self.index[part],
            own=None if self.own is None else self.own[part],
        )

    def first(self, n):
        """The first n judges, weights scaled to sum to one."""
        if n == len(self.y):
            return self
        some = self[:n]
        return replace(some, weights=some.weights / (some.weights.sum() or 1.0))

    def joined(self, other, weights):
        """These judges and others, none of which plays."""
        return replace(
            self,
            X=concatenate_rows(self.X, other.X),
            y=np.concatenate([self.y, other.y]),
            weights=weights,
            index=np.concatenate([self.index, other.index]),
        )

    def centred(self):
        """The same judges with targets from their prior mean."""
        return replace(self, y=self.y - self.prior, prior=0.0)


def check_judged_labels(judge_codes, codes, classes, cv):
    """Refuse splits whose judges have a label that no player has; codes are places in classes."""
    unseen = np.setdiff1d(judge_codes, codes)
    if len(unseen):
        shown = ", ".join(map(repr, classes[unseen].tolist()[:5]))
        raise ValueError(
            "In every split each label of the judges must be one of the players: rows with the "
            f"label {shown} are all among the judges of one split. Pass X_val and y_val, or "
            f"another cv. Got cv={cv!r}."
        )


def with_one_plan(method):
    """Let a method of a valuer find the same in `_plan` all the time, which is emptied before.

    Steps are counted before they are taken, and threads and free memory may change meanwhile.
    """

    @wraps(method)
    def call(self, *args, **kwargs):
        if self._plan is not None:
            return method(self, *args, **kwargs)
        self._plan = {}
        try:
            return method(self, *args, **kwargs)
        finally:
            del self._plan

    return call


class Progress:
    """Counts steps of a fit, tells the callbacks, and remembers why it ended early."""

    def __init__(self, estimator, n_steps):
        self.estimator = estimator
        self.context = estimator._init_callback_context(max_subtasks=n_steps)
        self.context.call_on_fit_task_begin(estimator=estimator)
        self.stopped = False
        self.interrupted = False
        self.error = None
        self.warn = None  # what warns of a fit that is done; a warning may be made an error

    @property
    def over(self):
        return self.stopped or self.interrupted

    def follow(self, parts, n_parts, task_name="validation points"):
        """Yield the parts of a computation until they end or somebody stops it.

        There are ``n_parts`` at most; None: any number.
        """
        ended = object()
        try:
            for _ in count() if n_parts is None else range(n_parts):
                step = self.context.subcontext(task_name=task_name)
                step.call_on_fit_task_begin(estimator=self.estimator)
                part = next(parts, ended)
                if part is not ended:
                    yield part
                if step.call_on_fit_task_end(estimator=self.estimator):
                    self.stopped = True
                    return
                if part is ended:
                    return
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            parts.close()
