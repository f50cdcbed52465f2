"""The contract of valuers of any row, in fit or not."""

from abc import abstractmethod

import numpy as np

from .._utils.checks import check_length, check_target_scale
from .._utils.sklearn import fit_context
from . import _inference, _updates
from ._in_sample import BaseInSampleValuer
from ._labels import known_codes
from ._rows import check_rows


class BaseScoringValuer(BaseInSampleValuer):
    """Base class of valuers that value any row, in fit or not.

    A method writes `_score_new` beside what `BaseInSampleValuer` asks for.
    """

    @abstractmethod
    def _score_new(self, fitted, number, X, y):
        """Values of new rows, each joining the split of this number alone; y None averages."""

    def transform(self, X):
        """Value rows: a row of fit has its fitted value, any other the one it would have.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. One that was in fit has its fitted value (the mean, if it was there more than
            once; with groups, its group's). Any other has the value it would have if it joined,
            averaged over labels by the method's own class probabilities. After a private fit, which
            keeps no row, each row is one that joins.

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
            If y has a label that fit has not seen, or another length than X; or the fit kept
            nothing to value rows by.
        """
        fitted = self._record("score_samples")
        problem = fitted.problem
        X = check_rows(self, X, like=problem.splits[0].points.X)
        codes = None
        if y is not None:
            check_length(y, "y", len(X))
            if problem.n_classes:
                codes = known_codes(y, problem.classes, fitted.is_private)
            else:
                codes = check_target_scale(y, "y")
        scores, known = fitted.lookup(X, codes)
        new = np.flatnonzero(~known)
        if len(new):
            y_new = None if codes is None else codes[new]
            joined = sum(
                self._score_new(fitted, number, X[new], y_new)
                for number in range(len(problem.splits))
            )
            scores[new] = joined * (problem.joining_fraction / len(problem.splits))
        return scores


class BaseValuer(BaseScoringValuer):
    """Base class of valuers whose values are means over validation points.

    They say how sure a value is, split it over the points, and follow rows and points that come or
    go after `fit`. A method writes `_point_values` and `_point_moments` beside the rest.
    """

    @abstractmethod
    def _point_values(self, fitted, number, players):
        """Value of some players of a split together at each of its points."""

    @abstractmethod
    def _point_moments(self, fitted):
        """Sums over points of squared weight times value, and times squared value."""

    @property
    def validation_error_(self):
        """Standard error of `values_` over the draw of the validation points.

        Computed when first asked for, at the cost of about one more fit. Needs X_val in `fit`.
        """
        fitted = self._record("validation_error_", True, True, AttributeError)
        return _inference.validation_error(fitted, self._point_moments)

    def harmful(self, fdr=0.1):
        """Rows whose expected value over fresh validation points is below zero.

        A one-sided t test of every row's value against its `validation_error_`, with the
        false discovery rate held by Benjamini and Hochberg (1995). Asymptotic in the number of
        validation points.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate: expected fraction of harmless rows among those returned.

        Returns
        -------
        mask : ndarray of bool of shape (n_samples,) or (n_groups,)
            True where the row, or the group, is significantly harmful.

        Raises
        ------
        ValueError
            If fit had no validation set, or `fdr` is not between 0 and 1.

        Warns
        -----
        FewValidationPointsWarning
            If there are fewer than 500 validation points.
        """
        fitted = self._record("harmful", True, True)
        return _inference.harmful(fitted, self._point_moments, fdr)

    def contributions(self, i):
        """Split one value over the validation points, to see why it is low.

        Parameters
        ----------
        i : int
            Position of the row in X, or of the group in `groups_`.

        Returns
        -------
        split : Bunch
            ``contributions``: what each validation point adds, which sums to ``values_[i]``; one
            entry a row of X_val, or of X where rows are held out in turn. ``supporters`` and
            ``opponents``: positions of the points that count for and against it, the strongest
            first.

        Raises
        ------
        ValueError
            If there is no row, or group, i.
        """
        fitted = self._record("contributions", True)
        return _inference.contributions(fitted, self._point_values, i)

    @fit_context(prefer_skip_nested_validation=True)
    def add_rows(self, X, y, *, groups=None):
        """Add rows, at the cost of one pass over the distances.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Rows, which come after those of fit.
        y : array-like of shape (n_new,)
            Their labels, new ones too, or targets.
        groups : array-like of shape (n_new,), default=None
            Their groups, if fit had groups.

        Returns
        -------
        self : object
            The valuer, as if fitted on all rows.

        Raises
        ------
        ValueError
            If X has other columns, y another length or labels of another kind, or groups are passed
            to one of `fit` and `add_rows` only.
        """
        fitted = self._record("add_rows", True)
        return self._solve(_updates.with_rows(self, fitted.problem, X, y, groups))

    @fit_context(prefer_skip_nested_validation=True)
    def remove_rows(self, rows):
        """Remove rows, at the cost of one pass over the distances.

        Parameters
        ----------
        rows : array-like of int or bool
            Positions of the rows in the X of fit, or a mask over them.

        Returns
        -------
        self : object
            The valuer, as if fitted on the remaining rows.

        Raises
        ------
        ValueError
            If a position is out of range, or fewer than two rows would remain.
        """
        fitted = self._record("remove_rows", True)
        return self._solve(_updates.without_rows(self, fitted.problem, rows))

    @fit_context(prefer_skip_nested_validation=True)
    def add_validation(self, X_val, y_val, *, sample_weight_val=None):
        """Add validation points; only they are compared with the rows.

        (A regression game is fitted again, since its empty coalition predicts the mean validation
        target.)

        Parameters
        ----------
        X_val : array-like of shape (n_new, n_features)
            Validation points, which come after those of fit.
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
            If fit had no validation set, or the new points do not fit the rows.
        """
        fitted = self._record("add_validation", True, True)
        whole, new = _updates.with_points(self, fitted.problem, X_val, y_val, sample_weight_val)
        if new is None:
            return self._solve(whole)
        return self._solve(
            new, fitted.attributes, lambda result: _updates.merged(whole, fitted.result, result)
        )
