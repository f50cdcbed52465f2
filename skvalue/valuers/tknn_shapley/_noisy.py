"""The game of noisy counts: values of neighbours from what was released, and errors."""

from dataclasses import dataclass

import numpy as np

from ...neighbors import balls, make_space
from ._capped import CappedBalls
from ._count_model import CountModel
from ._game import by_label, neighbour_values, threshold_utility
from ._overlap import public_geometry
from ._sampled import SampledBalls
from ._value_draws import size_draws, value_sizes

# Draws for standard errors: each costs a sum over the rows in both ways.
_N_ERROR_DRAWS = 16


@dataclass(frozen=True, eq=False)
class NoisyGame:
    """As `LabelGame`, for the released counts with and without the label of each point.

    It consists of what is public. All labels that no point has are one more label.
    """

    n_classes: int
    semivalue: object
    radius: float
    metric: object
    # Standard deviation of the noise of the counts.
    noise: float
    denoise: bool
    # Largest number of balls in which a row is counted; None: all.
    cap: int | None
    # Probability of a row to be in the sample of a ball; None: all rows are counted.
    sampling_rate: float | None = None

    def balls(self, engine, X, y, points, n_jobs):
        """The balls around points, for rows X of classes y (None: one class)."""
        n_labels = 1 if y is None else self.n_classes + 1
        if not len(X):  # the number of rows is private: no rows are not refused
            return NoRows(np.zeros((n_labels, len(points)), dtype=np.int64))
        space = make_space(X, self.metric, y, n_labels)
        if self.cap is None:
            return balls(engine, space, points, self.radius, n_jobs=n_jobs)
        return CappedBalls(engine, space, points, self.radius, self.cap, n_jobs)

    def sampled_balls(self, X, y, points, noise_random_state=None):
        """As `balls`, of the rows in a secret sample for each point."""
        n_labels = self.n_classes + 1
        if not len(X):
            return NoRows(np.zeros((n_labels, len(points)), dtype=np.int64))
        space = make_space(X, self.metric, y, n_labels)
        return SampledBalls(
            space, points, self.radius, self.sampling_rate, noise_random_state
        )

    def model(self, counts, points):
        """The model that smooths counts over the points; None without denoising."""
        if not self.denoise:
            return None
        geometry = public_geometry(points.X, self.radius, self.metric)
        return CountModel(counts, self.noise, points.y, *geometry)

    def estimate(self, counts, model, joins=False):
        """Estimate values of both kinds of neighbours at each point.

        Counts are smoothed by the model, or without one rounded and clipped at zero.

        Parameters
        ----------
        counts : ndarray of shape (2, n_points)
            The released counts.
        model : CountModel or None
            See `model`.
        joins : bool, default=False
            Whether the neighbour is not among those that were counted.

        Returns
        -------
        value_same, value_other : ndarrays of shape (n_points,)
            Values of neighbours with and without the label of the point.
        utility : ndarray of shape (n_points,)
            The utility at each point.
        """
        if model is not None:
            posterior = model.draws(counts, np.random.default_rng(0))
            utility = threshold_utility(*posterior, self.n_classes).mean(axis=0)
            (value_same, value_other), _ = self._sizes(posterior, joins)
            return value_same, value_other, utility

        same, other = np.maximum(np.rint(counts), 0).astype(np.int64)
        rule = self.n_classes, self.semivalue
        value_same, _ = neighbour_values(np.maximum(same + joins, 1), other, *rule)
        _, value_other = neighbour_values(same, np.maximum(other + joins, 1), *rule)
        return value_same, value_other, threshold_utility(same, other, self.n_classes)

    def errors(self, counts, model):
        """Draws of the errors of the values of both kinds of neighbours.

        Without a model, the counts get new noise, and that of new samples where rows
        are sampled, and the error is the change of the values.

        With a model, counts are drawn from the posterior, and there are two ways. In
        the first, the error is the difference between the values and those of the drawn
        counts: it shows what the noise leaves unknown. In the second, values are
        estimated from the drawn counts with new noise, and the error is their
        difference from the values of the drawn counts: it includes the bias of the
        estimate.

        Parameters
        ----------
        counts : ndarray of shape (2, n_points)
            The released counts.
        model : CountModel or None
            See `model`.

        Returns
        -------
        errors : ndarray of shape (n_ways, n_draws, 2, n_points)
            The draws, in two ways, or in one.
        """
        # A seed that is fixed and not secret.
        rng = np.random.default_rng(0)
        if model is None:
            values = np.array(self.estimate(counts, None)[:2])
            noise = rng.standard_normal((2 * _N_ERROR_DRAWS, *counts.shape))
            redrawn = counts + self._deviations(counts) * noise
            errors = [
                np.subtract(self.estimate(noisy, None)[:2], values) for noisy in redrawn
            ]
            return np.array([errors])

        posterior = model.draws(counts, rng)
        values, drawn_values = self._sizes(posterior)
        posterior_errors = []
        estimation_errors = []
        n_draws = posterior.shape[1]
        for i in range(0, n_draws, n_draws // _N_ERROR_DRAWS):
            noise = rng.standard_normal(counts.shape)
            noisy = posterior[:, i] + self.noise * noise
            estimated, _ = self._sizes(model.draws(noisy, rng))
            posterior_errors.append(values - drawn_values[:, i])
            estimation_errors.append(estimated - drawn_values[:, i])
        return np.array([posterior_errors, estimation_errors])

    def _deviations(self, counts):
        """Standard deviations of noisy counts: of the noise, and of the samples."""
        if self.sampling_rate is None:
            return self.noise
        # Of a binomial number whose mean is about the count.
        of_sample = (1 - self.sampling_rate) * np.maximum(counts, 0)
        return np.sqrt(self.noise**2 + of_sample)

    def by_label(self, value_same, value_other, points):
        """Value of a neighbour of each label at each point, times the point's weight.

        Of shape (n_classes + 1, n_points).
        """
        values = by_label(points.y, value_same, value_other, self.n_classes + 1)
        return values * points.weights

    def _sizes(self, posterior, joins=False):
        """Values of both kinds of neighbours, (2, n_points), and of each draw.

        Those of the draws have the shape (2, n_draws, n_points).
        """
        drawn_values = size_draws(posterior, self.n_classes, self.semivalue, joins)
        return np.array(value_sizes(posterior, drawn_values)), drawn_values


@dataclass(frozen=True, eq=False)
class NoRows:
    """As `skvalue.neighbors.balls`, of no rows; `counts` are zeros."""

    counts: np.ndarray

    def sum(self, weights):
        """Of no rows, (0,)."""
        return np.zeros(0)

    def parts(self):
        """Of no rows, none."""
        return iter(())
