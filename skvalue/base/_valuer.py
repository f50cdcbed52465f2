"""Base classes of valuers that can value any row, also rows not passed to `fit`."""

from abc import abstractmethod

import numpy as np

from .._utils.checks import check_length, check_target_scale
from .._utils.sklearn import fit_context
from . import _inference, _updates
from ._containers import n_rows_of, rows_at
from ._in_sample import BaseInSampleValuer
from ._labels import codes_of_new_rows
from ._rows import check_rows


def _codes(problem, y, private):
    """Codes of the labels of new rows, or their targets."""
    if problem.y is None or problem.y.ndim == 1:
        if problem.n_classes:
            return codes_of_new_rows(y, problem.classes, private)
        return check_target_scale(y, "y")
    y, n_outputs = np.asarray(y), problem.y.shape[1]
    if y.shape[1:] != (n_outputs,):
        raise ValueError(f"y must have {n_outputs} columns, as in fit. Got shape {y.shape}.")
    if not problem.n_classes:
        return np.column_stack([check_target_scale(column, "y") for column in y.T])
    return np.column_stack([
        codes_of_new_rows(column, known, private) for column, known in zip(y.T, problem.classes)
    ])  # fmt: skip


class BaseScoringValuer(BaseInSampleValuer):
    """Base class of valuers that can value any row, also rows not passed to `fit`.

    A method implements `_score_new`, and the hooks of `BaseInSampleValuer`.
    """

    @abstractmethod
    def _score_new(self, fitted, number, X, y):
        """Values of new rows, each joining split ``number`` alone; y=None averages over labels."""

    def transform(self, X):
        """Value rows, whether they were in fit or not.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. The value of a row of fit is its fitted value (the mean over identical rows; with
            groups, the value of its group). Any other row has the value that it would have if it
            joined the rows of fit, averaged over labels by the class probabilities of the method.
            After a private fit, which keeps no rows, each row is treated as one that joins.

        Returns
        -------
        values : ndarray of shape (n_rows, 1)
            The values.
        """
        return self.score_samples(X)[:, None]

    def score_samples(self, X, y=None):
        """Value rows, with or without their labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, valued as in `transform`.
        y : array-like of shape (n_rows,), default=None
            Their labels or targets. With None, values are averages over labels.

        Returns
        -------
        values : ndarray of shape (n_rows,)
            The values.

        Raises
        ------
        ValueError
            If y has a label that was not in fit, or another length than X; or if the fit kept
            nothing that new rows can be valued with.
        """
        fitted = self._record("score_samples")
        problem = fitted.problem
        if self._takes.pairwise and problem.has_validation_set:
            raise ValueError(
                "score_samples and transform need the distances of the rows from X_val, which are "
                "no part of X with metric='precomputed'. Use values_, or fit without X_val."
            )
        X = check_rows(self, X, like=problem.splits[0].points.X)
        codes = None
        if y is not None:
            check_length(y, "y", n_rows_of(X))
            codes = _codes(problem, y, fitted.is_private)
        scores, known = fitted.lookup(X, codes)
        new = np.flatnonzero(~known)
        if len(new):
            joined = 0.0
            for number, split in enumerate(problem.splits):
                y_new = None if codes is None else codes[new]
                if codes is not None and split.output is not None:
                    y_new = y_new[:, split.output]
                joined = joined + self._score_new(fitted, number, rows_at(X, new), y_new)
            scores[new] = joined * (problem.joining_fraction / len(problem.splits))
        return scores


class BaseValuer(BaseScoringValuer):
    """Base class of valuers whose values are means over validation points.

    They have standard errors over validation points, contributions of single points, and methods
    that add or remove rows and points after `fit`. A method also implements `_point_values` and
    `_point_moments`.
    """

    @abstractmethod
    def _point_values(self, fitted, number, players):
        """Total value of some players of split ``number`` at each of its points."""

    @abstractmethod
    def _point_moments(self, fitted):
        """Sums over points of ``weight**2 * value`` and of ``weight**2 * value**2``."""

    @property
    def validation_error_(self):
        """Standard error of `values_` over the sampling of the validation points.

        Computed at first access, at the cost of about one more fit. Needs X_val in `fit`.
        """
        fitted = self._record("validation_error_", True, True, AttributeError)
        return _inference.validation_error(fitted, self._point_moments)

    def harmful(self, fdr=0.1):
        """Find rows whose expected value over new validation points is below zero.

        One-sided t tests of the values by their `validation_error_`, with the false discovery rate
        controlled by the procedure of Benjamini and Hochberg (1995). Asymptotic in the number of
        validation points.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate: expected fraction of harmless rows among those found.

        Returns
        -------
        mask : ndarray of bool of shape (n_samples,) or (n_groups,)
            True where the row, or the group, is significantly harmful.

        Raises
        ------
        ValueError
            If no validation set was passed to fit, or `fdr` is not between 0 and 1.

        Warns
        -----
        FewValidationPointsWarning
            If there are fewer than 500 validation points.
        """
        fitted = self._record("harmful", True, True)
        return _inference.harmful(fitted, self._point_moments, fdr)

    def contributions(self, i):
        """Split one value into the contributions of the validation points.

        Parameters
        ----------
        i : int or str
            Position of the row in X, or of the group in `groups_`, or name of the group.

        Returns
        -------
        split : Bunch
            ``contributions``: one entry per row of X_val, or of X if rows are held out in turn;
            their sum is ``values_[i]``. ``supporters`` and ``opponents``: positions of the points
            with positive and with negative contributions, the largest in absolute value first.

        Raises
        ------
        ValueError
            If there is no such row or group.
        """
        fitted = self._record("contributions", True)
        return _inference.contributions(fitted, self._point_values, i)

    @fit_context(prefer_skip_nested_validation=True)
    def add_rows(self, X, y, *, groups=None):
        """Add rows, at the cost of one pass over the distances.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Rows, which are appended to those of fit.
        y : array-like of shape (n_new,)
            Their labels, which may be new, or targets.
        groups : array-like of shape (n_new,), default=None
            Their groups, if groups were passed to fit.

        Returns
        -------
        self : object
            The valuer, as if fitted on all rows.

        Raises
        ------
        ValueError
            If X has other columns, y has another length or labels of another type, or groups are
            passed to only one of `fit` and `add_rows`.
        """
        fitted = self._record("add_rows", True)
        return self._solve(_updates.with_rows(self, fitted.problem, X, y, groups))

    @fit_context(prefer_skip_nested_validation=True)
    def remove_rows(self, rows):
        """Remove rows, at the cost of one pass over the distances.

        Parameters
        ----------
        rows : array-like of int or bool
            Positions of the rows in the X passed to fit, or a mask.

        Returns
        -------
        self : object
            The valuer, as if fitted on the remaining rows.

        Raises
        ------
        ValueError
            If a position is out of range, or fewer than two rows would be left.
        """
        fitted = self._record("remove_rows", True)
        return self._solve(_updates.without_rows(self, fitted.problem, rows))

    @fit_context(prefer_skip_nested_validation=True)
    def add_validation(self, X_val, y_val, *, sample_weight_val=None):
        """Add validation points; only these are compared with the rows.

        (A regression is fitted again, since its empty coalition predicts the mean validation
        target; so is a valuer with `class_weight`, which the new points change.)

        Parameters
        ----------
        X_val : array-like of shape (n_new, n_features)
            Validation points, which are appended to those of fit.
        y_val : array-like of shape (n_new,)
            Their labels or targets.
        sample_weight_val : array-like of shape (n_new,), default=None
            Their weights, on the scale of those of fit; None is 1 each.

        Returns
        -------
        self : object
            The valuer, as if fitted with all validation points.

        Raises
        ------
        ValueError
            If no validation set was passed to fit, or the new points are not like the rows.
        """
        fitted = self._record("add_validation", True, True)
        whole, new = _updates.with_points(self, fitted.problem, X_val, y_val, sample_weight_val)
        if new is None:
            return self._solve(whole)
        return self._solve(
            new, fitted.attributes, lambda result: _updates.merged(whole, fitted.result, result)
        )
