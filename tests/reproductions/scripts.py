"""How tests run the scripts of examples/reproductions/ and read what they print."""

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "reproductions"


def of(name, *marks):
    """Marks a test of a script, which the fixtures `script` and `run` use."""
    param = pytest.param(name, marks=marks, id=name)
    return pytest.mark.parametrize("script", [param], indirect=True)


def table_rows(printed, start):
    """Cells of the lines of a markdown table that start with these characters."""
    lines = [line for line in printed.splitlines() if line.startswith(start)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def first_number(cell):
    return float(cell.split()[0])


def keep(monkeypatch, script, table, names):
    """Leave only some entries of a table of the script."""
    entries = getattr(script, table)
    monkeypatch.setattr(script, table, {name: entries[name] for name in names})


def save_images(folder, name, channels, side, n):
    """Save ten classes of noise, each brighter in rows of its own."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 10
    X = rng.integers(0, 100, size=(n, side, side, channels)).astype(np.uint8)
    for label in range(10):
        X[y == label, 2 * label : 2 * label + 3] += 150
    np.savez(folder / f"{name}.npz", X=X, y=y)
