"""`skvalue fix`: from an audit to a corrected file."""

import csv
import io
import json

import numpy as np
import pytest

from skvalue.audit import corrections_to_csv
from skvalue.audit.commands import main
from skvalue.datasets import flip_labels

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


def command(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A folder with a table, its bytes, its audit, and which labels are wrong."""
    folder, rng = tmp_path_factory.mktemp("audited"), np.random.default_rng(0)
    size, colour = rng.normal(size=150), rng.choice(["red, dark", "blue"], 150)
    truth = np.where(size + 2 * (colour == "blue") > 1, "high", "löw")
    label, wrong = flip_labels(truth, 0.08, random_state=0)
    frame = pd.DataFrame({"size": size.round(3), "colour": colour, "label": label})
    raw = b"\xef\xbb\xbf" + frame.to_csv(index=False, lineterminator="\r\n").encode()
    (folder / "train.csv").write_bytes(raw)
    words = [
        "audit",
        folder / "train.csv",
        "--target",
        "label",
        "-o",
        folder / "page.html",
    ]
    assert command(*words, "--json", folder / "report.json", "--checks", "fast") == 0
    return folder, raw, wrong


def test_audit_verdicts_fix(audited, tmp_path, capsys):
    folder, raw, wrong = audited
    rows = json.loads((folder / "report.json").read_text())["to_review"]
    lines = [f"{row},{str(bool(wrong[row])).lower()}" for row in rows]
    (tmp_path / "verdicts.csv").write_text("\n".join(["row,is_error", *lines]))
    report = tmp_path / "reviewed.json"
    assert (
        command(
            "review",
            folder / "report.json",
            tmp_path / "verdicts.csv",
            "--json",
            report,
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "No further row is named: these are rows that were looked at." in said
    new = tmp_path / "new.csv"
    assert command("fix", folder / "train.csv", report, "-o", new) == 0
    fixed = [row for row in rows if wrong[row]]
    assert len(fixed) > 5
    other = {"high": "löw", "löw": "high"}
    lines = raw.decode().split("\r\n")
    for row in fixed:
        start, _, label = lines[row + 1].rpartition(",")
        lines[row + 1] = f"{start},{other[label]}"
    assert new.read_bytes() == "\r\n".join(lines).encode()
    said = capsys.readouterr().out.splitlines()
    assert said[-1].endswith(
        f"{len(fixed)} corrections, listed in {tmp_path / 'new.changes.csv'}."
    )
    assert sum(line.startswith(f"row {min(fixed) + 2}, label: ") for line in said) == 1
    # the list of changes is one of corrections: the other way round it gives the old
    # file
    changes = pd.read_csv(tmp_path / "new.changes.csv")
    assert changes["row"].tolist() == [row + 2 for row in sorted(fixed)]
    back = changes.rename(columns={"old": "new", "new": "old"})
    back.to_csv(tmp_path / "back.csv", index=False)
    assert command("fix", new, tmp_path / "back.csv", "-o", tmp_path / "old.csv") == 0
    assert (tmp_path / "old.csv").read_bytes() == raw
    # what was corrected already is stale
    assert command("fix", new, report, "-o", tmp_path / "again.csv") == 2
    assert "or it has changed since. Got row" in capsys.readouterr().err
    assert not (tmp_path / "again.csv").exists()


def test_removed_rows_and_no_corrections(audited, tmp_path):
    folder, raw, _ = audited
    table, new = folder / "train.csv", tmp_path / "new.csv"
    records = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"))))
    out = tmp_path / "corrections.csv"
    out.write_text(
        f"row;column;old;new;why;accept\n5;label;{records[4][2]};;;remove\n6;label;x;y;;\n",
        encoding="utf-8",
    )
    assert (
        command("fix", table, out, "-o", new, "--changes", tmp_path / "list.csv") == 0
    )
    lines = raw.split(b"\r\n")
    assert new.read_bytes() == b"\r\n".join(lines[:4] + lines[5:])
    assert len(pd.read_csv(tmp_path / "list.csv")) == 1
    out.write_text("row,column,old,new,why,accept\n5,label,high,low,,false\n")
    assert command("fix", table, out, "-o", new) == 0
    assert new.read_bytes() == raw


def test_what_is_refused(audited, tmp_path, capsys):
    folder, raw, _ = audited
    table, report = folder / "train.csv", folder / "report.json"
    ok = tmp_path / "ok.csv"
    ok.write_text("row,column,old,new,why,accept\n5,label,high,low,,\n")
    none = tmp_path / "none.csv"
    none.write_text(corrections_to_csv([]))
    (tmp_path / "table.parquet").write_bytes(b"")
    for words, message in [
        (
            [table, ok, "-o", table],
            "--output must be a file that is not used otherwise",
        ),
        ([table, ok, "-o", ok], "--output must be a file that is not used otherwise"),
        (
            [table, ok, "-o", tmp_path / "n.csv", "--changes", table],
            "--changes must be a file that",
        ),
        ([table, report, "-o", tmp_path / "n.csv"], "report must be one with verdicts"),
        ([table, none, "-o", tmp_path / "n.csv"], "there is nothing to correct"),
        (
            [tmp_path / "table.parquet", ok, "-o", tmp_path / "n.csv"],
            "the table must end in one of",
        ),
        (
            [table, tmp_path / "no.json", "-o", tmp_path / "n.csv"],
            "report must be a file that exists",
        ),
        ([table, tmp_path / "no.csv", "-o", tmp_path / "n.csv"], "No such file"),
    ]:
        assert command("fix", *words) == 2, words
        said = capsys.readouterr().err
        assert message in said
        assert len(said.splitlines()) == 1
    assert table.read_bytes() == raw
    assert {path.name for path in tmp_path.iterdir()} == {
        "none.csv",
        "ok.csv",
        "table.parquet",
    }


def _lines(raw):
    return raw.decode("cp1252").split("\r\n")


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """A folder with a table of a spreadsheet, its report with verdicts, and the wrong
    rows."""
    folder, rng = tmp_path_factory.mktemp("reviewed"), np.random.default_rng(1)
    size = rng.normal(size=120)
    label, wrong = flip_labels(np.where(size > 0, "ja", "nein"), 0.1, random_state=0)
    label = label.astype(object)
    label[[3, 50]] = ""  # rows that the audit leaves out
    label[7] = label[7].upper()
    wrong[[3, 50]] = False
    lines = [f"{x:.3f};{y}".replace(".", ",") for x, y in zip(size, label)]
    raw = "\r\n".join(["größe;art", *lines, ""]).encode("cp1252")
    (folder / "t.csv").write_bytes(raw)
    report = folder / "report.json"
    words = ["audit", folder / "t.csv", "--target", "art", "-o", folder / "page.html"]
    words += ["--checks", "fast"]
    assert (
        command(*words, "--json", report, "--corrections", folder / "spellings.csv")
        == 0
    )
    kept = np.delete(np.arange(120), [3, 50])
    rows = [*range(0, 118, 2), *np.flatnonzero(wrong[kept])]
    verdicts = pd.DataFrame(
        {"row": rows, "is_error": wrong[kept[rows]]}
    ).drop_duplicates()
    verdicts.to_csv(folder / "verdicts.csv", index=False)
    assert command("review", report, folder / "verdicts.csv", "--json", report) == 0
    return folder, raw, np.flatnonzero(wrong)


def test_fix_of_a_table_with_rows_without_a_label(reviewed, tmp_path, capsys):
    """Report, corrections and values name rows of the file."""
    folder, raw, wrong = reviewed
    new, values = tmp_path / "new.csv", tmp_path / "values.csv"
    labelled = np.delete(np.arange(120), [3, 50])
    record = json.loads((folder / "report.json").read_text())
    assert record["numbers"] == (labelled + 2).tolist()
    assert record["labels"] == [
        row.split(";")[1] for row in _lines(raw)[1:-1] if row[-1] != ";"
    ]
    for row, shown in record["contents"].items():
        size = _lines(raw)[labelled[int(row)] + 1].split(";")[0]
        assert float(shown["größe"]) == float(size.replace(",", "."))
    assert command("value", folder / "t.csv", "--target", "art", "-o", values) == 0
    assert pd.read_csv(values)["row"].tolist() == labelled.tolist()
    assert command("fix", folder / "t.csv", folder / "report.json", "-o", new) == 0
    lines = _lines(raw)
    for row in wrong:
        size, label = lines[row + 1].split(";")
        lines[row + 1] = f"{size};{'nein' if label.lower() == 'ja' else 'ja'}"
    assert new.read_bytes() == "\r\n".join(lines).encode("cp1252")


def test_fix_of_spellings(reviewed, tmp_path):
    folder, raw, _ = reviewed
    new = tmp_path / "new.csv"
    assert command("fix", folder / "t.csv", folder / "spellings.csv", "-o", new) == 0
    lines = raw.split(b"\r\n")
    lines[8] = lines[8].lower()
    assert new.read_bytes() == b"\r\n".join(lines)


def test_clean_drops_what_a_report_names(reviewed, tmp_path, capsys):
    folder, raw, wrong = reviewed
    new, out = tmp_path / "new.csv", tmp_path / "dropped.csv"
    words = ["clean", folder / "t.csv", "--from", folder / "report.json", "-o", new]
    assert command(*words, "--report", out) == 0
    assert f"{118 - len(wrong)} of 118 rows; the others are wrong by a verdict." in (
        capsys.readouterr().out
    )
    left_out = set(wrong.tolist())  # the rows without a label stay
    lines = raw.split(b"\r\n")
    kept = [line for number, line in enumerate(lines) if number - 1 not in left_out]
    assert new.read_bytes() == b"\r\n".join(kept)
    dropped = pd.read_csv(out)
    assert dropped["dropped_row"].tolist() == wrong.tolist()
    assert set(dropped["dropped_reason"]) == {"wrong by a verdict"}
    # the report is of the table as it was
    assert (
        command(
            "clean", new, "--from", folder / "report.json", "-o", tmp_path / "x.csv"
        )
        == 2
    )
    assert "--from must be the report of this table" in capsys.readouterr().err


def test_clean_without_verdicts_or_target(audited, tmp_path, capsys):
    folder = audited[0]
    words = ["clean", folder / "train.csv", "-o", tmp_path / "new.csv"]
    assert command(*words, "--from", folder / "report.json") == 2
    assert "--from must be a report with verdicts" in capsys.readouterr().err
    assert command(*words) == 2
    assert "--target must name a column without --from" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_corrections_of_the_page(reviewed, tmp_path, capsys):
    """From an audit to the new file, by the file that the buttons of the page save."""
    folder, raw, wrong = reviewed
    path, new = tmp_path / "t.corrections.csv", tmp_path / "new.csv"
    lines = _lines(raw)
    labels = [line.split(";")[1] for line in lines[1:-1]]
    out = ["row,column,old,new,why,accept,is_error,id"]
    for row in (0, 1, 2, *wrong):
        other = "nein" if labels[row].lower() == "ja" else "ja"
        said = (
            ("right", labels[row], "false")
            if row not in wrong
            else ("wrong", other, "true")
        )
        is_error = said[2]
        out.append(
            f"{row + 2},art,{labels[row]},{said[1]},the label is {said[0]},{is_error},{is_error},"
        )
        if row in wrong:
            lines[row + 1] = lines[row + 1].replace(labels[row], other)
    last = next(row for row in range(119, 0, -1) if row not in wrong)
    out.append(
        f"{last + 2},art,{labels[last]},{labels[last]},the row is entered twice,remove,,"
    )
    del lines[last + 1]
    path.write_text("\n".join([*out, ""]))
    report = folder / "report.json"
    assert command("review", report, path, "--json", tmp_path / "again.json") == 0
    assert f"the label of {len(wrong)} is wrong" in capsys.readouterr().out
    assert command("fix", folder / "t.csv", path, "-o", new) == 0
    assert new.read_bytes() == "\r\n".join(lines).encode("cp1252")
