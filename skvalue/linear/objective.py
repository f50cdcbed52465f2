"""The objective that a fitted estimator of scikit-learn minimises, in arrays."""

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

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

from .columns import column_centers
from .losses import GAMMA, LOGISTIC, POISSON, SOFTMAX, SQUARED

_DEVIANCES = {PoissonRegressor: POISSON, GammaRegressor: GAMMA}
_ESTIMATORS = (
    LogisticRegression,
    Ridge,
    LinearRegression,
    RidgeClassifier,
    KernelRidge,
    *_DEVIANCES,
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
        Rows as the model sees them: transformed, less `center`, with a last column of
        ones for an intercept.
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
    center : ndarray of shape (p - 1,) or None
        What is subtracted from the columns, so that their offset costs no digits; the
        intercept in `theta` makes up for it. None for sparse rows, and where there is
        no intercept, or it is penalised.

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
    center: np.ndarray | None = None

    @cached_property
    def units(self):
        """Sizes (p,) of coefficients: one over the root mean square of the column."""
        squares = self.X.power(2) if sparse.issparse(self.X) else self.X**2
        roots = np.sqrt(np.asarray(squares.mean(axis=0)).ravel())
        return 1.0 / np.where(roots > 0, roots, 1.0)

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
        of_losses = (self.X[rows].T @ self.gradient(rows)).T
        weight = self.weights[rows].sum()
        return of_losses + weight * (self.row_penalty[:, None] * self.theta).T

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
        if self.center is not None:
            X = X - self.center
        return _with_ones(X) if last.fit_intercept else X

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
        is_pipeline = isinstance(self.estimator, Pipeline)
        last = self.estimator[-1] if is_pipeline else self.estimator
        last = copy(last)
        if self.features is not None:
            last.dual_coef_ = (self.features @ theta)[:, 0]
        else:
            if last.fit_intercept:
                intercept = theta[-1]
                theta = theta[:-1]
                if self.center is not None:
                    intercept = intercept - self.center @ theta
                is_scalar = np.ndim(last.intercept_) == 0
                last.intercept_ = float(intercept[0]) if is_scalar else intercept
            last.coef_ = theta.T.reshape(np.shape(last.coef_))
        if not is_pipeline:
            return last

        pipeline = copy(self.estimator)
        name, _ = pipeline.steps[-1]
        pipeline.steps = [*pipeline.steps[:-1], (name, last)]
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
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return type(last) in _ESTIMATORS


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
    >>> gradient = model.X.T @ model.gradient() + model.penalty[:, None] * model.theta
    >>> bool(np.allclose(gradient, 0))
    True
    """
    y = np.asarray(y)
    weights = np.ones(len(y))
    if sample_weight is not None:
        weights = np.asarray(sample_weight, np.float64)
    last, X = _last_step(estimator, X)
    _check_estimator(last)
    if isinstance(last, KernelRidge):
        return _kernel_model(estimator, last, X, y, weights)

    classes = getattr(last, "classes_", None)
    codes = y if classes is None else np.searchsorted(classes, y)
    if getattr(last, "class_weight", None) is not None:
        class_weights = compute_class_weight(last.class_weight, classes=classes, y=y)
        weights = weights * class_weights[codes]

    design = _design_of(last, X)
    objective = _objective_of(last, design.theta)
    model = LinearModel(
        X=design.X,
        y=y,
        weights=weights * objective.loss_factor,
        theta=design.theta,
        loss=objective.loss,
        penalty=objective.penalty,
        row_penalty=objective.row_penalty,
        classes=classes,
        estimator=estimator,
        center=design.center,
    )
    return replace(model, y=model.targets(codes))


def _check_estimator(last):
    """Raise ValueError for the last step of an estimator without known derivatives."""
    if type(last) not in _ESTIMATORS:
        names = ", ".join(kind.__name__ for kind in _ESTIMATORS)
        raise ValueError(
            f"estimator must be one of {names}, or a Pipeline of one, whose "
            f"derivatives are known. Got {last!r}."
        )
    if getattr(last, "positive", False):
        raise ValueError(
            "estimator must have positive=False: bounds have no derivative. Got "
            f"{last!r}."
        )


class _Design(NamedTuple):
    """Rows and coefficients with an intercept, as in `LinearModel`."""

    X: Any
    theta: np.ndarray
    center: np.ndarray | None


def _design_of(last, X):
    """The `_Design` of an estimator and the rows that it was fitted on."""
    theta = np.atleast_2d(np.asarray(last.coef_, dtype=np.float64)).T
    if not last.fit_intercept:
        return _Design(X, theta, center=None)

    # The intercept makes up for what is subtracted from the columns, unless it is
    # shrunk, and sparse rows would not stay sparse.
    intercept = np.broadcast_to(last.intercept_, theta.shape[1])
    shrinks_intercept = getattr(last, "solver", None) == "liblinear"
    center = None
    if not sparse.issparse(X) and not shrinks_intercept:
        center = column_centers(X)
        X = X - center
        intercept = intercept + center @ theta
    return _Design(_with_ones(X), np.vstack([theta, intercept]), center)


class _Objective(NamedTuple):
    """The loss and penalties (p,), as in `LinearModel`, and a factor of the weights.

    They are in the scale in which the loss has factor 1.
    """

    loss: Any
    penalty: np.ndarray
    row_penalty: np.ndarray
    loss_factor: float = 1.0


def _objective_of(last, theta):
    """The `_Objective` of an estimator with coefficients theta (p, K)."""
    n_coefs, n_decisions = theta.shape
    n_features = n_coefs - int(bool(last.fit_intercept))
    no_penalty = np.zeros(n_coefs)
    if isinstance(last, LogisticRegression):
        loss = LOGISTIC if n_decisions == 1 else SOFTMAX
        penalty, loss_factor = _logistic_penalty(last, n_features, n_coefs)
        return _Objective(loss, penalty, no_penalty, loss_factor)
    if isinstance(last, LinearRegression):
        return _Objective(SQUARED, no_penalty, no_penalty)

    # A penalty of the coefficients, but not of the intercept.
    is_penalized = np.arange(n_coefs) < n_features
    if type(last) in _DEVIANCES:
        row_penalty = np.where(is_penalized, 2.0 * last.alpha, 0.0)
        return _Objective(_DEVIANCES[type(last)], no_penalty, row_penalty)
    if np.ndim(last.alpha) and np.ptp(last.alpha) > 0:
        raise ValueError(
            "alpha must be one number: penalties of several targets differ. Got "
            f"{last.alpha}."
        )
    penalty = np.where(is_penalized, 2.0 * np.max(last.alpha), 0.0)
    return _Objective(SQUARED, penalty, no_penalty)


def _logistic_penalty(last, n_features, n_coefs):
    """Penalty (n_coefs,) of a logistic regression, and the factor of its losses."""
    is_l1 = last.penalty == "l1" or last.l1_ratio not in (None, 0, 0.0)
    if is_l1:
        raise ValueError(
            "estimator must have an L2 penalty or none: an L1 penalty has no "
            f"derivative. Got {last!r}."
        )
    penalty = np.zeros(n_coefs)
    if last.penalty is None or np.isinf(last.C):
        return penalty, 1.0

    penalty[:n_features] = 1.0
    if last.solver == "liblinear" and last.fit_intercept:
        # It shrinks the intercept too.
        penalty[n_features:] = 1.0 / last.intercept_scaling**2
    return penalty, last.C


def _kernel_model(estimator, last, X, y, weights):
    """Kernel ridge regression as ridge regression on the features of its kernel."""
    if isinstance(last.kernel, str) and last.kernel == "precomputed":
        raise ValueError(
            "kernel must not be 'precomputed': other rows have no kernel then."
        )
    # Eigenvectors of the kernel, scaled so that products of features are the kernel.
    eigenvalues, eigenvectors = np.linalg.eigh(_kernel(last, X))
    rounding = len(eigenvalues) * np.finfo(np.float64).eps
    is_positive = eigenvalues > eigenvalues[-1] * rounding
    scales = np.sqrt(eigenvalues[is_positive])
    features = eigenvectors[:, is_positive] / scales
    design = eigenvectors[:, is_positive] * scales

    dual = np.asarray(last.dual_coef_, dtype=np.float64).reshape(len(y))
    theta = (dual @ design)[:, None]
    return LinearModel(
        X=design,
        y=np.asarray(y, dtype=np.float64)[:, None],
        weights=weights,
        theta=theta,
        loss=SQUARED,
        penalty=np.full(len(theta), 2.0 * np.max(last.alpha)),
        row_penalty=np.zeros(len(theta)),
        classes=None,
        estimator=estimator,
        features=features,
    )


def _kernel(last, X):
    """Kernel of rows with the rows that a kernel ridge regression was fitted on."""
    parameters = {"gamma": last.gamma, "degree": last.degree, "coef0": last.coef0}
    if callable(last.kernel):
        parameters = last.kernel_params or {}
    return pairwise_kernels(
        X, last.X_fit_, metric=last.kernel, filter_params=True, **parameters
    )


def _last_step(estimator, X):
    """The last step of a pipeline, and the rows as it gets them, in float64."""
    if isinstance(estimator, Pipeline):
        if len(estimator) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    return estimator, X


def _with_ones(X):
    """The rows with a last column of ones, for an intercept."""
    ones = np.ones((X.shape[0], 1))
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X, ones]))
    return np.c_[X, ones]
