"""scikit-learn's global `transform_output` changes no value."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InfluenceValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    LabelErrorDetector,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
    UnrolledValuer,
    ValueFilteredClassifier,
)

RNG = np.random.default_rng(0)
X, X_VAL = RNG.normal(size=(24, 3)), RNG.normal(size=(16, 3))
Y, Y_VAL = (X[:, 0] > 0).astype(int), (X_VAL[:, 0] > 0).astype(int)
TARGETS, TARGETS_VAL = X[:, 0] + 0.1, X_VAL[:, 0]
MISSING = np.where(np.arange(72).reshape(24, 3) == 5, np.nan, X)
FRAME = pd.DataFrame({"x": X[:, 0], "c": np.tile(["u", "v"], 12)})
FRAME_VAL = pd.DataFrame({"x": X_VAL[:, 0], "c": np.tile(["u", "v"], 8)})
WIDE = RNG.normal(size=(24, 80))

COLUMNS = ColumnTransformer(
    [("x", StandardScaler(), ["x"]), ("c", OneHotEncoder(sparse_output=False), ["c"])]
)
FRAME_MODEL = make_pipeline(COLUMNS, LogisticRegression())


def adjusted(model, **options):
    """Values that are adjusted by functions of the rows."""
    return DataShapleyValuer(
        model,
        sampler="stratified",
        adjust=True,
        max_evaluations=1100,
        random_state=0,
        **options,
    )


def few(cls, *args, **options):
    return cls(*args, random_state=0, **options)


CLASSES = {
    "neighbours": KNNShapleyValuer(),
    "balls": TKNNShapleyValuer(1.0),
    "adjusted": adjusted(LogisticRegression()),
    "leave-one-out": LeaveOneOutValuer(LogisticRegression()),
    "layered": few(LayeredShapleyValuer, LogisticRegression(), max_evaluations=100),
    "influence": InfluenceValuer(),
    "in-run": few(InRunShapleyValuer, n_steps=2),
    "unrolled": few(UnrolledValuer, n_epochs=1),
    "gradients": few(GradientSemivalueValuer, n_permutations=2, n_components=2),
    "federated": few(FederatedSemivalueValuer, n_rounds=2, n_permutations=2),
}
REGRESSIONS = {
    name: valuer
    for name, valuer in CLASSES.items()
    if name not in ("adjusted", "leave-one-out", "layered")
} | {"adjusted": adjusted(Ridge()), "leave-one-out": LeaveOneOutValuer(Ridge())}


def fit_classes(valuer):
    return valuer.fit(X, Y, X_val=X_VAL, y_val=Y_VAL).values_


def fit_targets(valuer):
    return valuer.fit(X, TARGETS, X_val=X_VAL, y_val=TARGETS_VAL).values_


def fit_sparse(model):
    rows, points = sparse.csr_array(X), sparse.csr_array(X_VAL)
    return adjusted(model).fit(rows, TARGETS, X_val=points, y_val=TARGETS_VAL).values_


def fit_numbers(valuer):
    """Values of the rows of a frame of numbers, whose models are trained in batches."""
    rows, points = (pd.DataFrame(rows, columns=list("abc")) for rows in (X, X_VAL))
    return valuer.fit(rows, Y, X_val=points, y_val=Y_VAL).values_


def fit_frame(valuer):
    return valuer.fit(FRAME, Y, X_val=FRAME_VAL, y_val=Y_VAL).values_


FITS = {
    **{name: (fit_classes, valuer) for name, valuer in CLASSES.items()},
    **{f"{name} of targets": (fit_targets, v) for name, v in REGRESSIONS.items()},
    "adjusted, of a frame": (fit_numbers, adjusted(LogisticRegression())),
    "a frame as it is": (fit_frame, KNNShapleyValuer(embedding="auto")),
    "a frame by columns": (fit_frame, KNNShapleyValuer(embedding=COLUMNS)),
    "out of bags": (
        lambda valuer: valuer.fit(FRAME, Y).values_,
        few(DataOOBValuer, FRAME_MODEL, 10),
    ),
    "labels": (
        lambda detector: detector.fit(MISSING, Y).values_,
        few(LabelErrorDetector, cv=2),
    ),
    "labels of wide rows": (
        lambda detector: detector.fit(WIDE, Y).values_,
        few(LabelErrorDetector, LogisticRegression(), cv=2),
    ),
    "filter": (
        lambda model: model.fit(FRAME, Y).predict_proba(FRAME),
        ValueFilteredClassifier(
            LogisticRegression(), KNNShapleyValuer(), embedding="auto", stratify=True
        ),
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("name", FITS)
def test_values_do_not_depend_on_transform_output(name, container):
    pytest.importorskip(container)
    fit, estimator = FITS[name]
    expected = fit(estimator)
    with config_context(transform_output=container):
        found = fit(estimator)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_adjusted_values_of_sparse_rows_do_not_depend_on_it(container):
    pytest.importorskip(container)
    expected = fit_sparse(Ridge())
    with config_context(transform_output=container):
        np.testing.assert_allclose(fit_sparse(Ridge()), expected, atol=1e-12)
