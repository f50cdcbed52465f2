"""Calibration: as private as asked, never less, no more than needed, and quick."""

import math
import time
from functools import partial
from itertools import product

import pytest

from skvalue.privacy import (
    GaussianEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    calibrate,
    calibrate_counts,
    calibrate_gaussian,
    calibrate_laplace,
    convert,
    get_delta,
    get_epsilon,
)

GRID = list(product((0.1, 1.0, 3.0, 8.0), (1e-9, 1e-5, 1e-2)))  # epsilon and delta


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
@pytest.mark.parametrize("sensitivity", [0.003, 1.0, 7.0])
def test_gaussian_noise_equals_that_of_dp_accounting(epsilon, delta, sensitivity):
    library = pytest.importorskip("dp_accounting.gaussian_mechanism")
    event = calibrate_gaussian(epsilon, delta, sensitivity, "null")
    expected = sensitivity * library.get_sigma_gaussian(epsilon, delta)
    assert event.scale == pytest.approx(expected, rel=1e-9)
    assert get_delta(event, epsilon) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
@pytest.mark.parametrize("m", [1, 2, 4, 13, 150])
def test_noise_of_counts_is_never_short_nor_wasteful(epsilon, delta, m):
    event = calibrate_counts(epsilon, delta, m)
    assert event.contributions == m
    assert delta * (1 - 1e-6) < get_delta(event, epsilon) <= delta


def test_noise_of_counts_exceeds_the_formula_where_few_change():
    formula = calibrate_gaussian(1.0, 1e-5).scale
    assert calibrate_counts(1.0, 1e-5, 1).scale > formula * 1.002
    many = calibrate_counts(1.0, 1e-5, 200).scale
    assert many == pytest.approx(formula * math.sqrt(200), rel=1e-5)


def test_noise_of_counts_at_a_usual_guarantee():
    scales = [calibrate_counts(1.0, 1e-5, m).scale for m in (1, 13, 50, 200, 1000)]
    assert [round(scale, 1) for scale in scales] == [3.7, 13.5, 26.4, 52.8, 118.0]


def test_a_replacement_changes_twice_as_many_counts():
    event = calibrate_counts(1.0, 1e-5, 13, "replace")
    assert event.contributions == 26
    assert event.relation == "replace"
    same = convert(calibrate_counts(1.0, 1e-5, 13), "replace")
    assert get_delta(same, 1.0) > 1e-5
    assert event.scale == pytest.approx(
        calibrate_counts(1.0, 1e-5, 26).scale, rel=1e-12
    )


def test_noise_grows_with_the_step():
    one = calibrate_counts(1.0, 1e-5, 50, step=1).scale
    ten = calibrate_counts(1.0, 1e-5, 50, step=10).scale
    assert ten == pytest.approx(10 * one, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 1.1, 7.7])
@pytest.mark.parametrize("sensitivity", [1, 3, 49])
def test_laplace_noise_has_no_delta(epsilon, sensitivity):
    event = calibrate_laplace(epsilon, sensitivity)
    assert event.sensitivity / event.scale <= epsilon
    assert event.scale == pytest.approx(sensitivity / epsilon, rel=1e-12)
    assert get_delta(event, epsilon) < 1e-20


def test_noise_on_samples_meets_the_guarantee():
    def event(scale):
        fresh = PoissonSampledEvent(GaussianEvent(scale, relation="null"), 0.1)
        return SelfComposedEvent(fresh, 2)

    calibrated = calibrate(event, 1.0, 1e-5, tol=0.05)
    assert 0.95 < get_epsilon(calibrated, 1e-5) <= 1.0


def test_events_whose_cost_does_not_fall_are_refused():
    with pytest.raises(ValueError, match="cost falls with the scale"):
        calibrate(lambda scale: GaussianEvent(1.0), 0.1, 1e-5)


def test_a_tolerance_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"tol must be in \(0, 1\)"):
        calibrate(GaussianEvent, 1.0, 1e-5, tol=0)


def test_bisection_agrees_with_the_closed_form():
    scale = calibrate(GaussianEvent, 1.0, 1e-5, tol=1e-6).scale
    expected = calibrate_gaussian(1.0, 1e-5).scale
    assert scale == pytest.approx(expected, rel=2e-6)
    assert scale >= expected * (1 - 1e-10)


@pytest.mark.parametrize("calibration", [calibrate_gaussian, calibrate_counts])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1e-5), "epsilon must be"),
        ((-1.0, 1e-5), "epsilon must be"),
        ((math.nan, 1e-5), "epsilon must be"),
        ((1.0, 0), "delta must be"),
        ((1.0, 1), "delta must be"),
        ((1.0, 1.5), "delta must be"),
        ((1.0, 1e-5, 1, "bounded"), "relation must be one of"),
        ((1.0, 1e-5, 0), "Got 0"),
    ],
)
def test_arguments_out_of_range_are_refused(calibration, arguments, message):
    with pytest.raises(ValueError, match=message):
        calibration(*arguments)


def median_time(calibration, repeats=15):
    times = []
    for i in range(repeats):
        start = time.process_time()
        calibration(1.0 + 1e-3 * i)  # another epsilon each time: nothing is remembered
        times.append(time.process_time() - start)
    return sorted(times)[repeats // 2]


def test_calibration_without_samples_takes_milliseconds():
    # Measured 0.04 ms and 0.3 to 0.9 ms on 2 cores; the bounds leave room for a slow
    # machine that is busy.
    assert median_time(partial(calibrate_gaussian, delta=1e-5)) < 2e-3
    for m in (1, 13, 1000):
        counts = partial(calibrate_counts, delta=1e-5, max_contributions=m)
        assert median_time(counts) < 2e-2
