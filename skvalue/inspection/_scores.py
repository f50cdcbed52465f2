"""Scores of values: against what is known of the rows, and against their errors."""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import column_or_1d

from .._utils.checks import check_numbers


def noisy_label_auc(values, is_noisy):
    """How well low values point at noisy rows: the area under the ROC curve.

    It is the chance that a noisy row, drawn at random, has a lower value than a clean one, ties
    counting one half: 1 where all noisy rows come first in ascending order of value, 0.5 for
    values that know nothing. The noise may be in the labels or in the features.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        Values of the rows; higher is better.
    is_noisy : array-like of shape (n_samples,)
        True (or 1) for noisy rows, False (or 0) for clean ones; there must be some of each.

    Returns
    -------
    auc : float
        The area, from 0 to 1.

    Raises
    ------
    ValueError
        If the lengths differ, values hold NaN or infinity, or is_noisy holds one kind of row or
        anything but True and False.

    See Also
    --------
    skvalue.datasets.flip_labels : Labels with noise and the mask of the noisy rows.
    skvalue.datasets.perturb_features : The same for features.
    sklearn.metrics.roc_auc_score : The score, in which high values point at positives.

    Examples
    --------
    >>> from skvalue.inspection import noisy_label_auc
    >>> noisy_label_auc([-0.2, 0.1, 0.1, 0.3], [True, True, False, False])
    0.875
    """
    values = check_numbers(values, "values")
    is_noisy = column_or_1d(is_noisy)
    if len(values) != len(is_noisy):
        raise ValueError(
            f"values and is_noisy must have the same length. Got {len(values)} and {len(is_noisy)}."
        )
    kinds = np.unique(is_noisy).tolist()
    # Row numbers in place of a mask are refused here.
    if not set(kinds) <= {False, True}:
        raise ValueError(
            "is_noisy must be a mask of True and False, one entry per row. Got the entries "
            f"{', '.join(map(repr, kinds[:5]))}{', ...' if len(kinds) > 5 else ''}."
        )
    if len(kinds) < 2:
        raise ValueError(
            f"is_noisy must mark both noisy and clean rows. Got {kinds[0]!r} for all "
            f"{len(is_noisy)}."
        )
    return float(roc_auc_score(is_noisy.astype(bool), -values))


def mean_adjusted_variance(values, errors):
    """Uncertainty of estimated values: the mean over players of variance over size.

    For a value that is the mean mu_j of k marginal contributions with the standard error s_j, it
    is ``s_j^2 / |mu_j|``. A player whose value is zero, and certain, counts nothing.

    Parameters
    ----------
    values : array-like of shape (n_players,)
        Values.
    errors : array-like of shape (n_players,)
        Their standard errors, as in `values_error_`.

    Returns
    -------
    uncertainty : float
        In units of the utility; infinite where a value of zero is not certain, or an error is
        infinite, as those of one permutation are.

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
    if len(values) != len(errors) or not errors.min() >= 0:
        raise ValueError(
            "errors must have one entry per value, none of them negative or NaN. Got "
            f"{len(errors)} errors from {errors.min():g} for {len(values)} values."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = errors**2 / np.abs(values)
    return float(np.mean(np.where(errors == 0, 0.0, ratios)))
