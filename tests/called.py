"""Which functions of skvalue a small fit calls: what a reader passes from `fit` to `values_`.

`python tests/called.py [NAME ...]` prints, for each method, its distinct functions, their files and
the calls from one file to another; `-v` names them. Each runs twice, and the second run counts, so
that nothing is imported or compiled in it. Compiled loops are not functions of Python.
"""

import json
import os
import sys
import tempfile
import threading
import warnings
from collections import Counter
from contextlib import redirect_stdout, suppress
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
from problems import clusters, noisy_line

import skvalue
from skvalue import collaborative, priarta
from skvalue.commands import main as skvalue_command

ROOT = str(Path(skvalue.__file__).parent) + os.sep
PRIVATE = {"epsilon": 1.0, "noise_random_state": 0}
SEEDED = {"random_state": 0}
FITS = {  # class and parameters
    "KNN": ("KNNShapley", {"n_jobs": 1}),
    "TKNN": ("TKNNShapley", {"n_jobs": 1}),
    "TKNN, private": ("TKNNShapley", {"n_jobs": 1, **PRIVATE}),
    "Data-OOB": ("DataOOB", {"n_estimators": 50, **SEEDED}),
    "leave-one-out, Newton": ("LeaveOneOut", {"method": "newton"}),
    "leave-one-out, refits": ("LeaveOneOut", {"method": "refit"}),
    "Data Shapley, adjusted": ("DataShapley", {"adjust": True, "max_evaluations": 1200, **SEEDED}),
    "in-run": ("InRunShapley", SEEDED),
    "in-run, private": ("InRunShapley", SEEDED | PRIVATE),
    "gradients": ("GradientSemivalue", {"n_permutations": 3, **SEEDED}),
    "Layered, private": ("LayeredShapley", {"l2": 1.0, "n_layers": 2, **SEEDED, **PRIVATE}),
}
CLASSES = {cls: getattr(skvalue, f"{cls}Valuer") for cls, _ in FITS.values()}


def fit(name):
    """A fit of 30 rows at 30 points; Data-OOB takes no points."""
    problem = clusters(n=30, n_val=30, d=4, names=None, n_informative=3, flip_y=0.01)
    cls, parameters = FITS[name]
    points = {} if cls == "DataOOB" else problem.points
    yield
    CLASSES[cls](**parameters).fit(*problem.rows, **points)


def sell_and_score():
    """A seller's release, and the buyer's score of it."""
    rng = np.random.default_rng(0)
    scorer = priarta.PriArTaScorer(max_norm=2.0).fit(rng.normal(size=(40, 3)))
    yield
    seller = priarta.SellerRelease(scorer.model_, **PRIVATE).fit(rng.normal(size=(30, 3)))
    scorer.score_summaries([seller.summary_])


def release_and_surprise():
    """A release of each of two parties, and the values of the parties."""
    model = collaborative.BayesianLinear(0.105, x_covariance=np.eye(2) / 9)
    options = {"random_state": 0, "n_particles": 50, "min_ess": 1}
    yield
    releases = []
    for seed in range(2):
        X, y, *_ = noisy_line(seed, 30, d=2)
        X, y = np.clip(X / 3, -1, 1), np.clip(y / 3, -1, 1)
        releases.append(collaborative.GramRelease(**PRIVATE).fit(X, y).release_)
    collaborative.BayesianSurpriseScorer(model, **options).fit(releases)


def audit():
    """The command line's audit of a table."""
    X, y, *_ = clusters(n=60, d=4)
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()), suppress(SystemExit):
        rows = [",".join([*map(str, x), label]) for x, label in zip(X.round(3), y)]
        table, page = Path(folder, "table.csv"), Path(folder, "page.html")
        table.write_text("\n".join(["a,b,c,d,label", *rows]))
        yield
        skvalue_command(["audit", str(table), "--target", "label", "-o", str(page)])


OTHERS = {
    "seller to score": sell_and_score,
    "party to surprise": release_and_surprise,
    "skvalue audit": audit,
}
NAMES = [*FITS, *OTHERS]


class Calls:
    """A profile function: the functions of skvalue that are called, and pairs of two files."""

    def __init__(self):
        self.functions, self.pairs = Counter(), set()

    def __call__(self, frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name != "<module>":
            self.functions[code.co_filename.removeprefix(ROOT), code.co_qualname] += 1
            frame = frame.f_back
            while frame is not None and not frame.f_code.co_filename.startswith(ROOT):
                frame = frame.f_back
            if frame is not None and frame.f_code.co_filename != code.co_filename:
                self.pairs.add((frame.f_code, code))


def calls(name):
    """The calls of the second of two runs."""
    found, run = Calls(), OTHERS.get(name, partial(fit, name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        list(run())
        second = run()
        next(second)
        threading.setprofile(found)
        sys.setprofile(found)
        list(second)
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def main():
    options = sys.argv[1:]
    names = [name for name in options if not name.startswith("-")] or NAMES
    found = {name: calls(name) for name in names}
    if "--json" in options:
        print(json.dumps({name: len(each.functions) for name, each in found.items()}))
        return
    print(f"{'':24}{'functions':>10}{'files':>7}{'pairs':>7}")
    for name, each in found.items():
        files = {file for file, _ in each.functions}
        print(f"{name:24}{len(each.functions):>10}{len(files):>7}{len(each.pairs):>7}")
        if "-v" in options:
            for file in sorted(files):
                inside = [f"{f} {n}" for (at, f), n in each.functions.items() if at == file]
                print(f"  {file}: {', '.join(inside)}")


if __name__ == "__main__":
    main()
