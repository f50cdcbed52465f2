"""LabelErrorCheck, in reports of skore."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import skore
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor

from skvalue import KNNShapleyValuer
from skvalue.datasets import flip_labels
from skvalue.labels import LabelErrorCheck, LabelErrorDetector

X, Y = load_iris(return_X_y=True, as_frame=True)
Y_NOISY, FLIPPED = flip_labels(Y.to_numpy(), 0.1, random_state=1)


def training_report(y, task="multiclass-classification"):
    return SimpleNamespace(ml_task=task, X_train=X, y_train=y)


def all_rows_report(y, task="multiclass-classification"):
    return SimpleNamespace(ml_task=task, X=X, y=y)


@pytest.mark.parametrize("report", [training_report, all_rows_report])
@pytest.mark.parametrize("container", [np.asarray, pd.Series, lambda y: [*map(str, y)]])
def test_wrong_labels_are_named_with_their_number(report, container):
    check = LabelErrorCheck()
    explanation = check.check_function(report(container(Y_NOISY)))

    assert FLIPPED[check.rows_].mean() > 0.9
    assert f"{len(check.rows_)} of 150 " in explanation
    worst = check.rows_[0]
    assert f": {worst} ({check.detector_.suggested_label_[worst]})," in explanation


def test_nothing_is_said_of_right_labels():
    check = LabelErrorCheck()

    assert check.check_function(training_report(Y)) is None
    assert len(check.rows_) == 0


def test_a_detector_of_ones_own_is_cloned():
    detector = LabelErrorDetector(cv=3, random_state=0)
    check = LabelErrorCheck(detector)
    check.check_function(training_report(Y_NOISY))

    assert check.detector_.cv == 3
    assert not hasattr(detector, "values_")


def test_a_detector_by_values_is_refused():
    check = LabelErrorCheck(LabelErrorDetector(KNNShapleyValuer()))
    with pytest.raises(ValueError, match="detector must have an estimator of prob"):
        check.check_function(training_report(Y_NOISY))


@pytest.mark.parametrize(
    "report",
    [
        training_report(Y, "regression"),
        training_report(Y, "multioutput-multiclass-classification"),
        training_report(None),
    ],
    ids=["regression", "several targets", "no training rows"],
)
def test_a_report_without_labels_to_check_is_not_applicable(report):
    with pytest.raises(skore.CheckNotApplicable):
        LabelErrorCheck().check_function(report)


@pytest.mark.parametrize("splitter", [0.2, 3])
def test_a_report_of_skore_takes_the_check(splitter):
    report = skore.evaluate(DummyClassifier(), X, Y_NOISY, splitter=splitter, n_jobs=1)
    check = LabelErrorCheck()
    report.checks.add([check])

    shown = report.checks.summarize(ignore=[f"SKD{i:03}" for i in range(1, 17)])
    assert "SKV001" in set(shown.frame(section="issue")["code"])


def test_a_report_of_a_regression_does_not_apply_it():
    report = skore.evaluate(DummyRegressor(), X, X.iloc[:, 0] * 1.7, splitter=0.2)
    report.checks.add([LabelErrorCheck()])

    shown = report.checks.summarize(ignore=[f"SKD{i:03}" for i in range(1, 17)])
    assert "SKV001" in set(shown.frame(section="not_applicable")["code"])
