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
    parameters = {"l2": 1.0, "n_layers": 3, "epsilon": 1.0, "tol": 0.5, **parameters}
    return problem.fit(LayeredShapleyValuer(**parameters))


@pytest.mark.parametrize("release", ["query", "all", "publish"])
@pytest.mark.parametrize("max_queries", [1, 5, 100])
def test_noise_costs_epsilon_and_is_the_smaller(release, max_queries):
    n, mu = 500, mu_from_epsilon(1.0, 1e-5)
    plan = plan_release(
        n, 3, epsilon=1.0, delta=1e-5, release=release, max_queries=max_queries
    )
    other, own = change_bounds(3, 1.0, 1.0)
    one, itself = (
        value_sensitivity(n, other),
        own.sum() / n if release == "publish" else 0.0,
    )
    # L1 and L2 sensitivity of everything that is released.
    count = max_queries if release == "query" else n - 1
    laplace = np.sqrt(2) * (count * one + itself)
    gaussian = np.hypot(np.sqrt(count) * one, itself) / mu
    assert plan.noise_std == pytest.approx(min(laplace, gaussian), rel=1e-6)
    assert type(plan.noise) is (LaplaceEvent if laplace < gaussian else GaussianEvent)
    assert (plan.delta == 0) == (laplace < gaussian)
    if release == "query":
        assert get_epsilon(plan.total, plan.delta or 1e-9) == pytest.approx(
            1.0, rel=0.02
        )


def test_noise_of_secret_coalitions(rng):
    plan = plan_release(20, 2, epsilon=1.0, delta=1e-5, design="iid", tol=0.9)
    one = value_sensitivity(20, change_bounds(2, 1.0, 1.0)[0], "iid")
    # The share of runs in which one of 19 others is in a coalition, and eps = ln(1 + p
    # (e^s - 1)).
    m = plan.counts[1:]
    drawn = [rng.random((20_000, m[k])) < (k + 1) / 19 for k in range(2)]
    p = np.column_stack(drawn).any(axis=1).mean()
    assert participation(20, m) == pytest.approx(p, abs=0.01)
    scale = plan.noise.scale
    assert np.log1p(participation(20, m) * np.expm1(one / scale)) == pytest.approx(1.0)
    assert plan.charge.event == plan.noise
    assert scale <= one  # what secrecy saves


def values_of(rows, points, players, l2=1.0):
    X, y = np.array([x for x, _ in rows]), np.array([label for _, label in rows])
    game = StableLogisticGame(X, y, *points, l2=l2, fit_intercept=False)
    return block_values(
        Utilities(game), [0, 1, 1, 1], players, lambda *k: np.random.default_rng(k)
    )


@pytest.mark.parametrize("l2", [1.0, 0.1])
def test_no_other_row_moves_a_value_by_more_than_the_sensitivity(l2, rng):
    n, own, worst = 7, 0.0, 0.0
    u = np.array([0.6, 0.8])
    points = (u[None], np.ones(1, int))
    slope, curvature = StableLogisticGame(
        u[None], np.ones(1, int), *points, l2=l2, fit_intercept=False
    ).validation_bounds()
    game = dict(l2=l2, fit_intercept=False, slope=slope, curvature=curvature)
    other, of_own = change_bounds(3, l2, 1.0, False, slope, curvature)
    for _ in range(12):
        rows = [
            (rng.normal(size=2) * rng.choice([0, 1]), rng.integers(2)) for _ in range(n)
        ]
        rows[0] = (u * rng.choice([0, 1]), 1)
        for place in (0, 1, n - 1):
            sides = [
                [*rows[:place], (u, label), *rows[place + 1 :]] for label in (0, 1)
            ]
            before, after = (values_of(side, points, None, l2) for side in sides)
            change = np.abs(before - after)
            own = max(own, change[place])
            worst = max(worst, np.delete(change, place).max())
    bound = value_sensitivity(n, other)
    plan = plan_release(n, 3, epsilon=1.0, delta=1e-5, tol=1e3, **game)
    assert plan.n_shuffles.tolist() == [0, 1, 1, 1]
    assert bound == pytest.approx(plan.noise.scale)
    assert 0.01 * bound < worst <= bound
    assert 0.3 * of_own.sum() / n < own <= of_own.sum() / n


@pytest.mark.parametrize("l2", [1.0, 0.1, 0.01])
def test_no_row_moves_a_marginal_contribution_by_more_than_the_bound(l2, rng):
    # Rows along the validation point, of either label, move it most.
    fraction = np.zeros(4)
    for _ in range(150):
        k = rng.integers(1, 5)
        X, y = (
            rng.normal(size=(k + 2, 2)) * rng.choice([0.3, 3]),
            rng.integers(0, 2, k + 2),
        )
        X_val, y_val = rng.normal(size=(rng.integers(1, 3), 2)) * 3, np.array([0, 1])
        if rng.random() < 0.7:
            X[k - 1], X[k], X[k + 1] = (
                X_val[0],
                -X_val[0],
                X_val[0] * rng.choice([-1, 1]),
            )
        game = StableLogisticGame(
            X, y, X_val, y_val[: len(X_val)], l2=l2, fit_intercept=False
        )
        masks = np.zeros(
            (4, k + 2), dtype=bool
        )  # with or without the last row; another replaced
        masks[:2, :k], masks[2:, : k - 1], masks[2:, k], masks[1::2, k + 1] = (
            True,
            True,
            True,
            True,
        )
        v = game.utility(masks)
        bound = change_bounds(4, l2, 1.0, False, *game.validation_bounds())[0][k - 1]
        fraction[k - 1] = max(fraction[k - 1], abs(v[1] - v[0] - v[3] + v[2]) / bound)
    assert fraction.max() <= 1
    assert fraction.min() > {1.0: 0.1, 0.1: 0.05, 0.01: 0.05}[l2]


def test_bounds_of_the_utility_hold_for_all_models(rng):
    for l2 in (1.0, 0.01):
        X_val, y_val = rng.normal(size=(9, 3)) + 0.3, rng.integers(0, 2, 9)
        game = StableLogisticGame(
            X_val, y_val, X_val, y_val, l2=l2, fit_intercept=False
        )
        slope, curvature = game.validation_bounds()
        Z = X_val / np.maximum(np.linalg.norm(X_val, axis=1), 1)[:, None]
        signed, radius = Z * (2 * y_val - 1)[:, None], np.sqrt(0.27846454276107 / l2)
        steepest = 0.0
        for _ in range(300):
            w = rng.normal(size=3)
            s = 1 / (1 + np.exp(signed @ (w * radius / np.linalg.norm(w))))
            steepest = max(steepest, np.linalg.norm(s @ signed / 9))
            hessian = (Z * (s * (1 - s))[:, None]).T @ Z / 9
            assert np.linalg.norm(hessian, 2) <= curvature
        assert 0.5 * slope < steepest <= slope < 1


def test_one_query_is_one_entry_of_all(rng):
    rows = [(rng.normal(size=3), rng.integers(2)) for _ in range(17)]
    points = rng.normal(size=(20, 3)), rng.integers(0, 2, 20)
    every, some = (values_of(rows, points, players) for players in (None, [0, 5, 16]))
    np.testing.assert_allclose(some, every[[0, 5, 16]], atol=1e-12)


@pytest.mark.parametrize("release", ["query", "all", "publish"])
def test_little_noise_gives_the_exact_values(release, problem):
    noisy = fit(problem, epsilon=1e6, release=release, tol=0.1)
    exact = fit(problem, epsilon=None, tol=0.01).values_
    rows = [3] if release == "query" else range(40)
    np.testing.assert_allclose(
        [noisy.values_for(i) for i in rows], exact[rows], atol=4e-4
    )
    assert np.std(exact) > 0.0015


def test_queries_are_charged_and_kept(problem):
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = fit(problem, max_queries=2, ledger=ledger)
    assert ledger.n_charges == 0
    assert np.isnan(valuer.values_).all()
    first = valuer.values_for(3)
    assert valuer.values_for(3) == valuer.values_for(-37) == first == valuer.values_[3]
    assert ledger.n_charges == 1
    event = ledger.charges[0].event
    assert isinstance(event, LaplaceEvent)
    assert (
        event.scale
        == valuer.noise_scale_
        == pytest.approx(2 * event.sensitivity, rel=1e-9)
    )
    valuer.values_for(4)
    assert ledger.spent == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(ValueError, match="max_queries .* total of 2 queries"):
        valuer.values_for(5)
    again = fit(problem, max_queries=2, ledger=ledger)
    with pytest.raises(ValueError, match="what is left of the budget"):
        again.values_for(0)
    assert np.isnan(again.values_).all()
    with pytest.raises(ValueError, match="i must be between 0 and 39"):
        again.values_for(40)


def test_queries_at_the_same_time_are_no_more_than_were_paid_for(problem, monkeypatch):
    def slow(self, *arguments, charge=Ledger.charge, **options):
        time.sleep(0.05)
        return charge(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "charge", slow)
    ledger = Ledger(None, "rows", epsilon=5.0, delta=1e-5)
    valuer = fit(problem, ledger=ledger)
    with ThreadPoolExecutor(6) as pool:
        tasks = [pool.submit(valuer.values_for, i) for i in (3, 3, 3, 4, 5, 6)]
    answers = {task.result() for task in tasks if task.exception() is None}
    assert len(answers) == ledger.n_charges == 1


def test_queries_are_answered_as_the_fit_promised(problem):
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = fit(problem, ledger=ledger)
    valuer.set_params(max_queries=9, ledger=None, noise_random_state=0, epsilon=9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of noise from a seed
        valuer.values_for(0)
    assert ledger.n_charges == 1
    with pytest.raises(ValueError, match="epsilon=1 is the total of 1 queries"):
        valuer.values_for(1)


def test_what_a_release_is_worth_reporting(problem):
    one, vector = fit(problem), fit(problem, release="publish")
    guarantee = fit(problem, release="all").privacy_.guarantee
    assert guarantee == "(1, 1e-05)-joint differential privacy"
    assert one.privacy_.guarantee == "(1)-joint differential privacy"
    assert (
        vector.privacy_.guarantee == "(1)-differential privacy"
    )  # Laplace noise is smaller
    text = " ".join(str(one.privacy_).split())
    assert "had one row been replaced by any other" in text
    assert "in the values of other rows that are queried (at most 1)" in text
    assert "l2, max_norm, n_layers and all other parameters were chosen without" in text
    # Fewer than 50 public points: no shrinkage, so that the error is that of the noise.
    for valuer in (one, vector):
        np.testing.assert_allclose(
            valuer.values_error_, np.sqrt(2) * valuer.noise_scale_
        )
    found = one.values_for(0, return_error=True)
    assert found == (one.values_[0], one.values_error_[0])
    assert one.shrinkage_ == 1
    assert np.isnan(one.utility_)


def test_pickling(problem):
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="holds the rows"):
            copied(fit(problem))
    for release in (
        "all",
        "publish",
    ):  # a parameter that is changed later publishes nothing
        every = fit(problem, release="all").set_params(release=release)
        every = pickle.loads(pickle.dumps(every))
        assert not hasattr(every, "values_")
        with pytest.raises(AttributeError, match="values_error_"):
            _ = every.values_error_
    vector = fit(problem, release="publish")
    again = pickle.loads(pickle.dumps(vector))
    np.testing.assert_array_equal(again.values_, vector.values_)
    np.testing.assert_array_equal(again.values_error_, vector.values_error_)
    assert ">values_" in vector._repr_html_()


@pytest.mark.parametrize("release", ["all", "publish"])
def test_nothing_of_the_rows_or_of_an_exact_fit_is_kept(release, problem):
    valuer = fit(problem, epsilon=None)
    valuer.transform(problem.X + 1)
    problem.fit(valuer.set_params(epsilon=1.0, release=release))
    assert vars(valuer).keys() == vars(fit(problem, release=release)).keys()
    blob = pickle.dumps(valuer)
    assert all(row.tobytes() not in blob for row in problem.X)


def test_noise_is_fresh_and_of_the_scale(rng):
    problem = two_classes(rng, 12, names=None)

    def answers(**options):
        valuer = fit(problem, max_queries=3, random_state=0, **options)
        return np.array([valuer.values_for(i) for i in range(3)]), valuer.noise_scale_

    (exact, _), draws = answers(epsilon=1e9), [answers() for _ in range(40)]
    noise, scale = np.array([found for found, _ in draws]) - exact, draws[0][1]
    assert len(set(noise.ravel())) == 120
    # The mean of 120 absolute values of Laplace noise: within 5 deviations.
    assert np.mean(np.abs(noise)) == pytest.approx(scale, rel=5 / np.sqrt(120))


def test_secret_coalitions_are_fresh(problem):
    exact = fit(problem, epsilon=None, tol=0.01).values_[2]
    options = dict(design="iid", epsilon=1e6, random_state=0, tol=0.4)
    found = [fit(problem, **options).values_for(2) for _ in range(15)]
    assert len(set(np.round(found, 6))) > 5  # random_state does not decide
    assert np.mean(found) == pytest.approx(
        exact, abs=6 * np.std(found) / np.sqrt(15) + 1e-3
    )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("estimator", dict(estimator=LogisticRegression(), l2=None)),
        ("scoring", dict(scoring="accuracy")),
        ("l2", dict(l2=None)),
        ("n_layers", dict(n_layers=None)),
        ("n_layers must be at most 38", dict(n_layers=39)),
        ("n_layers .* fewer than 50", dict(n_layers="auto")),
        ("design", dict(design="poisson")),
        ("design .* release='all'", dict(design="iid", release="all")),
        ("tol", dict(design="iid", tol=None)),
        ("max_evaluations", dict(max_evaluations=100)),
        ("max_time", dict(max_time=1.0)),
        ("max_queries", dict(release="all", max_queries=3)),
    ],
)
def test_refusals(name, parameters, problem):
    with pytest.raises(ValueError, match=f"^{name} "):
        fit(problem, **parameters)


def test_refused_uses(problem):
    X, y, points = *problem.rows, problem.points
    valuer = LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0)
    with pytest.raises(ValueError, match="groups must be None"):
        valuer.fit(X, y, groups=np.arange(40), **points)
    for name, parameters in {
        "reader": {"release": "all"},
        "release": {"reader": "curator"},
    }.items():
        with pytest.raises(ValueError, match=f"^{name} must be .* fit_transform"):
            LayeredShapleyValuer(
                l2=1.0, n_layers=2, epsilon=1.0, **parameters
            ).fit_transform(X, y, **points)
    assert valuer.set_params(release="publish").fit_transform(X, y, **points).shape == (
        40,
        1,
    )
    for ask in (lambda valuer: valuer.transform(X[:2]), LayeredShapleyValuer.core_sets):
        with pytest.raises(ValueError, match="which a private fit does not keep"):
            ask(valuer)


def test_labels_without_a_validation_point_do_not_matter(problem):
    strange = problem._replace(y=np.where(np.arange(40) % 7 == 0, 9, problem.y))
    assert np.isfinite(fit(strange).values_for(0))
    with pytest.raises(ValueError, match="l2 needs two classes"):
        fit(strange._replace(y_val=np.arange(20) % 3))


def test_an_exact_fit_after_a_private_one(problem):
    valuer = fit(problem)
    problem.fit(valuer.set_params(epsilon=None))
    assert pickle.loads(pickle.dumps(valuer)).values_for(3) == valuer.values_[3]
    problem.fit(valuer.set_params(epsilon=1.0))
    assert not hasattr(valuer, "layer_values_")


@pytest.mark.parametrize("release", ["query", "all"])
def test_the_baseline_is_layer_0_and_costs_nothing(release, public_problem, rng):
    X, y, *_ = problem = public_problem
    exact = fit(problem, epsilon=None, tol=None)
    ledger = Ledger(None, "rows", epsilon=2.0, delta=1e-5)
    valuer = fit(problem, release=release, ledger=ledger)
    charged = ledger.n_charges
    np.testing.assert_allclose(valuer.baseline_, exact.layer_values_[0], atol=1e-12)
    predicted = valuer.prediction()
    assert ledger.n_charges == charged == (release == "all")
    # They depend on the row and the public points only.
    other = problem._replace(
        X=np.r_[X[:1], rng.normal(size=(39, 3))], y=np.r_[y[:1], 1 - y[1:]]
    )
    replaced = fit(other, release=release)
    assert replaced.baseline_[0] == pytest.approx(valuer.baseline_[0], abs=1e-12)
    assert replaced.prediction()[0] == pytest.approx(predicted[0], abs=1e-12)
    assert replaced.shrinkage_ == valuer.shrinkage_
    value, baseline = valuer.values_for(0, return_baseline=True)
    assert baseline == valuer.baseline_[0] != value
    assert "baseline_" not in dir(valuer)
    assert np.corrcoef(predicted, exact.values_)[0, 1] > 0.9


def test_where_there_is_no_baseline_or_prediction(problem, public_problem):
    copied = pickle.loads(pickle.dumps(fit(public_problem, release="all")))
    vector = fit(public_problem, release="publish")
    for valuer in (copied, vector):
        with pytest.raises(AttributeError, match="baseline_"):
            _ = valuer.baseline_
        with pytest.raises(ValueError, match="prediction"):
            valuer.prediction()
    with pytest.raises(ValueError, match="no baseline_ to return"):
        vector.values_for(0, return_baseline=True)
    with pytest.raises(
        ValueError, match="prediction needs at least 50 validation points"
    ):
        fit(problem).prediction()


def test_values_are_shrunk_as_stated(public_problem):
    with pytest.warns(SeededNoiseWarning):
        valuer = fit(
            public_problem, release="all", noise_random_state=0, random_state=0
        )
    exact = fit(public_problem, release="all", random_state=0, epsilon=1e9).values_
    weight = valuer.shrinkage_
    assert 0 < weight < 0.5
    # The same rows and noise without the prediction: values plus noise.
    unshrunk = (valuer.values_ - (1 - weight) * valuer.prediction()) / weight
    assert 0.2 < np.std(unshrunk - exact) / valuer.noise_scale_ < 3
    errors = [np.sqrt(np.mean((v - exact) ** 2)) for v in (valuer.values_, unshrunk)]
    assert errors[0] < errors[1]
    assert valuer.values_error_.max() < 1.5 * valuer.noise_scale_


@pytest.mark.slow
def test_layers_and_penalty_from_public_rows(rng):
    X, y, *_ = problem = two_classes(rng, 60, 60, names=None)
    valuer = fit(problem, l2="auto", n_layers="auto", tol=None)
    assert valuer.l2_ in (1.0, 0.1, 0.01)
    assert valuer.n_layers_ in (1, 2, 3, 5, 10)
    assert len(valuer.counts_) == valuer.n_layers_ + 1
    assert np.isfinite(valuer.values_for(0))
    # Private rows do not matter; a larger budget allows for more layers.
    other = fit(problem._replace(X=-X, y=1 - y), l2="auto", n_layers="auto", tol=None)
    assert (other.l2_, other.n_layers_) == (valuer.l2_, valuer.n_layers_)
    free = fit(problem, l2=0.1, n_layers="auto", tol=None, epsilon=1e6)
    assert free.n_layers_ == 10


def test_layers_from_public_rows(public_problem):
    valuer = fit(public_problem, n_layers="auto", tol=None)
    assert len(valuer.counts_) == valuer.n_layers_ + 1
