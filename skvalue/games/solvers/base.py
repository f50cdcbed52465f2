"""Base class of batched solvers: tiles of coalitions, scores, fallback to the loop."""

from abc import ABC, abstractmethod

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from ..._utils.checks import refuse_large
from ..._utils.parallel import ordered_map, tiles
from ..._utils.sklearn import check_parameters
from ..._utils.warned import warn
from ...exceptions import ImpreciseValuesWarning
from ...linear import FAILED, ONE_CLASS, UNSOLVED
from .loop import fit_and_score
from .scores import Scores

_MAX_NUMBER = 1e150  # of a row, so that squares are finite
_MIN_TILE = 8  # coalitions
_MAX_TILE = 128
ANSWERS = 2_000_000  # approximate number of predictions per tile


class BatchedSolver(ABC):
    """Trains the models of many coalitions at once; one subclass per kind of estimator.

    X and X_val are the rows and validation points of `training` as dense, finite
    float64 arrays.
    """

    # The value of `ModelGame.solver`, and the response methods that are supported.
    name = ""
    methods = ("predict",)

    # What computes coefficients, of which torch has others, and whether tiles of
    # coalitions are computed in parallel threads.
    engine_class = None
    in_threads = True

    def __init__(self, training, X, X_val):
        self.training = training
        self.X = X
        self.X_val = X_val
        self.scores = Scores(training)
        self.has_warned = False
        self.weights = training.sample_weight
        if self.weights is None:
            self.weights = np.ones(len(X))

        if training.classes is None:
            self.n_classes = 0
            self.y = training.y.astype(np.float64)
        else:
            self.n_classes = len(training.classes)
            self.y = np.searchsorted(training.classes, training.y)
            self.onehot = np.eye(self.n_classes)[self.y]
        n_answers = max(self.n_classes, 1) * len(X_val)
        self.tile = int(np.clip(ANSWERS // n_answers, _MIN_TILE, _MAX_TILE))

    @classmethod
    def build(cls, training, engine_class=None):
        """The solver; None if estimator, data or scorer are not supported.

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
        X = _dense(training.X)
        X_val = _dense(training.X_val)
        if X is None or X_val is None or X.shape[1] != X_val.shape[1]:
            return None
        if training.classes is None and training.y.dtype.kind not in "fiub":
            return None

        reason = f" for {type(estimator).__name__}, which squares them"
        for rows in (X, X_val):  # the points may be rows of X that are held out
            refuse_large(rows, _MAX_NUMBER, "X and X_val", reason)
        solver = cls(training, X, X_val)
        if not solver.fits():
            return None
        engine_class = engine_class or cls.engine_class
        if engine_class is not None:
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

    def notice(self, sizes):
        """A warning if digits of coalitions of these sizes are lost, or None."""
        return None

    @abstractmethod
    def tile_scores(self, masks, sizes):
        """Scores of a tile of nonempty coalitions, and the status of each."""

    def utilities(self, masks, n_jobs):
        """Utilities (m,) of coalitions, masks of the failed ones, and of one class.

        The utilities depend, bitwise, on all coalitions of the call, not on the number
        of workers.
        """
        self.prepare()
        message = self.notice(masks.sum(axis=1))
        if message is not None and not self.has_warned:
            self.has_warned = True
            warn(message, ImpreciseValuesWarning)
        tasks = [
            (masks[tile], masks[tile].sum(axis=1))
            for tile in tiles(len(masks), self.tile)
        ]
        n_jobs = n_jobs if self.in_threads else 1
        results = list(ordered_map(self.tile_scores, tasks, n_jobs))
        utilities = np.concatenate([scores for scores, _ in results])
        status = np.concatenate([status for _, status in results])
        failed = status == FAILED
        has_one_class = status == ONE_CLASS

        # A failure has a known utility, unless it is an error: of all rows together, or
        # of any coalition with error_score="raise".
        is_error = failed
        error_score = self.training.error_score
        if failed.any() and not isinstance(error_score, str):
            utilities[failed] = error_score
            is_error = failed & (masks.sum(axis=1) == self.training.n_rows)

        # The loop solves the remaining ones, or raises the error of the estimator or
        # the scorer.
        remaining = np.isnan(utilities) | (status == UNSOLVED) | is_error
        if remaining.any():
            packed = np.packbits(masks[remaining], axis=1)
            scored = fit_and_score(self.training, packed)
            utilities[remaining], failed[remaining], has_one_class[remaining] = scored
        return utilities, failed, has_one_class

    def score_votes(self, votes, counts, sizes, probabilities_of=None):
        """Scores (m,) of classifiers from votes (m, V, C) for classes.

        They are probabilities, or what ``probabilities_of`` makes probabilities of.
        """
        if self.scores.response_method() == "predict":
            return self.scores.of_classes(votes.argmax(axis=2), sizes)
        probabilities = votes if probabilities_of is None else probabilities_of(votes)
        probabilities = complete_probabilities(probabilities, counts)
        return self.scores.of_classes(probabilities, sizes)

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
    """Mask (m,) of the coalitions with one class."""
    return np.count_nonzero(counts, axis=1) == 1


def complete_probabilities(probabilities, counts):
    """Probabilities (m, V, C) with those of classes that coalitions lack, in place.

    See `MissingClasses`. For a coalition of one class, of probability 1, this gives
    (count + 1) / (n + C).
    """
    n_classes = counts.shape[1]
    lacking = np.flatnonzero((counts == 0).any(axis=1))
    if len(lacking):
        n = counts[lacking].sum(axis=1)
        is_present = counts[lacking] > 0
        scale = (n + is_present.sum(axis=1)) / (n + n_classes)
        of_present = probabilities[lacking] * scale[:, None, None]
        of_missing = np.where(is_present, 0.0, 1.0 / (n + n_classes)[:, None])
        probabilities[lacking] = np.where(
            is_present[:, None, :], of_present, of_missing[:, None, :]
        )
    return probabilities
