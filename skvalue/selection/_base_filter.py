"""Parameters, checks and fitted attributes of all filters."""

from abc import ABCMeta
from dataclasses import dataclass, replace
from numbers import Integral, Real
from uuid import uuid4

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.validation import check_is_fitted, validate_data

from .._utils.checks import exact_integers, refuse_dict
from .._utils.containers import as_numpy, known_rows
from .._utils.embedding import embed, fit_embedding, learns_from_rows
from .._utils.fits import columns_on, unfitted_copy
from .._utils.sklearn import HasMethods, Interval, RealNotInt, StrOptions
from .._utils.targets import check_task
from .._utils.warned import warn
from ..base import BaseInSampleValuer
from ..exceptions import ParameterError
from ._auto_drop import choose_drop
from ._caps import find_evidence, fitted_probabilities
from ._choice import Rule, is_zero, keep_all, row_weights, select_rows
from ._metadata import TrainingData, given, with_embedded_points
from ._notices import notices
from ._report import Report, make_report
from ._valuer import check_request, fit_valuer, fresh_valuer, warn_not_private


class BaseValueFilter(MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of estimators that drop rows by their values."""

    # The validation set is always requested. Groups are not: they may be meant for
    # other objects.
    __metadata_request__fit = {"X_val": True, "y_val": True, "sample_weight_val": True}

    # Of filters that lack the parameter.
    stratify = False
    mode = "drop"

    # Task of the valuer.
    _task = "auto"

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
        "embedding": [
            HasMethods(["fit", "transform"]),
            callable,
            StrOptions({"auto"}),
            None,
        ],
        "row_metadata": [list, tuple, set, frozenset],
        "memory": [str, HasMethods(["cache"]), None],
        "n_jobs": [Integral, None],
    }

    # Public API -----------------------------------------------------------------------

    @property
    def values_(self):
        """Value of each row; with groups, the value of its group.

        Not available with drop=0.
        """
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

    def _choose(self, X, y, own_params, estimator_params, valuer_params):
        """Value the rows and choose those to drop.

        Returns the rows with their metadata, the choice, and the fitted attributes by
        name. `own_params` are the metadata that the filter itself takes, for the
        valuer.
        """
        # skorch's SliceDict, which an embedding may take, is a dict with a shape.
        if not hasattr(X, "shape"):
            refuse_dict(X)
        X = known_rows(X)
        valuer = fresh_valuer(self.valuer, self._task)

        # A copy of the filter is checked, so that a fit that fails changes nothing.
        blank = unfitted_copy(self)
        validate_data(blank, X, y, skip_check_array=True)
        attributes = columns_on(blank)

        X, y = indexable(X, y)
        y = as_numpy(y)
        if np.ndim(y) == 2:
            y = column_or_1d(exact_integers(y), warn=True)
        valuer_params = {**given(**own_params), **valuer_params}
        if self.embedding is not None:
            _check_public(valuer, self.embedding)
            # It is fitted without y, so that no label leaks.
            embedding = fit_embedding(self.embedding, X, None)
            attributes["embedding_"] = embedding
            X = embed(embedding, X)
            valuer_params = with_embedded_points(valuer_params, embedding)
            estimator_params = with_embedded_points(estimator_params, embedding)
        X = as_numpy(X)
        valuer_params = _all_as_numpy(valuer_params)
        estimator_params = _all_as_numpy(estimator_params)
        data = TrainingData(
            X, y, valuer_params, estimator_params, tuple(self.row_metadata)
        )
        data.check()
        groups = valuer_params.get("groups")
        check_request(self, valuer, valuer_params.get("X_val"), groups, len(y))

        if is_zero(self.drop):
            choice = keep_all(len(y), self.drop)
        else:
            choice, of_valuation = self._value_and_select(blank, valuer, data)
            attributes |= of_valuation
        weights = row_weights(choice, self.mode)
        for message in notices(choice, weights, y, self.mode):
            warn(message)
        report = make_report(choice, weights, y, groups, by_auto=self.drop == "auto")

        values = None if is_zero(self.drop) else choice.row_values
        # In a private fit of this notion, values are released to their owners, not all
        # together.
        privacy = getattr(attributes.get("valuer_"), "privacy_", None)
        attributes |= {
            "drop_": choice.fraction if choice.rule.is_capped else choice.rule.drop,
            "sample_indices_": np.flatnonzero(weights),
            "dropped_indices_": np.flatnonzero(weights == 0),
            "_chosen": ChosenRows(
                values=values,
                report=report,
                is_for_curator=getattr(privacy, "notion", None) == "joint",
                is_private=privacy is not None,
            ),
        }
        return data, choice, attributes

    def _value_and_select(self, blank, valuer, data):
        """The choice, and the attributes of the valuation, by name."""
        if getattr(valuer, "epsilon", None) is not None:
            warn_not_private(valuer, getattr(self, "_family", None))
        fitted = fit_valuer(valuer, data, self.memory)
        attributes = {"valuer_": fitted}
        rule = Rule(
            drop=self.drop,
            has_classes=self._has_classes(fitted, data.y),
            fdr=self.fdr,
            stratify=self.stratify,
        )
        if self.drop == "auto" and rule.has_classes:
            is_capped = fitted_probabilities(fitted) is not None
            rule = replace(rule, is_capped=is_capped)
        if self.drop == "auto" and not rule.is_capped:
            self._check_cross_validated(fitted)
            unfitted = fresh_valuer(self.valuer, self._task)
            drop, scores = choose_drop(blank, unfitted, data, rule)
            attributes["drop_scores_"] = scores
            rule = replace(rule, drop=drop)
        evidence = None
        if rule.stratify or rule.is_capped:
            estimator = getattr(self, "estimator", None)
            evidence = find_evidence(fitted, estimator, data, self.cv)
        groups = data.valuer_params.get("groups")
        choice = select_rows(fitted, data.y, groups, rule, evidence)
        return choice, attributes

    def _check_cross_validated(self, fitted):
        """Refuse drop="auto" if no estimator chooses, and no probabilities do."""
        if self.estimator is None:
            raise ParameterError(
                "drop",
                "must not be 'auto' without an estimator to cross-validate, unless the "
                "valuer is a LabelErrorDetector of classes. Got "
                f"{type(fitted).__name__} and no estimator.",
                "Pass {}.",
                [("estimator", ...)],
            )

    def _has_classes(self, fitted, y):
        """Whether y holds classes; refuses `stratify` if it does not."""
        if self._task == "auto" and isinstance(fitted, BaseInSampleValuer):
            has_classes = hasattr(fitted, "classes_")
        else:
            has_classes = check_task(self._task, y) == "classification"
        if self.stratify and not has_classes:
            raise ParameterError(
                "stratify", "must be False without classes. Got a regression target."
            )
        return has_classes

    def _of_curator(self, name):
        check_is_fitted(self, "_chosen")
        entry = getattr(self._chosen, name.strip("_"))
        if entry is None and is_zero(self.drop_):
            raise AttributeError(
                f"{name} is not available with drop=0: rows are not valued."
            )
        if entry is None:
            raise AttributeError(
                f"{name} is based on a private fit, and is for the curator: it is not "
                "pickled. sample_indices_ and dropped_indices_ are."
            )
        return entry

    def __sklearn_clone__(self):
        # The clones of a search have a common name, so that it warns once that its
        # models are not private.
        clone = super().__sklearn_clone__()
        clone._family = vars(self).setdefault("_family", uuid4().hex)
        return clone

    def __dir__(self):
        # Notebooks display, and store, all attributes whose names end in "_".
        hidden = self._chosen.hidden if "_chosen" in vars(self) else set()
        return [name for name in super().__dir__() if name not in hidden]


def _all_as_numpy(params):
    """The metadata, with tensors and the like as arrays of numpy."""
    return {name: as_numpy(value) for name, value in params.items()}


def allow_any_columns(tags):
    """Let the tags say that columns of any kind, with missing entries, are taken."""
    tags.input_tags.allow_nan = True
    tags.input_tags.categorical = True
    tags.input_tags.string = True


def _check_public(valuer, embedding):
    """Refuse an embedding that learns from the rows of a private valuer."""
    if getattr(valuer, "epsilon", None) is not None and learns_from_rows(embedding):
        raise ParameterError(
            "embedding",
            "must not learn from the private rows: with a private valuer, pass a "
            "callable, a stateless transformer, or FrozenEstimator(transformer) fitted "
            f"on public data. Got {embedding!r}.",
        )


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Values of the rows, and the report of dropped ones, which has labels.

    Values `is_for_curator` are not pickled, nor is a report that `is_private`.
    """

    values: np.ndarray | None
    report: Report | None
    is_for_curator: bool = False
    is_private: bool = False

    @property
    def hidden(self):
        """Names of the properties of the filter that `dir` leaves out."""
        if self.is_for_curator:
            return {"values_", "report_"}
        if self.values is None:
            return {"values_"}
        return set()

    def __getstate__(self):
        state = dict(vars(self))
        if self.is_for_curator:
            state["values"] = None
        if self.is_private:
            state["report"] = None
        return state
