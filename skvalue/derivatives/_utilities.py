"""Utilities of decisions at validation points, with their gradients."""

import numpy as np
from scipy.special import expit, softmax

_BLOCK = 2**22  # pairs of a positive and a negative at a time


def evaluate(utility, model, z, y, weights):
    """A utility at some decisions: at each point, as a whole, and its gradient.

    Parameters
    ----------
    utility : {"neg_loss", "accuracy", "roc_auc", "neg_mean_squared_error", "r2"} or \
            callable
        The utility. A callable ``utility(decisions, y, weights)`` gets the decisions,
        of shape (n_points,) for one decision and (n_points, K) for several, the codes
        of the labels (or the targets), and weights with sum 1; it returns the utility
        and its gradient by the decisions.
    model : LinearModel
        The model that decides.
    z : ndarray of shape (n_points, K)
        Decisions.
    y : ndarray of shape (n_points,)
        Codes of the labels in `model.classes`, or targets.
    weights : ndarray of shape (n_points,)
        Weights with sum 1.

    Returns
    -------
    points : ndarray of shape (n_points,) or None
        The utility at each point; None if it is no mean over points.
    value : float
        The utility.
    gradient : ndarray of shape (n_points, K)
        Its gradient.

    Raises
    ------
    ValueError
        If the utility is not defined for the targets, or a callable returns something
        else.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.derivatives import evaluate, linear_model
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 3.0])
    >>> model = linear_model(Ridge().fit(X, y), X, y)
    >>> z = np.array([[1.0], [2.0]])
    >>> points, value, gradient = evaluate(
    ...     "neg_mean_squared_error", model, z, np.array([0.0, 1.0]), np.full(2, 0.5))
    >>> points.tolist(), float(value), gradient.tolist()
    ([-1.0, -1.0], -1.0, [[-1.0], [-1.0]])
    """
    if callable(utility):
        value, gradient = _checked(utility, z, y, weights)
        return None, value, gradient

    of_targets = ("neg_mean_squared_error", "r2")
    if utility == "neg_loss":
        targets = model.targets(y)
        points = -model.loss.values(z, targets)
        gradient = -model.loss.gradient(z, targets)
    elif model.classes is None:
        if utility not in of_targets:
            names = ", ".join(map(repr, ("neg_loss", *of_targets)))
            raise ValueError(
                f"utility must be {names} or a callable for targets. Got {utility!r}."
            )
        points, gradient = _neg_squared_errors(model.loss, z, y)
        if utility == "r2":
            counted = y[weights > 0]
            if np.ptp(counted) == 0:
                raise ValueError(
                    "utility='r2' needs y_val of at least two values at points with "
                    f"weight: it divides by their variance. Got {counted[0]} only."
                )
            variance = weights @ (y - weights @ y) ** 2
            points = 1 + points / variance
            gradient = gradient / variance
    elif utility in of_targets:
        raise ValueError(
            f"utility must not be {utility!r} for classes: it is one of regressions."
        )
    elif utility == "accuracy":
        points, gradient = smooth_accuracy(z, y)
    else:
        if z.shape[1] > 1:
            raise ValueError(
                "utility='roc_auc' needs two classes: it ranks points by one decision. "
                f"Got {len(model.classes)}."
            )
        return None, *smooth_auc(z, y, weights)
    return points, float(weights @ points), weights[:, None] * gradient


def _checked(utility, z, y, weights):
    """The utility and the gradient (n_points, K) that a callable returns."""
    decisions = z[:, 0] if z.shape[1] == 1 else z
    value, gradient = utility(decisions, y, weights)
    gradient = np.asarray(gradient, dtype=np.float64)
    if gradient.ndim == 1:
        gradient = gradient[:, None]
    is_finite = np.isfinite(value) and np.isfinite(gradient).all()
    if gradient.shape != z.shape or not is_finite:
        raise ValueError(
            "utility must return a finite number and a finite gradient of the shape of "
            f"the decisions, {z.shape}. Got {value!r} and the shape {gradient.shape}."
        )
    return float(value), gradient


def _neg_squared_errors(loss, z, y):
    """Minus the squared error (n_points,) of predicted targets, and its gradient."""
    is_log = loss.link is np.log
    predicted = np.exp(z[:, 0]) if is_log else z[:, 0]
    slopes = predicted if is_log else 1
    gradient = (-2 * (predicted - y) * slopes)[:, None]
    return -((predicted - y) ** 2), gradient


def smooth_accuracy(z, codes):
    """Probability of the right label at each point, and its gradient.

    The accuracy of labels drawn from the probabilities: the softmax of the decisions,
    or the logistic function of one decision.

    >>> smooth_accuracy(np.zeros((1, 4)), np.array([2]))[0].tolist()
    [0.25]
    """
    if z.shape[1] == 1:
        signs = 2.0 * codes - 1
        right = expit(signs * z[:, 0])
        return right, (signs * right * (1 - right))[:, None]
    p = softmax(z, axis=1)
    right = p[np.arange(len(z)), codes]
    of_label = np.arange(z.shape[1]) == codes[:, None]
    return right, right[:, None] * (of_label - p)


def smooth_auc(z, codes, weights):
    """Smoothed AUC: mean logistic function of differences of positive and negative.

    >>> z, codes = np.zeros((2, 1)), np.array([0, 1])
    >>> value, gradient = smooth_auc(z, codes, np.full(2, 0.5))
    >>> value, gradient.tolist()
    (0.5, [[-0.25], [0.25]])
    """
    positive = np.flatnonzero(codes == 1)
    negative = np.flatnonzero(codes == 0)
    if not weights[positive].sum() > 0 or not weights[negative].sum() > 0:
        raise ValueError(
            "utility='roc_auc' needs validation points of both classes: it compares "
            "them in pairs."
        )
    positive_weights = weights[positive] / weights[positive].sum()
    negative_weights = weights[negative] / weights[negative].sum()
    value = 0.0
    gradient = np.zeros(len(z))
    size = max(1, _BLOCK // len(negative))
    for start in range(0, len(positive), size):
        points = positive[start : start + size]
        weight = positive_weights[start : start + size]
        above = expit(z[points] - z[negative, 0])
        value += weight @ above @ negative_weights
        slopes = above * (1 - above)
        gradient[points] = weight * (slopes @ negative_weights)
        gradient[negative] -= (weight @ slopes) * negative_weights
    return float(value), gradient[:, None]


class AccuracyGap:
    """Utility: minus the gap in smoothed accuracy between groups of points.

    Parameters
    ----------
    groups : array-like of shape (n_validation,)
        Group of each validation point.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.derivatives import AccuracyGap
    >>> gap = AccuracyGap(["a", "a", "b"])
    >>> value, gradient = gap(np.zeros(3), np.array([0, 1, 1]), np.full(3, 1 / 3))
    >>> value
    0.0
    """

    def __init__(self, groups):
        self.groups = groups

    def __call__(self, decisions, y, weights):
        """The utility and its gradient.

        Parameters
        ----------
        decisions : ndarray of shape (n_validation,) or (n_validation, K)
            Decisions of the model.
        y : ndarray of shape (n_validation,)
            Codes of their labels.
        weights : ndarray of shape (n_validation,)
            Weights of the points.

        Returns
        -------
        value : float
            Accuracy of the worst group minus that of the best.
        gradient : ndarray of the shape of the decisions
            Its gradient.

        Raises
        ------
        ValueError
            If the groups are not those of the validation points.
        """
        names, codes = np.unique(self.groups, return_inverse=True)
        if len(codes) != len(y) or len(names) < 2:
            raise ValueError(
                f"groups must name at least two groups of the {len(y)} validation "
                f"points. Got {len(codes)} entries and {len(names)} groups."
            )
        z = decisions.reshape(len(y), -1)
        points, gradient = smooth_accuracy(z, y)
        totals = np.bincount(codes, weights)
        means = np.bincount(codes, weights * points) / totals
        worst = means.argmin()
        best = means.argmax()
        signs = (codes == worst) * 1.0 - (codes == best)
        gradient = (signs * weights / totals[codes])[:, None] * gradient
        return float(means[worst] - means[best]), gradient.reshape(decisions.shape)
