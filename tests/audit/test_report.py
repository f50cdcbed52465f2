"""The report of an audit: what it holds, what it is written to, and verdicts that come
back."""

import dataclasses
import json
import re
import shutil
import subprocess
import warnings
from functools import partial
from html import unescape

import numpy as np
import pytest
from matplotlib.image import imread
from sklearn import config_context
from sklearn.datasets import load_digits, load_iris, make_regression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import GaussianNB

from skvalue import KNNShapleyValuer, LabelErrorDetector
from skvalue.audit import AuditReport, audit_table, read_corrections, read_table
from skvalue.datasets import flip_labels

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None
)


# Others have what the checks find (test_findings.py), and all rows of the list.
audit = partial(audit_table, checks=None, n_rows=10)
FAST = LabelErrorDetector(cv=2, random_state=0)
QUICK = LabelErrorDetector(cv=2, n_verdicts=10, random_state=0)


@pytest.fixture(scope="module")
def iris():
    """A frame of flowers with a category and gaps, labels of which some are wrong, and
    which."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica <i>"])[y]
    labels, wrong = flip_labels(names, 0.1, random_state=0)
    X = X.assign(colour=np.where(np.arange(150) % 3, "blue", "red"))
    X.loc[::11, "petal width (cm)"] = np.nan
    return X, pd.Series(labels, name="flower"), wrong


@pytest.fixture(scope="module")
def report(iris):
    return audit_table(*iris[:2], detector=FAST, title="Iris & more", checks="fast")


@pytest.fixture(scope="module")
def reviewed(iris, report):
    return report.review(report.to_review, iris[2][report.to_review])


def test_a_report_is_what_the_detector_found(iris, report):
    _, y, wrong = iris
    assert report.about["target"] == "flower"
    assert report.about["task"] == "classification"
    assert report.labels.tolist() == y.tolist()
    assert "category colour" in " ".join(report.notes)
    listed = report.listed
    assert (report.suggestions[listed] != report.labels[listed]).all()
    assert (np.diff(report.values[listed]) >= 0).all()
    assert wrong[listed].mean() > 0.5
    assert wrong[listed[:5]].all()
    assert report.fraction_listed == len(listed) / 150
    assert set(report.rows["row"]) == set(listed.tolist())
    for row, others, against in zip(
        *(report.rows[n] for n in ("row", "supporters", "opponents"))
    ):
        assert all(report.labels[other] == report.labels[row] for other in others)
        assert all(report.labels[other] != report.labels[row] for other in against)
        assert report.contents[row]["colour"] in ("blue", "red")


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_an_audit_where_transformers_return_frames(container, iris, report):
    pytest.importorskip(container)
    with config_context(transform_output=container), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        again = audit(*iris[:2], X_val=iris[0][:9], y_val=iris[1][:9], detector=QUICK)
    np.testing.assert_array_equal(again.values, report.values)


def test_verdicts_say_what_those_of_the_detector_do(iris, report, reviewed):
    X, y, wrong = iris
    assert report.statement is None  # a report does not change
    detector = LabelErrorDetector(GaussianNB(), random_state=0)
    X = X.iloc[:, :3].to_numpy()
    plain = audit(X, y, detector=detector)
    rows = plain.to_review
    detector.fit(X, y).review(rows, wrong[rows])
    np.testing.assert_array_equal(plain.values, detector.values_)
    said = plain.review(rows, wrong[rows]).statement
    np.testing.assert_array_equal(said.q_values, detector.q_values_)
    np.testing.assert_array_equal(said.label_error, detector.label_error_)
    assert said.error_rate == detector.error_rate_
    assert reviewed.statement.label_error.sum() > 5
    assert wrong[reviewed.statement.label_error].mean() > 0.8
    again = reviewed.review(report.to_review[:1], ~wrong[report.to_review[:1]])
    assert len(again.verdicts) == len(reviewed.verdicts)
    assert again.verdicts != reviewed.verdicts


def test_json_holds_all(report, reviewed):
    for one in (report, reviewed):
        text = one.to_json()
        read = AuditReport.from_json(text)
        assert read.to_json() == text
        assert read.to_html() == one.to_html()
        pd.testing.assert_frame_equal(
            read.to_frame(), one.to_frame(), check_dtype=False
        )


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"format": "other"}, "report"),
        ({"values": [[1.0]]}, "values"),
        ({"labels": ["a"]}, "labels"),
        ({"listed": [150]}, "listed"),
        ({"to_review": [True]}, "to_review"),
        ({"conflicts": [[-1]]}, "conflicts"),
        ({"verdicts": {"3": 1}}, "verdicts"),
        ({"verdicts": {"x": True}}, "verdicts"),
        ({"about": {}}, "about"),
        ({"rows": {"row": [0], "forest": []}}, "rows"),
        ({"rows": {"row": [0], "forest": ["<b>"]}}, "forest"),
        ({"rows": {"row": [0], "opponents": [["x"]]}}, "opponents"),
        ({"contents": []}, "contents"),
        ({"more": 1}, "report"),
        ({"duplicates": [[1]]}, "duplicates"),
        ({"similar": [[1, 2, 3]]}, "similar"),
        ({"similar": [[0, 0]]}, "similar"),
        ({"worth": {}}, "worth"),
        ({"said": {"read": [1]}}, "read"),
        ({"findings": [{"kind": "leak"}]}, "findings"),
        ({"overview": [{"column": 3}]}, "overview"),
    ],
)
def test_reports_from_elsewhere_are_checked(report, change, name):
    record = {**json.loads(report.to_json()), **change}
    with pytest.raises(ValueError, match=f"{name}.* must"):
        AuditReport.from_json(json.dumps(record))


ABOUT = {
    "title": "<b>",
    "kind": "image",
    "fdr": -1,
    "confidence": 5,
    "n_samples": 1,
    "seconds": "1",
}
HOSTILE = [
    {"contents": {"0": "https://example.com/x.png"}, "about": {"kind": "image"}},
    {"contents": {"0": "data:text/html,<script>"}, "about": {"kind": "image"}},
    {
        "contents": {"0": 'data:image/png;base64,"onerror="x'},
        "about": {"kind": "image"},
    },
    {"contents": {"0": 3}},
    {"contents": {"0": ["a"]}},
    {"contents": {"0": {"a": 3}}},
    {"contents": {"0": {"a": "x" * 200_000}}},
    {"conflicts": [[]]},
    {"conflicts": [[3]]},
    {"conflicts": [[1, 2], [2, 3]]},
    {"conflicts": 3},
    {"listed": [1, 1]},
    {"notes": [3]},
    {"verdicts": {"9" * 400: True}},
    {"values": [10**400] * 150},
    {"values": ["x" * 3_000_000] + [0.5] * 149},
    {"labels": ["x" * 3_000_000] + ["a"] * 149},
    {"labels": ["a"] * 149 + [1]},
    {"rows": {"row": [0], "forest": [10**400]}},
    {"rows": {"row": [0, 0]}},
    {"rows": {"row": [0], "opponents": [list(range(150))]}},
    {"rows": {"row": [0], "more": [1]}},
    *({"about": {name: entry}} for name, entry in ABOUT.items() if name != "title"),
    {"about": {"fdr": 1e308}},
    {"about": {"n_verdicts": 0}},
    {"about": {"task": ["classification"]}},
]


@pytest.mark.parametrize("change", HOSTILE, ids=lambda change: repr(change)[:50])
def test_hostile_reports_are_refused_in_a_sentence(report, change):
    record = json.loads(report.to_json())
    change = {**change, "about": {**record["about"], **change.get("about", {})}}
    with pytest.raises(ValueError, match=r" must .*\. Got "):
        AuditReport.from_json(json.dumps({**record, **change}))


def test_infinite_values_are_refused(report):
    text = report.to_json().replace('"values": [', '"values": [1e999, ', 1)
    with pytest.raises(ValueError, match="values must be a number strictly between"):
        AuditReport.from_json(text)


@pytest.mark.slow
def test_mutated_reports_are_refused_or_shown(report, reviewed):
    """Whatever a field holds: a page that escapes it, or a sentence."""
    rng, texts = np.random.default_rng(0), [report.to_json(), reviewed.to_json()]
    others = [
        None,
        True,
        -1,
        10**30,
        1e308,
        "<script>",
        "",
        [],
        {},
        [[]],
        [{}],
        {"": []},
        ["x"],
        [0],
    ]
    for _ in range(200):
        record = json.loads(texts[rng.integers(2)])
        place, key = record, rng.choice(list(record))
        while (
            rng.random() < 0.7 and isinstance(place[key], (dict, list)) and place[key]
        ):
            place = place[key]
            key = (
                rng.choice(list(place))
                if isinstance(place, dict)
                else rng.integers(len(place))
            )
        place[key] = others[rng.integers(len(others))]
        try:
            read = AuditReport.from_json(json.dumps(record))
        except ValueError:
            continue
        html = read.to_html()
        assert html.count("<script") == 1
        read.to_csv()
        read.to_label_studio()
        repr(read)


def test_frames_and_verdicts_in_csv(iris, report, tmp_path):
    wrong = iris[2]
    report.to_csv(tmp_path / "list.csv")
    frame = pd.read_csv(tmp_path / "list.csv")
    assert frame["row"].tolist() == report.listed.tolist()
    assert frame["is_error"].isna().all()
    frame["is_error"] = np.where(wrong[frame["row"]], "yes", "No")
    frame.loc[0, "is_error"] = ""
    frame.to_csv(tmp_path / "verdicts.csv", index=False)
    reviewed = report.read_verdicts(tmp_path / "verdicts.csv")
    rest = report.listed[1:]
    assert reviewed.verdicts == dict(zip(rest.tolist(), wrong[rest].tolist()))
    columns = reviewed.to_frame()
    assert columns["is_error"].tolist() == [None, *wrong[rest].tolist()]
    assert (columns["label_error"] == (columns["q_value"] <= 0.1)).all()


def test_verdicts_are_checked(report, tmp_path):
    verdicts, entries = tmp_path / "verdicts.csv", {
        "": "verdicts must be a CSV file", "row,wrong\n1,yes": "verdicts must be a CSV file",
        "row,is_error\n3,": "verdicts must hold at least one",
        "row,is_error\n1,maybe": "is_error must be true, false or nothing",
        "row,is_error\nx,true": "row must be a row number",
        "row,is_error\n,true": "row must be a row number",
        "row,is_error\n150,true": "rows must be row numbers",
    }  # fmt: skip
    for text, message in entries.items():
        verdicts.write_text(text + "\n" * bool(text))
        with pytest.raises(ValueError, match=message):
            report.read_verdicts(verdicts)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["2024-03-01", "2024-04-01"], "M8[ns]"),
        np.array(["2024-03-01T10:00", "2024-04-01T11:30"], "M8[ns]"),
        np.array([1, 36], "m8[h]"),
        np.array([1.0, 2.0]),
        np.array([True, False]),
        np.array(["skip", "unsure"]),
    ],
    ids=["days", "times", "durations", "numbers", "booleans", "words"],
)
def test_a_label_that_an_annotator_confirms_is_right(labels, tmp_path):
    """Labels of any kind, from the table to the tasks, the export and back."""
    X, codes = np.arange(40.0)[:, None], np.arange(40) // 20
    codes[:3] = 1
    detector = LabelErrorDetector(cv=2, random_state=0, task="classification")
    report = audit(X, labels[codes], detector=detector)
    tasks = report.to_label_studio()
    for task in tasks:
        choice = {"type": "choices", "value": {"choices": [task["data"]["given"]]}}
        task["annotations"] = [{"result": [choice]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    for one in (report, AuditReport.from_json(report.to_json())):
        verdicts = one.read_verdicts(tmp_path / "export.json").verdicts
        assert len(verdicts) == len(tasks) > 0
        assert not any(verdicts.values())


def test_annotators_who_skip_or_contradict_give_no_verdict(report, tmp_path):
    label, other = str(report.labels[0]), "another"
    cases = {  # choices of each annotator -> the verdict
        ((label,),): False, ((other,),): True, (("Skip",), (label,)): False, (("skip",),): None,
        (("unsure",), (label,)): False, ((other,), ("a third",)): True,
        ((label,), (other,)): None, ((label, other),): None, ((other, "a third"),): None,
        ((),): None,
    }  # fmt: skip
    rows = np.flatnonzero(report.labels == label)[: len(cases)].tolist()
    tasks = [
        {"data": {"row": row}, "annotations": [
            {"completed_by": who, "result": [{"type": "choices", "value": {"choices": choices}}]}
            for who, choices in enumerate(chosen)
        ]}
        for row, chosen in zip(rows, cases)
    ]  # fmt: skip
    again = tasks[0]["annotations"][0]  # of one annotator the last choice counts
    tasks[0]["annotations"].insert(
        0, json.loads(json.dumps(again).replace(label, other))
    )
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    unclear = ", ".join(map(str, rows[6:9]))
    with pytest.warns(UserWarning, match=f"3 rows have no verdict.*rows {unclear}$"):
        found = report.read_verdicts(tmp_path / "export.json").verdicts
    expected = [verdict for verdict in cases.values() if verdict is not None]
    told = [row for row, verdict in zip(rows, cases.values()) if verdict is not None]
    assert found == dict(zip(told, expected))


def test_label_studio(iris, report, tmp_path):
    """What annotators choose there comes back as verdicts."""
    wrong = iris[2]
    tasks = report.to_label_studio()
    assert [task["data"]["row"] for task in tasks] == report.to_review.tolist()
    first = tasks[0]["predictions"][0]["result"][0]
    row = report.to_review[0]
    assert first["value"]["choices"] == [report.suggestions[row]]
    assert "colour: " in tasks[0]["data"]["content"]
    for task in tasks:
        label = task["data"]["given"] if not wrong[task["data"]["row"]] else "another"
        answer = [{**first, "value": {"choices": [label]}}]
        cancelled = {"was_cancelled": True, "result": []}
        task["annotations"] = [{"was_cancelled": False, "result": answer}, cancelled]
    tasks[-1]["annotations"] = []
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    verdicts = report.read_verdicts(tmp_path / "export.json").verdicts
    rows = report.to_review[:-1]
    assert verdicts == dict(zip(rows.tolist(), wrong[rows].tolist()))
    for bad in ({}, [{"data": {}}], [{"data": {"row": 0}, "annotations": [{}]}]):
        (tmp_path / "export.json").write_text(json.dumps(bad))
        with pytest.raises(
            ValueError, match="tasks with annotations, as Label Studio exports"
        ):
            report.read_verdicts(tmp_path / "export.json")


def test_a_label_that_looks_like_a_formula_is_none_in_a_spreadsheet(tmp_path):
    y = np.array(["=cmd|' /C calc'!A0", "-1", "+1,5 %", "@SUM(A1)"])[np.arange(60) % 4]
    X = np.random.default_rng(0).normal(size=(60, 2))
    report = audit(
        X, y, detector=LabelErrorDetector(GaussianNB(), cv=2, random_state=0)
    )
    report.to_csv(tmp_path / "list.csv")
    frame = pd.read_csv(tmp_path / "list.csv", dtype=str)
    for name in ("label", "suggestion"):
        assert set(frame[name]) == {"'=cmd|' /C calc'!A0", "-1", "+1,5 %", "'@SUM(A1)"}
    frame.assign(is_error="true").to_csv(tmp_path / "verdicts.csv", index=False)
    assert len(report.read_verdicts(tmp_path / "verdicts.csv").verdicts) == len(
        report.listed
    )


def test_a_long_label_is_refused_in_a_sentence():
    y = np.array(["a", "b"] * 30, dtype=object)
    y[3] = "L" * 20_000
    with pytest.raises(
        ValueError, match="labels must be of at most 1000 letters. Got 'one of 20000"
    ):
        audit(np.arange(60.0)[:, None], y)


@pytest.mark.parametrize(
    "gap", [None, pytest.param(float("nan"), marks=pytest.mark.slow)]
)
def test_validation_rows_are_equal_whatever_the_type_of_their_numbers(gap):
    """One gap makes a column of whole numbers one of floats."""
    X = pd.DataFrame(
        {"a": np.arange(40) * 7 % 31, "b": np.arange(40) % 3, "c": list("xyzw") * 10}
    )
    y, X_val = np.arange(40) % 2, X[:30].astype({"a": object})
    X_val.loc[31] = [gap, 1, "x"]
    X_val["a"] = X_val["a"].astype(float)
    report = audit(X, y, X_val=X_val, y_val=y[:31], detector=QUICK)
    assert "validation: 30 of 31 rows are equal to a row of the table." in report.notes


def test_the_page_is_one_file_that_escapes_what_it_shows(report, reviewed, tmp_path):
    report.to_html(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert html == report.to_html()
    for part in ("<title>Iris &amp; more", "virginica &lt;i&gt;"):
        assert part in html
    assert "<i>virginica" not in html
    assert not re.findall(r"(src|href|url|@import)\W+(https?:)?//", html)
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', html)[
        1
    ]
    assert policy.startswith("default-src &#39;none&#39;; img-src data:; ")
    assert "unsafe" not in policy
    assert "That is no error rate: even if 5&nbsp;% of all labels are wrong" in html
    assert (
        "% of rows" not in html
    )  # before verdicts, no number to be read as an error rate
    assert len(re.findall("<tr data-rank", html)) == len(report.listed)
    html = reviewed.to_html()
    assert "of rows are wrong and listed" in html
    assert html.count('" data-say="wrong">') == sum(reviewed.verdicts.values())
    framed = report._repr_html_()
    assert framed.startswith("<iframe")
    assert "<title>" not in framed  # it is an attribute of the frame


# What the list is worth, and the page -------------------------------------------------


SIGNALS = [(0.0, True), pytest.param(0.15, True, marks=pytest.mark.slow), (2.0, False)]


@pytest.mark.parametrize(("signal", "weak"), SIGNALS)
def test_models_that_are_no_better_than_a_guess_are_called_weak(signal, weak, rng):
    y = np.where(rng.random(300) < 0.7, "no", "yes")
    X = rng.normal(size=(300, 3))
    X[:, 0] += signal * (y == "yes")
    report = audit(
        X, y, detector=LabelErrorDetector(LogisticRegression(), cv=2, random_state=0)
    )
    worth = report.worth
    right = report.suggestions == y
    assert worth["weak"] == weak
    assert ("Too weak to judge" in report.to_html()) == weak
    assert worth["accuracy"] == right.mean()
    assert worth["low"] < worth["accuracy"] < worth["high"]
    assert (worth["commonest"], worth["commonest_rate"]) == ("no", (y == "no").mean())
    for each in worth["classes"]:
        of_class = y == each["label"]
        assert each["n"] == of_class.sum()
        assert each["accuracy"] == right[of_class].mean()


def test_the_bound_of_the_list_holds_for_wrong_labels(iris, report):
    """If a fraction of labels is wrong, no more of the list can be than the page
    says."""
    wrong = iris[2]
    bound = wrong.mean() / report.fraction_listed
    assert wrong[report.listed].mean() <= bound
    assert (
        f"at most {5 / report.fraction_listed:.0f}&nbsp;% of this list can be"
        in report.to_html()
    )


def test_columns_that_tell_the_suggestion_from_the_label_come_first(rng):
    X = pd.DataFrame({f"noise{j}": rng.normal(size=300) for j in range(5)})
    X["key"] = [f"K-{i}" for i in rng.permutation(300)]
    X["size"] = rng.normal(size=300)
    y = np.where(X["size"] > 0, "big", "small")
    y, wrong = flip_labels(y, 0.05, random_state=0)
    report = audit(X, y, detector=QUICK, target="class", n_rows=100)
    found = [row for row in report.listed if wrong[row]]
    assert len(found) > 5
    first = [next(iter(report.contents[row])) for row in found]
    assert first.count("size") > 0.8 * len(found)
    html = report.to_html()
    assert report.about["id"] == "key"
    row = report.listed[0]
    assert (
        f'<td class="n" data-name="row">{row + 2}<br><span class="soft">{X["key"][row]}<'
        in html
    )


def test_numbers_and_names_of_files_as_people_write_them(rng):
    X = rng.normal(size=(80, 2))
    y = np.round(1e6 * (3 + X[:, 0]), 2)
    y[5] = 9_876_543.21
    report = audit(X, y, detector=QUICK, title="my prices.csv", target="price")
    html = report.to_html(
        files={"table": "tables/my prices.csv", "report": "reports/p.json"}
    )
    assert "9,876,543" in html
    assert "e+06" not in html
    assert "skvalue review p.json &#34;my prices.corrections.csv&#34; -o" in html
    assert "skvalue fix" not in html  # a prediction is no entry of a table
    assert "report.read_verdicts(" in report.to_html()


def test_duplicates_have_buttons_and_differences(rng):
    X = pd.DataFrame(rng.lognormal(3, 1, (200, 4)).round(3), columns=list("abcd"))
    X = pd.concat(
        [X, X[:4], X[10:12].assign(a=lambda f: f["a"] * 1.0001)], ignore_index=True
    )
    y = np.where(X["a"] > 20, "more", "less")
    y[200] = "less" if y[0] == "more" else "more"
    report = audit(X, y, detector=QUICK, target="y")
    assert [group.tolist() for group in report.duplicates] == [
        [i, 200 + i] for i in range(4)
    ]
    assert [sorted(group.tolist()) for group in report.conflicts] == [[0, 200]]
    assert [pair.tolist() for pair in report.similar] == [[10, 204], [11, 205]]
    html = report.to_html()
    assert html.count(">remove row</button>") == 2 * (4 + 2)
    assert re.search(rf"<dt>a</dt><dd>{X['a'][10]:g}</dd>", html)
    assert (
        "<dt>b</dt>"
        not in html.partition("Nearly equal rows</h2>")[2].partition("<h2>")[0]
    )


def test_corrections_are_verdicts(report, tmp_path):
    """The file that the page saves counts rows as a spreadsheet does."""
    rows, path = report.listed[:3].tolist(), tmp_path / "corrections.csv"
    lines = [
        f"{rows[0] + 2},flower,setosa,virginica,,true,true,",
        f"{rows[1] + 2},flower,setosa,setosa,,false,false,",
        f"{rows[2] + 2},flower,setosa,setosa,,remove,,",
    ]
    path.write_text(
        "\n".join(["row,column,old,new,why,accept,is_error,id", *lines, ""])
    )
    assert report.read_verdicts(path).verdicts == {rows[0]: True, rows[1]: False}
    shifted = dataclasses.replace(report, numbers=np.arange(150) * 2 + 2)
    path.write_text("row,column,old,new,accept,is_error\n6,flower,a,b,true,true\n")
    assert shifted.read_verdicts(path).verdicts == {2: True}
    path.write_text("row,column,old,new,accept,is_error\n7,flower,a,b,true,true\n")
    with pytest.raises(ValueError, match="row must be a row of the report. Got 7"):
        shifted.read_verdicts(path)


def test_images(tmp_path):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], flip_labels(y[:300], 0.1, random_state=0)[0]
    P = np.random.default_rng(0).dirichlet(np.ones(10), 300)
    report = audit(X.reshape(-1, 8, 8), y, pred_probs=P, n_rows=5, random_state=0)
    assert report.about["kind"] == "image"
    assert report.notes == ["images: their 64 pixels"]
    shown = set(report.rows["row"])
    assert {*report.listed[:5].tolist(), *report.to_review.tolist()} == shown
    assert shown < set(report.contents)
    assert all(
        uri.startswith("data:image/png;base64,") for uri in report.contents.values()
    )
    assert '<img src="data:image/png' in report.to_html()
    colours = np.random.default_rng(0).integers(0, 256, (300, 6, 5, 3)).astype(np.uint8)
    coloured = audit(None, y, pred_probs=P, contents=colours, n_rows=5)
    np.testing.assert_array_equal(coloured.values, report.values)
    assert all(uri.startswith("data:image/jpeg") for uri in coloured.contents.values())
    with pytest.raises(
        ValueError, match=r"\(height, width\) or \(height, width, 3\). Got \(6, 5"
    ):
        audit(None, y, pred_probs=P, contents=colours[..., :2])


def test_texts_and_conflicts():
    texts = [
        f"a {word} film of {year}"
        for year in range(1960, 1980)
        for word in ("good", "bad")
    ]
    labels = np.array(["yes", "no"] * 20)
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
    """Texts of which two of many words tell the label, labels with a tenth flipped, and
    which."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(2 * n)])
    y = np.array(["bad", "good"])[np.arange(n) % 2]
    signs = np.where(y == "good", "wonderful", "dreadful")
    texts = [
        " ".join([*rng.choice(words, 4), sign, *rng.choice(words, 2)]) for sign in signs
    ]
    given, wrong = flip_labels(y, 0.1, random_state=0)
    return texts, given, wrong


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


def test_texts_beside_other_columns(rng):
    texts, y, wrong = reviews()
    frame = pd.DataFrame(
        {"review": texts, "size": rng.normal(size=len(y)), "constant": 1}
    )
    frame.loc[::9, "review"] = None
    report = audit(frame, y, X_val=frame[:40], y_val=y[:40], detector=QUICK)
    assert average_precision_score(wrong, -report.values) > 0.6
    assert any("number size" in note for note in report.notes)
    assert any(
        "40 of 40 rows are equal to a row of the table" in note for note in report.notes
    )


def test_regression():
    X, y = make_regression(80, 4, noise=1.0, random_state=0)
    y[7] += 500
    report = audit(X, y, detector=QUICK)
    assert report.about["task"] == "regression"
    assert report.listed[0] == 7
    assert "target → prediction" in report.to_html()
    assert AuditReport.from_json(report.to_json()).to_html() == report.to_html()


def test_scores_are_named():
    X, y = load_iris(return_X_y=True)
    detector = LabelErrorDetector(KNNShapleyValuer(), cv=2, random_state=0)
    report = audit(X, flip_labels(y, 0.1, random_state=0)[0], detector=detector)
    assert (
        report.about["score"]
        == "value of the given label by KNNShapleyValuer, out of fold"
    )
    assert sorted(report.contents[report.listed[0]]) == ["x0", "x1", "x2", "x3"]


def test_probabilities_without_rows(iris):
    X, y, wrong = iris
    codes = np.unique(y, return_inverse=True)[1]
    P = np.full((150, 3), 0.1)
    P[np.arange(150), np.where(wrong, (codes + 1) % 3, codes)] = 0.8
    report = audit(None, y, pred_probs=P, contents=X)
    assert sorted(report.listed) == np.flatnonzero(wrong).tolist()
    assert "opponents" not in report.rows
    assert "colour" in report.to_html()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        audit(None, y, pred_probs=P, contents=X[:9])


PROBE = """<!DOCTYPE html><meta charset="utf-8"><iframe style="border: 0; height: 900px"></iframe>
<script>
const frame = document.querySelector("iframe"), found = {};
let loads = 0;
frame.style.width = "1280px";
frame.onload = () => {
  const inside = frame.contentDocument;
  const rows = () => [...inside.querySelectorAll("#list tr[data-row]")];
  const seen = () => rows().filter((tr) => !tr.hidden).map((tr) => +tr.dataset.row);
  const says = (row) => inside.querySelector(`#list .verdict[data-row="${row}"]`);
  const pressed = () => [...inside.querySelectorAll("[aria-pressed=true]")].map((button) =>
    button.parentNode.dataset.row + button.dataset.say);
  if (++loads === 2) {  // after a reload
    found.kept = pressed();
    const own = frame.contentWindow;
    own.URL.createObjectURL = (blob) => {
      blob.text().then((text) => {
        found.csv = text;
        document.body.textContent = JSON.stringify(found);
        document.body.id = "found";
      });
      return "#";
    };
    own.HTMLAnchorElement.prototype.click = () => {};  // no download
    inside.querySelector("#save").click();
    return;
  }
  found.all = seen();
  found.light = inside.defaultView.getComputedStyle(inside.body).backgroundColor;
  inside.querySelector("[data-key=row]").click();
  found.sorted = seen();
  inside.querySelector("[data-key=label]").click();
  found.labels = rows().map((tr) => tr.dataset.label);
  inside.querySelector("#label").value = "setosa";
  inside.querySelector("#label").oninput();
  found.setosa = seen();
  const [first, second, third] = found.all.map(says);
  first.querySelector(".wrong").click();
  second.querySelector(".right").click();
  third.querySelector(".wrong").click();
  const input = third.querySelector(".new");
  input.value = "=cmd";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  found.done = inside.querySelector("#done").textContent;
  found.pressed = pressed();
  inside.querySelectorAll("details").forEach((e) => { e.open = true; });
  frame.style.width = "400px";
  found.phone = inside.documentElement.scrollWidth;
  found.blocked = [];
  inside.addEventListener("securitypolicyviolation", (e) => found.blocked.push(e.blockedURI));
  inside.body.append(Object.assign(inside.createElement("img"), { src: "https://example.com/x" }));
  const script = inside.createElement("script");
  script.textContent = "document.title = 'injected'";
  inside.body.append(script);
  found.title = inside.title;
  setTimeout(() => frame.contentWindow.location.reload(), 100);
};
frame.src = "report.html";
</script>"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs the browser Chromium on the PATH")
def test_the_page_in_a_browser(iris, report, tmp_path):
    """Sorted and filtered without a network; no wider than a phone; a picture in dark
    mode."""
    report.to_html(tmp_path / "report.html")
    (tmp_path / "probe.html").write_text(PROBE, encoding="utf-8")
    chromium = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=100000",
    ]  # fmt: skip
    probe = [
        *chromium,
        "--window-size=1400,1000",
        "--dump-dom",
        (tmp_path / "probe.html").as_uri(),
    ]
    dom = subprocess.run(probe, capture_output=True, text=True, timeout=120).stdout
    found = json.loads(
        unescape(re.search('<body id="found">(.*)</body>', dom, re.DOTALL)[1])
    )
    numbers = report.numbers[report.listed].tolist()
    assert found["all"] == numbers
    assert found["sorted"] == sorted(numbers)
    assert found["labels"] == sorted(found["labels"])
    assert set(found["setosa"]) == {
        r + 2 for r in report.listed if report.labels[r] == "setosa"
    }
    assert found["done"] == "3"
    assert sorted(found["kept"]) == sorted(found["pressed"])  # after a reload
    assert len(found["kept"]) == 3
    (tmp_path / "corrections.csv").write_text(found["csv"])
    first, second, third = read_corrections(tmp_path / "corrections.csv")
    assert (first.row, first.old, first.accept) == (
        numbers[0],
        report.labels[report.listed[0]],
        True,
    )
    assert first.new == report.suggestions[report.listed[0]]
    assert not second.accept
    assert third.new == "=cmd"  # in the file with an apostrophe
    assert ",'=cmd," in found["csv"]
    verdicts = report.read_verdicts(tmp_path / "corrections.csv").verdicts
    assert verdicts == dict(zip(report.listed[:3].tolist(), (True, False, True)))
    assert set(found["blocked"]) == {"https://example.com/x", "inline"}
    assert "injected" not in found["title"]
    assert found["phone"] <= 400
    page = (tmp_path / "report.html").as_uri()
    picture = tmp_path / "dark.png"  # headless windows are no narrower than 500
    options = ["--window-size=500,1200", f"--screenshot={picture}", "--force-dark-mode"]
    subprocess.run(
        [*chromium, *options, page], capture_output=True, timeout=120, check=True
    )
    pixels = imread(picture)
    assert pixels.shape[:2] == (1200, 500)
    assert pixels[..., :3].std() > 0.05  # an empty page has 0
