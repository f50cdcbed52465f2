"""
Do private values keep the order of exact ones?
===============================================

Fu, Wang and Chandrasekaran, "Challenges in Enabling Private Data Valuation" (2026),
judge private values by how far their ranks are those of the values without noise. This
script prints that for the private valuers of rows of skvalue, on breast cancer, 300
rows, one label in ten wrong, and 100 public validation points: Spearman's correlation
with the values of the same method without noise, and the fraction of the 30 rows of
lowest value that are the same, as means over draws of the noise:

    python examples/reproductions/rank_fidelity.py

"free" is the part of a value that costs no privacy, `baseline_`: what a private value
adds to the order is what exceeds it. The methods and sets of the paper are not redone.
"""

import argparse
import warnings

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from tknn_tables import print_table

from skvalue import (
    GradientSemivalueValuer,
    InRunShapleyValuer,
    LayeredShapleyValuer,
    TKNNShapleyValuer,
)
from skvalue.datasets import flip_labels

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-5
N_ROWS = 300
N_POINTS = 100
N_LOWEST = 30


def problem():
    """Rows, labels and validation points."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X = scale(X)[order] / 6
    y = y[order]
    rows = slice(0, N_ROWS)
    points = slice(N_ROWS, N_ROWS + N_POINTS)
    labels, _ = flip_labels(y[rows], 0.1, random_state=0)
    return X[rows], labels, {"X_val": X[points], "y_val": y[points]}


def make(name, epsilon):
    """A valuer of rows, with epsilon or without."""
    private = {"epsilon": epsilon, "delta": DELTA}
    if name == "TKNN":
        return TKNNShapleyValuer(**private)
    if name == "in-run":
        return InRunShapleyValuer(clip=1.0, random_state=0, **private)
    if name == "gradient semivalues, local":
        options = {"n_permutations": 50, "clip": 1.0, "random_state": 0}
        return GradientSemivalueValuer(learning_rate=0.1, **options, **private)
    if epsilon is None:
        return LayeredShapleyValuer(l2=1.0, n_layers=3, random_state=0)
    return LayeredShapleyValuer(
        l2=1.0, n_layers=3, release="all", random_state=0, **private
    )


NAMES = ("TKNN", "Layered, all values", "in-run", "gradient semivalues, local")


def fidelity(values, exact):
    """Spearman's correlation, and the share of the rows of lowest values in common."""
    lowest = np.argsort(values)[:N_LOWEST]
    common = np.intersect1d(lowest, np.argsort(exact)[:N_LOWEST])
    return spearmanr(values, exact)[0], len(common) / N_LOWEST


def show(scores):
    correlation, overlap = np.mean(scores, axis=0)
    return f"{correlation:.3f}, {overlap:.2f}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=5, help="draws of the noise")
    parser.add_argument("--methods", nargs="+", choices=NAMES, default=list(NAMES))
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of noise that exceeds the values
    X, y, points = problem()
    rows = []
    for name in args.methods:
        exact = make(name, None).fit(X, y, **points).values_
        cells = []
        for epsilon in EPSILONS:
            fits = [make(name, epsilon).fit(X, y, **points) for _ in range(args.draws)]
            cells.append(show([fidelity(fit.values_, exact) for fit in fits]))
        free = "--"
        if hasattr(fits[0], "baseline_"):
            free = show([fidelity(fit.baseline_, exact) for fit in fits])
        rows.append([name, *cells, free])
        print(f"{name} done", flush=True)
    print(f"\nSpearman's correlation, overlap of the {N_LOWEST} lowest of {N_ROWS}\n")
    print_table(["method", *(f"epsilon {e:g}" for e in EPSILONS), "free"], rows)


if __name__ == "__main__":
    main()
