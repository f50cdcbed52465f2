"""What verdicts say about a list: the draw, the curve, q-values and the count of
errors."""

import numpy as np
import pytest

from skvalue.labels import count_errors, draw_rows, fit_curve, list_qvalues


def test_rows_are_drawn_without_replacement_and_low_ranks_first(rng):
    draws = np.array([draw_rows(400, 50, rng) for _ in range(300)])
    assert all(len(set(draw)) == 50 for draw in draws.tolist())
    assert (draws < 400).all()
    assert (draws >= 0).all()
    # The weights of the first place drawn are 1 / (rank + 12.5).
    weights = 1 / (np.arange(1, 401) + 12.5)
    expected = weights[:40].sum() / weights.sum()
    assert abs((draws[:, 0] < 40).mean() - expected) < 5 * np.sqrt(0.25 / 300)
    assert sorted(draw_rows(7, 50, rng).tolist()) == list(range(7))
    assert draw_rows(0, 50, rng).shape == (0,)


def truth(n, turn):
    """Probability that a label is right, which rises with the log of the rank."""
    return 1 / (1 + (turn / np.arange(1, n + 1)) ** 2)


def test_the_list_holds_the_rate(rng):
    """Over many lists whose curve is logistic in log rank."""
    found, above, held = [], [], []
    for _ in range(60):
        right = rng.random(500) < truth(500, 120)
        places = draw_rows(500, 50, rng)
        curve = fit_curve(500, places, ~right[places])
        named = list_qvalues(curve) <= 0.1
        sure = list_qvalues(curve, 1.645) <= 0.1
        assert not (sure & ~named).any()
        if named.any():
            found.append(right[named].mean())
        above.append(bool(sure.any()) and right[sure].mean() > 0.1)
        count, error = count_errors(curve, places, ~right[places])
        held.append(abs(count - (~right).sum()) < 1.96 * error)
    assert len(found) > 50
    assert np.mean(found) < 0.11
    assert np.mean(above) <= 0.08
    assert 0.88 < np.mean(held) <= 1


LISTS = [(500, 120, 2, 50), (200, 60, 2, 50), (1000, 200, 1.5, 50), (120, 40, 2, 30)]


@pytest.mark.slow
def test_confidence_holds_for_the_rows_without_a_verdict(rng):
    """Lists whose curve is logistic in log rank: a list is above the rate in 5 % of the
    cases."""
    above = []
    for n, turn, slope, n_verdicts in LISTS * 200:
        right = rng.random(n) < 1 / (1 + (turn / np.arange(1, n + 1)) ** slope)
        places = draw_rows(n, n_verdicts, rng)
        named = list_qvalues(fit_curve(n, places, ~right[places]), 1.645) <= 0.1
        named[places] = False
        above.append(bool(named.any()) and right[named].mean() > 0.1)
    assert np.mean(above) < 0.08  # .055; .12 if labels were not drawn from the curve


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
    eta = np.log(curve.right / (1 - curve.right))
    for column in (
        np.log(np.arange(1, 61) + len(places) / 4),
        eta,
    ):  # each a line in the other
        line = np.polyfit(design[:, 1], column, 1)
        np.testing.assert_allclose(np.polyval(line, design[:, 1]), column, atol=1e-9)


@pytest.mark.parametrize("wrong", [True, False])
def test_verdicts_that_agree_leave_doubt(wrong):
    places = np.arange(20)
    curve = fit_curve(200, places, np.full(20, wrong))
    assert ((curve.right > 0) & (curve.right < 1)).all()
    q = list_qvalues(curve)
    assert (q[0] < 0.1) == wrong


def test_errors_of_rows_with_verdicts_are_counted_not_estimated():
    places = np.arange(30)
    wrong = places % 3 == 0
    curve = fit_curve(30, places, wrong)
    assert count_errors(curve, places, wrong) == (10.0, 0.0)
