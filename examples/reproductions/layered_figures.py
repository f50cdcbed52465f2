"""
Figure 1 and the rank correlations of the Layered Shapley paper
===============================================================

Watson, Andreeva, Yang and Sarkar, "Differentially Private Shapley Values for Data Evaluation"
(2022), Section 4: the accuracy of a logistic regression as rows of high or low value go, and the
rank correlation of private with clear values, on 100 rows of Adult, of Diabetes (PIMA) and of 50
standard normal features, with alpha = beta = 0.05, lambda = 1 and epsilon = 1. This script prints
both, mean (standard deviation) over draws of the rows:

    python examples/reproductions/layered_figures.py --data FOLDER

Features are scaled to (0, 1) with all rows, as in the paper, and an epsilon says nothing of that. A
utility is minus the logistic loss of 500 held-out rows (300 for Diabetes), curves are of 500 others
(300). The paper leaves open how Adult's categories were coded (here: one column each), and which
lambda scikit-learn was given (here: C = 1); it leaves out coalitions that are worse than guessing,
and the empty one, which the values here keep. Its synthetic labels follow Ghorbani and Zou (2019):
drawn from a logistic law of a linear score.

What the calibrations guarantee, for values of n = 100 rows:

- As published (Appendix D), each value at epsilon 1: nothing is proved, since half the change of a
  replaced row is taken, and C = 1 is not stable enough. "p <= 1" is the same with the chance that a
  row is used cut off at 1: as printed it is 19 for c = 1/2, and inflates the noise.
- Proved, one value: pure epsilon 1 for the one value that is asked for. Asking for all of them
  would cost what the last line says.
- Proved, all values: (1, 1e-5) for all values together, each shown to its owner.

The last two value another game, whose penalty grows with coalitions, in layers 0 to 3.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import fetch_openml
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import minmax_scale

from skvalue import DataShapleyValuer, LayeredShapleyValuer
from skvalue.inspection import value_removal_curve
from skvalue.privacy import LaplaceEvent, SelfComposedEvent, get_epsilon
from skvalue.valuers.layered_shapley import published_scale

SETS = ["adult", "diabetes", "synthetic"]
PUBLISHED = {"adult": "0.61", "diabetes": "0.89", "synthetic": "-"}
N = 100
FRACTIONS = [0.1, 0.2, 0.3, 0.5]
LAYERS, DELTA = 3, 1e-5


def load(name, folder, rng):
    """Features in (0, 1) and labels."""
    if name == "synthetic":
        X = rng.standard_normal((2000, 50))
        score = X @ rng.standard_normal(50)
        return minmax_scale(X), (rng.random(2000) < 1 / (1 + np.exp(-score))).astype(int)
    if folder is not None:
        with np.load(Path(folder) / f"{'adult' if name == 'adult' else 'pima'}.npz") as file:
            arrays = dict(file)
        X, y = arrays["X"].astype(np.float64), arrays["y"]
        if name == "adult":
            codes = json.loads(str(arrays["categories"]))
            assert len(codes) > 0
            columns = [X[:, ~arrays["is_cat"]]]
            for column in X[:, arrays["is_cat"]].T:
                columns.append(np.eye(int(column.max()) + 1)[column.astype(int)])
            X = np.hstack(columns)
        return minmax_scale(X), y
    which = dict(name="adult", version=2) if name == "adult" else dict(name="diabetes", version=1)
    bunch = fetch_openml(**which, as_frame=True)
    frame = bunch.data
    if name == "adult":
        import pandas

        frame = pandas.get_dummies(frame)
    return minmax_scale(frame.to_numpy(np.float64)), np.unique(bunch.target, return_inverse=True)[1]


def problem(name, folder, seed):
    rng = np.random.default_rng(seed)
    X, y = load(name, folder, rng)
    order, held_out = rng.permutation(len(X)), 300 if name == "diabetes" else 500
    parts = np.split(order[: N + 2 * held_out], [N, N + held_out])
    (X, y), (X_val, y_val), (X_test, y_test) = ((X[part], y[part]) for part in parts)
    return X, y, dict(X_val=X_val, y_val=y_val), (X_test, y_test)


def clear_values(X, y, judges, seed):
    """Values by each method, of the game of the paper."""
    loss = dict(scoring="neg_log_loss", random_state=seed)
    layered = LayeredShapleyValuer(LogisticRegression(), **loss).fit(X, y, **judges)
    published = LayeredShapleyValuer(
        LogisticRegression(), design="paper", include_empty=False, **loss
    ).fit(X, y, **judges)
    count = int(layered.n_evaluations_ * 0.1)
    orders = DataShapleyValuer(sampler="permutation", max_evaluations=count, **loss)
    return {
        "layered": layered.values_,
        "layered, as published": published.values_,
        "Monte Carlo (orders)": orders.fit(X, y, **judges).values_,
        "random": np.random.default_rng(seed).permutation(N).astype(float),
    }


def private_values(X, y, judges, clear, seed, n_draws):
    """{name: (clear values, draws of private ones)}."""
    rng = np.random.default_rng(seed)
    kappa = np.linalg.norm(X, axis=1).max()
    laplace = lambda scale, values: values + rng.laplace(0, scale, (n_draws, N))  # noqa: E731
    found = {}
    for label, clamp in (("as published", False), ("as published, p <= 1", True)):
        scale = published_scale(N, 1.0, kappa=kappa, bound=0.5, clamp=clamp)
        found[label] = scale, clear, laplace(scale, clear)
    # Centred in public: every feature is between 0 and 1.
    game = dict(l2=1.0, max_norm=1.0, fit_intercept=False, n_layers=LAYERS, random_state=seed)
    centred = X - 0.5, y
    judges = dict(X_val=judges["X_val"] - 0.5, y_val=judges["y_val"])
    values = LayeredShapleyValuer(**game).fit(*centred, **judges).values_
    one = LayeredShapleyValuer(**game, epsilon=1.0).fit(*centred, **judges)
    found["proved, one value"] = one.noise_scale_, values, laplace(one.noise_scale_, values)
    draws = [
        LayeredShapleyValuer(**game, epsilon=1.0, delta=DELTA, release="all").fit(
            *centred, **judges
        )
        for _ in range(n_draws)
    ]
    found["proved, all values"] = draws[0].noise_scale_, values, [v.values_ for v in draws]
    return found


def print_curves(name, curves):
    print(f"\n{name}: accuracy as rows go, in percent of the rows")
    print(f"{'':44}" + "".join(f"{100 * f:>14.0f}" for f in [0, *FRACTIONS]))
    for (method, first), scores in curves.items():
        mean, sd = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1)
        cells = "".join(f"{m:>7.3f} ({s:.3f})" for m, s in zip(mean, sd))
        print(f"{method + ', ' + first + ' first':44}{cells}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="FOLDER", help="folder of npz files; default: OpenML")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--seeds", type=int, default=5, help="draws of the rows, at least 2")
    parser.add_argument("--draws", type=int, default=5, help="draws of the noise")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    correlations = {}
    for name in args.sets:
        curves = {}
        for seed in range(args.seeds):
            X, y, judges, (X_test, y_test) = problem(name, args.data, seed)
            values = clear_values(X, y, judges, seed)
            private = private_values(X, y, judges, values["layered"], seed, args.draws)
            for label, (scale, clear, draws) in private.items():
                found = [spearmanr(clear, draw).statistic for draw in draws]
                row = correlations.setdefault((name, label), [])
                row.append((np.mean(found), scale, np.std(clear)))
            values["private, as published"] = private["as published"][2][0]
            values["private, proved, one value"] = private["proved, one value"][2][0]
            for method, of_rows in values.items():
                for first in ("highest", "lowest"):
                    curve = value_removal_curve(
                        LogisticRegression(), X, y, of_rows, X_test, y_test, first=first,
                        fractions=[0, *FRACTIONS], n_repeats=1, baseline=False, random_state=0,
                    )  # fmt: skip
                    curves.setdefault((method, first), []).append(curve.scores[0])
        print_curves(name, curves)
    print("\nRank correlation of private with clear values, epsilon 1")
    print(
        f"{'set':10} {'calibration':24} {'correlation':>14} {'noise':>9} {'values':>9}  published"
    )
    for (name, label), rows in correlations.items():
        rho, scale, spread = np.mean(rows, axis=0)
        sd = np.std([row[0] for row in rows], ddof=1)
        print(
            f"{name:10} {label:24} {rho:6.3f} ({sd:.3f}) {scale:9.2g} {spread:9.2g}  "
            f"{PUBLISHED[name]}"
        )
    each = SelfComposedEvent(LaplaceEvent(1.0), N - 1)
    print(
        f"\nAll values at epsilon 1 each, for their owners together: epsilon "
        f"{get_epsilon(each, DELTA):.1f} at delta {DELTA:g}."
    )


if __name__ == "__main__":
    main()
