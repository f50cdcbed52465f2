"""A private fit against the exact one: release, smoothing and standard errors must cost little."""

import pytest

from skvalue import TKNNShapleyValuer

from .compare import rows

pytestmark = pytest.mark.bench


@pytest.mark.parametrize("n_classes", [2, 5])
def test_private_tknn_against_the_exact_one(n_classes, ratio):
    game = rows(50_000, 200, 512, n_classes)
    exact, private = TKNNShapleyValuer(0.9), TKNNShapleyValuer(0.9, epsilon=1.0)
    limit = 2.0  # the 32 sums over the rows of the standard errors take a third
    measured = ratio(
        f"private TKNN over exact, {n_classes} classes, N=50,000, V=200, d=512",
        lambda: private.fit(**game),
        lambda: exact.fit(**game),
        limit,
    )
    assert measured <= limit
