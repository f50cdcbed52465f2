"""
What other libraries say of tables with planted faults
======================================================

The tables of table_checks.py (at most 400 rows and 14 columns), as they are and with
its planted faults, are written as CSV files and checked by skvalue and by cleanlab's
Datalab, deepchecks, skrub's TableReport and ydata-profiling: each in a process of its
own, which may be of another environment, with its documented call
(table_checks_worker.py).

    python table_checks_peers.py --data FOLDER --with skrub=skrub/bin/python --results
    kept

Printed are, for every fault, the fraction of the tables in which something that the
library reports names it: SAYS lists which of its reports are counted. "none" means that
it has no such report. After that, what is reported of the tables as they are, where
most reports are false alarms: reports a table, and the fraction of rows named in them.
A library that is not installed is left out, and a line says so.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from other_libraries_processes import (
    Libraries,
    add_arguments,
    print_table,
    read_pythons,
)
from table_checks import SETS, plant, table
from table_checks_worker import BY

WORKER = Path(__file__).with_name("table_checks_worker.py")
# Fault -> library -> its reports that may name it.
SAYS = {
    "label in another spelling": {
        "skvalue": {"spelling"},
        "cleanlab": {"class_imbalance", "outlier"},
        "deepchecks": {"String Mismatch"},
    },
    "missing labels": {
        "skvalue": {"missing labels"},
        "cleanlab": {"refused"},
        "skrub": {"missing entries"},
        "ydata-profiling": {"missing"},
    },
    "column that numbers the rows": {
        "skvalue": {"id"},
        "skrub": {"all entries differ"},
        "ydata-profiling": {"unique"},
    },
    "column filled in later": {
        "skvalue": {"leak"},
        "deepchecks": {"Feature Label Correlation"},
        "skrub": {"association"},
        "ydata-profiling": {"high_correlation"},
    },
    "twelve rows entered twice": {
        "skvalue": {"equal rows"},
        "cleanlab": {"near_duplicate"},
        "deepchecks": {"Data Duplicates"},
        "ydata-profiling": {"duplicates"},
    },
    "numbers in another unit": {
        "skvalue": {"improbable entries", "far rows"},
        "cleanlab": {"outlier"},
    },
}
COLUMNS = {
    "missing labels": {"y"},
    "column that numbers the rows": {"case"},
    "column filled in later": {"later"},
    "label in another spelling": {"y"},
}


def named(fault, kinds, findings, rows):
    """Fraction of a fault that reports of these kinds name."""
    of_kind = [
        (set(columns), set(of)) for kind, columns, of in findings if kind in kinds
    ]
    in_rows = set().union(*(of for _, of in of_kind))
    if fault in COLUMNS and any(COLUMNS[fault] <= columns for columns, _ in of_kind):
        return 1.0
    if in_rows and fault in rows:
        return len(rows[fault] & in_rows) / len(rows[fault]) if rows[fault] else np.nan
    return float(fault == "twelve rows entered twice" and bool(of_kind))


def write(name, args, folder):
    """Files of a table as it is and with faults, the number of rows, and the rows with
    faults."""
    data = table(name, args.data)
    if data is None:
        return None
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(data[1]))[:400]
    X = data[0].iloc[chosen, :14].reset_index(drop=True)
    y = data[1][chosen]
    X.assign(y=y).to_csv(folder / f"{name}.csv", index=False)
    faulty, labels, wrong = plant(X, y, rng)
    faulty.assign(y=labels).to_csv(folder / f"{name}-planted.csv", index=False)
    told = [
        i
        for i, label in enumerate(labels[: len(y)])
        if label is not None and label != y[i]
    ]
    rows = {
        "label in another spelling": set(told),
        "twelve rows entered twice": {*range(12), *range(len(y), len(labels))},
        "numbers in another unit": {row for row, _ in wrong},
    }
    return len(y), rows


def print_peers(libraries, tables, folder):
    found = {}
    for name in libraries.pythons:
        jobs = [
            {
                "key": f"{kind}{end}",
                "problem": str(folder / f"{kind}{end}.csv"),
                "parameters": end,
            }
            for kind in tables
            for end in ("", "-planted")
        ]
        reports = libraries.answers(name, jobs)
        for job, report in zip(jobs, reports):
            if "findings" not in report:
                print(f"{name}, {job['key']}: {report}")
        found[name] = list(zip(reports[::2], reports[1::2]))
    lines = []
    for fault, says in SAYS.items():
        cells = []
        for name, pairs in found.items():
            scores = [
                named(fault, says[name], planted["findings"], rows)
                for (_, planted), (_, rows) in zip(pairs, tables.values())
                if name in says and "findings" in planted
            ]
            cells.append(f"{np.nanmean(scores):.2f}" if scores else "none")
        lines.append([fault, *cells])
    clean = {
        name: [
            (r["findings"], n)
            for (r, _), (n, _) in zip(pairs, tables.values())
            if "cpu" in r
        ]
        for name, pairs in found.items()
    }
    reports = [np.mean([len(findings) for findings, _ in of]) for of in clean.values()]
    of_rows = [
        np.mean(
            [len(set().union(*(set(f[2]) for f in findings))) / n for findings, n in of]
        )
        for of in clean.values()
    ]
    seconds = [
        np.median([r["cpu"] for r, _ in pairs if "cpu" in r])
        for pairs in found.values()
    ]
    lines.append(["as they are: reports a table", *(f"{each:.1f}" for each in reports)])
    lines.append(["as they are: rows named", *(f"{each:.3f}" for each in of_rows)])
    lines.append(["tables checked", *(str(len(of)) for of in clean.values())])
    lines.append(["CPU seconds a table", *(f"{each:.2g}" for each in seconds)])
    print_table(["planted", *found], lines)
    for name, of in clean.items():
        kinds = [kind for findings, _ in of for kind, *_ in findings]
        counts = sorted(
            ((kinds.count(kind), kind) for kind in set(kinds)), reverse=True
        )
        print(
            f"{name}, tables as they are:",
            *(f"{kind} {count};" for count, kind in counts),
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser, BY)
    parser.add_argument("--data", default="data")
    parser.add_argument("--sets", nargs="+", default=SETS)
    args = parser.parse_args()
    args.pythons = read_pythons(parser, args, BY)
    with tempfile.TemporaryDirectory() as folder:
        args.results = args.results or folder
        libraries = Libraries(args, WORKER)
        libraries.print_versions()
        tables = {name: write(name, args, Path(folder)) for name in args.sets}
        tables = {name: of for name, of in tables.items() if of is not None}
        print_peers(libraries, tables, Path(folder))


if __name__ == "__main__":
    main()
