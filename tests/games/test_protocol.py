"""The protocol of games: masks, memory, counters; and games with known values."""

from itertools import product

import numpy as np
import pytest

from skvalue.games import (
    FunctionGame,
    airport_game,
    failed_warnings,
    gloves_game,
    voting_game,
)
from skvalue.semivalues import enumerate_semivalue

# Games with known values --------------------------------------------------------------


def enumerated(game, semivalue="shapley"):
    """Values by all coalitions, evaluated in one call."""
    n = game.n_players
    masks = np.array(list(product([False, True], repeat=n)))
    utilities = dict(zip(map(tuple, masks), game.utility(masks)))

    def utility(players):
        return utilities[tuple(i in players for i in range(n))]

    return enumerate_semivalue(utility, n, semivalue)


def test_players_share_the_sections_of_the_runway_that_they_need():
    costs = np.array([1.0, 2.0, 4.0, 7.0])
    sections = np.diff(np.r_[0, costs]) / np.arange(4, 0, -1)
    np.testing.assert_allclose(enumerated(airport_game(costs)), np.cumsum(sections))


def test_banzhaf_values_of_a_vote():
    values = enumerated(voting_game([4, 2, 1], 5), "banzhaf")
    np.testing.assert_allclose(values, [0.75, 0.25, 0.25])


def test_the_scarce_glove_has_most_of_the_value():
    np.testing.assert_allclose(enumerated(gloves_game(1, 2)), [2 / 3, 1 / 6, 1 / 6])


# Memory -------------------------------------------------------------------------------


class Counting:
    """The sum of the players' numbers, and how many coalitions were evaluated."""

    def __init__(self):
        self.n_evaluated = 0

    def __call__(self, masks):
        self.n_evaluated += len(masks)
        return masks @ np.arange(masks.shape[1], dtype=float)


@pytest.mark.parametrize("n", [5, 200])
def test_a_coalition_is_computed_once(n, rng):
    function = Counting()
    game = FunctionGame(function, n, empty_utility=0.0)
    masks = rng.random((20, n)) < 0.5
    masks = np.concatenate([masks, masks, np.zeros((1, n), dtype=bool)])
    expected = masks @ np.arange(n)
    for _ in range(2):
        np.testing.assert_array_equal(game.utility(masks), expected)
    n_distinct = len(np.unique(masks[masks.any(axis=1)], axis=0))
    assert function.n_evaluated == n_distinct
    assert game.n_evaluations == n_distinct
    assert game.n_failed == 0


def test_the_latest_utilities_are_kept(rng):
    function = Counting()
    game = FunctionGame(function, 30, empty_utility=0.0, cache_size=10)
    masks = rng.random((25, 30)) < 0.5
    np.testing.assert_array_equal(game.utility(masks), masks @ np.arange(30))
    assert len(game._memo) == 10
    game.utility(masks[-10:])
    assert function.n_evaluated == 25
    game.utility(masks[:1])
    assert function.n_evaluated == 26


def test_nothing_is_kept_with_a_cache_size_of_zero(rng):
    function = Counting()
    game = FunctionGame(function, 4, empty_utility=0.0, cache_size=0)
    game.utility(np.ones((3, 4), dtype=bool))
    assert function.n_evaluated == game.n_evaluations == 3


def test_the_empty_coalition_is_not_computed():
    function = Counting()
    game = FunctionGame(function, 4, empty_utility=-7)
    assert game.utility(np.zeros((2, 4), dtype=bool)).tolist() == [-7, -7]
    assert game.utility(np.zeros((0, 4), dtype=bool)).shape == (0,)
    assert function.n_evaluated == game.n_evaluations == 0


def test_the_empty_utility_is_that_of_the_function_by_default():
    assert FunctionGame(Counting(), 4).empty_utility == 0


# Refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "masks",
    [np.ones((2, 3), dtype=bool), np.ones(4, dtype=bool), np.ones((2, 4))],
    ids=["columns", "dimensions", "dtype"],
)
def test_masks_of_another_shape_or_type_are_refused(masks):
    game = airport_game([1, 2, 3, 4])
    message = r"masks must be a bool array of shape \(m, 4\)"
    with pytest.raises(ValueError, match=message):
        game.utility(masks)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_utilities_that_are_not_finite_are_refused(value):
    game = FunctionGame(lambda masks: np.full(len(masks), value), 3, empty_utility=0)
    with pytest.raises(ValueError, match=f"finite. Got {value} for a coalition of 2"):
        game.utility([[True, False, True]])


def test_functions_of_another_number_of_utilities_are_refused():
    game = FunctionGame(lambda masks: np.zeros(3), 3, empty_utility=0)
    message = r"one utility per coalition: shape \(1,\). Got \(3,\)"
    with pytest.raises(ValueError, match=message):
        game.utility([[True, False, True]])


def test_a_function_that_returns_a_number_is_refused():
    message = r"one utility per coalition: shape \(1,\). Got \(\)"
    with pytest.raises(ValueError, match=message):
        FunctionGame(lambda masks: 1.0, 3)


@pytest.mark.parametrize("utility", [np.nan, -np.inf])
def test_empty_utilities_that_are_not_finite_are_refused(utility):
    with pytest.raises(ValueError, match="empty_utility must be finite, .* Got"):
        FunctionGame(lambda masks: masks.sum(axis=1), 3, empty_utility=utility)


# Costs and failures -------------------------------------------------------------------


def test_a_measurement_of_the_cost_leaves_no_trace():
    function = Counting()
    game = FunctionGame(function, 10, empty_utility=0)
    assert game.evaluation_cost(3) > 0
    assert game.n_evaluations == 0
    assert not game._memo
    assert function.n_evaluated > 2000  # of a fast function


def test_the_cost_of_more_players_than_there_are_is_refused():
    game = FunctionGame(Counting(), 10, empty_utility=0)
    with pytest.raises(ValueError, match="size must be between 1 and 10. Got 11"):
        game.evaluation_cost(11)


@pytest.fixture
def recorded():
    """A game of 30 players, and the masks that it has evaluated."""
    masks_of_calls = []

    def function(masks):
        masks_of_calls.append(masks)
        return np.zeros(len(masks))

    return FunctionGame(function, 30, empty_utility=0), masks_of_calls


def test_the_cost_is_measured_on_random_coalitions_of_the_size(recorded):
    game, masks_of_calls = recorded
    game.evaluation_cost(10, nested=False)
    masks = masks_of_calls[1]
    assert masks.sum(axis=1).tolist() == [10] * 3
    assert len(np.unique(masks, axis=0)) == 3


def test_the_cost_of_nested_coalitions_is_measured_on_prefixes(recorded):
    game, masks_of_calls = recorded
    game.evaluation_cost(10, nested=True)
    masks = masks_of_calls[1]
    assert masks.sum(axis=1).tolist() == [9, 10, 11]
    assert (masks[:-1] <= masks[1:]).all()


def test_more_prefixes_than_players_are_those_of_several_orders(recorded):
    game, _ = recorded
    sizes = game._draw(70, 10, nested=True).sum(axis=1)
    assert sizes.tolist() == [*range(1, 31), *range(1, 31), *range(1, 11)]


def test_more_than_a_tenth_of_failed_coalitions_warn():
    game = airport_game([1, 2, 3])
    game.n_evaluations = 100
    game.n_failed = 10
    assert failed_warnings([game]) == []
    game.n_failed = 11
    ((message, _),) = failed_warnings([game])
    assert message.startswith("11 of 100 coalitions could not be trained")
