"""`skvalue fix`, and `skvalue clean --from`: from an audit to a corrected file."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skvalue.audit import AuditReport, corrections_to_csv
from skvalue.datasets import flip_labels
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


# Labels of an audit -------------------------------------------------------------------


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A folder with a table and its audit, the bytes, and which labels are wrong."""
    folder = tmp_path_factory.mktemp("audited")
    rng = np.random.default_rng(0)
    size = rng.normal(size=150)
    colour = rng.choice(["red, dark", "blue"], 150)
    label = np.where(size + 2 * (colour == "blue") > 1, "high", "löw")
    label, wrong = flip_labels(label, 0.08, random_state=0)
    frame = pd.DataFrame({"size": size.round(3), "colour": colour, "label": label})
    raw = b"\xef\xbb\xbf" + frame.to_csv(index=False, lineterminator="\r\n").encode()
    (folder / "train.csv").write_bytes(raw)
    code = command(
        f"audit {folder}/train.csv --target label -o {folder}/page.html "
        f"--json {folder}/report.json --checks fast"
    )
    assert code == 0
    return folder, raw, wrong


@pytest.fixture
def fixed(audited, tmp_path, capsys):
    """The reviewed report, the rows with a wrong label, and what was printed.

    The table is corrected into new.csv.
    """
    folder, _, wrong = audited
    rows = json.loads((folder / "report.json").read_text())["to_review"]
    lines = [f"{row},{str(bool(wrong[row])).lower()}" for row in rows]
    verdicts = tmp_path / "verdicts.csv"
    verdicts.write_text("\n".join(["index,is_error", *lines]))
    report = tmp_path / "reviewed.json"
    assert command(f"review {folder}/report.json {verdicts} --json {report}") == 0
    assert command(f"fix {folder}/train.csv {report} -o {tmp_path}/new.csv") == 0
    out = capsys.readouterr().out
    return report, sorted(row for row in rows if wrong[row]), out


def test_verdicts_on_all_rows_of_the_list_name_no_further_row(fixed):
    _, _, out = fixed
    assert "No further row is named: these are rows that were looked at." in out


def test_wrong_labels_become_the_suggestions_and_nothing_else_changes(
    audited, fixed, tmp_path
):
    _, raw, _ = audited
    _, rows, _ = fixed
    assert len(rows) > 5
    other = {"high": "löw", "löw": "high"}
    lines = raw.decode().split("\r\n")
    for row in rows:
        start, _, label = lines[row + 1].rpartition(",")
        lines[row + 1] = f"{start},{other[label]}"
    assert (tmp_path / "new.csv").read_bytes() == "\r\n".join(lines).encode()


# Rows that verdicts name --------------------------------------------------------------


@pytest.fixture
def half_reviewed(audited, tmp_path, capsys):
    """A report with verdicts on all rows to review but two: all are wrong."""
    folder, _, _ = audited
    report = AuditReport.from_json((folder / "report.json").read_text())
    report = replace(report, about={**report.about, "fdr": 0.3})
    rows = report.to_review[:-2]
    report = report.review(rows, np.ones(len(rows), dtype=bool))
    (tmp_path / "half.json").write_text(report.to_json())
    return report


def test_named_rows_become_the_suggestions(audited, half_reviewed, tmp_path):
    folder, _, _ = audited
    files = f"{folder}/train.csv {tmp_path}/half.json -o {tmp_path}/new.csv"
    assert command(f"fix {files} --named") == 0
    named = np.flatnonzero(half_reviewed.statement.label_error)
    assert len(named) > len(half_reviewed.verdicts)
    changes = pd.read_csv(tmp_path / "new.changes.csv")
    assert changes["row"].tolist() == half_reviewed.numbers[named].tolist()
    suggestions = half_reviewed.suggestions[named].tolist()
    assert changes["new"].tolist() == suggestions
    has_verdict = np.isin(named, list(half_reviewed.verdicts))
    whys = changes["why"].str.startswith("named, without a verdict: at most 30 %")
    assert whys.tolist() == (~has_verdict).tolist()


def test_rows_are_named_by_a_report_alone(audited, tmp_path, capsys):
    folder, _, _ = audited
    (tmp_path / "c.csv").write_text(
        "row,column,old,new,accept\n2,label,high,low,true\n"
    )
    files = f"{folder}/train.csv {tmp_path}/c.csv -o {tmp_path}/new.csv"
    assert command(f"fix {files} --named") == 2
    assert "--named must be used with the .json" in capsys.readouterr().err


def test_corrections_are_printed_and_counted(fixed, tmp_path):
    _, rows, out = fixed
    lines = out.splitlines()
    n_corrections = f"{len(rows)} corrections, listed in {tmp_path}/new.changes.csv."
    assert lines[-1].endswith(n_corrections)
    of_first = [
        line for line in lines if line.startswith(f"row {rows[0] + 2}, label: ")
    ]
    assert len(of_first) == 1


def test_changes_the_other_way_round_give_the_old_file(audited, fixed, tmp_path):
    _, raw, _ = audited
    _, rows, _ = fixed
    changes = pd.read_csv(tmp_path / "new.changes.csv")
    assert changes["row"].tolist() == [row + 2 for row in rows]
    back = changes.rename(columns={"old": "new", "new": "old"})
    back.to_csv(tmp_path / "back.csv", index=False)
    line = f"fix {tmp_path}/new.csv {tmp_path}/back.csv -o {tmp_path}/old.csv"
    assert command(line) == 0
    assert (tmp_path / "old.csv").read_bytes() == raw


def test_corrections_that_were_made_are_stale(fixed, tmp_path, capsys):
    report, _, _ = fixed
    assert command(f"fix {tmp_path}/new.csv {report} -o {tmp_path}/again.csv") == 2
    assert "or it has changed since. Got row" in capsys.readouterr().err
    assert not (tmp_path / "again.csv").exists()


def test_a_row_is_removed(audited, tmp_path):
    folder, raw, _ = audited
    records = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"))))
    corrections = tmp_path / "corrections.csv"
    corrections.write_text(
        f"row;column;old;new;why;accept\n5;label;{records[4][2]};;;remove\n"
        "6;label;x;y;;\n",
        encoding="utf-8",
    )
    new = tmp_path / "new.csv"
    changes = tmp_path / "list.csv"
    line = f"fix {folder}/train.csv {corrections} -o {new} --changes {changes}"
    assert command(line) == 0
    lines = raw.split(b"\r\n")
    assert new.read_bytes() == b"\r\n".join(lines[:4] + lines[5:])
    assert len(pd.read_csv(changes)) == 1


def test_a_table_without_accepted_corrections_keeps_its_bytes(audited, tmp_path):
    folder, raw, _ = audited
    corrections = tmp_path / "corrections.csv"
    corrections.write_text("row,column,old,new,why,accept\n5,label,high,low,,false\n")
    new = tmp_path / "new.csv"
    assert command(f"fix {folder}/train.csv {corrections} -o {new}") == 0
    assert new.read_bytes() == raw


# "FOLDER" holds the audit, "HERE" corrections.
BAD = {
    "FOLDER/train.csv HERE/ok.csv -o FOLDER/train.csv": (
        "--output must be a file that is not used otherwise"
    ),
    "FOLDER/train.csv HERE/ok.csv -o HERE/ok.csv": (
        "--output must be a file that is not used otherwise"
    ),
    "FOLDER/train.csv HERE/ok.csv -o HERE/n.csv --changes FOLDER/train.csv": (
        "--changes must be a file that"
    ),
    "FOLDER/train.csv FOLDER/report.json -o HERE/n.csv": (
        "report must be one with verdicts"
    ),
    "HERE/table.ods HERE/ok.csv -o HERE/n.csv": "the table must end in one of",
    "FOLDER/train.csv HERE/no.json -o HERE/n.csv": "report must be a file that exists",
    "FOLDER/train.csv HERE/no.csv -o HERE/n.csv": "No such file",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_sentence_and_leaves_no_file(line, audited, tmp_path, capsys):
    folder, raw, _ = audited
    header = "row,column,old,new,why,accept\n"
    (tmp_path / "ok.csv").write_text(f"{header}5,label,high,low,,\n")
    (tmp_path / "table.ods").write_bytes(b"")
    before = sorted(tmp_path.iterdir())
    words = line.replace("FOLDER", str(folder)).replace("HERE", str(tmp_path))
    assert command(f"fix {words}") == 2
    err = capsys.readouterr().err
    assert BAD[line] in err
    assert len(err.splitlines()) == 1
    assert (folder / "train.csv").read_bytes() == raw
    assert sorted(tmp_path.iterdir()) == before


# A table of a spreadsheet, with rows that have no label -------------------------------

UNLABELLED = [3, 50]
LABELLED = np.delete(np.arange(120), UNLABELLED)


def lines_of(raw):
    return raw.decode("cp1252").split("\r\n")


def other_label(label):
    return "nein" if label.lower() == "ja" else "ja"


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """A folder with a table and its report with verdicts, the bytes, wrong rows."""
    folder = tmp_path_factory.mktemp("reviewed")
    size = np.random.default_rng(1).normal(size=120)
    label, wrong = flip_labels(np.where(size > 0, "ja", "nein"), 0.1, random_state=0)
    label = label.astype(object)
    label[UNLABELLED] = ""
    label[7] = label[7].upper()
    wrong[UNLABELLED] = False
    lines = [f"{x:.3f};{y}".replace(".", ",") for x, y in zip(size, label)]
    raw = "\r\n".join(["größe;art", *lines, ""]).encode("cp1252")
    (folder / "t.csv").write_bytes(raw)
    report = folder / "report.json"
    code = command(
        f"audit {folder}/t.csv --target art -o {folder}/page.html --checks fast "
        f"--json {report} --corrections {folder}/spellings.csv"
    )
    assert code == 0
    rows = [*range(0, 118, 2), *np.flatnonzero(wrong[LABELLED])]
    verdicts = pd.DataFrame({"index": rows, "is_error": wrong[LABELLED[rows]]})
    verdicts.drop_duplicates().to_csv(folder / "verdicts.csv", index=False)
    assert command(f"review {report} {folder}/verdicts.csv --json {report}") == 0
    return folder, raw, np.flatnonzero(wrong)


def test_a_report_numbers_the_rows_of_the_file(reviewed):
    folder, raw, _ = reviewed
    lines = lines_of(raw)
    record = json.loads((folder / "report.json").read_text())
    assert record["numbers"] == (LABELLED + 2).tolist()
    labels = [line.split(";")[1] for line in lines[1:-1] if line[-1] != ";"]
    assert record["labels"] == labels
    for row, content in record["contents"].items():
        size = lines[LABELLED[int(row)] + 1].split(";")[0]
        assert float(content["größe"]) == float(size.replace(",", "."))


def test_values_have_the_rows_of_the_file(reviewed, tmp_path):
    folder, _, _ = reviewed
    values = tmp_path / "values.csv"
    assert command(f"value {folder}/t.csv --target art -o {values}") == 0
    assert pd.read_csv(values)["row"].tolist() == (LABELLED + 2).tolist()


def test_corrections_are_made_in_the_rows_of_the_file(reviewed, tmp_path):
    folder, raw, wrong = reviewed
    new = tmp_path / "new.csv"
    assert command(f"fix {folder}/t.csv {folder}/report.json -o {new}") == 0
    lines = lines_of(raw)
    for row in wrong:
        size, label = lines[row + 1].split(";")
        lines[row + 1] = f"{size};{other_label(label)}"
    assert new.read_bytes() == "\r\n".join(lines).encode("cp1252")


def test_spellings_that_an_audit_found_are_corrected(reviewed, tmp_path):
    folder, raw, _ = reviewed
    new = tmp_path / "new.csv"
    assert command(f"fix {folder}/t.csv {folder}/spellings.csv -o {new}") == 0
    lines = raw.split(b"\r\n")
    lines[8] = lines[8].lower()
    assert new.read_bytes() == b"\r\n".join(lines)


def test_corrections_that_the_page_saves_are_verdicts_and_fixes(
    reviewed, tmp_path, capsys
):
    folder, raw, wrong = reviewed
    lines = lines_of(raw)
    labels = [line.split(";")[1] for line in lines[1:-1]]
    saved = ["row,column,old,new,why,accept,is_error,id"]
    for row in (0, 1, 2):
        assert row not in wrong
        label = labels[row]
        why = "the label is right,false,false"
        saved.append(f"{row + 2},art,{label},{label},{why},")
    for row in wrong:
        label = labels[row]
        other = other_label(label)
        saved.append(f"{row + 2},art,{label},{other},the label is wrong,true,true,")
        lines[row + 1] = lines[row + 1].replace(label, other)
    last = next(row for row in range(119, 0, -1) if row not in wrong)
    label = labels[last]
    why = "the row is entered twice,remove,"
    saved.append(f"{last + 2},art,{label},{label},{why},")
    del lines[last + 1]

    corrections = tmp_path / "t.corrections.csv"
    corrections.write_text("\n".join([*saved, ""]))
    line = f"review {folder}/report.json {corrections} --json {tmp_path}/again.json"
    assert command(line) == 0
    assert f"the label of {len(wrong)} is wrong" in capsys.readouterr().out
    new = tmp_path / "new.csv"
    assert command(f"fix {folder}/t.csv {corrections} -o {new}") == 0
    assert new.read_bytes() == "\r\n".join(lines).encode("cp1252")


# skvalue clean --from -----------------------------------------------------------------


@pytest.fixture
def cleaned(reviewed, tmp_path, capsys):
    """The output of a command that drops the rows that the report names.

    It writes new.csv and dropped.csv.
    """
    folder, _, _ = reviewed
    code = command(
        f"clean {folder}/t.csv --from {folder}/report.json -o {tmp_path}/new.csv "
        f"--report {tmp_path}/dropped.csv"
    )
    assert code == 0
    return capsys.readouterr().out


def test_clean_drops_what_a_report_names_and_keeps_rows_without_a_label(
    reviewed, cleaned, tmp_path
):
    _, raw, wrong = reviewed
    n_kept = 118 - len(wrong)
    assert f"{n_kept} of 118 rows; the others are wrong by a verdict." in cleaned
    lines = raw.split(b"\r\n")
    dropped = set(wrong.tolist())
    kept = [line for number, line in enumerate(lines) if number - 1 not in dropped]
    assert (tmp_path / "new.csv").read_bytes() == b"\r\n".join(kept)


def test_clean_lists_the_dropped_rows_with_the_reason(reviewed, cleaned, tmp_path):
    _, _, wrong = reviewed
    dropped = pd.read_csv(tmp_path / "dropped.csv")
    assert dropped["dropped_row"].tolist() == (wrong + 2).tolist()
    assert set(dropped["dropped_reason"]) == {"wrong by a verdict"}


def test_a_report_of_the_table_as_it_was_is_refused(
    reviewed, cleaned, tmp_path, capsys
):
    report = reviewed[0] / "report.json"
    assert command(f"clean {tmp_path}/new.csv --from {report} -o {tmp_path}/x.csv") == 2
    assert "--from must be the report of this table" in capsys.readouterr().err


def test_clean_by_a_report_without_verdicts_is_refused(audited, tmp_path, capsys):
    folder, _, _ = audited
    line = f"clean {folder}/train.csv -o {tmp_path}/new.csv"
    assert command(f"{line} --from {folder}/report.json") == 2
    assert "--from must be a report with verdicts" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_clean_without_a_target_is_refused(audited, tmp_path, capsys):
    folder, _, _ = audited
    assert command(f"clean {folder}/train.csv -o {tmp_path}/new.csv") == 2
    assert "--target must name a column without --from" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# Files with types ---------------------------------------------------------------------

# Column, old entry, new entry, and the new entry as the file has it.
TYPED = [
    ("label", "v", "u", "u"),
    ("size", "1.5", "2.25", 2.25),
    ("count", "1", "", None),
    ("kind", "b", "c", "c"),
    ("is_new", "False", "true", True),
]


@pytest.fixture(params=["parquet", "arrow", "feather"])
def typed(request, tmp_path):
    """A frame of four rows, and the file that holds it."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {
            "label": ["u", "v", "u", "v"],
            "size": [0.5, 1.5, 2.5, 3.5],
            "count": pd.array([0, 1, None, 3], dtype="Int64"),
            "kind": pd.Categorical(["a", "b", "a", "b"]),
            "is_new": [True, False, True, False],
        }
    )
    path = tmp_path / f"t.{request.param}"
    if request.param == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    return frame, path


def fix_typed(path, *lines):
    """Fix a file with types; returns the exit code and the new file."""
    corrections = path.with_suffix(".csv")
    corrections.write_text("\n".join(["row,column,old,new,accept", *lines, ""]))
    new = path.with_name(f"new{path.suffix}")
    return command(f"fix {path} {corrections} -o {new}"), new


@pytest.mark.parametrize(("column", "old", "new", "entry"), TYPED)
def test_an_entry_of_a_file_with_types_is_corrected(column, old, new, entry, typed):
    frame, path = typed
    code, file = fix_typed(path, f"3,{column},{old},{new},true")
    assert code == 0
    read = pd.read_parquet if path.suffix == ".parquet" else pd.read_feather
    fixed = read(file)
    assert fixed[column].dtype.kind == frame[column].dtype.kind
    found = fixed[column][1]
    assert found is pd.NA if entry is None else found == entry
    others = frame.columns.drop(column)
    pd.testing.assert_frame_equal(fixed[others], frame[others])


def test_a_row_of_a_file_with_types_is_removed(typed):
    _, path = typed
    code, file = fix_typed(path, "3,label,v,,remove", "2,label,u,v,true")
    assert code == 0
    read = pd.read_parquet if path.suffix == ".parquet" else pd.read_feather
    assert read(file)["label"].tolist() == ["v", "u", "v"]


REFUSED_TYPED = [
    ("3,size,1.5,much,true", "new must be an entry of the type double"),
    ("3,size,1.25,2,true", "old must be what the table holds"),
    ("6,size,1.5,2,true", "row must be a row from 2 to 5"),
    ("3,length,1.5,2,true", "column must be one of label, size"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED_TYPED)
def test_corrections_that_do_not_fit_a_file_with_types_are_refused(
    line, message, typed, capsys
):
    code, file = fix_typed(typed[1], line)
    assert code == 2
    assert message in capsys.readouterr().err
    assert not file.exists()


# README -------------------------------------------------------------------------------


def test_the_lines_of_the_readme_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    labels = ["yes", "no"] * 40 + ["Yes "] * 2
    frame = pd.DataFrame({"size": np.arange(82) % 7 * 0.5, "label": labels})
    frame.to_csv("train.csv", index=False)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```bash\n(skvalue audit.*?)```", readme, re.DOTALL)
    for line in block.splitlines():
        assert command(line.removeprefix("skvalue ")) == 0
    assert pd.read_csv("train.fixed.csv")["label"].tolist() == ["yes", "no"] * 40 + [
        "yes",
        "yes",
    ]
    assert "Next: look at the rows of train.html" in capsys.readouterr().out


def test_a_table_with_nothing_to_correct_stays_as_it_is(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_bytes(b"a;y\r\n1;u\r\n2;v\r\n")
    (tmp_path / "c.csv").write_text(corrections_to_csv([]))
    assert command(f"fix {table} {tmp_path}/c.csv -o {tmp_path}/f.csv") == 0
    assert "nothing to correct" in capsys.readouterr().out
    assert (tmp_path / "f.csv").read_bytes() == table.read_bytes()
