"""What the filtered classifier and regressor do with rows, weights and metadata."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_regression
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from skvalue import DataShapleyValuer, KNNShapleyValuer, LeaveOneOutValuer
from skvalue.selection import (
    ValueFilter,
    ValueFilteredClassifier,
    ValueFilteredRegressor,
)

CLASSIFIER = ValueFilteredClassifier(LogisticRegression())
REGRESSOR = ValueFilteredRegressor(Ridge())


# The checks of the defaults are in tests/test_common.py.
@pytest.mark.slow
@parametrize_with_checks(
    [
        ValueFilteredClassifier(LogisticRegression(), drop="auto", cv=2),
        ValueFilteredRegressor(Ridge(), drop=2, mode="weight"),
        ValueFilteredClassifier(LogisticRegression(), drop=2, mode="weight"),
        ValueFilteredRegressor(Ridge(), drop="auto", cv=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_auto_cross_validates_a_regressor():
    X, y = make_regression(60, 3, noise=1.0, random_state=0)
    model = ValueFilteredRegressor(Ridge(), drop="auto", cv=2).fit(X, y)
    scores_of_all_rows = cross_val_score(Ridge(), X, y, cv=2)
    np.testing.assert_allclose(model.drop_scores_[0], scores_of_all_rows)
    assert len(model.dropped_indices_) == int(model.drop_ * 60)


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what its fit was given."""

    def fit(self, X, y, sample_weight=None, price=None, note=None):
        self.classes_ = np.unique(y)
        self.seen_ = {
            "X": np.asarray(X),
            "y": np.asarray(y),
            "price": price,
            "note": note,
            "sample_weight": sample_weight,
        }
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def repeated(rows, n_times):
    """Arrays of rows, each several times."""
    return [np.concatenate([array] * n_times) for array in rows]


class TestRowsAndMetadata:
    @pytest.mark.parametrize(
        ("drop", "kept"), [(2, [1, 3, 4, 5]), (0, [*range(6)]), (0.0, [*range(6)])]
    )
    def test_rows_and_metadata_are_cut_together(self, first_column, rows, drop, kept):
        X, y = rows
        model = ValueFilteredClassifier(
            Recorder(), first_column(), drop, row_metadata=["price"]
        )
        price = pd.Series(X[:, 1] * 10)
        model.fit(X, y, sample_weight=X[:, 1] + 0.5, price=price, note="whole")
        seen = model.estimator_.seen_
        assert model.sample_indices_.tolist() == kept
        np.testing.assert_array_equal(seen["X"], X[kept])
        np.testing.assert_array_equal(seen["y"], y[kept])
        np.testing.assert_array_equal(seen["sample_weight"], np.array(kept) + 0.5)
        assert seen["price"].tolist() == [10 * row for row in kept]
        assert seen["note"] == "whole"

    def test_weight_mode_keeps_all_rows(self, first_column, rows):
        X, y = rows
        model = ValueFilteredClassifier(
            Recorder(), first_column(), drop=0.5, mode="weight"
        )
        expected = np.array([1 / 6, 1, 3 / 6, 5 / 6, 1, 1])
        model.fit(X, y)
        np.testing.assert_allclose(model.estimator_.seen_["sample_weight"], expected)
        model.fit(X, y, sample_weight=X[:, 1])
        np.testing.assert_allclose(
            model.estimator_.seen_["sample_weight"], expected * X[:, 1]
        )
        np.testing.assert_array_equal(model.estimator_.seen_["X"], X)
        assert model.dropped_indices_.size == 0
        assert model.report_.row.tolist() == [0, 2, 3]
        np.testing.assert_allclose(model.report_.weight, expected[[0, 2, 3]])

    @pytest.mark.parametrize(
        ("drop", "fraction"), [(0.4, 0.4), (2, 2 / 6), ("negative", 2 / 6), (0, 1e-9)]
    )
    def test_weight_mode_counts_a_rule_as_its_fraction(
        self, first_column, rows, drop, fraction
    ):
        percentile = (np.array([0, 5, 1, 2, 4, 3]) + 0.5) / 6
        model = ValueFilteredClassifier(Recorder(), first_column(), drop, mode="weight")
        weights = model.fit(*rows).estimator_.seen_["sample_weight"]
        np.testing.assert_allclose(weights, np.clip(percentile / fraction, 0, 1))

    def test_weight_mode_needs_an_estimator_that_takes_weights(self, counting, rows):
        model = ValueFilteredClassifier(
            KNeighborsClassifier(1), counting(), mode="weight"
        )
        message = r"takes sample_weight\. Got KNeighborsClassifier\."
        with pytest.raises(ValueError, match=message):
            model.fit(*rows)
        assert counting.fits == 0

    def test_auto_passes_the_validation_set_whole_and_cuts_weights(
        self, first_column, rows
    ):
        X, y = repeated(rows, 4)
        lengths = []

        class Valuer(first_column):
            def fit(self, X, y, X_val=None, y_val=None):
                lengths.append((len(X), len(X_val), len(y_val)))
                return super().fit(X, y, X_val, y_val)

        class Checked(Recorder):
            def fit(self, X, y, sample_weight=None):
                assert (sample_weight == X[:, 1] + 0.5).all()
                return super().fit(X, y)

        model = ValueFilteredClassifier(Checked(), Valuer(), drop="auto", cv=3)
        model.fit(X, y, X_val=X, y_val=y, sample_weight=X[:, 1] + 0.5)
        assert lengths == [(24, 24, 24)] + [(16, 24, 24)] * 3

    @pytest.mark.parametrize("cv", [4, np.int64(4)], ids=["int", "numpy"])
    def test_auto_keeps_groups_together(self, cv, first_column, rows):
        X, y = repeated(rows, 4)
        groups = np.arange(24) % 8
        seen_groups = []

        class Valuer(first_column):
            def fit(self, X, y, groups=None):
                seen_groups.append(groups)
                return super().fit(X, y, groups=groups)

        model = ValueFilteredClassifier(Recorder(), Valuer(), drop="auto", cv=cv)
        model.fit(X, y, groups=groups)
        assert [len(set(groups)) for groups in seen_groups] == [8, 6, 6, 6, 6]
        # All three rows of a group, or none.
        for groups in seen_groups:
            assert (np.bincount(groups) % 3 == 0).all()

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_reach_the_estimator(self, library, noisy):
        X, y, _ = noisy
        labels = np.where(y, "yes", "no")
        columns = list("abcdef")
        if library == "pandas":
            index = [f"row {i}" for i in range(len(y))]
            frame = pd.DataFrame(X, index, columns)
            target = pd.Series(labels, index)
        else:
            frame = pl.DataFrame(X, schema=columns)
            target = pl.Series(labels)
        model = ValueFilteredClassifier(LogisticRegression(), drop=0.2).fit(
            frame, target
        )
        plain = ValueFilteredClassifier(LogisticRegression(), drop=0.2).fit(X, y)
        np.testing.assert_allclose(model.estimator_.coef_, plain.estimator_.coef_)
        assert model.estimator_.feature_names_in_.tolist() == columns
        assert model.classes_.tolist() == ["no", "yes"]
        assert (model.predict(frame) == np.where(plain.predict(X), "yes", "no")).all()
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[columns[::-1]])


class TestDelegation:
    def test_predictions_are_the_estimators(self, noisy):
        X, y, _ = noisy
        model = ValueFilteredClassifier(LogisticRegression(), drop=0.2).fit(X, y)
        kept = model.sample_indices_
        inner = LogisticRegression().fit(X[kept], y[kept])
        for method in (
            "predict",
            "predict_proba",
            "predict_log_proba",
            "decision_function",
        ):
            np.testing.assert_array_equal(
                getattr(model, method)(X), getattr(inner, method)(X)
            )
        assert model.score(X, y) == inner.score(X, y)
        weights = np.arange(len(y))
        assert model.score(X, y, sample_weight=weights) == inner.score(X, y, weights)
        np.testing.assert_array_equal(model.classes_, [0, 1])

    @pytest.mark.parametrize(
        ("model", "scoring"),
        [(CLASSIFIER, "neg_log_loss"), (REGRESSOR, "neg_max_error")],
    )
    def test_score_is_the_estimators(self, noisy, model, scoring):
        X, y, _ = noisy
        search = GridSearchCV(model.estimator, {}, scoring=scoring, cv=2)
        fitted = clone(model).set_params(estimator=search).fit(X, y)
        assert fitted.score(X, y) == fitted.estimator_.score(X, y) < 0

    def test_weights_of_scores_are_routed(self, noisy):
        X, y, _ = noisy
        weights = np.arange(len(y))
        with config_context(enable_metadata_routing=True):
            inner = LogisticRegression().set_fit_request(sample_weight=True)
            model = ValueFilteredClassifier(inner.set_score_request(sample_weight=True))
            scores = cross_val_score(
                model, X, y, cv=2, params={"sample_weight": weights}
            )
            inner.set_score_request(sample_weight=False)
            plain = cross_val_score(
                model, X, y, cv=2, params={"sample_weight": weights}
            )
        assert (scores != plain).all()

    def test_has_the_methods_of_the_estimator(self):
        assert not hasattr(ValueFilteredClassifier(SVC()), "predict_proba")
        assert hasattr(ValueFilteredClassifier(SVC()), "decision_function")
        assert not hasattr(
            ValueFilteredClassifier(KNeighborsClassifier()), "decision_function"
        )
        assert not hasattr(ValueFilteredRegressor(Ridge()), "predict_proba")

    def test_predict_needs_a_fit(self):
        with pytest.raises(NotFittedError):
            ValueFilteredClassifier(LogisticRegression()).predict([[0.0]])

    def test_whole_numbers_to_a_regressor_are_targets(self):
        X, y = make_regression(60, 3, random_state=0)
        y = np.round(y / 50)
        for valuer in (None, KNNShapleyValuer()):
            model = ValueFilteredRegressor(Ridge(), valuer, drop=0.1).fit(X, y)
            expected = KNNShapleyValuer(task="regression").fit(X, y).values_
            np.testing.assert_array_equal(model.values_, expected)
            assert len(model.dropped_indices_) == 6


class TestInsideScikitLearn:
    def test_grid_search_over_the_cleaning(self, noisy):
        X, y, _ = noisy
        model = ValueFilteredClassifier(LogisticRegression(), KNNShapleyValuer())
        model = make_pipeline(StandardScaler(), model)
        step = "valuefilteredclassifier__"
        grid = {f"{step}drop": [0, 0.2], f"{step}valuer__n_neighbors": [3, 10]}
        search = GridSearchCV(model, grid, cv=2).fit(X, y)
        scores = search.cv_results_["mean_test_score"]
        assert np.isfinite(scores).all()
        zero = search.cv_results_[f"param_{step}drop"] == 0
        assert len(set(scores[zero])) == 1
        assert len(set(scores[~zero])) > 1
        assert np.isfinite(cross_val_score(search.best_estimator_, X, y, cv=2)).all()

    def test_clone_and_pickle(self, noisy):
        X, y, _ = noisy
        model = ValueFilteredClassifier(
            LogisticRegression(), KNNShapleyValuer(3), drop=0.2
        )
        unpickled = pickle.loads(pickle.dumps(model.fit(X, y)))
        np.testing.assert_array_equal(
            unpickled.predict_proba(X), model.predict_proba(X)
        )
        np.testing.assert_array_equal(unpickled.report_.row, model.report_.row)
        unfitted = clone(model)
        assert not hasattr(unfitted, "estimator_")
        assert unfitted.valuer.n_neighbors == 3

    def test_set_output_of_a_pipeline_gives_frames_to_the_model(self, noisy):
        X, y, _ = noisy
        frame = pd.DataFrame(X, columns=list("abcdef"))
        model = make_pipeline(
            StandardScaler(), ValueFilteredClassifier(LogisticRegression())
        )
        model.set_output(transform="pandas").fit(frame, y)
        assert model[-1].feature_names_in_.tolist() == list("abcdef")

    def test_sample_weight_passed_by_the_name_of_the_step_is_cut(self, noisy):
        X, y, _ = noisy
        weights = np.linspace(0, 1, len(y))
        model = make_pipeline(
            StandardScaler(), ValueFilteredClassifier(LogisticRegression())
        )
        model.fit(X, y, valuefilteredclassifier__sample_weight=weights)
        kept = model[-1].sample_indices_
        scaled = model[0].transform(X)
        inner = LogisticRegression().fit(scaled[kept], y[kept], weights[kept])
        np.testing.assert_allclose(model[-1].estimator_.coef_, inner.coef_)


class TestRouting:
    @pytest.fixture(autouse=True)
    def _routing(self):
        with config_context(enable_metadata_routing=True):
            yield

    def test_a_pipeline_scales_the_validation_set(self, first_column, rows):
        X, y = rows
        model = ValueFilteredClassifier(LogisticRegression(), first_column(), drop=1)
        model = make_pipeline(StandardScaler(), model, transform_input=["X_val"])
        model.fit(X, y, X_val=X + 1, y_val=y)
        seen = model[-1].valuer_.seen_
        np.testing.assert_allclose(seen["X_val"], model[0].transform(X + 1))

    def test_sample_weight_goes_where_it_is_requested(self, first_column, rows):
        X, y = rows
        estimator = Recorder().set_fit_request(sample_weight=True, price="cost")
        model = ValueFilteredClassifier(
            estimator, first_column(), drop=2, row_metadata=["price"]
        )
        model.fit(X, y, sample_weight=X[:, 1], cost=X[:, 1])
        assert model.estimator_.seen_["sample_weight"].tolist() == [1, 3, 4, 5]
        assert model.estimator_.seen_["price"].tolist() == [1, 3, 4, 5]
        model.set_params(mode="weight")
        model.fit(X, y, sample_weight=X[:, 1])
        assert model.estimator_.seen_["sample_weight"].tolist() == [0, 1, 1.5, 3, 4, 5]

    def test_sample_weight_that_nobody_requests_is_refused(self, first_column, rows):
        X, y = rows
        model = ValueFilteredClassifier(Recorder(), first_column())
        message = "sample_weight.* not explicitly set as requested"
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, sample_weight=X[:, 1])

    @pytest.mark.parametrize("drop", [5, "auto"])
    def test_sample_weight_reaches_a_valuer_that_requests_it(self, noisy, drop):
        X, y, _ = noisy
        X = X[:30]
        y = y[:30]
        weights = np.random.default_rng(0).random(30)
        valuer = LeaveOneOutValuer(GaussianNB(), scoring="neg_log_loss")
        valuer.set_fit_request(sample_weight=True)
        estimator = LogisticRegression().set_fit_request(sample_weight=True)
        model = ValueFilteredClassifier(estimator, valuer, drop=drop, cv=2)
        model.fit(X, y, sample_weight=weights)
        expected = clone(valuer).fit(X, y, sample_weight=weights).values_
        np.testing.assert_array_equal(model.values_, expected)
        kept = model.sample_indices_
        alone = LogisticRegression().fit(X[kept], y[kept], weights[kept])
        np.testing.assert_allclose(model.estimator_.coef_, alone.coef_)
        model.set_params(valuer=clone(valuer).set_fit_request(sample_weight=False))
        assert (model.fit(X, y, sample_weight=weights).values_ != expected).any()

    def test_groups_reach_an_estimator_that_requests_them(self, noisy):
        X, y, _ = noisy
        groups = np.arange(len(y)) // 4
        inner = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=GroupKFold(3))
        model = ValueFilteredClassifier(inner, drop=0.1).fit(X, y, groups=groups)
        kept = model.sample_indices_
        alone = clone(inner).fit(X[kept], y[kept], groups=groups[kept])
        np.testing.assert_array_equal(
            model.estimator_.cv_results_["mean_test_score"],
            alone.cv_results_["mean_test_score"],
        )

    def test_validation_points_reach_an_estimator_that_requests_them(self, noisy):
        X, y, _ = noisy
        boosting = HistGradientBoostingClassifier(
            early_stopping=True, max_iter=4, random_state=0
        )
        validation = {"X_val": X[::3], "y_val": y[::3]}
        boosting.set_fit_request(X_val=True, y_val=True)
        model = ValueFilteredClassifier(boosting, drop=0.1).fit(X, y, **validation)
        kept = model.sample_indices_
        alone = clone(boosting).fit(X[kept], y[kept], **validation)
        np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))

    @pytest.mark.parametrize("model", [CLASSIFIER, ValueFilter()])
    def test_metadata_reach_the_valuer_by_the_names_it_requests(self, model, noisy):
        X, y, _ = noisy
        groups = np.arange(len(y)) // 4
        valuer = KNNShapleyValuer().set_fit_request(
            X_val="points", y_val="labels", groups="owner"
        )
        model = clone(model).set_params(valuer=valuer, drop=3)
        model.fit(X, y, points=X[::2], labels=y[::2], owner=groups)
        alone = KNNShapleyValuer().fit(X, y, X_val=X[::2], y_val=y[::2], groups=groups)
        np.testing.assert_array_equal(model.valuer_.values_, alone.values_)
        assert len(model.dropped_indices_) == 12

    def test_groups_reach_valuer_and_splitter(self, noisy):
        X, y, _ = noisy
        groups = np.arange(len(y)) // 4
        model = ValueFilteredClassifier(LogisticRegression(), drop=0.1)
        cross_validation = cross_validate(
            model.set_fit_request(groups=True),
            X,
            y,
            cv=GroupKFold(3),
            params={"groups": groups},
            return_estimator=True,
        )
        for model in cross_validation["estimator"]:
            assert len(model.valuer_.groups_) == 40
            assert len(model.dropped_indices_) == 16

    def test_groups_without_a_request_are_refused(self, noisy):
        """The user says whether they are for the valuer or for the splitter alone."""
        X, y, _ = noisy
        groups = np.arange(len(y)) // 4
        model = ValueFilteredClassifier(LogisticRegression(), drop=0.1)
        with pytest.raises(ValueError, match="groups"):
            cross_validate(model, X, y, cv=GroupKFold(3), params={"groups": groups})

    @pytest.mark.parametrize(("n_points", "n_seen"), [(12, 8), (11, 11)])
    def test_cross_validation_slices_a_validation_set_as_long_as_the_rows(
        self, first_column, rows, n_points, n_seen
    ):
        """This is scikit-learn's rule for metadata, which no estimator can undo.

        The documentation warns of it.
        """
        X, y = repeated(rows, 2)
        cross_validation = cross_validate(
            ValueFilteredClassifier(LogisticRegression(), first_column(), drop=1),
            X,
            y,
            cv=3,
            params={"X_val": X[:n_points], "y_val": y[:n_points]},
            return_estimator=True,
        )
        assert len(cross_validation["estimator"]) == 3
        for model in cross_validation["estimator"]:
            assert len(model.valuer_.seen_["X_val"]) == n_seen


class TestMemory:
    def test_a_grid_over_drop_values_once_a_fold(self, counting, noisy, tmp_path):
        X, y, _ = noisy
        grid = {"drop": [0, 0.05, 0.1, 0.2]}
        model = ValueFilteredClassifier(GaussianNB(), counting(), memory=str(tmp_path))
        search = GridSearchCV(model, grid, cv=3).fit(X, y)
        assert search.best_params_ != {"drop": 0}
        # Each fold, and all rows for the refit.
        assert counting.fits == 3 + 1
        plain = GridSearchCV(clone(model).set_params(memory=None), grid, cv=3).fit(X, y)
        # With drop=0 rows are not valued.
        assert counting.fits == 4 + 3 * 3 + 1
        np.testing.assert_array_equal(
            search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
        )

    def test_the_refusal_of_a_lambda_does_not_show_rows(self, noisy, tmp_path):
        X, y, _ = noisy
        valuer = DataShapleyValuer(scoring=lambda *test: 0.0, empty_utility=0.0)
        model = ValueFilteredClassifier(
            LogisticRegression(), valuer, memory=str(tmp_path)
        )
        message = "memory must be None with a valuer that"
        with pytest.raises(ValueError, match=message) as info:
            model.fit(X, y)
        assert len(str(info.value)) < 400
        assert "array" not in str(info.value)

    def test_other_rows_or_valuers_are_valued_anew(self, counting, noisy, tmp_path):
        X, y, _ = noisy
        model = ValueFilteredClassifier(
            LogisticRegression(), counting(), memory=str(tmp_path)
        )
        other_rows = [(X, y), (X[1:], y[1:]), (X, 1 - y), (X + 1, y)]
        for n_fits, rows in enumerate(other_rows, start=1):
            model.fit(*rows)
            model.fit(*rows)
            assert counting.fits == n_fits
        model.fit(X, y, X_val=X, y_val=y)
        model.set_params(valuer__n_neighbors=3).fit(X, y)
        assert counting.fits == 6


def test_flipped_digits_are_dropped(noisy_digits):
    """A quarter of the labels is wrong; a quarter of the rows is dropped."""
    X, y, flipped, X_test, y_test = noisy_digits
    X = X[:600]
    y = y[:600]
    flipped = flipped[:600]
    estimator = LogisticRegression()
    plain = estimator.fit(X, y).score(X_test, y_test)
    model = ValueFilteredClassifier(estimator, KNNShapleyValuer(), drop=0.25).fit(X, y)
    assert model.score(X_test, y_test) >= plain + 0.03
    assert len(model.dropped_indices_) == int(0.25 * len(y))
    assert flipped[model.dropped_indices_].mean() >= 0.8


@pytest.mark.parametrize(
    "parameters",
    [{"drop": 1.0}, {"mode": "flag"}, {"valuer": 3}, {"memory": 3}, {"fdr": 1}],
)
def test_a_wrong_parameter_is_named(rows, parameters):
    (name,) = parameters
    model = ValueFilteredClassifier(LogisticRegression()).set_params(**parameters)
    message = f"The '{name}' parameter of ValueFilteredClassifier must"
    with pytest.raises(ValueError, match=message):
        model.fit(*rows)


def test_weights_of_another_length_are_refused(first_column, rows):
    model = ValueFilteredClassifier(LogisticRegression(), first_column())
    with pytest.raises(ValueError, match=r"one entry per row of X \(6\). Got 3"):
        model.fit(*rows, sample_weight=[1.0, 2.0, 3.0])


def test_an_estimator_without_values_is_refused_as_valuer(rows):
    model = ValueFilteredClassifier(LogisticRegression(), StandardScaler())
    message = "valuer must have values_ after .* Got StandardScaler"
    with pytest.raises(ValueError, match=message):
        model.fit(*rows)
