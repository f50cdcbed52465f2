"""Rows are numbered by one rule: files as a spreadsheet does, Python as Python does.

The name of the column says which: ``row`` is of a spreadsheet, whose header is row 1,
``index`` counts from 0.
"""

import csv
import json
import re

import numpy as np
import pytest

from skvalue import LabelErrorDetector
from skvalue.audit import AuditReport, audit_table, corrections_of, read_corrections
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
QUICK = LabelErrorDetector(cv=2, n_verdicts=10, random_state=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table one of whose labels is wrong, that of the sixth row."""
    folder = tmp_path_factory.mktemp("numbered")
    rng = np.random.default_rng(0)
    size = np.r_[rng.normal(-3, 1, 40), rng.normal(3, 1, 40)].round(2)
    label = np.repeat(["small", "large"], 40)
    label[5] = "large"
    frame = pd.DataFrame({"size": size, "other": rng.normal(size=80), "label": label})
    frame.to_csv(folder / "t.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def of_file(folder):
    return audit_table(folder / "t.csv", target="label", detector=QUICK, checks=None)


@pytest.fixture(scope="module")
def of_frame(folder):
    frame = pd.read_csv(folder / "t.csv")
    return audit_table(
        frame[["size", "other"]], frame["label"], detector=QUICK, checks=None
    )


CASES = [("of_file", "row", 7), ("of_frame", "index", 5)]


@pytest.mark.parametrize(("name", "column", "number"), CASES)
def test_a_page_counts_rows_as_where_they_are_from(name, column, number, request):
    html = request.getfixturevalue(name).to_html()
    assert f'data-column="{column}"' in html
    first = re.search(r'<tr data-rank="1" data-row="(\d+)"', html)
    assert int(first[1]) == number
    how = {"row": "the header is row 1", "index": "the first is row 0"}[column]
    assert how in html


@pytest.mark.parametrize(("name", "column", "number"), CASES)
def test_a_list_and_tasks_name_the_rule_of_their_numbers(
    name, column, number, request, tmp_path
):
    report = request.getfixturevalue(name)
    report.to_csv(tmp_path / "list.csv")
    first = next(csv.DictReader((tmp_path / "list.csv").read_text().splitlines()))
    assert int(first[column]) == number
    assert report.to_frame()["row"].iloc[0] == 5  # Python as Python
    row = report.to_review.tolist().index(5)
    assert report.to_label_studio()[row]["data"][column] == number


@pytest.mark.parametrize("name", ["of_file", "of_frame"])
@pytest.mark.parametrize(("column", "number"), [("row", 7), ("index", 5)])
def test_verdicts_and_corrections_are_read_by_either_rule(
    name, column, number, request, tmp_path
):
    report = request.getfixturevalue(name)
    path = tmp_path / "c.csv"
    header = f"{column},column,old,new,accept,is_error"
    path.write_text(f"{header}\n{number},label,large,small,true,true\n")
    assert report.read_verdicts(path).verdicts == {5: True}
    [correction] = read_corrections(path)
    assert correction.row == 7
    [of_verdict] = corrections_of(report.review([5], [True]))
    assert of_verdict.row == 7


COMMANDS = {
    "value": "value T --target label -o OUT",
    "clean": "clean T --target label --drop 1 -o KEPT --report OUT",
    "audit": "audit T --target label -o PAGE --csv OUT --checks fast",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_files_of_commands_count_as_a_spreadsheet(name, folder, tmp_path):
    names = {"T": folder / "t.csv"}
    names |= {"OUT": "out.csv", "KEPT": "kept.csv", "PAGE": "page.html"}
    words = [
        str(tmp_path / names[word]) if word in names else word
        for word in COMMANDS[name].split()
    ]
    assert command(words) == 0
    frame = pd.read_csv(tmp_path / "out.csv")
    if name == "value":
        assert frame["row"].tolist() == list(range(2, 82))
    elif name == "clean":
        assert frame["dropped_row"].tolist() == [7]
    else:
        assert frame["row"].iloc[0] == 7


def test_from_json_takes_a_path_as_to_json_does(of_file, tmp_path):
    path = tmp_path / "report.json"
    of_file.to_json(path)
    for given in (path, str(path), path.read_text()):
        assert AuditReport.from_json(given).to_json() == of_file.to_json()
    with pytest.raises(ValueError, match="report must be JSON"):
        AuditReport.from_json(str(tmp_path / "none.json"))
    with pytest.raises(FileNotFoundError):
        AuditReport.from_json(tmp_path / "none.json")


# Targets of a regression --------------------------------------------------------------


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    """The report of a file with decimal commas, of which one price is wrong."""
    tmp_path = tmp_path_factory.mktemp("prices")
    rng = np.random.default_rng(0)
    size = rng.normal(size=80)
    price = (15000 + 2000 * size + rng.normal(size=80)).round(2)
    price[5] = 1787.5
    text = [f"{number:.2f}".replace(".", ",") for number in price]
    text[6] = f"{text[6]} "
    size = [f"{number:.3f}".replace(".", ",") for number in size]
    day = [f"{i % 28 + 1:02d}.03.2024" for i in range(80)]
    frame = pd.DataFrame({"size": size, "day": day, "price": text})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    code = command(
        f"audit {tmp_path}/t.csv --target price -o {tmp_path}/p.html --json "
        f"{tmp_path}/r.json --checks fast --dates dmy"
    )
    assert code == 0
    return tmp_path


def test_a_wrong_target_gets_a_number_on_the_page_and_in_the_file(prices, capsys):
    html = (prices / "p.html").read_text(encoding="utf-8")
    assert re.search(
        r'data-row="7"[^>]* data-old="1787,50" data-new=""[^\n]*placeholder="right',
        html,
    )
    assert "1787.5</span> → " in html  # as its prediction, without marks
    assert not re.search(r"\d,\d{3}</span> →|→ <[^>]*>\d+,\d{3}<", html)
    assert "speak against the target" in html
    assert "speak against the label" not in html

    (prices / "c.csv").write_text(
        'row,column,old,new,accept\n7,price,"1787,50","14999,99",true\n'
        '8,price,"1,00",,false\n'
    )
    code = command(f"fix {prices}/t.csv {prices}/c.csv -o {prices}/f.csv")
    assert code == 0
    assert "1 correction not accepted" in capsys.readouterr().out
    lines = (prices / "t.csv").read_text().split("\n")
    fixed = (prices / "f.csv").read_text().split("\n")
    assert fixed[6] == lines[6].replace("1787,50", "14999,99")
    assert fixed[:6] + fixed[7:] == lines[:6] + lines[7:]


def test_a_report_keeps_the_entries_of_its_file(prices):
    record = json.loads((prices / "r.json").read_text())
    assert record["entries"][5] == "1787,50"
    record["entries"] = record["entries"][1:]
    with pytest.raises(ValueError, match="entries must be 80 entries"):
        AuditReport.from_json(json.dumps(record))
