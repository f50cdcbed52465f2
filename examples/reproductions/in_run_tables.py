"""In-run values with privacy for all rows at once: where the budget pays.

For Covertype, Adult and MNIST, numbers of rows and epsilon, this prints how well
private in-run values agree with those of the same run without noise, in rank
(Spearman), in size (L1 error over the L1 norm) and in the detection of wrong labels
(AUROC), next to the values that cost nothing (`baseline_`, and the first step alone).
The values without noise have the same clipping and learning rate. The last column is
the fraction of values within two of their standard errors.

    python examples/reproductions/in_run_tables.py --data FOLDER

FOLDER holds covertype.npz, adult.npz and mnist.npz with arrays X and y; without it,
Covertype and Adult come from OpenML.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import fetch_openml
from sklearn.preprocessing import OneHotEncoder

from skvalue import InRunShapleyValuer
from skvalue.datasets import flip_labels
from skvalue.exceptions import ConstantColumnsWarning
from skvalue.inspection import noisy_label_auc

# Name -> (OpenML's name and version, fraction of flipped labels, delta, numbers of
# rows).
SETS = {
    "covertype": (("covertype", 3), 0.3, 5e-5, (100, 800, 8000, 20_000)),
    "adult": (("adult", 2), 0.2, 1e-5, (100, 800, 8000, 20_000)),
    "mnist": (("mnist_784", 1), 0.1, 1e-5, (100, 800, 8000, 20_000)),
}
N_POINTS = 200


def load(name, folder):
    """All rows of a data set; categories become indicators."""
    if folder is None:
        X, y = fetch_openml(
            *SETS[name][0][:1], version=SETS[name][0][1], return_X_y=True, as_frame=True
        )
        texts = X.select_dtypes(exclude="number").columns
        coded = OneHotEncoder(sparse_output=False).fit_transform(X[texts].astype(str))
        X = np.column_stack([X.drop(columns=texts).to_numpy(float), coded])
    else:
        with np.load(Path(folder) / f"{name}.npz") as arrays:
            X = arrays["X"]
            y = arrays["y"]
            X = X.reshape(len(X), -1).astype(float)
            if "is_cat" in arrays:
                some = arrays["is_cat"].astype(bool)
                coded = [np.eye(int(c.max()) + 1)[c.astype(int)] for c in X[:, some].T]
                X = np.column_stack([X[:, ~some], *coded])
    if name == "mnist":
        X = X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(X), -1)
    return X, np.unique(np.asarray(y), return_inverse=True)[1]


def draw(X, y, n, flipped, seed):
    """Rows with wrong labels, and validation points of the same classes."""
    order = np.random.default_rng(seed).permutation(len(y))[: n + N_POINTS]
    X, y, X_val, y_val = X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]
    y, wrong = flip_labels(y, flipped, random_state=seed)
    both = np.intersect1d(y, y_val)
    rows = np.isin(y, both)
    points = np.isin(y_val, both)
    return X[rows], y[rows], wrong[rows], X_val[points], y_val[points]


def compare(problem, epsilon, delta, **parameters):
    """Figures of one draw: [exact, private, baseline, first step] by measure, and
    errors."""
    X, y, wrong, X_val, y_val = problem
    points = {"X_val": X_val, "y_val": y_val}
    private = InRunShapleyValuer(epsilon=epsilon, delta=delta, **parameters).fit(
        X, y, **points
    )
    parameters = {**parameters, "clip": 1.0, "learning_rate": private.learning_rate_}
    exact = InRunShapleyValuer(**parameters).fit(X, y, **points)
    first = (
        InRunShapleyValuer(**{**parameters, "n_steps": 1}).fit(X, y, **points).values_
    )
    free = private.n_steps * first
    size = np.abs(exact.values_).sum()
    found = [
        [
            noisy_label_auc(v, wrong),
            spearmanr(v, exact.values_)[0],
            np.abs(v - exact.values_).sum() / size,
        ]
        for v in (exact.values_, private.values_, private.baseline_, free)
    ]
    near = np.abs(private.values_ - exact.values_) <= 2 * private.values_error_
    return np.array(found), near.mean(), private.learning_rate_


def table(names, sizes, epsilons, n_draws, folder, **parameters):
    """Print the figures, means over draws of rows and noise."""
    print(
        "                                     AUROC                     | Spearman   "
        "        | L1"
        " error           | within\n"
        "set            n  epsilon  rate    none private free  first    | private "
        "free first |"
        " private free first  | 2 errors"
    )
    for name in names:
        _, flipped, delta, all_sizes = SETS[name]
        X, y = load(name, folder)
        for n in sizes or all_sizes:
            n = min(n, len(y) - N_POINTS)
            for epsilon in epsilons:
                draws = [
                    compare(draw(X, y, n, flipped, seed), epsilon, delta, **parameters)
                    for seed in range(n_draws)
                ]
                found = np.mean([found for found, _, _ in draws], axis=0)
                near, rate = np.mean([[near, rate] for _, near, rate in draws], axis=0)
                a, s, e = found.T
                print(
                    f"{name:10s} {n:6d} {epsilon:6g} {rate:7.2f}   {a[0]:.3f} "
                    f"{a[1]:.3f}  "
                    f"{a[2]:.3f} {a[3]:.3f}    | {s[1]:.3f}   {s[2]:.3f} {s[3]:.3f}| "
                    f"{e[1]:.3f}   {e[2]:.3f} {e[3]:.3f} | {near:.3f}",
                    flush=True,
                )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=None, help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--sizes", nargs="+", type=int, default=None)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument(
        "--rate", type=float, default=None, help="learning rate; default: auto"
    )
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConstantColumnsWarning)
    rate = "auto" if given.rate is None else given.rate
    table(
        given.sets,
        given.sizes,
        given.epsilons,
        given.draws,
        given.data,
        n_steps=given.steps,
        learning_rate=rate,
    )


if __name__ == "__main__":
    main()
