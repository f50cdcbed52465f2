"""
All contributions from one fit: CPU time at equal error
=======================================================

`sampler="marginals"` and today's default, stratified subsets with control variates (adjust=True),
on one thread: CPU seconds of a fit with the default budget (median over seeds), the error (root
mean square over rows, from the spread over seeds), the stated error over it, and the quotient of
the CPU times at equal error. The utility is minus the log-loss, or R2 of ridge regression, on 300
validation points; a tenth of the labels is wrong.

    python examples/reproductions/marginal_contributions.py --data FOLDER

FOLDER holds the data sets as NAME.npz with X and y; "wide" is made. `--large` values 100,000 rows
of adult, resampled with jitter, twice.
"""

import argparse
import resource
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge

from skvalue import DataShapleyValuer

CASES = {
    "phoneme 1000": 1000, "phoneme 4000": 4000, "adult 5000": 5000, "covertype 5000": 5000,
    "california_housing 5000": 5000, "wide 1000": 1000,
}  # fmt: skip
N_VAL = 300


def load(folder, name, n, jitter=0.0):
    """Standardised rows, a tenth of the labels wrong, and validation points."""
    rng = np.random.default_rng(0)
    if name == "wide":
        X, y = make_classification(
            n + N_VAL, 48, n_informative=20, class_sep=2.0, flip_y=0, random_state=0
        )
    else:
        with np.load(Path(folder) / f"{name}.npz") as file:
            X, y = file["X"].astype(float), file["y"]
    regression = name == "california_housing"
    y = (y - y.mean()) / y.std() if regression else (y == np.unique(y)[-1]).astype(int)
    order = rng.permutation(len(y))
    points = order[:N_VAL]
    rows = order[N_VAL : N_VAL + n]
    if len(rows) < n:
        rows = rng.choice(order[N_VAL:], n)
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    X = (X - X.mean(axis=0)) / spread
    X_train, y_train = X[rows] + jitter * rng.normal(size=(n, X.shape[1])), y[rows]
    if not regression:
        y_train = np.where(rng.random(n) < 0.1, 1 - y_train, y_train)
    return X_train, y_train, X[points], y[points]


def fit(rows, seed, n_jobs=1, **options):
    """A fitted valuer and its CPU seconds."""
    X, y, X_val, y_val = rows
    regression = y.dtype.kind == "f"
    valuer = DataShapleyValuer(
        Ridge() if regression else LogisticRegression(),
        scoring="r2" if regression else "neg_log_loss",
        random_state=seed, n_jobs=n_jobs, **options,
    )  # fmt: skip
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


def compare(folder, case, n_seeds):
    name, n = case.split()
    rows = load(folder, name, int(n))
    for sampler in ("marginals", "stratified"):  # compilation
        fit([part[:100] for part in rows], 0, sampler=sampler)
    ours = measured(rows, n_seeds, sampler="marginals")
    other = measured(rows, n_seeds, sampler="stratified", adjust=True)
    ratio = other[0] * other[1] ** 2 / (ours[0] * ours[1] ** 2)
    cells = [f"{s:6.2f} s {e:.2e} {t / e:5.2f}" for s, e, t in (ours, other)]
    print(f"{case:24} {cells[0]}   {cells[1]}   {ratio:8.1f}", flush=True)


def large(folder, n, blocks):
    rows = load(folder, "adult", n, jitter=0.1)
    found = []
    for seed in range(2):
        start = perf_counter()
        valuer, seconds = fit(rows, seed, 2, sampler="marginals", max_evaluations=blocks * 21 * n)
        wall = perf_counter() - start
        found.append(valuer.values_)
        print(f"{n} rows, {valuer.n_evaluations_} models: {seconds:.0f} s of CPU, {wall:.0f} s")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"correlation {np.corrcoef(found)[0, 1]:.3f}, {memory:.1f} GB")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=".", metavar="FOLDER", help="folder of NAME.npz")
    parser.add_argument("--cases", nargs="*", default=list(CASES), help="names of cases")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--large", type=int, metavar="BLOCKS", help="only 100,000 rows")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.large:
        large(args.data, 100_000, args.large)
        return
    print("CPU seconds, error, stated/true: marginals; stratified, adjusted; time at equal error")
    for case in args.cases:
        compare(args.data, case, args.seeds)


if __name__ == "__main__":
    main()
