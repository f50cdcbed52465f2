"""Numbers whose products are not finite are refused, where X or X_val hold them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from skvalue import (
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InfluenceValuer,
    InRunShapleyValuer,
    UnrolledValuer,
)

SEED = {"random_state": 0}
VALUERS = {
    "in-run": InRunShapleyValuer(**SEED),
    "in-run, raw": InRunShapleyValuer(standardize=False, learning_rate=0.1, **SEED),
    "in-run, second order": InRunShapleyValuer(order=2, **SEED),
    "gradients": GradientSemivalueValuer(n_permutations=3, **SEED),
    "gradients, raw": GradientSemivalueValuer(
        n_permutations=3, standardize=False, **SEED
    ),
    "federated": FederatedSemivalueValuer(n_rounds=3, n_permutations=4, **SEED),
    "unrolled": UnrolledValuer(n_epochs=3, **SEED),
    "unrolled, AdamW": UnrolledValuer(n_epochs=3, optimizer="adamw", **SEED),
    "influence": InfluenceValuer(),
    "influence, second order": InfluenceValuer(order=2),
}
PRIVATE = {"epsilon": 1.0, "noise_random_state": 0}


def data(regression):
    X = np.random.default_rng(0).normal(size=(70, 3))
    y = X[:, 0] if regression else (X[:, 0] > 0).astype(int)
    return X[:40], y[:40], {"X_val": X[40:], "y_val": y[40:]}


def scaled(X, columns, factor):
    X = X.copy()
    X[:, columns] *= factor
    return X


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", VALUERS)
def test_refused(name):
    valuer = VALUERS[name]
    for regression, columns, factor in [
        (False, [1], 1e100), (True, [0, 1, 2], 1e160), (False, [0, 1, 2], 1e300),
    ]:  # fmt: skip
        X, y, points = data(regression)
        large = points | {"X_val": scaled(points["X_val"], columns, factor)}
        for where, rows, given in [
            ("X", scaled(X, columns, factor), points), ("X_val", X, large),
            ("X", scaled(X, columns, factor), large), ("X", scaled(X, columns, factor), {}),
        ]:  # fmt: skip
            expected = rf"{where} must hold numbers of at most 1e\+75 in absolute value"
            with pytest.raises(ValueError, match=expected):
                valuer.fit(rows, y, **given)


@pytest.mark.parametrize(
    "name", ["in-run", "gradients", "influence", "influence, second order"]
)
def test_refused_among_rows_that_join(name):
    X, y, points = data(False)
    valuer = VALUERS[name].fit(X, y, **points)
    with pytest.raises(ValueError, match="X must hold numbers of at most"):
        valuer.score_samples(scaled(X, [0], 1e300), y)


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.parametrize("name", ["in-run", "gradients", "federated"])
def test_of_private_fits_only_the_public_points_are_checked(name):
    """An error would tell of a private row: its gradient counts as zero, or is
    clipped."""
    X, y, points = data(False)
    valuer = type(VALUERS[name])(**VALUERS[name].get_params() | PRIVATE)
    with pytest.raises(ValueError, match="X_val must hold numbers of at most 1e"):
        valuer.fit(X, y, **points | {"X_val": scaled(points["X_val"], [1], 1e300)})
    X[0, 1] = 1e300
    assert np.isfinite(valuer.fit(X, y, **points).values_).all()


@pytest.mark.parametrize("name", [name for name in VALUERS if "raw" not in name])
def test_large_numbers_below_the_limit_are_taken(name):
    """Units do not matter to valuers that standardise."""
    X, y, points = data(False)
    valuer, factor = VALUERS[name], 2.0**200
    if name.startswith("influence"):
        factor = 1.0
        with pytest.raises(ValueError, match="scale"):
            valuer.fit(X * 1e80, y, **points)
    values = valuer.fit(X, y, **points).values_
    large = valuer.fit(
        X * factor, y, X_val=points["X_val"] * factor, y_val=points["y_val"]
    )
    np.testing.assert_allclose(large.values_, values, rtol=1e-9, atol=1e-15)


def test_a_module_and_a_pipeline():
    nn = pytest.importorskip("torch").nn
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    X, y, points = data(False)
    for cls in (InRunShapleyValuer, GradientSemivalueValuer, UnrolledValuer):
        with pytest.raises(ValueError, match="X must hold numbers of at most"):
            cls(nn.Linear(3, 2)).fit(X * 1e300, y, **points)
    logs = FunctionTransformer(lambda X: np.log10(np.abs(X)) / 300)
    valuer = InfluenceValuer(make_pipeline(logs, LogisticRegression()))
    assert np.isfinite(valuer.fit(X * 1e300, y, **points).values_).all()
    grow = FunctionTransformer(lambda X: X * 1e150)
    with pytest.raises(ValueError, match="in the linear model"):
        InfluenceValuer(make_pipeline(grow, Ridge())).fit(
            X, X[:, 0], **points | {"y_val": points["X_val"][:, 0]}
        )
