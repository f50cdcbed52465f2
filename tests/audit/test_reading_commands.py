"""Commands on tables as people have them: at the first try, and with options."""

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import skvalue
from skvalue import KNNShapleyValuer
from tests.audit.command_line import command
from tests.audit.tables import people_table, text_of

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


def slow_but(cases, *quick):
    """The cases, of which few are in the default tier."""
    return [
        case if case in quick else pytest.param(case, marks=pytest.mark.slow)
        for case in cases
    ]


# Files of many kinds ------------------------------------------------------------------


def replace_entries(name, rows, entry, table):
    """The table with another entry, or a function of it, in rows of a column."""
    cells = list(table[name])
    for row in rows:
        cells[row] = entry(cells[row]) if callable(entry) else entry
    return {**table, name: cells}


replace_ages = partial(replace_entries, "alter", range(0, 120, 20))
replace_labels = partial(replace_entries, "kauf", range(0, 120, 15))


def decimal_comma(table):
    return {**table, "alter": [cell.replace(".", ",") for cell in table["alter"]]}


def day_first(table):
    days = [".".join(reversed(cell.split("-"))) for cell in table["tag"]]
    return {**table, "tag": days}


def month_first(table):
    days = ["{1}/{2}/{0}".format(*cell.split("-")) for cell in table["tag"]]
    return {**table, "tag": days}


EXCEL = text_of(day_first(decimal_comma(people_table())), ";", "\r\n")
# Kind of file -> its bytes or text, and what the audit says about it.
KINDS = {
    "latin-1": (text_of(people_table()).encode("latin-1"), "encoding cp1252"),
    "semicolons": (text_of(people_table(), ";"), "fields separated by semicolons"),
    "tabs, UTF-16": (
        text_of(people_table(), "\t").encode("utf-16"),
        "fields separated by tabs",
    ),
    "labels missing": (
        text_of(replace_labels("", people_table())),
        "8 of 120 rows have no label and are left out: rows 2, 17, 32,",
    ),
    "mixed case": (
        text_of(replace_labels(str.upper, people_table())),
        "differs in its spelling alone from 'ja': one class?",
    ),
    "spaces": (
        text_of(replace_labels(lambda cell: f" {cell} ", people_table())),
        "target kauf",
    ),
    "dd.mm.yyyy": (
        text_of(day_first(people_table())),
        "dates of day, month, year in tag",
    ),
    "mm/dd/yyyy": (
        text_of(month_first(people_table())),
        "dates of month, day, year in tag",
    ),
    "decimal commas": (
        text_of(decimal_comma(people_table()), ";"),
        "decimal comma in alter",
    ),
    "k.A.": (text_of(replace_ages("k.A.", people_table())), "'k.A.' missing in alter"),
    "a numeric id": (text_of(people_table()), "identifier id: left out"),
    "Excel, German": (b"\xef\xbb\xbf" + EXCEL.encode(), "decimal comma in alter"),
}


@pytest.mark.parametrize("kind", slow_but(KINDS, "Excel, German"))
def test_a_file_is_audited_at_the_first_try(kind, tmp_path, capsys):
    content, sentence = KINDS[kind]
    table = tmp_path / "people.csv"
    report = tmp_path / "report.json"
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    code = command(
        f"audit {table} --target kauf -o {tmp_path}/page.html --json {report} "
        "--checks fast --fail-on 1"
    )
    assert code == 0
    out = capsys.readouterr().out
    assert sentence in out
    gate = (
        "gate passed: the fraction of rows whose suggestion differs, without verdicts,"
    )
    assert gate in out
    assert re.search(r"; \d+\.\d seconds\.", out)
    assert "number alter: scaled" in out
    assert "date tag: as seconds" in out
    assert "question" not in out

    record = json.loads(report.read_text(encoding="utf-8"))
    sentences = [*record["said"]["read"], *record["notes"]]
    sentences += [finding["sentence"] for finding in record["findings"]]
    assert sentence in " ".join(sentences)
    assert len(record["listed"]) < 25
    labels = {label.strip().lower() for label in record["labels"]}
    assert labels <= {"ja", "nein", ""}


# Targets of many kinds ----------------------------------------------------------------

# Kind -> entries of the target by whether a person bought, and the task.
TARGETS = {
    "text": (["ja", "nein"], "classification"),
    "01": (["01", "1"], "classification"),
    "dates": (["2024-01-31", "2024-02-29"], "classification"),
    "booleans": (["True", "False"], "classification"),
    "prices": (["199,50", "99,25"], "regression"),
}


def table_of_target(kind):
    """A table with a target of this kind."""
    (yes, no), task = TARGETS[kind]
    table = people_table()
    labels = [yes if cell == "ja" else no for cell in table["kauf"]]
    if task == "regression":
        labels = [f"{cell[:-1]}{i % 10}" for i, cell in enumerate(labels)]
    return {**table, "kauf": labels}


@pytest.fixture
def audit_target(tmp_path):
    """Write and audit a table of a target; returns it and the record of its report."""

    def audit(kind):
        table = table_of_target(kind)
        (tmp_path / "t.csv").write_text(text_of(table, ";"), encoding="utf-8")
        code = command(
            f"audit {tmp_path}/t.csv --target kauf -o {tmp_path}/page.html "
            f"--json {tmp_path}/r.json --checks fast"
        )
        assert code == 0
        return table, json.loads((tmp_path / "r.json").read_text())

    return audit


def review_every_other_row(record, folder):
    """Say that every other label is wrong; returns whether there is a row to review."""
    rows = record["to_review"]
    if not rows:
        return False
    lines = [f"{row},{str(i % 2 == 0).lower()}" for i, row in enumerate(rows)]
    (folder / "v.csv").write_text("\n".join(["index,is_error", *lines, ""]))
    code = command(
        f"review {folder}/r.json {folder}/v.csv -o {folder}/page.html "
        f"--json {folder}/v.json"
    )
    assert code == 0
    return True


@pytest.mark.parametrize("kind", slow_but(TARGETS, "01"))
def test_a_report_has_the_labels_of_the_file(kind, audit_target):
    table, record = audit_target(kind)
    task = TARGETS[kind][1]
    assert record["about"]["task"] == task
    labels = table["kauf"]
    if task == "regression":
        labels = [float(label.replace(",", ".")) for label in labels]
    assert record["labels"] == labels


@pytest.mark.parametrize("kind", slow_but(TARGETS, "01"))
def test_verdicts_correct_labels_and_not_targets(kind, audit_target, tmp_path):
    table, record = audit_target(kind)
    (yes, no), task = TARGETS[kind]
    if not review_every_other_row(record, tmp_path):
        return
    new = tmp_path / "new.csv"
    code = command(f"fix {tmp_path}/t.csv {tmp_path}/v.json -o {new}")
    if task == "regression":
        assert code == 2
        return
    assert code == 0
    other = {yes: no, no: yes}
    for row in record["to_review"][::2]:
        table["kauf"][row] = other[table["kauf"][row]]
    assert new.read_text(encoding="utf-8") == text_of(table, ";")


@pytest.mark.parametrize("kind", slow_but(TARGETS, "01"))
def test_rows_of_any_target_are_valued_and_dropped(kind, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text(text_of(table_of_target(kind), ";"), encoding="utf-8")
    for name in ("value", "clean --drop 0.1"):
        output = tmp_path / f"{name.partition(' ')[0]}.csv"
        code = command(
            f"{name} {table} --target kauf --validation {table} --method knn "
            f"-o {output}"
        )
        assert code == 0
    kept = (tmp_path / "clean.csv").read_text(encoding="utf-8").splitlines()
    assert set(kept) < set(table.read_text(encoding="utf-8").splitlines())
    assert len(pd.read_csv(tmp_path / "value.csv")) == 120


# Options of reading -------------------------------------------------------------------


@pytest.fixture
def ambiguous(tmp_path):
    """A table whose dates can be read in two ways; a command without options."""
    rows = [
        f"{i % 12 + 1:02d}/{i % 9 + 1:02d}/2024,{i % 7},{i % 5},{'ab'[i % 2]}"
        for i in range(60)
    ]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["day,x,owner,y", *rows]))
    return table, f"value {table} --target y -o {tmp_path}/out.csv"


def test_dates_in_two_orders_are_asked_and_the_option_decides(ambiguous, capsys):
    _, line = ambiguous
    question = "Pass --dates dmy or --dates mdy."
    assert command(line) == 0
    out = capsys.readouterr().out
    assert "question: 'day': '01/01/2024' can be" in out
    assert question in out
    assert command(f"{line} --strict") == 2
    assert question in capsys.readouterr().err
    assert command(f"{line} --strict --dates dmy") == 0
    assert "date day: as seconds" in capsys.readouterr().out


def test_columns_are_kept_as_text_ignored_or_name_groups(ambiguous, tmp_path, capsys):
    _, line = ambiguous
    assert command(f"{line} --text day --ignore x --groups owner") == 0
    out = capsys.readouterr().out
    assert "text day" in out
    assert "1 columns" in out
    values = pd.read_csv(tmp_path / "out.csv")
    assert values.columns.tolist() == ["group", "value"]


GROUPS = {"numbers": [1, 2, 30], "zeros in front": ["01", "1", "2"]}


@pytest.mark.parametrize("names", GROUPS)
def test_groups_have_the_names_of_the_file(names, tmp_path):
    rows = [f"{i * 7 % 31},{GROUPS[names][i % 3]},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,owner,y", *rows]))
    line = f"value {tmp_path}/t.csv --target y --groups owner -o {tmp_path}/out.csv"
    assert command(line) == 0
    values = pd.read_csv(tmp_path / "out.csv", dtype={"group": str})
    assert set(values["group"]) == set(map(str, GROUPS[names]))


def test_a_row_without_a_group_is_refused(tmp_path, capsys):
    rows = [f"{i * 7 % 31},{i % 3 if i != 5 else ''},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,owner,y", *rows]))
    line = f"value {tmp_path}/t.csv --target y --groups owner -o {tmp_path}/out.csv"
    assert command(line) == 2
    assert "Got none in row 7 of 'owner'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("owners", "in_order"),
    [
        ([10, 9, 2, 1], [1, 2, 9, 10]),
        ([1.5, -2.0, 10.25, 0.0], [-2.0, 0.0, 1.5, 10.25]),
        (["010", "002", "100", "020"], ["002", "010", "020", "100"]),
        (["shop 10", "shop 9", "b", "a"], ["a", "b", "shop 10", "shop 9"]),
        (["10", "9", "2b", "1"], ["1", "10", "2b", "9"]),
    ],
    ids=["integers", "decimals", "zeros in front", "texts", "one text"],
)
def test_groups_are_in_the_order_of_their_numbers_or_texts(owners, in_order, tmp_path):
    table = tmp_path / "owners.csv"
    x = np.random.default_rng(0).normal(size=24)
    label = np.where(np.arange(24) % 8 > 3, "yes", "no")
    owner = [owners[number % 4] for number in range(24)]
    pd.DataFrame({"x": x, "owner": owner, "label": label}).to_csv(table, index=False)
    line = f"value {table} --target label --groups owner -o {tmp_path}/out.csv"
    assert command(line) == 0
    dtype = {"group": str} if isinstance(owners[0], str) else None
    values = pd.read_csv(tmp_path / "out.csv", dtype=dtype)
    assert values["group"].tolist() == in_order

    # Each has its own value.
    X = (x[:, None] - x.mean()) / x.std()
    valuer = KNNShapleyValuer().fit(X, label, groups=list(map(str, owner)))
    expected = dict(zip(map(float_or_text, valuer.groups_), valuer.values_))
    by_name = [expected[float_or_text(name)] for name in in_order]
    np.testing.assert_allclose(values["value"], by_name)


def float_or_text(name):
    """The number of a name of a group, or the name."""
    try:
        return float(name)
    except ValueError:
        return name


def test_a_column_that_is_not_there_cannot_be_ignored(ambiguous, capsys):
    _, line = ambiguous
    assert command(f"{line} --ignore z") == 2
    assert "--ignore must be a column of" in capsys.readouterr().err


def test_a_table_with_a_title_and_without_a_header_is_read(ambiguous, tmp_path, capsys):
    table, _ = ambiguous
    rows = table.read_text().splitlines()[1:]
    table.write_text("\n".join(["a title", *rows]))
    line = ["value", str(table), "--target", "column 4", "-o", f"{tmp_path}/out.csv"]
    options = "--skip-lines 1 --no-header --sep , --encoding utf-8 --dates mdy"
    assert command([*line, *options.split()]) == 0
    assert "60 rows, 3 columns" in capsys.readouterr().out


@pytest.fixture
def amounts(tmp_path):
    """A table whose target are whole numbers."""
    table = people_table()
    table["kauf"] = [f"{3 * (row % 25 + 1)}00" for row in range(len(table["alter"]))]
    (tmp_path / "t.csv").write_text(text_of(table))
    return tmp_path / "t.csv"


COMMANDS = {
    "audit": "audit {table} --target kauf -o {folder}/o.html",
    "value": "value {table} --target kauf -o {folder}/o.csv --method knn",
    "clean": "clean {table} --target kauf -o {folder}/o.csv --method knn",
}


@pytest.mark.parametrize("name", slow_but(COMMANDS, "value", "clean"))
def test_whole_numbers_are_asked_and_the_task_decides(name, amounts, tmp_path, capsys):
    line = COMMANDS[name].format(table=amounts, folder=tmp_path)
    command(f"{line} --strict")
    question = "Pass --task regression if they are amounts"
    assert question in capsys.readouterr().err
    assert command(f"{line} --task regression") == 0
    output = capsys.readouterr()
    assert "question: " not in output.out
    assert "warning" not in output.err
    if name == "clean":
        assert "108 of 120 rows" in output.out


# Validation points --------------------------------------------------------------------


def test_private_rows_that_are_public_have_no_value(tmp_path):
    """The whole table, but for five rows, or half of it, as --validation."""
    header, *lines = text_of(people_table(400)).splitlines()
    table = tmp_path / "t.csv"
    points = tmp_path / "v.csv"
    out = tmp_path / "o.csv"
    table.write_text("\n".join([header, *lines[:300]]))
    line = (
        f"value {table} --target kauf --method tknn --epsilon 1 -o {out} "
        f"--validation {points}"
    )
    for public, rows in [(lines[:295], range(295, 300)), (lines[150:400], range(150))]:
        points.write_text("\n".join([header, *public]))
        assert command(line) == 0
        assert pd.read_csv(out)["row"].tolist() == [row + 2 for row in rows]


@pytest.fixture
def validated(tmp_path):
    """The file of validation points, and a command that writes values by them."""
    table = tmp_path / "t.csv"
    table.write_text(text_of(people_table()))
    points = tmp_path / "v.csv"
    out = tmp_path / "o.csv"
    return points, out, f"value {table} --target kauf --validation {points} -o {out}"


def test_another_spelling_of_validation_labels_gives_the_same_values(validated):
    points, out, line = validated
    table = people_table(seed=1)
    upper = {**table, "kauf": [cell.upper() for cell in table["kauf"]]}
    values = []
    for spelled in (table, upper):
        points.write_text(text_of(spelled))
        assert command(line) == 0
        values.append(pd.read_csv(out)["value"].tolist())
    assert values[0] == values[1]


def test_validation_labels_that_no_row_has_are_refused_in_words(validated, capsys):
    points, _, line = validated
    points.write_text(text_of({**people_table(seed=1), "kauf": ["vielleicht"] * 120}))
    assert command(line) == 2
    assert "y_val" not in capsys.readouterr().err


# Messages and exit codes --------------------------------------------------------------

PYTHON = re.compile(
    r"X_val|y_val|\bn_\w+|max_time|random_state|=True|=None|\w+='|`|radius\."
)
METHODS = ["knn", "tknn", "data-oob", "influence", "beta-shapley"]


@pytest.mark.parametrize("method", slow_but(METHODS, "knn"))
def test_messages_have_the_words_of_the_command(method, tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text(text_of(people_table(40)))
    line = f"{table} --target kauf --method {method} -o {tmp_path}/o.csv"
    assert command(f"value {line}") == 0
    rules = ("0.3", "negative", "significant", "40") if method == "knn" else ("0.3",)
    for drop in rules:
        command(f"clean {line} --drop {drop} --no-keep-classes")
    if method == "knn":
        command(f"clean {line} --groups beruf --validation {table}")
    command(f"value {line} --epsilon -1 --validation {table} --equal-rows")
    command(f"audit {table} --target kauf --fdr 7 -o {tmp_path}/page.html")
    output = capsys.readouterr()
    assert not PYTHON.findall(output.out + output.err), output.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")
def test_progress_on_a_terminal_needs_no_library(tmp_path):
    import pty

    (tmp_path / "t.csv").write_text(text_of(people_table()))
    line = (
        f"-m skvalue value {tmp_path}/t.csv --target kauf --method beta-shapley "
        f"-o {tmp_path}/o.csv"
    )
    screen, terminal = pty.openpty()
    run = subprocess.run(
        [sys.executable, *line.split()],
        stdout=subprocess.PIPE,
        stderr=terminal,
        timeout=120,
    )
    os.close(terminal)
    assert run.returncode == 0
    shown = os.read(screen, 100_000).decode()
    assert re.search(r"\r\d+ %, about \d+ seconds left", shown)
    assert re.search(r"\r +\r", shown)  # the line is cleared


@pytest.fixture
def shell(tmp_path):
    """Run a command in a shell, in a folder with a table whose labels are not ASCII."""
    labels = {"ja": "東京", "nein": "Łódź"}
    table = people_table(60)
    table["kauf"] = [labels[cell] for cell in table["kauf"]]
    (tmp_path / "t.csv").write_text(text_of(table), encoding="utf-8")

    def run(line, **environment):
        return subprocess.run(
            f"{sys.executable} -m skvalue {line.replace('FOLDER', str(tmp_path))}",
            shell=True,
            capture_output=True,
            env={**os.environ, **environment},
        )

    return run


@pytest.mark.parametrize("encoding", slow_but(["ascii", "cp1252", "cp437"], "ascii"))
def test_an_output_of_another_encoding_stops_no_command(encoding, shell, tmp_path):
    done = shell(
        "value FOLDER/t.csv --target kauf -o FOLDER/v.csv --groups kauf",
        PYTHONIOENCODING=encoding,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "v.csv").exists()


CLOSED = [">&-", "2>&-", ">&- 2>&-", "| true"]


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX shell")
@pytest.mark.parametrize("closed", slow_but(CLOSED, ">&-"))
def test_a_closed_output_stops_no_command(closed, shell, tmp_path):
    done = shell(f"value FOLDER/t.csv --target kauf -o FOLDER/v.csv {closed}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "v.csv").exists()


# An output on a full disk -> the exit code: what is printed on the first one is lost.
FULL = {"> /dev/full": 2, "2> /dev/full": 0}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("full", FULL)
def test_a_full_disk_under_what_is_printed_loses_no_file(full, shell, tmp_path):
    done = shell(f"value FOLDER/t.csv --target kauf -o FOLDER/v.csv {full}")
    assert done.returncode == FULL[full], done.stderr
    assert (tmp_path / "v.csv").exists()
    if "2>" not in full:
        assert done.stderr.decode() == (
            "error: what was printed is lost (No space left on device); the files are "
            "written.\n"
        )


# What pandas is said to have written of the columns.
METADATA = [
    "{}", "[]", "x", '{"columns": [], "index_columns": ["a"]}',
    '{"columns": [{}], "index_columns": []}',
    '{"columns": [{"name": "a", "field_name": "a", "pandas_type": "float64", '
    '"numpy_type": "s|r", "metadata": null}], "index_columns": []}',
    '{"index_columns": [{"kind": "range", "name": null, "start": 0, "stop": 10, '
    '"step": 1}], "columns": []}',
    '{"index_columns": ["y"], "columns": [{"name": "y", "field_name": "y", '
    '"pandas_type": "unicode", "numpy_type": "object", "metadata": null}]}',
    '{"index_columns": [], "columns": [{"name": "a", "field_name": "a", '
    '"pandas_type": "categorical", "numpy_type": "int8", "metadata": null}]}',
]  # fmt: skip


@pytest.fixture
def arrow_table():
    """A table of Arrow, and the module of Parquet."""
    pa = pytest.importorskip("pyarrow")
    numbers = [i * 7 % 31 / 2 for i in range(60)]
    table = pa.table({"a": numbers, "b": numbers[::-1], "y": ["u", "v", "v"] * 20})
    return table, pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("metadata", slow_but(METADATA, "[]"))
def test_words_of_strangers_on_columns_are_not_believed(
    metadata, arrow_table, tmp_path
):
    table, parquet = arrow_table
    table = table.replace_schema_metadata({b"pandas": metadata.encode()})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert command(f"check {tmp_path}/t.parquet --target y --checks fast") == 0


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_rows_are_counted_before_they_are_read(kind, arrow_table, tmp_path, capsys):
    table, parquet = arrow_table
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path)
    elif kind == "arrow":
        table.to_pandas().to_feather(path)
    else:
        table.to_pandas().to_csv(path, index=False)
    assert command(f"check {path} --target y --checks fast --max-rows 59") == 2
    message = capsys.readouterr().err
    assert "must have at most 59 rows. Got 60. Pass --max-rows 60" in message
    assert len(message.splitlines()) == 1


HELP = {
    "--version": f"skvalue {skvalue.__version__}",
    "-h": "130 inter",
    "clean -h": "file to write the kept rows to",
    "value -h": "the values, of --method tknn, are (epsilon",
    "fix -h": "never the table",
    "review -h": "of rows is listed and wrong",
    "buyer score -h": "the file of rows that export had",
}


@pytest.mark.parametrize("line", HELP)
def test_version_and_help_are_printed(line, capsys):
    with pytest.raises(SystemExit) as ended:
        command(line)
    assert ended.value.code == 0
    assert HELP[line] in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer")
def test_ctrl_c_is_one_line(tmp_path, capsys):
    """Interrupted in the middle of a fit: exit code 130, one line, no file."""
    table = tmp_path / "t.csv"
    table.write_text(text_of(people_table(3000)))
    out = tmp_path / "o.csv"
    former = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        line = f"value {table} --target kauf --method data-shapley -o {out}"
        assert command(line) == 130
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    *announced, last = capsys.readouterr().err.splitlines()
    assert last == "interrupted: nothing was written."
    # On a slow machine the fit may have said before how long it takes.
    assert all(line.startswith("This takes about") for line in announced)
    assert not out.exists()
