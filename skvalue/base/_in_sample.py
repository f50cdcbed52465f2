"""The contract of a valuer of the rows in fit, once."""

import warnings
from abc import ABCMeta, abstractmethod
from contextlib import closing

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from .._utils.fits import swap_in
from .._utils.progress import Progress
from .._utils.sklearn import fit_context
from ..exceptions import IncompleteFitWarning
from ._problem import Takes, make_problem
from ._record import Fitted
from ._release import EXACT


class BaseInSampleValuer(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base class of valuers that give each row of the data set in `fit` a value.

    A method writes `_parts` and `_combine`, and `_prepare` and `_release` where it needs them.
    Everything that all methods share (validation set, cross-validation, groups, callbacks, metadata
    routing, `set_output`) is here.
    """

    _parameter_constraints: dict = {}
    _takes = Takes()
    epsilon = noise_multiplier = reader = None  # of methods that lack these parameters

    # What a method writes -------------------------------------------------------------------

    def _prepare(self, problem):
        """Refuse parameters that do not fit the problem, before any work.

        Returns what follows from them by name, such as ``{"radius_": 0.5}``: it is passed to the
        next hooks, and kept in the record. Names that end in an underscore are set on the
        estimator once the fit is done.
        """
        return {}

    def _release(self, problem, attributes):
        """`EXACT`, or a `Release` with its event and report. Draws nothing."""
        return EXACT

    @abstractmethod
    def _parts(self, problem, attributes, release):
        """The computation as an iterator of parts, and their number, or None if it is not known.

        Parts that do not depend on each other come from `ordered_map`; a computation that goes step
        by step is a generator of its state so far.
        """

    @abstractmethod
    def _combine(self, problem, attributes, parts):
        """Values from the parts, which end early if the fit is stopped.

        Parameters
        ----------
        problem : Problem
            What the fit is about.
        attributes : dict
            What `_prepare` returned.
        parts : Progress
            The parts; ``parts.stopped`` and ``parts.interrupted`` say whether they ended early.

        Returns
        -------
        result : Result or None
            None if there was no part.
        """

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
            Validation points, on which the rows are valued. Without them `cv` says which rows are
            held out to value which others.
        y_val : array-like of shape (n_validation,), default=None
            Labels of the validation points; passed together with `X_val`.
        groups : array-like of shape (n_samples,), default=None
            Group of each row; `values_` then has one entry a group.
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
        return self._solve(
            make_problem(
                self, X, y, X_val, y_val, groups=groups, sample_weight_val=sample_weight_val
            )
        )

    def fit_transform(self, X, y, **metadata):
        """Fit and return the value of each row, in the order of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to value.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        **metadata : array-likes
            What else `fit` takes, such as `X_val`, `y_val` and `groups`.

        Returns
        -------
        values : ndarray of shape (n_samples, 1)
            The value of the row, or of its group.

        Raises
        ------
        ValueError
            As in `fit`; with epsilon, unless the reader is "curator".
        """
        if self._is_private and not self._takes.values_are_public and self.reader != "curator":
            raise ValueError(
                "reader must be 'curator' for fit_transform with epsilon: the values of all rows "
                "side by side tell their reader about every row. Use fit and values_for(i) for "
                "owners, or pass reader='curator' if the reader holds the rows anyway. Got "
                f"reader={self.reader!r}."
            )
        if self._is_private and self._takes.fit_transform_error:
            raise ValueError(self._takes.fit_transform_error)
        return self.fit(X, y, **metadata)._fitted.row_values[:, None].copy()

    @property
    def values_(self):
        """Values of the rows, or of the groups; those of a private fit are not pickled."""
        check_is_fitted(self, "_fitted")
        if self._fitted.result.values is None:
            raise AttributeError(
                "values_ of a private fit is for the curator: it is not pickled, nor is it there "
                "without its rows. score_samples(X, y) values rows from what was released."
            )
        return self._fitted.result.values

    @property
    def groups_(self):
        """The groups, if `groups` was passed; those of a private fit are not pickled."""
        check_is_fitted(self, "_fitted")
        fitted = self._fitted
        if fitted.problem.group_names is None:
            lost = fitted.hides_values and fitted.result.values is None
            raise AttributeError(
                "groups_ of a private fit is for the curator, and is not pickled."
                if lost
                else f"{type(self).__name__} has no groups_: no groups were passed to fit."
            )
        return fitted.problem.group_names

    def values_for(self, i):
        """Value of one row, as its owner may see it.

        After a private fit it protects all other rows, also when their owners pool what they see
        (joint differential privacy); the row's own record is not hidden from its own owner. Where
        fit released nothing (`release="query"`), this is the release: the ledger is charged, noise
        is drawn, and the answer is kept, so that a second call costs nothing.

        Parameters
        ----------
        i : int
            Position of the row in the X of fit, or of the group in `groups_`.

        Returns
        -------
        value : float
            The value.

        Raises
        ------
        ValueError
            If there is no row, or group, i; or a release is refused.
        AttributeError
            If the valuer was fitted privately and pickled since: values are not pickled.
        """
        values = self.values_
        if not -len(values) <= i < len(values):
            raise ValueError(f"i must be between 0 and {len(values) - 1}. Got {i}.")
        if self._fitted.release.by_query:
            values[i] = self._fitted.statistic.answer(int(i) % len(values))
        return float(values[i])

    # Plumbing -------------------------------------------------------------------------------

    @property
    def _is_private(self):
        return self.epsilon is not None or self.noise_multiplier is not None

    def _solve(self, problem, attributes=None, finish=lambda result: result):
        """From a validated problem to a fitted estimator.

        ``attributes`` are those of a former fit that stay; ``finish`` is applied to the result.
        """
        if attributes is None:
            attributes = self._prepare(problem)
        release = self._release(problem, attributes)
        parts, n_parts = self._parts(problem, attributes, release)
        with closing(Progress(self, parts, n_parts, self._takes.part)) as progress:
            result = self._combine(problem, attributes, progress)
        if result is None and progress.interrupted:
            raise KeyboardInterrupt
        if result is None:
            raise RuntimeError(
                "The fit was stopped by a callback before there was a value to keep."
            )
        self._swap_in(finish(result), attributes, release)
        progress.end()
        # The values are set by now, and stay whatever is raised here.
        if result.error is not None:
            raise result.error
        if progress.interrupted:
            raise KeyboardInterrupt
        if result.warn is not None:
            result.warn()
        if progress.stopped:
            warnings.warn(
                "The fit was stopped by a callback: the values are based on the "
                f"{self._takes.done} until then.",
                IncompleteFitWarning,
                stacklevel=4,
            )
        return self

    def _swap_in(self, result, attributes, release):
        """Replace all that the former fit has set by the record of this one."""
        fitted, problem = Fitted.of(result, attributes, release), result.problem
        public = {
            "classes_": problem.classes,
            "utility_": result.utility,
            "empty_utility_": result.empty_utility,
            "privacy_": release.report,
            **problem.columns,
            **attributes,
            **result.attributes,
        }
        # `None` is a value of some attributes of methods, and the absence of the others.
        absent = {name for name in ("classes_", "privacy_") if public[name] is None}
        shown = {k: v for k, v in public.items() if k.endswith("_") and k not in absent}
        swap_in(self, **shown, _fitted=fitted, _n_features_out=1)

    def _record(self, what, needs_rows=False, needs_points=False, error=ValueError):
        """The record of the fit, if it has what is asked for."""
        check_is_fitted(self, "_fitted")
        if needs_rows and self._fitted.is_private:
            raise error(
                f"{what} needs the rows of fit, which a private fit does not keep. Fit again (a "
                "release of its own), or fit with epsilon=None where no privacy is needed."
            )
        if needs_points and not self._fitted.problem.has_validation_set:
            raise error(
                f"{what} needs validation points of their own: pass X_val and y_val to fit."
            )
        return self._fitted

    def __dir__(self):
        # Notebooks show every member whose name ends in "_", and so compute every property; so does
        # scikit-learn's own __dir__, which leaves out what raises AttributeError.
        hidden = {"validation_error_"}
        if "_fitted" in vars(self) and self._fitted.hides_values:
            hidden |= {"values_", "groups_"}
        names = (name for name in object.__dir__(self) if name not in hidden)
        return [name for name in names if hasattr(self, name)]

    def __getstate__(self):
        state = super().__getstate__()
        if "_fitted" in state and state["_fitted"].is_private and "noise_random_state" in state:
            state = {**state, "noise_random_state": None}  # a seed would take the noise off again
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.transformer_tags.preserves_dtype = []
        return tags
