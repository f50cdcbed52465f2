"""Scoring many sellers, in units of the eigendecompositions that it needs.

pytest tests/benchmarks -m bench -k priarta
"""

from dataclasses import replace

import numpy as np
import pytest

from skvalue.priarta import PriArTaScorer, SellerRelease

pytestmark = pytest.mark.bench

N_SELLERS = 1000
N_DIMENSIONS = 64


def test_scores_of_summaries_against_eigendecompositions(ratio):
    rng = np.random.default_rng(0)
    scorer = PriArTaScorer(max_norm=8.0).fit(rng.normal(size=(500, N_DIMENSIONS)))
    rows = rng.normal(size=(100, N_DIMENSIONS))
    summary = SellerRelease(scorer.model_, 0.8).fit(rows).summary_
    changes = rng.normal(size=(N_SELLERS, len(summary.moment)))
    changes = changes * 0.1 * summary.noise.moment
    summaries = [replace(summary, moment=summary.moment + change) for change in changes]
    factors = rng.normal(size=(N_SELLERS, N_DIMENSIONS, N_DIMENSIONS))
    covariances = factors @ factors.transpose(0, 2, 1)

    def eigendecompositions():
        for start in range(0, N_SELLERS, 100):
            np.linalg.eigh(covariances[start : start + 100])

    def score():
        return scorer.score_summaries(summaries)

    ratio("1,000 summaries, over eigh", score, eigendecompositions, 3, rounds=3)
