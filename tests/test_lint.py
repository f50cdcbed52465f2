"""Linters, and the docstrings of everything public."""

import configparser
import inspect
import re
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
        [sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True
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
    """Import path -> public class or function, each once, under the shortest path it has."""
    inner = [room for room in INNER_ROOMS if room.split(".")[0] in skvalue.__all__]
    top = {name: getattr(skvalue, name) for name in skvalue.__all__}
    rooms = [name for name, value in top.items() if inspect.ismodule(value)] + inner
    paths = {f"skvalue.{name}": value for name, value in top.items() if name not in rooms}
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
    return get_validation_checks(set(config["tool:numpydoc_validation"]["checks"].split(",")))


CHECKS = _checks()
NAMES = documented_names()


def test_the_walk_finds_something():
    assert {
        "skvalue.TKNNShapleyValuer",
        "skvalue.BaseInSampleValuer.fit",
        "skvalue.datasets.flip_labels",
    } <= set(NAMES)


def _wants_examples(value):
    """Whether a public name is a function, or a class that users build. Doctest runs examples."""
    is_function = inspect.isfunction(value) and value in public_names().values()
    built = inspect.isclass(value) and not inspect.isabstract(value)
    return is_function or (built and not issubclass(value, Exception))


@pytest.mark.parametrize("name", NAMES)
def test_docstring(name):
    checks = CHECKS if _wants_examples(NAMES[name]) else CHECKS - {"EX01"}
    faults = [f"{code}: {text}" for code, text in validate(name)["errors"] if code in checks]
    advice = f"Run: python -m numpydoc validate {name}"
    assert not faults, "\n".join([*faults, advice])


# What is not said, as a regular expression -> the standard word.
WORDS = {
    r"judg": "validation point, evaluate",
    r"\b(no|every|some|any)body\b": "the empty coalition, all players, a caller",
    r"\bsettl(e|es|ed|ing)\b": "resolve ties exactly, decide",
    r"\bso many\b|\bso-manieth\b": "that many, n, the n-th",
    r"\bspoil": "corrupt",
    r"\blaws?\b(?! of large)": "distribution",
    r"\bchances?\b": "probability",
    r"(?<!standard )(?<!absolute )(?<!squared )\bdeviations?\b": "standard deviation",
    r"\bin the mean\b": "on average",
    r"\bst(and|ands|anding|ood) on\b": "be based on",
    r"\b(go|goes|going|went|gone) on\b": "resume, continue",
    r"\bbeside\b|\bbut for\b": "next to, compared with, except",
}
PLACES = ("skvalue/**/*.py", "doc/**/*.rst", "examples/**/*.py", "README.md")
BUILT = {"_build", "generated", "auto_examples"}


def found(text):
    """What is not said in a text, over ends of lines and signs of comments, and what to say."""
    text = re.sub(r"[\s#]+", " ", text)
    for word, standard in WORDS.items():
        for hit in re.finditer(word, text, re.IGNORECASE):
            yield f"...{text[max(0, hit.start() - 30) : hit.end() + 10]}... -> {standard}"


def test_standard_words():
    files = [file for place in PLACES for file in sorted(ROOT.glob(place))]
    assert len(files) > 200
    hits = [
        f"{file.relative_to(ROOT)}: {hit}"
        for file in files
        if not BUILT & set(file.relative_to(ROOT).parts)
        for hit in found(file.read_text(encoding="utf-8"))
    ]
    assert not hits, "\n".join(hits)


def test_words_are_found_over_lines_and_terms_are_not():
    assert len(list(found("one\n# so\n# many rows of Judges"))) == 2
    assert len(list(found("standard\n# deviation; its deviation"))) == 1
