"""Who may import whom, and what `import skvalue` must not import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "skvalue"

# Rooms by floor: a room may import from lower floors, and from itself.
LAYERS = [
    {"_utils", "exceptions"},
    {"samplers", "semivalues", "privacy", "rewards"},
    {"neighbors", "gradients", "games", "estimation"},
    {"base"},
    {"valuers", "collaborative", "priarta"},
    {"datasets", "selection"},
    {"inspection"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__"
)
HEAVY = ["torch", "faiss", "dask", "numba", "matplotlib", "dp_accounting"]


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_modules(path):
    """Absolute names of all modules that a file imports, inside functions too."""
    package = ["skvalue", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def rooms_imported(path):
    names = (name.split(".") for name in imported_modules(path))
    return {
        name[1] for name in names if name[0] == "skvalue" and len(name) > 1 and name[1] in LEVEL
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_layers(path):
    room = room_of(path)
    assert room in LEVEL, f"{room} has no layer: add it to LAYERS"
    for other in rooms_imported(path) - {room}:
        assert LEVEL[other] < LEVEL[room], f"{room} must not import {other}"


VALUERS = [path for path in FILES if room_of(path) == "valuers"]


def method_of(path):
    """The method that a file of `valuers` belongs to: the name of the file or of its folder."""
    return path.relative_to(PACKAGE).with_suffix("").parts[1]


@pytest.mark.parametrize("path", VALUERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_valuers_do_not_know_each_other(path):
    methods = {method for method in map(method_of, VALUERS) if not method.startswith("_")}
    names = {
        name.split(".")[2] for name in imported_modules(path) if name.startswith("skvalue.valuers.")
    }
    if method_of(path) != "__init__":
        assert not names & (methods - {method_of(path)})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_one_door_to_private_scikit_learn(path):
    if path == PACKAGE / "_utils" / "sklearn.py":
        return
    private = [
        name
        for name in imported_modules(path)
        if name.startswith("sklearn.") and any(part.startswith("_") for part in name.split("."))
    ]
    assert not private


def run(code):
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.split()


@pytest.mark.parametrize(
    "what", ["skvalue", "skvalue.datasets", "skvalue.privacy", "skvalue.priarta"]
)
def test_import_is_light(what):
    loaded = run(f"import sys, {what}; print(*{{name.split('.')[0] for name in sys.modules}})")
    assert not set(HEAVY) & set(loaded)


def test_valuers_import_numba_only_when_they_fit():
    code = (
        "import sys; from skvalue import KNNShapleyValuer; KNNShapleyValuer();"
        "print('numba' in sys.modules)"
    )
    assert run(code) == ["False"]


def test_import_time():
    # Beyond scikit-learn's own import; the best of three, since machines are noisy.
    code = (
        "import time, sklearn.base, sklearn.metrics, sklearn.model_selection\n"
        "t = time.perf_counter(); import skvalue; print(time.perf_counter() - t)"
    )
    assert min(float(run(code)[0]) for _ in range(3)) < 0.5
