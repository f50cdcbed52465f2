"""
Layered Shapley and the stratified sampler
==========================================

Standard errors of Layered values and of those of `DataShapleyValuer`, whose sampler is
stratified, at equal numbers of fits, of rows trained on, and of seconds of CPU time, on
rows of phoneme:

    python examples/reproductions/layered_budgets.py --data FOLDER

The error is the root mean squared difference to values of many more coalitions, over
seeds. A stratified fit of the same rows or seconds has as many coalitions more or less
as the ratio says, since squared errors fall as one over the number of coalitions.
--default prints the CPU time of the default fits of both at 1,000 rows.
"""

import argparse
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.preprocessing import scale

from skvalue import DataShapleyValuer, LayeredShapleyValuer

N = 100
N_VAL = 500
BUDGET = 4000
REFERENCE = 200_000
SEEDS = 5
METHODS = {
    "Data Shapley, stratified": lambda **p: DataShapleyValuer(
        sampler="stratified", **p
    ),
    "Layered, neyman": lambda **p: LayeredShapleyValuer(**p),
    "Layered, bound": lambda **p: LayeredShapleyValuer(allocation="bound", **p),
}


def rows_of(folder, n, seed=0):
    with np.load(Path(folder) / "phoneme.npz") as file:
        X = scale(file["X"].astype(float))
        y = file["y"]
    order = np.random.default_rng(seed).permutation(len(X))[: n + N_VAL]
    return X[order[:n]], y[order[:n]], dict(X_val=X[order[n:]], y_val=y[order[n:]])


class Counted:
    """Counts the rows of all coalitions that games evaluate."""

    rows = 0

    def __enter__(self):
        from skvalue.games import ModelGame

        self.game = ModelGame
        self.utility = ModelGame.utility

        def utility(game, masks):
            self.rows += int(np.sum(masks))
            return self.utility(game, masks)

        ModelGame.utility = utility
        return self

    def __exit__(self, *error):
        self.game.utility = self.utility


def measure(make, X, y, points, exact, budget, seeds):
    """Root mean squared error, rows and seconds of CPU time of a fit, means over
    seeds."""
    squares = []
    rows = []
    seconds = []
    for seed in range(seeds):
        with Counted() as counted:
            start = process_time()
            valuer = make(
                scoring="neg_log_loss", max_evaluations=budget, random_state=seed
            )
            values = valuer.fit(X, y, **points).values_
            seconds.append(process_time() - start)
        squares.append(np.mean((values - exact) ** 2))
        rows.append(counted.rows)
    return np.sqrt(np.mean(squares)), np.mean(rows), np.mean(seconds)


def print_budgets(folder, n=N, budget=BUDGET, reference=REFERENCE, seeds=SEEDS):
    X, y, points = rows_of(folder, n)
    options = dict(scoring="neg_log_loss", max_evaluations=reference, random_state=99)
    exact = (
        DataShapleyValuer(sampler="stratified", **options).fit(X, y, **points).values_
    )
    print(
        f"phoneme, {n} rows, {budget} fits, {seeds} seeds; values have a standard "
        f"deviation of"
    )
    print(f"{exact.std():.2g}. Error over that of the stratified sampler at equal ...")
    print(
        f"{'':26}{'error':>10}{'rows':>10}{'seconds':>9}{'fits':>7}{'rows':>7}{'seconds':>9}"
    )
    first = None
    for name, make in METHODS.items():
        error, rows, seconds = measure(make, X, y, points, exact, budget, seeds)
        first = first or (error, rows, seconds)
        by_fits = error / first[0]
        ratios = [
            by_fits * np.sqrt(cost / of)
            for cost, of in ((rows, first[1]), (seconds, first[2]))
        ]
        print(
            f"{name:26}{error:10.2g}{rows:10.0f}{seconds:9.2f}{by_fits:7.2f}{ratios[0]:7.2f}"
            f"{ratios[1]:9.2f}",
            flush=True,
        )


def print_defaults(folder, n=1000):
    X, y, points = rows_of(folder, n)
    seconds = []
    for make in (DataShapleyValuer, LayeredShapleyValuer):
        make(max_evaluations=500, random_state=0).fit(
            X[:50], y[:50], **points
        )  # compiles
        start = process_time()
        make(random_state=0).fit(X, y, **points)
        seconds.append(process_time() - start)
    print(
        f"Default fits, {n} rows: {seconds[0]:.1f} and {seconds[1]:.1f} s of CPU "
        f"time, a ratio of"
    )
    print(f"{seconds[1] / seconds[0]:.2f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", metavar="FOLDER", required=True, help="folder of phoneme.npz"
    )
    parser.add_argument("--default", action="store_true", help="only the default fits")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if not args.default:
        print_budgets(args.data)
    print_defaults(args.data)


if __name__ == "__main__":
    main()
