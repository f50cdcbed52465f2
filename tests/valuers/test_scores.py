"""Values from the scores of another library."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from skvalue import KNNShapleyValuer, ScoresValuer, ValueFilter, ValueFilteredClassifier
from skvalue.exceptions import FewValidationPointsWarning

from ..problems import two_classes


def dot_products(X, y, X_val, y_val):
    signs = np.where(y == y_val[:, None], 1, -1)
    return signs * (X_val @ X.T)


@pytest.fixture
def data(rng):
    return two_classes(rng, 30, 12, 4, noise=0.0)


@pytest.fixture
def scores(data):
    return dot_products(*data)


def test_values_are_means_over_validation_points(data, scores):
    valuer = data.fit(ScoresValuer(scores))
    np.testing.assert_allclose(valuer.values_, scores.mean(axis=0), atol=1e-15)
    assert valuer.utility_ == pytest.approx(scores.sum() / 12)
    assert valuer.empty_utility_ == 0


def test_means_are_weighted_by_the_weights_of_points(data, scores, rng):
    weights = rng.random(12)
    valuer = data.fit(ScoresValuer(scores), sample_weight_val=weights)
    expected = weights / weights.sum() @ scores
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-15)


def test_a_function_of_the_rows_has_the_values_of_its_scores(data, scores):
    of_function = data.fit(ScoresValuer(dot_products))
    of_array = data.fit(ScoresValuer(scores))
    np.testing.assert_array_equal(of_function.values_, of_array.values_)


def test_scores_say_nothing_of_other_rows(data, scores):
    assert not hasattr(data.fit(ScoresValuer(scores)), "transform")


class TestGroups:
    """Seven groups, whose scores are sums over their rows."""

    groups = np.arange(30) % 7

    @pytest.fixture
    def valuer(self, data, scores):
        return data.fit(ScoresValuer(scores), groups=self.groups)

    @pytest.fixture
    def sums(self, scores):
        return scores @ (self.groups[:, None] == np.arange(7))

    def test_values_are_means_of_sums(self, valuer, sums):
        np.testing.assert_allclose(valuer.values_, sums.mean(axis=0), atol=1e-14)

    def test_errors_are_those_of_means_of_sums(self, valuer, sums):
        errors = sums.std(axis=0, ddof=1) / np.sqrt(12)
        np.testing.assert_allclose(valuer.validation_error_, errors, rtol=1e-10)

    def test_contributions_are_sums_over_the_number_of_points(self, valuer, sums):
        np.testing.assert_allclose(
            valuer.contributions(3).contributions, sums[:, 3] / 12, atol=1e-14
        )

    def test_no_group_of_positive_value_is_harmful(self, valuer):
        with pytest.warns(FewValidationPointsWarning):
            is_harmful = valuer.harmful(0.01)
        assert not is_harmful[valuer.values_ > 0].any()


@pytest.fixture
def held_out(data):
    return ScoresValuer(dot_products, cv=3).fit(*data.rows)


def test_rows_are_held_out_for_a_function(held_out):
    contributions = [held_out.contributions(i).contributions.sum() for i in range(30)]
    assert held_out.values_.sum() == pytest.approx(held_out.utility_)
    assert held_out.utility_ == pytest.approx(sum(contributions))


def test_rows_held_out_have_no_test_over_points(held_out):
    with pytest.raises(ValueError, match="harmful needs a validation set"):
        held_out.harmful()


def as_texts(rows):
    return [f"row {row[0]}" for row in rows]


def with_gaps(rows):
    return np.where(rows > 0, rows, np.nan)


@pytest.mark.parametrize("convert", [sparse.csr_array, as_texts, with_gaps])
def test_rows_may_be_of_any_kind(data, scores, convert):
    X, y, X_val, y_val = data
    valuer = ScoresValuer(scores.astype(np.float32))
    valuer.fit(convert(X), y, X_val=convert(X_val), y_val=y_val)
    np.testing.assert_allclose(valuer.values_, scores.mean(axis=0), atol=1e-6)
    assert len(valuer.contributions(0).contributions) == 12


def test_targets_are_those_of_a_regression(data, scores):
    X, _, X_val, _ = data
    valuer = ScoresValuer(scores).fit(X, X[:, 0], X_val=X_val, y_val=X_val[:, 0])
    np.testing.assert_allclose(valuer.values_, scores.mean(axis=0), atol=1e-15)
    assert not hasattr(valuer, "classes_")


def test_a_filter_drops_the_rows_of_lowest_scores(data, scores):
    value_filter = ValueFilter(ScoresValuer(scores), drop=5)
    X_kept, _ = value_filter.fit_resample(*data.rows, **data.points)
    assert len(X_kept) == 25
    lowest = np.sort(scores.mean(axis=0).argsort()[:5])
    np.testing.assert_array_equal(value_filter.dropped_indices_, lowest)


def test_a_filtered_classifier_takes_a_function(data):
    model = ValueFilteredClassifier(
        LogisticRegression(), ScoresValuer(dot_products), drop=0.2
    )
    assert model.fit(*data.rows).score(*data.rows) > 0.8


def test_contributions_of_a_valuer_are_scores_with_its_values_and_errors(data):
    knn = data.fit(KNNShapleyValuer())
    scores = np.array([knn.contributions(i).contributions for i in range(30)]).T * 12
    valuer = data.fit(ScoresValuer(scores))
    np.testing.assert_allclose(valuer.values_, knn.values_, atol=1e-14)
    np.testing.assert_allclose(
        valuer.validation_error_, knn.validation_error_, atol=1e-14
    )


def test_scores_of_another_shape_are_refused(data, scores):
    with pytest.raises(ValueError, match=r"scores must have .* \(12, 30\)"):
        data.fit(ScoresValuer(scores.T))


def test_an_array_without_validation_points_is_refused(data, scores):
    with pytest.raises(
        ValueError, match="scores must be a callable if no X_val and y_val"
    ):
        ScoresValuer(scores).fit(*data.rows)


def test_scores_of_nan_are_refused(data):
    with pytest.raises(ValueError, match="NaN"):
        data.fit(ScoresValuer(np.full((12, 30), np.nan)))
