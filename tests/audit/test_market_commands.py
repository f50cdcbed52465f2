"""The commands of a buyer, and of a ledger."""

import numpy as np
import pytest

from skvalue.audit.commands import main
from skvalue.priarta import BuyerModel, PriArTaScorer
from skvalue.privacy import Ledger

pd = pytest.importorskip("pandas")


def command(*words):
    return main([str(word) for word in words])


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    """A folder with the rows of a buyer and of two sellers, and the buyer's model."""
    folder, rng = tmp_path_factory.mktemp("market"), np.random.default_rng(0)
    np.savetxt(folder / "mine.csv", rng.normal(size=(400, 3)), delimiter=",")
    np.save(folder / "alike.npy", rng.normal(size=(2000, 3)))
    np.savez(folder / "new.npz", rng.normal(size=(2000, 3)) + [3, 0, 0])
    assert command("buyer", "export", folder / "mine.csv", "-o", folder / "model") == 0
    for name in ("alike.npy", "new.npz"):
        words = ["--epsilon", 1, "--delta", 1e-5, "-o", folder / f"{name[:-4]}.json"]
        assert (
            command("seller", "summarize", folder / "model", folder / name, *words) == 0
        )
    return folder


def test_a_buyer_scores_what_sellers_sent(market, capsys):
    paths, out = [market / "alike.json", market / "new.json"], market / "scores.csv"
    words = ["score", market / "model", market / "mine.csv", *paths]
    assert command("buyer", *words, "-o", out) == 0
    said, found = capsys.readouterr().out, pd.read_csv(out)
    assert "below the noise floor" in said
    assert [path.split("/")[-1] for path in found["summary"]] == [
        "new.json",
        "alike.json",
    ]
    assert found["score"][0] > 3 * found["noise_floor"][0] > 0
    # As the scorer that made the model says in its own process.
    X = np.loadtxt(market / "mine.csv", delimiter=",")
    model = PriArTaScorer().fit(X).model_
    assert model.fingerprint == BuyerModel.load(market / "model").fingerprint
    scorer = PriArTaScorer().fit(X, model=model)
    np.testing.assert_allclose(
        scorer.score_summaries(paths[::-1])[:, 0], found["score"]
    )


@pytest.mark.parametrize("representation", ["identity", "pca"])
def test_every_exported_model_scores(representation, market, tmp_path, capsys):
    names = ["--representation", representation, "-o", tmp_path / "m"]
    assert (
        command("buyer", "export", market / "mine.csv", *names, "--epsilon", 0.5) == 0
    )
    assert "tells whoever has it" in capsys.readouterr().out
    words = ["--epsilon", 1, "--delta", 1e-5, "-o", tmp_path / "s.json"]
    assert (
        command("seller", "summarize", tmp_path / "m", market / "alike.npy", *words)
        == 0
    )
    words = ["score", tmp_path / "m", market / "mine.csv", tmp_path / "s.json"]
    assert command("buyer", *words) == 0
    assert command("buyer", *words, market / "new.json") == 2  # of another model
    assert "must be made with this buyer's model" in capsys.readouterr().err


def test_a_buyer_hears_what_is_wrong(market, tmp_path, capsys):
    np.save(tmp_path / "other.npy", np.zeros((9, 3)) + 5)
    np.save(tmp_path / "wide.npy", np.zeros((9, 7)))
    model, mine, summary = market / "model", market / "mine.csv", market / "new.json"
    for words, message in [
        (["export", mine, "-o", model], "folder must be one without a model"),
        (
            ["export", tmp_path / "x.xls", "-o", tmp_path / "a"],
            "rows must be an .npz, .npy or",
        ),
        (["export", mine, "-o", tmp_path / "a", "--epsilon", -1], "--epsilon must be"),
        (["score", tmp_path, mine, summary], "No such file"),
        (
            ["score", model, tmp_path / "other.npy", summary],
            "the rows must have the rows that",
        ),
        (["score", model, tmp_path / "wide.npy", summary], "Got 7"),
        (["score", model, mine, tmp_path / "wide.npy"], "wide.npy must be ASCII"),
        (["score", model, mine, summary, tmp_path / "none.json"], "No such file"),
        (
            ["score", model, mine, summary, "-o", tmp_path / "a.txt"],
            "--output must end in one of",
        ),
        (
            ["score", model, mine, summary, "-o", mine],
            "--output must be a file that is not used",
        ),
    ]:
        assert command("buyer", *words) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_a_ledger_is_made_spent_and_shown(tmp_path, capsys):
    file = tmp_path / "ledger.db"
    assert (
        command("ledger", "new", file, "patients", "--epsilon", 2, "--delta", 1e-5) == 0
    )
    spend = ["ledger", "spend", file, "--delta", 1e-6]
    assert command(*spend, "--epsilon", 0.5, "--label", "a survey") == 0
    assert "epsilon=0.5 of 2 spent" in capsys.readouterr().out.splitlines()[-1]
    assert Ledger(file, "patients").n_charges == 1
    assert command("ledger", "show", file) == 0
    first, charge, left = capsys.readouterr().out.splitlines()
    assert "Privacy ledger of 'patients'" in first
    assert charge.startswith("   1  ")
    assert charge.endswith("epsilon=0.5  a survey")
    assert 1 < float(left.rstrip(".").split()[-1]) < 1.6


def test_a_private_fit_charges_a_ledger(tmp_path, capsys):
    file, rng = tmp_path / "ledger.db", np.random.default_rng(0)
    for name in ("mine.csv", "public.csv"):
        frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
        frame.assign(label=np.where(frame["a"] > 0, "x", "y")).to_csv(
            tmp_path / name, index=False
        )
    words = ["value", tmp_path / "mine.csv", "--target", "label", "--method", "tknn"]
    words += ["--validation", tmp_path / "public.csv", "-o", tmp_path / "out.csv"]
    audit = ["audit", *words[1:4], "-o", tmp_path / "page.html"]
    for some, option in [(words, ["--ledger", file]), (audit, ["--ledger", file]),
                         (words, ["--equal-rows"]), (audit, ["--equal-rows"])]:  # fmt: skip
        assert command(*some, *option) == 2
        assert f"{option[0]} must be used with --epsilon" in capsys.readouterr().err
    assert command(*words, "--epsilon", 0.8, "--ledger", file) == 2
    assert (
        "--ledger must be a file that `skvalue ledger new` made"
        in capsys.readouterr().err
    )
    Ledger(file, "patients", epsilon=1.0, delta=1e-5)
    assert command(*words, "--epsilon", 0.8, "--ledger", file) == 0
    (tmp_path / "out.csv").unlink()
    assert command(*words, "--epsilon", 0.8, "--ledger", file) == 2
    assert "must fit what is left of the budget" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
    assert Ledger(file).spent == pytest.approx(0.8)


def test_a_ledger_says_what_is_wrong(tmp_path, capsys):
    file, other = tmp_path / "ledger.db", tmp_path / "other"
    Ledger(file, "rows", epsilon=1.0, delta=1e-5)
    other.write_text("text")
    budget = ["--epsilon", 1, "--delta", 1e-5]
    for words, message in [
        (["new", file, "rows", *budget], "must be a new file. Got"),
        (["new", tmp_path / "a", "", *budget], "dataset_name must be a string"),
        (
            ["new", tmp_path / "a", "rows", "--epsilon", -1, "--delta", 1e-5],
            "--epsilon must be",
        ),
        (
            ["new", tmp_path / "a", "rows", "--epsilon", 1, "--delta", 2],
            "--delta must be",
        ),
        (["new", tmp_path / "none" / "a", "rows", *budget], "No such file"),
        (["show", tmp_path / "a"], "must be a file that `skvalue"),
        (["show", other], "path must be a ledger's SQLite file"),
        (["spend", file, "--epsilon", 2, "--delta", 0], "must fit what is left"),
        (["spend", file, "--epsilon", 0, "--delta", 0], "--epsilon must be"),
    ]:
        assert command("ledger", *words) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
    assert not (tmp_path / "a").exists()
