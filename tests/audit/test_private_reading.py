"""How private rows are read: one changes no other, and nothing is told of it."""

import gzip
import re

import numpy as np
import pytest

from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

HEADER = "size;weight;day;drink;label"
CLEAN_ROW = "36.625;60;03/04/2020;café;well"

# What is odd about a private row -> its bytes.
ODD_ROWS = {
    "decimal comma": b"36,6;60;03/04/2020;tea;well",
    "mark of thousands": b"1,234;60;03/04/2020;tea;well",
    "day before month": b"36.625;60;25/12/2020;tea;well",
    "ISO date": b"36.625;60;2020-12-25;tea;well",
    "year of two digits": b"36.625;60;03/04/45;tea;well",
    "time zone": b"36.625;60;03/04/2020 10:00Z;tea;well",
    "encoding": b"36.625;60;03/04/2020;caf\xe9;well",
    "encoding of the label": b"36.625;60;03/04/2020;tea;w\xe9ll",
    "zero byte": b"36.625;60;03/04/2020;t\x00a;well",
    "separator": b"36.625,60,03/04/2020,tea,well",
    "too many fields": b"36.625;60;03/04/2020;tea;well;more;more",
    "too few fields": b"36.625;60",
    "the header again": HEADER.encode(),
    "open quote": b'36.625;60;03/04/2020;"tea;well',
    "quote in a field": b'36.625;60;03/04/2020;te"a;well',
    "carriage return": b"36.625;60;03/04/2020;te\ra;well",
    "word for missing": b"k.A.;n/a;?;None;well",
    "code for missing": b"-999;-999;03/04/2020;tea;well",
    "text": b"abc;60;someday;tea;well",
    "unit": b"36.625 kg;60;03/04/2020;tea;well",
    "leading zeros": b"007;060;03/04/2020;tea;well",
    "infinity": b"1e999;1e308;03/04/2020;tea;well",
    "digits": b"1" * 2000 + b";60;03/04/2020;tea;well",
    "long text": b"36.625;60;03/04/2020;" + b"w" * 140_000 + b";well",
    "no label": b"36.625;60;03/04/2020;tea;",
    "spelling of a label": b"36.625;60;03/04/2020;tea;WELL",
    "amount as a label": b"36.625;60;03/04/2020;tea;12.5",
    "long label": b"36.625;60;03/04/2020;tea;" + b"w" * 2000,
    "far date": b"36.625;60;12/31/9999;tea;well",
    "a public row": None,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Public rows, whose conventions are known, and private ones."""
    folder = tmp_path_factory.mktemp("reading")
    rng = np.random.default_rng(0)
    lines = []
    for i in range(160):
        size = 36 + round(2 * rng.random(), 3)
        day = f"{i % 12 + 1:02d}/{i % 28 + 1:02d}/2020"
        drink = rng.choice(["café", "tea", "eau"])
        label = "ill" if size > 37 else "well"
        # Numbers of one decimal in the public rows: the mark is a point.
        number = f"{size:.1f}" if i < 80 else f"{size:.3f}"
        lines.append(f"{number};{50 + i % 40};{day};{drink};{label}")
    public = "\n".join([HEADER, *lines[:80], ""]).encode()
    (folder / "public.csv").write_bytes(public)
    (folder / "private.csv").write_bytes("\n".join([HEADER, *lines[80:], ""]).encode())
    return folder


@pytest.fixture
def audit(folder, capsys):
    """Audit a table with next to no noise: exit code, counts, and what is said."""

    def audit(name, *options):
        line = (
            f"audit {folder}/{name} --validation {folder}/public.csv --target label "
            f"--epsilon 10000 -o {folder}/page.html"
        )
        code = command([*line.split(), *options])
        output = capsys.readouterr()
        rows = re.findall(r"^ +(\w+) +(-?\d+) +(-?\d*)", output.out, re.MULTILINE)
        counts = {}
        for label, n_rows, n_improbable in rows:
            counts[label] = np.array([int(n_rows), int(n_improbable or 0)])
        return code, counts, output.err.replace(name, "")

    return audit


def n_moved(counts, others):
    """By how many rows two tables of counts differ."""
    return sum(abs(counts[label][0] - others[label][0]) for label in counts)


CASES = [
    name if name == "decimal comma" else pytest.param(name, marks=pytest.mark.slow)
    for name in ODD_ROWS
]


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("name", CASES)
def test_one_odd_row_moves_counts_by_at_most_one(name, place, folder, audit):
    header, *lines = (folder / "private.csv").read_bytes().splitlines()
    odd_row = ODD_ROWS[name]
    if odd_row is None:
        odd_row = (folder / "public.csv").read_bytes().splitlines()[1]
    rows = [odd_row, *lines] if place == "first" else [*lines, odd_row]
    (folder / "odd.csv").write_bytes(b"\n".join([header, *rows, b""]))
    code, counts, messages = audit("private.csv")
    odd_code, odd_counts, odd_messages = audit("odd.csv")
    assert code == odd_code == 0
    assert odd_messages == messages
    assert n_moved(counts, odd_counts) <= 1
    n_improbable = [
        abs(counts[label][1] - odd_counts[label][1]) for label in ("ill", "well")
    ]
    assert sum(n_improbable) <= 1


def test_a_row_of_the_same_conventions_counts(folder, audit):
    content = (folder / "private.csv").read_bytes() + CLEAN_ROW.encode() + b"\n"
    (folder / "more.csv").write_bytes(content)
    _, counts, _ = audit("private.csv")
    _, more, _ = audit("more.csv")
    assert n_moved(counts, more) == 1


# Private rows, and what would be refused or asked of a table that is not private.
@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [0, 1])
def test_few_private_rows_are_counted(n_rows, folder, audit):
    lines = (folder / "private.csv").read_bytes().splitlines()[: n_rows + 1]
    (folder / "few.csv").write_bytes(b"\n".join([*lines, b""]))
    code, counts, _ = audit("few.csv")
    assert code == 0
    assert sum(n for n, _ in counts.values()) <= n_rows + 1


def value_line(folder, name):
    return (
        f"value {folder}/{name} --validation {folder}/public.csv --target label "
        f"--epsilon 1 --method tknn -o {folder}/values.csv"
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [0, 1])
def test_few_private_rows_have_values(n_rows, folder, capsys):
    lines = (folder / "private.csv").read_bytes().splitlines()[: n_rows + 1]
    (folder / "few.csv").write_bytes(b"\n".join([*lines, b""]))
    said = []
    for name in ("private.csv", "few.csv"):
        assert command(value_line(folder, name)) == 0
        output = capsys.readouterr()
        said.append((output.out + output.err).replace(name, ""))
    assert said[0] == said[1]
    assert len(pd.read_csv(folder / "values.csv")) == n_rows


@pytest.mark.slow
def test_a_compressed_private_file_is_read_as_a_text(folder, audit):
    content = (folder / "private.csv").read_bytes() + ODD_ROWS["encoding"]
    (folder / "text.csv").write_bytes(content)
    (folder / "text.csv.gz").write_bytes(gzip.compress(content))
    codes, counts, messages = zip(audit("text.csv"), audit("text.csv.gz"))
    assert codes == (0, 0)
    assert n_moved(*counts) == 0
    assert messages[0] == messages[1]


@pytest.mark.parametrize("content", [b"", b"no file of this kind", None])
@pytest.mark.parametrize("ending", ["xlsx", "XLSX", "jsonl", "ndjson", "jsonl.gz"])
def test_a_private_file_of_another_kind_is_refused_by_its_name(
    ending, content, folder, audit
):
    if content is None:
        content = (folder / "private.csv").read_bytes()
    (folder / f"other.{ending}").write_bytes(content)
    code, _, message = audit(f"other.{ending}")
    assert code == 2
    assert f"Got one that ends in .{ending.lower()}" in message


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_a_private_file_with_types_is_read_as_the_public_one(kind, folder, audit):
    """Numbers as strings, since one entry is none, are numbers all the same."""
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(folder / "private.csv", sep=";", dtype=str)
    frame["size"] = frame["size"].astype(float)
    counts = {}
    for name in ("typed", "strings"):
        if name == "strings":
            frame["size"] = frame["size"].map(str)
            frame.loc[0, "size"] = "k.A."
        getattr(frame, f"to_{kind}")(folder / f"{name}.{kind}")
        code, counts[name], _ = audit(f"{name}.{kind}")
        assert code == 0
    assert n_moved(counts["typed"], counts["strings"]) == 0
    assert counts["typed"]["well"][1] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD_ROWS)
def test_an_odd_row_changes_nothing_that_value_says(name, folder, capsys):
    """Neither the exit code nor a message; all other rows have their values."""
    content = (folder / "private.csv").read_bytes()
    odd_row = ODD_ROWS[name]
    if odd_row is None:
        odd_row = (folder / "public.csv").read_bytes().splitlines()[1]
    (folder / "odd.csv").write_bytes(content + odd_row + b"\n")
    said = []
    numbers = []
    for table in ("private.csv", "odd.csv"):
        assert command(value_line(folder, table)) == 0
        output = capsys.readouterr()
        said.append((output.out + output.err).replace(table, ""))
        numbers.append(pd.read_csv(folder / "values.csv")["row"].tolist())
    assert said[0] == said[1]
    assert numbers[1][: len(numbers[0])] == numbers[0]
    assert len(numbers[1]) <= len(numbers[0]) + 1


def test_a_header_without_a_public_column_is_refused_without_private_words(
    folder, audit
):
    lines = (folder / "private.csv").read_bytes().splitlines()[1:]
    (folder / "headless.csv").write_bytes(b"\n".join(lines))
    code, _, message = audit("headless.csv")
    assert code == 2
    assert "Got none named 'size'" in message
    assert lines[0].split(b";")[0].decode() not in message


@pytest.fixture
def wide(folder):
    """Public rows in an encoding of two bytes a letter."""
    content = (folder / "public.csv").read_bytes()
    path = folder / "wide.csv"
    path.write_bytes(content.decode().encode("utf-16"))
    return path


def test_public_rows_of_an_encoding_of_two_bytes_are_refused(folder, wide, capsys):
    """A byte that a row lacks would shift all behind it."""
    line = (
        f"audit {folder}/private.csv --validation {wide} --target label --epsilon 1 "
        f"-o {folder}/page.html"
    )
    assert command(line) == 2
    assert "Write both in UTF-8" in capsys.readouterr().err
