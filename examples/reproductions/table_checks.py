"""
What checks of a table find, and what they find in vain
=======================================================

Up to twenty tables of scikit-learn and FOLDER are drawn as at most 400 rows in random order and 14
columns. `check_table` searches them as they are, where most that it finds is a false alarm, and
with planted faults: labels in another spelling, labels that are missing, a column that numbers the
rows, twelve rows that are entered twice with new numbers, a column that was filled in after the
outcome was known, wrong for 2 % of the rows, and units of single numbers. The script prints how
often each kind is found, and, of the improbable entries that are named, how many were planted.

    python examples/reproductions/table_checks.py --data FOLDER

FOLDER holds CSV files in a folder ``tables``, and ``NAME.npz`` with X and y; what is not there is
left out.

What should be seen: at most 1.5 findings above a note per clean table, errors or warnings in at
most two tables, and nearly all planted faults except units, half of which are too small to tell.
"""

import argparse
import warnings
from collections import Counter
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from review_queue import ARRAYS, load
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from skvalue.review import check_table

IN_MEMORY = {"wine": load_wine, "breast": load_breast_cancer, "digits": load_digits}
TARGETS = {
    "R_modeldata_attrition": "Attrition", "R_modeldata_credit_data": "Status",
    "R_modeldata_mlc_churn": "churn", "R_modeldata_wa_churn": "churn",
    "R_modeldata_hpc_data": "class", "R_ISLR_OJ": "Purchase", "R_ISLR_College": "Private",
    "R_carData_BEPS": "vote", "R_MLDataR_heartdisease": "HeartDisease",
    "R_openintro_email": "spam", "sb_penguins": "species", "am_mobile_prices": "price_range",
    "am_water_potability": "Potability",
}  # fmt: skip
SETS = [*IN_MEMORY, "adult", "wind", "cpu", "phoneme", *TARGETS]
UNITS = (10, 100, 1000, 0.1, 0.01, -1)


def table(name, folder):
    """Rows, and labels as strings; None if the set is not there."""
    if name in IN_MEMORY:
        X, y = IN_MEMORY[name](return_X_y=True, as_frame=True)
        return X, y.astype(str).to_numpy(dtype=object)
    if name in ARRAYS:
        found = load(name, folder)
        return found and (found[0].add_prefix("x"), found[1].astype(object))
    path = Path(folder) / "tables" / f"{name}.csv.gz"
    if not path.exists():
        return None
    frame = pd.read_csv(path).drop(columns="rownames", errors="ignore")
    frame = frame[frame[TARGETS[name]].notna()]
    y = frame[TARGETS[name]].astype(str).to_numpy(dtype=object)
    return frame.drop(columns=TARGETS[name]), y


def plant(X, y, rng):
    """The table with faults, and which entries have another unit."""
    X, y, n = X.copy(), y.copy(), len(X)
    numbers = [c for c in X.columns if X[c].dtype.kind in "iuf" and X[c].nunique() >= 10]
    wrong = set()
    for column in numbers:
        X[column] = X[column].astype(float)
    for _ in range(max(10, int(0.01 * n * len(numbers))) if numbers else 0):
        row, column = int(rng.integers(n)), str(rng.choice(numbers))
        if X.at[row, column] == X.at[row, column] != 0:
            X.at[row, column] *= rng.choice(UNITS)
            wrong.add((row, column))
    _, codes = np.unique(y, return_inverse=True)
    told = np.where(rng.random(n) < 0.02, rng.integers(codes.max() + 1, size=n), codes)
    X = X.assign(case=np.arange(1000, 1000 + n), later=[f"s{code}" for code in told])
    twice = X.iloc[:12].assign(case=np.arange(5000, 5012))
    longest = max(np.unique(y), key=len)
    spelled = rng.choice(np.arange(12, n)[y[12:] == longest], 3, replace=False)
    y[spelled] = f" {longest.upper()}." if longest.isalpha() else f"{longest} ."
    y[rng.choice(np.setdiff1d(np.arange(12, n), spelled), 4, replace=False)] = None
    return pd.concat([X, twice], ignore_index=True), np.concatenate([y, y[:12]]), wrong


def planted(X, y, rng):
    """What is found of the faults."""
    X, y, wrong = plant(X, y, rng)
    found = check_table(X, y, target="y", random_state=0)
    columns = {
        kind: {c for f in found if f.kind == kind for c in f.columns} for kind in ("id", "leak")
    }
    kinds, cells = {f.kind for f in found}, {cell for f in found for cell in f.cells}
    rows = next((set(f.rows) for f in found if f.kind == "equal rows"), set())
    return {
        "spelling": "spelling" in kinds,
        "missing labels": "missing labels" in kinds,
        "id": "case" in columns["id"],
        "leak": "later" in columns["leak"],
        "equal rows": set(range(12)) <= rows,
        "units found": len(wrong & cells) / len(wrong) if wrong else np.nan,
        "named units planted": len(wrong & cells) / len(cells) if cells else np.nan,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, records, n_entries, n_named = Counter(), {}, 0, 0
    for name in options.sets:
        data = table(name, options.data)
        if data is None:
            continue
        rng = np.random.default_rng(0)
        rows = rng.permutation(len(data[1]))[:400]
        X, y = data[0].iloc[rows, :14].reset_index(drop=True), data[1][rows]
        start = process_time()
        found = check_table(X, y, random_state=0)
        seconds = process_time() - start
        counts.update((f.severity, f.kind) for f in found)
        n_entries, n_named = n_entries + X.size, n_named + sum(len(f.cells) for f in found)
        n_above = sum(f.severity != "note" for f in found)
        severe = any(f.severity in ("error", "warning") for f in found)
        records[name] = {"above a note": n_above, "severe": severe, "seconds": seconds}
        records[name] |= planted(X, y, rng)
        print(name, *(f"{f.severity} {f.kind}" for f in found), sep="; ")
    for (severity, kind), times in counts.most_common():
        print(f"clean tables: {severity} {kind} {times}")
    print(f"clean tables: {1000 * n_named / n_entries:.2f} of 1,000 entries named")
    frame = pd.DataFrame(records).T.astype(float)
    print(f"tables: {len(frame)}", frame.mean().round(2).to_string(), sep="\n")


if __name__ == "__main__":
    main()
