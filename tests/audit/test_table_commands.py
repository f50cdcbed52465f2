"""The commands that value and clean tables: files in and out, exit codes, messages."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from skvalue import KNNShapleyValuer
from skvalue.audit.commands import main
from skvalue.datasets import flip_labels

pd = pytest.importorskip("pandas")

FORMATS = [
    ".csv",
    ".tsv",
    *(
        pytest.param(
            kind,
            marks=pytest.mark.skipif(not find_spec("pyarrow"), reason="no pyarrow"),
        )
        for kind in (".parquet", ".arrow", ".feather")
    ),
]


def command(*words):
    return main([str(word) for word in words])


def write(frame, path):
    kind = path.suffix
    if kind in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
    else:
        (frame.to_parquet if kind == ".parquet" else frame.to_feather)(path)


def read(path):
    kind = path.suffix
    if kind in (".csv", ".tsv"):
        return pd.read_csv(path, sep="\t" if kind == ".tsv" else ",")
    return (pd.read_parquet if kind == ".parquet" else pd.read_feather)(path)


@pytest.fixture(scope="module")
def people():
    """A table of 140 people, and which labels are wrong."""
    rng = np.random.default_rng(0)
    job = rng.choice(["care", "tech"], 140)
    age = rng.normal(40, 10, 140).round(1)
    label = np.where(age + 20 * (job == "tech") > 50, "high", "low")
    label, wrong = flip_labels(label, 0.1, random_state=0)
    frame = pd.DataFrame({"age": age, "job": job, "visits": 1, "label": label})
    frame.loc[::20, "age"] = np.nan
    return frame, wrong


@pytest.fixture
def train(people, tmp_path):
    path = tmp_path / "train.csv"
    people[0][:100].to_csv(path, index=False)
    people[0][100:].to_csv(tmp_path / "val.csv", index=False)
    return path


@pytest.mark.parametrize("kind", FORMATS)
def test_formats(kind, people, tmp_path, capsys):
    table, values = tmp_path / f"train{kind}", tmp_path / f"values{kind}"
    write(people[0], table)
    assert command("value", table, "--target", "label", "-o", values) == 0
    found, said = read(values), capsys.readouterr().out
    assert found.columns.tolist() == ["row", "value"]
    assert found["row"].tolist() == list(range(140))
    wrong = people[1]
    assert found["value"][wrong].mean() < 0 < found["value"][~wrong].mean()
    assert "140 rows, 3 columns, target label" in said
    assert "number age: scaled" in said
    assert "constant visits: left out" in said
    assert f"{values}: the values of 140 rows by knn." in said
    clean = tmp_path / f"clean{kind}"
    words = ["clean", table, "--target", "label", "--drop", "14", "-o", clean]
    assert command(*words, "--method", "knn", "--no-keep-classes") == 0
    assert (
        read(clean).dtypes.astype(str).tolist()
        == read(table).dtypes.astype(str).tolist()
    )
    kept = np.sort(np.argsort(found["value"], kind="stable")[14:])
    pd.testing.assert_frame_equal(
        read(clean), read(table).iloc[kept].reset_index(drop=True)
    )


def test_values_are_those_of_the_valuer(train, people, tmp_path):
    out = tmp_path / "values.csv"
    words = [
        "value",
        train,
        "--target",
        "age",
        "-o",
        out,
        "--validation",
        tmp_path / "val.csv",
    ]
    filled = people[0].fillna({"age": 40.0})
    filled[:100].to_csv(train, index=False)
    filled[100:].to_csv(tmp_path / "val.csv", index=False)
    assert command(*words) == 0
    X, y = (
        pd.get_dummies(filled[["job", "label"]]).to_numpy(float),
        filled["age"].to_numpy(),
    )
    exact = KNNShapleyValuer().fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
    np.testing.assert_allclose(read(out)["value"], exact.values_, atol=1e-12)


def test_methods_are_listed_and_value(train, tmp_path, capsys):
    assert command("methods") == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"knn", "tknn", "data-oob", "data-shapley", "influence"} <= set(listed)
    for method in ("tknn", "influence"):
        out = tmp_path / f"{method}.csv"
        words = ["value", train, "--target", "label", "--method", method, "-o", out]
        assert command(*words) == 0, method
        assert np.isfinite(read(out)["value"]).all()


def test_private_values(train, tmp_path, capsys):
    out = tmp_path / "values.csv"
    words = ["value", train, "--target", "label", "-o", out, "--epsilon", 1]
    assert command(*words) == 2
    assert (
        "--epsilon must be used with --method tknn. Got knn." in capsys.readouterr().err
    )
    assert command(*words, "--method", "tknn") == 2
    assert "--epsilon must be used with --validation" in capsys.readouterr().err
    words += ["--method", "tknn", "--validation", tmp_path / "val.csv"]
    assert command(*words) == 2  # ages that are equal by chance
    assert (
        "Got 4 rows that are in both: leave them out of one" in capsys.readouterr().err
    )
    words += ["--equal-rows"]
    assert command(*words, "--delta", 1e-4) == 0
    said = capsys.readouterr().out
    assert (
        "The columns are encoded by the rows of --validation, which are public." in said
    )
    assert "(1, 0.0001)-joint differential privacy" in said
    assert read(out).columns.tolist() == ["row", "value", "error"]


def test_private_columns_are_encoded_by_public_rows(train, people, tmp_path, capsys):
    """What is done to a column depends on the validation points alone."""
    people[0][100:].assign(job="care").to_csv(tmp_path / "val.csv", index=False)
    words = ["value", train, "--target", "label", "--method", "tknn", "--epsilon", "1"]
    words += [
        "--equal-rows",
        "--validation",
        tmp_path / "val.csv",
        "-o",
        tmp_path / "values.csv",
    ]
    assert command(*words) == 0
    assert "constant job, visits: left out" in capsys.readouterr().out


def test_clean_keeps_the_text_of_the_file(tmp_path, capsys):
    """Numbers and strings of kept rows are those of the file, and reasons those of the
    filter."""
    lines = [f'{i}.50,0{i % 7},"a, b",{"yes" if i % 2 else "no"}' for i in range(20)]
    table, clean, report = (
        tmp_path / f"{name}.csv" for name in ("train", "clean", "removed")
    )
    table.write_text("\n".join(["size,code,words,label", *lines, ""]))
    words = [
        "clean",
        table,
        "--target",
        "label",
        "--drop",
        "0.1",
        "-o",
        clean,
        "--report",
        report,
    ]
    assert command(*words) == 0
    assert f"{clean}: 18 of 20 rows" in capsys.readouterr().out
    kept = clean.read_text().splitlines()
    assert kept[0] == "size,code,words,label"
    assert len(kept) == 19
    assert set(kept[1:]) < set(lines)
    removed = pd.read_csv(report, dtype=str)
    assert removed["size"].tolist() == [f"{i}.5" for i in removed["dropped_row"]]
    assert removed["code"].tolist() == [
        f"0{int(i) % 7}" for i in removed["dropped_row"]
    ]
    assert removed["dropped_reason"][0].startswith("rank 1 of 10 values of class")
    assert command(*words[:4], "--drop", "0", "-o", clean, "--report", report) == 0
    assert len(read(report)) == 0
    assert clean.read_text() == table.read_text()


def test_a_table_that_has_columns_of_a_report(tmp_path):
    table, report = tmp_path / "train.csv", tmp_path / "report.csv"
    rows = [f"{i % 9},{i},{'yes' if i % 2 else 'no'}" for i in range(20)]
    table.write_text("\n".join(["a,dropped_row,label", *rows]))
    words = ["clean", table, "--target", "label", "--method", "knn", "--drop", "4"]
    assert command(*words, "-o", tmp_path / "clean.csv", "--report", report) == 0
    assert (
        read(report)["dropped_row"].tolist() == read(report)["dropped_row.1"].tolist()
    )


def test_drop_by_rule(train, tmp_path, capsys):
    words = ["clean", train, "--target", "label", "-o", tmp_path / "clean.csv"]
    assert command(*words, "--drop", "auto", "--method", "knn") == 0
    assert command(*words, "--drop", "significant") == 2
    assert (
        "--drop significant needs --validation and another" in capsys.readouterr().err
    )
    assert command(*words, "--drop", "significant", "--method", "knn") == 2
    assert "--drop significant needs --validation: it tests" in capsys.readouterr().err
    for drop in ("many", "1.5", "-1"):  # before the table is read
        with pytest.raises(SystemExit):
            command(*words, "--drop", drop)
        said = capsys.readouterr().err
        assert f"or one of negative, significant, auto. Got {drop!r}" in said


KEYS = "k,label\n" + "".join(f"k{i},{i % 2}\n" for i in range(60))
MANY = ",".join(f"c{i}" for i in range(10_001))
BAD = [
    (
        "a,label\n1,x\n2\n",
        "line 3 must have 2 fields, as most lines have (separated by ',').",
    ),
    ("a,label\n1,x\n2,y,3\n", "Got 3: mend it, or pass --sep."),
    ('a,label\n1,x\n2,"y\n', "a quote is not closed, if fields are separated by ','."),
    ("", "the file must have a header and rows. Got none"),
    ("a,label\n", "the file must have at least one row. Got a header alone."),
    (
        "a,a,label\n1,2,x\n",
        "must name every column once. Got 'a' twice: rename one, or pass --no",
    ),
    ("a,b\n1,x\n2,y\n", "--target must be a column of the file: a, b. Got 'label'"),
    (
        "label\nx\ny\n",
        "no separator (comma, semicolon, tab, |) gives two columns. Pass --sep.",
    ),
    (
        "a,label\n1,1.5\n1,1.5\n2,1.5\n",
        "at least two values. Got 'label', which holds 1.5 only.",
    ),
    (
        "a,label\n1,\n2,\n",
        "--target must be a column with at least one entry. Got 'label'",
    ),
    (KEYS, "the table must have a column that neither identifies"),
    (f"{MANY},label\n{MANY},x\n", "a table of at most 10000 columns. Got 10002"),
]


@pytest.mark.parametrize(
    ("text", "message"), BAD, ids=[message[:40] for _, message in BAD]
)
@pytest.mark.parametrize("name", ["value", "clean"])
def test_bad_tables_are_one_sentence_and_leave_no_file(
    name, text, message, tmp_path, capsys
):
    table = tmp_path / "train.csv"
    table.write_text(text)
    assert command(name, table, "--target", "label", "-o", tmp_path / "out.csv") == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("error: ")
    assert len(said.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [table]


def test_a_target_of_one_value_is_refused(tmp_path, capsys):
    table, val = tmp_path / "train.csv", tmp_path / "val.csv"
    table.write_text("a,label\n1,x\n" + "".join(f"{i},\n" for i in range(59)))
    val.write_text("a,label\n1,x\n1,y\n")
    value = ["value", table, "-o", tmp_path / "out.csv", "--validation", val]
    for words in (["check", table, "--fail-on-findings", "question"], value):
        assert command(*words, "--target", "label") == 2
        assert (
            "--target must be a column of at least two values"
            in capsys.readouterr().err
        )


def test_bad_bytes_and_files(train, tmp_path, capsys):
    (tmp_path / "bytes.csv").write_bytes(b"a,label\n\xff,x\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    (tmp_path / "folder.csv").mkdir()
    out = tmp_path / "out.csv"
    for table, output, message in [
        (tmp_path / "bytes.csv", out, "the encoding is unknown"),
        (tmp_path / "none.csv", out, "No such file"),
        (tmp_path / "folder.csv", out, "the file must be a file. Got a folder"),
        (train, tmp_path / "out.xls", "--output must end in one of .csv,"),
        (
            train,
            tmp_path / "none" / "out.csv",
            "--output must be in a folder that can be written",
        ),
        (train, train, "--output must be a file that is not used otherwise"),
        (train, tmp_path / "folder.csv", "--output must be a file. Got"),
    ]:
        assert command("value", table, "--target", "label", "-o", output) == 2
        assert message in capsys.readouterr().err
    assert not out.exists()
    assert len(read(train)) == 100


@pytest.mark.skipif(not find_spec("pyarrow"), reason="no pyarrow")
def test_a_damaged_parquet_file(tmp_path, capsys):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    words = [
        "value",
        tmp_path / "broken.parquet",
        "--target",
        "a",
        "-o",
        tmp_path / "o.csv",
    ]
    assert command(*words) == 2
    assert (
        "the file must be a whole Parquet or Arrow file. Got" in capsys.readouterr().err
    )


def test_validation_has_the_columns_of_the_table(train, tmp_path, capsys):
    words = [
        "value",
        train,
        "--target",
        "label",
        "-o",
        tmp_path / "out.csv",
        "--validation",
    ]
    for text, message in [
        (
            "age,label\n3,high\n",
            "--validation must have the columns of the table. Got none named",
        ),
        (
            "age,job,visits,label\nx,care,1,high\n",
            "must have numbers in the column 'age'",
        ),
        (
            "age,job,visits\n3,care,1\n",
            "--target must be a column of the file: age, job",
        ),
    ]:
        (tmp_path / "other.csv").write_text(text)
        assert command(*words, tmp_path / "other.csv") == 2
        assert message in capsys.readouterr().err


def test_nothing_is_written_half(train, tmp_path, capsys):
    """Where the second file fails, the first is as it was."""
    clean = tmp_path / "clean.csv"
    clean.write_text("earlier")
    words = [
        "clean",
        train,
        "--target",
        "label",
        "-o",
        clean,
        "--report",
        tmp_path / "clean.csv",
    ]
    assert command(*words) == 2
    assert (
        "--report must be a file that is not used otherwise" in capsys.readouterr().err
    )
    assert clean.read_text() == "earlier"


def test_usage_errors_are_one_sentence(capsys):
    for words in (["worth"], ["value"], []):
        with pytest.raises(SystemExit) as ended:
            command(*words)
        assert ended.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_seller(tmp_path, capsys):
    assert command("seller", "check", tmp_path / "none.json") == 2
    assert "No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command("seller", "--help")
    assert "usage: skvalue seller" in capsys.readouterr().out


def test_clean_by_the_detector_has_no_validation(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train.csv", "val.csv"):
        Path(name).write_text(
            "a,label\n" + "\n".join(f"{i},{'ab'[i % 2]}" for i in range(20))
        )
    words = ["--target", "label", "-o", "out.csv", "--validation", "val.csv"]
    assert main(["clean", "train.csv", *words]) == 2
    assert "--validation needs a --method" in capsys.readouterr().err
    assert not Path("out.csv").exists()
