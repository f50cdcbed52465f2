"""Findings in the report of an audit, in its page, and of `skvalue check`; the
overview."""

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
from skvalue.audit.commands import main

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
FAST = LabelErrorDetector(cv=2, n_verdicts=10, random_state=0)


def command(*words):
    return main([str(word) for word in words])


N = 150


def bills(n=N):
    """A table of bills with a fault of most kinds; a single entry has another unit."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=n)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        rng.integers(0, 300, n), unit="D"
    )
    X = pd.DataFrame({
        "weight": (70 + 10 * size + rng.normal(size=n)).round(2), "case": np.arange(1000, 1000 + n),
        "height": (170 + 8 * size + rng.normal(size=n)).round(2), "day": days,
        "job <i>": rng.choice(["care", "sales", "tech"], n),
    })  # fmt: skip
    y = np.where(size + 0.8 * rng.normal(size=n) > 0, "paid", "open").astype(object)
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
    folder, (X, y) = tmp_path_factory.mktemp("bills"), bills()
    y[[30, 40]] = None
    X.assign(bill=y).to_csv(folder / "bills.csv", index=False, sep=";")
    return folder


@pytest.fixture(scope="module")
def report():
    X, y = bills()
    return audit_table(X, y, detector=FAST, target="bill")


def headings(html):
    return re.findall("<h2>(.*?)</h2>", html)


def test_the_report_has_the_findings_of_the_table(report):
    X, y = bills()
    again = check_table(X, y, target="bill", worth=report.worth, random_state=0)
    assert report.findings == again
    kinds = {each.kind for each in report.findings}
    assert kinds >= {"spelling", "id", "equal rows", "leak", "improbable entries"}
    assert report.said["unchecked"] == []
    read = AuditReport.from_json(report.to_json())
    assert read.findings == AuditReport.from_json(read.to_json()).findings
    assert read.to_html() == report.to_html()


def test_the_page_has_the_sections_in_order(report):
    html = report.to_html()
    assert headings(html) == [
        "In short", "The target: bill", "Equal rows", "Columns", "Doubtful labels",
        "Far rows and improbable entries", "What was done, and what was not checked", "Corrections",
    ]  # fmt: skip
    for finding in report.findings:
        assert finding.sentence.replace("'", "&#39;") in html
    assert re.search(
        r"row&nbsp;7 \(1005\): <b>weight = \d+ where about \d+ is expected</b>", html
    )
    assert 'data-row="9 10" data-id="" data-old="PAID" data-new="paid"' in html or (
        'data-row="9 10" data-id="" data-old="OPEN" data-new="open"' in html
    )
    assert len(html) < 100_000


def test_the_overview_has_a_line_for_each_column(report):
    lines = {each["column"]: each for each in report.overview}
    assert list(lines) == [*bills()[0].columns]
    kinds = [each["kind"] for each in report.overview]
    assert kinds == ["number", "number", "number", "date", "category", "category"]
    assert lines["height"]["missing"] == 17 + 1
    assert lines["case"]["said"] == "1000 to 5003"
    assert re.fullmatch(r"2024-01-\d\d to 2024-10-\d\d", lines["day"]["said"])
    assert re.fullmatch(r"commonest: \w+ \(\d+\)", lines["job <i>"]["said"])
    assert all(sum(each["bars"]) + each["missing"] == N + 4 for each in report.overview)
    html = report.to_html()
    assert html.count("<svg") == 6
    assert "job &lt;i&gt;" in html
    assert "job <i>" not in html


@pytest.mark.parametrize(
    ("X", "n_columns", "checked"),
    [
        (
            np.where(
                np.arange(60)[:, None] % [7, 2, 61],
                np.arange(60.0)[:, None] % 23,
                np.nan,
            ),
            3,
            True,
        ),
        ([f"a {w} film of {i}" for i in range(30) for w in ("good", "bad")], 0, True),
        (np.random.default_rng(0).random((60, 4, 4)), 0, False),
    ],
    ids=["array with gaps", "texts", "pictures"],
)
def test_rows_of_any_kind(X, n_columns, checked):
    y = np.arange(60) % 2
    X_val = X[:2]
    options = dict(detector=FAST, checks="fast", n_rows=10)
    report = audit_table(X, y, X_val=X_val, y_val=y[:2], **options)
    assert len(report.overview) == n_columns
    found = [each for each in report.findings if each.kind == "copies in validation"]
    assert len(found) == checked
    assert ("Validation points" in headings(report.to_html())) == checked
    assert report.said["unchecked"] == [
        "whether single entries fit the rest of their row"
        if checked
        else "columns, far rows, the order of rows, and single entries"
    ]
    AuditReport.from_json(report.to_json())


def test_the_file_of_a_table(folder):
    report = audit_table(
        folder / "bills.csv", target="bill", detector=FAST, checks=None
    )
    assert report.about["title"] == "bills.csv"
    assert report.about["n_samples"] == N + 2
    assert report.numbers[[29, 30]].tolist() == [31, 33]
    assert "fields separated by ;" in report.said["read"]
    assert "2 rows without a label are left out." in report.said["read"]
    with pytest.raises(
        ValueError, match="target must name a column of the file. Got None"
    ):
        audit_table(folder / "bills.csv")
    with pytest.raises(ValueError, match="y must be None if X is a file"):
        audit_table(str(folder / "bills.csv"), bills()[1])
    with pytest.raises(ValueError, match="'checks' parameter of audit_table must be"):
        audit_table(*bills(), checks="some")


def test_check_prints_and_writes_what_it_found(folder, tmp_path, capsys):
    found, fixes = tmp_path / "found.json", tmp_path / "fixes.csv"
    words = ["check", folder / "bills.csv", "--target", "bill", "--findings", found]
    assert command(*words, "--corrections", fixes, "--fail-on-findings", "error") == 1
    said = capsys.readouterr().out
    assert f"2 of {N + 4} rows have no label and are left out: rows 32, 42." in said
    assert "warning id: 'case' has another value in every row: not used." in said
    assert re.search(r"question improbable entries: .*weight = \d+.* \(rows 7", said)
    assert "gate failed: 1 findings are errors or worse." in said
    findings = json.loads(found.read_text())["findings"]
    assert [each["severity"] for each in findings[:2]] == ["error", "warning"]
    rows = {each["kind"]: each["rows"] for each in findings}
    assert rows["missing labels"] == [32, 42]
    assert rows["spelling"] == [9, 10]
    copies = range(N + 2, N + 6)
    assert set(rows["equal rows"]) == {*range(2, 6), *copies}
    corrections = read_corrections(fixes)
    assert [(each.row, each.accept) for each in corrections] == [
        (9, True), (10, True), (32, False), (42, False), *((row, False) for row in copies),
    ]  # fmt: skip
    # Corrections that are filled in make a table with fewer findings
    lines = fixes.read_text().splitlines()
    lines = [re.sub("^(15\\d,.*),false$", "\\1,remove", line) for line in lines]
    lines = [
        re.sub("^(32|42),bill,,,no label,false", "\\1,bill,,paid,,true", x)
        for x in lines
    ]
    fixes.write_text("\n".join([*lines, ""]))
    new = tmp_path / "new.csv"
    assert command("fix", folder / "bills.csv", fixes, "-o", new) == 0
    frame = read_table(new, "bill").frame
    X, y, worth = frame.drop(columns="bill"), frame["bill"], {"weak": False}
    kinds = {
        each.kind
        for each in check_table(X, y, cells=False, worth=worth, random_state=0)
    }
    assert not kinds & {"missing labels", "spelling", "equal rows"}


def test_check_without_a_target(folder, tmp_path, capsys):
    words = [
        "check",
        folder / "bills.csv",
        "--checks",
        "fast",
        "--validation",
        folder / "bills.csv",
    ]
    assert command(*words, "--findings", tmp_path / "found.json") == 0
    said = capsys.readouterr().out
    assert f"{N + 4} rows, 7 columns, fields separated by ;" in said
    assert f"error copies in validation: {N + 4} of {N + 4}" in said
    assert "leak" not in said
    assert command(*words, "--fail-on-findings", "question") == 1
    assert command(*words, "--corrections", tmp_path / "fixes.csv") == 2
    assert "--corrections must be used with --target" in capsys.readouterr().err


def test_findings_of_an_audit(folder, tmp_path, capsys):
    page, report = tmp_path / "page.html", tmp_path / "page.json"
    words = [
        "audit",
        folder / "bills.csv",
        "--target",
        "bill",
        "-o",
        page,
        "--json",
        report,
    ]
    assert (
        command(
            *words,
            "--checks",
            "fast",
            "--fail-on-findings",
            "warning",
            "--fail-on",
            0.9,
        )
        == 1
    )
    said = capsys.readouterr().out
    assert "gate passed: the fraction" in said
    assert re.search("gate failed: \\d findings are warnings or worse", said)
    html = page.read_text(encoding="utf-8")
    assert headings(html)[0] == "What was read"
    assert "Not checked: whether single entries fit the rest of their row." in html
    assert f"2 of {N + 4} rows have no label" in html
    assert command("review", report, tmp_path / "none.csv") == 2
    assert (
        AuditReport.from_json(report.read_text()).findings[0].kind == "missing labels"
    )
