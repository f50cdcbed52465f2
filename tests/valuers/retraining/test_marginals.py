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

GAMES = {
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


def problem_of(name, n=60, d=2, n_val=30):
    return noisy_line(0, n=n, n_val=n_val, d=d, n_classes=GAMES[name][2])


def valuer_of(name, cls=DataShapleyValuer, **options):
    estimator, scoring, _ = GAMES[name]
    options = {"sampler": "marginals", "random_state": 0, "n_jobs": 1, **options}
    return cls(estimator, scoring=scoring, **options)


@pytest.fixture(scope="module")
def default():
    """A fit of the default budget."""
    return problem_of("two classes").fit(valuer_of("two classes"))


@pytest.mark.parametrize(
    ("name", "semivalue"),
    one_of_each(list(GAMES)[:-1], SEMIVALUES),  # least squares have heavy tails
    ids=str,
)
def test_values_of_an_enumeration(name, semivalue):
    problem = problem_of(name, n=8)
    options = {"cls": SemivalueValuer, "semivalue": semivalue}
    true = problem.fit(valuer_of(name, sampler="exact", **options)).values_
    fits = 1000 if name == "ridge" else 4000
    valuer = problem.fit(valuer_of(name, max_evaluations=fits, **options))
    z = (valuer.values_ - true) / valuer.values_error_
    assert np.sqrt(np.mean(z**2)) < 2.2
    assert np.sqrt(np.mean(valuer.values_error_**2)) < true.std()


@pytest.mark.parametrize(
    ("name", "rows"),
    one_of_each(
        ["two classes", "three classes", "accuracy", "ridge"],
        ["rows", "groups", "sample_weight", "cv"],
    ),
)
def test_values_of_the_stratified_sampler(name, rows):
    problem, rng = problem_of(name), np.random.default_rng(0)
    options = {
        "groups": {"groups": np.arange(60) % 30}, "sample_weight": {"sample_weight": rng.random(60)}
    }.get(rows, {})  # fmt: skip
    points = {} if rows == "cv" else problem.points
    fits = 1500 if name == "ridge" else 5000
    few = valuer_of(name, cv=2, max_evaluations=fits).fit(
        *problem.rows, **points, **options
    )
    other = valuer_of(name, cv=2, sampler="stratified", max_evaluations=fits)
    other.fit(*problem.rows, **points, **options)
    error = np.hypot(few.values_error_, other.values_error_)
    assert np.sqrt(np.mean(((few.values_ - other.values_) / error) ** 2)) < 2.2
    assert np.isclose(few.values_.sum(), few.utility_ - few.empty_utility_)
    assert few.sampler_ == "marginals"
    assert few.correction_.shape == few.values_.shape
    if name == "ridge":
        assert (few.correction_ == 0).all()
    else:
        moved = np.sqrt(np.mean(few.correction_**2) / np.mean(few.values_error_**2))
        assert 0 < moved < 1


@pytest.mark.parametrize(
    "name", ["two classes", pytest.param("ridge", marks=pytest.mark.slow)]
)
def test_errors_of_banzhaf_values_are_smaller_than_those_of_the_default(name):
    problem = problem_of(name, n=300)
    ours, other = (
        problem.fit(
            valuer_of(name, DataBanzhafValuer, sampler=sampler, max_evaluations=3000)
        )
        for sampler in ("marginals", "subsets")
    )
    assert np.mean(ours.values_error_**2) < np.mean(other.values_error_**2) / 2


def test_the_default_budget_is_four_blocks(default):
    assert default.stop_reason_ == "max_evaluations"
    assert default.n_evaluations_ - 1 > 4 * 32


@pytest.mark.parametrize(
    "jobs", ["threads", "joblib threads", pytest.param("loky", marks=pytest.mark.slow)]
)
def test_values_do_not_depend_on_workers(jobs, default):
    problem = problem_of("two classes")
    if jobs == "threads":
        many = problem.fit(valuer_of("two classes", n_jobs=2))
    else:
        with parallel_config("loky" if jobs == "loky" else "threading", n_jobs=2):
            many = problem.fit(valuer_of("two classes", n_jobs=None))
    np.testing.assert_array_equal(default.values_, many.values_)


def test_warm_start_and_checkpoint_repeat_no_random_number(tmp_path):
    name, (few, most) = "two classes", (4000, 8000)
    problem = problem_of(name)
    whole = problem.fit(valuer_of(name, max_evaluations=most))
    part = problem.fit(valuer_of(name, max_evaluations=few, warm_start=True))
    problem.fit(part.set_params(max_evaluations=most))
    np.testing.assert_array_equal(part.values_, whole.values_)
    kept = {"checkpoint": tmp_path / "state.npz"}
    assert (
        problem.fit(valuer_of(name, max_evaluations=few, **kept)).n_evaluations_ < few
    )
    again = problem.fit(valuer_of(name, max_evaluations=most, **kept))
    np.testing.assert_array_equal(again.values_, whole.values_)
    np.testing.assert_array_equal(again.values_error_, whole.values_error_)


def test_tol_and_max_time():
    problem = problem_of("two classes")
    valuer = problem.fit(valuer_of("two classes", tol=4e-3))
    assert valuer.stop_reason_ == "tol"
    assert valuer.values_error_.max() <= 4e-3
    valuer = problem.fit(valuer_of("two classes", max_time=0.05))
    assert valuer.stop_reason_ == "max_time"
    assert np.isfinite(valuer.values_).all()
    assert problem.fit(valuer_of("ridge", max_evaluations=400)).n_evaluations_ <= 400


def test_budgets_below_a_block_are_refused():
    with pytest.raises(ValueError, match="max_evaluations must be at least"):
        problem_of("two classes").fit(valuer_of("two classes", max_evaluations=100))


def test_reweight_and_merge():
    name, options = "two classes", {"max_evaluations": 5000}
    problem = problem_of(name)
    valuer = problem.fit(valuer_of(name, **options))
    own = valuer.reweight("shapley")
    np.testing.assert_allclose(own.values_, valuer.values_, atol=1e-6)
    np.testing.assert_allclose(own.values_error_, valuer.values_error_, rtol=1e-3)
    beta = valuer.reweight((2, 1))
    other = valuer_of(
        name, SemivalueValuer, semivalue=(2, 1), random_state=1, **options
    )
    fitted = problem.fit(other)
    z = (beta.values_ - fitted.values_) / np.hypot(
        beta.values_error_, fitted.values_error_
    )
    assert np.sqrt(np.mean(z**2)) < 2.2
    other = problem.fit(valuer_of(name, random_state=1, **options))
    mean = (valuer.values_ + other.values_) / 2
    merged = valuer.merge(other)
    np.testing.assert_allclose(merged.values_, mean)
    assert np.isfinite(merged.reweight((2, 1)).values_).all()


def test_estimated_cost(default):
    problem = problem_of("two classes")
    cost = valuer_of("two classes").estimate_cost(*problem.rows, **problem.points)
    assert cost.sampler == "marginals"
    assert 0 < cost.seconds < 60
    assert cost.n_evaluations >= default.n_evaluations_


AUTO = {  # number of rows and columns, options of the valuer, and the sampler chosen
    "log-loss": ("two classes", 400, 4, {}, "marginals"),
    "ridge": ("ridge", 400, 4, {}, "marginals"),
    "Banzhaf": ("two classes", 400, 4, {"cls": DataBanzhafValuer}, "marginals"),
    "few rows": ("two classes", 199, 4, {}, "stratified"),
    "accuracy": ("two classes", 400, 4, {"scoring": "accuracy"}, "stratified"),
    "adjusted": ("two classes", 400, 4, {"adjust": True}, "stratified"),
    "few evaluations": ("ridge", 400, 4, {"max_evaluations": 1000}, "stratified"),
    "separable": (
        "two classes",
        400,
        48,
        {"estimator": LogisticRegression(C=1e3)},
        "stratified",
    ),
    "truncation": ("two classes", 400, 4, {"truncation": 0.01}, "antithetic"),
}


def lines(name, n, d):
    """Many columns separate the classes."""
    noise = 1e-6 if d > 40 else 1.0
    return noisy_line(0, n=n, d=d, n_classes=GAMES[name][2], noise=noise)


@pytest.mark.parametrize("case", list(AUTO))
def test_auto_is_the_sampler_of_less_error_for_the_work(case):
    name, n, d, options, sampler = AUTO[case]
    problem = lines(name, n, d)
    valuer = valuer_of(
        name, **{"sampler": "auto", "cls": options.get("cls", DataShapleyValuer)}
    )
    valuer.set_params(**{name: x for name, x in options.items() if name != "cls"})
    assert valuer.estimate_cost(*problem.rows, **problem.points).sampler == sampler


def test_auto_resumes_with_what_it_chose():
    problem = lines("two classes", 250, 4)
    options = {"sampler": "auto", "warm_start": True}
    valuer = problem.fit(valuer_of("two classes", **options))
    chosen, named = valuer.values_, problem.fit(valuer_of("two classes"))
    assert valuer.sampler_ == "marginals"
    np.testing.assert_array_equal(chosen, named.values_)
    np.testing.assert_array_equal(problem.fit(valuer).values_, chosen)


REFUSED = [
    ({"scoring": "roc_auc"}, "needs scoring to be 'neg_log_loss' or"),
    ({"estimator": KNeighborsClassifier()}, "Got KNeighborsClassifier"),
    ({"estimator": LogisticRegression(class_weight="balanced")}, "balanced"),
    ({"batch": "never"}, "sampler='marginals' needs LogisticRegression"),
    ({"truncation": 0.1}, "truncation needs a sampler of permutations"),
    ({"adjust": True}, "adjust=True needs random subsets"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED, ids=str)
def test_what_does_not_fit_is_refused(parameters, message):
    valuer = clone(valuer_of("two classes")).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        problem_of("two classes").fit(valuer)


def test_intervals(default):
    low, high = default.confidence_interval().T
    assert ((low < default.values_) & (default.values_ < high)).all()
    with pytest.raises(ValueError, match="independent replicates"):
        default.confidence_interval(method="bernstein")
