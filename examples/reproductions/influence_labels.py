"""
Influence with clean validation points, with noisy ones, and with none
======================================================================

Prints the table of the user guide's page on influence: how well values find wrong
labels. In five tables 20 % of the labels are wrong. Rows are evaluated on themselves
(`cv=None`, the default), by folds of the same noisy rows, or by 100 validation points
with right labels. All tables come with scikit-learn:

    python examples/reproductions/influence_labels.py
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.preprocessing import StandardScaler

from skvalue import InfluenceValuer
from skvalue.exceptions import UncleanPointsWarning
from skvalue.inspection import noisy_label_auc

N_POINTS = 100
MAX_ROWS = 1000


def synthetic(return_X_y):
    """Rows of two classes in ten columns, four of which tell them apart."""
    return make_classification(
        n_samples=1100, n_features=10, n_informative=4, random_state=0
    )


TABLES = {
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
    "synthetic": synthetic,
    "wine": load_wine,
}


def draw(name, seed, n_points=N_POINTS):
    """Rows with wrong labels, which are wrong, and points with right ones."""
    rng = np.random.default_rng(seed)
    X, y = TABLES[name](return_X_y=True)
    X = StandardScaler().fit_transform(X)
    n_points = min(n_points, len(y) // 3)
    order = rng.permutation(len(y))[: MAX_ROWS + n_points]
    X = X[order]
    y = y[order]
    points = {"X_val": X[:n_points], "y_val": y[:n_points]}
    X = X[n_points:]
    y = y[n_points:]
    n_classes = len(np.unique(y))
    is_wrong = rng.random(len(y)) < 0.2
    wrong = (y + rng.integers(1, n_classes, size=len(y))) % n_classes
    return X, np.where(is_wrong, wrong, y), is_wrong, points


def areas(name, seed):
    """Areas under the curve: rows on themselves, folds, clean points."""
    X, y, is_wrong, points = draw(name, seed)
    valuers = [
        InfluenceValuer().fit(X, y),
        InfluenceValuer(cv=5).fit(X, y),
        InfluenceValuer().fit(X, y, **points),
    ]
    return [noisy_label_auc(valuer.values_, is_wrong) for valuer in valuers]


def main(seeds=3):
    """Print the table."""
    warnings.simplefilter("ignore", UncleanPointsWarning)
    print(f"{'table':14} {'on themselves':>14} {'cv=5':>6} {'clean points':>13}")
    for name in TABLES:
        own, folds, clean = np.mean([areas(name, seed) for seed in range(seeds)], 0)
        print(f"{name:14} {own:14.2f} {folds:6.2f} {clean:13.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    main(parser.parse_args().seeds)
