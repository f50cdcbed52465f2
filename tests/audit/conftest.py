"""Fixtures that several tests of audits share."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skvalue import LabelErrorDetector
from skvalue.audit import audit_table
from skvalue.datasets import flip_labels


@pytest.fixture(scope="session")
def iris():
    """Flowers with a category and gaps, labels, and whether each label is wrong."""
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica <i>"])[y]
    labels, wrong = flip_labels(names, 0.1, random_state=0)
    X = X.assign(colour=np.where(np.arange(150) % 3, "blue", "red"))
    X.loc[::11, "petal width (cm)"] = np.nan
    return X, pd.Series(labels, name="flower"), wrong


@pytest.fixture(scope="session")
def iris_report(iris):
    """The audit of the flowers."""
    pytest.importorskip("jinja2")
    X, y, _ = iris
    detector = LabelErrorDetector(cv=2, random_state=0)
    return audit_table(X, y, detector=detector, title="Iris & more", checks="fast")


@pytest.fixture(scope="session")
def iris_reviewed(iris, iris_report):
    """The audit of the flowers, with verdicts on the rows to review."""
    rows = iris_report.to_review
    return iris_report.review(rows, iris[2][rows])
