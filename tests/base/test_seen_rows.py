"""Rows of fit are found again, copies included."""

from time import process_time

import numpy as np
import pytest

from skvalue import KNNShapleyValuer


def fitted(X, rng):
    y = np.arange(len(X)) % 3
    return KNNShapleyValuer().fit(X, y, X_val=rng.normal(size=(20, X.shape[1])), y_val=y[:20]), y


def test_copies_have_the_mean_of_their_values(rng):
    X = rng.integers(-2, 3, (200, 2)).astype(float)
    X[rng.random(X.shape) < 0.1] *= -0.0
    valuer, y = fitted(X, rng)
    found, labelled = valuer.transform(X)[:, 0], valuer.score_samples(X, y)
    for row in range(200):
        same = (X[row] == X).all(axis=1)
        assert found[row] == pytest.approx(valuer.values_[same].mean())
        assert labelled[row] == pytest.approx(valuer.values_[same & (y == y[row])].mean())


def test_copies_cost_no_more_than_other_rows(rng):
    X = rng.normal(size=(6000, 2))
    copies = np.where(np.arange(6000)[:, None] < 3, X, 1.0)
    seconds = []
    for rows in (X, copies):
        valuer, _ = fitted(rows, rng)
        valuer.transform(rows[:10])
        begin = process_time()
        assert np.isfinite(valuer.transform(rows)).all()
        seconds.append(process_time() - begin)
    assert seconds[1] < 20 * seconds[0]  # a comparison of all pairs of copies took 2,000 times it
