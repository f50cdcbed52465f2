"""Layered Shapley: rows trained on for the same error as orders; and all values of 100 rows.

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
from skvalue.samplers import all_subsets, layer_counts

pytestmark = pytest.mark.bench

DEEPEST = 12  # in layers beyond, the mean over all coalitions is below 1e-7 for n >= 100


class Noise(Utilities):
    """v(S) = cos(sum of angles in S) / |S|: what a row adds falls as 1 / k, with either sign.

    Counts the rows that coalitions hold; what is tabulated counts once.
    """

    def __init__(self, n):
        super().__init__(FunctionGame(lambda masks: np.zeros(len(masks)), n, cache_size=0))
        self.angles = np.random.default_rng(0).uniform(0, 2 * np.pi, n)
        self.rows = 0

    def _of(self, sums, sizes, known):
        if not known:
            self.rows += np.size(sums) * sizes
        return np.cos(sums) / sizes if sizes else np.zeros(np.shape(sums))

    def tabulate(self, size):
        if size not in self.tables:
            self.rows += comb(self.n, size) * size
            self.tables[size] = np.zeros(0)
            sets = all_subsets(self.n, size)
            self.tables[size] = self._of(self.angles[sets].sum(axis=1), size, True)

    def of(self, sets):
        size = sets.shape[1]
        return self._of(self.angles[sets].sum(axis=1), size, size in self.tables)

    def without_each(self, sets):
        size, angles = sets.shape[1], self.angles[sets]
        sums = angles.sum(axis=1)
        rest = self._of(sums[:, None] - angles, size - 1, size - 1 in self.tables)
        return self._of(sums, size, size in self.tables), rest

    def joined_by_each(self, sets, players):
        size, sums = sets.shape[1], self.angles[sets].sum(axis=1)
        joined = sums[:, None] + self.angles[players]
        known = size + 1 in self.tables
        return self._of(sums, size, size in self.tables), self._of(joined, size + 1, known)

    def exact(self):
        """Shapley values: means over coalitions are elementary symmetric means of exp(i angle)."""
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
        values[order] = np.diff(np.cos(np.cumsum(self.angles[order])) / sizes, prepend=0.0)
        return values


def by_orders(n, seed, n_orders):
    game, rng = Noise(n), np.random.default_rng(seed)
    return np.mean([game.by_order(rng) for _ in range(n_orders)], axis=0), game.rows


def by_layers(n, seed, plan):
    game = Noise(n)
    *_, last = play_layers(plan, game, lambda *key: np.random.default_rng((seed, *key)))
    return last.layers.sum(axis=0) / n, game.rows


def cost(estimate, exact, n_runs):
    """Rows trained on and mean absolute error."""
    found = [estimate(seed) for seed in range(n_runs)]
    error = np.mean([np.abs(values - exact).mean() for values, _ in found])
    return np.mean([rows for _, rows in found]), error


def test_exact_values_are_those_of_many_orders():
    exact, runs = Noise(20).exact(), np.array([by_orders(20, s, 200)[0] for s in range(40)])
    error = runs.std(axis=0, ddof=1) / np.sqrt(40)
    assert (np.abs(runs.mean(axis=0) - exact) <= 5 * error).all()


@pytest.mark.parametrize(("n", "least"), [(100, 5), (300, None), (1000, 30)])
def test_rows_trained_on(n, least, capsys):
    # The squared error falls as one over the rows: rows for one error go as rows * error^2.
    exact = Noise(n).exact()
    rows, error = cost(lambda seed: by_orders(n, seed, 40), exact, 8)
    # A mean absolute error hardly sees large layers that are played, and weighted up, in one run of
    # hundreds: so the mean squared error is computed, too, for independent contributions.
    k = np.arange(1, n)
    gains = np.r_[1.0, 1 / k**2 + 1 / (k + 1) ** 2] / 2  # squared, in the mean
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
        print(f"\nn = {n}: rows trained on, mean absolute error, times fewer rows for one error,")
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
        share = np.full(len(y_val), 0.5)
        if 0 < y[rows].sum() < size:
            share = LogisticRegression().fit(X[rows], y[rows]).predict_proba(X_val)[:, 1]
        log_loss(y_val, share, labels=[0, 1])
    return perf_counter() - start


@pytest.mark.parametrize("utility", ["logistic", "l2"])
@pytest.mark.parametrize("design", ["blocks", "poisson"])
def test_all_values_of_a_hundred_rows(design, utility, capsys):
    # The paper's setting, alpha = beta = 0.05, with c = 1 and the range that Hoeffding asks for.
    n, rng = 100, np.random.default_rng(0)
    X, y = rows_of_fifty_features(n, rng)
    X_val, y_val = rows_of_fifty_features(500, rng)
    valuer = LayeredShapleyValuer(design=design, tol=0.05, bound=1.0, allocation="bound")
    if utility == "l2":
        valuer.set_params(l2=1.0)
    else:
        valuer.set_params(estimator=LogisticRegression(), scoring="neg_log_loss")
    valuer.set_params(max_evaluations=300).fit(X, y, X_val=X_val, y_val=y_val)  # compiles
    valuer.set_params(max_evaluations=None, random_state=0)
    start = perf_counter()
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    seconds = perf_counter() - start
    k = np.arange(1, n)
    counts = layer_counts(1 / np.r_[1, k], 0.05, 0.95)[1:]
    np.testing.assert_allclose(counts, (2 / k) ** 2 * np.log(2 * n / 0.05) / (2 * 0.05**2))
    most = np.minimum(counts, [comb(n - 1, size) for size in k.tolist()])
    assert (valuer.counts_[1:] >= (1 - 1e-9) * most).all()
    n_fits = 2 * n * counts.sum()  # with and without the row
    sizes = rng.choice(k, 300, p=counts / counts.sum()) + rng.integers(2, size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_loop = loop(X, y, X_val, y_val, sizes, rng) / len(sizes) * n_fits
    with capsys.disabled():
        print(
            f"\nall values, {n} rows of 50 features, {len(X_val)} judges, {design}, {utility}: "
            f"{seconds:.1f} s, {valuer.n_evaluations_:,} coalitions; one by one {n_fits:,.0f} "
            f"fits, by a loop {by_loop:,.0f} s (from {len(sizes)} of them), "
            f"{by_loop / seconds:.0f} x"
        )
    assert by_loop / seconds > 200
