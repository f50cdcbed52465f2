"""Labels and groups of any type are told apart, and refused by a sentence."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from skvalue import (
    DataOOBValuer,
    GradientSemivalueValuer,
    InfluenceValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    LabelErrorDetector,
    TKNNShapleyValuer,
    UnrolledValuer,
)
from skvalue.games import ModelGame

# Eight numbers of 19 digits, of which floats are equal in twos to fours.
NUMBERS = 1453211904000000000 + np.arange(48) % 8 * 37

COLUMNS = {
    "list": lambda: NUMBERS.tolist(),
    "int64": lambda: pd.Series(NUMBERS),
    "uint64": lambda: NUMBERS.astype(np.uint64),
    "Int64": lambda: pd.Series(NUMBERS, dtype="Int64"),
    "UInt64": lambda: pd.Series(NUMBERS, dtype="UInt64"),
    "array of Int64": lambda: pd.array(NUMBERS, dtype="Int64"),
    "index of Int64": lambda: pd.Index(NUMBERS, dtype="Int64"),
    "int64 of pyarrow": lambda: pd.Series(NUMBERS, dtype="int64[pyarrow]"),
    "uint64 of pyarrow": lambda: pd.Series(NUMBERS, dtype="uint64[pyarrow]"),
    "category of Int64": lambda: pd.Series(NUMBERS, dtype="Int64").astype("category"),
    "frame of Int64": lambda: pd.DataFrame({"id": pd.Series(NUMBERS, dtype="Int64")}),
    "polars": lambda: pl.Series(NUMBERS),
    "polars of UInt64": lambda: pl.Series(NUMBERS, dtype=pl.UInt64),
    "arrow": lambda: pa.array(NUMBERS),
    "arrow in chunks": lambda: pa.chunked_array([NUMBERS[:20], NUMBERS[20:]]),
}
columns = pytest.mark.parametrize("column", COLUMNS.values(), ids=list(COLUMNS))
silent = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def X(rng):
    return rng.normal(size=(48, 2))


@silent
@columns
def test_groups_of_many_digits_are_told_apart(X, column):
    y = (X[:, 0] > 0) * 1
    valuer = KNNShapleyValuer().fit(X, y, groups=column())
    assert np.asarray(valuer.groups_).astype(object).tolist() == sorted(set(NUMBERS))


@silent
@columns
@pytest.mark.parametrize(
    "estimator",
    [
        KNNShapleyValuer(task="classification"),
        DataOOBValuer(n_estimators=5, task="classification"),
        LabelErrorDetector(task="classification", cv=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_labels_of_many_digits_are_told_apart(X, column, estimator):
    fitted = estimator.fit(X, column())
    assert fitted.classes_.astype(object).tolist() == sorted(set(NUMBERS))


@silent
@columns
def test_validation_labels_of_another_type_are_those_of_rows(X, column):
    valuer = KNNShapleyValuer(task="classification")
    expected = valuer.fit(X, NUMBERS, X_val=X + 1, y_val=NUMBERS).values_
    valuer.fit(X, NUMBERS, X_val=X + 1, y_val=column())
    np.testing.assert_array_equal(valuer.values_, expected)


def test_whole_numbers_that_no_type_holds_are_groups_of_objects(X):
    groups = [2**64 - 1, -1] * 24
    valuer = KNNShapleyValuer().fit(X, (X[:, 0] > 0) * 1, groups=groups)
    assert valuer.groups_.tolist() == [-1, 2**64 - 1]


def test_a_missing_group_of_a_nullable_type_is_refused(X):
    groups = pd.Series([None, *NUMBERS[1:]], dtype="Int64")
    with pytest.raises(ValueError, match="groups must hold names of one kind"):
        KNNShapleyValuer().fit(X, (X[:, 0] > 0) * 1, groups=groups)


# Labels of several types --------------------------------------------------------------

PAIRS = [
    ("a", 1),
    ("a", 1.5),
    ("a", True),
    ("a", ("x",)),
    ("a", b"c"),
    (1, "a"),
    (1, ("x",)),
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize(
    "estimator",
    [KNNShapleyValuer(), DataOOBValuer(n_estimators=5), LabelErrorDetector()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_labels_of_several_types_are_refused(X, pair, estimator):
    y = np.empty(48, dtype=object)
    y[:] = [pair[i % 2] for i in range(48)]
    with pytest.raises(ValueError, match="y must hold labels of one type"):
        estimator.fit(X, y)


# Containers that are refused ----------------------------------------------------------


class Refusal(NamedTuple):
    """Rows that are numbers in a container that is not taken."""

    name: str
    make: object
    sentence: str


REFUSALS = [
    Refusal(
        "names of two types",
        lambda X: pd.DataFrame(X, columns=["a", 1]),
        "Feature names are only supported",
    ),
    Refusal("matrix", np.asmatrix, "np.matrix is not supported"),
    Refusal(
        "frame of sparse columns",
        lambda X: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)),
        "Sparse data was passed",
    ),
    Refusal("sparse matrix", sp.csr_array, "Sparse data was passed"),
]
METHODS = [
    KNNShapleyValuer(),
    TKNNShapleyValuer(radius=0.5),
    GradientSemivalueValuer(n_permutations=2),
    UnrolledValuer(n_epochs=2),
    InRunShapleyValuer(),
]
TAKE_SPARSE = (KNNShapleyValuer, TKNNShapleyValuer)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
@pytest.mark.parametrize("valuer", METHODS, ids=lambda valuer: type(valuer).__name__)
def test_a_container_is_refused_in_the_words_of_scikit_learn(X, refusal, valuer):
    if refusal.name == "sparse matrix" and isinstance(valuer, TAKE_SPARSE):
        pytest.skip("takes sparse rows")
    with pytest.raises(TypeError, match=refusal.sentence):
        valuer.fit(refusal.make(X.round()), (X[:, 0] > 0) * 1)


@pytest.mark.parametrize(
    "valuer",
    [InfluenceValuer(), *METHODS[2:]],
    ids=lambda valuer: type(valuer).__name__,
)
def test_rows_of_float32_do_not_warn(X, valuer):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        valuer.fit(X.astype(np.float32), (X[:, 0] > 0) * 1)


def test_an_unknown_argument_is_refused_by_the_class_of_the_user(X):
    message = r"KNNShapleyValuer.fit\(\) got an unexpected keyword argument 'weights'"
    with pytest.raises(TypeError, match=message):
        KNNShapleyValuer().fit(X, (X[:, 0] > 0) * 1, weights=X)


def test_a_game_tells_groups_of_many_digits_apart(X):
    groups = pd.Series(NUMBERS, dtype="Int64")
    y = (X[:, 0] > 0) * 1
    game = ModelGame(LogisticRegression(), X, y, X_val=X, y_val=y, groups=groups)
    assert game.n_players == 8
