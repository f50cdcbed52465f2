"""
Table 3 of the paper on data values from private gradients
==========================================================

"Data Value Estimation on Private Gradients": data sets as parties, and federated
training, with the published losses of AUROC and ours; and what fewer coordinates of a
gradient gain, which the paper does not have:

    python examples/reproductions/gradient_parties.py --data FOLDER --parts sets --sets
    covertype

FOLDER holds covertype.npz, mnist.npz and cifar10.npz with arrays X and y; without it
they come from OpenML. Noise is what (1, 5e-5)-local differential privacy of every row
takes (ResNet-34: epsilon 10, as in the paper). `--networks paper` takes the paper's
networks and sizes, which ask for a GPU and `--device cuda`; `--parties`, `--size` and
`--permutations` (or rounds) make them smaller. All parties have as many rows and take
equal steps, as in the paper.
"""

import argparse
import itertools
import warnings
from functools import partial

import numpy as np
from gradient_networks import IMAGES, add_arguments, source
from gradient_tables import CORRECT, DELTA, EPSILON, show
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from tknn_tables import print_table

from skvalue import FederatedSemivalueValuer, GradientSemivalueValuer
from skvalue.datasets import flip_labels
from skvalue.derivatives import column_scales
from skvalue.exceptions import ConstantColumnsWarning, NoiseExceedsSignalWarning
from skvalue.inspection import noisy_label_auc

# Sizes of Table 3, top: parties, their rows, permutations; and what is published.
SMALL = {
    "covertype": [(100, size, 100) for size in (8, 32, 128)],
    "mnist": [(40, 32, 50)],
    "cifar10": [(40, 32, 50)],
    "resnet18": [(20, 32, 10)],
    "resnet34": [(20, 32, 10)],
}
PAPER = {
    "covertype": SMALL["covertype"],
    "mnist": [(800, 8, 200)],
    "cifar10": [(100, 32, 1000)],
    "resnet18": [(100, 32, 1000)],
    "resnet34": [(100, 32, 1000)],
}
TOP = {
    "covertype": "-",
    "mnist": "0.290, 0.170 (B=8)",
    "cifar10": "0.178, 0.030",
    "resnet18": "0.204, 0.119",
    "resnet34": "0.141, 0.043 (epsilon 10)",
}
# Noise of a release in units of C, of 50 rounds: twice what an accountant asks where
# each of 50 x 50 steps samples one party in 50 (3.46 at (1, 5e-5)), as in Table 2.
IMPLIED = 6.92
BOTTOM = {"covertype": "-", "mnist": "0.195, 0.081", "cifar10": "0.167, 0.042"}


def bad_parties(given, name, n, size, seed, n_val=200):
    """n data sets of as many rows, three in ten of them with wrong labels.

    Drawn again until good parties and validation points have rows of every class: a
    model of labels that are only seen wrong, or never, is refused.
    """
    owner = np.arange(n * size) // size
    bad = np.arange(n) < round(0.3 * n)
    labels = given.load(name)[1]
    if len(labels) < n * size + n_val:
        raise SystemExit(
            f"{name} must have {n} x {size} rows for parties and {n_val} for "
            f"validation. Got "
            f"{len(labels)}: pass a smaller --parties or --size."
        )
    n_classes = len(np.unique(labels))
    for trial in itertools.count(1000 * seed):
        X, y, X_val, y_val = given.draw(name, n * size, n_val, trial)
        if len(np.unique(y[~bad[owner]])) == len(np.unique(y_val)) == n_classes:
            break
    wrong, _ = flip_labels(y, 1.0, random_state=seed)
    return X, np.where(bad[owner], wrong, y), owner, bad, X_val, y_val


def lost_to_privacy(scores, names):
    """What each of some ways loses of the AUROC without noise."""
    free = np.mean(scores["no DP"])
    return ", ".join(f"{free - np.mean(scores[name]):.3f}" for name in names)


def print_sets(args):
    """Table 3, top: published differences of AUROC to no privacy; ours with the
    guarantee."""
    given = source(args)
    rows = []
    sizes = PAPER if args.networks == "paper" else SMALL
    for name, (n, size, k) in [(one, case) for one in args.sets for case in sizes[one]]:
        n = args.parties or n
        size = args.size or size
        k = args.permutations or k
        epsilon = 10.0 if name == "resnet34" else EPSILON
        scores = {}
        for seed in range(args.repeats):
            X, y, owner, bad, X_val, y_val = bad_parties(given, name, n, size, seed)
            make = partial(
                GradientSemivalueValuer,
                given.network(name),
                unit="example",
                step_weights="equal",
                n_permutations=k,
                delta=DELTA,
                clip=1.0,
                random_state=seed,
                device=given.device,
            )
            for label, valuer in {
                "no DP": make(n_permutations=min(k, 10)),
                "i.i.d.": make(epsilon=epsilon, noise="iid"),
                "Y*(0.9)": make(epsilon=epsilon),
                "Y*(0.9), one direction": make(
                    epsilon=epsilon, n_components=1, clip="median"
                ),
            }.items():
                values = valuer.fit(
                    X, y, groups=owner, X_val=X_val, y_val=y_val
                ).values_
                scores.setdefault(label, []).append(noisy_label_auc(values, bad))
                print(
                    f"{name}, B={size}, draw {seed}, {label}: {scores[label][-1]:.3f}",
                    flush=True,
                )
        rows.append(
            [name, str(n), str(size), str(k), *(show(s) for s in scores.values())]
            + [lost_to_privacy(scores, list(scores)[1:]), TOP[name]]
        )
    print(f"\nTable 3, top: data sets, ({EPSILON:g}, {DELTA:g}) for every row, AUROC")
    print(f"{args.repeats} draws, learning rates chosen on the validation points\n")
    header = ["set", "n", "B", "k", *scores, "lost", "published: i.i.d., ours"]
    print_table(header, rows)


def print_directions(args):
    """Beyond the paper: fewer coordinates, and fewer releases, at the same
    guarantee."""
    counts = (None, 1, 2, 4, 16)
    permutations = (10, 30, 100, 300)
    sizes = (8, 32)
    cases = [(r, clip, 100) for clip in (1.0, "auto") for r in counts]
    cases += [(r, "auto", k) for r in (None, 1) for k in permutations if k != 100]
    found = {(case, size): [] for case in cases for size in sizes}
    for size in sizes:
        for seed in range(args.repeats):
            drawn = bad_parties(source(args), "covertype", 100, size, seed)
            X, y, owner, bad, X_val, y_val = drawn
            for n_components, clip, k in cases:
                valuer = GradientSemivalueValuer(
                    "softmax",
                    unit="example",
                    step_weights="equal",
                    epsilon=EPSILON,
                    delta=DELTA,
                    n_permutations=k,
                    n_components=n_components,
                    clip=clip,
                    random_state=seed,
                ).fit(X, y, groups=owner, X_val=X_val, y_val=y_val)
                score = noisy_label_auc(valuer.values_, bad)
                found[(n_components, clip, k), size].append(score)
        print(f"directions, B={size} done", flush=True)
    rows = [
        ["all" if r is None else str(r), str(clip), str(k)]
        + [show(found[(r, clip, k), size]) for size in sizes]
        for r, clip, k in cases
    ]
    print(
        f"\nPublic directions: Covertype, 100 data sets of B rows, 30 of them bad, "
        f"({EPSILON:g}, "
        f"{DELTA:g}) for every row, Y*(0.9), {args.repeats} draws, AUROC\n"
    )
    print_table(["n_components", "clip", "k", *(f"B={size}" for size in sizes)], rows)


def values_along(X, y, owner, X_val, y_val, k, rate, clip, seed, retaken):
    """Values of data sets that release one coordinate, along the direction at the start
    or retaken.

    A plain loop for softmax regression, Y*(0.9), under `EPSILON` and `DELTA` for every
    row.
    """
    rng = np.random.default_rng(seed)
    n = owner.max() + 1
    classes = int(y_val.max()) + 1
    mean, scale = column_scales(X_val)
    X, X_val = (
        np.column_stack(
            [(rows - mean) / scale / np.sqrt(X.shape[1]), np.ones(len(rows))]
        )
        for rows in (X, X_val)
    )
    targets = np.eye(classes)[y]
    targets_val = np.eye(classes)[y_val]
    size = len(X) // n

    def utility(theta):
        return (log_softmax(X_val @ theta, axis=1) * targets_val).sum(axis=1).mean()

    def direction(theta):
        found = X_val.T @ (softmax(X_val @ theta, axis=1) - targets_val)
        return found / np.linalg.norm(found)

    start = np.zeros((X.shape[1], classes))
    means = np.zeros(n)
    values = np.zeros(n)
    std = CORRECT * np.sqrt(k) * clip / size
    for t in range(k):
        theta = start
        along = direction(start)
        counts = t >= int(0.9 * k)
        before = utility(theta)
        for j in rng.permutation(n):
            along = direction(theta) if retaken else along
            rows = slice(j * size, (j + 1) * size)
            residuals = softmax(X[rows] @ theta, axis=1) - targets[rows]
            each = np.clip(((X[rows] @ along) * residuals).sum(axis=1), -clip, clip)
            means[j] += (each.mean() + std * rng.standard_normal() - means[j]) / (t + 1)
            theta = theta - rate * means[j] * along
            if counts:
                after = utility(theta)
                values[j] += after - before
                before = after
    return values


def print_retaken(args):
    """Beyond the paper: the public direction taken again at every step."""
    rows = []
    for size, factor in itertools.product((8, 32), (1, 10)):
        found = {False: [], True: []}
        for seed in range(args.repeats):
            X, y, owner, bad, X_val, y_val = bad_parties(
                source(args), "covertype", 100, size, seed
            )
            valuer = GradientSemivalueValuer(
                "softmax",
                unit="example",
                epsilon=EPSILON,
                delta=DELTA,
                step_weights="equal",
                n_permutations=100,
                n_components=1,
                clip="median",
                random_state=seed,
            ).fit(X, y, groups=owner, X_val=X_val, y_val=y_val)
            rate = factor * valuer.learning_rate_
            for retaken, scores in found.items():
                values = values_along(
                    X, y, owner, X_val, y_val, 100, rate, valuer.clip_, seed, retaken
                )
                scores.append(noisy_label_auc(values, bad))
        rows.append([str(size), f"{rate:g}", show(found[False]), show(found[True])])
        print(f"retaken, B={size}, rate {rate:g} done", flush=True)
    print(
        f"\nOne public direction: Covertype, 100 data sets, {args.repeats} draws, "
        f"AUROC\n"
    )
    print_table(["B", "learning rate", "taken once", "again at every step"], rows)


def print_federated(args):
    """Table 3, bottom: the paper has the accuracy as the utility, and 100 permutations
    a round."""
    given = source(args)
    rows = []
    cases = list(itertools.product(args.sets, args.utilities, args.steps))
    for name, utility, step in cases:
        if name not in BOTTOM or (utility, step) == ("neg_loss", "sum"):
            continue
        n = args.parties or 50
        k = args.permutations or 50
        size = args.size or 32
        scores = {}
        for seed in args.draws or range(args.repeats):
            X, y, owner, bad, X_val, y_val = bad_parties(given, name, n, size, seed)
            if args.networks == "linear" and name in IMAGES:
                # Pixels from 0 to 1, so that a clip of 1 shortens gradients.
                X = 5 * X
                X_val = 5 * X_val
            make = partial(
                FederatedSemivalueValuer,
                given.network(name),
                unit="example",
                step_weights="equal",
                n_rounds=k,
                delta=DELTA,
                clip=1.0,
                coalition_step=step,
                burn_in=0.2,
                learning_rate=args.rate or "auto",
                n_permutations=args.round_permutations,
                utility=utility,
                random_state=seed,
                device=given.device,
                standardize=name not in IMAGES,
            )
            implied = make(noise_multiplier=IMPLIED / np.sqrt(k))
            valuers = {
                "no DP": make(),
                "i.i.d., implied": clone(implied).set_params(noise="iid", burn_in=0.0),
                "0.75 - 0.7 t/k, implied": implied,
                "i.i.d.": make(epsilon=EPSILON, noise="iid", burn_in=0.0),
                "0.75 - 0.7 t/k": make(epsilon=EPSILON),
                "X*": make(epsilon=EPSILON, noise="correlated"),
                "one direction": make(epsilon=EPSILON, n_components=1, clip="median"),
            }
            for label in args.noises or valuers:
                valuer = valuers[label]
                values = valuer.fit(
                    X, y, groups=owner, X_val=X_val, y_val=y_val
                ).values_
                scores.setdefault(label, []).append(noisy_label_auc(values, bad))
                print(
                    f"{name}, {utility}, {step}, draw {seed}, {label}, rate "
                    f"{valuer.learning_rate_:.3g}: {scores[label][-1]:.3f}",
                    flush=True,
                )
        if args.noises:
            continue
        rows.append(
            [
                name,
                utility,
                step,
                str(n),
                str(size),
                str(k),
                *(show(s) for s in scores.values()),
            ]
            + [lost_to_privacy(scores, list(scores)[1:5]), BOTTOM[name]]
        )
    if args.noises:
        return
    print(
        f"\nTable 3, bottom: federated, ({EPSILON:g}, {DELTA:g}) for every row, AUROC"
    )
    print(
        f"{args.repeats} draws, {args.round_permutations} permutations a round, model: "
        f"{args.networks}. The paper: 5 draws, 100 permutations, its network, its "
        f"points not "
        "stated, noise for another neighbour\n"
    )
    header = ["set", "utility", "step", "n", "B", "rounds", *scores]
    header += ["lost: implied i.i.d. and 0.75 - 0.7 t/k, both at (1, 5e-5)"]
    header += ["published"]
    print_table(header, rows)


PARTS = {
    "sets": print_sets,
    "directions": print_directions,
    "retaken": print_retaken,
    "federated": print_federated,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--sets", nargs="+", choices=TOP, default=["covertype", "mnist"]
    )
    parser.add_argument(
        "--parties", type=int, help="data sets, or parties of federated rounds"
    )
    parser.add_argument("--size", type=int, help="rows of each")
    parser.add_argument("--permutations", type=int, help="permutations, or rounds")
    parser.add_argument(
        "--repeats", type=int, default=3, help="draws of rows and noise"
    )
    parser.add_argument(
        "--utilities",
        nargs="+",
        choices=["accuracy", "neg_loss"],
        default=["accuracy", "neg_loss"],
    )
    parser.add_argument(
        "--steps",
        nargs="+",
        choices=["sum", "mean"],
        default=["sum", "mean"],
        help="how a coalition moves a federated model; the sum for accuracies only",
    )
    parser.add_argument(
        "--rate", type=float, help="learning rate of federated rounds; chosen without"
    )
    parser.add_argument(
        "--draws", type=int, nargs="+", help="of federated rounds; all without"
    )
    parser.add_argument(
        "--noises", nargs="+", help="of federated rounds, without a table; all without"
    )
    parser.add_argument(
        "--round-permutations", type=int, default=100, help="of a federated round"
    )
    args = parser.parse_args()
    # One-hot columns of Covertype; and noise is what the tables are about.
    warnings.simplefilter("ignore", ConstantColumnsWarning)
    warnings.simplefilter("ignore", NoiseExceedsSignalWarning)
    for part in args.parts:
        PARTS[part](args)


if __name__ == "__main__":
    main()
