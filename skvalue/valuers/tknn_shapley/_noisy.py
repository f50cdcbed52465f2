"""The game of noisy counts: values of neighbours from what was released, and their
errors."""

from dataclasses import dataclass

import numpy as np

from ...neighbors import balls, get_engine, make_space
from ._capped import CappedBalls
from ._denoising import CountModel, size_draws, value_sizes
from ._game import by_label, neighbour_values, threshold_utility
from ._overlap import public_geometry

_N_ERROR_DRAWS = 16  # for standard errors: each costs two sums over the rows


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
        """Values of both kinds of neighbours at each point, and the utility there.

        Noisy counts are smoothed over the points, or rounded and clipped at zero. With
        ``joins`` the neighbour is not among those that were counted.
        """
        if self.denoise:
            posterior = self._model(counts, points).draws(
                counts, np.random.default_rng(0)
            )
            utility = threshold_utility(*posterior, self.n_classes).mean(axis=0)
            return *self._sizes(posterior, joins)[0], utility
        same, other = np.maximum(np.rint(counts), 0).astype(np.int64)
        rule = self.n_classes, self.semivalue
        value_same, _ = neighbour_values(np.maximum(same + joins, 1), other, *rule)
        _, value_other = neighbour_values(same, np.maximum(other + joins, 1), *rule)
        return value_same, value_other, threshold_utility(same, other, self.n_classes)

    def errors(self, counts, points):
        """Draws of the errors of the values of both kinds of neighbours, (ways, n, 2,
        n_points).

        Smoothed counts: how far the values are from those of counts of the posterior,
        which is what the noise leaves unknown, and how far values estimated from such
        counts with noise of their own are from theirs, which has the bias. Otherwise
        the noise is drawn again.
        """
        rng = np.random.default_rng(0)  # a seed that is fixed and not secret
        if not self.denoise:
            sizes = np.array(self.estimate(counts, points)[:2])
            again = counts + self.noise * rng.standard_normal(
                (2 * _N_ERROR_DRAWS, *counts.shape)
            )
            return np.array(
                [[self.estimate(each, points)[:2] - sizes for each in again]]
            )
        model = self._model(counts, points)
        posterior = model.draws(counts, rng)
        sizes, drawn = self._sizes(posterior)
        unknown, biased = [], []
        n_draws = posterior.shape[1]
        for i in range(0, n_draws, n_draws // _N_ERROR_DRAWS):
            again = posterior[:, i] + self.noise * rng.standard_normal(counts.shape)
            unknown.append(sizes - drawn[:, i])
            biased.append(self._sizes(model.draws(again, rng))[0] - drawn[:, i])
        return np.array([unknown, biased])

    def _model(self, counts, points):
        geometry = public_geometry(points.X, self.radius, self.metric)
        return CountModel(counts, self.noise, points.y, *geometry)

    def _sizes(self, posterior, joins=False):
        """Values of both kinds of neighbours, and those of each draw of the counts."""
        drawn = size_draws(posterior, self.n_classes, self.semivalue, joins)
        return np.array(value_sizes(posterior, drawn)), drawn

    def by_label(self, value_same, value_other, points):
        """Value of a neighbour of each label at each point, times the weight of the
        point."""
        return (
            by_label(points.y, value_same, value_other, self.n_classes + 1)
            * points.weights
        )


def standard_errors(errors, value_of, by_player):
    """Standard errors of the players' values, from draws of `NoisyGame.errors`: the
    larger way.

    ``value_of`` sums values of both kinds over the balls that contain a row.
    """
    squares = [
        np.mean([by_player(value_of(*each)) ** 2 for each in way], axis=0)
        for way in errors
    ]
    return np.sqrt(np.max(squares, axis=0))
