"""Private Layered Shapley: sensitivities, noise, queries, refusals."""

import copy
import pickle
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skvalue import LayeredShapleyValuer
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
    Utilities,
    change_bounds,
    participation,
    plan_release,
    private_values,
    value_sensitivity,
)

L = 1 / (1 + np.exp(-np.sqrt(0.27846454276107)))  # slope of the loss for l2 = kappa = 1


def gamma(k):
    """What replacing one of k rows changes."""
    return 2 * L**2 / k


def change(k):
    """What replacing another row changes in a marginal contribution to k others, l2 = kappa = 1."""
    pull, third = np.sqrt(0.27846454276107), 1 / (6 * np.sqrt(3))
    moved = (1 / 4 + third * 2 * L) * (L + pull) / (k + 1) + (1 / 4 + 1) * 2 * L / k
    second = L * moved / (k + 1) + 1 / 4 * 2 * L / k * (L + pull) / (k + 1)
    return min(2 * L * (L + pull) / (k + 1), second)


def spec_sensitivity(n, K):
    return sum(change(k) / ((n - 1) // k) for k in range(1, K + 1)) / n


def data(rng, n=40, n_val=20):
    X = rng.normal(size=(n + n_val, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=n + n_val) > 0).astype(int)
    return X[:n], y[:n], dict(X_val=X[n:], y_val=y[n:])


def fit(problem, **parameters):
    X, y, points = problem
    parameters = {"l2": 1.0, "n_layers": 3, "epsilon": 1.0, "tol": 0.5, **parameters}
    return LayeredShapleyValuer(**parameters).fit(X, y, **points)


def test_noise_of_a_single_query():
    # n = 1000, K = 3: the formula, to 1e-9.
    for epsilon in (0.5, 1.0, 4.0):
        release = plan_release(1000, 3, epsilon=epsilon, delta=1e-5, fit_intercept=False)
        assert release.noise.scale == pytest.approx(spec_sensitivity(1000, 3) / epsilon, rel=1e-9)
        assert isinstance(release.noise, LaplaceEvent)
        assert release.delta == 0


def test_noise_of_all_values():
    n, K, mu = 1000, 3, mu_from_epsilon(1.0, 1e-5)
    one = spec_sensitivity(n, K)
    everything = plan_release(n, K, epsilon=1.0, delta=1e-5, release="all", fit_intercept=False)
    assert everything.noise.scale == pytest.approx(np.sqrt(n - 1) * one / mu, rel=1e-6)
    width = 2 * np.sqrt(0.27846454276107)  # no model is further from another
    own = sum(min(gamma(k + 1), L * width) for k in range(K + 1)) / n
    # The own value moves most, so that Laplace noise is the smaller.
    vector = plan_release(n, K, epsilon=1.0, delta=1e-5, release="publish", fit_intercept=False)
    assert vector.noise.scale == pytest.approx((n - 1) * one + own, rel=1e-6)
    assert isinstance(everything.noise, GaussianEvent)
    assert isinstance(vector.noise, LaplaceEvent)


def test_noise_of_secret_coalitions():
    release = plan_release(
        200, 2, epsilon=1.0, delta=1e-5, design="iid", fit_intercept=False, tol=0.05
    )
    one = (change(1) + change(2)) / 200
    m = release.counts[1:]
    p = 1 - (1 - 1 / 199) ** m[0] * (1 - 2 / 199) ** m[1]
    assert participation(200, m) == pytest.approx(p)
    # eps = ln(1 + p (exp(sensitivity / scale) - 1))
    epsilon = np.log1p(p * np.expm1(one / release.noise.scale))
    assert epsilon == pytest.approx(1.0)
    assert release.noise.scale < one  # what secrecy saves
    other, _ = change_bounds(2, 1.0, 1.0, False)
    assert value_sensitivity(200, other, "iid") == pytest.approx(one)


@pytest.mark.parametrize("max_queries", [1, 5, 100])
def test_several_queries_divide_epsilon(max_queries):
    release = plan_release(500, 3, epsilon=1.0, delta=1e-5, max_queries=max_queries)
    assert isinstance(release.noise, LaplaceEvent if max_queries < 10 else GaussianEvent)
    total = get_epsilon(release.total, release.delta or 1e-9)
    assert total == pytest.approx(1.0, rel=0.02)
    # The smaller of the two standard deviations; that of Laplace noise is sqrt(2) times its scale.
    laplace = np.sqrt(2) * max_queries * release.charge.sensitivity
    gaussian = np.sqrt(max_queries) * release.charge.sensitivity / mu_from_epsilon(1.0, 1e-5)
    assert release.noise_std == pytest.approx(min(laplace, gaussian), rel=1e-6)


def values_of(rows, points, release, players, l2=1.0):
    X, y = np.array([x for x, _ in rows]), np.array([label for _, label in rows])
    game = StableLogisticGame(X, y, *points, l2=l2, fit_intercept=False)
    seeds = lambda k, shuffle: np.random.default_rng((k, shuffle))  # noqa: E731
    return private_values(release, Utilities(game), players, seeds)


@pytest.mark.parametrize("l2", [1.0, 0.1])
def test_no_other_row_moves_a_value_by_more_than_the_sensitivity(l2, rng):
    n, own = 7, 0.0
    u = np.array([0.6, 0.8])
    points = (u[None], np.ones(1, int))
    slope, curvature = StableLogisticGame(
        u[None], np.ones(1, int), *points, l2=l2, fit_intercept=False
    ).validation_bounds()
    game = dict(l2=l2, fit_intercept=False, slope=slope, curvature=curvature)
    release = plan_release(n, 3, epsilon=1.0, delta=1e-5, tol=1e3, **game)
    other, of_own = change_bounds(3, l2, 1.0, False, slope, curvature)
    worst = 0.0
    for _ in range(12):
        rows = [(rng.normal(size=2) * rng.choice([0, 1]), rng.integers(2)) for _ in range(n)]
        rows[0] = (u * rng.choice([0, 1]), 1)
        for place in (0, 1, n - 1):
            found = []
            for label in (0, 1):
                some = list(rows)
                some[place] = (u, label)
                found.append(values_of(some, points, release, None, l2))
            change = np.abs(found[0] - found[1])
            own = max(own, change[place])
            worst = max(worst, np.delete(change, place).max())
    bound = value_sensitivity(n, other)
    assert bound == pytest.approx(release.noise.scale)
    assert 0.01 * bound < worst <= bound
    assert 0.3 * of_own.sum() / n < own <= of_own.sum() / n


@pytest.mark.parametrize("l2", [1.0, 0.1, 0.01])
def test_no_row_moves_a_marginal_contribution_by_more_than_the_bound(l2, rng):
    # Rows along the validation point, of either label, move it most.
    fraction = np.zeros(4)
    for _ in range(150):
        k = rng.integers(1, 5)
        X, y = rng.normal(size=(k + 2, 2)) * rng.choice([0.3, 3]), rng.integers(0, 2, k + 2)
        X_val, y_val = rng.normal(size=(rng.integers(1, 3), 2)) * 3, np.array([0, 1])
        if rng.random() < 0.7:
            X[k - 1], X[k], X[k + 1] = X_val[0], -X_val[0], X_val[0] * rng.choice([-1, 1])
        game = StableLogisticGame(X, y, X_val, y_val[: len(X_val)], l2=l2, fit_intercept=False)
        masks = np.zeros((4, k + 2), dtype=bool)  # with or without the last row; another replaced
        masks[:2, :k], masks[2:, : k - 1], masks[2:, k], masks[1::2, k + 1] = True, True, True, True
        v = game.utility(masks)
        bound = change_bounds(4, l2, 1.0, False, *game.validation_bounds())[0][k - 1]
        fraction[k - 1] = max(fraction[k - 1], abs(v[1] - v[0] - v[3] + v[2]) / bound)
    assert fraction.max() <= 1
    assert fraction.min() > {1.0: 0.1, 0.1: 0.05, 0.01: 0.05}[l2]


def test_bounds_of_the_utility_hold_for_all_models(rng):
    for l2 in (1.0, 0.01):
        X_val, y_val = rng.normal(size=(9, 3)) + 0.3, rng.integers(0, 2, 9)
        game = StableLogisticGame(X_val, y_val, X_val, y_val, l2=l2, fit_intercept=False)
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
    X, y, points = data(rng, n=17)
    release = plan_release(17, 3, epsilon=1.0, delta=1e-5, tol=0.3)
    utilities = Utilities(StableLogisticGame(X, y, points["X_val"], points["y_val"]))
    seeds = lambda k, shuffle: np.random.default_rng((k, shuffle))  # noqa: E731
    every = private_values(release, utilities, None, seeds)
    some = private_values(release, utilities, [0, 5, 16], seeds)
    np.testing.assert_allclose(some, every[[0, 5, 16]], atol=1e-12)


@pytest.mark.parametrize("release", ["query", "all", "publish"])
def test_little_noise_gives_the_exact_values(release, rng):
    problem = data(rng)
    noisy = fit(problem, epsilon=1e6, release=release, tol=0.05)
    exact = fit(problem, epsilon=None, tol=0.01)
    found = [noisy.values_for(i) for i in ([3] if release == "query" else range(40))]
    expected = exact.values_[[3]] if release == "query" else exact.values_
    np.testing.assert_allclose(found, expected, atol=4e-4)
    assert np.std(exact.values_) > 0.0015


def test_queries_are_charged_and_kept(rng):
    problem = data(rng)
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = fit(problem, max_queries=2, ledger=ledger)
    assert ledger.n_charges == 0
    assert np.isnan(valuer.values_).all()
    first = valuer.values_for(3)
    assert valuer.values_for(3) == valuer.values_for(-37) == first == valuer.values_[3]
    assert ledger.n_charges == 1
    event = ledger.charges[0].event
    assert isinstance(event, LaplaceEvent)
    assert event.scale == valuer.noise_scale_ == pytest.approx(2 * event.sensitivity, rel=1e-9)
    valuer.values_for(4)
    assert ledger.spent == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(ValueError, match="max_queries must be larger.*total of 2 queries"):
        valuer.values_for(5)
    again = fit(problem, max_queries=2, ledger=ledger)
    with pytest.raises(ValueError, match="the release must fit what is left of the budget"):
        again.values_for(0)
    assert np.isnan(again.values_).all()
    with pytest.raises(ValueError, match="i must be between 0 and 39. Got 40"):
        again.values_for(40)


def test_queries_at_the_same_time_are_no_more_than_were_paid_for(rng, monkeypatch):
    def slow(self, *arguments, charge=Ledger.charge, **options):
        time.sleep(0.2)
        return charge(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "charge", slow)
    ledger = Ledger(None, "rows", epsilon=5.0, delta=1e-5)
    valuer = fit(data(rng), ledger=ledger)
    with ThreadPoolExecutor(6) as pool:
        same = [pool.submit(valuer.values_for, 3) for _ in range(3)]
        others = [pool.submit(valuer.values_for, i) for i in range(4, 7)]
    answers = {task.result() for task in same if task.exception() is None}
    answers |= {task.result() for task in others if task.exception() is None}
    assert len(answers) == ledger.n_charges == 1


def test_queries_are_answered_as_the_fit_promised(rng):
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = fit(data(rng), ledger=ledger)
    valuer.set_params(max_queries=9, ledger=None, noise_random_state=0, epsilon=9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of noise from a seed
        valuer.values_for(0)
    assert ledger.n_charges == 1
    with pytest.raises(ValueError, match="epsilon=1 is the total of 1 queries"):
        valuer.values_for(1)


def test_what_a_release_is_worth_reporting(rng):
    problem = data(rng)
    one, every = fit(problem), fit(problem, release="all")
    assert one.privacy_.guarantee == "(1, 0)-joint differential privacy".replace("(1, 0)", "(1)")
    assert every.privacy_.guarantee == "(1, 1e-05)-joint differential privacy"
    vector = fit(problem, release="publish")
    assert vector.privacy_.guarantee == "(1)-differential privacy"  # Laplace noise is smaller
    text = " ".join(str(one.privacy_).split())
    assert "had one row been replaced by any other" in text
    assert "in the values of other rows that are queried (at most 1)" in text
    assert "l2, max_norm, n_layers and all other parameters were chosen without" in text
    # Fewer than 50 public points: no shrinkage, so that the error is that of the noise.
    np.testing.assert_allclose(one.values_error_, np.sqrt(2) * one.noise_scale_)
    np.testing.assert_allclose(vector.values_error_, np.sqrt(2) * vector.noise_scale_)
    value, error = one.values_for(0, return_error=True)
    assert (value, error) == (one.values_[0], one.values_error_[0])
    assert not hasattr(one, "private_error_")
    assert one.shrinkage_ == 1
    assert np.isnan(one.utility_)


def test_pickling(rng):
    problem = data(rng)
    one = fit(problem)
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="holds the rows.*refuses to be pickled"):
            copied(one)
    every = pickle.loads(pickle.dumps(fit(problem, release="all")))
    assert not hasattr(every, "values_")
    with pytest.raises(AttributeError, match="values_error_ of a private fit is for the curator"):
        _ = every.values_error_
    every = fit(problem, release="all").set_params(release="publish")
    assert not hasattr(pickle.loads(pickle.dumps(every)), "values_")
    vector = fit(problem, release="publish")
    again = pickle.loads(pickle.dumps(vector))
    np.testing.assert_array_equal(again.values_, vector.values_)
    np.testing.assert_array_equal(again.values_error_, vector.values_error_)
    assert ">values_" in vector._repr_html_()


def test_nothing_of_an_exact_fit_is_kept(rng):
    X, y, points = problem = data(rng)
    for release in ("all", "publish"):
        valuer = fit(problem, epsilon=None)
        valuer.transform(X + 1)
        valuer.set_params(epsilon=1.0, release=release).fit(X, y, **points)
        assert vars(valuer).keys() == vars(fit(problem, release=release)).keys()


def test_nothing_of_the_rows_is_kept(rng):
    X, y, points = data(rng)
    for release in ("all", "publish"):
        valuer = fit((X, y, points), release=release)
        blob = pickle.dumps(valuer)
        assert all(row.tobytes() not in blob for row in X)


def test_noise_is_fresh_and_of_the_scale(rng):
    problem = data(rng, n=12)
    exact = fit(problem, epsilon=1e9).values_for(2)
    draws = [fit(problem, random_state=0).values_for(2) for _ in range(150)]
    assert len(set(draws)) == 150
    scale = fit(problem).noise_scale_
    # The mean of 150 absolute values of Laplace noise: within 6 deviations.
    assert np.mean(np.abs(np.array(draws) - exact)) == pytest.approx(scale, rel=6 / np.sqrt(150))


def test_secret_coalitions_are_fresh(rng):
    problem = data(rng)
    exact = fit(problem, epsilon=None, tol=0.01).values_[2]
    found = [
        fit(problem, design="iid", epsilon=1e6, random_state=0, tol=0.4).values_for(2)
        for _ in range(30)
    ]
    assert len(set(np.round(found, 6))) > 5  # random_state does not decide
    assert np.mean(found) == pytest.approx(exact, abs=6 * np.std(found) / np.sqrt(30) + 1e-3)


def test_refusals(rng):
    problem = data(rng)
    X, y, points = problem
    with pytest.raises(ValueError, match="estimator must be None with epsilon: only the utility"):
        fit(problem, estimator=LogisticRegression(), l2=None)
    with pytest.raises(ValueError, match="scoring must be None with epsilon.*Got 'accuracy'"):
        fit(problem, scoring="accuracy")
    with pytest.raises(ValueError, match="l2 must be a number with epsilon"):
        fit(problem, l2=None)
    with pytest.raises(ValueError, match="n_layers must be a number with epsilon"):
        fit(problem, n_layers=None)
    with pytest.raises(ValueError, match="n_layers must be at most 38 with epsilon and 40 rows"):
        fit(problem, n_layers=39)
    with pytest.raises(ValueError, match="design must be 'blocks' or 'iid' with epsilon"):
        fit(problem, design="poisson")
    with pytest.raises(ValueError, match="design must be 'blocks' with release='all' or 'publish'"):
        fit(problem, design="iid", release="all")
    for name, number in {"max_evaluations": 100, "max_time": 1.0}.items():
        with pytest.raises(ValueError, match=f"{name} must be None with epsilon. Got {number}"):
            fit(problem, **{name: number})
    with pytest.raises(ValueError, match="tol must be a number for design='iid' with epsilon"):
        fit(problem, design="iid", tol=None)
    with pytest.raises(ValueError, match="n_layers must be a number with fewer than 50 validation"):
        fit(problem, n_layers="auto")
    with pytest.raises(ValueError, match="max_queries is for release='query'. Got max_queries=3"):
        fit(problem, release="all", max_queries=3)
    with pytest.raises(ValueError, match="groups must be None with epsilon"):
        LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0).fit(
            X, y, groups=np.arange(40), **points
        )
    with pytest.raises(ValueError, match="reader must be 'curator' for fit_transform"):
        LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0, release="all").fit_transform(
            X, y, **points
        )
    with pytest.raises(ValueError, match="release must be 'all' or 'publish' for fit_transform"):
        LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0, reader="curator").fit_transform(
            X, y, **points
        )
    values = LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0, release="publish")
    assert values.fit_transform(X, y, **points).shape == (40, 1)
    for ask in ("transform", "core_sets", "value_of_group"):
        with pytest.raises(ValueError, match="which a private fit does not keep"):
            getattr(fit(problem), ask)(*([] if ask == "core_sets" else [X[:2]]))


def test_labels_without_a_validation_point_do_not_matter(rng):
    X, y, points = data(rng)
    strange = np.where(np.arange(40) % 7 == 0, 9, y)
    assert np.isfinite(fit((X, strange, points)).values_for(0))
    with pytest.raises(ValueError, match="l2 needs two classes. Got 3 classes"):
        fit((X, y, {**points, "y_val": np.arange(20) % 3}))


def test_an_exact_fit_after_a_private_one(rng):
    X, y, points = data(rng)
    valuer = fit((X, y, points))
    valuer.set_params(epsilon=None).fit(X, y, **points)
    assert pickle.loads(pickle.dumps(valuer)).values_for(3) == valuer.values_[3]
    valuer.set_params(epsilon=1.0).fit(X, y, **points)
    assert not hasattr(valuer, "layer_values_")


def public_problem(rng, n=40):
    """Enough validation points that values are shrunk."""
    return data(rng, n=n, n_val=60)


def test_the_baseline_is_layer_0_and_costs_nothing(rng):
    X, y, points = problem = public_problem(rng)
    exact = fit(problem, epsilon=None, tol=None)
    for release in ("query", "all"):
        ledger = Ledger(None, "rows", epsilon=2.0, delta=1e-5)
        valuer = fit(problem, release=release, ledger=ledger)
        charged = ledger.n_charges
        np.testing.assert_allclose(valuer.baseline_, exact.layer_values_[0], atol=1e-12)
        predicted = valuer.prediction()
        assert ledger.n_charges == charged == (release == "all")
        # They depend on the row and the public points only.
        other = X.copy()
        other[1:] = rng.normal(size=(39, 3))
        replaced = fit((other, np.r_[y[:1], 1 - y[1:]], points), release=release)
        assert replaced.baseline_[0] == pytest.approx(valuer.baseline_[0], abs=1e-12)
        assert replaced.prediction()[0] == pytest.approx(predicted[0], abs=1e-12)
        assert replaced.shrinkage_ == valuer.shrinkage_
        value, baseline = valuer.values_for(0, return_baseline=True)
        assert baseline == valuer.baseline_[0] != value
        assert "baseline_" not in dir(valuer)
    assert np.corrcoef(predicted, exact.values_)[0, 1] > 0.9
    copied = pickle.loads(pickle.dumps(valuer))
    with pytest.raises(AttributeError, match="baseline_ of a private fit is for the curator"):
        _ = copied.baseline_
    with pytest.raises(ValueError, match="prediction needs a private fit that was not pickled"):
        copied.prediction()
    vector = fit(problem, release="publish")
    with pytest.raises(AttributeError, match="baseline_ is a function of each row: release='publi"):
        _ = vector.baseline_
    with pytest.raises(ValueError, match="prediction is a function of each row"):
        vector.prediction()
    with pytest.raises(ValueError, match="no baseline_ to return"):
        vector.values_for(0, return_baseline=True)
    with pytest.raises(ValueError, match="prediction needs at least 50 validation points"):
        fit(data(rng)).prediction()


def test_values_are_shrunk_as_stated(rng):
    problem = public_problem(rng)
    seeds = dict(noise_random_state=0, random_state=0)
    with pytest.warns(SeededNoiseWarning):
        valuer = fit(problem, release="all", **seeds)
    # The same rows and noise with too few public points for a prediction: values plus noise.
    weight, exact = valuer.shrinkage_, fit(problem, release="all", random_state=0, epsilon=1e9)
    assert 0 <= weight < 0.5
    unshrunk = (valuer.values_ - (1 - weight) * valuer.prediction()) / max(weight, 1e-300)
    if weight:
        noise = unshrunk - exact.values_
        assert 0.2 < np.std(noise) / valuer.noise_scale_ < 3
    errors = [np.sqrt(np.mean((v - exact.values_) ** 2)) for v in (valuer.values_, unshrunk)]
    assert errors[0] < errors[1] or not weight
    assert valuer.values_error_.max() < 1.5 * valuer.noise_scale_


@pytest.mark.slow
def test_layers_and_penalty_from_public_rows(rng):
    X, y, points = problem = public_problem(rng, n=60)
    valuer = fit(problem, l2="auto", n_layers="auto", tol=None)
    assert valuer.l2_ in (1.0, 0.1, 0.01)
    assert valuer.n_layers_ in (1, 2, 3, 5, 10)
    assert len(valuer.counts_) == valuer.n_layers_ + 1
    assert np.isfinite(valuer.values_for(0))
    # Private rows do not matter; a larger budget allows for more layers.
    other = fit((-X, 1 - y, points), l2="auto", n_layers="auto", tol=None)
    assert (other.l2_, other.n_layers_) == (valuer.l2_, valuer.n_layers_)
    free = fit(problem, l2=0.1, n_layers="auto", tol=None, epsilon=1e6)
    assert free.n_layers_ == 10


def test_layers_from_public_rows(rng):
    problem = public_problem(rng)
    valuer = fit(problem, n_layers="auto", tol=None)
    assert len(valuer.counts_) == valuer.n_layers_ + 1
    with pytest.raises(ValueError, match="n_layers must be a number without epsilon. Got 'auto'"):
        fit(problem, epsilon=None, n_layers="auto")
