"""Compiled loops: nothing is compiled at run time; rows may have any layout."""

import os
import subprocess
import sys

import numpy as np
import pytest
from public_estimators import VALUERS, build_quick, each_valuer, each_with_one_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]

# Prints the CPU time of two fits, and the compilers that are imported.
FITS = """
import sys
from time import process_time
import numpy as np
from public_estimators import VALUERS, build_quick

valuer = build_quick({cls.__name__: cls for cls in VALUERS}[sys.argv[1]])
X = np.random.default_rng(0).normal(size=(40, 4))
y = np.where(X[:, 0] > 0, "yes", "no")
for _ in range(2):
    start = process_time()
    valuer.fit(X, y)
    print(process_time() - start)
print(sorted({"numba", "llvmlite"} & set(sys.modules)))
"""
# What the rows of a fit may be -> a function of them.
LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed rows": lambda X: np.ascontiguousarray(X[::-1])[::-1],
}


@pytest.mark.slow
@each_valuer
def test_a_first_fit_costs_what_a_second_one_costs(cls):
    paths = [path for path in sys.path if path]
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FITS, cls.__name__],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, compilers = result.stdout.splitlines()
    assert compilers == "[]"
    assert float(first) - float(second) <= 1.0


@pytest.mark.parametrize(("cls", "layout"), each_with_one_of(VALUERS, list(LAYOUTS)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_do_not_depend_on_the_layout_of_rows(cls, layout, dtype, rng):
    X = rng.normal(size=(40, 4)).astype(dtype)
    y = np.where(X[:, 0] > 0, "yes", "no")
    expected = build_quick(cls).fit(X, y).values_
    values = build_quick(cls).fit(LAYOUTS[layout](X), y).values_
    np.testing.assert_array_equal(values, expected)
