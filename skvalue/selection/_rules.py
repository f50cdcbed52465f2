"""Which rows go, by their values: functions of arrays."""

from numbers import Integral

import numpy as np
from scipy.stats import rankdata


def drop_count(drop, n):
    """Number of rows that a fraction (a float, rounded down) or a count (an int) means.

    Examples
    --------
    >>> drop_count(0.29, 100), drop_count(0.5, 5), drop_count(1, 5), drop_count(0.0, 5)
    (29, 2, 1, 0)
    """
    if isinstance(drop, Integral):
        return int(drop)
    return int(drop * n + 1e-9)  # 0.29 * 100 falls just short of 29


def lowest(values, count):
    """Mask of the `count` lowest values; of equal ones the first.

    Examples
    --------
    >>> import numpy as np
    >>> lowest(np.array([0.2, -0.1, 0.3, 0.2]), 2).tolist()
    [True, True, False, False]
    """
    mask = np.zeros(len(values), dtype=bool)
    mask[np.argsort(values, kind="stable")[:count]] = True
    return mask


def keep_every_class(dropped, values, labels, players=None):
    """Keep, of each class that would go as a whole, the player of the highest value.

    ``players`` has the player of each row; None: each row is one. Returns the mask of the players
    to drop without those kept, and the classes that would have gone.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.array(["a", "a", "b", "b"])
    >>> dropped, saved = keep_every_class(np.array([1, 1, 1, 0]) > 0, np.arange(4), labels)
    >>> dropped.tolist(), saved
    ([True, False, True, False], ['a'])
    """
    dropped = dropped.copy()
    if players is None:
        players = np.arange(len(labels))
    names, codes = np.unique(labels, return_inverse=True)
    saved = []
    for code, name in enumerate(names.tolist()):
        own = players[codes == code]
        if dropped[own].all():
            dropped[own[np.argmax(values[own])]] = False
            saved.append(name)
    return dropped, saved


def rank_weights(values, fraction, first=None):
    """Weights that rise with the rank of the value: clip(percentile / fraction, 0, 1), all above 0.

    The percentile of a row is (rank - 1/2) / n, tied rows having their mean rank, so that the
    lowest row does not weigh 0. Rows in the mask ``first`` rank below all others.

    Examples
    --------
    >>> import numpy as np
    >>> rank_weights(np.array([3.0, 1.0, 2.0, 4.0]), 0.5).tolist()
    [1.0, 0.25, 0.75, 1.0]
    """
    n = len(values)
    if fraction == 0:
        return np.ones(n)
    ranks = rankdata(values)
    if first is not None:
        ranks = rankdata(np.where(first, ranks, ranks + n))
    return np.clip((ranks - 0.5) / n / fraction, 0.0, 1.0)
