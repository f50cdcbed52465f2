"""Estimators of distances or kernels between rows, of which only rows are selected."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    LabelErrorDetector,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    ValueFilteredClassifier,
    ValueFilteredRegressor,
)
from skvalue.games import ModelGame
from skvalue.inspection import (
    linear_datamodeling_score,
    value_addition_curve,
    value_removal_curve,
)

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
DISTANCES = pairwise_distances(X)
POINTS = {"X_val": DISTANCES[:10], "y_val": Y[:10]}
TEST = (np.arange(40.0), DISTANCES[:10], Y[:10])
VALUER = KNNShapleyValuer(metric="precomputed")

KERNEL = SVC(kernel="precomputed")
NEIGHBORS = KNeighborsClassifier(metric="precomputed")

SELECT_ROWS = {
    "Data Shapley": lambda model: DataShapleyValuer(model).fit(DISTANCES, Y, **POINTS),
    "leave-one-out": lambda model: LeaveOneOutValuer(model).fit(DISTANCES, Y, **POINTS),
    "layered": lambda model: LayeredShapleyValuer(model).fit(DISTANCES, Y, **POINTS),
    "Data-OOB": lambda model: DataOOBValuer(model, 5).fit(DISTANCES, Y),
    "game": lambda model: ModelGame(model, DISTANCES, Y, **POINTS),
    "filter": lambda model: ValueFilteredClassifier(model, VALUER).fit(DISTANCES, Y),
    "filter by a rule": lambda model: ValueFilteredClassifier(
        model, VALUER, drop="auto"
    ).fit(DISTANCES, Y),
    "detector": lambda model: LabelErrorDetector(model).fit(DISTANCES, Y),
    "removal": lambda model: value_removal_curve(model, DISTANCES, Y, *TEST),
    "addition": lambda model: value_addition_curve(model, DISTANCES, Y, *TEST),
    "datamodel": lambda model: linear_datamodeling_score(
        TEST[0], model, DISTANCES, Y, *TEST[1:]
    ),
}


@pytest.mark.parametrize("model", [KERNEL, NEIGHBORS, make_pipeline(KERNEL)])
@pytest.mark.parametrize("name", SELECT_ROWS)
def test_they_are_refused_where_rows_are_selected(name, model):
    message = "estimator must take rows, and not the distances.*precomputed"
    with pytest.raises(ValueError, match=message):
        SELECT_ROWS[name](model)


def test_regressors_are_refused_too():
    model = KNeighborsRegressor(metric="precomputed")
    with pytest.raises(ValueError, match="must take rows"):
        ValueFilteredRegressor(model, VALUER).fit(DISTANCES, X[:, 0])


def test_a_valuer_of_distances_is_refused_as_a_detector_of_wrong_labels():
    with pytest.raises(ValueError, match=r"must take rows.*KNNShapleyValuer\(metric"):
        LabelErrorDetector(VALUER).fit(DISTANCES, Y)


@pytest.mark.parametrize("params", [{"drop": 0}, {"drop": 0.1, "mode": "weight"}])
def test_filters_that_drop_no_row_take_them(params):
    model = ValueFilteredClassifier(KERNEL, VALUER, **params).fit(DISTANCES, Y)
    assert model.predict(DISTANCES).shape == (40,)
