"""Nearest centroids on many coalitions at once."""

import numpy as np
from sklearn.neighbors import NearestCentroid

from ...linear import FAILED, ONE_CLASS, SOLVED
from .base import BatchedSolver, one_class


class CentroidSolver(BatchedSolver):
    """Predicts the class of the nearest mean; sums over classes are matrix products."""

    name = "nearest centroid"
    estimator = NearestCentroid

    @staticmethod
    def allows(parameters):
        return (
            parameters["metric"] == "euclidean"
            and parameters["shrink_threshold"] is None
            and isinstance(parameters["priors"], str)
            and parameters["priors"] == "uniform"
        )

    def __init__(self, training, X, X_val):
        super().__init__(training, X - X.mean(axis=0), X_val - X.mean(axis=0))
        self.row_codes = np.unique(X, axis=0, return_inverse=True)[1].ravel()

    def tile_scores(self, masks, sizes):
        counts = self.counts(masks)
        distances = np.full((len(masks), len(self.X_val), self.n_classes), np.inf)
        for c in range(self.n_classes):
            rows = self.y == c
            has_class = counts[:, c] > 0
            sums = masks[:, rows][has_class] @ self.X[rows]
            centroids = sums / counts[has_class, c, None]
            squares = np.einsum("ij,ij->i", centroids, centroids)
            distances[has_class, :, c] = squares[:, None] - 2 * centroids @ self.X_val.T

        # The estimator raises an error if all rows are equal.
        status = np.where(one_class(counts), ONE_CLASS, SOLVED)
        largest = np.where(masks, self.row_codes, -1).max(axis=1)
        smallest = np.where(masks, self.row_codes, len(self.row_codes)).min(axis=1)
        status[(largest == smallest) & (status == SOLVED)] = FAILED
        return self.scores.of_classes(distances.argmin(axis=2), sizes), status
