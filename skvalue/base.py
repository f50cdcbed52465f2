"""The contract of a per-row valuer, once."""

import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._rows import SeenRows
from ._sklearn import fit_context
from ._validation import (
    check_groups,
    check_judge_weights,
    check_numeric_target,
    check_task,
    check_validation_set,
    encode_labels,
    is_leave_one_out,
    label_codes,
    make_splits,
)
from .exceptions import IncompleteFitWarning, QuadraticCostWarning

__all__ = ["BaseValuer", "Judges"]

_LEAVE_ONE_OUT_LIMIT = 50_000


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
    own : ndarray of shape (n_judges,) or None
        The judge's own row among the players, which does not play for it; None: no judge plays.
    prior : float
        Mean target of all validation points, which a coalition of nobody predicts in a regression.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    own: np.ndarray | None = None
    prior: float = 0.0

    def __getitem__(self, part):
        own = None if self.own is None else self.own[part]
        return replace(
            self, X=self.X[part], y=self.y[part], weights=self.weights[part], own=own
        )


    def centred(self):
        """The same judges with targets from their prior mean."""
        return replace(self, y=self.y - self.prior, prior=0.0)


class _Progress:
    """Counts steps of a fit, tells the callbacks, and remembers why it ended early."""

    def __init__(self, estimator, n_steps):
        self.estimator = estimator
        self.context = estimator._init_callback_context(max_subtasks=n_steps)
        self.context.call_on_fit_task_begin(estimator=estimator)
        self.stopped = False
        self.interrupted = False

    @property
    def over(self):
        return self.stopped or self.interrupted

    def follow(self, parts, n_parts):
        """Yield the parts of a computation until they end or somebody stops it."""
        try:
            for _ in range(n_parts):
                step = self.context.subcontext(task_name="validation points")
                step.call_on_fit_task_begin(estimator=self.estimator)
                yield next(parts)
                if step.call_on_fit_task_end(estimator=self.estimator):
                    self.stopped = True
                    return
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            parts.close()


class BaseValuer(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base class of valuers that give every row of a data set a value.

    A method writes `_value`, the values of one game with clean arrays in hand, and, where it can
    value a row that was not in fit, `_value_joining`. Everything a user meets (validation set,
    cross-validation, groups, callbacks, metadata routing, `set_output`) is here.
    """

    _parameter_constraints: dict = {}
    _tasks = ("classification",)  # kinds of target the method has, the default one first
    _dtypes = (np.float64, np.float32)

    # What a method writes -------------------------------------------------------------------

    @abstractmethod
    def _value(self, X, y, judges, n_classes, progress):
        """Values of the rows of one game.

        Parameters
        ----------
        X, y : ndarrays
            The players; y holds codes of classes or targets.
        judges : Judges
            The validation points.
        n_classes : int
            Number of classes; 0 for a regression.
        progress : _Progress
            Wraps the parts of the computation, see `_Progress.follow`.

        Returns
        -------
        values : ndarray of shape (n_players,), utility : float, empty_utility : float
        """

    def _value_joining(self, game, X, y, judges, n_classes, X_new, y_new):
        """Values of new rows, each joining game number ``game`` alone.

        ``y_new`` None averages over labels. A method without this has no `transform`.
        """
        raise NotImplementedError

    def _n_steps(self, n_players, n_judges, n_features):
        """Steps of one call of `_value`, for progress bars."""
        return 1

    def _prepare(self, X_val, y_val):
        """Set what the method derives from its parameters and the validation set."""

    # What a user calls ----------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None):
        """Value the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to value.
        y : array-like of shape (n_samples,)
            Their labels, of any kind, or targets where the method has a regression game.
        X_val : array-like of shape (n_validation, n_features), default=None
            Validation points, which judge the rows. Without them `cv` says which rows judge which.
        y_val : array-like of shape (n_validation,), default=None
            Labels of the validation points; passed together with `X_val`.
        groups : array-like of shape (n_samples,), default=None
            Group of every row; `values_` then has one entry a group.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weights of the validation points in the mean utility.

        Returns
        -------
        self : object
            The fitted valuer.

        Raises
        ------
        ValueError
            If X or X_val hold NaN or infinity, y has one class, y_val a label that y has not, the
            validation set is empty or given in part, groups or sample_weight_val have a wrong
            length, or `cv` lets rows play unequally often.
        """
        X, y = validate_data(
            self, X, y, dtype=list(self._dtypes), order="C", y_numeric=False, ensure_min_samples=2
        )
        X_val, y_val = check_validation_set(self, X_val, y_val, X.dtype)
        group_names, group_codes = check_groups(groups, len(X))
        codes, codes_val = self._encode_target(y, y_val)
        self._prepare(X_val, codes_val)
        if X_val is None:
            if sample_weight_val is not None:
                raise ValueError("sample_weight_val needs X_val: it weights validation points.")
            games, share = self._cross_games(X, codes, group_codes)
        else:
            weights = check_judge_weights(sample_weight_val, len(X_val))
            prior = 0.0 if self._n_classes else float(codes_val @ weights)
            games = [(None, Judges(X_val, codes_val, weights, prior=prior))]
            share = 1.0

        n_steps = sum(
            self._n_steps(len(X) if rows is None else len(rows), len(judges.y), X.shape[1])
            for rows, judges in games
        )
        progress = _Progress(self, n_steps)
        values = np.zeros(len(X))
        played = utility = empty = 0.0
        for rows, judges in games:
            players = (X, codes) if rows is None else (X[rows], codes[rows])
            part, full_utility, empty_utility = self._value(
                *players, judges, self._n_classes, progress
            )
            values[slice(None) if rows is None else rows] += part
            utility += full_utility
            empty += empty_utility
            played += 1
            if progress.over:
                break
        self._row_values = values / played
        self.utility_ = float(utility / played)
        self.empty_utility_ = float(empty / played)
        if group_names is None:
            self.values_ = self._row_values
        else:
            self.groups_ = group_names
            self.values_ = np.bincount(group_codes, weights=self._row_values)
        self._groups = group_codes
        self._X, self._y, self._games, self._share = X, codes, games, share
        self._seen = SeenRows()
        self._n_features_out = 1
        self._finish(progress)
        return self

    def fit_transform(
        self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None
    ):
        """Fit and return the value of every row, in the order of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to value.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        X_val, y_val, groups, sample_weight_val : array-likes, default=None
            As in `fit`.

        Returns
        -------
        values : ndarray of shape (n_samples, 1)
            The value of the row, or of its group.
        """
        self.fit(
            X, y, X_val=X_val, y_val=y_val, groups=groups, sample_weight_val=sample_weight_val
        )
        return self._fitted_values()[:, None].copy()

    def transform(self, X):
        """Value rows: a row of fit has its fitted value, any other the one it would have.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. One that was in fit has its fitted value (the mean, if it was there more than
            once; with groups, its group's). Any other has the value it would have if it joined,
            averaged over labels by the method's own class probabilities.

        Returns
        -------
        values : ndarray of shape (n_rows, 1)
            The values.
        """
        return self.score_samples(X)[:, None]

    def score_samples(self, X, y=None):
        """Value rows whose labels may be known.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, valued as in `transform`.
        y : array-like of shape (n_rows,), default=None
            Their labels or targets. None averages over labels.

        Returns
        -------
        values : ndarray of shape (n_rows,)
            The values.

        Raises
        ------
        ValueError
            If y has a label that fit has not seen, or another length than X.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=self._X.dtype, order="C")
        codes = None
        if y is not None:
            if len(y) != len(X):
                raise ValueError(f"y must have one entry a row of X ({len(X)}). Got {len(y)}.")
            if self._n_classes:
                codes = label_codes(np.asarray(y), self.classes_, "y")
            else:
                codes = check_numeric_target(y, "y")
        scores, known = self._seen.lookup(
            X, codes, self._X, self._y, self._fitted_values()
        )
        new = np.flatnonzero(~known)
        if len(new):
            joined = np.zeros(len(new))
            y_new = None if codes is None else codes[new]
            for game, (rows, judges) in enumerate(self._games):
                players = (self._X, self._y) if rows is None else (self._X[rows], self._y[rows])
                joined += self._value_joining(
                    game, *players, judges, self._n_classes, X[new], y_new
                )
            scores[new] = joined * (self._share / len(self._games))
        return scores

    # Plumbing -------------------------------------------------------------------------------

    def _encode_target(self, y, y_val):
        """Codes of classes, or float targets, of rows and validation points."""
        task = self._tasks[0]
        if len(self._tasks) > 1:
            task = check_task(self.task, y)
        elif check_task("auto", y) != task:
            raise ValueError(
                f"Unknown label type: {type(self).__name__} needs classes. Got a continuous target."
            )
        if task == "regression":
            self._n_classes = 0
            y = check_numeric_target(y, "y")
            return y, None if y_val is None else check_numeric_target(y_val, "y_val")
        self.classes_, y, y_val = encode_labels(y, y_val)
        self._n_classes = len(self.classes_)
        return y, y_val

    def _cross_games(self, X, y, group_codes):
        """Games of ``cv``, and the share of the splits in which a row that joined would play."""
        n = len(X)
        prior = 0.0 if self._n_classes else float(y.mean())
        if group_codes is None and is_leave_one_out(self.cv):
            if n > _LEAVE_ONE_OUT_LIMIT:
                warnings.warn(
                    f"Leave-one-out judging compares {n * n:,} pairs of rows. Pass X_val and y_val, "
                    "or cv=5, to make it cheaper.",
                    QuadraticCostWarning,
                    stacklevel=3,
                )
            judges = Judges(X, y, np.full(n, 1.0 / n), np.arange(n), prior)
            return [(None, judges)], n / (n + 1)
        splits = make_splits(self.cv, X, y, group_codes, self._n_classes > 0)
        games = []
        for rows, judges in splits:
            weights = np.full(len(judges), 1.0 / len(judges))
            games.append((rows, Judges(X[judges], y[judges], weights, prior=prior)))
        return games, sum(len(rows) for rows, _ in splits) / (n * len(splits))

    def _fitted_values(self):
        return self._row_values if self._groups is None else self.values_[self._groups]

    def _finish(self, progress):
        """Close the callbacks' root task; say so if the fit ended early."""
        progress.context.call_on_fit_task_end(estimator=self)
        if progress.interrupted:
            raise KeyboardInterrupt
        if progress.stopped:
            warnings.warn(
                "The fit was stopped by a callback: the values stand on the validation points "
                "judged until then.",
                IncompleteFitWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.transformer_tags.preserves_dtype = []
        return tags
