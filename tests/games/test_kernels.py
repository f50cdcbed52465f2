"""Compiled loops of batched classifiers by themselves, against scikit-learn."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from skvalue.games.solvers.bayes_kernels import log_likelihoods
from skvalue.games.solvers.neighbors_kernels import neighbour_means

LAYOUTS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed rows": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "float32": lambda X: X.astype(np.float32),
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS)
each_number_of_rows = pytest.mark.parametrize("n", [1, 2, 9, 40])
each_number_of_points = pytest.mark.parametrize("n_points", [0, 1, 5])
each_number_of_coalitions = pytest.mark.parametrize("n_masks", [0, 1, 8])


def some_rows(rng, n, d=3):
    """Rows that float32 holds."""
    return rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)


def some_coalitions(rng, n_masks, n):
    """Coalitions, none of which is empty."""
    masks = rng.random((n_masks, n)) < 0.6
    masks[:, rng.integers(n)] = True
    return masks


@each_layout
@each_number_of_rows
@each_number_of_points
@each_number_of_coalitions
def test_likelihoods_are_those_of_naive_bayes(n, n_points, n_masks, layout, rng):
    X = some_rows(rng, n)
    X[-1] = X[0]
    X_val = some_rows(rng, n_points)
    y = np.arange(n) % 3
    w = rng.uniform(0.5, 2, n)
    masks = some_coalitions(rng, n_masks, n)
    joint = np.full((n_masks, n_points, 3), -np.inf)
    usable = log_likelihoods(
        LAYOUTS[layout](X),
        y,
        w,
        priors=np.empty(0),
        smoothing=1e-2,
        masks=masks,
        X_val=LAYOUTS[layout](X_val),
        joint=joint,
    )
    for mask, is_usable, of_mask in zip(masks, usable, joint):
        # Rows of one coalition that are all equal have no variance.
        assert is_usable == (len(np.unique(X[mask], axis=0)) > 1)
        if not is_usable or n_points == 0:
            continue
        model = GaussianNB(var_smoothing=1e-2).fit(X[mask], y[mask], w[mask])
        expected = model.predict_joint_log_proba(X_val)
        np.testing.assert_allclose(of_mask[:, model.classes_], expected, rtol=1e-9)


@each_number_of_rows
@each_number_of_points
@each_number_of_coalitions
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("n_neighbors", [1, 2, 5])
def test_means_are_those_of_the_nearest_members(
    n, n_points, n_masks, weights, n_neighbors, rng
):
    X = some_rows(rng, n)
    X_val = some_rows(rng, n_points)
    X_val[:1] = X[: len(X_val[:1])]  # at distance 0
    values = rng.normal(size=(n, 2))
    masks = some_coalitions(rng, n_masks, n)
    distances = np.linalg.norm(X_val[:, None] - X, axis=2)
    order = np.argsort(distances, axis=1, kind="stable")
    means = np.zeros((n_masks, n_points, 2))
    neighbour_means(
        order,
        np.take_along_axis(distances, order, axis=1),
        values,
        np.asfortranarray(masks),
        n_neighbors,
        weights == "distance",
        means,
    )
    for mask, of_mask in zip(masks, means):
        if mask.sum() < n_neighbors or n_points == 0:
            assert not of_mask.any()
            continue
        model = KNeighborsRegressor(n_neighbors, weights=weights, algorithm="brute")
        expected = model.fit(X[mask], values[mask]).predict(X_val)
        np.testing.assert_allclose(of_mask, expected, rtol=1e-7, atol=1e-9)
