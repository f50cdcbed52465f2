"""Runs of what private valuers release from secret samples, for the table of audits.

Whole fits would be too slow to show a fault, so these call the function that does the releasing,
`release_counts`, on the balls of very many runs side by side.
"""

from functools import lru_cache, partial
from unittest.mock import patch

import numpy as np

from skvalue.privacy import add_noise, poisson_sample
from skvalue.valuers.tknn_shapley._private import ball_event, release_counts

EPSILON, DELTA = 8.0, 1e-5

# Counts in balls: a row that is in M balls, in which nobody else is, or nowhere.

M, BALL_RATE, BALL_RUNS = 8, 0.25, 20_000


def balls_claim(contributions=M):
    return ball_event(EPSILON, DELTA, contributions, "add_remove", BALL_RATE)


def shared_sample(n_rows, probability, **kwargs):
    """In all balls of a run the row is in the sample, or in none."""
    return np.repeat(poisson_sample(n_rows // M, probability, **kwargs), M)


def whole_sample(n_rows, probability, **kwargs):
    return np.ones(n_rows, dtype=bool)


@lru_cache
def ball_counts(present, contributions=M, sample=poisson_sample):
    """Noisy numbers of sampled rows of the row's label, (runs, M)."""
    clean = np.zeros((2, BALL_RUNS * M), dtype=np.int64)
    clean[0] = present
    valuer, table = "skvalue.valuers.tknn_shapley._private", partial(add_noise, engine="table")
    with patch(f"{valuer}.add_noise", table), patch(f"{valuer}.poisson_sample", sample):
        noisy = release_counts(clean, balls_claim(contributions))
    return np.rint(noisy[0] * BALL_RATE).reshape(BALL_RUNS, M)


def ball_scores(*broken):
    return [ball_counts(present, *broken).sum(axis=1) for present in (1, 0)]


def ball_noise(*broken):
    return ball_counts(0, *broken)
