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
    """Numbers of rows, in the ball, and in the ball with the label, as in the paper."""
    same, other = counts(rows)
    return [len([row for row in rows if row != "blank"]), 1 + same + other, same]


@pytest.mark.parametrize(
    ("statistic", "relation", "squared"),
    [
        (ball_counts, "add_remove", 3),
        (ball_counts, "null", 3),
        (ball_counts, "replace", 2),
        (counts, "add_remove", 1),
        (counts, "null", 1),
        (counts, "replace", 2),
    ],
)
def test_the_sensitivity_of_counts_is_found(statistic, relation, squared):
    def search(claimed):
        return search_sensitivity(
            statistic, KINDS, 4, claimed=claimed, relation=relation, blank="blank"
        )

    tight = search(math.sqrt(squared))
    assert tight.tight
    assert tight.found == pytest.approx(math.sqrt(squared))
    assert not search(math.sqrt(squared) / 1.01).passed
    loose = search(math.sqrt(2 * squared))
    assert loose.passed
    assert not loose.tight


def test_the_witness_has_the_distance_found():
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
def test_what_is_not_finite_or_of_another_shape_is_infinitely_far(statistic):
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
def test_wrong_arguments_of_the_search_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        search_sensitivity(counts, KINDS, 2, **{"claimed": 1.0, **setting})


# Variance -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("short", "n"), [(2.0, 100), (math.sqrt(2), 300), (1.05, 12_000)]
)
def test_noise_that_is_too_small_is_found(short, n):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20, n))
    event = GaussianEvent(3.0)
    assert all(check_variance(3 * row, event).passed for row in noise)
    assert not any(check_variance(3 * row / short, event).passed for row in noise)


@pytest.mark.parametrize("n", [300, 12_000])
def test_noise_that_is_too_large_is_wasteful(n):
    noise = 3 * np.random.default_rng(0).normal(size=(20, n))
    event = GaussianEvent(3.0)
    assert all(check_variance(1.5 * row, event).wasteful for row in noise)


def test_the_variance_of_heavy_tails_is_allowed_for():
    rng = np.random.default_rng(0)
    noise = rng.laplace(scale=2.0, size=(200, 400))
    assert all(check_variance(row, LaplaceEvent(2.0)).passed for row in noise)
    assert not any(check_variance(row / 2, LaplaceEvent(2.0)).passed for row in noise)


def test_a_common_offset_is_no_noise():
    event = GaussianEvent(2.0)
    assert not check_variance([2.0] * 1000, event).passed
    draws = np.random.default_rng(0).normal(size=1000)
    assert not check_variance(10 + 0.1 * draws, event).passed
    assert check_variance(10 + 2 * draws, event).passed


def test_few_draws_are_refused():
    with pytest.raises(ValueError, match="at least 20 draws"):
        check_variance([1.0], GaussianEvent(1.0))


def test_a_probability_of_failure_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"fail must be in \(0, 1\)"):
        check_variance([1.0] * 30, GaussianEvent(1.0), fail=0)


def test_the_variance_of_what_is_no_noise_event_is_refused():
    with pytest.raises(TypeError, match="one noise event"):
        check_variance([1.0] * 30, "Gaussian")


# Game ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_runs", "short"), [(2000, 2.0), (6000, math.sqrt(2)), (30_000, math.sqrt(1.5))]
)
def test_the_game_has_the_power_stated(n_runs, short):
    rng = np.random.default_rng(0)
    event = calibrate_gaussian(8.0, 1e-5)
    for _ in range(10):
        scores, scores_neighbour = event.scale * rng.normal(size=(2, n_runs))
        assert distinguish_scores(scores + 1, scores_neighbour, event).passed
        broken = distinguish_scores(scores + short, scores_neighbour, event)
        assert not broken.passed
        assert broken.violation > 0


def test_the_game_refuses_scores_that_are_nan():
    scores = np.append(np.zeros(999), np.nan)
    with pytest.raises(ValueError, match="scores must be numbers or infinite. Got NaN"):
        distinguish_scores(scores, np.zeros(1000), GaussianEvent(1.0))


@pytest.mark.parametrize("is_flipped", [False, True])
def test_the_violation_is_between_clopper_pearson_bounds(is_flipped):
    """60 right and 5 wrong guesses in 100, at a level for two bounds in 18 tests."""
    fail = 1e-3
    scores, scores_neighbour = (
        np.tile(np.repeat([1.0, 0.0], [n, 100 - n]), 2) for n in (60, 5)
    )
    if is_flipped:
        scores, scores_neighbour = -scores_neighbour, -scores
    report = distinguish_scores(
        scores, scores_neighbour, lambda epsilon: 0.0, fail=fail
    )

    def bounds(count):
        level = 1 - 2 * fail / 36
        return binomtest(count, 100).proportion_ci(level, method="exact")

    high_guesses = bounds(60).low - bounds(5).high
    low_guesses = bounds(95).low - bounds(40).high
    assert report.violation == pytest.approx(max(high_guesses, low_guesses))
    assert report.epsilon_at == 0


@pytest.mark.parametrize("leak", [math.inf, -math.inf])
@pytest.mark.parametrize("every", [1, 2])
def test_the_game_sees_infinite_scores(leak, every):
    event = calibrate_gaussian(1.0, 1e-5)
    leaking, other = event.scale * np.random.default_rng(0).normal(size=(2, 4000))
    leaking[::every] = leak
    scores = (leaking, other) if leak > 0 else (other, leaking)
    assert not distinguish_scores(*scores, event).passed
    other[::every] = leak
    assert distinguish_scores(leaking, other, event).passed


def test_false_alarms_of_the_game_are_as_rare_as_stated():
    # At fail = 0.5 sound noise would fail at most half of the time; the tests are
    # conservative.
    rng = np.random.default_rng(0)
    event = calibrate_gaussian(1.0, 1e-5)
    draws = event.scale * rng.normal(size=(100, 2, 1000)) + [[1], [0]]
    reports = [distinguish_scores(*pair, event, fail=0.5) for pair in draws]
    assert sum(not report.passed for report in reports) <= 50


def test_the_game_on_laplace_noise():
    draws = np.random.default_rng(0).laplace(size=(2, 20_000))
    event = calibrate_laplace(1.0)
    assert distinguish_scores(draws[0] + 1, draws[1], event).passed
    assert not distinguish_scores(draws[0] + 2, draws[1], event).passed


def test_the_game_sees_a_loss_in_either_direction():
    draws = np.random.default_rng(0).laplace(size=(2, 20_000))
    event = calibrate_laplace(1.0)
    one_sided = draws[1].copy()
    one_sided[::10] = 100.0  # never seen on the neighbour: an infinite loss
    assert not distinguish_scores(one_sided, draws[0], event).passed
    assert not distinguish_scores(-draws[0], -one_sided, event).passed


def test_the_game_takes_a_mechanism_and_its_profile():
    rng = np.random.default_rng(0)
    event = calibrate_gaussian(8.0, 1e-5)

    def profile(epsilon):
        return get_delta(event, max(epsilon, 1e-9))

    def release(row):
        return row + event.scale * rng.normal(size=3)

    def score(released):
        return released[0]

    row = np.array([1.0, 0, 0])
    no_row = np.zeros(3)
    sound = distinguish(release, row, no_row, score, profile, n_runs=2000)
    assert sound.passed
    assert sound.n_runs == 2000
    broken = distinguish(release, 2 * row, no_row, score, event, n_runs=2000)
    assert not broken.passed


@pytest.mark.parametrize("lengths", [(50, 50), (200, 199)])
def test_few_or_unequally_many_runs_are_refused(lengths):
    scores, scores_neighbour = map(np.zeros, lengths)
    with pytest.raises(ValueError, match="equally long, of at least 100"):
        distinguish_scores(scores, scores_neighbour, GaussianEvent(1.0))


def test_the_game_refuses_a_probability_of_failure_of_zero():
    with pytest.raises(ValueError, match="fail must be"):
        distinguish_scores(np.zeros(200), np.zeros(200), GaussianEvent(1.0), fail=0)


def test_reports_are_frozen():
    report = check_variance(np.ones(30), DiscreteGaussianEvent(1.0))
    with pytest.raises(AttributeError):
        report.passed = True
