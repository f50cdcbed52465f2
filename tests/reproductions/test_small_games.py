"""Games of few players: what the scripts make, run and print."""

import json
from dataclasses import replace

import numpy as np
import pytest

from skvalue import game_values
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


@of("small_games_made")
def test_votes_of_neighbours_of_parties_are_those_of_their_rows(script, rng):
    X = rng.normal(size=(6, 2))
    X_val = rng.normal(size=(20, 2))
    data = (X, np.arange(6) % 2, X_val, np.arange(20) % 2)
    party = np.array([0, 1, 1, 2, 0, 2])
    of_rows = script.neighbors_game(data, 6, 3, "accuracy")
    of_parties = script.neighbors_game(data, 3, 3, "accuracy", party)
    for code in range(2**3):
        is_row = (code >> party) % 2 == 1
        rows = (2 ** np.flatnonzero(is_row)).sum()
        assert of_parties[code] == of_rows[rows]


@of("small_games_made")
def test_fresh_games_are_made_from_a_folder(script, run, rng, tmp_path):
    assert len(script.FRESH_GAMES) == 8
    assert not script.FRESH_GAMES.keys() & (script.GAMES | script.NEW_GAMES).keys()
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    np.savez(tmp_path / "pima.npz", X=X.astype(np.float32), y=y)
    name = "fresh_bayes_pima_rows"
    assert f"{name} is no game" in run(f"made {name}")
    run(f"made {name} --data {tmp_path}")
    made = np.load(tmp_path / "made" / f"{name}.npz")
    assert (str(made["kind"]), int(made["n"])) == ("rows", 14)
    assert made["v"].shape == (2**14,)
    # No rows give both classes equal probabilities.
    assert made["v"][0] == pytest.approx(np.log(0.5))


@of("small_games_peers")
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf"])
def test_exact_values_are_those_of_an_enumeration(script, rng, semivalue):
    utilities = rng.normal(size=2**7)
    values = script.exact_values(utilities, 7, semivalue)
    expected = tabulated_semivalue(utilities, semivalue)
    np.testing.assert_allclose(values, expected, atol=1e-12)


@of("small_games_peers")
def test_votes_of_many_rows_have_closed_form_values(script):
    game = script.Votes()
    # The same votes, of the first nine rows alone.
    n = 9
    game.n_players = n
    is_first = game.order < n
    game.order = game.order[is_first].reshape(-1, n)
    game.is_right = game.is_right[is_first].reshape(-1, n)
    masks = (np.arange(2**n)[:, None] >> np.arange(n)) % 2
    expected = tabulated_semivalue(game(masks), "shapley")
    np.testing.assert_allclose(game.shapley_values(), expected, atol=1e-12)
    assert game.count == 2**n


@of("small_games_auto")
@pytest.mark.parametrize("game", ["Votes", "Towns"])
def test_games_of_many_players_have_closed_form_values(script, game):
    played = getattr(script, game)(8)
    masks = (np.arange(2**8)[:, None] >> np.arange(8)) % 2 == 1
    expected = tabulated_semivalue(played(masks), "shapley")
    np.testing.assert_allclose(played.values(), expected, atol=1e-9)


@of("small_games_auto")
def test_the_process_pays_from_a_cost_of_a_fit_on(script, monkeypatch, run, tmp_path):
    cell = {"ratio": 3.0, "seconds": 0.8}
    cost = script.cost_of_a_fit(cell, 100)
    # In the time of the process there are as many more coalitions.
    n_more = cell["seconds"] / cost
    assert 3.0 / np.sqrt((100 + n_more) / 100) == pytest.approx(1.0)
    assert script.cost_of_a_fit({"ratio": 0.9, "seconds": 0.8}, 100) == np.inf

    monkeypatch.setattr(script, "PLAYERS", (5, 6))
    printed = run(f"--seeds 1 --most 14 --save {tmp_path / 'auto.json'}")
    assert "exact" in printed
    kept = json.loads((tmp_path / "auto.json").read_text())
    assert set(kept) == {"5|7", "5|12", "6|8", "6|14"}


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
    *_, after = printed.partition("Games lost")
    assert "SVARM" not in after.partition("Error of each")[0]
    assert after.count("SVARM") == 1

    # An estimator that is better than the process is named with its ratio.
    peers = json.loads((results / "one.shapiq.json").read_text())
    peers["errors"]["SVARM|16"] = [kept["errors"]["16"][0] / 4] * 2
    (results / "one.shapiq.json").write_text(json.dumps(peers))
    printed = run(f"{games} {results} --table")
    *_, after = printed.partition("Games lost")
    lost = after.partition("Error of each")[0].splitlines()
    (line,) = [line for line in lost if line.endswith("SVARM")]
    name, ratio, _, _, _ = line.split()
    assert name == "one"
    assert float(ratio) < 1


@of("small_games")
def test_fresh_games_have_a_line_of_their_own(folders, run):
    games, results = folders
    for kind in ("npz", "shapiq.json"):
        folder = games if kind == "npz" else results
        (folder / f"one.{kind}").rename(folder / f"fresh_one.{kind}")
    run(f"{games} {results} --seeds 2 --budgets 0")
    lines = run(f"{games} {results} --table").splitlines()
    ratio = {}
    for start in ("fresh_one", "fresh, data games", "new_two", "new, data games"):
        (line,) = [line for line in lines if line.startswith(start + " ")]
        ratio[start] = line.removeprefix(start).split()[0]
    assert ratio["fresh, data games"] == ratio["fresh_one"]
    assert ratio["new, data games"] == ratio["new_two"]
    assert not [line for line in lines if line.startswith("tuned, data games")]


@of("small_games")
def test_more_seeds_are_added_to_those_that_were_run(folders, run, script):
    games, results = folders
    kept = []
    for seeds in (1, 3):
        run(f"{games} {results} --seeds {seeds} --budgets 40 --games one")
        kept.append(json.loads((results / "one.skvalue.json").read_text()))
    first, more = kept
    assert [len(x["errors"]["40"]) for x in kept] == [1, 3]
    assert more["errors"]["40"][0] == first["errors"]["40"][0]
    assert more["covered"]["40"][0] == first["covered"]["40"][0]
    assert more["seconds"]["40"] > 0


@of("small_games")
def test_ratios_of_one_seed_have_the_mean_error_of_the_others(script):
    assert np.isnan(script.log_rmse([1.0], 1.0)[1])
    assert script.log_rmse([0.0], 1.0) == (np.log(script.EXACT), 0.0)
    one_of_four = [(0.0, np.nan), (0.0, 0.1), (0.0, 0.1), (0.0, 0.1)]
    assert script.mean_ratio(one_of_four) == "1.00 +- 0.05"
    assert script.mean_ratio([(np.log(2.0), np.nan)]) == "2.00"


@of("small_games")
def test_coverage_is_printed_for_each_semivalue(script, folders, run, monkeypatch):
    games, results = folders
    monkeypatch.setattr(script, "COVERED", ("banzhaf", (4, 1)))
    printed = run(f"{games} {results} --seeds 1 --budgets 40 --coverage")
    first, second = printed.splitlines()
    assert first.startswith("banzhaf")
    assert second.startswith("(4, 1)")
    assert 0.5 < float(first.split()[2].rstrip(",")) <= 1


@of("small_games")
def test_a_valuer_of_a_game_is_compared_to_the_bit(script, folders, run, monkeypatch):
    games, results = folders
    command = f"{games} {results} --seeds 2 --budgets 40 --valuer"
    lines = run(command).splitlines()
    assert [line.split()[0] for line in lines] == ["new_two", "one"]
    assert all(line.endswith("40 evaluations, 2 seeds: equal") for line in lines)

    def nearly(*arguments, **options):
        result = game_values(*arguments, **options)
        return replace(result, values=np.nextafter(result.values, np.inf))

    monkeypatch.setattr(script, "game_values", nearly)
    with pytest.raises(RuntimeError, match="other values: new_two, 40, seed 0"):
        run(command)


@of("small_games")
def test_estimators_are_chosen_on_other_seeds(script, tmp_path):
    errors = {"a|16": [1.0, 9.0, 4.0], "b|16": [4.0, 4.0, 4.0]}
    peers = {"n": 7, "spread": 0.1, "errors": errors}
    (tmp_path / "game.shapiq.json").write_text(json.dumps(peers))
    ours = {"errors": {"16": [1.0, 1.0]}}
    (tmp_path / "game.skvalue.json").write_text(json.dumps(ours))
    # On the other seeds b, a and b are best.
    ratio, error = script.ratio_out_of_seed(tmp_path, "game", 0)
    assert ratio == pytest.approx(0.5 * np.log((4 + 9 + 4) / 3))
    assert error > 0
    assert script.ratio_out_of_seed(tmp_path, "game", 100) is None
