"""
Which labels are wrong: rankings, lists and suggestions
=======================================================

Labels of up to twelve data sets are corrupted at rates of 2, 10 and 30 %, in three
ways: "symmetric", uniform; "class", those of each class to the class that it is
confused with most, at 1.5 and 0.5 times the rate; "hard", at rows that a model of the
clean labels is unsure of. This script prints how well `LabelErrorDetector` ranks and
names the wrong ones:

    python examples/reproductions/label_errors.py --data FOLDER --seeds 0 1 2

- "ranking": average precision, and precision among the lowest values, as many as labels
  are wrong, next to `KNNShapleyValuer`, `DataOOBValuer` and cleanlab, which gets the
  same probabilities. cleanlab runs in the interpreter that ``--cleanlab`` names, and is
  left out without it. `DataOOBValuer` runs for the first seed, symmetric and class
  noise, ten classes at 10 % only.
- "rules": the list after 50 verdicts, which are taken from the truth, at a false
  discovery rate of 0.1, with and without ``confidence=0.95``. "list" is what the curve
  names, verdicts on single rows aside; "all" is `label_error_`. On "housing" (prices
  above the median), "diabetes" and "wine" of ``--sets`` no rule was chosen.
- "suggestions": the fraction of right suggestions among the wrong rows whose suggestion
  differs.
- "real": human verdicts on MNIST and CIFAR-10 test labels (cleanlab/label-errors).
- "opendataval": F1 of the lower of two clusters of values (k-means) for 1,000 rows with
  uniform noise, as OpenDataVal does, on 2dplanes and on any set that ``--opendataval``
  names.

What should be seen: the mean false discovery proportion of lists that name rows is
below 0.1, and with confidence few lists exceed it; the default scores rank better than
the other three.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from other_libraries_processes import print_table, stamp
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from skvalue import DataOOBValuer, KNNShapleyValuer, LabelErrorDetector

SETS = (
    "phoneme", "cpu", "2dplanes", "wind", "adult", "pima", "breast", "covertype", "agnews",
    "mnist", "digits", "cifar10",
)  # fmt: skip
FRESH = ("housing", "diabetes", "wine")
RATES = (0.02, 0.1, 0.3)
KINDS = ("symmetric", "class", "hard")
IN_MEMORY = {
    "breast": load_breast_cancer, "digits": load_digits, "wine": load_wine,
    "diabetes": load_diabetes,
}  # fmt: skip
FILES = {"agnews": "agnews_minilm", "housing": "california_housing"}
CLEANLAB = """
import sys
import cleanlab
import numpy as np
from cleanlab.rank import get_label_quality_scores
data = np.load(sys.argv[1])
found = {}
for key in (name[2:] for name in data.files if name.startswith("p_")):
    P, y = data["p_" + key].astype(float), data["y_" + key]
    P = np.maximum(P, 1e-12) / np.maximum(P, 1e-12).sum(1, keepdims=True)
    for method in ("self_confidence", "normalized_margin"):
        scores = get_label_quality_scores(y, P, method=method, adjust_pred_probs=True)
        found[f"{method}_{key}"] = scores
print(cleanlab.__version__)
np.savez(sys.argv[2], **found)
"""


# Data ---------------------------------------------------------------------------------


def load_set(name, folder):
    """Numbers (categories one-hot, images and texts as 50 components), and codes of the
    labels."""
    if name in IN_MEMORY:
        X, y = IN_MEMORY[name](return_X_y=True)
    else:
        data = np.load(Path(folder) / f"{FILES.get(name, name)}.npz")
        X, y = data["X"], data["y"]
        if name == "adult":
            kinds = data["is_cat"]
            levels = [X[:, [j]] == np.unique(X[:, j]) for j in np.flatnonzero(kinds)]
            X = np.hstack([X[:, ~kinds], *levels])
        elif name == "cifar10":
            X = X.reshape(-1, 8, 4, 8, 4, 3).mean((2, 4))
        X = X.reshape(len(X), -1).astype(np.float64)
        if name in ("mnist", "cifar10", "agnews"):
            X = PCA(50, random_state=0).fit_transform(X)
    if name in ("housing", "diabetes"):
        y = y > np.median(y)
    return X.astype(np.float64), np.unique(y, return_inverse=True)[1]


def draw_rows(X, y, n, rng):
    """At most n rows, of the classes that have ten among them."""
    rows = rng.permutation(len(y))[:n]
    rows = rows[np.isin(y[rows], np.flatnonzero(np.bincount(y[rows]) >= 10))]
    return X[rows], np.unique(y[rows], return_inverse=True)[1]


def add_noise(y, kind, rate, clean, rng):
    """Labels of which some are wrong; ``clean``: probabilities by a model of the clean
    labels."""
    n, n_classes = clean.shape
    count, noisy, other = round(rate * n), y.copy(), clean + 1e-6
    other[np.arange(n), y] = 0
    if kind == "symmetric":
        bad = rng.choice(n, count, replace=False)
        noisy[bad] = (y[bad] + rng.integers(1, n_classes, count)) % n_classes
    elif kind == "class":
        partner = np.array([other[y == c].mean(0).argmax() for c in range(n_classes)])
        odd = np.arange(n_classes) % 2 == (rng.random() < 0.5)
        share, sizes = np.where(odd, 1.5, 0.5), np.bincount(y, minlength=n_classes)
        share = np.minimum(share * rate * n / (sizes @ share), 0.45)
        bad = np.concatenate([
            rng.choice(np.flatnonzero(y == c), round(share[c] * sizes[c]), replace=False)
            for c in range(n_classes)
        ])  # fmt: skip
        noisy[bad] = partner[y[bad]]
    else:
        weight = other.sum(1) + 0.01
        bad = rng.choice(n, count, replace=False, p=weight / weight.sum())
        noisy[bad] = [rng.choice(n_classes, p=other[i] / other[i].sum()) for i in bad]
    return noisy


def precision_at_number(scores, wrong):
    """Fraction of wrong rows among as many lowest scores as there are wrong rows."""
    return wrong[np.argsort(scores, kind="stable")[: wrong.sum()]].mean()


# Runs ---------------------------------------------------------------------------------


def runs_of(name, folder, seed, n, rates, kinds):
    """Data of each run on a set: key, X, true labels, given labels."""
    X0, y0 = load_set(name, folder)
    X, y = draw_rows(X0, y0, n, np.random.default_rng([seed, 7]))
    clean = LabelErrorDetector(random_state=0).fit(X, y).label_scores_
    for kind in kinds:
        for rate in rates:
            place = (*SETS, *FRESH).index(name)
            rng = np.random.default_rng(
                [place, KINDS.index(kind), int(rate * 100), seed]
            )
            yield (name, kind, rate, seed), X, y, add_noise(y, kind, rate, clean, rng)


def list_quality(detector, y, given, confidence):
    """Quality of the list after the verdicts: false discovery proportions, power, error
    rate."""
    wrong = y != given
    rows = detector.to_review_
    detector.set_params(confidence=confidence).review(rows, wrong[rows])
    by_curve = np.zeros(len(y), dtype=bool)
    listed = detector.report_.row
    by_curve[listed[detector.values_[listed] <= detector.threshold_]] = True
    cells = []
    for named in (by_curve, detector.label_error_):
        false = (named & ~wrong).sum() / max(named.sum(), 1)
        cells += [false, (named & wrong).sum() / max(wrong.sum(), 1), named.sum()]
    rate, truth = detector.error_rate_, wrong[listed].sum() / len(y)
    inside = rate.low - 1e-12 <= truth <= rate.high + 1e-12
    return [*cells, rate.rate - wrong.mean(), inside]


def one_run(key, X, y, given, tables, with_trees):
    """All that is measured in a run."""
    name, kind, rate, seed = key
    wrong, found = y != given, {}
    start = time.process_time()
    detector = LabelErrorDetector(random_state=seed).fit(X, given)
    found["seconds"] = time.process_time() - start
    scores = {"LabelErrorDetector": detector.values_}
    if "ranking" in tables:
        Z = StandardScaler().fit_transform(X)
        scores["KNNShapleyValuer"] = KNNShapleyValuer(10).fit(Z, given).values_
        many = name in ("digits", "cifar10", "mnist")
        if with_trees and kind != "hard" and (rate == 0.1 or not many):
            trees = DataOOBValuer(n_estimators=100, random_state=seed)
            scores["DataOOBValuer"] = trees.fit(X, given).values_
        found["pred_probs"], found["given"] = (
            detector.label_scores_.astype(np.float32),
            given,
        )
    found["scores"], found["wrong"] = scores, wrong
    different = wrong & (detector.suggested_label_ != given)
    if y.max() > 1 and different.any():
        found["suggestion"] = (detector.suggested_label_ == y)[different].mean()
    in_conflict = np.concatenate([[], *detector.conflicts_]).astype(int)
    found["conflicts"] = (
        len(in_conflict) / len(y),
        wrong[in_conflict].sum() / wrong.sum(),
    )
    for confidence in (None, 0.95) if "rules" in tables else ():
        found[confidence] = list_quality(detector, y, given, confidence)
    return found


# Tables -------------------------------------------------------------------------------


def add_cleanlab(runs, python):
    """Add cleanlab's scores of the same probabilities, by another interpreter; its
    version."""
    with tempfile.TemporaryDirectory() as folder:
        arrays, files = {}, [str(Path(folder) / name) for name in ("in.npz", "out.npz")]
        for number, run in enumerate(runs.values()):
            arrays |= {f"p_{number}": run["pred_probs"], f"y_{number}": run["given"]}
        np.savez(files[0], **arrays)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [python, "-c", CLEANLAB, *files]
        done = subprocess.run(
            command, check=True, env=environment, stdout=subprocess.PIPE
        )
        answers = np.load(files[1])
        for number, run in enumerate(runs.values()):
            for method in ("self_confidence", "normalized_margin"):
                run["scores"][f"cleanlab {method}"] = answers[f"{method}_{number}"]
    return done.stdout.decode().strip()


def print_ranking(runs, title):
    """Means over the runs that have each score, and over those that have all."""
    names = {name: None for run in runs.values() for name in run["scores"]}
    complete = [run for run in runs.values() if len(run["scores"]) == len(names)]
    for what, chosen in ((title, list(runs.values())), ("with all scores", complete)):
        print(
            f"\n{what}: {len(chosen)} runs; average precision, precision at the true number, AUROC"
        )
        for name in names if chosen else ():
            if all(name in run["scores"] for run in chosen):
                cells = [
                    (average_precision_score(run["wrong"], -run["scores"][name]),
                     precision_at_number(run["scores"][name], run["wrong"]),
                     roc_auc_score(run["wrong"], -run["scores"][name]))
                    for run in chosen
                ]  # fmt: skip
                print(f"{name:28}", *(f"{cell:.3f}" for cell in np.mean(cells, 0)))


def print_rules(runs, title):
    """False discovery proportions, power and the error rate after the verdicts."""
    for confidence in (None, 0.95):
        table = np.array([run[confidence] for run in runs.values()], dtype=float)
        print(f"\n{title}, {len(table)} runs, fdr 0.1, confidence {confidence}")
        for label, (false, power, named) in (("list", (0, 1, 2)), ("all", (3, 4, 5))):
            some = table[:, named] > 0
            above = (table[:, false] > 0.1).mean()
            mean = table[some, false].mean() if some.any() else 0.0
            print(
                f"{label:5} proportion {mean:.3f} over the {some.mean():.2f} of runs naming any, "
                f"{table[:, false].mean():.3f} over all; power {table[:, power].mean():.3f}; above "
                f"0.1 in {above:.3f} of runs"
            )
        if confidence is None:
            error = table[:, 6]
            print(f"error rate less truth: mean {error.mean():+.3f}, r.m.s. "
                  f"{np.sqrt((error**2).mean()):.3f}; interval holds that of the list in "
                  f"{table[:, 7].mean():.3f} of runs")  # fmt: skip
            for name in dict.fromkeys(key[0] for key in runs):
                mine = table[[key[0] == name for key in runs]]
                some = mine[:, 2] > 0
                mean = mine[some, 0].mean() if some.any() else 0.0
                print(
                    f"  {name:10} {mean:.3f} of {some.mean():.2f}, power {mine[:, 1].mean():.3f}"
                )


def print_suggestions(runs):
    found = [run["suggestion"] for run in runs.values() if "suggestion" in run]
    if found:
        print(f"\nsuggestion right for {np.mean(found):.3f} of wrong rows whose suggestion differs "
              f"({len(found)} runs with more than two classes)")  # fmt: skip
    conflicts = np.mean([run["conflicts"] for run in runs.values()], axis=0)
    print(f"conflicts of duplicates hold {conflicts[0]:.4f} of the rows and {conflicts[1]:.4f} of "
          f"the wrong ones; median CPU seconds of fit "
          f"{np.median([run['seconds'] for run in runs.values()]):.2f}")  # fmt: skip


def print_real(folder, python):
    """Human verdicts: ranking of the candidates that confident learning has chosen."""
    for name in ("mnist", "cifar10"):
        data = np.load(Path(folder) / f"label_errors_{name}.npz")
        P = data["pred_probs"].astype(float)
        P, y, rows = P / P.sum(1, keepdims=True), data["y"], data["candidates"]
        error = data["votes"][:, 0] < 3
        detector = LabelErrorDetector(random_state=0).fit(None, y, pred_probs=P)
        runs = {
            0: {"pred_probs": P, "given": y, "scores": {"detector": detector.values_}}
        }
        if python:
            add_cleanlab(runs, python)
        print(
            f"\n{name}: {error.sum()} errors among {len(rows)} candidates; AUROC, average precision"
        )
        for method, scores in runs[0]["scores"].items():
            cells = (
                roc_auc_score(error, -scores[rows]),
                average_precision_score(error, -scores[rows]),
            )
            print(f"{method:28}", *(f"{cell:.3f}" for cell in cells))


def f1_of_low(values, wrong):
    """F1 of the lower of two clusters of the values for the wrong rows."""
    v = values[:, None]
    means = KMeans(2, n_init=5, random_state=0).fit(v)
    low = means.labels_ == means.cluster_centers_.argmin()
    return 2 * (low & wrong).sum() / (low.sum() + wrong.sum())


def opendataval_runs(X0, y0, rate, draws):
    """Scores of 1,000 rows with uniform noise, by draw."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(y0))[:1000]
        X, y = X0[rows], np.unique(y0[rows], return_inverse=True)[1]
        uniform = np.full((len(y), y.max() + 1), 1.0 / (y.max() + 1))
        given = add_noise(y, "symmetric", rate, uniform, rng)
        Z = StandardScaler().fit_transform(X)
        trees = DataOOBValuer(n_estimators=300, random_state=seed)
        detector = LabelErrorDetector(random_state=seed).fit(X, given)
        scores = {
            "LabelErrorDetector": detector.values_,
            "KNNShapleyValuer": KNNShapleyValuer(10).fit(Z, given).values_,
            "DataOOBValuer": trees.fit(X, given).values_,
        }
        probabilities = detector.label_scores_.astype(np.float32)
        yield {
            "scores": scores, "pred_probs": probabilities, "given": given, "wrong": y != given,
        }  # fmt: skip


def print_opendataval(folder, names, draws, python):
    """F1 of the lower of two clusters: uniform noise, 1,000 rows."""
    found, about = {}, ""
    for name in names:
        X0, y0 = load_set(name, folder)
        for rate in (0.1, 0.2):
            runs = dict(enumerate(opendataval_runs(X0, y0, rate, draws)))
            if python:
                about = f" cleanlab {add_cleanlab(runs, python)}, of the detector's probabilities."
            for run in runs.values():
                for method, values in run["scores"].items():
                    f1 = f1_of_low(values, run["wrong"])
                    found.setdefault(method, {}).setdefault(
                        f"{name}, {rate:g}", []
                    ).append(f1)
    print(
        f"\nOpenDataVal's protocol: F1, medians of {draws} draws. {stamp('skvalue')}{about}\n"
    )
    cases = list(next(iter(found.values())))
    print_table(
        ["method", *cases, "mean"],
        [
            [method, *(f"{f1:.3f}" for f1 in [*medians, np.mean(medians)])]
            for method, of in found.items()
            for medians in [[np.median(f1) for f1 in of.values()]]
        ],
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of the data sets"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--sets", nargs="+", default=list(SETS), choices=[*SETS, *FRESH]
    )
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument(
        "--tables", nargs="+", default=["ranking", "rules", "real", "opendataval"]
    )
    parser.add_argument("--opendataval", nargs="+", default=["2dplanes"])
    parser.add_argument("--draws", type=int, default=5, help="draws of --opendataval")
    parser.add_argument("--cleanlab", help="Python interpreter that has cleanlab")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = {}
    if {"ranking", "rules"} & set(args.tables):
        for seed in args.seeds:
            for name in args.sets:
                shape = args.rows, args.rates, args.kinds
                for key, *data in runs_of(name, args.data, seed, *shape):
                    runs[key] = one_run(key, *data, args.tables, seed == args.seeds[0])
                print(f"{name} seed {seed} done", file=sys.stderr, flush=True)
        print_suggestions(runs)
    if "ranking" in args.tables:
        if args.cleanlab:
            add_cleanlab(runs, args.cleanlab)
        print_ranking(runs, f"seeds {args.seeds}")
    if "rules" in args.tables:
        print_rules(runs, f"seeds {args.seeds}")
    if "real" in args.tables:
        print_real(args.data, args.cleanlab)
    if "opendataval" in args.tables:
        print_opendataval(args.data, args.opendataval, args.draws, args.cleanlab)


if __name__ == "__main__":
    main()
