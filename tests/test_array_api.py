"""Tensors of torch, and arrays of other libraries, as rows, labels and weights.

scikit-learn leaves them as they are with ``array_api_dispatch=True``. Values are those
of arrays of numpy, and are arrays of numpy.
"""

from importlib.util import find_spec

import numpy as np
import pytest
from public_estimators import VALUERS, build_quick, each_estimator, slow_for
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

import skvalue
from skvalue import (
    KNNShapleyValuer,
    LabelErrorDetector,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
    ValueFilter,
    ValueFilteredClassifier,
)

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]

N_ROWS = 40


def strict(array):
    """An array of the strictest library of the array API."""
    import array_api_strict

    return array_api_strict.asarray(array)


LIBRARIES = {"torch": torch.from_numpy}
if find_spec("array_api_strict"):
    LIBRARIES["array_api_strict"] = strict
each_library = pytest.mark.parametrize("library", LIBRARIES)


@pytest.fixture(params=[False, True], ids=["no dispatch", "dispatch"])
def _dispatch(request, monkeypatch):
    """scikit-learn's setting, for which it wants a variable of the environment."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=request.param):
        yield


@pytest.fixture
def problem(rng):
    """Rows, labels, validation points and their labels."""
    X = rng.normal(size=(N_ROWS, 3))
    X_val = rng.normal(size=(15, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=N_ROWS) > 0).astype(int)
    return X, y, X_val, (X_val[:, 0] > 0).astype(int)


def takes_points(cls):
    return cls in VALUERS or issubclass(cls, ValueFilter)


@pytest.mark.usefixtures("_dispatch")
@pytest.mark.filterwarnings("ignore:X_val and y_val are not used")
@each_library
@each_estimator
def test_values_are_those_of_numpy(cls, library, problem):
    X, y, X_val, y_val = problem
    if cls is skvalue.ValueFilteredRegressor:
        y = X[:, 0].copy()
        y_val = X_val[:, 0].copy()
    points = {}
    if cls is not LabelErrorDetector:
        points = {"X_val": X_val, "y_val": y_val}
    expected = build_quick(cls).fit(X, y, **points).values_

    convert = LIBRARIES[library]
    points = {name: convert(array) for name, array in points.items()}
    values = build_quick(cls).fit(convert(X), convert(y), **points).values_
    assert isinstance(values, np.ndarray)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.usefixtures("_dispatch")
@each_library
@pytest.mark.parametrize("cls", slow_for(VALUERS, VALUERS[::2]))
def test_values_without_a_validation_set(cls, library, problem):
    X, y, _, _ = problem
    convert = LIBRARIES[library]
    expected = build_quick(cls).fit(X, y).values_
    values = build_quick(cls).fit(convert(X), convert(y)).values_
    np.testing.assert_array_equal(values, expected)


@pytest.mark.usefixtures("_dispatch")
@each_library
def test_later_rows_are_valued(library, problem):
    X, y, X_val, y_val = problem
    convert = LIBRARIES[library]
    for valuer in (KNNShapleyValuer(3), TKNNShapleyValuer(1.0, metric="euclidean")):
        valuer.fit(X, y)
        expected = valuer.score_samples(X_val, y_val)
        values = valuer.score_samples(convert(X_val), convert(y_val))
        np.testing.assert_array_equal(values, expected)
        expected = valuer.transform(X_val)
        np.testing.assert_array_equal(valuer.transform(convert(X_val)), expected)
        grown = clone(valuer).fit(X, y, X_val=X_val[:9], y_val=y_val[:9])
        grown.add_validation(convert(X_val[9:]), convert(y_val[9:]))
        expected = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_
        np.testing.assert_allclose(grown.values_, expected, atol=1e-12)


@pytest.mark.usefixtures("_dispatch")
@each_library
@pytest.mark.parametrize("name", ["groups", "sample_weight", "sample_weight_val"])
def test_metadata_may_be_such_arrays(name, library, problem):
    X, y, X_val, y_val = problem
    convert = LIBRARIES[library]
    length = len(X_val) if name == "sample_weight_val" else len(X)
    metadata = np.arange(1, length + 1) % 7 + 1
    if name != "groups":
        metadata = metadata.astype(float)
    valuer = LeaveOneOutValuer(GaussianNB(), scoring="neg_log_loss")
    points = {"X_val": X_val, "y_val": y_val}
    expected = clone(valuer).fit(X, y, **points, **{name: metadata}).values_
    values = valuer.fit(X, y, **points, **{name: convert(metadata)}).values_
    np.testing.assert_array_equal(values, expected)


@pytest.mark.usefixtures("_dispatch")
@each_library
@pytest.mark.parametrize("embedding", [None, "auto"])
def test_a_filtered_model_predicts(embedding, library, problem):
    X, y, X_val, y_val = problem
    convert = LIBRARIES[library]
    model = ValueFilteredClassifier(
        LogisticRegression(), KNNShapleyValuer(3), drop=4, embedding=embedding
    )
    weights = np.linspace(0.1, 1, N_ROWS)
    expected = clone(model).fit(X, y, sample_weight=weights)
    model.fit(convert(X), convert(y), sample_weight=convert(weights))
    for method in ("predict", "predict_proba", "decision_function"):
        predictions = getattr(model, method)(convert(X_val))
        assert isinstance(predictions, np.ndarray)
        np.testing.assert_array_equal(predictions, getattr(expected, method)(X_val))
    score = model.score(convert(X_val), convert(y_val))
    assert score == expected.score(X_val, y_val)


@pytest.mark.usefixtures("_dispatch")
@pytest.mark.parametrize("scoring", [None, "accuracy", "neg_log_loss"])
def test_a_search_over_a_filter(scoring, problem):
    X, y, _, _ = problem
    convert = torch.from_numpy
    model = ValueFilteredClassifier(LogisticRegression(), KNNShapleyValuer(3))
    search = GridSearchCV(model, {"drop": [0, 0.1]}, scoring=scoring, cv=2)
    expected = clone(search).fit(X, y).cv_results_["mean_test_score"]
    scores = search.fit(convert(X), convert(y)).cv_results_["mean_test_score"]
    np.testing.assert_allclose(np.asarray(scores, dtype=float), expected, rtol=1e-6)


@pytest.mark.usefixtures("_dispatch")
@each_library
@pytest.mark.parametrize("drop", [0, 3, "negative", "auto"])
def test_each_rule_of_a_filter(drop, library, problem):
    X, y, _, _ = problem
    convert = LIBRARIES[library]
    row_filter = ValueFilter(estimator=GaussianNB(), drop=drop, cv=2)
    expected = clone(row_filter).fit(X, y).dropped_indices_
    row_filter.fit(convert(X), convert(y))
    np.testing.assert_array_equal(row_filter.dropped_indices_, expected)


@pytest.mark.usefixtures("_dispatch")
@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "bfloat16", "int64", "uint8", "bool"]
)
def test_each_dtype_of_torch(dtype, problem):
    X, y, _, _ = problem
    rows = torch.from_numpy(X * 3).to(getattr(torch, dtype))
    as_float = rows.to(torch.float64).numpy()
    if dtype == "float32":
        as_float = rows.numpy()
    expected = KNNShapleyValuer(3).fit(as_float, y).values_
    values = KNNShapleyValuer(3).fit(rows, torch.from_numpy(y)).values_
    np.testing.assert_allclose(values, expected, atol=1e-6)


@pytest.mark.usefixtures("_dispatch")
def test_tensors_that_need_gradients_and_sparse_ones(problem):
    X, y, _, _ = problem
    expected = KNNShapleyValuer(3).fit(X, y).values_
    tensor = torch.from_numpy(X).requires_grad_()
    for rows in (tensor, torch.from_numpy(X).to_sparse()):
        values = KNNShapleyValuer(3).fit(rows, y).values_
        np.testing.assert_array_equal(values, expected)


@pytest.mark.usefixtures("_dispatch")
def test_an_embedding_gets_the_tensor_and_may_return_one(problem):
    X, y, _, _ = problem
    seen = []

    def embedding(rows):
        seen.append(type(rows))
        return rows[:, :2].requires_grad_()

    valuer = KNNShapleyValuer(3, embedding=embedding).fit(torch.from_numpy(X), y)
    assert seen == [torch.Tensor]
    expected = KNNShapleyValuer(3).fit(X[:, :2], y).values_
    np.testing.assert_array_equal(valuer.values_, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_dispatch")
@each_library
def test_private_values(library, problem):
    X, y, X_val, y_val = problem
    convert = LIBRARIES[library]
    valuer = TKNNShapleyValuer(1.0, epsilon=1.0, delta=1e-5, noise_random_state=0)
    expected = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_
    valuer.fit(convert(X), convert(y), X_val=convert(X_val), y_val=convert(y_val))
    np.testing.assert_array_equal(valuer.values_, expected)
