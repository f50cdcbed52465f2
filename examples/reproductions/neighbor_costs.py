"""
What the neighbour methods cost
===============================

Three tables of CPU and wall times, each a ratio within one run:

    python examples/reproductions/neighbor_costs.py --data FOLDER --cleanlab PYTHON

- "leave-one-out": exact leave-one-out values of 10,000 rows, by `KNNShapleyValuer`, and
  the approximation of cleanlab (`data_shapley_knn`), which counts the K nearest rows
  only and runs in the interpreter that ``--cleanlab`` names. Both take standardized
  columns, one thread and K = 10, and include the search of the neighbours. Two
  processes fit in turn and take the times inside.
- "truncation": `max_rank="auto"` with a `tol` of 1 % of 1 / K, the most that a row adds
  to the utility of a point, and of 1 % of the largest value; the rank, the bound, the
  true error, and the CPU time of exact values over that with this rank.
- "threads": times with two threads over those with one. Wall times need two free cores.

What should be seen: exact values take less time than the approximation; a `tol`
relative to the utility of a point saves most of the time for the sort, one that is
small relative to values of many rows and points does not, except for Banzhaf values.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from label_errors import draw_rows, load_set
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer, TKNNShapleyValuer

TABLES = ("leave-one-out", "truncation", "threads")
SEMIVALUES = {"Shapley": "shapley", "Banzhaf": "banzhaf", "Beta(1, 16)": (1, 16)}
FITS = {
    "skvalue": (
        "from skvalue import KNNShapleyValuer",
        "KNNShapleyValuer(10, n_jobs=1).fit(X, y)",
    ),
    "skvalue, cosine": (
        "from skvalue import KNNShapleyValuer",
        "KNNShapleyValuer(10, metric='cosine', n_jobs=1).fit(X, y)",
    ),
    "cleanlab": (
        "from cleanlab.data_valuation import data_shapley_knn",
        "data_shapley_knn(y, features=X, k=10)",
    ),
}
# Fits once to load and compile, then once for each line that it reads; prints both
# times.
WORKER = """
import sys, time
import numpy as np
{library}
data = np.load(sys.argv[1])
def fit(X, y):
    {call}
fit(data["X"][:500], data["y"][:500])
for _ in sys.stdin:
    before = time.process_time(), time.perf_counter()
    fit(data["X"], data["y"])
    print(time.process_time() - before[0], time.perf_counter() - before[1], flush=True)
"""


def both_times(valuer, X, y, points):
    """CPU and wall time of a fit."""
    before = time.process_time(), time.perf_counter()
    valuer.fit(X, y, **points)
    return np.array([time.process_time() - before[0], time.perf_counter() - before[1]])


def times_in_turn(path, pythons, rounds):
    """Times of each worker, an array (rounds, 2); the workers fit in turn."""
    workers = {}
    for name, python in pythons.items():
        library, call = FITS[name]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        workers[name] = subprocess.Popen(
            [python, "-c", WORKER.format(library=library, call=call), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=dict(os.environ) if python == sys.executable else environment,
        )
    times = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            worker.stdin.write("\n")
            times[name].append([float(x) for x in worker.stdout.readline().split()])
    for worker in workers.values():
        worker.stdin.close()
        worker.stdout.close()
        worker.wait()
    return {name: np.array(some) for name, some in times.items()}


def print_leave_one_out(folder, sets, n, cleanlab, rounds):
    """Seconds of each, and the ratios to the first."""
    pythons = {"skvalue": sys.executable, "skvalue, cosine": sys.executable}
    pythons |= {"cleanlab": cleanlab} if cleanlab else {}
    print(f"\nLeave-one-out values, K = 10, one thread, medians of {rounds} rounds")
    print(
        "data set, rows, columns: CPU seconds, wall seconds, CPU ratio [range], wall "
        "ratio"
    )
    for name in sets:
        X, y = draw_rows(*load_set(name, folder), n, np.random.default_rng(0))
        X = StandardScaler().fit_transform(X)
        with tempfile.TemporaryDirectory() as room:
            path = str(Path(room) / "rows.npz")
            np.savez(path, X=X, y=y)
            times = times_in_turn(path, pythons, rounds)
        for method, some in times.items():
            cpu, wall = np.median(some, axis=0)
            ratios = some / times["skvalue"]
            low = ratios[:, 0].min()
            high = ratios[:, 0].max()
            print(
                f"{name}, {len(X)}, {X.shape[1]}: {method:16} {cpu:.2f} {wall:.2f} "
                f"{np.median(ratios[:, 0]):.2f} [{low:.2f}, {high:.2f}] "
                f"{np.median(ratios[:, 1]):.2f}",
                flush=True,
            )


def drawn(n, n_points, d):
    """Rows and points of a normal distribution, and labels that depend on it."""
    rng = np.random.default_rng(0)
    X, X_val = (
        rng.standard_normal((size, d), dtype=np.float32) for size in (n, n_points)
    )
    y = X[:, 0] + 0.5 * rng.standard_normal(n) > 0
    return X, y.astype(int), dict(X_val=X_val, y_val=(X_val[:, 0] > 0).astype(int))


def print_truncation(sizes, n_points, rounds):
    """Rank, bound and error of each `tol`, and the gain in time."""
    print(
        f"\nmax_rank='auto', K = 5, {n_points} points, d = 32, medians of {rounds} "
        f"rounds"
    )
    print(
        "rows, semivalue, tol: rank, bound, error; CPU time of exact values over "
        "that [range]"
    )
    for n in sizes:
        X, y, points = drawn(n, n_points, 32)
        for name, semivalue in SEMIVALUES.items():
            exact = KNNShapleyValuer(5, semivalue=semivalue, n_jobs=1)
            top = np.abs(exact.fit(X, y, **points).values_).max()
            for label, tol in (
                ("1 % of 1/K", 0.01 / 5),
                ("1 % of the largest", 0.01 * top),
            ):
                quick = KNNShapleyValuer(
                    5, semivalue=semivalue, max_rank="auto", tol=tol, n_jobs=1
                ).fit(X, y, **points)
                gains = [
                    np.divide(*(both_times(valuer, X, y, points)[0] for valuer in pair))
                    for pair in [(exact, quick)] * rounds
                ]
                error = np.abs(quick.values_ - exact.values_).max()
                print(
                    f"{n}, {name}, {label} = {tol:.1e}: {quick.max_rank_}, "
                    f"{quick.truncation_error_:.1e}, {error:.1e}; "
                    f"{np.median(gains):.2f} "
                    f"[{min(gains):.2f}, {max(gains):.2f}]",
                    flush=True,
                )


def print_threads(n, n_points, rounds):
    """Times with one thread over those with two."""
    X, y, points = drawn(n, n_points, 32)
    print(
        f"\nOne thread over two, {n} rows, {n_points} points, d = 32, {rounds} "
        f"rounds: CPU, wall"
    )
    for name, valuer in (
        ("KNN", KNNShapleyValuer(5)),
        ("TKNN", TKNNShapleyValuer(7.0)),
    ):
        ratios = []
        for _ in range(rounds + 1):
            times = [
                both_times(valuer.set_params(n_jobs=n_jobs), X, y, points)
                for n_jobs in (1, 2)
            ]
            ratios.append(times[0] / times[1])
        cpu, wall = np.array(ratios[1:]).T  # the first round compiles
        print(
            f"{name}: {np.median(cpu):.2f} [{cpu.min():.2f}, {cpu.max():.2f}], "
            f"{np.median(wall):.2f} [{wall.min():.2f}, {wall.max():.2f}]",
            flush=True,
        )


def main(arguments=None):
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--cleanlab", help="Python interpreter that has cleanlab")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--sets", nargs="+", default=["covertype", "adult", "2dplanes"])
    parser.add_argument(
        "--rows", type=int, default=10_000, help="of leave-one-out values"
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[20_000, 100_000, 1_000_000]
    )
    parser.add_argument("--points", type=int, nargs=2, default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args(arguments)
    if "leave-one-out" in args.tables:
        print_leave_one_out(args.data, args.sets, args.rows, args.cleanlab, args.rounds)
    if "truncation" in args.tables:
        print_truncation(args.sizes, args.points[0], args.rounds)
    if "threads" in args.tables:
        print_threads(50_000, args.points[1], args.rounds)


if __name__ == "__main__":
    main()
