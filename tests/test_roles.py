"""What all estimators of parties, mediators, sellers and buyers share."""

import inspect
import pickle
from importlib.util import find_spec

import pytest
from sklearn.base import BaseEstimator, clone

from skvalue import collaborative, priarta

# Networks are among the classes of sellers and buyers.
PACKAGES = [collaborative, *([priarta] if find_spec("torch") else [])]
CLASSES = [
    cls
    for package in PACKAGES
    for cls in (getattr(package, name) for name in package.__all__)
    if isinstance(cls, type)
    and issubclass(cls, BaseEstimator)
    and not cls.__name__.startswith("Posterior")
]
ARGUMENTS = {
    "BayesianSurpriseScorer": [collaborative.BayesianLinear()],
    "PredictiveValueScorer": [collaborative.BayesianLinear()],
    "SellerRelease": ["folder"],
}


def test_the_walk_finds_something():
    assert len(CLASSES) == (15 if priarta in PACKAGES else 9)


@pytest.mark.parametrize("cls", CLASSES)
def test_clones_pickles_and_parameters(cls):
    estimator = cls(*ARGUMENTS.get(cls.__name__, []))
    assert (
        repr(clone(estimator))
        == repr(pickle.loads(pickle.dumps(estimator)))
        == repr(estimator)
    )
    name = next(iter(estimator.get_params(deep=False)))
    assert clone(estimator).set_params(**{name: 3}).get_params(deep=False)[name] == 3
    assert [name for name in vars(estimator) if name.endswith("_")] == []

    parameters = set(inspect.signature(cls).parameters)
    assert parameters == set(cls._parameter_constraints)
    section = (
        cls.__doc__.split("Parameters\n")[1]
        .split("\n\n    See Also")[0]
        .split("Attributes")[0]
    )
    documented = set()
    for line in section.splitlines():
        documented |= {name.strip() for name in line.split(" :")[0].split(",")}
    assert parameters <= documented
