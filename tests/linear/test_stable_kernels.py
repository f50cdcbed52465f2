"""Compiled fits of a regularised logistic loss, to a proved tolerance."""

import numpy as np
import pytest
from skvalue.linear.dual_kernels import dual_tile
from skvalue.linear.stable_kernels import primal_tile

from skvalue.games import stability
from skvalue.privacy import clip_rows

from ..problems import two_classes

L2 = 0.3
N_COLUMNS = 5  # so that nine rows are solved in the primal


def solve(Z, t, kappa, tolerance):
    """Coefficients of all rows, in the dual if they are few."""

    n = len(Z)
    data = {"X": Z, "t": t, "masks": np.ones((1, n), dtype=bool)}
    options = {"c": np.array([1 / (L2 * n)]), "rtol": tolerance / kappa}
    if n <= N_COLUMNS:
        return dual_tile(**data, **options, free=False, max_steps=200)
    return primal_tile(**data, **options, kappa=kappa, max_steps=200)


@pytest.mark.parametrize("has_one_class", [False, True], ids=["two", "one"])
@pytest.mark.parametrize("size", [1, 3, 9])
def test_the_gradient_is_within_the_tolerance(size, has_one_class, rng):
    X, y, _, _ = two_classes(rng, 14, 30, N_COLUMNS - 1, names=None)
    kappa, _, tolerance = stability(L2, 1.0)
    Z = np.column_stack([clip_rows(X, 1.0), np.ones(len(X))])[:size]
    t = np.ones(size) if has_one_class else y[:size].astype(float)
    (coef,), (solved,) = solve(Z, t, kappa, tolerance)
    q = 1 / (1 + np.exp(-Z @ coef))
    gradient = Z.T @ (q - t) / size + L2 * coef
    assert solved
    assert np.linalg.norm(gradient) <= tolerance
