"""`skvalue audit` and `skvalue review`: pages, gates, verdicts, bad input."""

import datetime
import json
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from html import unescape
from importlib.util import find_spec

import numpy as np
import pytest

from skvalue.audit import read_corrections
from skvalue.audit.commands import main
from skvalue.datasets import flip_labels

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


def command(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with train.csv and val.csv, and which labels of the first are wrong."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    size, colour = rng.normal(size=180), rng.choice(["red", "blue"], 180)
    label = np.where(size + 2 * (colour == "red") > 1, "high", "low")
    label, wrong = flip_labels(label, 0.08, random_state=0)
    frame = pd.DataFrame({"size": size.round(3), "colour": colour, "label": label})
    frame.loc[::15, "size"] = np.nan
    frame[:120].to_csv(folder / "train.csv", index=False)
    frame[120:].to_csv(folder / "val.csv", index=False)
    return folder, wrong[:120]


@pytest.fixture(scope="module")
def audited(tables):
    """The folder after an audit, and its exit code."""
    folder, wrong = tables
    words = [
        "audit",
        folder / "train.csv",
        "--target",
        "label",
        "-o",
        folder / "report.html",
    ]
    words += ["--validation", folder / "val.csv", "--json", folder / "report.json"]
    words += [
        "--csv",
        folder / "list.csv",
        "--tasks",
        folder / "tasks.json",
        "--fail-on",
        "0.01",
    ]
    words += ["--checks", "fast"]
    return folder, wrong, command(*words)


def test_audit_writes_a_page_and_its_gate_fails(audited, capsys):
    folder, wrong, code = audited
    assert code == 1
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "train.csv: what is wrong?" in html
    record = json.loads((folder / "report.json").read_text())
    assert len(record["values"]) == 120
    notes = " ".join(record["notes"])
    assert "number size: scaled" in notes
    assert "category colour: one column per category" in notes
    assert re.search(
        r"validation: \d+ of 60 rows are equal to a row of the table", notes
    )
    assert re.search(
        r"the accuracy of a forest is 0\.\d+ with all rows, 0\.\d+ without", notes
    )
    listed = pd.read_csv(folder / "list.csv")
    assert wrong[listed["row"]].mean() > 0.5
    tasks = json.loads((folder / "tasks.json").read_text())
    assert {task["data"]["row"] for task in tasks} <= set(listed["row"])


def test_review_says_what_verdicts_say(audited, tmp_path, capsys):
    folder, wrong, _ = audited
    verdicts = pd.read_csv(folder / "list.csv").query("to_review")
    verdicts["is_error"] = wrong[verdicts["row"]]
    verdicts.to_csv(tmp_path / "verdicts.csv", index=False)
    words = ["review", folder / "report.json", tmp_path / "verdicts.csv"]
    outputs = ["-o", tmp_path / "new.html", "--json", tmp_path / "new.json"]
    assert command(*words, *outputs, "--fail-on", "0.5") == 0
    said = capsys.readouterr().out
    assert (
        f"{len(verdicts)} rows were looked at; the label of {wrong[verdicts['row']].sum()}"
        in said
    )
    assert re.search(
        r"\d+ of \d+ listed rows are named: on average, at most 10 %", said
    )
    rate = float(re.search(r"([\d.]+) % of 120 rows are listed and wrong", said)[1])
    assert abs(rate / 100 - wrong.mean()) < 0.04
    assert "gate passed: the error rate of the list, by the verdicts, is 0.0" in said
    assert "of rows are wrong and listed" in (tmp_path / "new.html").read_text(
        encoding="utf-8"
    )
    assert command(*words, "--fail-on", "0.001") == 1
    assert "gate failed: the error rate of the list" in capsys.readouterr().out
    # verdicts are kept, and more may come
    (tmp_path / "more.csv").write_text(
        f"row,is_error\n{verdicts['row'].iloc[0]},false\n"
    )
    assert command("review", tmp_path / "new.json", tmp_path / "more.csv") == 0
    assert f"{len(verdicts)} rows were looked at" in capsys.readouterr().out


def test_bad_input_is_one_sentence_and_leaves_no_file(audited, tmp_path, capsys):
    folder = audited[0]
    (tmp_path / "one.csv").write_text("a,label\n1,x\n1,x\n2,x\n")
    (tmp_path / "broken.csv").write_text("a,label\n1,x\n2\n")
    (tmp_path / "verdicts.csv").write_text("row,is_error\n999,true\n")
    (tmp_path / "other.json").write_text("{}")
    before = sorted(tmp_path.iterdir())
    page = ["--target", "label", "-o", tmp_path / "page.html"]
    train, report, verdicts = (
        folder / "train.csv",
        folder / "report.json",
        tmp_path / "verdicts.csv",
    )
    for words, message in [
        (
            ["audit", tmp_path / "one.csv", *page],
            "--target must be a column of at least two",
        ),
        (
            ["audit", tmp_path / "broken.csv", *page],
            "must have 2 fields, as most lines have",
        ),
        (
            ["audit", train, "--target", "x", *page[2:]],
            "--target must be a column of the file",
        ),
        (
            ["audit", train, *page[:2], "-o", tmp_path / "p.pdf"],
            "--output must end in one of .html",
        ),
        (["audit", train, *page, "--fdr", "2"], "--fdr must be"),
        (
            ["review", report, verdicts, *page[2:]],
            "rows must be row numbers from 0 to 119",
        ),
        (["review", tmp_path / "other.json", verdicts], "report must be of format"),
        (
            ["review", tmp_path / "none.json", verdicts],
            "report must be a file that exists",
        ),
        (["review", report, tmp_path / "none.csv"], "No such file"),
    ]:
        assert command(*words) == 2, words
        said = capsys.readouterr().err
        assert message in said
        assert len(said.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("limit", ["nan", "-0.1", "1.5", "inf"])
def test_a_gate_is_a_fraction(audited, limit, capsys):
    folder = audited[0]
    with pytest.raises(SystemExit) as ended:
        command("review", folder / "report.json", "verdicts.csv", f"--fail-on={limit}")
    assert ended.value.code == 2
    assert "--fail-on: must be a number from 0 to 1" in capsys.readouterr().err


def test_a_reader_who_stops_reading_does_not_lose_the_file(tables, tmp_path):
    """As with ``python -m skvalue | head -1``: the rest is written to nobody."""
    words = [
        "value",
        tables[0] / "train.csv",
        "--target",
        "label",
        "-o",
        tmp_path / "values.csv",
    ]
    words = [sys.executable, "-m", "skvalue", *map(str, words)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == 0, said
    assert "Broken pipe" not in said
    assert len(pd.read_csv(tmp_path / "values.csv")) == 120


@pytest.mark.skipif(not find_spec("pyarrow"), reason="no pyarrow")
def test_dates_and_decimal_numbers_of_parquet(tmp_path, capsys):
    n, start = 60, datetime.date(2024, 1, 1)
    frame = pd.DataFrame({
        "day": [start + datetime.timedelta(3 * i % 50) for i in range(n)],
        "price": [Decimal(i * 37 % 100) / 100 for i in range(n)],
        "label": ["a", "b"] * (n // 2),
    })  # fmt: skip
    frame.loc[3, ["day", "price"]] = None
    frame.to_parquet(tmp_path / "train.parquet")
    words = [
        "value",
        tmp_path / "train.parquet",
        "--target",
        "label",
        "-o",
        tmp_path / "v.csv",
    ]
    assert command(*words) == 0
    said = capsys.readouterr().out
    assert "number price: scaled" in said
    assert "date day: as seconds" in said


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None
)
PROBE = """<!DOCTYPE html><meta charset="utf-8"><iframe></iframe><script>
const frame = document.querySelector("iframe");
let loads = 0;
frame.onload = () => {
  const inside = frame.contentDocument, own = frame.contentWindow;
  if (++loads === 1) {
    const wrong = [...inside.querySelectorAll("#list .wrong")].slice(0, 5);
    wrong.forEach((button) => button.click());
    inside.querySelectorAll("#list .right")[5].click();
    setTimeout(() => own.location.reload(), 100);
    return;
  }
  own.URL.createObjectURL = (blob) => {
    blob.text().then((text) => { document.body.textContent = text; document.body.id = "found"; });
    return "#";
  };
  own.HTMLAnchorElement.prototype.click = () => {};  // no download
  inside.querySelector("#save").click();
};
frame.src = "page.html";
</script>"""


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs the browser Chromium on the PATH")
def test_from_the_table_to_the_page_and_to_a_mended_table(tmp_path, capsys):
    """Verdicts in the page, a reload, corrections, a file that differs in these fields
    alone."""
    rng = np.random.default_rng(0)
    size = rng.normal(50, 10, 200).round(1)
    labels, wrong = flip_labels(
        np.where(size > 50, "groß", "klein"), 0.1, random_state=0
    )
    lines = [
        f'"{s}";a, b;{label}\r\n'.replace(".", ",") for s, label in zip(size, labels)
    ]
    raw = ("Größe;Text;Urteil\r\n" + "".join(lines)).encode("cp1252")
    (tmp_path / "alt.csv").write_bytes(raw)
    words = [
        "audit",
        tmp_path / "alt.csv",
        "--target",
        "Urteil",
        "--json",
        tmp_path / "alt.json",
    ]
    assert command(*words, "-o", tmp_path / "page.html", "--checks", "fast") == 0
    (tmp_path / "probe.html").write_text(PROBE, encoding="utf-8")
    chromium = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        "--virtual-time-budget=10000", "--dump-dom", (tmp_path / "probe.html").as_uri(),
    ]  # fmt: skip
    dom = subprocess.run(chromium, capture_output=True, text=True, timeout=120).stdout
    text = unescape(re.search('<body id="found">(.*)</body>', dom, re.DOTALL)[1])
    (tmp_path / "alt.corrections.csv").write_text(text, encoding="utf-8")
    fixed = ["fix", tmp_path / "alt.csv", tmp_path / "alt.corrections.csv"]
    assert command(*fixed, "-o", tmp_path / "neu.csv") == 0
    other = {"groß": "klein", "klein": "groß"}
    rows = [
        row for row in read_corrections(tmp_path / "alt.corrections.csv") if row.accept
    ]
    assert len(rows) == 5
    assert wrong[[row.row - 2 for row in rows]].sum() >= 4
    for row in rows:
        line, label = lines[row.row - 2], labels[row.row - 2]
        lines[row.row - 2] = line.replace(label, other[label])
    expected = ("Größe;Text;Urteil\r\n" + "".join(lines)).encode("cp1252")
    assert (tmp_path / "neu.csv").read_bytes() == expected
    assert (
        command("review", tmp_path / "alt.json", tmp_path / "alt.corrections.csv") == 0
    )
    assert "6 rows were looked at; the label of 5 is wrong" in capsys.readouterr().out
