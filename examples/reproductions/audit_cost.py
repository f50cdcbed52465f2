"""CPU time of `skvalue audit` on a table, next to that of a cross-validation of its
classifier.

    python examples/reproductions/audit_cost.py --rows 50000 --columns 20

The table is drawn: numbers and 6 categories, with gaps and 5 % of wrong labels. All are
timed in this process, on one thread: the whole command, its fast checks alone, and five
folds of the forest and the logistic regression that it trains by default, on the
columns as it encodes them.
"""

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_limits

from skvalue._utils.columns import column_encoder
from skvalue.audit import check_table
from skvalue.audit.commands import main as skvalue_command


def draw_table(n, rng, n_columns=20):
    """A frame of numbers and categories, and labels of which 5 % are wrong."""
    numbers = rng.normal(size=(n, n_columns - 6)).round(4)
    frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(n_columns - 6)])
    for j in range(6):
        frame[f"c{j}"] = rng.choice([f"v{i}" for i in range(3 + 3 * j)], n)
    score = numbers[:, 0] + numbers[:, 1] * numbers[:, 2] + 1.5 * (frame["c0"] == "v1")
    label = score + 0.3 * rng.logistic(size=n) > 0.5
    label ^= rng.random(n) < 0.05
    for name in ("x3", "c2"):
        frame.loc[rng.random(n) < 0.03, name] = None
    return frame.assign(label=np.where(label, "yes", "no"))


def main(arguments=None):
    """Print the times, their ratios, and the sizes of the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=20)
    options = parser.parse_args(arguments)
    n = options.rows
    drawn = np.random.default_rng(0)
    with TemporaryDirectory() as folder, threadpool_limits(1):
        table, page, record = (
            Path(folder, name) for name in ("t.csv", "t.html", "t.json")
        )
        draw_table(n, drawn, options.columns).to_csv(table, index=False)
        start = time.process_time()
        words = ["audit", table, "--target", "label", "-o", page, "--json", record]
        words += ["--checks", "fast"]
        skvalue_command(list(map(str, words)))
        audit = time.process_time() - start
        frame = pd.read_csv(table)
        X = frame.drop(columns="label")
        y = frame["label"].to_numpy()
        start = time.process_time()
        check_table(X, y, cells=False, random_state=0)
        checks = time.process_time() - start
        print(
            f"fast checks: {checks:.1f} s, {checks / audit:.2f} of the audit",
            flush=True,
        )
        start = time.process_time()
        X = column_encoder(X)[0].fit_transform(X)
        forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
        for model in (forest, LogisticRegression(max_iter=200)):
            cross_val_predict(model, X, y, cv=5, method="predict_proba")
        folds = time.process_time() - start
        print(f"audit: {audit:.1f} s; one five-fold cross-validation: {folds:.1f} s")
        print(f"ratio: {audit / folds:.2f}")
        print(f"page: {os.path.getsize(page) / 1e6:.2f} MB")
        print(f"JSON: {os.path.getsize(record) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
