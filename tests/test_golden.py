"""The script that compares two trees sees what differs; its fits are not run here."""

import subprocess
import sys
from pathlib import Path

import golden
import numpy as np
import pytest
from problems import two_classes

import skvalue

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "tests" / "benchmarks"


def record(values=(0.1, np.nan), **words):
    return {"case": {"values_": np.array(values), **words}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (record(), record()),
        (record(), record((0.1 + 1e-15, np.nan))),
        (record(text="error ValueError: no."), record(text="error ValueError: never.")),
        (record(np.float32([0.1])), record(np.float32([0.1 + 1e-7]))),
    ],
    ids=["equal", "rounding", "messages of errors", "rounding of float32"],
)
def test_small_differences_agree(old, new):
    assert golden.compare(old, new)[0] == []


@pytest.mark.parametrize(
    "new",
    [
        record((0.1 + 1e-11, np.nan), text="rows"),
        record((0.1, 0.0), text="rows"),
        record((0.1,), text="rows"),
        record(text="nothing"),
        record(text="error KeyError: no."),
        record(),
        {},
    ],
    ids=["number", "NaN", "shape", "word", "error", "entry", "case"],
)
def test_what_differs_is_seen(new):
    assert golden.compare(record(text="rows"), new)[0]


def test_attributes_of_a_valuer_are_recorded():
    valuer = two_classes(0).fit(skvalue.KNNShapleyValuer())
    contents = golden.contents(valuer)
    np.testing.assert_array_equal(contents["values_"], valuer.values_)
    assert {"utility_", "validation_error_"} <= set(contents)


def test_every_valuer_has_cases():
    valuers = {
        name.removesuffix("Valuer")
        for name in skvalue.__all__
        if name.endswith("Valuer")
    }
    assert set(golden.EVERY_GAME) == valuers - {"Base", "BaseInSample"}
    assert set(golden.ALSO) <= valuers


def test_what_is_no_tree_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        golden.main([str(tmp_path)])
    assert "must be a work tree of skvalue" in capsys.readouterr().err


def test_times_of_no_line_are_refused():
    words = [sys.executable, BENCHMARKS / "compare.py", ROOT, "-k", "no such line"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert done.returncode == 1
    assert "PATTERN must be that of a line. Got 'no such line'." in done.stderr
