"""The public estimators of rows, and how tests build them."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

import skvalue
from skvalue import (
    BetaShapleyValuer,
    DataBanzhafValuer,
    LayeredShapleyValuer,
    LeaveOneOutValuer,
    SemivalueValuer,
)
from skvalue.base import BaseInSampleValuer


class Agreement:
    """Scores of rows of any kind: 1 where labels agree, less the later the row is."""

    def __call__(self, X, y, X_val, y_val):
        return (y == y_val[:, None]) - np.linspace(0, 0.5, len(y))

    def __repr__(self):
        return "Agreement()"  # the same in every worker: names of tests hold it


# Parameters to build a class with, where it cannot be built bare.
INIT_PARAMS = {
    "BetaShapleyValuer": {"max_evaluations": 200, "random_state": 0},
    "DataBanzhafValuer": {"max_evaluations": 200, "random_state": 0},
    "DataOOBValuer": {"n_estimators": 20, "random_state": 0},
    "DataShapleyValuer": {"max_evaluations": 200, "random_state": 0},
    "FederatedSemivalueValuer": {"n_rounds": 3, "n_permutations": 2, "random_state": 0},
    "GradientSemivalueValuer": {"n_permutations": 10, "random_state": 0},
    "LabelErrorDetector": {"estimator": GaussianNB(), "random_state": 0},
    "LayeredShapleyValuer": {"max_evaluations": 100, "random_state": 0},
    "ScoresValuer": {"scores": Agreement()},
    "SemivalueValuer": {"max_evaluations": 200, "random_state": 0},
    "ValueFilteredClassifier": {"estimator": GaussianNB()},
    "ValueFilteredRegressor": {"estimator": Ridge()},
}
# Of these, classes whose first parameter has no default.
REQUIRED = ("ScoresValuer", "ValueFilteredClassifier", "ValueFilteredRegressor")
# Rooms whose estimators value whole data sets: their checks are in tests of their own.
OF_DATA_SETS = ("skvalue.collaborative", "skvalue.priarta")

# They differ from DataShapleyValuer in their weights alone.
NAMED = (BetaShapleyValuer, DataBanzhafValuer, SemivalueValuer)
# They fit models as DataShapleyValuer does.
LONG = (*NAMED, LayeredShapleyValuer, LeaveOneOutValuer)


def estimators(base=BaseEstimator):
    """All public, concrete estimator classes of the package that take rows."""
    public = {getattr(skvalue, name) for name in skvalue.__all__}
    classes = [
        cls
        for cls in public
        if inspect.isclass(cls) and issubclass(cls, base) and is_of_rows(cls)
    ]
    return sorted(classes, key=lambda cls: cls.__name__)


def is_of_rows(cls):
    return not inspect.isabstract(cls) and not cls.__module__.startswith(OF_DATA_SETS)


def build_bare(cls):
    """An estimator with its defaults, and so without a seed."""
    if cls.__name__ in REQUIRED:
        return build(cls)
    return cls()


def build(cls):
    return cls(**INIT_PARAMS.get(cls.__name__, {}))


def build_quick(cls):
    """Few and small models a fit: scikit-learn's checks fit hundreds of times."""
    estimator = build(cls)
    quick = {"max_evaluations": 100, "n_estimators": 10, "n_permutations": 2, "cv": 2}
    if cls in NAMED:
        quick["estimator"] = GaussianNB()
    names = quick.keys() & estimator.get_params().keys()
    return estimator.set_params(**{name: quick[name] for name in names})


def each_with_one_of(classes, options):
    """Each class with each option.

    In the default tier each class has one of them, which take turns.
    """
    cases = []
    for i, cls in enumerate(classes):
        for j, option in enumerate(options):
            is_slow = (i + j) % len(options) > 0
            marks = [pytest.mark.slow] if is_slow else []
            cases.append(pytest.param(cls, option, marks=marks))
    return cases


def slow_for(classes, slow):
    """The classes, of which some are in the slow tier."""
    return [
        pytest.param(cls, marks=[pytest.mark.slow] if cls in slow else [])
        for cls in classes
    ]


VALUERS = estimators(BaseInSampleValuer)
TAKE_POINTS = [cls for cls in VALUERS if build(cls)._capabilities.points]

each_estimator = pytest.mark.parametrize(
    "cls", estimators(), ids=lambda cls: cls.__name__
)
each_valuer = pytest.mark.parametrize("cls", VALUERS)
each_with_points = pytest.mark.parametrize("cls", TAKE_POINTS)
