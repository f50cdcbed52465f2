"""Which rows go, and what they weigh, as filters show it."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold

from skvalue.selection import ValueFilter, ValueFilteredRegressor

# Fractions that drop="auto" tries.
CANDIDATES = [0, 0.05, 0.1, 0.2, 0.3, 0.4]


class Counter(RegressorMixin, BaseEstimator):
    """Keeps the metadata of its fit, and the number of its rows."""

    def fit(self, X, y, sample_weight=None, **params):
        self.n_rows_ = len(X)
        self.weights_ = sample_weight
        self.params_ = params
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.fixture
def dropped(first_column):
    """Function: indices of the rows that are dropped, of rows of given values.

    Without y the targets are no classes.
    """

    def dropped(values, drop, y=None, groups=None):
        if y is None:
            y = np.linspace(0.1, 0.9, len(values))
        row_filter = ValueFilter(first_column(), drop=drop)
        row_filter.fit(np.c_[values], y, groups=groups)
        return row_filter.dropped_indices_.tolist()

    return dropped


@pytest.fixture
def weights(first_column):
    """Function: weights of rows of given values."""

    def weights(values, drop, fdr=0.1):
        model = ValueFilteredRegressor(
            Counter(), first_column(), drop, mode="weight", fdr=fdr
        )
        X = np.c_[values]
        y = np.linspace(0.1, 0.9, len(values))
        return model.fit(X, y, X_val=X, y_val=y).estimator_.weights_

    return weights


@pytest.mark.parametrize("n", [2, 7, 1437])
def test_a_fraction_is_rounded_down_and_leaves_a_row(n, dropped):
    for percentage in range(100):
        n_dropped = len(dropped(np.arange(n), percentage / 100))
        assert n_dropped == percentage * n // 100 < n
    assert len(dropped(np.arange(n), 0.999999)) < n


@pytest.mark.parametrize("count", [0, 1, 2, np.int64(2)])
def test_a_count_is_taken_as_it_is(dropped, count):
    assert len(dropped(np.arange(3), count)) == count


def test_lowest_of_equal_values_are_the_first(dropped):
    values = np.array([1.0, 0.0, 0.0, 2.0, 0.0])
    assert dropped(values, 2) == [1, 2]
    assert dropped(values, 0) == []


def test_every_class_keeps_its_best(dropped):
    values = np.array([-3.0, -2.0, -1.0, 5.0, -4.0])
    labels = np.array(["b", "b", "c", "a", "a"])
    message = (
        "drops all rows of class 'b' but that of the highest value. It selects the "
        "only row of class 'c', which is kept."
    )
    with pytest.warns(UserWarning, match=message):
        assert dropped(values, "negative", labels) == [0, 4]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dropped(values, 2, labels) == [0, 4]


def test_a_class_is_kept_with_its_whole_group(dropped):
    # Values of the groups: -1, 0.5 and -2.
    values = np.array([-0.5, -0.5, 0.5, -1.0, -1.0])
    labels = np.array([1, 2, 1, 2, 2])
    message = "drops all rows of class 2 but those of the group of the highest"
    with pytest.warns(UserWarning, match=message):
        assert dropped(values, "negative", labels, groups=[0, 0, 1, 2, 2]) == [3, 4]


def test_weights_rise_with_the_rank_to_one(weights):
    rng = np.random.default_rng(0)
    values = rng.normal(size=50)
    row_weights = weights(values, 0.3)
    by_value = row_weights[np.argsort(values)]
    np.testing.assert_allclose(by_value[:15], (np.arange(15) + 0.5) / 15)
    assert (by_value[15:] == 1).all()
    shuffled = rng.permutation(50)
    np.testing.assert_array_equal(weights(values[shuffled], 0.3), row_weights[shuffled])
    assert (weights(values, 0) == 1).all()


def test_equal_values_weigh_the_same(weights):
    assert weights([2.0, 1.0, 1.0, -1.0], 0.5).tolist() == [1, 1, 1, 0.25]
    assert weights([2.0, 1.0, 1.0, 0.0], 3).tolist() == [1, 2 / 3, 2 / 3, 1 / 6]


def test_significant_rows_rank_below_all_others(first_column):
    class Valuer(first_column):
        def harmful(self, fdr=0.1):
            return self.values_ > 1

    model = ValueFilteredRegressor(
        Counter(), Valuer(), drop="significant", mode="weight"
    )
    X = np.c_[np.arange(4.0)]
    y = np.linspace(0.1, 0.9, 4)
    model.fit(X, y, X_val=X, y_val=y)
    assert model.estimator_.weights_.tolist() == [1, 1, 0.25, 0.75]


class TestCarefulChoice:
    """The fraction that drop="auto" chooses by scores (n_candidates, n_splits)."""

    @pytest.fixture
    def choice(self, first_column):
        """Function: index of the chosen candidate."""
        fold_size = 20

        def choice(table):
            n_splits = len(table[0])
            if n_splits == 1:
                cv = [(np.arange(20), np.arange(20, 40))]
            else:
                cv = KFold(n_splits)
            n_rows = fold_size * max(n_splits, 2)

            # A fraction is known by the number of rows that it leaves.
            n_train = n_rows - fold_size
            candidates = {}
            for i, drop in enumerate(CANDIDATES):
                candidates[n_train - int(drop * n_train)] = i

            def score(model, X, y):
                candidate = candidates[model.n_rows_]
                split = 0
                if n_splits > 1:
                    split = int(X[0, 0]) // fold_size
                return table[candidate][split] if candidate < len(table) else -1e9

            X = np.c_[np.arange(float(n_rows))]
            y = np.linspace(0.1, 0.9, n_rows)
            model = ValueFilteredRegressor(
                Counter(), first_column(), drop="auto", scoring=score, cv=cv
            ).fit(X, y)
            assert model.drop_scores_.shape == (6, n_splits)
            return CANDIDATES.index(model.drop_)

        return choice

    def test_noise_mostly_drops_nothing(self, choice):
        rng = np.random.default_rng(0)
        choices = [choice(0.8 + 0.02 * rng.normal(size=(6, 5))) for _ in range(30)]
        assert np.mean(np.array(choices) == 0) > 0.65

    @pytest.mark.parametrize(
        ("gains", "index"),
        [
            ([[0] * 3, [0.05] * 3, [0.1] * 3, [0.1] * 3, [0.02] * 3], 2),
            # The last one is the best; the one before it is within one standard error.
            ([[0, 0, 0], [0.02, 0.03, 0.02], [0.1, 0.13, 0.1], [0.12, 0.11, 0.12]], 2),
            # Means of 0.1 with standard errors of 0.052 and 0.040: less, and more, than
            # two of them.
            ([[0, 0, 0], [0.01, 0.1, 0.19]], 0),
            ([[0, 0, 0], [0.03, 0.1, 0.17]], 1),
            ([[0] * 3] * 6, 0),
            # With one split.
            ([[0.5], [0.6], [0.6]], 1),
            ([[0.6], [0.6], [0.5]], 0),
        ],
    )
    def test_the_smallest_fraction_of_a_clear_gain_is_chosen(
        self, choice, gains, index
    ):
        gains = np.array(gains)
        scores = np.array([0.7, 0.75, 0.8])[: gains.shape[1]] + gains
        assert choice(scores) == index


def test_a_validation_set_as_long_as_the_rows_is_not_cut(first_column):
    params = {"verbose": True, "name": "abcd", "prices": [3, 4, 5, 6], "short": [1, 2]}
    validation = {
        "X_val": np.eye(4),
        "y_val": np.arange(4),
        "sample_weight_val": np.arange(4),
    }
    model = ValueFilteredRegressor(
        Counter(), first_column(), drop=1, row_metadata=["prices"]
    )
    X = np.c_[[5.0, 2.0, 3.0, 6.0]]
    y = np.array([0, 1, 1, 0])
    model.fit(X, y, **validation, sample_weight=np.arange(4), other=None, **params)
    assert model.sample_indices_.tolist() == [0, 2, 3]
    assert model.estimator_.weights_.tolist() == [0, 2, 3]
    assert model.estimator_.params_ == {**params, "prices": [3, 5, 6]}
    assert all(model.valuer_.seen_[name] is validation[name] for name in validation)
