"""Balls that each count a secret random sample of the rows, as the paper runs them.

Section 5.2 and Appendix D.2.3, with a fresh sample for each validation point: the
accounting of Appendix D.3 composes over the points (:ref:`errata <errata>`, T5).
"""

import warnings
from functools import lru_cache

import numpy as np

from ...privacy import (
    GaussianEvent,
    PoissonSampledEvent,
    SeededNoiseWarning,
    SelfComposedEvent,
    calibrate,
    poisson_sample,
)
from ._capped import all_balls

# The scale of the noise is rounded up by at most this fraction. Each step of its search
# composes privacy loss distributions, which takes a moment.
_TOLERANCE = 2e-3


@lru_cache(maxsize=32)
def sampled_event(epsilon, delta, n_points, relation, sampling_rate):
    """The event of counts of fresh samples in the balls around all points.

    A row of a sample adds one to one of the two counts of each ball that contains it.
    """

    def of_all_points(scale):
        count = GaussianEvent(scale, 1.0, relation)
        return SelfComposedEvent(PoissonSampledEvent(count, sampling_rate), n_points)

    return calibrate(of_all_points, epsilon, delta, tol=_TOLERANCE)


class SampledBalls:
    """The rows that are in a ball and in the sample that is drawn for it.

    The samples are secret, like the rows. A row and a point take one bit.

    Parameters
    ----------
    space : Space
        The rows X, their labels and the metric.
    points : ndarray of shape (n_points, n_features)
        Centres of the balls.
    radius : float
        Radius of the balls.
    sampling_rate : float
        Probability of each row to be in a sample.
    noise_random_state : int or None
        Seed of the samples, for tests only.

    Attributes
    ----------
    counts : ndarray of shape (n_labels, n_points)
        Number of these rows of each label in each ball.
    """

    def __init__(self, space, points, radius, sampling_rate, noise_random_state=None):
        self._codes = space.codes
        self._blocks = []
        self.counts = np.zeros((space.n_classes, len(points)), dtype=np.int64)
        blocks = all_balls(space.X, points, radius, space.metric)
        for number, (rows, _, inside) in enumerate(blocks):
            seed = None
            if noise_random_state is not None:
                seed = [noise_random_state, 1, number]
            is_sampled = inside & _samples(inside.shape, sampling_rate, seed)
            self._blocks.append((rows, np.packbits(is_sampled, axis=1)))
            codes = self._codes[rows]
            for code in np.unique(codes):
                self.counts[code] += np.count_nonzero(is_sampled[codes == code], axis=0)

    def sum(self, weights):
        """Sum, for each row, of weights (n_labels, n_points) over the sampled balls."""
        sums = np.zeros(len(self._codes))
        n_points = weights.shape[1]
        for rows, bits in self._blocks:
            is_sampled = np.unpackbits(bits, axis=1, count=n_points)
            codes = self._codes[rows]
            of_rows = sums[rows]
            for code in np.unique(codes):
                of_label = codes == code
                of_rows[of_label] = is_sampled[of_label] @ weights[code]
        return sums


def _samples(shape, sampling_rate, seed):
    """Masks of fresh samples of rows, one for each point, (n_rows, n_points)."""
    if seed is not None:
        seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
    with warnings.catch_warnings():
        # The noise of the counts has warned.
        warnings.simplefilter("ignore", SeededNoiseWarning)
        sample = poisson_sample(
            shape[0] * shape[1], sampling_rate, noise_random_state=seed
        )
    return sample.reshape(shape)
