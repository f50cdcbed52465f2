"""
The figures of the pages of speeds and of comparisons, in one go
================================================================

Runs every command whose output doc/performance.rst and doc/other_libraries.rst show,
one after the other:

    python rerun_pages.py FOLDER --data DATA --with pydvl=pydvl/bin/python --with
    shapiq=shapiq/bin/python

DATA is the folder of data sets that neighbor_costs.py and marginal_contributions.py
read; without it these are left out. The environments of other libraries are those of
doc/other_libraries.rst; a library that is not named is looked for in this one, and left
out with a line that says so if it is not there. Each command writes what it prints to a
file in FOLDER, below the date, the machine and the versions; a command whose file is
there already is not run again. Times are ratios within one run, or CPU seconds; nothing
else should run beside it. `--only` takes some of the commands, `--list` shows them. The
comparison with all estimators of shapiq takes days of computation and resumes by
itself: small_games.py.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from other_libraries_processes import stamp

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = ["skvalue", "numpy", "scipy", "scikit-learn", "torch", "faiss-cpu"]
PEERS = {
    "other_libraries": [
        "pydvl",
        "opendataval",
        "shapiq",
        "cleanlab",
        "dattri",
        "datascope",
    ],
    "other_libraries_influence": ["pyinfluence", "pydvl", "dattri"],
}


def script(name, *options):
    """A command that runs a script of this folder."""
    return [sys.executable, str(HERE / f"{name}.py"), *options]


def benchmarks(*options):
    """A command that runs tests/benchmarks, or a file of it, and prints its figures."""
    return [sys.executable, "-m", "pytest", "-n", "0", "-s", *options]


# Name of the file of output -> command.
COMMANDS = {
    "benchmarks": benchmarks("tests/benchmarks", "-m", "bench and not slow"),
    "memory": benchmarks("tests/benchmarks/test_memory.py", "-m", "slow"),
    "ten_million": benchmarks("tests/benchmarks/test_neighbors.py", "-m", "slow"),
    "neighbor_costs": script("neighbor_costs"),
    "marginal_contributions": script("marginal_contributions", "--large", "5"),
    "other_libraries": script("other_libraries", "--limit", "120"),
    "other_libraries_influence": script("other_libraries_influence"),
}


# What benchmarks ask the environment for: variable -> library.
INTERPRETERS = {"SKVALUE_PEERS_PYTHON": "pydvl", "SKVALUE_SHAPIQ_PYTHON": "shapiq"}
# These read data sets from a folder.
NEED_DATA = ("neighbor_costs", "marginal_contributions")


def with_peers(name, command, named):
    """The command with the interpreters of those libraries that it compares."""
    for option in named:
        library, _, python = option.partition("=")
        if library in PEERS.get(name, []):
            command = [*command, "--with", option]
        elif name == "neighbor_costs" and library == "cleanlab":
            command = [*command, "--cleanlab", python]
    return command


def environment(named):
    """The environment with the interpreters that benchmarks compare with."""
    pythons = dict(option.split("=", 1) for option in named)
    found = {
        variable: str(Path(pythons[library]).absolute())
        for variable, library in INTERPRETERS.items()
        if library in pythons
    }
    return {**os.environ, **found}


def run(name, command, folder, env):
    """Run a command unless its output is there; return what to say of it."""
    path = folder / f"{name}.txt"
    if path.exists():
        return "is there already"

    # What is printed so far can be read while the command runs; the name says that it
    # is not whole.
    started = path.with_suffix(".started.txt")
    start = time.perf_counter()
    with started.open("w") as output:
        output.write(f"{stamp(*PACKAGES)}\n$ {shlex.join(command)}\n\n")
        output.flush()
        done = subprocess.run(
            command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT
        )
    seconds = time.perf_counter() - start

    if done.returncode:
        started.replace(path.with_suffix(".failed.txt"))
        return f"failed with code {done.returncode} after {seconds:.0f} s"
    started.replace(path)
    return f"{seconds:.0f} s"


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where outputs are written")
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--list", action="store_true", help="show the commands")
    parser.add_argument(
        "--with",
        dest="named",
        metavar="NAME=PYTHON",
        action="append",
        default=[],
        help="the interpreter of the environment that holds a library",
    )
    return parser.parse_args(arguments)


def main():
    args = parse_arguments()
    args.folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in args.only:
        command = with_peers(name, COMMANDS[name], args.named)
        if name in NEED_DATA:
            if args.data is None:
                print(f"{name}: left out, it needs --data")
                continue
            command = [*command, "--data", str(args.data.resolve())]
        if args.list:
            print(f"{name}: {shlex.join(command)}")
            continue
        said = run(name, command, args.folder, environment(args.named))
        failed |= said.startswith("failed")
        print(f"{name}: {said}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
