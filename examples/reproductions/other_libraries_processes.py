"""Runs a worker in a process for each library, and keeps what it reports."""

import datetime
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

WORKER = Path(__file__).with_name("other_libraries_worker.py")


def stamp(*names):
    """The date, the machine and versions of packages, in a line."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    versions = "".join(f", {name} {version(name)}" for name in names)
    return f"{datetime.date.today()}, {machine}{versions}."


def print_table(header, rows):
    """A simple table of reStructuredText."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    rule = "  ".join("=" * width for width in widths)
    print(rule)
    for number, row in enumerate([header, *rows]):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if not number:
            print(rule)
    print(rule + "\n")


def add_arguments(parser, names):
    """The options of a script that compares libraries; they are read by `Libraries`."""
    parser.add_argument(
        "--with",
        dest="named",
        metavar="NAME=PYTHON",
        action="append",
        default=[],
        help="the interpreter of the environment that holds a library",
    )
    parser.add_argument("--only", nargs="+", choices=names, default=list(names))
    parser.add_argument(
        "--results", metavar="FOLDER", help="where measurements are kept"
    )
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds after which to stop"
    )


def read_pythons(parser, args, names):
    """Interpreters by the name of a library."""
    pythons = {}
    for named in args.named:
        name, _, python = named.partition("=")
        if name not in names or not Path(python).is_file():
            parser.error(
                f"--with must be NAME=PYTHON, NAME one of {', '.join(names)} and "
                f"PYTHON an "
                f"interpreter. Got {named!r}."
            )
        pythons[name] = python
    return pythons


class Libraries:
    """The libraries that are there, their versions and what they answered."""

    def __init__(self, args, worker=WORKER):
        self.folder = Path(args.results)
        self.limit = args.limit
        self.worker = worker
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pythons = {}
        self.versions = []
        for name in args.only:
            python = args.pythons.get(name, sys.executable)
            code = (
                "import sys, numpy; from importlib.metadata import version;"
                f"print(version({name!r}), sys.version.split()[0], numpy.__version__)"
            )
            found = subprocess.run(
                [python, "-c", code],
                capture_output=True,
                text=True,
                env=self.environment(name),
            )
            if found.returncode:
                print(f"{name}: not installed in {python}; left out.")
            else:
                self.pythons[name] = python
                self.versions.append([name, *found.stdout.split()])

    def print_versions(self):
        print(stamp() + "\n")
        print_table(["library", "version", "Python", "NumPy"], self.versions)

    @staticmethod
    def environment(name):
        if name != "skvalue":
            return None
        root = Path(find_spec("skvalue").origin).parents[1]
        return {**os.environ, "PYTHONPATH": str(root)}

    def answers(self, name, jobs, one_process_each=False):
        """Reports of jobs, with the values under "values"; those on disk are not done
        again."""
        paths = [self.folder / f"{name}-{job['key']}.json" for job in jobs]
        todo = [
            {**job, "report": str(path)}
            for job, path in zip(jobs, paths)
            if not path.exists()
        ]
        while todo:
            batch = todo[:1] if one_process_each else todo
            (self.folder / "jobs.json").write_text(json.dumps(batch))
            ending = self.start(name)
            late = [job for job in batch if not Path(job["report"]).exists()]
            if late:  # it ended in the first of these; the like of it would end alike
                for job in late:
                    if job["parameters"] == late[0]["parameters"]:
                        Path(job["report"]).write_text(json.dumps(ending))
            todo = [job for job in todo if not Path(job["report"]).exists()]
        reports = [json.loads(path.read_text()) for path in paths]
        for path, report in zip(paths, reports):
            if path.with_suffix(".npy").exists():
                report["values"] = np.load(path.with_suffix(".npy"))
        return reports

    def start(self, name):
        """Run jobs.json in a process; the report of a job that it leaves without
        one."""
        command = [
            self.pythons[name],
            str(self.worker),
            name,
            str(self.folder / "jobs.json"),
        ]
        environment = self.environment(name)
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env=environment,
                timeout=self.limit,
            )
        except subprocess.TimeoutExpired:
            return {"stopped": self.limit}
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return {"error": f"Process: ended with code {done.returncode}. {last}"}

    def save(self, name, **arrays):
        path = self.folder / f"{name}.npz"
        np.savez(path, **arrays)
        return str(path)
