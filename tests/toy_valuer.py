"""The valuer that doc/contributing.rst adds."""

from numbers import Integral

import numpy as np
from scipy.spatial.distance import cdist

from skvalue._utils.parallel import ordered_map, tiles
from skvalue._utils.sklearn import StrOptions
from skvalue.base import BaseInSampleValuer, Part, mean_over_splits


def count_votes(number, X, y, points):
    """Value of each row at some points of a split: a vote for its label, less the farther it is."""
    votes = np.exp(-cdist(X, points.X)) * np.where(y[:, None] == points.y, 1, -1)
    return Part(number, values=votes @ points.weights, utility=votes.sum(axis=0))


class VoteValuer(BaseInSampleValuer):
    """Shapley values of a vote: the utility of a coalition is the sum of the votes of its rows.

    Parameters
    ----------
    cv : int, splitter or "leave-one-out", default="leave-one-out"
        Which rows are held out in turn, if there is no validation set.
    n_jobs : int, default=None
        Number of workers.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,)
        The values.
    """

    _parameter_constraints = {
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "n_jobs": [Integral, None],
    }

    def __init__(self, cv="leave-one-out", n_jobs=None):
        self.cv = cv
        self.n_jobs = n_jobs

    def _parts(self, problem, attributes, release):
        tasks = [
            (number, *problem.rows(split), split.points[tile])
            for number, split in enumerate(problem.splits)
            for tile in tiles(len(split.points), 256)
        ]
        return ordered_map(count_votes, tasks, self.n_jobs), len(tasks)

    def _combine(self, problem, attributes, parts):
        return mean_over_splits(problem, parts, empty_utility=0.0)
