"""Noise in labels or features of random rows, as ground truth for benchmarks."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_random_state,
    column_or_1d,
)
from sklearn.utils.multiclass import type_of_target

from .._utils.checks import exact_integers
from .._utils.sklearn import Interval, StrOptions, validate_params
from .._utils.targets import encode_labels

_FRACTION = [
    Interval(Real, 0, 1, closed="both"),
    Interval(Integral, 0, None, closed="left"),
]


@validate_params(
    {"y": ["array-like"], "fraction": _FRACTION, "random_state": ["random_state"]},
    prefer_skip_nested_validation=True,
)
def flip_labels(y, fraction=0.1, random_state=None):
    """Give some rows a wrong label.

    The rows are drawn uniformly, and the new label of each is drawn uniformly from the
    other classes, so every chosen row is mislabelled.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of any kind, of at least two classes.
    fraction : float or int, default=0.1
        A float in [0, 1] is the fraction of rows to flip, rounded to the nearest number
        of rows; an int is their number.
    random_state : int, RandomState instance or None, default=None
        Controls the choice of the rows and their new labels. A split of
        the same rows needs another seed: with the same one,
        :func:`~sklearn.model_selection.train_test_split` draws the same permutation,
        and the flipped rows are in the test set.

    Returns
    -------
    y_noisy : ndarray of shape (n_samples,)
        A copy of the labels in which some are flipped.
    flipped : ndarray of shape (n_samples,)
        Boolean mask of the flipped rows.

    Raises
    ------
    ValueError
        If y has one class, continuous values or missing labels, or fraction is out of
        range.

    See Also
    --------
    perturb_features : Add noise to the features.
    skvalue.inspection.noisy_label_auc : Measure how well values detect flipped rows.

    Examples
    --------
    >>> from skvalue.datasets import flip_labels
    >>> y = ["cat", "cat", "dog", "dog", "owl", "owl"]
    >>> y_noisy, flipped = flip_labels(y, 2, random_state=0)
    >>> flipped.tolist()
    [False, False, True, False, False, True]
    >>> y_noisy.tolist()
    ['cat', 'cat', 'cat', 'dog', 'owl', 'cat']
    """
    rng = check_random_state(random_state)
    classes, codes = _check_labels(y)
    flipped = _draw_rows(len(codes), fraction, rng)
    # A cyclic shift by 1 to C - 1 never gives the true class.
    steps = rng.randint(1, len(classes), size=flipped.sum())
    codes[flipped] = (codes[flipped] + steps) % len(classes)
    return classes[codes], flipped


@validate_params(
    {
        "X": ["array-like"],
        "fraction": _FRACTION,
        "scale": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "relative_to": [StrOptions({"std", "norm"})],
    },
    prefer_skip_nested_validation=True,
)
def perturb_features(X, fraction=0.1, scale=1.0, random_state=None, relative_to="std"):
    """Add Gaussian noise to the features of some rows.

    The rows are drawn uniformly. In each of them, column j gets independent noise of
    mean 0 and standard deviation ``scale`` times the size of column j, so the units of
    a column do not matter.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The features, finite numbers.
    fraction : float or int, default=0.1
        A float in [0, 1] is the fraction of rows to perturb, rounded to the nearest
        number of rows; an int is their number.
    scale : float, default=1.0
        Standard deviation of the noise, in units of the size of the column.
    random_state : int, RandomState instance or None, default=None
        Controls the choice of the rows and the noise. A split of
        the same rows needs another seed: with the same one,
        :func:`~sklearn.model_selection.train_test_split` draws the same permutation,
        and the perturbed rows are in the test set.
    relative_to : {"std", "norm"}, default="std"
        The size of a column: its standard deviation over the rows of X (a constant
        column gets no noise), or its L2 norm. The norm grows with the number of rows:
        over n rows it is sqrt(n) root mean squares.

    Returns
    -------
    X_noisy : ndarray of shape (n_samples, n_features)
        A copy of the features with noise, float32 if X is float32 and float64
        otherwise.
    perturbed : ndarray of shape (n_samples,)
        Boolean mask of the perturbed rows.

    Raises
    ------
    ValueError
        If X contains NaN or infinity, or fraction, scale or relative_to is out of
        range.

    See Also
    --------
    flip_labels : Add noise to the labels.
    skvalue.inspection.noisy_label_auc : Measure how well values detect perturbed rows.

    References
    ----------
    J. T. Wang, Y. Zhu, Y.-X. Wang, R. Jia, P. Mittal: "A Privacy-Friendly Approach to
    Data Valuation", NeurIPS 2023. The authors' code uses ``relative_to="norm"``, which
    reproduces the published tables; Appendix E.3.1 describes the mean absolute value of
    a column instead.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.datasets import perturb_features
    >>> X = np.array([[0.0, 100.0], [1.0, 200.0], [0.0, 100.0], [1.0, 200.0]])
    >>> X_noisy, perturbed = perturb_features(X, 0.25, random_state=0)
    >>> perturbed.tolist()
    [False, False, True, False]
    >>> (X_noisy - X).round(2)[perturbed].tolist()
    [[0.49, 112.04]]
    """
    rng = check_random_state(random_state)
    # In C order a data frame has the same sums, and so the same noise, bit for bit.
    X = check_array(
        X, dtype=[np.float64, np.float32], order="C", copy=True, input_name="X"
    )
    perturbed = _draw_rows(len(X), fraction, rng)
    noise = rng.normal(size=(perturbed.sum(), X.shape[1]))
    X[perturbed] += noise * (scale * _column_sizes(X, relative_to))
    return X, perturbed


def _check_labels(y):
    """The classes of y, and the code of every label."""
    y = column_or_1d(exact_integers(y), warn=True)
    assert_all_finite(y, input_name="y")
    if len(y) == 0:
        raise ValueError("y must have at least 2 classes. Got no label.")
    try:
        kind = type_of_target(y, input_name="y")
        classes, codes, _ = encode_labels(y)
    except TypeError:
        types = sorted({type(label).__name__ for label in y})
        raise ValueError(
            "y must hold labels of one sortable kind and none missing. Got labels of "
            f"the types {', '.join(types)}."
        ) from None
    if kind == "continuous":
        raise ValueError(f"y must hold classes. Got continuous values, such as {y[0]}.")
    return classes, codes


def _draw_rows(n_rows, fraction, rng):
    """Mask of random rows; `fraction` is a fraction (float) or a count (int)."""
    count = fraction if isinstance(fraction, Integral) else round(fraction * n_rows)
    if count > n_rows:
        raise ValueError(
            f"fraction must be at most the number of rows ({n_rows}). Got {fraction}."
        )
    mask = np.zeros(n_rows, dtype=bool)
    mask[rng.permutation(n_rows)[:count]] = True
    return mask


def _column_sizes(X, relative_to):
    """Standard deviation or L2 norm of every column, as float64."""
    if relative_to == "std":
        return X.std(axis=0, dtype=np.float64)
    return np.sqrt(np.square(X, dtype=np.float64).sum(axis=0))
