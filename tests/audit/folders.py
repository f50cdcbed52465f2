"""Commands of several people, each in a folder and a process of its own."""

import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).parents[2]


def run_command(folder, words, fresh):
    """The exit code and what a command prints, run in a folder by another process.

    `fresh` starts an interpreter; otherwise the process is a fork of this one.
    """
    if fresh:
        done = subprocess.run(
            [sys.executable, "-m", "skvalue", *words],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_run_here, args=(folder, words, queue))
    process.start()
    result = queue.get(timeout=60)
    process.join()
    return result


def _run_here(folder, words, queue):
    """Run a command in this process, which is a fork, and send back what it printed."""
    import contextlib
    import io

    from tests.audit.command_line import command

    os.chdir(folder)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = command(words)
    queue.put((code, printed.getvalue()))


class People:
    """Folders of people by name, who run commands and send each other files."""

    def __init__(self, folder, names, fresh):
        self.folders = {name: folder / name for name in names}
        self.fresh = fresh
        for path in self.folders.values():
            path.mkdir()

    def run(self, name, line):
        """Run a line of a person's; returns what is printed."""
        code, printed = run_command(self.folders[name], line.split(), self.fresh)
        assert code == 0, printed
        return printed

    def send(self, sender, path, receiver):
        """Copy a file or folder to another person's folder."""
        source = self.folders[sender] / path
        target = self.folders[receiver] / source.name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)

    def write_table(self, name, path, columns):
        """Write columns by name as a .csv file in a person's folder."""
        lines = [",".join(columns)]
        for row in zip(*columns.values()):
            lines.append(",".join(map(str, row)))
        (self.folders[name] / path).write_text("\n".join(lines) + "\n")


def patients(rng, n, flipped=False):
    """Columns of n patients: an age in years, a length in metres, and who is cured."""
    age = rng.normal(50, 10, n).round(3)
    metres = rng.normal(1.7, 0.1, n).round(3)
    is_cured = rng.normal(size=n) + (age - 50) / 5 > 0
    cured = np.where(is_cured ^ flipped, "yes", "no")
    return {"age": age, "metres": metres, "cured": cured}
