"""The contract of valuers that train an estimator: a fit that takes weights of the rows."""

from ..._utils.sklearn import fit_context
from ...base import BaseInSampleValuer, make_problem


class BaseRetrainingValuer(BaseInSampleValuer):
    """Base class of valuers that train an estimator, whose `fit` takes `sample_weight`."""

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
            Validation points, on which models are scored. Without them `cv` says which rows are
            held out to value which others.
        y_val : array-like of shape (n_validation,), default=None
            Labels of the validation points; passed together with `X_val`.
        groups : array-like of shape (n_samples,), default=None
            Group of every row; `values_` then has one entry a group.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in every fit of the estimator, whose `fit` must take them. A row of
            weight zero is in no fit. Rows that are held out count with equal weights.
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
        return self._solve(
            make_problem(
                self, X, y, X_val, y_val, groups=groups, sample_weight=sample_weight,
                sample_weight_val=sample_weight_val,
            )
        )  # fmt: skip
