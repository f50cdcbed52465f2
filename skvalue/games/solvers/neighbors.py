"""K nearest neighbours, on many coalitions at once."""

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from .base import BatchedSolver, one_class
from .status import ONE_CLASS, SOLVED, UNSOLVED

_MAX_PAIRS = 50_000_000  # of rows and validation points, whose order is kept


class BaseNeighborsSolver(BatchedSolver):
    """Means over the nearest rows; all rows are sorted once at every validation point.

    Rows at the same distance come in the order in which the estimator has them among all rows.
    Coalitions of fewer rows than neighbours are left to the estimator, which mostly refuses them.
    """

    name = "neighbours"

    @staticmethod
    def allows(parameters):
        known = isinstance(parameters["weights"], str)
        metric = parameters["metric"]
        return known and not (isinstance(metric, str) and metric == "precomputed")

    def __init__(self, training, X, X_val):
        super().__init__(training, X, X_val)
        self.values = self.onehot if self.n_classes else self.y[:, None]
        self.order = None

    def fits(self):
        return len(self.X) * len(self.X_val) <= _MAX_PAIRS

    def prepare(self):
        if self.order is None:
            whole = clone(self.training.estimator).set_params(n_neighbors=len(self.X))
            distances, order = whole.fit(self.X, self.training.y).kneighbors(self.X_val)
            self.distances = np.ascontiguousarray(distances, dtype=np.float64)
            self.order = np.ascontiguousarray(order, dtype=np.int64)

    def means(self, masks):
        """Weighted means of the neighbours' rows of ``values``, (m, V, C or 1)."""
        from .neighbors_kernels import neighbour_means

        estimator = self.training.estimator
        out = np.zeros((len(masks), len(self.X_val), self.values.shape[1]))
        neighbour_means(
            self.order, self.distances, self.values, masks, estimator.n_neighbors,
            estimator.weights == "distance", out,
        )  # fmt: skip
        return out


class NeighborsSolver(BaseNeighborsSolver):
    """Votes of the nearest rows."""

    estimator = KNeighborsClassifier
    methods = ("predict", "predict_proba")

    def tile_scores(self, masks, sizes):
        counts, shares = self.counts(masks), self.means(masks)
        few = sizes < self.training.estimator.n_neighbors
        status = np.where(one_class(counts), ONE_CLASS, np.where(few, UNSOLVED, SOLVED))
        alone = status == ONE_CLASS
        shares[alone] = (counts[alone] > 0)[:, None]
        return self.score_votes(shares, counts, sizes), status


class NeighborsRegressionSolver(BaseNeighborsSolver):
    """Means of the nearest rows' targets."""

    estimator = KNeighborsRegressor
    methods = ("predict",)

    def tile_scores(self, masks, sizes):
        few = sizes < self.training.estimator.n_neighbors
        scores = self.scores.of_targets(self.means(masks)[:, :, 0], sizes)
        return scores, np.where(few, UNSOLVED, SOLVED)
