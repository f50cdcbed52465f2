"""Fits that take weights of the rows: those of valuers that train an estimator."""

from ..._utils.sklearn import fit_context
from ...base._old_in_sample import BaseInSampleValuer


class BaseRetrainingValuer(BaseInSampleValuer):
    """Base class of valuers that train an estimator, whose `fit` takes `sample_weight`.

    The method finds it in `_sample_weight`, as the user gave it; see
    `skvalue._utils.checks.check_sample_weight`.
    """

    _sample_weight = None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X,
        y,
        *,
        X_val=None,
        y_val=None,
        groups=None,
        sample_weight=None,
        sample_weight_val=None,
    ):
        """Value the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to value.
        y : array-like of shape (n_samples,)
            Their labels, of any kind, or targets where the method has a regression game.
        X_val : array-like of shape (n_validation, n_features), default=None
            Validation points, which judge the rows. Without them `cv` says which rows judge which.
        y_val : array-like of shape (n_validation,), default=None
            Labels of the validation points; passed together with `X_val`.
        groups : array-like of shape (n_samples,), default=None
            Group of every row; `values_` then has one entry a group.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in every fit of the estimator, whose `fit` must take them. A row of
            weight zero is in no fit. Rows that judge others judge with equal weights.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weights of the validation points in the mean utility.

        Returns
        -------
        self : object
            The fitted valuer.

        Raises
        ------
        ValueError
            If X or X_val hold NaN or infinity, y has one class, y_val a label that y has not, the
            validation set is empty or given in part, groups or weights have a wrong length, the
            estimator takes no weights, or `cv` lets rows play unequally often.
        """
        self._sample_weight = sample_weight
        return self._fit(X, y, X_val, y_val, groups, sample_weight_val)

    def fit_transform(
        self,
        X,
        y,
        *,
        X_val=None,
        y_val=None,
        groups=None,
        sample_weight=None,
        sample_weight_val=None,
    ):
        """Fit and return the value of every row, in the order of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to value.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        X_val, y_val, groups, sample_weight, sample_weight_val : array-likes, default=None
            As in `fit`.

        Returns
        -------
        values : ndarray of shape (n_samples, 1)
            The value of the row, or of its group.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        self.fit(
            X,
            y,
            X_val=X_val,
            y_val=y_val,
            groups=groups,
            sample_weight=sample_weight,
            sample_weight_val=sample_weight_val,
        )
        return self._fitted_values()[:, None].copy()
