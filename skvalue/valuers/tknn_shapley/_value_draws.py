"""Values of both kinds of neighbours, estimated from draws of the counts in balls.

Sizes of values vary by orders of magnitude, so means are taken of their logarithms. One
factor then makes the total of the values of all rows that of the draws.
"""

from functools import lru_cache

import numpy as np

from ...semivalues import absence_moments, check_semivalue

# Values are tabulated up to this count at least.
_TABLE = 10_000


def size_draws(posterior, n_classes, semivalue="shapley", joins=False):
    """Values of both kinds of neighbours for each draw of the counts.

    Both of shape (2, n_draws, n_validation). ``joins``: the neighbour is not among the
    rows counted.
    """
    same, other = posterior
    # Powers of two, so that few tables are computed. Counts beyond a million are
    # approximated.
    largest = max(same.max(), other.max()) + 1
    table = 1 << int(np.clip(largest, _TABLE, 2**20) - 1).bit_length()
    rule = n_classes, semivalue, table
    value_same, _ = _real_neighbour_values(np.maximum(same + joins, 1), other, *rule)
    _, value_other = _real_neighbour_values(same, np.maximum(other + joins, 1), *rule)

    # Sizes near 0, which some semivalues have, are clipped: their logarithms are taken.
    smallest = 1e-3 / np.maximum(same + other, 1)
    value_same = np.maximum(value_same, smallest)
    value_other = np.minimum(value_other, -smallest)
    return np.stack([value_same, value_other])


def value_sizes(posterior, sizes):
    """Values of both kinds of neighbours at each point, from those of each draw.

    Geometric means over the draws, times the factor, at most 1, which makes the mean
    log of the total size of the values of all rows that of the draws. From the shape
    (2, n_draws, n_validation) to two arrays (n_validation,).
    """
    sizes = np.abs(sizes)
    means = np.exp(np.log(sizes).mean(axis=1, keepdims=True))
    drawn_total = np.maximum((posterior * sizes).sum(axis=(0, 2)), 1e-300)
    mean_total = np.maximum((posterior * means).sum(axis=(0, 2)), 1e-300)
    factor = min(1.0, np.exp(np.log(drawn_total / mean_total).mean()))
    return factor * means[0, 0], -factor * means[1, 0]


def _real_neighbour_values(same, other, n_classes, semivalue, table):
    """`neighbour_values` for real counts, which include the neighbour that is valued.

    Terms that depend only on the number of neighbours are interpolated up to ``table``
    neighbours, and fall as the inverse of their number beyond.
    """
    alone, joined = _tables(check_semivalue(semivalue), table)
    c = same + other
    inside = np.minimum(c, table)
    lower = inside.astype(np.int64)
    fraction = inside - lower
    shrink = np.minimum(table / np.maximum(c, 1), 1.0)
    alone = ((1 - fraction) * alone[lower] + fraction * alone[lower + 1]) * shrink
    joined = ((1 - fraction) * joined[lower] + fraction * joined[lower + 1]) * shrink

    others = np.maximum(c - 1, 1e-12)
    same_if_same = np.clip((same - 1) / others, 0, 1)
    same_if_other = np.clip(same / others, 0, 1)
    value_same = (1 - 1 / n_classes) * alone + (1 - same_if_same) * joined
    return value_same, -alone / n_classes - same_if_other * joined


@lru_cache(maxsize=4)
def _tables(semivalue, table):
    """Weights of coalitions without and with other neighbours, each (table + 2,).

    For 0, ..., table + 1 neighbours.
    """
    moments = absence_moments(semivalue, table + 2)[: table + 1]
    alone = np.concatenate([moments[:1], moments])
    mean = np.cumsum(moments) / np.arange(1, table + 2)
    return alone, np.concatenate([[0.0], mean - moments])
