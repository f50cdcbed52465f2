"""What a seller sends: its fields are checked, since its source is not trusted."""

import base64
import json
import os
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skvalue.priarta import PriArTaScorer, Summary
from skvalue.priarta.seller import max_file_size

from .markets import fitted, gaussian_rows, released

SETTINGS = [{"epsilon": None}, {}, {"relation": "null"}, {"relation": "add_remove"}]
FIELDS = [field.name for field in fields(Summary)]


@pytest.fixture(scope="module")
def scorer():
    return fitted(np.random.default_rng(0))


@pytest.fixture(scope="module")
def summary(scorer):
    X = gaussian_rows(np.random.default_rng(1), 400, 3, 0.3)
    return released(scorer, X).summary_


class TestJSON:
    @pytest.fixture(params=SETTINGS, ids=str)
    def sent(self, request, scorer, rng):
        X = gaussian_rows(rng, 400, 3)
        return released(scorer, X, **request.param).summary_

    def test_gives_an_equal_summary(self, sent):
        text = sent.to_json()
        received = Summary.from_json(text)
        assert received.to_json() == text
        for name in FIELDS:
            assert np.array_equal(getattr(received, name), getattr(sent, name))

    def test_has_the_fields_and_the_guarantee(self, sent):
        record = json.loads(sent.to_json())
        assert set(record) == {"format", "version", "guarantee", *FIELDS}
        assert (record["guarantee"] is None) == (sent.guarantee is None)

    @pytest.mark.parametrize("d", [1, 2, 5, 8, 64])
    def test_is_no_longer_than_stated(self, rng, d):
        scorer = PriArTaScorer(delta=1.23456789e-5, mean_weight=0.6)
        scorer.fit(rng.normal(size=(90, d)))
        seller = released(scorer, rng.normal(size=(80, d)), epsilon=0.812345678901)
        size = len(seller.summary_.to_json().encode())
        assert size <= max_file_size(d) == 8 * d * d + 4096


# Name of a field, its value and the message; arrays stand for their base64.
INVALID = [
    ("model", "ab", "model must be a fingerprint"),
    ("model", 3, "model must be a fingerprint"),
    ("n_samples", 1, "n_samples must be an integer"),
    ("n_samples", 10**13, "n_samples must be an integer"),
    ("n_samples", True, "n_samples must be an integer"),
    ("max_norm", 0, "max_norm must be a number"),
    ("max_norm", 1e60, "max_norm must be a number"),
    ("max_norm", None, "max_norm must be a number"),
    ("n_radius_counts", 3, "n_radius_counts must be 0, or 6 where there is noise"),
    ("n_radius_counts", 7, "n_radius_counts must be an integer from 0 to 6"),
    ("n_radius_counts", 6, "epsilon must be no smaller than the noise allows"),
    ("relation", "near", "relation must be one of"),
    ("relation", ["null"], "relation must be one of"),
    ("epsilon", 0, "epsilon must be a number strictly between"),
    ("epsilon", None, "max_norm must be None without epsilon"),
    ("delta", 1.0, "delta must be"),
    ("mean_weight", 0, "mean_weight must be"),
    ("noise_scale", 0.0, "noise_scale must be"),
    ("noise_scale", 1e60, "noise_scale must be"),
    ("epsilon", 0.79, "epsilon must be no smaller than the noise allows"),
    ("delta", 9e-6, "epsilon must be no smaller than the noise allows"),
    ("mean_weight", 2.0, "epsilon must be no smaller than the noise allows"),
    ("noise_scale", 0.5, "epsilon must be no smaller than the noise allows"),
    ("seeded", "no", "seeded must be a bool"),
    ("seeded", False, "guarantee must be '.0.8, 1e-05.-differential privacy of a row"),
    ("centre", "AAAA", "centre must be base64 of 8 bytes per number. Got '3 bytes'"),
    ("centre", "!!", "centre must be base64 text"),
    ("centre", [0.0], "centre must be base64 text"),
    ("centre", "", "centre must be a sequence of 0 numbers, for 1 to 4096"),
    ("mean", "AAAAAAAAAAA=", "mean must be a sequence of 3 numbers"),
    ("mean", np.array([0, 0, np.nan]), "mean must be of finite numbers"),
    (
        "mean",
        np.array([0, 0, 40.0]),
        "mean must be within .* what the radius, 400 rows",
    ),
    ("moment", np.zeros(5), "moment must be a sequence of 6 numbers"),
    ("moment", np.full(6, np.inf), "moment must be of finite numbers"),
    (
        "moment",
        np.full(6, 40.0),
        "moment must be within .* what the radius, 400 rows",
    ),
]


class TestUntrustedJSON:
    @pytest.mark.parametrize(("name", "value", "message"), INVALID)
    def test_invalid_field_is_refused(self, summary, name, value, message):
        if isinstance(value, np.ndarray):
            value = base64.b64encode(value.astype("<f8").tobytes()).decode()
        record = json.loads(summary.to_json())
        with pytest.raises(ValueError, match=message):
            Summary.from_json(json.dumps({**record, name: value}))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (b"{}", "text must be a string"),
            ("{", "text must be JSON"),
            ("[" * 100_000, "text must be JSON"),
            ("[1]", "text must be a JSON object"),
            ("{}", "text must be of format"),
            ('{"model": 1, "model": 2}', "text must name every field once"),
            ('{"epsilon": NaN}', "text must hold finite numbers. Got NaN"),
        ],
        ids=["bytes", "open", "nested", "list", "no format", "twice", "NaN"],
    )
    def test_text_that_is_no_record_is_refused(self, text, message):
        with pytest.raises(ValueError, match=message):
            Summary.from_json(text)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"rows": [[1, 2]]},
                "exactly the fields of a Summary. Got .'rows'. wrong",
            ),
            ({"version": 1}, "version 2"),
            ({"guarantee": "perfect secrecy"}, "guarantee must be None"),
        ],
        ids=["more", "version", "guarantee"],
    )
    def test_other_facts_are_refused(self, summary, change, message):
        record = json.loads(summary.to_json())
        with pytest.raises(ValueError, match=message):
            Summary.from_json(json.dumps({**record, **change}))


@pytest.fixture(scope="module")
def exact(scorer):
    """A summary without noise."""
    X = gaussian_rows(np.random.default_rng(0), 50, 3)
    return released(scorer, X, epsilon=None).summary_


class TestExactSummary:
    def test_moments_of_no_rows_are_refused(self, exact):
        with pytest.raises(ValueError, match="moment must be at least mean mean'"):
            replace(exact, moment=-exact.moment)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"epsilon": 0.1}, "max_norm must be a number"),
            ({"epsilon": 0.1, "max_norm": 1.0}, "noise_scale"),
            ({"n_radius_counts": 6}, "n_radius_counts must be 0"),
            ({"delta": 0.1}, "delta must be None"),
            ({"noise_scale": 0.1}, "noise_scale must be a number between 0 and 0"),
        ],
        ids=["radius", "epsilon", "counts", "delta", "noise_scale"],
    )
    def test_parameters_of_noise_are_refused(self, exact, change, message):
        with pytest.raises(ValueError, match=message):
            replace(exact, **change)


class TestFiles:
    def test_score_is_that_of_the_summary(self, scorer, summary, tmp_path):
        path = tmp_path / "summary.json"
        path.write_text(summary.to_json())
        assert np.array_equal(
            scorer.score_summaries([path]), scorer.score_summaries([summary])
        )

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b" " * (max_file_size(3) + 1), "must have at most 4168 bytes"),
            (b"\xff\xfe", "must be ASCII text"),
            (b"{}", "summary.json is not a valid summary: text must"),
        ],
        ids=["too long", "not ASCII", "no summary"],
    )
    def test_damaged_file_is_refused(self, scorer, tmp_path, content, message):
        path = tmp_path / "summary.json"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            scorer.score_summaries([path])

    @pytest.mark.skipif(
        not os.path.exists("/dev/zero"), reason="the device /dev/zero does not exist"
    )
    def test_device_is_refused(self, scorer):
        with pytest.raises(ValueError, match="must be a file"):
            scorer.score_summaries(["/dev/zero"])


ANY_JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**300, max_value=10**310),
    st.floats(),
    st.text(max_size=30),
    st.lists(st.floats(), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.binary(max_size=60).map(lambda b: base64.b64encode(b).decode()),
    st.sampled_from(["replace", "null", "add_remove"]),
)
NAMES = [*FIELDS, "format", "version", "guarantee", "new"]
UNHURRIED = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}


def score_or_refuse(scorer, content, folder):
    """A finite score, or a ValueError: a file may cause nothing else."""
    path = folder / "summary.json"
    path.write_bytes(content)
    try:
        score = scorer.score_summaries([path])
    except ValueError:
        return
    assert np.isfinite(score).all()
    assert score.shape == (1, 1)


@settings(max_examples=80, **UNHURRIED)
@given(
    changes=st.dictionaries(st.sampled_from(NAMES), ANY_JSON, min_size=1, max_size=4)
)
def test_random_fields_are_scored_or_refused(scorer, summary, changes, tmp_path):
    text = json.dumps({**json.loads(summary.to_json()), **changes})
    score_or_refuse(scorer, text.encode(), tmp_path)


@settings(max_examples=60, **UNHURRIED)
@given(data=st.data())
def test_random_bytes_are_scored_or_refused(scorer, summary, data, tmp_path):
    content = bytearray(summary.to_json().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 20))
        content[start : start + length] = data.draw(st.binary(max_size=20))
    score_or_refuse(scorer, bytes(content), tmp_path)
