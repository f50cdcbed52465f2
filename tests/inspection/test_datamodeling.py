import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPRegressor

from skvalue.inspection import LinearDatamodelingDisplay, linear_datamodeling_score


class Total(RegressorMixin, BaseEstimator):
    """A model whose utility is linear in the rows: the sum of the rows that it was
    trained on."""

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
    X, X_val = rng.normal(size=(40, 3)), rng.normal(size=(7, 3))
    return X, X[:, 0], X_val, X_val[:, 0]


@pytest.mark.parametrize("groups", [None, np.arange(40) % 11], ids=["rows", "groups"])
@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.9])
def test_exact_linear_datamodel(data, groups, fraction):
    X, _, X_val, _ = data
    players = (
        X
        if groups is None
        else np.array([X[groups == g].sum(axis=0) for g in range(11)])
    )
    values = X_val @ players.T
    options = {"fraction": fraction, "groups": groups, "random_state": 0}
    by_point = linear_datamodeling_score(
        values, Total(), *data, scoring=at_each_point, **options
    )
    mean = values.mean(axis=0)
    whole = linear_datamodeling_score(
        mean, Total(), *data, scoring=at_all_points, **options
    )
    for result, shape in [(by_point, (7, 50)), (whole, (1, 50))]:
        assert result.score == pytest.approx(1)
        assert result.score_error == pytest.approx(0, abs=1e-12)
        assert result.predicted.shape == shape
        np.testing.assert_allclose(result.changes, result.predicted, atol=1e-12)
    n = len(players)
    assert set(whole.removed.sum(axis=1)) == {
        int(np.clip(round(fraction * n), 1, n - 1))
    }
    opposite = linear_datamodeling_score(
        -values, Total(), *data, scoring=at_each_point, **options
    )
    assert opposite.score == pytest.approx(-1)


def test_random_values_predict_nothing(data, rng):
    X, y, *_ = data
    X_val = rng.normal(size=(300, 3))
    result = linear_datamodeling_score(
        rng.normal(size=(300, 40)), Total(), X, y, X_val, X_val[:, 0], scoring=at_each_point,
        random_state=0,
    )  # fmt: skip
    assert abs(result.score) < 0.05
    assert 0.002 < result.score_error < 0.05
    constant = linear_datamodeling_score(
        np.ones(40), Total(), *data, scoring=at_all_points
    )
    assert constant.score == constant.score_error == 0


@pytest.mark.slow
def test_error_is_that_of_the_draw_of_subsets(data, rng):
    values = data[2] @ data[0].T + 4 * rng.normal(size=(7, 40))
    options = {"scoring": at_each_point, "n_subsets": 40}
    found = [
        linear_datamodeling_score(values, Total(), *data, **options, random_state=seed)
        for seed in range(150)
    ]
    spread = np.std([result.score for result in found])
    assert np.mean([result.score_error for result in found]) == pytest.approx(
        spread, rel=0.2
    )


def test_loss_of_a_classifier_by_hand(data):
    X, _, X_val, _ = data
    y, y_val = (
        np.where(X[:, 0] > 0, "yes", "no"),
        np.where(X_val[:, 0] > 0, "yes", "no"),
    )
    model = LogisticRegression()
    values = np.outer(np.ones(7), X[:, 1])
    result = linear_datamodeling_score(values, model, X, y, X_val, y_val, n_subsets=5)

    def loss(rows):
        p = model.fit(X[rows], y[rows]).predict_proba(X_val)
        return -np.log(p[np.arange(7), (y_val == "yes").astype(int)])

    changes = np.array([loss(~gone) - loss(np.arange(40)) for gone in result.removed]).T
    np.testing.assert_allclose(result.changes, changes, atol=1e-12)
    expected = [spearmanr(a, b)[0] for a, b in zip(result.predicted, changes)]
    np.testing.assert_allclose(result.scores, expected, atol=1e-12)
    rows, options = (
        (X[:, 1], model, X, y, X_val, y_val),
        {"n_subsets": 5, "random_state": 1},
    )
    mean = linear_datamodeling_score(*rows, **options)
    same = linear_datamodeling_score(*rows, **options, scoring="neg_log_loss")
    np.testing.assert_allclose(mean.changes, same.changes, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_loss_of_a_regressor_jobs_and_seeds(data):
    result = linear_datamodeling_score(
        np.ones(40), LinearRegression(), *data, n_subsets=3
    )
    assert np.abs(result.changes).max() < 1e-12  # the targets are a column of X
    model = MLPRegressor(hidden_layer_sizes=(3,), max_iter=2, solver="lbfgs")
    options = {"n_subsets": 4, "random_state": 3}
    with parallel_config("threading"):
        one, two = (
            linear_datamodeling_score(
                np.ones(40), model, *data, **options, n_jobs=n_jobs
            )
            for n_jobs in (1, 2)
        )
    np.testing.assert_array_equal(one.changes, two.changes)


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
def test_wrong_arguments(data, changed, message):
    given = (
        dict(zip(["X", "y", "X_val", "y_val"], data))
        | {"values": np.ones(40)}
        | changed
    )
    with pytest.raises(ValueError, match=message):
        linear_datamodeling_score(estimator=Total(), **given)


def test_wrong_labels_and_classifiers(data):
    X, _, X_val, _ = data
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match="y_val must hold only labels that y has. Got"):
        linear_datamodeling_score(
            np.ones(40), LogisticRegression(), X, y, X_val, np.full(7, 2)
        )
    with pytest.raises(
        ValueError, match="estimator must have predict_proba, or scoring"
    ):
        linear_datamodeling_score(np.ones(40), RidgeClassifier(), X, y, X_val, y[:7])


@pytest.mark.parametrize("by_point", [False, True])
def test_display(data, rng, by_point):
    values = rng.normal(size=(7, 40) if by_point else 40)
    scoring = at_each_point if by_point else at_all_points
    result = linear_datamodeling_score(
        values, Total(), *data, scoring=scoring, random_state=0
    )
    display = LinearDatamodelingDisplay(result).plot()
    if by_point:
        assert display.points_ is None
        assert sum(bar.get_height() for bar in display.bars_) == 7
        assert display.mean_line_.get_xdata() == pytest.approx([result.score] * 2)
    else:
        assert display.bars_ is display.mean_line_ is None
        offsets = np.c_[result.predicted[0], result.changes[0]]
        np.testing.assert_allclose(display.points_.get_offsets(), offsets)
    assert (
        display.ax_.get_title()
        == f"LDS = {result.score:.2f} ± {result.score_error:.2f}"
    )
