"""
Squared errors of the estimators of shapiq on games of few players
==================================================================

    python small_games_peers.py GAMES RESULTS --seeds 8 --budgets 100 200 [--games ...]

GAMES holds the files of small_games_made.py; RESULTS/NAME.shapiq.json then has, for
every estimator and budget, the mean squared error over players of each seed. What is
there is not computed again. Needs shapiq, xgboost and lightgbm, in an environment that
need not have skvalue. Left out, after a first run: ProxySPEX, whose search takes a
minute and which was behind; SHAPIQ and PolySHAP of order 2, equal to others here.
"""

import argparse
import json
import logging
import time
import warnings
from functools import partial
from math import comb
from pathlib import Path

import numpy as np


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


def load(folder, name):
    """Utilities of all coalitions, the number of players and the kind of a game."""
    with np.load(Path(folder) / f"{name}.npz") as file:
        return file["v"], int(file["n"]), str(file["kind"])


def shapley_values(v, n):
    """Exact values from the utilities of all coalitions."""
    codes = np.arange(2**n)
    sizes = ((codes[:, None] >> np.arange(n)) & 1).sum(axis=1)
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
    return max(2, seeds // divisor)


def estimators(n):
    """Name -> approximator of Shapley values of n players, a function of the seed."""
    from shapiq import approximator as a

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


def first_order(interactions, n):
    """The values of single players in what an approximator returns."""
    values = np.zeros(n)
    for i in range(n):
        try:
            values[i] = interactions[(i,)]
        except (KeyError, IndexError):
            values[i] = 0.0
    return values


def squared_errors(make, game, exact, budget, n_repeats):
    """Mean squared error over players of every seed."""
    v, n = game
    errors = []
    for seed in range(n_repeats):
        lookup = Lookup(v, n)
        estimated = make(random_state=1000 + seed).approximate(budget, lookup)
        if lookup.count > budget:
            raise RuntimeError(f"{lookup.count} evaluations, not {budget}")
        errors.append(float(np.mean((first_order(estimated, n) - exact) ** 2)))
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--budgets", type=int, nargs="+", required=True)
    parser.add_argument("--games", nargs="+")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)

    names = options.games or sorted(path.stem for path in options.folder.glob("*.npz"))
    options.results.mkdir(exist_ok=True)
    for name in names:
        v, n, kind = load(options.folder, name)
        exact = shapley_values(v, n)
        path = options.results / f"{name}.shapiq.json"
        kept = {"n": n, "kind": kind, "spread": float(exact.std()), "errors": {}}
        if path.exists():
            kept = json.loads(path.read_text())
        start = time.process_time()
        for budget in budgets_of(n, options.budgets):
            n_repeats = n_seeds(budget, options.seeds)
            for label, make in estimators(n).items():
                key = f"{label}|{budget}"
                if len(kept["errors"].get(key, [])) >= n_repeats:
                    continue
                try:
                    kept["errors"][key] = squared_errors(
                        make, (v, n), exact, budget, n_repeats
                    )
                except Exception as error:  # too few evaluations for some estimators
                    print(name, label, budget, repr(error)[:80])
        path.write_text(json.dumps(kept))
        print(f"{name} {time.process_time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
