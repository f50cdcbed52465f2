"""
What checks of a table find, and what they find in vain
=======================================================

The script has four parts; ``--parts`` chooses some of them.

``together``: up to twenty tables of scikit-learn and FOLDER are drawn as at most 400
rows in random order and 14 columns. `check_table` searches them as they are, where most
that it finds is a false alarm, and with planted faults: labels in another spelling,
labels that are missing, a column that numbers the rows, twelve rows that are entered
twice with new numbers, a column that was filled in after the outcome was known, wrong
for 2 % of the rows, and units of single numbers. Printed is how often each kind is
found, and, of the improbable entries that are named, how many were planted. Two tables
with a continuous target follow.

``rules``: the rule of each kind alone, on tables as they are and with what it should
find: labels spelled otherwise, equal and nearly equal rows, columns that tell the label
in six ways and those that are known to, numbers of rows, entries that are missing by
label, sorted rows and rows of four sources, rows in other units, and labels without any
relation to the columns.

``cells``: area under the curve and average precision of the score of an entry, for unit
errors.

``private``: how often the counts of `count_improbable_labels` are within three stated
errors of the exact ones, and whether `privacy.audit` finds noise that is short by a
factor of two.

    python examples/reproductions/table_checks.py --data FOLDER

FOLDER holds CSV files in a folder ``tables``, and ``NAME.npz`` with X and y; what is
not there is left out. The rules are called one by one, from private modules, so that a
fault costs one rule.

What should be seen: at most 1.5 findings above a note per clean table, errors or
warnings in at most two tables, and nearly all planted faults except units, half of
which are too small to tell; areas of at least .94 and average precision of .65 for
units; at least 95 % of the counts within three errors.
"""

import argparse
import uuid
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from time import process_time
from zlib import crc32

import numpy as np
import pandas as pd
from review_queue import ARRAYS, load
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue._utils.table_columns import columns_of
from skvalue.audit import check_table
from skvalue.audit.checks import _leaks, _order, _single_columns, _unusual_rows
from skvalue.audit.checks._improbable_entries import score_columns
from skvalue.audit.checks._model_skill import find_weak_model, skill_of_columns
from skvalue.audit.checks._wording import OF_CLASSES
from skvalue.labels import count_improbable_labels, find_duplicates, label_spellings
from skvalue.privacy import DiscreteGaussianEvent, calibrate_counts, get_epsilon
from skvalue.privacy.audit import distinguish_scores

IN_MEMORY = {"wine": load_wine, "breast": load_breast_cancer, "digits": load_digits}
TARGETS = {
    "R_modeldata_attrition": "Attrition",
    "R_modeldata_credit_data": "Status",
    "R_modeldata_mlc_churn": "churn",
    "R_modeldata_wa_churn": "churn",
    "R_modeldata_hpc_data": "class",
    "R_ISLR_OJ": "Purchase",
    "R_ISLR_College": "Private",
    "R_carData_BEPS": "vote",
    "R_MLDataR_heartdisease": "HeartDisease",
    "R_openintro_email": "spam",
    "sb_penguins": "species",
    "am_mobile_prices": "price_range",
    "am_water_potability": "Potability",
}
SETS = [*IN_MEMORY, "adult", "wind", "cpu", "phoneme", *TARGETS]
MORE = {
    "R_modeldata_lending_club": "Class",
    "R_modeldata_stackoverflow": "Remote",
    "R_modeldata_cells": "class",
    "R_modeldata_two_class_dat": "Class",
    "R_modeldata_ad_data": "Class",
    "R_ISLR_Default": "default",
    "R_carData_Arrests": "released",
    "R_carData_Chile": "vote",
    "R_carData_TitanicSurvival": "survived",
    "R_carData_Wells": "switch",
    "R_MLDataR_diabetes_data": "DiabeticClass",
    "R_MLDataR_stroke_classification": "stroke",
    "R_AER_HMDA": "deny",
    "R_MASS_biopsy": "class",
    "am_TravelInsurancePrediction": "TravelInsurance",
}
IDS = ["ID", "case", "pat_id", "Unnamed: 0"]
LEAKY = {  # columns that were filled in after the outcome was known
    "R_AER_CreditCard": ("card", ["share", "expenditure"]),
    "sb_titanic": ("survived", ["alive"]),
    "R_bayesrules_hotel_bookings": ("is_canceled", ["reservation_status"]),
    "R_bayesrules_weather_perth": ("raintomorrow", ["risk_mm"]),
    "R_AER_PSID1976": ("participation", ["hours", "wage"]),
    "R_openintro_smoking": ("smoke", ["amt_weekends", "amt_weekdays", "type"]),
    "am_onlinefoods": ("Output", ["Unnamed: 12"]),
}
UNITS = (10, 100, 1000, 0.1, 0.01, -1)


def table(name, folder, targets=None):
    """Rows, and labels as strings; None if the set is not there."""
    targets = {**TARGETS, **MORE} if targets is None else targets
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
    frame = frame[frame[targets[name]].notna()]
    y = frame[targets[name]].astype(str).to_numpy(dtype=object)
    return frame.drop(columns=targets[name]), y


def plant(X, y, rng):
    """The table with faults, and which entries have another unit."""
    X, y, n = X.copy(), y.copy(), len(X)
    numbers = [
        c for c in X.columns if X[c].dtype.kind in "iuf" and X[c].nunique() >= 10
    ]
    wrong = set()
    for column in numbers:
        X[column] = X[column].astype(float)
    for _ in range(max(10, int(0.01 * n * len(numbers))) if numbers else 0):
        row = int(rng.integers(n))
        column = str(rng.choice(numbers))
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
        kind: {c for f in found if f.kind == kind for c in f.columns}
        for kind in ("id", "leak")
    }
    kinds = {f.kind for f in found}
    cells = {cell for f in found for cell in f.cells}
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


def drawn(names, folder, n_rows, n_columns=None, targets=None):
    """Name, rows and labels of the tables that are there, in random order, without rare
    classes."""
    for name in names:
        data = table(name, folder, targets)
        if data is not None:
            rows = np.random.default_rng(0).permutation(len(data[1]))
            X = data[0].iloc[rows, :n_columns]
            y = data[1][rows]
            X = X.drop(columns=IDS, errors="ignore")[:n_rows].reset_index(drop=True)
            codes = np.unique(y[:n_rows].astype(str), return_inverse=True)[1]
            often = np.bincount(codes)[codes] >= 5
            yield name, X[often].reset_index(drop=True), y[:n_rows][often]


def together(options):
    """All checks at once, of tables as they are and with planted faults."""
    counts = Counter()
    records = {}
    n_entries = 0
    n_named = 0
    for name in options.sets:
        data = table(name, options.data)
        if data is None:
            continue
        rng = np.random.default_rng(0)
        rows = rng.permutation(len(data[1]))[:400]
        X = data[0].iloc[rows, :14].reset_index(drop=True)
        y = data[1][rows]
        start = process_time()
        found = check_table(X, y, random_state=0)
        seconds = process_time() - start
        counts.update((f.severity, f.kind) for f in found)
        n_entries += X.size
        n_named += sum(len(f.cells) for f in found)
        n_above = sum(f.severity != "note" for f in found)
        severe = any(f.severity in ("error", "warning") for f in found)
        records[name] = {"above a note": n_above, "severe": severe, "seconds": seconds}
        records[name] |= planted(X, y, rng)
        print(name, *(f"{f.severity} {f.kind}" for f in found), sep="; ", flush=True)
    for name, (X, y) in continuous(options.data):
        rows = np.random.default_rng(0).permutation(len(y))[:400]
        found = check_table(
            X.iloc[rows].reset_index(drop=True), y[rows], random_state=0
        )
        print(
            name, "(continuous)", *(f"{f.severity} {f.kind}" for f in found), sep="; "
        )
    for (severity, kind), times in counts.most_common():
        print(f"clean tables: {severity} {kind} {times}")
    print(f"clean tables: {1000 * n_named / n_entries:.2f} of 1,000 entries named")
    frame = pd.DataFrame(records).T.astype(float)
    print(f"tables: {len(frame)}", frame.mean().round(2).to_string(), sep="\n")


def continuous(folder):
    """Tables with a continuous target."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    yield "diabetes", (X, y.to_numpy())
    path = Path(folder) / "california_housing.npz"
    if path.exists():
        data = np.load(path)
        yield "california_housing", (pd.DataFrame(data["X"]), data["y"].astype(float))


# Rules one by one ---------------------------------------------------------------------


def misspelled(label, rng):
    """Kind of a change -> the label with this change; typing errors of long words
    only."""
    j = int(rng.integers(1, max(2, len(label) - 1)))
    spelled = {"case": label.upper() if label != label.upper() else label.lower()}
    spelled["space"] = f"{label} "
    if len(label) >= 5 and label.isalpha():
        spelled["typo"] = label[:j] + label[j + 1 :]
    return {kind: new for kind, new in spelled.items() if new != label}


def spellings(name, X, y, rng, hits):
    found = label_spellings(y.tolist())
    hits["spelling: alarm"].append(bool(found.same or found.typos))
    longest = max(np.unique(y.astype(str)), key=lambda label: np.sum(y == label))
    for kind, new in misspelled(longest, rng).items():
        changed = y.copy()
        changed[np.flatnonzero(y == longest)[0]] = new
        found = label_spellings(changed.tolist())
        hits[f"spelling: {kind}"].append(new in found.same or new in found.typos)


def duplicates(name, X, y, rng, hits):
    found = find_duplicates(X)
    hits["nearly equal: alarm"].append(len(found.similar) > 0)
    hits["equal rows: called copies"].append(found.verdict == "copies")
    twice = pd.concat([X, X[: max(3, len(X) // 33)]], ignore_index=True)
    codes = find_duplicates(twice).codes
    hits["equal rows"].append(np.mean(codes[len(X) :] == codes[: len(twice) - len(X)]))
    numbers = [c for c in X.columns if X[c].dtype.kind in "iuf" and X[c].nunique() > 20]
    if len(numbers) >= 3:
        n = len(twice) - len(X)
        twice[numbers] = twice[numbers].astype(float)
        jitter = 1 + 0.001 * rng.uniform(-1, 1, (n, len(numbers)))
        twice.loc[len(X) :, numbers] *= jitter
        similar = {
            tuple(sorted(pair)) for pair in find_duplicates(twice).similar.tolist()
        }
        hits["numbers changed by .1 %"].append(
            np.mean([(row, len(X) + row) in similar for row in range(n)])
        )


def after_the_outcome(codes, rng):
    """Columns that were filled in after the outcome was known."""
    n = len(codes)
    k = codes.max() + 1
    other = np.where(rng.random(n) < 0.02, rng.integers(k, size=n), codes)
    usual = codes == np.bincount(codes).argmax()
    more = np.where(rng.random(n) < 0.1, rng.integers(k, size=n), codes)
    filled = np.where(usual, rng.random(n) < 0.01, rng.random(n) < 0.9)
    known = np.where(usual, rng.random(n) < 0.01, rng.random(n) < 0.97)
    return {
        "copy, 2 % wrong": np.array([f"s{code}" for code in other], dtype=object),
        "copy, 10 % wrong": np.array([f"s{code}" for code in more], dtype=object),
        "number": codes + rng.normal(0, 0.22, n),
        "filled after the outcome": np.where(filled, rng.lognormal(size=n), np.nan),
        "amount, 0 without": np.where(known, rng.lognormal(3, 1, n), 0.0),
        "nested codes": np.array(
            [f"c{c}{i}" for c, i in zip(other, rng.integers(10, size=n))], object
        ),
    }


def leaks(name, X, y, rng, hits):
    codes = np.unique(y.astype(str), return_inverse=True)[1]
    columns = columns_of(X)
    found = [
        c for f in _leaks.find_leaks(columns, codes, 0, OF_CLASSES) for c in f.columns
    ]
    hits["leak: alarm"].append(bool(found))
    if found:
        print(name, "leaks:", *found)
    for kind, entries in after_the_outcome(codes, rng).items():
        new = columns_of(pd.DataFrame({"new": entries}))
        found = _leaks.find_leaks([*columns, *new], codes, 0, OF_CLASSES)
        hits[f"leak: {kind}"].append("new" in [c for f in found for c in f.columns])


def ids(name, X, y, rng, hits):
    for column in columns_of(X):
        hits["id: alarm, of columns"].append(
            any(True for _ in _single_columns.find_ids([column]))
        )
    n = len(X)
    gaps = np.cumsum(rng.integers(1, 4, n))
    for kind, entries in {
        "1 to n": np.arange(n) + 1,
        "shuffled": rng.permutation(n),
        "gaps": gaps,
        "six digits": rng.choice(900_000, n, replace=False) + 100_000,
        "uuid": [uuid.UUID(bytes=rng.bytes(16)).hex for _ in range(n)],
        "K-00001": [f"K-{i:05d}" for i in rng.permutation(n)],
        "gaps, shuffled": rng.permutation(gaps),
    }.items():
        column = columns_of(pd.DataFrame({"new": entries}))
        hits[f"id: {kind}"].append(any(True for _ in _single_columns.find_ids(column)))


def missing(name, X, y, rng, hits):
    codes = np.unique(y.astype(str), return_inverse=True)[1]
    columns = columns_of(X)
    found = [
        f.columns[0] for f in _leaks.find_missing_by_label(columns, codes, OF_CLASSES)
    ]
    hits["missing by label: alarm"].append(bool(found))
    if found:
        print(name, "missing by label:", *found)
    usual = codes == np.bincount(codes).argmax()
    for more in (0.1, 0.2, 0.4):
        lost = rng.random(len(X)) < np.where(usual, 0.05, 0.05 + more)
        new = columns_of(pd.DataFrame({"new": np.where(lost, np.nan, 1.0)}))
        found = [
            f.columns[0]
            for f in _leaks.find_missing_by_label([*columns, *new], codes, OF_CLASSES)
        ]
        size = "n >= 500" if len(X) >= 500 else "n < 500"
        hits[f"missing by label: +{100 * more:.0f} points, {size}"].append(
            "new" in found
        )


def orders(name, X, y, rng, hits):
    codes = np.unique(y.astype(str), return_inverse=True)[1]
    numbers = [c for c in X.columns if X[c].dtype.kind in "iuf"] or list(X.columns)
    some = X[rng.choice(numbers)]
    noisy = rankdata(
        some.astype(str) if some.dtype.kind not in "iuf" else some.fillna(0)
    )
    noisy = noisy / len(X) + rng.normal(0, 0.5, len(X))
    source = np.searchsorted(np.quantile(noisy, [0.25, 0.5, 0.75]), noisy)
    for kind, rows in {
        "alarm": rng.permutation(len(X)),
        "sorted by label": np.argsort(codes, kind="stable"),
        "sorted by a column": np.argsort(some.to_numpy(), kind="stable"),
        "four sources": np.argsort(source, kind="stable"),
    }.items():
        columns = [column.take(rows) for column in columns_of(X)]
        found = [
            *_order.find_label_order(codes[rows], rng, OF_CLASSES),
            *_order.find_row_order(columns, rng),
        ]
        hits[f"order: {kind}"].append(bool(found))


def far(name, X, y, rng, hits):
    X = X.iloc[:500, :14]
    found = [row for f in _unusual_rows.find_far_rows(columns_of(X)) for row in f.rows]
    hits["far rows: alarm, of rows"].append(len(found) / len(X))
    rows = rng.choice(len(X), max(5, int(0.03 * len(X))), replace=False)
    numbers = [
        c for c in X.columns if X[c].dtype.kind in "iuf" and X[c].nunique() >= 10
    ]
    if numbers:
        other = X.astype(dict.fromkeys(numbers, float))
        other.loc[rows, numbers] *= 10
        found = [
            row
            for f in _unusual_rows.find_far_rows(columns_of(other))
            for row in f.rows
        ]
        hits["far rows: numbers in another unit"].append(np.isin(rows, found).mean())


def weak(name, X, y, rng, hits):
    classes, codes = np.unique(y.astype(str), return_inverse=True)
    columns = columns_of(X)
    for kind, labels in {
        "as it is": codes,
        "labels drawn apart": rng.permutation(codes),
    }.items():
        found = find_weak_model(
            skill_of_columns(columns, labels, classes.tolist(), 0), OF_CLASSES
        )
        hits[f"weak model: {kind}"].append(any(True for _ in found))


def rules(options):
    """Detection and false alarms of the rule of each kind."""
    hits = defaultdict(list)
    for name, X, y in drawn([*options.sets, *MORE], options.data, options.rows):
        X = X[
            [
                c
                for c in X.columns
                if X[c].dtype.kind in "biufmM" or X[c].nunique() <= 50
            ]
        ]
        rng = np.random.default_rng(
            crc32(name.encode())
        )  # which columns and rows are changed
        for rule in (spellings, duplicates, ids, missing, orders, far, leaks, weak):
            if options.rules is None or rule.__name__ in options.rules:
                rule(name, X, y, rng, hits)
        print(name, X.shape, flush=True)
    if options.rules is None or "leaks" in options.rules:
        known = {name: target for name, (target, _) in LEAKY.items()}
        for name, X, y in drawn(known, options.data, options.rows, targets=known):
            X = X[
                [
                    c
                    for c in X.columns
                    if X[c].dtype.kind in "biufmM" or X[c].nunique() <= 50
                ]
            ]
            codes = np.unique(y, return_inverse=True)[1]
            columns = columns_of(X)
            found = [
                c
                for f in _leaks.find_leaks(columns, codes, 0, OF_CLASSES)
                for c in f.columns
            ]
            hits["leak: known ones"] += [column in found for column in LEAKY[name][1]]
            print(name, "leaks:", *found, flush=True)
    for kind, found in hits.items():
        print(f"rule {kind}: {np.mean(found):.3f} of {len(found)}")


def cells(options):
    """Area under the curve, and average precision, of the scores of entries, for unit
    errors."""
    scored = []
    others = [name for name in options.sets if name not in ("digits", "phoneme")]
    for name, X, y in drawn([*others, "R_MASS_biopsy"], options.data, 500, 14):
        rng = np.random.default_rng(0)
        X = X.copy()
        numbers = [
            c for c in X.columns if X[c].dtype.kind in "iuf" and X[c].nunique() >= 10
        ]
        wrong = pd.DataFrame(False, index=X.index, columns=X.columns)
        for column in numbers:
            X[column] = X[column].astype(float)
        for _ in range(max(10, int(0.01 * len(X) * len(numbers))) if numbers else 0):
            row = int(rng.integers(len(X)))
            column = str(rng.choice(numbers))
            if X.at[row, column] == X.at[row, column] != 0:
                X.at[row, column] *= rng.choice(UNITS)
                wrong.at[row, column] = True
        if wrong.to_numpy().sum() < 5:
            continue
        codes = np.unique(y.astype(str), return_inverse=True)[1]
        columns = columns_of(X)
        scored_columns = score_columns(columns, codes, 0)
        found = np.column_stack([column.scores for column in scored_columns])
        truth = wrong.to_numpy().ravel()
        scored.append(
            [
                roc_auc_score(truth, found.ravel()),
                average_precision_score(truth, found.ravel()),
            ]
        )
        print(name, *np.round(scored[-1], 3), flush=True)
    area, precision = np.mean(scored, axis=0)
    print(
        f"units, {len(scored)} tables: area {area:.3f}, average precision "
        f"{precision:.3f}"
    )


# Private counts -----------------------------------------------------------------------


def apart(epsilon, n_improbable, n_classes=500):
    """Counts of classes that are far apart, each one run with as many improbable
    rows."""
    labels = np.arange(n_classes)
    places = 10.0 * labels[:, None]
    X = np.concatenate([np.tile(places, (3, 1)), *[places] * n_improbable])
    y = np.concatenate([np.tile(labels, 3), *[np.roll(labels, 1)] * n_improbable])
    public = np.tile(places, (5, 1)), np.tile(labels, 5)
    nearest = KNeighborsClassifier(1)
    return count_improbable_labels(X, y, *public, epsilon=epsilon, estimator=nearest)


def private(options):
    """Whether stated errors hold, and whether the audit finds half of the noise."""
    within = defaultdict(list)
    runs = defaultdict(list)
    sets = {"breast": load_breast_cancer, "digits": load_digits}
    for name, load_set in sets.items():
        X, y = load_set(return_X_y=True)
        rows, public = (
            np.random.default_rng(0).permutation(len(y) // 2 * 2).reshape(2, -1)
        )
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
        exact = None
        for _ in range(options.runs):
            counts = count_improbable_labels(
                X[rows],
                y[rows],
                X[public],
                y[public],
                epsilon=1.0,
                estimator=model,
                random_state=0,
            )
            if exact is None:
                # Improbable as `count_improbable_labels` counts them.
                improbable = counts.probability_of(X[rows], y[rows]) < 0.1
                exact = [np.bincount(y[rows]), np.bincount(y[rows], improbable)]
            off = np.concatenate(
                [
                    (counts.n_rows - exact[0]) / counts.n_rows_error,
                    (counts.n_improbable - exact[1]) / counts.error,
                    [counts.n_other / counts.error],
                ]
            )
            within[name] += (np.abs(off) <= 3).tolist()
            runs[name].append(np.all(np.abs(off) <= 3))
        print(
            f"{name}: {np.mean(within[name]):.4f} of the counts of {options.runs} "
            f"runs within 3 "
            f"errors, all in {np.mean(runs[name]):.3f} of the runs; improbable are "
            f"{exact[1].sum():.0f} of {len(rows)}, with an error of "
            f"{counts.error:.1f} by class",
            flush=True,
        )
    event = calibrate_counts(8.0, 1e-5)
    for factor in (1.0, 0.5):
        epsilon = get_epsilon(DiscreteGaussianEvent(factor * event.scale), 1e-5)
        scores = [
            np.concatenate([apart(epsilon, n).n_improbable for _ in range(4)])
            for n in (1, 0)
        ]
        report = distinguish_scores(*scores, event)
        print(
            f"noise times {factor}: the audit {'passes' if report.passed else 'fails'}"
        )


PARTS = {"together": together, "rules": rules, "cells": cells, "private": private}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--rules", nargs="+", help="such as leaks; default: all")
    parser.add_argument(
        "--rows", type=int, default=1500, help="rows of a table, for the rules"
    )
    parser.add_argument("--runs", type=int, default=200, help="of private counts")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()
