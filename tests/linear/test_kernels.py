"""Compiled fits of linear models by themselves: empty arrays, few rows, all layouts.

The oracles are numpy's solution of the normal equations, and gradients, which vanish.
"""

import numpy as np
import pytest
from skvalue.linear.dual_kernels import dual_tile
from skvalue.linear.joining_kernels import join, mean_log_losses
from skvalue.linear.linear_kernels import ridge_tile
from skvalue.linear.logistic_kernels import ONE_CLASS, SOLVED, solve_tile
from skvalue.linear.stable_kernels import primal_tile

P = 3
LAYOUTS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed rows": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "float32": lambda X: X.astype(np.float32),
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS)
each_number_of_rows = pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 30])


def some_rows(rng, n):
    """Rows that float32 holds, the last two of which are equal; weights; targets."""
    X = rng.normal(size=(n, P)).astype(np.float32).astype(np.float64)
    X[-1] = X[-2:][0]
    return X, rng.uniform(0.5, 2, n), rng.normal(size=n)


def some_coalitions(rng, n, n_masks=12):
    """Masks, the first of all rows and the last of no row, that differ by few or many
    rows from one to the next."""
    masks = rng.random((n_masks, n)) < 0.5
    masks[0] = True
    masks[1] = masks[0]
    masks[1, 0] = False
    masks[-1] = False
    return masks


# Ridge --------------------------------------------------------------------------------


def ridge(X, y, w, penalty, masks, layout="C order"):
    coefs = np.full((len(masks), P), np.nan)
    solved = ridge_tile(
        LAYOUTS[layout](X),
        y,
        w,
        penalty,
        masks,
        nearby=4,
        widest=np.inf,
        grams=np.empty((0, P * (P + 1) // 2)),
        rights=np.empty((0, P)),
        numbers=np.full(len(masks), -1),
        coefs=coefs,
    )
    return coefs, solved


@each_layout
@each_number_of_rows
def test_ridge_solves_the_normal_equations(n, layout, rng):
    X, w, y = some_rows(rng, n)
    penalty = np.array([0.5, 1.0, 2.0])
    masks = some_coalitions(rng, n)
    coefs, solved = ridge(X, y, w, penalty, masks, layout)
    assert solved.all()
    for mask, coef in zip(masks, coefs):
        weighted = X[mask] * w[mask, None]
        expected = np.linalg.solve(
            weighted.T @ X[mask] + np.diag(penalty), weighted.T @ y[mask]
        )
        np.testing.assert_allclose(coef, expected, rtol=1e-9, atol=1e-12)


def test_ridge_of_no_coalitions_is_empty(rng):
    X, w, y = some_rows(rng, 5)
    coefs, solved = ridge(X, y, w, np.ones(P), np.empty((0, 5), dtype=bool))
    assert len(coefs) == len(solved) == 0


def test_ridge_of_no_rows_solves_nothing():
    X = np.empty((0, P))
    none = np.empty(0)
    _, solved = ridge(X, none, none, np.ones(P), np.empty((2, 0), dtype=bool))
    assert not solved.any()


# Logistic regression ------------------------------------------------------------------


def logistic(X, y, w, penalty, masks, n_classes, tolerance=1e-9):
    n_vectors = n_classes if n_classes > 2 else 1
    coefs = np.zeros((len(masks), n_vectors, P))
    status = np.full(len(masks), -1, dtype=np.int64)
    solve_tile(
        X,
        y,
        w,
        scale=(w[:, None] * np.abs(X)).sum(axis=0) / max(len(X), 1),
        penalty=penalty,
        masks=masks,
        n_classes=n_classes,
        start=np.zeros(P),
        nearby=4,
        tolerance=tolerance,
        max_steps=200,
        coefs=coefs,
        status=status,
    )
    return coefs, status


def probabilities(logits):
    """Softmax, where one column is the logit of the second of two classes."""
    if logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def log_loss_gradient(X, y, w, penalty, coef):
    """Gradient by the coefficients (n_vectors, P)."""
    residuals = probabilities(X @ coef.T)
    residuals[np.arange(len(X)), y] -= 1
    residuals = residuals[:, -len(coef) :]
    return (w[:, None] * residuals).T @ X + penalty * coef


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@each_number_of_rows
def test_the_gradient_of_log_losses_vanishes(n, n_classes, rng):
    X, w, _ = some_rows(rng, n)
    y = rng.integers(0, n_classes, n)
    penalty = np.array([0.5, 1.0, 2.0])
    masks = some_coalitions(rng, n)
    X.flags.writeable = False
    coefs, status = logistic(X, y, w, penalty, masks, n_classes)
    for mask, coef, state in zip(masks, coefs, status):
        classes = np.unique(y[mask])
        if len(classes) < 2:
            assert state == ONE_CLASS
            continue
        assert state == SOLVED
        codes = np.searchsorted(classes, y[mask])
        # Two classes among several have one vector, in the row of the second one.
        present = classes if len(classes) > 2 else classes[1:]
        own = coef[present - (n_classes == 2)]
        gradient = log_loss_gradient(X[mask], codes, w[mask], penalty, own)
        np.testing.assert_allclose(gradient, 0, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("moves", ["no row", "a row of weight zero"])
def test_coalitions_that_are_alike_keep_their_optimum(moves, n_classes, rng):
    """Each is solved from the one before: errors of one may not be those of the next
    too."""
    n = 20
    X, w, _ = some_rows(rng, n)
    y = np.arange(n) % n_classes
    penalty = np.array([0.5, 1.0, 2.0])
    masks = np.ones((1000, n), dtype=bool)
    if moves == "a row of weight zero":
        w[4] = 0.0
        masks[::2, 4] = False
    coefs, status = logistic(X, y, w, penalty, masks, n_classes, tolerance=1e-6)
    assert (status == SOLVED).all()
    gradient = log_loss_gradient(X, y, w, penalty, coefs[-1])
    np.testing.assert_allclose(gradient, 0, atol=1e-7)


@pytest.mark.parametrize("n", [0, 5])
def test_logistic_regression_of_nothing_writes_nothing(n):
    X = np.zeros((n, P))
    masks = np.empty((0 if n else 2, n), dtype=bool)
    y = np.zeros(n, dtype=np.int64)
    coefs, _ = logistic(X, y, np.ones(n), np.ones(P), masks, 2)
    assert not coefs.any()


# Regularised losses with a proof ------------------------------------------------------


@each_layout
@each_number_of_rows
@pytest.mark.parametrize("is_dual", [True, False], ids=["dual", "primal"])
def test_the_gradient_of_a_penalised_sum_vanishes(is_dual, n, layout, rng):
    X, _, _ = some_rows(rng, n)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    X = X.astype(np.float32).astype(np.float64)
    t = rng.integers(0, 2, n).astype(float)
    masks = some_coalitions(rng, n)[:-1]  # these have at least a row
    masks = masks[masks.any(axis=1)]
    c = np.full(len(masks), 0.7)
    rows = LAYOUTS[layout](X)
    if is_dual:
        coefs, solved = dual_tile(rows, t, masks, c, False, 1e-10, 200)
    else:
        coefs, solved = primal_tile(rows, t, masks, c, 1e-10, 10.0, 200)
    assert solved.all()
    for mask, coef in zip(masks, coefs):
        residuals = 1 / (1 + np.exp(-X[mask] @ coef)) - t[mask]
        np.testing.assert_allclose(0.7 * X[mask].T @ residuals + coef, 0, atol=1e-8)


@pytest.mark.parametrize("is_dual", [True, False], ids=["dual", "primal"])
def test_no_coalitions_have_no_coefficients(is_dual, rng):
    X, _, _ = some_rows(rng, 4)
    masks = np.empty((0, 4), dtype=bool)
    none = np.empty(0)
    if is_dual:
        coefs, solved = dual_tile(X, np.ones(4), masks, none, False, 1e-10, 200)
    else:
        coefs, solved = primal_tile(X, np.ones(4), masks, none, 1e-10, 10.0, 200)
    assert coefs.shape == (0, P)
    assert len(solved) == 0


# Rows that join -----------------------------------------------------------------------


@each_layout
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_joining", [0, 1, 5])
@pytest.mark.parametrize("n", [3, 8, 30])
def test_the_gradient_vanishes_with_each_row_that_joins(
    n, n_joining, n_classes, layout, rng
):
    X, w, _ = some_rows(rng, n)
    y = np.arange(n) % n_classes
    new, new_w, _ = some_rows(rng, max(n_joining, 1))
    new = new[:n_joining]
    new_y = rng.integers(0, n_classes, n_joining)
    penalty = np.array([0.5, 1.0, 2.0])
    n_vectors = n_classes if n_classes > 2 else 1
    coefs = np.zeros((n_joining, n_vectors, P))
    join(
        LAYOUTS[layout](X),
        y.astype(float),
        w,
        scale=(w[:, None] * np.abs(X)).sum(axis=0) / n,
        penalty=penalty,
        coef=np.zeros((n_vectors, P)),
        inverse=np.eye(n_vectors * P),
        warm=False,
        X=LAYOUTS[layout](new),
        y=new_y.astype(float),
        w=new_w,
        tolerance=1e-9,
        max_steps=200,
        coefs=coefs,
    )
    for i in range(n_joining):
        gradient = log_loss_gradient(
            np.vstack([X, new[i : i + 1]]),
            np.append(y, new_y[i]),
            np.append(w, new_w[i]),
            penalty,
            coefs[i],
        )
        np.testing.assert_allclose(gradient, 0, atol=1e-6)


@pytest.mark.parametrize("n_rows", [0, 1, 3])
@pytest.mark.parametrize("n_points", [1, 7, 8, 9, 40])
def test_mean_log_losses_are_those_of_the_definition(n_rows, n_points, rng):
    margins = 5 * rng.normal(size=(n_rows, n_points))
    margins.flags.writeable = False
    signs = rng.choice([-1.0, 1.0], n_points)
    losses = np.empty(n_rows)
    mean_log_losses(margins, signs, losses)
    expected = np.logaddexp(0, -signs * margins).mean(axis=1)
    np.testing.assert_allclose(losses, expected, rtol=1e-10)


def test_mean_log_losses_of_no_points_are_not_written():
    losses = np.full(2, 7.0)
    mean_log_losses(np.empty((2, 0)), np.empty(0), losses)
    assert (losses == 7).all()
