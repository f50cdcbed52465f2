"""sampler="marginals" of the semivalue valuers."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from skvalue import DataBanzhafValuer, DataShapleyValuer, SemivalueValuer
from tests.cases import one_of_each
from tests.problems import noisy_line

pytestmark = pytest.mark.filterwarnings(
    "ignore::skvalue.exceptions.ImpreciseValuesWarning"
)
SLOW = pytest.mark.slow

GAMES = {  # estimator, scoring, number of classes
    "two classes": (LogisticRegression(), "neg_log_loss", 2),
    "two classes, Brier": (LogisticRegression(), "neg_brier_score", 2),
    "three classes": (LogisticRegression(), "neg_log_loss", 3),
    "three classes, Brier": (LogisticRegression(), "neg_brier_score", 3),
    "accuracy": (LogisticRegression(), None, 2),
    "accuracy of three classes": (LogisticRegression(), "accuracy", 3),
    "ridge": (Ridge(), "r2", 0),
    "least squares": (LinearRegression(), "neg_mean_squared_error", 0),
}
SEMIVALUES = ["shapley", "banzhaf", (4, 1)]


def problem_of(name, n=60, d=2, noise=1.0):
    _, _, n_classes = GAMES[name]
    return noisy_line(0, n=n, n_val=30, d=d, n_classes=n_classes, noise=noise)


def valuer_of(name, cls=DataShapleyValuer, **options):
    estimator, scoring, _ = GAMES[name]
    options = {"sampler": "marginals", "random_state": 0, "n_jobs": 1, **options}
    return cls(estimator, scoring=scoring, **options)


def standardised_difference(one, other):
    """Root mean square of the differences of values over their errors."""
    errors = np.hypot(one.values_error_, other.values_error_)
    return np.sqrt(np.mean(((one.values_ - other.values_) / errors) ** 2))


@pytest.fixture(scope="module")
def default():
    """A fit of the default budget."""
    return problem_of("two classes").fit(valuer_of("two classes"))


@pytest.mark.parametrize(
    ("name", "semivalue"),
    one_of_each(list(GAMES)[:-1], SEMIVALUES),  # least squares have heavy tails
    ids=str,
)
def test_values_agree_with_an_enumeration(name, semivalue):
    problem = problem_of(name, n=8)
    options = {"cls": SemivalueValuer, "semivalue": semivalue}
    exact = problem.fit(valuer_of(name, sampler="exact", **options))
    count = 1000 if name == "ridge" else 4000
    valuer = problem.fit(valuer_of(name, max_evaluations=count, **options))
    assert standardised_difference(valuer, exact) < 2.2
    assert np.sqrt(np.mean(valuer.values_error_**2)) < exact.values_.std()


FIT_OPTIONS = {
    "rows": {},
    "groups": {"groups": np.arange(60) % 30},
    "sample_weight": {"sample_weight": np.random.default_rng(0).random(60)},
    "cv": {},
}


@pytest.mark.parametrize(
    ("name", "rows"),
    one_of_each(["two classes", "three classes", "accuracy", "ridge"], [*FIT_OPTIONS]),
)
def test_values_agree_with_the_stratified_sampler(name, rows):
    problem = problem_of(name)
    options = FIT_OPTIONS[rows] | ({} if rows == "cv" else problem.points)
    count = 1500 if name == "ridge" else 5000
    fits = []
    for sampler in ("marginals", "stratified"):
        valuer = valuer_of(name, cv=2, sampler=sampler, max_evaluations=count)
        fits.append(valuer.fit(*problem.rows, **options))
    valuer, stratified = fits
    assert standardised_difference(valuer, stratified) < 2.2
    gain = valuer.utility_ - valuer.empty_utility_
    assert np.isclose(valuer.values_.sum(), gain)
    assert valuer.sampler_ == "marginals"

    # The steps of a regression are exact.
    assert valuer.correction_.shape == valuer.values_.shape
    if name == "ridge":
        assert (valuer.correction_ == 0).all()
    else:
        squares = np.mean(valuer.correction_**2) / np.mean(valuer.values_error_**2)
        assert 0 < np.sqrt(squares) < 1


@pytest.mark.parametrize("name", ["two classes", pytest.param("ridge", marks=SLOW)])
def test_errors_of_banzhaf_values_are_smaller_than_those_of_subsets(name):
    problem = problem_of(name, n=300)
    squared_errors = []
    for sampler in ("marginals", "subsets"):
        valuer = valuer_of(
            name, DataBanzhafValuer, sampler=sampler, max_evaluations=3000
        )
        squared_errors.append(np.mean(problem.fit(valuer).values_error_ ** 2))
    of_marginals, of_subsets = squared_errors
    assert of_marginals < of_subsets / 2


def test_the_default_budget_is_four_blocks(default):
    assert default.stop_reason_ == "max_evaluations"
    assert default.n_evaluations_ - 1 > 4 * 32


def test_values_do_not_depend_on_threads(default):
    valuer = problem_of("two classes").fit(valuer_of("two classes", n_jobs=2))
    np.testing.assert_array_equal(valuer.values_, default.values_)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=SLOW)])
def test_values_do_not_depend_on_joblib_workers(backend, default):
    with parallel_config(backend, n_jobs=2):
        valuer = problem_of("two classes").fit(valuer_of("two classes", n_jobs=None))
    np.testing.assert_array_equal(valuer.values_, default.values_)


@pytest.fixture(scope="module")
def eight_thousand():
    """A fit that nothing interrupted."""
    return problem_of("two classes").fit(valuer_of("two classes", max_evaluations=8000))


def test_a_warm_start_repeats_no_random_number(eight_thousand):
    problem = problem_of("two classes")
    valuer = valuer_of("two classes", max_evaluations=4000, warm_start=True)
    problem.fit(valuer)
    problem.fit(valuer.set_params(max_evaluations=8000))
    np.testing.assert_array_equal(valuer.values_, eight_thousand.values_)


def test_a_checkpoint_repeats_no_random_number(tmp_path, eight_thousand):
    problem = problem_of("two classes")
    file = {"checkpoint": tmp_path / "state.npz"}
    few = problem.fit(valuer_of("two classes", max_evaluations=4000, **file))
    assert few.n_evaluations_ < 4000
    valuer = problem.fit(valuer_of("two classes", max_evaluations=8000, **file))
    np.testing.assert_array_equal(valuer.values_, eight_thousand.values_)
    np.testing.assert_array_equal(valuer.values_error_, eight_thousand.values_error_)


def test_tol_ends_the_fit():
    valuer = problem_of("two classes").fit(valuer_of("two classes", tol=4e-3))
    assert valuer.stop_reason_ == "tol"
    assert valuer.values_error_.max() <= 4e-3


def test_max_time_ends_the_fit():
    valuer = problem_of("two classes").fit(valuer_of("two classes", max_time=0.05))
    assert valuer.stop_reason_ == "max_time"
    assert np.isfinite(valuer.values_).all()


def test_max_evaluations_is_not_exceeded():
    # Targets may be whole numbers.
    valuer = problem_of("two classes").fit(valuer_of("ridge", max_evaluations=400))
    assert valuer.n_evaluations_ <= 400


def test_budgets_below_a_block_are_refused():
    with pytest.raises(ValueError, match="max_evaluations must be at least"):
        problem_of("two classes").fit(valuer_of("two classes", max_evaluations=100))


# Other semivalues, and merges ---------------------------------------------------------

BUDGET = {"max_evaluations": 5000}


@pytest.fixture(scope="module")
def five_thousand():
    return problem_of("two classes").fit(valuer_of("two classes", **BUDGET))


def test_the_own_semivalue_has_the_same_values(five_thousand):
    own = five_thousand.reweight("shapley")
    np.testing.assert_allclose(own.values_, five_thousand.values_, atol=1e-6)
    np.testing.assert_allclose(
        own.values_error_, five_thousand.values_error_, rtol=1e-3
    )


def test_another_semivalue_agrees_with_a_fit_of_its_own(five_thousand):
    options = {"semivalue": (2, 1), "random_state": 1, **BUDGET}
    own = problem_of("two classes").fit(
        valuer_of("two classes", SemivalueValuer, **options)
    )
    assert standardised_difference(five_thousand.reweight((2, 1)), own) < 2.2


def test_merged_values_are_means():
    problem = problem_of("two classes")
    first = problem.fit(valuer_of("two classes", **BUDGET))
    second = problem.fit(valuer_of("two classes", random_state=1, **BUDGET))
    mean = (first.values_ + second.values_) / 2
    merged = first.merge(second)
    np.testing.assert_allclose(merged.values_, mean)
    assert np.isfinite(merged.reweight((2, 1)).values_).all()


# The sampler "auto" -------------------------------------------------------------------


def test_the_cost_is_estimated_from_few_models(default):
    problem = problem_of("two classes")
    cost = valuer_of("two classes").estimate_cost(*problem.rows, **problem.points)
    assert cost.sampler == "marginals"
    assert 0 < cost.seconds < 60
    assert cost.n_evaluations >= default.n_evaluations_


@pytest.mark.parametrize(
    ("name", "options", "sampler"),
    [
        ("two classes", {}, "marginals"),
        ("ridge", {}, "marginals"),
        ("two classes", {"cls": DataBanzhafValuer}, "marginals"),
        ("two classes", {"adjust": True}, "stratified"),
        ("ridge", {"max_evaluations": 1000}, "stratified"),
        ("two classes", {"truncation": 0.01}, "antithetic"),
    ],
    ids=["log-loss", "ridge", "Banzhaf", "adjusted", "few evaluations", "truncation"],
)
def test_auto_is_the_sampler_of_less_error_for_the_work(name, options, sampler):
    problem = problem_of(name, n=400, d=4)
    valuer = valuer_of(name, **{"sampler": "auto", **options})
    assert valuer.estimate_cost(*problem.rows, **problem.points).sampler == sampler


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        ({"n": 199, "d": 4}, {}),
        ({"n": 400, "d": 4}, {"scoring": "accuracy"}),
        # Many columns separate the classes.
        (
            {"n": 400, "d": 48, "noise": 1e-6},
            {"estimator": LogisticRegression(C=1e3)},
        ),
    ],
    ids=["few rows", "accuracy", "separable"],
)
def test_auto_is_stratified_where_steps_do_not_pay(shape, parameters):
    problem = problem_of("two classes", **shape)
    valuer = valuer_of("two classes", sampler="auto").set_params(**parameters)
    cost = valuer.estimate_cost(*problem.rows, **problem.points)
    assert cost.sampler == "stratified"


def test_auto_has_the_values_of_the_sampler_that_it_chose():
    problem = problem_of("two classes", n=250, d=4)
    chosen = problem.fit(valuer_of("two classes", sampler="auto"))
    named = problem.fit(valuer_of("two classes"))
    assert chosen.sampler_ == "marginals"
    np.testing.assert_array_equal(chosen.values_, named.values_)


def test_auto_resumes_with_what_it_chose():
    problem = problem_of("two classes", n=250, d=4)
    valuer = problem.fit(valuer_of("two classes", sampler="auto", warm_start=True))
    values = valuer.values_
    np.testing.assert_array_equal(problem.fit(valuer).values_, values)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scoring": "roc_auc"}, "needs scoring to be 'neg_log_loss' or"),
        ({"estimator": KNeighborsClassifier()}, "Got KNeighborsClassifier"),
        ({"estimator": LogisticRegression(class_weight="balanced")}, "balanced"),
        ({"batch": "never"}, "sampler='marginals' needs LogisticRegression"),
        ({"truncation": 0.1}, "truncation needs a sampler of permutations"),
        ({"adjust": True}, "adjust=True needs random subsets"),
    ],
    ids=str,
)
def test_parameters_without_steps_are_refused(parameters, message):
    valuer = clone(valuer_of("two classes")).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        problem_of("two classes").fit(valuer)


@pytest.mark.parametrize("estimator", [Ridge(), LinearRegression()])
@pytest.mark.parametrize(
    ("y_val", "weights"), [([0.0, 0.0, 0.0], None), ([1.0, 2.0, 3.0], [0, 1, 0])]
)
def test_r2_of_equal_targets_is_refused(estimator, y_val, weights):
    X, y = np.random.default_rng(0).normal(size=(2, 30, 2))
    valuer = DataShapleyValuer(estimator, sampler="marginals", max_evaluations=400)
    with pytest.raises(ValueError, match="needs y_val of at least two values"):
        valuer.fit(X, y[:, 0], X_val=X[:3], y_val=y_val, sample_weight_val=weights)


def test_many_players_of_equal_targets_are_played_by_other_samplers():
    X = np.random.default_rng(0).normal(size=(210, 2))
    valuer = DataShapleyValuer(Ridge(), max_evaluations=2000, random_state=0)
    valuer.fit(X, X[:, 0], X_val=X[:3] + 1, y_val=np.zeros(3))
    assert valuer.sampler_ != "marginals"
    assert np.isfinite(valuer.values_).all()


def test_t_intervals_hold_the_values(default):
    low, high = default.confidence_interval().T
    assert ((low < default.values_) & (default.values_ < high)).all()


def test_bernstein_intervals_are_refused(default):
    with pytest.raises(ValueError, match="independent replicates"):
        default.confidence_interval(method="bernstein")
