"""
Table 3 of the paper on data values from private gradients
==========================================================

"Data Value Estimation on Private Gradients": data sets as parties, and federated training, with the
published losses of AUROC beside ours; and what fewer coordinates of a gradient gain, which the
paper does not have:

    python examples/reproductions/gradient_parties.py --data FOLDER --parts sets --sets covertype

FOLDER holds covertype.npz and mnist.npz with arrays X and y; without it they come from OpenML.
Noise is what (1, 5e-5)-local differential privacy of every row takes. Sizes are smaller than the
paper's where a line says so; its networks are small here.
"""

import argparse
import itertools
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from gradient_tables import DELTA, EPSILON, draw, show, small_network
from tknn_tables import print_table

from skvalue import FederatedSemivalueValuer, GradientSemivalueValuer
from skvalue.datasets import flip_labels
from skvalue.exceptions import ConstantColumnsWarning
from skvalue.inspection import noisy_label_auc

SETS = ("covertype", "mnist")


def bad_parties(name, folder, n, size, seed, n_val=200):
    """n data sets of as many rows, three in ten of them with wrong labels.

    Drawn again until good parties and validation points have rows of every class: a model of
    labels that are only seen wrong, or never, is refused.
    """
    owner = np.arange(n * size) // size
    bad = np.arange(n) < round(0.3 * n)
    n_classes = {"covertype": 7, "mnist": 10}[name]
    for trial in itertools.count(1000 * seed):
        X, y, X_val, y_val = draw(name, folder, n * size, n_val, trial)
        if len(np.unique(y[~bad[owner]])) == len(np.unique(y_val)) == n_classes:
            break
    wrong, _ = flip_labels(y, 1.0, random_state=seed)
    return X, np.where(bad[owner], wrong, y), owner, bad, X_val, y_val


def print_sets(args):
    """Table 3, top: published differences of AUROC to no privacy; ours with the guarantee."""
    published = {
        "mnist": "MNIST, B=8: 0.290 0.170",
        "covertype": "CIFAR-10, CNN, B=32: 0.178 0.030",
    }
    rows = []
    cases = [("covertype", 100, 100, size) for size in (8, 32, 128)] + [("mnist", 40, 50, 32)]
    for name, n, k, size in cases:
        if name not in args.sets:
            continue
        scores = {}
        for seed in range(args.repeats):
            X, y, owner, bad, X_val, y_val = bad_parties(name, args.data, n, size, seed)
            model = small_network() if name == "mnist" else "softmax"
            make = partial(
                GradientSemivalueValuer, model, unit="example", n_permutations=k, delta=DELTA,
                random_state=seed, device="cpu",
            )  # fmt: skip
            for label, valuer in {
                "no DP": make(n_permutations=10),
                "i.i.d.": make(epsilon=EPSILON, noise="iid"),
                "Y*(0.9)": make(epsilon=EPSILON),
                "Y*(0.9), one direction": make(epsilon=EPSILON, n_components=1, clip="auto"),
            }.items():
                values = valuer.fit(X, y, groups=owner, X_val=X_val, y_val=y_val).values_
                scores.setdefault(label, []).append(noisy_label_auc(values, bad))
        lost = [np.mean(scores["no DP"]) - np.mean(scores[c]) for c in list(scores)[1:]]
        rows.append(
            [name, str(n), str(size), str(k), *(show(s) for s in scores.values())]
            + [", ".join(f"{one:.3f}" for one in lost), published[name]]
        )
        print(f"{name}, B={size} done", flush=True)
    print(f"\nTable 3, top: data sets, ({EPSILON:g}, {DELTA:g}) for every row, AUROC")
    print(f"{args.repeats} draws, learning rates chosen on the validation points\n")
    header = ["set", "n", "B", "k", *scores, "lost", "published"]
    print_table(header, rows)


def print_directions(args):
    """Beyond the paper: fewer coordinates, and fewer releases, at the same guarantee."""
    counts, permutations, sizes = (None, 1, 2, 4, 16), (10, 30, 100, 300), (8, 32)
    cases = [(r, clip, 100) for clip in (1.0, "auto") for r in counts]
    cases += [(r, "auto", k) for r in (None, 1) for k in permutations if k != 100]
    found = {(case, size): [] for case in cases for size in sizes}
    for size in sizes:
        for seed in range(args.repeats):
            X, y, owner, bad, X_val, y_val = bad_parties("covertype", args.data, 100, size, seed)
            for n_components, clip, k in cases:
                valuer = GradientSemivalueValuer(
                    "softmax", unit="example", epsilon=EPSILON, delta=DELTA, n_permutations=k,
                    n_components=n_components, clip=clip, random_state=seed,
                ).fit(X, y, groups=owner, X_val=X_val, y_val=y_val)  # fmt: skip
                score = noisy_label_auc(valuer.values_, bad)
                found[(n_components, clip, k), size].append(score)
        print(f"directions, B={size} done", flush=True)
    rows = [
        ["all" if r is None else str(r), str(clip), str(k)]
        + [show(found[(r, clip, k), size]) for size in sizes]
        for r, clip, k in cases
    ]
    print(
        f"\nPublic directions: Covertype, 100 data sets of B rows, 30 of them bad, ({EPSILON:g}, "
        f"{DELTA:g}) for every row, Y*(0.9), {args.repeats} draws, AUROC\n"
    )
    print_table(["n_components", "clip", "k", *(f"B={size}" for size in sizes)], rows)


def print_federated(args):
    """Table 3, bottom."""
    rows = []
    for name, n, k, size in (("covertype", 20, 50, 32), ("mnist", 20, 50, 32)):
        if name not in args.sets:
            continue
        scores = {}
        for seed in range(args.repeats):
            X, y, owner, bad, X_val, y_val = bad_parties(name, args.data, n, size, seed)
            model = small_network() if name == "mnist" else "softmax"
            make = partial(
                FederatedSemivalueValuer, model, unit="example", n_rounds=k, delta=DELTA,
                learning_rate=1.0, n_permutations=4, random_state=seed, device="cpu",
            )  # fmt: skip
            for label, valuer in {
                "no DP": make(),
                "i.i.d.": make(epsilon=EPSILON, noise="iid", burn_in=0.0),
                "X*": make(epsilon=EPSILON, noise="correlated"),
                "0.75 - 0.7 t/k": make(epsilon=EPSILON),
                "one direction": make(epsilon=EPSILON, n_components=1, clip="auto"),
            }.items():
                values = valuer.fit(X, y, groups=owner, X_val=X_val, y_val=y_val).values_
                scores.setdefault(label, []).append(noisy_label_auc(values, bad))
        lost = [np.mean(scores["no DP"]) - np.mean(scores[c]) for c in ("i.i.d.", "0.75 - 0.7 t/k")]
        published = "0.195, 0.081" if name == "mnist" else "-"
        rows.append(
            [name, str(n), str(size), str(k), *(show(s) for s in scores.values())]
            + [f"{lost[0]:.3f}, {lost[1]:.3f}", published]
        )
        print(f"{name}, federated, done", flush=True)
    print(f"\nTable 3, bottom: federated, ({EPSILON:g}, {DELTA:g}) for every row, AUROC\n")
    header = ["set", "n", "B", "rounds", *scores, "lost: i.i.d., 0.75 - 0.7 t/k", "published"]
    print_table(header, rows)


PARTS = {"sets": print_sets, "directions": print_directions, "federated": print_federated}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of covertype.npz and mnist.npz")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--repeats", type=int, default=3, help="draws of rows and noise")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConstantColumnsWarning)  # one-hot columns of Covertype
    for part in args.parts:
        PARTS[part](args)


if __name__ == "__main__":
    main()
