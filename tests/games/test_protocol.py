"""The protocol of games: masks, memo, counters; and games with known values."""

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


def all_masks(n):
    return np.array(list(product([False, True], repeat=n)))


def enumerated(game, semivalue="shapley"):
    """Values by all coalitions, evaluated in one call."""
    table = dict(
        zip(
            map(tuple, all_masks(game.n_players)),
            game.utility(all_masks(game.n_players)),
        )
    )

    def utility(players):
        return table[tuple(i in players for i in range(game.n_players))]

    return enumerate_semivalue(utility, game.n_players, semivalue)


def test_airport():
    costs = np.array([1.0, 2.0, 4.0, 7.0])
    sections = np.diff(np.r_[0, costs]) / np.arange(4, 0, -1)
    np.testing.assert_allclose(enumerated(airport_game(costs)), np.cumsum(sections))


def test_voting():
    np.testing.assert_allclose(
        enumerated(voting_game([4, 2, 1], 5), "banzhaf"), [0.75, 0.25, 0.25]
    )


def test_gloves():
    np.testing.assert_allclose(enumerated(gloves_game(1, 2)), [2 / 3, 1 / 6, 1 / 6])


class Counting:
    """The sum of the players' numbers, and how many coalitions were evaluated."""

    def __init__(self):
        self.evaluated = 0

    def __call__(self, masks):
        self.evaluated += len(masks)
        return masks @ np.arange(masks.shape[1], dtype=float)


@pytest.mark.parametrize("n", [5, 200])
def test_memo_computes_once(n, rng):
    function = Counting()
    game = FunctionGame(function, n, empty_utility=0.0)
    masks = rng.random((20, n)) < 0.5
    masks = np.concatenate([masks, masks, np.zeros((1, n), dtype=bool)])
    expected = masks @ np.arange(n)
    for _ in range(2):
        np.testing.assert_array_equal(game.utility(masks), expected)
    distinct = len(np.unique(masks[masks.any(axis=1)], axis=0))
    assert function.evaluated == distinct
    assert game.n_evaluations == distinct
    assert game.n_failed == 0


def test_memo_is_bounded(rng):
    function = Counting()
    game = FunctionGame(function, 30, empty_utility=0.0, cache_size=10)
    masks = rng.random((25, 30)) < 0.5
    np.testing.assert_array_equal(game.utility(masks), masks @ np.arange(30))
    assert len(game._memo) == 10
    game.utility(masks[-10:])
    assert function.evaluated == 25
    game.utility(masks[:1])
    assert function.evaluated == 26


def test_no_memo(rng):
    function = Counting()
    game = FunctionGame(function, 4, empty_utility=0.0, cache_size=0)
    game.utility(np.ones((3, 4), dtype=bool))
    assert function.evaluated == game.n_evaluations == 3


def test_the_empty_coalition_is_not_computed():
    function = Counting()
    game = FunctionGame(function, 4, empty_utility=-7)
    assert game.utility(np.zeros((2, 4), dtype=bool)).tolist() == [-7, -7]
    assert game.utility(np.zeros((0, 4), dtype=bool)).shape == (0,)
    assert function.evaluated == game.n_evaluations == 0
    assert FunctionGame(function, 4).empty_utility == 0


@pytest.mark.parametrize(
    "masks", [np.ones((2, 3), dtype=bool), np.ones(4, dtype=bool), np.ones((2, 4))]
)
def test_bad_masks(masks):
    game = airport_game([1, 2, 3, 4])
    with pytest.raises(
        ValueError, match=r"masks must be a bool array of shape \(m, 4\)"
    ):
        game.utility(masks)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_function_that_gives_no_number(value):
    game = FunctionGame(lambda masks: np.full(len(masks), value), 3, empty_utility=0)
    with pytest.raises(ValueError, match=f"finite. Got {value} for a coalition of 2"):
        game.utility([[True, False, True]])


def test_function_of_the_wrong_shape():
    game = FunctionGame(lambda masks: np.zeros(3), 3, empty_utility=0)
    with pytest.raises(
        ValueError, match=r"one utility per coalition: shape \(1,\). Got \(3,\)"
    ):
        game.utility([[True, False, True]])


def test_cost_leaves_no_trace():
    function = Counting()
    game = FunctionGame(function, 10, empty_utility=0)
    assert game.evaluation_cost(3) > 0
    assert game.n_evaluations == 0
    assert not game._memo
    assert function.evaluated > 2000  # of a fast function
    with pytest.raises(ValueError, match="size must be between 1 and 10. Got 11"):
        game.evaluation_cost(11)


@pytest.mark.parametrize("nested", [False, True])
def test_coalitions_that_are_measured(nested):
    evaluated = []

    def function(masks):
        evaluated.append(masks)
        return np.zeros(len(masks))

    FunctionGame(function, 30, empty_utility=0).evaluation_cost(10, nested)
    masks = evaluated[1]
    if nested:
        assert masks.sum(axis=1).tolist() == [9, 10, 11]
        assert (masks[:-1] <= masks[1:]).all()
        again = FunctionGame(function, 30, empty_utility=0)._draw(70, 10, nested=True)
        assert again.sum(axis=1).tolist() == [
            *range(1, 31),
            *range(1, 31),
            *range(1, 11),
        ]
    else:
        assert masks.sum(axis=1).tolist() == [10] * 3
        assert len(np.unique(masks, axis=0)) == 3


def test_the_empty_coalition_has_one_finite_utility():
    with pytest.raises(
        ValueError, match=r"one utility per coalition: shape \(1,\). Got \(\)"
    ):
        FunctionGame(lambda masks: 1.0, 3)
    for utility in (np.nan, -np.inf):
        with pytest.raises(ValueError, match="empty_utility must be finite. Got"):
            FunctionGame(lambda masks: masks.sum(axis=1), 3, empty_utility=utility)


def test_warning_above_a_tenth():
    game = airport_game([1, 2, 3])
    game.n_evaluations, game.n_failed = 100, 10
    assert failed_warnings([game]) == []
    game.n_failed = 11
    assert failed_warnings([game])[0][0].startswith(
        "11 of 100 coalitions could not be trained"
    )
