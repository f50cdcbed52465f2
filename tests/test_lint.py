"""Linters (the hooks of pre-commit), and the docstrings of everything public."""

import configparser
import inspect
import re
import shlex
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from numpydoc.validate import get_validation_checks, validate

import skvalue

ROOT = Path(__file__).resolve().parents[1]

# Parts of rooms that export names of their own.
INNER_ROOMS = ["privacy.audit", "valuers.knn_shapley", "valuers.tknn_shapley"]


def _hooks():
    """Hooks of the file that pre-commit reads, but for that of docstrings, which is the
    rest of this file."""
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load(text)["repos"]
    return [hook for hook in repository["hooks"] if hook["id"] != "docstrings"]


def _arguments(hook):
    """The command of a hook, run by this Python, with all files that it is for."""
    program, *arguments = shlex.split(hook["entry"])
    installed = Path(sysconfig.get_path("scripts"), program)
    command = [sys.executable if program == "python" else installed, *arguments]
    if not hook.get("pass_filenames", True):
        return command

    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [
        name for name in tracked.stdout.splitlines() if re.search(hook["files"], name)
    ]
    assert files
    return [*command, *files]


@pytest.mark.parametrize("hook", _hooks(), ids=lambda hook: hook["id"])
def test_a_linter_finds_nothing(hook):
    result = subprocess.run(_arguments(hook), cwd=ROOT, capture_output=True, text=True)
    printed = result.stdout + result.stderr
    assert result.returncode == 0, f"{printed}\n{hook['name']}"


def _members(name, cls):
    """Public methods and properties of a class that are written in this package."""
    for attribute, value in inspect.getmembers_static(cls):
        if attribute.startswith("_"):
            continue
        function = value.fget if isinstance(value, property) else inspect.unwrap(value)
        function = getattr(function, "__func__", function)
        if inspect.isfunction(function) and _is_ours(function):
            yield f"{name}.{attribute}", function


def public_names():
    """Import path -> public class or function, each once, under the shortest path it
    has."""
    rooms = ["skvalue"]
    for name in skvalue.__all__:
        if inspect.ismodule(getattr(skvalue, name)):
            rooms.append(f"skvalue.{name}")
    for room in INNER_ROOMS:
        if room.split(".")[0] in skvalue.__all__:
            rooms.append(f"skvalue.{room}")

    names = {}
    for room in rooms:
        module = import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
            if _is_ours(value) and value not in names.values():
                names[f"{room}.{name}"] = value
    return names


def _is_ours(value):
    is_defined = inspect.isclass(value) or inspect.isfunction(value)
    return is_defined and value.__module__.startswith("skvalue")


def documented_names():
    """`public_names`, and the methods and properties of its classes."""
    names = {}
    members = {}
    for path, value in public_names().items():
        names[path] = value
        if inspect.isclass(value):
            for name, function in _members(path, value):
                members.setdefault(function, name)
    return names | {name: function for function, name in members.items()}


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
    some = {
        "skvalue.TKNNShapleyValuer",
        "skvalue.BaseInSampleValuer.fit",
        "skvalue.datasets.flip_labels",
    }
    assert some <= set(NAMES)


def _wants_examples(value):
    """Whether a public name is a function, or a class that users build. Doctest runs
    examples."""
    if inspect.isfunction(value):
        return value in public_names().values()
    return not inspect.isabstract(value) and not issubclass(value, Exception)


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_follows_numpydoc(name):
    checks = CHECKS if _wants_examples(NAMES[name]) else CHECKS - {"EX01"}
    errors = validate(name)["errors"]
    faults = [f"{code}: {text}" for code, text in errors if code in checks]
    advice = f"Run: python -m numpydoc validate {name}"
    assert not faults, "\n".join([*faults, advice])
