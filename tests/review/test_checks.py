"""Findings of a table: each kind planted in a clean table, and the clean table."""

import numpy as np
import pytest

from skvalue.review import Finding, check_table

pd = pytest.importorskip("pandas")
N = 300


def clean(seed=0, n=N):
    """A table in which nothing is wrong: columns that depend on each other, labels on them."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(-2, 2, n)
    frame = pd.DataFrame({
        "weight": 70 + 10 * size + rng.uniform(-4, 4, n),
        "height": 170 + 8 * size + rng.uniform(-4, 4, n),
        "age": rng.uniform(20, 70, n),
        "job": rng.choice(["care", "sales", "tech"], n),
    })  # fmt: skip
    y = np.where(size + rng.normal(size=n) > 0, "high", "low").astype(object)
    return frame, y


def plant(kind, X, y, rng):
    """What was planted: rows and columns that the finding must hold."""
    rows = np.sort(rng.choice(N, 8, replace=False))
    match kind:
        case "missing labels":
            y[rows] = None
            return set(rows), {"class"}
        case "spelling":
            rows = rows[y[rows] == "high"]
            y[rows] = "High "
            return set(rows), {"class"}
        case "rare labels":
            y[rows[:2]] = "none of them"
            return set(), {"class"}
        case "equal rows":
            X.iloc[rows] = X.iloc[rows - 1 if rows[0] else rows + 1].to_numpy()
            y[rows] = y[rows - 1 if rows[0] else rows + 1]
            return set(rows), set()
        case "conflicts":
            X.iloc[1], y[:2] = X.iloc[0], ["high", "low"]
            X.iloc[3], y[2:4] = X.iloc[2], "low"
            return {0, 1}, set()
        case "id":
            X["case"] = rng.permutation(N) + 1000
        case "constant":
            X["case"] = "a"
        case "nearly constant":
            X["case"] = np.where(np.arange(N) == 7, "b", "a")
        case "mostly missing":
            X["case"] = np.where(rng.random(N) < 0.7, np.nan, rng.normal(size=N))
        case "leak":
            X["case"] = np.where(rng.random(N) < 0.01, "x", np.where(y == "high", "paid", "open"))
        case "missing by label":
            lost = rng.random(N) < np.where(y == "high", 0.45, 0.05)
            X["case"] = np.where(lost, np.nan, rng.normal(size=N))
        case "order of labels":
            y[:] = np.sort(y.astype(str))
            return set(), set()
        case "order of rows":
            X["case"] = np.sort(rng.normal(size=N)) ** 3
        case "far rows":
            X.loc[5, ["weight", "height", "age"]] = 3000.0
            return {5}, set()
        case "empty rows":
            X.loc[rows[:3], ["weight", "height", "job"]] = [np.nan, np.nan, None]
            return set(rows[:3]), set()
        case "improbable entries":
            X.loc[5, "weight"] *= 100
            return {5}, set()
    return set(), {"case"}


KINDS = {
    "missing labels": "error", "spelling": "warning", "rare labels": "note",
    "equal rows": "warning", "conflicts": "error", "id": "warning", "constant": "note",
    "nearly constant": "note", "mostly missing": "note", "leak": "question",
    "missing by label": "question", "order of labels": "note", "order of rows": "question",
    "far rows": "question", "empty rows": "question", "improbable entries": "question",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_planted_is_found(kind):
    X, y = clean()
    rows, columns = plant(kind, X, y, np.random.default_rng(1))
    cells = kind == "improbable entries"
    found = check_table(X, y, target="class", cells=cells, random_state=0)
    of_kind = [each for each in found if each.kind == kind]
    assert len(of_kind) == 1, [*map(str, found)]
    assert of_kind[0].severity == KINDS[kind]
    assert rows <= set(of_kind[0].rows)
    assert columns <= set(of_kind[0].columns)
    order = ("error", "warning", "question", "note")
    severities = [order.index(each.severity) for each in found]
    assert severities == sorted(severities)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found_in_clean_tables(seed):
    X, y = clean(seed)
    assert not check_table(X, y, random_state=0)


def test_the_wrong_entry_and_what_is_expected():
    X, y = clean()
    X.loc[5, "weight"] *= 100
    (found,) = (f for f in check_table(X, y, random_state=0) if f.kind == "improbable entries")
    assert found.cells[0] == (5, "weight")
    assert "weight = " in found.sentence
    X.loc[9, "job"] = "gardener"  # a category that no other row has
    found = next(f for f in check_table(X, y, random_state=0) if f.kind == "improbable entries")
    assert (9, "job") in found.cells


def test_spellings_are_fixed_and_count_as_one_class():
    X, y = clean()
    X.iloc[1] = X.iloc[0]
    y[:2] = ["low", "LOW"]
    found = check_table(X, y, target="class", cells=False, random_state=0)
    assert [each.kind for each in found] == ["spelling", "equal rows"]
    assert found[0].fix == ((1, "class", "low"),)


def test_validation_points_that_are_rows():
    X, y = clean()
    found = check_table(X, y, X.iloc[[3, 8]], cells=False, random_state=0)
    assert [(each.kind, each.severity, each.rows) for each in found] == [
        ("copies in validation", "error", (0, 1))
    ]


@pytest.mark.parametrize("kind", ["id", "constant", "far rows", "order of rows"])
def test_regression_targets(kind):
    X, y = clean()
    plant(kind, X, y, np.random.default_rng(1))
    target = np.random.default_rng(2).normal(size=N)
    found = check_table(X, target, cells=kind == "far rows", random_state=0)
    assert kind in [each.kind for each in found]


def test_large_tables_and_arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5200, 3))
    y = rng.integers(2, size=5200)
    X[:, 2] = y + 0.1 * rng.normal(size=5200)
    X[7] = 1e6
    found = check_table(X, y, random_state=0)
    assert [(each.kind, each.columns) for each in found] == [("leak", ("x2",))]
    assert str(found[0]).startswith("question leak: 'x2' alone tells the label")


def test_bad_input():
    X, y = clean()
    with pytest.raises(ValueError, match="y must hold at least 20 labels. Got 3"):
        check_table(X, np.array(["a", "b", "a", *[None] * (N - 3)], dtype=object))
    with pytest.raises(ValueError, match="y must have"):
        check_table(X, y[:-1])
    assert str(Finding("leak", "question", "What?")) == "question leak: What?"
