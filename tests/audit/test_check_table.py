"""Findings of a table: each kind planted in a clean table, and the clean table."""

import numpy as np
import pytest

from skvalue.audit import Finding, check_table

pd = pytest.importorskip("pandas")
N = 300
STRONG = {"weak": False}  # what models are worth, where none has to be trained
SEVERITIES = ("error", "warning", "question", "note")


def clean_table(seed=0, n=N):
    """A table in which nothing is wrong: columns and labels depend on one size."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(-2, 2, n)
    X = pd.DataFrame({
        "weight": 70 + 10 * size + rng.uniform(-4, 4, n),
        "height": 170 + 8 * size + rng.uniform(-4, 4, n),
        "age": rng.uniform(20, 70, n),
        "job": rng.choice(["care", "sales", "tech"], n),
    })  # fmt: skip
    y = np.where(size + rng.normal(size=n) > 0, "high", "low").astype(object)
    return X, y


def clean_regression(seed=0):
    """The same rows with whole numbers as targets."""
    X, _ = clean_table(seed)
    size = (X["weight"] / 10 + X["height"] / 8).to_numpy()
    return X, (100 * (size - size.mean())).round().astype(object)


def plant(kind, X, y, rows, rng):
    """Plant a finding in eight rows, or in a column of its name.

    Returns the rows and the columns that the finding must hold.
    """
    are_classes = any(isinstance(label, str) for label in y)
    high = "high" if are_classes else 30.0
    low = "low" if are_classes else -30.0
    labels = [low if label is None else label for label in y]
    is_high = np.array(
        [label == high if are_classes else label > 0 for label in labels]
    )
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
            X.iloc[rows[:4]] = X.iloc[rows[4:]].to_numpy()
            y[rows[:4]] = y[rows[4:]]
            return set(rows), set()
        case "conflicts":
            X.iloc[rows[:4]] = X.iloc[rows[4:]].to_numpy()
            y[rows] = low
            y[rows[0]] = high
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
        case "infinite entries":
            X[kind] = np.where(np.arange(N) == 7, np.inf, rng.normal(size=N) * 1e200)
            return {7}, {kind}
        case "constant":
            X[kind] = "a"
        case "nearly constant":
            X[kind] = np.where(np.arange(N) == 7, "b", "a")
        case "mostly missing":
            X[kind] = np.where(rng.random(N) < 0.7, np.nan, rng.normal(size=N))
        case "leak":
            if are_classes:
                outcome = np.where(is_high, "paid", "open")
            else:
                outcome = labels + rng.normal(size=N) / 9
            X[kind] = np.where(rng.random(N) < 0.01, rng.permutation(outcome), outcome)
        case "missing by label":
            is_missing = rng.random(N) < np.where(is_high, 0.45, 0.05)
            X[kind] = np.where(is_missing, np.nan, rng.normal(size=N))
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


# Kind of finding -> its severity.
KINDS = {
    "infinite entries": "warning", "missing labels": "error",
    "spelling": "warning", "rare labels": "note",
    "equal rows": "warning", "conflicts": "error", "id": "warning", "constant": "note",
    "nearly constant": "note", "mostly missing": "note", "leak": "question",
    "missing by label": "question", "order of labels": "note",
    "order of rows": "question", "far rows": "question", "empty rows": "question",
    "improbable entries": "question", "nearly equal rows": "question",
    "weak model": "question",
}  # fmt: skip

# Kinds that are planted together; rows are copied, and labels changed, last.
TOGETHER = [
    [
        "missing labels", "spelling", "rare labels", "leak", "missing by label",
        "order of rows",
    ],
    ["nearly equal rows", "equal rows"],
    [
        "infinite entries", "constant", "nearly constant", "mostly missing",
        "conflicts", "id",
    ],
    ["empty rows", "far rows", "improbable entries", "weak model", "order of labels"],
]  # fmt: skip
OF_CLASSES = {"spelling", "rare labels"}


@pytest.mark.parametrize("kinds", TOGETHER, ids=lambda kinds: kinds[0])
@pytest.mark.parametrize(
    "table", [clean_table, pytest.param(clean_regression, marks=pytest.mark.slow)]
)
def test_what_is_planted_is_found(table, kinds):
    X, y = table()
    rng = np.random.default_rng(1)
    order = rng.permutation(N)
    is_regression = table is clean_regression
    if is_regression:
        kinds = [kind for kind in kinds if kind not in OF_CLASSES]
    planted = {}
    for i, kind in enumerate(kinds):
        planted[kind] = plant(kind, X, y, order[8 * i : 8 * i + 8], rng)

    trains_models = "weak model" in kinds
    findings = check_table(
        X,
        y,
        target="class",
        cells=trains_models,
        worth=None if trains_models else STRONG,
        random_state=0,
    )
    for kind, (rows, columns) in planted.items():
        [finding] = [finding for finding in findings if finding.kind == kind]
        # A case may be measured twice, with two targets.
        is_question = kind == "conflicts" and is_regression
        assert finding.severity == ("question" if is_question else KINDS[kind])
        assert rows <= set(finding.rows)
        assert columns <= set(finding.columns)
    severities = [SEVERITIES.index(finding.severity) for finding in findings]
    assert severities == sorted(severities)


def test_every_kind_is_planted():
    assert set(KINDS) == {kind for kinds in TOGETHER for kind in kinds}


@pytest.mark.parametrize("n_copies", [1, 5])
def test_rows_entered_twice_with_their_numbers_are_copies_and_numbers_ids(n_copies):
    X, y = clean_table()
    rows = np.append(np.arange(N), np.arange(n_copies))
    X = X.assign(case=np.arange(N)).iloc[rows]
    findings = check_table(X, y[rows], cells=False, worth=STRONG, random_state=0)
    of_kind = {finding.kind: finding for finding in findings}
    assert of_kind["equal rows"].severity == "warning"
    assert of_kind["id"].columns == ("case",)


SLOW = [
    pytest.param(clean_table, 1, marks=pytest.mark.slow),
    pytest.param(clean_regression, 2, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("table", "seed"), [(clean_table, 0), *SLOW])
def test_nothing_is_found_in_a_clean_table(table, seed):
    assert not check_table(*table(seed), random_state=0)


def test_an_improbable_entry_is_named_with_what_is_expected():
    X, y = clean_table(n=150)
    X.loc[5, "weight"] *= 100
    X.loc[9, "job"] = "gardener"  # a category that no other row has
    findings = check_table(X, y, worth=STRONG, random_state=0)
    [finding] = [each for each in findings if each.kind == "improbable entries"]
    assert finding.cells[0] == (5, "weight")
    assert "weight = " in finding.sentence
    assert (9, "job") in finding.cells


def test_spellings_have_a_fix_and_count_as_one_class():
    X, y = clean_table()
    X.iloc[1] = X.iloc[0]
    y[:2] = ["low", "LOW"]
    findings = check_table(
        X, y, target="class", cells=False, worth=STRONG, random_state=0
    )
    assert [finding.kind for finding in findings] == ["spelling", "equal rows"]
    assert findings[0].fix == ((1, "class", "low"),)


def points_of(X, y, wrong_labels):
    """Two rows, one nearly a row, and two other cases, with two wrong labels."""
    rows = [3, 8, 20, 30, 40]
    X_val = X.iloc[rows].copy()
    X_val.iloc[2, 2] += 0.01
    X_val.iloc[3:, 2] += 5.0
    y_val = y[rows]
    y_val[[1, 3]] = wrong_labels
    return X_val, y_val


def find_of_points(X, y, X_val, y_val):
    """Kind, severity and rows of the findings."""
    findings = check_table(
        X, y, X_val, y_val, cells=False, worth=STRONG, random_state=0
    )
    return {(finding.kind, finding.severity, finding.rows) for finding in findings}


@pytest.mark.parametrize("table", [clean_table, clean_regression])
def test_validation_points_that_are_rows_are_found(table):
    X, y = table()
    if table is clean_table:
        wrong_labels = ["low" if y[8] == "high" else "high", "high"]
        severity = "error"
    else:
        wrong_labels = 99.0
        severity = "question"
    assert find_of_points(X, y, *points_of(X, y, wrong_labels)) == {
        ("copies in validation", "error", (0, 1)),
        ("copies in validation", "question", (2,)),
        ("conflicts in validation", severity, (1,)),
    }


def test_another_spelling_and_a_missing_label_are_no_conflict_in_validation():
    X, y = clean_table()
    X_val, y_val = points_of(X, y, ["low", "high"])
    y_val[[0, 1]] = [f"{y[3].upper()} ", None]
    kinds = {kind for kind, _, _ in find_of_points(X, y, X_val, y_val)}
    assert "copies in validation" in kinds
    assert "conflicts in validation" not in kinds


def test_a_large_array_is_searched_for_leaks_and_not_for_far_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=5200)
    X = np.column_stack([y + 0.1 * rng.normal(size=5200), rng.normal(size=5200)])
    X[7] = 1e6
    findings = check_table(X, y, worth=STRONG, random_state=0)
    assert [(finding.kind, finding.columns) for finding in findings] == [
        ("leak", ("x0",))
    ]
    assert str(findings[0]).startswith("question leak: 'x0' alone tells the label")


def test_fewer_than_twenty_labels_are_refused():
    X, _ = clean_table()
    y = np.array(["a", "b", "a", *[None] * (N - 3)], dtype=object)
    with pytest.raises(ValueError, match="y must hold at least 20 labels. Got 3"):
        check_table(X, y)


def test_labels_of_another_length_are_refused():
    X, y = clean_table()
    with pytest.raises(ValueError, match="y must have"):
        check_table(X, y[:-1])
    with pytest.raises(ValueError, match="y_val must have"):
        check_table(X, y, y_val=y[:3])


def test_texts_as_targets_of_a_regression_are_refused():
    X, y = clean_table()
    with pytest.raises(ValueError, match="y must hold numbers with task='regression'"):
        check_table(X, y, task="regression")


def test_a_finding_prints_severity_kind_and_sentence():
    assert str(Finding("leak", "question", "What?")) == "question leak: What?"
