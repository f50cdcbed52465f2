"""Tables from files: right, asked or refused, and never wrong in silence."""

from collections import Counter

import numpy as np
import pytest
from table_files import CITIES, HOSTILE, draw_style, is_right, make_table, write_table

from skvalue.audit import read_table

pd = pytest.importorskip("pandas")


@pytest.fixture
def read(tmp_path):
    """Read a text, or bytes, as a file."""

    def read(content, target=None, **options):
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, target, **options)

    return read


@pytest.mark.parametrize("n", [12, pytest.param(120, marks=pytest.mark.slow)])
def test_variants_of_a_table(read, n):
    """Only 999 and -1 in the place of missing counts are asked about; the option
    decides."""
    rng, counts, wrong = np.random.default_rng(0), Counter(), []
    for _ in range(n):
        table, style = make_table(rng), draw_style(rng)
        content = write_table(table, style)
        reading = read(content, "label")
        for name, entries in table.items():
            if is_right(name, entries, reading.frame[name], style):
                counts["right"] += 1
            elif name == "count" and f"missing='{style['missing']}=count'" in "".join(
                reading.doubts
            ):
                counts["asked"] += 1
                reading = read(
                    content, "label", missing=f"{style['missing']}=count", strict=True
                )
                assert is_right(name, entries, reading.frame[name], style)
            else:
                wrong.append(
                    (name, style, reading.frame[name].head(3).tolist(), reading.doubts)
                )
    assert not wrong
    assert counts["right"] >= (0.98 if n == 120 else 0.96) * 10 * n


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_never_wrong_in_silence(read, name):
    content, what = HOSTILE[name]
    if what == "refused":
        with pytest.raises(
            ValueError, match=r"must|Pass|pass|closed|not UTF-8|separator"
        ):
            read(content, "y")
        return
    reading = read(content, "y")
    if what == "text":
        column = next(c for c in reading.frame if c not in ("a", "x", "y"))
        assert all(isinstance(entry, str) for entry in reading.frame[column])
    elif what == "decimal comma in b,c":
        assert what in reading.said
        assert reading.frame["b,c"].tolist()[-1] == 59.59
    elif what == "cities":
        assert reading.frame["a"].tolist() == CITIES * 5
    else:
        assert any(what in doubt for doubt in reading.doubts), reading.doubts
        with pytest.raises(ValueError, match=what):
            read(content, "y", strict=True)


COLUMNS = [  # entries, options, entries as read, what is said or asked
    (["1.234", "5.678"], {"decimal": ","}, [1234, 5678], "decimal comma in a"),
    (["1.234", "5.678"], {"decimal": "."}, [1.234, 5.678], "decimal point in a"),
    (["1.234,5", "1,5"], {}, [1234.5, 1.5], "decimal comma in a"),
    (["1 234", "12'345"], {}, [1234, 12345], ""),
    (["3,5 €", "4,25 €"], {}, [3.5, 4.25], "'€' cut off in a"),
    (["10 %", "5 %"], {}, [10, 5], "'%' cut off in a"),
    (["01", "2"], {}, ["01", "2"], "digits that stay text in a"),
    (["12", "k.A."], {}, [12, None], "'k.A.' missing in a"),
    (["12", "none", ""], {"text": "a"}, ["12", "none", None], ""),
    (["no", "none"], {}, ["no", "none"], ""),
    (["7", "8"], {"missing": ["7=a"]}, [None, 8], "'7' missing in a"),
    (["7", "8"], {"missing": "8"}, [7, None], "'8' missing in a"),
    (
        ["03/04/2024", "05/06/2024"],
        {"dates": "mdy"},
        ["2024-03-04", "2024-05-06"],
        "month, day",
    ),
    (
        ["03/04/2024", "05/06/2024"],
        {"dates": "dmy"},
        ["2024-04-03", "2024-06-05"],
        "day, month",
    ),
    (
        ["1.2.24 1:30 PM", ""],
        {},
        ["2024-02-01 13:30", None],
        "dates of day, month, year in a",
    ),
    (["1e3", "12.5"], {}, [1000, 12.5], ""),
]


@pytest.mark.parametrize(("cells", "options", "entries", "sentence"), COLUMNS)
def test_entries_of_a_column(read, cells, options, entries, sentence):
    rows = [f'"{cell}";x;v{i}' for i, cell in enumerate(cells * 20)]
    found = read("\n".join(["a;b;c", *rows]), separator=";", strict=True, **options)
    column = found.frame["a"][: len(cells)]
    if isinstance(entries[0], str) and entries[0].startswith("2024"):
        entries = pd.to_datetime(entries, format="mixed")
    assert [None if pd.isna(entry) else entry for entry in column] == [
        None if pd.isna(entry) else entry for entry in entries
    ]
    assert any(sentence in said for said in ["", *found.said])


TARGETS = [  # entries, task, entries as read
    (["01", "1", "NA"], "auto", ["01", "1", "NA"]),
    (["1", "0", ""], "auto", ["1", "0", None]),
    (["1e3", "1000"], "auto", ["1e3", "1000"]),
    (["True", "TRUE", " no "], "auto", ["True", "TRUE", "no"]),
    (["2024-01-02", "2024-01-03"], "auto", ["2024-01-02", "2024-01-03"]),
    (["12,50", "3,25", "k.A."], "auto", [12.5, 3.25, None]),
    (["12,50", "3,25"], "classification", ["12,50", "3,25"]),
    (["12", "13", ""], "regression", [12, 13, None]),
]


@pytest.mark.parametrize(("cells", "task", "entries"), TARGETS)
def test_the_target_keeps_its_text(read, cells, task, entries):
    rows = [f"{i}.5;{cell}" for i, cell in enumerate(cells * 5)]
    found = read("\n".join(["a;y", *rows]), "y", task=task)
    labelled = [entry for entry in entries * 5 if entry is not None]
    assert found.frame["y"].tolist() == labelled
    places = [i for i, entry in enumerate(entries * 5) if entry is not None]
    assert found.frame.index.tolist() == places
    assert sorted([*places, *found.unlabelled]) == list(range(5 * len(cells)))


def test_whole_numbers_of_a_target_are_asked(read):
    rows = "\n".join(["a,price", *(f"{i}.5,{100 * i}" for i in range(60))])
    assert "Pass task='regression'" in read(rows, "price").doubts[0]
    assert read(rows, "price", task="regression").frame["price"].sum() == 177_000
    assert not read(rows, "price", task="classification").doubts


def test_other_columns_decide_and_so_does_another_table(read):
    """1.234 is 1234 next to a decimal comma; a second table is read as the first."""
    rows = [
        f"{i % 8 + 1}.{100 + i};0,{i % 4};0{i};{i % 28 + 1}.{i % 12 + 1}.2024"
        for i in range(40)
    ]
    first = read("\n".join(["a;b;c;d", *rows]))
    assert not first.doubts
    assert first.frame["a"][0] == 1100
    second = "\n".join(["a;b;c;d", "1.234;5;11;1.2.2024", "5.678;6;12;1.2.2024"])
    assert read(second).doubts
    found = read(second, like=first)
    assert not found.doubts
    assert found.frame["a"].tolist() == [1234, 5678]
    assert found.frame["c"].tolist() == ["11", "12"]


def test_rows_keep_their_bytes(read):
    for codec in ("utf-8-sig", "cp1252", "utf-16"):
        text = 'sep=;\r\na;y\r\n"ä;1";x\r\n2 ;"y"\r\n"3\n4";é'
        found = read(text.encode(codec), "y")
        assert found.to_bytes([0, 1, 2]) == text.encode(codec)
        assert found.to_bytes([1]).decode(codec) == 'sep=;\r\na;y\r\n2 ;"y"\r\n'


def test_first_lines(read):
    text = "Report\n\na,b\n1,x\n2,y\n"
    with pytest.raises(ValueError, match="skip_lines=1"):
        read(text)
    assert read(text, skip_lines=1).frame.columns.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="header=False"):
        read("1,x\n1,x\n2,y\n")
    assert read("1,x\n1,x\n2,y\n", header=False).frame.shape == (3, 2)
    assert read("1,x\n1,x\n2,y\n", header=True).frame.shape == (2, 2)


@pytest.mark.parametrize("kind", [".parquet", ".feather"])
def test_files_with_types(kind, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "y": ["u", None, "v"]})
    (frame.to_parquet if kind == ".parquet" else frame.to_feather)(
        tmp_path / f"t{kind}"
    )
    found = read_table(tmp_path / f"t{kind}", "y")
    assert found.frame["a"].tolist() == [1.5, 3.5]
    assert found.unlabelled.tolist() == [1]
    assert found.to_bytes([0]) is None


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,x\n", {"encoding": "none"}, "encoding='none' does not fit"),
        (
            "a,b\n1,x\n",
            {"text": "c"},
            "text must be columns of the file: a, b. Got 'c'",
        ),
        (
            "a,b\n1,x\n",
            {"missing": "9=c"},
            "missing must be columns of the file: a, b. Got 'c'",
        ),
        (
            "a,b\n1,x\n",
            {"target": "c"},
            "target must be a column of the file: a, b. Got 'c'",
        ),
        (
            "a,b\n1,\n",
            {"target": "b"},
            "target must be a column with at least one entry",
        ),
        (
            "a,b\n1,x\n",
            {"target": "b", "task": "regression"},
            "holds other than numbers",
        ),
        ("a,b\n1," + "x" * 1001, {"target": "b"}, "labels of at most 1000 characters"),
        (
            ",".join(f"c{i}" for i in range(10_001)) + "\n" + "1," * 10_000,
            {},
            "at most 10000 col",
        ),
    ],
)
def test_options_that_do_not_fit(read, text, options, message):
    with pytest.raises(ValueError, match=message):
        read(text, **options)
