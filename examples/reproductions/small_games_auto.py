"""
When the process is worth its time: players, evaluations and the cost of a fit
==============================================================================

For games of 5 to 32 players with exact values, the error of game_values with
sampler="process" and with the better of the unbiased samplers "stratified" and
"permutation" at as many evaluations, and the CPU time that the process takes:

    python small_games_auto.py [--seeds 2] [--save auto.json]

A fit of c seconds more or less decides: in the time of m evaluations and of the process
the other sampler evaluates m + T / c coalitions, and its error falls with the root of
their number. With the ratio r of errors, the process has the smaller error if a fit
takes more than T / (m (r^2 - 1)) seconds. The table prints r and that cost in
milliseconds; "exact" where all coalitions are within the evaluations. The games: votes
of the 3 nearest of n rows, suppliers of towns, and, of up to 12 players, ridge
regression on the rows of parties.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from skvalue import game_values

PLAYERS = (5, 8, 12, 16, 20, 26, 32)
BUDGETS = ("n + 2", "2n + 2", 100, 200, 500, 1000, 2000, 4000)
N_NEIGHBORS = 3
_MOST_ENUMERATED = 12


class Votes:
    """Mean fraction of right votes of the nearest rows, and its closed form."""

    def __init__(self, n):
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, 4))
        X_val = rng.normal(size=(100, 4))
        y = (X[:, 0] > 0) ^ (rng.random(n) < 0.2)
        distances = ((X_val[:, None] - X) ** 2).sum(axis=2)
        self.order = np.argsort(distances, axis=1)
        is_right = y[self.order] == (X_val[:, :1] > 0)
        self.is_right = is_right.astype(float)

    def __call__(self, masks):
        total = np.zeros(len(masks))
        for order, is_right in zip(self.order, self.is_right):
            members = masks[:, order]
            is_near = members & (np.cumsum(members, axis=1) <= N_NEIGHBORS)
            total += is_near @ is_right / N_NEIGHBORS
        return total / len(self.order)

    def values(self):
        """The recursion of Jia et al. (2019), from the farthest row on."""
        n = self.order.shape[1]
        values = np.zeros(n)
        for order, is_right in zip(self.order, self.is_right):
            current = is_right[-1] * min(N_NEIGHBORS, n) / (n * N_NEIGHBORS)
            values[order[-1]] += current
            for i in range(n - 1, 0, -1):
                step = (is_right[i - 1] - is_right[i]) / N_NEIGHBORS
                current += step * min(N_NEIGHBORS, i) / i
                values[order[i - 1]] += current
        return values / len(self.order)


class Towns:
    """Inhabitants of the towns that suppliers cover; those of a town share it."""

    def __init__(self, n):
        rng = np.random.default_rng(n)
        self.covers = rng.random((n, 60)) < rng.uniform(0.05, 0.35, (n, 1))
        self.inhabitants = rng.pareto(1.5, 60) + 0.2

    def __call__(self, masks):
        return (masks.astype(int) @ self.covers > 0) @ self.inhabitants

    def values(self):
        n_suppliers = np.maximum(self.covers.sum(axis=0), 1)
        return self.covers @ (self.inhabitants / n_suppliers)


class Ridge:
    """R2 of ridge regression on the rows of parties; values by enumeration."""

    def __init__(self, n):
        rng = np.random.default_rng(n)
        fractions = rng.dirichlet(np.ones(n))
        self.n = n
        self.party = np.concatenate([np.arange(n), rng.choice(n, 5 * n, p=fractions)])
        coef = rng.normal(size=5)
        self.X = rng.normal(size=(len(self.party), 5))
        self.y = self.X @ coef + rng.normal(size=len(self.party))
        self.X_val = rng.normal(size=(100, 5))
        self.y_val = self.X_val @ coef + rng.normal(size=100)

    def __call__(self, masks):
        members = masks[:, self.party].astype(float)
        grams = np.einsum("mr,ri,rj->mij", members, self.X, self.X) + np.eye(5)
        products = members @ (self.X * self.y[:, None])
        coefs = np.linalg.solve(grams, products[:, :, None])[:, :, 0]
        errors = ((coefs @ self.X_val.T - self.y_val) ** 2).mean(axis=1)
        return 1 - errors / self.y_val.var()

    def values(self):
        exact = game_values(self, self.n, sampler="exact", max_evaluations=2**self.n)
        return exact.values


def games_of(n):
    games = [Votes(n), Towns(n)]
    if n <= _MOST_ENUMERATED:
        games.append(Ridge(n))
    return games


def n_evaluations(budget, n):
    """The number that a budget of `BUDGETS` is for n players."""
    if budget == "n + 2":
        return n + 2
    if budget == "2n + 2":
        return 2 * n + 2
    return budget


def squared_error(game, n, sampler, m, seeds):
    """Mean over players and seeds, None if m evaluations are too few."""
    exact = game.values()
    errors = []
    for seed in range(seeds):
        try:
            estimated = game_values(
                game, n, sampler=sampler, max_evaluations=m, random_state=seed
            )
        except ValueError:
            return None
        errors.append(np.mean((estimated.values - exact) ** 2))
    return float(np.mean(errors))


def compare(n, m, seeds):
    """Geometric mean ratio of errors over games, and CPU seconds of one process."""
    logs = []
    seconds = []
    for game in games_of(n):
        others = [
            squared_error(game, n, sampler, m, 8 * seeds)
            for sampler in ("stratified", "permutation")
        ]
        other = min(error for error in others if error is not None)
        start = time.process_time()
        own = squared_error(game, n, "process", m, seeds)
        seconds.append((time.process_time() - start) / seeds)
        logs.append(0.5 * np.log(other / own))
    return {"ratio": float(np.exp(np.mean(logs))), "seconds": float(np.mean(seconds))}


def cost_of_a_fit(cell, m):
    """Seconds from which on the process has the smaller error; infinite if none."""
    gain = cell["ratio"] ** 2 - 1
    return cell["seconds"] / (m * gain) if gain > 0 else np.inf


def print_table(cells):
    print("Ratio of errors (milliseconds of a fit from which on the process is better)")
    print(f"{'players':>8s}" + "".join(f"{budget!s:>14s}" for budget in BUDGETS))
    for n in PLAYERS:
        row = f"{n:8d}"
        for budget in BUDGETS:
            m = n_evaluations(budget, n)
            text = ""
            if 2**n <= m:
                text = "exact"
            elif f"{n}|{m}" in cells:
                cell = cells[f"{n}|{m}"]
                text = f"{cell['ratio']:.1f} ({1e3 * cost_of_a_fit(cell, m):.2f})"
            row += f"{text:>14s}"
        print(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--most", type=int, default=4000, help="most evaluations")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    cells = {}
    if options.save is not None and options.save.exists():
        cells = json.loads(options.save.read_text())
    for budget in BUDGETS:
        for n in PLAYERS:
            m = n_evaluations(budget, n)
            key = f"{n}|{m}"
            if 2**n <= m or m > options.most or key in cells:
                continue
            seeds = options.seeds if m < 1000 else 1
            cells[key] = compare(n, m, seeds)
            if options.save is not None:
                options.save.write_text(json.dumps(cells))
    print_table(cells)


if __name__ == "__main__":
    main()
