"""
Cleaning imbalanced classes
===========================

If 5 % of the rows are of one class, neighbours of a minority row are mostly majority
rows, so that its value is low although nothing is wrong with it: a filter that drops
the lowest values drops the minority. This script measures the cost, and that of the two
remedies of skvalue:

- ``stratify=True`` of the filters: the same fraction of every class is dropped;
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

What the figures show (2,000 rows, 10 seeds). Without a remedy, cleaning drops nearly
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
from pathlib import Path
from tempfile import TemporaryDirectory

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
MINORITY, N_TRAIN = 0.05, 2000
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
    """Name -> valuer and options of the filter."""
    knn, tknn = KNNShapleyValuer, TKNNShapleyValuer
    oob = DataOOBValuer(n_estimators=100, random_state=seed)
    balanced, stratify = {"class_weight": "balanced"}, {"stratify": True}
    return {
        "KNN": (knn(), {}),
        "KNN, stratify": (knn(), stratify),
        "KNN, balanced": (knn(**balanced), {}),
        "KNN, both": (knn(**balanced), stratify),
        "TKNN": (tknn(), {}),
        "TKNN, stratify": (tknn(), stratify),
        "TKNN, balanced": (tknn(**balanced), {}),
        "Data-OOB": (oob, {}),
        "Data-OOB, stratify": (oob, stratify),
        "random, stratify": (RandomValuer(seed), stratify),
    }


def load(name, folder, seed):
    """X and y of a set, the minority being 1."""
    if name == "creditcard":
        return make_classification(
            24_000, 28, n_informative=10, n_redundant=0, weights=[1 - MINORITY], flip_y=0,
            random_state=seed,
        )  # fmt: skip
    with np.load(Path(folder) / f"{name}.npz") as arrays:
        X, y = arrays["X"], arrays["y"]
        if "is_cat" in arrays:
            codes = OneHotEncoder(sparse_output=False)
            columns = np.flatnonzero(arrays["is_cat"])
            X = make_column_transformer(
                (codes, columns), remainder="passthrough"
            ).fit_transform(X)
    return X, y


def draw(name, folder, seed, n_train=N_TRAIN):
    """Training and test rows, of which MINORITY are of class 1, scaled by the training
    rows."""
    X, y = load(name, folder, seed)
    rng = np.random.default_rng(seed)
    few, many = (rng.permutation(np.flatnonzero(y == label)) for label in (1, 0))
    n = int(min(len(many) / (1 - MINORITY), len(few) / MINORITY))
    n_train = min(n_train, n // 2)
    sizes = [round(MINORITY * n_train), round(MINORITY * n)]
    train = np.r_[few[: sizes[0]], many[: n_train - sizes[0]]]
    test = np.r_[few[sizes[0] : sizes[1]], many[n_train - sizes[0] : n - sizes[1]]]
    train = rng.permutation(train)
    scaler = StandardScaler().fit(X[train])
    return *(scaler.transform(X[train]), y[train]), *(
        scaler.transform(X[test]),
        y[test],
    )


def score(model, X, y, X_test, y_test):
    return balanced_accuracy_score(y_test, model.fit(X, y).predict(X_test))


def measure(name, folder, noise, seed, rules=RULES, n_train=N_TRAIN):
    """(remedy, rule) -> fraction of the minority dropped, and changes of balanced
    accuracy.

    The remedy None has the balanced accuracies themselves, without cleaning.
    """
    X, y, X_test, y_test = draw(name, folder, seed, n_train)
    flipped = np.zeros(len(y), dtype=bool)
    if noise:
        y, flipped = flip_labels(y, noise, random_state=seed)
    plain = [score(model, X, y, X_test, y_test) for model in MODELS.values()]
    found, areas = {(None, ""): [0.0, *plain]}, {}
    with TemporaryDirectory() as memory:
        for remedy, (valuer, options) in remedies(seed).items():
            for rule in rules:
                if isinstance(rule, str) and not remedy.startswith("KNN"):
                    continue
                changes, lost = [], []
                for (_, model), before in zip(MODELS.items(), plain):
                    row_filter = ValueFilter(
                        valuer, rule, estimator=model, scoring="balanced_accuracy", memory=memory,
                        **options,
                    ).fit(X, y)  # fmt: skip
                    kept = row_filter.sample_indices_
                    after = score(model, X[kept], y[kept], X_test, y_test)
                    changes.append(after - before)
                    lost.append(1 - (y[kept] == 1).sum() / (y == 1).sum())
                found[remedy, rule] = [np.mean(lost), *changes]
            if noise and "stratify" not in options:
                by_class = noisy_label_auc(row_filter.values_, flipped, y=y)
                areas[remedy] = [
                    noisy_label_auc(row_filter.values_, flipped),
                    *by_class.values(),
                ]
    return found, areas


def print_table(name, noise, results):
    """Means over seeds; returns them, and prints them with standard errors."""
    found = {key: np.array([one[0][key] for one in results]) for key in results[0][0]}
    n = len(results)
    before = found.pop((None, ""))[:, 1:].mean(axis=0)
    scores = ", ".join(f"{mean:.3f} {model}" for mean, model in zip(before, MODELS))
    print(
        f"{name}, {noise:.0%} of the labels flipped, {n} seeds: without cleaning {scores}\n"
    )
    print(
        f"{'':20s}{'drop':>9s}{'minority lost':>15s}"
        + "".join(f"{m:>18s}" for m in MODELS)
    )
    for (remedy, rule), rows in found.items():
        mean = rows.mean(axis=0)
        error = rows.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(4)
        changes = "".join(f"{mean[i]:+9.4f} ({error[i]:.4f})" for i in (1, 2, 3))
        print(f"{remedy:20s}{rule!s:>9s}{mean[0]:15.2f}{changes}")
    for remedy in results[0][1]:
        areas = np.mean([one[1][remedy] for one in results], axis=0)
        shown = "{:.3f} over all rows, {:.3f} majority, {:.3f} minority".format(*areas)
        print(f"AUROC of flipped labels, {remedy}: {shown}")
    print()
    return {key: rows.mean(axis=0) for key, rows in found.items()}


def largest_costs(clean):
    """(remedy, model) -> largest cost of cleaning, its set and its rule."""
    costs = {}
    for name, table in clean.items():
        for (remedy, rule), means in table.items():
            if "," in remedy:
                for model, change in zip(MODELS, means[1:]):
                    costs.setdefault((remedy, model), []).append(
                        (-change, name, str(rule))
                    )
    return {key: max(found) for key, found in costs.items()}


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
    clean = {}
    for name in args.sets:
        if name != "creditcard" and (
            args.data is None or not (Path(args.data) / f"{name}.npz").is_file()
        ):
            print(f"{name}: no {name}.npz in --data={args.data}: left out\n")
            continue
        for noise in args.noise:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", UserWarning
                )  # about the lost minority, and ties
                results = [
                    measure(name, args.data, noise, seed) for seed in range(args.seeds)
                ]
            means = print_table(name, noise, results)
            if not noise:
                clean[name] = means
    if clean:
        print("Largest cost on clean labels")
    for (remedy, model), (cost, name, rule) in largest_costs(clean).items():
        print(f"{remedy:20s}{model:>12s}{cost:9.4f} ({name}, drop={rule})")


if __name__ == "__main__":
    main()
