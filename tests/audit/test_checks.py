"""Findings of a table: each kind planted in a clean table, and the clean table."""

import numpy as np
import pytest

from skvalue.audit import Finding, check_table

pd = pytest.importorskip("pandas")
N = 300
STRONG = {"weak": False}  # what models are worth, where none has to be trained


def clean(seed=0, n=N):
    """A table in which nothing is wrong: columns that depend on each other, labels on
    them."""
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


def plant(kind, X, y, rows, rng):
    """Plant it in eight rows or a column of its name; rows and columns the finding must
    hold."""
    classes = any(isinstance(label, str) for label in y)
    high, low = ("high", "low") if classes else (30.0, -30.0)
    known = [low if label is None else label for label in y]
    is_high = np.array([label == high if classes else label > 0 for label in known])
    match kind:
        case "missing labels":
            y[rows] = None
            return set(rows), {"class"}
        case "spelling":
            rows = rows[is_high[rows]]
            y[rows] = "High "
            return set(rows), {"class"}
        case "rare labels":
            y[rows[:2]] = "none of them"
            return set(), {"class"}
        case "equal rows":
            X.iloc[rows[:4]], y[rows[:4]] = X.iloc[rows[4:]].to_numpy(), y[rows[4:]]
            return set(rows), set()
        case "conflicts":
            X.iloc[rows[:4]], y[rows[:5]] = (
                X.iloc[rows[4:]].to_numpy(),
                [high, *[low] * 4],
            )
            y[rows[5:]] = low
            return set(rows[[0, 4]]), set()
        case "nearly equal rows":
            X.loc[rows[0]] = X.loc[rows[1]]
            X.loc[rows[0], "age"] += 0.01
            return set(rows[:2]), set()
        case "weak model":
            y[:] = np.random.default_rng(0).permutation(y)
            return set(), set()
        case "id":
            X[kind] = rng.permutation(N) + 1000
        case "constant":
            X[kind] = "a"
        case "nearly constant":
            X[kind] = np.where(np.arange(N) == 7, "b", "a")
        case "mostly missing":
            X[kind] = np.where(rng.random(N) < 0.7, np.nan, rng.normal(size=N))
        case "leak":
            told = (
                np.where(is_high, "paid", "open")
                if classes
                else known + rng.normal(size=N) / 9
            )
            X[kind] = np.where(rng.random(N) < 0.01, rng.permutation(told), told)
        case "missing by label":
            lost = rng.random(N) < np.where(is_high, 0.45, 0.05)
            X[kind] = np.where(lost, np.nan, rng.normal(size=N))
        case "order of labels":
            y[:] = np.sort(y)
            return set(), set()
        case "order of rows":
            X[kind] = np.sort(rng.integers(5, size=N))
        case "far rows":
            X.loc[rows[0], ["weight", "height", "age"]] = 3000.0
            return {rows[0]}, set()
        case "empty rows":
            X.loc[rows[:3], ["weight", "height", "job"]] = [np.nan, np.nan, None]
            return set(rows[:3]), set()
        case "improbable entries":
            X.loc[rows[0], "weight"] *= 100
            return {rows[0]}, set()
    return set(), {kind}


KINDS = {
    "missing labels": "error", "spelling": "warning", "rare labels": "note",
    "equal rows": "warning", "conflicts": "error", "id": "warning", "constant": "note",
    "nearly constant": "note", "mostly missing": "note", "leak": "question",
    "missing by label": "question", "order of labels": "note", "order of rows": "question",
    "far rows": "question", "empty rows": "question", "improbable entries": "question",
    "nearly equal rows": "question", "weak model": "question",
}  # fmt: skip


def regression(seed=0):
    """The same rows with whole numbers as targets."""
    X, _ = clean(seed)
    size = (X["weight"] / 10 + X["height"] / 8).to_numpy()
    return X, (100 * (size - size.mean())).round().astype(object)


TOGETHER = [  # rows are copied, and labels changed, last
    [
        "missing labels",
        "spelling",
        "rare labels",
        "leak",
        "missing by label",
        "order of rows",
    ],
    ["nearly equal rows", "equal rows"],
    ["constant", "nearly constant", "mostly missing", "conflicts", "id"],
    ["empty rows", "far rows", "improbable entries", "weak model", "order of labels"],
]


@pytest.mark.parametrize("kinds", TOGETHER, ids=lambda kinds: kinds[0])
@pytest.mark.parametrize(
    "table", [clean, pytest.param(regression, marks=pytest.mark.slow)]
)
def test_what_is_planted_is_found(table, kinds):
    assert {*KINDS} == {kind for kinds in TOGETHER for kind in kinds}
    (X, y), rng = table(), np.random.default_rng(1)
    of_classes = ("spelling", "rare labels") if table is regression else ()
    blocks, kinds = (
        rng.permutation(N),
        [kind for kind in kinds if kind not in of_classes],
    )
    planted = {
        k: plant(k, X, y, blocks[8 * i : 8 * i + 8], rng) for i, k in enumerate(kinds)
    }
    last = "weak model" in kinds
    worth = None if last else STRONG
    found = check_table(X, y, target="class", cells=last, worth=worth, random_state=0)
    for kind, (rows, columns) in planted.items():
        (of_kind,) = (each for each in found if each.kind == kind)
        repeated = kind == "conflicts" and table is regression  # may be measured twice
        assert of_kind.severity == ("question" if repeated else KINDS[kind])
        assert rows <= set(of_kind.rows)
        assert columns <= set(of_kind.columns)
    order = ("error", "warning", "question", "note")
    severities = [order.index(each.severity) for each in found]
    assert severities == sorted(severities)


@pytest.mark.parametrize("n_copies", [1, 5])
def test_rows_entered_twice_with_their_numbers(n_copies):
    X, y = clean()
    again = np.append(np.arange(N), np.arange(n_copies))
    X = X.assign(case=np.arange(N)).iloc[again]
    found = check_table(X, y[again], cells=False, worth=STRONG, random_state=0)
    found = {each.kind: each for each in found}
    assert found["equal rows"].severity == "warning"
    assert found["id"].columns == ("case",)


MORE = [
    pytest.param(*each, marks=pytest.mark.slow)
    for each in [(clean, 1), (regression, 2)]
]


@pytest.mark.parametrize(("table", "seed"), [(clean, 0), *MORE])
def test_nothing_is_found_in_clean_tables(table, seed):
    assert not check_table(*table(seed), random_state=0)


def test_the_wrong_entry_and_what_is_expected():
    X, y = clean(n=150)
    X.loc[5, "weight"] *= 100
    X.loc[9, "job"] = "gardener"  # a category that no other row has
    found = check_table(X, y, worth=STRONG, random_state=0)
    (found,) = (each for each in found if each.kind == "improbable entries")
    assert found.cells[0] == (5, "weight")
    assert "weight = " in found.sentence
    assert (9, "job") in found.cells


def test_spellings_are_fixed_and_count_as_one_class():
    X, y = clean()
    X.iloc[1] = X.iloc[0]
    y[:2] = ["low", "LOW"]
    found = check_table(X, y, target="class", cells=False, worth=STRONG, random_state=0)
    assert [each.kind for each in found] == ["spelling", "equal rows"]
    assert found[0].fix == ((1, "class", "low"),)


@pytest.mark.parametrize("table", [clean, regression])
def test_validation_points_that_are_rows(table):
    X, y = table()
    X_val, y_val = X.iloc[[3, 8, 20, 30, 40]].copy(), y[[3, 8, 20, 30, 40]]
    X_val.iloc[2, 2] += 0.01  # nearly a row
    X_val.iloc[3:, 2] += 5.0  # another case
    y_val[[1, 3]] = (
        ["low" if y[8] == "high" else "high", "high"] if table is clean else 99.0
    )
    sure = "error" if table is clean else "question"
    expected = {
        ("copies in validation", "error", (0, 1)),
        ("copies in validation", "question", (2,)),
        ("conflicts in validation", sure, (1,)),
    }
    options = dict(cells=False, worth=STRONG, random_state=0)
    found = check_table(X, y, X_val, y_val, **options)
    assert {(each.kind, each.severity, each.rows) for each in found} == expected
    if table is clean:  # another spelling is no other label, and a missing one none
        y_val[[0, 1]] = [f"{y[3].upper()} ", None]
        found = check_table(X, y, X_val, y_val, **options)
        assert "conflicts in validation" not in [each.kind for each in found]


def test_large_tables_and_arrays():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=5200)
    X = np.column_stack([y + 0.1 * rng.normal(size=5200), rng.normal(size=5200)])
    X[7] = 1e6
    found = check_table(X, y, worth=STRONG, random_state=0)
    assert [(each.kind, each.columns) for each in found] == [("leak", ("x0",))]
    assert str(found[0]).startswith("question leak: 'x0' alone tells the label")


def test_bad_input():
    X, y = clean()
    with pytest.raises(ValueError, match="y must hold at least 20 labels. Got 3"):
        check_table(X, np.array(["a", "b", "a", *[None] * (N - 3)], dtype=object))
    with pytest.raises(ValueError, match="y must have"):
        check_table(X, y[:-1])
    with pytest.raises(ValueError, match="y_val must have"):
        check_table(X, y, y_val=y[:3])
    with pytest.raises(ValueError, match="y must hold numbers with task='regression'"):
        check_table(X, y, task="regression")
    assert str(Finding("leak", "question", "What?")) == "question leak: What?"
