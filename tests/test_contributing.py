"""The page on how to add a valuer: what it adds passes the common tests."""

import ast
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from problems import two_classes
from sklearn.utils.estimator_checks import check_estimator
from toy_valuer import VoteValuer

import skvalue.base
from skvalue.base import Run, check_valuer
from skvalue.privacy import Release

ROOT = Path(__file__).resolve().parents[1]
TOY = ROOT / "tests" / "toy_valuer.py"
# What an author writes, and the base class or scikit-learn reads.
HOOKS = {
    "_value",
    "_score_new",
    "_point_values",
    "_point_moments",
    "_capabilities",
    "_parameter_constraints",
}


def page():
    """The lines of the section, with those of the files that it includes."""
    text = (ROOT / "doc" / "contributing.rst").read_text(encoding="utf-8")
    section = text.split("How to add a valuer\n---")[1].split("House rules\n---")[0]
    for line in section.splitlines():
        if line.startswith(".. literalinclude:: "):
            included = (ROOT / "doc" / line.split()[-1]).read_text(encoding="utf-8")
            yield from included.splitlines()
        yield line


def filled(lines):
    return [line for line in lines if line.strip()]


def test_the_page_shows_the_toy_and_every_name_of_a_run():
    lines = list(page())
    toy = TOY.read_text(encoding="utf-8").splitlines()
    assert set(filled(toy)) <= set(lines)
    names = set(re.findall(r"``.*?(?:run|release)\.(\w+)\(", "\n".join(lines)))
    assert names == {"map", "fits", "steps", "evaluations", "of"}
    assert all(hasattr(Run, name) or hasattr(Release, name) for name in names)


def test_the_toy_imports_what_is_public_for_authors():
    for node in ast.walk(ast.parse(TOY.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("skvalue"):
            assert node.module == "skvalue.base"
            assert {alias.name for alias in node.names} <= set(skvalue.base.__all__)


def test_the_page_names_no_private_name_but_hooks():
    names = re.findall(r"(?<![\w/])_[a-z]\w*", "\n".join(page()))
    assert set(names) == HOOKS


def test_a_valuer_written_elsewhere_passes_all_checks(tmp_path, monkeypatch):
    """The class of the page alone, in a folder outside of the repository."""
    (tmp_path / "votes.py").write_text(TOY.read_text(encoding="utf-8"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "votes", None)  # to be forgotten after the test
    del sys.modules["votes"]
    valuer = import_module("votes").VoteValuer()
    assert type(valuer).__module__ == "votes"
    check_estimator(valuer, on_skip=None)
    check_valuer(valuer)


@pytest.mark.parametrize("cv", ["leave-one-out", 5])
def test_efficiency(cv):
    valuer = VoteValuer(cv).fit(*two_classes(0).rows)
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )
