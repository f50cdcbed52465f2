"""Parameters, checks and fitted attributes of all filters."""

import warnings
from abc import ABCMeta
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted, validate_data

from .._utils.checks import check_length, check_task
from .._utils.fits import blank_of, columns_on
from .._utils.sklearn import HasMethods, Interval, RealNotInt, StrOptions, safe_indexing
from ..base import BaseInSampleValuer
from ._auto_drop import choose_drop
from ._choice import lower_weights, select_rows
from ._metadata import as_rows, given
from ._valuer import check_request, fit_valuer, fresh_valuer


class BaseValueFilter(MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of estimators that drop rows by their values."""

    # The validation set is always requested; groups are not, they may be meant for other objects.
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

    # Public API -----------------------------------------------------------------------------

    @property
    def values_(self):
        """Value of each row; with groups, the value of its group."""
        return self._of_curator("values_").values

    @property
    def report_(self):
        """The rows that were dropped or whose weight was lowered, to be inspected.

        A `Bunch` of arrays, lowest value first: ``row`` (index in X), ``value``, ``weight`` (0 for
        a dropped row) and ``reason``. ``pandas.DataFrame(report_)`` makes it a table.
        """
        return self._of_curator("report_").report

    def select(self, *arrays):
        """Select the entries of the rows that were kept from other arrays.

        Parameters
        ----------
        *arrays : array-likes of length n_samples
            Arrays with one entry per row of fit, such as weights, groups or identifiers.

        Returns
        -------
        selected : array-like or list of array-likes
            The entries of the kept rows; a list if several arrays are passed.

        Raises
        ------
        ValueError
            If the length of an array is not that of X in fit.
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

    # Private --------------------------------------------------------------------------------

    def _choose(self, X, y, passed, params, *, mode, task, of_valuer):
        """Value the rows and choose those to drop.

        Returns indexable X and y, the choice, and the fitted attributes by name.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        valuer = fresh_valuer(self.valuer, task)
        blank = blank_of(self)  # a fit that fails changes nothing
        validate_data(blank, X, y, skip_check_array=True)
        attributes = columns_on(blank)
        X, y = as_rows(X, y)
        valuer_params = {**given(**passed), **of_valuer}
        for weights in (params.get("sample_weight"), valuer_params.get("sample_weight")):
            if np.ndim(weights):  # other lengths would not be cut with the rows
                check_length(weights, "sample_weight", len(y))
        groups = valuer_params.get("groups")
        check_request(valuer, self.drop, self.memory, valuer_params.get("X_val"), groups, len(y))
        fitted = fit_valuer(valuer, X, y, valuer_params, self.memory)
        if task == "auto" and isinstance(fitted, BaseInSampleValuer):
            classes = hasattr(fitted, "classes_")
        else:
            classes = check_task(task, y) == "classification"
        drop, chosen = self.drop, ""
        if drop == "auto":
            drop, attributes["drop_scores_"] = choose_drop(
                fresh_valuer(self.valuer, task), self.estimator, X, y,
                valuer_params=valuer_params, params=params, mode=mode, classes=classes,
                scoring=self.scoring, cv=self.cv, memory=self.memory, n_jobs=self.n_jobs,
            )  # fmt: skip
            chosen = f" (drop={drop} chosen by 'auto')"
        choice = select_rows(fitted, drop, y, classes=classes, groups=groups, fdr=self.fdr)
        if choice.saved and mode == "drop":
            warnings.warn(
                f"drop={drop!r} would leave no row of {', '.join(map(repr, choice.saved))}: the "
                "row of the highest value is kept of every class.",
                UserWarning,
                stacklevel=4,
            )
        dropped, weights = choice.dropped_rows, (~choice.dropped_rows).astype(np.float64)
        if mode == "weight":
            dropped, weights = np.zeros_like(dropped), lower_weights(choice)
        values = choice.values[choice.players]
        # In a private fit of this notion, values are released to their owners, not all together.
        private = getattr(getattr(fitted, "privacy_", None), "notion", None) == "joint"
        report = _report(values, weights, choice.reason + chosen)
        attributes |= {
            "valuer_": fitted,
            "drop_": drop,
            "sample_indices_": np.flatnonzero(~dropped),
            "dropped_indices_": np.flatnonzero(dropped),
            "_chosen": ChosenRows(values, report, private),
        }
        return X, y, choice, attributes

    def _of_curator(self, name):
        check_is_fitted(self)
        if self._chosen.values is None:
            raise AttributeError(
                f"{name} is based on values of a private fit, which are for the curator: they are "
                "not pickled. sample_indices_ and dropped_indices_ are."
            )
        return self._chosen

    def __dir__(self):
        # Notebooks display, and store, all attributes whose names end in "_".
        private = "_chosen" in vars(self) and self._chosen.private
        hidden = {"values_", "report_"} if private else set()
        return [name for name in super().__dir__() if name not in hidden]


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Values of the rows, and the report of dropped ones; neither is pickled if private."""

    values: np.ndarray | None
    report: Bunch | None
    private: bool

    def __getstate__(self):
        return {**vars(self), "values": None, "report": None} if self.private else vars(self)


def _report(values, weights, reason):
    """The rows of weight below one, lowest value first."""
    rows = np.flatnonzero(weights < 1)
    rows = rows[np.argsort(values[rows], kind="stable")]
    reasons = np.full(len(rows), reason)
    return Bunch(row=rows, value=values[rows], weight=weights[rows], reason=reasons)
