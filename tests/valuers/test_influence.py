"""Influence against fits without rows, and what its parameters promise."""

import pickle
import warnings

import numpy as np
import pytest
from problems import Problem, noisy_line
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.metrics import (
    log_loss,
    mean_poisson_deviance,
    mean_squared_error,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures

from skvalue import InfluenceValuer, ValueFilter
from skvalue.derivatives import AccuracyGap
from skvalue.exceptions import FewValidationPointsWarning, UncleanPointsWarning
from skvalue.inspection import linear_datamodeling_score, noisy_label_auc

from ..cases import one_of_each

EXACT = {"tol": 1e-10, "max_iter": 1000, "solver": "newton-cholesky"}
LOGISTIC = LogisticRegression(**EXACT)


def minus_log_loss(model, X, y):
    return -log_loss(y, model.predict_proba(X), labels=model.classes_)


def minus_squares(model, X, y):
    return -mean_squared_error(y, model.predict(X))


def minus_deviance(model, X, y):
    return -mean_poisson_deviance(y, model.predict(X))


# Name -> (estimator, number of classes, minus the loss).
MODELS = {
    "binary": (LOGISTIC, 2, minus_log_loss),
    "multiclass": (LOGISTIC, 3, minus_log_loss),
    "ridge": (Ridge(2.0), 0, minus_squares),
    "poisson": (PoissonRegressor(alpha=0.1, **EXACT), 0, minus_deviance),
    "kernel": (KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3), 0, minus_squares),
    "pipeline": (make_pipeline(PolynomialFeatures(2), Ridge()), 0, minus_squares),
    "pipeline-binary": (make_pipeline(Normalizer(), LOGISTIC), 2, minus_log_loss),
}
EACH_MODEL = pytest.mark.parametrize("name", MODELS)


def problem_of(name, n=200, n_points=100):
    """Rows and points for a model; targets are positive."""
    n_classes = MODELS[name][1]
    names = ["no", "perhaps", "yes"][:n_classes]
    problem = noisy_line(0, n, n_points, 3, n_classes, names=names)
    if n_classes:
        return problem
    y = np.exp(0.3 * problem.y)
    return problem._replace(y=y, y_val=np.exp(0.3 * problem.y_val))


def fit(name, problem, groups=None, **parameters):
    """Fit the valuer of a model."""
    estimator = MODELS[name][0]
    return problem.fit(InfluenceValuer(estimator, **parameters), groups=groups)


def refit(name, problem, rows=slice(None)):
    """The utility of a model that is fitted to rows."""
    estimator, _, utility = MODELS[name]
    model = clone(estimator).fit(problem.X[rows], problem.y[rows])
    return utility(model, problem.X_val, problem.y_val)


def decreases(name, problem, players):
    """Decrease of the utility without the rows of each player, by fitting again."""
    full = refit(name, problem)
    all_rows = np.arange(len(problem.y))
    return np.array(
        [full - refit(name, problem, np.setdiff1d(all_rows, rows)) for rows in players]
    )


# Values against refits ----------------------------------------------------------------


@EACH_MODEL
def test_values_of_the_second_order_are_nearly_the_change_under_refits(name):
    problem = problem_of(name)
    rows = np.arange(0, 200, 4)
    exact = decreases(name, problem, rows)
    values = fit(name, problem, order=2).values_[rows]
    assert np.abs(values - exact).max() < 0.01 * np.abs(exact).max()


@EACH_MODEL
def test_values_of_the_first_order_are_correlated_with_the_change(name):
    problem = problem_of(name)
    rows = np.arange(0, 200, 4)
    exact = decreases(name, problem, rows)
    values = fit(name, problem).values_[rows]
    assert np.corrcoef(values, exact)[0, 1] > 0.94


@EACH_MODEL
def test_the_utility_is_that_of_the_model_of_all_rows(name):
    problem = problem_of(name)
    valuer = fit(name, problem)
    assert valuer.utility_ == pytest.approx(refit(name, problem), rel=1e-9)
    assert valuer.utility_ > valuer.empty_utility_


TWELVE_GROUPS = np.arange(120) % 12


@EACH_MODEL
def test_values_of_groups_to_first_order_are_sums_of_rows(name):
    problem = problem_of(name, n=120)
    rows = fit(name, problem)
    groups = fit(name, problem, groups=TWELVE_GROUPS)
    expected = np.bincount(TWELVE_GROUPS, rows.values_)
    np.testing.assert_allclose(groups.values_, expected, atol=1e-14)


@EACH_MODEL
def test_values_of_groups_to_second_order_are_nearly_the_change(name):
    problem = problem_of(name, n=120)
    players = [np.arange(group, 120, 12) for group in range(12)]
    exact = decreases(name, problem, players)
    first = fit(name, problem, groups=TWELVE_GROUPS)
    second = fit(name, problem, groups=TWELVE_GROUPS, order=2)
    error = np.abs(second.values_ - exact).max()
    assert error < 0.1 * np.abs(exact).max()
    assert error < 0.5 * np.abs(first.values_ - exact).max()


# Validation points --------------------------------------------------------------------

CONTRIBUTIONS = pytest.mark.parametrize(
    ("name", "order", "groups"),
    one_of_each([*MODELS], [1, 2], [None, np.arange(40) % 9, np.arange(40) // 8]),
)


@CONTRIBUTIONS
def test_contributions_sum_to_values(name, order, groups):
    problem = problem_of(name, n=40, n_points=20)
    valuer = fit(name, problem, order=order, groups=groups)
    for i in range(0, len(valuer.values_), 4):
        total = valuer.contributions(i).contributions.sum()
        assert total == pytest.approx(valuer.values_[i], abs=1e-12)


@CONTRIBUTIONS
def test_validation_errors_are_those_of_the_contributions(name, order, groups):
    problem = problem_of(name, n=40, n_points=20)
    valuer = fit(name, problem, order=order, groups=groups)
    players = range(0, len(valuer.values_), 4)
    at_points = np.array([valuer.contributions(i).contributions for i in players])
    expected = (20 * at_points).std(axis=1, ddof=1) / np.sqrt(20)
    errors = valuer.validation_error_[players]
    np.testing.assert_allclose(errors, expected, rtol=1e-6, atol=1e-14)


@CONTRIBUTIONS
def test_no_player_of_positive_value_is_harmful(name, order, groups):
    problem = problem_of(name, n=40, n_points=20)
    valuer = fit(name, problem, order=order, groups=groups)
    with pytest.warns(FewValidationPointsWarning):
        is_harmful = valuer.harmful(0.1)
    assert not is_harmful[valuer.values_ > 0].any()


@CONTRIBUTIONS
def test_contributions_to_held_out_rows_sum_to_values(name, order, groups):
    problem = problem_of(name, n=40, n_points=20)
    estimator = MODELS[name][0]
    valuer = InfluenceValuer(estimator, order=order, cv=3)
    valuer.fit(*problem.rows, groups=groups)
    total = valuer.contributions(2).contributions.sum()
    assert total == pytest.approx(valuer.values_[2], abs=1e-12)


@pytest.mark.parametrize("utility", ["neg_loss", "roc_auc"])
def test_points_that_are_added_give_the_values_of_all_points(utility):
    problem = problem_of("binary")
    X_val = problem.X_val
    y_val = problem.y_val
    expected = problem.fit(InfluenceValuer(utility=utility)).values_
    first = problem._replace(X_val=X_val[:60], y_val=y_val[:60])
    valuer = first.fit(InfluenceValuer(utility=utility))
    valuer.add_validation(X_val[60:], y_val[60:])
    np.testing.assert_array_equal(valuer.values_, expected)


@pytest.mark.parametrize("utility", ["neg_loss", "roc_auc"])
def test_a_copy_scores_rows_as_the_valuer(utility):
    problem = problem_of("binary")
    valuer = problem.fit(InfluenceValuer(utility=utility))
    expected = valuer.score_samples(problem.X_val)
    copy = pickle.loads(pickle.dumps(valuer))
    np.testing.assert_array_equal(copy.score_samples(problem.X_val), expected)


@pytest.mark.parametrize("kind", ["sparse", "frame"])
def test_points_are_added_in_other_containers(kind):
    pandas = pytest.importorskip("pandas")

    def convert(X):
        if kind == "sparse":
            return sparse.csr_array(X)
        return pandas.DataFrame(X, columns=list("abc"))

    problem = problem_of("pipeline", n=50)
    X = convert(problem.X)
    X_val = problem.X_val
    y_val = problem.y_val
    converted = problem._replace(X=X, X_val=convert(X_val))
    expected = fit("pipeline", converted).values_
    first = problem._replace(X=X, X_val=convert(X_val[:20]), y_val=y_val[:20])
    valuer = fit("pipeline", first)
    valuer.add_validation(convert(X_val[20:]), y_val[20:])
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-14)


# Rows that evaluate themselves --------------------------------------------------------


def own_change(name, problem, rows):
    """Change of the mean utility at some rows without them, by fitting again."""
    estimator, _, utility = MODELS[name]
    rest = np.setdiff1d(np.arange(len(problem.y)), rows)
    own = problem.X[rows], problem.y[rows]
    full = clone(estimator).fit(problem.X, problem.y)
    without = clone(estimator).fit(problem.X[rest], problem.y[rest])
    return utility(without, *own) - utility(full, *own)


def fit_alone(name, problem, groups=None, **parameters):
    valuer = InfluenceValuer(MODELS[name][0], **parameters)
    return valuer.fit(*problem.rows, groups=groups)


@EACH_MODEL
@pytest.mark.parametrize("groups", [None, np.arange(200) // 4])
def test_without_points_values_are_the_change_of_the_own_utility(name, groups):
    problem = problem_of(name)
    players = (
        np.arange(200)[:, None] if groups is None else np.split(np.arange(200), 50)
    )
    expected = [own_change(name, problem, rows) for rows in players[::5]]
    first = fit_alone(name, problem, groups=groups).values_[::5]
    second = fit_alone(name, problem, groups=groups, order=2).values_[::5]
    assert np.abs(second - expected).max() < 0.03 * np.abs(expected).max()
    assert np.corrcoef(first, expected)[0, 1] > 0.92


@CONTRIBUTIONS
def test_without_points_a_row_evaluates_itself_alone(name, order, groups):
    valuer = fit_alone(name, problem_of(name, n=40), groups, order=order)
    codes = np.arange(40) if groups is None else groups
    for i in range(0, len(valuer.values_), 4):
        contributions = valuer.contributions(i).contributions
        assert contributions.sum() == pytest.approx(valuer.values_[i], rel=1e-6)
        assert not contributions[codes != i].any()


@pytest.mark.parametrize("name", ["binary", "multiclass", "ridge", "poisson"])
@pytest.mark.parametrize("order", [1, 2])
def test_without_points_rows_that_join_evaluate_themselves(name, order):
    problem = problem_of(name)
    first = problem._replace(X=problem.X[:180], y=problem.y[:180])
    new = problem.X[180:], problem.y[180:]
    scores = fit_alone(name, first, order=order).score_samples(*new)
    expected = [
        own_change(
            name,
            problem._replace(
                X=np.vstack([first.X, problem.X[i : i + 1]]),
                y=np.append(first.y, problem.y[i]),
            ),
            [180],
        )
        for i in range(180, 200)
    ]
    if order == 1:
        assert np.corrcoef(scores, expected)[0, 1] > 0.94
    else:
        assert np.abs(scores - expected).max() < 0.03 * np.abs(expected).max()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("order", [1, 2])
def test_without_points_wrong_labels_have_the_lowest_values(n_classes, order):
    rng = np.random.default_rng(0)
    centers = 2 * np.eye(3)[:n_classes]
    labels = rng.integers(n_classes, size=400)
    X = centers[labels] + 0.7 * rng.normal(size=(400, 3))
    is_wrong = rng.random(400) < 0.2
    shifts = rng.integers(1, n_classes, size=400)
    y = np.where(is_wrong, (labels + shifts) % n_classes, labels)
    values = InfluenceValuer(order=order).fit(X, y).values_
    assert noisy_label_auc(values, is_wrong) > 0.85


@pytest.mark.parametrize("cv", [5, "leave-one-out"])
def test_a_splitter_warns_that_held_out_labels_are_not_clean(cv):
    problem = problem_of("binary", n=30)
    with pytest.warns(UncleanPointsWarning, match="clean X_val"):
        InfluenceValuer(cv=cv).fit(*problem.rows)


@pytest.mark.parametrize("points", [True, False])
def test_without_a_splitter_there_is_no_warning(points):
    problem = problem_of("binary", n=30)
    with warnings.catch_warnings(action="error"):
        valuer = InfluenceValuer()
        if points:
            problem.fit(valuer)
        else:
            valuer.fit(*problem.rows)


@pytest.mark.parametrize(
    "utility", ["roc_auc", lambda z, y, weights: (weights @ z, weights)]
)
def test_a_utility_that_is_no_mean_needs_points(utility):
    with pytest.raises(ValueError, match="utility must be a mean over points where"):
        InfluenceValuer(utility=utility).fit(*problem_of("binary").rows)


@pytest.mark.parametrize(
    ("name", "utility"),
    [("binary", "accuracy"), ("ridge", "r2"), ("ridge", "neg_mean_squared_error")],
)
@pytest.mark.parametrize("order", [1, 2])
def test_other_means_need_no_points(name, utility, order):
    problem = problem_of(name)
    valuer = fit_alone(name, problem, utility=utility, order=order)
    expected = fit_alone(name, problem, order=order).values_
    assert np.corrcoef(valuer.values_, expected)[0, 1] > 0.5
    scores = valuer.score_samples(problem.X_val, problem.y_val)
    assert scores.mean() < 0


# Rows that join -----------------------------------------------------------------------

JOINED = pytest.mark.parametrize("name", ["binary", "multiclass", "ridge", "poisson"])


def problem_and_new_rows(name):
    """A problem without its last rows, these, and what they add by fitting again."""
    problem = problem_of(name)
    first = problem._replace(X=problem.X[:180], y=problem.y[:180])
    utilities = [
        refit(name, problem, np.append(np.arange(180), i)) for i in range(180, 200)
    ]
    increases = np.array(utilities) - refit(name, first)
    return first, (problem.X[180:], problem.y[180:]), increases


@JOINED
def test_scores_of_the_second_order_are_nearly_the_change_under_refits(name):
    problem, new_rows, exact = problem_and_new_rows(name)
    scores = fit(name, problem, order=2).score_samples(*new_rows)
    assert np.abs(scores - exact).max() < 0.02 * np.abs(exact).max()


@JOINED
def test_scores_of_the_first_order_are_correlated_with_the_change(name):
    problem, new_rows, exact = problem_and_new_rows(name)
    scores = fit(name, problem).score_samples(*new_rows)
    assert np.corrcoef(scores, exact)[0, 1] > 0.99


@JOINED
def test_rows_of_the_fit_have_their_values(name):
    problem, *_ = problem_and_new_rows(name)
    valuer = fit(name, problem, order=2)
    scores = valuer.score_samples(*problem.rows)
    np.testing.assert_allclose(scores, valuer.values_, atol=1e-15)


# The penalty of Poisson regression is relative to the sum of weights.
@pytest.mark.parametrize("name", ["binary", "multiclass", "ridge"])
def test_rows_without_labels_have_no_value_to_first_order(name):
    problem, (X_new, _), _ = problem_and_new_rows(name)
    values = fit(name, problem).transform(X_new)
    np.testing.assert_allclose(values, 0, atol=1e-15)


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_rows_without_labels_have_means_over_labels_to_second_order(name):
    problem, (X_new, _), _ = problem_and_new_rows(name)
    valuer = fit(name, problem, order=2)
    model = clone(MODELS[name][0]).fit(*problem.rows)
    by_label = [valuer.score_samples(X_new, [label] * 20) for label in valuer.classes_]
    expected = (model.predict_proba(X_new).T * by_label).sum(axis=0)
    np.testing.assert_allclose(valuer.transform(X_new)[:, 0], expected, atol=1e-12)


# Sparse rows, conjugate gradients, threads --------------------------------------------

THREE_MODELS = pytest.mark.parametrize("name", ["binary", "multiclass", "ridge"])
ORDERS = pytest.mark.parametrize("order", [1, 2])


def many_zeros(name):
    """A problem in which numbers near 0 are 0."""
    problem = problem_of(name, n=60)
    X = np.where(np.abs(problem.X) > 0.4, problem.X, 0)
    X_val = np.where(np.abs(problem.X_val) > 0.4, problem.X_val, 0)
    return problem._replace(X=X, X_val=X_val)


@THREE_MODELS
@ORDERS
def test_sparse_rows_have_the_values_of_dense_ones(name, order):
    problem = many_zeros(name)
    dense = fit(name, problem, order=order)
    thin = fit(
        name,
        problem._replace(
            X=sparse.csr_array(problem.X), X_val=sparse.csr_array(problem.X_val)
        ),
        order=order,
    )
    np.testing.assert_allclose(thin.values_, dense.values_, atol=1e-7)
    errors = dense.validation_error_
    np.testing.assert_allclose(thin.validation_error_, errors, atol=1e-7)
    new = problem.X_val[:5]
    labels = problem.y_val[:5]
    scores = thin.score_samples(sparse.csr_array(new), labels)
    expected = dense.score_samples(new, labels)
    np.testing.assert_allclose(scores, expected, atol=1e-7)


@THREE_MODELS
@ORDERS
def test_conjugate_gradients_have_the_values_of_a_factorised_hessian(name, order):
    problem = many_zeros(name)
    factorised = fit(name, problem, order=order)
    with config_context(working_memory=0):
        iterative = fit(name, problem, order=order)
    assert factorised.solver_ == "cholesky"
    assert iterative.solver_ == "cg"
    atol = 1e-9
    if order == 2 and name != "ridge":
        # Conjugate gradients have the Hessian without the row in the second step too.
        atol = 0.03 * np.abs(factorised.values_).max()
    np.testing.assert_allclose(iterative.values_, factorised.values_, atol=atol)


@THREE_MODELS
@ORDERS
def test_two_threads_have_the_bits_of_one(name, order):
    problem = many_zeros(name)
    valuer = InfluenceValuer(MODELS[name][0], order=order, cv=3, n_jobs=1)
    expected = clone(valuer).fit(*problem.rows).values_
    values = valuer.set_params(n_jobs=2).fit(*problem.rows).values_
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_have_the_working_memory_of_the_fit(n_jobs):
    problem = many_zeros("binary")
    valuer = InfluenceValuer(cv=3, n_jobs=n_jobs)
    with config_context(working_memory=0):
        assert valuer.fit(*problem.rows).solver_ == "cg"


# Other utilities ----------------------------------------------------------------------


def mean_decision(decisions, y, weights):
    return weights @ decisions, weights


NO_MEANS = ["roc_auc", mean_decision, AccuracyGap(np.arange(100) % 2)]
OTHER_UTILITIES = pytest.mark.parametrize("utility", ["accuracy", *NO_MEANS])


@OTHER_UTILITIES
def test_both_orders_are_correlated_for_other_utilities(utility):
    problem = problem_of("binary")
    first = fit("binary", problem, utility=utility)
    second = fit("binary", problem, utility=utility, order=2)
    assert np.corrcoef(first.values_, second.values_)[0, 1] > 0.99


@OTHER_UTILITIES
def test_the_second_order_is_nearly_the_change_of_other_utilities(utility):
    problem = problem_of("binary")
    valuer = fit("binary", problem, utility=utility, order=2)
    rows = np.arange(200) != 17
    others = problem._replace(X=problem.X[rows], y=problem.y[rows])
    decrease = valuer.utility_ - fit("binary", others, utility=utility).utility_
    tolerance = 0.01 * np.abs(valuer.values_).max()
    assert valuer.values_[17] == pytest.approx(decrease, abs=tolerance)


@OTHER_UTILITIES
def test_contributions_of_other_utilities_sum_to_values(utility):
    valuer = fit("binary", problem_of("binary"), utility=utility)
    total = valuer.contributions(3).contributions.sum()
    assert total == pytest.approx(valuer.values_[3])


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.FewValidationPointsWarning")
@pytest.mark.parametrize("utility", NO_MEANS)
def test_a_utility_that_is_no_mean_has_no_validation_error(utility):
    valuer = fit("binary", problem_of("binary"), utility=utility)
    message = "needs a utility that is a mean over validation"
    with pytest.raises(ValueError, match=message):
        valuer.harmful()
    assert not hasattr(valuer, "validation_error_")


@pytest.mark.parametrize("utility", NO_MEANS)
def test_a_utility_that_is_no_mean_has_no_contributions_to_second_order(utility):
    valuer = fit("binary", problem_of("binary"), utility=utility, order=2)
    message = "contributions needs a utility that is a mean"
    with pytest.raises(ValueError, match=message):
        valuer.contributions(0)


# What values are good for -------------------------------------------------------------


@pytest.fixture
def mislabelled(rng):
    """A problem in which one label in ten is wrong, and which are."""
    X = rng.normal(size=(300, 5))
    X_val = rng.normal(size=(200, 5))
    y = X[:, 0] + 0.3 * rng.normal(size=300) > 0
    y_val = X_val[:, 0] + 0.3 * rng.normal(size=200) > 0
    is_wrong = rng.random(300) < 0.1
    return Problem(X, y ^ is_wrong, X_val, y_val), is_wrong


def test_values_predict_retraining(mislabelled):
    problem, _ = mislabelled
    values = problem.fit(InfluenceValuer()).values_
    result = linear_datamodeling_score(
        values,
        LogisticRegression(),
        **problem._asdict(),
        n_subsets=30,
        fraction=0.2,
        random_state=0,
    )
    assert result.score > 0.9


def test_values_find_wrong_labels(mislabelled):
    problem, is_wrong = mislabelled
    values = problem.fit(InfluenceValuer()).values_
    assert noisy_label_auc(values, is_wrong) > 0.8


def test_a_filter_drops_rows_by_influence(mislabelled):
    problem, _ = mislabelled
    row_filter = ValueFilter(InfluenceValuer(), drop=0.1)
    X, _ = row_filter.fit_resample(*problem.rows, **problem.points)
    assert len(X) == 270


def test_a_ridge_classifier_is_accepted():
    problem = problem_of("binary", n=40)
    valuer = InfluenceValuer(RidgeClassifier()).fit(*problem.rows)
    assert valuer.transform(problem.X_val).shape == (100, 1)


# What is refused ----------------------------------------------------------------------


def test_other_estimators_are_refused():
    problem = problem_of("binary", n=40)
    with pytest.raises(ValueError, match="estimator must be LogisticRegression, Ridge"):
        InfluenceValuer(RandomForestClassifier()).fit(*problem.rows)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(C=-1.0), LogisticRegression(tol=-1.0)]
)
def test_parameters_of_the_estimator_are_checked(estimator, cv, n_jobs):
    problem = problem_of("binary", n=40)
    valuer = InfluenceValuer(estimator, cv=cv, n_jobs=n_jobs)
    with pytest.raises(ValueError, match="parameter of LogisticRegression must be"):
        valuer.fit(*problem.rows)


def test_a_torch_module_is_told_of_the_class_for_it():
    torch = pytest.importorskip("torch")
    message = "for a torch module take UnrolledValuer. Got Linear."
    with pytest.raises(ValueError, match=message):
        InfluenceValuer(torch.nn.Linear(2, 2)).fit(np.eye(2), [0, 1])


def test_a_utility_of_classes_is_refused_for_targets():
    X = problem_of("binary", n=40).X
    message = "utility must be 'neg_loss', .* or a callable for"
    with pytest.raises(ValueError, match=message):
        InfluenceValuer(utility="accuracy").fit(X, X[:, 0])


def test_the_area_under_the_curve_of_three_classes_is_refused():
    problem = problem_of("multiclass", n=60)
    with pytest.raises(ValueError, match="utility='roc_auc' needs two classes.* Got 3"):
        problem.fit(InfluenceValuer(utility="roc_auc"))


def test_the_area_under_the_curve_of_one_label_is_refused():
    problem = problem_of("binary", n=40)
    one_point = problem._replace(X_val=problem.X[:1], y_val=problem.y[:1])
    message = "utility='roc_auc' needs validation points of both"
    with pytest.raises(ValueError, match=message):
        one_point.fit(InfluenceValuer(utility="roc_auc"))


@pytest.mark.parametrize(
    ("y_val", "weights"), [([2.0, 2.0, 2.0], None), ([2.0, 2.0, 3.0], [1, 1, 0])]
)
def test_r2_of_equal_targets_is_refused(y_val, weights):
    problem = problem_of("ridge", n=40)
    valuer = InfluenceValuer(utility="r2")
    message = "utility='r2' needs y_val of at least two values.* Got 2.0 only"
    with pytest.raises(ValueError, match=message):
        valuer.fit(
            problem.X,
            problem.y,
            X_val=problem.X[:3],
            y_val=y_val,
            sample_weight_val=weights,
        )


def test_a_gradient_of_another_shape_is_refused():
    problem = problem_of("binary", n=40)
    message = "utility must return a finite number and a finite"
    with pytest.raises(ValueError, match=message):
        problem.fit(InfluenceValuer(utility=lambda z, y, weights: (0.0, [1.0])))


def test_groups_of_another_number_of_points_are_refused():
    message = "groups must name at least two groups of the 100 val"
    with pytest.raises(ValueError, match=message):
        problem_of("binary", n=40).fit(InfluenceValuer(utility=AccuracyGap([0, 1])))


def test_a_third_order_is_refused():
    problem = problem_of("binary", n=40)
    with pytest.raises(ValueError, match="The 'order' parameter"):
        InfluenceValuer(order=3).fit(*problem.rows)
