"""Who may import whom, and what `import skvalue` must not import."""

import subprocess
import sys

import pytest

from tests import house

PACKAGE = house.PACKAGE

# Rooms by floor: a room may import from lower floors, and from itself.
LAYERS = [
    {"_utils", "exceptions"},
    {"samplers", "semivalues", "privacy", "rewards", "linear"},
    {"neighbors", "derivatives", "games", "estimation"},
    {"base"},
    {"valuers", "collaborative", "priarta"},
    {"datasets", "selection"},
    {"inspection"},
    {"labels"},
    {"audit"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.parent != PACKAGE or path.stem != "__init__"
)


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_modules(path):
    """Absolute names of all that a file imports, inside functions too."""
    return [name for _, name, _ in house.imported(path)]


def rooms_imported(path):
    names = (name.split(".") for name in imported_modules(path))
    return {
        name[1]
        for name in names
        if name[0] == "skvalue" and len(name) > 1 and name[1] in LEVEL
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_layers(path):
    room = room_of(path)
    assert room in LEVEL, f"{room} has no layer: add it to LAYERS"
    for other in rooms_imported(path) - {room}:
        assert LEVEL[other] < LEVEL[room], f"{room} must not import {other}"


VALUERS = [path for path in FILES if room_of(path) == "valuers"]


def method_of(path):
    """The method that a file of `valuers` belongs to: the name of the file or of its
    folder."""
    return path.relative_to(PACKAGE).with_suffix("").parts[1]


@pytest.mark.parametrize(
    "path", VALUERS, ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_valuers_do_not_know_each_other(path):
    methods = {
        method for method in map(method_of, VALUERS) if not method.startswith("_")
    }
    names = {
        name.split(".")[2]
        for name in imported_modules(path)
        if name.startswith("skvalue.valuers.")
    }
    if method_of(path) != "__init__":
        assert not names & (methods - {method_of(path)})


# In one fresh interpreter: what has been imported is there for what comes after.
IMPORTS = """
import sys, time, sklearn.base, sklearn.metrics, sklearn.model_selection
HEAVY = {"torch", "faiss", "dask", "numba", "matplotlib", "dp_accounting", "opendp"}
start = time.perf_counter()
import skvalue
print("seconds", time.perf_counter() - start)

def show(what):
    print(what, *sorted(HEAVY & {name.split(".")[0] for name in sys.modules}))

show("skvalue")
import skvalue.privacy.audit
show("skvalue.privacy")
import skvalue.datasets
show("skvalue.datasets")
import skvalue.priarta
show("skvalue.priarta")
from skvalue.collaborative import CoalitionValueDisplay
CoalitionValueDisplay(["a"], [0.0, 1.0])
from skvalue.inspection import ValueDistributionDisplay
ValueDistributionDisplay([0.0, 1.0])
show("displays")
skvalue.KNNShapleyValuer()
show("valuers")
"""


@pytest.fixture(scope="module")
def imports():
    """Lists of words that the interpreter prints, by their first."""
    run = [sys.executable, "-c", IMPORTS]
    lines = subprocess.run(
        run, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {what: rest for what, *rest in map(str.split, lines)}


@pytest.mark.parametrize(
    "what",
    [
        "skvalue",
        "skvalue.privacy",
        "skvalue.datasets",
        "skvalue.priarta",
        "displays",
        "valuers",
    ],
)
def test_imports_are_light(imports, what):
    """Displays import matplotlib to draw, and valuers numba to fit."""
    assert imports[what] == []


def test_import_time(imports):
    # Beyond scikit-learn's own import; another two interpreters if the machine was
    # busy.
    seconds = float(imports["seconds"][0])
    code = IMPORTS.partition("def show")[0]
    for _ in range(2):
        if seconds < 0.5:
            break
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True
        )
        seconds = float(found.stdout.split()[1])
    assert seconds < 0.5
