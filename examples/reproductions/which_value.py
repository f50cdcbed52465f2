"""
Which value for which question
==============================

Prints the table of the user guide's page of this name: values of several methods on
data sets of FOLDER, a tenth of whose labels are flipped, and what they are good for.
For three models of a user (logistic regression, a forest, nearest neighbours) the
linear datamodeling score (LDS) says whether the sums of the values predict what
retraining without half of the rows does; the accuracy on other rows is measured after
removing the tenth of the rows with the lowest values, and the three tenths with the
highest. AUROC: how well low values find the flipped labels. CPU seconds of one fit.

    python examples/reproductions/which_value.py --data FOLDER
"""

import argparse
import warnings
from time import process_time

import numpy as np
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from tknn_tables import print_table

from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    InfluenceValuer,
    KNNShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
)
from skvalue.datasets import fetch_benchmark, flip_labels
from skvalue.inspection import (
    linear_datamodeling_score,
    noisy_label_auc,
    value_removal_curve,
)

SETS = ["phoneme", "wind", "covertype"]
LOGISTIC = LogisticRegression(max_iter=1000)
MODELS = {
    "logistic": LOGISTIC,
    "forest": RandomForestClassifier(25, min_samples_leaf=5, random_state=0),
    "neighbours": KNeighborsClassifier(10),
}
GAME = {"scoring": "neg_log_loss", "random_state": 0}
# Of the LDS; the log-loss of the forest and of the neighbours is infinite.
UTILITY = "neg_brier_score"
# Title -> (valuer, whether it takes validation points, what it protects).
METHODS = {
    "KNN-Shapley, K=5": (KNNShapleyValuer(5), True, "no"),
    "threshold KNN-Shapley": (TKNNShapleyValuer(), True, "no"),
    "the same, epsilon=1": (
        TKNNShapleyValuer(0.3, epsilon=1.0, delta=1e-4),
        True,
        "joint",
    ),
    "out of bag (Data-OOB)": (DataOOBValuer(random_state=0), False, "no"),
    "influence, logistic": (InfluenceValuer(LOGISTIC), True, "no"),
    "leave-one-out, logistic": (
        LeaveOneOutValuer(LOGISTIC, scoring="neg_log_loss"),
        True,
        "no",
    ),
    "Data Shapley, logistic": (
        DataShapleyValuer(LOGISTIC, max_evaluations=2000, **GAME),
        True,
        "no",
    ),
    "Data Shapley, forest": (
        DataShapleyValuer(MODELS["forest"], max_evaluations=500, **GAME),
        True,
        "no",
    ),
}


def draw(name, args):
    """Training rows with flipped labels, validation points, test rows, and which are
    flipped."""
    data = fetch_benchmark(name, folder=args.data)
    rng = np.random.default_rng(0)
    X = np.asarray(data.X, dtype=np.float64)
    y = np.asarray(data.y)
    y = np.unique(y, return_inverse=True)[1]
    common = np.flatnonzero(np.bincount(y) > 0.05 * len(y))
    chosen = rng.permutation(np.flatnonzero(np.isin(y, common)))
    rows, points, test = np.split(
        chosen[: args.rows + 2 * args.points], [args.rows, args.rows + args.points]
    )
    scaler = StandardScaler().fit(X[rows])
    X = scaler.transform(X)
    labels, flipped = flip_labels(y[rows], 0.1, random_state=0)
    return (X[rows], labels), (X[points], y[points]), (X[test], y[test]), flipped


def accuracy_without(model, rows, values, test, first, fraction):
    """Change of the test accuracy when a fraction of the rows is removed by their
    values."""
    curve = value_removal_curve(
        model,
        *rows,
        values,
        *test,
        first=first,
        fractions=[0, fraction],
        n_repeats=1,
        baseline=False,
        random_state=0,
    )
    scores = np.ravel(curve.scores)
    return scores[1] - scores[0]


def removals(rows, points, args):
    """Masks of removed rows, the same for all models, and decreases of the utility of
    each."""
    found = [
        linear_datamodeling_score(
            np.zeros(len(rows[1])),
            model,
            *rows,
            *points,
            n_subsets=args.subsets,
            scoring=UTILITY,
            random_state=0,
        )
        for model in MODELS.values()
    ]
    return found[0].removed, [result.changes[0] for result in found]


def measure(title, rows, points, test, flipped, removed, changed):
    """LDS for each model, AUROC, changes of the accuracy (means over models) and
    seconds."""
    valuer, takes_points, _ = METHODS[title]
    given = {"X_val": points[0], "y_val": points[1]} if takes_points else {}
    start = process_time()
    values = valuer.fit(*rows, **given).values_
    seconds = process_time() - start
    scores = [spearmanr(removed @ values, change)[0] for change in changed]
    changes = [
        np.mean(
            [accuracy_without(m, rows, values, test, *which) for m in MODELS.values()]
        )
        for which in (("lowest", 0.1), ("highest", 0.3))
    ]
    return [*scores, noisy_label_auc(values, flipped), *changes, seconds]


def print_figures(figures):
    header = [
        "values",
        *(f"LDS, {name}" for name in MODELS),
        "AUROC",
        "without lowest 10 %",
    ]
    rows = []
    for title, (*scores, auc, lowest, highest, seconds) in figures.items():
        cells = [f"{score:.2f}" for score in [*scores, auc]]
        cells += [
            f"{lowest:+.3f}",
            f"{highest:+.3f}",
            f"{seconds:.2g}",
            METHODS[title][2],
        ]
        rows.append([title, *cells])
    print_table([*header, "without highest 30 %", "CPU s", "private"], rows)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of npz files; default: OpenML"
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument(
        "--points", type=int, default=400, help="validation points, and test rows"
    )
    parser.add_argument(
        "--subsets", type=int, default=40, help="removed subsets of the LDS"
    )
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    figures = {title: [] for title in METHODS}
    for name in args.sets:
        data = draw(name, args)
        without = removals(*data[:2], args)
        of_set = {title: measure(title, *data, *without) for title in METHODS}
        for title, found in of_set.items():
            figures[title].append(found)
        print(
            f"{name}: {args.rows} rows, one label in ten flipped, {args.points} "
            f"points\n"
        )
        print_figures(of_set)
    print("Means over the data sets\n")
    print_figures({title: np.mean(found, axis=0) for title, found in figures.items()})


if __name__ == "__main__":
    main()
