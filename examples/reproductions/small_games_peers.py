"""
Squared errors of the estimators of shapiq on games of few players
==================================================================

    python small_games_peers.py GAMES RESULTS --seeds 8 --budgets 100 200 [--games ...]

GAMES holds the files of small_games_made.py; the name "votes_30" is one more game, of
30 players, whose values have a closed form. RESULTS/NAME.shapiq.json then has, for
every estimator and budget, the mean squared error over players of each seed. What is
there is not computed again. With --semivalue banzhaf, and a folder RESULTS of its own,
the estimators are those of Banzhaf values. Needs shapiq, xgboost and lightgbm, in an
environment that need not have skvalue. Left out, after a first run: SHAPIQ and PolySHAP
of order 2, equal to others here. --slow runs those that take long alone, with a folder
RESULTS of its own: ShaplEIG, which chooses one coalition after the other (5 s for 30
evaluations, 11 s for 60; it needs gpytorch and botorch), and SPEX and ProxySPEX, which
search for few interactions of any order (some ten seconds for 200 or 1,000 evaluations;
they need the extra "sparse" of shapiq).
"""

import argparse
import json
import logging
import time
import warnings
from functools import partial
from math import comb
from pathlib import Path
from typing import NamedTuple

import numpy as np

SEMIVALUES = ("shapley", "banzhaf")
THIRTY = "votes_30"


class Lookup:
    """A game as shapiq calls it; counts evaluations."""

    def __init__(self, v, n):
        self.v = v
        self.n_players = n
        self.count = 0

    def __call__(self, masks):
        masks = np.atleast_2d(np.asarray(masks)).astype(np.int64)
        self.count += len(masks)
        return self.v[masks @ 2 ** np.arange(self.n_players)]


class Votes:
    """Mean fraction of right votes of the nearest of 30 rows; counts evaluations."""

    n_players = 30
    n_neighbors = 5

    def __init__(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(self.n_players, 4))
        X_val = rng.normal(size=(100, 4))
        y = (X[:, 0] > 0) ^ (rng.random(self.n_players) < 0.2)
        distances = ((X_val[:, None] - X) ** 2).sum(axis=2)
        self.order = np.argsort(distances, axis=1)
        is_right = y[self.order] == (X_val[:, :1] > 0)
        self.is_right = is_right.astype(float)
        self.count = 0

    def __call__(self, masks):
        masks = np.atleast_2d(np.asarray(masks)).astype(bool)
        self.count += len(masks)
        total = np.zeros(len(masks))
        for order, is_right in zip(self.order, self.is_right):
            members = masks[:, order]
            is_near = members & (np.cumsum(members, axis=1) <= self.n_neighbors)
            total += is_near @ is_right / self.n_neighbors
        return total / len(self.order)

    def shapley_values(self):
        """The recursion of Jia et al. (2019), from the farthest row on."""
        n = self.n_players
        k = self.n_neighbors
        values = np.zeros(n)
        for order, is_right in zip(self.order, self.is_right):
            current = is_right[-1] * min(k, n) / (n * k)
            values[order[-1]] += current
            for i in range(n - 1, 0, -1):
                current += (is_right[i - 1] - is_right[i]) / k * min(k, i) / i
                values[order[i - 1]] += current
        return values / len(self.order)


class Game(NamedTuple):
    """A game: a function that makes it anew, players, kind, and its exact values."""

    make: object
    n: int
    kind: str
    exact: np.ndarray


def load(folder, name):
    """Utilities of all coalitions, the number of players and the kind of a game."""
    with np.load(Path(folder) / f"{name}.npz") as file:
        return file["v"], int(file["n"]), str(file["kind"])


def game_of(folder, name, semivalue="shapley"):
    """A game by name, with its exact values."""
    if name == THIRTY:
        return Game(Votes, Votes.n_players, "thirty", Votes().shapley_values())
    v, n, kind = load(folder, name)
    return Game(partial(Lookup, v, n), n, kind, exact_values(v, n, semivalue))


def exact_values(v, n, semivalue="shapley"):
    """Exact values from the utilities of all coalitions."""
    codes = np.arange(2**n)
    sizes = ((codes[:, None] >> np.arange(n)) & 1).sum(axis=1)
    if semivalue == "banzhaf":
        weights = np.full(n, 1 / 2 ** (n - 1))
    else:
        weights = np.array([1 / (n * comb(n - 1, k)) for k in range(n)])
    values = np.zeros(n)
    for i in range(n):
        member = (codes >> i) & 1 == 1
        values[i] = weights[sizes[member] - 1] @ v[member]
        values[i] -= weights[sizes[~member]] @ v[~member]
    return values


def budgets_of(n, budgets):
    """Numbers of evaluations: 0 stands for 2n + 2, none is that of all coalitions."""
    return [b or 2 * n + 2 for b in budgets if (b or 2 * n + 2) < 2**n]


def n_seeds(budget, seeds):
    """Fewer repetitions of slow fits."""
    if budget <= 200:
        return seeds
    divisor = {500: 2, 1000: 4, 2000: 5, 4000: 8}[budget]
    return min(seeds, max(2, seeds // divisor))


def estimators(n, semivalue="shapley"):
    """Name -> approximator of the values of n players, a function of the seed."""
    from shapiq import approximator as a

    if semivalue == "banzhaf":
        regression = partial(a.RegressionMSR, n, "BV")
        kernel = partial(a.RegressionFBII, n, max_order=1, pairing_trick=True)
        return {
            "RegressionMSR xgboost": regression,
            "RegressionMSR lightgbm": partial(regression, proxy_model="lightgbm"),
            "RegressionMSR linear": partial(regression, proxy_model="linear"),
            "RegressionMSR 5 folds": partial(regression, k_folds=5),
            "ProxySHAP": partial(a.ProxySHAP, n, max_order=1, index="BV"),
            "SVARM": partial(a.SVARMIQ, n, max_order=1, index="BV"),
            "Kernel Banzhaf": kernel,
        }

    regression = partial(a.RegressionMSR, n, "SV")
    makers = {
        "KernelSHAP paired": partial(a.KernelSHAP, n, pairing_trick=True),
        "LeverageSHAP": partial(a.LeverageSHAP, n),
        "SVARM": partial(a.SVARM, n),
        "StratifiedSamplingSV": partial(a.StratifiedSamplingSV, n),
        "PermutationSamplingSV": partial(a.PermutationSamplingSV, n),
        "OwenSamplingSV": partial(a.OwenSamplingSV, n, n_anchor_points=5),
        "kADDSHAP2": partial(a.kADDSHAP, n, max_order=2),
        "PolySHAP3": partial(a.PolySHAP, n, max_order=3, pairing_trick=True),
        "OddSHAP": partial(a.OddSHAP, n),
        "RegressionMSR xgboost": regression,
        "RegressionMSR lightgbm": partial(regression, proxy_model="lightgbm"),
        "RegressionMSR linear": partial(regression, proxy_model="linear"),
        "RegressionMSR 5 folds": partial(regression, k_folds=5),
        "ProxySHAP": partial(a.ProxySHAP, n, max_order=1, index="SV"),
    }
    return makers


def slow_estimators(n):
    """As `estimators`, of those that take seconds for a few evaluations."""
    from shapiq import approximator as a

    return {
        "ShaplEIG": partial(a.ShaplEIG, n, refit="decaying", show_progress=False),
        "SPEX": partial(a.SPEX, n=n, max_order=1, index="SV"),
        "ProxySPEX": partial(a.ProxySPEX, n=n, max_order=1, index="SV"),
    }


def first_order(interactions, n):
    """The values of single players in what an approximator returns."""
    values = np.zeros(n)
    for i in range(n):
        try:
            values[i] = interactions[(i,)]
        except (KeyError, IndexError):
            values[i] = 0.0
    return values


def squared_errors(make, game, budget, n_repeats):
    """Mean squared error over players of every seed."""
    errors = []
    for seed in range(n_repeats):
        counted = game.make()
        estimated = make(random_state=1000 + seed).approximate(budget, counted)
        if counted.count > budget:
            raise RuntimeError(f"{counted.count} evaluations, not {budget}")
        misses = first_order(estimated, game.n) - game.exact
        errors.append(float(np.mean(misses**2)))
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--budgets", type=int, nargs="+", required=True)
    parser.add_argument("--games", nargs="+")
    parser.add_argument("--semivalue", choices=SEMIVALUES, default="shapley")
    parser.add_argument(
        "--slow", action="store_true", help="ShaplEIG, SPEX and ProxySPEX alone"
    )
    parser.add_argument("--estimators", nargs="+", help="these of them only")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)

    names = options.games or sorted(path.stem for path in options.folder.glob("*.npz"))
    options.results.mkdir(exist_ok=True)
    for name in names:
        game = game_of(options.folder, name, options.semivalue)
        path = options.results / f"{name}.shapiq.json"
        spread = float(game.exact.std())
        kept = {"n": game.n, "kind": game.kind, "spread": spread, "errors": {}}
        if path.exists():
            kept = json.loads(path.read_text())
        makers = estimators(game.n, options.semivalue)
        if options.slow:
            makers = slow_estimators(game.n)
        if options.estimators:
            makers = {label: makers[label] for label in options.estimators}
        start = time.process_time()
        for budget in budgets_of(game.n, options.budgets):
            n_repeats = n_seeds(budget, options.seeds)
            for label, make in makers.items():
                key = f"{label}|{budget}"
                if len(kept["errors"].get(key, [])) >= n_repeats:
                    continue
                try:
                    kept["errors"][key] = squared_errors(make, game, budget, n_repeats)
                except Exception as error:  # too few evaluations for some estimators
                    print(name, label, budget, repr(error)[:80])
        path.write_text(json.dumps(kept))
        print(f"{name} {time.process_time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
