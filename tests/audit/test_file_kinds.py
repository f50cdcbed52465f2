"""Every kind of file that a person hands over, in every command on tables."""

import gzip
import html
import json
import re
import shlex
import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.util import find_spec

import numpy as np
import pytest

from skvalue.audit import AuditReport, audit_table, read_table
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

NEEDS = {"xlsx": "openpyxl", "parquet": "pyarrow", "arrow": "pyarrow"}
NEEDS |= {"feather": "pyarrow", "pictures": "PIL"}
ENDINGS = [
    "csv", "tsv", "txt", "csv.gz", "tsv.gz", "xlsx", "jsonl", "ndjson", "parquet",
    "arrow", "feather",
]  # fmt: skip


def cases(kinds, quick):
    """The kinds, of which one is in the default tier; those without a library skip."""
    marked = []
    for kind in kinds:
        library = NEEDS.get(kind, "pandas")
        marks = [pytest.mark.skipif(not find_spec(library), reason=f"no {library}")]
        if kind != quick:
            marks.append(pytest.mark.slow)
        marked.append(pytest.param(kind, marks=marks))
    return marked


def table():
    """Two numbers, a code with a zero in front, texts with separators, and a label."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=80).round(2)
    label = np.where(size + rng.normal(size=80) / 5 > 0, "large", "small")
    label[3] = "large" if size[3] < 0 else "small"
    return pd.DataFrame(
        {
            "size": size,
            "count": rng.integers(0, 9, 80),
            "place": [f"{'AB'[i % 2]}, {i % 7}; x" for i in range(80)],
            "label": label.astype(object),
        }
    )


def write(frame, path):
    """Write a frame as the path ends."""
    kind = path.name.partition(".")[2]
    if kind == "xlsx":
        frame.to_excel(path, index=False)
    elif kind in ("jsonl", "ndjson"):
        frame.to_json(path, orient="records", lines=True)
    elif kind == "parquet":
        frame.to_parquet(path, index=False)
    elif kind in ("arrow", "feather"):
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind.startswith("tsv") else ",")


def read(path):
    """The frame of a file, by pandas."""
    kind = path.name.partition(".")[2]
    if kind == "xlsx":
        return pd.read_excel(path)
    if kind in ("jsonl", "ndjson"):
        return pd.read_json(path, orient="records", lines=True, precise_float=True)
    if kind == "parquet":
        return pd.read_parquet(path)
    if kind in ("arrow", "feather"):
        return pd.read_feather(path)
    return pd.read_csv(path, sep="\t" if kind.startswith("tsv") else ",")


@pytest.fixture
def written(tmp_path):
    """Write the table as a kind of file; the path of it."""

    def write_kind(kind):
        path = tmp_path / f"t.{kind}"
        write(table(), path)
        return path

    return write_kind


@pytest.mark.parametrize("kind", cases(ENDINGS, "jsonl"))
def test_an_audit_of_any_kind_is_that_of_a_csv_file(kind, written):
    report = audit_table(written(kind), target="label", checks=None, random_state=0)
    expected = audit_table(written("csv"), target="label", checks=None, random_state=0)
    np.testing.assert_allclose(report.values, expected.values)
    assert report.numbers.tolist() == list(range(2, 82))


@pytest.mark.parametrize("kind", cases(ENDINGS, "xlsx"))
def test_the_command_that_an_audit_prints_next_is_taken(
    kind, written, tmp_path, capsys
):
    path = written(kind)
    page = tmp_path / "page.html"
    code = command(f"audit {path} --target label -o {page} --checks fast")
    assert code == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "Next: " in line]
    corrections = tmp_path / "c.csv"
    corrections.write_text("row,column,old,new,accept\n")
    words = line.partition("skvalue ")[2].replace("FILE", str(corrections)).split()
    corrections.write_text("row,column,old,new,accept\n2,label,X,Y,false\n")
    assert command(words) == 0
    fixed = words[words.index("-o") + 1]
    assert page.read_text(encoding="utf-8").count(f"t.fixed.{kind}") == 1
    assert fixed.endswith(f"page.fixed.{kind}")


NAMES = ["my table.csv", "Größe.csv", "a&b (1).csv", "it's.csv", "-x.csv", "$HOME.csv"]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_takes_the_names_of_the_next_command(name, tmp_path, capsys):
    path = tmp_path / name
    write(table(), path)
    page = tmp_path / "my page.html"
    line = ["audit", path, "--target", "label", "-o", page, "--checks", "fast"]
    assert command(list(map(str, line))) == 0
    out = capsys.readouterr().out
    [printed] = [line for line in out.splitlines() if "Next: " in line]
    words = shlex.split(printed.partition("skvalue ")[2])
    assert words == ["fix", str(path), "FILE", "-o", f"{tmp_path}/my page.fixed.csv"]
    shown = html.unescape(page.read_text(encoding="utf-8"))
    [fix] = re.findall("skvalue (fix .*?)</code>", shown)
    stem = name.removesuffix(".csv")
    corrections = f"{stem}.corrections.csv"
    assert shlex.split(fix) == ["fix", name, corrections, "-o", f"{stem}.fixed.csv"]


@pytest.mark.parametrize("kind", cases(ENDINGS, "csv.gz"))
def test_fix_writes_the_kind_that_it_reads(kind, written, tmp_path):
    path = written(kind)
    frame = table()
    corrections = tmp_path / "c.csv"
    old = frame["label"][3]
    corrections.write_text(
        "row,column,old,new,accept\n"
        f"5,label,{old},=other,true\n"
        f"6,count,{frame['count'][4]},77,true\n"
        f"9,label,{frame['label'][7]},,remove\n"
    )
    fixed = tmp_path / f"fixed.{kind}"
    assert command(f"fix {path} {corrections} -o {fixed}") == 0
    frame.loc[3, "label"] = "=other"
    frame.loc[4, "count"] = 77
    expected = frame.drop(index=7).reset_index(drop=True)
    pd.testing.assert_frame_equal(read(fixed), expected, check_dtype=False)


@pytest.mark.parametrize("kind", cases(ENDINGS, "tsv.gz"))
def test_clean_writes_rows_of_the_kind_that_it_reads(kind, written, tmp_path):
    if kind in ("txt", "ndjson"):  # are read and fixed; others are written
        return
    path = written(kind)
    kept = tmp_path / f"kept.{kind}"
    line = f"clean {path} --target label --method knn --drop 8 -o {kept}"
    assert command(line) == 0
    rows = read(kept).to_dict("records")
    assert len(rows) == 72
    remaining = table().round(2).to_dict("records")
    assert all(row in remaining for row in rows)


@pytest.mark.parametrize("output", cases(ENDINGS, "xlsx"))
def test_values_are_written_as_any_kind(output, written, tmp_path, capsys):
    values = tmp_path / f"values.{output}"
    code = command(f"value {written('csv')} --target label -o {values}")
    if output in ("txt", "ndjson"):
        assert code == 2
        assert "--output must end in one of .csv, .tsv" in capsys.readouterr().err
        return
    assert code == 0
    assert read(values).columns.tolist() == ["row", "value"]
    assert read(values)["row"].tolist() == list(range(2, 82))


def test_texts_of_an_excel_file_are_no_formulas(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    frame = table()
    frame["place"] = "=1+1"
    frame.to_csv(tmp_path / "t.csv", index=False)
    line = f"clean {tmp_path}/t.csv --target label --method knn --drop 0 -o "
    assert command(f"{line}{tmp_path}/t.xlsx") == 0
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert (sheet["C2"].value, sheet["C2"].data_type) == ("=1+1", "s")


def test_compressed_rows_are_the_bytes_of_the_file(written, tmp_path):
    path = written("csv.gz")
    reading = read_table(path, "label")
    content = gzip.decompress(path.read_bytes())
    assert reading.to_bytes(range(80)) == content


def test_fix_leaves_other_lines_of_json_as_they_are(tmp_path):
    lines = ['{"a" : 1, "y":"u"}', '{"y":"v", "a":2.50}', '{"a":3,"y":"ü"}', ""]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "c.csv").write_text("row,column,old,new,accept\n3,a,2.5,4,true\n")
    assert command(f"fix {path} {tmp_path}/c.csv -o {tmp_path}/f.jsonl") == 0
    fixed = (tmp_path / "f.jsonl").read_text(encoding="utf-8").split("\n")
    assert fixed == [lines[0], '{"y": "v", "a": 4}', lines[2], ""]


@pytest.mark.parametrize("kind", cases(ENDINGS, "parquet"))
def test_whole_labels_with_gaps_are_classes_in_any_kind(kind, tmp_path, capsys):
    frame = table().assign(label=pd.array(np.arange(80) % 2, dtype="Int64"))
    frame.loc[3, "label"] = pd.NA
    path = tmp_path / f"t.{kind}"
    write(frame, path)
    reading = read_table(path, "label")
    labels = [int(label) for label in reading.frame["label"]]
    assert labels == [row % 2 for row in range(80) if row != 3]
    assert reading.unlabelled.tolist() == [3]
    line = f"value {path} --target label --scoring accuracy --method leave-one-out "
    assert command(f"{line} -o {tmp_path}/v.csv") == 0  # a score of classes


def test_whole_labels_that_no_float_holds_stay_apart(tmp_path):
    pytest.importorskip("pyarrow")
    keys = [2**60 + row % 2 for row in range(80)]
    frame = table().assign(label=pd.array(keys, dtype="Int64"))
    frame.loc[3, "label"] = pd.NA
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    labels = read_table(tmp_path / "t.parquet", "label").frame["label"]
    assert set(labels.tolist()) == {2**60, 2**60 + 1}


TYPED = ["parquet", "arrow", "feather"]


@pytest.mark.parametrize("kind", cases(TYPED, "parquet"))
def test_a_file_with_types_says_itself_what_is_missing(kind, written):
    path = written(kind)
    [doubt] = read_table(path, "label", missing="999").doubts
    assert "missing is not applied" in doubt
    with pytest.raises(ValueError, match="two readings: missing is not applied"):
        read_table(path, "label", missing="999", strict=True)
    with pytest.raises(ValueError, match="text must be columns of the file"):
        read_table(path, "label", text="no such column")


# A type of Arrow, as a function of the module, and the entry of a row.
TYPES = {
    "views": (lambda pa: pa.string_view(), lambda i: f"w{i % 4}"),
    "long texts": (lambda pa: pa.large_string(), lambda i: f"w{i % 4}"),
    "decimals": (lambda pa: pa.decimal128(9, 2), lambda i: Decimal(i % 9) / 4),
    "times of a zone": (
        lambda pa: pa.timestamp("us", tz="UTC"),
        lambda i: datetime(2026, 1, 1 + i % 28, tzinfo=UTC),
    ),
    "far days": (
        lambda pa: pa.date32(),
        lambda i: date(9999 if i % 9 == 0 else 2020, 1, 1 + i % 28),
    ),
    "durations": (lambda pa: pa.duration("s"), lambda i: timedelta(seconds=i % 9)),
    "large numbers": (lambda pa: pa.uint64(), lambda i: 2**64 - 1 - i % 9),
    "half floats": (lambda pa: pa.float16(), lambda i: np.float16(i % 9)),
    "gaps": (lambda pa: pa.bool_(), lambda i: None if i % 5 == 0 else i % 2 == 0),
    "codes": (lambda pa: pa.dictionary(pa.int8(), pa.string()), lambda i: "uv"[i % 2]),
    "nothing": (lambda pa: pa.null(), lambda i: None),
}


@pytest.mark.parametrize("name", TYPES)
def test_rows_of_columns_of_any_type_are_kept_as_they_are(name, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    type_of, entry_of = TYPES[name]
    column = pa.array(map(entry_of, range(80)), type_of(pa))
    whole = pa.Table.from_pandas(table().drop(columns="place"), preserve_index=False)
    whole = whole.append_column("x", column)
    parquet.write_table(whole, tmp_path / "t.parquet")
    line = f"clean {tmp_path}/t.parquet --target label --method knn --drop 8"
    report = f"--report {tmp_path}/dropped.csv"
    assert command(f"{line} -o {tmp_path}/kept.parquet {report}") == 0
    dropped = set(pd.read_csv(tmp_path / "dropped.csv")["dropped_row"] - 2)
    kept = parquet.read_table(tmp_path / "kept.parquet")
    assert kept.schema.field("x").type == whole.schema.field("x").type
    rows = enumerate(whole.to_pylist())
    assert kept.to_pylist() == [row for place, row in rows if place not in dropped]


COMMANDS = ["value -o v.csv", "clean -o c.csv", "audit -o p.html"]


@pytest.mark.parametrize("line", COMMANDS)
def test_infinity_is_refused_with_the_name_of_its_column(
    line, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("pyarrow")
    frame = table()
    frame.loc[4, "size"] = np.inf
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    first, *words = line.split()
    assert command([first, "t.parquet", "--target", "label", *words]) == 2
    assert "Got infinity in the column 'size'" in capsys.readouterr().err


# Texts that a line of a file does not hold as they are.
HARD = [
    "a\rb", "a\nb", "a\r\nb", "\rb", 'say "no"', '"', "a,b", "a;b", "a\tb", "=1+1",
    "'=x", "#", "\\", "\\n", "é\u2028x", "\u00a0x", "{}", "\x85x",
]  # fmt: skip


def hard_table():
    """The table with hard texts in the middle and at the end of rows."""
    texts = [HARD[row % len(HARD)] for row in range(80)]
    return table().assign(place=texts, last=texts[::-1])


@pytest.mark.parametrize("output", cases(ENDINGS, "csv"))
def test_hard_texts_are_read_as_they_were_written(output, tmp_path):
    if output in ("txt", "ndjson"):  # are not written
        return
    frame = hard_table()
    path = tmp_path / "t.jsonl"
    write(frame, path)
    new = tmp_path / f"new.{output}"
    line = f"clean {path} --target label --method knn --drop 0 -o {new} --text place "
    assert command(line) == 0
    reading = read_table(new, "label", separator=None if "csv" in output else "\t")
    for name in ("place", "last"):
        expected = frame[name].str.strip().tolist()
        if output == "xlsx":  # the lines of a cell end with line feeds
            expected = [re.sub("\r\n?", "\n", text) for text in expected]
        assert reading.frame[name].str.strip().tolist() == expected


@pytest.mark.parametrize("output", cases(ENDINGS, "jsonl"))
def test_numbers_are_written_with_all_digits(output, tmp_path):
    if output in ("txt", "ndjson"):  # are not written
        return
    numbers = [1.257302210933933e-14, 0.1 + 0.2, -2.5e-200, 1e300, 123456789.12345679]
    frame = table().assign(size=[numbers[row % 5] for row in range(80)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    new = tmp_path / f"new.{output}"
    line = f"clean {tmp_path}/t.csv --target label --method knn --drop 0 -o {new}"
    assert command(line) == 0
    assert read(new)["size"].tolist() == frame["size"].tolist()


@pytest.mark.parametrize("output", cases(ENDINGS, "jsonl"))
def test_gaps_at_the_end_of_rows_are_read_again(output, tmp_path):
    if output in ("txt", "ndjson"):  # are not written
        return
    frame = table().assign(last=np.where(np.arange(80) % 3, 1.5, np.nan))
    frame.to_csv(tmp_path / "t.csv", index=False)
    new = tmp_path / f"new.{output}"
    line = f"clean {tmp_path}/t.csv --target label --method knn --drop 0 -o {new}"
    assert command(line) == 0
    last = read_table(new, "label").frame["last"]
    np.testing.assert_array_equal(last.to_numpy(float), frame["last"])


@pytest.mark.parametrize("kind", cases(ENDINGS, "jsonl"))
def test_a_list_of_dropped_rows_has_each_name_once(kind, tmp_path):
    if kind in ("txt", "ndjson"):  # are not written
        return
    frame = table().assign(dropped_row=np.arange(80))
    frame["dropped_row.1"] = 5
    frame.to_csv(tmp_path / "t.csv", index=False)
    dropped = tmp_path / f"dropped.{kind}"
    code = command(
        f"clean {tmp_path}/t.csv --target label --method knn --drop 8 "
        f"-o {tmp_path}/kept.csv --report {dropped}"
    )
    assert code == 0
    rows = read(dropped)
    assert rows["dropped_row.2"].tolist() == (rows["dropped_row"] - 2).tolist()


SURROGATE = "bad \ud83d letter"  # half of a letter, which JSON can hold


def test_halves_of_letters_are_asked_about_and_stop_no_command(tmp_path, capsys):
    path = tmp_path / "t.jsonl"
    frame = table()
    lines = [json.dumps(record) for record in frame.to_dict("records")]
    lines[7] = json.dumps({**frame.iloc[7].to_dict(), "place": SURROGATE}, default=str)
    path.write_text("\n".join(lines) + "\n")
    names = [f"{tmp_path}/o.{kind}" for kind in ("html", "json", "csv")]
    code = command(
        ["audit", str(path), "--target", "label", "--checks", "fast", "-o", names[0]]
        + ["--json", names[1], "--csv", names[2]]
    )
    assert code == 0
    assert "1 letters were lost before" in capsys.readouterr().out
    assert read_table(path).to_bytes([7]).decode() == lines[7] + "\n"


@pytest.mark.parametrize("header", [None, True, False])
def test_json_lines_have_names_whatever_is_said_of_a_header(header, written):
    reading = read_table(written("jsonl"), "label", header=header)
    assert reading.frame.columns.tolist() == ["size", "count", "place", "label"]
    assert json.loads(reading.to_bytes([5]))["size"] == table()["size"][5]


def test_lines_above_a_header_that_no_file_has_are_refused(written):
    with pytest.raises(ValueError, match="skip_lines must be 0 for JSON lines"):
        read_table(written("jsonl"), "label", skip_lines=1)


# Rows above the header of a sheet.
TITLES = {
    "one line": [["A title"]],
    "two lines in a cell": [["A title\nin two lines", None, "x"]],
    "empty": [["A title"], []],
    "none": [],
}


@pytest.fixture
def sheet(tmp_path):
    """Write a sheet with a title, and with empty cells of a colour around the table."""
    openpyxl = pytest.importorskip("openpyxl")

    def write_sheet(titles):
        frame = table().astype(object)
        book = openpyxl.Workbook()
        for row in (*titles, list(frame.columns), *frame.values.tolist()):
            book.active.append(row)
        colour = openpyxl.styles.PatternFill("solid", fgColor="FFFF00")
        for place in ("H3", "G95", "A99"):
            book.active[place].fill = colour
        book.save(tmp_path / "t.xlsx")
        return tmp_path / "t.xlsx"

    return write_sheet


@pytest.mark.parametrize("title", TITLES)
def test_rows_above_the_header_of_a_sheet_are_skipped(title, sheet, tmp_path):
    rows = TITLES[title]
    path = sheet(rows)
    options = f"--skip-lines {len(rows)}"
    reading = read_table(path, "label", skip_lines=len(rows))
    assert reading.frame.index.tolist() == list(range(80))
    assert reading.frame["size"].tolist() == table()["size"].tolist()

    kept = tmp_path / "kept.xlsx"
    line = f"clean {path} --target label --method knn --drop 8 {options} -o {kept}"
    assert command(line) == 0
    remaining = read_table(kept, "label", skip_lines=len(rows)).frame
    records = table().round(2).to_dict("records")
    assert len(remaining) == 72
    assert all(row in records for row in remaining.to_dict("records"))

    (tmp_path / "c.csv").write_text(
        f"row,column,old,new,accept\n9,label,{table()['label'][7]},other,true\n"
    )
    fixed = tmp_path / "fixed.xlsx"
    assert command(f"fix {path} {tmp_path}/c.csv {options} -o {fixed}") == 0
    labels = read_table(fixed, "label", skip_lines=len(rows)).frame["label"]
    assert labels[7] == "other"


# Folders of pictures ------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of dark and light pictures, one of them in the wrong folder."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("photos")
    for i in range(40):
        is_light = i % 2
        pixels = rng.integers(0, 90, (20, 30, 3)) + 150 * is_light
        label = "light" if is_light or i == 6 else "dark"
        (folder / label).mkdir(exist_ok=True)
        image.fromarray(pixels.astype(np.uint8)).save(folder / label / f"{i:02}.png")
    (folder / "light" / "notes.txt").write_text("no picture")
    (folder / ".cache").mkdir()
    return folder


def test_a_folder_of_pictures_is_a_table_of_paths_and_labels(pictures):
    reading = read_table(pictures, "label")
    assert reading.frame.columns.tolist() == ["path", "label"]
    assert reading.frame["path"].tolist()[:2] == ["dark/00.png", "dark/02.png"]
    assert reading.frame["label"].value_counts().to_dict() == {"dark": 19, "light": 21}


def test_an_audit_of_a_folder_lists_the_picture_in_the_wrong_one(pictures):
    report = audit_table(pictures, random_state=0)
    paths = read_table(pictures).frame["path"]
    assert paths[report.listed[0]] == "light/06.png"
    assert report.about["kind"] == "image"
    assert report.to_html().count("data:image/jpeg") >= 1


@pytest.mark.slow
def test_commands_on_a_folder_write_tables_of_its_pictures(pictures, tmp_path, capsys):
    code = command(
        f"audit {pictures} -o {tmp_path}/p.html --json {tmp_path}/r.json --csv "
        f"{tmp_path}/l.csv"
    )
    assert code == 0
    assert "row 24: light/06.png" in capsys.readouterr().out
    report = AuditReport.from_json((tmp_path / "r.json").read_text())
    row = int(report.numbers[report.listed[0]])
    (tmp_path / "c.csv").write_text(
        f"row,column,old,new,accept\n{row},label,light,dark,true\n"
    )
    assert command(f"fix {pictures} {tmp_path}/c.csv -o {tmp_path}/f.csv") == 0
    fixed = pd.read_csv(tmp_path / "f.csv").set_index("path")["label"]
    assert fixed["light/06.png"] == "dark"
    assert (pictures / "light" / "06.png").exists()  # nothing is moved

    assert command(f"clean {pictures} --drop 1 -o {tmp_path}/kept.csv") == 0
    assert "light/06.png" not in set(pd.read_csv(tmp_path / "kept.csv")["path"])
    line = f"value {pictures} --validation {pictures} -o {tmp_path}/values.csv"
    assert command(line) == 0
    values = pd.read_csv(tmp_path / "values.csv")
    assert values.columns.tolist() == ["row", "path", "value"]


REFUSED = {
    "check FOLDER --target label": "the table must be a file: pictures have no columns",
    "audit HERE/empty -o HERE/p.html": "must hold one folder for each label",
    "audit HERE/broken -o HERE/p.html": "'a/x.png' must be a whole picture",
    "audit FOLDER -o HERE/p.html --max-rows 3": "at most 3 pictures. Got 40.",
    "value FOLDER --validation HERE/t.csv -o HERE/v.csv": "must be a folder of pic",
    "audit FOLDER --epsilon 1 --validation FOLDER -o HERE/p.html": "--epsilon must be",
    "audit HERE/t.csv -o HERE/p.html": "--target must name the column to predict",
}


@pytest.mark.parametrize("line", REFUSED)
def test_folders_that_are_no_tables_are_refused(line, pictures, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken" / "a").mkdir(parents=True)
    (tmp_path / "broken" / "a" / "x.png").write_bytes(b"\x89PNG no picture")
    table().to_csv(tmp_path / "t.csv", index=False)
    here = line.replace("FOLDER", str(pictures)).replace("HERE", str(tmp_path))
    assert command(here) == 2
    [error] = capsys.readouterr().err.splitlines()
    assert REFUSED[line] in error
    shutil.rmtree(tmp_path / "broken")


RECORDS = [{"a": 1.5, "label": "x"}, {"a": 2.5, "label": "y"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("records.json", json.dumps(RECORDS)),
        ("indented.json", json.dumps(RECORDS, indent=1)),
        ("columns.json", json.dumps({"a": [1, 2], "label": ["x", "y"]}, indent=1)),
        ("lists.json", json.dumps([["a", "label"], [1, "x"], [2, "y"]])),
        ("lines.json", "\n".join(map(json.dumps, RECORDS))),
        ("marked.txt", "\ufeff" + json.dumps(RECORDS)),
    ],
)
def test_json_that_is_no_json_lines_is_refused_as_such(name, content, tmp_path):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"ends in .jsonl or .ndjson. Got JSON under"):
        read_table(path, target="label")


def test_a_header_of_brackets_and_quotes_is_no_json(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('[a],"{b}"\nx,1.5\ny,2.5\n', encoding="utf-8")
    assert read_table(path).frame.columns.tolist() == ["[a]", "{b}"]


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"PK\x03\x04", "does not end in .xlsx"),
        (b"PAR1", "does not end in .parquet"),
        (b"ARROW1", "does not end in .arrow or .feather"),
    ],
)
def test_a_kind_under_another_name_is_refused_with_the_name_it_needs(
    start, kind, tmp_path
):
    path = tmp_path / "t.dat"
    path.write_bytes(start + bytes(50))
    with pytest.raises(ValueError, match=kind):
        read_table(path)
