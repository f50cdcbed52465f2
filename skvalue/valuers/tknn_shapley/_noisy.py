"""The game of noisy counts: values of neighbours from what was released, and their errors."""

from dataclasses import dataclass

import numpy as np

from ...neighbors import balls, get_engine, make_space
from ._capped import CappedBalls
from ._denoising import count_posterior, size_draws, value_sizes
from ._game import by_label, neighbour_values, threshold_utility
from ._overlap import public_geometry

_N_ERROR_DRAWS = 32  # for standard errors: each costs a sum over the rows


@dataclass(frozen=True, eq=False)
class NoisyGame:
    """As `LabelGame`, for the released counts with and without the label of each point.

    It consists of what is public. All labels that no point has are one more label.
    """

    n_classes: int
    semivalue: object
    radius: float
    metric: object
    noise: float  # standard deviation of the noise of the counts
    denoise: bool
    cap: int | None  # largest number of balls in which a row is counted; None: all

    def balls(self, X, y, points, n_jobs):
        """The balls around points, for rows X of classes y (None: one class)."""
        engine, n_labels = get_engine("auto"), 1 if y is None else self.n_classes + 1
        space = make_space(X, self.metric, y, n_labels)
        if self.cap is None:
            return balls(engine, space, points, self.radius, n_jobs=n_jobs)
        return CappedBalls(engine, space, points, self.radius, self.cap, n_jobs)

    def estimate(self, counts, points, joins=False):
        """Values of both kinds of neighbours at each point, the utility there, and draws of both.

        Noisy counts are smoothed over the points, or rounded and clipped at zero. With ``joins``
        the neighbour is not among those that were counted.
        """
        if self.denoise:
            geometry = public_geometry(points.X, self.radius, self.metric)
            posterior = count_posterior(counts, self.noise, *geometry)
            draws = size_draws(posterior, self.n_classes, self.semivalue, joins)
            utility = threshold_utility(*posterior, self.n_classes).mean(axis=0)
            return *value_sizes(posterior, draws), utility, draws
        # The noise is drawn again, from a seed that is fixed and not secret.
        again = np.random.default_rng(0).standard_normal((_N_ERROR_DRAWS, *counts.shape))
        redrawn = np.moveaxis(counts + self.noise * again, 1, 0)
        rule = self.n_classes, self.semivalue

        def sizes(counts):
            same, other = np.maximum(np.rint(counts), 0).astype(np.int64)
            value_same, _ = neighbour_values(np.maximum(same + joins, 1), other, *rule)
            _, value_other = neighbour_values(same, np.maximum(other + joins, 1), *rule)
            return value_same, value_other, threshold_utility(same, other, self.n_classes)

        return *sizes(counts), np.stack(sizes(redrawn)[:2])

    def by_label(self, value_same, value_other, points):
        """Value of a neighbour of each label at each point, times the weight of the point."""
        return by_label(points.y, value_same, value_other, self.n_classes + 1) * points.weights


def errors_of_draws(draws, values, value_of, by_player):
    """Standard errors of the players' values, from draws of the values of both kinds of neighbours.

    ``value_of`` sums values of both kinds over the balls that contain a row.
    """
    draws, total = draws[:, :: draws.shape[1] // _N_ERROR_DRAWS], 0.0
    for value_same, value_other in np.moveaxis(draws, 1, 0):
        total = total + by_player(value_of(value_same, value_other) - values) ** 2
    return np.sqrt(total / draws.shape[1])
