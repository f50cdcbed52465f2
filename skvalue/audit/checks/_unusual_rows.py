"""Rows that are far from all others, or mostly empty."""

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..._utils.text import plural
from ._encoding import scaled
from ._finding import Finding

_NEIGHBORS = 10
_FACTOR = 3.0  # interquartile ranges of the log distance above its upper quartile
_MOSTLY = 0.5  # fraction of missing entries


def find_far_rows(columns):
    """Rows whose mean distance from ten others is far above that of the other rows."""
    points = scaled(columns)
    neighbors = NearestNeighbors(n_neighbors=min(_NEIGHBORS, len(points) - 1))
    distances = neighbors.fit(points).kneighbors()[0].mean(axis=1)
    logs = np.log(distances + 1e-3 * np.median(distances) + 1e-12)
    low, high = np.quantile(logs, [0.25, 0.75])
    far = np.flatnonzero(logs > high + _FACTOR * (high - low))
    far = far[np.argsort(-distances[far], kind="stable")]
    if len(far):
        yield Finding(
            "far rows",
            "question",
            f"{plural(len(far), 'row')} far from all others: another unit, another "
            "kind of case, or a rare one?",
            rows=tuple(far.tolist()),
            evidence={"distance": distances[far].tolist()},
        )


def find_empty_rows(columns):
    """Rows most of whose entries are missing, more than in other rows."""
    fractions = np.mean([column.missing for column in columns], axis=0)
    limit = 2 * np.median(fractions) + 0.1
    rows = np.flatnonzero((fractions > _MOSTLY) & (fractions > limit))
    if len(rows):
        sentence = (
            f"{plural(len(rows), 'row')} with more than half of the entries missing."
        )
        yield Finding("empty rows", "question", sentence, tuple(rows.tolist()))
