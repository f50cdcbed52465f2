"""Parameters, checks and fitted attributes of all filters."""

from abc import ABCMeta
from dataclasses import dataclass
from numbers import Integral, Real
from uuid import uuid4

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.validation import check_is_fitted, validate_data

from .._utils.checks import check_length, refuse_dict
from .._utils.fits import columns_on, unfitted_copy
from .._utils.sklearn import HasMethods, Interval, RealNotInt, StrOptions
from .._utils.targets import check_task
from .._utils.warned import warn
from ..base import BaseInSampleValuer
from ._auto_drop import choose_drop
from ._choice import is_zero, keep_all, lower_weights, select_rows
from ._metadata import given
from ._report import Report, make_report, notices
from ._valuer import check_request, fit_valuer, fresh_valuer, warn_not_private


class BaseValueFilter(MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of estimators that drop rows by their values."""

    # The validation set is always requested; groups are not, they may be meant for
    # other objects.
    __metadata_request__fit = {"X_val": True, "y_val": True, "sample_weight_val": True}
    stratify, mode = False, "drop"  # of filters that lack the parameter
    _task = "auto"  # of the valuer

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

    # Public API -----------------------------------------------------------------------

    @property
    def values_(self):
        """Value of each row; with groups, the value of its group. Not available with
        drop=0."""
        return self._of_curator("values_")

    @property
    def report_(self):
        """The rows that were dropped or whose weight was lowered, to be inspected.

        A `Bunch` of arrays, lowest value first: ``row`` (index in X), ``y`` (its label
        or target), ``group`` (if groups were passed), ``value``, ``weight`` (0 for a
        dropped row) and ``reason``. ``pandas.DataFrame(report_)`` makes it a table;
        printed, it is a short one.
        """
        return self._of_curator("report_")

    # Private --------------------------------------------------------------------------

    def _choose(self, X, y, passed, params, of_valuer):
        """Value the rows and choose those to drop.

        Returns indexable X and y, the choice, and the fitted attributes by name.
        """
        if not hasattr(
            X, "shape"
        ):  # as skorch's SliceDict has, which an embedding may take
            refuse_dict(X)
        valuer = fresh_valuer(self.valuer, self._task)
        blank = unfitted_copy(self)  # a fit that fails changes nothing
        validate_data(blank, X, y, skip_check_array=True)
        attributes = columns_on(blank)
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True) if np.ndim(y) == 2 else y
        valuer_params = {**given(**passed), **of_valuer}
        for weights in (
            params.get("sample_weight"),
            valuer_params.get("sample_weight"),
        ):
            if np.ndim(weights):  # other lengths would not be cut with the rows
                check_length(weights, "sample_weight", len(y))
        groups = valuer_params.get("groups")
        check_request(self, valuer, valuer_params.get("X_val"), groups, len(y))
        drop, chosen, fitted = self.drop, "", None
        choice, weights = keep_all(len(y)), np.ones(len(y))
        if not is_zero(drop):
            if getattr(valuer, "epsilon", None) is not None:
                warn_not_private(valuer, getattr(self, "_family", None))
            fitted = fit_valuer(valuer, X, y, valuer_params, self.memory)
            classes = self._holds_classes(fitted, y)
            if drop == "auto":
                drop, attributes["drop_scores_"] = choose_drop(
                    blank, fresh_valuer(self.valuer, self._task), X, y,
                    valuer_params=valuer_params, params=params, classes=classes,
                )  # fmt: skip
                chosen = f" (drop={drop} chosen by 'auto')"
            rule = {"classes": classes, "groups": groups, "stratify": self.stratify}
            choice = select_rows(fitted, drop, y, fdr=self.fdr, **rule)
            weights = (
                lower_weights(choice)
                if self.mode == "weight"
                else 1.0 - choice.dropped_rows
            )
            for message in notices(
                choice, weights, y, drop=drop, mode=self.mode, **rule
            ):
                warn(message)
            attributes["valuer_"] = fitted
        report = make_report(
            choice, weights, y, drop=drop, groups=groups, fdr=self.fdr, chosen=chosen
        )
        # In a private fit of this notion, values are released to their owners, not all
        # together.
        privacy = getattr(fitted, "privacy_", None)
        curator = getattr(privacy, "notion", None) == "joint"
        values = None if fitted is None else choice.values[choice.players]
        attributes |= {
            "drop_": drop,
            "sample_indices_": np.flatnonzero(weights),
            "dropped_indices_": np.flatnonzero(weights == 0),
            "_chosen": ChosenRows(values, report, curator, privacy is not None),
        }
        return X, y, choice, attributes

    def _holds_classes(self, fitted, y):
        """Whether y holds classes; refuses `stratify` if it does not."""
        if self._task == "auto" and isinstance(fitted, BaseInSampleValuer):
            classes = hasattr(fitted, "classes_")
        else:
            classes = check_task(self._task, y) == "classification"
        if self.stratify and not classes:
            raise ValueError("stratify=True needs classes. Got a regression target.")
        return classes

    def _of_curator(self, name):
        check_is_fitted(self, "_chosen")
        entry = getattr(self._chosen, name.strip("_"))
        if entry is None and is_zero(self.drop_):
            raise AttributeError(
                f"{name} is not available with drop=0: rows are not valued."
            )
        if entry is None:
            raise AttributeError(
                f"{name} is based on a private fit, and is for the curator: it is not pickled. "
                "sample_indices_ and dropped_indices_ are."
            )
        return entry

    def __sklearn_clone__(self):
        # A search warns once that its models are not private: the clones have a common
        # name.
        clone = super().__sklearn_clone__()
        clone._family = vars(self).setdefault("_family", uuid4().hex)
        return clone

    def __dir__(self):
        # Notebooks display, and store, all attributes whose names end in "_".
        hidden = self._chosen.hidden if "_chosen" in vars(self) else set()
        return [name for name in super().__dir__() if name not in hidden]


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Values of the rows, and the report of dropped ones, which has labels."""

    values: np.ndarray | None
    report: Report | None
    for_curator: bool = False  # the values are not pickled
    private: bool = False  # the report is not pickled

    @property
    def hidden(self):
        """Names of the properties of the filter that `dir` leaves out."""
        if self.for_curator:
            return {"values_", "report_"}
        return {"values_"} if self.values is None else set()

    def __getstate__(self):
        values = None if self.for_curator else self.values
        return {
            **vars(self),
            "values": values,
            "report": None if self.private else self.report,
        }
