"""The script that compares two trees sees what differs; what it fits is not fitted
here."""

import golden
import numpy as np
import pytest
from problems import two_classes

import skvalue


def found(values=(0.1, np.nan), **words):
    return {"case": {"values_": np.array(values), **words}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (found(), found()),
        (found(), found((0.1 + 1e-15, np.nan))),
        (found(text="error ValueError: no."), found(text="error ValueError: never.")),
        (found(np.float32([0.1])), found(np.float32([0.1 + 1e-7]))),
    ],
)
def test_what_agrees(old, new):
    assert golden.compare(old, new)[0] == []


@pytest.mark.parametrize(
    "new",
    [
        found((0.1 + 1e-11, np.nan), text="rows"),
        found((0.1, 0.0), text="rows"),
        found((0.1,), text="rows"),
        found(text="nothing"),
        found(text="error KeyError: no."),
        found(),
        {},
    ],
)
def test_what_differs_is_seen(new):
    assert golden.compare(found(text="rows"), new)[0]


def test_what_is_recorded():
    valuer = two_classes(0).fit(skvalue.KNNShapleyValuer())
    record = golden.contents(valuer)
    np.testing.assert_array_equal(record["values_"], valuer.values_)
    assert {"utility_", "validation_error_"} <= set(record)
    valuers = {name[:-6] for name in skvalue.__all__ if name.endswith("Valuer")}
    assert set(golden.EVERY_GAME) == valuers - {"Base", "BaseInSample"}
    assert set(golden.ALSO) <= valuers
