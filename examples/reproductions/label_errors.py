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
from typing import NamedTuple

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
    "phoneme",
    "cpu",
    "2dplanes",
    "wind",
    "adult",
    "pima",
    "breast",
    "covertype",
    "agnews",
    "mnist",
    "digits",
    "cifar10",
)
FRESH = ("housing", "diabetes", "wine")
RATES = (0.02, 0.1, 0.3)
KINDS = ("symmetric", "class", "hard")
IN_MEMORY = {
    "breast": load_breast_cancer,
    "digits": load_digits,
    "wine": load_wine,
    "diabetes": load_diabetes,
}
FILES = {"agnews": "agnews_minilm", "housing": "california_housing"}

# Run by the interpreter that has cleanlab.
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
    """Numbers, and codes of the labels.

    Categories are one-hot, images and texts are 50 components.
    """
    if name in IN_MEMORY:
        X, y = IN_MEMORY[name](return_X_y=True)
    else:
        X, y = load_file(name, folder)
    if name in ("housing", "diabetes"):
        y = y > np.median(y)
    return X.astype(np.float64), np.unique(y, return_inverse=True)[1]


def load_file(name, folder):
    data = np.load(Path(folder) / f"{FILES.get(name, name)}.npz")
    X = data["X"]
    if name == "adult":
        is_category = data["is_cat"]
        blocks = [X[:, ~is_category]]
        for j in np.flatnonzero(is_category):
            blocks.append(X[:, [j]] == np.unique(X[:, j]))
        X = np.hstack(blocks)
    elif name == "cifar10":
        # Means over squares of four by four pixels.
        X = X.reshape(-1, 8, 4, 8, 4, 3).mean((2, 4))
    X = X.reshape(len(X), -1).astype(np.float64)
    if name in ("mnist", "cifar10", "agnews"):
        X = PCA(50, random_state=0).fit_transform(X)
    return X, data["y"]


def draw_rows(X, y, n, rng):
    """At most n rows, of the classes that have ten among them."""
    rows = rng.permutation(len(y))[:n]
    frequent = np.flatnonzero(np.bincount(y[rows]) >= 10)
    rows = rows[np.isin(y[rows], frequent)]
    return X[rows], np.unique(y[rows], return_inverse=True)[1]


def add_noise(y, kind, rate, clean, rng):
    """Labels of which some are wrong.

    `clean` has the probabilities of the labels by a model of the clean labels.
    """
    n, n_classes = clean.shape
    n_wrong = round(rate * n)
    y_noisy = y.copy()
    if kind == "symmetric":
        rows = rng.choice(n, n_wrong, replace=False)
        y_noisy[rows] = (y[rows] + rng.integers(1, n_classes, n_wrong)) % n_classes
        return y_noisy

    # Probabilities of the other labels.
    others = clean + 1e-6
    others[np.arange(n), y] = 0
    if kind == "class":
        partners = [others[y == code].mean(0).argmax() for code in range(n_classes)]
        rows = draw_rows_of_classes(y, rate, n_classes, rng)
        y_noisy[rows] = np.array(partners)[y[rows]]
    else:
        weights = others.sum(1) + 0.01
        rows = rng.choice(n, n_wrong, replace=False, p=weights / weights.sum())
        for row in rows:
            p = others[row] / others[row].sum()
            y_noisy[row] = rng.choice(n_classes, p=p)
    return y_noisy


def draw_rows_of_classes(y, rate, n_classes, rng):
    """Rows to corrupt, at 1.5 and 0.5 times the rate in every other class."""
    is_frequent = np.arange(n_classes) % 2 == (rng.random() < 0.5)
    rates = np.where(is_frequent, 1.5, 0.5)
    sizes = np.bincount(y, minlength=n_classes)
    rates = np.minimum(rates * rate * len(y) / (sizes @ rates), 0.45)
    rows = []
    for code in range(n_classes):
        n_rows = round(rates[code] * sizes[code])
        rows.append(rng.choice(np.flatnonzero(y == code), n_rows, replace=False))
    return np.concatenate(rows)


def precision_at_number(scores, wrong):
    """Fraction of wrong rows among as many lowest scores as there are wrong rows."""
    return wrong[np.argsort(scores, kind="stable")[: wrong.sum()]].mean()


# Runs ---------------------------------------------------------------------------------


def runs_of(name, folder, seed, n, rates, kinds):
    """Data of each run on a set: key, X, true labels, noisy labels."""
    X, y = load_set(name, folder)
    X, y = draw_rows(X, y, n, np.random.default_rng([seed, 7]))
    clean = LabelErrorDetector(random_state=0).fit(X, y).label_scores_
    number = (*SETS, *FRESH).index(name)
    for kind in kinds:
        for rate in rates:
            entropy = [number, KINDS.index(kind), int(rate * 100), seed]
            y_noisy = add_noise(y, kind, rate, clean, np.random.default_rng(entropy))
            yield (name, kind, rate, seed), X, y, y_noisy


class Named(NamedTuple):
    """Quality of named rows."""

    false_fraction: float
    power: float
    n_rows: int


class ListQuality(NamedTuple):
    """Quality of a list after the verdicts: of the curve's, and with the verdicts'."""

    by_curve: Named
    by_all: Named
    error: float
    is_inside: bool


def name_quality(is_named, is_wrong):
    return Named(
        false_fraction=(is_named & ~is_wrong).sum() / max(is_named.sum(), 1),
        power=(is_named & is_wrong).sum() / max(is_wrong.sum(), 1),
        n_rows=is_named.sum(),
    )


def list_quality(detector, y, y_noisy, confidence):
    """Quality of the list after the verdicts."""
    is_wrong = y != y_noisy
    rows = detector.to_review_
    detector.set_params(confidence=confidence).review(rows, is_wrong[rows])
    listed = detector.report_.row
    is_named_by_curve = np.zeros(len(y), dtype=bool)
    below = detector.values_[listed] <= detector.threshold_
    is_named_by_curve[listed[below]] = True
    rate = detector.error_rate_
    true_rate = is_wrong[listed].sum() / len(y)
    return ListQuality(
        by_curve=name_quality(is_named_by_curve, is_wrong),
        by_all=name_quality(detector.label_error_, is_wrong),
        error=rate.rate - is_wrong.mean(),
        is_inside=rate.low - 1e-12 <= true_rate <= rate.high + 1e-12,
    )


def one_run(key, X, y, y_noisy, tables, with_trees):
    """All that is measured in a run."""
    name, kind, rate, seed = key
    is_wrong = y != y_noisy
    start = time.process_time()
    detector = LabelErrorDetector(random_state=seed).fit(X, y_noisy)
    seconds = time.process_time() - start
    scores = {"LabelErrorDetector": detector.values_}
    run = {"seconds": seconds, "scores": scores, "wrong": is_wrong}
    if "ranking" in tables:
        X_scaled = StandardScaler().fit_transform(X)
        valuer = KNNShapleyValuer(10).fit(X_scaled, y_noisy)
        scores["KNNShapleyValuer"] = valuer.values_
        has_ten_classes = name in ("digits", "cifar10", "mnist")
        if with_trees and kind != "hard" and (rate == 0.1 or not has_ten_classes):
            trees = DataOOBValuer(n_estimators=100, random_state=seed)
            scores["DataOOBValuer"] = trees.fit(X, y_noisy).values_
        run["pred_probs"] = detector.label_scores_.astype(np.float32)
        run["given"] = y_noisy

    is_different = is_wrong & (detector.suggested_label_ != y_noisy)
    if y.max() > 1 and is_different.any():
        is_right = detector.suggested_label_ == y
        run["suggestion"] = is_right[is_different].mean()
    in_conflict = np.concatenate([[], *detector.conflicts_]).astype(int)
    run["conflicts"] = (
        len(in_conflict) / len(y),
        is_wrong[in_conflict].sum() / is_wrong.sum(),
    )
    if "rules" in tables:
        for confidence in (None, 0.95):
            run[confidence] = list_quality(detector, y, y_noisy, confidence)
    return run


# Tables -------------------------------------------------------------------------------


def add_cleanlab(runs, python):
    """Add cleanlab's scores of the same probabilities; returns its version.

    They are computed by another interpreter.
    """
    with tempfile.TemporaryDirectory() as folder:
        inputs = str(Path(folder) / "in.npz")
        outputs = str(Path(folder) / "out.npz")
        arrays = {}
        for number, run in enumerate(runs.values()):
            arrays[f"p_{number}"] = run["pred_probs"]
            arrays[f"y_{number}"] = run["given"]
        np.savez(inputs, **arrays)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        process = subprocess.run(
            [python, "-c", CLEANLAB, inputs, outputs],
            check=True,
            env=environment,
            stdout=subprocess.PIPE,
        )
        scores = np.load(outputs)
        for number, run in enumerate(runs.values()):
            for method in ("self_confidence", "normalized_margin"):
                run["scores"][f"cleanlab {method}"] = scores[f"{method}_{number}"]
    return process.stdout.decode().strip()


def print_ranking(runs, title):
    """Means over the runs that have each score, and over those that have all."""
    names = {name: None for run in runs.values() for name in run["scores"]}
    complete = [run for run in runs.values() if len(run["scores"]) == len(names)]
    print_ranking_of(list(runs.values()), title, names)
    print_ranking_of(complete, "with all scores", names)


def print_ranking_of(runs, title, names):
    print(
        f"\n{title}: {len(runs)} runs; average precision, precision at the true "
        "number, AUROC"
    )
    for name in names:
        if not runs or any(name not in run["scores"] for run in runs):
            continue
        measures = []
        for run in runs:
            scores = run["scores"][name]
            measures.append(
                (
                    average_precision_score(run["wrong"], -scores),
                    precision_at_number(scores, run["wrong"]),
                    roc_auc_score(run["wrong"], -scores),
                )
            )
        print(f"{name:28}", *(f"{mean:.3f}" for mean in np.mean(measures, axis=0)))


def mean_of_naming(qualities):
    """Mean false fraction of the runs that name rows, and the fraction of such runs."""
    fractions = [named.false_fraction for named in qualities if named.n_rows > 0]
    mean = np.mean(fractions) if fractions else 0.0
    return mean, len(fractions) / len(qualities)


def print_rules(runs, title):
    """False discovery proportions, power and the error rate after the verdicts."""
    for confidence in (None, 0.95):
        lists = [run[confidence] for run in runs.values()]
        print(f"\n{title}, {len(lists)} runs, fdr 0.1, confidence {confidence}")
        print_named("list", [quality.by_curve for quality in lists])
        print_named("all", [quality.by_all for quality in lists])
        if confidence is None:
            print_error_rate(lists)
            print_sets(runs)


def print_named(label, qualities):
    mean, n_naming = mean_of_naming(qualities)
    fractions = np.array([named.false_fraction for named in qualities])
    power = np.mean([named.power for named in qualities])
    print(
        f"{label:5} proportion {mean:.3f} over the {n_naming:.2f} of runs naming any, "
        f"{fractions.mean():.3f} over all; power {power:.3f}; above 0.1 in "
        f"{(fractions > 0.1).mean():.3f} of runs"
    )


def print_error_rate(lists):
    errors = np.array([quality.error for quality in lists])
    n_inside = np.mean([quality.is_inside for quality in lists])
    print(
        f"error rate less truth: mean {errors.mean():+.3f}, r.m.s. "
        f"{np.sqrt((errors**2).mean()):.3f}; interval holds that of the list in "
        f"{n_inside:.3f} of runs"
    )


def print_sets(runs):
    """A line for each set, of the rows that the curve names."""
    for name in dict.fromkeys(key[0] for key in runs):
        qualities = [run[None].by_curve for key, run in runs.items() if key[0] == name]
        mean, n_naming = mean_of_naming(qualities)
        power = np.mean([named.power for named in qualities])
        print(f"  {name:10} {mean:.3f} of {n_naming:.2f}, power {power:.3f}")


def print_suggestions(runs):
    fractions = [run["suggestion"] for run in runs.values() if "suggestion" in run]
    if fractions:
        print(
            f"\nsuggestion right for {np.mean(fractions):.3f} of wrong rows whose "
            f"suggestion differs ({len(fractions)} runs with more than two classes)"
        )
    conflicts = [run["conflicts"] for run in runs.values()]
    of_all, of_wrong = np.mean(conflicts, axis=0)
    seconds = np.median([run["seconds"] for run in runs.values()])
    print(
        f"conflicts of duplicates hold {of_all:.4f} of the rows and {of_wrong:.4f} of "
        f"the wrong ones; median CPU seconds of fit {seconds:.2f}"
    )


def print_real(folder, python):
    """Human verdicts: ranking of the candidates that confident learning has chosen."""
    for name in ("mnist", "cifar10"):
        data = np.load(Path(folder) / f"label_errors_{name}.npz")
        y = data["y"]
        rows = data["candidates"]
        is_error = data["votes"][:, 0] < 3
        probabilities = data["pred_probs"].astype(float)
        probabilities = probabilities / probabilities.sum(1, keepdims=True)
        detector = LabelErrorDetector(random_state=0)
        detector.fit(None, y, pred_probs=probabilities)
        scores = {"detector": detector.values_}
        run = {"pred_probs": probabilities, "given": y, "scores": scores}
        if python:
            add_cleanlab({0: run}, python)
        print(
            f"\n{name}: {is_error.sum()} errors among {len(rows)} candidates; AUROC, "
            "average precision"
        )
        for method, scores_of_method in scores.items():
            auc = roc_auc_score(is_error, -scores_of_method[rows])
            precision = average_precision_score(is_error, -scores_of_method[rows])
            print(f"{method:28} {auc:.3f} {precision:.3f}")


def f1_of_low(values, wrong):
    """F1 of the lower of two clusters of the values for the wrong rows."""
    values = values[:, None]
    clusters = KMeans(2, n_init=5, random_state=0).fit(values)
    is_low = clusters.labels_ == clusters.cluster_centers_.argmin()
    return 2 * (is_low & wrong).sum() / (is_low.sum() + wrong.sum())


def opendataval_runs(X, y, rate, draws):
    """Scores of 1,000 rows with uniform noise, by draw."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(y))[:1000]
        X_drawn = X[rows]
        _, codes = np.unique(y[rows], return_inverse=True)
        n_classes = codes.max() + 1
        uniform = np.full((len(codes), n_classes), 1.0 / n_classes)
        y_noisy = add_noise(codes, "symmetric", rate, uniform, rng)
        X_scaled = StandardScaler().fit_transform(X_drawn)
        trees = DataOOBValuer(n_estimators=300, random_state=seed)
        detector = LabelErrorDetector(random_state=seed).fit(X_drawn, y_noisy)
        scores = {
            "LabelErrorDetector": detector.values_,
            "KNNShapleyValuer": KNNShapleyValuer(10).fit(X_scaled, y_noisy).values_,
            "DataOOBValuer": trees.fit(X_drawn, y_noisy).values_,
        }
        yield {
            "scores": scores,
            "pred_probs": detector.label_scores_.astype(np.float32),
            "given": y_noisy,
            "wrong": codes != y_noisy,
        }


def print_opendataval(folder, names, draws, python):
    """F1 of the lower of two clusters: uniform noise, 1,000 rows."""
    f1_by_method = {}
    cases = []
    source = ""
    for name in names:
        X, y = load_set(name, folder)
        for rate in (0.1, 0.2):
            case = f"{name}, {rate:g}"
            cases.append(case)
            runs = dict(enumerate(opendataval_runs(X, y, rate, draws)))
            if python:
                version = add_cleanlab(runs, python)
                source = f" cleanlab {version}, of the detector's probabilities."
            for run in runs.values():
                for method, values in run["scores"].items():
                    f1_by_case = f1_by_method.setdefault(method, {})
                    f1 = f1_of_low(values, run["wrong"])
                    f1_by_case.setdefault(case, []).append(f1)

    print(
        f"\nOpenDataVal's protocol: F1, medians of {draws} draws. {stamp('skvalue')}"
        f"{source}\n"
    )
    rows = []
    for method, f1_by_case in f1_by_method.items():
        medians = [np.median(f1) for f1 in f1_by_case.values()]
        cells = [f"{f1:.3f}" for f1 in [*medians, np.mean(medians)]]
        rows.append([method, *cells])
    print_table(["method", *cases, "mean"], rows)


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
            is_first_seed = seed == args.seeds[0]
            for name in args.sets:
                for key, *data in runs_of(
                    name, args.data, seed, args.rows, args.rates, args.kinds
                ):
                    runs[key] = one_run(key, *data, args.tables, is_first_seed)
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
