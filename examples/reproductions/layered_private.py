"""
Private Layered values, and what costs no privacy
=================================================

The mean error and Spearman's correlation of one private value, at epsilon 1, with the
value without noise; and those of layer 0 and of the value among public rows, which cost
no privacy:

    python examples/reproductions/layered_private.py --data FOLDER

800 rows of Adult and of the synthetic set of Figure 1 (see layered_figures.py), with
800 validation points, and 468 rows of Diabetes (PIMA) with the other 300; rows are
centred by what is public and clipped to norm 1, without an intercept. Each row is
queried with fresh noise in every draw. RMSE and correlations over the rows are means
over the draws, with the standard error of their difference to those of layer 0. "sum"
is the value plus noise, "private" that value after shrinkage.

With `--sizes 100 400 1600`, for one set and two settings: from what number of rows on
the release says more than what is free; and Spearman's correlations with the Shapley
values of the paper's own game, accuracies of a `LogisticRegression` of coalitions of
all sizes.
"""

import argparse
import warnings
from itertools import product

import layered_figures
import numpy as np
from scipy.stats import spearmanr

from skvalue import DataShapleyValuer, LayeredShapleyValuer

SETS = {"adult": (800, 800), "diabetes": (468, 300), "synthetic": (800, 800)}
PENALTIES = (1.0, 0.1, 0.01)
DEPTHS = (3, 10)


def problem(name, folder, n, n_val, seed=0):
    """Rows and validation points, less what public knowledge says of their means."""
    rng = np.random.default_rng(seed)
    X, y, centre = layered_figures.load(name, folder, rng)
    order = rng.permutation(len(X))[: n + n_val]
    X = X[order] - centre
    y = y[order]
    return X[:n], y[:n], dict(X_val=X[n:], y_val=y[n:])


def releases(X, y, points, l2, n_layers, n_draws, rng):
    """Values without noise, layer 0, its best prediction, and draws of private ones,
    with a fit."""
    game = dict(
        l2=l2, max_norm=1.0, fit_intercept=False, n_layers=n_layers, random_state=0
    )
    private = LayeredShapleyValuer(**game, epsilon=1.0, delta=1e-5).fit(X, y, **points)
    game |= dict(l2=private.l2_, n_layers=private.n_layers_)
    exact = LayeredShapleyValuer(**game, max_evaluations=100 * len(X)).fit(
        X, y, **points
    )
    values = exact.values_
    free = private.baseline_
    predicted = private.prediction()
    noisy = values + rng.laplace(0, private.noise_scale_, (n_draws, len(X)))
    shrunk = predicted + private.shrinkage_ * (noisy - predicted)
    return values, free, predicted, noisy, shrunk, private


def errors(estimates, values):
    """RMSE and Spearman's correlation of each of some estimates with the values."""
    estimates = np.atleast_2d(estimates)
    rmse = np.sqrt(((estimates - values) ** 2).mean(axis=1))
    return rmse, np.array([spearmanr(row, values).statistic for row in estimates])


def compare(X, y, points, l2, n_layers, n_draws, seed=0):
    """One cell of the table: means of all estimates, and standard errors of the
    differences."""
    rng = np.random.default_rng(seed)
    values, free, predicted, summed, shrunk, fit = releases(
        X, y, points, l2, n_layers, n_draws, rng
    )
    of = [errors(estimate, values) for estimate in (free, predicted, summed, shrunk)]
    means = np.array([[m.mean() for m in pair] for pair in of])
    spread = [(of[3][m] - of[0][m][0]).std(ddof=1) / np.sqrt(n_draws) for m in (0, 1)]
    # Better is a positive number of standard errors.
    gains = np.array([means[0, 0] - means[3, 0], means[3, 1] - means[0, 1]])
    with np.errstate(divide="ignore"):  # no noise is left where the weight is 0
        return means, gains / spread, fit


def print_cells(names, folder, n_draws):
    print(
        "Mean error over that of layer 0, and Spearman's correlation, of one private "
        "value"
    )
    head = "".join(f"{name:>11}" for name in ("predicted", "sum", "private"))
    print(
        f"{'set':10}{'l2':>6}{'K':>4}{head}   | layer 0{head}   weight   better by "
        f"(errors)"
    )
    worst = np.inf
    better = 0
    for name in names:
        X, y, points = problem(name, folder, *SETS[name])
        for l2, depth in product(PENALTIES, DEPTHS):
            means, gains, fit = compare(X, y, points, l2, depth, n_draws)
            rmse = "".join(f"{x:11.3f}" for x in means[1:, 0] / means[0, 0])
            rho = "".join(f"{x:11.3f}" for x in means[1:, 1])
            print(
                f"{name:10}{l2:6g}{depth:4d}{rmse}   "
                f"|{means[0, 1]:8.3f}{rho}{fit.shrinkage_:9.2f}"
                f"{gains[0]:11.1f} {gains[1]:8.1f}"
            )
            worst = min(worst, *gains)
            better += gains.min() > 2
    print(
        f"Worst: {worst:.1f} standard errors; better by more than two in both: "
        f"{better} cells"
    )


def print_sizes(name, folder, sizes, n_draws):
    print(
        "One private value by the number of rows: error over that of the prediction, "
        "weight,"
    )
    print("and correlations with the Shapley values of the paper's own game")
    head = "".join(
        f"{of:>11}" for of in ("layer 0", "predicted", "private", "no noise")
    )
    print(f"{'set':10}{'rows':>6}{'l2':>6}{'K':>4}{'error':>9}{'weight':>8}   |{head}")
    for n, (l2, depth) in product(sizes, ((1.0, 10), (0.1, 3))):
        X, y, points = problem(name, folder, n, SETS[name][1])
        rng = np.random.default_rng(0)
        values, free, predicted, _, shrunk, fit = releases(
            X, y, points, l2, depth, n_draws, rng
        )
        of = [errors(estimate, values)[0].mean() for estimate in (predicted, shrunk)]
        own = DataShapleyValuer(max_evaluations=100 * n, random_state=0).fit(
            X, y, **points
        )
        found = (free, predicted, shrunk[0], values)
        rho = "".join(f"{spearmanr(v, own.values_).statistic:11.3f}" for v in found)
        print(
            f"{name:10}{n:6d}{l2:6g}{depth:4d}{of[1] / of[0]:9.3f}"
            f"{fit.shrinkage_:8.2f}   |{rho}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of npz files; default: OpenML"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--draws", type=int, default=20, help="draws of the noise")
    parser.add_argument(
        "--sizes", nargs="+", type=int, help="numbers of rows, of each of --sets"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in args.sets if args.sizes else ():
        print_sizes(name, args.data, args.sizes, args.draws)
    if not args.sizes:
        print_cells(args.sets, args.data, args.draws)


if __name__ == "__main__":
    main()
