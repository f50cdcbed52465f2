import numpy as np
import pytest

from skvalue.selection._auto import DROP_CANDIDATES, careful_choice
from skvalue.selection._drop import drop_count, keep_every_class, lowest, rank_weights
from skvalue.selection._metadata import take_rows


@pytest.mark.parametrize("n", [1, 7, 100, 1437])
def test_a_fraction_is_rounded_down_and_leaves_a_row(n):
    for hundredth in range(100):
        assert drop_count(hundredth / 100, n) == hundredth * n // 100 < n
    assert drop_count(0.999999, n) < n


def test_a_count_is_taken_as_it_is():
    assert [drop_count(count, 3) for count in (0, 1, 2, np.int64(2))] == [0, 1, 2, 2]


def test_lowest_of_equal_values_are_the_first():
    values = np.array([1.0, 0.0, 0.0, 2.0, 0.0])
    assert np.flatnonzero(lowest(values, 2)).tolist() == [1, 2]
    assert lowest(values, 0).sum() == 0


def test_every_class_keeps_its_best():
    values = np.array([-3.0, -2.0, -1.0, 5.0, -4.0])
    labels = np.array(["b", "b", "c", "a", "a"])
    dropped, saved = keep_every_class(values < 0, values, labels)
    assert saved == ["b", "c"]
    assert np.flatnonzero(dropped).tolist() == [0, 4]
    dropped, saved = keep_every_class(values < -2.5, values, labels)
    assert saved == []
    assert np.flatnonzero(dropped).tolist() == [0, 4]


def test_a_class_is_kept_with_its_whole_group():
    players = np.array([0, 0, 1, 2, 2])
    labels = np.array([1, 2, 1, 2, 2])
    dropped, saved = keep_every_class(
        np.array([True, False, True]), np.array([-1.0, 0.5, -2.0]), labels, players
    )
    assert saved == [2]
    assert dropped.tolist() == [False, False, True]


def test_weights_rise_with_the_rank_to_one():
    rng = np.random.default_rng(0)
    values = rng.normal(size=50)
    weights = rank_weights(values, 0.3)
    by_value = weights[np.argsort(values)]
    np.testing.assert_allclose(by_value[:15], (np.arange(15) + 0.5) / 15)
    assert (by_value[15:] == 1).all()
    shuffled = rng.permutation(50)
    np.testing.assert_array_equal(rank_weights(values[shuffled], 0.3), weights[shuffled])
    assert (rank_weights(values, 0) == 1).all()


def test_equal_values_weigh_the_same():
    weights = rank_weights(np.array([2.0, 1.0, 1.0, 0.0]), 1.0)
    assert weights.tolist() == [0.875, 0.5, 0.5, 0.125]


def test_rows_named_rank_below_all_others():
    weights = rank_weights(np.arange(4.0), 0.5, np.array([False, False, True, True]))
    assert weights.tolist() == [1, 1, 0.25, 0.75]


class TestCarefulChoice:
    def test_noise_does_not_drop(self):
        rng = np.random.default_rng(0)
        picks = [
            careful_choice(0.8 + 0.02 * rng.normal(size=(len(DROP_CANDIDATES), 5)))
            for _ in range(500)
        ]
        assert np.mean(np.array(picks) == 0) > 0.65

    def test_a_clear_gain_drops_as_little_as_will_do(self):
        base = np.array([0.7, 0.75, 0.8])
        scores = np.array([base, base + 0.05, base + 0.1, base + 0.1, base + 0.02])
        assert careful_choice(scores) == 2

    def test_within_one_error_of_the_best_is_enough(self):
        base = np.array([0.7, 0.75, 0.8])
        gains = np.array([[0.0, 0, 0], [0.02, 0.03, 0.02], [0.1, 0.13, 0.1], [0.12, 0.11, 0.12]])
        assert careful_choice(base + gains) == 2
        assert np.argmax(gains.mean(axis=1)) == 3

    def test_a_gain_of_less_than_two_errors_is_none(self):
        # Means 0.1, standard errors 0.052 and 0.040.
        assert careful_choice(np.array([[0, 0, 0], [0.01, 0.1, 0.19]])) == 0
        assert careful_choice(np.array([[0, 0, 0], [0.03, 0.1, 0.17]])) == 1

    def test_ties_take_the_smaller(self):
        assert careful_choice(np.full((6, 5), 0.9)) == 0

    def test_one_split(self):
        assert careful_choice(np.array([[0.5], [0.6], [0.6]])) == 1
        assert careful_choice(np.array([[0.6], [0.6], [0.5]])) == 0


def test_a_validation_set_as_long_as_the_rows_is_not_cut():
    params = {
        "sample_weight": np.arange(4),
        "X_val": np.eye(4),
        "y_val": np.arange(4),
        "sample_weight_val": np.arange(4),
        "verbose": True,
        "name": "abcd",
        "other": None,
        "short": [1, 2],
    }
    cut = take_rows(params, np.array([3, 1]), 4)
    assert cut["sample_weight"].tolist() == [3, 1]
    assert {name for name in params if cut[name] is not params[name]} == {"sample_weight"}
