"""Columns of any kind become numbers, and what is done to them is said."""

import ast
from pathlib import Path

import numpy as np
import pytest

import skvalue
from skvalue._utils.columns import column_encoder

pd = pytest.importorskip("pandas")


@pytest.fixture
def frame(rng):
    n = 120
    return pd.DataFrame(
        {
            "age": np.where(np.arange(n) % 10 == 0, np.nan, rng.normal(40, 10, n)),
            "visits": rng.integers(0, 9, n),
            "job": np.where(
                np.arange(n) % 7 == 0, None, rng.choice(["care", "tech"], n)
            ),
            "member": rng.random(n) < 0.5,
            "hired": pd.date_range("2020-01-01", periods=n).astype(str),
            "left": pd.date_range("2021-01-01", periods=n).to_numpy(),
            "note": [f"row {i % 60} is a note" for i in range(n)],
            "key": [f"k{i}" for i in range(n)],
            "number": 10**17 + np.arange(n),  # float64 has no room for the last digits
            "same": 1,
            "empty": np.nan,
        }
    )


def test_each_kind_of_column_becomes_numbers_and_notes_say_how(frame):
    encoder, notes = column_encoder(frame)
    Z = encoder.fit_transform(frame)
    # Age and whether it is missing, visits; two dates; job (3), member (2); the words
    # of the notes.
    assert Z.shape == (120, 3 + 2 + 5 + 64)
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(Z[:, :5].mean(axis=0), 0, atol=1e-9)
    # Equal dates, in two forms.
    np.testing.assert_allclose(Z[:, 3], Z[:, 4])
    text = " ".join(notes)
    assert "number age, visits: scaled" in text
    assert "date hired, left: as seconds" in text
    assert "category job, member: one column per category" in text
    assert "identifier key, number: left out" in text
    assert "constant same, empty: left out" in text


def test_other_rows_may_have_other_categories_and_gaps(frame):
    encoder = column_encoder(frame)[0].fit(frame)
    other = frame.iloc[:3].assign(
        age=np.nan, job="new", member=False, hired=None, note=None
    )
    Z = encoder.transform(other)
    assert np.isfinite(Z).all()
    assert Z[:, 5:8].sum() == 0  # no category of job


def test_a_frame_without_a_column_to_learn_from_is_refused(frame):
    message = "must have a column that neither .* Got 2 columns"
    with pytest.raises(ValueError, match=message):
        column_encoder(frame[["key", "same"]])


def test_an_array_that_would_be_too_large_is_refused(frame):
    message = "at most 9999 entries after encoding. Got 120 rows and"
    with pytest.raises(ValueError, match=message):
        column_encoder(frame, most_entries=9_999)


def test_a_column_of_lists_is_refused():
    message = "numbers, strings or dates. Got list in the column 'a'"
    with pytest.raises(ValueError, match=message):
        column_encoder(pd.DataFrame({"a": [[1], [2]]}))


def lacks_a_unit(node):
    """Whether a call makes a date or duration without a unit: numpy 2.5 warns of it."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return False
    name = getattr(node.func, "attr", "")
    is_missing = getattr(node.args[0], "value", "") == "NaT"
    return name == "timedelta64" or (name == "datetime64" and is_missing)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("np.datetime64('NaT')", True),
        ("np.timedelta64(1)", True),
        ("np.datetime64('NaT', 'us')", False),
        ("np.timedelta64(1, 's')", False),
        ("np.datetime64('2026-01-01')", False),
    ],
)
def test_dates_without_a_unit_are_found(code, expected):
    assert lacks_a_unit(ast.parse(code).body[0].value) == expected


def test_every_date_has_a_unit():
    root = Path(skvalue.__file__).parent
    calls = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if lacks_a_unit(node)
    ]
    assert calls == []
