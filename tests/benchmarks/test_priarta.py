"""Scoring many sellers, in units of the eigen-decompositions that it cannot do without.

pytest tests/benchmarks -m bench -k priarta
"""

from dataclasses import replace

import numpy as np
import pytest

from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.priarta.buyer import estimate_summaries

pytestmark = pytest.mark.bench

N_SELLERS, D = 1000, 64


def test_a_thousand_summaries(ratio):
    rng = np.random.default_rng(0)
    scorer = PriArTaScorer(max_norm=8.0).fit(rng.normal(size=(500, D)))
    rows = rng.normal(size=(100, D))
    made = SellerRelease(scorer.model_, 0.8).fit(rows).summary_
    spread = rng.normal(size=(N_SELLERS, len(made.moment))) * 0.1 * made.noise.moment
    summaries = [replace(made, moment=made.moment + more) for more in spread]
    covariances = estimate_summaries(scorer._buyer, summaries, shrink=False).covariance

    def alone():
        for start in range(0, N_SELLERS, 100):
            np.linalg.eigh(covariances[start : start + 100])

    def ours():
        return scorer.score_summaries(summaries)

    ratio("1,000 summaries, over eigh", ours, alone, 3, rounds=3)
