"""Values of rows that were in fit, and of rows that were not."""

import numpy as np
import pytest
from exact_valuers import each_exact_and_engine, problem
from scipy import sparse
from sklearn.base import clone

from skvalue import DataShapleyValuer, KNNShapleyValuer
from skvalue.base import row_hashes


@each_exact_and_engine
@pytest.mark.parametrize("points_of", ["validation", "leave-one-out"])
def test_unseen_rows_are_valued_by_the_game_with_them(name, rng, points_of):
    valuer, (X, y, X_val, y_val) = problem(name, rng, n=30)
    points = {"X_val": X_val, "y_val": y_val} if points_of == "validation" else {}
    X_new = rng.integers(-2, 3, (6, 3)) / 2.0 + 0.25
    y_new = rng.choice(y, 6)
    scores = valuer.fit(X, y, **points).score_samples(X_new, y_new)
    for score, row, label in zip(scores, X_new, y_new):
        if points_of == "leave-one-out" and name.startswith("knn-regression"):
            # The prior mean stays that of the fitted rows, see the docstring.
            label = y.mean()
            score = valuer.score_samples([row], [label])[0]
        grown = clone(valuer).fit(np.r_[X, [row]], np.r_[y, label], **points)
        assert grown.values_[-1] == pytest.approx(score, abs=1e-12)


@each_exact_and_engine
def test_seen_rows_have_their_fitted_values(name, rng):
    valuer, (X, y, X_val, y_val) = problem(name, rng)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    is_same = (X[:, None] == X).all(axis=2)
    means = is_same @ valuer.values_ / is_same.sum(axis=1)
    np.testing.assert_allclose(valuer.transform(X)[:, 0], means)

    # With labels, and zeros of both signs.
    is_same &= y[:, None] == y
    means = is_same @ valuer.values_ / is_same.sum(axis=1)
    zeros = np.where(X == 0, rng.choice([-0.0, 0.0], X.shape), X)
    np.testing.assert_allclose(valuer.score_samples(zeros, y), means)


def test_copies_have_the_mean_of_their_values(rng):
    X = rng.integers(-2, 3, (200, 2)).astype(float)
    y = np.arange(200) % 3
    X[rng.random(X.shape) < 0.1] *= -0.0
    valuer = KNNShapleyValuer().fit(X, y, X_val=rng.normal(size=(20, 2)), y_val=y[:20])
    without_labels = valuer.transform(X)[:, 0]
    with_labels = valuer.score_samples(X, y)
    for row in range(200):
        is_same = (X[row] == X).all(axis=1)
        is_same_label = is_same & (y == y[row])
        assert without_labels[row] == pytest.approx(valuer.values_[is_same].mean())
        assert with_labels[row] == pytest.approx(valuer.values_[is_same_label].mean())


def distances_of(metric, X_new, X):
    if metric == "euclidean":
        return np.sqrt(((X_new[:, None] - X) ** 2).sum(axis=2))
    norms = np.maximum(np.linalg.norm(X, axis=1), 1e-9)
    return 1 - X_new @ X.T / np.outer(np.linalg.norm(X_new, axis=1), norms)


def weights_of_neighbors(valuer, distances):
    """Weights of rows among the neighbours of a point, ties at the end shared."""
    if hasattr(valuer, "radius"):
        return (distances <= valuer.radius + 1e-12).astype(float)
    limit = np.sort(distances)[valuer.n_neighbors - 1]
    is_inside = distances < limit - 1e-12
    is_tied = np.abs(distances - limit) < 1e-12
    n_left = valuer.n_neighbors - is_inside.sum()
    return is_inside + is_tied * n_left / is_tied.sum()


@pytest.mark.parametrize("name", ["knn", "tknn", "tknn-euclidean"])
def test_unknown_labels_are_averaged_by_the_labels_of_neighbors(name, rng):
    valuer, (X, y, X_val, y_val) = problem(name, rng)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    n_classes = len(valuer.classes_)
    # The last one has no row in its ball.
    X_new = np.r_[rng.integers(-2, 3, (8, 3)) / 2.0 + 0.25, [[99.0, -3, 5]]]
    by_label = np.stack(
        [valuer.score_samples(X_new, np.full(9, label)) for label in valuer.classes_],
        axis=1,
    )
    scores = valuer.score_samples(X_new)
    for i, distances in enumerate(distances_of(valuer.metric, X_new, X)):
        weights = weights_of_neighbors(valuer, distances)
        fractions = np.full(n_classes, 1 / n_classes)
        if weights.any():
            fractions = np.bincount(y, weights, minlength=n_classes) / weights.sum()
        assert scores[i] == pytest.approx(fractions @ by_label[i], abs=1e-13)


@pytest.mark.parametrize("name", ["score_samples", "transform"])
def test_a_method_of_the_rows_of_fit_alone_names_those_of_unseen_rows(name):
    assert not hasattr(DataShapleyValuer, name)
    message = f"DataShapleyValuer has no {name}.*KNNShapleyValuer"
    with pytest.raises(AttributeError, match=message):
        getattr(DataShapleyValuer(), name)


def test_float32_rows_are_found_again(rng):
    X = rng.normal(size=(20, 3)).astype(np.float32)
    y = rng.integers(0, 2, 20)
    valuer = KNNShapleyValuer().fit(X, y)
    values = valuer.transform(X.astype(np.float64))[:, 0]
    np.testing.assert_allclose(values, valuer.values_)


@pytest.mark.parametrize("from_csr", [sparse.csr_array, sparse.csc_array])
def test_sparse_rows_are_equal_however_they_are_stored(from_csr):
    """A repeated entry is a sum, and stored zeros are none."""
    data = [1.0, 2.0, 0.0, 5.0]
    columns = [0, 0, 2, 1]
    X = from_csr(sparse.csr_array((data, columns, [0, 2, 4]), shape=(2, 3)))
    stored = X.data.copy(), X.indices.copy()
    expected = row_hashes(sparse.csr_array([[3.0, 0.0, 0.0], [0.0, 5.0, 0.0]]))
    np.testing.assert_array_equal(row_hashes(X), expected)
    # The array of the user is the same as before.
    np.testing.assert_array_equal(X.data, stored[0])
    np.testing.assert_array_equal(X.indices, stored[1])
