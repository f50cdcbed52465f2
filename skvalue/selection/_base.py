"""The parameters, the checks and the attributes that all filters share."""

import warnings
from abc import ABCMeta
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import Bunch, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._utils.checks import check_task
from .._utils.sklearn import HasMethods, Interval, RealNotInt, StrOptions, safe_indexing
from ._auto import choose_drop
from ._metadata import as_rows, given
from ._valuing import check_request, fit_valuer, fresh_valuer, lower_weights, select_rows

__all__ = ["BaseValueFilter"]

_CURATOR = ("values_", "report_", "_weights")


class BaseValueFilter(MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of what drops rows by their values."""

    # A validation set is ours wherever it comes from; only groups may mean two things.
    __metadata_request__fit = {"X_val": True, "y_val": True, "sample_weight_val": True}

    _parameter_constraints: dict = {
        "valuer": [HasMethods(["fit"]), None],
        "drop": [
            Interval(RealNotInt, 0, 1, closed="left"),
            Interval(Integral, 0, None, closed="left"),
            StrOptions({"negative", "significant", "auto"}),
        ],
        "fdr": [Interval(Real, 0, 1, closed="neither")],
        "scoring": [str, callable, None],
        "cv": ["cv_object"],
        "memory": [str, HasMethods(["cache"]), None],
        "n_jobs": [Integral, None],
    }

    def _choose(self, X, y, validation, params, *, mode, task, of_valuer=None):
        """Value the rows and choose those that go; set the fitted attributes but `estimator_`.

        Returns X and y as what can be cut, and the choice.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        valuer = fresh_valuer(self.valuer, task)
        validate_data(self, X, y, skip_check_array=True)
        X, y = as_rows(X, y)
        valuer_params = {**given(**validation), **(of_valuer or {})}
        for weights in (params.get("sample_weight"), valuer_params.get("sample_weight")):
            if np.ndim(weights) and len(weights) != len(y):  # or it would not be cut with the rows
                raise ValueError(
                    f"sample_weight must have one entry a row of X ({len(y)}). Got {len(weights)}."
                )
        groups = valuer_params.get("groups")
        check_request(valuer, self.drop, self.memory, valuer_params.get("X_val"), groups, len(y))
        valuer_ = fit_valuer(valuer, X, y, valuer_params, self.memory)
        if task == "auto":
            task = getattr(valuer, "task", "auto")
        classes = check_task(task, y) == "classification"
        drop = self.drop
        if drop == "auto":
            drop, self.drop_scores_ = choose_drop(
                fresh_valuer(self.valuer, task), self.estimator, X, y,
                valuer_params=valuer_params, params=params, mode=mode, classes=classes,
                scoring=self.scoring, cv=self.cv, memory=self.memory, n_jobs=self.n_jobs,
            )  # fmt: skip
        choice = select_rows(valuer_, drop, y, classes=classes, groups=groups, fdr=self.fdr)
        if choice.saved and mode == "drop":
            warnings.warn(
                f"drop={drop!r} would leave no row of {', '.join(map(repr, choice.saved))}: the "
                "row of the highest value is kept of every class.",
                UserWarning,
                stacklevel=4,
            )
        dropped = choice.dropped_rows
        self.valuer_ = valuer_
        self.values_ = choice.values[choice.players]
        self.drop_ = drop
        if mode == "weight":
            self._weights = lower_weights(choice)
            dropped = np.zeros_like(dropped)
        else:
            self._weights = (~dropped).astype(np.float64)
        self.sample_indices_ = np.flatnonzero(~dropped)
        self.dropped_indices_ = np.flatnonzero(dropped)
        chosen = f" (drop={drop} chosen by 'auto')" if self.drop == "auto" else ""
        self._reason = choice.reason + chosen
        return X, y, choice

    @property
    def report_(self):
        """The rows that were dropped, or whose weight was lowered: the ones to look at again.

        A `Bunch` of arrays, lowest value first, which ``pandas.DataFrame(report_)`` makes a table:
        ``row`` (position in X), ``value``, ``weight`` (0 for a dropped row) and ``reason``.
        """
        check_is_fitted(self)
        rows = np.flatnonzero(self._weights < 1)
        rows = rows[np.argsort(self.values_[rows], kind="stable")]
        return Bunch(
            row=rows,
            value=self.values_[rows],
            weight=self._weights[rows],
            reason=np.full(len(rows), self._reason),
        )

    def select(self, *arrays):
        """Cut other arrays to the rows that were kept.

        Parameters
        ----------
        *arrays : array-likes of length n_samples
            Weights, groups, identifiers: anything with an entry for every row of fit.

        Returns
        -------
        selected : array-like or list of array-likes
            The entries of the rows kept; one array for one array, else a list.

        Raises
        ------
        ValueError
            If an array has another length than X in fit.
        """
        check_is_fitted(self)
        n = len(self.sample_indices_) + len(self.dropped_indices_)
        for array in arrays:
            length = array.shape[0] if hasattr(array, "shape") else len(array)
            if length != n:
                raise ValueError(
                    f"arrays must have one entry for every row of fit ({n}). Got {length}."
                )
        cut = [safe_indexing(array, self.sample_indices_) for array in arrays]
        return cut[0] if len(cut) == 1 else cut

    def _of_curator(self):
        """Names of what is for the curator: values, where a pickle of the valuer lacks them."""
        valuer = self.__dict__.get("valuer_")
        private = "privacy_" in getattr(valuer, "__dict__", {})
        return _CURATOR if private and "values_" in getattr(valuer, "_curator", ()) else ()

    def __getstate__(self):
        hidden = self._of_curator()
        return {name: x for name, x in super().__getstate__().items() if name not in hidden}

    def __getattr__(self, name):
        if name in self._of_curator():
            raise AttributeError(
                f"{name} stands on values of a private fit, which are for the curator: they are "
                "not pickled. sample_indices_ and dropped_indices_ are."
            )
        return object.__getattribute__(self, name)  # a property's own message, or the usual one

    def _get_fitted_attr_html(self, *args, **options):
        """What scikit-learn shows of a fitted estimator, which a notebook keeps."""
        shown = super()._get_fitted_attr_html(*args, **options)
        for name in self._of_curator():
            shown.pop(name, None)
        return shown

    def _valuer_tags(self):
        return get_tags(fresh_valuer(self.valuer))
