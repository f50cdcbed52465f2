"""Numbers whose products are not finite are refused, where X or X_val hold them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skvalue import (
    DataShapleyValuer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InfluenceValuer,
    InRunShapleyValuer,
    LeaveOneOutValuer,
    UnrolledValuer,
)
from skvalue.labels import LabelErrorDetector
from tests.problems import Problem

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
SEED = {"random_state": 0}
VALUERS = {
    "in-run": InRunShapleyValuer(**SEED),
    "in-run, raw": InRunShapleyValuer(standardize=False, learning_rate=0.1, **SEED),
    "in-run, second order": InRunShapleyValuer(order=2, **SEED),
    "gradients": GradientSemivalueValuer(n_permutations=3, **SEED),
    "gradients, raw": GradientSemivalueValuer(
        n_permutations=3, standardize=False, **SEED
    ),
    "federated": FederatedSemivalueValuer(n_rounds=3, n_permutations=4, **SEED),
    "unrolled": UnrolledValuer(n_epochs=3, **SEED),
    "unrolled, AdamW": UnrolledValuer(n_epochs=3, optimizer="adamw", **SEED),
    "influence": InfluenceValuer(),
    "influence, second order": InfluenceValuer(order=2),
}

# Valuers of estimators that are trained in batches.
SOLVED = {
    "logistic": LeaveOneOutValuer(),
    "bayes": LeaveOneOutValuer(GaussianNB()),
    "centroid": LeaveOneOutValuer(NearestCentroid()),
    "neighbours": LeaveOneOutValuer(KNeighborsClassifier()),
    "Shapley": DataShapleyValuer(max_evaluations=300, **SEED),
}


def each(*names):
    """Valuers by name."""
    valuers = [VALUERS[name] for name in names]
    return pytest.mark.parametrize("valuer", valuers, ids=names)


def make_problem(regression=False):
    X = np.random.default_rng(0).normal(size=(70, 3))
    y = X[:, 0] if regression else (X[:, 0] > 0).astype(int)
    return Problem(X[:40], y[:40], X[40:], y[40:])


def scaled(X, columns, factor):
    X = X.copy()
    X[:, columns] *= factor
    return X


# Large rows and points ----------------------------------------------------------------

ALL_COLUMNS = [0, 1, 2]
LARGE = pytest.mark.parametrize(
    ("regression", "columns", "factor"),
    [(False, [1], 1e100), (True, ALL_COLUMNS, 1e160), (False, ALL_COLUMNS, 1e300)],
    ids=["a column", "targets", "all columns"],
)
LIMIT = r"must hold numbers of at most 1e\+75 in absolute value"


@each(*VALUERS)
@LARGE
@pytest.mark.parametrize("has_large_points", [False, True])
def test_large_rows_are_refused(valuer, regression, columns, factor, has_large_points):
    problem = make_problem(regression)
    problem = problem._replace(X=scaled(problem.X, columns, factor))
    if has_large_points:
        problem = problem._replace(X_val=scaled(problem.X_val, columns, factor))
    with pytest.raises(ValueError, match=f"X {LIMIT}"):
        problem.fit(clone(valuer))


@each(*VALUERS)
@LARGE
def test_large_rows_that_are_held_out_are_refused(valuer, regression, columns, factor):
    X, y = make_problem(regression).rows
    with pytest.raises(ValueError, match=f"X {LIMIT}"):
        clone(valuer).fit(scaled(X, columns, factor), y)


@each(*VALUERS)
@LARGE
def test_large_points_are_refused(valuer, regression, columns, factor):
    problem = make_problem(regression)
    problem = problem._replace(X_val=scaled(problem.X_val, columns, factor))
    with pytest.raises(ValueError, match=f"X_val {LIMIT}"):
        problem.fit(clone(valuer))


@each("in-run", "gradients", "influence", "influence, second order")
def test_large_rows_that_join_are_refused(valuer):
    problem = make_problem()
    valuer = problem.fit(clone(valuer))
    with pytest.raises(ValueError, match="X must hold numbers of at most"):
        valuer.score_samples(scaled(problem.X, [0], 1e300), problem.y)


@pytest.mark.parametrize("column", [0, 2])
@pytest.mark.parametrize("kind", ["in-run", "influence", "detector", *SOLVED])
@pytest.mark.parametrize("number", [1e160, -1e308])
def test_the_column_of_a_large_number_is_named(column, kind, number):
    problem = make_problem()
    X = problem.X.copy()
    X[3, column] = number
    valuer = VALUERS.get(kind) or SOLVED.get(kind) or LabelErrorDetector()
    with pytest.raises(ValueError, match=f"X.* must hold .* in column {column}"):
        clone(valuer).fit(X, problem.y)


@pytest.mark.parametrize("kind", SOLVED)
def test_the_column_of_a_large_point_of_batched_fits_is_named(kind):
    problem = make_problem()
    problem = problem._replace(X_val=scaled(problem.X_val, [1], 1e200))
    with pytest.raises(ValueError, match="X_val must hold .* in column 1"):
        problem.fit(clone(SOLVED[kind]))


# Private fits -------------------------------------------------------------------------

PRIVATE = {"epsilon": 1.0, "noise_random_state": 0}
SEEDED = pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")


@SEEDED
@each("in-run", "gradients", "federated")
def test_large_public_points_of_private_fits_are_refused(valuer):
    problem = make_problem()
    problem = problem._replace(X_val=scaled(problem.X_val, [1], 1e300))
    with pytest.raises(ValueError, match="X_val must hold numbers of at most 1e"):
        problem.fit(clone(valuer).set_params(**PRIVATE))


@SEEDED
@each("in-run", "gradients", "federated")
def test_large_private_rows_are_not_refused(valuer):
    """An error would tell of a row: its gradient counts as zero, or is clipped."""
    problem = make_problem()
    problem.X[0, 1] = 1e300
    values = problem.fit(clone(valuer).set_params(**PRIVATE)).values_
    assert np.isfinite(values).all()


# Numbers that are taken ---------------------------------------------------------------


@each(*(name for name in VALUERS if "raw" not in name and "influence" not in name))
def test_units_do_not_matter_to_valuers_that_standardise(valuer):
    problem = make_problem()
    expected = problem.fit(clone(valuer)).values_
    factor = 2.0**200
    large = problem._replace(X=problem.X * factor, X_val=problem.X_val * factor)
    values = large.fit(clone(valuer)).values_
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-15)


@each("influence", "influence, second order")
def test_influence_asks_to_scale_large_numbers(valuer):
    problem = make_problem()
    with pytest.raises(ValueError, match="scale"):
        problem._replace(X=problem.X * 1e80).fit(clone(valuer))


@each("influence", "influence, second order")
def test_influence_has_the_same_values_again(valuer):
    problem = make_problem()
    expected = problem.fit(clone(valuer)).values_
    np.testing.assert_allclose(
        problem.fit(clone(valuer)).values_, expected, rtol=1e-9, atol=1e-15
    )


@pytest.mark.parametrize(
    "cls", [InRunShapleyValuer, GradientSemivalueValuer, UnrolledValuer]
)
def test_large_rows_of_a_module_are_refused(cls):
    nn = pytest.importorskip("torch").nn
    problem = make_problem()
    large = problem._replace(X=problem.X * 1e300)
    with pytest.raises(ValueError, match="X must hold numbers of at most"):
        large.fit(cls(nn.Linear(3, 2)))


def test_a_pipeline_may_make_large_numbers_small():
    problem = make_problem()
    large = problem._replace(X=problem.X * 1e300)
    logs = FunctionTransformer(lambda X: np.log10(np.abs(X)) / 300)
    valuer = InfluenceValuer(make_pipeline(logs, LogisticRegression()))
    assert np.isfinite(large.fit(valuer).values_).all()


def test_a_pipeline_that_makes_large_numbers_is_refused():
    problem = make_problem(regression=True)
    grow = FunctionTransformer(lambda X: X * 1e150)
    with pytest.raises(ValueError, match="in the linear model"):
        problem.fit(InfluenceValuer(make_pipeline(grow, Ridge())))
