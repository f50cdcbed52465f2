"""Files are written as a whole or not at all, keep their mode, and follow links."""

import ast
import os
import sys
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
