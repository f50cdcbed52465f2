"""K nearest neighbours on many coalitions at once."""

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from ..._utils.parallel import tiles
from ...linear import FAILED, ONE_CLASS, SOLVED, UNSOLVED
from .base import BatchedSolver, one_class
from .loop import train
from .neighbors_kernels import neighbour_means

_MAX_PAIRS = 50_000_000  # of rows and validation points, whose order is kept


class NeighborsSolver(BatchedSolver):
    """Means over the nearest rows; all rows are sorted once for every validation point.

    Rows at equal distances keep the order in which the estimator sorts all rows.
    Coalitions of fewer rows than `n_neighbors` have failed if the estimator refuses one
    of them, which it is asked once. Otherwise they are left to it: scikit-learn has a
    search by brute force, for some metrics, that refuses none.
    """

    name = "neighbours"
    estimator = KNeighborsClassifier
    methods = ("predict", "predict_proba")

    @staticmethod
    def allows(parameters):
        metric = parameters["metric"]
        is_precomputed = isinstance(metric, str) and metric == "precomputed"
        return isinstance(parameters["weights"], str) and not is_precomputed

    def __init__(self, training, X, X_val):
        super().__init__(training, X, X_val)
        self.values = self.onehot if self.n_classes else self.y[:, None]

        # Set by `prepare`: rows by distance from each validation point, their distances
        # if these weight the rows, and the status of coalitions of fewer rows than
        # `n_neighbors`.
        self.distances = None
        self.order = None
        self.too_few = None

    def fits(self):
        return len(self.X) * len(self.X_val) <= _MAX_PAIRS

    def prepare(self):
        if self.order is not None:
            return
        model = clone(self.training.estimator).set_params(n_neighbors=len(self.X))
        model.fit(self.X, self.training.y)
        shape = (len(self.X_val), len(self.X))
        order = np.empty(shape, dtype=np.int64)
        needs_distances = self.training.estimator.weights == "distance"
        distances = np.empty((0, 0))
        if needs_distances:
            distances = np.empty(shape)

        # The search needs about four numbers for each pair of a point and a row.
        room = int(get_config()["working_memory"] * 2**20 // (32 * len(self.X)))
        for points in tiles(len(self.X_val), max(1, room)):
            of_points, order[points] = model.kneighbors(self.X_val[points])
            if needs_distances:
                distances[points] = of_points
        self.distances = distances
        self.too_few = UNSOLVED
        if self._refuses():
            self.too_few = FAILED
        self.order = order

    def _refuses(self):
        """Whether the estimator refuses fewer rows than `n_neighbors`."""
        rows = [0]
        if self.n_classes:
            rows = np.unique(self.y, return_index=True)[1][:2]
        if len(rows) >= self.training.estimator.n_neighbors:
            return False  # no coalition of so few rows has two classes, or one row

        training = self.training
        model, _ = train(
            training.estimator, training.X, training.y, None, training.classes, rows
        )
        predict = getattr(model, self.scores.response_method())
        try:
            predict(training.X_val)
        except ValueError:
            return True
        return False

    def tile_scores(self, masks, sizes):
        estimator = self.training.estimator
        means = np.zeros((len(masks), len(self.X_val), self.values.shape[1]))
        neighbour_means(
            order=self.order,
            distances=self.distances,
            values=self.values,
            masks=masks,
            n_neighbors=estimator.n_neighbors,
            by_distance=estimator.weights == "distance",
            out=means,
        )
        status = np.where(sizes < estimator.n_neighbors, self.too_few, SOLVED)
        if not self.n_classes:
            return self.scores.of_targets(means[:, :, 0], sizes), status

        counts = self.counts(masks)
        has_one_class = one_class(counts)
        means[has_one_class] = (counts[has_one_class] > 0)[:, None]
        status = np.where(has_one_class, ONE_CLASS, status)
        return self.score_votes(means, counts, sizes), status


class NeighborsRegressionSolver(NeighborsSolver):
    """The same for targets."""

    estimator = KNeighborsRegressor
    methods = ("predict",)
