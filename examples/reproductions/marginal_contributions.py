"""
All contributions from one fit: CPU time at equal error
=======================================================

`sampler="marginals"` and today's default, stratified subsets with control variates
(adjust=True), on one thread: CPU seconds of a fit with the default budget (median over
seeds), the error (root mean square over rows, from the spread over seeds), the stated
error over it, and the quotient of the CPU times at equal error. The utility is minus
the log-loss (with `--accuracy` the accuracy), or R2 of ridge regression, on 300
validation points; a tenth of the labels is wrong.

    python examples/reproductions/marginal_contributions.py --data FOLDER

FOLDER holds the data sets as NAME.npz with X and y; "wide" is made. `--large` values
100,000 rows of adult, resampled with jitter, twice. `--curve` values more and more rows
of phoneme (resampled with jitter above 5,000) with several budgets, two seeds each, by
both samplers and, with `--pydvl PYTHON`, by the permutations of pyDVL under that
interpreter, as far as a fit takes less than `--limit` CPU seconds; `--save FILE.json`
keeps what is measured, `--draw FILE.png` draws it.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge

from skvalue import DataShapleyValuer
from skvalue.estimation import MarginalDesign
from skvalue.games import MarginalGame, ModelGame
from skvalue.semivalues import size_weights

CASES = {
    "phoneme 1000": 1000,
    "phoneme 4000": 4000,
    "adult 5000": 5000,
    "covertype 5000": 5000,
    "california_housing 5000": 5000,
    "wide 1000": 1000,
}
N_VAL = 300
CURVE = [1000, 5000, 20_000, 100_000]
BUDGETS = {"marginals": [1, 4], "stratified": [2, 10, 40]}  # blocks, and fits a row
COLORS = {"marginals": "#30638e", "stratified": "#d1495b", "pyDVL": "#8d8d8d"}
PYDVL = """
import sys, time, numpy as np
from joblib import parallel_config
from pydvl.valuation import Dataset, MinUpdates, ModelUtility, NoTruncation
from pydvl.valuation import SupervisedScorer
from pydvl.valuation import PermutationSampler, ShapleyValuation
from sklearn.linear_model import LogisticRegression
arrays = np.load(sys.argv[1])
X, y, X_val, y_val = (arrays[name] for name in ("X", "y", "X_val", "y_val"))
scorer = SupervisedScorer("neg_log_loss", Dataset(X_val, y_val), default=-np.log(2))
options = dict(catch_errors=True, show_warnings=False)
utility = ModelUtility(LogisticRegression(), scorer, **options)
sampler = PermutationSampler(NoTruncation(), seed=int(sys.argv[2]))
until = MinUpdates(int(sys.argv[3]))
valuation = ShapleyValuation(utility, sampler, until, progress=False)
start = time.process_time()
with parallel_config(n_jobs=1):
    valuation.fit(Dataset(X, y))
seconds, result = time.process_time() - start, valuation.result
values = np.empty(len(y))
values[result.indices] = result.values
np.savez(sys.argv[4], seconds=seconds, values=values)
"""


def load(folder, name, n, jitter=0.0):
    """Standardised rows, a tenth of the labels wrong, and validation points."""
    rng = np.random.default_rng(0)
    if name == "wide":
        X, y = make_classification(
            n + N_VAL, 48, n_informative=20, class_sep=2.0, flip_y=0, random_state=0
        )
    else:
        with np.load(Path(folder) / f"{name}.npz") as file:
            X = file["X"].astype(float)
            y = file["y"]
    regression = name == "california_housing"
    y = (y - y.mean()) / y.std() if regression else (y == np.unique(y)[-1]).astype(int)
    order = rng.permutation(len(y))
    points = order[:N_VAL]
    rows = order[N_VAL : N_VAL + n]
    if len(rows) < n:
        rows = rng.choice(order[N_VAL:], n)
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    X = (X - X.mean(axis=0)) / spread
    X_train = X[rows] + jitter * rng.normal(size=(n, X.shape[1]))
    y_train = y[rows]
    if not regression:
        y_train = np.where(rng.random(n) < 0.1, 1 - y_train, y_train)
    return X_train, y_train, X[points], y[points]


def fit(rows, seed, n_jobs=1, scoring="neg_log_loss", **options):
    """A fitted valuer and its CPU seconds."""
    X, y, X_val, y_val = rows
    regression = y.dtype.kind == "f"
    valuer = DataShapleyValuer(
        Ridge() if regression else LogisticRegression(),
        scoring="r2" if regression else scoring,
        random_state=seed,
        n_jobs=n_jobs,
        **options,
    )
    start = process_time()
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    return valuer, process_time() - start


def measured(rows, n_seeds, **options):
    """Median of CPU seconds, error, and stated error."""
    fits = [fit(rows, seed, **options) for seed in range(n_seeds)]
    values = np.array([valuer.values_ for valuer, _ in fits])
    stated = np.sqrt(np.mean([valuer.values_error_**2 for valuer, _ in fits]))
    return (
        np.median([seconds for _, seconds in fits]),
        np.sqrt(values.var(axis=0, ddof=1).mean()),
        stated,
    )


def compare(folder, case, n_seeds, scoring="neg_log_loss"):
    name, n = case.split()
    rows = load(folder, name, int(n))
    for sampler in ("marginals", "stratified"):  # compilation
        fit([part[:100] for part in rows], 0, sampler=sampler, scoring=scoring)
    ours = measured(rows, n_seeds, sampler="marginals", scoring=scoring)
    other = measured(rows, n_seeds, sampler="stratified", adjust=True, scoring=scoring)
    ratio = other[0] * other[1] ** 2 / (ours[0] * ours[1] ** 2)
    cells = [f"{s:6.2f} s {e:.2e} {t / e:5.2f}" for s, e, t in (ours, other)]
    print(f"{case:24} {cells[0]}   {cells[1]}   {ratio:8.1f}", flush=True)


def large(folder, n, blocks):
    rows = load(folder, "adult", n, jitter=0.1)
    found = []
    for seed in range(2):
        start = perf_counter()
        valuer, seconds = fit(
            rows, seed, 2, sampler="marginals", max_evaluations=blocks * 21 * n
        )
        wall = perf_counter() - start
        found.append(valuer.values_)
        print(
            f"{n} rows, {valuer.n_evaluations_} models: {seconds:.0f} s of CPU, "
            f"{wall:.0f} s"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"correlation {np.corrcoef(found)[0, 1]:.3f}, {memory:.1f} GB")


def pydvl_fit(python, rows, seed, permutations, limit):
    """Values and CPU seconds of pyDVL, of a process of its own; None past the limit."""
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.npz"
        result = Path(folder) / "result.npz"
        np.savez(problem, **dict(zip(("X", "y", "X_val", "y_val"), rows)))
        command = [
            python,
            "-W",
            "ignore",
            "-c",
            PYDVL,
            problem,
            str(seed),
            str(permutations),
        ]
        limited = f'ulimit -t {int(limit)}; exec "$@"'  # CPU seconds
        done = subprocess.run(
            ["sh", "-c", limited, "sh", *command, result], check=False
        )
        if done.returncode:
            return None
        with np.load(result) as found:
            return found["values"], float(found["seconds"])


def point(rows, sampler, budget, args):
    """CPU seconds of a fit and its error, from two seeds; None past the limit."""
    n = len(rows[0])
    found = []
    for seed in range(2):
        if sampler == "pyDVL":
            fitted = pydvl_fit(args.pydvl, rows, seed, budget, args.limit)
            if fitted is None:
                return None
            found.append(fitted)
            continue
        options = {"sampler": sampler}
        if sampler == "marginals":
            X, y, X_val, y_val = rows
            game = ModelGame(
                LogisticRegression(),
                X,
                y,
                X_val=X_val,
                y_val=y_val,
                scoring="neg_log_loss",
            )
            design = MarginalDesign(
                size_weights("shapley", n), MarginalGame(game).n_trained
            )
            options["max_evaluations"] = 1 + budget * design.cost
        else:
            options |= {"adjust": True, "max_evaluations": budget * n}
        valuer, seconds = fit(rows, seed, **options)
        found.append((valuer.values_, seconds))
    (one, first), (two, second) = found
    return [(first + second) / 2, float(np.sqrt(np.mean((one - two) ** 2) / 2))]


def curve(args):
    """Measure what the file lacks, smallest first."""
    path = Path(args.save)
    curves = json.loads(path.read_text()) if path.exists() else {}
    budgets = BUDGETS | ({"pyDVL": [1, 3]} if args.pydvl else {})
    rows = load(args.data, "phoneme", 200)
    for sampler in BUDGETS:  # compilation
        fit(rows, 0, sampler=sampler)
    for sampler, n in ((sampler, n) for sampler in budgets for n in args.sizes):
        rows = load(args.data, "phoneme", n, 0.1 if n > 5000 else 0.0)
        known = curves.setdefault(sampler, {}).setdefault(str(n), {})
        for budget in budgets[sampler]:
            # The time grows in proportion to the budget, and with the rows at least so.
            least = [
                seconds * budget / int(other) * n / int(m)
                for m, cells in curves[sampler].items()
                for other, (seconds, _) in cells.items()
                if int(m) <= n and int(other) <= budget
            ]
            if str(budget) in known or max(least, default=0) > args.limit:
                continue
            measured_point = point(rows, sampler, budget, args)
            if measured_point is None:
                print(
                    f"{sampler}, {n} rows, budget {budget}: above the limit", flush=True
                )
                break
            known[str(budget)] = measured_point
            print(
                f"{sampler}, {n} rows, budget {budget}: {known[str(budget)]}",
                flush=True,
            )
            path.write_text(json.dumps(curves))
    return curves


def draw(curves, path):
    """A panel for each number of rows: errors by CPU seconds."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    sizes = sorted(
        {int(n) for found in curves.values() for n, cells in found.items() if cells}
    )
    figure, panels = plt.subplots(
        1, len(sizes), figsize=(10, 3.4), layout="constrained", sharey=True
    )
    for axes, n in zip(panels, sizes):
        for sampler, color in COLORS.items():
            found = sorted(curves.get(sampler, {}).get(str(n), {}).values())
            if found:
                axes.loglog(
                    *zip(*found), "o-", color=color, markersize=4, label=sampler
                )
        axes.set(title=f"{n:,} rows", xlabel="CPU seconds of a fit", xlim=(0.15, 60))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("error of a value (rms)")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default=".", metavar="FOLDER", help="folder of NAME.npz"
    )
    parser.add_argument(
        "--cases", nargs="*", default=list(CASES), help="names of cases"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--large", type=int, metavar="BLOCKS", help="only 100,000 rows")
    parser.add_argument("--curve", action="store_true", help="errors by CPU time")
    parser.add_argument("--sizes", nargs="*", type=int, default=CURVE)
    parser.add_argument("--pydvl", metavar="PYTHON", help="interpreter that has pyDVL")
    parser.add_argument("--limit", type=float, default=60, help="CPU seconds of a fit")
    parser.add_argument(
        "--save", default="marginal_contributions.json", metavar="FILE.json"
    )
    parser.add_argument("--draw", metavar="FILE.png")
    parser.add_argument(
        "--accuracy", action="store_true", help="as utility of classifiers"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.large:
        large(args.data, 100_000, args.large)
        return
    if args.curve or args.draw:
        curves = curve(args) if args.curve else json.loads(Path(args.save).read_text())
        if args.draw:
            draw(curves, args.draw)
        return
    scoring = "accuracy" if args.accuracy else "neg_log_loss"
    print(f"Utility of classifiers: {scoring}")
    print(
        "CPU seconds, error, stated/true: marginals; stratified, adjusted; time at "
        "equal error"
    )
    for case in args.cases:
        compare(args.data, case, args.seeds, scoring)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"largest memory {memory:.1f} GB")


if __name__ == "__main__":
    main()
