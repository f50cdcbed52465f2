"""embedding="auto": columns of any kind become vectors, in filters and in valuers."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skvalue import (
    KNNShapleyValuer,
    LabelErrorDetector,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
)
from skvalue.audit import audit_table
from skvalue.selection import (
    ValueFilter,
    ValueFilteredClassifier,
    ValueFilteredRegressor,
)

N_ROWS = 120
WORDS = ["good", "bad", "ugly", "nice", "red", "blue", "green", "old"]


@pytest.fixture(scope="module")
def frame():
    """Numbers, categories, dates and texts, with missing entries, and labels."""
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, N_ROWS)
    job = rng.choice(["care", "sales", "tech"], N_ROWS)
    days = pd.date_range("2020-01-01", periods=N_ROWS)[rng.permutation(N_ROWS)]
    texts = [" ".join(rng.choice(WORDS, 7)) for _ in range(N_ROWS)]
    y = np.where(age + 20 * (job == "tech") > 47, "high", "low")
    X = pd.DataFrame({"age": age, "job": job, "day": days, "text": texts})
    X.loc[::20, "age"] = np.nan
    X.loc[5::30, "job"] = None
    X.loc[7::40, "day"] = pd.NaT
    X.loc[9::40, "text"] = None
    return X, y


# The columns of dates are objects in an array.
CONTAINERS = {
    "pandas": lambda X: X,
    "nullable types": lambda X: X.convert_dtypes(),
    "categories": lambda X: X.astype({"job": "category"}),
    "arrow types": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
    "an index": lambda X: X.set_index(np.arange(len(X))[::-1]),
    "polars": pl.from_pandas,
    "arrow": lambda X: pa.Table.from_pandas(X, preserve_index=False),
    "array of objects": lambda X: X.to_numpy(dtype=object),
}
each_container = pytest.mark.parametrize("container", CONTAINERS)

VALUERS = {
    "KNN": KNNShapleyValuer(3, embedding="auto"),
    "TKNN": TKNNShapleyValuer(5.0, metric="euclidean", embedding="auto"),
}


@each_container
@pytest.mark.parametrize("name", VALUERS)
def test_values_of_a_frame_are_the_same_in_each_container(name, container, frame):
    X, y = frame
    expected = clone(VALUERS[name]).fit(X, y)
    X = CONTAINERS[container](X)
    valuer = clone(VALUERS[name]).fit(X, y)
    np.testing.assert_allclose(valuer.values_, expected.values_, rtol=1e-9, atol=1e-12)
    joined = valuer.score_samples(X, y)
    np.testing.assert_allclose(joined, expected.values_, rtol=1e-9, atol=1e-12)


@each_container
def test_a_filter_encodes_for_its_valuer_and_its_estimator(container, frame):
    """Neither takes such columns."""
    X, y = frame
    expected = ValueFilteredClassifier(
        LogisticRegression(), KNNShapleyValuer(3), embedding="auto"
    ).fit(X, y)
    direct = KNNShapleyValuer(3, embedding="auto").fit(X, y)
    np.testing.assert_allclose(expected.values_, direct.values_)
    assert expected.score(X, y) > 0.85

    model = clone(expected)
    X = CONTAINERS[container](X)
    model.fit(X, y)
    np.testing.assert_allclose(model.values_, expected.values_, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(frame[0]))
    assert model.n_features_in_ == 4
    X_kept, y_kept = (
        ValueFilter(KNNShapleyValuer(3), embedding="auto").fit(X, y).fit_resample(X, y)
    )
    is_kept_as_it_is = container != "arrow"  # a table becomes a frame of pandas
    assert not is_kept_as_it_is or type(X_kept) is type(X)
    assert len(y_kept) == 108


@pytest.mark.parametrize("kind", ["age", "job", "day", "text"])
def test_each_kind_of_column_is_encoded(kind, frame):
    X, y = frame
    values = KNNShapleyValuer(3, embedding="auto").fit(X[[kind]], y).values_
    assert len(np.unique(values)) > 3


def test_the_cure_that_an_error_names(frame):
    X, y = frame
    with pytest.raises(ValueError, match="embedding='auto'"):
        ValueFilteredClassifier(LogisticRegression(), KNNShapleyValuer(3)).fit(X, y)


def test_texts_in_a_list(frame):
    texts = frame[0]["text"].fillna("").tolist()
    y = np.array(["good" in text for text in texts])
    model = ValueFilteredClassifier(LogisticRegression(), embedding="auto")
    for container in (list, np.array, pd.Series):
        assert model.fit(container(texts), y).score(container(texts), y) > 0.9


def test_images_are_their_pixels(rng):
    images = rng.normal(size=(30, 4, 5))
    y = images[:, 0, 0] > 0
    by_pixels = KNNShapleyValuer(3).fit(images.reshape(30, 20), y)
    valuer = KNNShapleyValuer(3, embedding="auto").fit(images, y)
    np.testing.assert_allclose(valuer.values_, by_pixels.values_)


def test_sparse_rows_stay_as_they_are(noisy):
    X, y, _ = noisy
    X = sparse.csr_array(np.maximum(X, 0))
    plain = KNNShapleyValuer(3).fit(X, y)
    valuer = KNNShapleyValuer(3, embedding="auto").fit(X, y)
    np.testing.assert_array_equal(valuer.values_, plain.values_)


def test_numbers_are_scaled(noisy):
    X, y, _ = noisy
    scaled = StandardScaler().fit_transform(X)
    valuer = KNNShapleyValuer(3, embedding="auto").fit(X * [1, 10, 1, 1e3, 1, 1], y)
    expected = KNNShapleyValuer(3).fit(scaled, y).values_
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


@each_container
def test_a_detector_encodes_as_an_audit_does(container, frame):
    X, y = frame
    report = audit_table(X, y, random_state=0, checks=None)
    detector = LabelErrorDetector(embedding="auto", random_state=0)
    detector.fit(CONTAINERS[container](X), y)
    np.testing.assert_allclose(detector.values_, report.values, atol=1e-9)


def test_validation_points_are_encoded_too(frame):
    X, y = frame
    valuer = KNNShapleyValuer(3, embedding="auto")
    expected = valuer.fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:]).values_
    model = ValueFilteredClassifier(
        LogisticRegression(), KNNShapleyValuer(3), embedding="auto"
    )
    model.fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    np.testing.assert_allclose(model.values_, expected)


def test_routed_validation_points_are_encoded_too(frame):
    X, y = frame
    with config_context(enable_metadata_routing=True):
        valuer = KNNShapleyValuer(3).set_fit_request(X_val="points", y_val="labels")
        model = ValueFilteredClassifier(LogisticRegression(), valuer, embedding="auto")
        model.fit(X[:80], y[:80], points=X[80:], labels=y[80:])
    expected = KNNShapleyValuer(3, embedding="auto")
    expected.fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    np.testing.assert_allclose(model.values_, expected.values_)


@pytest.mark.parametrize("drop", [0, 5, 0.1, "negative", "auto"])
def test_each_rule_works_on_a_frame(drop, frame):
    X, y = frame
    valuer = LeaveOneOutValuer(GaussianNB(), scoring="neg_log_loss")
    model = ValueFilteredClassifier(
        GaussianNB(), valuer, drop, embedding="auto", cv=2
    ).fit(X, y)
    assert model.predict(X).shape == (N_ROWS,)


def test_a_regressor(frame):
    X, _ = frame
    age = np.nan_to_num(X["age"].to_numpy(), nan=40.0)
    model = ValueFilteredRegressor(Ridge(), embedding="auto").fit(X, age)
    assert model.score(X, age) > 0.8
    assert len(model.dropped_indices_) == 12


def test_later_rows_may_have_other_categories_and_missing_entries(frame):
    X, y = frame
    later = X[:4].assign(job=["cook", None, "tech", "care"], age=[np.nan, 1, 2, 3])
    model = ValueFilteredClassifier(LogisticRegression(), embedding="auto")
    assert model.fit(X.dropna(), y[X.notna().all(axis=1)]).predict(later).shape == (4,)


def test_later_rows_have_the_columns_of_fit(frame):
    X, y = frame
    model = ValueFilteredClassifier(LogisticRegression(), embedding="auto").fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[X.columns[::-1]])
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X.iloc[:, :3].to_numpy(dtype=object))


def test_a_search_over_a_filter_of_a_frame(frame):
    X, y = frame
    model = ValueFilteredClassifier(
        LogisticRegression(), KNNShapleyValuer(), embedding="auto"
    )
    grid = {"drop": [0, 0.1], "valuer__n_neighbors": [3, 5], "embedding": ["auto"]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    in_pipeline = make_pipeline(FunctionTransformer(), clone(model))
    assert cross_val_score(in_pipeline, X, y, cv=2).min() > 0.8


def test_pickled_models_predict_the_same(frame):
    X, y = frame
    model = ValueFilteredClassifier(LogisticRegression(), embedding="auto").fit(X, y)
    unpickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(unpickled.predict(X), model.predict(X))


@pytest.mark.parametrize("embedding", ["auto", StandardScaler()])
def test_an_embedding_learns_nothing_from_private_rows(embedding, noisy):
    X, y, _ = noisy
    valuer = TKNNShapleyValuer(1.0, epsilon=1.0, delta=1e-5)
    points = {"X_val": X[200:], "y_val": y[200:]}
    with pytest.raises(ValueError, match="embedding must not learn from the private"):
        ValueFilter(valuer, embedding=embedding).fit(X[:200], y[:200], **points)
    with pytest.raises(ValueError, match="embedding must not learn from the private"):
        clone(valuer).set_params(embedding=embedding).fit(X[:200], y[:200], **points)


@pytest.mark.filterwarnings("ignore")
def test_a_frozen_embedding_of_private_rows_is_taken(noisy):
    X, y, _ = noisy
    valuer = TKNNShapleyValuer(1.0, epsilon=1.0, delta=1e-5)
    frozen = FrozenEstimator(StandardScaler().fit(X[200:]))
    row_filter = ValueFilter(valuer, embedding=frozen)
    row_filter.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert len(row_filter.dropped_indices_) == 20


def test_another_word_is_refused(frame):
    for estimator in (ValueFilter(embedding="numbers"), KNNShapleyValuer(3)):
        estimator = clone(estimator).set_params(embedding="numbers")
        with pytest.raises(ValueError, match="'embedding' parameter .*'auto'"):
            estimator.fit(*frame)


@pytest.mark.parametrize(("fitted", "later"), [("auto", None), (None, "auto")])
def test_predictions_are_by_the_embedding_of_the_fit(fitted, later, noisy):
    X, y = noisy[:2]
    model = ValueFilteredClassifier(
        LogisticRegression(), KNNShapleyValuer(), embedding=fitted
    ).fit(100 * X, y)
    expected = model.predict_proba(100 * X)
    model.set_params(embedding=later)
    np.testing.assert_array_equal(model.predict_proba(100 * X), expected)
