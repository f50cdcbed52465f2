import numpy as np
import pytest
from problems import two_classes
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skvalue import KNNShapleyValuer, ScoresValuer, ValueFilter, ValueFilteredClassifier
from skvalue.exceptions import FewValidationPointsWarning


def dot_products(X, y, X_val, y_val):
    signs = np.where(y == y_val[:, None], 1, -1)
    return signs * (X_val @ X.T)


@pytest.fixture
def data(rng):
    return two_classes(rng, 30, 12, 4, noise=0.0)


@pytest.fixture
def scores(data):
    return dot_products(*data)


def test_values_are_weighted_means(data, scores, rng):
    valuer = data.fit(ScoresValuer(scores))
    np.testing.assert_allclose(valuer.values_, scores.mean(axis=0), atol=1e-15)
    assert valuer.utility_ == pytest.approx(scores.sum() / 12)
    assert valuer.empty_utility_ == 0
    weights = rng.random(12)
    weighted = data.fit(ScoresValuer(scores), sample_weight_val=weights)
    expected = weights / weights.sum() @ scores
    np.testing.assert_allclose(weighted.values_, expected, atol=1e-15)
    by_function = data.fit(ScoresValuer(dot_products))
    np.testing.assert_array_equal(by_function.values_, valuer.values_)
    assert not hasattr(valuer, "transform")


def test_groups_errors_and_contributions(data, scores):
    groups = np.arange(30) % 7
    valuer = data.fit(ScoresValuer(scores), groups=groups)
    sums = np.array([scores[:, groups == g].sum(axis=1) for g in range(7)]).T
    np.testing.assert_allclose(valuer.values_, sums.mean(axis=0), atol=1e-14)
    error = sums.std(axis=0, ddof=1) / np.sqrt(12)
    np.testing.assert_allclose(valuer.validation_error_, error, rtol=1e-10)
    np.testing.assert_allclose(
        valuer.contributions(3).contributions, sums[:, 3] / 12, atol=1e-14
    )
    with pytest.warns(FewValidationPointsWarning):
        assert not valuer.harmful(0.01)[valuer.values_ > 0].any()


def test_rows_are_held_out_for_a_function(data):
    valuer = ScoresValuer(dot_products, cv=3).fit(*data.rows)
    total = sum(valuer.contributions(i).contributions.sum() for i in range(30))
    assert (
        valuer.values_.sum() == pytest.approx(valuer.utility_) == pytest.approx(total)
    )
    with pytest.raises(ValueError, match="harmful needs a validation set"):
        valuer.harmful()


@pytest.mark.parametrize("kind", ["sparse", "texts", "missing"])
def test_rows_of_any_kind(data, scores, kind):
    X, y, X_val, y_val = data
    change = {
        "sparse": sparse.csr_array,
        "texts": lambda rows: [f"row {row[0]}" for row in rows],
        "missing": lambda rows: np.where(rows > 0, rows, np.nan),
    }[kind]
    valuer = ScoresValuer(scores.astype(np.float32))
    valuer.fit(change(X), y, X_val=change(X_val), y_val=y_val)
    np.testing.assert_allclose(valuer.values_, scores.mean(axis=0), atol=1e-6)
    valuer.contributions(0)


def test_targets_of_a_regression(data, scores):
    X, _, X_val, _ = data
    valuer = ScoresValuer(scores).fit(X, X[:, 0], X_val=X_val, y_val=X_val[:, 0])
    np.testing.assert_allclose(valuer.values_, scores.mean(axis=0), atol=1e-15)
    assert not hasattr(valuer, "classes_")


def test_filters(data, scores):
    kept = ValueFilter(clone(ScoresValuer(scores)), drop=5)
    X_kept, _ = kept.fit_resample(*data.rows, **data.points)
    assert len(X_kept) == 25
    np.testing.assert_array_equal(
        kept.dropped_indices_, np.sort(scores.mean(axis=0).argsort()[:5])
    )
    model = ValueFilteredClassifier(
        LogisticRegression(), ScoresValuer(dot_products), drop=0.2
    )
    assert model.fit(*data.rows).score(*data.rows) > 0.8


def test_scores_of_a_valuer_are_its_values(data):
    knn = data.fit(KNNShapleyValuer())
    scores = np.array([knn.contributions(i).contributions for i in range(30)]).T * 12
    valuer = data.fit(ScoresValuer(scores))
    np.testing.assert_allclose(valuer.values_, knn.values_, atol=1e-14)
    np.testing.assert_allclose(
        valuer.validation_error_, knn.validation_error_, atol=1e-14
    )


def test_wrong_scores(data, scores):
    with pytest.raises(ValueError, match=r"scores must have .* \(12, 30\)"):
        data.fit(ScoresValuer(scores.T))
    with pytest.raises(
        ValueError, match="scores must be a callable if no X_val and y_val"
    ):
        ScoresValuer(scores).fit(*data.rows)
    with pytest.raises(ValueError, match="NaN"):
        data.fit(ScoresValuer(np.full((12, 30), np.nan)))
