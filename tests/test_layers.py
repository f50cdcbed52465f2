"""Who may import whom, and what `import skvalue` must not import."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_rooms_import_from_lower_floors_only():
    """The contracts of pyproject.toml, of valuers too, which do not know each other."""
    # In a process of its own: the linter keeps the output stream of its first call.
    code = "from importlinter.cli import lint_imports_command as lint; lint()"
    result = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


# In one fresh interpreter: what has been imported is there for what comes after.
# (import-linter reads imports inside functions too, so that it cannot say this.)
IMPORTS = """
import sys, time, sklearn.base, sklearn.metrics, sklearn.model_selection
HEAVY = {"torch", "faiss", "dask", "numba", "matplotlib", "dp_accounting", "opendp"}
start = time.process_time()
import skvalue
print("seconds", time.process_time() - start)

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
    command = [sys.executable, "-c", IMPORTS]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return {first: words for first, *words in map(str.split, run.stdout.splitlines())}


@pytest.mark.parametrize(
    "module",
    [
        "skvalue",
        "skvalue.privacy",
        "skvalue.datasets",
        "skvalue.priarta",
        "displays",
        "valuers",
    ],
)
def test_imports_are_light(imports, module):
    """Displays import matplotlib to draw."""
    assert imports[module] == []


def test_import_time(imports):
    # CPU time beyond scikit-learn's own import. Measured 0.001 s.
    assert float(imports["seconds"][0]) < 0.1
