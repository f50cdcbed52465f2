"""
Privacy against utility, for every private method
=================================================

By epsilon at delta = 1e-5, medians over draws of the noise, on the same problems:

rows
    AUROC of low values for wrong labels, which are a fifth of those of 1,000 rows of
    Adult, with 500 public validation points. The value of a row is shown to its owner
    (`TKNNShapleyValuer`, `InRunShapleyValuer`, `LayeredShapleyValuer` for one row), or
    every row is released by its owner, who trusts no server
    (`GradientSemivalueValuer`).
parties
    Spearman's correlation of the values of six parties of 500 rows with those without
    noise; the guarantee is for a row of a party. Parties differ in the fraction of
    their targets that are noise, and in their features, which is what `PriArTaScorer`
    scores.

    python examples/reproductions/private_methods.py --data FOLDER --save private.json

FOLDER holds adult.npz; without it Adult comes from OpenML. The picture is drawn from
the file by doc/images/draw.py. "none" is epsilon = infinity: values without noise;
"free" is the AUROC of the baseline, which uses public points and the row itself.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from layered_private import problem
from other_libraries_processes import print_table, stamp
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from skvalue import (
    BayesianSurpriseScorer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InRunShapleyValuer,
    LayeredShapleyValuer,
    PredictiveValueScorer,
    PriArTaScorer,
    TKNNShapleyValuer,
)
from skvalue.collaborative import BayesianLinear, GramRelease
from skvalue.datasets import flip_labels
from skvalue.inspection import noisy_label_auc
from skvalue.valuers import public_baseline

DELTA = 1e-5
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RADIUS = 0.3  # of the balls of TKNN, in cosine distances
N_ROWS = 1000
N_POINTS = 500
N_PARTIES = 6
WEIGHTS = np.array([0.5, -0.3])
SD = 0.16


# Rows ---------------------------------------------------------------------------------


def values_of(valuer, rows):
    X, y, points = rows
    return valuer.fit(X, y, **points).values_


def by_tknn(rows, epsilons):
    for epsilon in epsilons:
        yield values_of(TKNNShapleyValuer(RADIUS, epsilon=epsilon, delta=DELTA), rows)


def by_in_run(rows, epsilons):
    for epsilon in epsilons:
        clip = 1.0 if epsilon is None else "auto"
        yield values_of(
            InRunShapleyValuer(epsilon=epsilon, delta=DELTA, clip=clip), rows
        )


def by_gradients(rows, epsilons):
    for epsilon in epsilons:
        valuer = GradientSemivalueValuer(
            epsilon=epsilon, delta=DELTA, n_permutations=30
        )
        yield values_of(valuer, rows)


def by_layered(rows, epsilons):
    """The value that each row would get if it were the one that is queried."""
    X, y, points = rows
    game = {"l2": 1.0, "n_layers": 3, "fit_intercept": False, "random_state": 0}
    exact = values_of(LayeredShapleyValuer(**game, max_evaluations=20 * len(X)), rows)
    rng = np.random.default_rng()
    for epsilon in epsilons:
        if epsilon is None:
            yield exact
            continue
        private = LayeredShapleyValuer(**game, epsilon=epsilon, delta=DELTA).fit(
            X, y, **points
        )
        noisy = exact + rng.laplace(0, private.noise_scale_, len(X))
        start = private.prediction()
        yield start + private.shrinkage_ * (noisy - start)


OF_ROWS = {
    "TKNN": by_tknn,
    "in-run": by_in_run,
    "Layered, one row": by_layered,
    "gradient semivalues, local": by_gradients,
}


# Parties ------------------------------------------------------------------------------


def draw_party(i, rng, n=500):
    """Rows whose targets are noise in a fraction of i / 6, and whose features are moved
    by i."""
    X = 0.25 * rng.normal(size=(n, 2)) + 0.03 * np.array([i, -i])
    y = X @ WEIGHTS + SD * rng.normal(size=n)
    wrong = rng.random(n) < i / N_PARTIES
    y[wrong] = rng.uniform(-0.8, 0.8, wrong.sum())
    return X, np.clip(y, -1, 1)


def by_statistics(kind):
    def values(parties, points, epsilons):
        for epsilon in epsilons:
            releases = [
                GramRelease(epsilon, delta=DELTA).fit(*rows).release_
                for rows in parties
            ]
            scorer = kind(BayesianLinear(), random_state=0)
            given = points if kind is PredictiveValueScorer else {}
            yield scorer.fit(releases, **given).values_

    return values


def by_steps(kind):
    def values(parties, points, epsilons):
        X, y = (np.concatenate(parts) for parts in zip(*parties))
        owners = np.repeat(np.arange(len(parties)), len(parties[0][1]))
        for epsilon in epsilons:
            valuer = kind(
                epsilon=epsilon, delta=DELTA, unit="example", clip=1.0, random_state=0
            )
            yield valuer.fit(X, y, groups=owners, **points).values_

    return values


def by_distance(parties, points, epsilons):
    for epsilon in epsilons:
        scorer = PriArTaScorer(epsilon=epsilon, delta=DELTA, max_norm=1.0).fit(
            points["X_val"]
        )
        yield scorer.transform([X for X, _ in parties])[:, 0]


OF_PARTIES = {
    "PriArTa": by_distance,
    "surprise": by_statistics(BayesianSurpriseScorer),
    "predictive": by_statistics(PredictiveValueScorer),
    "gradient semivalues": by_steps(GradientSemivalueValuer),
    "federated": by_steps(FederatedSemivalueValuer),
}


# Tables -------------------------------------------------------------------------------


def print_medians(title, curves, none):
    print(f"{title}\n")
    header = [
        "method",
        *(f"{epsilon:g}" for epsilon in EPSILONS),
        *(["none"] if none else []),
    ]
    print_table(
        header, [[n, *(f"{c:.2f}" for c in cells)] for n, cells in curves.items()]
    )


def measure_rows(args):
    """The AUROC of the baseline, and those of each method, the last without noise."""
    X, y, points = problem("adult", args.data, args.rows, N_POINTS)
    y, wrong = flip_labels(y, 0.2, random_state=0)
    baseline = public_baseline(X, y, **points, radius=RADIUS)
    found = {}
    for name in args.methods or OF_ROWS:
        if name in OF_ROWS:
            draws = [
                list(OF_ROWS[name]((X, y, points), EPSILONS)) for _ in range(args.draws)
            ]
            (exact,) = OF_ROWS[name]((X, y, points), [None])
            scores = [
                [noisy_label_auc(values, wrong) for values in draw] for draw in draws
            ]
            medians = np.median(scores, axis=0).tolist()
            found[name] = [*medians, float(noisy_label_auc(exact, wrong))]
    return float(noisy_label_auc(baseline, wrong)), found


def measure_parties(args):
    """Rank correlations of each method with its values without noise."""
    rng = np.random.default_rng(0)
    found = {}
    parties = [draw_party(i, rng) for i in range(N_PARTIES)]
    points = dict(zip(("X_val", "y_val"), draw_party(0, rng)))
    for name in args.methods or OF_PARTIES:
        if name in OF_PARTIES:
            (exact,) = OF_PARTIES[name](parties, points, [None])
            draws = [
                list(OF_PARTIES[name](parties, points, EPSILONS))
                for _ in range(args.draws)
            ]
            scores = [
                [spearmanr(values, exact)[0] for values in draw] for draw in draws
            ]
            found[name] = np.median(scores, axis=0).tolist()
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="folder of npz files; default: OpenML"
    )
    parser.add_argument("--draws", type=int, default=5, help="draws of the noise")
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--methods", nargs="+", choices=[*OF_ROWS, *OF_PARTIES])
    parser.add_argument(
        "--save", metavar="FILE.json", help="add what is measured to this file"
    )
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found = {"rows": {}, "parties": {}}
    if args.save and Path(args.save).exists():
        found = json.loads(Path(args.save).read_text())
    found |= {"about": stamp("skvalue", "numpy", "scikit-learn"), "epsilons": EPSILONS}
    print(found["about"] + "\n")
    with threadpool_limits(1):
        found["free"], rows = measure_rows(args)
        title = f"Rows: AUROC of wrong labels by epsilon; free: {found['free']:.2f}"
        print_medians(title, rows, True)
        parties = measure_parties(args)
        print_medians(
            "Parties: rank correlation with values without noise", parties, False
        )
    found["rows"] |= rows
    found["parties"] |= parties
    if args.save:
        Path(args.save).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
