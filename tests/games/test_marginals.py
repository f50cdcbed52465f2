"""Contributions of all players to a coalition, by steps and by training."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from skvalue.games import MarginalGame, ModelGame, solvers
from tests.problems import noisy_line

SQUARED = [
    (Ridge(), "r2"), (Ridge(fit_intercept=False), "r2"), (Ridge(), "neg_mean_squared_error"),
    (LinearRegression(), "r2"), (LinearRegression(fit_intercept=False), "r2"),
]  # fmt: skip
LOGISTIC = [
    (2, "neg_log_loss"), (2, "neg_brier_score"), (3, "neg_log_loss"), (3, "neg_brier_score"),
]  # fmt: skip
ACCURACY = [(2, "accuracy"), (3, None)]
ROWS = ["rows", "weights", "groups", "groups and weights"]
N = 120


def marginal_game(estimator, scoring, n_classes, rows="rows", n=N, d=3):
    problem = noisy_line(0, n=n, n_val=25, d=d, n_classes=n_classes)
    rng, options = np.random.default_rng(1), {}
    if "weights" in rows:
        options["sample_weight"] = rng.integers(0, 4, n) / 2.0
    if "groups" in rows:
        options["groups"] = rng.permutation(np.arange(n) % (n // 4))
    game = ModelGame(
        estimator, *problem.rows, **problem.points, scoring=scoring, **options
    )
    return MarginalGame(game)


def coalition(n, size, seed=0):
    return np.random.default_rng(seed).permutation(np.arange(n) < size)


def by_utilities(marginal, mask):
    """Contributions as differences of utilities."""
    masks = np.repeat(mask[None], len(mask), axis=0) ^ np.eye(len(mask), dtype=bool)
    game = marginal.game
    return (game.utility(masks) - game.utility(mask[None])) * np.where(mask, -1, 1)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("estimator", "scoring"), SQUARED, ids=str)
def test_steps_of_squared_losses_are_exact(estimator, scoring, rows):
    marginal = marginal_game(estimator, scoring, 0, rows)
    assert marginal.exact
    for size in np.flatnonzero(marginal.n_trained == 0)[[1, 5, -2, -1]]:
        mask = coalition(marginal.n_players, size)
        steps, lengths = marginal.steps(mask)
        known = np.isfinite(lengths)
        wanted = by_utilities(marginal, mask)
        assert np.allclose(
            steps[known], wanted[known], rtol=0, atol=1e-10 * np.ptp(wanted)
        )
    assert known.mean() > 0.9  # of nearly all players


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("n_classes", "scoring"), LOGISTIC)
def test_steps_of_log_losses_are_of_second_order(n_classes, scoring, rows):
    marginal = marginal_game(LogisticRegression(), scoring, n_classes, rows)
    n = marginal.n_players
    for size in (n - 1, n // 2):
        mask = coalition(n, size)
        steps, lengths = marginal.steps(mask)
        wanted, known = by_utilities(marginal, mask), np.isfinite(lengths)
        scale = np.sqrt((wanted**2).mean())
        limit = 0.2 if "groups" in rows else 0.05
        assert np.sqrt(((steps - wanted)[known] ** 2).mean()) < limit * scale
        assert known.mean() > 0.5


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("n_classes", "scoring"), ACCURACY)
def test_steps_of_the_accuracy_change_the_predictions_of_trained_models(
    n_classes, scoring, rows
):
    marginal = marginal_game(LogisticRegression(), scoring, n_classes, rows)
    assert not marginal.smooth
    changed, equal = [], []
    for seed, size in product(
        range(5), (marginal.n_players - 1, marginal.n_players // 2)
    ):
        mask = coalition(marginal.n_players, size, seed)
        (steps, lengths), wanted = marginal.steps(mask), by_utilities(marginal, mask)
        known = np.isfinite(lengths)
        changed.append(wanted[known] != 0)
        equal.append(np.isclose(steps, wanted)[known])
    equal, changed = np.concatenate(equal), np.concatenate(changed)
    assert changed.mean() > 0.03
    assert (~equal).mean() < (0.3 if "groups" in rows else 0.1) * changed.mean()


@pytest.mark.parametrize("rows", ["rows", "groups"])
@pytest.mark.parametrize(("n_classes", "scoring"), ACCURACY)
def test_steps_of_the_accuracy_in_blocks_and_of_many_columns(
    n_classes, scoring, rows, monkeypatch
):
    marginal = marginal_game(LogisticRegression(), scoring, n_classes, rows)
    mask = coalition(marginal.n_players, marginal.n_players // 2)
    whole = marginal.steps(mask)
    monkeypatch.setattr(solvers.marginals, "MOST_PREDICTIONS", 1000)
    np.testing.assert_array_equal(marginal.steps(mask), whole)
    monkeypatch.setattr(solvers.marginals, "MOST_COEFFICIENTS", 0)
    assert (marginal.steps(mask)[0] == whole[0]).mean() > 0.8


def test_errors_of_steps_fall_faster_than_their_squares():
    """Ten times the rows: a tenth of the contributions, and a thousandth of their
    errors."""
    errors = []
    for n in (100, 1000):
        marginal = marginal_game(LogisticRegression(), "neg_log_loss", 2, n=n)
        mask = coalition(n, n // 2)
        wanted = marginal.trained(mask)
        errors.append(np.sqrt(((marginal.steps(mask)[0] - wanted) ** 2).mean()))
    assert errors[1] < errors[0] / 200


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("n_classes", "scoring"), [*LOGISTIC, *ACCURACY, (0, "r2")])
def test_trained_contributions_are_differences_of_utilities(n_classes, scoring, rows):
    estimator = LogisticRegression() if n_classes else Ridge()
    marginal = marginal_game(estimator, scoring, n_classes, rows, n=60)
    for size in (0, 1, 2, 3, 6, 12, 30):
        mask = coalition(marginal.n_players, min(size, marginal.n_players), seed=size)
        wanted, some = by_utilities(marginal, mask), np.array([2, 3, 11])
        assert np.allclose(marginal.trained(mask), wanted, atol=1e-6)
        assert np.allclose(marginal.trained(mask, some), wanted[some], atol=1e-6)


def test_no_step_where_a_class_comes_or_goes():
    X, y = (
        np.random.default_rng(0).normal(size=(40, 2)),
        np.r_[2, np.zeros(20), np.ones(19)],
    )
    game = ModelGame(
        LogisticRegression(), X, y, X_val=X, y_val=y, scoring="neg_log_loss"
    )
    marginal, mask = MarginalGame(game), np.ones(40, dtype=bool)
    for has_rare in (True, False):
        mask[0] = has_rare
        _, lengths = marginal.steps(mask)
        assert np.isinf(lengths[0])
        assert np.isfinite(lengths[1:]).all()


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "accuracy"])
def test_one_class(scoring):
    X, y = (
        np.random.default_rng(0).normal(size=(40, 2)),
        np.r_[np.zeros(35), np.ones(5)],
    )
    game = ModelGame(LogisticRegression(), X, y, X_val=X, y_val=y, scoring=scoring)
    marginal, mask = MarginalGame(game), np.arange(40) < 25
    steps, lengths = marginal.steps(mask)
    known = np.isfinite(lengths)
    assert (known == (y == 0)).all()
    assert np.allclose(steps[known], by_utilities(marginal, mask)[known])


def test_of_two_classes_of_three_the_number_of_rows_counts():
    # All columns are 0 and all groups have as many rows of either class: the model
    # stays the same.
    X, y = np.zeros((20, 1)), np.r_[np.tile([0, 1], 9), 2, 2]
    game = ModelGame(
        LogisticRegression(), X, y, X_val=X, y_val=y, scoring="neg_log_loss",
        groups=np.arange(20) // 6,
    )  # fmt: skip
    marginal, mask = MarginalGame(game), np.arange(4) < 2
    steps, _ = marginal.steps(mask)
    np.testing.assert_allclose(steps[:3], by_utilities(marginal, mask)[:3], atol=1e-9)


def test_separable_data():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:, 0] += np.where(np.arange(60) % 2, 5, -5)
    y = np.arange(60) % 2
    game = ModelGame(
        LogisticRegression(C=1e4), X, y, X_val=X, y_val=y, scoring="neg_log_loss"
    )
    marginal, mask = MarginalGame(game), np.arange(60) < 30
    steps, _ = marginal.steps(mask)
    assert np.isfinite(steps).all()
    assert np.allclose(marginal.trained(mask), by_utilities(marginal, mask), atol=1e-8)


REFUSED = [
    (LogisticRegression(), "roc_auc", "or 'accuracy' with LogisticRegression"),
    (Ridge(), "neg_max_error", "'neg_mean_squared_error' or 'r2' with Ridge"),
    (LogisticRegression(penalty=None), "neg_log_loss", "LogisticRegression, Ridge"),
    (KNeighborsClassifier(), "neg_log_loss", "KNeighborsClassifier"),
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(("estimator", "scoring", "message"), REFUSED, ids=str)
def test_refused(estimator, scoring, message):
    with pytest.raises(ValueError, match=message):
        marginal_game(estimator, scoring, 2)
