"""Compiled loops: nothing is compiled at run time; rows may have any layout."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from public_estimators import VALUERS, build_quick, each_with_one_of, estimators
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

import skvalue

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]

# Prints the CPU time of two fits, and the compilers that are imported.
FITS = """
import sys
from time import process_time
import numpy as np

X = np.random.default_rng(0).normal(size=(40, 4)) / 4
y = (X[:, 0] > 0).astype(int)
{prepare}
for _ in range(2):
    start = process_time()
    {fit}
    print(process_time() - start)
print(sorted({{"numba", "llvmlite"}} & set(sys.modules)))
"""
# The estimator alone is imported, with what its module imports.
OF_ROWS = """
import pickle
estimator = pickle.loads({!r})
"""
# Estimators of whole data sets: what is before the fit, and the fit.
OF_DATA_SETS = {
    "PriArTaScorer": (
        "from skvalue.priarta import PriArTaScorer",
        "PriArTaScorer(max_norm=8.0).fit(X)",
    ),
    "SellerRelease": (
        "from skvalue.priarta import PriArTaScorer, SellerRelease\n"
        "model = PriArTaScorer(max_norm=8.0).fit(X).model_",
        "SellerRelease(model, 0.8).fit(X)",
    ),
    "GramRelease": (
        "from skvalue.collaborative import GramRelease",
        "GramRelease(None, renyi_epsilon=0.3, noise_random_state=0).fit(X, y / 4)",
    ),
    "BayesianSurpriseScorer": (
        "from skvalue.collaborative import (\n"
        "    BayesianLinear, BayesianSurpriseScorer, GramRelease\n"
        ")\n"
        "model = BayesianLinear(\n"
        "    0.1, a0=20, b0=0.5, x_covariance=0.06 * np.eye(4)\n"
        ")\n"
        "released = [\n"
        "    GramRelease(None, renyi_epsilon=0.3, noise_random_state=seed)\n"
        "    .fit(X[seed:], y[seed:] / 4).release_ for seed in range(3)\n"
        "]",
        "BayesianSurpriseScorer(\n"
        "        model, n_particles=40, min_ess=1, random_state=0\n"
        "    ).fit(released)",
    ),
}
FIRST_FITS = {
    cls.__name__: (
        OF_ROWS.format(pickle.dumps(build_quick(cls))),
        "estimator.fit(X, y)",
    )
    for cls in estimators()
} | OF_DATA_SETS
# What the rows of a fit may be -> a function of them.
LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed rows": lambda X: np.ascontiguousarray(X[::-1])[::-1],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST_FITS)
def test_a_first_fit_costs_what_a_second_one_costs(name):
    prepare, fit = FIRST_FITS[name]
    code = FITS.format(prepare=prepare, fit=fit)
    paths = [path for path in sys.path if path]
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, compilers = result.stdout.splitlines()
    more = float(first) - float(second)
    print(f"{name}: the first fit takes {more:.2f} s of CPU time more than the second")
    assert compilers == "[]"
    assert more <= 1.0


@pytest.mark.parametrize(("cls", "layout"), each_with_one_of(VALUERS, list(LAYOUTS)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_do_not_depend_on_the_layout_of_rows(cls, layout, dtype, rng):
    X = rng.normal(size=(40, 4)).astype(dtype)
    y = np.where(X[:, 0] > 0, "yes", "no")
    expected = build_quick(cls).fit(X, y).values_
    values = build_quick(cls).fit(LAYOUTS[layout](X), y).values_
    np.testing.assert_array_equal(values, expected)


# Models whose coalitions compiled loops fit.
MODELS = [
    LinearRegression(),
    Ridge(),
    LogisticRegression(),
    GaussianNB(),
    KNeighborsClassifier(3),
    NearestCentroid(),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_by_models_do_not_depend_on_the_layout_of_rows(
    model, layout, dtype, rng
):
    X = rng.normal(size=(30, 3)).astype(dtype)
    y = (X[:, 0] > 0).astype(int)
    options = {"max_evaluations": 120, "random_state": 0}
    expected = skvalue.DataShapleyValuer(model, **options).fit(X, y)
    valuer = skvalue.DataShapleyValuer(model, **options).fit(LAYOUTS[layout](X), y)
    np.testing.assert_array_equal(valuer.values_, expected.values_)


# One byte, two and four hold the codes of so many classes.
@pytest.mark.parametrize("n_classes", [3, 300, 70_000])
@pytest.mark.parametrize(
    "valuer",
    [
        skvalue.KNNShapleyValuer(3, utility="original", task="classification"),
        skvalue.KNNShapleyValuer(
            3, utility="original", task="classification", semivalue="banzhaf"
        ),
        skvalue.KNNShapleyValuer(
            3, utility="original", task="classification", max_rank=20
        ),
    ],
    ids=["Shapley", "Banzhaf", "nearest ranks"],
)
def test_values_do_not_depend_on_the_type_of_codes(valuer, n_classes, rng):
    n = n_classes + 50
    X = rng.normal(size=(n, 2)).astype(np.float32)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, 2, 50)])
    X_val = rng.normal(size=(4, 2)).astype(np.float32)
    y_val = np.zeros(4, dtype=int)
    values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    # Classes that no validation point has are one.
    merged = np.minimum(y, 1)
    expected = valuer.fit(X, merged, X_val=X_val, y_val=y_val).values_
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-15)
