"""The commands of a buyer and of sellers."""

from pathlib import Path

import numpy as np
import pytest

from skvalue.priarta import BuyerModel, PriArTaScorer
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
GUARANTEE = "--epsilon 1 --delta 1e-5"


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    """A folder with the rows of a buyer and of two sellers, and the buyer's model."""
    folder = tmp_path_factory.mktemp("market")
    rng = np.random.default_rng(0)
    np.savetxt(folder / "mine.csv", rng.normal(size=(400, 3)), delimiter=",")
    np.save(folder / "alike.npy", rng.normal(size=(2000, 3)))
    np.savez(folder / "new.npz", rng.normal(size=(2000, 3)) + [3, 0, 0])
    assert command(f"buyer export {folder}/mine.csv -o {folder}/model") == 0
    for rows, summary in (("alike.npy", "alike.json"), ("new.npz", "new.json")):
        code = command(
            f"seller summarize {folder}/model {folder}/{rows} {GUARANTEE} "
            f"-o {folder}/{summary}"
        )
        assert code == 0
    return folder


@pytest.fixture(scope="module")
def scores(market):
    """The scores of both sellers, as the buyer writes them."""
    summaries = f"{market}/alike.json {market}/new.json"
    code = command(
        f"buyer score {market}/model {market}/mine.csv {summaries} "
        f"-o {market}/scores.csv"
    )
    assert code == 0
    return pd.read_csv(market / "scores.csv")


def test_new_rows_score_above_the_noise_floor_and_come_first(scores):
    names = [Path(path).name for path in scores["summary"]]
    assert names == ["new.json", "alike.json"]
    assert scores["score"][0] > 3 * scores["noise_floor"][0] > 0


def test_a_score_says_what_the_noise_floor_means(market, capsys):
    assert (
        command(f"buyer score {market}/model {market}/mine.csv {market}/new.json") == 0
    )
    assert "below the noise floor" in capsys.readouterr().out


def test_scores_are_those_of_the_scorer_that_made_the_model(market, scores):
    X = np.loadtxt(market / "mine.csv", delimiter=",")
    model = PriArTaScorer().fit(X).model_
    assert model.fingerprint == BuyerModel.load(market / "model").fingerprint
    scorer = PriArTaScorer().fit(X, model=model)
    paths = [market / "new.json", market / "alike.json"]
    np.testing.assert_allclose(scorer.score_summaries(paths)[:, 0], scores["score"])


@pytest.mark.parametrize("representation", ["identity", "pca"])
def test_every_exported_model_scores(representation, market, tmp_path, capsys):
    model = tmp_path / "model"
    mine = tmp_path / "mine.csv"
    rows = np.loadtxt(market / "mine.csv", delimiter=",")
    np.savetxt(mine, rows + 0.1, delimiter=",")
    code = command(
        f"buyer export {mine} --representation {representation} -o {model} "
        "--epsilon 0.5"
    )
    assert code == 0
    assert "tells whoever has it" in capsys.readouterr().out
    summary = tmp_path / "summary.json"
    code = command(
        f"seller summarize {model} {market}/alike.npy {GUARANTEE} -o {summary}"
    )
    assert code == 0
    line = f"buyer score {model} {mine} {summary}"
    assert command(line) == 0
    assert command(f"{line} {market}/new.json") == 2  # a summary for another model
    assert "must be made with this buyer's model" in capsys.readouterr().err


# "MARKET" is the folder of the market, "HERE" that of the bad files.
BAD = {
    "export MARKET/mine.csv -o MARKET/model": "folder must be one without a model",
    "export HERE/x.xls -o HERE/a": "rows must be an .npz, .npy or",
    "export MARKET/mine.csv -o HERE/a --epsilon -1": "--epsilon must be",
    "score HERE MARKET/mine.csv MARKET/new.json": "No such file",
    "score MARKET/model HERE/other.npy MARKET/new.json": (
        "the rows must have the rows that"
    ),
    "score MARKET/model HERE/wide.npy MARKET/new.json": "Got 7",
    "score MARKET/model MARKET/mine.csv HERE/wide.npy": "wide.npy must be ASCII",
    "score MARKET/model MARKET/mine.csv MARKET/new.json HERE/none.json": "No such file",
    "score MARKET/model MARKET/mine.csv MARKET/new.json -o HERE/a.txt": (
        "--output must end in one of"
    ),
    "score MARKET/model MARKET/mine.csv MARKET/new.json -o MARKET/mine.csv": (
        "--output must be a file that is not used"
    ),
}


@pytest.mark.parametrize("line", BAD)
def test_a_buyer_hears_what_is_wrong_in_a_sentence(line, market, tmp_path, capsys):
    np.save(tmp_path / "other.npy", np.zeros((9, 3)) + 5)
    np.save(tmp_path / "wide.npy", np.zeros((9, 7)))
    words = line.replace("MARKET", str(market)).replace("HERE", str(tmp_path))
    assert command(f"buyer {words}") == 2
    err = capsys.readouterr().err
    assert BAD[line] in err
    assert err.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_the_error_of_a_seller_is_printed(tmp_path, capsys):
    assert command(f"seller check {tmp_path}/none.json") == 2
    assert "No such file" in capsys.readouterr().err


def test_the_help_of_a_seller_names_the_command(capsys):
    with pytest.raises(SystemExit):
        command("seller --help")
    assert "usage: skvalue seller" in capsys.readouterr().out
