"""Calibration: as private as asked, never less, no more than needed, and quick."""

import math
import time

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

GRID = [(e, d) for e in (0.1, 1.0, 3.0, 8.0) for d in (1e-9, 1e-5, 1e-2)]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
@pytest.mark.parametrize("sensitivity", [0.003, 1.0, 7.0])
def test_gaussian_equals_dp_accounting(epsilon, delta, sensitivity):
    library = pytest.importorskip("dp_accounting.gaussian_mechanism")
    event = calibrate_gaussian(epsilon, delta, sensitivity, "null")
    expected = sensitivity * library.get_sigma_gaussian(epsilon, delta)
    assert event.scale == pytest.approx(expected, rel=1e-9)
    assert get_delta(event, epsilon) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
@pytest.mark.parametrize("m", [1, 2, 4, 13, 150])
def test_counts_are_never_short_nor_wasteful(epsilon, delta, m):
    event = calibrate_counts(epsilon, delta, m)
    assert event.contributions == m
    assert delta * (1 - 1e-6) < get_delta(event, epsilon) <= delta


def test_counts_on_the_lattice_differ_from_the_formula_where_few_change():
    formula = calibrate_gaussian(1.0, 1e-5).scale
    assert calibrate_counts(1.0, 1e-5, 1).scale > formula * 1.002
    many = calibrate_counts(1.0, 1e-5, 200).scale
    assert many == pytest.approx(formula * math.sqrt(200), rel=1e-5)
    sds = [calibrate_counts(1.0, 1e-5, m).scale for m in (1, 13, 50, 200, 1000)]
    assert [round(s, 1) for s in sds] == [3.7, 13.5, 26.4, 52.8, 118.0]


def test_replace_touches_twice_the_counts():
    event = calibrate_counts(1.0, 1e-5, 13, "replace")
    assert event.contributions == 26
    assert event.relation == "replace"
    same = convert(calibrate_counts(1.0, 1e-5, 13), "replace")
    assert get_delta(same, 1.0) > 1e-5
    assert event.scale == pytest.approx(
        calibrate_counts(1.0, 1e-5, 26).scale, rel=1e-12
    )


def test_steps_scale_the_noise():
    ten, one = (calibrate_counts(1.0, 1e-5, 50, step=step).scale for step in (10, 1))
    assert ten == pytest.approx(10 * one, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 1.1, 7.7])
@pytest.mark.parametrize("sensitivity", [1, 3, 49])
def test_laplace_is_pure(epsilon, sensitivity):
    event = calibrate_laplace(epsilon, sensitivity)
    assert event.sensitivity / event.scale <= epsilon
    assert event.scale == pytest.approx(sensitivity / epsilon, rel=1e-12)
    assert get_delta(event, epsilon) < 1e-20


def test_sampled_calibration():
    def event(scale):
        fresh = PoissonSampledEvent(GaussianEvent(scale, relation="null"), 0.1)
        return SelfComposedEvent(fresh, 2)

    found = calibrate(event, 1.0, 1e-5, tol=0.05)
    assert 0.95 < get_epsilon(found, 1e-5) <= 1.0
    with pytest.raises(ValueError, match="cost falls with the scale"):
        calibrate(lambda s: GaussianEvent(1.0), 0.1, 1e-5)
    with pytest.raises(ValueError, match=r"tol must be in \(0, 1\)"):
        calibrate(event, 1.0, 1e-5, tol=0)


def test_generic_calibration_finds_the_closed_form():
    found = calibrate(lambda s: GaussianEvent(s), 1.0, 1e-5, tol=1e-6).scale
    assert found == pytest.approx(calibrate_gaussian(1.0, 1e-5).scale, rel=2e-6)
    assert found >= calibrate_gaussian(1.0, 1e-5).scale * (1 - 1e-10)


@pytest.mark.parametrize("call", [calibrate_gaussian, calibrate_counts])
def test_refusals(call):
    for arguments, message in (
        *(((epsilon, 1e-5), "epsilon must be") for epsilon in (0, -1.0, math.nan)),
        *(((1.0, delta), "delta must be") for delta in (0, 1, 1.5)),
        ((1.0, 1e-5, 1, "bounded"), "relation must be one of"),
        ((1.0, 1e-5, 0), "Got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call(*arguments)


def median_time(call, repeats=15):
    times = []
    for i in range(repeats):
        start = time.process_time()
        call(1.0 + 1e-3 * i)  # a new question every time: nothing is remembered
        times.append(time.process_time() - start)
    return sorted(times)[repeats // 2]


def test_unsampled_calibration_is_quick():
    # Measured 0.04 ms and 0.3 to 0.9 ms on 2 cores; the bounds leave room for a busy
    # machine.
    assert median_time(lambda e: calibrate_gaussian(e, 1e-5)) < 1e-3
    for m in (1, 13, 1000):
        assert median_time(lambda e, m=m: calibrate_counts(e, 1e-5, m)) < 5e-3
