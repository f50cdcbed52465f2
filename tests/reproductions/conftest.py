"""Fixtures of the tests of scripts."""

import importlib
import shlex

import numpy as np
import pytest

from .scripts import FOLDER


@pytest.fixture
def script(request, monkeypatch):
    """The module of a script, named by `of`."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module(request.param)


@pytest.fixture
def run(script, monkeypatch, tmp_path, capsys):
    """A function that runs the script in a folder of its own, with these arguments.

    It returns what the script prints, or its error.
    """

    def call(arguments=""):
        monkeypatch.chdir(tmp_path)
        words = [f"{script.__name__}.py", *shlex.split(arguments)]
        monkeypatch.setattr("sys.argv", words)
        try:
            script.main()
        except SystemExit as error:
            return f"{capsys.readouterr().err}\n{error.code}"
        return capsys.readouterr().out

    return call


@pytest.fixture(scope="session")
def two_blobs():
    """Two classes of unequal size, apart from each other; every row is unique."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [1800, 1200])
    return rng.normal(size=(3000, 3)) + 2 * y[:, None], y


@pytest.fixture
def wind(two_blobs, tmp_path):
    """A file of the data set wind, which holds two blobs."""
    X, y = two_blobs
    np.savez(tmp_path / "wind.npz", X=X, y=y)
