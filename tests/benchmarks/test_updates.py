"""Rows that come and go with ``store_neighbors=True`` against fitting again.

    pytest tests/benchmarks -m bench

prints the ratios.
"""

import numpy as np
import pytest
from sklearn.base import clone

from skvalue import KNNShapleyValuer, TKNNShapleyValuer

pytestmark = pytest.mark.bench

N, V = 20_000, 500


@pytest.mark.parametrize("d", [32, 256])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["KNN", "TKNN"])
def test_one_percent_of_the_rows(name, dtype, d, ratio):
    rng = np.random.default_rng(0)
    X, X_val = (rng.standard_normal((size, d)).astype(dtype) for size in (N, V))
    y, y_val = rng.integers(0, 2, N), rng.integers(0, 2, V)
    radius = {32: 7.0, 256: 21.5}[d]
    valuers = {"KNN": KNNShapleyValuer(), "TKNN": TKNNShapleyValuer(radius, metric="euclidean")}
    refitted = valuers[name]
    stored = clone(refitted).set_params(store_neighbors=True)
    stored.fit(X, y, X_val=X_val, y_val=y_val)
    some = N // 100

    def update():
        stored.remove_rows(np.arange(N - some, N))
        stored.add_rows(X[-some:], y[-some:])

    def refit():
        refitted.fit(X[:-some], y[:-some], X_val=X_val, y_val=y_val)
        refitted.fit(X, y, X_val=X_val, y_val=y_val)

    what = f"{name} {np.dtype(dtype)}, d={d}, 1 % of the rows gone and come, over two fits"
    assert ratio(what, update, refit, 0.6) <= 0.6
