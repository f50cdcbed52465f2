"""
Size, order and errors of private threshold-KNN-Shapley values
==============================================================

What a private value is worth: is it as large as the exact one, does it point at the
same rows, and is its standard error right? For nine data sets this script compares
private values, all parameters at their defaults, with exact ones and with the part that
costs nothing (`baseline_`):

    python examples/reproductions/private_tknn_sizes.py --data FOLDER

FOLDER holds 2dplanes.npz, phoneme.npz, cpu.npz, wind.npz, pima.npz, mnist.npz,
agnews_minilm.npz (and for --sets covertype.npz), with arrays X and y. Without it, the
sets come from OpenML, and covertype from `sklearn.datasets.fetch_covtype`;
agnews_minilm is left out. The tests replace these downloads by made-up arrays: the
figures of the guide are those of a folder. digits, bcancer and wine come with
scikit-learn.

Of each set 100 rows are public validation points and at most 1,000 others are valued,
of which one in ten is wrong: its label is flipped, or with ``--task features`` its
features are noisy. Columns of tables are scaled by the validation points, and so
without private rows; pixels and embeddings are left as they are. Figures are means over
--seeds draws of the rows and --draws of the noise; delta is 1e-5. ``--without`` repeats
the table without one part of the method, to show what this part earns.

The columns:

- L1: sum of the absolute errors of the values, over the L1 norm of the exact ones; then
  that of the baseline, and of the baseline times the number that gives it the L1 norm
  of the exact values, which is not known in practice;
- sum: absolute error of the sum of all values, in units of utility;
- AUROC of low values at the wrong rows: exact, baseline, private;
- Spearman correlation with the exact values: baseline, private;
- within 2: fraction of private values within two of their standard errors of the exact
  ones.
"""

import argparse
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import (
    fetch_covtype,
    fetch_openml,
    load_breast_cancer,
    load_digits,
    load_wine,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from tknn_tables import print_table

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.datasets import fetch_benchmark, flip_labels, perturb_features
from skvalue.inspection import noisy_label_auc

NINE = [
    "2dplanes",
    "phoneme",
    "cpu",
    "wind",
    "pima",
    "agnews_minilm",
    "mnist",
    "digits",
    "bcancer",
]
WITH_SKLEARN = {"digits": load_digits, "bcancer": load_breast_cancer, "wine": load_wine}
OPENML = {"pima": ("diabetes", 1), "mnist": ("mnist_784", 1)}
UNSCALED = {"mnist", "digits", "agnews_minilm"}
N_VAL = 100
N_ROWS = 1000
WRONG = 0.1
DELTA = 1e-5
ROOM = "skvalue.valuers.tknn_shapley."


def mean_sizes(posterior, sizes):
    """Geometric means over the draws, without the factor of `value_sizes`."""
    return np.exp(np.log(np.abs(sizes)).mean(axis=1)) * [[1], [-1]]


# What is left out -> parameters, and what is patched.
WITHOUT = {
    "the cap of contributions": ({"max_contributions": None}, None),
    "smoothing": ({"denoise": False}, None),
    "truncation": (
        {},
        ("_count_model.positive_draws", lambda draws: np.maximum(draws, 0)),
    ),
    "the factor": ({}, ("_noisy.value_sizes", mean_sizes)),
}


def load(name, folder):
    """Features, and labels as codes."""
    if name in WITH_SKLEARN:
        X, y = WITH_SKLEARN[name](return_X_y=True)
    elif folder is None and name in OPENML:
        title, version = OPENML[name]
        X, y = fetch_openml(
            title, version=version, as_frame=False, parser="liac-arff", return_X_y=True
        )
    elif folder is None and name == "covertype":
        X, y = fetch_covtype(return_X_y=True)
    else:
        data = fetch_benchmark(name, folder)
        X = data.X
        y = data.y
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    return X, np.unique(y, return_inverse=True)[1]


def game(X, y, task, seed, scaled=True):
    """Rows, labels, validation points and labels, and which rows are wrong."""
    n_val = min(N_VAL, len(X) // 3)
    n = min(N_ROWS, len(X) - n_val)
    X, X_val, y, y_val = train_test_split(
        X, y, train_size=n, test_size=n_val, stratify=y, random_state=seed
    )
    if task == "features":
        X, wrong = perturb_features(X, WRONG, random_state=seed, relative_to="norm")
    else:
        y, wrong = flip_labels(y, WRONG, random_state=seed)
    if scaled:
        scaler = StandardScaler().fit(X_val)
        X = scaler.transform(X)
        X_val = scaler.transform(X_val)
    return (X, y, X_val, y_val), wrong


def fitted(valuer, X, y, X_val, y_val):
    return valuer.fit(X, y, X_val=X_val, y_val=y_val)


def l1(values, exact):
    return np.abs(values - exact).sum() / np.abs(exact).sum()


def compare(data, wrong, epsilon, exact, **parameters):
    """One private fit, in the order of the columns."""
    private = fitted(
        TKNNShapleyValuer(epsilon=epsilon, delta=DELTA, **parameters), *data
    )
    values = private.values_
    baseline = private.baseline_
    rescaled = baseline * (np.abs(exact).sum() / np.abs(baseline).sum())
    return [
        l1(values, exact),
        l1(baseline, exact),
        l1(rescaled, exact),
        abs(values.sum() - exact.sum()),
        *(noisy_label_auc(some, wrong) for some in (exact, baseline, values)),
        *(spearmanr(some, exact)[0] for some in (baseline, values)),
        np.mean(np.abs(values - exact) <= 2 * private.values_error_),
    ]


def print_sizes(games, epsilon, draws, **parameters):
    """One row a data set, and the means."""
    header = [
        "set",
        "L1",
        "baseline",
        "rescaled",
        "sum",
        "AUROC: exact",
        "baseline",
        "private",
    ]
    header += ["Spearman: baseline", "private", "within 2"]
    means = []
    for some in games.values():
        found = [
            compare(data, wrong, epsilon, exact, **parameters)
            for data, wrong, exact in some
            for _ in range(draws)
        ]
        means.append(np.mean(found, axis=0))
    table = np.vstack([means, np.mean(means, axis=0)])
    rows = [
        [name, *(f"{x:.3f}" for x in row)] for name, row in zip([*games, "mean"], table)
    ]
    print_table(header, rows)


def print_detection(games, draws):
    """AUROC of exact values, of KNN-Shapley, and of values at epsilon 0.3."""
    header = [
        "set",
        "TKNN",
        "KNN, cosine",
        "KNN, euclidean",
        "TKNN, epsilon 0.3",
        "radius",
    ]
    table = []
    for some in games.values():
        found = []
        for data, wrong, exact in some:
            values = [exact]
            for metric in ("cosine", "euclidean"):
                values.append(fitted(KNNShapleyValuer(metric=metric), *data).values_)
            aurocs = [noisy_label_auc(one, wrong) for one in values]
            fits = [
                fitted(TKNNShapleyValuer(epsilon=0.3, delta=DELTA), *data)
                for _ in range(draws)
            ]
            private = np.mean([noisy_label_auc(fit.values_, wrong) for fit in fits])
            found.append([*aurocs, private, fits[0].radius_])
        table.append(np.mean(found, axis=0))
    table = np.vstack([table, np.mean(table, axis=0)])
    rows = [
        [name, *(f"{x:.3f}" for x in row)] for name, row in zip([*games, "mean"], table)
    ]
    print_table(header, rows)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of npz files; default: OpenML"
    )
    parser.add_argument("--sets", nargs="+", default=NINE)
    parser.add_argument("--task", choices=["labels", "features"], default="labels")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 0.3, 3.0])
    parser.add_argument("--seeds", type=int, default=3, help="draws of the rows")
    parser.add_argument("--draws", type=int, default=10, help="draws of the noise")
    parser.add_argument("--without", nargs="*", choices=WITHOUT, default=[])
    args = parser.parse_args()
    if args.seeds < 1 or args.draws < 1:
        parser.error(
            f"--seeds and --draws must be at least 1. Got {args.seeds}, {args.draws}."
        )
    online = {"2dplanes", "phoneme", "cpu", "wind", "covertype", *OPENML}
    args.sets = [
        name
        for name in args.sets
        if name in WITH_SKLEARN
        or (
            name in online
            if args.data is None
            else (Path(args.data) / f"{name}.npz").is_file()
        )
    ]
    return args


def main():
    args = parse_arguments()
    games = {}
    for name in args.sets:
        X, y = load(name, args.data)
        some = [
            game(X, y, args.task, seed, name not in UNSCALED)
            for seed in range(1, args.seeds + 1)
        ]
        games[name] = [
            (data, wrong, fitted(TKNNShapleyValuer(), *data).values_)
            for data, wrong in some
        ]
    for epsilon in args.epsilons:
        print(f"Epsilon {epsilon:g}, {args.task}\n")
        print_sizes(games, epsilon, args.draws)
        for part in args.without:
            print(f"Epsilon {epsilon:g}, {args.task}, without {part}\n")
            parameters, patched = WITHOUT[part]
            with patch(ROOM + patched[0], patched[1]) if patched else nullcontext():
                print_sizes(games, epsilon, args.draws, **parameters)
    print("AUROC of exact values and of KNN-Shapley\n")
    print_detection(games, args.draws)


if __name__ == "__main__":
    main()
