"""Scores of values against what is known of the rows."""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_array, column_or_1d


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
    values = column_or_1d(
        check_array(values, ensure_2d=False, dtype=np.float64, input_name="values")
    )
    is_noisy = column_or_1d(is_noisy)
    if len(values) != len(is_noisy):
        raise ValueError(
            f"values and is_noisy must have the same length. Got {len(values)} and {len(is_noisy)}."
        )
    kinds = np.unique(is_noisy).tolist()
    # Row numbers in place of a mask are refused here.
    if not set(kinds) <= {False, True}:
        raise ValueError(
            "is_noisy must be a mask of True and False, one entry a row. Got the entries "
            f"{', '.join(map(repr, kinds[:5]))}{', ...' if len(kinds) > 5 else ''}."
        )
    if len(kinds) < 2:
        raise ValueError(
            f"is_noisy must mark both noisy and clean rows. Got {kinds[0]!r} for all "
            f"{len(is_noisy)}."
        )
    return float(roc_auc_score(is_noisy.astype(bool), -values))
