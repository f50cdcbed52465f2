"""Private Layered Shapley: sensitivities, noise, queries, refusals."""

import copy
import pickle
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from problems import two_classes
from sklearn.linear_model import LogisticRegression

from skvalue import LayeredShapleyValuer
from skvalue.estimation import Utilities, block_values
from skvalue.exceptions import NoiseExceedsSignalWarning
from skvalue.games import StableLogisticGame
from skvalue.privacy import (
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    SeededNoiseWarning,
    get_epsilon,
    mu_from_epsilon,
)
from skvalue.valuers.layered_shapley import (
    change_bounds,
    participation,
    plan_release,
    value_sensitivity,
)


@pytest.fixture
def problem(rng):
    return two_classes(rng, names=None)


@pytest.fixture
def public_problem(rng):
    """Enough validation points that values are shrunk."""
    return two_classes(rng, n_val=60, names=None)


def fit(problem, **parameters):
    """Fit with epsilon=1 and few coalitions, unless parameters say otherwise."""
    parameters = {"l2": 1.0, "n_layers": 3, "epsilon": 1.0, "tol": 0.5} | parameters
    return problem.fit(LayeredShapleyValuer(**parameters))


RELEASES = pytest.mark.parametrize("release", ["query", "all", "publish"])

# The plan of a release ----------------------------------------------------------------


@RELEASES
@pytest.mark.parametrize("max_queries", [1, 5, 100])
def test_the_noise_is_the_smaller_of_laplace_and_gaussian(release, max_queries):
    n = 500
    plan = plan_release(
        n, 3, epsilon=1.0, delta=1e-5, release=release, max_queries=max_queries
    )
    other, own = change_bounds(3, 1.0, 1.0)
    sensitivity = value_sensitivity(n, other)
    own_change = own.sum() / n if release == "publish" else 0.0
    # L1 and L2 sensitivity of everything that is released.
    count = max_queries if release == "query" else n - 1
    laplace = np.sqrt(2) * (count * sensitivity + own_change)
    l2_norm = np.hypot(np.sqrt(count) * sensitivity, own_change)
    gaussian = l2_norm / mu_from_epsilon(1.0, 1e-5)
    assert plan.noise_std == pytest.approx(min(laplace, gaussian), rel=1e-6)
    assert type(plan.noise) is (LaplaceEvent if laplace < gaussian else GaussianEvent)
    assert (plan.delta == 0) == (laplace < gaussian)


@pytest.mark.parametrize("max_queries", [1, 5, 100])
def test_all_queries_together_cost_epsilon(max_queries):
    plan = plan_release(500, 3, epsilon=1.0, delta=1e-5, max_queries=max_queries)
    epsilon = get_epsilon(plan.total, plan.delta or 1e-9)
    assert epsilon == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("tol", [1e-12, 1e-200])
@pytest.mark.parametrize("design", ["blocks", "iid"])
def test_an_error_that_no_fit_can_reach_is_refused(design, tol):
    """Numbers of coalitions do not overflow."""
    with pytest.raises(ValueError, match="tol must be larger.* Got 1e-"):
        plan_release(20, 2, epsilon=1.0, delta=1e-5, design=design, tol=tol)


@pytest.fixture
def secret_plan():
    """The plan of a query with coalitions of one and of two of 19 others."""
    return plan_release(20, 2, epsilon=1.0, delta=1e-5, design="iid", tol=0.9)


def test_participation_is_the_probability_of_being_in_a_coalition(secret_plan, rng):
    counts = secret_plan.counts[1:]
    draws = [rng.random((20_000, counts[k])) < (k + 1) / 19 for k in range(2)]
    expected = np.column_stack(draws).any(axis=1).mean()
    assert participation(20, counts) == pytest.approx(expected, abs=0.01)


def test_secret_coalitions_amplify_the_guarantee(secret_plan):
    # eps = ln(1 + p (e^s - 1)), with the participation p.
    other, _ = change_bounds(2, 1.0, 1.0)
    sensitivity = value_sensitivity(20, other, "iid")
    scale = secret_plan.noise.scale
    p = participation(20, secret_plan.counts[1:])
    assert np.log1p(p * np.expm1(sensitivity / scale)) == pytest.approx(1.0)
    assert secret_plan.charge.event == secret_plan.noise
    # What secrecy saves.
    assert scale <= sensitivity


# Sensitivities ------------------------------------------------------------------------


def block_values_of(X, y, points, players, l2=1.0):
    """Values of players from blocks in fixed orders."""
    game = StableLogisticGame(X, y, *points, l2=l2, fit_intercept=False)

    def streams(*key):
        return np.random.default_rng(key)

    return block_values(Utilities(game), [0, 1, 1, 1], players, streams)


@pytest.mark.parametrize("l2", [1.0, 0.1])
def test_no_row_moves_a_value_by_more_than_the_sensitivity(l2, rng):
    n = 7
    u = np.array([0.6, 0.8])
    points = u[None], np.ones(1, int)
    game = StableLogisticGame(*points, *points, l2=l2, fit_intercept=False)
    slope, curvature = game.validation_bounds()
    other, own = change_bounds(3, l2, 1.0, False, slope, curvature)
    plan = plan_release(
        n,
        3,
        epsilon=1.0,
        delta=1e-5,
        tol=1e3,
        l2=l2,
        fit_intercept=False,
        slope=slope,
        curvature=curvature,
    )
    assert plan.n_shuffles.tolist() == [0, 1, 1, 1]
    bound = value_sensitivity(n, other)
    assert bound == pytest.approx(plan.noise.scale)

    largest_own = 0.0
    largest_other = 0.0
    for _ in range(12):
        # Rows of zeros or not, of which one is replaced by the point with either label.
        rows = [
            (rng.normal(size=2) * rng.choice([0, 1]), rng.integers(2)) for _ in range(n)
        ]
        X = np.array([x for x, _ in rows])
        y = np.array([label for _, label in rows])
        X[0] = u * rng.choice([0, 1])
        y[0] = 1
        for i in (0, 1, n - 1):
            X_changed = X.copy()
            X_changed[i] = u
            values = []
            for label in (0, 1):
                y_changed = y.copy()
                y_changed[i] = label
                values.append(block_values_of(X_changed, y_changed, points, None, l2))
            changes = np.abs(values[0] - values[1])
            largest_own = max(largest_own, changes[i])
            largest_other = max(largest_other, np.delete(changes, i).max())
    assert 0.01 * bound < largest_other <= bound
    assert 0.3 * own.sum() / n < largest_own <= own.sum() / n


def second_difference(rng, k, l2):
    """How a row that is replaced among k changes what another row adds to them.

    As a fraction of the bound.
    """
    X = rng.normal(size=(k + 2, 2)) * rng.choice([0.3, 3])
    y = rng.integers(0, 2, k + 2)
    X_val = rng.normal(size=(rng.integers(1, 3), 2)) * 3
    y_val = np.array([0, 1])[: len(X_val)]
    # Rows along the validation point, of either label, move it most.
    if rng.random() < 0.7:
        X[k - 1] = X_val[0]
        X[k] = -X_val[0]
        X[k + 1] = X_val[0] * rng.choice([-1, 1])
    game = StableLogisticGame(X, y, X_val, y_val, l2=l2, fit_intercept=False)

    # The first k rows, and those in which row k replaces row k - 1; without and with
    # the last row.
    masks = np.zeros((2, 2, k + 2), dtype=bool)
    masks[0, :, :k] = True
    masks[1, :, : k - 1] = True
    masks[1, :, k] = True
    masks[:, 1, k + 1] = True
    utilities = game.utility(masks.reshape(4, -1)).reshape(2, 2)
    gains = utilities[:, 1] - utilities[:, 0]
    slope, curvature = game.validation_bounds()
    other, _ = change_bounds(4, l2, 1.0, False, slope, curvature)
    return abs(gains[0] - gains[1]) / other[k - 1]


@pytest.mark.parametrize(("l2", "smallest"), [(1.0, 0.1), (0.1, 0.05), (0.01, 0.05)])
def test_no_row_moves_a_marginal_contribution_by_more_than_the_bound(l2, smallest, rng):
    fractions = np.zeros(4)
    for _ in range(150):
        k = rng.integers(1, 5)
        fractions[k - 1] = max(fractions[k - 1], second_difference(rng, k, l2))
    assert fractions.max() <= 1
    assert fractions.min() > smallest


@pytest.mark.parametrize("l2", [1.0, 0.01])
def test_bounds_of_the_utility_hold_for_all_models(l2, rng):
    X_val = rng.normal(size=(9, 3)) + 0.3
    y_val = rng.integers(0, 2, 9)
    game = StableLogisticGame(X_val, y_val, X_val, y_val, l2=l2, fit_intercept=False)
    slope, curvature = game.validation_bounds()
    Z = X_val / np.maximum(np.linalg.norm(X_val, axis=1), 1)[:, None]
    signed = Z * (2 * y_val - 1)[:, None]
    radius = np.sqrt(0.27846454276107 / l2)
    steepest = 0.0
    for _ in range(300):
        w = rng.normal(size=3)
        w *= radius / np.linalg.norm(w)
        s = 1 / (1 + np.exp(signed @ w))
        steepest = max(steepest, np.linalg.norm(s @ signed / 9))
        hessian = (Z * (s * (1 - s))[:, None]).T @ Z / 9
        assert np.linalg.norm(hessian, 2) <= curvature
    assert 0.5 * slope < steepest <= slope < 1


def test_one_query_is_one_entry_of_all(rng):
    X = rng.normal(size=(17, 3))
    y = rng.integers(0, 2, 17)
    points = rng.normal(size=(20, 3)), rng.integers(0, 2, 20)
    all_values = block_values_of(X, y, points, None)
    values = block_values_of(X, y, points, [0, 5, 16])
    np.testing.assert_allclose(values, all_values[[0, 5, 16]], atol=1e-12)


# Noise --------------------------------------------------------------------------------


@RELEASES
def test_little_noise_gives_the_exact_values(release, problem):
    noisy = fit(problem, epsilon=1e6, release=release, tol=0.1)
    exact = fit(problem, epsilon=None, tol=0.01).values_
    rows = [3] if release == "query" else range(40)
    answers = [noisy.values_for(i) for i in rows]
    np.testing.assert_allclose(answers, exact[rows], atol=4e-4)
    assert np.std(exact) > 0.0015


def test_noise_is_fresh_and_of_the_scale(rng):
    problem = two_classes(rng, 12, names=None)

    def answers(**options):
        valuer = fit(problem, max_queries=3, random_state=0, **options)
        return [valuer.values_for(i) for i in range(3)]

    noise = np.array([answers() for _ in range(120)]) - answers(epsilon=1e9)
    scale = fit(problem, max_queries=3, random_state=0).noise_scale_
    assert len(set(noise.ravel())) == 360
    # The mean of 360 absolute values of Laplace noise: within 6 standard deviations.
    assert np.mean(np.abs(noise)) == pytest.approx(scale, rel=6 / np.sqrt(360))


def test_secret_coalitions_are_fresh(problem):
    exact = fit(problem, epsilon=None, tol=0.01).values_[2]
    options = {"design": "iid", "epsilon": 1e6, "random_state": 0, "tol": 0.4}
    values = [fit(problem, **options).values_for(2) for _ in range(60)]
    # `random_state` does not decide.
    assert len(set(np.round(values, 6))) > 5
    error = 7 * np.std(values) / np.sqrt(60)
    assert error < 0.2 * abs(exact)
    assert np.mean(values) == pytest.approx(exact, abs=error)


# Queries ------------------------------------------------------------------------------


@pytest.fixture
def ledger():
    return Ledger(None, "rows", epsilon=1.0, delta=1e-5)


@pytest.fixture
def two_queries(problem, ledger):
    """A fit that answers two queries, which cost what the ledger has."""
    return fit(problem, max_queries=2, ledger=ledger)


def test_a_fit_for_queries_releases_nothing(two_queries, ledger):
    assert ledger.n_charges == 0
    assert np.isnan(two_queries.values_).all()


def test_a_query_is_charged_once_and_its_answer_kept(two_queries, ledger):
    value = two_queries.values_for(3)
    assert two_queries.values_for(3) == value
    assert two_queries.values_for(-37) == value
    assert two_queries.values_[3] == value
    assert ledger.n_charges == 1


def test_a_query_is_charged_for_its_noise(two_queries, ledger):
    two_queries.values_for(3)
    event = ledger.charges[0].event
    assert isinstance(event, LaplaceEvent)
    assert event.scale == two_queries.noise_scale_
    assert event.scale == pytest.approx(2 * event.sensitivity, rel=1e-9)


def test_two_queries_cost_epsilon_and_a_third_is_refused(two_queries, ledger):
    two_queries.values_for(3)
    two_queries.values_for(4)
    assert ledger.spent == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(ValueError, match="max_queries .* total of 2 queries"):
        two_queries.values_for(5)


def test_a_query_that_the_ledger_refuses_releases_nothing(two_queries, problem, ledger):
    two_queries.values_for(3)
    two_queries.values_for(4)
    other = fit(problem, max_queries=2, ledger=ledger)
    with pytest.raises(ValueError, match="what is left of the budget"):
        other.values_for(0)
    assert np.isnan(other.values_).all()


def test_an_owner_that_is_not_there_is_refused(two_queries):
    with pytest.raises(ValueError, match="i must be between 0 and 39"):
        two_queries.values_for(40)


def test_queries_at_the_same_time_are_no_more_than_were_paid_for(problem, monkeypatch):
    charge = Ledger.charge

    def charge_slowly(self, *arguments, **options):
        time.sleep(0.05)
        return charge(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "charge", charge_slowly)
    ledger = Ledger(None, "rows", epsilon=5.0, delta=1e-5)
    valuer = fit(problem, ledger=ledger)
    with ThreadPoolExecutor(6) as pool:
        tasks = [pool.submit(valuer.values_for, i) for i in (3, 3, 3, 4, 5, 6)]
    answers = {task.result() for task in tasks if task.exception() is None}
    assert len(answers) == ledger.n_charges == 1


def test_queries_are_answered_as_the_fit_promised(problem, ledger):
    valuer = fit(problem, ledger=ledger)
    valuer.set_params(max_queries=9, ledger=None, noise_random_state=0, epsilon=9.0)
    with warnings.catch_warnings():
        # A warning would be of noise from a seed.
        warnings.simplefilter("error")
        valuer.values_for(0)
    assert ledger.n_charges == 1
    with pytest.raises(ValueError, match="epsilon=1 is the total of 1 queries"):
        valuer.values_for(1)


# Reports ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "guarantee"),
    [
        ("query", "(1)-joint differential privacy"),
        ("all", "(1, 1e-05)-joint differential privacy"),
        # Laplace noise is smaller.
        ("publish", "(1)-differential privacy"),
    ],
)
def test_the_guarantee_is_that_of_the_release(release, guarantee, problem):
    assert fit(problem, release=release).privacy_.guarantee == guarantee


def test_the_report_of_queries_says_what_is_protected(problem):
    text = " ".join(str(fit(problem).privacy_).split())
    assert "had one row been replaced by any other" in text
    assert "in the values of other rows that are queried (at most 1)" in text
    assert "l2, max_norm, n_layers and all other parameters were chosen without" in text


@pytest.mark.parametrize("release", ["query", "publish"])
def test_with_few_points_the_error_is_that_of_the_noise(release, problem):
    # Fewer than 50 public points: no shrinkage.
    valuer = fit(problem, release=release)
    expected = np.sqrt(2) * valuer.noise_scale_
    assert valuer.shrinkage_ == 1
    np.testing.assert_allclose(valuer.values_error_, expected)


@RELEASES
@pytest.mark.parametrize("points", ["few", "many"])
@pytest.mark.parametrize(("epsilon", "is_worthless"), [(0.1, True), (1e6, False)])
def test_a_release_that_is_worth_nothing_is_warned_of(
    release, points, epsilon, is_worthless, problem, public_problem
):
    data = problem if points == "few" else public_problem
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        fit(data, release=release, epsilon=epsilon)
    warned = [w for w in record if w.category is NoiseExceedsSignalWarning]
    assert len(warned) == is_worthless


def test_the_warning_does_not_depend_on_private_rows(public_problem):
    X, y, *_ = public_problem
    messages = []
    for data in (public_problem, public_problem._replace(X=100 * X, y=y[::-1])):
        with pytest.warns(NoiseExceedsSignalWarning) as record:
            fit(data, release="all")
        messages += [str(w.message) for w in record if "signal" in str(w.message)]
    assert len(set(messages)) == 1


def test_an_owner_is_told_its_value_and_error(problem):
    valuer = fit(problem)
    answer = valuer.values_for(0, return_error=True)
    assert answer == (valuer.values_[0], valuer.values_error_[0])


def test_the_utility_of_private_rows_is_not_released(problem):
    assert np.isnan(fit(problem).utility_)


# What is kept -------------------------------------------------------------------------


@pytest.mark.parametrize("copy_of", [pickle.dumps, copy.deepcopy])
def test_a_fit_for_queries_refuses_to_be_copied(copy_of, problem):
    with pytest.raises(TypeError, match="holds the rows"):
        copy_of(fit(problem))


@pytest.mark.parametrize("later", ["all", "publish"])
def test_a_pickle_of_values_to_owners_holds_none(later, problem):
    # A parameter that is changed later publishes nothing.
    valuer = fit(problem, release="all").set_params(release=later)
    kept = pickle.loads(pickle.dumps(valuer))
    assert not hasattr(kept, "values_")
    with pytest.raises(AttributeError, match="values_error_"):
        _ = kept.values_error_


def test_a_pickle_of_a_published_vector_holds_it(problem):
    vector = fit(problem, release="publish")
    kept = pickle.loads(pickle.dumps(vector))
    np.testing.assert_array_equal(kept.values_, vector.values_)
    np.testing.assert_array_equal(kept.values_error_, vector.values_error_)
    assert ">values_" in vector._repr_html_()


@pytest.mark.parametrize("release", ["all", "publish"])
def test_nothing_of_the_rows_or_of_an_exact_fit_is_kept(release, problem):
    valuer = fit(problem, epsilon=None)
    valuer.transform(problem.X + 1)
    problem.fit(valuer.set_params(epsilon=1.0, release=release))
    assert vars(valuer).keys() == vars(fit(problem, release=release)).keys()
    data = pickle.dumps(valuer)
    assert all(row.tobytes() not in data for row in problem.X)


def test_an_exact_fit_after_a_private_one_is_pickled_with_its_values(problem):
    valuer = problem.fit(fit(problem).set_params(epsilon=None))
    kept = pickle.loads(pickle.dumps(valuer))
    assert kept.values_for(3) == valuer.values_[3]


def test_a_private_fit_after_an_exact_one_has_no_layers(problem):
    valuer = fit(problem, epsilon=None)
    assert hasattr(valuer, "layer_values_")
    problem.fit(valuer.set_params(epsilon=1.0))
    assert not hasattr(valuer, "layer_values_")


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("estimator", {"estimator": LogisticRegression(), "l2": None}),
        ("scoring", {"scoring": "accuracy"}),
        ("l2", {"l2": None}),
        ("n_layers", {"n_layers": None}),
        ("n_layers must be at most 38", {"n_layers": 39}),
        ("n_layers .* fewer than 50", {"n_layers": "auto"}),
        ("design", {"design": "poisson"}),
        ("design .* release='all'", {"design": "iid", "release": "all"}),
        ("tol", {"design": "iid", "tol": None}),
        ("max_evaluations", {"max_evaluations": 100}),
        ("max_time", {"max_time": 1.0}),
        ("max_queries", {"release": "all", "max_queries": 3}),
    ],
    ids=str,
)
def test_parameters_without_a_proved_guarantee_are_refused(name, parameters, problem):
    with pytest.raises(ValueError, match=f"^{name} "):
        fit(problem, **parameters)


def test_private_groups_are_refused(problem):
    valuer = LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0)
    with pytest.raises(ValueError, match="groups must be None"):
        problem.fit(valuer, groups=np.arange(40))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("reader", {"release": "all"}), ("release", {"reader": "curator"})],
)
def test_fit_transform_needs_a_reader_and_a_release(name, parameters, problem):
    valuer = LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0, **parameters)
    with pytest.raises(ValueError, match=f"^{name} must be .* fit_transform"):
        valuer.fit_transform(*problem.rows, **problem.points)


def test_fit_transform_returns_a_published_vector(problem):
    valuer = LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0, release="publish")
    values = valuer.fit_transform(*problem.rows, **problem.points)
    assert values.shape == (40, 1)


@pytest.mark.parametrize(
    "ask",
    [lambda valuer, X: valuer.transform(X), lambda valuer, X: valuer.core_sets()],
    ids=["transform", "core_sets"],
)
def test_what_needs_the_rows_is_refused_after_a_private_fit(ask, problem):
    valuer = fit(problem, release="publish")
    with pytest.raises(ValueError, match="which a private fit does not keep"):
        ask(valuer, problem.X[:2])


@pytest.fixture
def strange_labels(problem):
    """Some rows have a label that no validation point has."""
    return problem._replace(y=np.where(np.arange(40) % 7 == 0, 9, problem.y))


def test_labels_without_a_validation_point_do_not_matter(strange_labels):
    assert np.isfinite(fit(strange_labels).values_for(0))


def test_points_of_three_classes_are_refused(strange_labels):
    three = strange_labels._replace(y_val=np.arange(20) % 3)
    with pytest.raises(ValueError, match="l2 needs two classes"):
        fit(three)


# Baseline and prediction --------------------------------------------------------------

TO_OWNERS = pytest.mark.parametrize("release", ["query", "all"])


@TO_OWNERS
def test_the_baseline_is_layer_0(release, public_problem):
    exact = fit(public_problem, epsilon=None, tol=None)
    valuer = fit(public_problem, release=release)
    np.testing.assert_allclose(valuer.baseline_, exact.layer_values_[0], atol=1e-12)
    assert "baseline_" not in dir(valuer)


@TO_OWNERS
def test_baseline_and_prediction_cost_nothing(release, public_problem):
    ledger = Ledger(None, "rows", epsilon=2.0, delta=1e-5)
    valuer = fit(public_problem, release=release, ledger=ledger)
    n_charges = ledger.n_charges
    assert n_charges == (release == "all")
    _ = valuer.baseline_
    valuer.prediction()
    assert ledger.n_charges == n_charges


@TO_OWNERS
def test_baseline_and_prediction_depend_on_the_row_alone(release, public_problem, rng):
    X, y, *_ = public_problem
    valuer = fit(public_problem, release=release)
    X_other = np.r_[X[:1], rng.normal(size=(39, 3))]
    y_other = np.r_[y[:1], 1 - y[1:]]
    other = fit(public_problem._replace(X=X_other, y=y_other), release=release)
    assert other.baseline_[0] == pytest.approx(valuer.baseline_[0], abs=1e-12)
    prediction = valuer.prediction()[0]
    assert other.prediction()[0] == pytest.approx(prediction, abs=1e-12)
    assert other.shrinkage_ == valuer.shrinkage_


@TO_OWNERS
def test_an_owner_is_told_its_baseline(release, public_problem):
    valuer = fit(public_problem, release=release)
    value, baseline = valuer.values_for(0, return_baseline=True)
    assert baseline == valuer.baseline_[0]
    assert baseline != value


@TO_OWNERS
def test_predictions_are_correlated_with_exact_values(release, public_problem):
    exact = fit(public_problem, epsilon=None, tol=None).values_
    predictions = fit(public_problem, release=release).prediction()
    assert np.corrcoef(predictions, exact)[0, 1] > 0.9


@pytest.mark.parametrize("kind", ["pickled", "published"])
def test_a_copy_and_a_published_vector_have_no_baseline(kind, public_problem):
    if kind == "published":
        valuer = fit(public_problem, release="publish")
    else:
        valuer = pickle.loads(pickle.dumps(fit(public_problem, release="all")))
    with pytest.raises(AttributeError, match="baseline_"):
        _ = valuer.baseline_
    with pytest.raises(ValueError, match="prediction"):
        valuer.prediction()


def test_an_owner_of_a_published_value_is_told_no_baseline(public_problem):
    vector = fit(public_problem, release="publish")
    with pytest.raises(ValueError, match="no baseline_ to return"):
        vector.values_for(0, return_baseline=True)


def test_few_points_predict_nothing(problem):
    message = "prediction needs at least 50 validation points"
    with pytest.raises(ValueError, match=message):
        fit(problem).prediction()


def test_values_are_shrunk_as_stated(public_problem):
    options = {"release": "all", "random_state": 0}
    with pytest.warns(SeededNoiseWarning):
        valuer = fit(public_problem, noise_random_state=0, **options)
    exact = fit(public_problem, epsilon=1e9, **options).values_
    weight = valuer.shrinkage_
    assert 0 < weight < 0.5
    # The same rows and noise without the prediction: values plus noise.
    unshrunk = (valuer.values_ - (1 - weight) * valuer.prediction()) / weight
    assert 0.2 < np.std(unshrunk - exact) / valuer.noise_scale_ < 3
    error = np.sqrt(np.mean((valuer.values_ - exact) ** 2))
    assert error < np.sqrt(np.mean((unshrunk - exact) ** 2))
    assert valuer.values_error_.max() < 1.5 * valuer.noise_scale_


# Tuning -------------------------------------------------------------------------------

AUTO = {"l2": "auto", "n_layers": "auto", "tol": None}


@pytest.mark.slow
def test_layers_and_penalty_are_chosen_on_public_rows(rng):
    problem = two_classes(rng, 60, 60, names=None)
    valuer = fit(problem, **AUTO)
    assert valuer.l2_ in (1.0, 0.1, 0.01)
    assert valuer.n_layers_ in (1, 2, 3, 5, 10)
    assert len(valuer.counts_) == valuer.n_layers_ + 1
    assert np.isfinite(valuer.values_for(0))


@pytest.mark.slow
def test_private_rows_do_not_change_layers_and_penalty(rng):
    problem = two_classes(rng, 60, 60, names=None)
    valuer = fit(problem, **AUTO)
    other = fit(problem._replace(X=-problem.X, y=1 - problem.y), **AUTO)
    assert (other.l2_, other.n_layers_) == (valuer.l2_, valuer.n_layers_)


@pytest.mark.slow
def test_a_large_budget_allows_for_many_layers(rng):
    problem = two_classes(rng, 60, 60, names=None)
    valuer = fit(problem, l2=0.1, n_layers="auto", tol=None, epsilon=1e6)
    assert valuer.n_layers_ == 10


def test_layers_are_chosen_on_public_rows(public_problem):
    valuer = fit(public_problem, n_layers="auto", tol=None)
    assert len(valuer.counts_) == valuer.n_layers_ + 1


# The value of several rows ------------------------------------------------------------


@pytest.mark.parametrize("rows", [[3], [3, 8], [1, 4, 9, 11]])
def test_the_sum_of_several_values_has_as_many_times_the_noise(public_problem, rows):
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = fit(public_problem, ledger=ledger, max_queries=2)
    group = valuer.value_of_group(rows)
    (charge,) = ledger.charges
    plan_noise = valuer._fitted.answers.plan.noise
    assert charge.event.scale == pytest.approx(len(rows) * plan_noise.scale)
    assert charge.event.sensitivity == pytest.approx(len(rows) * plan_noise.sensitivity)
    assert valuer.value_of_group(rows[::-1]) == group  # asking again is free
    assert ledger.n_charges == 1
    assert group.mean == pytest.approx(group.value / len(rows))
    assert group.row_values is None


def test_a_group_is_one_of_the_queries(problem):
    valuer = fit(problem, max_queries=2)
    valuer.value_of_group([0, 1])
    valuer.values_for(2)
    with pytest.raises(ValueError, match="max_queries must be larger"):
        valuer.value_of_group([0, 2])


def test_with_next_to_no_noise_a_group_is_worth_the_sum_of_its_values(public_problem):
    options = {"epsilon": 1e9, "random_state": 0, "max_queries": 4}
    alone = fit(public_problem, **options)
    values = [alone.values_for(row) for row in (2, 5, 6)]
    together = fit(public_problem, **options).value_of_group([2, 5, 6])
    assert together.value == pytest.approx(sum(values), abs=1e-6)


def test_another_row_moves_a_sum_by_no_more_than_its_sensitivity(rng):
    """The exact sum of three values, as one of the other rows takes other contents."""
    problem = two_classes(rng, 12, names=None)
    rows = [0, 4, 9]
    other, _ = change_bounds(3, 1.0, 1.0)
    bound = 3 * value_sensitivity(12, other)

    def exact_sum(X, y):
        game = StableLogisticGame(
            X, y, problem.X_val, problem.y_val, l2=1.0, max_norm=1.0
        )
        seeds = np.random.default_rng
        values = block_values(
            Utilities(game),
            np.r_[0, 2, 2, 2],
            rows,
            lambda k, shuffle: seeds([k, shuffle]),
        )
        return values.sum()

    before = exact_sum(problem.X, problem.y)
    moves = []
    for row in (1, 5, 11):
        for direction in (np.full(3, 50.0), np.full(3, -50.0), np.zeros(3)):
            X = problem.X.copy()
            X[row] = direction
            for label in (0, 1):
                y = problem.y.copy()
                y[row] = label
                moves.append(abs(exact_sum(X, y) - before))
    assert 0 < max(moves) <= bound


@pytest.mark.parametrize("release", ["all", "publish"])
def test_the_value_of_a_group_of_released_values_is_their_sum(problem, release):
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = fit(problem, release=release, ledger=ledger)
    group = valuer.value_of_group([3, 1])
    assert group.value == pytest.approx(valuer.values_[[1, 3]].sum())
    np.testing.assert_array_equal(group.row_values, valuer.values_[[1, 3]])
    assert ledger.n_charges == 1


def test_a_group_of_secret_coalitions_is_refused(problem):
    valuer = fit(problem, design="iid", max_queries=3)
    with pytest.raises(ValueError, match="value_of_group needs design='blocks'"):
        valuer.value_of_group([0, 1])
    assert np.isfinite(valuer.value_of_group([0]).value)


def test_an_error_of_a_private_group_cannot_be_chosen(problem):
    with pytest.raises(ValueError, match="tol and confidence must be None after a pr"):
        fit(problem).value_of_group([0, 1], tol=0.1)
