"""Fingerprints: equal for equal values in every process, different for all others."""

import functools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn import metrics
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from skvalue._utils.hashing import fingerprint


class Scorer:
    """A scorer with state."""

    def __init__(self, k):
        self.k = k

    def __call__(self, estimator, X, y):
        return self.k * estimator.score(X, y)

    def score(self, estimator, X, y):
        return self(estimator, X, y)


class Slots:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k


class Tensor:
    """What torch calls a tensor; its address would be pickled."""

    dtype = "float64"

    def __init__(self, number):
        self.number = np.asarray(number)
        self.address = object()

    def detach(self):
        return self

    cpu = detach

    def double(self):
        return self.number


def unset(k):
    """A function of a variable that has no content."""
    if k > 1:
        late = k
    return lambda x: (late, k)


def power(exponent):
    return lambda x: x**exponent


def endless(k):
    """A function that is in its own closure."""

    def again(x):
        return again(x + k)

    return again


def function_of_cell(source):
    """The function f of a notebook cell."""
    space = {"__name__": "__main__", "metrics": metrics}
    exec(source, space)
    return space["f"]


def trained(seed, cls=PCA):
    X = np.random.default_rng(seed).normal(size=(20, 3))
    return cls().fit(X, X[:, 0] > 0)


def almost_zeros(number):
    """A long array, whose middle joblib would not show in its text."""
    array = np.zeros(1001)
    array[500] = number
    return array


PAIRS = {
    "names": lambda: (
        lambda e, X, y: metrics.accuracy_score(y, e.predict(X)),
        lambda e, X, y: metrics.f1_score(y, e.predict(X)),
    ),
    "constants": lambda: (lambda x: x + 1, lambda x: x + 2),
    "constant sets": lambda: (lambda x: x in {"a", "b"}, lambda x: x in {"a", "c"}),
    "inner": lambda: (lambda x: [min(i) for i in x], lambda x: [max(i) for i in x]),
    "inner names": lambda: (lambda x: (lambda: min(x))(), lambda x: (lambda: max(x))()),
    "keywords": lambda: (lambda *, k=1: k, lambda *, k=2: k),
    "defaults": lambda: (lambda k=1: k, lambda k=2: k),
    "closure": lambda: (power(2), power(3)),
    "function in the closure": lambda: (power(power(2)), power(power(3))),
    "recursion": lambda: (endless(1), endless(2)),
    "state": lambda: (Scorer(1), Scorer(-1)),
    "slots": lambda: (Slots(1), Slots(-1)),
    "bound": lambda: (Scorer(1).score, Scorer(-1).score),
    "bound built-in": lambda: ({1: 2}.get, {1: 3}.get),
    "partial": lambda: tuple(
        functools.partial(power(1), almost_zeros(k)) for k in (0, 1)
    ),
    "partial's function": lambda: (functools.partial(min), functools.partial(max)),
    "made scorer": lambda: tuple(make_scorer(f1_score, pos_label=k) for k in (0, 1)),
    "made of lambdas": lambda: tuple(make_scorer(power(k)) for k in (0, 1)),
    "attribute": lambda: tuple(
        make_scorer(function_of_cell(f"def f(x): return 1\nf.k = {k}")) for k in (0, 1)
    ),
    "cell run again": lambda: tuple(
        function_of_cell(f"def f(x):\n  return {k}") for k in (0, 1)
    ),
    "frozen": lambda: tuple(
        make_pipeline(FrozenEstimator(trained(k)), PCA()) for k in (0, 1)
    ),
    "teacher": lambda: tuple(
        functools.partial(power(1), trained(k, DecisionTreeClassifier)) for k in (0, 1)
    ),
    "tensors": lambda: tuple(Tensor(k) for k in (0, 1)),
    "closure without content": lambda: (unset(0), unset(1)),
    "estimators": lambda: (LogisticRegression(C=1.0), LogisticRegression(C=2.0)),
    "classes": lambda: (sparse.csr_array, sparse.csr_matrix),
    "sparse": lambda: (sparse.eye_array(3).tocsr(), 2 * sparse.eye_array(3).tocsr()),
    "texts": lambda: (["ab", "c"], ["a", "bc"]),
    "nested": lambda: ([["a"], ["b"]], [["a", "b"], []]),
    "mapping": lambda: ({"a": {"b": 1}}, {"a": {}, "b": 1}),
    "objects": lambda: (np.array([1, "a"], object), np.array([[1], ["a"]], object)),
    "types": lambda: ([1], [True]),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_different_things_differ_and_equal_ones_do_not(name):
    one, other = PAIRS[name]()
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(PAIRS[name]()[0])


def test_cached_flags_string_objects_and_the_order_of_memory_do_not_count():
    one = sparse.csr_array([[0.0, 1.0], [2.0, 0.0]])
    before = fingerprint(one)
    assert one.has_canonical_format
    assert fingerprint(one) == before
    assert fingerprint(["ab", "ab"]) == fingerprint(["ab", "".join("ab")])
    rows = np.arange(12.0).reshape(3, 4)
    assert fingerprint(rows) == fingerprint(np.asfortranarray(rows))
    assert fingerprint(rows[:, ::2]) == fingerprint(rows[:, ::2].copy())


def test_what_cannot_be_pickled_equals_nothing():
    lock = {"lock": threading.Lock()}
    assert fingerprint(lock) != fingerprint(lock)


@pytest.mark.parametrize(
    "value", [np.zeros(0, "U"), np.zeros(2, "M8[s]"), {1}, np.array(1.0)], ids=repr
)
def test_a_value_equals_itself(value):
    assert fingerprint(value) == fingerprint(value)


def test_a_list_that_holds_itself_equals_itself():
    endless = []
    endless.append(endless)
    assert fingerprint(endless) == fingerprint(endless)


def fingerprints():
    return [fingerprint(pair()) for pair in PAIRS.values()], fingerprint({*"abc"})


def test_fingerprints_are_the_same_in_every_process():
    script = "from tests._utils.test_hashing import fingerprints; print(fingerprints())"
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.getcwd(), "PYTHONHASHSEED": "1"},
    )
    assert run.stdout.strip() == str(fingerprints())
