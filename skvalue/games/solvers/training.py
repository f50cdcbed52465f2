"""The data and settings that the models of all coalitions of a game share."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Training:
    """An estimator, its training rows, and its models' validation points and scorer."""

    estimator: Any
    X: Any
    y: np.ndarray
    classes: np.ndarray | None  # sorted; None in regression
    sample_weight: np.ndarray | None
    X_val: Any
    y_val: np.ndarray
    sample_weight_val: np.ndarray | None
    scoring: Any  # as passed by the user
    scorer: Any
    error_score: float | str  # utility of a failed coalition, or "raise"
    device: str = "auto"  # where batches are trained

    @property
    def n_rows(self):
        """Number of rows of positive weight."""
        if self.sample_weight is None:
            return len(self.y)
        return int(np.count_nonzero(self.sample_weight))

    def score(self, model):
        """What the scorer returns for a model."""
        weights = {}
        if self.sample_weight_val is not None:
            weights = {"sample_weight": self.sample_weight_val}
        return self.scorer(model, self.X_val, self.y_val, **weights)
