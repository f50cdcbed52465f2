"""Base class of batched solvers: tiles of coalitions, scores, and the fallback to the
loop."""

from abc import ABC, abstractmethod

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from ..._utils.parallel import ordered_map, tiles
from ..._utils.sklearn import check_parameters
from ...linear import FAILED, ONE_CLASS, UNSOLVED
from .loop import fit_and_score
from .scores import Scores

_TILE = 128
ANSWERS = 2_000_000  # approximate number of predictions per tile


class BatchedSolver(ABC):
    """Trains the models of many coalitions at once; one subclass per kind of estimator.

    X and X_val are the rows and validation points of `training` as dense, finite
    float64 arrays.
    """

    name = ""  # value of `ModelGame.solver`
    engine_class = None  # computes coefficients; `torch` has others
    in_threads = True  # whether tiles are computed in parallel threads
    methods = ("predict",)  # response methods that it supports

    def __init__(self, training, X, X_val):
        self.training, self.X, self.X_val = training, X, X_val
        self.scores = Scores(training)
        self.n_classes = 0 if training.classes is None else len(training.classes)
        self.weights = (
            np.ones(len(X))
            if training.sample_weight is None
            else training.sample_weight
        )
        if self.n_classes:
            self.y = np.searchsorted(training.classes, training.y)
            self.onehot = np.eye(self.n_classes)[self.y]
        else:
            self.y = training.y.astype(np.float64)
        width = max(self.n_classes, 1) * len(X_val)
        self.tile = int(np.clip(ANSWERS // width, 8, _TILE))

    @classmethod
    def build(cls, training, engine_class=None):
        """The solver, or None if it does not support the estimator, the data or the
        scorer.

        Raises the ValueError of the estimator for parameters that it refuses.
        """
        estimator = training.estimator
        if type(estimator) is not cls.estimator:
            return None
        check_parameters(estimator)
        if not cls.allows(estimator.get_params()):
            return None
        if Scores(training).response_method() not in cls.methods:
            return None
        X, X_val = _dense(training.X), _dense(training.X_val)
        if X is None or X_val is None or X.shape[1] != X_val.shape[1]:
            return None
        if training.classes is None and training.y.dtype.kind not in "fiub":
            return None
        solver = cls(training, X, X_val)
        if not solver.fits():
            return None
        if engine_class := engine_class or cls.engine_class:
            solver.engine = engine_class(solver)
        return solver

    @staticmethod
    def allows(parameters):
        """Whether the solver supports the parameters of the estimator."""
        return True

    def fits(self):
        """Whether the solver supports the size of the data and the scorer."""
        return True

    def prepare(self):
        """Precompute what all tiles use."""
        return

    @abstractmethod
    def tile_scores(self, masks, sizes):
        """Scores of a tile of nonempty coalitions, and the status of each."""

    def utilities(self, masks, n_jobs):
        """Utilities of coalitions of rows, a mask of those that failed, and one of one
        class.

        The utilities depend, bitwise, on all coalitions of the call, not on the number
        of workers.
        """
        self.prepare()
        tasks = [
            (masks[part], masks[part].sum(axis=1))
            for part in tiles(len(masks), self.tile)
        ]
        parts = list(
            ordered_map(self.tile_scores, tasks, n_jobs if self.in_threads else 1)
        )
        utilities, status = map(np.concatenate, zip(*parts))
        failed, single = status == FAILED, status == ONE_CLASS
        raises = isinstance(self.training.error_score, str)
        if failed.any() and not raises:
            utilities[failed] = self.training.error_score
            raises = masks.sum(axis=1) == self.training.n_rows
        left = np.isnan(utilities) | (status == UNSOLVED) | (failed & raises)
        # The loop solves the rest, or raises the error of the estimator or the scorer.
        if left.any():
            packed = np.packbits(masks[left], axis=1)
            utilities[left], failed[left], single[left] = fit_and_score(
                self.training, packed
            )
        return utilities, failed, single

    def score_votes(self, votes, counts, sizes, probabilities_of=None):
        """Scores of classifiers from votes (m, V, C), which probabilities are computed
        from."""
        if self.scores.response_method() == "predict":
            return self.scores.of_classes(votes.argmax(axis=2), sizes)
        probabilities = votes if probabilities_of is None else probabilities_of(votes)
        return self.scores.of_classes(
            complete_probabilities(probabilities, counts), sizes
        )

    def counts(self, masks):
        """Number of rows of each class in each coalition, (m, C)."""
        return (masks @ self.onehot).astype(np.int64)


def _dense(X):
    if issparse(X):
        return None
    try:
        return check_array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError):  # the estimator decides about such data
        return None


def one_class(counts):
    """Mask of the coalitions with one class."""
    return np.count_nonzero(counts, axis=1) == 1


def complete_probabilities(probabilities, counts):
    """Set, in place, the probabilities of classes that a coalition lacks; see
    `MissingClasses`.

    For a coalition of one class, of probability 1, this gives (count + 1) / (n + C).
    """
    n_classes = counts.shape[1]
    lacking = np.flatnonzero((counts == 0).any(axis=1))
    if len(lacking):
        n = counts[lacking].sum(axis=1)
        present = counts[lacking] > 0
        scale = (n + present.sum(axis=1)) / (n + n_classes)
        extended = probabilities[lacking] * scale[:, None, None]
        rest = np.where(present, 0.0, 1.0 / (n + n_classes)[:, None])
        probabilities[lacking] = np.where(
            present[:, None, :], extended, rest[:, None, :]
        )
    return probabilities
