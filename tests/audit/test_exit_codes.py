"""One meaning of each exit code: 1 is a gate alone, every other failure is 2."""

import sys
from importlib.util import find_spec
from types import ModuleType

import pytest

from tests.audit.command_line import command

pytest.importorskip("pandas")
pytest.importorskip("jinja2")

ROWS = "".join(f"{i * 7 % 31},{i % 5},{'uv'[i % 2]}\n" for i in range(60))
# Name of a file -> bytes that are no whole file of its kind.
BROKEN = {
    "empty.csv": b"", "header.csv": b"a,b,y\n", "zeros.csv": b"\0" * 99,
    "ragged.csv": b"a,b,y\n1,2\n1,2,3,4\n", "quote.csv": b'a,b,y\n1,"2,3\n4,5,6\n',
    "letters.csv": bytes(range(256)) * 9, "same.csv": b"a,b,y\n" + b"1,2,u\n" * 40,
    "cut.csv.gz": b"\x1f\x8b\x08\0\0\0\0\0\0\x03K", "cut.xlsx": b"PK\x03\x04cut",
    "cut.parquet": b"PAR1cutPAR1", "cut.arrow": b"ARROW1\0\0cut",
    "deep.jsonl": b'{"a": ' * 5000, "list.jsonl": b"[1, 2]\n[3, 4]\n",
    "nested.jsonl": b'{"a": {"b": 1}, "y": 2}\n' * 30, "none.csv": None,
}  # fmt: skip
COMMANDS = {
    "audit": "audit TABLE --target y -o OUT.html",
    "check": "check TABLE --target y",
    "value": "value TABLE --target y -o OUT.csv",
    "clean": "clean TABLE --target y -o OUT.csv",
    "fix": "fix TABLE FIX.csv -o OUTKIND",
    "validation": "value GOOD.csv --target y --validation TABLE -o OUT.csv",
}


def one_line(line, capsys):
    """The exit code of a command, and the only line of its errors."""
    try:
        code = command(line)
    except SystemExit as ended:  # of the parser
        code = ended.code
    errors = [
        text
        for text in capsys.readouterr().err.splitlines()
        if not text.startswith("warning: ")
    ]
    assert len(errors) == 1, errors
    return code, errors[0]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("file", BROKEN)
def test_a_file_that_is_none_is_refused_with_code_2(file, name, tmp_path, capsys):
    if file.endswith("xlsx") and not find_spec("openpyxl"):
        pytest.skip("no openpyxl")
    if BROKEN[file] is not None:
        (tmp_path / file).write_bytes(BROKEN[file])
    (tmp_path / "good.csv").write_text("a,b,y\n" + ROWS)
    (tmp_path / "c.csv").write_text("row,column,old,new,accept\n2,y,no such,v,true\n")
    kind = file.partition(".")[2]
    words = {
        "TABLE": f"{tmp_path}/{file}",
        "GOOD.csv": f"{tmp_path}/good.csv",
        "FIX.csv": f"{tmp_path}/c.csv",
        "OUTKIND": f"{tmp_path}/out.{kind}",
        "OUT.html": f"{tmp_path}/out.html",
        "OUT.csv": f"{tmp_path}/out.csv",
    }
    line = [words.get(word, word) for word in COMMANDS[name].split()]
    if (file, name) == ("same.csv", "validation"):  # may be so
        return
    code, error = one_line(line, capsys)
    assert code == 2
    assert error.startswith("error: ")
    assert "unexpected" not in error
    assert not list(tmp_path.glob("out*"))


REPORTS = {
    "brace.json": b"{", "list.json": b"[]", "deep.json": b"[" * 100_000,
    "other.json": b'{"format": "skvalue.AuditReport", "version": 1}',
    "letters.json": "é".encode(), "none.json": None,
}  # fmt: skip


@pytest.mark.parametrize("file", REPORTS)
@pytest.mark.parametrize(
    "line",
    [
        "review TABLE GOOD -o OUT.html",
        "fix GOOD TABLE -o OUT.csv",
        "clean GOOD --from TABLE -o OUT.csv",
    ],
)
def test_a_report_that_is_none_is_refused_with_code_2(line, file, tmp_path, capsys):
    if REPORTS[file] is not None:
        (tmp_path / file).write_bytes(REPORTS[file])
    (tmp_path / "good.csv").write_text("a,b,y\n" + ROWS)
    line = line.replace("TABLE", f"{tmp_path}/{file}")
    line = line.replace("GOOD", f"{tmp_path}/good.csv")
    code, error = one_line(line.replace("OUT", f"{tmp_path}/out"), capsys)
    assert code == 2
    assert "unexpected" not in error


@pytest.mark.parametrize("line", ["", "nothing", "check", "check t.csv --nothing"])
def test_words_that_are_no_command_have_code_2(line, capsys):
    code, _ = one_line(line, capsys)
    assert code == 2


def test_a_fault_of_a_library_has_code_2(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_text("a,b,y\n" + ROWS)
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    code, error = one_line(f"check {tmp_path}/t.csv --target y", capsys)
    assert code == 2
    assert error.startswith("error: an unexpected AttributeError: ")


def test_a_gate_alone_has_code_1(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(
        "a,constant,y\n" + "".join(f"{i * 7 % 31},1,{'uv'[i % 2]}\n" for i in range(60))
    )
    line = f"check {tmp_path}/t.csv --target y --checks fast"
    assert command(f"{line} --fail-on-findings error") == 0
    codes = {command(f"{line} --fail-on-findings question"), command(line)}
    assert codes == {0, 1}
    assert "gate failed: " in capsys.readouterr().out
