"""Base class of valuers of the rows passed to `fit`."""

from abc import ABCMeta, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from .._utils.fits import follows_interrupt, set_fitted_state
from .._utils.private_entries import quiet_arithmetic
from .._utils.sklearn import fit_context
from ._capabilities import Capabilities
from ._input import make_problem
from ._parameters import changes_since, parameters_of
from ._privacy import PrivacyParameters
from ._run import Run
from ._updates import merged


class _MethodOfUnseenRows:
    """A method that valuers of the rows of fit alone do not have.

    Its AttributeError says what to use. It is raised on the class too, for
    scikit-learn's `set_output` to find no method: the decorator `available_if` raises
    its error on objects only.
    """

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, valuer, cls):
        raise AttributeError(
            f"{cls.__name__} has no {self._name}: it values the rows of fit alone. Fit "
            "again with the new rows among the others, or take a method that values "
            "unseen rows, such as KNNShapleyValuer, InfluenceValuer or "
            "InRunShapleyValuer."
        )


class BaseInSampleValuer(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base class of valuers that compute a value for each row passed to `fit`.

    A method implements `_value`. What all methods have in common (validation set,
    cross-validation, groups, callbacks, metadata routing, `set_output`) is here.
    """

    _parameter_constraints: dict = {}
    _capabilities = Capabilities()
    # Set by `fit`.
    utility_: float
    empty_utility_: float
    if not TYPE_CHECKING:
        transform = _MethodOfUnseenRows()
        score_samples = _MethodOfUnseenRows()

    # The hook -------------------------------------------------------------------------

    @abstractmethod
    def _value(self, problem, run):
        """Value the players of a problem, in a loop in steps of the `Run`.

        Returns a `Result`, or None if the loop ended before there were values. It
        begins with the checks of parameters that depend on the data, and sets no
        attribute of ``self``.
        """

    # Public methods -------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None):
        """Value the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to value.
        y : array-like of shape (n_samples,)
            Their labels (numbers, booleans, strings, dates or categories), or targets
            if the method supports regression.
        X_val : array-like of shape (n_validation, n_features), default=None
            Validation points, on which utilities are computed. Without them, rows are
            held out as `cv` says, and the other rows are valued on those.
        y_val : array-like of shape (n_validation,), default=None
            Labels of the validation points; passed together with `X_val`. In the games
            of neighbours, a label that no row has is one more class; other methods
            refuse it.
        groups : array-like of shape (n_samples,), default=None
            Group of each row; `values_` then has one entry per group.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weights of the validation points, for the mean utility.

        Returns
        -------
        self : object
            The fitted valuer.

        Raises
        ------
        ValueError
            If X or X_val contain NaN or infinity, y has one class or targets too large
            to be squared, y_val has a label that the method refuses, only one of X_val
            and y_val is passed or they are empty, groups or sample_weight_val have a
            wrong length, or rows are not equally often players in the splits of `cv`.
        """
        with quiet_arithmetic(self._is_private):
            problem = make_problem(
                self,
                X,
                y,
                X_val,
                y_val,
                groups=groups,
                sample_weight_val=sample_weight_val,
            )
            return self._solve(problem)

    def fit_transform(self, X, y, **metadata):
        """Fit and return the value of each row, in the order of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to value.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        **metadata : array-likes
            Other parameters of `fit`, such as `X_val`, `y_val` and `groups`.

        Returns
        -------
        values : ndarray of shape (n_samples, 1)
            The value of the row, or of its group.

        Raises
        ------
        ValueError
            As in `fit`; also with epsilon, unless the reader is "curator".
        """
        capabilities = self._capabilities
        if self._is_private and not capabilities.values_are_public:
            reader = PrivacyParameters.of(self).reader
            if reader != "curator":
                raise ValueError(
                    "reader must be 'curator' for fit_transform with epsilon: the "
                    "values of all rows together reveal something about each of them. "
                    "Use fit and values_for(i) for owners, or pass reader='curator' if "
                    f"the reader has the rows anyway. Got reader={reader!r}."
                )
        if self._is_private and capabilities.fit_transform_error:
            raise ValueError(capabilities.fit_transform_error)
        fitted = self.fit(X, y, **metadata)._fitted
        return fitted.row_values[:, None].copy()

    @property
    def values_(self):
        """Values of the rows, or of the groups; a private fit's are not pickled."""
        check_is_fitted(self, "_fitted")
        return self._entry_or_error(
            "values_", self._fitted.values, self._fitted.pending
        )

    @property
    def groups_(self):
        """The groups, if `groups` was passed; a private fit's are not pickled."""
        check_is_fitted(self, "_fitted")
        return self._entry_or_error(
            "groups_",
            self._fitted.problem.group_names,
            f"{type(self).__name__} has no groups_: no groups were passed to fit.",
        )

    def values_for(self, i, *, return_baseline=False, return_error=False):
        """Value of one row, as its owner may see it.

        After a private fit the value protects all other rows, even against several
        owners who combine their values (joint differential privacy); it does not hide a
        row from its owner. If fit released nothing (`release="query"`), this call is
        the release: the ledger is charged, noise is drawn, and the value is stored, so
        that a second call costs nothing.

        Parameters
        ----------
        i : int or str
            Position of the row in the X passed to fit, or of the group in `groups_`, or
            name of the group.
        return_baseline : bool, default=False
            Whether to return its entry of `baseline_` too: the part of a private value
            that costs nothing, because it depends on public points and on the row
            alone.
        return_error : bool, default=False
            Whether to return its entry of `values_error_` too.

        Returns
        -------
        value : float
            The value.
        baseline : float
            The baseline, if `return_baseline` is set.
        error : float
            The standard error, if `return_error` is set.

        Raises
        ------
        ValueError
            If there is no such row or group, the release is refused, or the fit has no
            baseline or no standard errors.
        AttributeError
            If the valuer was fitted with epsilon and then pickled: values are not
            pickled.
        """
        values = self.values_
        i = self._fitted.problem.position(i, len(values))
        if self._fitted.answers is not None:
            with quiet_arithmetic():
                values[i] = self._fitted.answers.answer(i)
        entries = [float(values[i])]
        if return_baseline:
            entries.append(self._entry_of_player("baseline_", i))
        if return_error:
            entries.append(self._entry_of_player("values_error_", i))
        return tuple(entries) if len(entries) > 1 else entries[0]

    # Fits and their records -----------------------------------------------------------

    @property
    def _is_private(self):
        return PrivacyParameters.of(self).is_private

    def _solve(self, problem, full_problem=None):
        """Value the players of a validated problem, and replace the former record.

        With `full_problem`, the problem has the new validation points of that one, and
        the result is merged with the former.
        """
        run = Run(self)
        try:
            result = self._value(problem, run)
        except Exception as error:
            if follows_interrupt(error):
                raise KeyboardInterrupt from error
            raise
        if result is None and run.interrupted:
            raise KeyboardInterrupt
        if result is None:
            raise RuntimeError(
                "The fit was stopped by a callback before any value was computed."
            )
        if full_problem is None:
            self._replace_record(result)
        else:
            self._replace_record(merged(full_problem, self._fitted, result))
        run.end(result)
        return self

    def _replace_record(self, result):
        """Replace everything set by the former fit by a record of this one."""
        problem = result.problem
        release = result.release
        attributes = {}
        if problem.classes is not None:
            attributes["classes_"] = problem.classes
        if result.values is not None:
            attributes["utility_"] = result.utility
            attributes["empty_utility_"] = result.empty_utility
        if release is not None and release.report is not None:
            attributes["privacy_"] = release.report
        attributes |= problem.columns | result.attributes

        # A class may compute an attribute when it is read.
        public = {
            name: value
            for name, value in attributes.items()
            if name.endswith("_") and not self._is_computed(name)
        }
        if release is not None:  # a private fit keeps no rows
            problem = replace(problem, X=None, y=None, sample_weight=None)
        parameters = parameters_of(self)
        fitted = replace(result, problem=problem, error=None, parameters=parameters)
        set_fitted_state(self, **public, _fitted=fitted, _n_features_out=1)

    def _record(
        self,
        what,
        *,
        needs_rows=False,
        needs_points=False,
        needs_parameters=False,
        error=ValueError,
    ):
        """The record of the fit; refuses what needs rows or points that it lacks.

        What is computed by parameters of the valuer needs those of the fit: with others
        it would be of another game than the values.
        """
        check_is_fitted(self, "_fitted")
        changes = ""
        if needs_parameters:
            changes = changes_since(self, self._fitted.parameters)
        if changes:
            raise error(
                f"{what} needs the parameters of fit, or it would not be that of "
                f"values_. Since then, {changes}. Fit again, or set them back."
            )
        problem = self._fitted.problem
        if needs_rows and self._fitted.is_private:
            raise error(
                f"{what} needs the rows of fit, which a private fit does not keep. Fit "
                "again (a new release), or fit with epsilon=None where no privacy is "
                "needed."
            )
        if needs_rows and problem.copies is not None:
            raise error(f"{what} needs duplicates=None: copies do not play.")
        if needs_points and not problem.has_validation_set:
            raise error(f"{what} needs a validation set: pass X_val and y_val to fit.")
        return self._fitted

    def _entry_or_error(self, name, entry, message=""):
        """An entry of the record; an error if it is None.

        The message is for a fit that has no such entry, and not for one whose values
        were dropped by pickling.
        """
        if entry is not None:
            return entry
        fitted = self._fitted
        if fitted.hides_values and fitted.values is None and not fitted.pending:
            message = (
                f"{name} of a private fit is for the curator only and is not pickled."
            )
        raise AttributeError(message)

    def _for_curator(self, name):
        """An array of the players that is hidden as the values of a private fit are."""
        fitted = self._record(name, error=AttributeError)
        return self._entry_or_error(
            name,
            fitted.curator.get(name),
            f"{name} is set by private fits only: pass epsilon.",
        )

    def _entry_of_player(self, name, i):
        """The entry of one player in an attribute, which the fit may not have."""
        if not hasattr(self, name):
            raise ValueError(
                f"This fit of {type(self).__name__} has no {name} to return."
            )
        return float(getattr(self, name)[i])

    # What Python and scikit-learn ask for ---------------------------------------------

    @classmethod
    def _is_computed(cls, name):
        """Whether an attribute is a property of the class."""
        return isinstance(getattr(cls, name, None), property)

    def __dir__(self):
        # Notebooks show each member whose name ends with "_", and so compute each
        # property; so does scikit-learn's __dir__, which leaves out what raises
        # AttributeError.
        errors = ("validation_error_", "values_error_")
        hidden = {name for name in errors if self._is_computed(name)}
        if "_fitted" in vars(self) and self._fitted.hides_values:
            hidden |= {"values_", "groups_", *self._fitted.curator}
        shown = [name for name in object.__dir__(self) if name not in hidden]
        return [name for name in shown if hasattr(self, name)]

    def __getstate__(self):
        state = super().__getstate__()
        is_private = "_fitted" in state and state["_fitted"].is_private
        # With the seed the noise could be removed.
        if is_private and "noise_random_state" in state:
            return {**state, "noise_random_state": None}
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.transformer_tags.preserves_dtype = []
        return tags
