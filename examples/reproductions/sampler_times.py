"""
Error of Shapley values by CPU time, for every sampler
======================================================

Values of a game are computed by every sampler of `SemivalueValuer`, with and without
control variates (`adjust`), and by the blocks of `LayeredShapleyValuer`, with several
numbers of trained models. The error is the root mean square over rows of the spread
over seeds (all of them are unbiased); seconds are the median of the CPU time of a fit
on one thread. "exact" is left out: it needs 2^n models.

    python examples/reproductions/sampler_times.py --data FOLDER --save times.json

FOLDER holds phoneme.npz with X and y; the other game is of scikit-learn's diabetes
data. The picture is drawn from the file by doc/images/draw.py.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from fewer_fits import MODELS, load
from other_libraries_processes import print_table, stamp
from threadpoolctl import threadpool_limits

from skvalue import DataShapleyValuer, LayeredShapleyValuer

# Title -> data and model, as of fewer_fits.py.
GAMES = {
    "logistic regression, log-loss, 200 rows": ("phoneme", "logistic, log-loss"),
    "ridge, R2, 200 rows": ("diabetes", "ridge"),
}
N_ROWS = 200
BUDGETS = (10, 30, 100)  # models for each row
SAMPLERS = {
    name: (DataShapleyValuer, {"sampler": name, "adjust": False})
    for name in ("permutation", "antithetic", "subsets", "stratified")
}
SAMPLERS |= {
    "stratified, adjusted": (
        DataShapleyValuer,
        {"sampler": "stratified", "adjust": True},
    ),
    "marginals": (DataShapleyValuer, {"sampler": "marginals"}),
    "Layered blocks": (LayeredShapleyValuer, {"design": "blocks"}),
}


def fit(rows, model, sampler, budget, seed):
    """Values, and CPU seconds of the fit."""
    (estimator, scoring), (kind, options) = MODELS[model], SAMPLERS[sampler]
    X, y, X_val, y_val = rows
    valuer = kind(
        estimator,
        scoring=scoring,
        max_evaluations=budget,
        n_jobs=1,
        random_state=seed,
        **options,
    )
    start = process_time()
    values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    return values, process_time() - start


def curve(rows, model, sampler, budgets, n_seeds):
    """Median seconds and error with each budget that the sampler takes."""
    found = []
    for budget in budgets:
        try:
            fits = [fit(rows, model, sampler, budget, seed) for seed in range(n_seeds)]
        except ValueError:  # fewer models than one block of the design takes
            continue
        values = np.array([values for values, _ in fits])
        error = np.sqrt(values.var(axis=0, ddof=1).mean())
        if np.isfinite(error):
            found.append(
                [float(np.median([seconds for _, seconds in fits])), float(error)]
            )
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default=".", metavar="FOLDER", help="folder of NAME.npz"
    )
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES))
    parser.add_argument(
        "--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS)
    )
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--save", metavar="FILE.json", help="add what is measured to this file"
    )
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found = {"curves": {}}
    if args.save and Path(args.save).exists():
        found = json.loads(Path(args.save).read_text())
    found["about"] = stamp("skvalue", "numpy", "scikit-learn")
    print(found["about"] + "\n")
    for title in args.games:
        data, model = GAMES[title]
        rows = load(args.data, data, args.rows)
        curves = found["curves"].setdefault(title, {})
        small = tuple(part[:60] for part in rows)
        for sampler in args.samplers:
            with threadpool_limits(1):
                fit(small, model, sampler, 5000, 0)  # compiles
                budgets = [each * args.rows for each in args.budgets]
                curves[sampler] = curve(rows, model, sampler, budgets, args.seeds)
        lines = [
            [sampler, *(f"{seconds:.2g} s, {error:.1e}" for seconds, error in cells)]
            for sampler, cells in curves.items()
        ]
        width = max(map(len, lines))
        print(f"{title}: CPU seconds and error\n")
        header = ["sampler", *[""] * (width - 1)]
        print_table(header, [line + [""] * (width - len(line)) for line in lines])
        if args.save:
            Path(args.save).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
