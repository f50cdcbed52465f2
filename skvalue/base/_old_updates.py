"""Rows and validation points that come or go after fit."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._utils.checks import (
    check_task,
    label_codes,
    raw_validation_weights,
)
from .._utils.fits import former_fit_kept
from .._utils.sklearn import fit_context
from ..neighbors import concatenate_rows
from ._old_judges import Judges, Progress, with_one_plan
from ._rows import check_rows, check_validation_set


def _joined(before, new, name):
    """Both arrays in one; numpy would make strings of numbers that are joined by strings."""
    kinds = {before.dtype.kind, new.dtype.kind}
    if len(kinds) > 1 and "U" in kinds and "O" not in kinds:
        raise ValueError(
            f"{name} must be of the kind that fit had ({before.dtype}). Got {new.dtype}."
        )
    return np.concatenate([before, new])


class UpdatesMixin:
    """Changes of the data of a fitted valuer; each leaves what a fit on the new data would."""

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
        check_is_fitted(self)
        self._refuse_if_private("add_rows")
        X = check_rows(self, X, like=self._X)
        y = np.asarray(y)
        if len(y) != len(X):
            raise ValueError(f"y must have one entry a row of X ({len(X)}). Got {len(y)}.")
        if (groups is None) != (self._groups is None):
            raise ValueError("groups must be passed to both fit and add_rows, or to neither.")
        if groups is not None:
            groups = _joined(self.groups_[self._groups], np.asarray(groups), "groups")
        stay = np.ones(len(self._X), dtype=bool)
        y = _joined(self._labels(self._y), y, "y")
        return self._refit(concatenate_rows(self._X, X), y, groups, stay)

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
        check_is_fitted(self)
        self._refuse_if_private("remove_rows")
        n, rows = len(self._X), np.asarray(rows)
        if rows.size and rows.dtype.kind not in "iub":
            raise ValueError(f"rows must be positions or a mask. Got entries of {rows.dtype}.")
        if rows.dtype == bool and len(rows) != n:
            raise ValueError(f"rows must have one entry a row of fit ({n}). Got {len(rows)}.")
        if rows.dtype != bool and rows.size and not (-n <= rows.min() and rows.max() < n):
            raise ValueError(
                f"rows must be between 0 and {n - 1}. Got {rows.min()} to {rows.max()}."
            )
        keep = np.ones(n, dtype=bool)
        keep[rows if rows.size else []] = False
        if keep.sum() < 2:
            raise ValueError(f"rows must leave at least 2 rows. Got {keep.sum()} of {n}.")
        groups = None if self._groups is None else self.groups_[self._groups][keep]
        return self._refit(self._X[keep], self._labels(self._y)[keep], groups, keep)

    @fit_context(prefer_skip_nested_validation=True)
    @with_one_plan
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
        old = self._explicit_judges("add_validation", ValueError)
        X_val, y_val = check_validation_set(self, X_val, y_val, self._X)
        weights = [
            raw_validation_weights(given, len(points))
            for points, given in [(old.y, self._judge_weights), (y_val, sample_weight_val)]
        ]
        both = np.concatenate(weights)
        if not self._n_classes:
            return self._refit(
                self._X, self._y, None if self._groups is None else self.groups_[self._groups],
                np.ones(len(self._X), dtype=bool), X_val=concatenate_rows(old.X, X_val),
                y_val=np.concatenate([old.y, y_val]), sample_weight_val=both,
            )  # fmt: skip
        new = Judges(
            X_val,
            label_codes(y_val, self.classes_, "y_val"),
            weights[1] / both.sum(),
            np.arange(len(old.y), len(both)),
        )
        progress = Progress(self, self._n_steps(len(self._X), len(y_val), self._X.shape[1]))
        values, utility, _ = self._value(self._X, self._y, new, self._n_classes, progress)
        # A callback may have stopped before the last of the new points.
        done, total = len(utility), both.sum()
        new, both = new[:done], both[: len(old.y) + done]
        share, rescale = weights[0].sum() / both.sum(), total / both.sum()
        self.utility_ = float(share * self.utility_ + rescale * (utility @ new.weights))
        self._games = [(None, old.joined(new, both / both.sum()))]
        self._merge_judges()
        self._judge_weights = both
        self._lazy = {}
        self._set_values(share * self._row_values + rescale * values)
        return self._finish(progress)

    def _merge_judges(self):
        """Make one game of the last two, where a method keeps something for every game."""

    def _labels(self, codes):
        return self.classes_[codes] if self._n_classes else codes

    def _refit(self, X, y, groups, stay, **validation):
        """Fit again; the first rows of X are those of before that the mask ``stay`` names."""
        task = check_task(getattr(self, "task", "classification"), y)
        if (task == "classification") != (self._n_classes > 0):
            raise ValueError(
                "y must stay classes, or targets of a regression, as it was in fit: with the "
                f"change it is a {task}. Set task= to say which it is."
            )
        if not validation:
            validation = dict(X_val=None, y_val=None, sample_weight_val=self._judge_weights)
            if self._explicit:
                judges = self._games[0][1]
                validation.update(X_val=judges.X, y_val=self._labels(judges.y))
        with former_fit_kept(self):
            progress = self._fit_arrays(X, y, groups=groups, **validation)
        return self._finish(progress)
