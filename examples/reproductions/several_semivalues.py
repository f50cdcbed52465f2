"""
Several semivalues from one fit
===============================

`reweight` computes another semivalue from the coalitions of a fit. This script fits
Data Shapley values, asks for other semivalues, and divides their standard errors by
those of a fit of that semivalue with as many coalitions:

    python examples/reproductions/several_semivalues.py --data FOLDER

FOLDER holds phoneme.npz and adult.npz, with arrays X and y (and is_cat, a mask of
categorical columns, which are left out); a set that is missing is left out. A tenth of
the labels are wrong. The games are logistic regression with log-loss on phoneme, naive
Bayes with accuracy on adult (200 rows, 8,000 coalitions each) and a decision tree on
breast cancer (100 rows, 4,000 coalitions).

"plain" and "adjusted" are the values without and with control variates (`adjust`); both
are compared with plain fits. Errors are those that the fits state, root mean squares
over rows and seeds. The last column says for which semivalues `reweight` warned.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skvalue import SemivalueValuer
from skvalue.datasets import flip_labels
from skvalue.exceptions import ImpreciseValuesWarning

TARGETS = ["shapley", "banzhaf", (4, 1), (16, 1), (1, 4)]
GAMES = {  # estimator, scorer, rows, coalitions
    "phoneme": (LogisticRegression(), "neg_log_loss", 200, 8000),
    "adult": (GaussianNB(), "accuracy", 200, 8000),
    "breast_cancer": (DecisionTreeClassifier(random_state=0), "accuracy", 100, 4000),
}
N_VAL = 300


def load(name, folder, n):
    """Standardised training rows with wrong labels, and validation points; None if
    missing."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        path = Path(folder or ".") / f"{name}.npz"
        if not path.exists():
            return None
        with np.load(path) as file:
            X = file["X"].astype(float)
            y = file["y"]
            X = X[:, ~file["is_cat"]] if "is_cat" in file else X
    rows = np.random.default_rng(0).permutation(len(y))[: n + N_VAL]
    X = X[rows]
    y = y[rows]
    X = (X - X[:n].mean(axis=0)) / np.maximum(X[:n].std(axis=0), 1e-12)
    return X[:n], flip_labels(y[:n], 0.1, random_state=0)[0], X[n:], y[n:]


def text(semivalue):
    return (
        semivalue if isinstance(semivalue, str) else "Beta({}, {})".format(*semivalue)
    )


def error_ratios(name, data, n_coalitions, seeds):
    """Errors after a fit of Shapley values over those of own fits: by adjustment and
    semivalue.

    And the semivalues for which `reweight` warned, by adjustment.
    """
    estimator, scoring, *_ = GAMES[name]
    X, y, X_val, y_val = data
    squares = {}
    warned = {}

    def fit(semivalue, adjust, seed):
        valuer = SemivalueValuer(
            estimator,
            semivalue,
            scoring=scoring,
            adjust=adjust,
            sampler="stratified",
            max_evaluations=n_coalitions,
            random_state=seed,
        )
        return valuer.fit(X, y, X_val=X_val, y_val=y_val)

    for seed in range(seeds):
        found = {
            ("own", target): fit(target, False, seed).values_error_
            for target in TARGETS
        }
        for adjust in (False, True):
            valuer = fit("shapley", adjust, seed)
            for target in TARGETS:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always", ImpreciseValuesWarning)
                    found[adjust, target] = valuer.reweight(target).values_error_
                if caught:
                    warned.setdefault(adjust, {})[text(target)] = None
        for key, errors in found.items():
            squares[key] = squares.get(key, 0) + np.mean(errors**2)
    ratios = {
        adjust: [np.sqrt(squares[adjust, t] / squares["own", t]) for t in TARGETS]
        for adjust in (False, True)
    }
    return ratios, {adjust: ", ".join(warned.get(adjust, ())) for adjust in ratios}


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="folder with phoneme.npz and adult.npz")
    parser.add_argument("--sets", nargs="+", default=list(GAMES), choices=list(GAMES))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--coalitions", type=int, help="default: those named above")
    args = parser.parse_args(argv)
    heads = [text(target) for target in TARGETS]
    print(
        f"| {'game':14} | {'values':8} | "
        + " | ".join(f"{h:>11}" for h in heads)
        + " | warned |"
    )
    for name in args.sets:
        n, n_coalitions = GAMES[name][2:]
        data = load(name, args.data, n)
        if data is None:
            print(f"{name}: no {name}.npz in --data={args.data}: left out")
            continue
        ratios, warned = error_ratios(
            name, data, args.coalitions or n_coalitions, args.seeds
        )
        for adjust, label in ((False, "plain"), (True, "adjusted")):
            cells = " | ".join(f"{ratio:11.2f}" for ratio in ratios[adjust])
            print(f"| {name:14} | {label:8} | {cells} | {warned[adjust]} |", flush=True)


if __name__ == "__main__":
    main()
