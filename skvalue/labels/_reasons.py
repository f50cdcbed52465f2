"""What speaks for and against the label of a row."""

import numpy as np
from scipy.sparse import issparse

from ..valuers import InfluenceValuer, KNNShapleyValuer
from ._held_out import default_models

_NEIGHBORS = 10

REASONS = (
    "neighbors", "supporters", "supporter_contributions", "opponents", "opponent_contributions",
)  # fmt: skip


def speakers(vectors, codes, row, n_rows, classifier):
    """What neighbours say about one row; the rows for and against it, by their Shapley
    values."""
    others = np.delete(np.arange(len(codes)), row)
    task = "classification" if classifier else "regression"
    valuer = KNNShapleyValuer(min(_NEIGHBORS, len(others)), task=task)
    valuer.fit(vectors[others], codes[others], X_val=vectors[[row]], y_val=codes[[row]])
    order = np.argsort(-valuer.values_, kind="stable")
    values = valuer.values_[order]
    first, last = order[:n_rows][values[:n_rows] > 0], order[::-1][:n_rows]
    last = last[valuer.values_[last] < 0]
    said = valuer.utility_ if classifier else np.sqrt(-valuer.utility_)
    entries = (
        said,
        others[first],
        valuer.values_[first],
        others[last],
        valuer.values_[last],
    )
    return dict(zip(REASONS, entries))


def influence_ranks(vectors, codes, rows, classifier):
    """Fraction of all rows that have a lower influence on a linear model than each of
    some."""
    vectors = vectors.toarray() if issparse(vectors) else vectors
    model = list(default_models(classifier, 0).values())[1]
    values = InfluenceValuer(model).fit(vectors, codes).values_
    return np.searchsorted(np.sort(values), values[rows]) / len(values)
