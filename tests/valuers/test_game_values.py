"""`game_values`: semivalues of any game that is a function of coalitions."""

import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from skvalue import SemivalueValuer, game_values
from skvalue.estimation import choose_sampler
from skvalue.exceptions import ImpreciseValuesWarning
from skvalue.games import airport_game
from skvalue.semivalues import tabulated_semivalue

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1)]


def all_masks(n):
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def prompt_quality(masks):
    """A game without a model: the quality of a prompt with some of its passages."""
    n = masks.shape[1]
    strengths = np.linspace(0.2, 1.2, n)
    quality = 1 - np.exp(-(masks @ strengths))
    # The first two passages say the same; the last one distracts from the third.
    quality = quality - 0.3 * (masks[:, 0] & masks[:, 1])
    return quality - 0.1 * (masks[:, 2] & masks[:, n - 1])


class Counted:
    """A utility that keeps the coalitions it was asked for."""

    def __init__(self, utility):
        self.utility = utility
        self.asked = []

    def __call__(self, masks):
        assert masks.dtype == bool
        self.asked.extend(map(bytes, masks))
        return self.utility(masks)


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("n", [1, 2, 6])
def test_few_players_are_enumerated(n, semivalue):
    utilities = np.random.default_rng(n).normal(size=2**n)
    result = game_values(
        lambda masks: utilities[masks @ 2 ** np.arange(n)], n, semivalue
    )
    np.testing.assert_allclose(result.values, tabulated_semivalue(utilities, semivalue))
    assert (result.errors == 0).all()
    assert (result.sampler, result.n_evaluations) == ("exact", 2**n)
    assert (result.utility, result.empty_utility) == (utilities[-1], utilities[0])


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_a_few_evaluations_are_enough(semivalue):
    n = 12
    exact = tabulated_semivalue(prompt_quality(all_masks(n)), semivalue)
    result = game_values(
        prompt_quality, n, semivalue, max_evaluations=150, random_state=0
    )
    assert result.sampler == "process"
    assert np.abs(result.values - exact).max() < 0.15 * exact.std()
    factor = 5 if isinstance(semivalue, tuple) else 4
    assert (np.abs(result.values - exact) <= factor * result.errors + 1e-6).all()


@pytest.mark.parametrize("limit", [15, 30, 77, 200])
@pytest.mark.parametrize("sampler", ["auto", "stratified", "antithetic"])
def test_no_coalition_is_evaluated_twice_or_beyond_the_limit(limit, sampler):
    if sampler == "stratified" and limit < 40:
        pytest.skip("a block has 32 coalitions")
    if sampler == "antithetic" and limit < 30:
        pytest.skip("a replicate has 22 coalitions")
    utility = Counted(prompt_quality)
    result = game_values(
        utility, 12, sampler=sampler, max_evaluations=limit, random_state=0
    )
    assert len(set(utility.asked)) == len(utility.asked) <= limit
    if sampler == "auto":
        assert len(utility.asked) == result.n_evaluations == limit


@pytest.mark.parametrize(
    ("n", "semivalue", "limit", "sampler"),
    [
        (9, "shapley", None, "process"),
        (8, "shapley", None, "exact"),
        (12, "shapley", 4096, "exact"),
        (12, "shapley", 4095, "process"),
        (20, "banzhaf", 4097, "process"),
        (20, "banzhaf", 4098, "subsets"),
        (20, "shapley", 5000, "stratified"),
        (32, "shapley", 100, "process"),
        (33, "shapley", None, "stratified"),
    ],
)
def test_the_sampler_follows_from_players_and_the_limit(n, semivalue, limit, sampler):
    if sampler == "process" and (limit or 0) > 2000:
        # Such a fit takes seconds.
        assert choose_sampler(semivalue, n, limit - 1, True) == sampler
        return
    game = airport_game(np.linspace(1, 2, n))
    result = game_values(
        game.utility, n, semivalue, max_evaluations=limit, random_state=0
    )
    assert result.sampler == sampler


def test_equal_seeds_have_equal_bits():
    options = {"n_players": 12, "max_evaluations": 60}
    one = game_values(prompt_quality, **options, random_state=3)
    other = game_values(prompt_quality, **options, random_state=3)
    different = game_values(prompt_quality, **options, random_state=4)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.errors, other.errors)
    assert (one.values != different.values).any()


UTILITIES = prompt_quality(all_masks(9))


class PromptModel(RegressorMixin, BaseEstimator):
    """Rows are players of 9, by number; a "score" is the quality of those in a fit."""

    def fit(self, X, y):
        self.code_ = int((2 ** X[:, 0]).sum())
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return float(UTILITIES[self.code_])


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.SameRowsWarning")
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
def test_a_valuer_of_the_same_game_has_the_same_bits(semivalue):
    result = game_values(
        lambda masks: UTILITIES[masks @ 2 ** np.arange(9)],
        9,
        semivalue,
        sampler="process",
        max_evaluations=81,
        random_state=0,
    )
    rows = np.arange(9.0)[:, None]
    # The limit of a valuer does not count the empty coalition.
    valuer = SemivalueValuer(
        PromptModel(),
        semivalue=semivalue,
        sampler="process",
        max_evaluations=80,
        empty_utility=UTILITIES[0],
        random_state=0,
    ).fit(rows, rows[:, 0], X_val=rows, y_val=rows[:, 0])
    assert valuer.n_evaluations_ == result.n_evaluations - 1
    np.testing.assert_array_equal(valuer.values_, result.values)
    np.testing.assert_array_equal(valuer.values_error_, result.errors)


def test_interactions_of_pairs_are_those_of_the_game():
    n = 10
    exact = game_values(
        prompt_quality, n, sampler="exact", max_evaluations=2**n, interactions=True
    )
    result = game_values(
        prompt_quality, n, max_evaluations=200, interactions=True, random_state=0
    )
    spread = exact.interactions.std()
    assert np.abs(result.interactions - exact.interactions).max() < 0.5 * spread
    # The two passages that say the same stand out.
    assert np.argmin(result.interactions) == 1
    assert game_values(prompt_quality, n, max_evaluations=60).interactions is None


def test_the_result_is_frozen():
    result = game_values(prompt_quality, 5)
    with pytest.raises(FrozenInstanceError):
        result.values = None


# Refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_evaluations": 13}, "at least 14 for sampler='process'.*Got 13"),
        (
            {"sampler": "auto", "max_evaluations": 10},
            "at least 13 for sampler='auto', here 'permutation', and 12",
        ),
        ({"sampler": "marginals"}, "'sampler' parameter"),
        ({"n_players": 0}, "'n_players' parameter"),
        ({"semivalue": "owen"}, "semivalue must be"),
        (
            {"sampler": "stratified", "interactions": True},
            "interactions must be False.*'stratified'",
        ),
        (
            {"n_players": 33, "sampler": "process"},
            "at most 32 players.*Got 33",
        ),
        (
            {"n_players": 13, "sampler": "process", "max_evaluations": 5000},
            "max_evaluations must be at most 4,096",
        ),
    ],
)
def test_parameters_that_do_not_fit_are_refused(options, message):
    options = {"n_players": 12, "sampler": "process", **options}
    with pytest.raises(ValueError, match=message):
        game_values(prompt_quality, **options)


@pytest.mark.parametrize(
    ("utility", "message"),
    [
        (lambda masks: np.zeros(3), "one utility per coalition"),
        (lambda masks: np.full(len(masks), np.nan), "must be finite"),
        (
            lambda masks: np.where(masks.sum(axis=1) == 5, np.inf, 0.0),
            "Utilities must be finite, .* Got inf for a coalition of 5 players",
        ),
        (
            lambda masks: 1e200 * masks.sum(axis=1),
            r"at most 1e150 in absolute value.* Got .*e\+20. for a coalition",
        ),
        (lambda masks: 1e200 + masks.sum(axis=1), "empty_utility must .*1e150"),
        (lambda masks: masks.sum(axis=1) + 1j, "a real number.*Got complex ones"),
        (
            lambda masks: np.ma.array(masks.sum(axis=1), mask=masks.sum(axis=1) == 3),
            "of every coalition. Got masked ones",
        ),
        (lambda members: float(members.sum()), r"a bool array with .* Got \(\)"),
    ],
)
def test_utilities_that_are_none_are_refused(utility, message):
    with pytest.raises(ValueError, match=message):
        game_values(utility, 12, max_evaluations=60)


@pytest.mark.parametrize("exponent", [-1000, -600, -3, 3, 480])
def test_values_have_the_unit_of_the_utility(exponent):
    game = {"n_players": 8, "max_evaluations": 60, "random_state": 0}
    values = game_values(prompt_quality_of(1.0), **game).values
    scaled = game_values(prompt_quality_of(2.0**exponent), **game)
    assert scaled.sampler == "process"
    assert np.array_equal(scaled.values, 2.0**exponent * values)


def prompt_quality_of(unit):
    """The root of a sum over eight players, in a unit."""
    weights = np.arange(1.0, 9.0)
    return lambda masks: unit * np.sqrt(masks @ weights)


SMALL = pytest.mark.parametrize(
    ("scale", "sampler", "is_warned"),
    [
        (1e-160, "process", True),
        (1e-160, "stratified", True),
        (1e-200, "subsets", True),
        (1e-200, "permutation", True),
        (1e-310, "antithetic", True),
        (1e-160, "exact", False),
        (1e-140, "stratified", False),
        (0.0, "stratified", False),
    ],
)


@SMALL
def test_errors_of_utilities_whose_squares_are_zero_are_warned_of(
    scale, sampler, is_warned
):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        game_values(
            lambda masks: scale * prompt_quality(masks),
            12,
            sampler=sampler,
            max_evaluations=4096 if sampler == "exact" else 400,
            random_state=0,
        )
    of_squares = [w for w in caught if "the squares of such" in str(w.message)]
    assert [w.category for w in of_squares] == [ImpreciseValuesWarning] * is_warned
