"""`skvalue audit` and `skvalue review`: pages, gates, verdicts, bad input."""

import datetime
import json
import re
import subprocess
import sys
from decimal import Decimal
from importlib.util import find_spec

import numpy as np
import pytest

from skvalue.datasets import flip_labels
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with train.csv and val.csv, and which labels of the first are wrong."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    size = rng.normal(size=180)
    colour = rng.choice(["red", "blue"], 180)
    label = np.where(size + 2 * (colour == "red") > 1, "high", "low")
    label, wrong = flip_labels(label, 0.08, random_state=0)
    frame = pd.DataFrame({"size": size.round(3), "colour": colour, "label": label})
    frame.loc[::15, "size"] = np.nan
    frame[:120].to_csv(folder / "train.csv", index=False)
    frame[120:].to_csv(folder / "val.csv", index=False)
    return folder, wrong[:120]


@pytest.fixture(scope="module")
def audited(tables):
    """The folder after an audit, which labels are wrong, and the exit code."""
    folder, wrong = tables
    code = command(
        f"audit {folder}/train.csv --target label --validation {folder}/val.csv "
        f"-o {folder}/report.html --json {folder}/report.json --csv {folder}/list.csv "
        f"--tasks {folder}/tasks.json --fail-on 0.01 --checks fast"
    )
    return folder, wrong, code


@pytest.fixture
def verdicts(audited, tmp_path):
    """A file of right verdicts on the rows to review, and the verdicts."""
    folder, wrong, _ = audited
    verdicts = pd.read_csv(folder / "list.csv").query("to_review")
    verdicts["is_error"] = wrong[verdicts["row"] - 2]
    verdicts.to_csv(tmp_path / "verdicts.csv", index=False)
    return tmp_path / "verdicts.csv", verdicts


# Audit --------------------------------------------------------------------------------


def test_the_gate_of_an_audit_fails(audited):
    _, _, code = audited
    assert code == 1


def test_an_audit_writes_a_page_and_a_report(audited):
    folder, _, _ = audited
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "train.csv: what is wrong?" in html
    record = json.loads((folder / "report.json").read_text())
    assert len(record["values"]) == 120


def test_an_audit_notes_what_was_done_and_what_the_validation_points_say(audited):
    folder, _, _ = audited
    notes = " ".join(json.loads((folder / "report.json").read_text())["notes"])
    assert "number size: scaled" in notes
    assert "category colour: one column per category" in notes
    equal = r"validation: \d+ of 60 rows are equal to a row of the table"
    assert re.search(equal, notes)
    accuracy = r"the accuracy of a forest is 0\.\d+ with all rows, 0\.\d+ without"
    assert re.search(accuracy, notes)


def test_an_audit_writes_the_list_and_tasks_for_label_studio(audited):
    folder, wrong, _ = audited
    listed = pd.read_csv(folder / "list.csv")
    assert wrong[listed["row"] - 2].mean() > 0.5
    tasks = json.loads((folder / "tasks.json").read_text())
    assert {task["data"]["row"] for task in tasks} <= set(listed["row"])


# Review -------------------------------------------------------------------------------


def test_a_review_says_what_the_verdicts_say(audited, verdicts, tmp_path, capsys):
    folder, wrong, _ = audited
    path, frame = verdicts
    assert command(f"review {folder}/report.json {path} -o {tmp_path}/new.html") == 0
    out = capsys.readouterr().out
    n_wrong = wrong[frame["row"] - 2].sum()
    assert f"{len(frame)} rows were looked at; the label of {n_wrong}" in out
    assert re.search(r"\d+ of \d+ listed rows are named: on average, at most 10 %", out)
    rate = float(re.search(r"([\d.]+) % of 120 rows are listed and wrong", out)[1])
    assert abs(rate / 100 - wrong.mean()) < 0.04
    html = (tmp_path / "new.html").read_text(encoding="utf-8")
    assert "of rows are wrong and listed" in html


def test_the_gate_of_a_review_is_on_the_error_rate(audited, verdicts, capsys):
    folder, _, _ = audited
    line = f"review {folder}/report.json {verdicts[0]} --fail-on"
    assert command(f"{line} 0.5") == 0
    passed = "gate passed: the error rate of the list, by the verdicts, is 0.0"
    assert passed in capsys.readouterr().out
    assert command(f"{line} 0.001") == 1
    assert "gate failed: the error rate of the list" in capsys.readouterr().out


def test_verdicts_are_kept_and_more_may_come(audited, verdicts, tmp_path, capsys):
    folder, _, _ = audited
    path, frame = verdicts
    new = tmp_path / "new.json"
    assert command(f"review {folder}/report.json {path} --json {new}") == 0
    more = tmp_path / "more.csv"
    more.write_text(f"row,is_error\n{frame['row'].iloc[0]},false\n")
    capsys.readouterr()
    assert command(f"review {new} {more}") == 0
    assert f"{len(frame)} rows were looked at" in capsys.readouterr().out


# Bad input ----------------------------------------------------------------------------

# "FOLDER" holds the audit, "HERE" the bad files.
BAD = {
    "audit HERE/one.csv --target label -o HERE/page.html": (
        "--target must be a column of at least two"
    ),
    "audit HERE/broken.csv --target label -o HERE/page.html": (
        "must have 2 fields, as most lines have"
    ),
    "audit FOLDER/train.csv --target x -o HERE/page.html": (
        "--target must be a column of the file"
    ),
    "audit FOLDER/train.csv --target label -o HERE/p.pdf": (
        "--output must end in one of .html"
    ),
    "audit FOLDER/train.csv --target label -o HERE/page.html --fdr 2": "--fdr must be",
    "review FOLDER/report.json HERE/verdicts.csv -o HERE/page.html": (
        "row must be a row of the report"
    ),
    "review HERE/other.json HERE/verdicts.csv": "report must be of format",
    "review HERE/none.json HERE/verdicts.csv": "report must be a file that exists",
    "review FOLDER/report.json HERE/none.csv": "No such file",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_sentence_and_leaves_no_file(line, audited, tmp_path, capsys):
    (tmp_path / "one.csv").write_text("a,label\n1,x\n1,x\n2,x\n")
    (tmp_path / "broken.csv").write_text("a,label\n1,x\n2\n")
    (tmp_path / "verdicts.csv").write_text("row,is_error\n999,true\n")
    (tmp_path / "other.json").write_text("{}")
    before = sorted(tmp_path.iterdir())
    folder, _, _ = audited
    line_here = line.replace("FOLDER", str(folder)).replace("HERE", str(tmp_path))
    assert command(line_here) == 2
    err = capsys.readouterr().err
    assert BAD[line] in err
    assert len(err.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("limit", ["nan", "-0.1", "1.5", "inf"])
def test_a_gate_that_is_no_fraction_is_refused(audited, limit, capsys):
    folder, _, _ = audited
    with pytest.raises(SystemExit) as ended:
        command(f"review {folder}/report.json verdicts.csv --fail-on={limit}")
    assert ended.value.code == 2
    assert "--fail-on: must be a number from 0 to 1" in capsys.readouterr().err


# Other ends of files ------------------------------------------------------------------


def test_a_reader_who_stops_reading_does_not_lose_the_file(tables, tmp_path):
    """As with ``python -m skvalue | head -1``: the rest is written to nobody."""
    folder, _ = tables
    values = tmp_path / "values.csv"
    line = f"-m skvalue value {folder}/train.csv --target label -o {values}"
    words = [sys.executable, *line.split()]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe) as process:
        process.stdout.close()
        err = process.stderr.read().decode()
    assert process.returncode == 0, err
    assert "Broken pipe" not in err
    assert len(pd.read_csv(values)) == 120


@pytest.mark.skipif(not find_spec("pyarrow"), reason="no pyarrow")
def test_dates_and_decimal_numbers_of_parquet_are_read(tmp_path, capsys):
    n = 60
    start = datetime.date(2024, 1, 1)
    frame = pd.DataFrame({
        "day": [start + datetime.timedelta(3 * i % 50) for i in range(n)],
        "price": [Decimal(i * 37 % 100) / 100 for i in range(n)],
        "label": ["a", "b"] * (n // 2),
    })  # fmt: skip
    frame.loc[3, ["day", "price"]] = None
    frame.to_parquet(tmp_path / "train.parquet")
    table = tmp_path / "train.parquet"
    assert command(f"value {table} --target label -o {tmp_path}/v.csv") == 0
    out = capsys.readouterr().out
    assert "number price: scaled" in out
    assert "date day: as seconds" in out
