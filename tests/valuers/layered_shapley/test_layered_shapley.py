"""Layered Shapley as an estimator: exact where it enumerates, core sets, groups of
rows, errors."""

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
from skvalue.samplers import ALLOCATIONS

ALL = dict(tol=1e-4, random_state=0)  # enough coalitions that all are enumerated
EXACT = DataShapleyValuer(sampler="exact", cv=2)
CLOSE = dict(rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_many_coalitions_give_the_shapley_value(design, rng):
    problem = two_classes(rng, 8)
    valuer = problem.fit(LayeredShapleyValuer(design=design, **ALL))
    np.testing.assert_allclose(valuer.values_, problem.fit(EXACT).values_, **CLOSE)
    np.testing.assert_allclose(valuer.layer_values_.sum(axis=0), valuer.values_)
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )
    assert not valuer.values_error_.any()
    assert valuer.truncation_bias_ == 0


def test_regression_and_other_estimators(rng):
    problem = two_classes(rng, 6)
    targets = problem._replace(y=problem.X[:, 0] + 1, y_val=problem.X_val[:, 0] + 1)
    for data, model, batch in ((targets, Ridge(), "auto"),
                               (problem, KNeighborsClassifier(1), "never")):  # fmt: skip
        estimator = None if data is targets else model
        valuer = data.fit(LayeredShapleyValuer(estimator, batch=batch, **ALL))
        exact = data.fit(DataShapleyValuer(model, sampler="exact"))
        np.testing.assert_allclose(valuer.values_, exact.values_, **CLOSE)


def test_groups_and_splits(rng):
    (X, y), points = (problem := two_classes(rng, 16)).rows, problem.points
    for given in (
        {**points, "groups": np.arange(16) % 6},
        {"groups": np.arange(16) % 6},
    ):
        valuer = LayeredShapleyValuer(cv=2, **ALL).fit(X, y, **given)
        np.testing.assert_allclose(
            valuer.values_, EXACT.fit(X, y, **given).values_, **CLOSE
        )
        assert np.isfinite(valuer.score_samples(X[:3] + 5, y[:3])).all()


@pytest.mark.parametrize("parameters", [{}, {"l2": 0.5, "max_norm": 2.0}])
def test_a_new_row_has_the_value_of_one_that_joins(parameters, rng):
    X, y, *_ = problem = two_classes(rng, 8)
    valuer = problem.fit(LayeredShapleyValuer(**ALL, **parameters))
    X_new, y_new = rng.normal(size=(2, 3)), np.array(["no", "yes"])
    scores = valuer.score_samples(X_new, y_new)
    np.testing.assert_array_equal(
        valuer.core_sets()[0].score_samples(X_new, y_new), scores
    )
    with pytest.raises(ValueError, match="y must hold only labels"):
        valuer.core_sets()[0].score_samples(X_new, ["maybe"] * 2)
    for row, label, score in zip(X_new, y_new, scores):
        joined = problem._replace(X=np.vstack([X, row]), y=np.append(y, label))
        expected = joined.fit(LayeredShapleyValuer(**ALL, **parameters)).values_[-1]
        assert score == pytest.approx(expected, abs=1e-12)
    by_label = [valuer.score_samples(X_new, [label] * 2) for label in ("no", "yes")]
    probabilities = LogisticRegression().fit(X, y).predict_proba(X_new)
    expected = probabilities[:, 0] * by_label[0] + probabilities[:, 1] * by_label[1]
    np.testing.assert_allclose(valuer.transform(X_new)[:, 0], expected)
    np.testing.assert_array_equal(valuer.transform(X[::-1])[::-1, 0], valuer.values_)


class OfFewRows(DummyClassifier):
    def fit(self, X, y):
        if len(X) > 20:
            raise RuntimeError("too many rows")
        return super().fit(X, y)


def test_new_rows_join_one_by_one(rng):
    X, y = np.array([f"text {i}" for i in range(12)], dtype=object), np.arange(12) % 2
    valuer = LayeredShapleyValuer(
        OfFewRows(), cv=2, max_evaluations=60, random_state=0
    ).fit(X, y)
    assert np.isfinite(valuer.score_samples(np.tile(X, 3), np.tile(y, 3))).all()


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("design", "allocation", "n_fits"),
    [
        *zip(LAYER_DESIGNS, (*ALLOCATIONS, ALLOCATIONS[0]), [15] * 3),
        *(
            pytest.param(*case, 400, marks=SLOW)
            for case in product(LAYER_DESIGNS, ALLOCATIONS)
        ),
    ],
)
def test_core_sets_of_samples_value_new_rows(design, allocation, n_fits, rng):
    # Mean over fits of the values of a new row, against the value in the game with it;
    # and of the values of the fit, against exact ones.
    problem = two_classes(rng, 9)
    row, label = rng.normal(size=(1, 3)), np.array(["yes"])
    joined = problem._replace(
        X=np.vstack([problem.X, row]), y=np.append(problem.y, label)
    )
    settings = dict(design=design, allocation=allocation, max_evaluations=120)
    found = []
    for seed in range(n_fits):
        valuer = problem.fit(LayeredShapleyValuer(**settings, random_state=seed))
        found.append(np.append(valuer.values_, valuer.score_samples(row, label)))
    expected = np.append(problem.fit(EXACT).values_, joined.fit(EXACT).values_[-1])
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(n_fits)
    assert (np.abs(np.mean(found, axis=0) - expected) < 4.5 * errors).all()


def test_layers_left_out_are_bounded(rng):
    problem = two_classes(rng, 10)
    whole = problem.fit(LayeredShapleyValuer(l2=0.2, **ALL)).values_
    for k in (1, 4, 8):
        part = problem.fit(LayeredShapleyValuer(l2=0.2, n_layers=k, **ALL))
        assert part.layer_values_.shape == (k + 1, 10)
        assert 0 < np.abs(part.values_ - whole).max() <= part.truncation_bias_
    given = problem.fit(LayeredShapleyValuer(n_layers=4, bound=0.7, **ALL))
    assert given.truncation_bias_ == pytest.approx(
        0.7 / 10 * (1 / np.arange(5, 10)).sum()
    )


def test_same_seed_same_bits(rng):
    problem = two_classes(rng, 30)

    def values(**options):
        return problem.fit(LayeredShapleyValuer(max_evaluations=400, **options)).values_

    one = values(random_state=3, n_jobs=1)
    np.testing.assert_array_equal(one, values(random_state=3, n_jobs=2))
    assert not np.array_equal(one, values(random_state=4))
    assert not np.array_equal(values(), values())


@pytest.mark.parametrize("design", ["blocks", "iid"])
def test_errors_are_about_right(design, rng):
    problem, options = (
        two_classes(rng, 20),
        dict(l2=0.1, design=design, max_evaluations=250),
    )
    fits = [
        problem.fit(LayeredShapleyValuer(random_state=s, **options)) for s in range(16)
    ]
    deviation = np.std([fit.values_ for fit in fits], axis=0, ddof=1)
    stated = np.sqrt(np.mean([fit.values_error_**2 for fit in fits], axis=0))
    assert 0.65 < np.median(stated / deviation) < (1.5 if design == "blocks" else 2.5)


def test_errors_of_parameters(rng):
    X, y, *_ = problem = two_classes(rng, 8)
    halves = [(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]
    for match, parameters, data in [
        (
            "estimator must be None with l2",
            dict(estimator=LogisticRegression(), l2=1.0),
            problem,
        ),
        ("scoring must be None with l2", dict(scoring="accuracy", l2=1.0), problem),
        ("scoring must be None with l2", dict(scoring="neg_log_loss", l2=1.0), problem),
        (
            "l2 needs.* 3 classes",
            dict(l2=1.0),
            problem._replace(y=np.r_[y[:-1], ["maybe"]]),
        ),
        (
            "l2 needs.* a continuous",
            dict(l2=1.0),
            problem._replace(y=X[:, 0], y_val=np.ones(20)),
        ),
        ("'confidence'", dict(confidence=1.0), problem),
        ("n_layers must not be 'auto' without epsilon", dict(n_layers="auto"), problem),
    ]:
        with pytest.raises(ValueError, match=match):
            data.fit(LayeredShapleyValuer(**parameters))
    with pytest.raises(
        ValueError, match="label 'no' are all among the validation points"
    ):
        LayeredShapleyValuer(cv=halves).fit(X, ["yes"] * 4 + ["no"] * 4)


class BrokenClassifier(LogisticRegression):
    def fit(self, X, y):
        raise RuntimeError("no")


def test_a_model_that_fails_is_an_error(rng):
    problem = two_classes(rng, 16)
    for points in (problem.points, {}):
        valuer = LayeredShapleyValuer(BrokenClassifier(), max_evaluations=100, cv=2)
        with pytest.raises(
            ValueError, match="estimator must train on all .* raised RuntimeError"
        ):
            valuer.fit(*problem.rows, **points)


def test_a_default_fit_is_bounded_and_its_cost_is_known(rng):
    problem = two_classes(rng, 30)

    def cost(valuer):
        return valuer.estimate_cost(*problem.rows, **problem.points)

    valuer = LayeredShapleyValuer(random_state=0)
    found = cost(valuer)
    assert found.n_evaluations <= 40 * 30
    assert found.n_players == 30
    expected = found.n_evaluations * found.seconds_per_evaluation
    assert found.seconds == pytest.approx(expected, rel=0.01)
    assert problem.fit(valuer).n_evaluations_ == pytest.approx(
        found.n_evaluations, rel=0.2
    )
    few = problem.fit(valuer.set_params(max_time=found.seconds / 5))
    assert few.n_evaluations_ < 0.8 * found.n_evaluations
    valuer.set_params(max_time=None, tol=1.0, max_evaluations=500)
    assert cost(valuer).n_evaluations <= 500
    private = LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0)
    one = cost(private).n_evaluations
    assert 0 < one < cost(private.set_params(release="all")).n_evaluations


def test_minus_training_loss_as_utility(rng):
    X, y, *_ = problem = two_classes(rng, 8)
    valuer = LayeredShapleyValuer(
        l2=0.3, fit_intercept=False, scoring="neg_training_loss", **ALL
    )
    problem.fit(valuer)
    assert valuer.utility_ - valuer.empty_utility_ == pytest.approx(
        valuer.values_.sum()
    )
    # It is the minimum of the objective, which a row changes by at most its largest
    # loss / (k + 1).
    model = LogisticRegression(C=1 / (0.3 * 8), fit_intercept=False, tol=1e-10)
    Z = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    margins = Z @ model.fit(Z, y).coef_[0] * np.where(y == "yes", 1, -1)
    objective = np.log1p(np.exp(-margins)).mean() + 0.15 * (model.coef_**2).sum()
    assert valuer.utility_ == pytest.approx(-objective, abs=1e-6)
    game = StableLogisticGame(
        X, (y == "yes").astype(int), X, np.zeros(8, int), l2=0.3, fit_intercept=False,
        loss="training",
    )  # fmt: skip
    largest = np.log1p(np.exp(np.sqrt(0.2785 / 0.3)))
    for i in range(8):
        value = 0.0
        for k in range(8):
            sets = [[*rest, i] for rest in combinations(np.delete(np.arange(8), i), k)]
            masks = np.array([np.isin(np.arange(8), players) for players in sets])
            gains = game.utility(masks) - game.utility(masks & (np.arange(8) != i))
            assert (np.abs(gains) * (k + 1) <= largest).all()
            value += gains.sum() / (8 * comb(7, k))
        assert valuer.values_[i] == pytest.approx(value, abs=1e-10)
