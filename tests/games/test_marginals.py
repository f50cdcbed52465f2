"""Contributions of all players to a coalition, by steps and by training."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from skvalue.games import MarginalGame, ModelGame, solvers
from tests.problems import noisy_line

SQUARED = [
    (Ridge(), "r2"),
    (Ridge(fit_intercept=False), "r2"),
    (Ridge(), "neg_mean_squared_error"),
    (LinearRegression(), "r2"),
    (LinearRegression(fit_intercept=False), "r2"),
]
LOGISTIC = [
    (2, "neg_log_loss"),
    (2, "neg_brier_score"),
    (3, "neg_log_loss"),
    (3, "neg_brier_score"),
]
ACCURACY = [(2, "accuracy"), (3, None)]
each_kind_of_players = pytest.mark.parametrize(
    "players", ["rows", "weights", "groups", "groups and weights"]
)
N = 120


def marginal_game(estimator, scoring, n_classes, players="rows", n=N, d=3):
    problem = noisy_line(0, n=n, n_val=25, d=d, n_classes=n_classes)
    rng = np.random.default_rng(1)
    options = {}
    if "weights" in players:
        options["sample_weight"] = rng.integers(0, 4, n) / 2.0
    if "groups" in players:
        options["groups"] = rng.permutation(np.arange(n) % (n // 4))
    game = ModelGame(
        estimator, *problem.rows, **problem.points, scoring=scoring, **options
    )
    return MarginalGame(game)


def logistic_game(X, y, scoring="neg_log_loss", C=1.0, **options):
    """Contributions to models of rows that are validation points too."""
    model = LogisticRegression(C=C)
    return MarginalGame(
        ModelGame(model, X, y, X_val=X, y_val=y, scoring=scoring, **options)
    )


def coalition(n, size, seed=0):
    return np.random.default_rng(seed).permutation(np.arange(n) < size)


def by_utilities(marginal, mask):
    """Contributions as differences of utilities."""
    masks = mask ^ np.eye(len(mask), dtype=bool)
    changes = marginal.game.utility(masks) - marginal.game.utility(mask[None])
    return changes * np.where(mask, -1, 1)


@each_kind_of_players
@pytest.mark.parametrize(("estimator", "scoring"), SQUARED, ids=str)
def test_steps_of_squared_losses_are_exact(estimator, scoring, players):
    marginal = marginal_game(estimator, scoring, 0, players)
    assert marginal.exact
    for size in np.flatnonzero(marginal.n_trained == 0)[[1, 5, -2, -1]]:
        mask = coalition(marginal.n_players, size)
        steps, lengths = marginal.steps(mask)
        expected = by_utilities(marginal, mask)
        has_step = np.isfinite(lengths)
        errors = (steps - expected)[has_step]
        assert np.abs(errors).max() < 1e-10 * np.ptp(expected)
    assert has_step.mean() > 0.9  # of nearly all players


DEPENDENT = {
    "a column twice": lambda X: np.c_[X, X[:, :1]],
    "a constant": lambda X: np.c_[X, np.ones(len(X))],
    "zeros": np.zeros_like,
    "more columns than rows": lambda X: np.c_[X, X**2, X**3, np.sin(5 * X)],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("columns", DEPENDENT)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize(
    "estimator",
    [LinearRegression(), Ridge(1e-300), Ridge(1e-13), Ridge(1e-11), Ridge(1e-3)],
    ids=str,
)
def test_steps_of_dependent_columns_are_finite(estimator, columns, size, rng):
    """With hardly any penalty, contributions are those of trained models."""
    X = rng.normal(size=(12, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=12)
    X = DEPENDENT[columns](X)
    model_game = ModelGame(
        estimator, X, y, X[:7] + 0.1, y[:7], scoring="neg_mean_squared_error"
    )
    game = MarginalGame(model_game)
    mask = np.arange(12) < size
    contributions, lengths = game.steps(mask)
    assert np.isfinite(contributions).all()
    assert (lengths == 0).all()
    np.testing.assert_allclose(contributions, game.trained(mask), rtol=1e-5, atol=1e-6)


@each_kind_of_players
@pytest.mark.parametrize(("n_classes", "scoring"), LOGISTIC)
def test_steps_of_log_losses_are_of_second_order(n_classes, scoring, players):
    marginal = marginal_game(LogisticRegression(), scoring, n_classes, players)
    n = marginal.n_players
    for size in (n - 1, n // 2):
        mask = coalition(n, size)
        steps, lengths = marginal.steps(mask)
        expected = by_utilities(marginal, mask)
        has_step = np.isfinite(lengths)
        errors = (steps - expected)[has_step]
        scale = np.sqrt((expected**2).mean())
        limit = 0.2 if "groups" in players else 0.05
        assert np.sqrt((errors**2).mean()) < limit * scale
        assert has_step.mean() > 0.5


@each_kind_of_players
@pytest.mark.parametrize(("n_classes", "scoring"), ACCURACY)
def test_steps_of_the_accuracy_change_the_predictions_of_trained_models(
    n_classes, scoring, players
):
    marginal = marginal_game(LogisticRegression(), scoring, n_classes, players)
    assert not marginal.smooth
    n = marginal.n_players
    is_changed = []
    is_equal = []
    for seed, size in product(range(5), (n - 1, n // 2)):
        mask = coalition(n, size, seed)
        steps, lengths = marginal.steps(mask)
        expected = by_utilities(marginal, mask)
        has_step = np.isfinite(lengths)
        is_changed.append(expected[has_step] != 0)
        is_equal.append(np.isclose(steps, expected)[has_step])
    changed = np.concatenate(is_changed).mean()
    wrong = (~np.concatenate(is_equal)).mean()
    assert changed > 0.03
    assert wrong < (0.3 if "groups" in players else 0.1) * changed


@pytest.mark.parametrize("players", ["rows", "groups"])
@pytest.mark.parametrize(("n_classes", "scoring"), ACCURACY)
def test_steps_of_the_accuracy_in_blocks_and_of_many_columns(
    n_classes, scoring, players, monkeypatch
):
    marginal = marginal_game(LogisticRegression(), scoring, n_classes, players)
    mask = coalition(marginal.n_players, marginal.n_players // 2)
    expected = marginal.steps(mask)
    monkeypatch.setattr(solvers.marginals.logistic, "MOST_PREDICTIONS", 1000)
    np.testing.assert_array_equal(marginal.steps(mask), expected)
    monkeypatch.setattr(solvers.marginals.logistic, "MOST_COEFFICIENTS", 0)
    steps, _ = marginal.steps(mask)
    assert (steps == expected[0]).mean() > 0.8


def test_errors_of_steps_fall_faster_than_their_squares():
    """Ten times the rows: a tenth of the contributions, and a thousandth of their
    errors."""
    errors = []
    for n in (100, 1000):
        marginal = marginal_game(LogisticRegression(), "neg_log_loss", 2, n=n)
        mask = coalition(n, n // 2)
        steps, _ = marginal.steps(mask)
        errors.append(np.sqrt(((steps - marginal.trained(mask)) ** 2).mean()))
    assert errors[1] < errors[0] / 200


@each_kind_of_players
@pytest.mark.parametrize(("n_classes", "scoring"), [*LOGISTIC, *ACCURACY, (0, "r2")])
def test_trained_contributions_are_differences_of_utilities(
    n_classes, scoring, players
):
    estimator = LogisticRegression() if n_classes else Ridge()
    marginal = marginal_game(estimator, scoring, n_classes, players, n=60)
    subset = np.array([2, 3, 11])
    for size in (0, 1, 2, 3, 6, 12, 30):
        mask = coalition(marginal.n_players, min(size, marginal.n_players), seed=size)
        expected = by_utilities(marginal, mask)
        assert np.allclose(marginal.trained(mask), expected, atol=1e-6)
        assert np.allclose(marginal.trained(mask, subset), expected[subset], atol=1e-6)


def test_no_step_where_a_class_comes_or_goes():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.r_[2, np.zeros(20), np.ones(19)]
    marginal = logistic_game(X, y)
    mask = np.ones(40, dtype=bool)
    for has_rare_class in (True, False):
        mask[0] = has_rare_class
        _, lengths = marginal.steps(mask)
        assert np.isinf(lengths[0])
        assert np.isfinite(lengths[1:]).all()


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "accuracy"])
def test_rows_of_its_class_have_steps_from_a_coalition_of_one_class(scoring):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.r_[np.zeros(35), np.ones(5)]
    marginal = logistic_game(X, y, scoring)
    mask = np.arange(40) < 25
    steps, lengths = marginal.steps(mask)
    has_step = np.isfinite(lengths)
    assert (has_step == (y == 0)).all()
    assert np.allclose(steps[has_step], by_utilities(marginal, mask)[has_step])


def test_of_two_classes_of_three_the_number_of_rows_counts():
    # All columns are 0 and all groups have as many rows of either class: the model
    # stays the same.
    X = np.zeros((20, 1))
    y = np.r_[np.tile([0, 1], 9), 2, 2]
    marginal = logistic_game(X, y, groups=np.arange(20) // 6)
    mask = np.arange(4) < 2
    steps, _ = marginal.steps(mask)
    np.testing.assert_allclose(steps[:3], by_utilities(marginal, mask)[:3], atol=1e-9)


def test_contributions_to_separable_classes_are_finite():
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:, 0] += np.where(y == 1, 5, -5)
    marginal = logistic_game(X, y, C=1e4)
    mask = np.arange(60) < 30
    steps, _ = marginal.steps(mask)
    assert np.isfinite(steps).all()
    assert np.allclose(marginal.trained(mask), by_utilities(marginal, mask), atol=1e-8)


WITHOUT_STEPS = [
    (LogisticRegression(), "roc_auc", "or 'accuracy' with LogisticRegression"),
    (Ridge(), "neg_max_error", "'neg_mean_squared_error' or 'r2' with Ridge"),
    (LogisticRegression(penalty=None), "neg_log_loss", "LogisticRegression, Ridge"),
    (KNeighborsClassifier(), "neg_log_loss", "KNeighborsClassifier"),
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(("estimator", "scoring", "message"), WITHOUT_STEPS, ids=str)
def test_estimators_and_scorers_without_steps_are_refused(estimator, scoring, message):
    with pytest.raises(ValueError, match=message):
        marginal_game(estimator, scoring, 2)
