"""The commands of a buyer and of sellers."""

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest

from skvalue.priarta import BuyerModel, Identity, PriArTaScorer
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
GUARANTEE = "--epsilon 1 --delta 1e-5"


def save(path, rows, names="abc"):
    """Rows as a .csv file with a header of names."""
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="")


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    """A folder with the rows of a buyer and of two sellers, and the buyer's model."""
    folder = tmp_path_factory.mktemp("market")
    rng = np.random.default_rng(0)
    save(folder / "mine.csv", rng.normal(size=(400, 3)))
    np.save(folder / "alike.npy", rng.normal(size=(2000, 3)))
    np.savez(folder / "new.npz", rng.normal(size=(2000, 3)) + [3, 0, 0])
    assert command(f"buyer export {folder}/mine.csv -o {folder}/model") == 0
    for rows, summary in (("alike.npy", "alike.json"), ("new.npz", "new.json")):
        code = command(
            f"seller summarize {folder}/model {folder}/{rows} {GUARANTEE} "
            f"--columns a,b,c -o {folder}/{summary}"
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
    X = pd.read_csv(market / "mine.csv")
    model = PriArTaScorer(Identity(standardize=True)).fit(X).model_
    assert model.fingerprint == BuyerModel.load(market / "model").fingerprint
    scorer = PriArTaScorer().fit(X, model=model)
    paths = [market / "new.json", market / "alike.json"]
    np.testing.assert_allclose(scorer.score_summaries(paths)[:, 0], scores["score"])


@pytest.mark.parametrize("representation", ["identity", "pca"])
def test_every_exported_model_scores(representation, market, tmp_path, capsys):
    model = tmp_path / "model"
    mine = tmp_path / "mine.csv"
    save(mine, pd.read_csv(market / "mine.csv").to_numpy() + 0.1)
    code = command(
        f"buyer export {mine} --representation {representation} -o {model} "
        "--epsilon 0.5"
    )
    assert code == 0
    assert "tells whoever has it" in capsys.readouterr().out
    summary = tmp_path / "summary.json"
    code = command(
        f"seller summarize {model} {market}/alike.npy {GUARANTEE} --columns a,b,c "
        f"-o {summary}"
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
    "score MARKET/model HERE/others.csv MARKET/new.json": "Got none named 'b', 'c'",
    "export HERE/holes.csv -o HERE/a": "holes.csv must hold finite numbers with the "
    "decimal mark '.' in column 'b'. Got '' in line 3",
    "export HERE/nan.npy -o HERE/a": "nan.npy must hold finite numbers. Got NaN or "
    "infinity in row 2",
    "export HERE/empty.csv -o HERE/a": "must have a header without empty names",
    "export MARKET/mine.csv --columns a,b,c -o HERE/a": "--columns must be used with",
    "export MARKET/alike.npy --columns a,b -o HERE/a": "--columns must have a name for",
    "score MARKET/model MARKET/mine.csv MARKET/new.json --pairs HERE/a.x": "--pairs",
    "score MARKET/model MARKET/mine.csv HERE/wide.npy": "wide.npy must be ASCII",
    "score MARKET/model MARKET/mine.csv MARKET/new.json HERE/none.json": "No such file",
    "score MARKET/model MARKET/mine.csv MARKET/new.json -o HERE/a.txt": (
        "--output must end in one of"
    ),
    "score MARKET/model MARKET/mine.csv MARKET/new.json -o MARKET/mine.csv": (
        "--output must be a file that is not used"
    ),
}


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("MARKET/model", "folder must be one without a model"),
        ("HERE/rows.csv", "--output must be a folder"),
        ("HERE/rows.csv/model", "--output must be in a folder that can be written"),
    ],
)
def test_a_folder_for_a_model_is_refused_before_any_work(
    output, message, market, tmp_path, capsys
):
    (tmp_path / "rows.csv").write_text("no rows")
    output = output.replace("MARKET", str(market)).replace("HERE", str(tmp_path))
    assert command(f"buyer export {tmp_path}/none.csv -o {output}") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("line", BAD)
def test_a_buyer_hears_what_is_wrong_in_a_sentence(line, market, tmp_path, capsys):
    np.save(tmp_path / "other.npy", np.zeros((9, 3)) + 5)
    np.save(tmp_path / "wide.npy", np.zeros((9, 7)))
    np.save(tmp_path / "nan.npy", np.array([[1.0], [np.nan], [2.0]]))
    (tmp_path / "others.csv").write_text("a,x\n1,2\n")
    (tmp_path / "holes.csv").write_text("a,b\n1,2\n3,\n")
    (tmp_path / "empty.csv").write_text("a,,b\n1,2,3\n")
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


# What a seller's file says of its columns -> header, options, and the message if any.
SELLERS = {
    "in another order": ("c,b,a\n", "", None),
    "with others": ("x,c,y,b,a\n", "", None),
    "by an option": ("", "--columns c,b,a", None),
    "other names": ("a,b,d\n", "", "must have a header with the 3 columns"),
    "no header": ("", "", "must have a header with the 3 columns"),
    "a name twice": ("a,b,c,c\n", "", "must name each column once. Got 'c' twice"),
    "an option without one": ("", "--columns a,b", "--columns must have each column"),
}


@pytest.mark.parametrize("what", SELLERS)
def test_columns_of_a_seller_are_compared_by_name(what, market, tmp_path, capsys):
    header, options, message = SELLERS[what]
    rng = np.random.default_rng(5)
    reversed_rows = (rng.normal(size=(500, 3)) + [3, 0, 0])[:, ::-1]
    n_columns = header.count(",") + 1
    lines = []
    for c, b, a in reversed_rows.tolist():
        cells = {4: [a, b, c, c], 5: ["z", c, "z", b, a]}.get(n_columns, [c, b, a])
        lines.append(",".join(map(str, cells)))
    (tmp_path / "rows.csv").write_text(header + "\n".join(lines))
    line = f"seller summarize {market}/model {tmp_path}/rows.csv {options} --epsilon 8"
    code = command(f"{line} --delta 1e-5 -o {tmp_path}/s.json")
    printed = capsys.readouterr()
    if message is not None:
        assert code == 2
        assert message in printed.err
        assert str(lines[0].split(",")[0]) not in printed.err
        assert not (tmp_path / "s.json").exists()
        return
    assert code == 0
    scorer = PriArTaScorer().fit(
        pd.read_csv(market / "mine.csv"), model=BuyerModel.load(market / "model")
    )
    contributions = scorer.explain([tmp_path / "s.json"])[0].sum(axis=0)
    main = scorer.components_[contributions.argmax()]
    exact = scorer.model_.transform(reversed_rows[:, ::-1]).mean(axis=0)
    assert abs(main @ exact) > 0.4 * np.linalg.norm(exact)
    score = scorer.score_summaries([tmp_path / "s.json"])[0, 0]
    assert score == pytest.approx(np.linalg.norm(exact), rel=0.15)


def test_a_column_in_another_unit_changes_no_score(market, tmp_path):
    scores = []
    for name, factor in [("metres", 1.0), ("millimetres", 1000.0)]:
        folder = tmp_path / name
        folder.mkdir()
        mine = pd.read_csv(market / "mine.csv")
        mine["a"] *= factor
        mine.to_csv(folder / "mine.csv", index=False)
        assert command(f"buyer export {folder}/mine.csv -o {folder}/model") == 0
        model = BuyerModel.load(folder / "model")
        scorer = PriArTaScorer().fit(mine, model=model)
        scores.append(scorer.transform([mine + [0.0, 1.0, 0.0]])[0, 0])
    assert scores[0] == pytest.approx(scores[1])
    assert scores[0] == pytest.approx(1 / mine["b"].std(), rel=0.1)


@pytest.fixture(scope="module")
def printed(market):
    """What is printed of a market with a seller, a copy of it, and others."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(4000, 3)) + [2, 0, 0]
    sellers = {
        "first": rows,
        "copy": rows[:3900],
        "same": rng.normal(size=(4000, 3)) + [2, 0, 0],
        "other": rng.normal(size=(4000, 3)) + [0, 2, 0],
    }
    summaries = []
    for name, X in sellers.items():
        save(market / f"{name}.csv", X)
        summaries.append(f"{market}/{name}.json")
        code = command(
            f"seller summarize {market}/model {market}/{name}.csv --epsilon 500 "
            f"--delta 1e-5 -o {summaries[-1]}"
        )
        assert code == 0
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = command(
            f"buyer score {market}/model {market}/mine.csv {' '.join(summaries)} "
            f"--pairs {market}/pairs.csv"
        )
    assert code == 0
    return text.getvalue()


class TestWhatAScorePrints:
    def test_the_caution_comes_first(self, printed):
        assert printed.startswith("A large score says that rows differ from yours, not")
        assert "random numbers have the largest scores" in " ".join(printed.split())

    def test_copies_are_told_from_other_rows_where_noise_is_small(
        self, printed, market
    ):
        pairs = pd.read_csv(market / "pairs.csv")
        names = [
            {Path(first).stem, Path(second).stem}
            for first, second in zip(pairs["first"], pairs["second"])
        ]
        verdicts = {frozenset(pair): said for pair, said in zip(names, pairs["says"])}
        assert verdicts[frozenset({"first", "copy"})] == "copies?"
        assert verdicts[frozenset({"first", "same"})] == "alike"
        assert verdicts[frozenset({"first", "other"})] == "differ"

    def test_the_main_direction_has_names_of_columns(self, printed):
        [line] = [li for li in printed.splitlines() if "first.json: " in li]
        assert "by the mean" in line
        assert " a " in line or " a." in line
