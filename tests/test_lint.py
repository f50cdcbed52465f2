"""Linters, and the docstrings of everything public."""

import configparser
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.validate import get_validation_checks, validate

import skvalue

ROOT = Path(__file__).resolve().parents[1]

# Parts of rooms that export names of their own.
INNER_ROOMS = ["privacy.audit", "valuers.knn_shapley", "valuers.tknn_shapley"]


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("ruff check .", "ruff check --fix ."),
        ("ruff format --check .", "ruff format ."),
        ("codespell_lib", "codespell --write-changes, or add a word to setup.cfg"),
    ],
)
def test_linter(command, advice):
    result = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    printed = result.stdout + result.stderr
    assert result.returncode == 0, f"{printed}\nRun: {advice}"


def _members(name, cls):
    """Public methods and properties of a class that are written in this package."""
    for attribute, value in inspect.getmembers_static(cls):
        function = value.fget if isinstance(value, property) else inspect.unwrap(value)
        function = getattr(function, "__func__", function)
        ours = (getattr(function, "__module__", None) or "").startswith("skvalue")
        if not attribute.startswith("_") and inspect.isfunction(function) and ours:
            yield f"{name}.{attribute}", function


def public_names():
    """Import path -> public class or function, each once, under the shortest path it
    has."""
    inner = [room for room in INNER_ROOMS if room.split(".")[0] in skvalue.__all__]
    top = {name: getattr(skvalue, name) for name in skvalue.__all__}
    rooms = [name for name, value in top.items() if inspect.ismodule(value)] + inner
    paths = {
        f"skvalue.{name}": value for name, value in top.items() if name not in rooms
    }
    for room in rooms:
        module = import_module(f"skvalue.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            ours = getattr(value, "__module__", "").startswith("skvalue")
            if ours and (inspect.isclass(value) or inspect.isfunction(value)):
                paths.setdefault(f"skvalue.{room}.{name}", value)
    names, seen = {}, set()
    for path, value in paths.items():
        if value not in seen:
            seen.add(value)
            names[path] = value
    return names


def documented_names():
    """`public_names`, and the methods and properties of its classes."""
    names, seen = {}, set()
    for path, value in public_names().items():
        names[path] = value
        for name, function in _members(path, value) if inspect.isclass(value) else ():
            if function not in seen:
                seen.add(function)
                names[name] = function
    return names


def _checks():
    # numpydoc's own commands look for no setup.cfg where there is a pyproject.toml.
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return get_validation_checks(
        set(config["tool:numpydoc_validation"]["checks"].split(","))
    )


CHECKS = _checks()
NAMES = documented_names()


def test_the_walk_finds_something():
    assert {
        "skvalue.TKNNShapleyValuer",
        "skvalue.BaseInSampleValuer.fit",
        "skvalue.datasets.flip_labels",
    } <= set(NAMES)


def _wants_examples(value):
    """Whether a public name is a function, or a class that users build. Doctest runs
    examples."""
    is_function = inspect.isfunction(value) and value in public_names().values()
    built = inspect.isclass(value) and not inspect.isabstract(value)
    return is_function or (built and not issubclass(value, Exception))


@pytest.mark.parametrize("name", NAMES)
def test_docstring(name):
    checks = CHECKS if _wants_examples(NAMES[name]) else CHECKS - {"EX01"}
    faults = [
        f"{code}: {text}" for code, text in validate(name)["errors"] if code in checks
    ]
    advice = f"Run: python -m numpydoc validate {name}"
    assert not faults, "\n".join([*faults, advice])
