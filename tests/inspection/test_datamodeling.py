import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPRegressor

from skvalue.inspection import LinearDatamodelingDisplay, linear_datamodeling_score


class Total(RegressorMixin, BaseEstimator):
    """A model whose utility is linear in the rows: it predicts by their sum."""

    def fit(self, X, y):
        self.total_ = X.sum(axis=0)
        return self

    def predict(self, X):
        return X @ self.total_


def at_each_point(model, X, y):
    return model.predict(X)


def at_all_points(model, X, y):
    return model.predict(X).mean()


@pytest.fixture
def data(rng):
    """X, y, X_val, y_val."""
    X = rng.normal(size=(40, 3))
    X_val = rng.normal(size=(7, 3))
    return X, X[:, 0], X_val, X_val[:, 0]


@pytest.mark.parametrize("groups", [None, np.arange(40) % 11], ids=["rows", "groups"])
@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.9])
class TestExactValues:
    """Values of a utility that is linear in the rows."""

    def values(self, data, groups):
        """Values of shape (n_validation, n_players)."""
        X, _, X_val, _ = data
        if groups is None:
            return X_val @ X.T
        sums = [X[groups == group].sum(axis=0) for group in range(11)]
        return X_val @ np.array(sums).T

    def test_they_predict_the_changes_at_each_point(self, data, groups, fraction):
        result = linear_datamodeling_score(
            self.values(data, groups),
            Total(),
            *data,
            scoring=at_each_point,
            fraction=fraction,
            groups=groups,
            random_state=0,
        )
        assert result.score == pytest.approx(1)
        assert result.score_error == pytest.approx(0, abs=1e-12)
        assert result.predicted.shape == (7, 50)
        np.testing.assert_allclose(result.changes, result.predicted, atol=1e-12)

    def test_their_means_predict_the_change_of_the_mean(self, data, groups, fraction):
        values = self.values(data, groups)
        result = linear_datamodeling_score(
            values.mean(axis=0),
            Total(),
            *data,
            scoring=at_all_points,
            fraction=fraction,
            groups=groups,
            random_state=0,
        )
        assert result.score == pytest.approx(1)
        assert result.score_error == pytest.approx(0, abs=1e-12)
        assert result.predicted.shape == (1, 50)
        np.testing.assert_allclose(result.changes, result.predicted, atol=1e-12)
        n_players = values.shape[1]
        n_removed = int(np.clip(round(fraction * n_players), 1, n_players - 1))
        assert set(result.removed.sum(axis=1)) == {n_removed}

    def test_their_opposites_have_a_score_of_minus_one(self, data, groups, fraction):
        result = linear_datamodeling_score(
            -self.values(data, groups),
            Total(),
            *data,
            scoring=at_each_point,
            fraction=fraction,
            groups=groups,
            random_state=0,
        )
        assert result.score == pytest.approx(-1)


def test_random_values_predict_nothing(data, rng):
    X, y, *_ = data
    X_val = rng.normal(size=(300, 3))
    result = linear_datamodeling_score(
        rng.normal(size=(300, 40)),
        Total(),
        X,
        y,
        X_val,
        X_val[:, 0],
        scoring=at_each_point,
        random_state=0,
    )
    assert abs(result.score) < 0.05
    assert 0.002 < result.score_error < 0.05


def test_constant_values_have_a_score_of_zero(data):
    result = linear_datamodeling_score(
        np.ones(40), Total(), *data, scoring=at_all_points
    )
    assert result.score == 0
    assert result.score_error == 0


@pytest.mark.slow
def test_error_is_that_of_the_draw_of_subsets(data, rng):
    values = data[2] @ data[0].T + 4 * rng.normal(size=(7, 40))
    scores = []
    errors = []
    for seed in range(150):
        result = linear_datamodeling_score(
            values,
            Total(),
            *data,
            scoring=at_each_point,
            n_subsets=40,
            random_state=seed,
        )
        scores.append(result.score)
        errors.append(result.score_error)
    assert np.mean(errors) == pytest.approx(np.std(scores), rel=0.2)


def test_default_utility_of_a_classifier_is_minus_the_log_loss(data):
    X, _, X_val, _ = data
    y = np.where(X[:, 0] > 0, "yes", "no")
    y_val = np.where(X_val[:, 0] > 0, "yes", "no")
    model = LogisticRegression()
    values = np.outer(np.ones(7), X[:, 1])
    result = linear_datamodeling_score(values, model, X, y, X_val, y_val, n_subsets=5)

    def losses(rows):
        probabilities = model.fit(X[rows], y[rows]).predict_proba(X_val)
        return -np.log(probabilities[np.arange(7), (y_val == "yes").astype(int)])

    changes = [losses(~removed) - losses(np.arange(40)) for removed in result.removed]
    changes = np.array(changes).T
    np.testing.assert_allclose(result.changes, changes, atol=1e-12)
    expected = [spearmanr(*pair)[0] for pair in zip(result.predicted, changes)]
    np.testing.assert_allclose(result.scores, expected, atol=1e-12)


def test_default_utility_of_a_validation_set_is_the_negative_log_loss(data):
    X, _, X_val, _ = data
    y = np.where(X[:, 0] > 0, "yes", "no")
    y_val = np.where(X_val[:, 0] > 0, "yes", "no")
    arguments = (X[:, 1], LogisticRegression(), X, y, X_val, y_val)
    options = {"n_subsets": 5, "random_state": 1}
    default = linear_datamodeling_score(*arguments, **options)
    by_name = linear_datamodeling_score(*arguments, **options, scoring="neg_log_loss")
    np.testing.assert_allclose(default.changes, by_name.changes, atol=1e-12)


def test_default_utility_of_a_regressor_is_minus_the_squared_error(data):
    # The targets are a column of X, so that every fit is exact.
    result = linear_datamodeling_score(
        np.ones(40), LinearRegression(), *data, n_subsets=3
    )
    assert np.abs(result.changes).max() < 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_n_jobs_changes_nothing(data):
    model = MLPRegressor(hidden_layer_sizes=(3,), max_iter=2, solver="lbfgs")
    arguments = (np.ones(40), model, *data)
    options = {"n_subsets": 4, "random_state": 3}
    alone = linear_datamodeling_score(*arguments, **options)
    with parallel_config("threading"):
        parallel = linear_datamodeling_score(*arguments, **options, n_jobs=2)
    np.testing.assert_array_equal(alone.changes, parallel.changes)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"values": np.ones(39)},
            r"values must have one entry per row, \(40,\), or one per",
        ),
        ({"values": np.ones((6, 40))}, r"\(7, 40\). Got shape \(6, 40\)"),
        ({"values": np.full(40, np.nan)}, "NaN"),
        ({"values": ["a"] * 40}, "values must hold numbers. Got strings"),
        ({"fraction": 1.0}, "fraction"),
        ({"n_subsets": 2}, "n_subsets"),
        (
            {"values": np.ones((7, 40)), "scoring": "r2"},
            "scoring must return one number per",
        ),
        ({"scoring": lambda model, X, y: np.nan}, "scoring must return finite numbers"),
        ({"groups": np.arange(40) % 4}, "one entry per group"),
        ({"y_val": np.ones(6)}, "inconsistent numbers of samples"),
    ],
)
def test_wrong_arguments_are_refused(data, changed, message):
    X, y, X_val, y_val = data
    arguments = {
        "values": np.ones(40),
        "X": X,
        "y": y,
        "X_val": X_val,
        "y_val": y_val,
        **changed,
    }
    with pytest.raises(ValueError, match=message):
        linear_datamodeling_score(estimator=Total(), **arguments)


def test_labels_of_points_that_y_lacks_are_refused(data):
    X, _, X_val, _ = data
    y = np.arange(40) % 2
    y_val = np.full(7, 2)
    with pytest.raises(ValueError, match="y_val must hold only labels that y has. Got"):
        linear_datamodeling_score(np.ones(40), LogisticRegression(), X, y, X_val, y_val)


def test_a_classifier_without_probabilities_is_refused(data):
    X, _, X_val, _ = data
    y = np.arange(40) % 2
    message = "estimator must have predict_proba, or scoring"
    with pytest.raises(ValueError, match=message):
        linear_datamodeling_score(np.ones(40), RidgeClassifier(), X, y, X_val, y[:7])


def test_the_display_of_points_is_a_histogram_of_scores(data, rng):
    values = rng.normal(size=(7, 40))
    result = linear_datamodeling_score(
        values, Total(), *data, scoring=at_each_point, random_state=0
    )
    display = LinearDatamodelingDisplay(result).plot()
    assert display.points_ is None
    assert sum(bar.get_height() for bar in display.bars_) == 7
    assert display.mean_line_.get_xdata() == pytest.approx([result.score] * 2)
    title = f"LDS = {result.score:.2f} ± {result.score_error:.2f}"
    assert display.ax_.get_title() == title


def test_the_display_of_a_validation_set_has_a_point_for_each_subset(data, rng):
    values = rng.normal(size=40)
    result = linear_datamodeling_score(
        values, Total(), *data, scoring=at_all_points, random_state=0
    )
    display = LinearDatamodelingDisplay(result).plot()
    assert display.bars_ is None
    assert display.mean_line_ is None
    points = np.c_[result.predicted[0], result.changes[0]]
    np.testing.assert_allclose(display.points_.get_offsets(), points)
    title = f"LDS = {result.score:.2f} ± {result.score_error:.2f}"
    assert display.ax_.get_title() == title
