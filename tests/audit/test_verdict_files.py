"""Verdicts that come back: in CSV files, corrections and exports of Label Studio."""

import dataclasses
import json

import numpy as np
import pytest

from skvalue import LabelErrorDetector
from skvalue.audit import AuditReport, audit_table

pd = pytest.importorskip("pandas")


# CSV files ----------------------------------------------------------------------------


def test_a_list_that_is_filled_in_gives_verdicts(iris, iris_report, tmp_path):
    wrong = iris[2]
    iris_report.to_csv(tmp_path / "list.csv")
    frame = pd.read_csv(tmp_path / "list.csv")
    frame["is_error"] = np.where(wrong[frame["index"]], "yes", "No")
    frame.loc[0, "is_error"] = ""
    frame.to_csv(tmp_path / "verdicts.csv", index=False)
    verdicts = iris_report.read_verdicts(tmp_path / "verdicts.csv").verdicts
    rows = iris_report.listed[1:]
    assert verdicts == dict(zip(rows.tolist(), wrong[rows].tolist()))


REFUSED = {
    "": "verdicts must be a CSV file",
    "row,wrong\n1,yes\n": "verdicts must be a CSV file",
    "row,is_error\n3,\n": "verdicts must hold at least one",
    "row,is_error\n1,maybe\n": "is_error must be true, false or nothing",
    "row,is_error\nx,true\n": "row must be a row number",
    "row,is_error\n,true\n": "row must be a row number",
    "row,is_error\n152,true\n": "row must be a row of the report",
    "index,is_error\n150,true\n": "index must be a row number from 0 to 149",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_files_without_verdicts_are_refused(iris_report, tmp_path, text, message):
    (tmp_path / "verdicts.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        iris_report.read_verdicts(tmp_path / "verdicts.csv")


# Corrections --------------------------------------------------------------------------


def test_corrections_of_the_page_are_verdicts(iris_report, tmp_path):
    """The file that the page saves counts rows as a spreadsheet does."""
    first, second, third = iris_report.listed[:3].tolist()
    lines = [
        "row,column,old,new,why,accept,is_error,id",
        f"{first + 2},flower,setosa,virginica,,true,true,",
        f"{second + 2},flower,setosa,setosa,,false,false,",
        f"{third + 2},flower,setosa,setosa,,remove,,",
        "",
    ]
    (tmp_path / "corrections.csv").write_text("\n".join(lines))
    report = iris_report.read_verdicts(tmp_path / "corrections.csv")
    assert report.verdicts == {first: True, second: False}


@pytest.fixture
def shifted(iris_report):
    """The report of a file whose rows have even numbers."""
    return dataclasses.replace(iris_report, numbers=np.arange(150) * 2 + 2)


def test_corrections_have_the_numbers_of_the_file(shifted, tmp_path):
    path = tmp_path / "corrections.csv"
    path.write_text("row,column,old,new,accept,is_error\n6,flower,a,b,true,true\n")
    assert shifted.read_verdicts(path).verdicts == {2: True}


def test_a_correction_of_a_row_that_was_not_audited_is_refused(shifted, tmp_path):
    path = tmp_path / "corrections.csv"
    path.write_text("row,column,old,new,accept,is_error\n7,flower,a,b,true,true\n")
    with pytest.raises(ValueError, match="row must be a row of the report. Got 7"):
        shifted.read_verdicts(path)


# Label Studio -------------------------------------------------------------------------


def annotation(*choices, **fields):
    """What an annotator chose."""
    chosen = {"type": "choices", "value": {"choices": list(choices)}}
    return {"result": [chosen], **fields}


def read_tasks(report, tasks, folder):
    """The verdicts of an export of these tasks."""
    (folder / "export.json").write_text(json.dumps(tasks))
    return report.read_verdicts(folder / "export.json").verdicts


def test_tasks_hold_the_rows_to_review_and_their_suggestion(iris_report):
    tasks = iris_report.to_label_studio()
    assert [task["data"]["index"] for task in tasks] == iris_report.to_review.tolist()
    prediction = tasks[0]["predictions"][0]["result"][0]
    row = iris_report.to_review[0]
    assert prediction["value"]["choices"] == [iris_report.suggestions[row]]
    assert "colour: " in tasks[0]["data"]["content"]


def test_what_annotators_choose_comes_back_as_verdicts(iris, iris_report, tmp_path):
    wrong = iris[2]
    tasks = iris_report.to_label_studio()
    cancelled = {"was_cancelled": True, "result": []}
    for task in tasks:
        chosen = dict(task["predictions"][0]["result"][0])
        is_wrong = wrong[task["data"]["index"]]
        label = "another" if is_wrong else task["data"]["given"]
        chosen["value"] = {"choices": [label]}
        task["annotations"] = [{"was_cancelled": False, "result": [chosen]}, cancelled]
    tasks[-1]["annotations"] = []
    rows = iris_report.to_review[:-1]
    verdicts = read_tasks(iris_report, tasks, tmp_path)
    assert verdicts == dict(zip(rows.tolist(), wrong[rows].tolist()))


LABELS = {
    "days": np.array(["2024-03-01", "2024-04-01"], "M8[ns]"),
    "times": np.array(["2024-03-01T10:00", "2024-04-01T11:30"], "M8[ns]"),
    "durations": np.array([1, 36], "m8[h]"),
    "numbers": np.array([1.0, 2.0]),
    "booleans": np.array([True, False]),
    "words": np.array(["skip", "unsure"]),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_a_label_that_an_annotator_confirms_is_right(labels, tmp_path):
    """Labels of any kind, from the table to the tasks, the export and back."""
    X = np.arange(40.0)[:, None]
    codes = np.arange(40) // 20
    codes[:3] = 1
    detector = LabelErrorDetector(cv=2, random_state=0, task="classification")
    report = audit_table(X, labels[codes], detector=detector, checks=None, n_rows=10)
    tasks = report.to_label_studio()
    for task in tasks:
        task["annotations"] = [annotation(task["data"]["given"])]
    for same in (report, AuditReport.from_json(report.to_json())):
        verdicts = read_tasks(same, tasks, tmp_path)
        assert len(verdicts) == len(tasks) > 0
        assert not any(verdicts.values())


def test_annotators_who_skip_or_contradict_give_no_verdict(iris_report, tmp_path):
    label = str(iris_report.labels[0])
    other = "another"
    # Choices of each annotator, and the verdict.
    cases = [
        ([[label]], False),
        ([[other]], True),
        ([["Skip"], [label]], False),
        ([["skip"]], None),
        ([["unsure"], [label]], False),
        ([[other], ["a third"]], True),
        ([[label], [other]], None),
        ([[label, other]], None),
        ([[other, "a third"]], None),
        ([[]], None),
    ]
    rows = np.flatnonzero(iris_report.labels == label)[: len(cases)].tolist()
    tasks = []
    expected = {}
    for row, (choices_of, verdict) in zip(rows, cases):
        annotations = [
            annotation(*choices, completed_by=annotator)
            for annotator, choices in enumerate(choices_of)
        ]
        tasks.append({"data": {"index": row}, "annotations": annotations})
        if verdict is not None:
            expected[row] = verdict
    # Of one annotator, the last choice counts.
    tasks[0]["annotations"].insert(0, annotation(other, completed_by=0))

    unclear = ", ".join(map(str, rows[6:9]))
    with pytest.warns(UserWarning, match=f"3 rows have no verdict.*rows {unclear}$"):
        verdicts = read_tasks(iris_report, tasks, tmp_path)
    assert verdicts == expected


@pytest.mark.parametrize(
    "tasks", [{}, [{"data": {}}], [{"data": {"row": 2}, "annotations": [{}]}]]
)
def test_json_of_something_else_is_refused(iris_report, tmp_path, tasks):
    message = "tasks with annotations, as Label Studio exports"
    with pytest.raises(ValueError, match=message):
        read_tasks(iris_report, tasks, tmp_path)
