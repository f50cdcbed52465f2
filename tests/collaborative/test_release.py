"""What travels: fields checked as untrusted, noise added on the way."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from skvalue.collaborative import BayesianLinear, GramRelease, LogisticRelease, MeanRelease, Release

LINEAR = dict(
    kind="linear",
    n_samples=100,
    statistic=(10.0, 2.0, 12.0, 1.0, 3.0, 30.0),
    renyi_epsilon=0.2,
    renyi_order=2.0,
    bounds=(1.0, 1.0),
    n_features=2,
)
COUNTS = dict(
    kind="poisson", n_samples=9, statistic=(3.0,), renyi_epsilon=1.0, renyi_order=2.0, bounds=(0, 5)
)


def test_scale_by_the_paper():
    release = Release(**LINEAR)
    assert release.sensitivity == pytest.approx(8**0.5)
    assert release.noise_scale**2 == pytest.approx(0.5 * 2 / 0.2 * 8)
    assert 0.5 * 2 * (release.sensitivity / release.noise_scale) ** 2 <= 0.2
    assert Release(**{**LINEAR, "renyi_epsilon": None}).noise_scale == 0
    assert Release(**{**LINEAR, "renyi_epsilon": None}).event is None


@pytest.mark.parametrize(
    "party",
    [
        GramRelease(renyi_epsilon=0.3, fit_intercept=True, layout="cross", y_bound=2.0),
        GramRelease(None),
        GramRelease(renyi_epsilon=0.3, moments_fraction=0.4, prior=BayesianLinear(np.eye(2) + 0.1)),
        LogisticRelease(renyi_epsilon=1.0, classes=(np.False_, np.True_), fit_intercept=True),
        MeanRelease(renyi_epsilon=0.5, lower=-2.0, upper=3.0),
    ],
)
def test_json_there_and_back(party, rng):
    X = rng.normal(size=(60, 2)) / 3
    if isinstance(party, MeanRelease):
        X = X[:, 0]
    y = X[:, 0] > 0 if isinstance(party, LogisticRelease) else X[..., -1]
    release = party.fit(X, y).release_
    assert Release.from_json(release.to_json()) == release
    assert set(json.loads(release.to_json())) == {"format", "version", *asdict(release)}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("kind", "quadratic", "kind must be one of linear, logistic"),
        ("kind", ["linear"], "kind must be one of"),
        ("n_samples", -1, "n_samples must be an integer from 0"),
        ("n_samples", 1.5, "n_samples must be an integer"),
        ("n_samples", True, "n_samples must be an integer"),
        ("n_samples", 10**13, "n_samples must be an integer"),
        ("renyi_epsilon", 0, "renyi_epsilon must be None or a number above 0"),
        ("renyi_epsilon", "0.2", "renyi_epsilon must be None or a number above 0"),
        ("renyi_epsilon", 1e-310, "renyi_epsilon must be large enough for a noise scale below"),
        ("renyi_order", 1e308, "renyi_epsilon must be large enough for a noise scale below"),
        ("renyi_epsilon", 10**400, "renyi_epsilon must be None or a number above 0"),
        ("renyi_order", 10**400, "renyi_order must be a finite number above 1"),
        ("bounds", [1.0, 10**400], "bounds must be a finite number above 0"),
        ("moments_fraction", 10**400, "moments_fraction must be 0"),
        ("n_samples", 10**400, "n_samples must be an integer"),
        ("renyi_order", 1, "renyi_order must be a finite number above 1"),
        ("n_features", 0, "n_features must be an integer from 1"),
        ("n_features", 10**6, "n_features must be an integer from 1"),
        ("bounds", [1.0], "bounds must be a sequence of 2 numbers"),
        ("bounds", [1.0, -1.0], "bounds must be a finite number above 0"),
        ("bounds", [1.0, 1e300], "bounds must be of sizes whose squares"),
        ("bounds", [1e-300, 1e-300], "bounds must be of sizes whose squares"),
        ("bounds", {"x": 1}, "bounds must be a sequence"),
        ("intercept", 1, "intercept must be a bool"),
        ("layout", "upper", "layout must be one of svec, cross"),
        ("moments_fraction", 1.0, "moments_fraction must be 0, or for kind='linear' of at most 40"),
        ("moments_fraction", -0.1, "moments_fraction must be 0, or for kind='linear'"),
        ("moments_fraction", 0.5, "statistic must be a sequence of 12 numbers. Got 6"),
        ("classes", [0, 1], "classes must be two different strings or numbers for kind='logist"),
        ("prior", "", "prior must be None or a text of at most 2000 characters"),
        ("prior", {"a": 1}, "prior must be None or a text of at most 2000 characters"),
        ("prior", "x" * 2001, "prior must be None or a text of at most 2000 characters"),
        ("statistic", [1.0] * 5, "statistic must be a sequence of 6 numbers. Got 5"),
        ("statistic", "123456", "statistic must be a sequence of 6 numbers"),
        ("statistic", [1.0] * 5 + ["x"], "statistic must be of finite numbers. Got 'x'"),
        ("statistic", [1.0] * 5 + [[1.0]], "statistic must be of finite numbers"),
        ("statistic", [1.0] * 5 + [1e6], "statistic must be within .* what 100 rows"),
        ("statistic", [1.0] * 5 + [True], "statistic must be of finite numbers. Got True"),
    ],
)
def test_json_is_not_trusted(field, value, message):
    record = json.loads(Release(**LINEAR).to_json())
    record[field] = value
    with pytest.raises(ValueError, match=message):
        Release.from_json(json.dumps(record))


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
        Release.from_json(text)


def test_fields_are_exactly_those():
    record = json.loads(Release(**LINEAR).to_json())
    with pytest.raises(ValueError, match="exactly the fields of a Release. Got .'rows'. wrong"):
        Release.from_json(json.dumps({**record, "rows": [[1, 2]]}))
    del record["layout"]
    with pytest.raises(ValueError, match="exactly the fields of a Release. Got .'layout'. wrong"):
        Release.from_json(json.dumps(record))
    for version in (2, True, 1.0, 10**400):
        with pytest.raises(ValueError, match="version 1"):
            Release.from_json(json.dumps({**record, "version": version}))


@pytest.mark.parametrize("facts", [LINEAR, COUNTS], ids=["linear", "counts"])
def test_a_number_of_400_digits_in_any_field(facts):
    record = json.loads(Release(**facts).to_json())
    for field, value in record.items():
        tampered = [10**400] * len(value) if isinstance(value, list) else 10**400
        for sign in (1, -1) if tampered else ():
            given = sign * tampered if isinstance(tampered, int) else [sign * x for x in tampered]
            with pytest.raises(ValueError, match=r"must|version"):
                Release.from_json(json.dumps({**record, field: given}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(bounds=(5, 0)), "bounds must be in increasing order"),
        (dict(bounds=(1, 5)), r"bounds must be \(0, upper\) for kind='poisson'"),
        (dict(kind="bernoulli"), r"bounds must be \(0, 1\) for kind='bernoulli'"),
        (dict(intercept=True), "True for kind='linear' or kind='logistic' only"),
        (dict(n_features=2), "n_features must be an integer from 0 to 0"),
    ],
)
def test_families_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        Release(**{**COUNTS, **change})


@pytest.mark.parametrize("classes", [(0,), (1, 1), (None, 1), ((1,), 2), (0.0, np.inf), "ab"])
def test_classes_are_checked(classes):
    facts = dict(kind="logistic", n_samples=9, statistic=(0.0, 3.0), renyi_epsilon=None)
    facts.update(renyi_order=2.0, bounds=(1.0,), n_features=1)
    assert Release(**facts, classes=["no", "yes"]).classes == ("no", "yes")
    with pytest.raises(ValueError, match="classes must be two different strings or numbers"):
        Release(**facts, classes=classes)
    with pytest.raises(ValueError, match="moments_fraction must be 0, or for kind='linear'"):
        Release(**facts, moments_fraction=0.1)


def test_added_noise_is_as_stated():
    release = Release(**{**COUNTS, "n_samples": 10**6})
    seeds = range(400)
    with pytest.warns(UserWarning, match="noise_random_state"):
        more = [release.add_noise(3.0, noise_random_state=s) for s in seeds]
    assert {m.renyi_epsilon for m in more} == {1.0 / (1 + 3.0)}
    added = np.array([m.statistic[0] - 3.0 for m in more])
    variance = 0.5 * 2 * 25 * 3.0
    assert added.var() == pytest.approx(variance, rel=0.3)
    assert more[0].noise_scale ** 2 == pytest.approx(release.noise_scale**2 + variance)
    exact = Release(**{**COUNTS, "renyi_epsilon": None})
    assert exact.add_noise(2.0).renyi_epsilon == 0.5
    assert release.add_noise(0) is release
    with pytest.raises(ValueError, match="tau must be a finite number, not negative. Got -1"):
        release.add_noise(-1)
