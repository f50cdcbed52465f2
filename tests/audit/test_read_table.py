"""Tables from files: right, asked or refused, and never wrong in silence."""

import csv
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import perf_counter, sleep

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


# Many files ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_files", [12, pytest.param(120, marks=pytest.mark.slow)])
def test_a_table_in_any_style_is_read_right_or_asked(read, n_files):
    """Only 999 and -1 in the place of missing counts are asked; the option decides."""
    rng = np.random.default_rng(0)
    counts = Counter()
    wrong = []
    for _ in range(n_files):
        table = make_table(rng)
        style = draw_style(rng)
        content = write_table(table, style)
        reading = read(content, "label")
        option = f"{style['missing']}=count"
        asks_for_counts = f"missing='{option}'" in "".join(reading.doubts)
        for name, entries in table.items():
            column = reading.frame[name]
            if is_right(name, entries, column, style):
                counts["right"] += 1
            elif name == "count" and asks_for_counts:
                counts["asked"] += 1
                decided = read(content, "label", missing=option, strict=True)
                assert is_right(name, entries, decided.frame[name], style)
            else:
                wrong.append((name, style, column.head(3).tolist(), reading.doubts))
    assert not wrong
    least = 0.98 if n_files == 120 else 0.96
    assert counts["right"] >= least * 10 * n_files


def hostile(outcome):
    return [name for name, (_, expected) in HOSTILE.items() if expected == outcome]


ASKED = [
    name
    for name, (_, expected) in HOSTILE.items()
    if expected not in ("refused", "text", "cities", "decimal comma in b,c")
]


@pytest.mark.parametrize("name", hostile("refused"))
def test_files_that_are_no_table_are_refused_with_a_way_out(read, name):
    message = r"must|Pass|pass|closed|not UTF-8|separator"
    with pytest.raises(ValueError, match=message):
        read(HOSTILE[name][0], "y")


@pytest.mark.parametrize("name", hostile("text"))
def test_codes_that_look_like_numbers_stay_text(read, name):
    frame = read(HOSTILE[name][0], "y").frame
    column = next(name for name in frame if name not in ("a", "x", "y"))
    assert all(isinstance(entry, str) for entry in frame[column])


@pytest.mark.parametrize("name", hostile("decimal comma in b,c"))
def test_decimal_commas_do_not_separate_fields(read, name):
    reading = read(HOSTILE[name][0], "y")
    assert "decimal comma in b,c" in reading.said
    assert reading.frame["b,c"].tolist()[-1] == 59.59


@pytest.mark.parametrize("name", hostile("cities"))
def test_letters_of_western_languages_are_read_in_any_encoding(read, name):
    assert read(HOSTILE[name][0], "y").frame["a"].tolist() == CITIES * 5


@pytest.mark.parametrize("name", ASKED)
def test_what_can_be_read_in_two_ways_is_asked(read, name):
    content, question = HOSTILE[name]
    doubts = read(content, "y").doubts
    assert any(question in doubt for doubt in doubts), doubts
    with pytest.raises(ValueError, match=question):
        read(content, "y", strict=True)


# Columns ------------------------------------------------------------------------------

# Cells, options, entries as read, and what is said.
COLUMNS = [
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
    (["1e3", "12.5"], {}, [1000, 12.5], ""),
]
DATES = [
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
]


def read_cells(read, cells, options):
    """The entries of a column of these cells, None if missing, and what is said."""
    rows = [f'"{cell}";x;v{i}' for i, cell in enumerate(cells * 20)]
    text = "\n".join(["a;b;c", *rows])
    reading = read(text, separator=";", strict=True, **options)
    entries = reading.frame["a"][: len(cells)]
    return [None if pd.isna(entry) else entry for entry in entries], reading.said


@pytest.mark.parametrize(("cells", "options", "entries", "sentence"), COLUMNS)
def test_cells_are_numbers_or_texts(read, cells, options, entries, sentence):
    found, said = read_cells(read, cells, options)
    assert found == entries
    assert any(sentence in each for each in ["", *said])


@pytest.mark.parametrize(("cells", "options", "dates", "sentence"), DATES)
def test_cells_are_dates(read, cells, options, dates, sentence):
    found, said = read_cells(read, cells, options)
    assert found == [None if date is None else pd.Timestamp(date) for date in dates]
    assert any(sentence in each for each in said)


# Cells, task, entries as read.
TARGETS = [
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
    reading = read("\n".join(["a;y", *rows]), "y", task=task)
    labels = {i: entry for i, entry in enumerate(entries * 5) if entry is not None}
    assert reading.frame["y"].tolist() == list(labels.values())
    assert reading.frame.index.tolist() == list(labels)
    numbers = sorted([*labels, *reading.unlabelled])
    assert numbers == list(range(5 * len(cells)))


def test_whole_numbers_of_a_target_are_asked_and_the_task_decides(read):
    rows = "\n".join(["a,price", *(f"{i}.5,{100 * (i % 25)}" for i in range(60))])
    assert "Pass task='regression'" in read(rows, "price").doubts[0]
    assert read(rows, "price", task="regression").frame["price"].sum() == sum(
        100 * (i % 25) for i in range(60)
    )
    assert not read(rows, "price", task="classification").doubts


# Number of rows, number of different whole numbers, and whether these are amounts.
AMOUNTS = [
    (60, 60, True),
    (60, 30, True),
    (60, 29, False),
    (40, 20, False),
    (3000, 1001, True),
    (3000, 1000, False),
]


@pytest.mark.parametrize(("n_rows", "n_values", "are_amounts"), AMOUNTS)
def test_whole_numbers_of_many_values_are_a_regression(
    read, n_rows, n_values, are_amounts
):
    lines = [f"{i}.5,{10 * (i % n_values)}" for i in range(n_rows)]
    reading = read("\n".join(["a,price", *lines]), "price")
    assert (reading.frame["price"].dtype.kind == "f") == are_amounts
    said = [note for note in reading.said if "a regression" in note]
    assert len(said) == are_amounts


ROWS = [
    f"{i % 8 + 1}.{100 + i};0,{i % 4};0{i};{i % 28 + 1}.{i % 12 + 1}.2024"
    for i in range(40)
]


# Years of two digits, the option, the years as read, and whether they are asked.
CENTURIES = [
    (range(40, 80), None, (1940, 1979), False),
    (range(25, 29), None, (2025, 2028), False),
    (range(0, 20), None, (2000, 2019), False),
    (range(70, 100), None, (1970, 1999), False),
    (range(40, 66), None, (1940, 1965), True),
    (range(40, 66), 2068, (2040, 2065), False),
    (range(40, 66), 2000, (1940, 1965), False),
]
TWO_DIGITS = ["{0:02d}.{1:02d}.{2:02d}", "{0}/{1}/{2:02d}", "{0:02d}-Mar-{2:02d}"]


@pytest.mark.parametrize("style", TWO_DIGITS)
@pytest.mark.parametrize(("years", "latest_year", "span", "is_asked"), CENTURIES)
def test_years_of_two_digits_are_read_together_or_asked(
    style, years, latest_year, span, is_asked, read
):
    days = [style.format(i % 28 + 1, i % 12 + 1, year) for i, year in enumerate(years)]
    rows = [f"{day},{i % 7},v{i % 3}" for i, day in enumerate(days * 2)]
    reading = read("\n".join(["born,x,y", *rows]), dates="dmy", latest_year=latest_year)
    found = reading.frame["born"].dt.year
    assert (found.min(), found.max()) == span
    assert ("latest_year=" in "".join(reading.doubts)) == is_asked


WORKERS = "\n".join(
    ["age,job,town,y"]
    + [f"{'?' if i == 7 else i},{'?' if i % 9 == 0 else 'cook'},x{i % 3},v{i % 2}"
       for i in range(60)]
)  # fmt: skip
# Option, the number of questions, and of missing jobs.
WORDS = [(None, 1, 0), ("?", 0, 7), ("=job", 0, 0), (["=job", "=town"], 0, 0)]


@pytest.mark.parametrize(("missing", "n_questions", "n_missing"), WORDS)
def test_a_word_is_missing_in_all_columns_or_asked_once(
    missing, n_questions, n_missing, read
):
    reading = read(WORKERS, "y", missing=missing)
    assert len(reading.doubts) == n_questions
    assert reading.frame["job"].isna().sum() == n_missing
    assert reading.frame["age"].isna().sum() == 1


def test_a_decimal_comma_in_another_column_decides(read):
    """1.234 is 1234 next to it."""
    reading = read("\n".join(["a;b;c;d", *ROWS]))
    assert not reading.doubts
    assert reading.frame["a"][0] == 1100


def test_a_table_of_the_same_columns_is_read_as_the_first(read):
    first = read("\n".join(["a;b;c;d", *ROWS]))
    second = "\n".join(["a;b;c;d", "1.234;5;11;1.2.2024", "5.678;6;12;1.2.2024"])
    assert read(second).doubts
    reading = read(second, like=first)
    assert not reading.doubts
    assert reading.frame["a"].tolist() == [1234, 5678]
    assert reading.frame["c"].tolist() == ["11", "12"]


# Files --------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["utf-8-sig", "cp1252", "utf-16"])
def test_rows_keep_their_bytes(read, codec):
    text = 'sep=;\r\na;y\r\n"ä;1";x\r\n2 ;"y"\r\n"3\n4";é'
    reading = read(text.encode(codec), "y")
    assert reading.to_bytes([0, 1, 2]) == text.encode(codec)
    assert reading.to_bytes([1]).decode(codec) == 'sep=;\r\na;y\r\n2 ;"y"\r\n'


def test_a_title_is_refused_with_the_number_of_lines_to_skip(read):
    text = "Report\n\na,b\n1,x\n2,y\n"
    with pytest.raises(ValueError, match="skip_lines=1"):
        read(text)
    assert read(text, skip_lines=1).frame.columns.tolist() == ["a", "b"]


def test_a_first_line_that_may_be_data_is_refused_and_the_option_decides(read):
    text = "1,x\n1,x\n2,y\n"
    with pytest.raises(ValueError, match="header=False"):
        read(text)
    assert read(text, header=False).frame.shape == (3, 2)
    assert read(text, header=True).frame.shape == (2, 2)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_files_with_types_are_read_as_they_are(kind, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "y": ["u", None, "v"]})
    path = tmp_path / f"t.{kind}"
    getattr(frame, f"to_{kind}")(path)
    reading = read_table(path, "y")
    assert reading.frame["a"].tolist() == [1.5, 3.5]
    assert reading.unlabelled.tolist() == [1]
    assert reading.to_bytes([0]) is None


LONG = "w " * 70_000
# A line of 60, and what is said of it: no other cure.
LINES = [
    ("{i},{n},{y},", "each row ends with ','"),
    ('"{i}",{i},{n},{y}', "do the rows begin with their names or numbers"),
    ('{n}, "p, {n}", {y}', "must be in double quotes"),
    ("{n},'p, {n}',{y}", "must be in double quotes"),
    ('{n},"p" ,{y}', "a separator right behind each field in quotes"),
    (r'{n},"say \"hi\" x",{y}', "backslash"),
]


@pytest.mark.parametrize(("line", "message"), LINES)
def test_lines_that_are_no_csv_are_refused_with_their_reason(line, message, read):
    lines = [line.format(i=i, n=i % 7, y="ab"[i % 2]) for i in range(60)]
    with pytest.raises(ValueError, match=message) as refused:
        read("\n".join(["a,b,y", *lines]))
    assert "skip_lines" not in str(refused.value)


@pytest.mark.parametrize("cell", [LONG, f'"{LONG}"', f'"{LONG}\n{LONG}"'])
def test_a_field_of_any_length_is_read(cell, read):
    lines = [f"{i % 7},{cell if i == 5 else 'short'},v{i % 2}" for i in range(60)]
    text = read("\n".join(["i,doc,y", *lines])).frame["doc"][5]
    assert len(text) == len(cell.strip('"').strip())


def test_threads_that_read_leave_the_limit_of_fields_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    set_limit = csv.field_size_limit
    limit = set_limit()

    def set_slowly(*arguments):
        former = set_limit(*arguments)
        sleep(0.002)  # so that other threads run
        return former

    monkeypatch.setattr(csv, "field_size_limit", set_slowly)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read_table, [path] * 8))
    assert set_limit() == limit


WIDE = ",".join(f"c{i}" for i in range(10_001)) + "\n" + "1," * 10_000
REFUSED = [
    ("a,b\n1,x\n", {"encoding": "none"}, "encoding must fit the file. Got 'none'"),
    ("a,b\n1,x\n", {"text": "c"}, "text must be columns of the file: a, b. Got 'c'"),
    (
        "a,b\n1,x\n", {"missing": "9=c"},
        "missing must be columns of the file: a, b. Got 'c'",
    ),
    (
        "a,b\n1,x\n", {"target": "c"},
        "target must be a column of the file: a, b. Got 'c'",
    ),
    ("a,b\n1,\n", {"target": "b"}, "target must be a column with at least one entry"),
    ("a,b\n1,x\n", {"target": "b", "task": "regression"}, "holds other than numbers"),
    ("a,b\n1," + "x" * 1001, {"target": "b"}, "labels of at most 1000 characters"),
    (WIDE, {}, "at most 10000 col"),
    ("a,b\n1,x\n-1e999,y\n", {}, "the column 'a' must be of numbers below.*-1e999"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "options", "message"), REFUSED, ids=[message for *_, message in REFUSED]
)
def test_options_and_files_that_do_not_fit_are_refused(read, text, options, message):
    with pytest.raises(ValueError, match=message):
        read(text, **options)


# Other kinds of files -----------------------------------------------------------------

PEOPLE = {
    "size": [1.5, None, 2.125, 4.0] * 5,
    "n": [1, 2, 3, 4] * 5,
    "town": ["Łódź", "a, b", 'say "c"', None] * 5,
    "y": ["u", "v", "u", "v"] * 5,
}


@pytest.mark.parametrize("kind", ["csv.gz", "tsv.gz", "xlsx", "jsonl", "ndjson"])
def test_files_of_other_kinds_are_read_as_a_csv_file(kind, tmp_path):
    frame = pd.DataFrame(PEOPLE)
    path = tmp_path / f"t.{kind}"
    if kind == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    elif kind.endswith("gz"):
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv.gz" else ",")
    else:
        frame.to_json(path, orient="records", lines=True)
    reading = read_table(path, "y", strict=True)
    pd.testing.assert_frame_equal(reading.frame, frame, check_dtype=False)


@pytest.mark.parametrize("kind", ["csv.gz", "xlsx", "jsonl"])
def test_files_of_other_kinds_that_are_not_whole_are_refused(kind, tmp_path):
    if kind == "xlsx":
        pytest.importorskip("openpyxl")
    path = tmp_path / f"t.{kind}"
    path.write_bytes(b"\x1f\x8bnothing of the kind")
    with pytest.raises(ValueError, match="the file must be"):
        read_table(path, "y")


# Encodings ----------------------------------------------------------------------------

WORDS = {
    "cp1253": "Αθήνα νερό θάλασσα μικρός μεγάλος σπίτι",
    "shift_jis": "東京 大阪 日本語 カタカナ ひらがな 電車",
    "gbk": "北京 上海 中文 房间 干净 服务 很好",
}


@pytest.mark.parametrize("codec", WORDS)
def test_an_unknown_encoding_is_asked_with_one_that_is_probable(codec, tmp_path):
    pytest.importorskip("charset_normalizer")
    words = WORDS[codec].split() * 10
    rows = [f"{i};{word};{i % 7}" for i, word in enumerate(words)]
    text = "\n".join(["a;name;x", *rows])
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(codec))
    with pytest.raises(
        ValueError, match="encoding is unknown; by .* a text is"
    ) as error:
        read_table(path)
    assert error.value.parameter == "encoding"
    name = re.search(r"Pass encoding='(\w+)' if", str(error.value))[1]
    frame = read_table(path, encoding=name).frame
    assert frame["name"].tolist() == words


# Time ---------------------------------------------------------------------------------

# Characters that patterns repeat, and what comes behind them.
REPEATED = [
    "1",
    "0",
    " ",
    ".",
    ",",
    "'",
    "x",
    "-",
    "+",
    '"',
    "\t",
    "€",
    "1 ",
    "1,",
    "é",
]
ENDS = ["", "x", "abcdefgh", "1", ":", "e"]


def seconds_of(read, cell):
    """The shortest time of three in which a table with this cell is read."""
    rows = [f"{i};{i % 7};v{i % 2}" for i in range(60)]
    text = "\n".join(["a;b;y", *rows, f"{cell};1;v1"])
    seconds = []
    for _ in range(3):
        start = perf_counter()
        with suppress(ValueError):  # a quote that is not closed
            read(text, separator=";")
        seconds.append(perf_counter() - start)
    return min(seconds)


@pytest.mark.slow
@pytest.mark.parametrize("characters", REPEATED)
def test_the_time_of_a_long_cell_is_linear_in_its_length(characters, read):
    """Of a quadratic time, a cell of eight times the length takes 64 times as long."""
    for end in ENDS:
        short = seconds_of(read, characters * 12_500 + end)
        long = seconds_of(read, characters * 100_000 + end)
        assert long < 24 * short, (end, short, long)


@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_times_are_exact_to_the_microsecond(step, read):
    places = np.arange(0, 86_400, step)
    moments = np.datetime64("2026-01-02", "us") + places * 1_000_000
    moments += np.resize([1, 123456, 999999, 500001, 7], len(places))
    lines = [f"{str(moment).replace('T', ' ')},x" for moment in moments]
    times = read("\n".join(["time,word", *lines])).frame["time"]
    np.testing.assert_array_equal(times.to_numpy("datetime64[us]"), moments)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("rows", [[2, 0, 1], [2, 2, 2], [0, 2], [2], []], ids=str)
def test_rows_stay_lines_in_any_order(rows, end, read):
    lines = ["a,b", "1,x", "2,y", "3,z"]
    reading = read(end.join(lines))  # the last line has no end
    content = reading.to_bytes(rows).decode().removesuffix(end)
    assert content.split(end) == [lines[0], *(lines[row + 1] for row in rows)]


def test_rows_that_a_file_does_not_have_are_refused(read):
    with pytest.raises(ValueError, match="rows must be rows of the file, from 0 to 2"):
        read("a,b\n1,x\n2,y\n3,z\n").to_bytes([3])
