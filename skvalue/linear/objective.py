"""The objective that a fitted estimator of scikit-learn minimises, in arrays."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, compute_class_weight

from .losses import GAMMA, LOGISTIC, POISSON, SOFTMAX, SQUARED

_GLMS = {PoissonRegressor: POISSON, GammaRegressor: GAMMA}
_TYPES = (
    LogisticRegression,
    Ridge,
    LinearRegression,
    RidgeClassifier,
    KernelRidge,
    *_GLMS,
)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model at the minimum of a weighted sum of losses and a penalty.

    The objective is ``sum_i weights_i (loss(x_i @ theta, y_i) + row_penalty @ theta^2 /
    2) + penalty @ theta^2 / 2``, up to a factor. `linear_model` makes it from a fitted
    estimator.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, p)
        Rows as the model sees them: transformed, with a last column of ones for an
        intercept.
    y : ndarray of shape (n_samples,) or (n_samples, K)
        Codes of the classes, or targets.
    weights : ndarray of shape (n_samples,)
        Weights of the rows.
    theta : ndarray of shape (p, K)
        Coefficients of the K decisions.
    loss : Loss
        Loss of a decision, and its derivatives.
    penalty : ndarray of shape (p,)
        Ridge penalty of each coefficient.
    row_penalty : ndarray of shape (p,)
        Ridge penalty per unit of weight, for objectives that are means and not sums of
        losses.
    classes : ndarray or None
        Labels, in the order of their codes.
    estimator : estimator
        The fitted estimator, which maps other rows.
    features : ndarray or None
        Map from kernels with the rows to the columns of X, for kernels.

    See Also
    --------
    linear_model : The objective of a fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skvalue.derivatives import linear_model
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 1])
    >>> model = linear_model(LogisticRegression().fit(X, y), X, y)
    >>> model.X.shape, model.theta.shape, model.penalty.tolist()
    ((3, 2), (2, 1), [1.0, 0.0])
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray
    theta: np.ndarray
    loss: Any  # a Loss
    penalty: np.ndarray
    row_penalty: np.ndarray
    classes: np.ndarray | None
    estimator: Any
    features: np.ndarray | None = None

    def gradient(self, rows=slice(None)):
        """Weighted gradients of the losses of some rows by their decisions, (n, K).

        Parameters
        ----------
        rows : slice or ndarray, default=slice(None)
            The rows.

        Returns
        -------
        gradient : ndarray of shape (n_rows, K)
            The gradients; those by the coefficients are their products with the rows,
            and ``weights * row_penalty * theta``.
        """
        z = self.X[rows] @ self.theta
        return self.weights[rows][:, None] * self.loss.gradient(z, self.y[rows])

    def gradient_sum(self, rows):
        """Sum of the gradients of the objective's terms of some rows.

        Parameters
        ----------
        rows : ndarray of int
            The rows.

        Returns
        -------
        total : ndarray of shape (K, p)
            The sum.
        """
        total = (self.X[rows].T @ self.gradient(rows)).T
        return (
            total
            + self.weights[rows].sum() * (self.row_penalty[:, None] * self.theta).T
        )

    def curvature(self, rows=slice(None)):
        """Weighted second derivatives of the losses of some rows by their decisions.

        Parameters
        ----------
        rows : slice or ndarray, default=slice(None)
            The rows.

        Returns
        -------
        curvature : ndarray of shape (n_rows, K, K)
            The second derivatives.
        """
        z = self.X[rows] @ self.theta
        return self.weights[rows][:, None, None] * self.loss.curvature(z, self.y[rows])

    def without(self, rows):
        """The objective without some rows, at the same coefficients.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the rows.

        Returns
        -------
        model : LinearModel
            The objective of the other rows.
        """
        kept = np.ones(len(self.y), dtype=bool)
        kept[rows] = False
        return replace(self, X=self.X[kept], y=self.y[kept], weights=self.weights[kept])

    def design(self, X):
        """Other rows as the model sees them.

        Parameters
        ----------
        X : array-like
            Rows, as they are passed to the estimator.

        Returns
        -------
        design : ndarray or CSR array of shape (n_rows, p)
            Transformed rows.
        """
        last, X = _last_step(self.estimator, X)
        if self.features is not None:
            return _kernel(last, X) @ self.features
        return _with_ones(X, last.fit_intercept)

    def fitted(self, theta):
        """The estimator with other coefficients.

        Parameters
        ----------
        theta : ndarray of shape (p, K)
            Coefficients of the K decisions.

        Returns
        -------
        estimator : estimator
            A fitted copy.
        """
        steps = getattr(self.estimator, "steps", [("", self.estimator)])
        last = copy(steps[-1][1])
        if self.features is not None:
            last.dual_coef_ = (self.features @ theta)[:, 0]
        else:
            if last.fit_intercept:
                theta, intercept = theta[:-1], theta[-1]
                scalar = np.ndim(last.intercept_) == 0
                last.intercept_ = float(intercept[0]) if scalar else intercept
            last.coef_ = theta.T.reshape(np.shape(last.coef_))
        if not isinstance(self.estimator, Pipeline):
            return last
        pipeline = copy(self.estimator)
        pipeline.steps = [*steps[:-1], (steps[-1][0], last)]
        return pipeline

    def targets(self, y):
        """What the loss compares decisions with.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            Codes of labels in `classes`, or targets.

        Returns
        -------
        targets : ndarray of shape (n_rows,) or (n_rows, K)
            Codes, or targets of the K decisions.
        """
        if self.classes is None:
            return np.asarray(y, dtype=np.float64)[:, None]
        if self.loss.classes:
            return y
        if self.theta.shape[1] == 1:
            return 2.0 * y[:, None] - 1
        return 2.0 * (y[:, None] == np.arange(len(self.classes))) - 1


def supports(estimator):
    """Whether the derivatives of an estimator are known, for some of its parameters.

    Parameters
    ----------
    estimator : estimator
        An estimator or a Pipeline, fitted or not.

    Returns
    -------
    supported : bool
        Whether it is, or a Pipeline ends in, one of the estimators of `linear_model`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skvalue.derivatives import supports
    >>> supports(Ridge()), supports(DecisionTreeRegressor())
    (True, False)
    """
    return (
        type(estimator[-1] if isinstance(estimator, Pipeline) else estimator) in _TYPES
    )


def linear_model(estimator, X, y, sample_weight=None):
    """The objective of a fitted estimator, in arrays.

    Parameters
    ----------
    estimator : estimator
        Fitted `LogisticRegression` (no L1 penalty), `Ridge`, `LinearRegression`,
        `RidgeClassifier`, `PoissonRegressor`, `GammaRegressor` or `KernelRidge`, or a
        Pipeline that ends in one of them. Transformers count as fixed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows that it was fitted on.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights that it was fitted with.

    Returns
    -------
    model : LinearModel
        The objective, at the coefficients of the estimator.

    Raises
    ------
    ValueError
        If the estimator is another one, or its parameters make its loss not
        differentiable.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.derivatives import linear_model
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 3.0])
    >>> model = linear_model(Ridge().fit(X, y), X, y)
    >>> bool(np.allclose(model.X.T @ model.gradient() + model.penalty[:, None] * model.theta, 0))
    True
    """
    y = np.asarray(y)
    weights = (
        np.ones(len(y))
        if sample_weight is None
        else np.asarray(sample_weight, np.float64)
    )
    last, X = _last_step(estimator, X)
    if type(last) not in _TYPES:
        names = ", ".join(kind.__name__ for kind in _TYPES)
        raise ValueError(
            f"estimator must be one of {names}, or a Pipeline of one. Got {last!r}."
        )
    if getattr(last, "positive", False):
        raise ValueError(
            "estimator must have positive=False: bounds have no derivative."
        )
    if isinstance(last, KernelRidge):
        return _kernel_model(estimator, last, X, y, weights)
    classes = getattr(last, "classes_", None)
    if getattr(last, "class_weight", None) is not None:
        of_class = compute_class_weight(last.class_weight, classes=classes, y=y)
        weights = weights * of_class[np.searchsorted(classes, y)]
    theta = np.atleast_2d(np.asarray(last.coef_, dtype=np.float64)).T
    d = len(theta)
    if last.fit_intercept:
        theta = np.vstack([theta, np.broadcast_to(last.intercept_, theta.shape[1])])
    penalty, row_penalty, loss = np.zeros(len(theta)), np.zeros(len(theta)), SQUARED
    if isinstance(last, LogisticRegression):
        loss = LOGISTIC if theta.shape[1] == 1 else SOFTMAX
        weights = weights * _logistic_penalty(last, penalty, d)
    elif type(last) in _GLMS:
        loss, row_penalty[:d] = _GLMS[type(last)], 2 * last.alpha
    elif not isinstance(last, LinearRegression):
        if np.ndim(last.alpha) and np.ptp(last.alpha) > 0:
            raise ValueError(f"alpha must be one number. Got {last.alpha}.")
        penalty[:d] = 2 * np.max(last.alpha)
    X = _with_ones(X, last.fit_intercept)
    model = LinearModel(
        X, y, weights, theta, loss, penalty, row_penalty, classes, estimator
    )
    return replace(
        model, y=model.targets(y if classes is None else np.searchsorted(classes, y))
    )


def _logistic_penalty(last, penalty, d):
    """Enter the penalty of a logistic regression, and return the factor of its
    losses."""
    kind = last.penalty if last.penalty in (None, "l1", "elasticnet") else "l2"
    if kind == "l1" or last.l1_ratio not in (None, 0, 0.0):
        raise ValueError(
            "estimator must have an L2 penalty or none: an L1 penalty has no derivative. Got "
            f"{last!r}."
        )
    if kind is None or np.isinf(last.C):
        return 1.0
    penalty[:d] = 1.0
    if (
        last.solver == "liblinear" and last.fit_intercept
    ):  # it shrinks the intercept too
        penalty[d:] = 1.0 / last.intercept_scaling**2
    return last.C


def _kernel_model(estimator, last, X, y, weights):
    """Kernel ridge regression as ridge regression on the features of its kernel."""
    if isinstance(last.kernel, str) and last.kernel == "precomputed":
        raise ValueError(
            "kernel must not be 'precomputed': other rows have no kernel then."
        )
    sizes, vectors = np.linalg.eigh(_kernel(last, X))
    kept = sizes > sizes[-1] * len(sizes) * np.finfo(np.float64).eps
    features = vectors[:, kept] / np.sqrt(sizes[kept])
    design = vectors[:, kept] * np.sqrt(sizes[kept])
    theta = (np.asarray(last.dual_coef_, dtype=np.float64).reshape(len(y)) @ design)[
        :, None
    ]
    penalty = np.full(len(theta), 2.0 * np.max(last.alpha))
    y = np.asarray(y, dtype=np.float64)[:, None]
    return LinearModel(
        design,
        y,
        weights,
        theta,
        SQUARED,
        penalty,
        np.zeros(len(theta)),
        None,
        estimator,
        features,
    )


def _kernel(last, X):
    """Kernel of rows with the rows that a kernel ridge regression was fitted on."""
    given = {"gamma": last.gamma, "degree": last.degree, "coef0": last.coef0}
    if callable(last.kernel):
        given = last.kernel_params or {}
    return pairwise_kernels(
        X, last.X_fit_, metric=last.kernel, filter_params=True, **given
    )


def _last_step(estimator, X):
    """The last step of a pipeline, and the rows as it gets them, in float64."""
    if isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    return estimator, check_array(
        X, accept_sparse="csr", dtype=np.float64, input_name="X"
    )


def _with_ones(X, intercept):
    """The rows with a last column of ones, for an intercept."""
    if not intercept:
        return X
    ones = np.ones((X.shape[0], 1))
    return (
        sparse.csr_array(sparse.hstack([X, ones]))
        if sparse.issparse(X)
        else np.c_[X, ones]
    )
