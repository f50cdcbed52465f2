"""What travels: fields checked as untrusted, noise added on the way."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from skvalue.collaborative import (
    BayesianLinear,
    GramRelease,
    LogisticRelease,
    MeanRelease,
    NoisyStatistic,
)

LINEAR = dict(
    kind="linear",
    n_samples=100,
    statistic=(10.0, 2.0, 12.0, 1.0, 3.0, 30.0),
    renyi_epsilon=0.2,
    renyi_order=2.0,
    bounds=(1.0, 1.0),
    n_features=2,
)
MEAN = dict(
    kind="gaussian", n_samples=9, statistic=(3.0,), renyi_epsilon=1.0, renyi_order=2.0,
    bounds=(0, 5),
)  # fmt: skip


def test_scale_by_the_paper():
    release = NoisyStatistic(**LINEAR)
    assert release.sensitivity == pytest.approx(8**0.5)
    assert release.noise_scale**2 == pytest.approx(0.5 * 2 / 0.2 * 8)
    assert 0.5 * 2 * (release.sensitivity / release.noise_scale) ** 2 <= 0.2
    assert NoisyStatistic(**{**LINEAR, "renyi_epsilon": None}).noise_scale == 0
    assert NoisyStatistic(**{**LINEAR, "renyi_epsilon": None}).event is None


@pytest.mark.parametrize(
    "party",
    [
        GramRelease(renyi_epsilon=0.3, fit_intercept=True, y_bound=2.0),
        GramRelease(None),
        GramRelease(renyi_epsilon=0.3, prior=BayesianLinear(np.eye(2) + 0.1)),
        LogisticRelease(
            renyi_epsilon=1.0, classes=(np.False_, np.True_), fit_intercept=True
        ),
        MeanRelease(renyi_epsilon=0.5, lower=-2.0, upper=3.0),
    ],
)
def test_json_there_and_back(party, rng):
    X = rng.normal(size=(60, 2)) / 3
    if isinstance(party, MeanRelease):
        X = X[:, 0]
    y = X[:, 0] > 0 if isinstance(party, LogisticRelease) else X[..., -1]
    release = party.fit(X, y).release_
    assert NoisyStatistic.from_json(release.to_json()) == release
    assert set(json.loads(release.to_json())) == {"format", "version", *asdict(release)}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("kind", ["quadratic", ["linear"]]),
        ("n_samples", [-1, 1.5, True, 10**13, 10**400]),
        ("renyi_epsilon", [0, "0.2", 1e-310, 10**400]),
        ("renyi_order", [1, 10**400]),
        ("n_features", [0, 10**6]),
        (
            "bounds",
            [
                [1.0],
                [1.0, -1.0],
                [1.0, 1e300],
                [1e-300, 1e-300],
                {"x": 1},
                [1.0, 10**400],
            ],
        ),
        ("intercept", [1]),
        ("classes", [[0, 1]]),
        ("prior", ["", {"a": 1}, "x" * 2001]),
        ("statistic", [[1.0] * 5, "123456"]),
        ("statistic", [[1.0] * 5 + [x] for x in ("x", [1.0], 1e6, True)]),
    ],
)
def test_json_is_not_trusted(field, values):
    record = json.loads(NoisyStatistic(**LINEAR).to_json())
    for value in values:
        with pytest.raises(ValueError, match=f"{field} must be"):
            NoisyStatistic.from_json(json.dumps({**record, field: value}))
    with pytest.raises(ValueError, match="renyi_epsilon must be large enough"):
        NoisyStatistic.from_json(json.dumps({**record, "renyi_order": 1e308}))


def test_ends_that_are_excluded_are_named():
    with pytest.raises(
        ValueError, match="renyi_order must be a number strictly between 1 and"
    ):
        NoisyStatistic(**LINEAR | {"renyi_order": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{}", "text must be a string"),
        ("{", "text must be JSON"),
        ("[" * 100_000, "text must be JSON"),
        ("[1]", "text must be a JSON object"),
        ("{}", "text must be of format"),
        ('{"kind": 1, "kind": 2}', "text must name every field once"),
        ('{"epsilon": NaN}', "text must hold finite numbers. Got NaN"),
    ],
)
def test_text_is_not_trusted(text, message):
    with pytest.raises(ValueError, match=message):
        NoisyStatistic.from_json(text)


def test_fields_are_exactly_those():
    record = json.loads(NoisyStatistic(**LINEAR).to_json())
    with pytest.raises(
        ValueError, match="fields of a NoisyStatistic. Got .'rows'. wrong"
    ):
        NoisyStatistic.from_json(json.dumps({**record, "rows": [[1, 2]]}))
    del record["prior"]
    with pytest.raises(
        ValueError, match="fields of a NoisyStatistic. Got .'prior'. wrong"
    ):
        NoisyStatistic.from_json(json.dumps(record))
    for version in (2, True, 1.0, 10**400):
        with pytest.raises(ValueError, match="version 1"):
            NoisyStatistic.from_json(json.dumps({**record, "version": version}))


@pytest.mark.parametrize("facts", [LINEAR, MEAN], ids=["linear", "mean"])
def test_a_number_of_400_digits_in_any_field(facts):
    record = json.loads(NoisyStatistic(**facts).to_json())
    for field, value in record.items():
        tampered = [10**400] * len(value) if isinstance(value, list) else 10**400
        for sign in (1, -1) if tampered else ():
            given = (
                sign * tampered
                if isinstance(tampered, int)
                else [sign * x for x in tampered]
            )
            with pytest.raises(ValueError, match=r"must|version"):
                NoisyStatistic.from_json(json.dumps({**record, field: given}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(bounds=(5, 0)), "bounds must be in increasing order"),
        (dict(intercept=True), "intercept must be True for"),
        (dict(n_features=2), "n_features must be an integer from 0 to 0"),
    ],
)
def test_means_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        NoisyStatistic(**{**MEAN, **change})


@pytest.mark.parametrize(
    "classes", [(0,), (1, 1), (None, 1), ((1,), 2), (0.0, np.inf), "ab"]
)
def test_classes_are_checked(classes):
    facts = dict(kind="logistic", n_samples=9, statistic=(0.0, 3.0), renyi_epsilon=None)
    facts.update(renyi_order=2.0, bounds=(1.0,), n_features=1)
    assert NoisyStatistic(**facts, classes=["no", "yes"]).classes == ("no", "yes")
    with pytest.raises(ValueError, match="classes must be"):
        NoisyStatistic(**facts, classes=classes)


def test_added_noise_is_as_stated(rng):
    release = NoisyStatistic(**{**MEAN, "n_samples": 10**6})
    more = [release.with_noise(3.0, rng.standard_normal(1)) for _ in range(400)]
    assert {m.renyi_epsilon for m in more} == {1.0 / (1 + 3.0)}
    added = np.array([m.statistic[0] - 3.0 for m in more])
    variance = 0.5 * 2 * 25 * 3.0
    assert added.var() == pytest.approx(variance, rel=0.3)
    assert more[0].noise_scale ** 2 == pytest.approx(release.noise_scale**2 + variance)
    exact = NoisyStatistic(**{**MEAN, "renyi_epsilon": None})
    assert exact.with_noise(2.0, np.zeros(1)).renyi_epsilon == 0.5
