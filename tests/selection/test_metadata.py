"""Which metadata a filter cuts with the rows: those of rows by name, never by length.

Of six rows the first and the third are dropped.
"""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import LabelErrorDetector
from skvalue.selection import (
    ValueFilter,
    ValueFilteredClassifier,
    ValueFilteredRegressor,
)

KEPT = [1, 3, 4, 5]
PER_ROW = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
X_OF_SIX = np.column_stack([PER_ROW, PER_ROW])

CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "array": np.asarray,
    "float32": np.float32,
    "series": lambda entries: pd.Series(entries, index=list("uvwxyz")),
    "polars": pl.Series,
    "arrow": pa.array,
}

# Each as long as X, or of one entry, and of the kinds that libraries take.
PASSED_WHOLE = {
    "eval_set, a pair": [(X_OF_SIX, PER_ROW)],
    "eval_set, six pairs": [(X_OF_SIX, PER_ROW)] * 6,
    "eval_set, pairs of other lengths": [(X_OF_SIX[:2], PER_ROW[:2]), (X_OF_SIX, 0)],
    "eval_set, one pair": (X_OF_SIX, PER_ROW),
    "eval_set, frames": [(pd.DataFrame(X_OF_SIX), pd.Series(PER_ROW))],
    "eval_names": ["a", "b", "c", "d", "e", "f"],
    "eval_sample_weight": [PER_ROW],
    "X_valid": X_OF_SIX,
    "y_valid": PER_ROW,
    "feature_weights": PER_ROW,
    "callbacks": [print] * 6,
    "categorical_feature": [0, 1],
    "options": {"a": 1},
    "note": "a text",
    "early_stopping_rounds": 6,
}


class _Recorder(BaseEstimator):
    """Keeps what its fit was given."""

    def fit(
        self,
        X,
        y,
        sample_weight=None,
        groups=None,
        base_margin=None,
        price=None,
        eval_set=None,
        eval_names=None,
        eval_sample_weight=None,
        X_valid=None,
        y_valid=None,
        feature_weights=None,
        callbacks=None,
        categorical_feature=None,
        options=None,
        note=None,
        early_stopping_rounds=None,
        X_val=None,
        y_val=None,
    ):
        self.seen_ = dict(locals())
        self.is_fitted_ = True
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class RecorderOfClasses(ClassifierMixin, _Recorder):
    pass


class RecorderOfTargets(RegressorMixin, _Recorder):
    pass


MODELS = {
    "classifier": (ValueFilteredClassifier, RecorderOfClasses),
    "regressor": (ValueFilteredRegressor, RecorderOfTargets),
}


@pytest.fixture(params=[False, True], ids=["no routing", "routing"])
def routing(request):
    """Whether metadata are routed by what is requested."""
    with config_context(enable_metadata_routing=request.param):
        yield request.param


def seen_by_fit(kind, rows, valuer, routing, *, row_metadata=(), **metadata):
    """What the estimator of a filtered model was fitted with."""
    X, y = rows
    filtered, recorder = MODELS[kind]
    if kind == "regressor":
        y = X[:, 0]
    estimator = recorder()
    if routing:
        requested = {name for name in metadata if name not in ("X_val", "y_val")}
        estimator.set_fit_request(**dict.fromkeys(requested, True))
    model = filtered(estimator, valuer, drop=2, row_metadata=row_metadata)
    return model.fit(X, y, **metadata).estimator_.seen_


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ["sample_weight", "base_margin", "price"])
@pytest.mark.parametrize("kind", MODELS)
def test_metadata_of_rows_are_cut_with_them(
    kind, name, container, rows, first_column, routing
):
    seen = seen_by_fit(
        kind,
        rows,
        first_column(),
        routing,
        row_metadata=["price"],
        **{name: CONTAINERS[container](PER_ROW)},
    )
    np.testing.assert_array_equal(np.asarray(seen[name]), PER_ROW[KEPT])


@pytest.mark.filterwarnings("ignore:.*passed whole:UserWarning")
@pytest.mark.parametrize("case", PASSED_WHOLE)
@pytest.mark.parametrize("kind", MODELS)
def test_other_metadata_are_passed_whole(kind, case, rows, first_column, routing):
    name = case.partition(",")[0]
    value = PASSED_WHOLE[case]
    seen = seen_by_fit(kind, rows, first_column(), routing, **{name: value})
    assert seen[name] is value


def test_an_inner_cross_validation_cuts_and_passes_the_same(first_column, rows):
    X = np.concatenate([rows[0]] * 4)
    y = np.concatenate([rows[1]] * 4)
    seen_by_split = []

    class Checked(RecorderOfClasses):
        def fit(self, X, y, sample_weight=None, eval_set=None):
            seen_by_split.append((len(X), len(sample_weight), len(eval_set[0][0])))
            return super().fit(X, y)

    model = ValueFilteredClassifier(Checked(), first_column(), drop="auto", cv=2)
    model.fit(X, y, sample_weight=np.ones(24), eval_set=[(X, y)])
    assert {n_weights for _, n_weights, _ in seen_by_split} != {24}
    for n_rows, n_weights, n_points in seen_by_split:
        assert n_rows == n_weights
        assert n_points == 24


def test_a_step_of_a_pipeline_gets_its_metadata(rows, first_column):
    estimator = make_pipeline(StandardScaler(), RecorderOfClasses())
    model = ValueFilteredClassifier(estimator, first_column(), drop=2)
    pairs = [rows] * 6
    model.fit(
        *rows,
        recorderofclasses__sample_weight=PER_ROW,
        recorderofclasses__eval_set=pairs,
    )
    seen = model.estimator_[-1].seen_
    assert seen["sample_weight"].tolist() == PER_ROW[KEPT].tolist()
    assert seen["eval_set"] is pairs


def test_one_weight_of_all_rows_is_passed_on(rows, first_column, routing):
    for weight in (2, 2.0, np.float64(2), np.array(2.0)):
        seen = seen_by_fit(
            "classifier", rows, first_column(), routing, sample_weight=weight
        )
        assert seen["sample_weight"] is weight


@pytest.mark.parametrize("name", ["sample_weight", "base_margin", "price"])
@pytest.mark.parametrize("n_entries", [1, 5, 7])
def test_metadata_of_rows_have_an_entry_for_each(
    name, n_entries, rows, first_column, routing
):
    message = rf"{name} must have one entry per row of X \(6\)\. Got {n_entries}\."
    with pytest.raises(ValueError, match=message):
        seen_by_fit(
            "classifier",
            rows,
            first_column(),
            routing,
            row_metadata=["price"],
            **{name: [1.0] * n_entries},
        )


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_column_that_may_be_one_of_rows_is_named(container, rows, first_column):
    column = CONTAINERS[container](PER_ROW)
    with pytest.warns(UserWarning, match=r"price has 6 entries.*row_metadata=\['pri"):
        seen = seen_by_fit("classifier", rows, first_column(), False, price=column)
    assert seen["price"] is column


@pytest.mark.parametrize("kind", ["eval_set", "eval_names", "X_val"])
def test_validation_points_are_no_column_of_rows(kind, rows, first_column, recwarn):
    metadata = {"eval_set": [rows] * 6}
    if kind == "eval_names":
        metadata = {"eval_names": list("abcdef")}
    if kind == "X_val":
        metadata = {"X_val": rows[0], "y_val": rows[1]}
    seen_by_fit("classifier", rows, first_column(), False, **metadata)
    assert not [warning for warning in recwarn if "whole" in str(warning.message)]


def test_row_metadata_are_a_list_of_names(rows):
    with pytest.raises(ValueError, match="'row_metadata' parameter"):
        ValueFilter(row_metadata="price").fit(*rows)


def test_probabilities_of_a_detector_are_cut(noisy):
    X, y, _ = noisy
    detector = LabelErrorDetector(random_state=0)
    scores = detector.fit(X, y).label_scores_
    model = ValueFilteredClassifier(LogisticRegression(), detector, drop=0.1)
    with config_context(enable_metadata_routing=True):
        model.set_params(valuer=detector.set_fit_request(pred_probs=True))
        fitted = model.fit(X, y, pred_probs=scores)
    np.testing.assert_array_equal(fitted.valuer_.label_scores_, scores)


def test_a_search_passes_validation_points_of_the_estimator(noisy):
    """As LightGBM's or XGBoost's ``eval_set``, in scikit-learn's own words."""
    X, y, _ = noisy
    boosting = HistGradientBoostingClassifier(early_stopping=True, max_iter=3)
    points = {"X_val": X[::3], "y_val": y[::3]}
    with config_context(enable_metadata_routing=True):
        boosting.set_fit_request(X_val=True, y_val=True)
        model = ValueFilteredClassifier(boosting)
        search = GridSearchCV(model, {"drop": [0, 0.1]}, cv=2).fit(X, y, **points)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.estimator_.validation_score_.shape == (4,)
