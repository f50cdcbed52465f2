"""The script that redoes the paper's figures: its own Algorithm 1, its noise, and its
words."""

import importlib
import sys
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pandas
import pytest
from problems import unrelated
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from skvalue import LayeredShapleyValuer
from skvalue.games import ModelGame

REPRODUCTIONS = Path(__file__).resolve().parents[3] / "examples" / "reproductions"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(REPRODUCTIONS)
    return importlib.import_module("layered_figures")


def test_algorithm_1(script, rng, monkeypatch):
    # So few rows that the printed numbers ask for every coalition.
    n = 6
    monkeypatch.setattr(script, "N", n)
    X, y, *_ = problem = unrelated(rng, n, 20)
    of_all, kept = script.algorithm_1(X, y, problem.points, "neg_log_loss", 0)
    library = problem.fit(LayeredShapleyValuer(scoring="neg_log_loss", tol=1e-4))
    np.testing.assert_allclose(
        of_all, library.values_ - library.layer_values_[0], atol=1e-12
    )
    game = ModelGame(
        LogisticRegression(), *problem, scoring="neg_log_loss", random_state=0
    )

    def utility(rows):
        return game.utility(np.isin(np.arange(n), rows)[None])[0]

    expected = np.zeros(n)
    for i in range(n):
        for k in range(1, n):
            for rows in combinations(np.delete(np.arange(n), i), k):
                before = utility(rows)
                gain = (utility((*rows, i)) - before) if before >= -np.log(2) else 0.0
                expected[i] += gain / comb(n - 1, k) / n
    np.testing.assert_allclose(kept, expected, atol=1e-12)
    assert np.abs(kept - of_all).max() > 1e-3


def test_noise_and_correlations(script, rng):
    k = np.arange(1, 100)
    counts = 0.5**2 / (2 * 0.05**2 * k**2) * np.log(2 * 100 / 0.05)
    p = 0.5**2 * np.log(100) / (2 * 0.05**2 * 100) * np.log(100 / 0.05)
    assert p == pytest.approx(17.5, abs=0.05)
    theorem = (counts / k).sum() / counts.sum() / np.log((np.e - 1) / p + 1)
    assert script.scale_of(("Theorem 3.5", False), 1.0) == pytest.approx(theorem)
    appendix = (1 / k).sum() / 100  # with p = 1: no amplification
    assert script.scale_of(("Appendix D", True), 3.0) == pytest.approx(9 * appendix)
    values, draws = rng.normal(size=100), rng.normal(size=(4, 100))
    expected = [spearmanr(values, draw).statistic for draw in draws]
    np.testing.assert_allclose(script.rank_correlations(values, draws), expected)


def test_data_from_openml(script, monkeypatch):
    frame = pandas.DataFrame(
        {"age": [20.0, 30, 40], "work": ["a", "b", None], "sex": list("mfm")}
    )
    bunch = Bunch(data=frame, target=pandas.Series(["<=50K", ">50K", "<=50K"]))
    monkeypatch.setattr(script, "fetch_openml", lambda **kwargs: bunch)
    X, y, centre = script.load("adult", None, None)
    assert X.tolist() == [[0, 0, 1, 0, 0, 1], [0.5, 0, 0, 1, 1, 0], [1, 1, 0, 0, 0, 1]]
    assert y.tolist() == [0, 1, 0]
    np.testing.assert_allclose(centre, [1 / 2, 1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2])


def test_says_what_is_missing(script, monkeypatch, capsys):
    for arguments, message in [
        (
            ["--data", ".", "--sets", "diabetes"],
            "--data must hold pima.npz for diabetes. Got '.'",
        ),
        (["--seeds", "1"], "--seeds must be at least 2, for a standard error. Got 1"),
    ]:
        monkeypatch.setattr(sys, "argv", ["layered_figures.py", *arguments])
        with pytest.raises(SystemExit, match="2"):
            script.main()
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_high_values_matter_and_published_noise_drowns_them(
    script, monkeypatch, capsys
):
    monkeypatch.setattr(
        sys, "argv", ["layered_figures.py", "--sets", "synthetic", "--seeds", "3"]
    )
    script.main()
    printed = capsys.readouterr().out.splitlines()
    gaps = [
        float(x.split()[-3]) for x in printed if x.startswith("Algorithm 1, highest")
    ]
    assert len(gaps) == 1
    assert gaps[0] < -0.05
    title = "Rank correlation of published private values with exact ones: step by step"
    steps = printed[printed.index(title) + 2 :][:5]
    found = [float(step.split("(")[0].split()[-1]) for step in steps]
    assert max(map(abs, found[:3])) < 0.15  # the mean of layers, or a chance of 19
    assert found[4] > found[3] > 0.1
