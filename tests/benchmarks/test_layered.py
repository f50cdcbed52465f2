"""Layered Shapley: rows trained on for the same error as orders, and for 100 values.

pytest tests/benchmarks/test_layered.py -m bench -s
"""

import warnings
from math import comb
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skvalue import LayeredShapleyValuer
from skvalue.estimation import Utilities, plan_layers, play_layers
from skvalue.games import FunctionGame
from skvalue.samplers import layer_counts

pytestmark = pytest.mark.bench

# In layers beyond, the mean over all coalitions is below 1e-7 for n >= 100.
DEEPEST_LAYER = 12


class CosineGame:
    """v(S) = cos(sum of angles in S) / |S|.

    A marginal contribution decreases as 1 / k, with either sign. `n_rows` counts the
    rows that coalitions hold.
    """

    def __init__(self, n):
        self.n = n
        self.n_rows = 0
        self.angles = np.random.default_rng(0).uniform(0, 2 * np.pi, n)
        self.game = FunctionGame(self.utility, n, cache_size=0)

    def utility(self, masks):
        sizes = masks.sum(axis=1)
        self.n_rows += int(sizes.sum())
        return np.where(sizes, np.cos(masks @ self.angles) / np.maximum(sizes, 1), 0.0)

    def exact_values(self):
        """Shapley values, from elementary symmetric means of exp(i angle).

        These are the means over coalitions.
        """
        n = self.n
        z = np.exp(1j * self.angles)
        deepest = n - 1 if n < 30 else DEEPEST_LAYER
        sums = np.zeros((deepest + 1, n), dtype=complex)  # (size, player left out)
        sums[0] = 1.0
        for j in range(n):
            is_left_out = np.arange(n) == j
            sums[1:] += np.where(is_left_out, 0.0, sums[:-1] * z[j])
        values = z.real.copy()  # layer 0
        for k in range(1, deepest + 1):
            mean = sums[k] / comb(n - 1, k)
            values += (z * mean).real / (k + 1) - mean.real / k
        return values / n

    def values_of_one_order(self, rng):
        """Marginal contributions along one order."""
        order = rng.permutation(self.n)
        sizes = np.arange(1, self.n + 1)
        self.n_rows += int(sizes.sum())
        utilities = np.cos(np.cumsum(self.angles[order])) / sizes
        values = np.empty(self.n)
        values[order] = np.diff(utilities, prepend=0.0)
        return values


class Estimate(NamedTuple):
    """Values, and the number of rows trained on."""

    values: np.ndarray
    n_rows: int


def estimate_by_orders(n, seed, n_orders):
    game = CosineGame(n)
    rng = np.random.default_rng(seed)
    values = [game.values_of_one_order(rng) for _ in range(n_orders)]
    return Estimate(np.mean(values, axis=0), game.n_rows)


def estimate_by_layers(n, seed, plan):
    def generator(number):
        return np.random.default_rng((seed, number))

    game = CosineGame(n)
    *_, last = play_layers(plan, Utilities(game.game), generator)
    return Estimate(last.layers.sum(axis=0) / n, game.n_rows)


def mean_cost(estimate, exact, n_runs):
    """Rows trained on and mean absolute error, on average over runs."""
    runs = [estimate(seed) for seed in range(n_runs)]
    errors = [np.abs(run.values - exact).mean() for run in runs]
    return np.mean([run.n_rows for run in runs]), np.mean(errors)


def test_exact_values_are_the_mean_over_orders():
    exact = CosineGame(20).exact_values()
    runs = np.array([estimate_by_orders(20, seed, 200).values for seed in range(40)])
    error = runs.std(axis=0, ddof=1) / np.sqrt(40)
    assert (np.abs(runs.mean(axis=0) - exact) <= 5 * error).all()


@pytest.mark.parametrize(("n", "limit"), [(100, 5), (300, None), (1000, 30)])
def test_layers_train_on_fewer_rows_than_orders_for_the_same_error(n, limit, capsys):
    # The squared error decreases as one over the rows: rows for one error are
    # proportional to rows * error^2.
    exact = CosineGame(n).exact_values()
    rows, error = mean_cost(lambda seed: estimate_by_orders(n, seed, 40), exact, 8)

    # A mean absolute error hardly depends on large layers that are played, and weighted
    # up, in one run of hundreds: so the mean squared error is computed, too, for
    # independent contributions.
    k = np.arange(1, n)
    squared_gains = np.r_[1.0, 1 / k**2 + 1 / (k + 1) ** 2] / 2
    order_square = squared_gains.sum() / (n * 40)
    table_row = "{:42} {:14,.0f} {:.3e} {:8.1f} {:8.1f}".format
    table = [table_row("orders", rows, error, 1.0, 1.0)]
    ratios = {}
    for n_coalitions in (30, 120):
        for name, power in (("1 / k^2", 2.0), ("1 / k", 1.0)):
            counts = np.r_[np.inf, 1 / np.arange(1.0, n) ** power]
            plan = plan_layers("blocks", n, counts, max_evaluations=n_coalitions * n)
            layer_rows, layer_error = mean_cost(
                lambda seed, plan=plan: estimate_by_layers(n, seed, plan), exact, 8
            )
            ratio = rows * error**2 / (layer_rows * layer_error**2)
            ratios[name, n_coalitions] = ratio
            layer_square = (squared_gains / plan.counts)[plan.sampled].sum() / n**2
            squared_ratio = rows * order_square / (layer_rows * layer_square)
            label = f"layers, {name}, {n_coalitions} coalitions a row"
            table.append(
                table_row(label, layer_rows, layer_error, ratio, squared_ratio)
            )
    with capsys.disabled():
        print(
            f"\nn = {n}: rows trained on, mean absolute error, times fewer rows for "
            "one error,"
        )
        print("and for one mean squared error by formula")
        print("\n".join(table))
    if limit is not None:
        assert ratios["1 / k^2", 120] >= limit
        assert ratios["1 / k", 120] >= limit


def rows_of_fifty_features(n, rng):
    X = rng.normal(size=(n, 50))
    return X, (X[:, :5].sum(axis=1) + rng.logistic(size=n) > 0).astype(int)


def seconds_of_a_loop(X, y, X_val, y_val, sizes, rng):
    """Seconds of a plain loop of fits and losses, one for each size."""
    start = perf_counter()
    for size in sizes:
        rows = rng.choice(len(X), size, replace=False)
        probability = np.full(len(y_val), 0.5)
        if 0 < y[rows].sum() < size:
            model = LogisticRegression().fit(X[rows], y[rows])
            probability = model.predict_proba(X_val)[:, 1]
        log_loss(y_val, probability, labels=[0, 1])
    return perf_counter() - start


@pytest.mark.parametrize("utility", ["logistic", "l2"])
@pytest.mark.parametrize("design", ["blocks", "poisson"])
def test_values_of_a_hundred_rows_are_faster_than_a_loop(design, utility, capsys):
    # The paper's setting, alpha = beta = 0.05, with c = 1 and the range of Hoeffding's
    # bound.
    n = 100
    rng = np.random.default_rng(0)
    X, y = rows_of_fifty_features(n, rng)
    X_val, y_val = rows_of_fifty_features(500, rng)
    valuer = LayeredShapleyValuer(
        design=design, tol=0.05, bound=1.0, allocation="bound"
    )
    if utility == "l2":
        valuer.set_params(l2=1.0)
    else:
        valuer.set_params(estimator=LogisticRegression(), scoring="neg_log_loss")
    # The first fit compiles.
    valuer.set_params(max_evaluations=300).fit(X, y, X_val=X_val, y_val=y_val)
    valuer.set_params(max_evaluations=None, random_state=0)
    start = perf_counter()
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    seconds = perf_counter() - start

    k = np.arange(1, n)
    counts = layer_counts(1 / np.r_[1, k], 0.05, 0.95)[1:]
    np.testing.assert_allclose(
        counts, (2 / k) ** 2 * np.log(2 * n / 0.05) / (2 * 0.05**2)
    )
    n_coalitions = [comb(n - 1, size) for size in k.tolist()]
    needed = np.minimum(counts, n_coalitions)
    assert (valuer.counts_[1:] >= (1 - 1e-9) * needed).all()

    # A loop fits each coalition with and without the row; it is timed on 300 of them.
    n_fits = 2 * n * counts.sum()
    sizes = rng.choice(k, 300, p=counts / counts.sum()) + rng.integers(2, size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timed_seconds = seconds_of_a_loop(X, y, X_val, y_val, sizes, rng)
    loop_seconds = timed_seconds / len(sizes) * n_fits
    with capsys.disabled():
        print(
            f"\nall values, {n} rows of 50 features, {len(X_val)} points, {design}, "
            f"{utility}: {seconds:.1f} s, {valuer.n_evaluations_:,} coalitions; one by "
            f"one {n_fits:,.0f} fits, by a loop {loop_seconds:,.0f} s (from "
            f"{len(sizes)} of them), {loop_seconds / seconds:.0f} x"
        )
    assert loop_seconds / seconds > 200
