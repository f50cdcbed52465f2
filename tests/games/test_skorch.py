"""Networks of skorch as estimators: what works, and what they must be given."""

import numpy as np
import pytest
from sklearn.base import clone

from skvalue import SemivalueValuer
from skvalue.games import ModelGame
from skvalue.semivalues import enumerate_semivalue

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch", reason="skorch is not installed")


class SeededNet(skorch.NeuralNetClassifier):
    """Has the same first weights in every fit."""

    def initialize(self):
        torch.manual_seed(0)
        return super().initialize()


@pytest.fixture
def net():
    return SeededNet(
        torch.nn.Linear,
        module__in_features=2,
        module__out_features=3,
        classes=[0, 1, 2],
        criterion=torch.nn.CrossEntropyLoss,
        lr=0.5,
        max_epochs=3,
        batch_size=8,
        verbose=0,
        train_split=None,
    )


@pytest.fixture
def data(rng):
    y = np.arange(15) % 3
    centers = np.array([[0, 0], [2, 0], [0, 2]])
    X = (rng.normal(size=(15, 2)) + centers[y]).astype(np.float32)
    return X[:5], y[:5], X[5:], y[5:]


def accuracy(net, data, rows):
    """Utility of a coalition of rows, by hand."""
    X, y, X_val, y_val = data
    if not len(rows):
        return 1 / 3
    if len(set(y[rows])) == 1:
        return np.mean(y_val == y[rows][0])
    fitted = clone(net).fit(X[rows], y[rows])
    return np.mean(fitted.predict(X_val) == y_val)


@pytest.mark.parametrize(
    "dtype", [np.int64, pytest.param(np.int32, marks=pytest.mark.slow)], ids=str
)
def test_a_net_is_valued_like_any_estimator(net, data, dtype):
    X, y, X_val, y_val = data
    valuer = SemivalueValuer(net, error_score="raise")
    valuer.fit(X, y.astype(dtype), X_val=X_val, y_val=y_val)

    def utility(rows):
        return accuracy(net, data, np.array(rows, int))

    exact = enumerate_semivalue(utility, 5)
    np.testing.assert_allclose(valuer.values_, exact, atol=1e-12)
    assert np.ptp(exact) > 0


def test_a_net_that_lacks_a_class_has_probabilities_of_all(net, data):
    X, y, X_val, y_val = data
    game = ModelGame(net, *data, scoring="neg_log_loss", error_score="raise")
    rows = np.flatnonzero(y != 1)
    logits = clone(net).fit(X[rows], y[rows]).forward(X_val).numpy()
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = np.log(probabilities[np.arange(len(y_val)), y_val]).mean()
    np.testing.assert_allclose(game.utility((y != 1)[None]), expected, rtol=1e-5)


def test_float64_rows_are_the_trap_that_the_guide_names(net, data):
    X, y, X_val, y_val = data
    data = X.astype(float), y, X_val.astype(float), y_val
    game = ModelGame(net, *data, error_score="raise")
    with pytest.raises(RuntimeError, match="dtype|Double"):
        game.utility(np.ones((1, 5), dtype=bool))
