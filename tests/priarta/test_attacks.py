"""The strongest attack reaches what the guarantee allows, and no more."""

import numpy as np
import pytest
from scipy.stats import norm

from skvalue.priarta import PriArTaScorer, SellerRelease, membership_attack
from skvalue.priarta.seller import statistic_sensitivity

MODEL = (
    PriArTaScorer(max_norm=1.0)
    .fit([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    .model_
)
COSINE = -(MODEL.mean_weight**2) / 2
FAR = [[1.0, 0.0], [COSINE, np.sqrt(1 - COSINE**2)]]
X = np.zeros((40, 2))


@pytest.mark.parametrize(
    "setting",
    [
        dict(),
        pytest.param(dict(relation="add_remove"), marks=pytest.mark.slow),
        pytest.param(dict(relation="null"), marks=pytest.mark.slow),
    ],
)
def test_attack_reaches_the_ceiling(setting):
    rows = FAR if not setting else [[1.0, 0.0], [0.0, 0.0]]
    seller = SellerRelease(MODEL, epsilon=8.0, **setting)
    attack = membership_attack(seller, X, rows=rows, n_runs=200)
    assert attack.holds
    scale = seller.fit(X).summary_.noise_scale
    change = statistic_sensitivity(
        MODEL.mean_weight, "replace" if not setting else "null"
    )
    assert attack.auroc == pytest.approx(
        norm.cdf(change / scale / np.sqrt(2)), abs=0.13
    )
    if not setting:
        assert attack.ceiling - attack.auroc < 0.13


def test_rows_are_chosen_and_ledgers_left_alone(rng):
    rows = rng.normal(size=(30, 2)) / 4
    attack = membership_attack(SellerRelease(MODEL, epsilon=1.0), rows, n_runs=30)
    assert attack.holds
    assert (attack.epsilon, attack.delta, attack.n_runs) == (1.0, 1e-5, 30)


def test_refusals():
    with pytest.raises(ValueError, match="seller must have an epsilon"):
        membership_attack(SellerRelease(MODEL, epsilon=None), X)
    with pytest.raises(
        ValueError, match="The 'n_runs' parameter of membership_attack must be"
    ):
        membership_attack(SellerRelease(MODEL), X, n_runs=5)
