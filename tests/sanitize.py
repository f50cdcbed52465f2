"""Run the tests of compiled loops under bounds checks and sanitizers.

    python tests/sanitize.py [--folder FOLDER] [PYTEST_ARGUMENTS]
    python tests/sanitize.py [--folder FOLDER] --fits

Builds a copy of the package, on Linux with gcc, with Cython's bounds checks, with the
address and the undefined-behaviour sanitizer of gcc, and for the oldest processor. Runs
the tests of `TESTS` with it, or those that pytest's arguments name. Then fits every
valuer with this build and with the package that is imported, the default build: the
bits of their values must agree. Exits with 1 if a test fails, a sanitizer reports an
error, or bits differ.

All of it takes some 10 minutes of CPU time. To run it in parts, name a folder: the
build stays there and is used again, until a source is newer. Arguments of pytest leave
the fits out, and --fits leaves the tests out.

The packages of the extra test must be there, and pip must find Cython.
"""

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKS = ("boundscheck=False", "initializedcheck=False")
CFLAGS = "-O1 -g -fsanitize=address,undefined -DSKVALUE_NO_CLONES"
TESTS = [
    "tests/test_compiled.py",
    "tests/neighbors",
    "tests/linear",
    "tests/valuers/knn_shapley",
    "tests/valuers/tknn_shapley",
    "tests/games",
    "tests/derivatives/test_utilities.py",
    "tests/derivatives/test_walks.py",
    "tests/estimation/test_kernels.py",
    "tests/estimation/test_adjusting.py",
    "tests/estimation/test_controls.py",
]
# Other engines have no compiled loops of ours.
LEFT_OUT = "not torch and not faiss and not gpu and not dask"
# Numpy's own shared objects are not built with sanitizers; leaks are those of Python.
RUNTIME = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "PYTHONMALLOC": "malloc",
}
SUFFIXES = (".py", ".pyx", ".pxd")  # of sources
ERRORS = ("runtime error:", "ERROR: AddressSanitizer")


def copy_sources(folder):
    """Copy what a build needs, with bounds checks in the directives."""
    shutil.copytree(
        ROOT / "skvalue",
        folder / "skvalue",
        ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"),
    )
    for name in ("pyproject.toml", "setup.cfg", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for path in folder.rglob("*.pyx"):
        text = path.read_text(encoding="utf-8")
        for check in CHECKS:
            text = text.replace(check, check.replace("False", "True"), 1)
        path.write_text(text, encoding="utf-8")


def copy_tests(folder):
    """Copy the tests, which are not to import the package from its source."""
    shutil.rmtree(folder / "tests", ignore_errors=True)
    shutil.copytree(
        ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__")
    )


def is_built(folder):
    """Whether the folder has a build that is newer than all sources."""
    wheels = [path.stat().st_mtime for path in (folder / "wheels").glob("*.whl")]
    sources = [
        path for path in (ROOT / "skvalue").rglob("*") if path.suffix in SUFFIXES
    ]
    return bool(wheels) and wheels[0] > max(path.stat().st_mtime for path in sources)


def build(folder):
    """Build the package in the folder; returns the folder that holds it."""
    if is_built(folder):
        return folder / "built"
    for name in ("skvalue", "built", "wheels", "build"):
        shutil.rmtree(folder / name, ignore_errors=True)
    copy_sources(folder)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", "wheels", "."]
    subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"CFLAGS": CFLAGS, "CC": "gcc"},
        check=True,
    )
    [wheel] = (folder / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "built")
    shutil.rmtree(folder / "skvalue")
    return folder / "built"


def sanitizers():
    """Paths of the libraries that a process must load first."""
    paths = []
    for name in ("libasan.so", "libubsan.so"):
        command = ["gcc", f"-print-file-name={name}"]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        paths.append(found.stdout.strip())
    return " ".join(paths)


def run(command, folder, package):
    """Run a command with the package; print what it prints, and whether it passes."""
    env = os.environ | RUNTIME
    env["PYTHONPATH"] = f"{package}{os.pathsep}{folder / 'tests'}"
    if package != ROOT:
        env["LD_PRELOAD"] = sanitizers()
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    has_errors = False
    for line in process.stdout:
        print(line, end="", flush=True)
        has_errors |= any(error in line for error in ERRORS)
    return process.wait() == 0 and not has_errors


def fits():
    """Name -> a valuer, and the columns of rows that it is fitted on."""
    from public_estimators import VALUERS, build_quick
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    import skvalue

    table = {cls.__name__: build_quick(cls) for cls in VALUERS}
    models = [
        LinearRegression(),
        LogisticRegression(),
        Ridge(),
        GaussianNB(),
        KNeighborsClassifier(3),
    ]
    for model in models:
        table[f"Data Shapley of {model}"] = skvalue.DataShapleyValuer(
            model, max_evaluations=200, random_state=0
        )
    for metric in ("euclidean", "cosine", "manhattan"):
        table[f"KNN, {metric}"] = skvalue.KNNShapleyValuer(3, metric=metric)
        table[f"TKNN, {metric}"] = skvalue.TKNNShapleyValuer(0.9, metric=metric)
    return table


def write_values(path):
    """Write the bytes of the values of all fits."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    values = {}
    for name, valuer in fits().items():
        for dtype in (np.float32, np.float64):
            fitted = valuer.fit(X.astype(dtype), y)
            values[f"{name}, {np.dtype(dtype)}"] = fitted.values_.tobytes()
    Path(path).write_bytes(pickle.dumps(values))


def differing_fits(folder, package):
    """Names of fits whose values have other bits than with the default build."""
    values = []
    for number, package_of in enumerate((package, ROOT)):
        path = folder / f"values_{number}"
        code = f"import sanitize; sanitize.write_values({str(path)!r})"
        if not run(["-W", "ignore", "-c", code], folder, package_of):
            return [f"fits with the package in {package_of} fail"]
        values.append(pickle.loads(path.read_bytes()))
    ours, default = values
    assert len(ours) == len(default) > 0
    return [name for name in default if ours[name] != default[name]]


def run_tests(folder, package, arguments):
    """Run tests with the package; whether they pass without an error."""
    tests = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    passed = run([*tests, *(arguments or [*TESTS, "-k", LEFT_OUT])], folder, package)
    print("tests and sanitizers:", "no error" if passed else "ERRORS, see above")
    return passed


def compare_fits(folder, package):
    """Fit all valuers with two builds; whether their values have the same bits."""
    differing = differing_fits(folder, package)
    print("fits with other bits than the default build:", differing or "none")
    return not differing


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--fits", action="store_true")
    options, tests = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        package = build(folder)
        copy_tests(folder)
        passed = options.fits or run_tests(folder, package, tests)
        agree = bool(tests) or compare_fits(folder, package)
    return int(not (passed and agree))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main(sys.argv[1:]))
