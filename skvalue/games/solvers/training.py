"""What the models of all coalitions of a game have in common."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Training:
    """Rows that models are trained on, validation points that they are scored on, and how."""

    estimator: Any
    X: Any
    y: np.ndarray
    classes: np.ndarray | None  # sorted; None in a regression
    sample_weight: np.ndarray | None
    X_val: Any
    y_val: np.ndarray
    sample_weight_val: np.ndarray | None
    scoring: Any  # as the user gave it
    scorer: Any
    error_score: float | str  # utility of a coalition that fails, or "raise"
    device: str = "auto"  # where batches are trained
