"""The script that redoes the paper's figures: its Algorithm 1, its noise, its words."""

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


# Algorithm 1 --------------------------------------------------------------------------

# So few rows that the printed numbers ask for every coalition.
N_ROWS = 6


@pytest.fixture
def algorithm_1(script, rng, monkeypatch):
    """A problem, and values by all coalitions and by those that are kept."""
    monkeypatch.setattr(script, "N", N_ROWS)
    problem = unrelated(rng, N_ROWS, 20)
    values, kept_values = script.algorithm_1(
        *problem.rows, problem.points, "neg_log_loss", 0
    )
    return problem, values, kept_values


def test_algorithm_1_with_all_coalitions_is_layered_shapley(algorithm_1):
    # But for layer 0, which the algorithm leaves out.
    problem, values, _ = algorithm_1
    valuer = problem.fit(LayeredShapleyValuer(scoring="neg_log_loss", tol=1e-4))
    expected = valuer.values_ - valuer.layer_values_[0]
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_algorithm_1_keeps_coalitions_better_than_chance(algorithm_1):
    problem, values, kept_values = algorithm_1
    estimator = LogisticRegression()
    game = ModelGame(estimator, *problem, scoring="neg_log_loss", random_state=0)

    def utility(rows):
        return game.utility(np.isin(np.arange(N_ROWS), rows)[None])[0]

    expected = np.zeros(N_ROWS)
    for i in range(N_ROWS):
        others = np.delete(np.arange(N_ROWS), i)
        for k in range(1, N_ROWS):
            for rows in combinations(others, k):
                before = utility(rows)
                if before >= -np.log(2):
                    gain = utility((*rows, i)) - before
                    expected[i] += gain / comb(N_ROWS - 1, k) / N_ROWS
    np.testing.assert_allclose(kept_values, expected, atol=1e-12)
    assert np.abs(kept_values - values).max() > 1e-3


# Noise and correlations ---------------------------------------------------------------


def test_the_noise_of_theorem_3_5_is_as_printed(script):
    k = np.arange(1, 100)
    counts = 0.5**2 / (2 * 0.05**2 * k**2) * np.log(2 * 100 / 0.05)
    p = 0.5**2 * np.log(100) / (2 * 0.05**2 * 100) * np.log(100 / 0.05)
    assert p == pytest.approx(17.5, abs=0.05)
    expected = (counts / k).sum() / counts.sum() / np.log((np.e - 1) / p + 1)
    assert script.scale_of(("Theorem 3.5", False), 1.0) == pytest.approx(expected)


def test_the_noise_of_appendix_d_is_not_amplified(script):
    # With p = 1.
    expected = (1 / np.arange(1, 100)).sum() / 100
    assert script.scale_of(("Appendix D", True), 3.0) == pytest.approx(9 * expected)


def test_rank_correlations_are_those_of_scipy(script, rng):
    values = rng.normal(size=100)
    draws = rng.normal(size=(4, 100))
    expected = [spearmanr(values, draw).statistic for draw in draws]
    np.testing.assert_allclose(script.rank_correlations(values, draws), expected)


# The script ---------------------------------------------------------------------------


def test_data_from_openml_are_scaled_and_one_hot(script, monkeypatch):
    frame = pandas.DataFrame(
        {"age": [20.0, 30, 40], "work": ["a", "b", None], "sex": list("mfm")}
    )
    bunch = Bunch(data=frame, target=pandas.Series(["<=50K", ">50K", "<=50K"]))
    monkeypatch.setattr(script, "fetch_openml", lambda **kwargs: bunch)
    X, y, center = script.load("adult", None, None)
    assert X.tolist() == [[0, 0, 1, 0, 0, 1], [0.5, 0, 0, 1, 1, 0], [1, 1, 0, 0, 0, 1]]
    assert y.tolist() == [0, 1, 0]
    np.testing.assert_allclose(center, [1 / 2, 1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--data", ".", "--sets", "diabetes"],
            "--data must hold pima.npz for diabetes. Got '.'",
        ),
        (["--seeds", "1"], "--seeds must be at least 2, for a standard error. Got 1"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    script, monkeypatch, capsys, arguments, message
):
    monkeypatch.setattr(sys, "argv", ["layered_figures.py", *arguments])
    with pytest.raises(SystemExit, match="2"):
        script.main()
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_high_values_matter_and_published_noise_drowns_them(
    script, monkeypatch, capsys
):
    arguments = ["--sets", "synthetic", "--seeds", "3"]
    monkeypatch.setattr(sys, "argv", ["layered_figures.py", *arguments])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if line.startswith("Algorithm 1, highest")]
    assert float(line.split()[-3]) < -0.05
    title = "Rank correlation of published private values with exact ones: step by step"
    first = lines.index(title) + 2
    correlations = [
        float(line.split("(")[0].split()[-1]) for line in lines[first : first + 5]
    ]
    # The mean of layers, or a probability of 19.
    assert max(map(abs, correlations[:3])) < 0.15
    assert correlations[4] > correlations[3] > 0.1
