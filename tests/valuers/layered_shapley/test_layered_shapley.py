"""Layered Shapley as an estimator: exact where it enumerates, core sets, errors."""

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from problems import two_classes
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from skvalue import DataShapleyValuer, LayeredShapleyValuer
from skvalue.estimation import LAYER_DESIGNS
from skvalue.games import StableLogisticGame
from skvalue.samplers import ALLOCATIONS, layer_counts
from skvalue.valuers.layered_shapley import contribution_bounds

# Enough coalitions that all are enumerated.
ALL = {"tol": 1e-4, "random_state": 0}
EXACT = DataShapleyValuer(sampler="exact", cv=2)
CLOSE = {"rtol": 1e-7, "atol": 1e-12}

# Exact values -------------------------------------------------------------------------


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_many_coalitions_give_the_shapley_value(design, rng):
    problem = two_classes(rng, 8)
    valuer = problem.fit(LayeredShapleyValuer(design=design, **ALL))
    np.testing.assert_allclose(valuer.values_, problem.fit(EXACT).values_, **CLOSE)
    assert not valuer.values_error_.any()
    assert valuer.truncation_bias_ == 0


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_all_layers_sum_to_efficient_values(design, rng):
    valuer = two_classes(rng, 8).fit(LayeredShapleyValuer(design=design, **ALL))
    np.testing.assert_allclose(valuer.layer_values_.sum(axis=0), valuer.values_)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain)


def test_targets_are_valued_by_ridge(rng):
    problem = two_classes(rng, 6)
    targets = problem._replace(y=problem.X[:, 0] + 1, y_val=problem.X_val[:, 0] + 1)
    valuer = targets.fit(LayeredShapleyValuer(**ALL))
    exact = targets.fit(DataShapleyValuer(Ridge(), sampler="exact"))
    np.testing.assert_allclose(valuer.values_, exact.values_, **CLOSE)


def test_an_estimator_that_is_trained_alone_has_the_shapley_value(rng):
    problem = two_classes(rng, 6)
    estimator = KNeighborsClassifier(1)
    valuer = problem.fit(LayeredShapleyValuer(estimator, batch="never", **ALL))
    exact = problem.fit(DataShapleyValuer(estimator, sampler="exact"))
    np.testing.assert_allclose(valuer.values_, exact.values_, **CLOSE)


@pytest.mark.parametrize("cv", [None, 2])
def test_value_of_a_group_is_the_sum_of_its_exact_values(rng, cv):
    problem = two_classes(rng, 12)
    data = problem.points if cv is None else {}
    valuer = LayeredShapleyValuer(cv=cv or 5, **ALL).fit(problem.X, problem.y, **data)
    group = valuer.value_of_group([5, 2, -1, 2])
    expected = valuer.values_[[2, 5, 11]]
    np.testing.assert_allclose(group.row_values, expected, **CLOSE)
    assert group.value == pytest.approx(expected.sum())
    assert group.mean == pytest.approx(expected.mean())


def test_groups_may_be_valued_together_by_name(rng):
    problem = two_classes(rng, 16)
    owners = np.array([f"owner {i}" for i in np.arange(16) % 6])
    valuer = LayeredShapleyValuer(**ALL)
    valuer.fit(problem.X, problem.y, groups=owners, **problem.points)
    together = valuer.value_of_group(["owner 1", "owner 4"])
    assert together.value == pytest.approx(valuer.values_[[1, 4]].sum())


def test_values_of_a_group_are_within_tol_of_the_exact_ones(rng):
    problem = two_classes(rng, 20)
    options = {"l2": 1.0, "n_layers": 3, "random_state": 0}
    exact = problem.fit(LayeredShapleyValuer(tol=1e-3, **options)).values_[[3, 7]]
    rough = problem.fit(LayeredShapleyValuer(max_evaluations=100, **options))
    for tol in (0.05, 0.01):
        group = rough.value_of_group([3, 7], tol=tol, confidence=0.99)
        assert np.abs(group.row_values - exact).max() <= tol
        assert abs(group.mean - exact.mean()) <= tol


def test_coalitions_of_a_group_grow_with_the_logarithm_of_its_size(rng):
    """Section 3.4: each value may fail with (1 - confidence) / w."""
    problem = two_classes(rng, 40)
    options = {"l2": 1.0, "n_layers": 4, "allocation": "bound", "random_state": 0}
    valuer = problem.fit(LayeredShapleyValuer(max_evaluations=100, **options))
    bounds = contribution_bounds(4, 1.0, 1.0, True)
    for w in (1, 5, 40):
        group = valuer.value_of_group(range(w), tol=0.05)
        counts = layer_counts(bounds, 0.05, 1 - 0.05 / w)[1:]
        n_subsets = [comb(39, k) for k in range(1, 5)]
        drawn = np.minimum(np.ceil(counts), n_subsets)
        assert group.n_evaluations <= 2 * w * drawn.sum() + w
        assert group.n_evaluations > 0.5 * w * drawn.sum()


@pytest.mark.parametrize(
    ("indices", "options", "message"),
    [
        ([], {"tol": 0.1}, "indices must name at least one row"),
        ([8], {"tol": 0.1}, "Got 8"),
        ([0], {}, "tol must be a number, here or in the parameters"),
        ([0], {"tol": -1.0}, "tol must be"),
        ([0], {"tol": 0.1, "confidence": 1.5}, r"confidence must be in \(0, 1\)"),
    ],
    ids=["none", "unknown", "no tol", "negative", "confidence"],
)
def test_groups_that_cannot_be_valued_are_refused(rng, indices, options, message):
    valuer = two_classes(rng, 8).fit(LayeredShapleyValuer(max_evaluations=60))
    with pytest.raises(ValueError, match=message):
        valuer.value_of_group(indices, **options)


@pytest.fixture(params=["points", "splits"])
def grouped(request, rng):
    """Rows in six groups, with validation points or without."""
    problem = two_classes(rng, 16)
    options = {"groups": np.arange(16) % 6}
    if request.param == "points":
        options |= problem.points
    return problem.rows, options


def test_groups_have_the_shapley_value(grouped):
    (X, y), options = grouped
    valuer = LayeredShapleyValuer(cv=2, **ALL).fit(X, y, **options)
    expected = EXACT.fit(X, y, **options).values_
    np.testing.assert_allclose(valuer.values_, expected, **CLOSE)


def test_new_rows_join_groups(grouped):
    (X, y), options = grouped
    valuer = LayeredShapleyValuer(cv=2, **ALL).fit(X, y, **options)
    assert np.isfinite(valuer.score_samples(X[:3] + 5, y[:3])).all()


# New rows -----------------------------------------------------------------------------


@pytest.fixture(params=[{}, {"l2": 0.5, "max_norm": 2.0}], ids=["trained", "l2"])
def fitted(request, rng):
    """A fitted valuer, its problem, and new rows with labels."""
    problem = two_classes(rng, 8)
    valuer = problem.fit(LayeredShapleyValuer(**ALL, **request.param))
    return valuer, problem, rng.normal(size=(2, 3)), np.array(["no", "yes"])


def test_a_new_row_has_its_value_in_the_larger_game(fitted):
    valuer, problem, X_new, y_new = fitted
    scores = valuer.score_samples(X_new, y_new)
    for row, label, score in zip(X_new, y_new, scores):
        X = np.vstack([problem.X, row])
        larger = problem._replace(X=X, y=np.append(problem.y, label))
        other = LayeredShapleyValuer(**valuer.get_params())
        assert score == pytest.approx(larger.fit(other).values_[-1], abs=1e-12)


def test_the_core_set_scores_as_the_valuer(fitted):
    valuer, _, X_new, y_new = fitted
    (core_set,) = valuer.core_sets()
    expected = valuer.score_samples(X_new, y_new)
    np.testing.assert_array_equal(core_set.score_samples(X_new, y_new), expected)


def test_a_core_set_refuses_labels_that_it_does_not_have(fitted):
    valuer, _, X_new, _ = fitted
    with pytest.raises(ValueError, match="y must hold only labels"):
        valuer.core_sets()[0].score_samples(X_new, ["maybe"] * 2)


def test_a_row_without_a_label_has_the_mean_over_those_of_the_model(fitted):
    valuer, problem, X_new, _ = fitted
    by_label = [valuer.score_samples(X_new, [label] * 2) for label in ("no", "yes")]
    model = LogisticRegression().fit(problem.X, problem.y)
    expected = (model.predict_proba(X_new).T * by_label).sum(axis=0)
    np.testing.assert_allclose(valuer.transform(X_new)[:, 0], expected)


def test_rows_of_the_fit_have_their_values(fitted):
    valuer, problem, *_ = fitted
    reverse = valuer.transform(problem.X[::-1])[:, 0]
    np.testing.assert_array_equal(reverse[::-1], valuer.values_)


class OfFewRows(DummyClassifier):
    def fit(self, X, y):
        if len(X) > 20:
            raise RuntimeError("too many rows")
        return super().fit(X, y)


def test_new_rows_join_one_by_one():
    X = np.array([f"text {i}" for i in range(12)], dtype=object)
    y = np.arange(12) % 2
    valuer = LayeredShapleyValuer(
        OfFewRows(), cv=2, max_evaluations=60, random_state=0
    ).fit(X, y)
    assert np.isfinite(valuer.score_samples(np.tile(X, 3), np.tile(y, 3))).all()


FAST = [*zip(LAYER_DESIGNS, (*ALLOCATIONS, ALLOCATIONS[0]), [15] * 3)]
SLOW = [
    pytest.param(design, allocation, 400, marks=pytest.mark.slow)
    for design, allocation in product(LAYER_DESIGNS, ALLOCATIONS)
]


@pytest.mark.parametrize(("design", "allocation", "n_fits"), [*FAST, *SLOW])
def test_values_of_samples_are_unbiased(design, allocation, n_fits, rng):
    # Means over fits of the values of the rows, and of that of a new one, against exact
    # values and that in the game with the new row.
    problem = two_classes(rng, 9)
    row = rng.normal(size=(1, 3))
    label = np.array(["yes"])
    larger = problem._replace(
        X=np.vstack([problem.X, row]), y=np.append(problem.y, label)
    )
    values = []
    for seed in range(n_fits):
        valuer = LayeredShapleyValuer(
            design=design,
            allocation=allocation,
            max_evaluations=120,
            random_state=seed,
        )
        problem.fit(valuer)
        values.append(np.append(valuer.values_, valuer.score_samples(row, label)))
    of_rows = problem.fit(EXACT).values_
    of_new_row = larger.fit(EXACT).values_[-1]
    expected = np.append(of_rows, of_new_row)
    errors = np.std(values, axis=0, ddof=1) / np.sqrt(n_fits)
    assert (np.abs(np.mean(values, axis=0) - expected) < 4.5 * errors).all()


# Errors and cost ----------------------------------------------------------------------


@pytest.mark.parametrize("n_layers", [1, 4, 8])
def test_layers_left_out_are_bounded(n_layers, rng):
    problem = two_classes(rng, 10)
    values = problem.fit(LayeredShapleyValuer(l2=0.2, **ALL)).values_
    first = problem.fit(LayeredShapleyValuer(l2=0.2, n_layers=n_layers, **ALL))
    assert first.layer_values_.shape == (n_layers + 1, 10)
    assert 0 < np.abs(first.values_ - values).max() <= first.truncation_bias_


def test_a_given_bound_bounds_the_layers_left_out(rng):
    valuer = LayeredShapleyValuer(n_layers=4, bound=0.7, **ALL)
    two_classes(rng, 10).fit(valuer)
    expected = 0.7 / 10 * (1 / np.arange(5, 10)).sum()
    assert valuer.truncation_bias_ == pytest.approx(expected)


def values_of(problem, **options):
    return problem.fit(LayeredShapleyValuer(max_evaluations=400, **options)).values_


def test_a_seed_gives_the_same_bits_for_any_number_of_threads(rng):
    problem = two_classes(rng, 30)
    one = values_of(problem, random_state=3, n_jobs=1)
    two = values_of(problem, random_state=3, n_jobs=2)
    np.testing.assert_array_equal(one, two)


def test_other_seeds_and_none_give_other_values(rng):
    problem = two_classes(rng, 30)
    values = values_of(problem, random_state=3)
    assert not np.array_equal(values, values_of(problem, random_state=4))
    assert not np.array_equal(values_of(problem), values_of(problem))


@pytest.mark.parametrize(("design", "limit"), [("blocks", 1.5), ("iid", 2.5)])
def test_errors_are_about_right(design, limit, rng):
    problem = two_classes(rng, 20)
    fits = [
        problem.fit(
            LayeredShapleyValuer(
                l2=0.1, design=design, max_evaluations=250, random_state=seed
            )
        )
        for seed in range(16)
    ]
    stds = np.std([fit.values_ for fit in fits], axis=0, ddof=1)
    stated = np.sqrt(np.mean([fit.values_error_**2 for fit in fits], axis=0))
    assert 0.65 < np.median(stated / stds) < limit


def cost_of(valuer, problem):
    return valuer.estimate_cost(*problem.rows, **problem.points)


def test_a_default_fit_is_bounded(rng):
    cost = cost_of(LayeredShapleyValuer(), two_classes(rng, 30))
    assert cost.n_evaluations <= 40 * 30
    assert cost.n_players == 30
    expected = cost.n_evaluations * cost.seconds_per_evaluation
    assert cost.seconds == pytest.approx(expected, rel=0.01)


def test_the_cost_of_a_default_fit_is_known(rng):
    problem = two_classes(rng, 30)
    valuer = LayeredShapleyValuer(random_state=0)
    expected = cost_of(valuer, problem).n_evaluations
    assert problem.fit(valuer).n_evaluations_ == pytest.approx(expected, rel=0.2)


def test_max_time_takes_fewer_coalitions(rng):
    problem = two_classes(rng, 30)
    valuer = LayeredShapleyValuer(random_state=0)
    cost = cost_of(valuer, problem)
    # A clock may run slowly while the cost is measured, if the machine is busy.
    problem.fit(valuer.set_params(max_time=cost.seconds / 100))
    assert valuer.n_evaluations_ < 0.8 * cost.n_evaluations


def test_max_evaluations_limits_those_for_tol(rng):
    valuer = LayeredShapleyValuer(tol=1.0, max_evaluations=500)
    assert cost_of(valuer, two_classes(rng, 30)).n_evaluations <= 500


def test_one_query_costs_less_than_all_values(rng):
    problem = two_classes(rng, 30)
    valuer = LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0)
    of_query = cost_of(valuer, problem).n_evaluations
    of_all = cost_of(valuer.set_params(release="all"), problem).n_evaluations
    assert 0 < of_query < of_all


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"estimator": LogisticRegression(), "l2": 1.0},
            "estimator must be None with l2",
        ),
        ({"scoring": "accuracy", "l2": 1.0}, "scoring must be None with l2"),
        ({"scoring": "neg_log_loss", "l2": 1.0}, "scoring must be None with l2"),
        ({"confidence": 1.0}, "'confidence'"),
        ({"n_layers": "auto"}, "n_layers must not be 'auto' without epsilon"),
    ],
    ids=str,
)
def test_parameters_that_do_not_fit_are_refused(parameters, message, rng):
    with pytest.raises(ValueError, match=message):
        two_classes(rng, 8).fit(LayeredShapleyValuer(**parameters))


def test_l2_of_three_classes_is_refused(rng):
    problem = two_classes(rng, 8)
    three = problem._replace(y=np.r_[problem.y[:-1], ["maybe"]])
    with pytest.raises(ValueError, match="l2 needs.* 3 classes"):
        three.fit(LayeredShapleyValuer(l2=1.0))


def test_l2_of_targets_is_refused(rng):
    problem = two_classes(rng, 8)
    targets = problem._replace(y=problem.X[:, 0], y_val=np.ones(20))
    with pytest.raises(ValueError, match="l2 needs.* a continuous"):
        targets.fit(LayeredShapleyValuer(l2=1.0))


def test_a_split_without_rows_of_a_class_is_refused(rng):
    X = two_classes(rng, 8).X
    halves = [(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]
    message = "label 'no' are all among the validation points"
    with pytest.raises(ValueError, match=message):
        LayeredShapleyValuer(cv=halves).fit(X, ["yes"] * 4 + ["no"] * 4)


class BrokenClassifier(LogisticRegression):
    def fit(self, X, y):
        raise RuntimeError("no")


@pytest.mark.parametrize("has_points", [True, False])
def test_a_model_that_always_fails_is_an_error(has_points, rng):
    problem = two_classes(rng, 16)
    points = problem.points if has_points else {}
    valuer = LayeredShapleyValuer(BrokenClassifier(), max_evaluations=100, cv=2)
    message = "estimator must train on all .* raised RuntimeError"
    with pytest.raises(ValueError, match=message):
        valuer.fit(*problem.rows, **points)


# Minus the training loss as the utility -----------------------------------------------


@pytest.fixture
def training_loss(rng):
    """A valuer of eight rows by minus their training loss, and the problem."""
    problem = two_classes(rng, 8)
    valuer = LayeredShapleyValuer(
        l2=0.3, fit_intercept=False, scoring="neg_training_loss", **ALL
    )
    return problem.fit(valuer), problem


def test_values_by_the_training_loss_are_efficient(training_loss):
    valuer, _ = training_loss
    gain = valuer.utility_ - valuer.empty_utility_
    assert gain == pytest.approx(valuer.values_.sum())


def test_the_utility_is_minus_the_minimum_of_the_objective(training_loss):
    valuer, (X, y, *_) = training_loss
    model = LogisticRegression(C=1 / (0.3 * 8), fit_intercept=False, tol=1e-10)
    Z = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    coef = model.fit(Z, y).coef_[0]
    margins = Z @ coef * np.where(y == "yes", 1, -1)
    objective = np.log1p(np.exp(-margins)).mean() + 0.15 * (coef**2).sum()
    assert valuer.utility_ == pytest.approx(-objective, abs=1e-6)


def test_a_row_changes_the_training_loss_by_at_most_its_largest_loss(training_loss):
    valuer, (X, y, *_) = training_loss
    codes = (y == "yes").astype(int)
    game = StableLogisticGame(
        X, codes, X, np.zeros(8, int), l2=0.3, fit_intercept=False, loss="training"
    )
    largest_loss = np.log1p(np.exp(np.sqrt(0.2785 / 0.3)))
    rows = np.arange(8)
    for i in rows:
        value = 0.0
        for k in rows:
            sets = [[*others, i] for others in combinations(np.delete(rows, i), k)]
            masks = np.array([np.isin(rows, players) for players in sets])
            gains = game.utility(masks) - game.utility(masks & (rows != i))
            assert (np.abs(gains) * (k + 1) <= largest_loss).all()
            value += gains.sum() / (8 * comb(7, k))
        assert valuer.values_[i] == pytest.approx(value, abs=1e-10)
