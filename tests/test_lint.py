"""Linters, and the docstrings of everything public."""

import configparser
import inspect
import re
import subprocess
import sys
from functools import cache
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
    """Whether a name is a class that users build."""
    return (
        inspect.isclass(value)
        and not inspect.isabstract(value)
        and not issubclass(value, Exception)
    )


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
    r"\blaws?\b": "distribution",
    r"\bchances?\b": "probability",
    r"\bdeviations?\b": "standard deviation",
    r"\bin the mean\b": "on average",
    r"\b(st(and|ands|anding|ood)|hangs?|hung) on\b": "be based on, depend on",
    r"\bst(and|ands|anding|ood) in\b": "be in, replace",
    r"\b(go|goes|going|went|gone) on\b": "resume, continue",
    r"\brehears": "tune on public data",
    r"\bin earnest\b": "in production",
    r"\bshall\b": "should, must",
    r"\bwhoever\b": "a caller, a person who",
    r"\bbut for\b": "except",
    r"\bbeside\b": "next to, compared with",
    r"\bone another\b": "pairwise, each other",
    r"\bis told\b": "is passed",
    r"\ba (value|number|column|vector|line|entry) an? \w+": "one value per row",
    r"\bof one's own\b": "custom",
}
PLACES = ("skvalue/**/*.py", "doc/**/*.rst", "examples/**/*.py", "README.md")
BUILT = {"_build", "generated", "auto_examples"}
# Standard terms that contain such a word.
TERMS = re.compile(r"((standard|absolute|squared)[\s#]+deviations?)|(laws? of large numbers)", re.I)


def _blank(term):
    return re.sub(r"\S", " ", term[0])


@cache
def prose():
    """Text of every file of `PLACES` by its path, without the terms."""
    files = [file for place in PLACES for file in sorted(ROOT.glob(place))]
    paths = [path.relative_to(ROOT) for path in files if not BUILT & set(path.parts)]
    return {path: TERMS.sub(_blank, (ROOT / path).read_text(encoding="utf-8")) for path in paths}


def found(word, text):
    """Lines of the text with the word, numbered from 1, and what was found there."""
    words = re.compile(re.sub(" ", r"[\\s#]+", word), re.I)
    return [(text.count("\n", 0, hit.start()) + 1, hit[0]) for hit in words.finditer(text)]


@pytest.mark.parametrize("word", WORDS, ids=lambda word: re.sub(r"\\b|[?()]", "", word))
def test_standard_words(word):
    hits = [
        f"{path}:{line}: {' '.join(hit.split())} -> {WORDS[word]}"
        for path, text in prose().items()
        for line, hit in found(word, text)
    ]
    assert not hits, "\n".join(hits)


def test_words_are_found_over_lines_and_terms_are_not():
    assert found(r"\bso many\b", "one\n# so\n# many rows") == [(2, "so\n# many")]
    assert found(r"judg", "Judges judge.") == [(1, "Judg"), (1, "judg")]
    text = TERMS.sub(_blank, "standard\n# deviation; its deviation")
    assert found(r"\bdeviations?\b", text) == [(2, "deviation")]
    assert {"README.md", "doc/api.rst", "skvalue/base/_valuer.py"} <= set(map(str, prose()))
