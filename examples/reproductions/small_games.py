"""
Few players, few evaluations: game_values and every estimator of shapiq
=======================================================================

Root mean squared errors of Shapley values of 33 games of 13 to 20 players, all of whose
coalitions were evaluated once (small_games_made.py), at equal numbers of evaluations:

    python small_games_made.py GAMES
    SHAPIQ_PYTHON small_games_peers.py GAMES RESULTS --seeds 4 --budgets 0 100 200
    python small_games.py GAMES RESULTS --seeds 4 --budgets 0 100 200
    python small_games.py GAMES RESULTS --table

The last line prints the tables: for each game the error of the best of the estimators
of shapiq, chosen in hindsight for this game and budget, over that of game_values (above
1: skvalue is better), with the standard error of the ratio over seeds; geometric means
over data games (parties and rows); the same for each estimator of shapiq; coverage of
two standard errors; and CPU time. With few seeds the least error of 14 estimators is
too small by chance: lines "chosen on other seeds" take, for each seed, the estimator
that is best on the others. An error below 1e-5 of the standard deviation of the exact
values counts as that: both are exact.

A budget of 0 is 2n + 2. Fewer seeds are run above 200 evaluations, see `n_seeds` of
small_games_peers.py. The name "votes_30" after --games is one more game, of 30 players;
--semivalue banzhaf, with a folder RESULTS of its own, compares Banzhaf values;
--coverage prints that of the errors of several semivalues. --valuer computes values of
the games with DataShapleyValuer, too, and fails if they are not those of game_values to
the bit. Games whose names begin with "fresh", which need data, have folders GAMES and
RESULTS of their own: then every line of the tables is of them alone.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from small_games_peers import SEMIVALUES, Lookup, budgets_of, game_of, load, n_seeds

from skvalue import DataShapleyValuer, game_values
from skvalue.semivalues import tabulated_semivalue

BUDGETS = (0, 100, 200, 500, 1000, 2000, 4000)
COVERED = ("shapley", "banzhaf", (4, 1), (1, 4), (16, 1), (1, 16))
EXACT = 1e-5  # of the standard deviation of the values


def run(folder, results, seeds, budgets, names, semivalue="shapley"):
    """Squared errors, coverage and seconds of game_values, kept in RESULTS."""
    results.mkdir(exist_ok=True)
    for name in names or sorted(path.stem for path in folder.glob("*.npz")):
        game = game_of(folder, name, semivalue)
        path = results / f"{name}.skvalue.json"
        kept = {"errors": {}, "covered": {}, "seconds": {}}
        if path.exists():
            kept = json.loads(path.read_text())
        for budget in budgets_of(game.n, budgets):
            key = str(budget)
            n_done = len(kept["errors"].get(key, []))
            for seed in range(n_done, n_seeds(budget, seeds)):
                start = time.process_time()
                counted = game.make()
                estimated = game_values(
                    counted,
                    game.n,
                    semivalue,
                    sampler="process",
                    max_evaluations=budget,
                    random_state=seed,
                )
                seconds = time.process_time() - start
                if counted.count != budget:
                    raise RuntimeError(f"{counted.count} evaluations, not {budget}")
                misses = estimated.values - game.exact
                is_covered = within_two_errors(estimated, game.exact)
                kept["errors"].setdefault(key, []).append(float(np.mean(misses**2)))
                kept["covered"].setdefault(key, []).append(is_covered)
                # The mean over seeds.
                before = kept["seconds"].get(key, 0.0)
                kept["seconds"][key] = before + (seconds - before) / (seed + 1)
                path.write_text(json.dumps(kept))
        print(name, flush=True)


class LookupModel(RegressorMixin, BaseEstimator):
    """A model whose rows are players, by number; its score is a utility of a table."""

    def __init__(self, v):
        self.v = v

    def fit(self, X, y):
        self.code_ = int((2 ** X[:, 0]).sum())
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return float(self.v[self.code_])


def check_valuer(folder, seeds, budgets, names):
    """Print that values of DataShapleyValuer are those of game_values, to the bit."""
    for name in names or sorted(path.stem for path in folder.glob("*.npz")):
        v, n, _ = load(folder, name)
        rows = np.arange(float(n))[:, None]
        for budget in budgets_of(n, budgets):
            for seed in range(seeds):
                expected = game_values(
                    Lookup(v, n),
                    n,
                    sampler="process",
                    max_evaluations=budget,
                    random_state=seed,
                )
                # Its limit does not count the empty coalition, whose utility is given.
                valuer = DataShapleyValuer(
                    LookupModel(v),
                    sampler="process",
                    max_evaluations=budget - 1,
                    empty_utility=v[0],
                    random_state=seed,
                )
                valuer.fit(rows, rows[:, 0], X_val=rows + 0.5, y_val=rows[:, 0])
                if not (
                    np.array_equal(valuer.values_, expected.values)
                    and np.array_equal(valuer.values_error_, expected.errors)
                ):
                    raise RuntimeError(f"other values: {name}, {budget}, seed {seed}")
            print(
                f"{name:32s}{budget:5d} evaluations, {seeds} seeds: equal", flush=True
            )


def coverage(folder, seeds, budgets, names):
    """Print the coverage of two errors for several semivalues: mean and least game."""
    for semivalue in COVERED:
        for budget in budgets:
            of_games = []
            for name in names or sorted(path.stem for path in folder.glob("*.npz")):
                v, n, _ = load(folder, name)
                exact = tabulated_semivalue(v, semivalue)
                fractions = []
                for seed in range(seeds):
                    estimated = game_values(
                        Lookup(v, n),
                        n,
                        semivalue,
                        sampler="process",
                        max_evaluations=budget or 2 * n + 2,
                        random_state=seed,
                    )
                    fractions.append(within_two_errors(estimated, exact))
                of_games.append((np.mean(fractions), name))
            mean = np.mean([fraction for fraction, _ in of_games])
            least, name = min(of_games)
            print(
                f"{semivalue!s:12s} {budget or '2n+2'!s:>5s} {mean:.2f}, least "
                f"{least:.2f} ({name})",
                flush=True,
            )


def within_two_errors(estimated, exact):
    """Fraction of the players whose value is within two errors of the exact one."""
    tiny = 1e-9 * max(1.0, np.abs(exact).max())
    is_within = np.abs(estimated.values - exact) <= 2 * estimated.errors + tiny
    return float(is_within.mean())


def log_rmse(squares, spread):
    """Log of the root mean squared error of seeds, and its standard error.

    The error of one seed is not known: it is NaN.
    """
    mean = np.mean(squares)
    rmse = max(np.sqrt(mean), EXACT * spread)
    if mean == 0:
        return np.log(rmse), 0.0
    if len(squares) == 1:
        return np.log(rmse), np.nan
    error = 0.5 * np.std(squares, ddof=1) / mean / np.sqrt(len(squares))
    return np.log(rmse), error


def log_ratios(results, name):
    """(estimator of shapiq, budget) -> log ratio of errors and its standard error."""
    ours = json.loads((results / f"{name}.skvalue.json").read_text())
    peers = json.loads((results / f"{name}.shapiq.json").read_text())
    ratios = {}
    for key, squares in peers["errors"].items():
        label, budget = key.split("|")
        if budget not in ours["errors"]:
            continue
        log_peer, peer_error = log_rmse(squares, peers["spread"])
        log_ours, own_error = log_rmse(ours["errors"][budget], peers["spread"])
        is_first = int(budget) == 2 * peers["n"] + 2
        column = 0 if is_first else int(budget)
        error = np.hypot(peer_error, own_error)
        ratios[label, column] = (log_peer - log_ours, error)
    return ratios, peers["kind"], ours


def ratio_out_of_seed(results, name, column):
    """As `best_of`, with the estimator chosen for each seed on the other seeds.

    The least of 14 noisy errors is too small; this one is too large where the choice
    is wrong. None without two seeds.
    """
    ours = json.loads((results / f"{name}.skvalue.json").read_text())
    peers = json.loads((results / f"{name}.shapiq.json").read_text())
    budget = str(column or 2 * peers["n"] + 2)
    of_budget = [
        squares
        for key, squares in peers["errors"].items()
        if key.split("|")[1] == budget
    ]
    if not of_budget or budget not in ours["errors"]:
        return None
    n_common = min(map(len, of_budget))
    errors = np.array([squares[:n_common] for squares in of_budget])
    if n_common < 2:
        return None
    of_others = errors.sum(axis=1, keepdims=True) - errors
    chosen = errors[of_others.argmin(axis=0), np.arange(n_common)]
    log_peer, peer_error = log_rmse(chosen, peers["spread"])
    log_ours, own_error = log_rmse(ours["errors"][budget], peers["spread"])
    return log_peer - log_ours, np.hypot(peer_error, own_error)


def best_of(ratios, budget):
    """The least log ratio at a budget, its error and its estimator; None if none."""
    at_budget = [
        (*ratio, label) for (label, column), ratio in ratios.items() if column == budget
    ]
    return min(at_budget, default=None)


def heading(columns):
    names = ["2n+2" if column == 0 else str(column) for column in columns]
    print(f"{'':32s}" + "".join(f"{name:>16s}" for name in names))


def mean_ratio(ratios):
    """Geometric mean of (log ratio, error) pairs, with its standard error, as text.

    Ratios without an error count as the mean of those that have one.
    """
    if not ratios:
        return ""
    logs, errors = np.array([ratio[:2] for ratio in ratios], dtype=float).T
    mean = np.exp(logs.mean())
    is_known = np.isfinite(errors)
    if not is_known.any():
        return f"{mean:.2f}"
    error = mean * np.sqrt((errors[is_known] ** 2).mean() / len(errors))
    return f"{mean:.2f} +- {error:.2f}"


def table(results):
    """Print the tables of all games that have both results."""
    games = {}
    for path in sorted(results.glob("*.skvalue.json")):
        name = path.name.split(".")[0]
        if (results / f"{name}.shapiq.json").exists():
            games[name] = log_ratios(results, name)
    budgets_run = {budget for ratios, _, _ in games.values() for _, budget in ratios}
    columns = [budget for budget in BUDGETS if budget in budgets_run]

    print("Error of the best estimator of shapiq in hindsight over that of game_values")
    heading(columns)
    best = {}
    for name, (ratios, _, _) in games.items():
        cells = []
        for budget in columns:
            best[name, budget] = best_of(ratios, budget)
            of_game = best[name, budget]
            cells.append(mean_ratio([] if of_game is None else [of_game]))
        print(f"{name:32s}" + "".join(f"{cell:>16s}" for cell in cells))

    def is_data(name):
        return games[name][1] in ("parties", "rows")

    later = ("new_", "fresh_")
    groups = {
        "tuned, data games": [
            g for g in games if is_data(g) and not g.startswith(later)
        ],
        "new, data games": [g for g in games if is_data(g) and g[:4] == "new_"],
        "fresh, data games": [g for g in games if g.startswith("fresh_")],
        "explanations": [g for g in games if games[g][1] == "features"],
        "known": [g for g in games if games[g][1] == "known"],
        "30 players": [g for g in games if games[g][1] == "thirty"],
        "all but explanations": [
            g for g in games if games[g][1] not in ("features", "thirty")
        ],
    }
    for group, names in groups.items():
        if not names:
            continue
        cells = []
        for budget in columns:
            present = [best[name, budget] for name in names if best[name, budget]]
            cells.append(mean_ratio(present))
        print(f"{group:32s}" + "".join(f"{cell:>16s}" for cell in cells))
        cells = []
        for budget in columns:
            chosen = [ratio_out_of_seed(results, name, budget) for name in names]
            cells.append(mean_ratio([ratio for ratio in chosen if ratio]))
        label = "  chosen on other seeds"
        print(f"{label:32s}" + "".join(f"{cell:>16s}" for cell in cells))
    cells = []
    for budget in columns:
        present = [best[g, budget] for g in groups["all but explanations"]]
        present = [ratio for ratio in present if ratio]
        cells.append(f"{sum(ratio[0] < 0 for ratio in present)} of {len(present)}")
    print(f"{'games lost, no explanations':32s}" + "".join(f"{c:>16s}" for c in cells))
    cells = []
    for budget in columns:
        names = groups["all but explanations"]
        chosen = [ratio_out_of_seed(results, name, budget) for name in names]
        logs = [ratio[0] for ratio in chosen if ratio]
        cells.append(f"{sum(log < 0 for log in logs)} of {len(logs)}")
    print(f"{'  chosen on other seeds':32s}" + "".join(f"{c:>16s}" for c in cells))

    print("\nGames lost, no explanations: the ratio and the estimator of shapiq")
    for budget in columns:
        lost = [
            (*best[name, budget], name)
            for name in groups["all but explanations"]
            if best[name, budget] and best[name, budget][0] < 0
        ]
        print(f"{budget or '2n+2'}:")
        for log, error, label, name in sorted(lost):
            print(f"    {name:32s}{mean_ratio([(log, error)]):>16s}  {label}")

    print("\nError of each estimator of shapiq over that of game_values, data games")
    heading(columns)
    labels = sorted({label for ratios, _, _ in games.values() for label, _ in ratios})
    for label in labels:
        cells = []
        for budget in columns:
            ratios = [
                games[name][0].get((label, budget)) for name in filter(is_data, games)
            ]
            cells.append(mean_ratio([ratio for ratio in ratios if ratio]))
        print(f"{label:32s}" + "".join(f"{cell:>16s}" for cell in cells))

    for field, title in (("covered", "Coverage of two errors"), ("seconds", "CPU s")):
        print(f"\n{title}: mean over games, least and largest")
        heading(columns)
        cells = []
        for budget in columns:
            figures = []
            for _, _, ours in games.values():
                # 2n + 2 is a budget of no column.
                keys = [key for key in ours[field] if int(key) == budget]
                if budget == 0:
                    keys = [key for key in ours[field] if int(key) < 50]
                figures.extend(float(np.mean(ours[field][key])) for key in keys)
            cells.append(
                f"{np.mean(figures):.2f} ({min(figures):.2f}-{max(figures):.2f})"
            )
        print(f"{'':32s}" + "".join(f"{cell:>17s}" for cell in cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--budgets", type=int, nargs="+", default=(0, 100, 200))
    parser.add_argument("--games", nargs="+")
    parser.add_argument("--semivalue", choices=SEMIVALUES, default="shapley")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--valuer", action="store_true")
    options = parser.parse_args()
    if options.table:
        table(options.results)
        return
    if options.coverage:
        coverage(options.folder, options.seeds, options.budgets, options.games)
        return
    if options.valuer:
        check_valuer(options.folder, options.seeds, options.budgets, options.games)
        return
    run(
        options.folder,
        options.results,
        options.seeds,
        options.budgets,
        options.games,
        options.semivalue,
    )


if __name__ == "__main__":
    main()
