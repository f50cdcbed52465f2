"""CPU seconds of a fit of every method that values rows, by the numbers of rows and of
points.

    python examples/reproductions/cost_curve.py --save cost.json --draw cost.png

The rows are drawn: 32 columns in float32, two classes of which one label in ten is
wrong, or targets. Every fit is timed on one thread; one that takes less than a second
is timed three times, and the least counts. A size that would take longer than the
limit, by `estimate_cost` where the method has it, else by the sizes before, is left
out, and so are larger ones. With `--save`, methods that are timed replace those of the
file, and the others stay; `--methods none` only draws the file.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from tknn_tables import print_table

from skvalue import (
    BetaShapleyValuer,
    DataBanzhafValuer,
    DataOOBValuer,
    DataShapleyValuer,
    GradientSemivalueValuer,
    InfluenceValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
    UnrolledValuer,
)

SIZES = [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
RADIUS = 0.8  # of balls with a tenth of the rows
SEED = {"random_state": 0}
# Name -> (valuer, unit of its cost): pairs of a row and a point, models trained, or
# rows.
METHODS = {
    "KNN": (KNNShapleyValuer(n_jobs=1), "pair"),
    "KNN, max_rank=100": (KNNShapleyValuer(max_rank=100, n_jobs=1), "pair"),
    "KNN, Banzhaf": (KNNShapleyValuer(semivalue="banzhaf", n_jobs=1), "pair"),
    "KNN, regression": (KNNShapleyValuer(task="regression", n_jobs=1), "pair"),
    "KNN, weighted votes": (
        KNNShapleyValuer(utility="hard", weights="distance", n_jobs=1),
        "pair",
    ),
    "TKNN": (TKNNShapleyValuer(RADIUS, n_jobs=1), "pair"),
    "TKNN, epsilon=1": (
        TKNNShapleyValuer(RADIUS, epsilon=1.0, delta=1e-7, n_jobs=1),
        "pair",
    ),
    "Data-OOB, 100 trees": (DataOOBValuer(n_estimators=100, **SEED), "model"),
    "Data Shapley": (DataShapleyValuer(LogisticRegression(), **SEED), "model"),
    "Data Banzhaf": (DataBanzhafValuer(LogisticRegression(), **SEED), "model"),
    "Beta-Shapley": (BetaShapleyValuer(LogisticRegression(), **SEED), "model"),
    "Layered Shapley": (LayeredShapleyValuer(LogisticRegression(), **SEED), "model"),
    "leave-one-out": (LeaveOneOutValuer(LogisticRegression()), "model"),
    "influence": (InfluenceValuer(LogisticRegression(), n_jobs=1), "row"),
    "gradient semivalues": (GradientSemivalueValuer(n_jobs=1, **SEED), "row"),
    "in-run": (InRunShapleyValuer(**SEED), "row"),
    "unrolled": (UnrolledValuer(**SEED), "row"),
}
GROUPS = {
    "Neighbours": [name for name, (_, unit) in METHODS.items() if unit == "pair"],
    "Trained models": [name for name, (_, unit) in METHODS.items() if unit != "pair"],
}


def draw_rows(n, n_points, regression=False):
    """Rows, their labels or targets, and validation points."""
    rng = np.random.default_rng(0)
    X, X_val = (
        rng.standard_normal((size, 32), dtype=np.float32) for size in (n, n_points)
    )
    weights = rng.standard_normal(32)
    y, y_val = (part @ weights + rng.standard_normal(len(part)) for part in (X, X_val))
    if not regression:
        y, y_val = ((part > 0).astype(int) for part in (y, y_val))
        y = np.where(rng.random(n) < 0.1, 1 - y, y)
    return X, y, {"X_val": X_val, "y_val": y_val}


def takes_points(valuer):
    return not isinstance(valuer, DataOOBValuer)


def seconds_of(name, n, n_points):
    """CPU seconds of a fit, and the number of pairs, models or rows."""
    valuer, unit = METHODS[name]
    X, y, points = draw_rows(n, n_points, getattr(valuer, "task", "") == "regression")
    seconds = []
    while len(seconds) < 3 and sum(seconds) < 1:
        start = process_time()
        valuer.fit(X, y, **(points if takes_points(valuer) else {}))
        seconds.append(process_time() - start)
    count = {"pair": n * n_points, "row": n}.get(unit) or int(valuer.n_evaluations_)
    return min(seconds), count


def expected_seconds(name, n, n_points, known):
    """Seconds that a fit would take, from `estimate_cost` or from fits on fewer rows or
    points."""
    valuer, _ = METHODS[name]
    if hasattr(valuer, "estimate_cost") and getattr(valuer, "epsilon", None) is None:
        X, y, points = draw_rows(
            n, n_points, getattr(valuer, "task", "") == "regression"
        )
        start = perf_counter()
        cpu = process_time()
        cost = valuer.estimate_cost(X, y, **(points if takes_points(valuer) else {}))
        busy = (process_time() - cpu) / (
            perf_counter() - start
        )  # less if the machine is shared
        return cost.seconds * busy
    smaller = [
        seconds * (n / rows) * (n_points / given)
        for (rows, given), (seconds, _) in known.items()
        if rows <= n and given <= n_points and (rows == n) != (given == n_points)
    ]
    return min(smaller, default=0.0)


def curve(name, sizes, n_points, max_seconds):
    """(rows, points) -> seconds, and pairs, models or rows, as far as the limit
    allows."""
    seconds_of(name, 200, 20)  # compiles
    found = {}
    for some in n_points if takes_points(METHODS[name][0]) else n_points[:1]:
        for n in sizes:
            if expected_seconds(name, n, some, found) > max_seconds:
                break
            found[n, some] = seconds_of(name, n, some)
            print(
                f"{name}: {n} rows, {some} points, {found[n, some][0]:.3g} s",
                flush=True,
            )
    return found


def print_curves(curves):
    """A table: CPU seconds by rows for each method and number of points, and the cost
    of a unit."""
    sizes = sorted({n for found in curves.values() for n, *_ in found})
    lines = []
    for name, found in curves.items():
        valuer, unit = METHODS[name]
        scale, prefix = (1e9, "ns") if unit == "pair" else (1e6, "us")
        for n_points in sorted({cell[1] for cell in found}):
            cells = {n: (s, count) for n, given, s, count in found if given == n_points}
            each = [scale * s / count for s, count in cells.values()]
            given = f"{n_points:,}" if takes_points(valuer) else ""
            seconds = [f"{cells[n][0]:.2g}" if n in cells else "" for n in sizes]
            lines.append(
                [
                    name,
                    given,
                    *seconds,
                    f"{each[0]:.3g}",
                    f"{each[-1]:.3g}",
                    f"{prefix} a {unit}",
                ]
            )
    print_table(
        ["method", "points", *(f"{n:,}" for n in sizes), "first", "last", "unit"], lines
    )


def draw_curves(curves, path, n_points=1000):
    """Draw CPU seconds by rows, with `n_points` points, or as many as there are."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    figure, panels = plt.subplots(
        1, 2, figsize=(10, 6), layout="constrained", sharey=True
    )
    for axes, (title, names) in zip(panels, GROUPS.items()):
        drawn = [name for name in names if curves.get(name)]
        for number, name in enumerate(drawn):
            found = [cell for cell in curves[name] if cell[1] == n_points] or curves[
                name
            ]
            rows, _, seconds, _ = zip(*found)
            style = {
                "color": f"C{number}",
                "marker": "osv^D"[number % 5],
                "markersize": 5,
            }
            axes.loglog(rows, seconds, linewidth=1.8, label=name, **style)
        axes.set(title=title, xlabel="rows")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12)}
        axes.legend(frameon=False, fontsize=9, ncols=2, **below)
    panels[0].set_ylabel(f"CPU seconds of a fit, {n_points:,} points")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--points", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=[*METHODS, "none"]
    )
    parser.add_argument(
        "--max-seconds", type=float, default=20.0, help="limit of one fit"
    )
    parser.add_argument(
        "--save", metavar="FILE.json", help="add what is measured to this file"
    )
    parser.add_argument("--draw", metavar="FILE.png")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    curves = {}
    if args.save and Path(args.save).exists():
        curves = json.loads(Path(args.save).read_text())
    with threadpool_limits(1):
        for name in args.methods:
            if name == "none":
                continue
            found = {(n, points): cell for n, points, *cell in curves.get(name, ())}
            found |= curve(name, args.sizes, args.points, args.max_seconds)
            curves[name] = [[*sizes, *cell] for sizes, cell in sorted(found.items())]
            if args.save:  # after each method, so that no time is lost
                Path(args.save).write_text(json.dumps(curves))
    curves = {name: curves[name] for name in METHODS if curves.get(name)}
    print_curves(curves)
    if args.draw:
        draw_curves(curves, args.draw)


if __name__ == "__main__":
    main()
