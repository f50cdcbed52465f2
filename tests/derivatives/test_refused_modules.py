"""Torch modules that no method can train are refused, with what to do instead."""

import numpy as np
import pytest

from skvalue import KNNShapleyValuer, UnrolledValuer

torch = pytest.importorskip("torch")


def not_finite():
    module = torch.nn.Linear(4, 2)
    module.weight.data.fill_(float("nan"))
    return module


def scripted():
    return torch.jit.script(torch.nn.Linear(4, 2))


def recurrent():
    return torch.nn.LSTM(4, 2)


X = np.random.default_rng(0).normal(size=(40, 4))
y = (X[:, 0] > 0) * 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (not_finite, "model must have finite parameters"),
        (scripted, "pass the module that was scripted"),
        (recurrent, "returns the tensor alone"),
    ],
)
def test_a_model_is_refused_with_a_way_out(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        UnrolledValuer(make(), n_epochs=1).fit(X, y)


def test_an_embedding_that_returns_a_tuple_is_refused():
    with pytest.raises(TypeError, match="embedding must return a tensor"):
        KNNShapleyValuer(embedding=recurrent()).fit(X, y)
