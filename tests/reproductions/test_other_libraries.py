"""Comparisons with other libraries: skvalue's own part, which needs none of them."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from .scripts import of


def rows_of(printed, name="skvalue"):
    """Rows of a library after its version."""
    rows = [re.split("  +", line.strip()) for line in printed.splitlines()]
    return [row for row in rows if row[0] == name][1:]


@pytest.fixture
def in_this_process(script, monkeypatch):
    """The process of a library is replaced by a call of its worker."""
    worker = importlib.import_module("other_libraries_worker")

    def start(self, name):
        return worker.main(name, self.folder / "jobs.json")

    monkeypatch.setattr(script.Libraries, "start", start)


SIZES = "--games 1 --balls 60 --sizes 300,20 --limit 200 --results results"


@of("other_libraries")
@pytest.mark.usefixtures("in_this_process")
def test_skvalue_is_compared_with_exact_values(script, monkeypatch, run):
    """A library that is not installed is left out by a line."""
    monkeypatch.setattr(script, "NEIGHBOURS", [1, 20])
    arguments = f"--only skvalue datascope --parts games balls speed {SIZES}"
    printed = run(arguments)
    assert re.search("datascope: not installed in .*; left out.", printed)
    rows = rows_of(printed)
    games = rows[:4]
    assert [row[1] for row in games] == [
        "original",
        "soft",
        "original, leave-one-out",
        "ball",
    ]
    for row in games:
        assert row[2] == "yes"
        assert max(map(float, row[3:])) < 1e-14
    balls = rows[4:6]
    assert [row[1] for row in balls] == ["60", "60"]
    for row in balls:
        assert float(row[3]) < 1e-14
        assert row[4] == "100.0%"
    speed = rows[6:]
    assert [row[1] for row in speed] == ["K = 10", "K = 1", "leave-one-out"]
    for row in speed:
        assert float(row[2]) > 0
        low, _, high = row[3].split()
        assert float(low) <= float(row[2]) <= float(high)
        assert row[4] == "1.0"
        assert float(row[6]) > 0.6
        assert float(row[8]) < 1e-13

    # What is on disk is not done again.
    monkeypatch.setattr(script.Libraries, "start", None)
    assert run(arguments) == printed


@of("other_libraries")
def test_skvalue_does_what_users_of_other_libraries_expect(script):
    expectations = importlib.import_module("other_libraries_expectations").EXPECTATIONS
    asked = {name: list(answers) for name, answers in expectations.items()}
    assert asked == dict.fromkeys(script.METHODS, script.WANTED)
    answers = [ask() for ask in expectations["skvalue"].values()]
    assert answers == ["yes"] * 6


@of("other_libraries")
def test_libraries_are_stopped_at_the_limit(run):
    rows = rows_of(run("--only skvalue --parts balls --balls 30 --limit 0.01"))
    assert [row[3] for row in rows] == ["> 0.01 s"] * 2


@of("other_libraries", pytest.mark.slow)
def test_a_library_that_cannot_be_imported_is_reported(
    script, monkeypatch, tmp_path, run
):
    monkeypatch.setattr(script, "WANTED", ["sparse"])
    monkeypatch.setattr(script.Libraries, "environment", lambda *_: {"PYTHONPATH": "."})
    folder = tmp_path / "pydvl-0.10.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: pydvl\nVersion: 0.10\n")
    printed = run("--only pydvl --parts users")
    assert re.search("^ *pydvl +0.10", printed, re.MULTILINE)
    assert "[1] ModuleNotFoundError: No module named 'pydvl'" in printed
    assert "ModuleNotFoundError [1]" in printed


@of("other_libraries")
@pytest.mark.parametrize("k", [1, 3, 9])
def test_exact_values_of_neighbors_are_those_of_the_game(script, k):
    X, y, X_val, y_val = script.draw(7, 3, 2, seed=0)
    utility = ("original", k)
    values = script.exact_knn_values(X, y, X_val, y_val, k)
    expected = script.game_values(utility, X, y, X_val, y_val)
    np.testing.assert_allclose(values, expected, atol=1e-14)
    values = script.exact_knn_values(X, y, X, y, k, itself=True)
    expected = script.values_by_each_other(utility, X, y)
    np.testing.assert_allclose(values, expected, atol=1e-14)


@of("other_libraries")
def test_exact_values_of_balls_are_those_of_the_game(script):
    X, y, X_val, y_val = script.draw(7, 3, 2, seed=0)
    values, n_inside = script.exact_ball_values(X, y, X_val, y_val, 1.2)
    assert 1 < n_inside.max() < 7
    expected = script.game_values(("ball", 1.2), X, y, X_val, y_val)
    np.testing.assert_allclose(values, expected, atol=1e-14)


@of("other_libraries_influence")
def test_influence_is_compared_where_others_are_left_out(script, monkeypatch, run):
    def start(name, python, folder):  # in this process
        if name == "skvalue":
            return script.work(name, Path(folder))
        return "ModuleNotFoundError: no"

    monkeypatch.setattr(script, "start", start)
    printed = run("--rows 40 --columns 2 --points 10 --subsets 5")
    ours, *others = printed.splitlines()[-4:]
    name, _, error, *_ = ours.split()
    assert (name, error) == ("skvalue", "0e+00")
    names = ("pyinfluence", "pydvl", "dattri")
    left_out = [f"{name}: left out" for name in names]
    assert [line.split(".")[0] for line in others] == left_out


@of("table_checks_peers")
def test_reports_of_peers_are_counted(script, monkeypatch, run):
    worker = importlib.import_module("table_checks_worker")
    reports = iter(
        [
            [("leak", ["x"], [])],
            [("id", ["case"], []), ("equal rows", [], range(6))],
        ]
    )
    monkeypatch.setitem(worker.BY, "skvalue", lambda frame: next(reports))

    def start(self, name):  # in this process
        worker.main(name, self.folder / "jobs.json", run=worker.run)

    monkeypatch.setattr(script.Libraries, "start", start)
    printed = run("--only skvalue --sets wine")
    rates = dict(re.findall(r"^([a-z ,:]+?)  +([\d.]+)$", printed, re.MULTILINE))
    assert rates["column that numbers the rows"] == "1.00"
    assert rates["column filled in later"] == rates["missing labels"] == "0.00"
    assert rates["twelve rows entered twice"] == "0.25"
    assert rates["as they are: reports a table"] == "1.0"
