"""
What dropping doubtful labels does to a model
=============================================

`LabelErrorDetector` gives the probability of each label by models that have not seen
its row. ``ValueFilter(LabelErrorDetector(), drop="auto")``, ``skvalue clean`` and
`capped_rows` drop the rows for which another label is more probable, of each class at
most as many as can be wrong in it, and where these are few, only those whose label has
a probability below 0.1. This script measures what that does to the accuracy of models
on a test set with clean labels.

    python examples/reproductions/clean_rule.py --data FOLDER --seeds 5

FOLDER holds adult.npz, phoneme.npz and others, with arrays X and y; without it there
are tables of scikit-learn only: breast_cancer, digits, wine and four made by
`make_classification`. Of each table at most 500 rows are for training. Labels are
wrong in no row, in 5, 10 or 20 % of the rows drawn uniformly ("uniform": another label
at random), or in 5, 10 or 20 % of all rows, drawn from those of other classes, which
all get the label of one class ("one class").

Printed is, for each model and noise, the mean change of accuracy, and of balanced
accuracy, against the model of all rows; its standard error over the tables, of which
each counts by its mean over the seeds; and the number of tables whose mean is higher.
Then the cells are counted that miss the goals: a mean change of at least -.001, and,
where a fifth of the labels is wrong, nine of ten tables that gain.
"""

import argparse
import json
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
)
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import LabelErrorDetector
from skvalue.selection import capped_rows

N_TRAIN = 500
N_TEST = 2000

FILES = ("phoneme", "wind", "cpu", "2dplanes", "covertype", "pima", "adult")
MADE = {
    f"made {n_classes} classes, {separation}": (n_classes, separation)
    for n_classes in (2, 4)
    for separation in (1.0, 2.0)
}
LOADERS = {
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "wine": load_wine,
}

# Least mean change, and fraction of the tables that gain from a fifth of wrong labels.
MIN_CHANGE = -0.001
MIN_GAIN = 0.9

# Kind of the noise and fraction of the labels that are wrong.
NOISES = (
    ("none", 0.0),
    ("uniform", 0.05),
    ("uniform", 0.1),
    ("uniform", 0.2),
    ("one class", 0.05),
    ("one class", 0.1),
    ("one class", 0.2),
)


def models(seed):
    """The models that are trained with and without the dropped rows, by name."""
    linear = LogisticRegression(max_iter=300)
    return {
        "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=seed),
        "forest": RandomForestClassifier(random_state=seed),
        "logistic": make_pipeline(StandardScaler(), linear),
    }


class Data(NamedTuple):
    """Training rows and test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Cell(NamedTuple):
    """Mean change, its standard error, and the fraction of the tables that gain."""

    mean: float
    error: float
    gain: float


def table_names(folder):
    """Ten tables of the folder and of scikit-learn, or those that ship with it."""
    if folder is None:
        return [*LOADERS, *MADE]
    return ["breast_cancer", "digits", *FILES, "california"]


def load(name, folder, seed):
    """X and y of a table."""
    if name in LOADERS:
        return LOADERS[name](return_X_y=True)
    if name in MADE:
        n_classes, separation = MADE[name]
        return make_classification(
            3000,
            12,
            n_informative=6,
            n_classes=n_classes,
            class_sep=separation,
            flip_y=0,
            random_state=seed,
        )
    file = "california_housing" if name == "california" else name
    with np.load(Path(folder) / f"{file}.npz") as arrays:
        X = arrays["X"].astype(np.float64)
        y = arrays["y"]
    if name == "california":
        y = y > np.median(y)
    return X, y


def draw(name, folder, seed):
    """Training rows and test rows of a table, a third of it at least."""
    X, y = load(name, folder, seed)
    n_train = min(N_TRAIN, 2 * len(y) // 3)
    n_test = min(N_TEST, len(y) - n_train)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=n_train, test_size=n_test, stratify=y, random_state=seed
    )
    return Data(X, y, X_test, y_test)


def add_noise(y, kind, fraction, seed):
    """Labels of which a fraction is wrong, and a mask of these."""
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(y, return_inverse=True)
    n_wrong = round(fraction * len(y))
    wrong = np.zeros(len(y), dtype=bool)
    if kind == "one class":
        target = rng.integers(len(classes))
        rows = rng.permutation(np.flatnonzero(codes != target))[:n_wrong]
        codes[rows] = target
    else:
        rows = rng.permutation(len(y))[:n_wrong]
        codes[rows] += rng.integers(1, len(classes), size=len(rows))
        codes %= len(classes)
    wrong[rows] = True
    return classes[codes], wrong


def measure(name, folder, noise, seed):
    """What dropping does on one draw of a table, as a record of plain numbers."""
    data = draw(name, folder, seed)
    y, wrong = add_noise(data.y, *noise, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = LabelErrorDetector(task="classification", random_state=seed)
        detector.fit(data.X, y)
        dropped = capped_rows(y, detector.label_scores_)
        changes = {}
        for model_name, model in models(seed).items():
            before = scores(model.fit(data.X, y), data)
            after = before
            if len(dropped):
                X_kept = np.delete(data.X, dropped, axis=0)
                y_kept = np.delete(y, dropped)
                after = scores(model.fit(X_kept, y_kept), data)
            changes[model_name] = (after - before).tolist()
    return {
        "table": name,
        "noise": list(noise),
        "seed": seed,
        "n_dropped": len(dropped),
        "n_wrong_dropped": int(wrong[dropped].sum()),
        "changes": changes,
    }


def scores(model, data):
    """Accuracy and balanced accuracy on the test rows."""
    predictions = model.predict(data.X_test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(
            [
                accuracy_score(data.y_test, predictions),
                balanced_accuracy_score(data.y_test, predictions),
            ]
        )


def changes_of(records):
    """(model, noise) -> changes of accuracy and balanced accuracy, by table."""
    changes = defaultdict(lambda: defaultdict(list))
    for record in records:
        for model, change in record["changes"].items():
            changes[model, tuple(record["noise"])][record["table"]].append(change)
    return changes


def print_table(records):
    """Print means over tables and seeds, and return their `Cell`s."""
    changes = changes_of(records)
    means = {}
    for place, measured in enumerate(("accuracy", "balanced accuracy")):
        print(f"\nChange of {measured}, its standard error, tables that gain\n")
        print(f"{'':16s}" + "".join(f"{model:>22s}" for model in models(0)))
        for noise in NOISES:
            line = f"{noise[0]:>10s} {noise[1]:4.0%} "
            for model in models(0):
                by_table = changes[model, noise]
                if not by_table:
                    continue
                of_tables = [np.mean(c, axis=0)[place] for c in by_table.values()]
                n_gain = sum(mean > 0 for mean in of_tables)
                mean = np.mean(of_tables)
                error = 0.0
                if len(of_tables) > 1:
                    error = np.std(of_tables, ddof=1) / np.sqrt(len(of_tables))
                gain = n_gain / len(of_tables)
                means[model, noise, measured] = Cell(mean, error, gain)
                line += f"   {mean:+.4f} {error:.4f} {n_gain:2d}/{len(of_tables):<2d}"
            print(line)
    return means


def print_misses(means):
    """Print how many cells miss the goals, and by how many standard errors."""
    for measured in ("accuracy", "balanced accuracy"):
        cells = {key: cell for key, cell in means.items() if key[2] == measured}
        low = [cell for cell in cells.values() if cell.mean < MIN_CHANGE]
        distances = [
            (MIN_CHANGE - cell.mean) / cell.error for cell in low if cell.error > 0
        ]
        many = [cell for key, cell in cells.items() if key[1][1] == 0.2]
        n_losing = sum(cell.gain < MIN_GAIN for cell in many)
        print(
            f"\n{measured}: {len(low)} of {len(cells)} cells are below {MIN_CHANGE}, "
            f"by at most {max(distances, default=0.0):.1f} standard errors; in "
            f"{n_losing} of {len(many)} cells of 20 % fewer than nine of ten tables "
            "gain"
        )


def print_dropped(records):
    """Print how many rows are dropped, and how many of them are wrong."""
    print("\nRows dropped of 100, and wrong ones among these\n")
    for noise in NOISES:
        of_noise = [record for record in records if tuple(record["noise"]) == noise]
        if of_noise:
            dropped = np.mean([record["n_dropped"] for record in of_noise])
            wrong = np.mean([record["n_wrong_dropped"] for record in of_noise])
            n_rows = N_TRAIN / 100
            print(
                f"{noise[0]:>10s} {noise[1]:4.0%}   {dropped / n_rows:5.1f} "
                f"{wrong / n_rows:5.1f}"
            )


def main():
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--data", help="folder of .npz files")
    parser.add_argument("--tables", nargs="+", help="tables; default: all of them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    names = options.tables or table_names(options.data)
    tasks = [
        (name, options.data, noise, seed)
        for seed in range(options.seeds)
        for name, noise in _pairs(names)
    ]
    parallel = Parallel(options.jobs, return_as="generator_unordered")
    records = []
    for record in parallel(delayed(measure)(*task) for task in tasks):
        records.append(record)
        print(json.dumps(record), file=sys.stderr, flush=True)
    print(f"{len(names)} tables, {options.seeds} seeds")
    print_misses(print_table(records))
    print_dropped(records)


def _pairs(names):
    return [(name, noise) for name in names for noise in NOISES]


if __name__ == "__main__":
    main()
