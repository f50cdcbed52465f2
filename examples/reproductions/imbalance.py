"""
Cleaning imbalanced classes
===========================

If 5 % of the rows are of one class, neighbours of a minority row are mostly majority
rows, so that its value is low although nothing is wrong with it: a filter that drops
the lowest values drops the minority. This script measures the cost, and that of the two
remedies of skvalue:

- ``stratify=True`` of the filters, a cap: of a class at most as many rows are dropped
  as labels can be wrong in it, by held-out probabilities;
- ``class_weight="balanced"`` of the valuer: both classes have the same weight in the
  utility.

    python examples/reproductions/imbalance.py --data FOLDER

FOLDER holds adult.npz and phoneme.npz, with arrays X and y (and is_cat, a mask of
categorical columns); without it there is only the third set, "creditcard":
`make_classification` with 28 columns. The minority of each is subsampled to 5 %; 2,000
rows are for training, all others for testing, which are clean. The models fitted
without the rows dropped are logistic regression ("LR"), five nearest neighbours, and
logistic regression with class weights ("balanced LR"), which corrects for the imbalance
in training.

Of every set, level of label noise, valuer and rule the script prints, as means over the
seeds: the fraction of the rows with the minority label that is dropped, and the change
of balanced accuracy by cleaning, with its standard error. The last lines are the
largest costs of the remedies on clean labels.

What the figures show (2,000 rows, 10 seeds; they were measured when ``stratify=True``
still dropped the same fraction of every class, and no run of the cap has replaced
them). Without a remedy, cleaning drops nearly
all of the minority. On clean labels, at most this much balanced accuracy is lost with
the remedies:

===============================================  ======  ======  ===========
remedy and rule                                      LR    5-NN  balanced LR
===============================================  ======  ======  ===========
one of them, any rule                             0.003   0.019        0.038
both, 0.05, 0.1, "negative" or "auto"                 0       0        0.008
both, 0.2                                             0       0        0.014
any, "auto" by balanced accuracy                      0  0.0004        0.003
rows of each class dropped at random, 0.2         0.005   0.006        0.008
===============================================  ======  ======  ===========

LR and 5-NN mostly gain, because cleaning also drops majority rows near the minority, as
undersampling does; balanced LR has this gain already. For it each of the 100 minority
rows weighs as much as 19 others, so that it loses by any fifth dropped, and most by
that of the lowest values of KNN without class weights: these are the isolated rows of
the minority, near the boundary. With 5 % of the labels flipped, the AUROC over all rows
is above .95 without a remedy, yet hardly more than .6 within the classes (KNN on
adult); class weights raise it to .79 in both.
"""

import argparse
import warnings
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skvalue import DataOOBValuer, KNNShapleyValuer, TKNNShapleyValuer, ValueFilter
from skvalue.datasets import flip_labels
from skvalue.inspection import noisy_label_auc

SETS = ("adult", "phoneme", "creditcard")
MINORITY = 0.05
N_TRAIN = 2000
RULES = (0.05, 0.1, 0.2, "negative", "auto")
MODELS = {
    "LR": LogisticRegression(max_iter=1000),
    "5-NN": KNeighborsClassifier(5),
    "balanced LR": LogisticRegression(max_iter=1000, class_weight="balanced"),
}


class RandomValuer(BaseEstimator):
    """Random values, for comparison."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.values_ = np.random.default_rng(self.random_state).random(len(y))
        return self


def remedies(seed):
    """Name -> valuer, and whether the filter caps what a class can lose."""
    out_of_bag = DataOOBValuer(n_estimators=100, random_state=seed)
    return {
        "KNN": (KNNShapleyValuer(), False),
        "KNN, stratify": (KNNShapleyValuer(), True),
        "KNN, balanced": (KNNShapleyValuer(class_weight="balanced"), False),
        "KNN, both": (KNNShapleyValuer(class_weight="balanced"), True),
        "TKNN": (TKNNShapleyValuer(), False),
        "TKNN, stratify": (TKNNShapleyValuer(), True),
        "TKNN, balanced": (TKNNShapleyValuer(class_weight="balanced"), False),
        "Data-OOB": (out_of_bag, False),
        "Data-OOB, stratify": (out_of_bag, True),
        "random, stratify": (RandomValuer(seed), True),
    }


class Data(NamedTuple):
    """Training rows and test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load(name, folder, seed):
    """X and y of a set, the minority being 1."""
    if name == "creditcard":
        return make_classification(
            n_samples=24_000,
            n_features=28,
            n_informative=10,
            n_redundant=0,
            weights=[1 - MINORITY],
            flip_y=0,
            random_state=seed,
        )
    with np.load(Path(folder) / f"{name}.npz") as arrays:
        X = arrays["X"]
        y = arrays["y"]
        if "is_cat" in arrays:
            encoder = OneHotEncoder(sparse_output=False)
            columns = np.flatnonzero(arrays["is_cat"])
            transformer = make_column_transformer(
                (encoder, columns), remainder="passthrough"
            )
            X = transformer.fit_transform(X)
    return X, y


def draw(name, folder, seed, n_train=N_TRAIN):
    """Data of which `MINORITY` are of class 1, scaled by the training rows."""
    X, y = load(name, folder, seed)
    rng = np.random.default_rng(seed)
    minority = rng.permutation(np.flatnonzero(y == 1))
    majority = rng.permutation(np.flatnonzero(y == 0))
    n_rows = int(min(len(majority) / (1 - MINORITY), len(minority) / MINORITY))
    n_train = min(n_train, n_rows // 2)

    # The first rows of both classes are for training, the next ones for testing.
    n_minority = round(MINORITY * n_rows)
    n_train_minority = round(MINORITY * n_train)
    n_majority = n_rows - n_minority
    n_train_majority = n_train - n_train_minority
    train = np.r_[minority[:n_train_minority], majority[:n_train_majority]]
    train = rng.permutation(train)
    test = np.r_[
        minority[n_train_minority:n_minority], majority[n_train_majority:n_majority]
    ]
    scaler = StandardScaler().fit(X[train])
    return Data(
        X=scaler.transform(X[train]),
        y=y[train],
        X_test=scaler.transform(X[test]),
        y_test=y[test],
    )


def score_without(model, data, dropped=()):
    """Balanced accuracy of a model fitted without some of the training rows."""
    X = np.delete(data.X, dropped, axis=0)
    y = np.delete(data.y, dropped)
    predictions = model.fit(X, y).predict(data.X_test)
    return balanced_accuracy_score(data.y_test, predictions)


def measure(name, folder, noise, seed, rules=RULES, n_train=N_TRAIN):
    """Results of one draw of a set.

    Returns (remedy, rule) -> fraction of the minority dropped, and changes of balanced
    accuracy; and remedy -> AUROC of flipped labels over all rows and by class. The
    remedy None has the balanced accuracies themselves, without cleaning.
    """
    data = draw(name, folder, seed, n_train)
    flipped = np.zeros(len(data.y), dtype=bool)
    if noise:
        y_noisy, flipped = flip_labels(data.y, noise, random_state=seed)
        data = data._replace(y=y_noisy)
    scores = [score_without(model, data) for model in MODELS.values()]
    results = {(None, ""): [0.0, *scores]}
    areas = {}
    with TemporaryDirectory() as memory:
        for remedy, (valuer, stratify) in remedies(seed).items():
            row_filter = ValueFilter(
                valuer, stratify=stratify, scoring="balanced_accuracy", memory=memory
            )
            for rule in rules:
                if isinstance(rule, str) and not remedy.startswith("KNN"):
                    continue
                row_filter.set_params(drop=rule)
                results[remedy, rule] = measure_rule(row_filter, data, scores)
            if noise and not stratify:
                values = row_filter.values_
                by_class = noisy_label_auc(values, flipped, y=data.y)
                areas[remedy] = [noisy_label_auc(values, flipped), *by_class.values()]
    return results, areas


def measure_rule(row_filter, data, scores):
    """Mean fraction of the minority dropped, and the change of the score by model."""
    changes = []
    lost = []
    for model, score in zip(MODELS.values(), scores):
        row_filter.set_params(estimator=model).fit(data.X, data.y)
        dropped = row_filter.dropped_indices_
        changes.append(score_without(model, data, dropped) - score)
        n_kept = (data.y[row_filter.sample_indices_] == 1).sum()
        lost.append(1 - n_kept / (data.y == 1).sum())
    return [np.mean(lost), *changes]


def print_table(name, noise, draws):
    """Means over draws; returns them, and prints them with standard errors."""
    results = {
        key: np.array([results_of_draw[key] for results_of_draw, _ in draws])
        for key in draws[0][0]
    }
    n_draws = len(draws)
    scores = results.pop((None, ""))[:, 1:].mean(axis=0)
    printed = ", ".join(f"{score:.3f} {model}" for score, model in zip(scores, MODELS))
    print(
        f"{name}, {noise:.0%} of the labels flipped, {n_draws} seeds: without cleaning "
        f"{printed}\n"
    )
    models = "".join(f"{model:>18s}" for model in MODELS)
    print(f"{'':20s}{'drop':>9s}{'minority lost':>15s}{models}")
    for (remedy, rule), rows in results.items():
        mean = rows.mean(axis=0)
        error = np.zeros(4)
        if n_draws > 1:
            error = rows.std(axis=0, ddof=1) / np.sqrt(n_draws)
        changes = "".join(f"{mean[i]:+9.4f} ({error[i]:.4f})" for i in (1, 2, 3))
        print(f"{remedy:20s}{rule!s:>9s}{mean[0]:15.2f}{changes}")

    for remedy in draws[0][1]:
        areas = [areas_of_draw[remedy] for _, areas_of_draw in draws]
        overall, majority, minority = np.mean(areas, axis=0)
        print(
            f"AUROC of flipped labels, {remedy}: {overall:.3f} over all rows, "
            f"{majority:.3f} majority, {minority:.3f} minority"
        )
    print()
    return {key: rows.mean(axis=0) for key, rows in results.items()}


def largest_costs(clean):
    """(remedy, model) -> largest cost of cleaning, its set and its rule."""
    costs = defaultdict(list)
    for name, table in clean.items():
        for (remedy, rule), means in table.items():
            # Names of remedies have a comma.
            if "," in remedy:
                for model, change in zip(MODELS, means[1:]):
                    costs[remedy, model].append((-change, name, str(rule)))
    return {key: max(costs_of_key) for key, costs_of_key in costs.items()}


def is_missing(name, folder):
    """Whether the file of a set is missing."""
    if name == "creditcard":
        return False
    return folder is None or not (Path(folder) / f"{name}.npz").is_file()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of adult.npz and phoneme.npz"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--noise", nargs="+", type=float, default=[0.0, 0.05])
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()

    # About the lost minority, and ties.
    warnings.simplefilter("ignore", UserWarning)
    clean = {}
    for name in args.sets:
        if is_missing(name, args.data):
            print(f"{name}: no {name}.npz in --data={args.data}: left out\n")
            continue
        for noise in args.noise:
            draws = [
                measure(name, args.data, noise, seed) for seed in range(args.seeds)
            ]
            means = print_table(name, noise, draws)
            if not noise:
                clean[name] = means
    if clean:
        print("Largest cost on clean labels")
    for (remedy, model), (cost, name, rule) in largest_costs(clean).items():
        print(f"{remedy:20s}{model:>12s}{cost:9.4f} ({name}, drop={rule})")


if __name__ == "__main__":
    main()
