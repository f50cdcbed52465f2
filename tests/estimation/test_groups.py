"""Faithful values of groups: the sums of the semivalues of their rows."""

import numpy as np
import pytest

from skvalue.estimation import group_factors, group_values
from skvalue.games import FunctionGame
from skvalue.semivalues import size_weights, tabulated_semivalue

from .small_games import all_masks, control_variates, estimate, play

N = 10
OWNER = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])


def linear_weights(n):
    return np.arange(n) * 2 / (n * (n - 1))


SEMIVALUES = ["shapley", "banzhaf", (4, 1), (1, 3), linear_weights]
CASES = [(semivalue, "stratified", False) for semivalue in SEMIVALUES]
CASES += [
    ("shapley", "subsets", False),
    ("banzhaf", "subsets", False),
    ("shapley", "stratified", True),
    ("banzhaf", "subsets", True),
]
ALL_CASES = pytest.mark.parametrize(("semivalue", "sampler", "is_adjusted"), CASES)


def random_table(seed):
    """Utilities of all coalitions, by their codes."""
    return np.random.default_rng(seed).normal(size=2**N).cumsum() / 30


def game_of(table):
    return FunctionGame(
        lambda masks: table[masks @ (1 << np.arange(N))], N, empty_utility=table[0]
    )


def enumerated_group_values(table, semivalue):
    return np.bincount(OWNER, tabulated_semivalue(table, semivalue))


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("seed", range(4))
def test_the_formula_is_the_sum_of_enumerated_row_values(semivalue, seed):
    table = random_table(seed)
    q = size_weights(semivalue, N)
    masks = all_masks(N)
    sizes = masks.sum(axis=1)
    totals = np.bincount(OWNER)
    values = totals * q[-1] * (table[-1] - table[0])
    for size in range(1, N):
        of_size = masks[sizes == size]
        counts = of_size.astype(float) @ (OWNER[:, None] == np.arange(4))
        factors = group_factors(q, of_size.sum(axis=1), counts, totals)
        np.testing.assert_allclose(
            factors.mean(axis=0), totals * (q[size - 1] - q[size]), atol=1e-12
        )
        gains = table[sizes == size] - table[0]
        values = values + (gains[:, None] * factors).mean(axis=0)
    np.testing.assert_allclose(
        values, enumerated_group_values(table, semivalue), atol=1e-10
    )


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("seed", range(4))
def test_an_enumeration_gives_exact_group_values(semivalue, seed):
    table = random_table(seed)
    design = play(game_of(table), "exact", semivalue, limit=None)
    values, covariance, freedom = group_values(design, OWNER)
    np.testing.assert_allclose(
        values, enumerated_group_values(table, semivalue), atol=1e-10
    )
    assert (covariance == 0).all()
    assert np.isinf(freedom).all()


@ALL_CASES
@pytest.mark.parametrize(
    "cut",
    [np.arange(N), np.where(OWNER == 2, np.arange(N) % 2, 2)],
    ids=["single rows", "two halves"],
)
def test_parts_of_a_group_add_up_to_its_value(semivalue, sampler, is_adjusted, cut):
    controls = control_variates(N) if is_adjusted else None
    game = game_of(random_table(1))
    design = estimate(game, sampler, semivalue, 1300, 3, controls).design
    assert design.is_adjusted == is_adjusted
    values, covariance, _ = group_values(design, OWNER)
    values_of_parts, covariance_of_parts, _ = group_values(design, cut)
    parts = np.unique(cut[OWNER == 2])
    assert abs(values[2] - values_of_parts[parts].sum()) < 1e-12
    variance = covariance_of_parts[np.ix_(parts, parts)].sum()
    assert variance == pytest.approx(covariance[2, 2], rel=1e-9)


@pytest.mark.parametrize(("sampler", "is_adjusted"), [
    ("stratified", False), ("subsets", False), ("stratified", True),
])  # fmt: skip
def test_shapley_values_of_groups_sum_to_the_gain(sampler, is_adjusted):
    table = random_table(1)
    controls = control_variates(N) if is_adjusted else None
    design = estimate(game_of(table), sampler, "shapley", 1300, 3, controls).design
    values, _, _ = group_values(design, OWNER)
    assert values.sum() == pytest.approx(table[-1] - table[0], abs=1e-12)


@pytest.mark.slow
@ALL_CASES
def test_estimates_are_unbiased_and_their_errors_honest(
    semivalue, sampler, is_adjusted
):
    limit = 1300 if is_adjusted else 400
    standardised_errors = []
    for number in range(6):
        table = random_table(number)
        exact = enumerated_group_values(table, semivalue)
        controls = control_variates(N, seed=number) if is_adjusted else None
        for seed in range(40):
            estimated = estimate(
                game_of(table), sampler, semivalue, limit, seed, controls
            )
            values, covariance, _ = group_values(estimated.design, OWNER)
            errors = np.sqrt(np.diag(covariance))
            standardised_errors.append((values - exact) / errors)
    z = np.array(standardised_errors)
    assert abs(z.mean()) < 3 / np.sqrt(z.size)
    assert 0.9 < z.std() < 1.2


def test_few_coalitions_have_positive_errors_with_a_degree_of_freedom():
    design = play(game_of(random_table(0)), "stratified", "shapley", limit=34)
    values, covariance, freedom = group_values(design, OWNER)
    assert np.isfinite(values).all()
    assert (freedom >= 1).all()
    assert (np.diag(covariance) > 0).all()
