"""
Batched solvers against a loop over fits
========================================

The same random coalitions of a data set of scikit-learn are trained by a batched solver
and one after the other by joblib (``batch="never"``), on one thread, in turn. Printed
are medians of the CPU seconds per coalition and of their ratios, and the fraction of
coalitions whose utility is the same to 1e-6 (the loop ends at the `tol` of its
estimator). Torch is timed beside the compiled solver of the same estimator.

    python examples/reproductions/batched_games.py
"""

import argparse
import warnings
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np
from other_libraries_processes import print_table, stamp
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from threadpoolctl import threadpool_limits

from skvalue.games import ModelGame

N_ROWS = 300


@dataclass(frozen=True)
class Case:
    """A game, and how its models are trained in batches."""

    estimator: BaseEstimator
    load: Any  # a loader of scikit-learn
    engine: dict = field(default_factory=dict)  # further parameters of the game


TORCH = {"batch": "torch", "device": "cpu"}
CASES = {
    "naive Bayes": Case(GaussianNB(), load_digits),
    "centroid": Case(NearestCentroid(), load_digits),
    "logistic": Case(LogisticRegression(), load_breast_cancer),
    "logistic, torch": Case(LogisticRegression(), load_breast_cancer, TORCH),
    "ridge": Case(Ridge(), load_diabetes),
    "ridge, torch": Case(Ridge(), load_diabetes, TORCH),
}


def games_of(case):
    """The game in batches, and the same game by a loop over fits."""
    X, y = case.load(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    order = np.random.default_rng(0).permutation(len(y))
    rows = order[:N_ROWS]
    points = order[N_ROWS : N_ROWS + 500]
    data = X[rows], y[rows], X[points], y[points]
    loop = ModelGame(case.estimator, *data, batch="never", n_jobs=1, cache_size=0)
    return ModelGame(case.estimator, *data, n_jobs=1, **case.engine), loop


def seconds_of(game, masks):
    """CPU seconds to train the coalitions, and their utilities."""
    start = process_time()
    utilities = game.utility(masks)
    return process_time() - start, utilities


def measure(case, n_coalitions, n_pairs):
    """A line of the table, from alternating pairs of both games."""
    batched, loop = games_of(case)
    masks = np.random.default_rng(1).random((n_coalitions, N_ROWS)) < 0.5
    batched.utility(masks)  # compiles
    times = np.empty((n_pairs, 2))
    for pair in times:
        pair[0], in_batches = seconds_of(batched, masks)
        pair[1], one_by_one = seconds_of(loop, masks)
    gains = times[:, 1] / times[:, 0]
    in_batches_ms, one_by_one_ms = np.median(times, axis=0) / n_coalitions * 1e3
    equal = np.mean(np.abs(in_batches - one_by_one) <= 1e-6)
    return [
        f"{one_by_one_ms:.2f} ms",
        f"{in_batches_ms:.3f} ms",
        f"{np.median(gains):.0f} x",
        f"{gains.min():.0f} to {gains.max():.0f}",
        f"{equal:.1%}",
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--coalitions", type=int, default=500)
    parser.add_argument("--pairs", type=int, default=7)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if any(CASES[name].engine for name in args.cases):
        import torch  # the limit below is on the libraries that are loaded

        torch.set_num_threads(1)
    print(stamp("skvalue", "numpy", "scikit-learn") + "\n")
    with threadpool_limits(1):
        lines = [
            [name, *measure(CASES[name], args.coalitions, args.pairs)]
            for name in args.cases
        ]
    print_table(["solver", "loop", "batch", "gain", "of pairs", "same"], lines)


if __name__ == "__main__":
    main()
