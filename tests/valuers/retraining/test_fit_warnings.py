"""Fits without values to trust: an error, or one warning that says so."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    GradientSemivalueValuer,
    KNNShapleyValuer,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
)
from skvalue.exceptions import (
    ImpreciseValuesWarning,
    RadiusWarning,
    SameRowsWarning,
    UnbatchedFitWarning,
    VoidGuaranteeWarning,
)
from skvalue.privacy import Ledger

from .semivalue_fits import data, fit, quick

SLOW = LogisticRegression(max_iter=1, class_weight="balanced")


def told(valuer, **options):
    """Warnings of a fit, other than that it is not batched."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        X, y, X_val, y_val = data()
        valuer.fit(X, y, **{"X_val": X_val, "y_val": y_val, **options})
    return [one for one in found if one.category is not UnbatchedFitWarning]


@pytest.mark.parametrize("model", [SVC(C=-1), SVC()], ids=["fit", "score"])
@pytest.mark.parametrize("split", [False, True])
def test_an_estimator_that_cannot_train_on_all_rows_is_an_error(model, split):
    X, y, X_val, y_val = data()
    held_out = {} if split else dict(X_val=X_val, y_val=y_val)
    valuer = DataShapleyValuer(
        model, scoring="neg_log_loss", max_evaluations=600, random_state=0
    )
    with pytest.raises(
        ValueError, match="must train on all .* SVC, which raised"
    ) as error:
        valuer.fit(X, y, **held_out)
    assert error.value.__cause__ is not None
    assert not hasattr(valuer, "values_")


def test_parameters_of_bagged_models_are_checked():
    X, y, *_ = data()
    with pytest.raises(ValueError, match="The 'C' parameter of LogisticRegression"):
        DataOOBValuer(LogisticRegression(C=-1), n_estimators=4).fit(X, y)


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
def test_one_class_is_no_failure():
    found = told(quick())
    assert not [w for w in found if "coalitions could not" in str(w.message)]


OF_FITS = [
    DataOOBValuer(SLOW, n_estimators=20, random_state=0),
    DataShapleyValuer(SLOW, max_evaluations=40, random_state=0),
    LayeredShapleyValuer(SLOW, n_layers=2, max_evaluations=100, random_state=0),
]


@pytest.mark.parametrize(
    ("valuer", "n_jobs"),
    [
        *((valuer, 1) for valuer in OF_FITS),
        (OF_FITS[0], 2),
        *(pytest.param(valuer, 2, marks=pytest.mark.slow) for valuer in OF_FITS[1:]),
    ],
    ids=lambda part: str(part).partition("(")[0],
)
def test_warnings_of_fits_are_told_once(valuer, n_jobs):
    options = {} if hasattr(valuer, "cv") else dict(X_val=None, y_val=None)
    found = told(valuer.set_params(n_jobs=n_jobs), **options)
    found = [w for w in found if w.category is ConvergenceWarning]
    assert len(found) == 1
    assert "times in fits of the estimator]" in str(found[0].message)
    assert found[0].filename == __file__


def test_warnings_as_errors_lose_no_value():
    options = dict(sampler="permutation", max_evaluations=60, random_state=0)
    valuer, expected = (DataShapleyValuer(SLOW, **options) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnbatchedFitWarning)
        with pytest.raises(ConvergenceWarning) as error:
            fit(valuer)
    (note,) = error.value.__notes__
    assert note.startswith("ImpreciseValuesWarning: The values are mostly noise")
    assert len(told(expected)) == 2
    np.testing.assert_array_equal(valuer.values_, expected.values_)


@pytest.mark.parametrize(
    "limits",
    [
        dict(max_evaluations=36),
        dict(sampler="permutation", max_time=1e-6, max_evaluations=None),
    ],
)
def test_values_that_are_noise_are_flagged(limits):
    with pytest.warns(ImpreciseValuesWarning, match="mostly noise: .* standard error"):
        fit(quick(**limits))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ImpreciseValuesWarning)
        fit(quick(sampler="exact", max_evaluations=None), n=8)


@pytest.mark.parametrize(
    ("radius", "message"),
    [(1e-6, "100% .* no row.* 0%"), (2.0, "around 0% .* 100% contain all")],
)
@pytest.mark.parametrize("split", [False, True])
def test_a_radius_without_effect_is_told(radius, message, split):
    options = dict(X_val=None, y_val=None) if split else {}
    (found,) = told(TKNNShapleyValuer(radius), **options)
    assert found.category is RadiusWarning
    assert told(TKNNShapleyValuer(0.5), **options) == []
    with pytest.warns(RadiusWarning, match=message):
        fit(TKNNShapleyValuer(radius))


def test_points_that_are_the_rows():
    X, y, *_ = data()
    for points in (X, X.copy(), X.tolist()):
        (found,) = told(KNNShapleyValuer(), X_val=points, y_val=y)
        assert found.category is SameRowsWarning
        assert found.filename == __file__
    with pytest.warns(SameRowsWarning):
        KNNShapleyValuer().fit(csr_array(X), y, X_val=csr_array(X), y_val=y)
    assert told(KNNShapleyValuer(), X_val=X[::-1], y_val=y) == []
    valuer = LeaveOneOutValuer(make_pipeline(SimpleImputer(), GaussianNB()))
    gaps = pd.DataFrame(
        {"a": np.where(np.arange(24) % 5, X[:, 0], np.nan), "b": X[:, 1]}
    )
    for frame in (gaps, gaps.convert_dtypes()):  # with NaN, and with NA
        given = {"X": frame, "y": y, "y_val": y}
        with pytest.warns(SameRowsWarning):
            valuer.fit(X_val=frame.copy(), **given)
        with warnings.catch_warnings():
            warnings.simplefilter("error", SameRowsWarning)
            valuer.fit(X_val=frame[::-1], **given)


def test_a_ledger_without_epsilon_and_a_large_delta():
    ledger = Ledger(None, "rows", epsilon=1.0, delta=0.5)
    (found,) = told(TKNNShapleyValuer(ledger=ledger))
    assert "NOT private" in str(found.message)
    assert found.category is VoidGuaranteeWarning
    for valuer in (TKNNShapleyValuer(), GradientSemivalueValuer(n_permutations=2)):
        valuer.set_params(epsilon=1.0, delta=1 / 24)
        with pytest.warns(VoidGuaranteeWarning, match="delta=0.0416667 and n=24"):
            fit(valuer)
        assert told(valuer.set_params(delta=1e-3)) == []
