"""The script that redoes the figures: its errors, and (slow) its claims."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skvalue.collaborative import BayesianSurpriseScorer

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "reproductions" / "collaborative_figures.py"


def run(*arguments, folder="."):
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1800,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--data", ".", "--sets", "pima"],
            "--data must hold pima.npz for pima. Got '.'",
        ),
        (
            ["--runs", "1", "--sets", "syn"],
            "--runs must be at least 2, for a standard error. Got 1",
        ),
    ],
    ids=["no data", "one run"],
)
def test_wrong_arguments_are_refused(arguments, message, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("collaborative_figures", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    with pytest.raises(SystemExit, match="2"):
        script.main()
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_synthetic_figures_support_the_claims_of_the_paper(tmp_path):
    result = run(
        "--sets", "syn", "--runs", "2", "--picture", "figures.png", folder=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "syn: strictly increasing: v_2, phi_2, r_2" in result.stdout
    assert "syn: r_2 = v_N at the top: True" in result.stdout
    claim = "a power is closer than noise: True, and predicts better: True"
    assert f"syn: {claim}" in result.stdout
    assert "syn: scaling is closer than noise: " in result.stdout
    match = re.search(r"noise is ignored, by epsilon_2: (.*)", result.stdout)
    unaware_values = [float(value.split()[0]) for value in match[1].split(", ")]
    assert unaware_values[0] > 2 * unaware_values[-1]
    assert (
        "syn, power: a step of more than 0.05 in the wrong direction in 0 of 2"
        in result.stdout
    )
    assert (tmp_path / "figures.png").stat().st_size > 10_000


@pytest.mark.slow
def test_rows_of_two_classes_go_through_the_whole_script(tmp_path):
    """They are made up, but of the size of the diabetes set."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(768, 8)) @ rng.normal(size=(8, 8))
    y = (X @ rng.normal(size=8) + 3 * rng.normal(size=768) > 2).astype(int)
    np.savez(tmp_path / "pima.npz", X=X, y=y)
    result = run("--data", ".", "--sets", "pima", "--runs", "2", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    table_rows = [line for line in lines if re.match(r"\| [\d.]+ +\|", line)]
    assert len(table_rows) == 12


@pytest.mark.slow
def test_a_cell_of_the_page_is_what_the_script_prints():
    """The value of the second party of syn alone at an epsilon of 12.5: 5.07 (0.05)."""
    spec = importlib.util.spec_from_file_location("collaborative_figures", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    parts, _, party, model = script.syn(None)
    values = []
    for run_number in range(5):
        _, path = script.releases_of(parts, party, run_number)
        scorer = BayesianSurpriseScorer(model, random_state=run_number)
        values.append(scorer.fit([path[-1]]).grand_value_)
    assert np.mean(values) == pytest.approx(5.07, abs=0.05)
