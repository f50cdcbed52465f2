"""The report: complete, readable, honest about seeds, and computed from what was
released."""

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

WORDS = {
    "notion": "joint",
    "unit": "patient",
    "protects": "whether a patient is among the rows",
    "against": "every other patient",
    "not_protected": ("the validation set", "the own value against its owner"),
    "assumptions": ("the radius was chosen without the rows",),
}


@pytest.fixture
def report():
    return make_report(calibrate_counts(1.0, 1e-5, 13), 1e-5, **WORDS)


def test_epsilon_is_computed_from_the_event(report):
    assert report.epsilon == pytest.approx(1.0, rel=1e-8)
    assert report.epsilon <= 1.0
    assert report.relation == "add_remove"
    double = SelfComposedEvent(calibrate_counts(1.0, 1e-5, 13), 2)
    assert make_report(double, 1e-5, **WORDS).epsilon > 1.4


def test_prose_says_everything(report):
    text = " ".join(str(report).split())
    for part in (
        "(1, 1e-05)-joint differential privacy",
        "one patient been added or removed",
        "a trusted curator",
        "Protected: whether a patient is among the rows, from every other patient",
        "discrete Gaussian noise of scale 13.45",
        "NOT protected: the validation set; the own value against its owner",
        "Assumed, and not checked: the radius was chosen without the rows",
    ):
        assert part in text
    text = str(make_report(calibrate_gaussian(1.0, 1e-5), 1e-5, **WORDS))
    assert "ROC curve above 0.575" in " ".join(text.split())
    assert max(map(len, str(report).splitlines())) <= 88


def test_seed_voids_the_guarantee_and_is_not_kept():
    event = calibrate_gaussian(1.0, 1e-5)
    void = make_report(event, 1e-5, noise_random_state=123456, **WORDS)
    zero = make_report(event, 1e-5, noise_random_state=0, **WORDS)
    assert void.guarantee is zero.guarantee is None
    assert str(void).startswith("NO PRIVACY IS GUARANTEED")
    assert "123456" not in repr(void)
    assert "ROC" not in str(void)
    assert make_report(event, 1e-5, **WORDS).guarantee is not None


def test_ceiling_only_for_gaussian_noise(report):
    gaussian = make_report(
        calibrate_gaussian(1.0, 1e-5, relation="null"), 1e-5, **WORDS
    )
    expected = detection_ceiling(1.0, 1e-5, "null")
    assert gaussian.detection_ceiling == pytest.approx(expected, rel=1e-7)
    mixed = ComposedEvent((GaussianEvent(5.0), LaplaceEvent(5.0)))
    assert make_report(mixed, 1e-5, **WORDS).detection_ceiling is None
    # Replacing a row moves two counts by one: apart except in 1 of 10^10 cases at this
    # scale, at (12.5, 1e-5), where Gaussian noise would let 4 of 10^4 pass.
    assert report.detection_ceiling is None
    few = make_report(DiscreteGaussianEvent(0.2), 1e-5, **WORDS)
    assert detection_ceiling(few.epsilon, 1e-5, "add_remove") < 0.9997
    assert few.detection_ceiling is None


def test_pure_privacy():
    pure = make_report(calibrate_laplace(0.5, 3.0), 0, **WORDS)
    assert pure.epsilon == pytest.approx(0.5)
    assert pure.guarantee == "(0.5)-joint differential privacy"
    assert ", plus" not in str(pure)
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\)"):
        make_report(calibrate_gaussian(1.0, 1e-5), 0, **WORDS)


def test_continuous_noise_is_labelled():
    assert "rounded to a millionth" in describe_noise(GaussianEvent(1.0))
    assert "rounded" not in describe_noise(calibrate_counts(1.0, 1e-5))
    sampled = SelfComposedEvent(
        PoissonSampledEvent(GaussianEvent(1.0, relation="null"), 0.1), 5
    )
    assert describe_noise(sampled).startswith("5 times continuous Gaussian noise")
    assert "secret sample that holds each row with probability 0.1" in describe_noise(
        sampled
    )


def test_frozen_picklable_and_checked(report):
    assert pickle.loads(pickle.dumps(report)) == report
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.epsilon = 0.1
    event = calibrate_gaussian(1.0, 1e-5)
    with pytest.raises(ValueError, match="notion must be one of"):
        make_report(event, 1e-5, **WORDS | {"notion": "global"})
    with pytest.raises(TypeError, match="assumptions must be"):
        make_report(event, 1e-5, **WORDS | {"assumptions": "none"})
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        PrivacyReport("local", "row", "replace", float("inf"), 1e-5, "none", "a", "b")
