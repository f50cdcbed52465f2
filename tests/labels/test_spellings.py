"""Spellings, typing errors and rare labels."""

import unicodedata

import numpy as np
import pytest

from skvalue.labels import label_spellings


@pytest.mark.parametrize(
    ("label", "commonest"),
    [
        ("JA", "ja"),
        ("ja ", "ja"),
        ("Málaga", "Malaga"),
        ("New-York", "new york"),
        ("no.", "no"),
        ("01", "1"),
        ("1.0", "1"),
        ("TRUE", "True"),
        ("STRASSE", "Straße"),
    ],
)
def test_spellings_of_one_label(label, commonest):
    spellings = label_spellings([commonest] * 60 + [label] * 3 + ["another"] * 50)
    assert spellings.same == {label: commonest}
    assert spellings.typos == {}
    assert spellings.rare == []


INVISIBLE = {
    "zero-width space": "\u200b",
    "zero-width non-joiner": "\u200c",
    "zero-width joiner": "\u200d",
    "left-to-right mark": "\u200e",
    "right-to-left mark": "\u200f",
    "embedding of direction": "\u202a",
    "isolate of direction": "\u2066",
    "soft hyphen": "\xad",
    "mark of byte order": "\ufeff",
    "word joiner": "\u2060",
    "grapheme joiner": "\u034f",
    "variation selector": "\ufe0f",
    "Korean filler": "\u3164",
    "null": "\0",
}


@pytest.mark.parametrize("n_rows", [3, 40])
@pytest.mark.parametrize("place", [0, 2, 9], ids=["before", "inside", "behind"])
@pytest.mark.parametrize("word", ["positive", "yes", "ok", "A"])
@pytest.mark.parametrize("letter", INVISIBLE.values(), ids=INVISIBLE)
def test_a_letter_that_cannot_be_seen_makes_no_other_label(letter, word, place, n_rows):
    other = word[:place] + letter + word[place:]
    labels = [word] * 60 + ["negative"] * 60 + [other] * n_rows
    assert label_spellings(labels).same == {other: word}


@pytest.mark.parametrize("n_rows", [3, 40])
@pytest.mark.parametrize("word", ["café", "é", "Ångström", "한국", "ő1"])
def test_composed_and_decomposed_letters_are_one_label(word, n_rows):
    other = unicodedata.normalize("NFD", word)
    labels = [word] * 60 + ["bar"] * 60 + [other] * n_rows
    assert label_spellings(labels).same == {other: word}


@pytest.mark.parametrize(
    ("label", "commonest"),
    [("nerver", "never"), ("fasle", "false"), ("virginca", "virginica")],
)
def test_typing_errors(label, commonest):
    spellings = label_spellings([commonest] * 60 + [label] * 3 + ["another"] * 50)
    assert spellings.same == {}
    assert spellings.typos == {label: commonest}


def test_a_word_with_another_ending_is_another_label():
    labels = ["Democrat"] * 60 + ["Democrate"] * 3 + ["another"] * 50
    spellings = label_spellings(labels)
    assert spellings.same == {}
    assert spellings.typos == {}


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("known", "unknown"),
        ("A", "A+"),
        ("m", "M"),
        ("tSM0", "TSM0"),
        ("class 1", "class 2"),
        ("1.5", "15"),
        ("male", "female"),
        ("1-2", "12"),
        ("-1", "1"),
    ],
)
def test_different_labels(label, other):
    spellings = label_spellings([other] * 60 + [label] * 40)
    assert spellings.same == {}
    assert spellings.typos == {}


@pytest.mark.parametrize(
    "names",
    [
        ["setosa", "virginica", "versicolor"],
        ["yes", "no"],
        ["high", "middle", "low"],
    ],
    ids=lambda names: " ".join(names),
)
class TestCleanLabels:
    def test_nothing_is_found(self, names, rng):
        labels = rng.choice(names, 400).astype(object)
        assert label_spellings(labels) == {"same": {}, "typos": {}, "rare": []}

    def test_planted_spellings_are_found(self, names, rng):
        labels = rng.choice(names, 400).astype(object)
        labels[:3] = [labels[0].upper(), labels[1] + " ", labels[2].title()]
        assert len(label_spellings(labels).same) == len(set(labels[:3]))


def test_labels_of_few_rows_are_rare():
    assert label_spellings(["a"] * 9 + ["b"] * 4 + ["yse"]).rare == ["b", "yse"]


def test_many_numbered_labels_are_no_typing_errors(rng):
    labels = [f"street of town {i}" for i in rng.integers(0, 1000, 7000)]
    assert not label_spellings(np.array(labels)).typos
