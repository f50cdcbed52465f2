"""Least squares of dependent columns: the fit of least norm, in every valuer."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skvalue import (
    DataBanzhafValuer,
    DataShapleyValuer,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
)
from skvalue.games import MarginalGame, ModelGame

from ..cases import one_of_each

N = 24
DEPENDENT = {
    "twice": lambda X, flags: np.c_[X, X[:, 0]],
    "double": lambda X, flags: np.c_[X, 2 * X[:, 0]],
    "minus": lambda X, flags: np.c_[X, -X[:, 0]],
    "sum": lambda X, flags: np.c_[X, X.sum(axis=1)],
    "flag and opposite": lambda X, flags: np.c_[X, flags, 1 - flags],
    "constant": lambda X, flags: np.c_[X, np.ones(len(X))],
    "zero": lambda X, flags: np.c_[X, np.zeros(len(X))],
}
EACH = pytest.mark.parametrize("kind", DEPENDENT)
INTERCEPT = pytest.mark.parametrize("fit_intercept", [True, False])


def problem_of(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(55, 3))
    X = DEPENDENT[kind](X, rng.integers(0, 2, 55))
    y = X[:, 0] + 0.3 * rng.normal(size=55)
    return (X[:N], y[:N]), {"X_val": X[N:], "y_val": y[N:]}


@EACH
@INTERCEPT
def test_batched_games_have_the_utilities_of_single_fits(kind, fit_intercept):
    rows, points = problem_of(kind)
    masks = np.random.default_rng(1).random((30, N)) < np.linspace(0.2, 1, 30)[:, None]
    estimator = LinearRegression(fit_intercept=fit_intercept)
    batched, single = (
        ModelGame(estimator, *rows, **points, empty_utility=0.0, batch=batch)
        for batch in ("auto", "never")
    )
    expected = single.utility(masks)
    np.testing.assert_allclose(batched.utility(masks), expected, rtol=1e-6, atol=1e-9)


@EACH
@INTERCEPT
def test_contributions_to_a_coalition_are_those_of_single_fits(kind, fit_intercept):
    rows, points = problem_of(kind)
    estimator = LinearRegression(fit_intercept=fit_intercept)
    game = ModelGame(estimator, *rows, **points, empty_utility=0.0)
    single = ModelGame(estimator, *rows, **points, empty_utility=0.0, batch="never")
    mask = np.arange(N) != 5
    contributions, lengths = MarginalGame(game).steps(mask)
    exact = MarginalGame(game).trained(mask)
    expected = single.utility(np.vstack([mask, np.ones(N, bool)]))
    assert exact[5] == pytest.approx(expected[1] - expected[0], abs=1e-7)
    known = np.isfinite(lengths)
    np.testing.assert_allclose(contributions[known], exact[known], atol=1e-6)


VALUERS = {
    "leave-one-out": LeaveOneOutValuer,
    "Shapley": DataShapleyValuer,
    "Banzhaf": DataBanzhafValuer,
    "Layered": LayeredShapleyValuer,
}


@pytest.mark.parametrize(("kind", "name"), one_of_each(list(DEPENDENT), list(VALUERS)))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_are_those_of_single_fits(kind, name):
    rows, points = problem_of(kind)
    options = {}
    if name != "leave-one-out":
        options = {"max_evaluations": 600, "random_state": 0}
        if name in ("Shapley", "Banzhaf"):
            options["sampler"] = "subsets" if name == "Banzhaf" else "stratified"
    batched, single = (
        VALUERS[name](LinearRegression(), batch=batch, **options).fit(*rows, **points)
        for batch in ("auto", "never")
    )
    np.testing.assert_allclose(batched.values_, single.values_, rtol=1e-5, atol=1e-7)
