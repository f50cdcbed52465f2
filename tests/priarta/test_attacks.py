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
X = np.zeros((40, 2))


def check_auroc(rows, relation, change_relation):
    """Check the AUROC of an attack against that of a change of the moments."""
    seller = SellerRelease(MODEL, epsilon=8.0, relation=relation)
    attack = membership_attack(seller, X, rows=rows, n_runs=200)
    assert attack.holds
    change = statistic_sensitivity(MODEL.mean_weight, change_relation)
    scale = seller.fit(X).summary_.noise_scale
    expected = norm.cdf(change / scale / np.sqrt(2))
    assert attack.auroc == pytest.approx(expected, abs=0.13)
    return attack


def test_attack_on_the_most_distant_rows_reaches_the_ceiling():
    cosine = -(MODEL.mean_weight**2) / 2
    rows = [[1.0, 0.0], [cosine, np.sqrt(1 - cosine**2)]]
    attack = check_auroc(rows, "replace", "replace")
    assert attack.ceiling - attack.auroc < 0.13


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "null"])
def test_attack_on_a_null_row_has_the_accuracy_of_its_change(relation):
    rows = [[1.0, 0.0], [0.0, 0.0]]
    check_auroc(rows, relation, "null")


def test_rows_are_chosen_by_default(rng):
    rows = rng.normal(size=(30, 2)) / 4
    attack = membership_attack(SellerRelease(MODEL, epsilon=1.0), rows, n_runs=30)
    assert attack.holds
    assert (attack.epsilon, attack.delta, attack.n_runs) == (1.0, 1e-5, 30)


def test_seller_without_noise_is_refused():
    with pytest.raises(ValueError, match="seller must have an epsilon"):
        membership_attack(SellerRelease(MODEL, epsilon=None), X)


def test_fewer_than_ten_runs_are_refused():
    with pytest.raises(
        ValueError, match="The 'n_runs' parameter of membership_attack must be"
    ):
        membership_attack(SellerRelease(MODEL), X, n_runs=5)
