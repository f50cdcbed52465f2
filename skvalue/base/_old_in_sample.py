"""The contract of a valuer of the rows in fit, once."""

import warnings
from abc import ABCMeta, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin

from .._utils.checks import (
    check_groups,
    check_target_scale,
    check_task,
    check_validation_weights,
    encode_labels,
    is_leave_one_out,
    make_splits,
    refuse_missing_labels,
)
from .._utils.embedding import fit_embedding, learns_from_rows
from .._utils.fits import former_fit_kept
from .._utils.sklearn import fit_context
from ..exceptions import IncompleteFitWarning, QuadraticCostWarning
from ._old_judges import Judges
from ._old_private import PrivateFitsMixin
from ._problem import Takes
from ._rows import check_rows, check_validation_set
from ._seen_rows import SeenRows

_LEAVE_ONE_OUT_LIMIT = 50_000


class BaseInSampleValuer(
    PrivateFitsMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base class of valuers that give every row of the data set in `fit` a value.

    A method writes `_play`. Everything that all methods share (validation set, cross-validation,
    groups, callbacks, metadata routing, `set_output`) is here.
    """

    _parameter_constraints: dict = {}
    _tasks = ("classification",)  # kinds of target the method has, the default one first
    _dtypes = (np.float64, np.float32)
    _takes_blocks = False  # whether X may be `skvalue.neighbors.Rows`
    _takes_judges = True  # whether there are validation points, or rows that judge others
    _leave_one_out_at_once = True  # whether one game, whose players judge, is as good as n games
    _done = "validation points judged"  # what the values of an unfinished fit stand on

    @property
    def _takes(self):
        return Takes(
            dtypes=self._dtypes,
            blocks=self._takes_blocks,
            nd=getattr(self, "_allows_nd", False),
            points=self._takes_judges,
        )

    # What a method writes -------------------------------------------------------------------

    @abstractmethod
    def _play(self, games, X, y, groups):
        """Values of all rows.

        Parameters
        ----------
        games : list of (ndarray of int or None, Judges)
            The rows that play in each game (None: all), and who judges them.
        X, y : ndarrays
            All rows; y holds codes of classes or targets.
        groups : ndarray of int or None
            Code of every row's group.

        Returns
        -------
        games : list
            The games played, with the judges done.
        values : ndarray
            Mean over the games played of a row's value; what `_set_values` takes.
        utility, empty_utility : float
            Mean over games of the utilities of all players and of none.
        progress : Progress
            What has followed the computation; see `Progress.follow`.
        """

    @abstractmethod
    def _set_values(self, values):
        """Set `values_`, one entry a row or group, from the values of `_play`."""

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
            If X or X_val hold NaN or infinity, y has one class or targets too large to be squared,
            y_val a label that y has not, the validation set is empty or given in part, groups or
            sample_weight_val have a wrong length, or `cv` lets rows play unequally often.
        """
        return self._fit(X, y, X_val, y_val, groups, sample_weight_val)

    def _fit(self, X, y, X_val, y_val, groups, sample_weight_val):
        """What every `fit` does; methods with other metadata have a `fit` of their own."""
        with former_fit_kept(self):
            refuse_missing_labels(y)
            self._fit_embedding(X, y)
            X, y = self._checked(X, y)
            X_val, y_val = check_validation_set(self, X_val, y_val, X)
            if self._wants_privacy():
                fit = self._fit_private
            else:
                fit = self._fit_arrays
                self.__dict__.pop("privacy_", None)
            progress = fit(X, y, X_val, y_val, groups, sample_weight_val)
        return self._finish(progress)

    def _fit_arrays(self, X, y, X_val, y_val, groups, sample_weight_val):
        """Fit on checked X and X_val, and return the progress, for `_finish`."""
        games, share, codes, group_codes = self._set_up(
            X, y, X_val, y_val, groups, sample_weight_val
        )
        games, values, utility, empty, progress = self._play(games, X, codes, group_codes)
        self.utility_, self.empty_utility_ = float(utility), float(empty)
        self._groups = group_codes
        self._set_values(values)
        self._judge_weights = sample_weight_val
        if sample_weight_val is not None:  # of the judges done, should a callback have stopped
            self._judge_weights = np.asarray(sample_weight_val)[: len(games[0][1].y)]
        self._X, self._y, self._games, self._share = X, codes, games, share
        self._explicit = X_val is not None
        self._seen, self._lazy = SeenRows(), {}
        self._n_features_out = 1
        return progress

    def _set_up(self, X, y, X_val, y_val, groups, sample_weight_val):
        """Games, the share of them in which a new row would play, codes of y and of groups."""
        group_names, group_codes = check_groups(groups, len(X))
        if group_names is not None:
            self.groups_ = group_names
        elif hasattr(self, "groups_"):
            del self.groups_
        codes, codes_val = self._encode_target(y, y_val)
        self._prepare(X_val, codes_val)
        if X_val is None and sample_weight_val is not None:
            raise ValueError("sample_weight_val needs X_val: it weights validation points.")
        if not self._takes_judges:
            if X_val is not None:
                raise ValueError(
                    f"X_val must be None: {type(self).__name__} has no validation points. Got "
                    f"{len(X_val)} rows."
                )
            games, share = [], 1.0
        elif X_val is None:
            games, share = self._cross_games(X, codes, group_codes)
        else:
            weights = check_validation_weights(sample_weight_val, len(X_val))
            prior = 0.0 if self._n_classes else float(codes_val @ weights)
            index = np.arange(len(X_val))
            games = [(None, Judges(X_val, codes_val, weights, index, prior=prior))]
            share = 1.0
        return games, share, codes, group_codes

    def fit_transform(self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None):
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

        Raises
        ------
        ValueError
            As in `fit`; with epsilon, unless the reader is "curator".
        """
        self._refuse_reader()
        self.fit(X, y, X_val=X_val, y_val=y_val, groups=groups, sample_weight_val=sample_weight_val)
        return self._fitted_values()[:, None].copy()

    # Plumbing -------------------------------------------------------------------------------

    def _fit_embedding(self, X, y):
        """Set `embedding_`, where the method has an embedding and the user gave one."""
        embedding = getattr(self, "embedding", None)
        if embedding is not None:
            if getattr(self, "epsilon", None) is not None and learns_from_rows(embedding):
                raise ValueError(
                    "embedding must not learn from the private rows: with epsilon, pass a "
                    "callable, a stateless transformer, or FrozenEstimator(transformer) fitted on "
                    f"public data. Got {embedding!r}."
                )
            self.embedding_ = fit_embedding(embedding, X, y)
        elif hasattr(self, "embedding_"):
            del self.embedding_

    def _checked(self, X, y):
        """Checked rows and labels of fit."""
        return check_rows(self, X, y)

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
            self.__dict__.pop("classes_", None)
            y = check_target_scale(y, "y")
            return y, None if y_val is None else check_target_scale(y_val, "y_val")
        self.classes_, y, y_val = encode_labels(y, y_val)
        self._n_classes = len(self.classes_)
        return y, y_val

    def _cross_games(self, X, y, group_codes):
        """Games of ``cv``, and the share of the splits in which a row that joined would play."""
        n = len(X)
        prior = 0.0 if self._n_classes else float(y.mean())
        if group_codes is None and self._leave_one_out_at_once and is_leave_one_out(self.cv):
            if n > _LEAVE_ONE_OUT_LIMIT:
                warnings.warn(
                    f"Leave-one-out judging compares {n * n:,} pairs of rows. Pass X_val and "
                    "y_val, or cv=5, to make it cheaper.",
                    QuadraticCostWarning,
                    stacklevel=3,
                )
            rows = np.arange(n)
            judges = Judges(X, y, np.full(n, 1.0 / n), rows, rows, prior)
            return [(None, judges)], n / (n + 1)
        splits = make_splits(self.cv, X, y, group_codes, self._n_classes > 0)
        games = []
        for rows, judges in splits:
            weights = np.full(len(judges), 1.0 / len(judges))
            games.append((rows, Judges(X[judges], y[judges], weights, judges, prior=prior)))
        return games, sum(len(rows) for rows, _ in splits) / (n * len(splits))

    def _fitted_values(self):
        return self.values_ if self._groups is None else self.values_[self._groups]

    def _finish(self, progress):
        """Close the callbacks' root task; say so if the fit ended early. Returns self."""
        progress.context.call_on_fit_task_end(estimator=self)
        if progress.error is not None:
            raise progress.error
        if progress.interrupted:
            raise KeyboardInterrupt
        if progress.warn is not None:
            progress.warn()
        if progress.stopped:
            warnings.warn(
                f"The fit was stopped by a callback: the values stand on the {self._done} "
                "until then.",
                IncompleteFitWarning,
                stacklevel=3,
            )
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.transformer_tags.preserves_dtype = []
        return tags
