"""Standard errors over validation points, significant harm, and contributions by
point."""

import numpy as np
import pytest
from problems import on_a_grid
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from test_axioms import EXACT, by_name, problem

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.exceptions import FewValidationPointsWarning


def by_point(valuer, X, y, X_val, y_val):
    """Values at every validation point alone, from one fit each."""
    weights = np.eye(len(y_val))
    return np.array(
        [
            clone(valuer)
            .fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=w)
            .values_
            for w in weights
        ]
    )


# A regression's prior is the mean validation target, so one point at a time is another
# game.
CLASSES = [name for name, (_, n_classes) in EXACT.items() if n_classes]
by_class_name = pytest.mark.parametrize("name", CLASSES)


@by_class_name
@pytest.mark.parametrize("grouped", [False, True])
def test_validation_error_is_that_of_a_mean(name, rng, grouped):
    valuer, n_classes = EXACT[name]
    X, y, X_val, y_val = on_a_grid(rng, n_classes=n_classes, n=40, n_val=10)
    groups = rng.permutation(np.arange(40) % 6) if grouped else None
    split = by_point(valuer, X, y, X_val, y_val)
    if grouped:
        split = np.stack([split[:, groups == g].sum(axis=1) for g in range(6)], axis=1)
    fitted = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    np.testing.assert_allclose(fitted.values_, split.mean(axis=0), atol=1e-13)
    np.testing.assert_allclose(
        fitted.validation_error_, stats.sem(split, axis=0), atol=1e-13
    )


@by_class_name
def test_validation_error_with_weights(name, rng):
    valuer, n_classes = EXACT[name]
    X, y, X_val, y_val = on_a_grid(rng, n_classes=n_classes, n=30, n_val=8)
    w = rng.random(8)
    w /= w.sum()
    split = by_point(valuer, X, y, X_val, y_val)
    fitted = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=w)
    variance = (w[:, None] ** 2 * (split - w @ split) ** 2).sum(axis=0) / (
        1 - (w**2).sum()
    )
    np.testing.assert_allclose(fitted.validation_error_, np.sqrt(variance), atol=1e-13)


@by_name
@pytest.mark.parametrize(
    ("points_of", "grouped"),
    [("validation", True), ("leave-one-out", False), (4, True)],
)
def test_contributions_sum_to_the_value(name, rng, points_of, grouped):
    valuer, (X, y, X_val, y_val) = problem(name, rng, n=40)
    extra = {"groups": np.arange(40) % 5} if grouped else {}
    if points_of == "validation":
        extra |= {"X_val": X_val, "y_val": y_val}
    else:
        valuer.set_params(cv=points_of)
    valuer.fit(X, y, **extra)
    for i in (0, 3, -1):
        split = valuer.contributions(i)
        assert len(split.contributions) == (30 if points_of == "validation" else 40)
        assert split.contributions.sum() == pytest.approx(valuer.values_[i], abs=1e-13)
        assert (np.diff(split.contributions[split.supporters]) <= 0).all()
        assert (split.contributions[split.supporters] > 0).all()
        assert (np.diff(split.contributions[split.opponents]) >= 0).all()
        assert (split.contributions[split.opponents] < 0).all()


@by_class_name
def test_contributions_are_the_values_at_each_point(name, rng):
    valuer, n_classes = EXACT[name]
    X, y, X_val, y_val = on_a_grid(rng, n_classes=n_classes, n=30, n_val=6)
    split = by_point(valuer, X, y, X_val, y_val) / 6
    fitted = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
    for i in (2, 17):
        np.testing.assert_allclose(
            fitted.contributions(i).contributions, split[:, i], atol=1e-14
        )


def test_max_rank_split(rng):
    X, y, X_val, y_val = on_a_grid(rng, n_classes=2, n=60)
    fitted = KNNShapleyValuer(3, max_rank=10).fit(X, y, X_val=X_val, y_val=y_val)
    for i in range(60):
        assert fitted.contributions(i).contributions.sum() == pytest.approx(
            fitted.values_[i], abs=1e-13
        )


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
    fractions, power = [], []
    for _ in range(20):
        X_val, y_val = draw(600, 0.4)
        found = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).harmful(fdr=0.2)
        fractions.append((found & ~truth).sum() / max(found.sum(), 1))
        power.append((found & truth).sum() / truth.sum())
    error = np.std(fractions) / np.sqrt(len(fractions))
    assert np.mean(fractions) < 0.2 + 2 * error
    assert np.mean(power) > 0.1  # a rule that finds no row would hold any rate


def test_harmful_rows_are_those_of_a_t_test(rng):
    X, X_val = rng.normal(size=(200, 2)), rng.normal(size=(600, 2))
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
    valuer = TKNNShapleyValuer(0.5, metric="euclidean").fit(
        X, y, X_val=X_val, y_val=y_val
    )
    assert valuer.validation_error_[5] == 0
    assert not valuer.harmful(fdr=0.4)[5]


def test_messages(rng):
    X, y, X_val, y_val = on_a_grid(rng, n_classes=2)
    valuer = KNNShapleyValuer().fit(X, y)
    with pytest.raises(ValueError, match="harmful needs a validation set: pass X_val"):
        valuer.harmful()
    assert not hasattr(valuer, "validation_error_")
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    with pytest.raises(ValueError, match="fdr must be between 0 and 1. Got 1.5"):
        valuer.harmful(fdr=1.5)
    with pytest.warns(
        FewValidationPointsWarning, match="30 are few, 500 or more are recommended"
    ):
        valuer.harmful()
    with pytest.raises(ValueError, match="i must be between 0 and 79. Got 80"):
        valuer.contributions(80)
    for i in (1.5, "a"):
        with pytest.raises(ValueError, match=f"i must be between 0 and 79. Got {i!r}"):
            valuer.contributions(i)


def test_groups_by_name(rng):
    X, y, X_val, y_val = on_a_grid(rng, n_classes=2)
    names = np.array(["adam", "eve", "kim", "lea"])[np.arange(80) % 4]
    valuer = KNNShapleyValuer().fit(X, y, X_val=X_val, y_val=y_val, groups=names)
    by_name, by_position = valuer.contributions("eve"), valuer.contributions(1)
    np.testing.assert_array_equal(by_name.contributions, by_position.contributions)
    assert valuer.values_for("eve") == valuer.values_[1]
    for i in ("mallory", 1.5, 4):
        with pytest.raises(
            ValueError, match=f"between 0 and 3, or the name of a group. Got {i!r}"
        ):
            valuer.contributions(i)


def test_attributes_that_are_not_there_say_why(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    valuer = TKNNShapleyValuer()
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        _ = valuer.counts_
    with pytest.raises(
        AttributeError, match="validation_error_ needs a validation set: pass"
    ):
        _ = valuer.fit(X, y).validation_error_
    with pytest.raises(AttributeError, match="has no attribute 'value_'"):
        _ = valuer.value_
    valuer.set_params(epsilon=1.0).fit(X, y, X_val=X, y_val=y)
    with pytest.raises(AttributeError, match="validation_error_ needs the rows of fit"):
        _ = valuer.validation_error_
