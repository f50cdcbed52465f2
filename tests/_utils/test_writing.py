"""Files are written as a whole or not at all, keep their mode, and follow links."""

import ast
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from full_disk import full_disk
from no_files import NO_FILES
from sklearn.naive_bayes import GaussianNB

import skvalue
from skvalue import DataShapleyValuer, LabelErrorDetector
from skvalue.audit import audit_table
from skvalue.audit.commands import main
from skvalue.privacy import Ledger

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
    pytest.mark.skipif(sys.platform == "win32", reason="no modes, no limits"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of 60 rows and its validation points, as files."""
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(2)
    frame = pd.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "label": np.where(X[:, 0] > 0, "x", "y")}
    )
    frame[:40].to_csv(folder / "train.csv", index=False)
    frame[40:].to_csv(folder / "val.csv", index=False)
    return folder


def command(table, name, *words):
    words = [name, table / "train.csv", "--target", "label", *words]
    if main([*map(str, words), "--validation", str(table / "val.csv")]):
        raise OSError("the command failed")


@cache
def report(table):
    frame = pd.read_csv(table / "train.csv")
    detector = LabelErrorDetector(GaussianNB(), random_state=0)
    return audit_table(frame[["a", "b"]], frame["label"].to_numpy(), detector=detector)


def checkpoint(path):
    valuer = DataShapleyValuer(
        GaussianNB(), max_evaluations=100, checkpoint=path, random_state=0
    )
    valuer.fit(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)


PRIVATE = ["--method", "tknn", "--epsilon", "1"]
# Name of a file, and the function that writes it.
WRITERS = {
    "value.csv": lambda path, table: command(table, "value", "-o", path),
    "value.feather": lambda path, table: command(table, "value", "-o", path),
    "private.csv": lambda path, table: command(table, "value", "-o", path, *PRIVATE),
    "clean.csv": lambda path, table: command(
        table, "clean", "--method", "knn", "-o", path
    ),
    "audit.html": lambda path, table: command(table, "audit", "-o", path),
    "to_html": lambda path, table: report(table).to_html(path),
    "to_json": lambda path, table: report(table).to_json(path),
    "to_csv": lambda path, table: report(table).to_csv(path),
    "to_label_studio": lambda path, table: report(table).to_label_studio(path),
    "checkpoint": lambda path, table: checkpoint(path),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "audit.html"))
        for name in WRITERS
    ],
)
def test_modes_are_kept_and_links_followed(name, table, tmp_path):
    """Nothing is opened through a link that another user placed beside the file."""
    path = tmp_path / name
    victim = tmp_path / "victim"
    victim.write_text("of another user")
    planted = tmp_path / f"{name}.{os.getpid()}.part"
    planted.symlink_to(victim)
    before = set(os.listdir(tmp_path))
    WRITERS[name](path, table)
    umask = os.umask(0)
    os.umask(umask)
    mode = 0o600 if name == "checkpoint" else 0o666 & ~umask
    assert path.stat().st_mode & 0o777 == mode

    content = path.read_bytes()
    path.chmod(0o640)
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / name
    link.symlink_to(path)
    if name != "checkpoint":  # which refuses other files
        path.write_text("earlier")
    WRITERS[name](link, table)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert len(path.read_bytes()) > len(content) / 2
    assert set(os.listdir(tmp_path)) == before | {name, "links"}
    assert victim.read_text() == "of another user"


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "checkpoint"])
def test_a_full_disk_leaves_the_earlier_file(name, table, tmp_path):
    path = tmp_path / name
    path.write_text("earlier")
    with full_disk(20), pytest.raises(OSError):
        WRITERS[name](path, table)
    assert path.read_text() == "earlier"
    assert os.listdir(tmp_path) == [name]


# Command -> the names of its files.
RESULTS = {
    "value -o OUT/o.csv": ["o.csv"],
    "value -o OUT/o.xlsx": ["o.xlsx"],
    "clean --method knn -o OUT/o.csv --report OUT/r.csv": ["o.csv", "r.csv"],
    "clean --method knn -o OUT/o.csv --report OUT/other/o.csv": ["1-o.csv", "o.csv"],
    "audit --checks fast -o OUT/o.html --findings OUT/f.json": ["f.json", "o.html"],
    "check --checks fast --findings OUT/f.json": ["f.json"],
}


@pytest.mark.parametrize("line", RESULTS)
def test_results_that_cannot_be_written_any_more_are_saved_elsewhere(
    line, table, tmp_path, monkeypatch, capsys
):
    if "xlsx" in line:
        pytest.importorskip("openpyxl")
    replace = os.replace
    out = tmp_path / "out"
    (out / "other").mkdir(parents=True)

    def no_space(source, target):
        if str(target).startswith(str(out)):
            raise OSError(28, "No space left on device", target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", no_space)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    name, *words = line.replace("OUT", str(out)).split()
    with pytest.raises(OSError, match="the command failed"):
        command(table, name, *words)
    [folder] = tmp_path.glob("skvalue-*")
    message = capsys.readouterr().err
    assert f"What was computed is saved in the folder {folder}." in message
    assert "o.csv could not be used: No space" in message or "o.csv" not in line
    assert sorted(os.listdir(folder)) == RESULTS[line]
    assert all(path.stat().st_size for path in folder.iterdir())
    assert not [path for path in out.rglob("*") if path.is_file()]


# A private command -> what its output must hold, besides the guarantee.
RELEASES = {
    "value --method tknn -o OUT/o.csv": "row,value,error",
    "value --method tknn -o OUT/o.parquet": "row,value,error",
    "audit -o OUT/o.html": "improbable",
}


@pytest.mark.parametrize("line", RELEASES)
def test_a_release_that_cannot_be_written_is_printed(
    line, table, tmp_path, monkeypatch, capsys
):
    def no_space(*paths):
        raise OSError(28, "No space left on device")

    if "parquet" in line:
        pytest.importorskip("pyarrow")
    (tmp_path / "out").mkdir()
    ledger = Ledger(tmp_path / "ledger.sqlite", "rows", epsilon=2.0, delta=1e-4)
    monkeypatch.setattr(os, "replace", no_space)
    name, *words = line.replace("OUT", str(tmp_path / "out")).split()
    with pytest.raises(OSError, match="the command failed"):
        command(table, name, *words, "--epsilon", "1", "--ledger", ledger.path)
    printed = capsys.readouterr()
    assert "the release was made and is printed: keep it." in printed.err
    assert RELEASES[line] in printed.out
    assert ledger.n_charges == 1
    assert not os.listdir(tmp_path / "out")


@pytest.mark.parametrize("line", RELEASES)
def test_a_release_without_space_costs_nothing(line, table, tmp_path, capsys):
    if "parquet" in line:
        pytest.importorskip("pyarrow")
    (tmp_path / "out").mkdir()
    ledger = Ledger(tmp_path / "ledger.sqlite", "rows", epsilon=2.0, delta=1e-4)
    name, *words = line.replace("OUT", str(tmp_path / "out")).split()
    with full_disk(20_000), pytest.raises(OSError, match="the command failed"):
        command(table, name, *words, "--epsilon", "1", "--ledger", ledger.path)
    assert "nothing was released" in capsys.readouterr().err
    assert ledger.n_charges == 0
    assert not os.listdir(tmp_path / "out")


@pytest.mark.parametrize("make", NO_FILES)
def test_pipes_and_folders_are_refused(make, table, tmp_path):
    make(tmp_path / "pipe")
    message = "path must be a file. Got a folder, a pipe or a device"
    with pytest.raises(ValueError, match=message):
        report(table).to_json(tmp_path / "pipe")


IS_ROOT = not hasattr(os, "geteuid") or os.geteuid() == 0


@pytest.mark.skipif(IS_ROOT, reason="is root")
def test_a_file_that_may_not_be_written_is_not_replaced(table, tmp_path):
    path = tmp_path / "summary"
    path.touch(mode=0o400)
    with pytest.raises(PermissionError, match="summary"):
        report(table).to_json(path)


def opens(node):
    """Whether a call opens a file for writing, or has another function write it."""
    function = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if function in ("open", "fdopen") and len(node.args) > 1:
        mode = getattr(node.args[1], "value", None)
        return isinstance(mode, str) and bool(set("wax+") & set(mode))
    writers = ("NamedTemporaryFile", "mkstemp", "write_text", "write_bytes", "savetxt")
    return function in writers


def test_one_function_writes_all_files():
    root = Path(skvalue.__file__).parent
    files = set()
    for path in root.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if any(isinstance(node, ast.Call) and opens(node) for node in nodes):
            files.add(path.relative_to(root).as_posix())
    assert files == {"_utils/writing.py"}


def depends_on_the_system(node):
    """Whether a call reads or writes text in the encoding of the system."""
    if any(keyword.arg == "encoding" for keyword in node.keywords):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in ("read_text", "write_text")
    mode = getattr(node.args[1], "value", "") if len(node.args) > 1 else "r"
    return getattr(node.func, "id", "") == "open" and "b" not in mode


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("open(path)", True),
        ("open(path, 'w')", True),
        ("path.read_text()", True),
        ("open(path, 'rb')", False),
        ("open(path, encoding='utf-8')", False),
        ("path.read_text(encoding='utf-8')", False),
        ("read_text(path)", False),
    ],
)
def test_encodings_of_the_system_are_found(code, expected):
    assert depends_on_the_system(ast.parse(code).body[0].value) == expected


def test_no_file_has_the_encoding_of_the_system():
    root = Path(skvalue.__file__).parent
    calls = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and depends_on_the_system(node)
    ]
    assert calls == []


def test_lines_end_in_the_same_way_on_all_systems(table, tmp_path, monkeypatch):
    path = tmp_path / "values.csv"
    monkeypatch.setattr(os, "linesep", "\r\n")
    command(table, "value", "-o", path)
    assert b"\r" not in path.read_bytes()
    assert "\r" not in report(table).to_csv()
