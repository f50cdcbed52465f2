"""The report: complete, readable, and computed from what was released."""

import dataclasses
import pickle

import pytest

from skvalue.privacy import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampledEvent,
    PrivacyReport,
    SelfComposedEvent,
    calibrate_counts,
    calibrate_gaussian,
    calibrate_laplace,
    describe_noise,
    detection_ceiling,
    make_report,
)

FACTS = {
    "notion": "joint",
    "unit": "patient",
    "protects": "whether a patient is among the rows",
    "against": "every other patient",
    "not_protected": ("the validation set", "the own value against its owner"),
    "assumptions": ("the radius was chosen without the rows",),
}


@pytest.fixture
def report():
    return make_report(calibrate_counts(1.0, 1e-5, 13), 1e-5, **FACTS)


def test_epsilon_is_computed_from_the_event(report):
    assert report.epsilon == pytest.approx(1.0, rel=1e-8)
    assert report.epsilon <= 1.0
    assert report.relation == "add_remove"


def test_two_releases_cost_more_than_one():
    double = SelfComposedEvent(calibrate_counts(1.0, 1e-5, 13), 2)
    assert make_report(double, 1e-5, **FACTS).epsilon > 1.4


def test_prose_has_all_facts(report):
    text = " ".join(str(report).split())
    for fact in (
        "(1, 1e-05)-joint differential privacy",
        "one patient been added or removed",
        "a trusted curator",
        "Protected: whether a patient is among the rows, from every other patient",
        "discrete Gaussian noise of scale 13.45",
        "NOT protected: the validation set; the own value against its owner",
        "Assumed, and not checked: the radius was chosen without the rows",
    ):
        assert fact in text
    assert max(map(len, str(report).splitlines())) <= 88


def test_prose_has_the_ceiling_of_detection():
    report = make_report(calibrate_gaussian(1.0, 1e-5), 1e-5, **FACTS)
    assert "ROC curve above 0.575" in " ".join(str(report).split())


def test_a_seed_voids_the_guarantee_and_is_not_kept():
    event = calibrate_gaussian(1.0, 1e-5)
    void = make_report(event, 1e-5, noise_random_state=123456, **FACTS)
    zero = make_report(event, 1e-5, noise_random_state=0, **FACTS)
    assert void.guarantee is zero.guarantee is None
    assert str(void).startswith("NO PRIVACY IS GUARANTEED")
    assert "123456" not in repr(void)
    assert "ROC" not in str(void)
    assert make_report(event, 1e-5, **FACTS).guarantee is not None


def test_only_gaussian_noise_has_a_ceiling(report):
    gaussian = make_report(
        calibrate_gaussian(1.0, 1e-5, relation="null"), 1e-5, **FACTS
    )
    expected = detection_ceiling(1.0, 1e-5, "null")
    assert gaussian.detection_ceiling == pytest.approx(expected, rel=1e-7)
    mixed = ComposedEvent((GaussianEvent(5.0), LaplaceEvent(5.0)))
    assert make_report(mixed, 1e-5, **FACTS).detection_ceiling is None
    # Replacing a row moves two counts by one: apart except in 1 of 10^10 cases at this
    # scale, at (12.5, 1e-5), where Gaussian noise would let 4 of 10^4 pass.
    assert report.detection_ceiling is None
    few = make_report(DiscreteGaussianEvent(0.2), 1e-5, **FACTS)
    assert detection_ceiling(few.epsilon, 1e-5, "add_remove") < 0.9997
    assert few.detection_ceiling is None


def test_laplace_noise_is_reported_without_a_delta():
    pure = make_report(calibrate_laplace(0.5, 3.0), 0, **FACTS)
    assert pure.epsilon == pytest.approx(0.5)
    assert pure.guarantee == "(0.5)-joint differential privacy"
    assert ", plus" not in str(pure)


def test_a_delta_of_zero_is_refused_for_gaussian_noise():
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\)"):
        make_report(calibrate_gaussian(1.0, 1e-5), 0, **FACTS)


def test_the_rounding_of_continuous_noise_is_described():
    assert "rounded to a millionth" in describe_noise(GaussianEvent(1.0))
    assert "rounded" not in describe_noise(calibrate_counts(1.0, 1e-5))


def test_noise_on_samples_is_described():
    sample = PoissonSampledEvent(GaussianEvent(1.0, relation="null"), 0.1)
    text = describe_noise(SelfComposedEvent(sample, 5))
    assert text.startswith("5 times continuous Gaussian noise")
    assert "secret sample that holds each row with probability 0.1" in text


def test_reports_are_frozen_and_pickled(report):
    assert pickle.loads(pickle.dumps(report)) == report
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.epsilon = 0.1


def test_an_unknown_notion_is_refused():
    event = calibrate_gaussian(1.0, 1e-5)
    with pytest.raises(ValueError, match="notion must be one of"):
        make_report(event, 1e-5, **FACTS | {"notion": "global"})


def test_one_string_of_assumptions_is_refused():
    event = calibrate_gaussian(1.0, 1e-5)
    with pytest.raises(TypeError, match="assumptions must be"):
        make_report(event, 1e-5, **FACTS | {"assumptions": "none"})


def test_an_infinite_epsilon_is_refused():
    guarantee = {"relation": "replace", "epsilon": float("inf"), "delta": 1e-5}
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        PrivacyReport(noise="none", **FACTS, **guarantee)
