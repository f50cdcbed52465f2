"""Games of few players: what the scripts make, run and print."""

import json

import numpy as np
import pytest

from skvalue.semivalues import tabulated_semivalue

from .scripts import of


@of("small_games_made")
def test_games_are_those_of_all_coalitions(script):
    n = 6
    party = np.arange(60) % n
    X, y, X_val, y_val = script.classification("wine", 0, 60, 40, d=4)
    data = (X, (y > 0).astype(int), X_val, (y_val > 0).astype(int))
    games = {
        "logistic": script.logistic_game(data, party, n, "accuracy"),
        "bayes": script.bayes_game(data, party, n, "accuracy"),
        "centroids": script.centroid_game(data, party, n, "accuracy"),
        "neighbours": script.neighbors_game(
            [*(rows[:n] for rows in data[:2]), *data[2:]], n, 3, "accuracy"
        ),
    }
    for name, utilities in games.items():
        assert utilities.shape == (2**n,), name
        assert ((utilities >= 0) & (utilities <= 1)).all(), name
        if name != "neighbours":  # of six rows
            assert utilities[-1] > 0.8, name


@of("small_games_made")
def test_new_games_are_others_than_those_of_tuning(script):
    assert len(script.GAMES) == 23
    assert len(script.NEW_GAMES) == 10
    assert not script.GAMES.keys() & script.NEW_GAMES.keys()
    kind, n, utilities = script.NEW_GAMES["new_known_coverage"]()
    assert (kind, n, utilities.shape) == ("known", 14, (2**14,))
    assert utilities[0] == 0
    assert 0 < utilities.max() <= 1


@of("small_games_peers")
def test_exact_values_are_those_of_an_enumeration(script, rng):
    utilities = rng.normal(size=2**7)
    values = script.shapley_values(utilities, 7)
    np.testing.assert_allclose(values, tabulated_semivalue(utilities), atol=1e-12)


@pytest.fixture
def folders(tmp_path):
    """Games of 7 players, and errors of an estimator of shapiq that are given."""
    games = tmp_path / "games"
    results = tmp_path / "results"
    games.mkdir()
    results.mkdir()
    rng = np.random.default_rng(0)
    masks = (np.arange(2**7)[:, None] >> np.arange(7)) % 2
    for name in ("one", "new_two"):
        utilities = np.tanh(masks @ rng.uniform(size=7))
        np.savez(games / f"{name}.npz", v=utilities, n=7, kind="rows")
        errors = {"SVARM|16": [0.01, 0.02], "ProxySHAP|16": [1.0, 1.0]}
        peers = {"n": 7, "kind": "rows", "spread": 0.1, "errors": errors}
        (results / f"{name}.shapiq.json").write_text(json.dumps(peers))
    return games, results


@of("small_games")
def test_the_tables_have_ratios_of_errors(script, folders, run):
    games, results = folders
    run(f"{games} {results} --seeds 2 --budgets 0 100")
    kept = json.loads((results / "one.skvalue.json").read_text())
    assert list(kept["errors"]) == ["16", "100"]
    assert max(kept["errors"]["100"]) < min(kept["errors"]["16"])

    printed = run(f"{games} {results} --table")
    line = next(line for line in printed.splitlines() if line.startswith("one "))
    _, ratio, _, error = line.split()
    expected = np.sqrt(0.015 / np.mean(kept["errors"]["16"]))
    assert float(ratio) == pytest.approx(expected, abs=0.006)
    assert float(error) > 0
    assert "games lost, no explanations" in printed
    assert printed.count("SVARM") == 1
