"""Errata of papers: each is on its page, and the script shows it."""

import re

import pytest

from .scripts import ROOT, of

FIGURES = {
    "T1": ["1.098 for three", "0.879 for two"],
    "T2": ["325 of 325"],
    "T3": ["3 for an added row", "1 for an added row, 2 for a replaced"],
    "T8": ["0.66", "4.38"],
    "T9": ["'out': 0", "'out': 32"],
    "T10": ["printed [1.0, -0.5], enumerated [0.5, -0.5], ours [0.5, -0.5]"],
    "L2": ["0.186, stated 0.05", "0.006, stated 0.05"],
    "L3": ["0.0119"],
    "L5": ["probability 19; scale 0.601"],
    "L6": ["0.091", "0.182"],
    "L7": ["100 rows: 0.401 at C = 1, 0.005 at C = 1/k, stated 0.02"],
    "L8": ["4.59", "6.89"],
    "L9": ["accuracy 0\n", "accuracy 1"],
    "L10": ["0.026"],
    "G2": ["first weight 0.502, variance 0.293"],
    "G3": ["delta 5e-5: 2.19"],
    "G5": ["36 times", "100 times"],
    "S2": ["1.20 exactly"],
    "S4": ["with logarithms: 0, without: 3"],
    "P1": ["R = 1: mean at least 41.17", "R = 8: mean at least 0.84", "about 2.3"],
    "P2": ["4.0000 found"],
}
# Their accountant takes seconds.
SLOW_FIGURES = {
    "T4": ["add_remove: epsilon 1.83", "replace: epsilon 2.84"],
    "T5": ["each: epsilon 0.91", "all: epsilon 138"],
    "T6": ["37.3 without samples, 44.9 at rate 0.1, 114.4 at rate 0.01"],
}


@of("errata")
def test_errata_are_on_the_page(script):
    page = (ROOT / "doc" / "user_guide" / "errata.rst").read_text(encoding="utf-8")
    assert re.findall(r"^([A-Z]\d+)\. ", page, re.MULTILINE) == list(script.ERRATA)
    for label in script.ERRATA:
        assert f"``errata.py {label}``" in page, label


def test_files_that_the_page_names_exist():
    page = (ROOT / "doc" / "user_guide" / "errata.rst").read_text(encoding="utf-8")
    for name in re.findall(r"``(?:tests/)?([a-z_/]+\.py)[ A-Z0-9]*``", page):
        paths = [*ROOT.glob(f"tests/**/{name}"), *ROOT.glob(f"examples/**/{name}")]
        assert paths, name


@of("errata")
@pytest.mark.parametrize(
    "figures",
    [FIGURES, pytest.param(SLOW_FIGURES, marks=pytest.mark.slow)],
    ids=["quick", "slow"],
)
def test_errata_are_shown_by_figures(script, figures):
    for label, expected in figures.items():
        printed = "\n".join(script.ERRATA[label]())
        assert [figure for figure in expected if figure not in printed] == [], label


@of("errata")
def test_errata_without_figures_are_shown(script):
    for label in set(script.ERRATA) - set(FIGURES) - set(SLOW_FIGURES):
        assert list(script.ERRATA[label]())


@of("errata")
def test_both_forms_of_g4_agree(script):
    for line in script.G4():
        words = line.split()
        assert float(words[3]) == float(words[6])


@of("errata")
def test_the_neighbour_of_t7_has_positive_numbers(script):
    printed = "\n".join(script.ERRATA["T7"]())
    numbers = re.findall(r"neighbour.*: ([\d.e-]+);", printed)
    assert min(map(float, numbers)) > 0


@of("errata")
def test_some_errata_are_shown_by_their_labels(script, run):
    assert [line.split()[0] for line in run("L10 S3").splitlines()] == ["L10", "S3"]
