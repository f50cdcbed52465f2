"""Fits without values to trust: an error, or one warning that says so."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
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

UNCONVERGED = LogisticRegression(max_iter=1, class_weight="balanced")
NO_POINTS = {"X_val": None, "y_val": None}


def warnings_of(valuer, **options):
    """Warnings of a fit, other than that it is not batched."""
    problem = data()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        valuer.fit(*problem.rows, **(problem.points | options))
    return [w for w in caught if w.category is not UnbatchedFitWarning]


@pytest.mark.parametrize("model", [SVC(C=-1), SVC()], ids=["fit", "score"])
@pytest.mark.parametrize("points", [data().points, {}], ids=["points", "splits"])
def test_an_estimator_that_cannot_train_on_all_rows_is_an_error(model, points):
    valuer = DataShapleyValuer(
        model, scoring="neg_log_loss", max_evaluations=600, random_state=0
    )
    with pytest.raises(
        ValueError, match="must train on all .* SVC, which raised"
    ) as error:
        valuer.fit(*data().rows, **points)
    assert error.value.__cause__ is not None
    assert not hasattr(valuer, "values_")


def test_parameters_of_bagged_models_are_checked():
    valuer = DataOOBValuer(LogisticRegression(C=-1), n_estimators=4)
    with pytest.raises(ValueError, match="The 'C' parameter of LogisticRegression"):
        valuer.fit(*data().rows)


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
def test_coalitions_of_one_class_are_no_failures():
    messages = [str(w.message) for w in warnings_of(quick())]
    assert not any("coalitions could not" in message for message in messages)


VALUERS = [
    DataOOBValuer(UNCONVERGED, n_estimators=20, random_state=0),
    DataShapleyValuer(UNCONVERGED, max_evaluations=40, random_state=0),
    LayeredShapleyValuer(UNCONVERGED, n_layers=2, max_evaluations=100, random_state=0),
]


@pytest.mark.parametrize(
    ("valuer", "n_jobs"),
    [
        *((valuer, 1) for valuer in VALUERS),
        (VALUERS[0], 2),
        *(pytest.param(valuer, 2, marks=pytest.mark.slow) for valuer in VALUERS[1:]),
    ],
    ids=lambda value: str(value).partition("(")[0],
)
def test_warnings_of_fits_are_issued_once_at_the_users_line(valuer, n_jobs):
    options = {} if hasattr(valuer, "cv") else NO_POINTS
    caught = warnings_of(valuer.set_params(n_jobs=n_jobs), **options)
    (warning,) = (w for w in caught if w.category is ConvergenceWarning)
    assert "times in fits of the estimator]" in str(warning.message)
    assert warning.filename == __file__


def test_warnings_as_errors_lose_no_value():
    valuer = DataShapleyValuer(
        UNCONVERGED, sampler="permutation", max_evaluations=60, random_state=0
    )
    warned = clone(valuer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnbatchedFitWarning)
        with pytest.raises(ConvergenceWarning) as error:
            fit(valuer)
    (note,) = error.value.__notes__
    assert note.startswith("ImpreciseValuesWarning: The values are mostly noise")
    assert len(warnings_of(warned)) == 2
    np.testing.assert_array_equal(valuer.values_, warned.values_)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_evaluations": 36},
        {"sampler": "permutation", "max_time": 1e-6, "max_evaluations": None},
    ],
    ids=["few coalitions", "little time"],
)
def test_values_that_are_noise_are_flagged(limits):
    with pytest.warns(ImpreciseValuesWarning, match="mostly noise: .* standard error"):
        fit(quick(**limits))


def test_exact_values_are_not_flagged():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ImpreciseValuesWarning)
        fit(quick(sampler="exact", max_evaluations=None), n=8)


@pytest.mark.parametrize("options", [{}, NO_POINTS], ids=["points", "rows held out"])
class TestRadius:
    @pytest.mark.parametrize(
        ("radius", "message"),
        [(1e-6, "100% .* no row.* 0%"), (2.0, "around 0% .* 100% contain all")],
        ids=["empty balls", "balls of all rows"],
    )
    def test_a_radius_without_effect_is_warned_of(self, radius, message, options):
        (warning,) = warnings_of(TKNNShapleyValuer(radius), **options)
        assert warning.category is RadiusWarning
        with pytest.warns(RadiusWarning, match=message):
            fit(TKNNShapleyValuer(radius))

    def test_another_radius_is_not(self, options):
        assert warnings_of(TKNNShapleyValuer(0.5), **options) == []


class TestPointsThatAreTheRows:
    @pytest.mark.parametrize("copied", [np.asarray, np.copy, np.ndarray.tolist])
    def test_they_are_warned_of_at_the_users_line(self, copied):
        X, y, *_ = data()
        (warning,) = warnings_of(KNNShapleyValuer(), X_val=copied(X), y_val=y)
        assert warning.category is SameRowsWarning
        assert warning.filename == __file__

    def test_sparse_ones_are_warned_of(self):
        X, y, *_ = data()
        with pytest.warns(SameRowsWarning):
            KNNShapleyValuer().fit(csr_array(X), y, X_val=csr_array(X), y_val=y)

    def test_rows_in_another_order_are_not(self):
        X, y, *_ = data()
        assert warnings_of(KNNShapleyValuer(), X_val=X[::-1], y_val=y) == []

    @pytest.mark.parametrize("missing", ["NaN", "NA"])
    def test_frames_with_missing_values_are_compared(self, missing):
        X, y, *_ = data()
        column = np.where(np.arange(24) % 5, X[:, 0], np.nan)
        frame = pd.DataFrame({"a": column, "b": X[:, 1]})
        if missing == "NA":
            frame = frame.convert_dtypes()
        valuer = LeaveOneOutValuer(make_pipeline(SimpleImputer(), GaussianNB()))
        with pytest.warns(SameRowsWarning):
            valuer.fit(frame, y, X_val=frame.copy(), y_val=y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", SameRowsWarning)
            valuer.fit(frame, y, X_val=frame[::-1], y_val=y)


def test_a_ledger_without_epsilon_is_warned_of():
    ledger = Ledger(None, "rows", epsilon=1.0, delta=0.5)
    (warning,) = warnings_of(TKNNShapleyValuer(ledger=ledger))
    assert "NOT private" in str(warning.message)
    assert warning.category is VoidGuaranteeWarning


@pytest.mark.parametrize(
    ("valuer", "message"),
    [
        (TKNNShapleyValuer(), "delta=0.0416667, even a release that reveals one of 24"),
        (TKNNShapleyValuer(relation="replace"), "delta=0.0416667 and n=24"),
        (GradientSemivalueValuer(n_permutations=2), "delta=0.0416667 and n=24"),
    ],
    ids=["counts of a private number", "counts", "gradients"],
)
def test_a_delta_of_one_row_is_warned_of(valuer, message):
    valuer.set_params(epsilon=1.0, delta=1 / 24)
    with pytest.warns(VoidGuaranteeWarning, match=message):
        fit(valuer)
    others = warnings_of(valuer.set_params(delta=1e-3))
    assert VoidGuaranteeWarning not in [warning.category for warning in others]
