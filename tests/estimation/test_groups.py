"""Faithful values of groups: the sums of the semivalues of their rows."""

import numpy as np
import pytest

from skvalue.estimation import group_factors, group_values, make_design
from skvalue.semivalues import size_weights, tabulated_semivalue

from .test_adjust import adjustment
from .test_games import all_masks

N = 10
OWNER = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])
SEMIVALUES = [
    "shapley",
    "banzhaf",
    (4, 1),
    (1, 3),
    lambda n: np.arange(n) * 2 / (n * (n - 1)),
]


def random_game(seed, n=N):
    """Utilities of all coalitions, and the function of masks."""
    table = np.random.default_rng(seed).normal(size=2**n).cumsum() / 30
    return table, lambda masks: table[masks @ (1 << np.arange(n))]


def played(game, semivalue, sampler, seed, limit=400, adjusting=None):
    table, utility = game
    how, rows = adjusting or (None, None)
    design = make_design(
        sampler, semivalue, N, adjustment=how, seed=seed, empty_utility=table[0]
    )  # fmt: skip
    design.limit = None if sampler == "exact" else limit
    while (masks := design.ask()) is not None:
        design.tell(utility(masks))
    design.adjust(rows)
    return design


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("seed", range(4))
def test_the_formula_is_the_sum_of_enumerated_row_values(semivalue, seed):
    table, _ = random_game(seed)
    q, masks = size_weights(semivalue, N), all_masks(N)
    truth = np.bincount(OWNER, tabulated_semivalue(table, semivalue))
    totals, sizes = np.bincount(OWNER), masks.sum(axis=1)
    found = totals * q[-1] * (table[-1] - table[0])
    for s in range(1, N):
        some = masks[sizes == s]
        counts = some.astype(float) @ (OWNER[:, None] == np.arange(4))
        factors = group_factors(q, some.sum(axis=1), counts, totals)
        np.testing.assert_allclose(
            factors.mean(axis=0), totals * (q[s - 1] - q[s]), atol=1e-12
        )
        found = found + ((table[sizes == s] - table[0])[:, None] * factors).mean(axis=0)
    np.testing.assert_allclose(found, truth, atol=1e-10)
    exact = played(random_game(seed), semivalue, "exact", 0)
    values, covariance, freedom = group_values(exact, OWNER)
    np.testing.assert_allclose(values, truth, atol=1e-10)
    assert (covariance == 0).all()
    assert np.isinf(freedom).all()


CASES = [(s, "stratified", False) for s in SEMIVALUES] + [
    ("shapley", "subsets", False), ("banzhaf", "subsets", False),
    ("shapley", "stratified", True), ("banzhaf", "subsets", True),
]  # fmt: skip


@pytest.mark.parametrize(("semivalue", "sampler", "adjusting"), CASES)
def test_parts_of_a_group_add_up_to_its_value(semivalue, sampler, adjusting):
    design = played(
        random_game(1), semivalue, sampler, 3, 1300, adjusting and adjustment(N)
    )
    assert design.is_adjusted == adjusting
    values, covariance, _ = group_values(design, OWNER)
    for cut in (np.arange(N), np.where(OWNER == 2, np.arange(N) % 2, 2)):
        parts, own, _ = group_values(design, cut)
        assert abs(values[2] - parts[np.unique(cut[OWNER == 2])].sum()) < 1e-12
        both = own[np.ix_(*[np.unique(cut[OWNER == 2])] * 2)].sum()
        assert both == pytest.approx(covariance[2, 2], rel=1e-9)
    if semivalue == "shapley":
        table, _ = random_game(1)
        assert values.sum() == pytest.approx(table[-1] - table[0], abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("semivalue", "sampler", "adjusting"), CASES)
def test_estimates_are_unbiased_and_their_errors_honest(semivalue, sampler, adjusting):
    limit, z = 1300 if adjusting else 400, []
    for number in range(6):
        game = random_game(number)
        truth = np.bincount(OWNER, tabulated_semivalue(game[0], semivalue))
        for seed in range(40):
            adjusted = adjusting and adjustment(N, seed=number)
            values, covariance, _ = group_values(
                played(game, semivalue, sampler, seed, limit, adjusted), OWNER
            )
            z.append((values - truth) / np.sqrt(np.diag(covariance)))
    z = np.array(z)
    assert abs(z.mean()) < 3 / np.sqrt(z.size)
    assert 0.9 < z.std() < 1.2


def test_few_coalitions_have_infinite_errors():
    design = played(random_game(0), "shapley", "stratified", 0, limit=34)
    values, covariance, freedom = group_values(design, OWNER)
    assert np.isfinite(values).all()
    assert (freedom >= 1).all()
    assert (np.diag(covariance) > 0).all()
