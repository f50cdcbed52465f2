"""Times and costs of methods, as they are printed and saved."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from .scripts import keep, of


@pytest.fixture
def cost_curves(script, monkeypatch, run):
    """A function that runs the script of curves, and returns what it saves."""
    pytest.importorskip("matplotlib")
    keep(monkeypatch, script, "METHODS", ["KNN", "TKNN, epsilon=1", "influence"])

    def call(arguments):
        printed = run(f"{arguments} --save cost.json")
        return json.loads(Path("cost.json").read_text()), printed

    return call


@of("cost_curve", pytest.mark.slow)
def test_curves_of_cost_are_printed_saved_and_drawn(cost_curves):
    curves, printed = cost_curves("--sizes 40 80 --points 10 20 --draw cost.png")
    sizes = [cell[:2] for cell in curves["KNN"]]
    assert sizes == [[40, 10], [40, 20], [80, 10], [80, 20]]
    assert [cell[3] for cell in curves["KNN"]] == [400, 800, 800, 1600]
    assert [cell[3] for cell in curves["influence"]] == [40, 40, 80, 80]
    seconds = [cell[2] for curve in curves.values() for cell in curve]
    assert min(seconds) > 0
    assert len([line for line in printed.splitlines() if line.startswith("| ")]) == 8
    assert Path("cost.png").stat().st_size > 10_000


@of("cost_curve", pytest.mark.slow)
def test_curves_of_cost_are_merged_with_saved_ones(cost_curves):
    curves, _ = cost_curves("--sizes 40 80 --points 10 20")
    merged, _ = cost_curves("--sizes 60 --points 10 --methods KNN")
    assert [cell[0] for cell in merged["KNN"]] == [40, 40, 60, 80, 80]
    assert merged["influence"] == curves["influence"]
    # A limit that no fit keeps.
    unchanged, _ = cost_curves("--methods KNN --max-seconds 1e-9")
    assert unchanged == merged


@of("neighbor_costs")
def test_errors_of_truncation_are_within_their_bounds(script, capsys):
    script.print_truncation([600], 5, 1)
    printed = capsys.readouterr().out
    rows = re.findall(r"e-\d\d: (\d+), ([\d.e+-]+), ([\d.e+-]+); ", printed)
    ranks, bounds, errors = np.array(rows, dtype=float).T
    assert len(ranks) == 6
    assert (errors <= bounds).all()
    assert ranks.min() < 20 < ranks.max()


@of("neighbor_costs")
def test_threads_are_timed(script, capsys):
    script.print_threads(300, 70, 1)
    printed = capsys.readouterr().out
    assert len(re.findall(r"^T?KNN: [\d.]+ \[", printed, re.MULTILINE)) == 2


@of("neighbor_costs", pytest.mark.slow)
def test_processes_are_timed_in_turn(script, capsys):
    script.print_leave_one_out(None, ["wine"], 150, None, 1)
    pattern = r"^wine, 150, 13: skvalue.* [\d.]+ \["
    lines = re.findall(pattern, capsys.readouterr().out, re.MULTILINE)
    assert len(lines) == 2


@of("batched_games")
def test_batches_and_loop_train_the_same_models(run):
    printed = run("--cases centroid 'naive Bayes' --coalitions 8 --pairs 1")
    for name in ("centroid", "naive Bayes"):
        [line] = [line for line in printed.splitlines() if line.startswith(name)]
        assert line.endswith("100.0%")


@of("sampler_times", pytest.mark.slow)
def test_errors_of_samplers_are_saved(script, run, tmp_path):
    small = "--rows 40 --budgets 10 100 --seeds 3"
    run(f"--games 'ridge, R2, 200 rows' {small} --save times.json")
    saved = json.loads((tmp_path / "times.json").read_text())
    [curves] = saved["curves"].values()
    assert list(curves) == list(script.SAMPLERS)
    few, many = curves["stratified"]
    assert many[1] < few[1]
