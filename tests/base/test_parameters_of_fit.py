"""What a fitted valuer computes later is of the game that it was fitted in."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skvalue import (
    GradientSemivalueValuer,
    InfluenceValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    LayeredShapleyValuer,
    TKNNShapleyValuer,
)

RNG = np.random.default_rng(0)
X, X_VAL, X_NEW = RNG.normal(size=(30, 3)), RNG.normal(size=(12, 3)), np.zeros((1, 3))
Y, Y_VAL = (X[:, 0] > 0).astype(int), (X_VAL[:, 0] > 0).astype(int)

KNN = KNNShapleyValuer(3)
TKNN = TKNNShapleyValuer(1.0, metric="euclidean")
LAYERED = LayeredShapleyValuer(
    LogisticRegression(), max_evaluations=100, random_state=0
)
GRADIENTS = GradientSemivalueValuer(n_permutations=3, random_state=0)
IN_RUN = InRunShapleyValuer(n_steps=2, random_state=0)

# A valuer, what is set after its fit, and what the error says of it.
CHANGES = [
    (KNN, {"n_neighbors": 7}, "n_neighbors was 3 and is 7"),
    (KNN, {"semivalue": "banzhaf"}, "semivalue was 'shapley' and is 'banzhaf'"),
    (KNN, {"semivalue": (4, 1)}, r"semivalue was 'shapley' and is \(4, 1\)"),
    (KNN, {"embedding": StandardScaler()}, "embedding was None"),
    (TKNN, {"metric": "cosine"}, "metric was 'euclidean' and is 'cosine'"),
    (LAYERED, {"estimator__C": 9.0}, "estimator__C was 1.0 and is 9.0"),
    (LAYERED, {"n_layers": 3, "scoring": "f1"}, "n_layers .*, scoring was None"),
    (GRADIENTS, {"standardize": False}, "standardize was True and is False"),
    (InfluenceValuer(), {"order": 2}, "order was 1 and is 2"),
    (IN_RUN, {"order": 2}, "order was 1 and is 2"),
]

LATER = {
    "transform": lambda valuer: valuer.transform(X_NEW),
    "score_samples": lambda valuer: valuer.score_samples(X_NEW, [1]),
    "contributions": lambda valuer: valuer.contributions(2),
    "harmful": lambda valuer: valuer.harmful(),
    "validation_error_": lambda valuer: valuer.validation_error_,
    "add_validation": lambda valuer: valuer.add_validation(X_VAL, Y_VAL),
    "core_sets": lambda valuer: valuer.core_sets(),
    "value_of_group": lambda valuer: valuer.value_of_group([1], tol=0.5),
}


def fitted(valuer):
    """A copy of a valuer that is fitted."""
    copy = pickle.loads(pickle.dumps(valuer))
    return copy.fit(X, Y, X_val=X_VAL, y_val=Y_VAL)


CASES = [
    (*change, name)
    for change in CHANGES
    for name in LATER
    if name in dir(type(change[0]))
]


@pytest.mark.parametrize(("valuer", "params", "message", "name"), CASES)
def test_methods_refuse_parameters_that_were_set_after_fit(
    valuer, params, message, name
):
    valuer = fitted(valuer).set_params(**params)
    with pytest.raises((ValueError, AttributeError), match=message):
        LATER[name](valuer)


def test_values_stay_until_a_refit_takes_the_new_parameters():
    valuer = fitted(KNN)
    values = valuer.values_.copy()
    valuer.set_params(n_neighbors=7)
    assert np.array_equal(valuer.values_, values)
    valuer.fit(X, Y, X_val=X_VAL, y_val=Y_VAL)
    assert np.array_equal(valuer.values_, fitted(KNNShapleyValuer(7)).values_)
    assert valuer.contributions(0).contributions.sum() == pytest.approx(
        valuer.values_[0]
    )


@pytest.mark.parametrize(
    ("valuer", "params"),
    [
        (KNN, {"n_jobs": 2}),
        (KNN, {"cv": 3}),
        (KNN, {"n_neighbors": np.int64(3)}),
        (LAYERED, {"random_state": 5, "max_evaluations": 10, "max_time": 1.0}),
        (LAYERED, {"estimator__n_jobs": 1, "estimator__random_state": 3}),
    ],
)
def test_parameters_that_only_say_how_to_compute_may_change(valuer, params):
    valuer = fitted(valuer)
    before = valuer.score_samples(X_NEW, [1])
    assert np.allclose(valuer.set_params(**params).score_samples(X_NEW, [1]), before)


def test_parameters_may_be_set_back():
    valuer = fitted(KNN)
    before = valuer.score_samples(X_NEW, [1])
    valuer.set_params(n_neighbors=7).set_params(n_neighbors=3)
    assert np.array_equal(valuer.score_samples(X_NEW, [1]), before)


@pytest.mark.parametrize("valuer", [KNN, TKNN, LAYERED, IN_RUN])
def test_pickled_valuers_have_the_parameters_of_their_fit(valuer):
    valuer = fitted(valuer)
    again = pickle.loads(pickle.dumps(valuer))
    assert np.array_equal(again.transform(X_NEW), valuer.transform(X_NEW))
