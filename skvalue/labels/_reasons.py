"""What speaks for and against the label of a row."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..valuers import InfluenceValuer, KNNShapleyValuer
from ._held_out import default_models

_N_NEIGHBORS = 10


class LabelReasons(NamedTuple):
    """What the nearest neighbours of a row say about its label.

    Parameters
    ----------
    neighbors : float
        Fraction of the neighbours with its label; for regression, the absolute
        difference between their mean target and its own.
    supporters, opponents : ndarray of int
        The rows that contribute most to, and most against, the prediction of its label.
    supporter_contributions, opponent_contributions : ndarray
        Their Shapley values.
    """

    neighbors: float
    supporters: np.ndarray
    supporter_contributions: np.ndarray
    opponents: np.ndarray
    opponent_contributions: np.ndarray


def label_reasons(vectors, codes, row, n_rows, is_classifier):
    """Reasons of one row, with at most `n_rows` rows for and against its label."""
    others = np.delete(np.arange(len(codes)), row)
    valuer = KNNShapleyValuer(
        n_neighbors=min(_N_NEIGHBORS, len(others)),
        task="classification" if is_classifier else "regression",
    )
    valuer.fit(vectors[others], codes[others], X_val=vectors[[row]], y_val=codes[[row]])
    values = valuer.values_
    order = np.argsort(-values, kind="stable")
    supporters = order[:n_rows]
    supporters = supporters[values[supporters] > 0]
    opponents = order[::-1][:n_rows]
    opponents = opponents[values[opponents] < 0]
    return LabelReasons(
        neighbors=valuer.utility_ if is_classifier else np.sqrt(-valuer.utility_),
        supporters=others[supporters],
        supporter_contributions=values[supporters],
        opponents=others[opponents],
        opponent_contributions=values[opponents],
    )


def influence_ranks(vectors, codes, rows, is_classifier):
    """Fraction of all rows with a lower influence on a linear model than each row."""
    if issparse(vectors):
        vectors = vectors.toarray()
    linear = "logistic" if is_classifier else "ridge"
    valuer = InfluenceValuer(default_models(is_classifier, seed=0)[linear])
    values = valuer.fit(vectors, codes).values_
    return np.searchsorted(np.sort(values), values[rows]) / len(values)
