"""
One library checks tables, in an environment of its own
=======================================================

table_checks_peers.py runs this file under the interpreter of the library's environment:

    PYTHON table_checks_worker.py LIBRARY jobs.json

A job names a table (a CSV file with the target "y") and the place for its report
(.json): the findings of the library's documented call, each a kind, columns and rows,
and CPU seconds.
"""

import sys
import time

import numpy as np
import pandas as pd
from other_libraries_worker import main


def by_skvalue(frame):
    from skvalue.audit import check_table

    y = frame["y"].astype(object).where(frame["y"].notna(), None)
    for found in check_table(frame.drop(columns="y"), y, target="y", random_state=0):
        if found.severity != "note":
            yield found.kind, found.columns, found.rows


def encode(X):
    """Columns as numbers: standardised, and one-hot."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    return make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
            make_column_selector(dtype_include="number"),
        ),
        (
            OneHotEncoder(sparse_output=False, max_categories=20),
            make_column_selector(dtype_exclude="number"),
        ),
    ).fit_transform(X)


def by_cleanlab(frame):
    """Datalab; it refuses missing labels, so that rows without one are left out."""
    from cleanlab import Datalab
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    if frame["y"].isna().any():
        try:
            Datalab(frame, label_name="y", verbosity=0)
        except TypeError:
            yield "refused", ("y",), np.flatnonzero(frame["y"].isna())
    rows = np.flatnonzero(frame["y"].notna())
    frame = frame.iloc[rows].reset_index(drop=True)
    features = encode(frame.drop(columns="y"))
    model = LogisticRegression(max_iter=1000)
    probabilities = cross_val_predict(
        model, features, frame["y"], method="predict_proba"
    )
    lab = Datalab(frame, label_name="y", verbosity=0)
    lab.find_issues(features=features, pred_probs=probabilities)
    issues = lab.get_issues()
    for column in issues.columns:
        if (
            column.endswith("_issue")
            and column != "is_label_issue"
            and issues[column].any()
        ):
            yield column[3:-6], (), rows[issues[column]]


def by_deepchecks(frame):
    from deepchecks.tabular import Dataset
    from deepchecks.tabular.suites import data_integrity

    numbers = frame.select_dtypes("number").columns
    categories = [c for c in frame.columns if c != "y" and c not in numbers]
    done = data_integrity().run(Dataset(frame, label="y", cat_features=categories))
    for check in done.get_not_passed_checks():
        kind = check.get_header()
        value = check.value
        if kind == "Feature Label Correlation":
            columns = [name for name, score in value.items() if score > 0.8]
        elif kind == "String Mismatch":
            columns = [name for name, found in value["columns"].items() if found]
        else:
            columns = []
        yield kind, columns, ()


def by_skrub(frame):
    """TableReport raises no alarms: what its figures show at a glance."""
    import json

    from skrub import TableReport

    report = json.loads(TableReport(frame, verbose=0).json())
    for column in report["columns"]:
        for kind, holds in (
            ("missing entries", column["null_count"] > 0),
            ("all entries differ", column.get("unique_proportion") == 1),
            ("constant", column["value_is_constant"]),
        ):
            if holds:
                yield kind, (column["name"],), ()
    for pair in report["top_associations"]:
        if pair["cramer_v"] >= 0.9:
            yield (
                "association",
                (pair["left_column_name"], pair["right_column_name"]),
                (),
            )


def by_ydata(frame):
    from ydata_profiling import ProfileReport

    report = ProfileReport(
        frame, progress_bar=False, interactions=None
    )  # no pictures of pairs
    for alert in report.get_description().alerts:
        columns = [
            alert.column_name,
            *(getattr(alert, "values", None) or {}).get("fields", ()),
        ]
        yield alert.alert_type.name.lower(), [name for name in columns if name], ()


BY = {
    "skvalue": by_skvalue,
    "cleanlab": by_cleanlab,
    "deepchecks": by_deepchecks,
    "skrub": by_skrub,
    "ydata-profiling": by_ydata,
}


def run(library, job):
    frame = pd.read_csv(job["problem"], dtype={"y": str})
    start = time.process_time()
    found = [
        (kind, list(map(str, columns)), [int(row) for row in rows])
        for kind, columns, rows in BY[library](frame)
    ]
    return {"findings": found, "cpu": time.process_time() - start}


if __name__ == "__main__":
    main(*sys.argv[1:], run=run)
