"""The audits themselves: sound noise passes, and each audit fails what it should."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from skvalue.privacy import (
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    calibrate_gaussian,
    calibrate_laplace,
    get_delta,
)
from skvalue.privacy.audit import (
    check_variance,
    distinguish,
    distinguish_scores,
    search_sensitivity,
)

# Sensitivity --------------------------------------------------------------------------

KINDS = ["same", "other", "outside"]


def counts(rows):
    return [rows.count("same"), rows.count("other")]


def ball_counts(rows):
    """Rows, rows in the ball, and rows in the ball with the label, as the paper keeps
    them."""
    same, other = counts(rows)
    return [len([row for row in rows if row != "blank"]), 1 + same + other, same]


@pytest.mark.parametrize(
    ("statistic", "squared_sensitivities"),
    [(ball_counts, (3, 3, 2)), (counts, (1, 1, 2))],
)
@pytest.mark.parametrize(
    ("place", "relation"), [*enumerate(("add_remove", "null", "replace"))]
)
def test_sensitivity_of_counts(statistic, squared_sensitivities, place, relation):
    squared = squared_sensitivities[place]

    def found(claimed):
        return search_sensitivity(
            statistic, KINDS, 4, claimed=claimed, relation=relation, blank="blank"
        )

    report = found(math.sqrt(squared))
    assert report.tight
    assert report.found == pytest.approx(math.sqrt(squared))
    assert not found(math.sqrt(squared) / 1.01).passed
    loose = found(math.sqrt(2 * squared))
    assert loose.passed
    assert not loose.tight


def test_sensitivity_norm_and_witness():
    report = search_sensitivity(
        counts, KINDS, 2, claimed=2.0, relation="replace", norm=1
    )
    assert report.found == 2.0
    rows, neighbour = report.witness
    assert np.abs(np.subtract(counts(rows), counts(neighbour))).sum() == 2


@pytest.mark.parametrize(
    "statistic",
    [
        lambda rows: sum(rows) / len(rows) if rows else math.nan,
        lambda rows: [math.inf if 1 in rows else 0.0],
        lambda rows: [math.nan] * rows.count(1) + [0.0] * rows.count(0),
        lambda rows: [0.0] * len(rows),  # how long it is tells the number of rows
    ],
)
def test_no_noise_hides_what_is_not_finite_nor_another_shape(statistic):
    report = search_sensitivity(
        statistic, [0, 1], 1, claimed=1.0, relation="add_remove"
    )
    assert report.found == math.inf
    assert not report.passed


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (dict(relation="null"), "blank must be the record"),
        (dict(relation="replace", norm=3), "norm must be 1 or 2"),
        (dict(relation="replace", claimed=0), "claimed must be"),
    ],
)
def test_sensitivity_refusals(setting, message):
    with pytest.raises(ValueError, match=message):
        search_sensitivity(counts, KINDS, 2, **{"claimed": 1.0, **setting})


# Variance -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("short", "n"), [(2.0, 100), (math.sqrt(2), 300), (1.05, 12_000)]
)
def test_variance_finds_short_noise(short, n):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20, n))
    event = GaussianEvent(3.0)
    assert all(check_variance(3 * row, event).passed for row in noise)
    assert not any(check_variance(3 * row / short, event).passed for row in noise)
    assert all(
        check_variance(3 * row * 1.5, event).wasteful for row in noise if n >= 300
    )


def test_variance_of_heavy_tails_is_allowed_for():
    rng = np.random.default_rng(0)
    noise = rng.laplace(scale=2.0, size=(200, 400))
    assert all(check_variance(row, LaplaceEvent(2.0)).passed for row in noise)
    assert not any(check_variance(row / 2, LaplaceEvent(2.0)).passed for row in noise)


def test_what_all_draws_share_is_no_noise():
    event = GaussianEvent(2.0)
    assert not check_variance([2.0] * 1000, event).passed
    draws = np.random.default_rng(0).normal(size=1000)
    assert not check_variance(10 + 0.1 * draws, event).passed
    assert check_variance(10 + 2 * draws, event).passed


def test_variance_refusals():
    with pytest.raises(ValueError, match="at least 20 draws"):
        check_variance([1.0], GaussianEvent(1.0))
    with pytest.raises(ValueError, match=r"fail must be in \(0, 1\)"):
        check_variance([1.0] * 30, GaussianEvent(1.0), fail=0)
    with pytest.raises(TypeError, match="one noise event"):
        check_variance([1.0] * 30, "Gaussian")


# Game ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_runs", "short"), [(2000, 2.0), (6000, math.sqrt(2)), (30_000, math.sqrt(1.5))]
)
def test_game_has_the_power_stated(n_runs, short):
    rng = np.random.default_rng(0)
    event = calibrate_gaussian(8.0, 1e-5)
    for _ in range(10):
        here, there = event.scale * rng.normal(size=(2, n_runs))
        assert distinguish_scores(here + 1, there, event).passed
        broken = distinguish_scores(here + short, there, event)
        assert not broken.passed
        assert broken.violation > 0


def test_game_refuses_scores_that_say_nothing():
    scores = np.append(np.zeros(999), np.nan)
    with pytest.raises(ValueError, match="scores must be numbers or infinite. Got NaN"):
        distinguish_scores(scores, np.zeros(1000), GaussianEvent(1.0))


@pytest.mark.parametrize("flip", [False, True])
def test_the_violation_is_between_clopper_pearson_bounds(flip):
    """60 right and 5 wrong guesses in 100, at a level for two bounds in each of 18
    tests."""
    fail = 1e-3
    here, there = (np.tile(np.repeat([1.0, 0.0], [n, 100 - n]), 2) for n in (60, 5))
    scores = (-there, -here) if flip else (here, there)
    report = distinguish_scores(*scores, lambda epsilon: 0.0, fail=fail)

    def bounds(count):
        level = 1 - 2 * fail / 36
        return binomtest(count, 100).proportion_ci(level, method="exact")

    guesses = (bounds(60).low, bounds(5).high), (bounds(95).low, bounds(40).high)
    assert report.violation == pytest.approx(
        max(right - wrong for right, wrong in guesses)
    )
    assert report.epsilon_at == 0


@pytest.mark.parametrize("leak", [math.inf, -math.inf])
@pytest.mark.parametrize("every", [1, 2])
def test_game_sees_what_is_infinite(leak, every):
    event = calibrate_gaussian(1.0, 1e-5)
    here, there = event.scale * np.random.default_rng(0).normal(size=(2, 4000))
    here[::every] = leak
    scores = (here, there) if leak > 0 else (there, here)
    report = distinguish_scores(*scores, event)
    assert not report.passed
    there[::every] = leak
    assert distinguish_scores(here, there, event).passed


def test_game_false_alarms_are_rare_at_any_level():
    # At fail = 0.5 sound noise would fail at most half of the time; the tests are
    # conservative.
    rng = np.random.default_rng(0)
    event = calibrate_gaussian(1.0, 1e-5)
    draws = event.scale * rng.normal(size=(100, 2, 1000)) + [[1], [0]]
    assert (
        sum(not distinguish_scores(*each, event, fail=0.5).passed for each in draws)
        <= 50
    )


def test_game_on_laplace_noise_and_both_directions():
    rng = np.random.default_rng(0)
    event = calibrate_laplace(1.0)
    draws = rng.laplace(size=(2, 20_000))
    assert distinguish_scores(draws[0] + 1, draws[1], event).passed
    assert not distinguish_scores(draws[0] + 2, draws[1], event).passed
    # Never seen without the row: an infinite loss in one direction only.
    one_sided = draws[1].copy()
    one_sided[::10] = 100.0
    assert not distinguish_scores(one_sided, draws[0], event).passed
    assert not distinguish_scores(-draws[0], -one_sided, event).passed


def test_game_takes_a_profile_and_a_mechanism():
    rng = np.random.default_rng(0)
    event = calibrate_gaussian(8.0, 1e-5)

    def profile(epsilon):
        return get_delta(event, max(epsilon, 1e-9))

    def release(row):
        return row + event.scale * rng.normal(size=3)

    row, nothing = np.array([1.0, 0, 0]), np.zeros(3)
    sound = distinguish(release, row, nothing, lambda x: x[0], profile, n_runs=2000)
    assert sound.passed
    assert sound.n_runs == 2000
    broken = distinguish(release, 2 * row, nothing, lambda x: x[0], event, n_runs=2000)
    assert not broken.passed


def test_game_refusals():
    event = GaussianEvent(1.0)
    for shapes in ((50, 50), (200, 199)):
        with pytest.raises(ValueError, match="equally long, of at least 100"):
            distinguish_scores(np.zeros(shapes[0]), np.zeros(shapes[1]), event)
    with pytest.raises(ValueError, match="fail must be"):
        distinguish_scores(np.zeros(200), np.zeros(200), event, fail=0)


def test_reports_are_frozen():
    report = check_variance(np.ones(30), DiscreteGaussianEvent(1.0))
    with pytest.raises(AttributeError):
        report.passed = True
