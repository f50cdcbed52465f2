"""Rules that select rows by their values, as functions of arrays."""

from numbers import Integral

import numpy as np
from scipy.stats import rankdata


def n_selected(drop, n):
    """Number of rows to drop of n, for a fraction, which is rounded down, or a count.

    >>> n_selected(0.29, 100), n_selected(np.float32(0.29), 100), n_selected(11, 100)
    (29, 29, 11)
    """
    if isinstance(drop, Integral):
        return int(drop)
    # 0.29 * 100 is just below 29, the more so the less precise the type of 0.29.
    rounding = 1 + float(np.finfo(type(drop)).eps)
    return int(float(drop) * n * rounding + 1e-9)


def lowest_mask(values, count):
    """Mask of the `count` lowest values; of equal values the first ones.

    >>> import numpy as np
    >>> lowest_mask(np.array([0.2, -0.1, 0.3, 0.2]), 2).tolist()
    [True, True, False, False]
    """
    mask = np.zeros(len(values), dtype=bool)
    mask[np.argsort(values, kind="stable")[:count]] = True
    return mask


def ties_at_cut(values, selected):
    """Numbers of all values, and of selected ones, that tie at the cut; or zeros.

    The mask `selected` has the lowest values; the cut is behind the last of them.

    >>> ties_at_cut(np.array([1.0, 0.0, 0.0, 0.0]), np.array([0, 1, 1, 0]) > 0)
    (3, 2)
    >>> ties_at_cut(np.array([1.0, 0.0, 0.0, 0.0]), np.array([0, 1, 1, 1]) > 0)
    (0, 0)
    """
    if not selected.any() or selected.all():
        return 0, 0
    tied = np.isclose(values, values[selected].max(), rtol=1e-9, atol=0)
    if not (tied & ~selected).any():
        return 0, 0
    return int(tied.sum()), int((tied & selected).sum())


def keep_every_class(dropped, values, labels, players=None):
    """Keep the best player of each class of which all players would be dropped.

    `players` has the player of each row; None means the row itself. Returns the new
    mask of players to drop, and the classes that would have lost all rows.

    >>> import numpy as np
    >>> labels = np.array(["a", "a", "b", "b"])
    >>> dropped = np.array([True, True, True, False])
    >>> dropped, emptied = keep_every_class(dropped, np.arange(4), labels)
    >>> dropped.tolist(), emptied
    ([True, False, True, False], ['a'])
    """
    dropped = dropped.copy()
    if players is None:
        players = np.arange(len(labels))
    classes, codes = np.unique(labels, return_inverse=True)
    emptied_classes = []
    for code, label in enumerate(classes.tolist()):
        members = players[codes == code]
        if dropped[members].all():
            dropped[members[np.argmax(values[members])]] = False
            emptied_classes.append(label)
    return dropped, emptied_classes


def rank_weights(values, fraction, ranked_first=None):
    """Weights clip(percentile / fraction, 0, 1), which increase with the value.

    The percentile of a row is (rank - 1/2) / n, which is above 0; tied rows have their
    mean rank. Rows in the mask `ranked_first` rank below all others.

    >>> import numpy as np
    >>> rank_weights(np.array([3.0, 1.0, 2.0, 4.0]), 0.5).tolist()
    [1.0, 0.25, 0.75, 1.0]
    """
    n = len(values)
    if fraction == 0:
        return np.ones(n)
    ranks = rankdata(values)
    if ranked_first is not None:
        ranks = rankdata(np.where(ranked_first, ranks, ranks + n))
    return np.clip((ranks - 0.5) / n / fraction, 0.0, 1.0)
