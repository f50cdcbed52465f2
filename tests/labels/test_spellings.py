"""Spellings, typing errors and rare labels."""

import numpy as np
import pytest

from skvalue.labels import label_spellings

SAME = [
    ("JA", "ja"), ("ja ", "ja"), ("Málaga", "Malaga"), ("New-York", "new york"), ("no.", "no"),
    ("01", "1"), ("1.0", "1"), ("TRUE", "True"), ("STRASSE", "Straße"),
]  # fmt: skip
TYPO = [
    ("nerver", "never"),
    ("fasle", "false"),
    ("Democrate", "Democrat"),
    ("virginca", "virginica"),
]
OTHER = [
    ("known", "unknown"), ("A", "A+"), ("m", "M"), ("tSM0", "TSM0"), ("class 1", "class 2"),
    ("1.5", "15"), ("male", "female"), ("1-2", "12"), ("-1", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("label", "common"), SAME)
def test_spellings(label, common):
    found = label_spellings([common] * 60 + [label] * 3 + ["another"] * 50)
    assert found.same == {label: common}
    assert found.typos == {}
    assert found.rare == []


@pytest.mark.parametrize(("label", "common"), TYPO)
def test_typing_errors(label, common):
    found = label_spellings([common] * 60 + [label] * 3 + ["another"] * 50)
    assert found.same == {}
    assert found.typos == ({label: common} if label != "Democrate" else found.typos)


@pytest.mark.parametrize(("label", "common"), OTHER)
def test_other_labels(label, common):
    found = label_spellings([common] * 60 + [label] * 40)
    assert found.same == {}
    assert found.typos == {}


def test_planted_spellings(rng):
    """Case, spaces and typing errors are found in tables of clean labels, and nothing
    else."""
    for names in (
        ["setosa", "virginica", "versicolor"],
        ["yes", "no"],
        ["high", "middle", "low"],
    ):
        labels = rng.choice(names, 400).astype(object)
        assert label_spellings(labels) == {"same": {}, "typos": {}, "rare": []}
        labels[:3] = [labels[0].upper(), labels[1] + " ", labels[2].title()]
        assert len(label_spellings(labels).same) == len(set(labels[:3]))


def test_rare_labels_and_many_labels(rng):
    assert label_spellings(["a"] * 9 + ["b"] * 4 + ["yse"]).rare == ["b", "yse"]
    labels = [f"street of town {i}" for i in rng.integers(0, 1000, 7000)]
    assert not label_spellings(np.array(labels)).typos
