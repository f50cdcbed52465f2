"""Audits of rows of any kind: tables, texts, pictures, targets of a regression."""

import datetime
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_regression
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skvalue import KNNShapleyValuer, LabelErrorDetector
from skvalue.audit import AuditReport, audit_table, check_table, read_table
from skvalue.datasets import flip_labels

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
QUICK = LabelErrorDetector(cv=2, n_verdicts=10, random_state=0)


def audit(X, y, **options):
    """An audit without checks."""
    return audit_table(X, y, **{"checks": None, "n_rows": 10, **options})


# Validation points --------------------------------------------------------------------


@pytest.mark.parametrize(
    "gap", [None, pytest.param(float("nan"), marks=pytest.mark.slow)]
)
def test_validation_points_equal_rows_whatever_the_type_of_their_numbers(gap):
    """One gap makes a column of whole numbers one of floats."""
    rows = np.arange(40)
    X = pd.DataFrame({"a": rows * 7 % 31, "b": rows % 3, "c": list("xyzw") * 10})
    y = rows % 2
    X_val = X[:30].astype({"a": object})
    X_val.loc[31] = [gap, 1, "x"]
    X_val["a"] = X_val["a"].astype(float)
    report = audit(X, y, X_val=X_val, y_val=y[:31], detector=QUICK)
    assert "validation: 30 of 31 rows are equal to a row of the table." in report.notes


def rows_of_words(kind):
    """Forty rows that forests do not take as they are."""
    words = [("red", "green", "blue")[i % 3] for i in range(40)]
    sizes = np.arange(40) * 7 % 31
    if kind == "texts":
        return [f"a {word} house of {size}" for word, size in zip(words, sizes)]
    frame = pd.DataFrame({"colour": words, "size": sizes})
    if kind == "infinite":
        return frame[["size"]].where(frame["size"] != 7, np.inf).to_numpy()
    return frame.to_numpy(dtype=object) if kind == "objects" else frame


def lengths(X):
    """The number of letters of each row, of shape (n_samples, 1)."""
    return np.array([[len(str(row))] for row in np.asarray(X)])


@pytest.mark.parametrize("kind", ["frame", "texts", "objects", "infinite"])
def test_validation_points_need_no_embedding_of_the_detector(kind):
    X = rows_of_words(kind)
    y = np.arange(40) % 31 < 15
    model = make_pipeline(FunctionTransformer(lengths), GaussianNB())
    detector = LabelErrorDetector(model, cv=2, random_state=0)
    report = audit(X, y, X_val=X[:20], y_val=y[:20], detector=detector)
    notes = [note for note in report.notes if note.startswith("validation")]
    assert notes[0] == "validation: 20 of 20 rows are equal to a row of the table."
    assert len(notes) == (1 if kind == "objects" else 2)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"X_val": [[1.0]]}, "passed together. Got X_val and no y_val"),
        ({"y_val": [1]}, "passed together. Got y_val and no X_val"),
        ({"X": None, "X_val": [[1.0]], "y_val": [1]}, "X_val must be None without X"),
    ],
    ids=["no labels", "no points", "no rows"],
)
def test_points_alone_are_refused(points, message):
    X = points.pop("X", np.arange(40.0)[:, None])
    with pytest.raises(ValueError, match=message):
        audit(X, np.arange(40) % 2, **points)


# Pictures -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    """Pictures, their labels, and probabilities in the place of models."""
    X, y = load_digits(return_X_y=True)
    y = flip_labels(y[:300], 0.1, random_state=0)[0]
    probabilities = np.random.default_rng(0).dirichlet(np.ones(10), 300)
    return X[:300].reshape(-1, 8, 8), y, probabilities


@pytest.fixture(scope="module")
def of_pictures(digits):
    X, y, probabilities = digits
    return audit(X, y, pred_probs=probabilities, n_rows=5, random_state=0)


@pytest.fixture(scope="module")
def colours():
    """Pictures of three channels."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (300, 6, 5, 3)).astype(np.uint8)


def test_pictures_are_shown_in_the_page(of_pictures):
    assert of_pictures.about["kind"] == "image"
    assert of_pictures.notes == ["images: their 64 pixels"]
    for picture in of_pictures.contents.values():
        assert picture.startswith("data:image/png;base64,")
    assert '<img src="data:image/png' in of_pictures.to_html()


def test_the_first_rows_and_those_to_review_are_shown(of_pictures):
    shown = set(of_pictures.rows["row"])
    first = of_pictures.listed[:5].tolist()
    assert shown == {*first, *of_pictures.to_review.tolist()}
    assert shown < set(of_pictures.contents)


def test_pictures_may_be_contents_of_rows_that_are_not_known(
    of_pictures, digits, colours
):
    _, y, probabilities = digits
    report = audit(None, y, pred_probs=probabilities, contents=colours, n_rows=5)
    np.testing.assert_array_equal(report.values, of_pictures.values)
    for picture in report.contents.values():
        assert picture.startswith("data:image/jpeg")


def test_pictures_of_two_channels_are_refused(digits, colours):
    _, y, probabilities = digits
    message = r"\(height, width\) or \(height, width, 3\). Got \(6, 5"
    with pytest.raises(ValueError, match=message):
        audit(None, y, pred_probs=probabilities, contents=colours[..., :2])


# Texts --------------------------------------------------------------------------------


def test_equal_texts_with_different_labels_are_conflicts():
    texts = [
        f"a {'bad' if i % 2 else 'good'} film of {1960 + i // 2}" for i in range(40)
    ]
    labels = ["yes", "no"] * 20
    labels[0] = "no"
    report = audit([*texts, texts[0]], [*labels, "yes"], detector=QUICK)
    assert report.about["kind"] == "text"
    assert report.notes[0].startswith(
        "texts: all words, by TF-IDF, for the linear model"
    )
    assert [sorted(group.tolist()) for group in report.conflicts] == [[0, 40]]
    html = report.to_html()
    assert "with different labels" in html
    assert "a good film of 1960" in html


def reviews(n=160):
    """Texts of which two words tell the label, labels with errors, and which are."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(2 * n)])
    y = np.array(["bad", "good"])[np.arange(n) % 2]
    texts = []
    for label in y:
        sign = "wonderful" if label == "good" else "dreadful"
        before = rng.choice(words, 4)
        after = rng.choice(words, 2)
        texts.append(" ".join([*before, sign, *after]))
    labels, wrong = flip_labels(y, 0.1, random_state=0)
    return texts, labels, wrong


def test_texts_in_a_list_and_in_a_column_give_one_list(tmp_path):
    texts, y, wrong = reviews()
    frame = pd.DataFrame({"number": np.arange(len(y)), "review": texts})
    frame.assign(label=y).to_csv(tmp_path / "reviews.csv", index=False)
    frame = read_table(tmp_path / "reviews.csv", target="label").frame
    in_file = audit(frame[["number", "review"]], frame["label"], detector=QUICK)
    in_list = audit(texts, y, detector=QUICK)
    np.testing.assert_array_equal(in_file.listed, in_list.listed)
    np.testing.assert_array_equal(in_file.values, in_list.values)
    assert "text review: all words" in " ".join(in_file.notes)
    assert average_precision_score(wrong, -in_list.values) > 0.8


def test_texts_beside_other_columns_are_encoded_with_them(rng):
    texts, y, wrong = reviews()
    size = rng.normal(size=len(y))
    frame = pd.DataFrame({"review": texts, "size": size, "constant": 1})
    frame.loc[::9, "review"] = None
    report = audit(frame, y, X_val=frame[:40], y_val=y[:40], detector=QUICK)
    notes = "\n".join(report.notes)
    assert average_precision_score(wrong, -report.values) > 0.6
    assert "number size" in notes
    assert "40 of 40 rows are equal to a row of the table" in notes


# Targets, valuers and probabilities ---------------------------------------------------


def test_a_wrong_target_of_a_regression_is_first():
    X, y = make_regression(80, 4, noise=1.0, random_state=0)
    y[7] += 500
    report = audit(X, y, detector=QUICK)
    assert report.about["task"] == "regression"
    assert report.listed[0] == 7
    assert "target → prediction" in report.to_html()
    assert AuditReport.from_json(report.to_json()).to_html() == report.to_html()


def test_values_of_a_valuer_are_named_by_it():
    X, y = load_iris(return_X_y=True)
    y, _ = flip_labels(y, 0.1, random_state=0)
    detector = LabelErrorDetector(KNNShapleyValuer(), cv=2, random_state=0)
    report = audit(X, y, detector=detector)
    score = "value of the given label by KNNShapleyValuer, out of fold"
    assert report.about["score"] == score
    assert sorted(report.contents[report.listed[0]]) == ["x0", "x1", "x2", "x3"]


@pytest.fixture(scope="module")
def probabilities(iris):
    """Probabilities that are right where the labels of the flowers are."""
    _, y, wrong = iris
    codes = np.unique(y, return_inverse=True)[1]
    probabilities = np.full((150, 3), 0.1)
    probabilities[np.arange(150), np.where(wrong, (codes + 1) % 3, codes)] = 0.8
    return probabilities


def test_probabilities_may_stand_for_rows_whose_contents_are_shown(iris, probabilities):
    X, y, wrong = iris
    report = audit(None, y, pred_probs=probabilities, contents=X)
    assert sorted(report.listed) == np.flatnonzero(wrong).tolist()
    assert "opponents" not in report.rows
    assert "colour" in report.to_html()


def test_contents_of_another_length_are_refused(iris, probabilities):
    X, y, _ = iris
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        audit(None, y, pred_probs=probabilities, contents=X[:9])


# Probabilities of columns with names --------------------------------------------------


def test_columns_of_probabilities_are_matched_by_name(rng):
    y = np.repeat(["cat", "dog", "owl"], 40)
    probabilities = rng.dirichlet([0.3, 0.3, 0.3], 120)
    columns = pd.DataFrame(probabilities[:, [2, 0, 1]], columns=["owl", "cat", "dog"])
    by_name = audit(None, y, pred_probs=columns)
    by_place = audit(None, y, pred_probs=probabilities)
    np.testing.assert_array_equal(by_name.values, by_place.values)


# Columns of pandas --------------------------------------------------------------------

STRINGS = ["a", "b", None, "c"] * 20
BOOLS = [True, False, None, True] * 20
DAYS = ["9999-12-31", "2020-01-01", "1500-06-30", None] * 20
# What a column holds, with missing entries or far dates -> the function that makes it.
COLUMNS = {
    "string": lambda pd, pa: pd.array(STRINGS, dtype="string"),
    "arrow string": lambda pd, pa: pd.array(STRINGS, dtype=pd.ArrowDtype(pa.string())),
    "boolean": lambda pd, pa: pd.array(BOOLS, dtype="boolean"),
    "arrow boolean": lambda pd, pa: pd.array(BOOLS, dtype=pd.ArrowDtype(pa.bool_())),
    "category": lambda pd, pa: pd.Series(STRINGS, dtype="string").astype("category"),
    "missing": lambda pd, pa: np.array([pd.NA] * 80, dtype=object),
    "Int64": lambda pd, pa: pd.array([1, None] * 40, dtype="Int64"),
    "dates in seconds": lambda pd, pa: np.array(DAYS, dtype="datetime64[s]"),
    "dates in microseconds": lambda pd, pa: np.array(DAYS, dtype="datetime64[us]"),
    "date objects": lambda pd, pa: [
        day and datetime.date.fromisoformat(day) for day in DAYS
    ],
    "dates as strings": lambda pd, pa: np.array(DAYS, dtype=object),
    "arrow dates": lambda pd, pa: pd.array(
        [*pd.date_range("2020", periods=79), None],
        dtype=pd.ArrowDtype(pa.timestamp("ns")),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "string" else pytest.param(kind, marks=pytest.mark.slow)
        for kind in COLUMNS
    ],
)
def test_columns_with_missing_entries_or_far_dates_are_shown(kind):
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    x = np.random.default_rng(0).normal(size=80)
    y = np.where(x > 0, "pos", "neg").astype(object)
    y[::9] = "pos"
    report = audit_table(
        pd.DataFrame({"x": x, "c": COLUMNS[kind](pd, pa)}), y, checks="fast"
    )
    shown = {entries["c"] for entries in report.contents.values()}
    assert shown
    assert not shown & {"<NA>", "NaT", "nan", "None"}
    assert report.to_html()


@pytest.mark.parametrize("function", [check_table, audit_table])
def test_a_name_of_two_columns_is_refused(function, rng):
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "a", "b"])
    with pytest.raises(ValueError, match="once.*Got 'a' twice"):
        function(X, np.arange(80) % 2)


# The target as a column, and points of other columns ---------------------------------


def two_columns(n=60):
    """A frame of a number, a category and a label that follows from the number."""
    x = np.random.default_rng(0).normal(size=n)
    labels = np.where(x > 0, "high", "low")
    return pd.DataFrame({"x": x, "c": np.tile(["u", "v"], n // 2), "label": labels})


def quick_audit(X, y=None, **options):
    return audit(X, y, detector=QUICK, **options)


@pytest.mark.parametrize("container", ["pandas", "polars", "lazy", "pyarrow"])
def test_without_y_the_target_is_a_column_of_a_frame(container):
    frame = two_columns()
    rows = frame
    if container == "pyarrow":
        rows = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    elif container != "pandas":
        rows = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
        rows = rows.lazy() if container == "lazy" else rows
    report = quick_audit(rows, target="label")
    expected = quick_audit(frame[["x", "c"]], frame["label"])
    assert np.array_equal(report.values, expected.values)
    assert report.about["target"] == "label"


@pytest.mark.parametrize(
    ("X", "target"),
    [
        (two_columns(), None),
        (two_columns(), "other"),
        (np.zeros((60, 2)), "label"),
        (["a text"] * 60, None),
    ],
    ids=["frame", "other column", "array", "texts"],
)
def test_rows_without_labels_are_refused(X, target):
    message = f"y must be the labels .* Got None, and target={target!r}"
    with pytest.raises(ValueError, match=message):
        quick_audit(X, target=target)


@pytest.mark.parametrize("container", [list, np.array, pd.Series])
def test_one_number_per_row_is_no_table(container):
    with pytest.raises(ValueError, match="X must be a table .* Got one number or"):
        quick_audit(container(np.arange(60.0).tolist()), np.arange(60) % 2)


def test_complex_numbers_are_refused():
    frame = two_columns()
    frame["c"] = np.arange(60) * 1j
    message = "must hold numbers, .* Got complex in the column 'c'"
    with pytest.raises(ValueError, match=message):
        quick_audit(frame, target="label")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_numbers_of_any_precision_are_shown(dtype):
    frame = two_columns().astype({"x": dtype})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quick_audit(frame, target="label").to_html()


def test_columns_of_points_may_be_in_another_order():
    frame = two_columns(80)
    rows, points = frame[:60], frame[60:]
    notes = [
        quick_audit(
            rows[["x", "c"]], rows["label"], X_val=points[names], y_val=points["label"]
        ).notes
        for names in (["x", "c"], ["c", "x"])
    ]
    assert notes[0] == notes[1]


@pytest.mark.parametrize(
    ("names", "got"),
    [(["x"], "none named 'c'"), (["x", "c", "label"], "one named 'label'")],
)
def test_points_of_other_columns_are_refused(names, got):
    frame = two_columns()
    points = {"X_val": frame[names], "y_val": frame["label"]}
    message = f"X_val must have the columns of X. Got {got}"
    with pytest.raises(ValueError, match=message):
        quick_audit(frame, target="label", **points)


EARLY = {
    "n_rows=-1": ({"n_rows": -1}, "'n_rows' parameter of audit_table must be an int"),
    "n_rows='5'": ({"n_rows": "5"}, "'n_rows' parameter of audit_table must be an int"),
    "n_rows=0.5": ({"n_rows": 0.5}, "'n_rows' parameter of audit_table must be an int"),
    "a model": ({"detector": GaussianNB()}, "detector must be a LabelErrorDetector"),
    "a name": ({"detector": "forest"}, "detector must be a LabelErrorDetector"),
}


@pytest.mark.parametrize("case", EARLY)
def test_parameters_are_refused_before_a_file_is_read(case):
    parameters, message = EARLY[case]
    with pytest.raises(ValueError, match=message):
        audit_table("no such file.csv", target="y", **parameters)


@pytest.mark.parametrize("texts", ["note", ["note"], ("note",)])
def test_the_name_of_one_column_of_texts_may_stand_alone(texts, rng):
    notes = rng.choice(["a", "b", "c"], 60)
    X = pd.DataFrame({"size": rng.normal(size=60), "note": notes})
    report = audit_table(X, X["size"] > 0, texts=texts, checks=None, random_state=0)
    assert any(note.startswith("text note: ") for note in report.notes)
