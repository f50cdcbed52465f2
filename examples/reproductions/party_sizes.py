"""
What a party counts: values of data sets of 8 to 800 rows
=========================================================

    python examples/reproductions/party_sizes.py --draws 10

Not of a paper. Five parties hold 8, 30, 100, 300 and 800 rows of one distribution. The
table has their values, as percentages of the sum, by retraining and by gradients,
averaged over draws of the data; and in how many draws the five are ranked as by
retraining. "rows" weights steps by numbers of rows (the default), "equal" does not. The
private fit has (epsilon, 1e-5) for every row. The second table has what a small party
earns in units of a large one. It needs no data, and takes less than a minute.
"""

import argparse
import warnings
from functools import partial

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from tknn_tables import print_table

from skvalue import (
    DataShapleyValuer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
)
from skvalue.derivatives import column_scales
from skvalue.exceptions import ConstantColumnsWarning

SIZES = (8, 30, 100, 300, 800)
N_POINTS = 500


def normal_rows(rng, n):
    """Rows of ten normal columns, with labels of a noisy linear model."""
    X = rng.normal(size=(n, 10))
    scores = X @ rng.normal(size=10) + 1.5 * rng.normal(size=n)
    return X, (scores > 0).astype(int)


def digit_rows(rng, n):
    """Handwritten digits, those above four against the others."""
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))[:n]
    return X[order], (y[order] > 4).astype(int)


SETS = {"normal": normal_rows, "digits": digit_rows}


def draw_parties(name, sizes, seed):
    """Rows of parties of these sizes and validation points, as arguments of `fit`."""
    rng = np.random.default_rng(seed)
    n_rows = sum(sizes)
    X, y = SETS[name](rng, n_rows + N_POINTS)
    # As the valuers of gradients scale columns: a typical row has norm one.
    means, scales = column_scales(X[n_rows:])
    X = (X - means) / scales / np.sqrt(X.shape[1])
    return {
        "X": X[:n_rows],
        "y": y[:n_rows],
        "groups": np.repeat(np.arange(len(sizes)), sizes),
        "X_val": X[n_rows:],
        "y_val": y[n_rows:],
    }


def valuers(seed, epsilon=None):
    """The valuers of the table by name; the first is retraining."""
    gradients = partial(GradientSemivalueValuer, random_state=seed)
    federated = partial(FederatedSemivalueValuer, random_state=seed)
    by_name = {
        "retraining": DataShapleyValuer(LogisticRegression(), scoring="neg_log_loss"),
        "gradients, rows": gradients(),
        "gradients, equal": gradients(step_weights="equal"),
        "federated, rows": federated(),
        "federated, rows, mean": federated(coalition_step="mean"),
        "federated, equal": federated(step_weights="equal"),
    }
    if epsilon is not None:
        private = gradients(epsilon=epsilon, unit="example")
        by_name[f"gradients, rows, epsilon {epsilon:g}"] = private
    return by_name


def ranks(values):
    return np.argsort(np.argsort(values)).tolist()


def print_sizes(name, n_draws, epsilon):
    """Mean percentages of each size, and draws ranked as by retraining."""
    percentages = {}
    n_ranked = {}
    n_by_size = {}
    for seed in range(n_draws):
        data = draw_parties(name, SIZES, seed)
        truth = None
        for label, valuer in valuers(seed, epsilon).items():
            values = valuer.fit(**data).values_
            truth = values if truth is None else truth
            percentages.setdefault(label, []).append(100 * values / values.sum())
            is_same = ranks(values) == ranks(truth)
            n_ranked[label] = n_ranked.get(label, 0) + is_same
            is_by_size = ranks(values) == list(range(len(SIZES)))
            n_by_size[label] = n_by_size.get(label, 0) + is_by_size
    rows = []
    for label, of_draws in percentages.items():
        means = [f"{mean:.1f}" for mean in np.mean(of_draws, axis=0)]
        counts = [str(n_ranked[label]), str(n_by_size[label])]
        rows.append([label, *means, *counts])
    print(f"{name}: percentages of the sum, means over {n_draws} draws\n")
    header = ["values", *map(str, SIZES), "ranked as by retraining", "by size"]
    print_table(header, rows)


def print_ratios(name, n_draws):
    """What 40 rows earn beside five parties of 200 rows, in units of one of those."""
    ratios = {}
    for seed in range(n_draws):
        data = draw_parties(name, (40, *[200] * 5), seed)
        for label, valuer in valuers(seed).items():
            values = valuer.fit(**data).values_
            ratios.setdefault(label, []).append(values[0] / values[1:].mean())
    rows = [
        [label, f"{np.mean(of_draws):.2f}", f"{np.std(of_draws):.2f}"]
        for label, of_draws in ratios.items()
    ]
    print(f"{name}: 40 rows in units of one of five parties of 200, {n_draws} draws\n")
    print_table(["values", "mean", "standard deviation"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--epsilon", type=float, default=1.0)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConstantColumnsWarning)  # of digits
    for name in args.sets:
        print_sizes(name, args.draws, args.epsilon)
    for name in args.sets:
        print_ratios(name, args.draws)


if __name__ == "__main__":
    main()
