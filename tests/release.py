"""Try the sdist and the wheel in fresh environments: `pip install uv && python
tests/release.py`.

Builds both, and installs the wheel, alone and with each extra, on every Python from
3.11 that is on the PATH, with the lowest versions that pyproject.toml allows (of those
that have wheels for that Python) and with the newest. In each environment it imports
skvalue, runs `skvalue --help`, `show_versions()`, a small fit, a small audit and a
feature of the extra. Prints the tables of doc/installation.rst, and exits with 1 if
anything failed.

Instead, `python tests/release.py suite` runs the default tier of the tests of the sdist
with the wheel, in a folder without skvalue/; `first` and `readme` run the first and all
commands of README.md in a fresh clone and environment, and print their times.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from functools import partial
from itertools import chain, product
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
ONLY_TORCH = (
    "torch==2.13.0"  # the version that the tests use: each is gigabytes to download
)
UV = [sys.executable, "-m", "uv"]

ALWAYS = """
import skvalue
from sklearn.datasets import load_iris

skvalue.show_versions()
X, y = load_iris(return_X_y=True)
data = {"X_val": X[::2], "y_val": y[::2]}
valuer = skvalue.KNNShapleyValuer().fit(X, y, **data)
assert abs(valuer.values_.sum() - (valuer.utility_ - valuer.empty_utility_)) < 1e-9
assert skvalue.audit.audit_table(X, y, random_state=0).values.shape == (150,)
"""
TORCH = "skvalue.KNNShapleyValuer(engine='torch').fit(X, y, **data)"
REPORT = """
load_iris(as_frame=True).frame.to_csv("iris.csv", index=False)
from skvalue.audit.commands import main
assert main(["audit", "iris.csv", "--target", "target", "-o", "iris.html"]) == 0
"""
FEATURES = {  # Extra -> what it is for; "" is the base alone. `suite` installs the extra test.
    "": "",
    "all": TORCH + REPORT,
    "report": REPORT,
    "plot": "skvalue.inspection.ValueDistributionDisplay(valuer.values_).plot()",
    "torch": TORCH,
    "faiss": "skvalue.KNNShapleyValuer(engine='faiss').fit(X, y, **data)",
    "secure": "import opendp\nskvalue.TKNNShapleyValuer(epsilon=1.0, delta=1e-3).fit(X, y, **data)",
    "distributed": "import dask.array\n"
    "skvalue.KNNShapleyValuer().fit(dask.array.from_array(X), y, **data)",
    "progress": "from sklearn.callback import ProgressBar\n"
    "skvalue.KNNShapleyValuer().set_callbacks(ProgressBar()).fit(X, y)",
}
NAMES = [re.match(r"[\w-]+", text).group() for text in PROJECT["dependencies"]]


def run(*command, **options):
    """What a command prints; a CalledProcessError if it fails."""
    words = command[0] if "shell" in options else [str(part) for part in command]
    return subprocess.run(
        words, check=True, text=True, **{"capture_output": True, **options}
    ).stdout


def pythons():
    """Paths of the interpreters on the PATH, one of each minor version from 3.11."""
    found = filter(None, (shutil.which(f"python3.{minor}") for minor in range(11, 30)))
    return [
        path
        for path in found
        if subprocess.run([path, "-V"], capture_output=True).stdout
    ]


def build(folder):
    """The paths of the wheel and of the sdist; the wheel is built from the sdist."""
    run(*UV, "build", "--quiet", "--out-dir", folder, ROOT)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def install(environment, python, wheel, extra, resolution):
    """A fresh environment with the wheel, an extra, and versions of dependencies."""
    pins, only = (
        environment.with_name(environment.name + end) for end in ("-pins", "-torch")
    )
    only.write_text(ONLY_TORCH)
    options = ["--quiet", "--only-binary", ":all:", "--resolution", resolution]
    extras = ["--extra", extra] if extra else []
    run(*UV, "venv", "--quiet", "--clear", "--python", python, environment)
    options += ["--python", environment]
    project = ROOT / "pyproject.toml"
    run(*UV, "pip", "compile", *options, *extras, "-c", only, project, "-o", pins)
    target = f"{wheel}[{extra}]" if extra else wheel
    run(
        *UV, "pip", "install", *options[:3], "--python", environment, target, "-r", pins
    )


def attempt(environment, extra, folder):
    """Name -> version of what is installed, after all that is tried in an
    environment."""
    # The environment of each extra has the same path, so that loops are compiled once.
    cache = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(environment) + "-cache",
        "PYTHONPATH": "",
    }
    run(environment / "bin" / "skvalue", "--help", cwd=folder, env=cache)
    code = f"{ALWAYS}\n{FEATURES[extra]}"
    printed = run(environment / "bin" / "python", "-c", code, cwd=folder, env=cache)
    return dict(re.findall(r"^([\w-]+): ([\d.]+)", printed, re.MULTILINE))


def suite(folder):
    """Run the tests of the sdist on the wheel, where there is nothing else of the
    repository."""
    wheel, sdist = build(folder)
    install(folder / "suite", sys.executable, wheel, "test", "highest")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(source / "skvalue")
    bare = {**os.environ, "PYTHONPATH": ""}
    command = [
        folder / "suite" / "bin" / "pytest",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "tests",
    ]
    return subprocess.run(command, cwd=source, env=bare).returncode


def table(rows):
    """Print rows as a simple table of reStructuredText; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    print(rule, lines[0], rule, *lines[1:], rule, "", sep="\n", flush=True)


def releases(folder):
    """Try all environments, print the tables, and return the number of failures."""
    wheel, _ = build(folder)
    ways = [(path, way) for path in pythons() for way in ("lowest-direct", "highest")]
    passed, versions, failures = Counter(), {way: {} for way in ways}, 0
    for extra, (python, resolution) in product(FEATURES, ways):
        environment = folder / f"{Path(python).name}-{resolution}"
        try:
            install(environment, python, wheel, extra, resolution)
            found = attempt(environment, extra, folder)
        except subprocess.CalledProcessError as error:
            failures += 1
            print(f"FAILED: {environment.name} [{extra}]\n{error.stderr}", flush=True)
            continue
        print(f"{environment.name} [{extra}]: {found}", file=sys.stderr, flush=True)
        passed[python, resolution] += 1
        versions[python, resolution] = found | versions[python, resolution]
    optional = sorted({*chain(*versions.values())} - {*NAMES, "python", "skvalue"})
    rows, names = (
        [["package", *(way.partition("-")[0] for _, way in ways)]],
        ["python", *NAMES],
    )
    rows += [
        [name, *(versions[way].get(name, "-") for way in ways)]
        for name in names + optional
    ]
    table([*rows, ["passed", *(f"{passed[way]} of {len(FEATURES)}" for way in ways)]])
    return failures


def readme(folder, n_commands=None):
    """Run commands of README.md in a fresh clone and environment, and print their
    seconds."""
    run("git", "clone", "--quiet", ROOT, folder / "clone")
    run(*UV, "venv", "--quiet", "--seed", folder / "fresh")
    path = f"{folder / 'fresh' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    bare = {**os.environ, "PATH": path, "PYTHONPATH": "", "MPLBACKEND": "Agg"}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in re.findall(r"^    (pip install .*)$", text, re.MULTILINE)[
        :n_commands
    ]:
        start, before = perf_counter(), os.times()
        run(command, shell=True, cwd=folder / "clone", env=bare, capture_output=False)
        cpu = sum(os.times()[2:4]) - sum(before[2:4])
        print(
            f"{perf_counter() - start:.0f} s, {cpu:.0f} s of CPU: {command}", flush=True
        )


if __name__ == "__main__":
    doings = {"environments": releases, "suite": suite, "readme": readme}
    doings["first"] = partial(readme, n_commands=1)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=doings, default="environments")
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(bool(doings[parser.parse_args().what](Path(temporary))))
