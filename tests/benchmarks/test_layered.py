"""Layered Shapley: rows trained on for the same error as orders, and time at the paper's setting.

    pytest tests/benchmarks/test_layered.py -m bench -s
"""

from time import perf_counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from skvalue import DataShapleyValuer, LayeredShapleyValuer
from skvalue.games import FunctionGame
from skvalue.samplers import draw_orders, prefix_marginals, prefix_masks
from skvalue.valuers._layered_designs import Utilities, make_plan, play

pytestmark = pytest.mark.bench


class MeanGame:
    """Minus the squared error of a coalition's mean: what a row adds falls as 1 / k."""

    def __init__(self, n):
        self.x = np.random.default_rng(0).normal(1.0, 1.0, n).astype(np.float32)
        self.game = FunctionGame(self.utility, n, empty_utility=-1.0, cache_size=0)
        self.rows = 0

    def utility(self, masks):
        sizes = np.count_nonzero(masks, axis=1)
        self.rows += int(sizes.sum())
        return -((masks.astype(np.float32) @ self.x / np.maximum(sizes, 1) - 1.0) ** 2)


def by_layers(game, n, budget, seed, power, design="blocks"):
    counts = np.r_[np.inf, 1 / np.arange(1.0, n) ** power]
    plan = make_plan(design, n, counts, max_evaluations=budget)
    seeds = lambda *key: np.random.default_rng((seed, *key))  # noqa: E731
    *_, last = play(plan, Utilities(game.game), seeds)
    return last.values


def by_orders(game, n, n_orders, seed):
    total = np.zeros(n)
    for order in range(n_orders):
        orders = draw_orders(np.random.default_rng((seed, order)), n, "permutation")
        masks = prefix_masks(np.argsort(orders, axis=1).repeat(n, axis=0), np.arange(1, n + 1))
        utilities = np.r_[game.game.empty_utility, game.game.utility(masks)][None]
        total += prefix_marginals(orders, utilities, np.ones(n))
    return total / n_orders


def cost(game, estimate, reference, n_runs):
    """Rows trained on, mean absolute error, and their product rows * error^2."""
    game.rows, errors = 0, []
    for seed in range(n_runs):
        errors.append(np.abs(estimate(1000 + seed) - reference).mean())
    rows, error = game.rows / n_runs, np.mean(errors)
    return rows, error, rows * error**2


@pytest.mark.parametrize(("n", "least"), [(100, 5), (300, None), (1000, 30)])
def test_rows_trained_on(n, least, capsys):
    # The squared error falls as one over the rows: rows at the same error are as their product.
    game = MeanGame(n)
    reference = by_layers(game, n, 4000 * n if n < 1000 else 1000 * n, 0, 1.5)
    runs = 3 if n == 1000 else 6
    table = {"orders": cost(game, lambda s: by_orders(game, n, 20, s), reference, runs)}
    for budget in (30 * n, 120 * n):
        for name, power in (("1 / k^2, the paper's", 2.0), ("1 / k, Neyman's", 1.0)):
            key = f"layers, {name}, {budget // n} coalitions a row"
            table[key] = cost(
                game, lambda s, b=budget, p=power: by_layers(game, n, b, s, p), reference, runs
            )
    ratios = {key: table["orders"][2] / row[2] for key, row in table.items()}
    with capsys.disabled():
        print(f"\nn = {n}: rows trained on, mean absolute error, rows for the same error")
        for key, (rows, error, _) in table.items():
            print(f"{key:55} {rows:14,.0f} {error:.3e} {1 / ratios[key]:9.4f} x orders'")
    if least is not None:
        assert max(ratios.values()) >= least
        assert ratios["layers, 1 / k^2, the paper's, 120 coalitions a row"] >= least


def problem(n=100, d=50, n_val=500):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n + n_val, d)), rng.normal(size=d)
    y = (X @ w + rng.normal(size=n + n_val) > 0).astype(int)
    return X[:n], y[:n], dict(X_val=X[n:], y_val=y[n:])


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
def test_the_setting_of_the_paper(scoring, capsys):
    # alpha = beta = 0.05, c = 1, n = 100, d = 50: 2.2 million fits one value at a time.
    X, y, judges = problem()
    LayeredShapleyValuer(max_evaluations=500, scoring=scoring).fit(X, y, **judges)
    valuer = LayeredShapleyValuer(bound=1.0, scoring=scoring, n_jobs=2, random_state=0)
    start = perf_counter()
    valuer.fit(X, y, **judges)
    seconds = perf_counter() - start
    one_by_one = LayeredShapleyValuer(
        RidgeClassifier() if scoring == "accuracy" else LogisticRegression(), batch="never",
        max_evaluations=300, scoring=scoring,
    )  # fmt: skip
    start = perf_counter()
    one_by_one.fit(X, y, **judges)
    loop = (perf_counter() - start) / one_by_one.n_evaluations_
    with capsys.disabled():
        print(
            f"\n{scoring}, all values of 100 rows: {seconds:.1f} s for {valuer.n_evaluations_:,} "
            f"coalitions, {1e6 * seconds / valuer.n_evaluations_:.1f} us each on two threads; a "
            f"loop takes {1e6 * loop:.0f} us"
        )
    assert seconds / valuer.n_evaluations_ < loop / 10


def test_the_same_error_as_stratified_subsets(capsys):
    X, y, judges = problem(d=10)
    loss = dict(scoring="neg_log_loss", max_evaluations=20_000, random_state=0)
    errors = {}
    for name, valuer in {
        "layers, 1 / k^2": LayeredShapleyValuer(**loss),
        "layers, 1 / k": LayeredShapleyValuer(allocation="neyman", **loss),
        "stratified subsets": DataShapleyValuer(sampler="stratified", **loss),
        "orders": DataShapleyValuer(sampler="permutation", **loss),
    }.items():
        valuer.fit(X, y, **judges)
        errors[name] = np.sqrt(np.mean(valuer.values_error_**2))
    with capsys.disabled():
        print("\nstandard error, 20,000 coalitions, logistic regression, n = 100, d = 10:")
        for name, error in errors.items():
            print(f"{name:25} {error:.2e}")
    assert errors["layers, 1 / k"] < errors["orders"]
