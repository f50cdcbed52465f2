"""Standard errors over validation points, significant harm, and contributions."""

import numpy as np
import pytest
from exact_valuers import EXACT, each_exact_and_engine, each_of_classes, problem
from problems import on_a_grid
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.exceptions import FewValidationPointsWarning

# A regression's prior is the mean validation target, so that one point at a time is
# another game: what needs values at single points is tested on classes.


def values_at_each_point(valuer, X, y, X_val, y_val):
    """Values at every validation point alone, from one fit each."""
    values = []
    for weights in np.eye(len(y_val)):
        fitted = clone(valuer)
        fitted.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights)
        values.append(fitted.values_)
    return np.array(values)


@each_of_classes
@pytest.mark.parametrize("grouped", [False, True])
def test_validation_error_is_that_of_a_mean(name, rng, grouped):
    valuer, n_classes = EXACT[name]
    X, y, X_val, y_val = on_a_grid(rng, n_classes=n_classes, n=40, n_val=10)
    groups = rng.permutation(np.arange(40) % 6) if grouped else None
    values = values_at_each_point(valuer, X, y, X_val, y_val)
    if grouped:
        sums = [values[:, groups == group].sum(axis=1) for group in range(6)]
        values = np.stack(sums, axis=1)
    fitted = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    np.testing.assert_allclose(fitted.values_, values.mean(axis=0), atol=1e-13)
    errors = stats.sem(values, axis=0)
    np.testing.assert_allclose(fitted.validation_error_, errors, atol=1e-13)


@each_of_classes
def test_validation_error_is_that_of_a_weighted_mean(name, rng):
    valuer, n_classes = EXACT[name]
    X, y, X_val, y_val = on_a_grid(rng, n_classes=n_classes, n=30, n_val=8)
    w = rng.random(8)
    w /= w.sum()
    fitted = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=w)
    values = values_at_each_point(valuer, X, y, X_val, y_val)
    squares = w[:, None] ** 2 * (values - w @ values) ** 2
    errors = np.sqrt(squares.sum(axis=0) / (1 - (w**2).sum()))
    np.testing.assert_allclose(fitted.validation_error_, errors, atol=1e-13)


@each_exact_and_engine
@pytest.mark.parametrize(
    ("points_of", "grouped"),
    [("validation", True), ("leave-one-out", False), (4, True)],
)
def test_contributions_sum_to_the_value(name, rng, points_of, grouped):
    valuer, (X, y, X_val, y_val) = problem(name, rng, n=40)
    options = {"groups": np.arange(40) % 5} if grouped else {}
    n_points = 40
    if points_of == "validation":
        options |= {"X_val": X_val, "y_val": y_val}
        n_points = 30
    else:
        valuer.set_params(cv=points_of)
    valuer.fit(X, y, **options)
    for i in (0, 3, -1):
        split = valuer.contributions(i)
        assert len(split.contributions) == n_points
        assert split.contributions.sum() == pytest.approx(valuer.values_[i], abs=1e-13)
        of_supporters = split.contributions[split.supporters]
        assert (of_supporters > 0).all()
        assert (np.diff(of_supporters) <= 0).all()
        of_opponents = split.contributions[split.opponents]
        assert (of_opponents < 0).all()
        assert (np.diff(of_opponents) >= 0).all()


@each_of_classes
def test_contributions_are_the_values_at_each_point(name, rng):
    valuer, n_classes = EXACT[name]
    X, y, X_val, y_val = on_a_grid(rng, n_classes=n_classes, n=30, n_val=6)
    expected = values_at_each_point(valuer, X, y, X_val, y_val) / 6
    fitted = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
    for i in (2, 17):
        contributions = fitted.contributions(i).contributions
        np.testing.assert_allclose(contributions, expected[:, i], atol=1e-14)


def test_contributions_up_to_a_rank_sum_to_the_value(rng):
    X, y, X_val, y_val = on_a_grid(rng, n_classes=2, n=60)
    fitted = KNNShapleyValuer(3, max_rank=10).fit(X, y, X_val=X_val, y_val=y_val)
    for i, value in enumerate(fitted.values_):
        contributions = fitted.contributions(i).contributions
        assert contributions.sum() == pytest.approx(value, abs=1e-13)


@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(5), TKNNShapleyValuer(1.0, metric="euclidean")]
)
def test_harmful_holds_its_false_discovery_rate(valuer, rng):
    # Expected values over fresh points are known well from a very large validation set.
    def draw(n, flip):
        X = rng.normal(size=(n, 2))
        y = (X[:, 0] > 0).astype(int)
        return X, np.where(rng.random(n) < flip, 1 - y, y)

    X, y = draw(100, 0.3)  # many values are near zero
    X_big, y_big = draw(20_000, 0.4)
    truth = clone(valuer).fit(X, y, X_val=X_big, y_val=y_big).values_ < 0
    false_discoveries = []
    power = []
    for _ in range(20):
        X_val, y_val = draw(600, 0.4)
        fitted = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
        is_harmful = fitted.harmful(fdr=0.2)
        n_false = (is_harmful & ~truth).sum()
        false_discoveries.append(n_false / max(is_harmful.sum(), 1))
        power.append((is_harmful & truth).sum() / truth.sum())
    error = np.std(false_discoveries) / np.sqrt(len(false_discoveries))
    assert np.mean(false_discoveries) < 0.2 + 2 * error
    assert np.mean(power) > 0.1  # a rule that finds no row would hold any rate


def test_harmful_rows_are_those_of_a_t_test(rng):
    X = rng.normal(size=(200, 2))
    X_val = rng.normal(size=(600, 2))
    y, y_val = (rows[:, 0] + rng.normal(size=len(rows)) > 0 for rows in (X, X_val))
    for weights in (None, rng.random(600)):
        valuer = KNNShapleyValuer(5)
        valuer.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights)
        n_points = 600 if weights is None else weights.sum() ** 2 / (weights**2).sum()
        p = stats.t.cdf(valuer.values_ / valuer.validation_error_, n_points - 1)
        expected = stats.false_discovery_control(p) <= 0.2
        np.testing.assert_array_equal(valuer.harmful(fdr=0.2), expected)
        assert 10 < expected.sum() < 190


def test_a_row_in_no_ball_is_harmless(rng):
    X, y, X_val, y_val = on_a_grid(rng, n_classes=2, n_val=500)
    X[5] = 1e3
    valuer = TKNNShapleyValuer(0.5, metric="euclidean")
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert valuer.validation_error_[5] == 0
    assert not valuer.harmful(fdr=0.4)[5]


def test_harmful_needs_a_validation_set(rng):
    X, y, *_ = on_a_grid(rng, n_classes=2)
    valuer = KNNShapleyValuer().fit(X, y)
    with pytest.raises(ValueError, match="harmful needs a validation set: pass X_val"):
        valuer.harmful()
    assert not hasattr(valuer, "validation_error_")


def test_harmful_refuses_a_rate_above_one_and_warns_of_few_points(rng):
    given = on_a_grid(rng, n_classes=2)
    valuer = given.fit(KNNShapleyValuer())
    with pytest.raises(ValueError, match="fdr must be between 0 and 1. Got 1.5"):
        valuer.harmful(fdr=1.5)
    message = "30 are few, 500 or more are recommended"
    with pytest.warns(FewValidationPointsWarning, match=message):
        valuer.harmful()


@pytest.mark.parametrize("i", [80, 1.5, "a"])
def test_contributions_of_no_row_are_refused(i, rng):
    valuer = on_a_grid(rng, n_classes=2).fit(KNNShapleyValuer())
    with pytest.raises(ValueError, match=f"i must be between 0 and 79. Got {i!r}"):
        valuer.contributions(i)


def test_groups_are_found_by_name(rng):
    X, y, X_val, y_val = on_a_grid(rng, n_classes=2)
    names = np.array(["adam", "eve", "kim", "lea"])[np.arange(80) % 4]
    valuer = KNNShapleyValuer().fit(X, y, X_val=X_val, y_val=y_val, groups=names)
    by_name = valuer.contributions("eve").contributions
    by_position = valuer.contributions(1).contributions
    np.testing.assert_array_equal(by_name, by_position)
    assert valuer.values_for("eve") == valuer.values_[1]
    for i in ("mallory", 1.5, 4):
        message = f"between 0 and 3, or the name of a group. Got {i!r}"
        with pytest.raises(ValueError, match=message):
            valuer.contributions(i)


def test_attributes_that_are_not_there_say_why(rng):
    X = rng.normal(size=(20, 2))
    y = np.arange(20) % 2
    valuer = TKNNShapleyValuer()
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        _ = valuer.counts_
    message = "validation_error_ needs a validation set: pass"
    with pytest.raises(AttributeError, match=message):
        _ = valuer.fit(X, y).validation_error_
    with pytest.raises(AttributeError, match="has no attribute 'value_'"):
        _ = valuer.value_
    valuer.set_params(epsilon=1.0).fit(X, y, X_val=X, y_val=y)
    with pytest.raises(AttributeError, match="validation_error_ needs the rows of fit"):
        _ = valuer.validation_error_
