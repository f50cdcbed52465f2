"""Rows of fit are found again, copies included."""

import numpy as np
import pytest

from skvalue import KNNShapleyValuer


def test_copies_have_the_mean_of_their_values(rng):
    X, y = rng.integers(-2, 3, (200, 2)).astype(float), np.arange(200) % 3
    X[rng.random(X.shape) < 0.1] *= -0.0
    valuer = KNNShapleyValuer().fit(X, y, X_val=rng.normal(size=(20, 2)), y_val=y[:20])
    found, labelled = valuer.transform(X)[:, 0], valuer.score_samples(X, y)
    for row in range(200):
        same = (X[row] == X).all(axis=1)
        assert found[row] == pytest.approx(valuer.values_[same].mean())
        assert labelled[row] == pytest.approx(
            valuer.values_[same & (y == y[row])].mean()
        )
