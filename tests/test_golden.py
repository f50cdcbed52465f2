"""The script of golden values sees what differs; what it records is not run here."""

import numpy as np
import pytest

from .golden import compare, make


def record(values=(0.1, np.nan), **words):
    words = {"a/fit/privacy_/text": "Protected: rows.", **words}
    return dict(arrays={"a/fit/values_": np.array(values)}, words=words, float32=set())


def test_equal_records_pass():
    lines, failed = compare(record(), record())
    assert not failed
    assert lines[-1] == "all as it was"
    assert not compare(record(), record((0.1 + 1e-15, np.nan)))[1]


@pytest.mark.parametrize(
    "new",
    [
        record((0.1 + 1e-11, np.nan)),
        record((0.1, 0.0)),
        record((0.1,)),
        record(**{"a/fit/privacy_/text": "Protected: nothing."}),
        dict(record(), arrays={}),
    ],
)
def test_what_differs_is_seen(new):
    assert compare(record(), new)[1]


def test_what_is_meant_passes():
    new = record((0.1 + 1e-11, np.nan))
    assert not compare(record(), new, [("^a/", 1e-10)])[1]
    assert not compare(dict(record(), float32={"a"}), new)[1]
    assert not compare(record(), dict(record(), arrays={}), gone="values_")[1]


def test_messages_of_one_error_may_differ():
    old = record(b="error ValueError: no.")
    others = ("error ValueError: never.", "error KeyError: no.")
    assert [compare(old, record(b=other))[1] for other in others] == [False, True]


def test_renamed_values_are_those_of_this_commit():
    from skvalue import LayeredShapleyValuer

    valuer = make(LayeredShapleyValuer, design="poisson", allocation="bound")
    valuer._validate_params()
