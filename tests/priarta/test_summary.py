"""What travels: facts checked as untrusted, and nothing that crashes or fills the
buyer."""

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

KINDS = [dict(epsilon=None), dict(), dict(relation="null"), dict(relation="add_remove")]


@pytest.fixture(scope="module")
def scorer():
    return fitted(np.random.default_rng(0))


@pytest.fixture(scope="module")
def summary(scorer):
    X = gaussian_rows(np.random.default_rng(1), 400, 3, 0.3)
    return released(scorer, X).summary_


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_json_there_and_back(scorer, rng, kind):
    sent = released(scorer, gaussian_rows(rng, 400, 3), **kind).summary_
    text = sent.to_json()
    back = Summary.from_json(text)
    assert back.to_json() == text
    for field in fields(Summary):
        assert np.array_equal(getattr(back, field.name), getattr(sent, field.name))
    names = {field.name for field in fields(Summary)}
    assert set(json.loads(text)) == {"format", "version", "guarantee", *names}
    assert (json.loads(text)["guarantee"] is None) == (sent.guarantee is None)


@pytest.mark.parametrize("d", [1, 2, 5, 8, 64])
def test_size(rng, d):
    scorer = PriArTaScorer(delta=1.23456789e-5, mean_weight=0.6).fit(
        rng.normal(size=(90, d))
    )
    sent = released(scorer, rng.normal(size=(80, d)), epsilon=0.812345678901)
    assert len(sent.summary_.to_json().encode()) <= max_file_size(d) == 8 * d * d + 4096


REFUSED = [
    ("model", "ab", "model must be a fingerprint"),
    ("model", 3, "model must be a fingerprint"),
    *(("n_samples", n, "n_samples must be an integer") for n in (1, 10**13, True)),
    *(("max_norm", norm, "max_norm must be a number") for norm in (0, 1e60, None)),
    *(("relation", word, "relation must be one of") for word in ("near", ["null"])),
    ("epsilon", 0, "epsilon must be a number strictly between"),
    ("epsilon", None, "noise_scale must be a number between 0 and 0"),
    ("delta", 1.0, "delta must be"),
    ("mean_weight", 0, "mean_weight must be"),
    *(("noise_scale", scale, "noise_scale must be") for scale in (0.0, 1e60)),
    *((name, value, "epsilon must be no smaller than the noise allows") for name, value in (
        ("epsilon", 0.79), ("delta", 9e-6), ("mean_weight", 2.0), ("noise_scale", 0.5))),
    ("seeded", "no", "seeded must be a bool"),
    ("seeded", False, "guarantee must be '.0.8, 1e-05.-differential privacy of a row"),
    ("centre", "AAAA", "centre must be base64 of 8 bytes per number. Got '3 bytes'"),
    *(("centre", text, "centre must be base64 text") for text in ("!!", [0.0])),
    ("centre", "", "centre must be a sequence of 0 numbers, for 1 to 4096"),
    ("mean", "AAAAAAAAAAA=", "mean must be a sequence of 3 numbers"),
    ("mean", np.array([0, 0, np.nan]), "mean must be of finite numbers"),
    ("mean", np.array([0, 0, 40.0]), "mean must be within .* what the radius, 400 rows"),
    ("moment", np.zeros(5), "moment must be a sequence of 6 numbers"),
    ("moment", np.full(6, np.inf), "moment must be of finite numbers"),
    ("moment", np.full(6, 40.0), "moment must be within .* what the radius, 400 rows"),
]  # fmt: skip


def test_json_is_not_trusted(summary):
    record = json.loads(summary.to_json())
    for field, value, message in REFUSED:
        if isinstance(value, np.ndarray):
            value = base64.b64encode(value.astype("<f8").tobytes()).decode()
        with pytest.raises(ValueError, match=message):
            Summary.from_json(json.dumps({**record, field: value}))


def test_clear_moments_must_be_moments(scorer, rng):
    exact = released(scorer, gaussian_rows(rng, 50, 3), epsilon=None).summary_
    for change, message in (
        (dict(moment=-exact.moment), "moment must be at least mean mean'"),
        (dict(epsilon=0.1), "noise_scale"),
        (dict(delta=0.1), "delta must be None"),
        (dict(noise_scale=0.1), "noise_scale must be a number between 0 and 0"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(exact, **change)


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
)
def test_text_is_not_trusted(text, message):
    with pytest.raises(ValueError, match=message):
        Summary.from_json(text)


def test_fields_are_exactly_those(summary):
    record = json.loads(summary.to_json())
    for change, message in (
        ({"rows": [[1, 2]]}, "exactly the fields of a Summary. Got .'rows'. wrong"),
        ({"version": 2}, "version 1"),
        ({"guarantee": "perfect secrecy"}, "guarantee must be None"),
    ):
        with pytest.raises(ValueError, match=message):
            Summary.from_json(json.dumps({**record, **change}))


def test_files_are_measured_before_they_are_read(scorer, summary, tmp_path):
    path = tmp_path / "summary.json"
    path.write_text(summary.to_json())
    assert np.array_equal(
        scorer.score_summaries([path]), scorer.score_summaries([summary])
    )
    for content, message in (
        (b" " * (max_file_size(3) + 1), "must have at most 4168 bytes"),
        (b"\xff\xfe", "must be ASCII text"),
        (b"{}", "summary.json is not a valid summary: text must"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            scorer.score_summaries([path])
    if os.path.exists("/dev/zero"):
        with pytest.raises(ValueError, match="must be a file"):
            scorer.score_summaries(["/dev/zero"])


WEIRD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(min_value=10**300, max_value=10**310),
    st.floats(), st.text(max_size=30),
    st.lists(st.floats(), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.binary(max_size=60).map(lambda b: base64.b64encode(b).decode()),
    st.sampled_from(["replace", "null", "add_remove"]),
)  # fmt: skip
NAMES = [field.name for field in fields(Summary)] + [
    "format",
    "version",
    "guarantee",
    "new",
]
QUIET = dict(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(max_examples=80, **QUIET)
@given(changes=st.dictionaries(st.sampled_from(NAMES), WEIRD, min_size=1, max_size=4))
def test_fuzzed_fields(scorer, summary, changes, tmp_path):
    text = json.dumps({**json.loads(summary.to_json()), **changes})
    score_or_refuse(scorer, text.encode(), tmp_path)


@settings(max_examples=60, **QUIET)
@given(data=st.data())
def test_fuzzed_bytes(scorer, summary, data, tmp_path):
    content = bytearray(summary.to_json().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 20))
        content[place : place + length] = data.draw(st.binary(max_size=20))
    score_or_refuse(scorer, bytes(content), tmp_path)


def score_or_refuse(scorer, content, folder):
    """A finite score, or a ValueError: nothing else may come of a file."""
    path = folder / "summary.json"
    path.write_bytes(content)
    try:
        score = scorer.score_summaries([path])
    except ValueError:
        return
    assert np.isfinite(score).all()
    assert score.shape == (1, 1)
