"""Scores of values: detection of noisy rows, and uncertainty of the estimates."""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import Bunch, column_or_1d

from .._utils.checks import check_length, check_names, check_numbers


def noisy_label_auc(values, is_noisy, *, y=None):
    """Area under the ROC curve of detecting noisy rows by their low values.

    It is the probability that a random noisy row has a lower value than a random clean
    row, where ties count one half: 1 if all noisy rows come first in ascending order of
    value, 0.5 for values that are independent of the noise. The noise may be in the
    labels or in the features.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        Values of the rows; higher is better.
    is_noisy : array-like of shape (n_samples,)
        True (or 1) for noisy rows, False (or 0) for clean ones; both must occur.
    y : array-like of shape (n_samples,), default=None
        Labels as they were given to the valuer, noise included. With them there is one
        area per class: of the rows with this label, are the noisy ones the lowest? If
        classes are imbalanced, the area over all rows is high as soon as the minority
        has low values, because most noisy labels are those of minority classes.

    Returns
    -------
    auc : float or dict
        The area, from 0 to 1. With y, the areas by label; NaN for a class whose rows
        are all noisy or all clean.

    Raises
    ------
    ValueError
        If the lengths differ, values contain NaN or infinity, or is_noisy has only one
        kind of row or entries other than True and False.

    See Also
    --------
    wrong_label_curve : Fraction of the wrong labels by the fraction of rows inspected.
    skvalue.datasets.flip_labels : Add noise to labels, and return the noisy rows.
    skvalue.datasets.perturb_features : Add noise to features.
    sklearn.metrics.roc_auc_score : The underlying score; high scores mean positives.

    Examples
    --------
    >>> from skvalue.inspection import noisy_label_auc
    >>> noisy_label_auc([-0.2, 0.1, 0.1, 0.3], [True, True, False, False])
    0.875

    Two correct rows of the minority class b rank below its noisy row:

    >>> values = [0.1, 0.3, 0.2, -0.3, -0.2, -0.1]
    >>> is_noisy = [1, 0, 0, 0, 0, 1]
    >>> noisy_label_auc(values, is_noisy, y=["a", "a", "a", "b", "b", "b"])
    {'a': 1.0, 'b': 0.0}
    """
    values = check_numbers(values, "values")
    is_noisy = check_mask(is_noisy, "is_noisy", len(values))
    if y is None:
        return float(roc_auc_score(is_noisy, -values))

    labels, codes = check_names(y, "y")
    check_length(codes, "y", len(values), of="values")
    areas = {}
    for code, label in enumerate(labels.tolist()):
        of_class = codes == code
        noisy = is_noisy[of_class]
        areas[label] = float("nan")
        if noisy.any() and not noisy.all():
            areas[label] = float(roc_auc_score(noisy, -values[of_class]))
    return areas


def check_mask(mask, name, n_entries, unit="value"):
    """The mask (n_entries,) of a parameter as bool; it must have entries of both kinds.

    ``unit`` says what has an entry.
    """
    mask = column_or_1d(mask)
    if len(mask) != n_entries:
        raise ValueError(
            f"{name} must have one entry per {unit} ({n_entries}). Got {len(mask)}."
        )
    entries = np.unique(mask).tolist()
    # This refuses row indices in place of a mask.
    if not set(entries) <= {False, True}:
        printed = ", ".join(map(repr, entries[:5]))
        if len(entries) > 5:
            printed += ", ..."
        raise ValueError(
            f"{name} must be a mask of True and False, one entry per {unit}. Got the "
            f"entries {printed}."
        )
    if len(entries) < 2:
        raise ValueError(
            f"{name} must have entries of both kinds, True and False, since the two "
            f"are compared. Got {entries[0]!r} for all {n_entries}."
        )
    return mask.astype(bool)


def wrong_label_curve(values, is_wrong):
    """Fraction of the wrong labels found by the fraction of rows inspected.

    Rows are inspected in ascending order of their values.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        Values of the rows; higher is better.
    is_wrong : array-like of bool of shape (n_samples,)
        True for rows with a wrong label; both kinds must occur.

    Returns
    -------
    curve : Bunch
        ``inspected`` and ``found``, each of shape (n_samples + 1,), from 0 to 1; rows
        of equal value are in random order, and ``found`` is the mean over these orders.
        ``auc`` is `noisy_label_auc`.

    Raises
    ------
    ValueError
        If the lengths differ, values contain NaN or infinity, or is_wrong has one kind
        of row.

    See Also
    --------
    noisy_label_auc : Area under the ROC curve of the same detection.

    Examples
    --------
    >>> from skvalue.inspection import wrong_label_curve
    >>> curve = wrong_label_curve([-0.2, 0.1, 0.1, 0.3], [True, True, False, False])
    >>> curve.found.tolist(), curve.auc
    ([0.0, 0.5, 0.75, 1.0, 1.0], 0.875)
    """
    values = check_numbers(values, "values")
    is_wrong = check_mask(is_wrong, "is_wrong", len(values))
    auc = noisy_label_auc(values, is_wrong)

    # At the end of each block of tied values the number of wrong labels is known; over
    # the orders within a block its mean is linear.
    order = np.argsort(values, kind="stable")
    ends_block = np.append(np.diff(values[order]) > 0, True)
    n_at_end = np.flatnonzero(ends_block) + 1
    found_at_end = is_wrong[order].cumsum()[n_at_end - 1] / is_wrong.sum()
    n_inspected = np.arange(len(values) + 1)
    found = np.interp(n_inspected, np.append(0, n_at_end), np.append(0.0, found_at_end))
    return Bunch(inspected=n_inspected / len(values), found=found, auc=auc)


def mean_adjusted_variance(values, errors):
    """Uncertainty of estimated values: mean of squared error over absolute value.

    The term of player j is ``s_j^2 / |mu_j|``, where the value mu_j is a mean of
    marginal contributions with the standard error s_j. It is zero if s_j is zero, even
    if mu_j is zero.

    Parameters
    ----------
    values : array-like of shape (n_players,)
        Estimated values.
    errors : array-like of shape (n_players,)
        Their standard errors, as in `values_error_`.

    Returns
    -------
    uncertainty : float
        In units of the utility; infinite if a value is zero with a positive error, or
        if an error is infinite, as after a single permutation.

    Raises
    ------
    ValueError
        If the lengths differ, a value is not finite, or an error is negative or NaN.

    References
    ----------
    The paper of `skvalue.GradientSemivalueValuer`, Section 6.1 and Figure 2 (a).

    Examples
    --------
    >>> round(mean_adjusted_variance([0.5, -1.0], [0.1, 0.2]), 6)
    0.03
    """
    values = check_numbers(values, "values")
    errors = check_numbers(errors, "errors", ensure_all_finite=False)
    check_length(errors, "errors", len(values), of="values")
    # Written so that NaN is refused, too.
    if not errors.min() >= 0:
        raise ValueError(
            "errors must be standard errors, none of them negative or NaN. Got "
            f"{errors.min():g}."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = errors**2 / np.abs(values)
    return float(np.mean(np.where(errors == 0, 0.0, ratios)))
