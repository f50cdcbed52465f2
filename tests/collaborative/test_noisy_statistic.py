"""What a party sends: its fields are checked, since its source is not trusted."""

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

LINEAR = {
    "kind": "linear",
    "n_samples": 100,
    "statistic": (10.0, 2.0, 12.0, 1.0, 3.0, 30.0),
    "renyi_epsilon": 0.2,
    "renyi_order": 2.0,
    "bounds": (1.0, 1.0),
    "n_features": 2,
}
LOGISTIC = {
    "kind": "logistic",
    "n_samples": 9,
    "statistic": (0.0, 3.0),
    "renyi_epsilon": None,
    "renyi_order": 2.0,
    "bounds": (1.0,),
    "n_features": 1,
}
MEAN = {
    "kind": "gaussian",
    "n_samples": 9,
    "statistic": (3.0,),
    "renyi_epsilon": 1.0,
    "renyi_order": 2.0,
    "bounds": (0, 5),
}


def record_of(fields):
    """The JSON record of a statistic, as a dict."""
    return json.loads(NoisyStatistic(**fields).to_json())


class TestNoise:
    def test_noise_has_the_scale_of_the_paper(self):
        release = NoisyStatistic(**LINEAR)
        assert release.sensitivity == pytest.approx(8**0.5)
        assert release.noise_scale**2 == pytest.approx(0.5 * 2 / 0.2 * 8)
        assert 0.5 * 2 * (release.sensitivity / release.noise_scale) ** 2 <= 0.2

    def test_without_epsilon_there_is_no_noise(self):
        release = NoisyStatistic(**LINEAR | {"renyi_epsilon": None})
        assert release.noise_scale == 0
        assert release.event is None

    def test_added_noise_has_the_stated_scale_and_epsilon(self, rng):
        release = NoisyStatistic(**MEAN | {"n_samples": 10**6})
        noisier = [release.with_noise(3.0, rng.standard_normal(1)) for _ in range(400)]
        assert {r.renyi_epsilon for r in noisier} == {1.0 / (1 + 3.0)}
        noise = np.array([r.statistic[0] - 3.0 for r in noisier])
        variance = 0.5 * 2 * 25 * 3.0
        assert noise.var() == pytest.approx(variance, rel=0.3)
        total = release.noise_scale**2 + variance
        assert noisier[0].noise_scale ** 2 == pytest.approx(total)

    def test_noise_added_to_an_exact_statistic_sets_epsilon(self):
        exact = NoisyStatistic(**MEAN | {"renyi_epsilon": None})
        assert exact.with_noise(2.0, np.zeros(1)).renyi_epsilon == 0.5

    def test_an_exact_statistic_is_clipped_to_what_rows_can_have(self):
        release = NoisyStatistic(**MEAN)
        exact = release.without_noise([1e9])
        assert exact.statistic == (45.0,)
        assert exact.noise_scale == 0
        assert exact.n_samples == release.n_samples


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
        MeanRelease(renyi_epsilon=0.5, family="bernoulli"),
        MeanRelease(renyi_epsilon=0.5, family="poisson", upper=7),
    ],
    ids=["intercept", "no noise", "prior", "classes", "mean", "bernoulli", "poisson"],
)
def test_json_gives_an_equal_statistic(party, rng):
    X = rng.normal(size=(60, 2)) / 3
    y = X[:, -1]
    if isinstance(party, MeanRelease):
        X = X[:, 0]
    if isinstance(party, LogisticRelease):
        y = X[:, 0] > 0
    release = party.fit(X, y).release_
    text = release.to_json()
    assert NoisyStatistic.from_json(text) == release
    assert set(json.loads(text)) == {"format", "version", *asdict(release)}


class TestFields:
    @pytest.mark.parametrize(
        ("kind", "bounds"),
        [("bernoulli", (0, 2)), ("bernoulli", (-1, 1)), ("poisson", (1, 5))],
    )
    def test_bounds_of_a_family_of_counts_are_checked(self, kind, bounds):
        with pytest.raises(ValueError, match=f"for kind='{kind}'"):
            NoisyStatistic(**MEAN | {"kind": kind, "bounds": bounds})

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
    def test_invalid_value_is_refused(self, field, values):
        record = record_of(LINEAR)
        for value in values:
            with pytest.raises(ValueError, match=f"{field} must be"):
                NoisyStatistic.from_json(json.dumps({**record, field: value}))

    def test_epsilon_too_small_for_finite_noise_is_refused(self):
        record = record_of(LINEAR)
        with pytest.raises(ValueError, match="renyi_epsilon must be large enough"):
            NoisyStatistic.from_json(json.dumps({**record, "renyi_order": 1e308}))

    def test_error_says_that_ends_are_excluded(self):
        with pytest.raises(
            ValueError, match="renyi_order must be a number strictly between 1 and"
        ):
            NoisyStatistic(**LINEAR | {"renyi_order": 1})

    @pytest.mark.parametrize("fields", [LINEAR, MEAN], ids=["linear", "mean"])
    def test_number_of_400_digits_is_refused_in_any_field(self, fields):
        record = record_of(fields)
        for field, value in record.items():
            huge = 10**400
            negative = -huge
            if isinstance(value, list):
                huge = [huge] * len(value)
                negative = [negative] * len(value)
                if not value:
                    continue
            for tampered in (huge, negative):
                with pytest.raises(ValueError, match=r"must|version"):
                    NoisyStatistic.from_json(json.dumps({**record, field: tampered}))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"bounds": (5, 0)}, "bounds must be in increasing order"),
            ({"intercept": True}, "intercept must be True for"),
            ({"n_features": 2}, "n_features must be an integer from 0 to 0"),
        ],
        ids=["bounds", "intercept", "n_features"],
    )
    def test_invalid_field_of_a_mean_is_refused(self, change, message):
        with pytest.raises(ValueError, match=message):
            NoisyStatistic(**MEAN | change)

    def test_two_labels_are_kept_as_a_tuple(self):
        release = NoisyStatistic(**LOGISTIC, classes=["no", "yes"])
        assert release.classes == ("no", "yes")

    @pytest.mark.parametrize(
        "classes", [(0,), (1, 1), (None, 1), ((1,), 2), (0.0, np.inf), "ab"], ids=str
    )
    def test_anything_but_two_labels_is_refused(self, classes):
        with pytest.raises(ValueError, match="classes must be"):
            NoisyStatistic(**LOGISTIC, classes=classes)


class TestText:
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
        ids=["bytes", "open", "nested", "list", "no format", "twice", "NaN"],
    )
    def test_text_that_is_no_record_is_refused(self, text, message):
        with pytest.raises(ValueError, match=message):
            NoisyStatistic.from_json(text)

    def test_unknown_field_is_refused(self):
        record = {**record_of(LINEAR), "rows": [[1, 2]]}
        with pytest.raises(
            ValueError, match="fields of a NoisyStatistic. Got .'rows'. wrong"
        ):
            NoisyStatistic.from_json(json.dumps(record))

    def test_missing_field_is_refused(self):
        record = record_of(LINEAR)
        del record["prior"]
        with pytest.raises(
            ValueError, match="fields of a NoisyStatistic. Got .'prior'. wrong"
        ):
            NoisyStatistic.from_json(json.dumps(record))

    @pytest.mark.parametrize(
        "version", [1, True, 2.0, 10**400], ids=lambda v: str(v)[:5]
    )
    def test_other_version_is_refused(self, version):
        record = {**record_of(LINEAR), "version": version}
        with pytest.raises(ValueError, match="version 2"):
            NoisyStatistic.from_json(json.dumps(record))
