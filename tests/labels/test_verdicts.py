"""What verdicts say about a list: draw, curve, q-values and the count of errors."""

import numpy as np
import pytest

from skvalue.labels import count_errors, draw_rows, fit_curve, list_qvalues


def test_rows_are_drawn_without_replacement(rng):
    for _ in range(300):
        places = draw_rows(400, 50, rng)
        assert len(set(places.tolist())) == 50
        assert places.min() >= 0
        assert places.max() < 400


def test_low_ranks_are_drawn_first(rng):
    first_places = np.array([draw_rows(400, 50, rng)[0] for _ in range(300)])
    # The weights of the first place drawn are 1 / (rank + 12.5).
    weights = 1 / (np.arange(1, 401) + 12.5)
    expected = weights[:40].sum() / weights.sum()
    assert abs((first_places < 40).mean() - expected) < 5 * np.sqrt(0.25 / 300)


def test_all_rows_of_a_short_list_are_drawn(rng):
    assert sorted(draw_rows(7, 50, rng).tolist()) == list(range(7))
    assert draw_rows(0, 50, rng).shape == (0,)


def draw_right_labels(rng, n_listed, middle, slope=2):
    """Labels of a list: right with a probability that is logistic in the log rank."""
    ranks = np.arange(1, n_listed + 1)
    return rng.random(n_listed) < 1 / (1 + (middle / ranks) ** slope)


def test_a_list_holds_the_rate_on_average(rng):
    fractions = []
    for _ in range(60):
        is_right = draw_right_labels(rng, 500, 120)
        places = draw_rows(500, 50, rng)
        curve = fit_curve(500, places, ~is_right[places])
        is_named = list_qvalues(curve) <= 0.1
        if is_named.any():
            fractions.append(is_right[is_named].mean())
    assert len(fractions) > 50
    assert np.mean(fractions) < 0.11


def test_a_list_of_confidence_holds_the_rate_and_is_shorter(rng):
    is_above = []
    for _ in range(60):
        is_right = draw_right_labels(rng, 500, 120)
        places = draw_rows(500, 50, rng)
        curve = fit_curve(500, places, ~is_right[places])
        is_named = list_qvalues(curve) <= 0.1
        is_sure = list_qvalues(curve, 1.645) <= 0.1
        assert not (is_sure & ~is_named).any()
        is_above.append(bool(is_sure.any()) and is_right[is_sure].mean() > 0.1)
    assert np.mean(is_above) <= 0.08


def test_the_interval_of_the_count_holds(rng):
    is_within = []
    for _ in range(60):
        is_right = draw_right_labels(rng, 500, 120)
        places = draw_rows(500, 50, rng)
        curve = fit_curve(500, places, ~is_right[places])
        count, error = count_errors(curve, places, ~is_right[places])
        is_within.append(abs(count - (~is_right).sum()) < 1.96 * error)
    assert 0.88 < np.mean(is_within) <= 1


@pytest.mark.slow
def test_confidence_holds_for_the_rows_without_a_verdict(rng):
    """A list is above the rate in 5 % of the cases.

    The fraction is .055; it were .12 if labels were not drawn from the curve.
    """
    # Numbers of rows, rank of probability one half, slope, and number of verdicts.
    lists = [
        (500, 120, 2, 50),
        (200, 60, 2, 50),
        (1000, 200, 1.5, 50),
        (120, 40, 2, 30),
    ]
    is_above = []
    for n_listed, middle, slope, n_verdicts in lists * 200:
        is_right = draw_right_labels(rng, n_listed, middle, slope)
        places = draw_rows(n_listed, n_verdicts, rng)
        curve = fit_curve(n_listed, places, ~is_right[places])
        is_named = list_qvalues(curve, 1.645) <= 0.1
        is_named[places] = False
        is_above.append(bool(is_named.any()) and is_right[is_named].mean() > 0.1)
    assert np.mean(is_above) < 0.08


def test_q_values_rise_with_rank_and_are_means_of_the_curve():
    places = np.arange(0, 60, 2)
    curve = fit_curve(60, places, places < 20)
    q = list_qvalues(curve)
    assert (np.diff(q) >= 0).all()
    assert (np.diff(curve.right) > 0).all()
    np.testing.assert_allclose(q, np.cumsum(curve.right) / np.arange(1, 61))


def test_slopes_are_derivatives_of_a_curve_in_the_log_of_the_rank():
    places = np.arange(0, 60, 2)
    curve = fit_curve(60, places, places < 20)
    design = curve.slopes / (curve.right * (1 - curve.right))[:, None]
    np.testing.assert_allclose(design[:, 0], 1)
    # The log of the rank and the log odds are lines in each other.
    log_ranks = np.log(np.arange(1, 61) + len(places) / 4)
    log_odds = np.log(curve.right / (1 - curve.right))
    for column in (log_ranks, log_odds):
        line = np.polyfit(design[:, 1], column, 1)
        np.testing.assert_allclose(np.polyval(line, design[:, 1]), column, atol=1e-9)


@pytest.mark.parametrize("is_error", [True, False])
def test_verdicts_that_agree_leave_doubt(is_error):
    places = np.arange(20)
    curve = fit_curve(200, places, np.full(20, is_error))
    assert ((curve.right > 0) & (curve.right < 1)).all()
    assert (list_qvalues(curve)[0] < 0.1) == is_error


def test_errors_of_rows_with_verdicts_are_counted_not_estimated():
    places = np.arange(30)
    is_error = places % 3 == 0
    curve = fit_curve(30, places, is_error)
    assert count_errors(curve, places, is_error) == (10.0, 0.0)
