"""Commands on tables as people have them: at the first try, and with the options that
decide."""

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
from skvalue.audit.commands import main

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")


def command(*words):
    return main([str(word) for word in words])


def columns(n=120, seed=0):
    """Entries of a table of people, as strings."""
    rng = np.random.default_rng(seed)
    age, job = rng.normal(40, 10, n), rng.choice(["Pflege", "Büro"], n)
    bought = age + 20 * (job == "Büro") > 50
    bought ^= rng.random(n) < 0.05
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        rng.integers(0, 360, n), unit="D"
    )
    return {
        "id": [str(number) for number in 10_000 + rng.permutation(n)],
        "alter": [f"{value:.1f}" for value in age],
        "beruf": job.tolist(),
        "tag": days.strftime("%Y-%m-%d").tolist(),
        "kauf": np.where(bought, "ja", "nein").tolist(),
    }


def text_of(table, separator=",", newline="\n"):
    lines = [separator.join(table), *map(separator.join, zip(*table.values()))]
    return newline.join([*lines, ""])


def with_entries(name, places, entry, table):
    """The table with another entry in some rows of a column."""
    cells = list(table[name])
    for place in places:
        cells[place] = entry(cells[place]) if callable(entry) else entry
    return {**table, name: cells}


def comma(table):
    return {**table, "alter": [cell.replace(".", ",") for cell in table["alter"]]}


def day_first(table):
    return {
        **table,
        "tag": [".".join(reversed(cell.split("-"))) for cell in table["tag"]],
    }


def month_first(table):
    return {
        **table,
        "tag": ["{1}/{2}/{0}".format(*cell.split("-")) for cell in table["tag"]],
    }


some = partial(with_entries, "alter", range(0, 120, 20))
label = partial(with_entries, "kauf", range(0, 120, 15))
KINDS = {  # kind of file -> its bytes, and what the audit says about it
    "latin-1": (text_of(columns()).encode("latin-1"), "encoding cp1252"),
    "semicolons": (text_of(columns(), ";").encode(), "fields separated by ;"),
    "tabs, UTF-16": (
        text_of(columns(), "\t").encode("utf-16"),
        "fields separated by tabs",
    ),
    "labels missing": (
        text_of(label("", columns())),
        "8 of 120 rows have no label and are left out: rows 2, 17, 32,",
    ),
    "mixed case": (
        text_of(label(str.upper, columns())),
        "differs in its spelling alone from 'ja': one class?",
    ),
    "spaces": (text_of(label(lambda cell: f" {cell} ", columns())), "target kauf"),
    "dd.mm.yyyy": (text_of(day_first(columns())), "dates of day, month, year in tag"),
    "mm/dd/yyyy": (text_of(month_first(columns())), "dates of month, day, year in tag"),
    "decimal commas": (text_of(comma(columns()), ";"), "decimal comma in alter"),
    "k.A.": (text_of(some("k.A.", columns())), "'k.A.' missing in alter"),
    "a numeric id": (text_of(columns()), "identifier id: left out"),
    "Excel, German": (
        b"\xef\xbb\xbf" + text_of(day_first(comma(columns())), ";", "\r\n").encode(),
        "decimal comma in alter",
    ),
}


def mostly_slow(cases, *quick):
    """The cases, of which few are in the default tier."""
    return [c if c in quick else pytest.param(c, marks=pytest.mark.slow) for c in cases]


@pytest.mark.parametrize("kind", mostly_slow(KINDS, "Excel, German"))
def test_twelve_files_are_audited_at_the_first_try(kind, tmp_path, capsys):
    content, sentence = KINDS[kind]
    table, report = tmp_path / "people.csv", tmp_path / "report.json"
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    words = [
        "audit",
        table,
        "--target",
        "kauf",
        "-o",
        tmp_path / "page.html",
        "--json",
        report,
    ]
    assert command(*words, "--checks", "fast", "--fail-on", "1") == 0
    said = capsys.readouterr().out
    assert sentence in said
    assert (
        "gate passed: the fraction of rows whose suggestion differs, without verdicts,"
        in said
    )
    assert re.search(r"; \d+\.\d seconds\.", said)
    assert "number alter: scaled" in said
    assert "date tag: as seconds" in said
    assert "question" not in said
    record = json.loads(report.read_text(encoding="utf-8"))
    findings = [each["sentence"] for each in record["findings"]]
    assert sentence in " ".join([*record["said"]["read"], *record["notes"], *findings])
    assert len(record["listed"]) < 25
    given = [cell.strip() for cell in record["labels"]]
    assert {cell.lower() for cell in given} <= {"ja", "nein", ""}


TARGETS = {  # entries of the target by whether a person bought, and the task that is found
    "text": (["ja", "nein"], "classification"),
    "01": (["01", "1"], "classification"),
    "dates": (["2024-01-31", "2024-02-29"], "classification"),
    "booleans": (["True", "False"], "classification"),
    "prices": (["199,50", "99,25"], "regression"),
}


@pytest.mark.parametrize("kind", mostly_slow(TARGETS, "01"))
def test_targets_from_file_to_report_to_verdicts_and_back(kind, tmp_path, capsys):
    (yes, no), task = TARGETS[kind]
    content = columns()
    content["kauf"] = [yes if cell == "ja" else no for cell in content["kauf"]]
    if task == "regression":
        content["kauf"] = [
            f"{cell[:-1]}{i % 10}" for i, cell in enumerate(content["kauf"])
        ]
    table, report, reviewed = (
        tmp_path / "t.csv",
        tmp_path / "r.json",
        tmp_path / "v.json",
    )
    table.write_text(text_of(content, ";"), encoding="utf-8")
    words = [table, "--target", "kauf"]
    page = ["-o", tmp_path / "page.html"]
    assert command("audit", *words, *page, "--json", report, "--checks", "fast") == 0
    record = json.loads(report.read_text())
    assert record["about"]["task"] == task
    shown = (
        [float(cell.replace(",", ".")) for cell in content["kauf"]]
        if task[0] == "r"
        else None
    )
    assert record["labels"] == (shown or content["kauf"])
    verdicts = [
        f"{row},{str(i % 2 == 0).lower()}" for i, row in enumerate(record["to_review"])
    ]
    (tmp_path / "v.csv").write_text("\n".join(["row,is_error", *verdicts, ""]))
    if verdicts:
        assert (
            command("review", report, tmp_path / "v.csv", *page, "--json", reviewed)
            == 0
        )
        code = command("fix", table, reviewed, "-o", tmp_path / "new.csv")
        assert code == (0 if task == "classification" else 2)
    if verdicts and task == "classification":
        other = {yes: no, no: yes}
        for row in record["to_review"][::2]:
            content["kauf"][row] = other[content["kauf"][row]]
        assert (tmp_path / "new.csv").read_text(encoding="utf-8") == text_of(
            content, ";"
        )
    validation = ["--validation", table]
    for name in ("value", "clean"):
        out = tmp_path / f"{name}.csv"
        assert command(name, *words, *validation, "--method", "knn", "-o", out) == 0
    kept = (tmp_path / "clean.csv").read_text(encoding="utf-8").splitlines()
    assert set(kept) < set(table.read_text(encoding="utf-8").splitlines())
    assert len(pd.read_csv(tmp_path / "value.csv")) == 120


def test_options_of_reading(tmp_path, capsys):
    """What can be read in two ways is asked; the option decides; --strict refuses."""
    table = tmp_path / "t.csv"
    rows = [
        f"{i % 12 + 1:02d}/{i % 9 + 1:02d}/2024,{i % 7},{i % 5},{'ab'[i % 2]}"
        for i in range(60)
    ]
    table.write_text("\n".join(["day,x,owner,y", *rows]))
    words = ["value", table, "--target", "y", "-o", tmp_path / "out.csv"]
    assert command(*words) == 0
    assert "question: 'day': '01/01/2024' can be" in (said := capsys.readouterr().out)
    assert "Pass --dates dmy or --dates mdy." in said
    assert command(*words, "--strict") == 2
    assert "Pass --dates dmy or --dates mdy." in capsys.readouterr().err
    assert command(*words, "--strict", "--dates", "dmy") == 0
    assert "date day: as seconds" in capsys.readouterr().out
    assert command(*words, "--text", "day", "--ignore", "x", "--groups", "owner") == 0
    said = capsys.readouterr().out
    assert "category day" in said
    assert "1 columns" in said
    assert pd.read_csv(tmp_path / "out.csv").columns.tolist() == ["group", "value"]
    assert command(*words, "--ignore", "z") == 2
    assert "--ignore must be a column of" in capsys.readouterr().err
    table.write_text("\n".join(["a title", *rows]))
    skipped = [*words[:3], "column 4", *words[4:], "--skip-lines", "1", "--no-header"]
    assert command(*skipped, "--sep", ",", "--encoding", "utf-8", "--dates", "mdy") == 0
    assert "60 rows, 3 columns" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", mostly_slow(["audit", "value", "clean"], "value", "clean")
)
def test_whole_numbers_are_asked_and_the_task_decides(name, tmp_path, capsys):
    table = columns()
    table["kauf"] = [f"{round(float(cell) * 3)}00" for cell in table["alter"]]
    (tmp_path / "t.csv").write_text(text_of(table))
    words = [name, tmp_path / "t.csv", "--target", "kauf"]
    words += ["-o", tmp_path / ("o.html" if name == "audit" else "o.csv")]
    if name != "audit":
        words += ["--method", "knn"]
    command(*words, "--strict")
    assert "Pass --task regression if they are amounts" in capsys.readouterr().err
    assert command(*words, "--task", "regression") == 0
    said = capsys.readouterr()
    assert "question: " not in said.out
    assert "warning" not in said.err
    if name == "clean":
        assert "108 of 120 rows" in said.out


def test_private_rows_are_not_public(tmp_path, capsys):
    """The whole table, or half of it, as --validation is refused; other rows are
    taken."""
    lines = text_of(columns(400)).splitlines()
    table, out = tmp_path / "t.csv", tmp_path / "o.csv"
    table.write_text("\n".join(lines[:301]))
    words = [
        "value",
        table,
        "--target",
        "kauf",
        "--method",
        "tknn",
        "--epsilon",
        "1",
        "-o",
        out,
    ]
    words += ["--validation", tmp_path / "v.csv"]
    for rows, message in [(lines[1:301], "300 rows"), (lines[151:401], "150 rows")]:
        (tmp_path / "v.csv").write_text("\n".join([lines[0], *rows]))
        assert command(*words) == 2
        assert f"Got {message} that are in both" in capsys.readouterr().err
        assert not out.exists()
    (tmp_path / "v.csv").write_text("\n".join([lines[0], *lines[301:]]))
    assert command(*words) == 0


def test_spellings_of_validation_labels(tmp_path, capsys):
    """A validation set in another spelling than the table gives the same values."""
    table, val, out = (tmp_path / f"{name}.csv" for name in ("t", "v", "o"))
    table.write_text(text_of(columns()))
    words = ["value", table, "--target", "kauf", "--validation", val, "-o", out]
    other = columns(seed=1)
    values = []
    for spelled in (other, {**other, "kauf": [cell.upper() for cell in other["kauf"]]}):
        val.write_text(text_of(spelled))
        assert command(*words) == 0
        values.append(pd.read_csv(out)["value"].tolist())
    assert values[0] == values[1]
    val.write_text(text_of({**other, "kauf": ["vielleicht"] * 120}))
    assert command(*words) == 2
    assert "y_val" not in capsys.readouterr().err


PYTHON = re.compile(
    r"X_val|y_val|\bn_\w+|max_time|random_state|=True|=None|\w+='|`|radius\."
)


METHODS = ["knn", "tknn", "data-oob", "influence", "beta-shapley"]


@pytest.mark.parametrize("method", mostly_slow(METHODS, "knn"))
def test_messages_have_the_words_of_the_command(method, tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text(text_of(columns(40)))
    words = [table, "--target", "kauf", "--method", method, "-o", tmp_path / "o.csv"]
    assert command("value", *words) == 0
    for drop in (
        ("0.3", "negative", "significant", "40") if method == "knn" else ["0.3"]
    ):
        command("clean", *words, "--drop", drop, "--no-keep-classes")
    if method == "knn":
        command("clean", *words, "--groups", "beruf", "--validation", table)
    command("value", *words, "--epsilon", "-1", "--validation", table, "--equal-rows")
    command("audit", *words[:3], "--fdr", "7", "-o", tmp_path / "page.html")
    said = capsys.readouterr()
    assert not PYTHON.findall(said.out + said.err), said.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")
def test_progress_on_a_terminal_needs_no_library(tmp_path):
    import pty

    (tmp_path / "t.csv").write_text(text_of(columns()))
    screen, terminal = pty.openpty()
    words = [
        "value",
        tmp_path / "t.csv",
        "--target",
        "kauf",
        "--method",
        "beta-shapley",
    ]
    words = [
        sys.executable,
        "-m",
        "skvalue",
        *map(str, words),
        "-o",
        str(tmp_path / "o.csv"),
    ]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=terminal, timeout=120)
    os.close(terminal)
    assert done.returncode == 0
    said = os.read(screen, 100_000).decode()
    assert re.search(r"\r\d+ %, about \d+ seconds left", said)
    assert re.search(r"\r +\r", said)  # the line is cleared


def test_clean_refuses_to_empty_a_class(tmp_path, capsys):
    content = columns()
    content["kauf"] = ["selten" if i % 15 == 0 else "ja" for i in range(120)]
    table, out = tmp_path / "t.csv", tmp_path / "o.csv"
    table.write_text(text_of(content))
    words = ["clean", table, "--target", "kauf", "-o", out, "--method", "knn"]
    assert command(*words) == 0  # as many of every class
    assert (
        "109 of 120 rows; the others have the lowest values" in capsys.readouterr().out
    )
    out.unlink()
    assert command(*words, "--no-keep-classes") == 2
    assert (
        "the class 'selten' would lose 7 of its 8 rows: nothing was"
        in capsys.readouterr().err
    )
    assert not out.exists()
    assert command(*words, "--no-keep-classes", "--force") == 0
    said = capsys.readouterr()
    assert "stratify" not in said.err
    assert out.exists()


def test_version_help_and_exit_codes(capsys):
    for words, sentence in [
        (["--version"], f"skvalue {skvalue.__version__}"),
        (["-h"], "130 inter"),
        (["clean", "-h"], "file to write the kept rows to"),
        (["value", "-h"], "the values, of --method tknn, are (epsilon"),
        (["fix", "-h"], "never the table"),
        (["review", "-h"], "of rows is listed and wrong"),
        (["buyer", "score", "-h"], "the file of rows that export had"),
    ]:
        with pytest.raises(SystemExit) as ended:
            command(*words)
        assert ended.value.code == 0
        assert sentence in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer")
def test_ctrl_c_is_one_line(tmp_path, capsys):
    """Interrupted in the middle of a fit: exit code 130, one line, no file."""
    (tmp_path / "t.csv").write_text(text_of(columns(3000)))
    words = [
        "value",
        tmp_path / "t.csv",
        "--target",
        "kauf",
        "--method",
        "data-shapley",
    ]
    former = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        assert command(*words, "-o", tmp_path / "o.csv") == 130
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert capsys.readouterr().err == "interrupted: nothing was written.\n"
    assert not (tmp_path / "o.csv").exists()
