"""Rows that are far from all others, or mostly empty."""

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..._utils.text import plural
from ._columns import scaled
from ._finding import Finding

_NEIGHBORS, _FACTOR = 10, 3.0
_MOSTLY = 0.5  # fraction of missing entries


def find_far_rows(columns):
    """Rows whose mean distance from ten others is far above that of the other rows."""
    Z = scaled(columns)
    near = NearestNeighbors(n_neighbors=min(_NEIGHBORS, len(Z) - 1)).fit(Z)
    distance = near.kneighbors()[0].mean(axis=1)
    logs = np.log(distance + 1e-3 * np.median(distance) + 1e-12)
    low, high = np.quantile(logs, [0.25, 0.75])
    far = np.flatnonzero(logs > high + _FACTOR * (high - low))
    far = far[np.argsort(-distance[far], kind="stable")]
    if len(far):
        said = plural(len(far), "row") + (
            " far from all others: another unit, another kind of case, or a rare one?"
        )
        evidence = {"distance": distance[far].tolist()}
        yield Finding(
            "far rows", "question", said, tuple(far.tolist()), evidence=evidence
        )


def find_empty_rows(columns):
    """Rows most of whose entries are missing, more than in other rows."""
    lost = np.mean([column.missing for column in columns], axis=0)
    rows = np.flatnonzero((lost > _MOSTLY) & (lost > 2 * np.median(lost) + 0.1))
    if len(rows):
        said = f"{plural(len(rows), 'row')} with more than half of the entries missing."
        yield Finding("empty rows", "question", said, tuple(rows.tolist()))
