"""Linear games where columns have any offset and unit: against models in 60 digits."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from skvalue import LeaveOneOutValuer
from skvalue.exceptions import ImpreciseValuesWarning
from skvalue.games import MarginalGame, ModelGame

from ..cases import one_of_each
from ..exact_models import ExactLogistic, ExactRidge

OFFSETS = [0.0, 1e4, 1e6, 1e8]
UNITS = [(1.0, 1.0, 1.0), (1e-6, 1.0, 1e6), (1e6, 1e6, 1e6), (1e-6, 1e-6, 1e-6)]
N = 40


def rows_of(offset, units, n_columns=3):
    """Rows and points: standard normal columns, times their units, plus an offset.

    The offset is in the unit of each column.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N + 9, n_columns))
    noise = 1.5 * rng.normal(size=N + 9)
    units = np.resize(units, n_columns)
    return units * (X + offset), X[:, 0] + noise


def labels_of(target, n_classes):
    return np.digitize(target, [0.0] if n_classes == 2 else [-0.5, 0.5])


def logistic_game(n_classes, offset, units, C, fit_intercept=True, n_columns=3):
    """A game, and the utility in 60 digits of a coalition."""
    if not fit_intercept:  # nothing makes up for an offset: it is a part of the rows
        offset = min(offset, 10.0)
    X, target = rows_of(offset, units, n_columns)
    y = labels_of(target, n_classes)
    estimator = LogisticRegression(C=C, fit_intercept=fit_intercept)
    points = X[N:], y[N:]
    game = ModelGame(
        estimator, X[:N], y[:N], *points, scoring="neg_log_loss", empty_utility=0.0
    )

    def exact(mask):
        rows = X[:N][mask], y[:N][mask]
        model = ExactLogistic(*rows, n_classes, C, fit_intercept)
        return -model.losses(*points).mean()

    return game, exact


# Logistic regression ------------------------------------------------------------------

LARGE = np.random.default_rng(1).random((2, N)) < [[0.6], [0.9]]
LARGE[:, :6] = True
FEW = np.array([np.isin(np.arange(N), rows) for rows in ([0, 1, 2, 5], [3, 4, 6, 9])])


@pytest.mark.parametrize(
    ("n_classes", "offset", "units", "C", "fit_intercept"),
    one_of_each([2, 3], OFFSETS, UNITS, [1e-2, 1.0, 100.0], [True, False]),
)
def test_logistic_games_have_the_optimum(n_classes, offset, units, C, fit_intercept):
    game, exact = logistic_game(n_classes, offset, units, C, fit_intercept)
    expected = [exact(mask) for mask in LARGE]
    assert game.solver == "logistic"
    np.testing.assert_allclose(game.utility(LARGE), expected, rtol=1e-8)


# Not of a large unit: without a penalty few rows have no optimum.
@pytest.mark.parametrize(
    ("offset", "units", "C", "fit_intercept"),
    one_of_each(
        OFFSETS, [(1.0,), (1e-6, 1e-3, 1.0), (1e-6,)], [1e-2, 1.0, 100.0], [True, False]
    ),
)
def test_few_rows_in_the_dual_have_the_optimum(offset, units, C, fit_intercept):
    game, exact = logistic_game(2, offset, units, C, fit_intercept, n_columns=9)
    expected = [exact(mask) for mask in FEW]
    np.testing.assert_allclose(game.utility(FEW), expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("n_classes", "C", "offset", "unit"),
    one_of_each([2, 3], [1e-2, 1.0, 100.0], [0.0, 1e4], [1e4, 1e6]),
)
def test_few_rows_of_a_large_unit_are_imprecise(n_classes, C, offset, unit):
    """They are separable, and the penalty nearly vanishes: a warning says so, once."""
    unit = unit / np.sqrt(C)
    game, _ = logistic_game(n_classes, offset, (unit,), C, n_columns=9)
    with pytest.warns(ImpreciseValuesWarning, match="few right digits.*Scale the col"):
        game.utility(FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        game.utility(FEW)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_rows_of_large_weights_are_imprecise(n_classes):
    """A weight counts as much as the penalty of a smaller C."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 9))
    y = np.arange(N) % n_classes
    weights = np.full(N, 1e10)
    game = ModelGame(
        LogisticRegression(), X, y, X_val=X, y_val=y, sample_weight=weights
    )
    assert game.solver == "logistic"
    with pytest.warns(ImpreciseValuesWarning, match="few right digits.*or the weights"):
        game.utility(FEW)


@pytest.mark.parametrize(
    ("n_classes", "C", "unit"),
    [(2, 1.0, 1.0), (3, 1.0, 1.0), (2, 1e-2, 10.0), (2, 1.0, 1e-6), (3, 100.0, 10.0)],
)
def test_few_rows_of_an_ordinary_unit_are_precise(n_classes, C, unit):
    game, exact = logistic_game(n_classes, 0.0, (unit,), C, n_columns=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        utilities = game.utility(FEW)
    np.testing.assert_allclose(utilities, [exact(mask) for mask in FEW], rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_rows_of_a_large_unit_are_precise(n_classes):
    game, _ = logistic_game(n_classes, 0.0, (1e6,), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        game.utility(LARGE)


@pytest.mark.parametrize(
    ("n_classes", "offset", "units", "C"),
    one_of_each([2, 3], OFFSETS, UNITS, [1e-2, 1.0, 100.0]),
)
def test_rows_that_join_a_coalition_have_the_optimum(n_classes, offset, units, C):
    game, exact = logistic_game(n_classes, offset, units, C)
    mask = LARGE[0]
    joined = mask.copy()
    joining = np.flatnonzero(~mask)[:1]
    joined[joining] = True
    (contribution,) = MarginalGame(game).trained(mask, joining)
    expected = exact(joined) - exact(mask)
    assert contribution == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("n_classes", "offset", "units", "C"),
    one_of_each([2, 3], OFFSETS, UNITS[:1] + UNITS[3:], [0.1, 1.0]),
)
def test_steps_of_rows_do_not_depend_on_the_offset(n_classes, offset, units, C):
    mask = np.arange(N) != 7
    game, _ = logistic_game(n_classes, offset, units, C)
    unmoved, _ = logistic_game(n_classes, 0.0, units, C)
    contributions, _ = MarginalGame(game).steps(mask)
    expected, lengths = MarginalGame(unmoved).steps(mask)
    # Columns with an offset of 1e8 are rounded at 1e-8 of their unit.
    is_short = lengths < 0.2
    assert is_short.any()
    np.testing.assert_allclose(
        contributions[is_short], expected[is_short], rtol=1e-4, atol=1e-6
    )


# Least squares ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "offset", "units", "fit_intercept"),
    one_of_each(
        [LinearRegression(), Ridge(0.5), Ridge(1e3)], OFFSETS, UNITS, [True, False]
    ),
)
def test_games_of_least_squares_have_the_optimum(
    estimator, offset, units, fit_intercept
):
    if not fit_intercept:
        offset = min(offset, 10.0)
    X, y = rows_of(offset, units)
    points = X[N:], y[N:]
    estimator = clone(estimator).set_params(fit_intercept=fit_intercept)
    game = ModelGame(
        estimator,
        X[:N],
        y[:N],
        *points,
        scoring="neg_mean_squared_error",
        empty_utility=0.0,
    )
    alpha = estimator.get_params().get("alpha", 0.0)
    masks = np.vstack([LARGE, np.arange(N) < 6])
    expected = [
        -ExactRidge(X[:N][mask], y[:N][mask], alpha, fit_intercept)
        .losses(*points)
        .mean()
        for mask in masks
    ]
    np.testing.assert_allclose(game.utility(masks), expected, rtol=1e-8)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("is_reversed", [False, True], ids=["join", "leave"])
@pytest.mark.parametrize("spread", [0.0, 3.0, 6.0])
def test_ridge_models_of_one_row_more_have_the_optimum(spread, is_reversed, alpha):
    """Each is computed from the one before; rows may be a million times as long."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 2)) * np.exp(spread * rng.normal(size=(N, 1)))
    X_val = rng.normal(size=(9, 2))
    y = X.sum(axis=1) + rng.normal(size=N)
    points = X_val, X_val.sum(axis=1)
    masks = np.tri(N, dtype=bool)[::-1] if is_reversed else np.tri(N, dtype=bool)
    game = ModelGame(
        Ridge(alpha), X, y, *points, scoring="neg_mean_squared_error", empty_utility=0
    )
    utilities = game.utility(masks)
    for i in range(0, N, 3):
        rows = masks[i]
        expected = -ExactRidge(X[rows], y[rows], alpha).losses(*points).mean()
        assert utilities[i] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("estimator", [Ridge(), LinearRegression()], ids=str)
@pytest.mark.parametrize("outlier", [1e4, 1e6, 1e8])
def test_a_row_of_an_outlier_costs_others_no_digits(outlier, estimator):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N + 9, 2))
    y = X.sum(axis=1) + 0.1 * rng.normal(size=N + 9)
    X[7, 1] = outlier
    y[7] = outlier
    masks = np.tri(N, dtype=bool)[9::5] & (np.arange(N) != 7)
    points = X[N:], y[N:]
    game = ModelGame(estimator, X[:N], y[:N], *points, scoring="neg_mean_squared_error")
    alpha = estimator.get_params().get("alpha", 0.0)
    expected = [
        -ExactRidge(X[:N][mask], y[:N][mask], alpha).losses(*points).mean()
        for mask in masks
    ]
    np.testing.assert_allclose(game.utility(masks), expected, rtol=1e-10)


# Leave-one-out ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "n_classes", "offset", "units", "C"),
    one_of_each(["newton", "refit"], [2, 3], OFFSETS, UNITS, [1.0, 100.0]),
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of scikit-learn's first fit
def test_leave_one_out_has_the_optimum(method, n_classes, offset, units, C):
    X, target = rows_of(offset, units)
    y = labels_of(target, n_classes)
    points = X[N:], y[N:]
    valuer = LeaveOneOutValuer(
        LogisticRegression(C=C), method=method, scoring="neg_log_loss"
    )
    valuer.fit(X[:N], y[:N], X_val=points[0], y_val=points[1])

    def exact(mask):
        model = ExactLogistic(X[:N][mask], y[:N][mask], n_classes, C)
        return -model.losses(*points).mean()

    # The estimator adds columns times coefficients and the intercept, which cancel.
    rtol = 1e-8 if offset < 1e8 else 1e-7
    utility = exact(np.ones(N, bool))
    assert valuer.utility_ == pytest.approx(utility, rel=rtol)
    for i in (2, 11):
        expected = utility - exact(np.arange(N) != i)
        assert valuer.values_[i] == pytest.approx(expected, rel=1e-6, abs=1e-8)
