"""Runs of what private valuers release from secret samples, for the table of audits.

Whole fits would be too slow to show a fault, so these call the functions that do the releasing:
`release_counts` on the balls of very many runs side by side, and `sampled_values` on two rows.
"""

from dataclasses import replace
from functools import lru_cache, partial
from unittest.mock import patch

import numpy as np

from skvalue.privacy import SelfComposedEvent, add_noise, poisson_sample
from skvalue.valuers.knn_shapley._private import release_values, sampled_values, value_event
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
        noisy, _ = release_counts(clean, balls_claim(contributions))
    return np.rint(noisy[0] * BALL_RATE).reshape(BALL_RUNS, M)


def ball_scores(*broken):
    return [ball_counts(present, *broken).sum(axis=1) for present in (1, 0)]


def ball_noise(*broken):
    return ball_counts(0, *broken)


# Values with noise: of a row alone, or behind another of another label, with K = 1.

K, VALUE_RATE, VALUE_RUNS = 1, 0.5, 1500


@lru_cache
def values_claim():
    return value_event(EPSILON, DELTA, K, 1, "add_remove", "alone", VALUE_RATE)[1]


def sampled_value(joined):
    """Value of the first row in a fresh sample of the rows."""
    rows = np.array([[1.0], [0.5]])[: 1 + joined], np.array([1, 0])[: 1 + joined]
    val = np.zeros((1, 1)), np.array([1]), np.ones(1)
    return sampled_values(*rows, *val, K, "euclidean", VALUE_RATE)[0]


@lru_cache
def clean_values(joined, sample):
    with patch("skvalue.valuers.knn_shapley._private.poisson_sample", sample):
        clean = [sampled_value(joined) for _ in range(VALUE_RUNS if joined else 1)]
    return np.resize(clean, VALUE_RUNS)


def value_runs(joined, short=1.0, sample=poisson_sample):
    sampled = values_claim().event
    noise = replace(sampled.event, scale=sampled.event.scale * short)
    event = SelfComposedEvent(replace(sampled, event=noise), VALUE_RUNS)
    return release_values(clean_values(joined, sample), event)


def value_scores(*broken):
    """Less the value, which the other row makes smaller."""
    return [-value_runs(joined, *broken) for joined in (True, False)]


def value_noise(*broken):
    return value_runs(False, *broken) - sampled_value(False)
