"""How sure a value is, given that validation points are a sample."""

import warnings

import numpy as np
from scipy.stats import false_discovery_control, t
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ..exceptions import FewValidationPointsWarning

FEW_POINTS = 500  # below this the t approximation of a skewed mean is rough


def standard_error(values, first, second, weights):
    """Standard error of weighted means over independent validation points.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Means, ``sum_v w_v x_v`` with weights that sum to one.
    first, second : ndarrays of shape (n,)
        ``sum_v w_v^2 x_v`` and ``sum_v w_v^2 x_v^2``.
    weights : ndarray of shape (n_validation,)
        The weights.

    Returns
    -------
    error : ndarray of shape (n,)
        ``sqrt(m / (m - 1) sum_v w_v^2 (x_v - value)^2)`` with m = 1 / sum w^2 effective points;
        with equal weights the usual standard error of a mean. NaN for a single point.

    Examples
    --------
    >>> x, w = np.array([1.0, 3.0, 5.0]), np.full(3, 1 / 3)
    >>> round(float(standard_error(w @ x, w**2 @ x, w**2 @ x**2, w)), 4)  # 2 / sqrt(3)
    1.1547
    """
    squares = (weights**2).sum()
    if squares >= 1:
        return np.full(np.shape(values), np.nan)
    spread = second - 2 * values * first + values**2 * squares
    return np.sqrt(np.maximum(spread, 0) / (1 - squares))


def harmful_rows(values, error, weights, fdr):
    """Rows with an expected value below zero, at a false discovery rate.

    Parameters
    ----------
    values, error : ndarrays of shape (n,)
        Values and their standard errors.
    weights : ndarray of shape (n_validation,)
        Weights of the validation points, which sum to one.
    fdr : float
        False discovery rate (Benjamini and Hochberg 1995).

    Returns
    -------
    mask : ndarray of bool of shape (n,)
        The rows found.
    """
    points = 1 / (weights**2).sum()
    if points <= 1:
        return np.zeros(len(values), dtype=bool)
    # A row whose value is the same at every point has no error: only its sign counts.
    ratio = np.divide(values, error, out=np.where(values < 0, -np.inf, np.inf), where=error > 0)
    return false_discovery_control(t.cdf(ratio, points - 1)) <= fdr


class InferenceMixin:
    """What a valuer says of its values as estimates, and of one value point by point."""

    @property
    def validation_error_(self):
        """Standard error of `values_` over the draw of the validation points.

        Computed when first asked for, at the cost of about one more fit. Needs X_val in `fit`.
        """
        judges = self._explicit_judges("validation_error_", AttributeError)
        if "error" not in self._lazy:
            first, second = self._judge_moments(
                self._X, self._y, judges, self._n_classes, self._groups
            )
            self._lazy["error"] = standard_error(self.values_, first, second, judges.weights)
        return self._lazy["error"]

    def harmful(self, fdr=0.1):
        """Rows whose expected value over fresh validation points is below zero.

        A one-sided t test of every row's value against its `validation_error_`, with the
        false discovery rate held by Benjamini and Hochberg (1995). Asymptotic in the number of
        validation points.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate: expected share of harmless rows among those returned.

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
        if not 0 < fdr < 1:
            raise ValueError(f"fdr must be between 0 and 1. Got {fdr}.")
        judges = self._explicit_judges("harmful", ValueError)
        if len(judges.y) < FEW_POINTS:
            warnings.warn(
                f"harmful is asymptotic in the number of validation points: {len(judges.y)} are "
                f"few, {FEW_POINTS} or more are advised.",
                FewValidationPointsWarning,
                stacklevel=2,
            )
        return harmful_rows(self.values_, self.validation_error_, judges.weights, fdr)

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
            entry a row of X_val, or of X where rows judge each other. ``supporters`` and
            ``opponents``: positions of the points that count for and against it, the strongest
            first.

        Raises
        ------
        ValueError
            If there is no row, or group, i.
        """
        check_is_fitted(self)
        self._refuse_if_private("contributions")
        n = len(self.values_)
        if not -n <= i < n:
            raise ValueError(f"i must be between 0 and {n - 1}. Got {i}.")
        members = [i % n] if self._groups is None else np.flatnonzero(self._groups == i % n)
        split = np.zeros(len(self._X) if not self._explicit else len(self._games[0][1].y))
        for game, (rows, judges) in enumerate(self._games):
            if rows is None:
                players, asked = (self._X, self._y), np.asarray(members)
            else:
                players = self._X[rows], self._y[rows]
                asked = np.flatnonzero(np.isin(rows, members))
            if len(asked):
                values = self._judge_values(game, *players, judges, self._n_classes, asked)
                np.add.at(split, judges.index, judges.weights * values / len(self._games))
        order = np.argsort(split, kind="stable")
        return Bunch(
            contributions=split,
            supporters=order[split[order] > 0][::-1],
            opponents=order[split[order] < 0],
        )

    def _explicit_judges(self, what, error):
        check_is_fitted(self)
        self._refuse_if_private(what, error)
        if not self._explicit:
            raise error(
                f"{what} needs validation points of their own: pass X_val and y_val to fit."
            )
        return self._games[0][1]
