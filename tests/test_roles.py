"""What all estimators of parties, mediators, sellers and buyers share."""

import inspect
import pickle
from importlib.util import find_spec

import pytest
from sklearn.base import BaseEstimator, clone

from skvalue import collaborative, priarta

# Networks are among the classes of sellers and buyers.
PACKAGES = [collaborative, *([priarta] if find_spec("torch") else [])]


def estimators_of(package):
    """Public estimators of a package that a user builds."""
    for name in package.__all__:
        cls = getattr(package, name)
        is_estimator = isinstance(cls, type) and issubclass(cls, BaseEstimator)
        if is_estimator and not name.startswith("Posterior"):
            yield cls


CLASSES = [cls for package in PACKAGES for cls in estimators_of(package)]
ARGUMENTS = {
    "BayesianSurpriseScorer": [collaborative.BayesianLinear()],
    "PredictiveValueScorer": [collaborative.BayesianLinear()],
    "SellerRelease": ["folder"],
}


def test_the_walk_finds_something():
    assert len(CLASSES) == (17 if priarta in PACKAGES else 11)


each_class = pytest.mark.parametrize("cls", CLASSES)


def build(cls):
    return cls(*ARGUMENTS.get(cls.__name__, []))


@each_class
def test_clones_and_pickles_are_equal(cls):
    estimator = build(cls)
    assert repr(clone(estimator)) == repr(estimator)
    assert repr(pickle.loads(pickle.dumps(estimator))) == repr(estimator)


@each_class
def test_parameters_are_set(cls):
    estimator = build(cls)
    name = next(iter(estimator.get_params(deep=False)))
    assert estimator.set_params(**{name: 3}).get_params(deep=False)[name] == 3


@each_class
def test_an_unfitted_estimator_has_no_fitted_attributes(cls):
    assert [name for name in vars(build(cls)) if name.endswith("_")] == []


@each_class
def test_every_parameter_is_documented_and_constrained(cls):
    parameters = set(inspect.signature(cls).parameters)
    assert parameters == set(cls._parameter_constraints)
    section = cls.__doc__.split("Parameters\n")[1]
    section = section.split("\n\n    See Also")[0].split("Attributes")[0]
    documented = set()
    for line in section.splitlines():
        names = line.split(" :")[0].split(",")
        documented.update(name.strip() for name in names)
    assert parameters <= documented
