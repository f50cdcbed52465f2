"""Findings in a report, its page and its overview, and of `skvalue check`."""

import json
import re

import numpy as np
import pytest

from skvalue import LabelErrorDetector
from skvalue.audit import (
    AuditReport,
    audit_table,
    check_table,
    read_corrections,
    read_table,
)
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
FAST = LabelErrorDetector(cv=2, n_verdicts=10, random_state=0)
N = 150
N_ROWS = N + 4  # with those that are entered twice


def bills():
    """A table of bills with a fault of most kinds; an entry has another unit."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=N)
    days = pd.to_timedelta(rng.integers(0, 300, N), unit="D")
    X = pd.DataFrame({
        "weight": (70 + 10 * size + rng.normal(size=N)).round(2),
        "case": np.arange(1000, 1000 + N),
        "height": (170 + 8 * size + rng.normal(size=N)).round(2),
        "day": pd.Timestamp("2024-01-01") + days,
        "job <i>": rng.choice(["care", "sales", "tech"], N),
    })  # fmt: skip
    y = np.where(size + 0.8 * rng.normal(size=N) > 0, "paid", "open").astype(object)
    X["reminder"] = np.where(y == "open", "sent", "none")
    X.loc[::9, "height"] = np.nan
    X.loc[5, "weight"] *= 100
    X = pd.concat([X, X[:4].assign(case=range(5000, 5004))], ignore_index=True)
    y = np.concatenate([y, y[:4]])
    y[[7, 8]] = y[7].upper()
    return X, y


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the table, of which two rows have no label."""
    folder = tmp_path_factory.mktemp("bills")
    X, y = bills()
    y[[30, 40]] = None
    X.assign(bill=y).to_csv(folder / "bills.csv", index=False, sep=";")
    return folder


@pytest.fixture(scope="module")
def report():
    return audit_table(*bills(), detector=FAST, target="bill")


def headings(html):
    return re.findall("<h2>(.*?)</h2>", html)


# Reports and pages --------------------------------------------------------------------


def test_a_report_has_the_findings_of_the_table(report):
    X, y = bills()
    assert report.findings == check_table(
        X, y, target="bill", worth=report.worth, random_state=0
    )
    kinds = {finding.kind for finding in report.findings}
    assert kinds >= {"spelling", "id", "equal rows", "leak", "improbable entries"}
    assert report.said["unchecked"] == []


def test_findings_survive_the_file_of_a_report(report):
    read = AuditReport.from_json(report.to_json())
    assert read.findings == AuditReport.from_json(read.to_json()).findings
    assert read.to_html() == report.to_html()


def test_the_page_has_the_sections_in_order(report):
    assert headings(report.to_html()) == [
        "In short",
        "The target: bill",
        "Equal rows",
        "Columns",
        "Doubtful labels",
        "Far rows and improbable entries",
        "What was done, and what was not checked",
        "Corrections",
    ]


def test_the_page_shows_all_findings(report):
    html = report.to_html()
    for finding in report.findings:
        assert finding.sentence.replace("'", "&#39;") in html
    entry = r"row&nbsp;5 \(1005\): <b>weight = \d+ where about \d+ is expected</b>"
    assert re.search(entry, html)
    assert len(html) < 100_000


def test_the_page_has_a_button_for_the_rows_of_a_spelling(report):
    html = report.to_html()
    button = 'data-row="7 8" data-id="" data-old="{}" data-new="{}"'
    assert (
        button.format("PAID", "paid") in html or button.format("OPEN", "open") in html
    )


def test_the_overview_has_a_line_for_each_column(report):
    lines = {line["column"]: line for line in report.overview}
    assert list(lines) == list(bills()[0].columns)
    kinds = [line["kind"] for line in report.overview]
    assert kinds == ["number", "number", "number", "date", "category", "category"]
    assert lines["height"]["missing"] == 17 + 1
    assert lines["case"]["said"] == "1000 to 5003"
    assert re.fullmatch(r"2024-01-\d\d to 2024-10-\d\d", lines["day"]["said"])
    assert re.fullmatch(r"commonest: \w+ \(\d+\)", lines["job <i>"]["said"])
    for line in report.overview:
        assert sum(line["bars"]) + line["missing"] == N_ROWS


def test_the_page_draws_the_overview_and_escapes_names(report):
    html = report.to_html()
    assert html.count("<svg") == 6
    assert "job &lt;i&gt;" in html
    assert "job <i>" not in html


ROWS = np.arange(60)[:, None]
KINDS = {
    "array with gaps": (np.where(ROWS % [7, 2, 61], ROWS % 23.0, np.nan), 3, True),
    "texts": (
        [f"a {word} film of {i}" for i in range(30) for word in ("good", "bad")],
        0,
        True,
    ),
    "pictures": (np.random.default_rng(0).random((60, 4, 4)), 0, False),
}


@pytest.mark.parametrize(("X", "n_columns", "is_checked"), KINDS.values(), ids=KINDS)
def test_rows_of_any_kind_are_audited(X, n_columns, is_checked):
    y = np.arange(60) % 2
    report = audit_table(
        X, y, X_val=X[:2], y_val=y[:2], detector=FAST, checks="fast", n_rows=10
    )
    assert len(report.overview) == n_columns
    kinds = [finding.kind for finding in report.findings]
    assert kinds.count("copies in validation") == is_checked
    assert ("Validation points" in headings(report.to_html())) == is_checked
    unchecked = "columns, far rows, the order of rows, and single entries"
    if is_checked:
        unchecked = "whether single entries fit the rest of their row"
    assert report.said["unchecked"] == [unchecked]
    AuditReport.from_json(report.to_json())


# Files of tables ----------------------------------------------------------------------


def test_a_file_is_read_and_audited(folder):
    report = audit_table(
        folder / "bills.csv", target="bill", detector=FAST, checks=None
    )
    assert report.about["title"] == "bills.csv"
    assert report.about["n_samples"] == N_ROWS - 2
    assert report.numbers[[29, 30]].tolist() == [31, 33]
    assert "fields separated by semicolons" in report.said["read"]
    assert "2 rows without a label are left out." in report.said["read"]


def test_a_file_without_a_target_is_refused(folder):
    message = "target must name a column of the file. Got None"
    with pytest.raises(ValueError, match=message):
        audit_table(folder / "bills.csv")


def test_labels_beside_a_file_are_refused(folder):
    with pytest.raises(ValueError, match="y must be None if X is a file"):
        audit_table(str(folder / "bills.csv"), bills()[1])


def test_unknown_checks_are_refused():
    with pytest.raises(ValueError, match="'checks' parameter of audit_table must be"):
        audit_table(*bills(), checks="some")


# skvalue check ------------------------------------------------------------------------


def check(folder, tmp_path):
    """Check the table; writes findings.json and fixes.csv. Returns the exit code."""
    return command(
        f"check {folder}/bills.csv --target bill --findings {tmp_path}/findings.json "
        f"--corrections {tmp_path}/fixes.csv --fail-on-findings error"
    )


def test_check_prints_findings_and_its_gate_fails(folder, tmp_path, capsys):
    assert check(folder, tmp_path) == 1
    out = capsys.readouterr().out
    assert f"2 of {N_ROWS} rows have no label and are left out: rows 32, 42." in out
    assert "warning id: 'case' has another value in every row: not used." in out
    assert re.search(r"question improbable entries: .*weight = \d+.* \(rows 7", out)
    assert "gate failed: 1 findings are errors or worse." in out


def test_check_writes_findings_with_rows_as_a_spreadsheet_counts(folder, tmp_path):
    check(folder, tmp_path)
    findings = json.loads((tmp_path / "findings.json").read_text())["findings"]
    severities = [finding["severity"] for finding in findings]
    assert severities[:2] == ["error", "warning"]
    rows = {finding["kind"]: finding["rows"] for finding in findings}
    assert rows["missing labels"] == [32, 42]
    assert rows["spelling"] == [9, 10]
    copies = range(N + 2, N + 6)
    assert set(rows["equal rows"]) == {*range(2, 6), *copies}


def test_check_accepts_spellings_alone(folder, tmp_path):
    check(folder, tmp_path)
    corrections = read_corrections(tmp_path / "fixes.csv")
    copies = range(N + 2, N + 6)
    assert [(each.row, each.accept) for each in corrections] == [
        (9, True),
        (10, True),
        (32, False),
        (42, False),
        *((row, False) for row in copies),
    ]


def test_corrections_that_are_filled_in_leave_fewer_findings(folder, tmp_path):
    check(folder, tmp_path)
    fixes = tmp_path / "fixes.csv"
    text = fixes.read_text()
    text = re.sub(r"(?m)^(15\d,.*),false$", r"\1,remove", text)
    text = re.sub(r"(?m)^(32|42),bill,,,no label,false", r"\1,bill,,paid,,true", text)
    fixes.write_text(text)
    assert command(f"fix {folder}/bills.csv {fixes} -o {tmp_path}/new.csv") == 0
    frame = read_table(tmp_path / "new.csv", "bill").frame
    findings = check_table(
        frame.drop(columns="bill"),
        frame["bill"],
        cells=False,
        worth={"weak": False},
        random_state=0,
    )
    kinds = {finding.kind for finding in findings}
    assert not kinds & {"missing labels", "spelling", "equal rows"}


def test_check_without_a_target_looks_at_columns_and_rows(folder, tmp_path, capsys):
    table = folder / "bills.csv"
    line = f"check {table} --checks fast --validation {table}"
    assert command(f"{line} --findings {tmp_path}/findings.json") == 0
    out = capsys.readouterr().out
    assert f"{N_ROWS} rows, 7 columns, fields separated by semicolons" in out
    assert f"error copies in validation: {N_ROWS} of {N_ROWS}" in out
    assert "leak" not in out
    assert command(f"{line} --fail-on-findings question") == 1


def test_corrections_without_a_target_are_refused(folder, tmp_path, capsys):
    assert command(f"check {folder}/bills.csv --corrections {tmp_path}/fixes.csv") == 2
    assert "--corrections must be used with --target" in capsys.readouterr().err


# skvalue audit ------------------------------------------------------------------------


def test_an_audit_has_the_findings_of_the_file(folder, tmp_path, capsys):
    code = command(
        f"audit {folder}/bills.csv --target bill -o {tmp_path}/page.html "
        f"--json {tmp_path}/page.json --checks fast --fail-on-findings warning "
        "--fail-on 0.9"
    )
    assert code == 1
    out = capsys.readouterr().out
    assert "gate passed: the fraction" in out
    assert re.search("gate failed: \\d findings are warnings or worse", out)
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert headings(html)[0] == "What was read"
    assert "Not checked: whether single entries fit the rest of their row." in html
    assert f"2 of {N_ROWS} rows have no label" in html
    assert command(f"review {tmp_path}/page.json {tmp_path}/none.csv") == 2
    report = AuditReport.from_json((tmp_path / "page.json").read_text())
    assert report.findings[0].kind == "missing labels"


# Letters that cannot be seen ----------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "common", "shown"),
    [
        ("positive\u200b", "positive", r"'positive\u200b'"),
        ("posi\xadtive", "positive", r"'posi\xadtive'"),
        ("cafe\u0301", "caf\xe9", r"'cafe\u0301'"),
    ],
)
def test_labels_that_look_the_same_are_a_finding(label, common, shown):
    y = [common] * 60 + ["negative"] * 60 + [label] * 40
    findings = check_table(pd.DataFrame({"size": np.arange(160.0) % 7}), y)
    [spelling] = [finding for finding in findings if finding.kind == "spelling"]
    assert spelling.fix[0] == (120, "target", common)
    assert shown in spelling.sentence
