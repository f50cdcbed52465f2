"""The report of an audit: what it holds, and what it is written to."""

import re
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skvalue import LabelErrorDetector
from skvalue.audit import AuditReport, audit_table
from skvalue.datasets import flip_labels

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
QUICK = LabelErrorDetector(cv=2, n_verdicts=10, random_state=0)


def audit(X, y, **options):
    """An audit without checks."""
    return audit_table(X, y, checks=None, n_rows=10, **options)


# What the detector found --------------------------------------------------------------


def test_a_report_names_the_target_and_says_what_was_done(iris, iris_report):
    assert iris_report.about["target"] == "flower"
    assert iris_report.about["task"] == "classification"
    assert iris_report.labels.tolist() == iris[1].tolist()
    assert "category colour" in " ".join(iris_report.notes)


def test_the_list_has_rows_with_another_suggestion_most_doubtful_first(
    iris, iris_report
):
    wrong = iris[2]
    listed = iris_report.listed
    assert (iris_report.suggestions[listed] != iris_report.labels[listed]).all()
    assert (np.diff(iris_report.values[listed]) >= 0).all()
    assert wrong[listed].mean() > 0.5
    assert wrong[listed[:5]].all()
    assert iris_report.fraction_listed == len(listed) / 150


def test_rows_of_the_list_have_reasons_and_contents(iris_report):
    rows = iris_report.rows
    labels = iris_report.labels
    assert set(rows["row"]) == set(iris_report.listed.tolist())
    for row, supporters, opponents in zip(
        rows["row"], rows["supporters"], rows["opponents"]
    ):
        assert all(labels[other] == labels[row] for other in supporters)
        assert all(labels[other] != labels[row] for other in opponents)
        assert iris_report.contents[row]["colour"] in ("blue", "red")


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_values_are_the_same_where_transformers_return_frames(
    container, iris, iris_report
):
    pytest.importorskip(container)
    X, y, _ = iris
    with config_context(transform_output=container), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        again = audit(X, y, X_val=X[:9], y_val=y[:9], detector=QUICK)
    np.testing.assert_array_equal(again.values, iris_report.values)


def test_verdicts_on_a_report_say_what_those_on_the_detector_do(iris):
    X, y, wrong = iris
    X = X.iloc[:, :3].to_numpy()
    detector = LabelErrorDetector(GaussianNB(), random_state=0)
    report = audit(X, y, detector=detector)
    rows = report.to_review
    statement = report.review(rows, wrong[rows]).statement
    detector.fit(X, y).review(rows, wrong[rows])
    np.testing.assert_array_equal(report.values, detector.values_)
    np.testing.assert_array_equal(statement.q_values, detector.q_values_)
    np.testing.assert_array_equal(statement.label_error, detector.label_error_)
    assert statement.error_rate == detector.error_rate_


def test_rows_that_verdicts_name_are_wrong(iris, iris_reviewed):
    named = iris_reviewed.statement.label_error
    assert named.sum() > 5
    assert iris[2][named].mean() > 0.8


def test_a_verdict_replaces_an_earlier_one_in_a_new_report(
    iris, iris_report, iris_reviewed
):
    row = iris_report.to_review[:1]
    again = iris_reviewed.review(row, ~iris[2][row])
    assert len(again.verdicts) == len(iris_reviewed.verdicts)
    assert again.verdicts != iris_reviewed.verdicts
    assert iris_report.statement is None


# How good the models are --------------------------------------------------------------

SIGNALS = [(0.0, True), pytest.param(0.15, True, marks=pytest.mark.slow), (2.0, False)]


def audit_of_signal(signal, rng):
    """The audit of labels of which one column tells more or less."""
    y = np.where(rng.random(300) < 0.7, "no", "yes")
    X = rng.normal(size=(300, 3))
    X[:, 0] += signal * (y == "yes")
    detector = LabelErrorDetector(LogisticRegression(), cv=2, random_state=0)
    return audit(X, y, detector=detector), y


@pytest.mark.parametrize(("signal", "weak"), SIGNALS)
def test_models_that_are_no_better_than_a_guess_are_called_weak(signal, weak, rng):
    report, _ = audit_of_signal(signal, rng)
    assert report.worth["weak"] == weak
    assert ("Too weak to judge" in report.to_html()) == weak


@pytest.mark.parametrize(("signal", "weak"), SIGNALS)
def test_the_accuracy_of_the_models_is_that_of_the_suggestions(signal, weak, rng):
    report, y = audit_of_signal(signal, rng)
    worth = report.worth
    is_right = report.suggestions == y
    assert worth["accuracy"] == is_right.mean()
    assert worth["low"] < worth["accuracy"] < worth["high"]
    assert worth["commonest"] == "no"
    assert worth["commonest_rate"] == (y == "no").mean()
    for line in worth["classes"]:
        of_class = y == line["label"]
        assert line["n"] == of_class.sum()
        assert line["accuracy"] == is_right[of_class].mean()


def test_no_more_of_the_list_is_wrong_than_the_page_says(iris, iris_report):
    """If a fraction of all labels is wrong."""
    wrong = iris[2]
    fraction = iris_report.fraction_listed
    assert wrong[iris_report.listed].mean() <= wrong.mean() / fraction
    sentence = f"at most {5 / fraction:.0f}&nbsp;% of this list can be"
    assert sentence in iris_report.to_html()


# JSON and CSV -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iris_report", "iris_reviewed"])
def test_json_holds_all_of_a_report(name, request):
    report = request.getfixturevalue(name)
    text = report.to_json()
    read = AuditReport.from_json(text)
    assert read.to_json() == text
    assert read.to_html() == report.to_html()
    pd.testing.assert_frame_equal(read.to_frame(), report.to_frame(), check_dtype=False)


def test_the_list_is_written_as_csv_for_verdicts(iris_report, tmp_path):
    iris_report.to_csv(tmp_path / "list.csv")
    frame = pd.read_csv(tmp_path / "list.csv")
    assert frame["index"].tolist() == iris_report.listed.tolist()
    assert frame["is_error"].isna().all()


def test_a_frame_has_the_verdicts_and_what_they_name(iris, iris_report):
    wrong = iris[2]
    rows = iris_report.listed[1:]
    frame = iris_report.review(rows, wrong[rows]).to_frame()
    assert frame["is_error"].tolist() == [None, *wrong[rows].tolist()]
    assert (frame["label_error"] == (frame["q_value"] <= 0.1)).all()


def test_a_label_that_looks_like_a_formula_is_none_in_a_spreadsheet(tmp_path):
    y = np.array(["=cmd|' /C calc'!A0", "-1", "+1,5 %", "@SUM(A1)"])[np.arange(60) % 4]
    X = np.random.default_rng(0).normal(size=(60, 2))
    detector = LabelErrorDetector(GaussianNB(), cv=2, random_state=0)
    report = audit(X, y, detector=detector)
    report.to_csv(tmp_path / "list.csv")
    frame = pd.read_csv(tmp_path / "list.csv", dtype=str)
    for name in ("label", "suggestion"):
        assert set(frame[name]) == {"'=cmd|' /C calc'!A0", "-1", "+1,5 %", "'@SUM(A1)"}
    frame.assign(is_error="true").to_csv(tmp_path / "verdicts.csv", index=False)
    reviewed = report.read_verdicts(tmp_path / "verdicts.csv")
    assert len(reviewed.verdicts) == len(report.listed)


def test_a_long_label_is_refused_in_a_sentence():
    y = np.array(["a", "b"] * 30, dtype=object)
    y[3] = "L" * 20_000
    message = "labels must be of at most 1000 letters. Got 'one of 20000"
    with pytest.raises(ValueError, match=message):
        audit(np.arange(60.0)[:, None], y)


# What is shown of rows ----------------------------------------------------------------


@pytest.fixture
def sized(rng):
    """A report of a table whose label depends on one column, rows with wrong labels."""
    X = pd.DataFrame({f"noise{j}": rng.normal(size=300) for j in range(5)})
    X["key"] = [f"K-{i}" for i in rng.permutation(300)]
    X["size"] = rng.normal(size=300)
    y = np.where(X["size"] > 0, "big", "small")
    y, wrong = flip_labels(y, 0.05, random_state=0)
    report = audit_table(X, y, checks=None, detector=QUICK, target="class", n_rows=100)
    return X, report, wrong


def test_columns_that_tell_the_suggestion_from_the_label_come_first(sized):
    _, report, wrong = sized
    rows = [row for row in report.listed if wrong[row]]
    assert len(rows) > 5
    first_columns = [next(iter(report.contents[row])) for row in rows]
    assert first_columns.count("size") > 0.8 * len(rows)


def test_the_column_that_numbers_the_rows_is_shown_with_their_number(sized):
    X, report, _ = sized
    assert report.about["id"] == "key"
    row = report.listed[0]
    shown = f'{row}<br><span class="soft">{X["key"][row]}<'
    assert f'<td class="n" data-name="row">{shown}' in report.to_html()


def test_numbers_and_names_of_files_are_as_people_write_them(rng):
    X = rng.normal(size=(80, 2))
    y = np.round(1e6 * (3 + X[:, 0]), 2)
    y[5] = 9_876_543.21
    report = audit(X, y, detector=QUICK, title="my prices.csv", target="price")
    html = report.to_html(
        files={"table": "tables/my prices.csv", "report": "reports/p.json"}
    )
    assert "9876543" in html
    assert "e+06" not in html
    assert "skvalue review p.json &#34;my prices.corrections.csv&#34; -o" in html
    assert "skvalue fix &#34;my prices.csv&#34; &#34;my prices.corr" in html
    assert html.count('placeholder="right number"') >= len(report.listed[:10])
    assert "report.read_verdicts(" in report.to_html()


@pytest.fixture
def copied(rng):
    """A report of a table with four copies, one in conflict, and two nearly equal."""
    X = pd.DataFrame(rng.lognormal(3, 1, (200, 4)).round(3), columns=list("abcd"))
    near = X[10:12].assign(a=lambda frame: frame["a"] * 1.0001)
    X = pd.concat([X, X[:4], near], ignore_index=True)
    y = np.where(X["a"] > 20, "more", "less")
    y[200] = "less" if y[0] == "more" else "more"
    return X, audit(X, y, detector=QUICK, target="y")


def test_copies_conflicts_and_nearly_equal_rows_are_groups(copied):
    _, report = copied
    groups = [group.tolist() for group in report.duplicates]
    assert groups == [[i, 200 + i] for i in range(4)]
    assert [sorted(group.tolist()) for group in report.conflicts] == [[0, 200]]
    assert [pair.tolist() for pair in report.similar] == [[10, 204], [11, 205]]


def test_copies_have_buttons_and_nearly_equal_rows_differences(copied):
    X, report = copied
    html = report.to_html()
    assert html.count(">remove row</button>") == 2 * (4 + 2)
    assert re.search(rf"<dt>a</dt><dd>{X['a'][10]:g}</dd>", html)
    section = html.partition("Nearly equal rows</h2>")[2].partition("<h2>")[0]
    assert "<dt>b</dt>" not in section
