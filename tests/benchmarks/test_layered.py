"""Layered Shapley: rows trained on for the same error as orders; and all values of 100
rows.

pytest tests/benchmarks/test_layered.py -m bench -s
"""

import warnings
from math import comb
from time import perf_counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skvalue import LayeredShapleyValuer
from skvalue.estimation import Utilities, plan_layers, play_layers
from skvalue.games import FunctionGame
from skvalue.samplers import layer_counts

pytestmark = pytest.mark.bench

DEEPEST = (
    12  # in layers beyond, the mean over all coalitions is below 1e-7 for n >= 100
)


class Cosines:
    """v(S) = cos(sum of angles in S) / |S|: what a row adds falls as 1 / k, with either
    sign.

    Counts the rows that coalitions hold.
    """

    def __init__(self, n):
        self.n, self.rows = n, 0
        self.angles = np.random.default_rng(0).uniform(0, 2 * np.pi, n)
        self.game = FunctionGame(self.utility, n, cache_size=0)

    def utility(self, masks):
        sizes = masks.sum(axis=1)
        self.rows += int(sizes.sum())
        return np.where(sizes, np.cos(masks @ self.angles) / np.maximum(sizes, 1), 0.0)

    def exact(self):
        """Shapley values: means over coalitions are elementary symmetric means of exp(i
        angle)."""
        z, n = np.exp(1j * self.angles), self.n
        deepest = n - 1 if n < 30 else DEEPEST
        sums = np.zeros((deepest + 1, n), dtype=complex)  # (size, player left out)
        sums[0] = 1.0
        for j in range(n):
            more = np.where(np.arange(n) == j, 0.0, sums[:-1] * z[j])
            sums[1:] += more
        values = z.real.copy()  # layer 0
        for k in range(1, deepest + 1):
            mean = sums[k] / comb(n - 1, k)
            values += (z * mean).real / (k + 1) - mean.real / k
        return values / n

    def by_order(self, rng):
        """Contributions along one order."""
        order = rng.permutation(self.n)
        sizes = np.arange(1, self.n + 1)
        self.rows += int(sizes.sum())
        values = np.empty(self.n)
        values[order] = np.diff(
            np.cos(np.cumsum(self.angles[order])) / sizes, prepend=0.0
        )
        return values


def by_orders(n, seed, n_orders):
    game, rng = Cosines(n), np.random.default_rng(seed)
    return np.mean([game.by_order(rng) for _ in range(n_orders)], axis=0), game.rows


def by_layers(n, seed, plan):
    def generator(number):
        return np.random.default_rng((seed, number))

    game = Cosines(n)
    *_, last = play_layers(plan, Utilities(game.game), generator)
    return last.layers.sum(axis=0) / n, game.rows


def cost(estimate, exact, n_runs):
    """Rows trained on and mean absolute error."""
    found = [estimate(seed) for seed in range(n_runs)]
    error = np.mean([np.abs(values - exact).mean() for values, _ in found])
    return np.mean([rows for _, rows in found]), error


def test_exact_values_are_those_of_many_orders():
    exact, runs = (
        Cosines(20).exact(),
        np.array([by_orders(20, s, 200)[0] for s in range(40)]),
    )
    error = runs.std(axis=0, ddof=1) / np.sqrt(40)
    assert (np.abs(runs.mean(axis=0) - exact) <= 5 * error).all()


@pytest.mark.parametrize(("n", "least"), [(100, 5), (300, None), (1000, 30)])
def test_rows_trained_on(n, least, capsys):
    # The squared error falls as one over the rows: rows for one error go as rows *
    # error^2.
    exact = Cosines(n).exact()
    rows, error = cost(lambda seed: by_orders(n, seed, 40), exact, 8)
    # A mean absolute error hardly sees large layers that are played, and weighted up,
    # in one run of hundreds: so the mean squared error is computed, too, for
    # independent contributions.
    k = np.arange(1, n)
    gains = np.r_[1.0, 1 / k**2 + 1 / (k + 1) ** 2] / 2  # squared, on average
    spread = gains.sum() / (n * 40)
    print_row = "{:42} {:14,.0f} {:.3e} {:8.1f} {:8.1f}".format
    lines, ratios = [print_row("orders", rows, error, 1.0, 1.0)], {}
    for each in (30, 120):
        for name, power in (("1 / k^2", 2.0), ("1 / k", 1.0)):
            counts = np.r_[np.inf, 1 / np.arange(1.0, n) ** power]
            plan = plan_layers("blocks", n, counts, max_evaluations=each * n)
            mine = cost(lambda seed, plan=plan: by_layers(n, seed, plan), exact, 8)
            ratios[name, each] = rows * error**2 / (mine[0] * mine[1] ** 2)
            label = f"layers, {name}, {each} coalitions a row"
            mean_square = (gains / plan.counts)[plan.sampled].sum() / n**2
            squared = rows * spread / (mine[0] * mean_square)
            lines.append(print_row(label, *mine, ratios[name, each], squared))
    with capsys.disabled():
        print(
            f"\nn = {n}: rows trained on, mean absolute error, times fewer rows for one error,"
        )
        print("and for one mean squared error by formula")
        print("\n".join(lines))
    if least is not None:
        assert ratios["1 / k^2", 120] >= least
        assert ratios["1 / k", 120] >= least


def rows_of_fifty_features(n, rng):
    X = rng.normal(size=(n, 50))
    return X, (X[:, :5].sum(axis=1) + rng.logistic(size=n) > 0).astype(int)


def loop(X, y, X_val, y_val, sizes, rng):
    """Seconds of a plain loop of fits and losses, one for each size."""
    start = perf_counter()
    for size in sizes:
        rows = rng.choice(len(X), size, replace=False)
        probability = np.full(len(y_val), 0.5)
        if 0 < y[rows].sum() < size:
            probability = (
                LogisticRegression().fit(X[rows], y[rows]).predict_proba(X_val)[:, 1]
            )
        log_loss(y_val, probability, labels=[0, 1])
    return perf_counter() - start


@pytest.mark.parametrize("utility", ["logistic", "l2"])
@pytest.mark.parametrize("design", ["blocks", "poisson"])
def test_all_values_of_a_hundred_rows(design, utility, capsys):
    # The paper's setting, alpha = beta = 0.05, with c = 1 and the range that Hoeffding
    # asks for.
    n, rng = 100, np.random.default_rng(0)
    X, y = rows_of_fifty_features(n, rng)
    X_val, y_val = rows_of_fifty_features(500, rng)
    valuer = LayeredShapleyValuer(
        design=design, tol=0.05, bound=1.0, allocation="bound"
    )
    if utility == "l2":
        valuer.set_params(l2=1.0)
    else:
        valuer.set_params(estimator=LogisticRegression(), scoring="neg_log_loss")
    valuer.set_params(max_evaluations=300).fit(
        X, y, X_val=X_val, y_val=y_val
    )  # compiles
    valuer.set_params(max_evaluations=None, random_state=0)
    start = perf_counter()
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    seconds = perf_counter() - start
    k = np.arange(1, n)
    counts = layer_counts(1 / np.r_[1, k], 0.05, 0.95)[1:]
    np.testing.assert_allclose(
        counts, (2 / k) ** 2 * np.log(2 * n / 0.05) / (2 * 0.05**2)
    )
    most = np.minimum(counts, [comb(n - 1, size) for size in k.tolist()])
    assert (valuer.counts_[1:] >= (1 - 1e-9) * most).all()
    n_fits = 2 * n * counts.sum()  # with and without the row
    sizes = rng.choice(k, 300, p=counts / counts.sum()) + rng.integers(2, size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_loop = loop(X, y, X_val, y_val, sizes, rng) / len(sizes) * n_fits
    with capsys.disabled():
        print(
            f"\nall values, {n} rows of 50 features, {len(X_val)} points, {design}, {utility}: "
            f"{seconds:.1f} s, {valuer.n_evaluations_:,} coalitions; one by one {n_fits:,.0f} "
            f"fits, by a loop {by_loop:,.0f} s (from {len(sizes)} of them), "
            f"{by_loop / seconds:.0f} x"
        )
    assert by_loop / seconds > 200
