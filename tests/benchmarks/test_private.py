"""A private fit against the exact one: release, smoothing and standard errors must cost little."""

import numpy as np
import pytest

from skvalue import TKNNShapleyValuer

pytestmark = pytest.mark.bench


@pytest.mark.parametrize("n_classes", [2, 5])
def test_private_tknn_against_the_exact_one(n_classes, ratio):
    rng = np.random.default_rng(0)
    X, X_val = (rng.standard_normal((size, 512)).astype(np.float32) for size in (50_000, 200))
    y, y_val = (rng.integers(0, n_classes, size) for size in (50_000, 200))
    game = dict(X=X, y=y, X_val=X_val, y_val=y_val)
    exact, private = TKNNShapleyValuer(0.9), TKNNShapleyValuer(0.9, epsilon=1.0)
    limit = 2.0  # the 32 sums over the rows of the standard errors take a third
    measured = ratio(
        f"private TKNN over exact, {n_classes} classes, N=50,000, V=200, d=512",
        lambda: private.fit(**game),
        lambda: exact.fit(**game),
        limit,
    )
    assert measured <= limit
